//! What clang calls for tasks: `__kmpc_omp_task*` and kin.

use super::data::Vector;
use super::kmpc::inclusive;
use super::tasks::{self, ALL_MEMORY, Clauses, Code, Item, Pieces, Task, Use};
use super::team::{self, local, member};
use super::{Call, openmp};
use core::cell::Cell;
use rashomon_abi::record::Op;

/// A task's code, or what destroys its variables: called with the thread's number and the task.
pub type Entry = unsafe extern "C" fn(i32, *mut u8) -> i32;

/// The beginning of what compiled code calls a task.
#[repr(C)]
struct Compiled {
    shared: *mut u8,
    entry: Entry,
    part: i32,
    /// What destroys the task's variables, if it has such.
    destroy: Option<Entry>,
    data: usize,
}

/// Lies right before it.
#[repr(C, align(16))]
struct Front {
    task: *mut Task,
    is_final: bool,
    /// Its variables are to be destroyed when it has been executed.
    destroys: bool,
    /// An untied task asked, while it was executed, to be executed again: its code goes on with the next part.
    again: Cell<bool>,
    bytes: usize,
    shared_bytes: usize,
}

unsafe fn front(compiled: *mut u8) -> *mut Front {
    // SAFETY: `make_task` puts it there.
    unsafe { compiled.cast::<Front>().sub(1) }
}

const FINAL: u32 = 2;
const DESTROYS: u32 = 8;

/// Executes a task, all parts of an untied one.
///
/// # Safety
/// Made by [`make_task`], and not executed yet.
pub unsafe fn execute(entry: Entry, compiled: *mut u8) {
    // SAFETY: by the contract; the entry is the task's own.
    unsafe {
        entry(local().number as i32, compiled);
        finish(compiled);
    }
}

/// What is left to do of a task whose code has returned for the first time.
unsafe fn finish(compiled: *mut u8) {
    let number = local().number as i32;
    // SAFETY: by the callers, a task that `make_task` made and that is executed by this thread.
    unsafe {
        let (front, task) = (&*front(compiled), compiled.cast::<Compiled>());
        while front.again.take() {
            ((*task).entry)(number, compiled);
        }
        if let Some(destroy) = (*task).destroy.filter(|_| front.destroys) {
            destroy(number, compiled);
        }
    }
}

unsafe fn make_task(call: Call, flags: u32, bytes: usize, shared_bytes: usize, entry: Entry) -> *mut u8 {
    let bytes = bytes.max(size_of::<Compiled>()).next_multiple_of(16);
    let (task, place) = tasks::prepare(call, Code::Entry(entry), size_of::<Front>() + bytes + shared_bytes, 16);
    // SAFETY: the place has room for what is in front, the compiler's record and what is shared.
    unsafe {
        let compiled = place.add(size_of::<Front>());
        (*task).set_data(compiled);
        front(compiled).write(Front {
            task,
            is_final: flags & FINAL != 0,
            destroys: flags & DESTROYS != 0,
            again: Cell::new(false),
            bytes,
            shared_bytes,
        });
        (*compiled.cast::<Compiled>()).shared = if shared_bytes > 0 { compiled.add(bytes) } else { core::ptr::null_mut() };
        (*compiled.cast::<Compiled>()).entry = entry;
        compiled
    }
}

unsafe extern "C" fn task_alloc(
    _location: usize,
    _thread: i32,
    flags: u32,
    bytes: usize,
    shared_bytes: usize,
    entry: Entry,
) -> *mut u8 {
    // SAFETY: the compiler passes its own sizes and entry.
    unsafe { make_task(Call::current(), flags, bytes, shared_bytes, entry) }
}

/// As compiled code describes a dependence.
#[repr(C)]
struct Dependence {
    address: u64,
    bytes: usize,
    flags: u8,
}

