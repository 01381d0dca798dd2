//! Counted loops: what one record of a whole nest of loops stands for.
//!
//! A *nest* is a loop whose number of iterations is known before it runs, with everything in it: accesses whose addresses grow by
//! constant amounts, segments of the compiler's plugin ([`crate::deep`]), and further such loops. It is told by the *values* that
//! it depends on, and by *operations*, a sequence of words in the order of the code. The first word of an operation is
//! `top:11 | kind:5 | low:48`, as that of a record.
//!
//! | kind | operation | top | low | further words |
//! |---|---|---|---|---|
//! | 1..=15 | access | number of the value that is its address where all loops begin | how many loops it is in | for each of these, the outermost first, by how much the address grows with it; the site |
//! | [`SEGMENT`](crate::record::SEGMENT) | segment | 0 | its number | none |
//! | [`LOOP`] | a loop begins | width in bits of its number of iterations; [`VARIES`] | `words:16 (high) \| value:16 \| loops:16`: words behind this one up to the loop's end, number of the value that is its number of iterations where all loops around it begin, how many these are | for each of these, by how much the number grows with it |
//! | [`EXIT`] | where the loop is left once it has iterated | 0 | 0 | none |
//! | [`END`] | end of the innermost loop | 0 | 0 | none |
//!
//! A loop runs through all its operations as often as its number of iterations says, and then once more through those before its
//! exit. Amounts are words with [`WRITTEN`] set: a signed number of 48 bits, or with [`VALUE`] the number of a value. Addresses
//! are numbers of 48 bits, and numbers of iterations such of the width that is said: they grow modulo that.

use crate::record::{LOW_BITS, LOW_MASK, SEGMENT, TOP_SHIFT, kind_of, low_of, top_of, word};

pub const LOOP: u64 = 28;
pub const EXIT: u64 = 29;
pub const END: u64 = 30;

/// Of the top bits of a [`LOOP`]: the number of iterations of a loop in it grows with it.
pub const VARIES: u64 = 1 << 8;
const WIDTH: u64 = VARIES - 1;
/// Set in values and amounts: so none that was written is zero.
pub const WRITTEN: u64 = 1 << 63;
/// Set in an amount that is the number of a value.
pub const VALUE: u64 = 1 << 62;

/// Words of the operations of a nest.
pub const MOST_WORDS: usize = 1024;
pub const MOST_VALUES: usize = 48;
/// Loops in each other.
pub const MOST_LOOPS: usize = 6;
/// Of one record: accesses and segments.
pub const MOST_OPERATIONS: u64 = 1 << 23;
/// Iterations of a loop that counts may tell.
const MOST_ITERATIONS: u64 = 1 << 40;
/// Iterations that are looked at one by one to know what a nest stands for.
const MOST_STEPS: u32 = 1 << 16;

/// Words of a plan before its operations: `fixed:32 (high) | values:32`, of which the first ones are told with the plan; how many
/// words of operations there are. The sites of accesses are zero in a plan.
pub const PLAN_WORDS: usize = 2;

pub const fn access(kind: u64, value: u64, loops: u64) -> u64 {
    word(value, kind, loops)
}

pub const fn begins(width: u64, varies: bool, words: u64, value: u64, loops: u64) -> u64 {
    word(width | if varies { VARIES } else { 0 }, LOOP, words << 32 | value << 16 | loops)
}

pub const fn amount(constant: i64) -> u64 {
    WRITTEN | constant as u64 & LOW_MASK
}

pub const fn amount_of_value(value: u64) -> u64 {
    WRITTEN | VALUE | value
}

/// The beginning of a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loop {
    width: u32,
    varies: bool,
    /// Where its end is, behind the word of which it was read.
    words: usize,
    value: usize,
    /// Around it.
    pub loops: usize,
}

impl Loop {
    pub const fn of(word: u64) -> Self {
        let (top, low) = (top_of(word), low_of(word));
        Self {
            width: (top & WIDTH) as u32,
            varies: top & VARIES != 0,
            words: (low >> 32) as usize,
            value: (low >> 16) as usize & 0xffff,
            loops: low as usize & 0xffff,
        }
    }

    /// The word of its end, if it begins at this one.
    pub const fn end(self, at: usize) -> usize {
        at + self.words
    }
}

/// How much a nest stands for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    pub accesses: u64,
    /// Accesses and segments.
    pub operations: u64,
}

impl Size {
    const fn plus(self, other: Self) -> Self {
        Self {
            accesses: self.accesses.saturating_add(other.accesses),
            operations: self.operations.saturating_add(other.operations),
        }
    }

    const fn times(self, count: u64) -> Self {
        Self { accesses: self.accesses.saturating_mul(count), operations: self.operations.saturating_mul(count) }
    }
}

