//! What detection keeps of a thread: a part that is the thread's alone, and one that all may read.

use super::clock::{self, Epoch};
use super::local::{self, Local, Told};
use crate::system::guarded::Guarded;
use crate::system::thread::{Runtime, Thread};
use crate::system::tls;
use core::mem::offset_of;
use core::ops::Deref;

/// What is in the slot of a thread's record.
#[repr(C)]
struct Part {
    /// First, see [`Thread::detection`].
    own: Guarded<Own>,
    told: Told,
}

/// What belongs to the thread alone. There is a reference to it only while [`Thread::with_own`] runs.
pub struct Own {
    pub detect: Local,
}

impl Own {
    /// The record that this is part of.
    #[inline(always)]
    pub fn thread(&self) -> &'static Thread {
        const OFFSET: usize = offset_of!(Thread, detection) + offset_of!(Part, own) + Guarded::<Own>::OFFSET;
        let address = core::ptr::from_ref(self).addr() - OFFSET;
        // SAFETY: owner parts are in records only, whose addresses are exposed when they are made.
        unsafe { &*core::ptr::with_exposed_provenance(address) }
    }
}

impl Own {
    /// Another slot, whose epochs before this one are others'.
    fn take_slot(&mut self) {
        let (slot, epoch) = clock::take_slot(&self.detect.clock);
        self.detected().slot.set(slot);
        self.detected().epoch.set(epoch);
        let now = local::now(self);
        self.detect.tree.slot_begins(now);
    }

    /// Before the thread's first access: its slot, with what is known from its creator.
    pub fn give_slot(&mut self) {
        self.take_slot();
        self.knows_itself();
    }

    /// Epoch and slot of what follows: everything up to here was passed on.
    pub fn next_epoch(&mut self) {
        let (slot, epoch) = (self.detected().slot.get(), self.detected().epoch.get());
        if epoch >= Epoch::MAX - 1 {
            // A slot whose epochs are used up is known to be over.
            self.detect.clock.set(slot, Epoch::MAX);
            self.take_slot();
        } else {
            self.detected().epoch.set(epoch + 1);
        }
        self.knows_itself();
    }

    fn knows_itself(&mut self) {
        let (slot, epoch) = (self.detected().slot.get(), self.detected().epoch.get());
        self.detect.clock.set(slot, epoch);
    }
}

impl Deref for Own {
    type Target = Thread;

    #[inline(always)]
    fn deref(&self) -> &Thread {
        self.thread()
    }
}

impl Thread {
    #[inline(always)]
    const fn detection(&self) -> &Part {
        // SAFETY: the only call for this slot. Of a thread of which detection knows nothing all is zero: empty lists, no clock,
        // null pointers. What is no cell and no atomic is guarded.
        unsafe { self.detection.holds() }
    }

    /// What others may ask of it at any time.
    #[inline(always)]
    pub const fn detected(&self) -> &Told {
        &self.detection().told
    }

    /// The part that belongs to the thread alone; to be asked for by that.
    #[inline(always)]
    pub fn with_own<R>(&self, body: impl FnOnce(&mut Own) -> R) -> R {
        debug_assert!(tls::current().is_some_and(|thread| core::ptr::eq(thread, self)));
        self.detection().own.with(body)
    }

    /// The same of another thread.
    ///
    /// # Safety
    /// It has not begun, does not run or is over, and nobody else asks at the same time.
    pub unsafe fn with_own_of_other<R>(&self, body: impl FnOnce(&mut Own) -> R) -> R {
        self.detection().own.with(body)
    }

    /// The same for hooks, which are no longer than their access.
    #[inline(always)]
    pub const fn own_ptr(&self) -> *mut Own {
        self.detection().own.as_ptr()
    }
}

impl Runtime {
    /// See [`Thread::with_own`].
    #[inline]
    pub fn with_own<R>(&self, body: impl FnOnce(&mut Own) -> R) -> R {
        self.thread().with_own(body)
    }
}
