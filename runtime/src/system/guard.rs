//! The guard under which the runtime's code runs.

use crate::system::registered::Registered;
use crate::system::thread::Thread;
use crate::system::tls::{Hot, hot};
use crate::system::{config, signals};
use core::sync::atomic::Ordering::*;

/// What is called when a thread leaves runtime code altogether, while [`config::gating`].
pub static LEFT: Registered<fn(&Thread)> = Registered::none();
/// What is called when a thread enters of which a value is [pending](Hot::pending).
pub static SETTLES: Registered<fn(&Thread)> = Registered::none();

#[cold]
fn settle(block: &Hot) {
    if let (Some(settles), Some(thread)) = (SETTLES.get(), block.thread.get()) {
        settles(thread);
    }
}

/// Witness that the calling thread runs runtime code: hooks and interposers below pass through, signal handlers wait.
pub struct Runtime {
    block: &'static Hot,
    /// The interposed function that was being entered.
    callee: u64,
}

impl Runtime {
    /// # Safety
    /// The calling thread must be known (`tls::current()` not null).
    #[inline]
    pub unsafe fn enter() -> Self {
        let block = hot();
        block.nesting.set(block.nesting.get() + 1);
        if block.pending.get() != 0 {
            settle(block);
        }
        Self { block, callee: block.callee.get() }
    }

    /// Enters if the thread is known and not in runtime code already: the test of every interposer.
    #[inline]
    pub fn try_enter() -> Option<Self> {
        let block = hot();
        if !block.is_outside() {
            return None;
        }
        block.nesting.set(block.nesting.get() + 1);
        if block.pending.get() != 0 {
            settle(block);
        }
        let callee = block.callee.get();
        block.entered.set(callee);
        Some(Self { block, callee })
    }

    #[inline]
    pub fn thread(&self) -> &'static Thread {
        // SAFETY: known by construction.
        unsafe { self.block.thread.get().unwrap_unchecked() }
    }

    /// Runs a callback of the program from inside the runtime: hooks record again while it runs.
    pub fn outside<R>(&self, callback: impl FnOnce() -> R) -> R {
        let nesting = self.block.nesting.replace(0);
        let entered = self.block.entered.get();
        let result = callback();
        self.block.nesting.set(nesting);
        self.block.entered.set(entered);
        result
    }
}

impl Drop for Runtime {
    #[inline]
    fn drop(&mut self) {
        self.block.nesting.set(self.block.nesting.get() - 1);
        // Code of the runtime may call interposed functions itself: compilers make calls of `memcpy` of large moves. Nothing is
        // put back where somebody begins to watch for calls (`serial/trial`).
        if self.block.callee.get() != 0 {
            self.block.callee.set(self.callee);
        }
        if config::gating()
            && self.block.nesting.get() == 0
            && let (Some(left), Some(thread)) = (LEFT.get(), self.block.thread.get())
        {
            left(thread);
        }
        // Only a thread that left the runtime altogether runs deferred handlers.
        if self.block.nesting.get() == 0
            && let Some(thread) = self.block.thread.get()
            && thread.pending_signals.load(Relaxed) > 0
        {
            signals::deliver_pending();
        }
    }
}