/// In which iteration each loop is, the outermost first.
pub type Iterations = [u64; MOST_LOOPS];

/// Operations that [`is_sound`] accepts, and the values of one time that the nest runs.
#[derive(Clone, Copy, Debug)]
pub struct Nest<'a> {
    operations: &'a [u64],
    values: &'a [u64],
    /// So many bits of each value are known.
    bits: u32,
}

/// What a part of a nest stands for, and the word behind it.
type Measured = Option<(Size, usize)>;

impl<'a> Nest<'a> {
    /// As the program has them.
    pub const fn in_program(operations: &'a [u64], values: &'a [u64]) -> Self {
        Self { operations, values, bits: 64 }
    }

    /// As a recording has them.
    pub const fn recorded(operations: &'a [u64], values: &'a [u64]) -> Self {
        Self { operations, values, bits: LOW_BITS }
    }

    fn value(&self, number: usize) -> u64 {
        self.values.get(number).copied().unwrap_or(0)
    }

    fn amount(&self, word: u64) -> u64 {
        let amount = if word & VALUE == 0 { word } else { self.value((word & LOW_MASK) as usize) };
        if word & VALUE != 0 && self.bits == 64 { amount } else { ((amount << (64 - LOW_BITS)) as i64 >> (64 - LOW_BITS)) as u64 }
    }

    /// A value, and what it has grown by: `at` is the word before the amounts.
    fn grown(&self, value: usize, at: usize, loops: usize, iterations: &Iterations) -> u64 {
        let amounts = self.operations[at + 1..].iter().zip(iterations).take(loops);
        amounts.fold(self.value(value), |sum, (&word, &iteration)| sum.wrapping_add(self.amount(word).wrapping_mul(iteration)))
    }

    /// The address of the access that begins at this word.
    pub fn address(&self, at: usize, iterations: &Iterations) -> u64 {
        let word = self.operations[at];
        self.grown(top_of(word) as usize, at, low_of(word) as usize, iterations) & LOW_MASK
    }

    /// How often the loop that begins at this word iterates; `None`: more often than can be told.
    pub fn count(&self, at: usize, iterations: &Iterations) -> Option<u64> {
        let begins = Loop::of(self.operations[at]);
        let count = self.grown(begins.value, at, begins.loops, iterations);
        let width = begins.width.min(self.bits);
        let count = if width < 64 { count & ((1 << width) - 1) } else { count };
        (count <= MOST_ITERATIONS).then_some(count)
    }

    /// What all of it stands for; `None`: more than one record may.
    pub fn size(&self) -> Option<Size> {
        let mut steps = MOST_STEPS;
        let (size, _) = self.part(0, &mut [0; MOST_LOOPS], false, &mut steps)?;
        (size.operations <= MOST_OPERATIONS).then_some(size)
    }

    /// From a word on up to the end of the innermost loop, or to its exit.
    fn part(&self, from: usize, iterations: &mut Iterations, to_the_exit: bool, steps: &mut u32) -> Measured {
        *steps = steps.checked_sub(1)?;
        let (mut at, mut size) = (from, Size::default());
        loop {
            let Some(&word) = self.operations.get(at) else { return Some((size, at)) };
            match kind_of(word) {
                END => return Some((size, at)),
                EXIT if to_the_exit => return Some((size, at)),
                EXIT => at += 1,
                SEGMENT => (size, at) = (size.plus(Size { accesses: 0, operations: 1 }), at + 1),
                LOOP => {
                    let (inner, end) = self.whole(at, iterations, steps)?;
                    (size, at) = (size.plus(inner), end + 1);
                }
                _ => (size, at) = (size.plus(Size { accesses: 1, operations: 1 }), at + 2 + low_of(word) as usize),
            }
            if size.operations > MOST_OPERATIONS {
                return None;
            }
        }
    }

    /// The loop that begins at this word, and the word of its end.
    fn whole(&self, at: usize, iterations: &mut Iterations, steps: &mut u32) -> Measured {
        let begins = Loop::of(self.operations[at]);
        let inside = at + 1 + begins.loops;
        let count = self.count(at, iterations)?;
        let mut size = Size::default();
        if begins.varies {
            for iteration in 0..count {
                iterations[begins.loops] = iteration;
                size = size.plus(self.part(inside, iterations, false, steps)?.0);
            }
        } else if count > 0 {
            iterations[begins.loops] = 0;
            size = self.part(inside, iterations, false, steps)?.0.times(count);
        }
        iterations[begins.loops] = count;
        let (last, _) = self.part(inside, iterations, true, steps)?;
        iterations[begins.loops] = 0;
        Some((size.plus(last), begins.end(at)))
    }
}

