//! How a room calls one that stands above it: it owns a place, in which the upper room leaves what is to be called.

use core::sync::atomic::{AtomicPtr, Ordering::*};

/// Nothing until it is set.
pub struct Registered<T: 'static>(AtomicPtr<T>);

impl<T: Sync> Registered<T> {
    pub const fn none() -> Self {
        Self(AtomicPtr::new(core::ptr::null_mut()))
    }

    pub fn set(&self, value: &'static T) {
        self.0.store(core::ptr::from_ref(value).cast_mut(), Release);
    }

    pub fn get(&self) -> Option<&'static T> {
        // SAFETY: null, or `set` made it of a reference that is valid for ever and only read.
        unsafe { self.0.load(Acquire).as_ref() }
    }
}
