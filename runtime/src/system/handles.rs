//! Threads by what `pthread_create` returned for them.
//!
//! Handles are kept side by side, by number, apart from all else that is known of a thread: a program that makes a thread for
//! every request has made thousands, and each join looks for one.

use crate::system::sys;
use crate::system::thread::{Thread, by_number, count};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::*};
use rashomon_abi::MAX_THREADS;

/// The thread has been made and has not said yet what its handle is.
const UNKNOWN: u64 = 0;
/// It has no handle any more.
const GONE: u64 = 1;

static HANDLES: [AtomicU64; MAX_THREADS] = [const { AtomicU64::new(UNKNOWN) }; MAX_THREADS];
/// All threads before this one have none any more, but for the first of all.
static FIRST: AtomicU32 = AtomicU32::new(1);

/// The thread tells its handle.
pub fn store(thread: &Thread, handle: u64) {
    thread.handle.store(handle, Release);
    HANDLES[thread.number.get() as usize].store(handle, Release);
}

/// Nobody can join the thread any more, or it was never started.
pub fn give_up(thread: &Thread) {
    thread.handle.store(0, Release);
    HANDLES[thread.number.get() as usize].store(GONE, Release);
}

/// A forked child numbers its threads anew: nothing is known of so many.
///
/// # Safety
/// In such a child, by its only thread.
pub unsafe fn forget(threads: u32) {
    HANDLES.iter().take(threads as usize).for_each(|handle| handle.store(UNKNOWN, Relaxed));
    FIRST.store(1, Relaxed);
}

/// What is known of the threads that may have that handle: one that has it, and whether any has yet to tell its own.
fn look(handle: u64) -> (Option<&'static Thread>, bool) {
    let (mut first, end) = (FIRST.load(Relaxed), count());
    while first < end && HANDLES[first as usize].load(Relaxed) == GONE {
        first += 1;
    }
    FIRST.fetch_max(first, Relaxed);
    let mut unknown = false;
    let of = |number: u32| HANDLES[number as usize].load(Acquire);
    let found = core::iter::once(0).chain(first..end).find(|&number| {
        let known = of(number);
        unknown |= known == UNKNOWN && number != 0;
        known == handle
    });
    (found.and_then(by_number), unknown)
}

/// The live or ended, not yet joined, thread with that handle.
pub fn by_handle(handle: u64) -> Option<&'static Thread> {
    look(handle).0
}

/// In serial mode a new thread may not have run at all: its handle is what `pthread_create` returned, which is its thread
/// pointer, once it has set it.
pub fn find(handle: u64) -> Option<&'static Thread> {
    // No thread has one of these.
    if matches!(handle, UNKNOWN | GONE) {
        return None;
    }
    loop {
        match look(handle) {
            (Some(thread), _) => return Some(thread),
            (None, false) => return None,
            // The thread exists and is about to store its handle.
            // SAFETY: no arguments.
            (None, true) => unsafe { sys::syscall!(sys::SCHED_YIELD) },
        };
    }
}
