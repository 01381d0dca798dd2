//! The parts of a thread's record that are more than one word, each behind an accessor that ends before anybody else looks.

use core::cell::UnsafeCell;

/// A value of a thread's record that is touched by the thread itself and, in serial mode, by the holder of the turn or of the
/// scheduler's lock while the thread stands still. There is a reference to it only while [`Guarded::with`] runs, which neither
/// waits nor calls itself; a build with assertions sees to the latter.
#[repr(C)]
pub struct Guarded<T> {
    value: UnsafeCell<T>,
    #[cfg(debug_assertions)]
    is_used: core::cell::Cell<bool>,
}

impl<T> Guarded<T> {
    /// Of the value within.
    pub const OFFSET: usize = core::mem::offset_of!(Self, value);

    #[inline(always)]
    pub fn with<R>(&self, body: impl FnOnce(&mut T) -> R) -> R {
        #[cfg(debug_assertions)]
        assert!(!self.is_used.replace(true));
        // SAFETY: as the type says, nobody else is here.
        let result = body(unsafe { &mut *self.value.get() });
        #[cfg(debug_assertions)]
        self.is_used.set(false);
        result
    }

    /// For hooks, which are no longer than their access.
    #[inline(always)]
    pub const fn as_ptr(&self) -> *mut T {
        self.value.get()
    }
}
