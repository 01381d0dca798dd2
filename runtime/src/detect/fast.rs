//! [`super::access::word`] for what nearly all accesses are: plain, within a word, under the happens-before detector. Says the
//! same, in fewer instructions.
//!
//! A thread's own epoch is in its own clock, so "ordered" is one comparison for its own cells and others'. Freed memory has the
//! granule of an epoch that nobody knows. Every other case goes to [`super::access::look_well`], which looks again from the
//! start.

use super::access::{self, How};
use super::local;
use super::places::{self, Place};
use super::shadow::{self, BYTES, CELLS, READ, REFERENCE_SHIFT};
use super::spans::{self, When};
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
    let own = unsafe { &mut *own };
    match places::known(own, site) {
        Place::Known(reference, memos) => known::<IS_READ, BYTES>(own, address, reference, memos),
        Place::New(reference) => known::<IS_READ, BYTES>(own, address, reference, NO_MEMOS),
        Place::Unknown => first::<IS_READ, BYTES>(address, site),
    }
}

/// Of a new reference nothing is remembered, nor yet to be: many places are come by once in a span only.
const NO_MEMOS: *mut Memos = core::ptr::null_mut();

/// The first access at a place in this span.
#[inline(never)]
fn first<const IS_READ: bool, const BYTES: u64>(address: u64, site: u64) {
    // SAFETY: called for a known thread that is not inside of the runtime.
    let runtime = unsafe { Runtime::enter() };
    runtime.with_own(|own| {
        local::cover_again(own);
        let reference = places::reference(own, site, false);
        if reference != 0 {
            known::<IS_READ, BYTES>(own, address, reference, NO_MEMOS);
        }
    });
}

/// An access with the reference that stands for it.
#[inline(always)]
pub fn with<const IS_READ: bool>(thread: &mut Own, address: u64, bytes: u64, reference: u32) {
    match bytes {
        1 => known::<IS_READ, 1>(thread, address, reference, NO_MEMOS),
        2 => known::<IS_READ, 2>(thread, address, reference, NO_MEMOS),
        4 => known::<IS_READ, 4>(thread, address, reference, NO_MEMOS),
        _ => known::<IS_READ, 8>(thread, address, reference, NO_MEMOS),
    }
}

#[inline(always)]
fn known<const IS_READ: bool, const BYTES: u64>(thread: &mut Own, address: u64, reference: u32, memos: *mut Memos) {
    if BYTES == 16 {
        in_word::<IS_READ, 8>(thread, address, reference, memos);
        in_word::<IS_READ, 8>(thread, address + 8, reference, memos);
    } else {
        in_word::<IS_READ, BYTES>(thread, address, reference, memos);
    }
}

#[inline(always)]
fn in_word<const IS_READ: bool, const BYTES: u64>(thread: &mut Own, address: u64, reference: u32, memos: *mut Memos) {
    if memos.is_null() {
        word_of::<IS_READ, BYTES>(thread, address, reference, None);
        return;
    }
    let cells = shadow::cells(address);
    let new = reference << REFERENCE_SHIFT | if IS_READ { READ } else { 0 } | bits_of(address, BYTES);
    // SAFETY: the thread's own, and inside; nobody else has it now.
    let memo = unsafe { &mut (*memos)[turn(address, BYTES)] };
    if memo.applies(cells, new) {
        memo.apply(thread, cells, address);
    } else {
        word_of::<IS_READ, BYTES>(thread, address, reference, Some(memo));
    }
}

/// [`shadow::byte_bits`] for constant lengths: all of a whole word's, whatever the address.
#[inline(always)]
fn bits_of(address: u64, bytes: u64) -> u32 {
    if bytes >= 8 { BYTES } else { shadow::byte_bits(address, bytes) }
}

#[inline(always)]
fn word_of<const IS_READ: bool, const LENGTH: u64>(
    thread: &mut Own,
    address: u64,
    reference: u32,
    memo: Option<&mut Memo>,
) -> bool {
    if LENGTH == 8 {
        word::<IS_READ, true>(thread, address, LENGTH, reference, memo)
    } else {
        word::<IS_READ, false>(thread, address, LENGTH, reference, memo)
    }
}

/// An access of any bytes that lie in one word. False: something was found, and looking at the words behind it would find the
/// same.
#[inline(always)]
pub fn within<const IS_READ: bool>(thread: &mut Own, address: u64, bytes: u64, reference: u32) -> bool {
    if bytes == 8 {
        word::<IS_READ, true>(thread, address, bytes, reference, None)
    } else {
        word::<IS_READ, false>(thread, address, bytes, reference, None)
    }
}

