//! The session's `exploration` file, mapped: what to do, and the log of what happened (`rashomon_abi::exploration` describes it).

use crate::serial::explore::Pending;
use crate::serial::shutdown;
use crate::system::lock::RawLock;
use crate::system::thread::Thread;
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::*};
use rashomon_abi::exploration::{HEAD_WORDS, RECORD_WORDS, SITE_WORDS, WANTED_WORDS, end, field, record};

static WORDS: AtomicPtr<u64> = AtomicPtr::new(core::ptr::null_mut());
static LENGTH: AtomicUsize = AtomicUsize::new(0);
pub fn words() -> *mut u64 {
    WORDS.load(Relaxed)
}

pub fn word(index: usize) -> u64 {
    if index >= LENGTH.load(Relaxed) {
        return 0;
    }
    // SAFETY: inside the mapping, which is never unmapped.
    unsafe { WORDS.load(Relaxed).add(index).read_volatile() }
}

pub fn set(index: usize, value: u64) {
    if index < LENGTH.load(Relaxed) {
        // SAFETY: as above; written by the holder of the turn, or under the scheduler's lock while there is none.
        unsafe { WORDS.load(Relaxed).add(index).write_volatile(value) };
    }
}

pub fn sites_start() -> usize {
    (HEAD_WORDS).saturating_add(word(field::DECISIONS) as usize)
}

pub fn wanted_start() -> usize {
    sites_start().saturating_add((word(field::SITES) as usize).saturating_mul(SITE_WORDS))
}

pub fn orders_start() -> usize {
    wanted_start().saturating_add((word(field::WANTED) as usize).saturating_mul(WANTED_WORDS))
}

pub fn log_start() -> usize {
    orders_start().saturating_add(word(field::ORDER_WORDS) as usize)
}

/// One record at a time: a thread whose turn was taken in the kernel may come back at any time.
static WRITING: RawLock = RawLock::new();

pub fn write(words: [u64; RECORD_WORDS]) {
    if !WRITING.with(|| append(words)) {
        stop(end::LOG_FULL);
    }
}

fn append(words: [u64; RECORD_WORDS]) -> bool {
    let used = word(field::LOG_USED) as usize;
    if used + RECORD_WORDS > word(field::LOG_WORDS) as usize {
        return false;
    }
    for (at, value) in (log_start() + used..).zip(words) {
        set(at, value);
    }
    set(field::LOG_USED, (used + RECORD_WORDS) as u64);
    true
}

pub fn stop(reason: u64) -> ! {
    set(field::END, reason);
    shutdown::stop()
}

pub fn write_thread(thread: &Thread) {
    let head = record::head(record::THREAD, thread.number.get(), 0, 0, false);
    write([head, thread.parent.get() as u64, thread.spawn_ordinal.get() as u64, 0, 0, 0, 0, word(field::CHOICES)]);
}

pub fn write_pending(thread: &Thread) {
    let Pending { operation, site, ordinal, count, .. } = &thread.serial().explore;
    let (operation, site, ordinal, count) = (operation.get(), site.get(), ordinal.get(), count.get());
    let head = record::head(record::PENDING, thread.number.get(), operation.op, operation.class, operation.atomic);
    let choices = word(field::CHOICES);
    write([head, operation.object, operation.second, operation.bytes, site, ordinal, count, choices]);
}

/// The file is mapped, with so many words.
pub fn has(words: *mut u64, length: usize) {
    WORDS.store(words, Release);
    LENGTH.store(length, Release);
}

pub fn length() -> usize {
    LENGTH.load(Relaxed)
}
