//! Top bits of a [`VALUE`](crate::record::VALUE).

/// What the access has left in memory; else what it found there.
pub const WRITTEN: u64 = 1;
/// The high 16 bits are not zero, and follow.
pub const LONG: u64 = 2;
