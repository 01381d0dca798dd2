//! Memory of this module's own, which libc's allocator gives inside the runtime, as ever ([`heap`]). Blocks in which objects
//! synchronise are recorded as the program's heap blocks are, so that an object in the same place is another one later.

use super::Call;
use crate::intercept::heap;
use crate::system::real::{__libc_calloc, __libc_free, __libc_realloc};
use crate::system::sys;
use crate::system::thread::Runtime;
use core::cell::Cell;

/// A block of zeros that is recorded. Outside the runtime.
pub fn allocate(call: Call, bytes: usize) -> *mut u8 {
    // SAFETY: libc's own allocator.
    let block = heap::allocating(bytes, call.site, || unsafe { __libc_calloc(1, bytes) });
    if block.is_null() {
        sys::die(&[b"out of memory for OpenMP"]);
    }
    block
}

/// Nothing is recorded: whoever is the last to be done with a block need not be ordered behind the others. What is allocated in
/// its place begins a new life.
///
/// # Safety
/// Made by [`allocate`], and nobody uses it any more.
pub unsafe fn release(block: *mut u8) {
    let _runtime = Runtime::try_enter();
    // SAFETY: by the contract.
    unsafe { __libc_free(block) };
}

/// A zeroed value that is never recorded.
pub fn unrecorded<T>() -> *mut T {
    let _runtime = Runtime::try_enter();
    // SAFETY: libc's own allocator.
    let block = unsafe { __libc_calloc(1, size_of::<T>()) };
    if block.is_null() {
        sys::die(&[b"out of memory for OpenMP"]);
    }
    block.cast()
}

/// A small growable array of plain values. All zero: empty.
pub struct Vector<T: Copy> {
    items: Cell<*mut T>,
    length: Cell<usize>,
    capacity: Cell<usize>,
}

impl<T: Copy> Vector<T> {
    pub const fn new() -> Self {
        Self { items: Cell::new(core::ptr::null_mut()), length: Cell::new(0), capacity: Cell::new(0) }
    }

    /// Not to be kept while the array changes.
    pub fn as_slice(&self) -> &[T] {
        // SAFETY: `length` initialised items.
        if self.length.get() == 0 { &[] } else { unsafe { core::slice::from_raw_parts(self.items.get(), self.length.get()) } }
    }

    pub fn push(&self, value: T) {
        if self.length.get() == self.capacity.get() {
            let capacity = (2 * self.capacity.get()).max(4);
            let _runtime = Runtime::try_enter();
            // SAFETY: libc's own allocator.
            let items = unsafe { __libc_realloc(self.items.get().cast(), capacity * size_of::<T>()) }.cast::<T>();
            if items.is_null() {
                sys::die(&[b"out of memory for OpenMP"]);
            }
            self.items.set(items);
            self.capacity.set(capacity);
        }
        // SAFETY: below the capacity.
        unsafe { self.items.get().add(self.length.get()).write(value) };
        self.length.set(self.length.get() + 1);
    }

    pub fn remove(&self, at: usize) -> T {
        let value = self.as_slice()[at];
        let length = self.length.get() - 1;
        self.length.set(length);
        // SAFETY: the items behind it move up by one.
        unsafe { core::ptr::copy(self.items.get().add(at + 1), self.items.get().add(at), length - at) };
        value
    }

    pub fn free(&self) {
        let _runtime = Runtime::try_enter();
        // SAFETY: libc's own allocator; null is fine.
        unsafe { __libc_free(self.items.get().cast()) };
        self.items.set(core::ptr::null_mut());
        self.length.set(0);
        self.capacity.set(0);
    }
}
