//! What was found goes to the report, once per pair of places.

use super::access::{self, How};
use super::shadow::{self, BYTES, READ, REFERENCE_SHIFT};
use super::spans::{self, Granule};
use super::stacks::{self, StackId};
use super::{local, locksets, sides};
use crate::detect::own::Own;
use crate::report::options;
use crate::system::lock::RawLock;
use crate::system::memory::{List, Map};
use core::sync::atomic::{AtomicU64, Ordering::*};

pub static LOCK: RawLock = RawLock::new();
static mut KNOWN: Map = Map::new();
/// Bytes with a race, from and to.
static mut PLACES: List<(u64, u64)> = List::new();
pub static RACES: AtomicU64 = AtomicU64::new(0);

/// One side of a finding.
#[derive(Clone, Copy)]
pub struct Side {
    pub thread: u32,
    pub address: u64,
    pub bytes: u64,
    pub write: bool,
    pub atomic: bool,
    /// It ended the memory's life.
    pub frees: bool,
    pub vptr: bool,
    pub stack: StackId,
    pub lock_set: locksets::LockSet,
}

/// Whether this pair of places was not found before.
fn is_new(a: StackId, b: StackId) -> bool {
    if !options::get().suppress_equal_stacks {
        return true;
    }
    let (a, b) = (stacks::innermost(a), stacks::innermost(b));
    let known = &raw mut KNOWN;
    LOCK.with(|| {
        // SAFETY: under the lock.
        let entry = unsafe { (*known).entry((a.min(b), a.max(b) | 1 << 63)) };
        core::mem::replace(entry, 1) == 0
    })
}

fn previous(address: u64, cell: u32, granule: Granule, frees: bool) -> Side {
    let bits = cell & BYTES;
    Side {
        thread: granule.thread,
        address: (address & !7) + bits.trailing_zeros() as u64,
        bytes: bits.count_ones() as u64,
        write: cell & READ == 0,
        atomic: granule.is_atomic(),
        frees,
        vptr: false,
        stack: spans::stack(cell >> REFERENCE_SHIFT),
        lock_set: granule.lock_set,
    }
}

fn current(thread: &Own, address: u64, bytes: u64, how: How, reference: u32) -> Side {
    Side {
        thread: thread.number.get(),
        address,
        bytes,
        write: !how.read,
        atomic: how.atomic,
        frees: how.frees,
        vptr: how.vptr,
        stack: spans::stack(reference),
        lock_set: thread.detect.lock_set,
    }
}

/// Whether no race was found on these bytes before, where the user wants to know of one only.
fn is_new_place(address: u64, bytes: u64) -> bool {
    if !options::get().suppress_equal_addresses {
        return true;
    }
    let places = &raw mut PLACES;
    LOCK.with(|| {
        // SAFETY: under the lock.
        let places = unsafe { &mut *places };
        let known = places.as_slice().iter().any(|&(start, end)| start < address + bytes && address < end);
        if !known {
            places.push((address, address + bytes));
        }
        !known
    })
}

/// Two accesses that nothing orders.
#[cold]
#[inline(never)]
pub fn race(thread: &mut Own, address: u64, bytes: u64, how: How, reference: u32, cell: u32, granule: Granule) {
    let (now, before) = (current(thread, address, bytes, how, reference), previous(address, cell, granule, false));
    if is_new(now.stack, before.stack) && is_new_place(address, bytes) {
        RACES.fetch_add(1, Relaxed);
        sides::found(&now, &before, local::slept_since(thread, granule.when));
    }
}

/// A lock is destroyed, or its memory freed, where nothing orders that behind its last release.
#[cold]
#[inline(never)]
pub fn destroyed_in_use(thread: &mut Own, address: u64, reference: u32, number: u32, unlocked_at: StackId) {
    let now = current(thread, address, 1, How::FREE, reference);
    let before = Side {
        thread: number,
        address,
        bytes: 1,
        write: false,
        atomic: true,
        vptr: false,
        frees: false,
        stack: unlocked_at,
        lock_set: locksets::EMPTY,
    };
    if is_new(now.stack, before.stack) {
        RACES.fetch_add(1, Relaxed);
        sides::found(&now, &before, 0);
    }
}

/// A call on a descriptor, and the close behind which it came, where nothing orders the two. `slept`: see [`sides::found`].
#[cold]
#[inline(never)]
pub fn behind_a_close(now: &Side, before: &Side, slept: StackId) {
    if is_new(now.stack, before.stack) && is_new_place(now.address, now.bytes) {
        RACES.fetch_add(1, Relaxed);
        sides::found(now, before, slept);
    }
}

/// An access to memory that was freed, whoever did it. Always false.
#[cold]
#[inline(never)]
pub fn use_after_free(thread: &mut Own, address: u64, bytes: u64, how: How, reference: u32) -> bool {
    let now = current(thread, address, bytes, how, reference);
    // Said once for each word.
    let freed = access::freed_by(address);
    for cell in shadow::cells(address) {
        cell.store(0, Relaxed);
    }
    if let Some((cell, granule)) = freed {
        let before = previous(address, cell | BYTES, granule, true);
        if is_new(now.stack, before.stack) {
            RACES.fetch_add(1, Relaxed);
            sides::found(&now, &before, 0);
        }
    }
    false
}
