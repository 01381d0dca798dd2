//! Threads by what `pthread_create` returned for them.

use crate::system::sys;
use crate::system::thread::{Thread, all};
use core::sync::atomic::Ordering::*;

/// The live or ended, not yet joined, thread with that handle.
fn by_handle(handle: u64) -> Option<&'static Thread> {
    all().find(|thread| thread.handle.load(Acquire) == handle && !thread.joined.get())
}

/// In serial mode a new thread may not have run at all: its handle is what `pthread_create` returned, which is its thread
/// pointer, once it has set it.
pub fn find(handle: u64) -> Option<&'static Thread> {
    // The record of a thread that has not stored its handle, or gave it up, has none: an id of 0 names nobody.
    if handle == 0 {
        return None;
    }
    loop {
        // Asked before the handles are compared: one may be stored in between.
        let all_known =
            all().all(|thread| thread.handle.load(Acquire) != 0 || thread.ended.load(Acquire) != 0 || thread.number.get() == 0);
        if let Some(thread) = by_handle(handle) {
            return Some(thread);
        }
        if all_known {
            return None;
        }
        // The thread exists and is about to store its handle.
        // SAFETY: no arguments.
        unsafe { sys::syscall!(sys::SCHED_YIELD) };
    }
}
