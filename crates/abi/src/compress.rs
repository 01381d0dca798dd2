//! How the records of a full chunk are compressed: each word is predicted from the words before it.
//!
//! The high 16 bits of a word (`top` and `kind` of a record's first word) tell which place of the program it comes from, the low
//! 48 bits are most often an address. A program that runs through a loop comes by the same places in the same order, and each of
//! them goes on to the next address with the same step. So the *context* of a word is its own high bits and those of the two
//! words before it, and for each context the [`Model`] keeps the low bits of its last word, their last step, and the two words'
//! high bits that followed it last. This is the finite-context and stride prediction of program traces (M. Burtscher, VPC3: A
//! Fast and Effective Trace-Compression Algorithm, SIGMETRICS 2004), with one prediction a word.
//!
//! **Bytes.** Four words make a group: one byte with a code of two bits for each, the first word's in the lowest, and then what
//! the codes ask for, word by word.
//!
//! | code | high bits | low bits | bytes that follow |
//! |---|---|---|---|
//! | 0 | as predicted | one step on | none |
//! | 1 | as predicted | step *z* | 1: *z* |
//! | 2 | as predicted | step *z* | 2: *z* |
//! | 3 | `mode` 0: as predicted; 1: the other ones; 2: given | step *z*; one step on if there is no *z* | 1: `mode << 4 \| n`; 2 with `mode` 2: the high bits; *n* ≤ 6: *z* |
//!
//! Numbers are little-endian. A step is the difference to the context's last low bits as a signed number of 48 bits, *z* its
//! zigzag form: twice the step, or −1 − twice the step if it is negative. A last group of fewer words has codes 0 for the others.
//! Both sides begin with a [`Model`] of zeros and change it by the same rules.

use crate::record::{LOW_BITS, LOW_MASK};

const CONTEXTS: usize = 1 << 11;
const GROUP: usize = 4;
/// A group at most: its codes, and for each word a mode, high bits and six bytes of step.
const GROUP_BYTES: usize = 1 + GROUP * (1 + 2 + 6);
/// Room that is written to: behind the last byte that counts, up to eight that do not.
const ROOM: usize = GROUP_BYTES + 8;
const ESCAPE: u8 = 3;
const AS_PREDICTED: u8 = 0;
const THE_OTHER: u8 = 1;
const GIVEN: u8 = 2;

/// What the words so far let expect. Valid when all bytes are zero.
#[derive(Clone, Debug)]
#[repr(transparent)]
pub struct Model([Context; CONTEXTS]);

#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct Context {
    /// Low bits of the last word here.
    last: u64,
    /// From the one before it.
    step: u64,
    /// High bits of the word that followed the last time, and of the last one that differed from it.
    next: u16,
    other: u16,
}

impl Model {
    pub const fn new() -> Self {
        Self([Context { last: 0, step: 0, next: 0, other: 0 }; CONTEXTS])
    }

    fn reset(&mut self) {
        *self = Self::new();
    }

    fn context(&mut self, number: usize) -> &mut Context {
        &mut self.0[number % CONTEXTS]
    }
}

impl Default for Model {
    fn default() -> Self {
        Self::new()
    }
}

/// The high bits of the last words, and the number of the context that they make.
#[derive(Clone, Copy, Default)]
struct History(u64);

impl History {
    #[inline(always)]
    const fn then(self, high: u16) -> Self {
        Self(self.0 << 16 | high as u64)
    }
    #[inline(always)]
    const fn context(self) -> usize {
        // Three words count: the fourth is shifted out.
        ((self.0 << 16).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - CONTEXTS.trailing_zeros())) as usize
    }
}

#[inline(always)]
const fn zigzag(step: u64) -> u64 {
    let signed = (step << 16).cast_signed() >> 16;
    ((signed << 1) ^ (signed >> 63)).cast_unsigned()
}

const fn unzigzag(value: u64) -> u64 {
    (value >> 1) ^ (value & 1).wrapping_neg()
}

