//! [`super::access::word`] for what nearly all accesses are: plain, within a word, under the happens-before detector. Says the
//! same, in fewer instructions.
//!
//! A thread's own epoch is in its own clock, so "ordered" is one comparison for its own cells and others'. Freed memory has the
//! granule of an epoch that nobody knows. Every other case goes to [`super::access::word`], which looks again from the
//! start.

use super::access::{self, How};
use super::local;
use super::shadow::{self, BYTES, CELLS, READ, REFERENCE_SHIFT};
use super::spans::{self, GRANULE, When};
use crate::detect::own::Own;
use crate::system::thread::Runtime;
use core::arch::x86_64::{
    __m128i, _mm_and_si128, _mm_castsi128_ps, _mm_cmpeq_epi32, _mm_load_si128, _mm_movemask_epi8, _mm_movemask_ps, _mm_set1_epi32,
};
use core::sync::atomic::{AtomicU32, Ordering::*};

/// Loops find the same four cells in word after word. What was done with them is remembered for each place of the program, and
/// done again without looking at what the cells stand for: what was ordered stays ordered, and nothing else is remembered.
#[derive(Clone, Copy)]
#[repr(C, align(16))]
pub struct Memo {
    before: [u32; CELLS],
    new: u32,
    /// [`spans::meaning`] when it was made.
    meaning: u32,
    /// The cell written, and above it a bit for each one that became superfluous.
    places: u32,
    whole: u32,
}

impl Memo {
    /// Whether this is what is found, and nothing changed its meaning.
    #[inline(always)]
    fn applies(&self, cells: &[AtomicU32; CELLS], new: u32) -> bool {
        // SAFETY: SSE2 is part of x86-64; both are aligned to 16. Other threads may write cells: each is read once, whole.
        let same = unsafe {
            let (all, before) = (_mm_load_si128(cells.as_ptr().cast()), _mm_load_si128(self.before.as_ptr().cast()));
            _mm_movemask_epi8(_mm_cmpeq_epi32(all, before))
        };
        // The meaning is read after the cells.
        same == 0xffff && self.new == new && self.meaning == spans::meaning()
    }

    #[inline(always)]
    fn apply(&self, thread: &mut Own, cells: &[AtomicU32; CELLS], address: u64) {
        thread.detected().counts.checked.add(1);
        shadow::mark(address);
        let mut superfluous = self.places >> 2;
        while superfluous != 0 {
            cells[superfluous.trailing_zeros() as usize & 3].store(0, Relaxed);
            superfluous &= superfluous - 1;
        }
        cells[self.places as usize & 3].store(self.whole, Relaxed);
    }
}

/// Of one reference, for places in a word.
pub type Memos = [Memo; 4];

/// Words of an array are taken in turn, and so are the parts of a word.
#[inline(always)]
const fn turn(address: u64, bytes: u64) -> usize {
    (address >> bytes.trailing_zeros()) as usize & if bytes < 4 { 3 } else { 1 }
}

/// An access at `site` of `BYTES` bytes that do not leave their word, or are two words. Without a guard of the runtime, where the
/// place is known: it is as short as a hook, and lies among them.
#[inline(always)]
///
/// # Safety
/// The calling thread's, to which nobody has a reference.
pub unsafe fn plain<const IS_READ: bool, const BYTES: u64>(own: *mut Own, address: u64, site: u64) {
    // SAFETY: by the contract, here and below.
    match local::known(unsafe { &mut *own }, site) {
        // SAFETY: as above.
        Some((reference, memos)) => known::<IS_READ, BYTES, false>(unsafe { &mut *own }, address, reference, memos),
        None => first::<IS_READ, BYTES>(address, site),
    }
}

/// The first access at a place in this span.
#[inline(never)]
fn first<const IS_READ: bool, const BYTES: u64>(address: u64, site: u64) {
    // SAFETY: called for a known thread that is not inside of the runtime.
    let runtime = unsafe { Runtime::enter() };
    runtime.with_own(|own| {
        let (reference, memos) = local::known_or_new(own, site);
        if reference != 0 {
            known::<IS_READ, BYTES, true>(own, address, reference, memos);
        }
    });
}

