//! An access that the hooks did not recognise: is it ordered behind what was seen of its bytes?
//!
//! FastTrack's question (Flanagan, Freund: "FastTrack: Efficient and Precise Dynamic Race Detection", PLDI 2009) asked of several
//! cells instead of one last write and the reads since: an access races with a cell's when their bytes overlap, one writes, not
//! both are atomic, they belong to different threads, and the cell's epoch is beyond what the accessing thread knows of its slot.
//! For the *hybrid*, clocks leave out lock edges, and a race is one only if no common lock protects both.
//!
//! A cell gives way to a later access that is ordered behind it, covers its bytes and races with whatever it would: a later write
//! for everything, a later read for reads, an atomic access for atomic ones only; for the hybrid the later one must not hold more
//! locks.

use super::local::{self, Local};
use super::locksets;
use super::shadow::{self, BYTES, CELLS, READ, REFERENCE_SHIFT};
use super::spans::{self, Granule};
use super::{Detector, detector, eraser, fast, found, places, ranges};
use crate::detect::own::Own;
use core::sync::atomic::{AtomicU32, Ordering::*};
use rashomon_logic::cells::{Kind, covers, encode};
use rashomon_logic::clocks;

/// How memory is accessed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct How {
    pub read: bool,
    pub atomic: bool,
    /// The memory's life ends with it.
    pub frees: bool,
    /// Of an object's pointer to its virtual functions.
    pub vptr: bool,
}

impl How {
    pub const READ: Self = Self { read: true, atomic: false, frees: false, vptr: false };
    pub const WRITE: Self = Self { read: false, atomic: false, frees: false, vptr: false };
    pub const VPTR_READ: Self = Self { read: true, atomic: false, frees: false, vptr: true };
    pub const VPTR_WRITE: Self = Self { read: false, atomic: false, frees: false, vptr: true };
    pub const FREE: Self = Self { read: false, atomic: false, frees: true, vptr: false };
    pub const fn atomic(read: bool) -> Self {
        Self { read, atomic: true, frees: false, vptr: false }
    }
    const fn kind(self) -> Kind {
        Kind { read: self.read, atomic: self.atomic }
    }
}

/// An access of any bytes, by a thread whose accesses count.
pub fn access(thread: &mut Own, address: u64, bytes: u64, how: How, site: u64) {
    if bytes > 0 {
        let reference = places::reference(thread, site, how.atomic);
        access_as(thread, address, bytes, how, reference);
    }
}

/// The same with the reference that stands for the access; 0: there is none left.
pub fn access_as(thread: &mut Own, address: u64, bytes: u64, how: How, reference: u32) {
    if reference == 0 {
        return;
    }
    ranges::access(thread, address, bytes, how, reference);
}

/// Whether what a granule stands for is ordered before what the thread does now.
#[inline(always)]
fn is_ordered(local: &Local, slot: u32, granule: &Granule) -> bool {
    clocks::is_ordered(granule.slot(), granule.epoch(), slot, |slot| local.clock.get(slot))
}

#[inline(always)]
fn kind_of(cell: u32, granule: &Granule) -> Kind {
    Kind { read: cell & READ != 0, atomic: granule.is_atomic() }
}

/// Whether this thread's access of these bytes races with the one that a cell stands for, which is not ordered before it.
fn races(thread: &Own, cell: u32, granule: &Granule, bits: u32, how: How) -> bool {
    let local = &thread.detect;
    let protected = || detector() == Detector::Hybrid && locksets::protects(granule.lock_set, local.lock_set);
    cell & bits != 0
        && !is_ordered(local, thread.detected().slot.get(), granule)
        && kind_of(cell, granule).conflicts(how.kind())
        && !protected()
}

/// How often a word is looked at while other threads change it.
const LOOKS: u32 = 16;

/// An access within one word. False: something was found, and looking at the words behind it would find the same.
#[inline(always)]
pub fn word(thread: &mut Own, address: u64, bytes: u64, how: How, reference: u32) -> bool {
    if detector() == Detector::LockSet {
        return eraser::word(thread, address, bytes, how, reference);
    }
    if detector() == Detector::HappensBefore && !how.atomic && !how.frees && !how.vptr {
        return match how.read {
            true => fast::within::<true>(thread, address, bytes, reference),
            false => fast::within::<false>(thread, address, bytes, reference),
        };
    }
    look_well(thread, address, bytes, how, reference)
}

/// The same under any detector that knows time.
pub fn look_well(thread: &mut Own, address: u64, bytes: u64, how: How, reference: u32) -> bool {
    for _ in 1..LOOKS {
        if let Some(quiet) = look(thread, address, bytes, how, reference, false) {
            return quiet;
        }
    }
    look(thread, address, bytes, how, reference, true).unwrap_or(true)
}