/// The room that [`compress`] needs for so many words.
pub const fn bound(words: usize) -> usize {
    words.div_ceil(GROUP) * GROUP_BYTES + (ROOM - GROUP_BYTES)
}

/// Compresses `words` into `to`, which has [`bound`] bytes for them; how many were used. With less room: `None`, and what `to`
/// then holds is of no use.
pub fn compress(model: &mut Model, words: &[u64], to: &mut [u8]) -> Option<usize> {
    model.reset();
    let mut history = History::default();
    let mut before = 0;
    let mut at = 0;
    for group in words.chunks(GROUP) {
        let room: &mut [u8; ROOM] = to.get_mut(at..at + ROOM)?.first_chunk_mut()?;
        let mut codes = 0;
        let mut used = 1;
        for (number, &word) in group.iter().enumerate() {
            let high = (word >> LOW_BITS) as u16;
            history = history.then(high);
            let here = history.context();
            let is_next = model.context(before).next == high;
            let context = model.context(here);
            let step = (word & LOW_MASK).wrapping_sub(context.last) & LOW_MASK;
            context.last = word & LOW_MASK;
            if !is_next || step != context.step {
                let code = surprise(model, (before, here), (high, step), room, &mut used);
                codes |= code << (2 * number);
            }
            before = here;
        }
        room[0] = codes;
        at += used;
    }
    Some(at)
}

/// What a word needs that is not as predicted; its code, which for a step alone is how many bytes it takes.
#[inline(always)]
fn surprise(
    model: &mut Model,
    (before, here): (usize, usize),
    (high, step): (u16, u64),
    room: &mut [u8; ROOM],
    used: &mut usize,
) -> u8 {
    let context = model.context(here);
    let value = if step == context.step { None } else { Some(zigzag(step)) };
    context.step = step;
    // Eight bytes are written whatever counts of them: what follows overwrites the others.
    let mut put = |value: u64, bytes: usize| {
        if let Some(room) = room.get_mut(*used..*used + 8) {
            room.copy_from_slice(&value.to_le_bytes());
            *used += bytes;
        }
    };
    let mode = follow(model.context(before), high);
    match value {
        Some(value) if mode == AS_PREDICTED && value < 1 << 16 => {
            let bytes = 1 + usize::from(value >= 1 << 8);
            put(value, bytes);
            bytes as u8
        }
        _ => {
            // A step of 0 that was not expected takes a byte, so that it is told from none.
            let length = value.map_or(0, |value| (64 - value.leading_zeros() as usize).div_ceil(8).max(1));
            put(u64::from(mode << 4) | length as u64 | u64::from(high) << 8, if mode == GIVEN { 3 } else { 1 });
            put(value.unwrap_or(0), length);
            ESCAPE
        }
    }
}

/// Which word's high bits followed; the mode that says so.
#[inline(always)]
const fn follow(context: &mut Context, high: u16) -> u8 {
    if context.next == high {
        return AS_PREDICTED;
    }
    let mode = if context.other == high { THE_OTHER } else { GIVEN };
    context.other = context.next;
    context.next = high;
    mode
}

/// Fills `words` from what [`compress`] made of them. `None` if `bytes` are not that: too few, too many, or no such code. Takes
/// any bytes.
pub fn decompress(model: &mut Model, bytes: &[u8], words: &mut [u64]) -> Option<()> {
    model.reset();
    let mut history = History::default();
    let mut before = 0;
    let mut rest = bytes;
    for group in words.chunks_mut(GROUP) {
        let (&codes, behind) = rest.split_first()?;
        rest = behind;
        for (number, word) in group.iter_mut().enumerate() {
            let code = codes >> (2 * number) & 3;
            let told = if code == 0 { Told::default() } else { told(code, &mut rest)? };
            let follower = model.context(before);
            let high = match told.mode {
                AS_PREDICTED => follower.next,
                THE_OTHER => follower.other,
                _ => told.high,
            };
            if told.mode != AS_PREDICTED {
                follow(follower, high);
            }
            history = history.then(high);
            before = history.context();
            let context = model.context(before);
            if let Some(step) = told.step {
                context.step = step & LOW_MASK;
            }
            context.last = context.last.wrapping_add(context.step) & LOW_MASK;
            *word = u64::from(high) << LOW_BITS | context.last;
        }
    }
    rest.is_empty().then_some(())
}

