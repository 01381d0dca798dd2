//! Waiting, with the turn, for threads that are on their way without it.

use crate::serial::sched::LET_GO;
use crate::serial::{clock, watchdog};
use crate::system::sys;
use crate::system::thread::{State, Thread};
use core::sync::atomic::Ordering::*;

/// Waits until a thread that gave its turn up for a call into the kernel waits there or has come back. For the holder of the
/// turn.
pub fn settles(thread: &Thread) {
    until_timeout(|| {
        thread.evicted.load(Acquire) != LET_GO
            || thread.ended.load(Acquire) != 0
            || thread.in_call.load(Acquire) != 0 && watchdog::sleeps(thread.kernel_id.get())
    });
}

/// Waits until a thread that a signal has just reached waits for its turn. For the holder of the turn.
pub fn stands_in_line(thread: &Thread) {
    settles(thread);
    until_timeout(|| thread.state.get() != State::Blocked);
}

/// Until `done`, but not for ever: a debugger may hold the thread that is waited for, or the kernel be busy with its call.
pub fn until_timeout(done: impl Fn() -> bool) {
    const TIMEOUT_NS: u64 = 1_000_000_000;
    let until = sys::clock(clock::MONOTONIC as usize) + TIMEOUT_NS;
    while !done() && sys::clock(clock::MONOTONIC as usize) < until {
        // SAFETY: no arguments.
        unsafe { sys::syscall!(sys::SCHED_YIELD) };
    }
}