/// What becomes of a word at an access: a function of its cells and of what the thread knows.
pub enum Fate {
    /// An access of this span stands for the new one. This cell of it, if it is one, is not recognised the next time: by the
    /// hooks, or where it is atomic by [`super::atomics`].
    Covered { unknown: usize },
    /// The new cell goes where `at` says, or where there is room. It stands for the cells of `superfluous`, too.
    New { at: usize, superfluous: u32 },
    /// It belongs to memory that was freed.
    Freed,
    /// It races with what a cell stands for. The new cell goes where `at` says.
    Race { cell: usize, granule: Granule, at: usize },
}

/// `skipped`: cells that are left out.
#[inline(always)]
pub fn fate(thread: &Own, seen: &[u32; CELLS], skipped: u32, bits: u32, how: How) -> Fate {
    let hybrid = detector() == Detector::Hybrid;
    let (slot, epoch) = (thread.detected().slot.get(), thread.detected().epoch.get());
    let local = &thread.detect;
    let (mut place, mut free, mut superfluous) = (CELLS, CELLS, 0u32);
    for (at, &cell) in seen.iter().enumerate() {
        if cell == 0 {
            free = free.min(at);
            continue;
        }
        if cell & bits == 0 || skipped >> at & 1 != 0 {
            continue;
        }
        let old = cell >> REFERENCE_SHIFT;
        if old == spans::FREED {
            return Fate::Freed;
        }
        // Of plain accesses all that is asked of what is ordered is what the cell says.
        if !hybrid
            && !how.atomic
            && let Some(bound) = spans::bound(old)
            && (bound.slot_atomic >> 1 == slot || local.clock.get(bound.slot_atomic >> 1) >= bound.epoch)
        {
            if (!how.read || cell & READ != 0) && covers(bits, cell) {
                if place < CELLS {
                    superfluous |= 1 << at;
                } else {
                    place = at;
                }
            }
            continue;
        }
        let granule = spans::granule(old);
        if is_ordered(local, slot, &granule) {
            let kind = kind_of(cell, &granule);
            let mine = granule.slot() == slot && granule.epoch() == epoch;
            if mine && kind.stands_for(how.kind()) && covers(cell, bits) && (!hybrid || granule.lock_set == local.lock_set) {
                let known = if how.atomic { !granule.is_atomic() } else { local::is_covering(thread, old) };
                return Fate::Covered { unknown: if known { CELLS } else { at } };
            }
            if how.kind().stands_for(kind)
                && covers(bits, cell)
                && (!hybrid || locksets::is_subset(local.lock_set, granule.lock_set))
            {
                if place < CELLS {
                    superfluous |= 1 << at;
                } else {
                    place = at;
                }
            }
            continue;
        }
        if races(thread, cell, &granule, bits, how) {
            return Fate::Race { cell: at, granule, at: if place < CELLS { place } else { free } };
        }
    }
    Fate::New { at: if place < CELLS { place } else { free }, superfluous }
}

/// A cell that is recognised, for the bytes of one that is not.
#[inline(always)]
pub fn recognised(new: u32, cell: u32) -> u32 {
    new & !(READ | BYTES) | cell & (READ | BYTES)
}

/// The same, unless it changes while it is looked at, and this is not the `last` look.
#[inline(always)]
fn look(thread: &mut Own, address: u64, bytes: u64, how: How, reference: u32, last: bool) -> Option<bool> {
    let cells = shadow::cells(address);
    let bits = shadow::byte_bits(address, bytes);
    let new = encode(reference, how.read, bits);
    let seen = shadow::values(shadow::look(cells));
    let mut skipped = 0;
    loop {
        match fate(thread, &seen, skipped, bits, how) {
            Fate::Freed => return Some(found::use_after_free(thread, address, bytes, how, reference)),
            Fate::Covered { unknown } => {
                if unknown < CELLS && recognised(new, seen[unknown]) != seen[unknown] {
                    cells[unknown].store(recognised(new, seen[unknown]), Relaxed);
                }
                return Some(true);
            }
            Fate::Race { cell, granule, at } => {
                if cells[cell].load(Relaxed) == seen[cell] {
                    store(thread, cells, new, address, at);
                    found::race(thread, address, bytes, how, reference, seen[cell], granule);
                    return Some(false);
                }
                // Overwritten or swept while it was looked at: what was read of it need not belong together, and what is there
                // now may race as well.
                if !last {
                    return None;
                }
                skipped |= 1 << cell;
            }
            Fate::New { .. } if seen == [0; CELLS] => {
                thread.detected().counts.checked.add(1);
                shadow::mark(address);
                return Some(match shadow::put_first(cells, new) {
                    Ok(()) => true,
                    Err(old) => look_again(thread, address, bytes, how, reference, old),
                });
            }
            Fate::New { at, mut superfluous } => {
                store(thread, cells, new, address, at);
                while superfluous != 0 {
                    cells[superfluous.trailing_zeros() as usize & 3].store(0, Relaxed);
                    superfluous &= superfluous - 1;
                }
                return Some(true);
            }
        }
    }
}