unsafe fn dependences(first: (i32, *const Dependence), second: (i32, *const Dependence)) -> Vector<Item> {
    /// How an item is used: a variable that is written, one that is written by one task at a time, one of `inoutset`;
    /// `omp_all_memory`.
    const OUT: u8 = 2;
    const EXCLUSIVE: u8 = 4;
    const SET: u8 = 8;
    const ALL: u8 = 0x80;
    let all = Vector::new();
    for (count, list) in [first, second] {
        for at in 0..count.max(0) as usize {
            // SAFETY: the compiler passes so many of them.
            let one = unsafe { &*list.add(at) };
            let uses = if one.flags & (OUT | EXCLUSIVE | ALL) != 0 {
                Use::Writes
            } else if one.flags & SET != 0 {
                Use::Joins
            } else {
                Use::Reads
            };
            all.push(Item { address: if one.flags & ALL != 0 { ALL_MEMORY } else { one.address }, uses });
        }
    }
    all
}

unsafe fn submit(call: Call, compiled: *mut u8, depends: &[Item], at_once: bool) {
    // SAFETY: by the callers, a task that `make_task` made.
    unsafe {
        let front = front(compiled);
        tasks::submit(call, (*front).task, &Clauses { at_once, is_final: (*front).is_final, depends });
    }
}

unsafe extern "C" fn task(_location: usize, _thread: i32, compiled: *mut u8) -> i32 {
    // SAFETY: the compiler passes what `make_task` returned.
    unsafe {
        let front = &*front(compiled);
        if core::ptr::eq(front.task, member().task()) {
            // An untied task at a scheduling point: another thread might execute the rest. This one does, when its code has
            // returned.
            front.again.set(true);
        } else {
            submit(Call::current(), compiled, &[], false);
        }
    }
    0
}

unsafe extern "C" fn task_with(
    _location: usize,
    _thread: i32,
    compiled: *mut u8,
    count: i32,
    list: *const Dependence,
    more: i32,
    further: *const Dependence,
) -> i32 {
    let call = Call::current();
    // SAFETY: the same, with lists of dependences of these lengths.
    unsafe {
        let on = dependences((count, list), (more, further));
        submit(call, compiled, on.as_slice(), false);
        on.free();
    }
    0
}

unsafe extern "C" fn wait_for(
    _location: usize,
    _thread: i32,
    count: i32,
    list: *const Dependence,
    more: i32,
    further: *const Dependence,
) {
    let call = Call::current();
    // SAFETY: the compiler passes lists of dependences of these lengths.
    let on = unsafe { dependences((count, list), (more, further)) };
    tasks::wait_for(call, on.as_slice());
    on.free();
}

unsafe extern "C" fn begin_at_once(_location: usize, _thread: i32, compiled: *mut u8) {
    let call = Call::current();
    // SAFETY: the compiler passes what `make_task` returned, to be executed at once.
    unsafe {
        let front = front(compiled);
        tasks::begin_at_once(call, (*front).task, (*front).is_final);
    }
}

unsafe extern "C" fn end_at_once(_location: usize, _thread: i32, compiled: *mut u8) {
    let call = Call::current();
    // SAFETY: the task that this thread began last.
    unsafe {
        team::run(call, || finish(compiled));
        tasks::end_at_once(call, (*front(compiled)).task);
    }
}

unsafe extern "C" fn taskwait(_location: usize, _thread: i32) -> i32 {
    tasks::wait(Call::current());
    0
}

unsafe extern "C" fn taskyield(_location: usize, _thread: i32, _part: i32) -> i32 {
    Call::current().enter().does(Op::Yield, 0, 0, &[]);
    0
}

unsafe extern "C" fn taskgroup(_location: usize, _thread: i32) {
    tasks::begin_group(Call::current());
}

unsafe extern "C" fn end_taskgroup(_location: usize, _thread: i32) {
    tasks::end_group(Call::current());
}

type Duplicate = unsafe extern "C" fn(*mut u8, *mut u8, i32);

