//! Tasks: who creates, waits for and executes them, their groups and dependences.
//!
//! A task that is created belongs to its team's queue until a thread that waits, at a barrier, for its children or for a group,
//! executes it. Who waits for its children executes only those, and at the end of a group only tasks of the group, so that nobody
//! who waits is held up by what has nothing to do with it.

use super::data::{Vector, allocate, release};
pub use super::queue::Queue;
use super::settings::Settings;
use super::team::{Member, Team, member, run};
use super::{Call, Here, kmpc_tasks};
use crate::serial::sched::WaitFor;
use core::cell::Cell;
use core::ptr::null;
use core::sync::atomic::Ordering::Release;
use rashomon_abi::record::{Op, sync_source};
pub use rashomon_logic::dependences::{ALL_MEMORY, Item, Use};
pub use rashomon_logic::pieces::Pieces;

/// How a task's code is called.
#[derive(Clone, Copy)]
pub enum Code {
    Function(unsafe extern "C" fn(*mut u8)),
    /// clang's: thread number and task.
    Entry(kmpc_tasks::Entry),
}

pub struct Task {
    pub settings: Cell<Settings>,
    implicit: bool,
    /// Everything that it creates is executed at once.
    pub is_final: bool,
    /// Around it: the task that created it, and the place of the thread that executed that.
    around: *const Task,
    creator: *const Member,
    /// Where it was created.
    call: Call,
    code: Option<Code>,
    data: *mut u8,
    /// The innermost group that it belongs to, and the one that it has begun last.
    group: *const Group,
    begun_group: Cell<*const Group>,
    /// Children that are not executed; ends of children that it has not taken.
    children: Cell<u32>,
    untaken: Cell<u32>,
    /// Itself until it is executed, children, and tables that name it.
    references: Cell<u32>,
    finished: Cell<bool>,
    pub next: Cell<*const Task>,
    predecessors: Vector<*const Task>,
    /// What its children depend on.
    table: Vector<Dependence>,
    /// Names of objects: its being created, the ends of its children, its end for its successors.
    created: u64,
    joined: u64,
    ended: u64,
}

/// `taskgroup`.
pub struct Group {
    around: *const Group,
    /// The one that the same task had begun before.
    previous: *const Group,
    unfinished: Cell<u32>,
    untaken: Cell<u32>,
    joined: u64,
}

/// A child that the next ones with the same address depend on.
#[derive(Clone, Copy)]
struct Dependence {
    item: Item,
    task: *const Task,
}

/// How often a thread yields before it executes a task of its own, beside what it yields before any task, and in a region at
/// most. Often, and nobody executes a task of his own: that hides races, too.
const YIELDS: u32 = 1;
const MOST_YIELDS: u32 = 256;

/// Tasks for each thread of a team behind which creating one means executing it.
const MOST_OUTSTANDING: u32 = 64;

/// What a construct says of a task.
pub struct Clauses<'a> {
    /// Executed at once where it is created.
    pub at_once: bool,
    pub is_final: bool,
    pub depends: &'a [Item],
}

/// A fresh task with room for its data, which the caller fills: that may be the program's code. Outside the runtime.
pub fn prepare(call: Call, code: Code, bytes: usize, alignment: usize) -> (*mut Task, *mut u8) {
    let alignment = alignment.max(16);
    let block = allocate(call, size_of::<Task>() + alignment + bytes);
    let data = (block as usize + size_of::<Task>()).next_multiple_of(alignment) as *mut u8;
    let task = block.cast::<Task>();
    // SAFETY: a fresh block, all zero, which is valid for the fields not named here.
    unsafe {
        (*task).call = call;
        (*task).code = Some(code);
        (*task).data = data;
        (*task).references.set(1);
        // Until it is submitted it has those of whoever prepares it.
        (*task).settings.set(member().task().settings.get());
    }
    (task, data)
}

