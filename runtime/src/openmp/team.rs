//! Teams: who is in which, how a parallel region begins and ends, and its barrier.

use super::data::{allocate, release, unrecorded};
use super::settings;
use super::shares::{Loop, Share};
use super::tasks::{self, Queue, Task};
use super::{Call, Here};
use crate::intercept::hooks::{__tsan_func_entry, __tsan_func_exit};
use crate::intercept::threads;
use crate::serial::sched::WaitFor;
use crate::system::lock::RawLock;
use crate::system::real::real;
use crate::system::sys;
use crate::system::thread::Runtime;
use crate::system::tls::hot;
use core::cell::Cell;
use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering::*};
use rashomon_abi::record::Op;

/// What the threads of a team execute.
#[derive(Clone, Copy)]
pub enum Body {
    /// gcc's: a function of one argument.
    Function(unsafe extern "C" fn(*mut u8), *mut u8),
    /// clang's: a function of two pointers to thread numbers and of further arguments.
    Microtask(super::kmpc::Microtask, usize, *const usize),
}

/// A thread of the operating system, for OpenMP.
pub struct Local {
    /// Its place in the innermost team that it is in.
    pub member: Cell<*const Member>,
    /// Outside of every region.
    initial: Member,
    /// Workers that this thread made, first to last: the others of each of its teams.
    workers: super::data::Vector<*mut Worker>,
    /// How many of these are in teams that it is in.
    hired: Cell<usize>,
    /// Counted over all threads.
    pub number: u32,
    /// Threads that clang's next region is to have; 0: not said.
    pub wanted: Cell<u32>,
}

/// A thread of ours.
struct Worker {
    local: Local,
    /// What its waiting to be given work is named by.
    start: u64,
    /// Changes when there is something for it.
    word: AtomicU32,
    work: AtomicPtr<Member>,
    leave: AtomicBool,
}

/// A place in a team.
pub struct Member {
    /// Null outside of every region.
    team: *const Team,
    pub number: u32,
    /// What it executes: the implicit task, or an explicit one.
    pub task: Cell<*const Task>,
    pub implicit: Task,
    /// Work sharing constructs that it has come to.
    pub shares: Cell<u64>,
    pub share: Cell<*mut Share>,
    /// The doacross loop that it is in, besides.
    pub doacross: Cell<*mut Share>,
    /// Its present chunk of a loop, and how many it has had of a static one.
    pub chunk: Cell<(u64, u64)>,
    pub trips: Cell<u64>,
    /// How often it let others take a task that it had created.
    pub yields: Cell<u32>,
    /// Another thread has taken a task of its own since it executed one itself.
    pub handed: Cell<bool>,
    /// It has the turn of the ordered construct for its chunk.
    pub has_turn: Cell<bool>,
}

/// One that executes a parallel region.
pub struct Team {
    pub size: u32,
    pub level: u32,
    pub active_level: u32,
    /// The place, in the team around, of the thread that made it.
    pub parent: *const Member,
    members: *mut Member,
    body: Option<Body>,
    call: Call,
    pub lock: RawLock,
    /// Changes whenever somebody who waits has to look again.
    pub word: AtomicU32,
    /// Names of objects.
    end: u64,
    barrier: [u64; 2],
    generation: Cell<u64>,
    /// Threads that are at the barrier; of these, those that entered it.
    arrived: Cell<u32>,
    entered: Cell<u32>,
    /// Workers that are done with the region.
    done: Cell<u32>,
    pub queue: Queue,
    pub shares: Cell<*mut Share>,
    /// What `single` hands to all.
    pub copied: Cell<*mut u8>,
}

static NUMBERS: AtomicU32 = AtomicU32::new(0);

/// The calling thread's.
pub fn local() -> &'static Local {
    let block = hot();
    if block.openmp.get().is_null() {
        // What libc is called for here is not the program's.
        let _runtime = Runtime::try_enter();
        // SAFETY: a record of its own, which nobody knows yet.
        unsafe {
            let local = unrecorded::<Local>();
            begin(local);
            threads::BEFORE_END.set(&(ended as fn()));
            block.openmp.set(local.cast());
        }
    }
    // SAFETY: the calling thread's own record, which is never freed while the thread runs.
    unsafe { &*block.openmp.get().cast::<Local>() }
}

