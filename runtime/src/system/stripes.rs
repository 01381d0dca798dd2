//! Locks for the program's atomic operations in parallel modes: an operation and its place in the order are one step.

use super::lock::RawLock;

const STRIPES: usize = 256;
static LOCKS: [RawLock; STRIPES] = [const { RawLock::new() }; STRIPES];

/// The lock of the word that holds an address.
#[inline(always)]
pub fn of(address: u64) -> &'static RawLock {
    &LOCKS[(address >> 3) as usize % STRIPES]
}

/// A forked child: whoever held one of them is not there.
pub fn reset() {
    LOCKS.iter().for_each(RawLock::unlock);
}
