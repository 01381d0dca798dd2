//! The scheduler's lock. Who is given the turn is woken behind it: woken before, on the same processor, it would run at once and
//! stand at the lock.

use crate::system::lock::RawLock;
use crate::system::sys;
use crate::system::thread::known;
use core::sync::atomic::{AtomicU32, Ordering::*};

pub static LOCK: TurnLock = TurnLock { lock: RawLock::new(), woken: AtomicU32::new(0) };

pub struct TurnLock {
    lock: RawLock,
    /// Number + 1 of the thread to be woken; 0: none. Under the lock.
    woken: AtomicU32,
}

impl TurnLock {
    pub fn lock(&self) {
        self.lock.lock();
    }

    /// Wakes whoever was to be woken.
    pub fn unlock(&self) {
        let woken = self.woken.load(Relaxed);
        if woken != 0 {
            self.woken.store(0, Relaxed);
        }
        self.lock.unlock();
        if let Some(number) = woken.checked_sub(1) {
            sys::futex_wake(&known(number).baton, 1);
        }
    }

    pub fn with<R>(&self, body: impl FnOnce() -> R) -> R {
        self.lock();
        let result = body();
        self.unlock();
        result
    }

    pub fn is_locked(&self) -> bool {
        self.lock.is_locked()
    }

    /// The thread, whose baton says so, is woken when the lock is free. Under the lock.
    pub fn wakes(&self, number: u32) {
        debug_assert!(self.is_locked());
        let before = self.woken.swap(number + 1, Relaxed);
        if let Some(before) = before.checked_sub(1).filter(|&before| before != number) {
            sys::futex_wake(&known(before).baton, 1);
        }
    }

    /// In a forked child, where nobody holds it any more, and nobody is to be woken.
    pub fn reset(&self) {
        self.woken.store(0, Relaxed);
        self.lock.reset();
    }
}