/// # Safety
/// Zeroed memory, known to nobody else.
unsafe fn begin(local: *mut Local) {
    // SAFETY: by the contract; all zero is valid for what is not written.
    unsafe {
        (*local).number = NUMBERS.fetch_add(1, Relaxed);
        let local = &*local;
        local.initial.implicit.settings.set(settings::initial());
        local.initial.task.set(&local.initial.implicit);
        local.member.set(&local.initial);
    }
}

pub fn member() -> &'static Member {
    // SAFETY: set by `begin`, and to places that outlive the thread's stay in them.
    unsafe { &*local().member.get() }
}

impl Member {
    /// `None` outside of every region.
    pub fn team(&self) -> Option<&'static Team> {
        // SAFETY: a team outlives the stay of its members.
        unsafe { self.team.as_ref() }
    }

    pub fn task(&self) -> &'static Task {
        // SAFETY: a task that is being executed is there.
        unsafe { &*self.task.get() }
    }

    pub fn size(&self) -> u32 {
        self.team().map_or(1, |team| team.size)
    }
}

/// How many threads a region gets, `wanted` by its clause (0: none).
fn size_for(me: &Member, wanted: u32) -> u32 {
    let settings = me.task().settings.get();
    let active = me.team().map_or(0, |team| team.active_level);
    if active >= settings.max_active_levels {
        return 1;
    }
    let size = if wanted == 0 { settings.threads } else { wanted };
    size.clamp(1, settings::thread_limit())
}

/// A team of this size, whose first member is the calling thread from now on. `first` is a loop, or sections, that its region
/// begins with.
fn form(call: Call, size: u32, body: Option<Body>, first: Option<Loop>) -> &'static Team {
    let me = member();
    let block = allocate(call, size_of::<Team>() + size as usize * size_of::<Member>());
    // SAFETY: a block of that size, all zero, which is valid for what is not written here; known to nobody else.
    let team = unsafe {
        let team = block.cast::<Team>();
        (*team).size = size;
        (*team).members = block.add(size_of::<Team>()).cast();
        (*team).parent = me;
        (*team).level = me.team().map_or(0, |team| team.level) + 1;
        (*team).active_level = me.team().map_or(0, |team| team.active_level) + u32::from(size > 1);
        (*team).body = body;
        (*team).call = call;
        let share = first.map_or(core::ptr::null_mut(), |first| Share::new(call, first, 0, size));
        (*team).shares.set(share);
        let settings = me.task().settings.get().for_level((*team).level);
        for number in 0..size {
            let member = (*team).members.add(number as usize);
            (*member).team = team;
            (*member).number = number;
            (*member).implicit.begin_implicit(me.task(), settings);
            (*member).task.set(&(*member).implicit);
            (*member).share.set(share);
            (*member).shares.set(u64::from(!share.is_null()));
        }
        &*team
    };
    local().member.set(team.members);
    team
}

/// The calling thread is where it was before; nobody else is in the team.
fn dissolve(team: &'static Team) {
    local().member.set(team.parent);
    let mut share = team.shares.get();
    while !share.is_null() {
        // SAFETY: constructs that some thread never came to are left.
        unsafe {
            let next = (*share).next;
            Share::free(share);
            share = next;
        }
    }
    // SAFETY: all have left it.
    unsafe { release((&raw const *team).cast_mut().cast()) };
}

/// Executes a parallel region.
pub fn parallel(call: Call, body: Body, wanted: u32, first: Option<Loop>) {
    let size = size_for(member(), wanted);
    let team = form(call, size, Some(body), first);
    hire(local(), team, call);
    execute(team, 0);
    finish(call, team, member());
    let here = call.enter();
    let end = end_of(team);
    for taken in 1..size {
        here.point(Op::SemaphoreWait, end);
        here.wait(WaitFor::Semaphore, end, &team.word, || team.lock.with(|| team.done.get() >= taken));
        here.sync(Op::SemaphoreWait, end, 0, &[]);
    }
    // The last one to be done may still hold the lock.
    team.lock.with(|| ());
    drop(here);
    local().hired.set(local().hired.get() + 1 - size as usize);
    dissolve(team);
}

