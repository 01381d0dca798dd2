//! The `header` page of the session: state, counters and outcome, visible to the host even after SIGKILL.

use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering::*};
use rashomon_abi::header::{field, note, state};

static PAGE: AtomicPtr<AtomicU64> = AtomicPtr::new(core::ptr::null_mut());
/// Stands in for the page until there is one.
static SCRATCH: [AtomicU64; 64] = [const { AtomicU64::new(0) }; 64];

pub fn set_page(page: *mut u8) {
    PAGE.store(page.cast(), Release);
}

pub fn page() -> *mut AtomicU64 {
    PAGE.load(Relaxed)
}

pub fn word(index: usize) -> &'static AtomicU64 {
    let page = PAGE.load(Relaxed);
    if page.is_null() {
        return &SCRATCH[index];
    }
    // SAFETY: the page holds 512 words and is never unmapped.
    unsafe { &*page.add(index) }
}

pub fn set(index: usize, value: u64) {
    word(index).store(value, Release);
}

pub fn note(bits: u64) {
    newly_noted(bits);
}

/// The same; those that were not noted before.
pub fn newly_noted(bits: u64) -> u64 {
    bits & !word(field::NOTES).fetch_or(bits, Relaxed)
}

/// What was noted did not come about, or does not hold any more.
pub fn take_back(bits: u64) {
    word(field::NOTES).fetch_and(!bits, Relaxed);
}

/// Something of the recording could not be written: the first reason is kept.
pub fn unwritten(error: isize) {
    let _ = word(field::UNWRITTEN).compare_exchange(0, error.unsigned_abs() as u64, AcqRel, Relaxed);
    note(note::TRUNCATED);
}

/// A process that this one makes cannot be recorded; what this one does is.
pub fn unwritten_process(error: isize) {
    let _ = word(field::UNWRITTEN).compare_exchange(0, error.unsigned_abs() as u64, AcqRel, Relaxed);
    note(note::PROCESS_UNWRITTEN);
}

/// The recording has ended, or is about to.
static OVER: AtomicBool = AtomicBool::new(false);

pub fn has_ended() -> bool {
    OVER.load(Relaxed)
}

/// The recording ends. False: it had ended before.
pub fn ends() -> bool {
    !OVER.swap(true, AcqRel)
}

/// Whether there is a recording from now on.
pub fn is_over(over: bool) {
    OVER.store(over, Release);
}

/// A fatal signal ends it: the streams are readable as they are.
pub fn crashed(signal: u64, code: i32, address: u64) {
    if super::config::mode() != 0 && ends() {
        set(field::FAULT_CODE, code as i64 as u64);
        set(field::FAULT_ADDRESS, address);
        set(field::FAULT_SIGNAL, signal);
        set(field::STATE, state::CRASHED);
    }
}

/// The next place in the global order.
pub fn next_sequence() -> u64 {
    word(field::SEQUENCE).fetch_add(1, SeqCst)
}
