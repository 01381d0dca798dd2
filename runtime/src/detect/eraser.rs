//! The lock set detector: does some lock protect every access to a variable?
//!
//! Savage, Burrows, Nelson, Sobalvarro, Anderson: "Eraser: A Dynamic Data Race Detector for Multithreaded Programs", TOCS 1997,
//! Figure 4: virgin → exclusive (one thread) → shared (others read) or shared-modified (others access, somebody writes). The
//! candidate set C(v) begins with the locks of the first access by a second thread and shrinks to what each later one holds; an
//! empty set of a shared-modified variable is reported, once. Locks held shared protect reads only (§2.3).
//!
//! A *variable* is four aligned bytes, and takes two of its word's cells:
//!
//! ```text
//! the latest access, as a cell of shadow.rs | state:2 | candidate set:22 | 0:8
//! ```
//! The hooks skip an access that the latest one was like: same thread, same lock set, not stronger. Nothing happened to the
//! variable in between, so it changes nothing. Deviations: (1) threads that are joined end their ownership, as in later versions
//! of Eraser: an exclusive variable whose owner's accesses all happened before moves on to the next owner; (2) freed and newly
//! allocated memory is virgin again; (3) atomic accesses are left out: they need no lock. Limit: 2^22 lock sets; further ones
//! count as empty.

use super::access::How;
use super::locksets;
use super::shadow::{self, BYTES, READ, REFERENCE_SHIFT};
use super::{found, spans};
use crate::detect::own::Own;
use core::sync::atomic::Ordering::*;

const EXCLUSIVE: u32 = 1;
const SHARED: u32 = 2;
const MODIFIED: u32 = 3;
const STATE_SHIFT: u32 = 30;
const SET_SHIFT: u32 = 8;
const SET: u32 = (1 << 22) - 1;
/// A candidate set that was reported.
const REPORTED: u32 = SET;

/// The locks that protect an access: for a write those held exclusively.
fn protecting(thread: &Own, read: bool) -> u32 {
    let mut set = thread.detect.lock_set;
    if !read {
        for &element in locksets::elements(set) {
            if element & 1 != 0 {
                set = locksets::changed(set, element, false);
            }
        }
    }
    if set >= REPORTED { locksets::EMPTY } else { set }
}

pub fn word(thread: &mut Own, address: u64, bytes: u64, how: How, reference: u32) -> bool {
    if how.atomic {
        return true;
    }
    thread.detected().counts.checked.add(1);
    let mut at = address;
    let mut quiet = true;
    while at < address + bytes {
        let stop = (address + bytes).min((at & !3) + 4);
        quiet &= variable(thread, at, stop - at, how, reference);
        at = stop;
    }
    if bytes == 8 && quiet {
        // For the hooks, which look for one cell that covers all bytes.
        let cells = shadow::cells(address);
        for cell in [&cells[0], &cells[2]] {
            let latest = cell.load(Relaxed);
            if latest >> REFERENCE_SHIFT == reference {
                cell.store(latest | BYTES, Relaxed);
            }
        }
    }
    quiet
}

fn variable(thread: &mut Own, address: u64, bytes: u64, how: How, reference: u32) -> bool {
    let cells = shadow::cells(address);
    let first = (address as usize >> 2 & 1) * 2;
    let (latest, state_cell) = (&cells[first], &cells[first + 1]);
    let old = latest.load(Relaxed);
    let state = state_cell.load(Relaxed);
    let new = reference << REFERENCE_SHIFT | if how.read { READ } else { 0 } | shadow::byte_bits(address, bytes);
    shadow::mark(address);
    // The same place in the same span did the same to another byte of the variable.
    let own_bytes = 0xf << (first * 2);
    let merged = if (old ^ new) & !BYTES == 0 { new | old & own_bytes } else { new };
    latest.store(merged, Relaxed);
    // What covered the whole word covers the other half only from now on.
    let other = &cells[first ^ 2];
    let others = other.load(Relaxed);
    if others & own_bytes != 0 {
        other.store(others & !own_bytes, Relaxed);
    }
    if old == 0 || how.frees {
        state_cell.store(EXCLUSIVE << STATE_SHIFT, Relaxed);
        return true;
    }
    let granule = spans::granule(old >> REFERENCE_SHIFT);
    let own = granule.slot() == thread.detected().slot.get();
    let (kind, candidates) = (state >> STATE_SHIFT, state >> SET_SHIFT & SET);
    let next = match kind {
        // A cell that was swept, or the variable's first access by a second thread.
        0 | EXCLUSIVE => {
            if own || thread.detect.clock.get(granule.slot()) >= granule.epoch() {
                EXCLUSIVE << STATE_SHIFT
            } else {
                let kind = if how.read { SHARED } else { MODIFIED };
                kind << STATE_SHIFT | protecting(thread, how.read) << SET_SHIFT
            }
        }
        _ => {
            let kind = if how.read { kind } else { MODIFIED };
            let set = if candidates == REPORTED {
                REPORTED
            } else {
                locksets::intersection(candidates, protecting(thread, how.read)).min(SET)
            };
            kind << STATE_SHIFT | set << SET_SHIFT
        }
    };
    state_cell.store(next, Relaxed);
    if next >> STATE_SHIFT != MODIFIED || next >> SET_SHIFT & SET != locksets::EMPTY {
        return true;
    }
    if latest.load(Relaxed) != merged {
        return true;
    }
    state_cell.store(next | REPORTED << SET_SHIFT, Relaxed);
    found::race(thread, address, bytes, how, reference, old, granule);
    false
}
