//! Process snapshots that debuggers go back to: copies of a replay's process, which stand at hand-overs of the turn while the
//! execution goes on. See [`rashomon_abi::debugged`] for what debuggers ask and find, and [`snapshot`] for how threads survive.
//!
//! The initial thread forks the copy, whoever gives the turn away, so that it is the first thread in all executions. The copy
//! blocks all signals and waits for one. Then it forks an execution, makes its threads and goes on, with the session's header as
//! it was. There may be several executions from one copy, one after the other: the debugger ends the earlier ones first.
//!
//! Copies are made as processor time goes by. When there are too many, every second one is ended, and they are made half as
//! often. So their number stays small, and what lies between two of them is a fixed share of the whole time.

use crate::serial::debugged::at;
use crate::serial::{preconditions, sched, snapshot};
use crate::system::sys::{self, syscall};
use crate::system::thread::Thread;
use crate::system::{header, signals};
use core::sync::atomic::{AtomicI64, AtomicU64, Ordering::*};
use rashomon_abi::debugged::{SNAPSHOTS, WAKE, word};
use rashomon_abi::exploration::snapshot::refusal;
use rashomon_abi::header::field;

/// Processor time of the process when the next snapshot is due.
static DUE: AtomicU64 = AtomicU64::new(u64::MAX);
/// What came of the last fork: a process, or an error below 0. 0: nothing yet.
static FORKED: AtomicI64 = AtomicI64::new(0);

/// Words of the header's page.
const HEADER_WORDS: usize = 512;
const SECOND: u64 = 1_000_000_000;
/// No execution waits longer for a debugger to be attached.
const ATTACHED_WITHIN: u64 = 30 * SECOND;
const PAUSE: u64 = 1_000_000;
const SIGKILL: usize = 9;
/// The child announces its end by no signal, and a debugger of the parent does not follow it.
const CLONE_UNTRACED: usize = 0x0080_0000;

const CLONE: usize = 56;
const WAIT4: usize = 61;
const RT_SIGTIMEDWAIT: usize = 128;
const PRCTL: usize = 157;
const WNOHANG: usize = 1;
/// Waiting for children that announce their end by no signal.
const WALL: usize = 0x4000_0000;

/// The turns begin. The debugger has said whether it wants snapshots.
pub fn begin() {
    let every = at(word::EVERY).load(Relaxed);
    if every != 0 {
        // SAFETY: at the start of the program.
        unsafe { preconditions::begin() };
        DUE.store(processor_time().saturating_add(every), Relaxed);
    }
}

fn processor_time() -> u64 {
    const PROCESS: usize = 2;
    let mut time = [0u64; 2];
    // SAFETY: two words.
    unsafe { syscall!(sys::CLOCK_GETTIME, PROCESS, time.as_mut_ptr()) };
    time[0].saturating_mul(SECOND).saturating_add(time[1])
}

/// The turn is given away: the place for a snapshot, if one is due. Under the scheduler's lock, with no holder of the turn.
pub fn handed_over() {
    let every = at(word::EVERY).load(Relaxed);
    if every == 0 || at(word::WANTED).load(Relaxed) == 0 && processor_time() < DUE.load(Relaxed) {
        return;
    }
    let turn = at(word::TURN).load(Relaxed);
    let wanted = at(word::WANTED).swap(0, Relaxed);
    // SAFETY: under the lock.
    let copy = snapshot::leave_copy(unsafe { sched::live() }.as_slice());
    at(word::REFUSED).store(copy.err().unwrap_or(0), Relaxed);
    match copy {
        // An execution that goes on from there.
        Ok(0) => {}
        Ok(process) => keep(turn, process),
        Err(_) => at(word::WANTED).store(wanted, Relaxed),
    }
    DUE.store(processor_time().saturating_add(at(word::EVERY).load(Relaxed)), Relaxed);
}

fn keep(turn: u64, process: u32) {
    let of = |place: usize| (at(word::SNAPSHOT + 2 * place), at(word::SNAPSHOT + 2 * place + 1));
    let set = |place: usize, (turn, process): (u64, u64)| {
        of(place).0.store(turn, Relaxed);
        of(place).1.store(process, Relaxed);
    };
    let is_free = |place: &usize| of(*place).1.load(Relaxed) == 0;
    let free = (0..SNAPSHOTS).find(is_free).unwrap_or_else(|| {
        for place in 0..SNAPSHOTS {
            let kept = (of(place).0.load(Relaxed), of(place).1.load(Relaxed));
            set(place, (0, 0));
            if place % 2 == 0 {
                end(kept.1);
            } else {
                set(place / 2, kept);
            }
        }
        at(word::EVERY).store(at(word::EVERY).load(Relaxed).saturating_mul(2), Relaxed);
        SNAPSHOTS / 2
    });
    set(free, (turn, u64::from(process)));
}