/// A region that the calling thread executes alone, without a function for its body.
pub fn begin_serial(call: Call) {
    form(call, 1, None, None);
}

pub fn end_serial(call: Call) {
    let me = member();
    if let Some(team) = me.team() {
        finish(call, team, me);
        dissolve(team);
    }
}

/// Gives each place but the first to a worker.
fn hire(local: &Local, team: &Team, call: Call) {
    let before = local.hired.get();
    local.hired.set(before + team.size as usize - 1);
    for number in 1..team.size {
        // SAFETY: one of the team's places.
        let work = unsafe { team.members.add(number as usize) };
        if let Some(&worker) = local.workers.as_slice().get(before + number as usize - 1) {
            // SAFETY: workers stay as long as who made them.
            let worker = unsafe { &*worker };
            let here = call.enter();
            here.does(Op::SemaphorePost, start_of(worker), 0, &[]);
            worker.work.store(work, Release);
            worker.word.fetch_add(1, Release);
            here.wake(WaitFor::Semaphore, start_of(worker), &raw const worker.word);
        } else {
            let new = allocate(call, size_of::<Worker>()).cast::<Worker>();
            local.workers.push(new);
            // SAFETY: a fresh block, all zero, which is a valid worker.
            let worker = unsafe {
                let _runtime = Runtime::try_enter();
                begin(&raw mut (*new).local);
                &*new
            };
            worker.work.store(work, Release);
            let here = call.enter();
            here.does(Op::SemaphorePost, start_of(worker), 0, &[]);
            drop(here);
            make_thread(call, new);
        }
    }
}

fn start_of(worker: &Worker) -> u64 {
    &raw const worker.start as u64
}

fn end_of(team: &Team) -> u64 {
    &raw const team.end as u64
}

fn make_thread(call: Call, worker: *mut Worker) {
    const DETACHED: c_int = 1;
    let (mut attributes, mut handle) = ([0u64; 8], 0u64);
    let error = call.passing(|| {
        // SAFETY: an object of libc's size, and what is to be executed.
        unsafe {
            real!(fn pthread_attr_init(*mut u64) -> c_int)(attributes.as_mut_ptr());
            real!(fn pthread_attr_setdetachstate(*mut u64, c_int) -> c_int)(attributes.as_mut_ptr(), DETACHED);
            if let Some(bytes) = settings::stack_size() {
                real!(fn pthread_attr_setstacksize(*mut u64, usize) -> c_int)(attributes.as_mut_ptr(), bytes);
            }
            call.passing(|| threads::create(&mut handle, attributes.as_ptr().cast(), work, worker.cast()))
        }
    });
    if error != 0 {
        sys::die(&[b"no thread for an OpenMP team, errno ", sys::Decimal::new(error as u64).bytes()]);
    }
}

/// A worker's life.
unsafe extern "C" fn work(argument: *mut u8) -> *mut u8 {
    // SAFETY: the worker's own record and block.
    let worker = unsafe {
        let worker = &*argument.cast::<Worker>();
        hot().openmp.set((&raw const worker.local).cast_mut().cast());
        worker
    };
    let mut call = Call::NOWHERE;
    loop {
        let start = start_of(worker);
        let here = call.enter();
        here.point(Op::SemaphoreWait, start);
        here.wait(WaitFor::Semaphore, start, &worker.word, || !worker.work.load(Acquire).is_null() || worker.leave.load(Acquire));
        let member = worker.work.swap(core::ptr::null_mut(), AcqRel);
        // SAFETY: a place in a team that waits for this worker.
        let Some(member) = (unsafe { member.as_ref() }) else { return core::ptr::null_mut() };
        here.sync(Op::SemaphoreWait, start, 0, &[]);
        drop(here);
        let Some(team) = member.team() else { return core::ptr::null_mut() };
        call = team.call;
        worker.local.member.set(member);
        execute(team, member.number);
        finish(call, team, member);
        worker.local.member.set(&worker.local.initial);
        leave(call, team);
    }
}

