//! What the scheduler and its policies keep of a thread.

use super::replay::GoalAccess;
use super::wait::{Wait, Wake};
use super::{elastic, endless, explore, linger, snapshot, standstill};
use crate::system::thread::Thread;
use core::cell::Cell;

/// What is in the slot of a thread's record.
pub struct Part {
    pub wait: Cell<Wait>,
    pub wake: Cell<Wake>,
    pub goal: Cell<GoalAccess>,
    pub waiting: standstill::Waiting,
    pub elastic: elastic::Local,
    pub explore: explore::Pending,
    pub standing: snapshot::Standing,
    pub linger: linger::Local,
    pub endless: endless::Local,
}

impl Thread {
    /// Who may touch what: see [`Thread`].
    #[inline(always)]
    pub const fn serial(&self) -> &Part {
        // SAFETY: the only call for this slot. All zero: nothing is waited for, and nothing is known. No part of it is more than
        // cells and atomics, or guarded.
        unsafe { self.scheduling.holds() }
    }
}