/// Which of the overlapping cells stand for what is ordered before the thread's accesses; of the others anything.
#[inline(always)]
fn ordered(thread: &Own, seen: &[u32; CELLS], overlapping: u32) -> u32 {
    let (times, slots) = thread.detect.clock.raw();
    let is_before = |when: When| {
        let slot = when.slot_atomic >> 1;
        let is_known = slot < slots;
        // SAFETY: below the clock's length, which is never 0: the thread's own slot is in it.
        let known = unsafe { *times.add(if is_known { slot as usize } else { 0 }) };
        is_known & (known >= when.epoch)
    };
    let is_known = |at: u32| u32::from(is_before(spans::no_later_than(seen[at as usize & 3] >> REFERENCE_SHIFT))) << (at & 3);
    // Nothing here depends on what is in a cell but values, as nobody could foretell a branch.
    let more = overlapping & overlapping.wrapping_sub(1);
    let mut ordered = if more & more.wrapping_sub(1) == 0 {
        // Two overlap, at most.
        is_known((overlapping | 1 << CELLS).trailing_zeros()) | is_known((more | 1 << CELLS).trailing_zeros())
    } else {
        is_known(0) | is_known(1) | is_known(2) | is_known(3)
    };
    // Of slabs that the thread knows in part.
    let mut unsure = overlapping & !ordered;
    while unsure != 0 {
        let at = unsure.trailing_zeros() as usize & 3;
        ordered |= u32::from(is_before(spans::when(seen[at] >> REFERENCE_SHIFT))) << at;
        unsure &= unsure - 1;
    }
    ordered
}

/// Looks at all cells.
#[inline(never)]
#[unsafe(link_section = "rashomon_hooks")]
fn word<const IS_READ: bool, const IS_WHOLE: bool>(
    thread: &mut Own,
    address: u64,
    length: u64,
    reference: u32,
    memo: Option<&mut Memo>,
) -> bool {
    let (cells, bits) = (shadow::cells(address), if IS_WHOLE { BYTES } else { shadow::byte_bits(address, length) });
    let new = reference << REFERENCE_SHIFT | if IS_READ { READ } else { 0 } | bits;
    // Before the cells: what is remembered of them may have changed its meaning right behind that.
    let meaning = spans::meaning();
    let all = shadow::look(cells);
    let seen = shadow::values(all);
    let bits_of_cells = |bits: u32| all_or_some(all, bits);
    let overlapping = bits_of_cells(bits).1;
    let reads = bits_of_cells(READ).1;
    let free = none(all);
    let own = thread.detect.of_window(all);
    let ordered = ordered(thread, &seen, overlapping);
    if overlapping & !ordered & !(if IS_READ { reads } else { 0 }) != 0 {
        return unusual(thread, address, length, IS_READ, reference);
    }
    let covering = overlapping & own & bits_of_cells(bits).0 & !(if IS_READ { 0 } else { reads });
    if covering != 0 {
        let at = covering.trailing_zeros() as usize & 3;
        recognise(thread, &cells[at], seen[at], reference);
        return true;
    }
    let mut whole = new;
    let mut place = 0;
    if !IS_WHOLE {
        // The same place did the same to other bytes of the word: one cell is enough for both. Of whole words such a cell would
        // be covering.
        place = equal(all, !BYTES, new);
        if place != 0 {
            whole |= seen[place.trailing_zeros() as usize & 3];
        }
    }
    // What all later accesses that race with it race with this one too.
    let inside = if IS_WHOLE { CELL_BITS } else { !all_or_some(all, BYTES & !whole).1 & CELL_BITS };
    let mut superfluous = overlapping & ordered & inside & !place & if IS_READ { reads } else { CELL_BITS };
    if place == 0 {
        place = superfluous & superfluous.wrapping_neg();
        superfluous &= !place;
    }
    thread.detected().counts.checked.add(1);
    if place == 0 {
        if free == 0 {
            access::add(thread, cells, new, address, CELLS);
            return true;
        }
        shadow::mark(address);
        place = free;
    }
    let memo_places = superfluous << 2 | place.trailing_zeros() & 3;
    let at = place.trailing_zeros() as usize & 3;
    if free != CELL_BITS {
        cells[at].store(whole, Relaxed);
    } else if let Err(old) = shadow::put_first(cells, whole) {
        return together(thread, address, length, IS_READ, reference, old);
    } else {
        // Not remembered: what was remembered is done without an exchange.
        return true;
    }
    while superfluous != 0 {
        cells[superfluous.trailing_zeros() as usize & 3].store(0, Relaxed);
        superfluous &= superfluous - 1;
    }
    let Some(memo) = memo else { return true };
    if memo.new == new {
        *memo = Memo { before: seen, new, meaning, places: memo_places, whole };
    } else {
        // The first time that it comes back.
        (memo.new, memo.before) = (new, [u32::MAX; CELLS]);
    }
    true
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
pub fn equal(cells: __m128i, selected: u32, value: u32) -> u32 {
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
fn together(thread: &mut Own, address: u64, bytes: u64, is_read: bool, reference: u32, overwritten: u32) -> bool {
    // SAFETY: as in `first`; guards nest.
    let _runtime = unsafe { Runtime::enter() };
    let how = if is_read { How::READ } else { How::WRITE };
    access::look_again(thread, address, bytes, how, reference, overwritten)
}

#[cold]
#[inline(never)]
fn unusual(thread: &mut Own, address: u64, bytes: u64, is_read: bool, reference: u32) -> bool {
    // SAFETY: as in `first`; guards nest.
    let _runtime = unsafe { Runtime::enter() };
    access::look_well(thread, address, bytes, if is_read { How::READ } else { How::WRITE }, reference)
}