/// Iterations are cut into tasks, copies of one that has the bounds, inclusive, somewhere in it.
#[allow(clippy::too_many_arguments, reason = "the compiler's interface")]
unsafe fn cut(
    call: Call,
    pattern: *mut u8,
    if_value: i32,
    lower: *mut u64,
    upper: *mut u64,
    step: i64,
    no_group: i32,
    schedule: i32,
    size: u64,
    strict: bool,
    duplicate: Option<Duplicate>,
) {
    const GRAIN_SIZE: i32 = 1;
    const COUNT: i32 = 2;
    // SAFETY: the compiler passes a task to copy, and where in it its bounds are.
    unsafe {
        let iterations = inclusive(i128::from(*lower as i64), i128::from(*upper as i64), i128::from(step));
        let pieces = match schedule {
            GRAIN_SIZE => Pieces::of_size(size, strict),
            COUNT => Pieces::Count(size),
            _ => Pieces::Count(u64::from(member().size())),
        };
        let (at_lower, at_upper) = (lower as usize - pattern as usize, upper as usize - pattern as usize);
        if no_group == 0 {
            tasks::begin_group(call);
        }
        let whole = &*front(pattern);
        let compiled = &*pattern.cast::<Compiled>();
        for (from, to) in pieces.of(iterations.total) {
            let flags = if whole.is_final { FINAL } else { 0 } | if whole.destroys { DESTROYS } else { 0 };
            let new = make_task(call, flags, whole.bytes, whole.shared_bytes, compiled.entry);
            let kept = (*new.cast::<Compiled>()).shared;
            core::ptr::copy_nonoverlapping(pattern, new, whole.bytes + whole.shared_bytes);
            (*new.cast::<Compiled>()).shared = kept;
            let value = |at: u64| iterations.start.wrapping_add(at.wrapping_mul(iterations.step));
            new.add(at_lower).cast::<u64>().write(value(from));
            new.add(at_upper).cast::<u64>().write(value(to - 1));
            if let Some(duplicate) = duplicate {
                duplicate(new, pattern, (to == iterations.total) as i32);
            }
            submit(call, new, &[], if_value == 0);
        }
        if no_group == 0 {
            tasks::end_group(call);
        }
        // The variables of the copies are the copies' own; these are its.
        team::run(call, || finish(pattern));
        super::data::release(whole.task.cast());
    }
}

#[allow(clippy::too_many_arguments, reason = "the compiler's interface")]
unsafe extern "C" fn taskloop(
    _location: usize,
    _thread: i32,
    pattern: *mut u8,
    if_value: i32,
    lower: *mut u64,
    upper: *mut u64,
    step: i64,
    no_group: i32,
    schedule: i32,
    size: u64,
    duplicate: Option<Duplicate>,
) {
    // SAFETY: what the compiler passes for a loop of tasks.
    unsafe { cut(Call::current(), pattern, if_value, lower, upper, step, no_group, schedule, size, false, duplicate) };
}

#[allow(clippy::too_many_arguments, reason = "the compiler's interface")]
unsafe extern "C" fn taskloop_5(
    _location: usize,
    _thread: i32,
    pattern: *mut u8,
    if_value: i32,
    lower: *mut u64,
    upper: *mut u64,
    step: i64,
    no_group: i32,
    schedule: i32,
    size: u64,
    strict: i32,
    duplicate: Option<Duplicate>,
) {
    // SAFETY: the same where pieces are to have exactly the size.
    unsafe { cut(Call::current(), pattern, if_value, lower, upper, step, no_group, schedule, size, strict != 0, duplicate) };
}

openmp! { "libomp.so.5";
    __kmpc_omp_task_alloc => task_alloc;
    __kmpc_omp_task => task;
    __kmpc_omp_task_with_deps => task_with;
    __kmpc_omp_wait_deps => wait_for;
    __kmpc_omp_taskwait_deps_51 => wait_for;
    __kmpc_omp_task_begin_if0 => begin_at_once;
    __kmpc_omp_task_complete_if0 => end_at_once;
    __kmpc_omp_taskwait => taskwait;
    __kmpc_omp_taskyield => taskyield;
    __kmpc_taskgroup => taskgroup;
    __kmpc_end_taskgroup => end_taskgroup;
    __kmpc_taskloop => taskloop;
    __kmpc_taskloop_5 => taskloop_5;
}
