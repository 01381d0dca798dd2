//! What a thread that gave its turn up waits for, and what ends that.

use crate::serial::clock::NEVER;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WaitFor {
    Nothing,
    Lock,
    LockShared,
    Condition,
    Semaphore,
    Barrier,
    Join,
    Futex,
    Once,
    Files,
    Time,
}

/// As poll(2) lays it out.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct PollFile {
    pub file: i32,
    pub events: i16,
    pub returned: i16,
}

/// What a blocked thread waits for.
#[derive(Clone, Copy)]
pub struct Wait {
    pub what: WaitFor,
    /// Address of the object, or number of the thread.
    pub object: u64,
    /// Elapsed virtual time at which it gives up.
    pub deadline: u64,
    pub files: *mut PollFile,
    pub file_count: usize,
    /// A signal handler ends the wait.
    pub interruptible: bool,
}

impl Wait {
    pub const NOTHING: Self = Self::on(WaitFor::Nothing, 0);
    pub const fn on(what: WaitFor, object: u64) -> Self {
        Self { what, object, deadline: NEVER, files: core::ptr::null_mut(), file_count: 0, interruptible: false }
    }
    pub const fn until(mut self, deadline: u64) -> Self {
        self.deadline = deadline;
        self
    }
    pub const fn interruptible(mut self) -> Self {
        self.interruptible = true;
        self
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Wake {
    Nothing,
    /// What the thread waited for may be there: look again.
    Woken,
    TimedOut,
    Signal,
    /// `pthread_cancel`, and the thread lets itself be cancelled.
    Cancelled,
}
