//! Mappings that threads need while they live, kept for the next ones: to unmap one interrupts all other processors that the
//! process runs on, which takes longer than all else that is done for a thread.

use crate::system::sys;
use core::sync::atomic::{AtomicPtr, Ordering::*};

/// How many are kept.
const KEPT: usize = 16;

/// Mappings of one size.
pub struct Pool {
    bytes: usize,
    kept: [AtomicPtr<u8>; KEPT],
}

impl Pool {
    pub const fn new(bytes: usize) -> Self {
        Self { bytes, kept: [const { AtomicPtr::new(core::ptr::null_mut()) }; KEPT] }
    }

    /// One that is the caller's. It may have any content. Null: there is no memory.
    pub fn take(&self) -> *mut u8 {
        let kept = self.kept.iter().map(|slot| slot.swap(core::ptr::null_mut(), AcqRel));
        kept.into_iter().find(|kept| !kept.is_null()).unwrap_or_else(|| sys::map_anonymous(self.bytes))
    }

    /// # Safety
    /// It came from here or is such a mapping, and nobody uses it any more.
    pub unsafe fn put(&self, mapping: *mut u8) {
        let free = |slot: &&AtomicPtr<u8>| slot.compare_exchange(core::ptr::null_mut(), mapping, AcqRel, Relaxed).is_ok();
        if self.kept.iter().find(free).is_none() {
            // SAFETY: by the contract.
            unsafe { sys::unmap(mapping, self.bytes) };
        }
    }
}