/// Whether words are operations of a nest that has so many values: loops end where they say, have one exit each, vary where they
/// say, and tell something.
pub fn is_sound(operations: &[u64], values: usize) -> bool {
    // Of each open loop: where it ends, whether it had its exit.
    let mut open = [(0, false); MOST_LOOPS];
    let (mut depth, mut at, mut accesses) = (0, 0, 0);
    while let Some(&word) = operations.get(at) {
        let further = |count: usize| operations.get(at + 1..at + 1 + count);
        let grows = |count: usize| {
            let is_amount = |word: &u64| word & WRITTEN != 0 && (word & VALUE == 0 || ((word & LOW_MASK) as usize) < values);
            count == depth && further(count).is_some_and(|words| words.iter().all(is_amount))
        };
        match kind_of(word) {
            SEGMENT => at += 1,
            EXIT if depth > 0 && !open[depth - 1].1 => {
                open[depth - 1].1 = true;
                at += 1;
            }
            END if depth > 0 && open[depth - 1] == (at, true) => (depth, at) = (depth - 1, at + 1),
            LOOP => {
                let begins = Loop::of(word);
                let end = begins.end(at);
                let fits = depth < MOST_LOOPS && begins.value < values && (1..=64).contains(&begins.width);
                if !fits || !grows(begins.loops) || end >= operations.len() || begins.varies != varies(operations, at, end) {
                    return false;
                }
                open[depth] = (end, false);
                (depth, at) = (depth + 1, at + 1 + begins.loops);
            }
            1..=15 => {
                let loops = low_of(word) as usize;
                if top_of(word) as usize >= values || !grows(loops) || at + 1 + loops >= operations.len() {
                    return false;
                }
                accesses += 1;
                at += 2 + loops;
            }
            _ => return false,
        }
    }
    depth == 0 && accesses > 0 && operations.len() <= MOST_WORDS
}

/// Whether the number of iterations of a loop in this one grows with it.
pub fn varies(operations: &[u64], begin: usize, end: usize) -> bool {
    let own = Loop::of(operations[begin]).loops;
    let mut at = begin + 1 + own;
    while at < end && at < operations.len() {
        let word = operations[at];
        at += match kind_of(word) {
            SEGMENT | EXIT | END => 1,
            LOOP => {
                let loops = Loop::of(word).loops;
                if operations.get(at + 1 + own).is_some_and(|amount| loops > own && *amount != WRITTEN) {
                    return true;
                }
                1 + loops
            }
            _ => 2 + low_of(word) as usize,
        };
    }
    false
}

const _: () = assert!(MOST_VALUES < 1 << (64 - TOP_SHIFT) && MOST_WORDS < 1 << 16);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{AccessClass, access_kind};

    const READ: u64 = access_kind(AccessClass::Read, 3);

    /// `for i < values[1] { read values[0] + 64 i; for j < values[2] - i { read values[0] + 64 i + 8 j } }`
    const TRIANGLE: [u64; 14] = [
        begins(64, true, 13, 1, 0),
        word(0, EXIT, 0),
        access(READ, 0, 1),
        amount(64),
        7,
        begins(32, false, 7, 2, 1),
        amount(-1),
        word(0, EXIT, 0),
        access(READ, 0, 2),
        amount(64),
        amount(8),
        9,
        word(0, END, 0),
        word(0, END, 0),
    ];

    #[test]
    fn a_loop_that_varies_is_measured_one_by_one() {
        let mut words = TRIANGLE;
        assert!(is_sound(&words, 3));
        assert!(!is_sound(&words, 2) && !is_sound(&words[..13], 3));
        let size = |outer, inner| Nest::in_program(&words, &[0x1000, outer, inner]).size();
        assert_eq!(size(3, 5), Some(Size { accesses: 3 + 5 + 4 + 3, operations: 15 }));
        assert_eq!(size(0, 5), Some(Size::default()));
        // The inner loop's number wraps at 32 bits: more than one record may stand for.
        assert_eq!(size(3, 1), None);
        assert_eq!(Nest::in_program(&words, &[0x1000, 1 << 50, 1]).size(), None);
        let nest = Nest::recorded(&words, &[0x1000, 3, 5]);
        assert_eq!((nest.address(2, &[2, 0, 0, 0, 0, 0]), nest.count(5, &[2, 0, 0, 0, 0, 0])), (0x1080, Some(3)));
        assert_eq!(nest.address(8, &[1, 3, 0, 0, 0, 0]), 0x1058);
        words[0] = begins(64, false, 13, 1, 0);
        assert!(!is_sound(&words, 3), "it varies, and does not say so");
    }
}
