//! Signals as the kernel and libc write them down.

use crate::system::sys;
use core::ffi::c_int;

/// `siginfo_t`.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
pub struct SignalInfo(pub [u8; 128]);

impl SignalInfo {
    fn word(&self, at: usize) -> i32 {
        i32::from_ne_bytes([self.0[at], self.0[at + 1], self.0[at + 2], self.0[at + 3]])
    }
    pub fn code(&self) -> i32 {
        self.word(8)
    }
    /// Where the fault was; 0 of what was sent.
    pub fn address(&self) -> u64 {
        if self.code() <= 0 { 0 } else { u64::from(self.word(16) as u32) | u64::from(self.word(20) as u32) << 32 }
    }
    /// Sent by kill(2), tgkill(2) or sigqueue(3) from this very process.
    pub fn is_own(&self) -> bool {
        matches!(self.code(), 0 | -1 | -6) && self.word(16) as u32 == sys::process_id()
    }
}

/// glibc's `struct sigaction`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Action {
    pub handler: usize,
    pub mask: [u64; 16],
    pub flags: c_int,
    pub restorer: usize,
}

impl Action {
    pub const fn new(handler: usize, flags: c_int) -> Self {
        Self { handler, mask: [0; 16], flags, restorer: 0 }
    }
}
