//! Which of the objects that live at an address one after the other it is now: a number that grows whenever the bytes are given
//! out.
//!
//! Three tables over the address space, reserved without memory: a number per granule of 16 bytes, the least that an allocator
//! gives out, one per page and one per region of 1 MiB. An object counts at the regions that it fills, at the pages of what is
//! left at both ends, and at the granules of what is left then. The lifetime is the sum: all only grow.
//!
//! A thread that has a new object's address from whoever allocated it sees its number too: stores of x86-64 become visible in
//! their order.
//!
//! Limit. Addresses a multiple of 16 TiB apart share numbers; then more is kept than need be.

use crate::detect::shadow;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering::*};

const ADDRESS_BITS: u32 = 44;
/// Bits of an address inside a granule, a page, a region.
const LEVELS: [u32; 3] = [4, 12, 20];

static TABLES: [AtomicPtr<AtomicU32>; 3] = [const { AtomicPtr::new(core::ptr::null_mut()) }; 3];

pub fn initialise() {
    for (table, bits) in TABLES.iter().zip(LEVELS) {
        table.store(shadow::reserve(4 << (ADDRESS_BITS - bits)).cast(), Release);
    }
}

fn number(level: usize, address: u64) -> &'static AtomicU32 {
    let at = (address & ((1 << ADDRESS_BITS) - 1)) >> LEVELS[level];
    // SAFETY: inside the reservation, whatever the address; never unmapped.
    unsafe { &*TABLES[level].load(Relaxed).add(at as usize) }
}

pub fn of(address: u64) -> u32 {
    (0..LEVELS.len()).fold(0, |sum, level| sum.wrapping_add(number(level, address).load(Relaxed)))
}

/// The bytes are another object's from now on.
pub fn begin(start: u64, bytes: u64) {
    const LONGEST: u64 = 1 << (ADDRESS_BITS - 1);
    count(LEVELS.len() - 1, start, start.saturating_add(bytes.min(LONGEST)));
}

fn count(level: usize, start: u64, end: u64) {
    let bits = LEVELS[level];
    let (first, last) = match level {
        0 => (start >> bits << bits, end),
        _ => (start.next_multiple_of(1 << bits), end >> bits << bits),
    };
    if first >= last {
        if level > 0 {
            count(level - 1, start, end);
        }
        return;
    }
    for part in (first..last).step_by(1 << bits) {
        // Bytes have one owner at a time: nobody else counts here.
        let number = number(level, part);
        number.store(number.load(Relaxed).wrapping_add(1), Relaxed);
    }
    if level > 0 {
        count(level - 1, start, first);
        count(level - 1, last, end);
    }
}
