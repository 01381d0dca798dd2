//! The locks that a thread holds.

use crate::system::memory::List;
use core::cell::Cell;
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::*};

#[derive(Clone, Copy)]
#[repr(C)]
pub struct Held {
    pub lock: u64,
    pub shared: bool,
    /// Grows with every lock that is taken.
    pub since: u64,
}

/// A lock of a virtual machine's, as its thread holds it.
#[derive(Clone, Copy)]
pub struct MachineLock {
    pub lock: u64,
    pub shared: bool,
    pub times: u32,
}

/// Changed by its thread and, in serial mode, by the holder of the turn while that stands still. Others may ask where it lies.
pub struct HeldLocks {
    items: AtomicPtr<Held>,
    length: AtomicUsize,
    capacity: Cell<usize>,
}

impl HeldLocks {
    fn at(&self, index: usize) -> *mut Held {
        self.items.load(Relaxed).wrapping_add(index)
    }

    pub fn len(&self) -> usize {
        self.length.load(Relaxed)
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn get(&self, index: usize) -> Held {
        debug_assert!(index < self.len());
        // SAFETY: below the length, so written.
        unsafe { self.at(index).read() }
    }

    /// In the order in which they were taken.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Held> + ExactSizeIterator {
        (0..self.len()).map(|index| self.get(index))
    }

    pub fn push(&self, held: Held) {
        let length = self.len();
        if length == self.capacity.get() {
            self.grow();
        }
        // SAFETY: below the capacity.
        unsafe { self.at(length).write(held) };
        self.length.store(length + 1, Release);
    }

    pub fn remove(&self, index: usize) -> Held {
        let held = self.get(index);
        let behind = self.len() - index - 1;
        for at in index..index + behind {
            // SAFETY: both below the length.
            unsafe { self.at(at).write(self.at(at + 1).read()) };
        }
        self.length.store(index + behind, Release);
        held
    }

    fn grow(&self) {
        let mut larger = List::with_room_for(self.capacity.get() * 2);
        self.iter().for_each(|held| larger.push(held));
        let length = larger.len();
        self.clear_and_free();
        let (items, capacity) = larger.into_parts();
        self.items.store(items, Release);
        self.length.store(length, Release);
        self.capacity.set(capacity);
    }

    /// Where they lie, and how many: for looking at another thread's list.
    pub fn place(&self) -> (*const Held, usize) {
        let length = self.length.load(Acquire);
        (self.items.load(Acquire), length)
    }

    pub fn clear_and_free(&self) {
        self.length.store(0, Release);
        let items = self.items.swap(core::ptr::null_mut(), AcqRel);
        // SAFETY: made by `grow`, and nobody has a reference.
        unsafe { List::from_parts(items, self.capacity.replace(0)) }.clear_and_free();
    }
}