/// The program created a task: it is executed now, or left to the team.
pub fn submit(call: Call, new: *mut Task, clauses: &Clauses<'_>) {
    let me = member();
    let around = me.task();
    let task = adopt(me, new, clauses.is_final);
    let Some(team) = me.team() else { return execute(call, task, false) };
    let full = {
        let _here = call.enter();
        team.lock.with(|| {
            depend(around, task, clauses.depends);
            team.queue.outstanding() >= MOST_OUTSTANDING * team.size
        })
    };
    if clauses.at_once || around.is_final || full {
        if !task.predecessors.as_slice().is_empty() {
            execute_before(call, team, task);
        }
        return execute(call, task, false);
    }
    let here = call.enter();
    here.concerns(&raw const team.queue as u64);
    here.does(Op::SemaphorePost, name(&task.created), 0, &[]);
    team.lock.with(|| {
        add(&around.children, 1);
        add(&around.references, 1);
        // SAFETY: groups outlive their tasks.
        if let Some(group) = unsafe { task.group.as_ref() } {
            add(&group.unfinished, 1);
        }
        add(&team.queue.outstanding, 1);
        team.queue.push(task);
    });
    tell(&here, team);
}

/// Executes what a task that is not left to the team has to come behind, and nothing else: whoever creates it may hold what other
/// tasks wait for.
fn execute_before(call: Call, team: &Team, task: &Task) {
    let before = Vector::new();
    {
        let _here = call.enter();
        team.lock.with(|| {
            let (mut at, mut of) = (0, task);
            loop {
                for &other in of.predecessors.as_slice() {
                    // SAFETY: kept by the reference of a task that is not finished; of one that is finished nothing is left in
                    // the list.
                    let counted = unsafe { &*other };
                    if !counted.finished.get() && !before.as_slice().contains(&other) {
                        add(&counted.references, 1);
                        before.push(other);
                    }
                }
                let Some(&next) = before.as_slice().get(at) else { break };
                // SAFETY: kept by its reference.
                (at, of) = (at + 1, unsafe { &*next });
            }
        });
    }
    execute_until(call, team, |other| before.as_slice().contains(&(&raw const *other)), || task.is_ready());
    let free = Vector::new();
    {
        let _here = call.enter();
        team.lock.with(|| before.as_slice().iter().for_each(|other| drop_reference(*other, &free)));
    }
    before.free();
    free_all(&free);
}

fn add(to: &Cell<u32>, what: i32) {
    to.set(to.get().wrapping_add_signed(what));
}

fn name(object: &u64) -> u64 {
    &raw const *object as u64
}

/// Whoever waits in the team looks again.
pub fn tell(here: &Here, team: &Team) {
    team.word.fetch_add(1, Release);
    here.wake(WaitFor::Barrier, &raw const team.word as u64, &raw const team.word);
}

/// Executes tasks of the team that are accepted until `done` (asked under the team's lock), waiting while there are none.
///
/// Who created tasks executes one of them only when another thread has taken one, or none comes for it: the same thread's
/// executing them would order them, and behind what that thread did before.
pub fn execute_until(call: Call, team: &Team, accept: impl Fn(&Task) -> bool, done: impl Fn() -> bool) {
    let me = member();
    let of_others = |task: &Task| accept(task) && !core::ptr::eq(task.creator, me);
    loop {
        let task = Cell::new(null::<Task>());
        {
            let here = call.enter();
            let has_only_own = || team.lock.with(|| !team.queue.has(of_others) && team.queue.has(&accept));
            let work = &raw const team.queue as u64;
            let mut yields = YIELDS;
            while team.size > 1 && yields > 0 && me.yields.get() < MOST_YIELDS && !me.handed.get() && has_only_own() {
                here.gives_way(work);
                me.yields.set(me.yields.get() + 1);
                yields -= 1;
            }
            // Also where there is nothing left: that there is not depends on who took what.
            if team.size > 1 && team.lock.with(|| team.queue.used.get()) {
                if me.handed.get() && has_only_own() {
                    here.does(Op::Blocking, work, sync_source::OTHER, &[0]);
                } else {
                    here.lets_others(work, team.lock.with(|| team.queue.outstanding() > 0));
                }
            }
            here.wait_for(WaitFor::Barrier, &raw const team.word as u64, work, &team.word, || {
                team.lock.with(|| {
                    if !done() {
                        task.set(team.queue.take(of_others));
                        // SAFETY: its creator is a place of the team, under whose lock this is.
                        match unsafe { task.get().as_ref().and_then(|task| task.creator.as_ref()) } {
                            Some(creator) => creator.handed.set(true),
                            None => {
                                task.set(team.queue.take(&accept));
                                me.handed.set(false);
                            }
                        }
                        return !task.get().is_null();
                    }
                    true
                })
            });
            if !task.get().is_null() {
                here.took();
            }
        }
        // SAFETY: taken from the queue, so that nobody else executes it.
        let Some(task) = (unsafe { task.get().as_ref() }) else { return };
        execute(call, task, true);
    }
}

