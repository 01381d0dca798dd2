//! Cells of the detector's shadow: what a word of 32 bits says about an access, and when two accesses race.
//!
//! ```text
//! cell:  reference:23 | read:1 | bytes:8         0: nothing
//! ```

/// How many a word of eight bytes has.
pub const CELLS: usize = 4;
pub const READ: u32 = 1 << 8;
pub const BYTES: u32 = 0xff;
pub const REFERENCE_SHIFT: u32 = 9;

/// The bits of the bytes `[address, address + bytes)` within their word; `bytes` must not cross it.
#[inline(always)]
pub fn byte_bits(address: u64, bytes: u64) -> u32 {
    debug_assert!((address & 7) + bytes <= 8);
    (((1u32 << bytes) - 1) << (address & 7)) & BYTES
}

/// The cell of an access.
#[inline(always)]
pub fn encode(reference: u32, read: bool, bits: u32) -> u32 {
    debug_assert!(reference < 1 << (32 - REFERENCE_SHIFT) && bits & !BYTES == 0);
    reference << REFERENCE_SHIFT | if read { READ } else { 0 } | bits
}

/// What matters of the way in which bytes are accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    pub read: bool,
    pub atomic: bool,
}

impl Kind {
    /// Whether two accesses of the same bytes, which nothing orders, race: one writes, and not both are atomic.
    #[inline(always)]
    pub fn conflicts(self, other: Self) -> bool {
        !(self.read && other.read || self.atomic && other.atomic)
    }

    /// Whether this one conflicts with whatever the other one does.
    #[inline(always)]
    pub fn stands_for(self, other: Self) -> bool {
        (!self.read || other.read) && (!self.atomic || other.atomic)
    }
}

/// Whether every byte of `inner` is among those of `outer`: cells, or the bits of bytes.
#[inline(always)]
pub fn covers(outer: u32, inner: u32) -> bool {
    inner & BYTES & !outer == 0
}