/// Another thread put an access into the word while this one was about to, whose cell is there now. `overwritten`: what that took
/// the place of unseen, if it is not 0.
#[cold]
#[inline(never)]
pub fn look_again(thread: &mut Own, address: u64, bytes: u64, how: How, reference: u32, overwritten: u32) -> bool {
    let cells = shadow::cells(address);
    let bits = shadow::byte_bits(address, bytes);
    for _ in 0..LOOKS {
        let seen = shadow::values(shadow::look(cells));
        for cell in seen.into_iter().chain([overwritten]).filter(|cell| cell >> REFERENCE_SHIFT > spans::FREED) {
            let granule = spans::granule(cell >> REFERENCE_SHIFT);
            // What was overwritten a moment ago is of a span that its thread is still in; of others it has to be there still.
            let valid = || cell == overwritten || shadow::values(shadow::look(cells)).contains(&cell);
            if races(thread, cell, &granule, bits, how) && valid() {
                found::race(thread, address, bytes, how, reference, cell, granule);
                return false;
            }
        }
        if shadow::values(shadow::look(cells)) == seen {
            break;
        }
    }
    if overwritten != 0 {
        let free = cells.iter().position(|cell| cell.load(Relaxed) == 0);
        add(thread, cells, overwritten, address, free.unwrap_or(CELLS));
    }
    true
}

/// Into a place whatever is there, or where there is one.
fn store(thread: &mut Own, cells: &[AtomicU32; CELLS], new: u32, address: u64, at: usize) {
    thread.detected().counts.checked.add(1);
    add(thread, cells, new, address, at);
}

/// A cell that no cell gives way to: into the free one, together with one of the same reference for other bytes, or in the place
/// of any.
pub fn add(thread: &mut Own, cells: &[AtomicU32; CELLS], new: u32, address: u64, free: usize) {
    let mut at = free;
    if free >= CELLS {
        for cell in cells {
            let known = cell.load(Relaxed);
            if (known ^ new) & !BYTES == 0 {
                cell.store(known | new, Relaxed);
                return;
            }
        }
        at = thread.detect.random() as usize % CELLS;
    }
    shadow::mark(address);
    cells[at].store(new, Relaxed);
}

/// Writes a whole range without asking: memory that nobody else can know yet.
pub fn imitate_write(thread: &mut Own, address: u64, bytes: u64, site: u64) {
    let reference = places::reference_of_call(thread, site, false);
    if reference == 0 {
        // Nobody can be named; but what was here before, perhaps a block that was freed, is gone all the same.
        shadow::clear(address, bytes);
        return;
    }
    let keeps = detector() != Detector::LockSet;
    ranges::put_all(address, bytes, |bits| [if keeps { reference << REFERENCE_SHIFT | bits } else { 0 }, 0, 0, 0]);
}

/// Bytes at the begin of a freed block that remember that they were freed.
const FREED_BYTES: u64 = 1024;

/// A block's life ends: is that ordered behind all accesses to it? Whoever touches it from now on uses it after it was freed.
pub fn free(thread: &mut Own, address: u64, bytes: u64, site: u64) {
    ends(thread, address, bytes, site, true);
}

/// The same by somebody who orders it where nobody sees it.
pub fn free_unchecked(thread: &mut Own, address: u64, bytes: u64, site: u64) {
    ends(thread, address, bytes, site, false);
}

fn ends(thread: &mut Own, address: u64, bytes: u64, site: u64, checked: bool) {
    let reference = places::reference_of_call(thread, site, false);
    if reference == 0 {
        return;
    }
    let from = address & !7;
    let end = (address + bytes.min(FREED_BYTES)).next_multiple_of(8);
    if checked {
        ranges::access(thread, from, end - from, How::FREE, reference);
    }
    if detector() != Detector::LockSet {
        // The second one has no bytes: it must not look like an access that covers another.
        let (freed, by) = (spans::FREED << REFERENCE_SHIFT | BYTES, reference << REFERENCE_SHIFT);
        ranges::put_all(from, end - from, |_| [freed, by, 0, 0]);
    }
}

/// A mapping's life ends, as that of a block does; nobody can come there any more. One race of it is told.
pub fn unmap(thread: &mut Own, address: u64, bytes: u64, site: u64) {
    let reference = places::reference_of_call(thread, site, false);
    if reference == 0 || detector() == Detector::LockSet {
        return;
    }
    let mut parts = shadow::MarkedParts::of(address, bytes);
    while let Some((from, to)) = parts.next() {
        for at in (from..to).step_by(8) {
            if shadow::has_any(shadow::cells(at)) && !word(thread, at, 8, How::WRITE, reference) {
                return;
            }
        }
    }
}

/// The word at an address belongs to memory that was freed.
pub fn is_freed(address: u64) -> bool {
    shadow::cells(address)[0].load(Relaxed) >> REFERENCE_SHIFT == spans::FREED
}

/// The cell that says who freed a word.
pub fn freed_by(address: u64) -> Option<(u32, Granule)> {
    let cell = shadow::cells(address)[1].load(Relaxed);
    let reference = cell >> REFERENCE_SHIFT;
    (reference > spans::FREED).then(|| (cell, spans::granule(reference)))
}