/// Executes a task; `created`: another thread may have created it, and its end is waited for.
fn execute(call: Call, task: &Task, created: bool) {
    begins(call, task, created);
    let me = member();
    let before = me.task.replace(task);
    match task.code {
        // SAFETY: the program's own function and data.
        Some(Code::Function(function)) => unsafe { run(task.call, || function(task.data)) },
        // SAFETY: as above.
        Some(Code::Entry(entry)) => unsafe {
            run(task.call, || kmpc_tasks::execute(entry, task.data));
        },
        None => {}
    }
    me.task.set(before);
    ends(call, me, task, created);
}

fn begins(call: Call, task: &Task, created: bool) {
    let here = call.enter();
    if created {
        here.does(Op::SemaphoreWait, name(&task.created), 0, &[]);
    }
    for &other in task.predecessors.as_slice() {
        // SAFETY: kept by the reference.
        here.does(Op::Acquire, name(unsafe { &(*other).ended }), sync_source::OTHER, &[]);
    }
}

/// Compiled code itself is about to execute a task where it was created.
pub fn begin_at_once(call: Call, new: *mut Task, is_final: bool) {
    let me = member();
    let task = adopt(me, new, is_final);
    begins(call, task, false);
    me.task.set(task);
}

/// And has done so.
pub fn end_at_once(call: Call, task: *mut Task) {
    let me = member();
    // SAFETY: the task that is being executed, and the one around it.
    let task = unsafe { &*task };
    me.task.set(task.around);
    ends(call, me, task, false);
}

/// A prepared task becomes a child of what the thread executes.
fn adopt(me: &Member, new: *mut Task, is_final: bool) -> &'static Task {
    let around = me.task();
    // SAFETY: prepared, known to nobody else.
    unsafe {
        (*new).around = around;
        (*new).creator = me;
        (*new).is_final = is_final || around.is_final;
        (*new).group = if around.begun_group.get().is_null() { around.group } else { around.begun_group.get() };
        &*new
    }
}

fn ends(call: Call, me: &Member, task: &Task, created: bool) {
    let Some(team) = me.team() else {
        task.free_lists();
        // SAFETY: executed at once, outside of every team: nobody knows of it.
        return unsafe { release((&raw const *task).cast_mut().cast()) };
    };
    let free = Vector::new();
    {
        let here = call.enter();
        // In case somebody comes to depend on it.
        here.does(Op::Release, name(&task.ended), sync_source::OTHER, &[]);
        // SAFETY: kept by the reference of its child, and groups outlive their tasks.
        let (around, group) = unsafe { (&*task.around, task.group.as_ref()) };
        if created {
            here.does(Op::SemaphorePost, name(&around.joined), 0, &[]);
            if let Some(group) = group {
                here.does(Op::SemaphorePost, name(&group.joined), 0, &[]);
            }
        }
        team.lock.with(|| {
            task.finished.set(true);
            if created {
                add(&around.children, -1);
                add(&around.untaken, 1);
                drop_reference(around, &free);
                if let Some(group) = group {
                    add(&group.unfinished, -1);
                    add(&group.untaken, 1);
                }
                add(&team.queue.outstanding, -1);
            }
            task.predecessors.as_slice().iter().for_each(|other| drop_reference(*other, &free));
            task.table.as_slice().iter().for_each(|known| drop_reference(known.task, &free));
            task.free_lists();
            drop_reference(task, &free);
        });
        tell(&here, team);
    }
    free_all(&free);
}

fn free_all(free: &Vector<*const Task>) {
    for &task in free.as_slice() {
        // SAFETY: nothing refers to it.
        unsafe { release(task.cast_mut().cast()) };
    }
    free.free();
}

/// Under the team's lock. What nothing refers to any more is to be freed.
fn drop_reference(task: *const Task, free: &Vector<*const Task>) {
    // SAFETY: counted.
    let counted = unsafe { &*task };
    if counted.implicit {
        return;
    }
    add(&counted.references, -1);
    if counted.references.get() == 0 {
        free.push(task);
    }
}

