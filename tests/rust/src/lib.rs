//! What the tests of this crate share.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::Mutex;

/// A counter that two threads may touch at once because its author said so.
#[derive(Default)]
pub struct Tally {
    count: std::cell::UnsafeCell<u64>,
}

// The seeded bug: nothing protects `count`.
unsafe impl Sync for Tally {}

impl Tally {
    pub fn add(&self, amount: u64) {
        unsafe { *self.count.get() += amount }
    }

    pub fn get(&self) -> u64 {
        unsafe { *self.count.get() }
    }
}

/// A counter that is what [`Tally`] should be.
#[derive(Default)]
pub struct SafeTally {
    count: Mutex<u64>,
    calls: AtomicU32,
}

impl SafeTally {
    pub fn add(&self, amount: u64) {
        *self.count.lock().unwrap() += amount;
        self.calls.fetch_add(1, Ordering::Relaxed);
    }

    pub fn get(&self) -> u64 {
        *self.count.lock().unwrap()
    }
}

extern "C" {
    /// # Safety
    /// By one thread at a time.
    pub fn tally(amount: i64) -> i64;
}
