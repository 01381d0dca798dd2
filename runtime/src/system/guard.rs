//! The guard under which the runtime's code runs.

use crate::system::signals;
use crate::system::thread::Thread;
use crate::system::tls::{Hot, hot};
use core::sync::atomic::Ordering::*;

/// Witness that the calling thread runs runtime code: hooks and interposers below pass through, signal handlers wait.
pub struct Runtime {
    block: *mut Hot,
}

impl Runtime {
    /// # Safety
    /// The calling thread must be known (`tls::current()` not null).
    #[inline]
    pub unsafe fn enter() -> Self {
        let block = hot();
        // SAFETY: this thread's block.
        unsafe { (*block).nesting += 1 };
        Self { block }
    }

    /// Enters if the thread is known and not in runtime code already: the test of every interposer.
    #[inline]
    pub fn try_enter() -> Option<Self> {
        let block = hot();
        // SAFETY: this thread's block.
        unsafe {
            if (*block).thread.is_null() || (*block).nesting > 0 {
                return None;
            }
            (*block).nesting += 1;
            (*block).entered = (*block).callee;
        }
        Some(Self { block })
    }

    #[allow(clippy::mut_from_ref, reason = "the calling thread's own record; nobody else runs this thread's code")]
    #[inline]
    pub fn thread(&self) -> &'static mut Thread {
        // SAFETY: not null by construction; threads are never unmapped.
        unsafe { &mut *(*self.block).thread }
    }

    /// Runs a callback of the program from inside the runtime: hooks record again while it runs.
    pub fn outside<R>(&self, callback: impl FnOnce() -> R) -> R {
        // SAFETY: this thread's block.
        unsafe {
            let nesting = core::mem::replace(&mut (*self.block).nesting, 0);
            let entered = (*self.block).entered;
            let result = callback();
            (*self.block).nesting = nesting;
            (*self.block).entered = entered;
            result
        }
    }
}

impl Drop for Runtime {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: this thread's block. Only a thread that left the runtime altogether runs deferred handlers.
        unsafe {
            (*self.block).nesting -= 1;
            if (*self.block).nesting == 0
                && !(*self.block).thread.is_null()
                && (*(*self.block).thread).pending_signals.load(Relaxed) > 0
            {
                signals::deliver_pending();
            }
        }
    }
}
