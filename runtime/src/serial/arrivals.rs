//! Signals in serial mode: when one is sent to another thread, and which arrivals are for the time behind a schedule.

use crate::serial::{replay, sched};
use crate::system::signals::{self, SIGNALS, SignalInfo, bit, is_synchronous};
use crate::system::sys::{self, syscall};
use crate::system::thread::{State, Thread, all};
use core::ffi::c_int;
use core::sync::atomic::Ordering::*;

/// Sends a signal to another thread of this process and waits until it is there, so that how the execution goes on
/// does not depend on when the kernel gets round to it. Not if the thread blocks the signal, or nobody handles it.
pub fn send_and_await(thread: &Thread, signal: c_int, send: impl FnOnce() -> c_int) -> c_int {
    let arrived = &thread.arrived_signals;
    sched::settles(thread);
    let before = arrived.count.load(Acquire);
    let handled = (1..SIGNALS as c_int).contains(&signal) && signals::is_handled(signal);
    let alone = handled && arrived.set.load(Acquire) & bit(signal) == 0;
    if handled {
        arrived.expected.fetch_and(!bit(signal), Relaxed);
    }
    // Asked before it is sent: while the kernel begins a handler, the thread blocks what it is about to tell of.
    let blocked = handled && sys::blocks_signals(thread.kernel_id.get(), bit(signal));
    let result = send();
    if !handled || result != 0 {
        return result;
    }
    if !thread.has_block() && thread.ended.load(Acquire) == 0 {
        // It blocks all until it begins, and takes what was sent before anything else.
        arrived.expected.fetch_or(bit(signal), Relaxed);
        return result;
    }
    let is_there = || arrived.count.load(Acquire) != before;
    sched::until_timeout(|| blocked || is_there() || thread.ended.load(Acquire) != 0);
    if is_there() {
        sched::stands_in_line(thread);
        if alone && arrived.count.load(Acquire) == before + 1 {
            arrived.expected.fetch_or(bit(signal), Relaxed);
        }
    }
    result
}

/// Signals from outside that arrive while a schedule is in force are for the time behind it: it ends where the first of them
/// arrived when it was recorded.
pub fn is_held(thread: &Thread, signal: c_int, information: *mut SignalInfo) -> bool {
    // SAFETY: the kernel's information.
    if is_synchronous(signal) || !replay::active() || unsafe { (*information).is_own() } {
        return false;
    }
    let arrived = &thread.arrived_signals;
    // SAFETY: the kernel's information.
    arrived.information[signal as usize].set(unsafe { *information });
    arrived.held.fetch_or(bit(signal), AcqRel);
    // The schedule may have ended in between.
    replay::active() || arrived.held.fetch_and(!bit(signal), AcqRel) & bit(signal) == 0
}

/// The schedule is over.
pub fn release_held() {
    for thread in all() {
        let held = thread.arrived_signals.held.swap(0, AcqRel);
        if held == 0 || thread.ended.load(Acquire) != 0 || !thread.has_block() {
            continue;
        }
        if thread.state.get() == State::External {
            // The kernel has to interrupt its call once more.
            for signal in (1..SIGNALS as c_int).filter(|&signal| held & bit(signal) != 0) {
                // SAFETY: a signal to a thread of this process.
                unsafe { syscall!(sys::TGKILL, sys::process_id(), thread.kernel_id.get(), signal) };
            }
            continue;
        }
        thread.arrived_signals.set.fetch_or(held, Release);
        thread.pending_signals.store(1, Release);
        thread.force_slow_path();
        thread.baton.fetch_or(sched::SIGNAL_ARRIVED, Release);
        sys::futex_wake(&thread.baton, 1);
    }
}
