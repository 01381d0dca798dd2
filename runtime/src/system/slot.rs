//! Room in a thread's record for what rooms above keep of the thread. The record is laid out here; what is in a slot is known to
//! the one file that owns it, which gives others a typed view by a method of [`crate::system::thread::Thread`].

use core::cell::UnsafeCell;
use core::mem::MaybeUninit;

/// All bytes zero in a new record.
#[repr(C, align(16))]
pub struct Slot<const BYTES: usize>(UnsafeCell<MaybeUninit<[u8; BYTES]>>);

impl<const BYTES: usize> Slot<BYTES> {
    /// What is in the slot.
    ///
    /// # Safety
    /// Nobody asks this slot for another type. All bytes zero are a value of it, and all of it is cells, atomics and
    /// [`crate::system::guarded::Guarded`], so that a reference to it excludes nobody.
    #[inline(always)]
    pub const unsafe fn holds<T>(&self) -> &T {
        const {
            assert!(size_of::<T>() <= BYTES && align_of::<T>() <= align_of::<Self>());
            assert!(BYTES - size_of::<T>() < 64, "more room than it needs");
        };
        // SAFETY: it fits, as asserted, and it is initialised, by the contract.
        unsafe { &*self.0.get().cast::<T>() }
    }
}
