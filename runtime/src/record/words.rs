//! The words of memory that may be addresses of something: looking for them is what most of the time of a search goes into.
//!
//! Eight words are compared at once with the extent of all that there is, by their upper halves ([`rashomon_logic::extent`]).
//! Those that lie within are gathered before any is looked up: which words are addresses no processor foresees, so what is done
//! for each of them has no branches.

use core::arch::x86_64::{
    __m128i, _MM_HINT_T0, _mm_castps_si128, _mm_castsi128_ps, _mm_cmpgt_epi32, _mm_movemask_ps, _mm_or_si128, _mm_prefetch,
    _mm_set1_epi32, _mm_shuffle_ps, _mm_sub_epi32,
};
use rashomon_logic::extent::Extent;

/// Words that are gathered at once.
pub const ROOM: usize = 512;
/// Words that are compared at once.
const GROUP: usize = 8;
/// Of two pairs of words, the four upper halves.
const UPPER: i32 = 0b11_01_11_01;

type Pairs = [__m128i; GROUP / 2];

/// Has the processor fetch what lies there, if anything does.
#[inline]
pub fn prefetch(address: u64) {
    // SAFETY: a hint, for any address.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(address as *const i8) };
}

/// What is left to be looked at of some memory: its aligned words.
#[derive(Clone, Copy)]
pub struct Rest {
    at: u64,
    end: u64,
}

impl Rest {
    /// # Safety
    /// The memory can be read as long as the value is used. Others may write it meanwhile.
    pub const unsafe fn of(start: u64, bytes: u64) -> Self {
        Self { at: start.next_multiple_of(8), end: (start + bytes) & !7 }
    }

    /// Words that may be addresses of something, in the order of the memory, as many as there is room for. `None`: there is
    /// nothing left.
    #[inline]
    pub fn next(&mut self, extent: Extent, found: &mut [u64; ROOM]) -> Option<usize> {
        const BYTES: u64 = 8 * GROUP as u64;
        if self.at >= self.end {
            return None;
        }
        let mut count = 0;
        // A word that is no candidate is written over by the next one.
        let mut keep = |word: u64, is_within: bool| {
            found[count % ROOM] = word;
            count += usize::from(is_within);
            count
        };
        // SAFETY: by the contract.
        let word_at = |at: u64| unsafe { (at as *const u64).read_volatile() };
        if !self.at.is_multiple_of(16) {
            let word = word_at(self.at);
            keep(word, extent.has(word));
            self.at += 8;
        }
        while self.at + BYTES <= self.end {
            // SAFETY: by the contract; a multiple of 16.
            let pairs: Pairs = unsafe { [0, 1, 2, 3].map(|pair| (self.at as *const __m128i).add(pair).read_volatile()) };
            self.at += BYTES;
            // SAFETY: every x86-64 processor has these instructions.
            let which = unsafe { within(extent.halves(), pairs) };
            if which != 0 {
                // SAFETY: vectors are words, whatever they hold.
                let words = unsafe { core::mem::transmute::<Pairs, [u64; GROUP]>(pairs) };
                debug_assert!((0..).zip(words).all(|(at, word)| (which >> at & 1 != 0) == extent.has(word)));
                let mut kept = 0;
                (0..).zip(words).for_each(|(at, word)| kept = keep(word, which >> at & 1 != 0));
                if kept > ROOM - 2 * GROUP {
                    return Some(kept);
                }
            }
        }
        while self.at < self.end {
            let word = word_at(self.at);
            keep(word, extent.has(word));
            self.at += 8;
        }
        Some(count)
    }
}

/// Which of eight words lie within an extent, as bits, the first word's lowest. Without a branch.
#[inline]
#[target_feature(enable = "sse2")]
fn within(halves: [[u32; 2]; 2], pairs: Pairs) -> u32 {
    // Distances from the lowest one are compared as numbers with a sign, for which there is an instruction.
    let [low, high] = halves.map(|bounds| bounds.map(|bound| _mm_set1_epi32((bound as i32).wrapping_add(i32::MIN))));
    let inside = |words: __m128i, [lowest, count]: [__m128i; 2]| _mm_cmpgt_epi32(count, _mm_sub_epi32(words, lowest));
    let four = |one: __m128i, other: __m128i| {
        let upper = _mm_castps_si128(_mm_shuffle_ps::<UPPER>(_mm_castsi128_ps(one), _mm_castsi128_ps(other)));
        _mm_movemask_ps(_mm_castsi128_ps(_mm_or_si128(inside(upper, low), inside(upper, high)))) as u32
    };
    four(pairs[0], pairs[1]) | four(pairs[2], pairs[3]) << 4
}
