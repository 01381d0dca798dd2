//! Bounds of [`COUNTED`](crate::record::COUNTED) records and their definitions.

pub const MOST_OPERATIONS: usize = 48;
pub const MOST_BASES: usize = 16;
/// Of one record: accesses.
pub const MOST_ACCESSES: u64 = 1 << 22;
/// Set in numbers and bases of these records: so none that was written is zero.
pub const WRITTEN: u64 = 1 << 63;
