//! Calls into the kernel that may block there: the thread gives its turn up meanwhile.

use crate::record::recorder;
use crate::serial::gate;
use crate::serial::sched::{CURRENT, LEAVING, LOCK, PROGRESS, come_back, dispatch, live_count};
use crate::system::thread::{NO_THREAD, Runtime, State, Thread};
use crate::system::{config, signals};
use core::sync::atomic::Ordering::*;

/// Values of [`Thread::evicted`]: why a live thread runs, or sleeps in the kernel, without the turn.
pub const EVICTED: u32 = 1;
pub const LET_GO: u32 = 2;

/// A call that may block in the kernel where nothing can be asked beforehand: the thread gives its turn up meanwhile. Signal
/// handlers run at once while it lasts, and it may be left by cancellation: whatever code of the program runs next asks for the
/// turn first.
pub fn external<R>(runtime: &Runtime, call: impl FnOnce() -> R) -> R {
    let thread = runtime.thread();
    if thread.pending_signals.load(Relaxed) != 0 {
        signals::deliver_inside(runtime);
    }
    if config::gating() {
        gate::blocks(thread);
    }
    if !config::serial() || live_count() <= 1 {
        return runtime.outside(call);
    }
    come_back(thread);
    leave(thread);
    thread.in_call.store(1, Release);
    let result = runtime.outside(call);
    thread.in_call.store(0, Release);
    come_back(thread);
    result
}

/// Gives the turn up without waiting for it.
fn leave(thread: &Thread) {
    PROGRESS.fetch_add(1, Relaxed);
    recorder::waits(thread);
    LOCK.lock();
    thread.state.set(State::External);
    thread.turn_ended.set(false);
    thread.evicted.store(LET_GO, Release);
    LEAVING.store(thread.number.get() + 1, Release);
    thread.force_slow_path();
    CURRENT.store(NO_THREAD, Release);
    dispatch(true);
    LOCK.unlock();
}

/// Runs what a signal handler needs around it with the turn, also where the handler interrupted a call into the kernel: a turn
/// that [`external`] had given up is given up again afterwards.
pub fn with_turn<R>(runtime: &Runtime, body: impl FnOnce() -> R) -> R {
    if !config::serial() {
        return body();
    }
    let thread = runtime.thread();
    let (reason, in_call) = (thread.evicted.load(Acquire), thread.in_call.load(Relaxed));
    come_back(thread);
    let result = body();
    if reason == LET_GO && thread.evicted.load(Acquire) == 0 && live_count() > 1 {
        leave(thread);
        thread.in_call.store(in_call, Release);
    }
    result
}
