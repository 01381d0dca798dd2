//! What debuggers see of a replay, and where they stop it: see [`rashomon_abi::debugged`].

use crate::serial::kept;
use crate::serial::replay::{self, AccessAt};
use crate::system::sys;
use crate::system::thread::Thread;
use core::arch::asm;
use core::sync::atomic::{AtomicU64, Ordering::*};
use rashomon_abi::debugged::{THREADS, WORDS, word};

#[unsafe(no_mangle)]
pub static rashomon_debugged: [AtomicU64; WORDS] = {
    let mut words = [const { AtomicU64::new(0) }; WORDS];
    words[word::STOP] = AtomicU64::new(u64::MAX);
    words
};

pub fn at(word: usize) -> &'static AtomicU64 {
    &rashomon_debugged[word]
}

/// The thread has the first turn.
pub fn begin(thread: &Thread) {
    at(word::TURN).store(0, Relaxed);
    known(thread);
    rashomon_turns_begin();
    kept::begin();
    goes_on(thread);
}

/// The calling thread has a kernel id, or another one.
pub fn known(thread: &Thread) {
    let number = thread.number.get() as usize;
    if number < THREADS {
        at(word::THREADS + number).store(sys::thread_id() as u64, Relaxed);
    }
}

/// So many turns of the schedule are over.
pub fn over(turns: usize) {
    at(word::TURN).store(turns as u64, Relaxed);
}

/// The thread was given the turn, which another one had before if `switched`.
pub fn given(thread: &Thread, switched: bool) {
    if switched && !replay::active() {
        at(word::TURN).fetch_add(1, Relaxed);
    }
    goes_on(thread);
}

/// The thread stands at its turn's position; the next turn may be its own as well.
pub fn reached(thread: &Thread) {
    if replay::active() && replay::turn_at(replay::current_index()).thread == thread.schedule_index.get() {
        goes_on(thread);
    }
}

/// The thread has the turn and is about to use it.
fn goes_on(thread: &Thread) {
    // A new thread is given the turn before anything is known of it.
    let id = Some(thread.kernel_id.get()).filter(|&id| id != 0).unwrap_or_else(sys::thread_id);
    at(word::HOLDER).store(id as u64, Relaxed);
    if at(word::TURN).load(Relaxed) >= at(word::STOP).load(Relaxed) {
        at(word::STOP).store(u64::MAX, Relaxed);
        rashomon_turn_reached();
    }
}

/// Two threads stand right before these accesses.
pub fn meet(first: &AccessAt, second: &AccessAt) {
    meet_in((first.address, first.bytes), (second.address, second.bytes));
}

/// The same of addresses and sizes.
pub fn meet_in(first: (u64, u64), second: (u64, u64)) {
    let end = |(address, bytes): (u64, u64)| address.saturating_add(bytes);
    let address = first.0.max(second.0);
    at(word::ADDRESS).store(address, Relaxed);
    at(word::BYTES).store(end(first).min(end(second)).saturating_sub(address), Relaxed);
}

/// Debuggers set here where to stop.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn rashomon_turns_begin() {
    // SAFETY: nothing happens. The call stays, and is no other function's; what a debugger writes meanwhile is read behind it.
    unsafe { asm!("mov eax, 0", out("eax") _, options(nostack)) };
}

/// Debuggers break here: the turn that they asked for comes next.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn rashomon_turn_reached() {
    // SAFETY: as above.
    unsafe { asm!("mov eax, 1", out("eax") _, options(nostack)) };
}

/// Debuggers break here: what was to be shown has just happened.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn rashomon_finding_reached() {
    // SAFETY: as above.
    unsafe { asm!("mov eax, 2", out("eax") _, options(nostack)) };
}