/// What the bytes say of a word that is not as predicted.
#[derive(Default)]
struct Told {
    mode: u8,
    high: u16,
    step: Option<u64>,
}

fn told(code: u8, rest: &mut &[u8]) -> Option<Told> {
    let mut take = |bytes: usize| {
        let (taken, behind) = rest.split_at_checked(bytes)?;
        *rest = behind;
        Some(taken.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte)))
    };
    if code != ESCAPE {
        let step = take(usize::from(code))?;
        return Some(Told { step: Some(unzigzag(step)), ..Told::default() });
    }
    let head = take(1)? as u8;
    let (mode, length) = (head >> 4, usize::from(head & 15));
    if mode > GIVEN || length > 6 {
        return None;
    }
    let high = if mode == GIVEN { take(2)? as u16 } else { 0 };
    let step = if length == 0 { None } else { Some(unzigzag(take(length)?)) };
    Some(Told { mode, high, step })
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec::Vec;
    use std::{boxed::Box, vec};

    fn packed(words: &[u64]) -> Vec<u8> {
        let mut to = vec![0xaa; bound(words.len())];
        let used = compress(&mut Box::default(), words, &mut to).expect("there is room");
        to.truncate(used);
        to
    }

    fn unpacked(bytes: &[u8], count: usize) -> Option<Vec<u64>> {
        let mut words = vec![7; count];
        decompress(&mut Box::default(), bytes, &mut words).map(|()| words)
    }

    #[test]
    fn what_is_compressed_comes_back() {
        let mut seed = 1_u64;
        let mut random = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            seed >> 20
        };
        for length in (0..40).chain([1000, 32_764]) {
            let shapes: [Box<dyn Fn(u64, u64) -> u64>; 5] = [
                Box::new(|at, _| (at % 3) << 51 | (0x7f00_0000_0000 + at * 8)),
                Box::new(|_, random| random.wrapping_mul(0x9e37_79b9_7f4a_7c15)),
                Box::new(|_, random| (random & 3) << 49 | random & 0xff_ffff),
                Box::new(|_, _| u64::MAX),
                Box::new(|at, _| if at % 2 == 0 { 0 } else { LOW_MASK - at }),
            ];
            for shape in &shapes {
                let words: Vec<u64> = (0..length).map(|at| shape(at, random())).collect();
                let bytes = packed(&words);
                assert!(bytes.len() <= bound(words.len()));
                assert_eq!(unpacked(&bytes, words.len()).as_deref(), Some(&words[..]));
            }
        }
    }

    #[test]
    fn a_loop_takes_two_bits_a_word() {
        let words: Vec<u64> = (0..30_000).map(|at| (at % 5 + 1) << 51 | (0x5000_0000 + (at % 5) * 4096 + at / 5 * 8)).collect();
        assert!(packed(&words).len() < 30_000 / 4 + 200);
    }

    #[test]
    fn words_without_any_order_fit_in_the_bound_and_too_little_room_is_refused() {
        let words: Vec<u64> = (0..999_u64).map(|at| at.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(17)).collect();
        let mut short = vec![0; bound(words.len()) / 2];
        assert_eq!(compress(&mut Box::default(), &words, &mut short), None);
    }

    #[test]
    fn other_bytes_are_refused() {
        let words: Vec<u64> = (0..101).map(|at| at << 40).collect();
        let bytes = packed(&words);
        assert_eq!(unpacked(&bytes[..bytes.len() - 1], words.len()), None, "too few");
        assert_eq!(unpacked(&bytes, words.len() - 4), None, "too many");
        assert_eq!(unpacked(&[3, 0x30], 1), None, "a mode that there is not");
        assert_eq!(unpacked(&[3, 0x07, 0, 0, 0, 0, 0, 0, 0], 1), None, "a step of seven bytes");
    }
}
