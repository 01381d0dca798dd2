//! Growable tables in memory of our own: the program's allocator is part of what is observed.

use crate::system::sys;
use core::cell::UnsafeCell;

/// A growable array of plain values.
pub struct List<T: Copy> {
    items: *mut T,
    length: usize,
    capacity: usize,
}

impl<T: Copy> List<T> {
    pub const fn new() -> Self {
        Self { items: core::ptr::null_mut(), length: 0, capacity: 0 }
    }
    /// Empty, with room for so many at least.
    pub fn with_room_for(capacity: usize) -> Self {
        let mut list = Self { items: core::ptr::null_mut(), length: 0, capacity: 0 };
        list.make_room(capacity);
        list
    }
    /// Its memory and how many items fit: for who does without the list.
    pub fn into_parts(self) -> (*mut T, usize) {
        (self.items, self.capacity)
    }
    /// The empty list of what [`List::into_parts`] told.
    ///
    /// # Safety
    /// Nobody else uses that memory.
    pub const unsafe fn from_parts(items: *mut T, capacity: usize) -> Self {
        Self { items, length: 0, capacity }
    }
    pub fn as_slice(&self) -> &[T] {
        if self.length == 0 {
            return &[];
        }
        // SAFETY: `length` initialised items.
        unsafe { core::slice::from_raw_parts(self.items, self.length) }
    }
    pub fn as_mut_slice(&mut self) -> &mut [T] {
        if self.length == 0 {
            return &mut [];
        }
        // SAFETY: as above, and `self` is borrowed mutably.
        unsafe { core::slice::from_raw_parts_mut(self.items, self.length) }
    }
    pub fn push(&mut self, value: T) {
        if self.length == self.capacity {
            self.make_room(self.capacity * 2);
        }
        // SAFETY: below the capacity.
        unsafe { self.items.add(self.length).write(value) };
        self.length += 1;
    }
    /// Takes the last one.
    pub fn pop(&mut self) -> Option<T> {
        let last = self.as_slice().last().copied()?;
        self.length -= 1;
        Some(last)
    }
    pub fn remove(&mut self, index: usize) -> T {
        let slice = self.as_mut_slice();
        let value = slice[index];
        let mut at = index;
        while at + 1 < slice.len() {
            slice[at] = slice[at + 1];
            at += 1;
        }
        self.length -= 1;
        value
    }
    pub fn truncate(&mut self, length: usize) {
        self.length = self.length.min(length);
    }
    pub fn len(&self) -> usize {
        self.length
    }
    fn make_room(&mut self, capacity: usize) {
        let bytes = (capacity * size_of::<T>()).max(4096);
        let items = sys::map_anonymous(bytes) as *mut T;
        if items.is_null() {
            sys::die(&[b"out of memory for a table of the runtime"]);
        }
        for index in 0..self.length {
            // SAFETY: both blocks hold `length` items.
            unsafe { items.add(index).write(self.items.add(index).read()) };
        }
        self.free();
        self.items = items;
        self.capacity = bytes / size_of::<T>();
    }
    /// Gives the memory back; the list is empty afterwards.
    pub fn free(&mut self) {
        if self.capacity > 0 {
            // SAFETY: the list's own mapping.
            unsafe { sys::unmap(self.items.cast(), (self.capacity * size_of::<T>()).next_multiple_of(4096)) };
        }
        self.items = core::ptr::null_mut();
        self.capacity = 0;
    }
    pub fn clear_and_free(&mut self) {
        self.length = 0;
        self.free();
    }
}

/// The memory of a list that is filled anew again and again: it is taken and put back, so that it need not be mapped each time.
pub struct Spare<T: Copy>(UnsafeCell<List<T>>);

// SAFETY: what is inside is touched under a lock, by the contract of its functions.
unsafe impl<T: Copy> Sync for Spare<T> {}

impl<T: Copy> Spare<T> {
    pub const fn new() -> Self {
        Self(UnsafeCell::new(List::new()))
    }
    /// An empty list.
    ///
    /// # Safety
    /// Under the lock that belongs to it.
    pub unsafe fn take(&self) -> List<T> {
        // SAFETY: by the contract nobody else is here.
        unsafe { self.0.get().replace(List::new()) }
    }
    /// What [`Spare::take`] gave.
    ///
    /// # Safety
    /// Under the lock that belongs to it.
    pub unsafe fn put(&self, mut list: List<T>) {
        list.truncate(0);
        // SAFETY: by the contract nobody else is here. There is one already if it was taken twice.
        unsafe { self.0.get().replace(list) }.free();
    }
}

#[derive(Clone, Copy)]
struct Slot {
    key: (u64, u64),
    value: u64,
}

/// A map from pairs of words, not both zero, to words. Grows; never shrinks; has no removal.
pub struct Map {
    slots: *mut Slot,
    capacity: usize,
    length: usize,
}

impl Map {
    pub const fn new() -> Self {
        Self { slots: core::ptr::null_mut(), capacity: 0, length: 0 }
    }
    fn probe(&self, key: (u64, u64)) -> *mut Slot {
        let mut hash = (key.0 ^ key.1.rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        hash ^= hash >> 29;
        let mut at = hash as usize & (self.capacity - 1);
        loop {
            // SAFETY: `at` is below the capacity, and the table is never full.
            let slot = unsafe { self.slots.add(at) };
            // SAFETY: slots are zero or written.
            let found = unsafe { (*slot).key };
            if found == key || found == (0, 0) {
                return slot;
            }
            at = (at + 1) & (self.capacity - 1);
        }
    }
    /// The value of a key, inserted as zero when new.
    pub fn entry(&mut self, key: (u64, u64)) -> &mut u64 {
        debug_assert!(key != (0, 0));
        if (self.length + 1) * 2 > self.capacity {
            self.grow();
        }
        let slot = self.probe(key);
        // SAFETY: a slot of the table, borrowed as long as the table.
        unsafe {
            if (*slot).key == (0, 0) {
                (*slot).key = key;
                self.length += 1;
            }
            &mut (*slot).value
        }
    }
    pub fn get(&self, key: (u64, u64)) -> Option<u64> {
        if self.capacity == 0 {
            return None;
        }
        let slot = self.probe(key);
        // SAFETY: a slot of the table.
        unsafe { ((*slot).key == key).then(|| (*slot).value) }
    }
    pub fn len(&self) -> usize {
        self.length
    }
    fn grow(&mut self) {
        let old = Self { slots: self.slots, capacity: self.capacity, length: self.length };
        let capacity = (self.capacity * 2).max(128);
        self.slots = sys::map_anonymous(capacity * size_of::<Slot>()).cast();
        if self.slots.is_null() {
            sys::die(&[b"out of memory for a table of the runtime"]);
        }
        self.capacity = capacity;
        self.length = 0;
        for at in 0..old.capacity {
            // SAFETY: a slot of the old table.
            let slot = unsafe { *old.slots.add(at) };
            if slot.key != (0, 0) {
                *self.entry(slot.key) = slot.value;
            }
        }
        old.unmap();
    }
    fn unmap(&self) {
        if self.capacity > 0 {
            // SAFETY: the map's own mapping, unused from here on.
            unsafe { sys::unmap(self.slots.cast(), (self.capacity * size_of::<Slot>()).next_multiple_of(4096)) };
        }
    }
    pub fn clear_and_free(&mut self) {
        self.unmap();
        *self = Self::new();
    }
}