/// An access with the reference that stands for it.
#[inline(always)]
pub fn with<const IS_READ: bool>(thread: &mut Own, address: u64, bytes: u64, reference: u32) {
    let memos = thread.detect.any_memos();
    match bytes {
        1 => known::<IS_READ, 1, true>(thread, address, reference, memos),
        2 => known::<IS_READ, 2, true>(thread, address, reference, memos),
        4 => known::<IS_READ, 4, true>(thread, address, reference, memos),
        _ => known::<IS_READ, 8, true>(thread, address, reference, memos),
    }
}

/// `FRESH`: the reference is new, so that nothing is remembered of it.
#[inline(always)]
fn known<const IS_READ: bool, const BYTES: u64, const FRESH: bool>(
    thread: &mut Own,
    address: u64,
    reference: u32,
    memos: *mut Memos,
) {
    if BYTES == 16 {
        in_word::<IS_READ, 8, FRESH>(thread, address, reference, memos);
        in_word::<IS_READ, 8, FRESH>(thread, address + 8, reference, memos);
    } else {
        in_word::<IS_READ, BYTES, FRESH>(thread, address, reference, memos);
    }
}

#[inline(always)]
fn in_word<const IS_READ: bool, const BYTES: u64, const FRESH: bool>(
    thread: &mut Own,
    address: u64,
    reference: u32,
    memos: *mut Memos,
) {
    let cells = shadow::cells(address);
    let new = reference << REFERENCE_SHIFT | if IS_READ { READ } else { 0 } | bits_of(address, BYTES);
    // SAFETY: the thread's own, and inside; nobody else has it now.
    let memo = unsafe { &mut (*memos)[turn(address, BYTES)] };
    if !FRESH && memo.applies(cells, new) {
        memo.apply(thread, cells, address);
    } else {
        word::<IS_READ, BYTES>(thread, address, reference, memo);
    }
}

/// [`shadow::byte_bits`] for constant lengths: all of a whole word's, whatever the address.
#[inline(always)]
fn bits_of(address: u64, bytes: u64) -> u32 {
    if bytes >= 8 { BYTES } else { shadow::byte_bits(address, bytes) }
}

/// Looks at all cells.
#[inline(never)]
#[unsafe(link_section = "rashomon_hooks")]
fn word<const IS_READ: bool, const LENGTH: u64>(thread: &mut Own, address: u64, reference: u32, memo: &mut Memo) {
    let (cells, bits) = (shadow::cells(address), bits_of(address, LENGTH));
    let whens = spans::whens();
    let current = When { epoch: thread.detected().epoch.get(), slot_atomic: thread.detected().slot.get() << 1 };
    let (times, slots) = thread.detect.clock.raw();
    let new = reference << REFERENCE_SHIFT | if IS_READ { READ } else { 0 } | bits;
    let all = shadow::look(cells);
    let seen = shadow::values(all);
    let meaning = spans::meaning();
    // All four, whether they overlap or not: nothing here depends on what is in a cell but values.
    let (mut ordered, mut own) = (0, 0);
    for (at, cell) in seen.into_iter().enumerate() {
        // SAFETY: inside the table, whatever the cell.
        let when = unsafe { *whens.add((cell >> (REFERENCE_SHIFT + GRANULE.trailing_zeros())) as usize) };
        let slot = when.slot_atomic >> 1;
        let is_known = slot < slots;
        // SAFETY: below the clock's length, which is never 0: the thread's own slot is in it.
        let known = unsafe { *times.add(if is_known { slot as usize } else { 0 }) };
        ordered |= u32::from(is_known & (known >= when.epoch)) << at;
        own |= u32::from(when == current) << at;
    }
    let bits_of_cells = |bits: u32| all_or_some(all, bits);
    let overlapping = bits_of_cells(bits).1;
    let reads = bits_of_cells(READ).1;
    let free = none(all);
    if overlapping & !ordered & !(if IS_READ { reads } else { 0 }) != 0 {
        return unusual(thread, address, LENGTH, IS_READ, reference);
    }
    let covering = overlapping & own & bits_of_cells(bits).0 & !(if IS_READ { 0 } else { reads });
    if covering != 0 {
        let at = covering.trailing_zeros() as usize & 3;
        return recognise(thread, &cells[at], seen[at], reference);
    }
    let mut whole = new;
    let mut place = 0;
    if LENGTH < 8 {
        // The same place did the same to other bytes of the word: one cell is enough for both. Of whole words such a cell would
        // be covering.
        place = equal(all, !BYTES, new);
        if place != 0 {
            whole |= seen[place.trailing_zeros() as usize & 3];
        }
    }
    // What all later accesses that race with it race with this one too.
    let inside = if LENGTH >= 8 { CELL_BITS } else { !all_or_some(all, BYTES & !whole).1 & CELL_BITS };
    let mut superfluous = overlapping & ordered & inside & !place & if IS_READ { reads } else { CELL_BITS };
    if place == 0 {
        place = superfluous & superfluous.wrapping_neg();
        superfluous &= !place;
    }
    thread.detected().counts.checked.add(1);
    if place == 0 {
        if free == 0 {
            return access::add(thread, cells, new, address, CELLS);
        }
        shadow::mark(address);
        place = free;
    }
    let memo_places = superfluous << 2 | place.trailing_zeros() & 3;
    let at = place.trailing_zeros() as usize & 3;
    if free != CELL_BITS {
        cells[at].store(whole, Relaxed);
    } else if let Err(old) = shadow::put_first(cells, whole) {
        return together(thread, address, LENGTH, IS_READ, reference, old);
    }
    while superfluous != 0 {
        cells[superfluous.trailing_zeros() as usize & 3].store(0, Relaxed);
        superfluous &= superfluous - 1;
    }
    if memo.new == new {
        *memo = Memo { before: seen, new, meaning, places: memo_places, whole };
    } else {
        // Many places are come by once in a span only.
        (memo.new, memo.before) = (new, [u32::MAX; CELLS]);
    }
}

