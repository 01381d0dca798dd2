//! Virtual time of serial runs. It passes with what threads execute, a little for so many accesses and synchronisation events
//! of a thread, and a tick with each reading of a clock, so that a program which waits by polling gets on; it jumps to the
//! next deadline when nobody can run. None of that depends on who decides what runs next: a re-execution reads what the
//! recorded execution read.
//!
//! Limit: it also jumps when all that can run only poll. A schedule that is enforced lets it jump with the turn of the thread
//! that the deadline wakes, so who polls a clock in between reads less.

use crate::system::thread::Thread;
use crate::system::{config, header, sys};
use core::sync::atomic::{AtomicU64, Ordering::*};
use rashomon_abi::control;
use rashomon_abi::header::field;

pub const REALTIME: i32 = 0;
pub const MONOTONIC: i32 = 1;
/// `CLOCK_MONOTONIC` at the start of every serial run: a constant, so that re-executions read the same.
const MONOTONIC_BASE: u64 = 100_000 * 1_000_000_000;
/// What reading the clock costs. Doubled by each reading that follows without anything else happening, up to the limit.
const TICK: u64 = 1_000;
const LARGEST_TICK: u64 = 10_000_000;
/// What a thread's quantum of accesses takes, or as many synchronisation events as this.
const QUANTUM_TIME: u64 = 100_000;
const QUANTUM_OF_EVENTS: u64 = 10_000;
pub const NEVER: u64 = u64::MAX;

static REALTIME_BASE: AtomicU64 = AtomicU64::new(0);

pub fn initialise() {
    let asked = config::word(control::field::BASE_TIME);
    let base = if asked != 0 && config::serial() { asked } else { sys::clock(REALTIME as usize) };
    REALTIME_BASE.store(base, Relaxed);
    header::set(field::START_TIME, base);
}

/// Virtual nanoseconds since the start.
pub fn elapsed() -> u64 {
    header::word(field::VIRTUAL_TIME).load(Relaxed)
}

fn advance(nanoseconds: u64) {
    header::word(field::VIRTUAL_TIME).fetch_add(nanoseconds, Relaxed);
}

pub fn advance_to(elapsed: u64) {
    header::word(field::VIRTUAL_TIME).fetch_max(elapsed, Relaxed);
}

/// What the calling thread executed since it was asked last takes its time.
pub fn spend(thread: &Thread) {
    let accesses = thread.executed_so_far().checked_div(config::word(control::field::QUANTUM)).unwrap_or(0);
    let quanta = accesses + u64::from(thread.ordinal.get()) / QUANTUM_OF_EVENTS;
    let spent = thread.quanta_spent.get();
    if quanta > spent {
        thread.quanta_spent.set(quanta);
        advance((quanta - spent) * QUANTUM_TIME);
    }
}

fn base(clock: i32) -> u64 {
    match clock {
        // CLOCK_REALTIME, _COARSE, _ALARM, TAI
        0 | 5 | 8 | 11 => REALTIME_BASE.load(Relaxed),
        // CLOCK_PROCESS_CPUTIME_ID, CLOCK_THREAD_CPUTIME_ID and those of other threads
        2 | 3 => 0,
        clock if clock < 0 => 0,
        _ => MONOTONIC_BASE,
    }
}

/// What the clock shows. `polls`: how many times in a row it was read.
pub fn read(clock: i32, polls: u32) -> u64 {
    advance((TICK << polls.min(20)).min(LARGEST_TICK));
    base(clock) + elapsed()
}

/// An absolute time of a clock as elapsed virtual time.
pub fn deadline(clock: i32, absolute: u64) -> u64 {
    absolute.saturating_sub(base(clock))
}