/// Ends a copy. That it is no child of an execution from another one makes no difference.
fn end(copy: u64) {
    // SAFETY: copies end here or with the debugger only, so that the number is still the copy's.
    unsafe {
        syscall!(sys::KILL, copy, SIGKILL);
        sys::call(WAIT4, copy as usize, 0, WALL, 0, 0, 0);
    }
}

/// Whether this process may have made copies: children that are none of the program's.
pub fn may_have_copies() -> bool {
    at(word::EVERY).load(Relaxed) != 0
}

/// The next fork is to be told apart from the last.
pub fn is_to_fork() {
    FORKED.store(0, Relaxed);
}

/// Until the initial thread has forked.
pub fn await_fork() {
    while FORKED.load(Acquire) == 0 {
        sys::sleep(PAUSE / 100);
    }
}

/// What came of it.
pub fn process() -> Result<u32, u64> {
    u32::try_from(FORKED.load(Acquire)).map_err(|_| refusal::UNSUPPORTED)
}

/// By the initial thread, where it stands. Returns in the process that goes on, and in each execution from the copy.
pub fn fork(thread: &Thread) {
    let mask = signals::set_mask(u64::MAX);
    // SAFETY: the child goes on from here on its copy of this stack.
    let child = unsafe { syscall!(CLONE, CLONE_UNTRACED, 0, 0) };
    if child == 0 {
        return stand(thread);
    }
    signals::set_mask(mask);
    FORKED.store(child as i64, Release);
}

/// The copy: an execution whenever it is woken. It ends when the debugger is gone.
fn stand(thread: &Thread) {
    // SAFETY: the page holds so many words, and is never unmapped.
    let page = unsafe { core::slice::from_raw_parts(header::page(), HEADER_WORDS) };
    let mut said = [0u64; HEADER_WORDS];
    for (word, said) in page.iter().zip(&mut said) {
        *said = word.load(Relaxed);
    }
    let debugger = at(word::DEBUGGER).load(Relaxed);
    let id = sys::process_id();
    loop {
        let (set, time) = (1u64 << (WAKE - 1), [1u64, 0]);
        // SAFETY: a set of eight bytes and a time of two words.
        let woken = unsafe { syscall!(RT_SIGTIMEDWAIT, &raw const set, 0usize, time.as_ptr(), 8) } == WAKE as isize;
        // SAFETY: executions that have ended; nothing is written.
        while unsafe { sys::call(WAIT4, usize::MAX, 0, WNOHANG | WALL, 0, 0, 0) } > 0 {}
        // SAFETY: the child goes on from here on its copy of this stack.
        if woken && unsafe { syscall!(CLONE, CLONE_UNTRACED, 0, 0) } == 0 {
            break;
        }
        // SAFETY: asks whether there is such a process.
        if unsafe { syscall!(sys::KILL, debugger, 0) } == -sys::ESRCH {
            sys::exit_group(0);
        }
    }
    await_debugger(id);
    for (word, said) in page.iter().zip(said) {
        word.store(said, Relaxed);
    }
    header::set(field::PROCESS_ID, sys::process_id() as u64);
    preconditions::open_files_again();
    snapshot::make_others(thread);
    snapshot::is_initial(thread);
}

/// In a new execution: until a debugger is attached, and says so.
fn await_debugger(parent: u32) {
    const SET_DEATH_SIGNAL: usize = 1;
    const SET_PTRACER: usize = 0x5961_6d61;
    // SAFETY: plain system calls. Where only ancestors may be a process's debugger, any may be this one's.
    unsafe {
        syscall!(PRCTL, SET_DEATH_SIGNAL, SIGKILL);
        syscall!(PRCTL, SET_PTRACER, usize::MAX);
    }
    for _ in 0..ATTACHED_WITHIN / PAUSE {
        if at(word::GO).swap(0, Acquire) != 0 {
            return;
        }
        if sys::parent_process_id() != parent {
            break;
        }
        sys::sleep(PAUSE);
    }
    sys::exit_group(125);
}
