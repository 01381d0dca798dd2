//! [`super::access::word`] for what nearly all accesses are: plain, within a word, under the happens-before detector. Says the same, in fewer instructions.
//!
//! A thread's own epoch is in its own clock, so "ordered" is one comparison for its own cells and others'. Freed memory has the granule of an epoch that nobody
//! knows. Whatever is not plain sailing goes to [`super::access::word`], which looks again from the start.

use super::access::{self, How};
use super::local;
use super::shadow::{self, BYTES, CELLS, READ, REFERENCE_SHIFT};
use super::spans::{self, GRANULE, When};
use crate::thread::Thread;
use core::arch::x86_64::{
    __m128i, _mm_and_si128, _mm_andnot_si128, _mm_castsi128_ps, _mm_cmpeq_epi32, _mm_load_si128, _mm_movemask_ps, _mm_set1_epi32,
    _mm_setzero_si128,
};
use core::sync::atomic::{AtomicU32, Ordering::*};

/// An access at `site` of `bytes` bytes that do not leave their word.
#[inline(always)]
pub fn plain<const IS_READ: bool>(thread: &mut Thread, address: u64, bytes: u64, site: u64) {
    let reference = local::reference(thread, site, false);
    if reference != 0 {
        word::<IS_READ>(thread, shadow::cells(address), bits_of(address, bytes), address, bytes, reference);
    }
}

/// The same with the reference that stands for the access.
#[inline(always)]
pub fn with<const IS_READ: bool>(thread: &mut Thread, address: u64, bytes: u64, reference: u32) {
    word::<IS_READ>(thread, shadow::cells(address), bits_of(address, bytes), address, bytes, reference);
}

/// Sixteen bytes that are two words.
#[inline(always)]
pub fn pair<const IS_READ: bool>(thread: &mut Thread, address: u64, site: u64) {
    let reference = local::reference(thread, site, false);
    if reference != 0 {
        word::<IS_READ>(thread, shadow::cells(address), BYTES, address, 8, reference);
        word::<IS_READ>(thread, shadow::cells(address + 8), BYTES, address + 8, 8, reference);
    }
}

/// [`shadow::byte_bits`] for constant lengths: all of a whole word's, whatever the address.
#[inline(always)]
fn bits_of(address: u64, bytes: u64) -> u32 {
    if bytes == 8 { BYTES } else { shadow::byte_bits(address, bytes) }
}

#[inline(always)]
fn word<const IS_READ: bool>(
    thread: &mut Thread,
    cells: &[AtomicU32; CELLS],
    bits: u32,
    address: u64,
    bytes: u64,
    reference: u32,
) {
    let whens = spans::whens();
    let own = When { epoch: thread.detect.epoch, slot_atomic: thread.detect.slot << 1 };
    let (times, slots) = thread.detect.clock.raw();
    let new = reference << REFERENCE_SHIFT | if IS_READ { READ } else { 0 } | bits;
    // SAFETY: SSE2 is part of x86-64; a word's cells are aligned to 16. Other threads may write them: each cell is read once, whole.
    let (seen, mut overlapping, free, alike) = unsafe {
        let all = _mm_load_si128(cells.as_ptr().cast());
        let zero = _mm_setzero_si128();
        let apart = _mm_cmpeq_epi32(_mm_and_si128(all, _mm_set1_epi32(bits as i32)), zero);
        let free = _mm_movemask_ps(_mm_castsi128_ps(_mm_cmpeq_epi32(all, zero)));
        let overlapping = !_mm_movemask_ps(_mm_castsi128_ps(apart)) & 15;
        let alike = if bits == BYTES {
            // Whole words, known when compiled: a cell for the same bytes is among the overlapping ones.
            0
        } else {
            let rest = _mm_andnot_si128(_mm_set1_epi32(BYTES as i32), all);
            _mm_movemask_ps(_mm_castsi128_ps(_mm_cmpeq_epi32(rest, _mm_set1_epi32((new & !BYTES) as i32))))
        };
        (core::mem::transmute::<__m128i, [u32; CELLS]>(all), overlapping as u32, free as u32, alike as u32)
    };
    let mut place = CELLS;
    let mut whole = new;
    if alike != 0 {
        // The same place did the same to other bytes of the word: one cell is enough for both.
        place = alike.trailing_zeros() as usize & 3;
        whole |= seen[place];
    }
    while overlapping != 0 {
        let at = overlapping.trailing_zeros() as usize & 3;
        overlapping &= overlapping - 1;
        let cell = seen[at];
        // SAFETY: inside the table, whatever the cell.
        let when = unsafe { *whens.add((cell >> (REFERENCE_SHIFT + GRANULE.trailing_zeros())) as usize) };
        let slot = when.slot_atomic >> 1;
        // SAFETY: below the clock's length.
        let known = if slot < slots { unsafe { *times.add(slot as usize) } } else { 0 };
        if known < when.epoch {
            if IS_READ && cell & READ != 0 {
                continue;
            }
            return unusual(thread, address, bytes, IS_READ, reference);
        }
        if when == own && bits & !cell == 0 && (IS_READ || cell & READ == 0) {
            return recognise(thread, &cells[at], cell, reference);
        }
        if (!IS_READ || cell & READ != 0) && cell & BYTES & !whole == 0 && at != place {
            if place < CELLS {
                cells[at].store(0, Relaxed);
            } else {
                place = at;
            }
        }
    }
    thread.detect.counts.checked += 1;
    if place < CELLS {
        cells[place & 3].store(whole, Relaxed);
    } else if free != 0 {
        shadow::mark(address);
        cells[free.trailing_zeros() as usize & 3].store(new, Relaxed);
    } else {
        access::add(thread, cells, new, address, CELLS);
    }
}

/// A cell of the current span covers the access already; the hooks are to see that next time.
#[inline(always)]
fn recognise(thread: &Thread, cell: &AtomicU32, seen: u32, reference: u32) {
    if !local::is_covering(thread, seen >> REFERENCE_SHIFT) {
        cell.store(reference << REFERENCE_SHIFT | seen & (READ | BYTES), Relaxed);
    }
}

#[cold]
#[inline(never)]
fn unusual(thread: &mut Thread, address: u64, bytes: u64, is_read: bool, reference: u32) {
    access::word(thread, address, bytes, if is_read { How::READ } else { How::WRITE }, reference);
}