/// A bit for each cell.
const CELL_BITS: u32 = (1 << CELLS) - 1;

/// Cells that have all of the bits, and those that have some.
#[inline(always)]
fn all_or_some(cells: __m128i, bits: u32) -> (u32, u32) {
    // SAFETY: SSE2 is part of x86-64.
    let masked = unsafe { _mm_and_si128(cells, _mm_set1_epi32(bits as i32)) };
    (equal(masked, u32::MAX, bits), !none(masked) & CELL_BITS)
}

/// Cells that are 0.
#[inline(always)]
fn none(cells: __m128i) -> u32 {
    equal(cells, u32::MAX, 0)
}

/// Cells whose `selected` bits are those of `value`.
#[inline(always)]
fn equal(cells: __m128i, selected: u32, value: u32) -> u32 {
    // SAFETY: SSE2 is part of x86-64.
    unsafe {
        let masked = _mm_and_si128(cells, _mm_set1_epi32(selected as i32));
        _mm_movemask_ps(_mm_castsi128_ps(_mm_cmpeq_epi32(masked, _mm_set1_epi32((value & selected) as i32)))) as u32
    }
}

/// A cell of the current span covers the access already; the hooks are to see that next time.
#[inline(always)]
fn recognise(thread: &Own, cell: &AtomicU32, seen: u32, reference: u32) {
    if !local::is_covering(thread, seen >> REFERENCE_SHIFT) {
        cell.store(reference << REFERENCE_SHIFT | seen & (READ | BYTES), Relaxed);
    }
}

/// Two threads came here at the same moment.
#[cold]
#[inline(never)]
fn together(thread: &mut Own, address: u64, bytes: u64, is_read: bool, reference: u32, overwritten: u32) {
    // SAFETY: as in `first`; guards nest.
    let _runtime = unsafe { Runtime::enter() };
    let how = if is_read { How::READ } else { How::WRITE };
    access::look_again(thread, address, bytes, how, reference, overwritten);
}

#[cold]
#[inline(never)]
fn unusual(thread: &mut Own, address: u64, bytes: u64, is_read: bool, reference: u32) {
    // SAFETY: as in `first`; guards nest.
    let _runtime = unsafe { Runtime::enter() };
    access::word(thread, address, bytes, if is_read { How::READ } else { How::WRITE }, reference);
}