/// Enters a task into the table of its siblings. Under the team's lock.
fn depend(around: &Task, task: &Task, on: &[Item]) {
    for &item in on {
        let mut at = 0;
        while let Some(&known) = around.table.as_slice().get(at) {
            let before = item.orders(known.item) && !core::ptr::eq(known.task, task);
            if before {
                task.predecessors.push(known.task);
                // SAFETY: kept by the table's reference.
                add(unsafe { &(*known.task).references }, 1);
            }
            if before && item.stands_for(known.item) {
                around.table.remove(at);
                // Never the last reference: the new task has one.
                // SAFETY: as above.
                add(unsafe { &(*known.task).references }, -1);
            } else {
                at += 1;
            }
        }
        around.table.push(Dependence { item, task });
        add(&task.references, 1);
    }
}

impl Task {
    /// Of a thread in a region. `self` is all zero.
    pub fn begin_implicit(&mut self, around: &Task, settings: Settings) {
        self.settings.set(settings);
        self.implicit = true;
        self.around = around;
        self.references.set(1);
    }

    /// What its code is called with, in the room that it has.
    pub fn set_data(&mut self, data: *mut u8) {
        self.data = data;
    }

    pub fn is_ready(&self) -> bool {
        // SAFETY: kept by the references.
        self.predecessors.as_slice().iter().all(|&other| unsafe { (*other).finished.get() })
    }

    fn free_lists(&self) {
        self.predecessors.free();
        self.table.free();
    }
}

/// The end of an implicit task: what its children depended on is no longer asked for.
pub fn end_implicit(call: Call, team: &Team, task: &Task) {
    let free = Vector::new();
    let here = call.enter();
    team.lock.with(|| task.table.as_slice().iter().for_each(|known| drop_reference(known.task, &free)));
    drop(here);
    task.free_lists();
    free_all(&free);
}

/// `taskwait`: of all children.
pub fn wait(call: Call) {
    let me = member();
    let around = me.task();
    let Some(team) = me.team() else { return };
    execute_until(call, team, |task| core::ptr::eq(task.around, around), || around.children.get() == 0);
    let here = call.enter();
    for _ in 0..team.lock.with(|| around.untaken.take()) {
        here.does(Op::SemaphoreWait, name(&around.joined), 0, &[]);
    }
}

/// `taskwait depend(…)`: until nothing is left that a task with these dependences would have to wait for.
pub fn wait_for(call: Call, on: &[Item]) {
    unsafe extern "C" fn nothing(_data: *mut u8) {}
    let (task, _) = prepare(call, Code::Function(nothing), 0, 8);
    submit(call, task, &Clauses { at_once: true, is_final: false, depends: on });
}

/// `taskgroup` begins.
pub fn begin_group(call: Call) {
    let group = allocate(call, size_of::<Group>()).cast::<Group>();
    let task = member().task();
    let begun = task.begun_group.get();
    // SAFETY: a fresh block, all zero.
    unsafe {
        (*group).previous = begun;
        (*group).around = if begun.is_null() { task.group } else { begun };
    }
    task.begun_group.set(group);
}

/// `taskgroup` ends.
pub fn end_group(call: Call) {
    let me = member();
    let task = me.task();
    // SAFETY: the group that the task has begun.
    let Some(group) = (unsafe { task.begun_group.get().as_ref() }) else { return };
    if let Some(team) = me.team() {
        execute_until(call, team, |task| is_inside(task.group, group), || group.unfinished.get() == 0);
        let here = call.enter();
        for _ in 0..team.lock.with(|| group.untaken.take()) {
            here.does(Op::SemaphoreWait, name(&group.joined), 0, &[]);
        }
    }
    task.begun_group.set(group.previous);
    // SAFETY: all of its tasks are executed.
    unsafe { release((&raw const *group).cast_mut().cast()) };
}

/// Whether a task's group is this one or was begun inside it.
fn is_inside(mut group: *const Group, around: &Group) -> bool {
    // SAFETY: groups outlive those begun inside them.
    while let Some(inner) = unsafe { group.as_ref() } {
        if core::ptr::eq(inner, around) {
            return true;
        }
        group = inner.around;
    }
    false
}
