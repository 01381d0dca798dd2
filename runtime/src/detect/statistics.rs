//! What detection did, in numbers: a file of `name value` lines, written at the end when the option `stats` names one.
//!
//! Only then does every access go the slow way, where it is counted; the numbers are those of the run that counts, which is
//! slower than others.

use super::{background, found, shadow, spans, stacks};
use crate::report::options;
use crate::system::shared::Counter;
use crate::system::sys::{self, Decimal, syscall};
use crate::system::thread::all;
use core::sync::atomic::{AtomicU64, Ordering::*};

/// Of threads that ended.
static CHECKED: AtomicU64 = AtomicU64::new(0);
static EXECUTED: AtomicU64 = AtomicU64::new(0);
static SPANS: AtomicU64 = AtomicU64::new(0);
static SAME_THREAD: AtomicU64 = AtomicU64::new(0);
static SAME_SPAN: AtomicU64 = AtomicU64::new(0);
static PLACES: AtomicU64 = AtomicU64::new(0);

/// What one thread counts.
pub struct Counts {
    /// Words that were looked at, and accesses made.
    pub checked: Counter,
    pub executed: Counter,
    pub spans: Counter,
    pub filter: Filtered,
}

/// Accesses that [`super::tree`] kept from the detector, and why.
pub struct Filtered {
    /// One of the same thread in the same context says the same.
    pub same_thread: Counter,
    /// The hooks recognise them, with the filter or without.
    pub span: Counter,
    /// Places that were remembered.
    pub places: Counter,
}

/// A thread ends.
pub fn add(counts: &Counts) {
    CHECKED.fetch_add(counts.checked.take(), Relaxed);
    EXECUTED.fetch_add(counts.executed.take(), Relaxed);
    SPANS.fetch_add(counts.spans.take(), Relaxed);
    SAME_THREAD.fetch_add(counts.filter.same_thread.take(), Relaxed);
    SAME_SPAN.fetch_add(counts.filter.span.take(), Relaxed);
    PLACES.fetch_add(counts.filter.places.take(), Relaxed);
}

/// Whether somebody wants to know.
pub fn wanted() -> bool {
    !options::get().stats.is_empty()
}

/// At the end of the process.
pub fn write() {
    if !wanted() {
        return;
    }
    for thread in all() {
        // Another thread's counts may be a little old.
        if thread.has_block() {
            add(&thread.detected().counts);
        }
    }
    let path = options::get().stats;
    let mut name = [0_u8; 4096];
    let length = path.len().min(name.len() - 1);
    name[..length].copy_from_slice(&path[..length]);
    // SAFETY: a terminated path. O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC
    let file = unsafe { syscall!(sys::OPENAT, -100isize, name.as_ptr(), 0o2001101, 0o660) };
    if file < 0 {
        sys::message(&[b"cannot open the file for statistics ", &path[..length]]);
        return;
    }
    for (name, value) in [
        (b"accesses_executed".as_slice(), EXECUTED.load(Relaxed)),
        (b"accesses_checked", CHECKED.load(Relaxed)),
        (b"filter_skipped_same_thread", SAME_THREAD.load(Relaxed)),
        // No detector here profits from it: see `tree`.
        (b"filter_skipped_two_threads", 0),
        (b"filter_skipped_span", SAME_SPAN.load(Relaxed)),
        (b"filter_locations", PLACES.load(Relaxed)),
        (b"spans", SPANS.load(Relaxed)),
        (b"sweeps", spans::SWEEPS.load(Relaxed)),
        (b"flushes", background::FLUSHES.load(Relaxed)),
        (b"stacks", stacks::count() as u64),
        (b"kibibytes_seen", shadow::marked() * 64),
        (b"races", found::RACES.load(Relaxed)),
    ] {
        line(file, name, value);
    }
    // SAFETY: our own descriptor.
    unsafe { syscall!(sys::CLOSE, file) };
}

fn line(file: isize, name: &[u8], value: u64) {
    for part in [name, b" ", Decimal::new(value).bytes(), b"\n"] {
        // SAFETY: reads the part.
        unsafe { syscall!(sys::WRITE, file, part.as_ptr(), part.len()) };
    }
}