/// The last that a worker has to do with a team.
fn leave(call: Call, team: &Team) {
    let here = call.enter();
    let (end, word) = (end_of(team), &raw const team.word);
    here.does(Op::SemaphorePost, end, 0, &[]);
    team.lock.lock();
    team.done.set(team.done.get() + 1);
    team.word.fetch_add(1, Release);
    // From here on it may be gone.
    team.lock.unlock();
    here.wake(WaitFor::Semaphore, end, word);
}

fn execute(team: &Team, number: u32) {
    match team.body {
        // SAFETY: the program's own function and arguments, here and below.
        Some(Body::Function(function, data)) => unsafe { run(team.call, || function(data)) },
        Some(Body::Microtask(function, count, arguments)) => {
            let global = local().number;
            // SAFETY: as above.
            unsafe { run(team.call, || super::kmpc::call_microtask(function, &global, &number, count, arguments)) };
        }
        None => {}
    }
}

/// Calls code of the program, for which `call` stands in the call stack.
///
/// # Safety
/// As the code.
pub unsafe fn run(call: Call, code: impl FnOnce()) {
    // SAFETY: they keep the calling thread's call stack, and come in pairs.
    unsafe { __tsan_func_entry(call.site as *const u8) };
    code();
    // SAFETY: as above.
    unsafe { __tsan_func_exit() };
}

/// The end of the region for one thread: all tasks are executed.
fn finish(call: Call, team: &Team, me: &Member) {
    gather(call, team);
    tasks::end_implicit(call, team, &me.implicit);
}

/// Waits until all threads of the team are here, and executes tasks until there are none.
fn gather(call: Call, team: &Team) {
    let all = (team.generation.get() as u32).wrapping_add(1).wrapping_mul(team.size);
    {
        let here = call.enter();
        let arrived = team.lock.with(|| {
            team.arrived.set(team.arrived.get().wrapping_add(1));
            team.arrived.get()
        });
        if arrived == all {
            tasks::tell(&here, team);
        }
    }
    tasks::execute_until(call, team, |_| true, || team.arrived.get() == all && team.queue.outstanding() == 0);
}

/// The barrier of the team that the calling thread is in.
pub fn barrier(call: Call) {
    let Some(team) = member().team() else { return };
    gather(call, team);
    let generation = team.generation.get();
    if team.size == 1 {
        team.generation.set(generation + 1);
        return;
    }
    let object = &raw const team.barrier as u64;
    let here: Here = call.enter();
    here.does(Op::BarrierEnter, object, 0, &[generation, u64::from(team.size)]);
    let is_last = team.lock.with(|| {
        let entered = team.entered.get() + 1;
        team.entered.set(entered % team.size);
        if entered == team.size {
            team.generation.set(generation + 1);
            team.word.fetch_add(1, Release);
        }
        entered == team.size
    });
    here.position(Op::BarrierExit, object);
    if is_last {
        here.wake(WaitFor::Barrier, object, &raw const team.word);
    } else {
        here.wait(WaitFor::Barrier, object, &team.word, || team.lock.with(|| team.generation.get() != generation));
    }
    here.sync(Op::BarrierExit, object, 0, &[generation]);
}

/// A thread of the operating system ends, and its workers with it. Inside the runtime.
pub fn ended() {
    // SAFETY: the calling thread's block and record.
    unsafe {
        let local = hot().openmp.get().cast::<Local>();
        if local.is_null() {
            return;
        }
        for &worker in (*local).workers.as_slice() {
            (*worker).leave.store(true, Release);
            (*worker).word.fetch_add(1, Release);
            crate::serial::sched::wake(WaitFor::Semaphore, start_of(&*worker), usize::MAX);
            sys::futex_wake(&(*worker).word, i32::MAX as u32);
        }
        (*local).workers.free();
    }
}

/// See [`super::forget`].
pub fn forget() {
    // SAFETY: the only thread of a child, and its own block.
    unsafe {
        let local = hot().openmp.get().cast::<Local>();
        if !local.is_null() {
            (*local).workers.free();
        }
    }
}
