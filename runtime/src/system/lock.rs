//! A lock for the runtime's own tables: spins a little, then sleeps in the kernel.

use crate::system::sys;
use core::sync::atomic::{AtomicU32, Ordering::*};

/// 0 free, 1 taken, 2 taken and somebody sleeps.
pub struct RawLock(AtomicU32);

impl RawLock {
    pub const fn new() -> Self {
        Self(AtomicU32::new(0))
    }
    pub fn lock(&self) {
        for _ in 0..100 {
            if self.0.compare_exchange(0, 1, Acquire, Relaxed).is_ok() {
                return;
            }
            core::hint::spin_loop();
        }
        while self.0.swap(2, Acquire) != 0 {
            sys::futex_wait(&self.0, 2);
        }
    }
    pub fn unlock(&self) {
        if self.0.swap(0, Release) == 2 {
            sys::futex_wake(&self.0, 1);
        }
    }
    /// Whether it was free, and is the caller's now.
    pub fn try_lock(&self) -> bool {
        self.0.compare_exchange(0, 1, Acquire, Relaxed).is_ok()
    }
    pub fn is_locked(&self) -> bool {
        self.0.load(Relaxed) != 0
    }
    /// In a forked child, where nobody holds it any more.
    pub fn reset(&self) {
        self.0.store(0, Release);
    }
    pub fn with<R>(&self, body: impl FnOnce() -> R) -> R {
        self.lock();
        let result = body();
        self.unlock();
        result
    }
}

/// A lock for what takes next to no time and is done all the time: giving it back is a plain store. Who finds it taken for long
/// sleeps a little, so that a holder of a lower priority comes to its end.
pub struct BriefLock(AtomicU32);

impl BriefLock {
    pub const fn new() -> Self {
        Self(AtomicU32::new(0))
    }
    /// In a forked child, where nobody holds it any more.
    pub fn reset(&self) {
        self.0.store(0, Release);
    }
    #[inline]
    pub fn with<R>(&self, body: impl FnOnce() -> R) -> R {
        while self.0.compare_exchange(0, 1, Acquire, Relaxed).is_err() {
            self.wait();
        }
        let result = body();
        self.0.store(0, Release);
        result
    }
    #[cold]
    fn wait(&self) {
        for _ in 0..1000 {
            if self.0.load(Relaxed) == 0 {
                return;
            }
            core::hint::spin_loop();
        }
        sys::sleep(20_000);
    }
}
