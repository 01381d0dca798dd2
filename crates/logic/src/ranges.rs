//! An access to many words at once: what was decided for one word holds for all that look like it.
//!
//! What becomes of a word's [cells](crate::cells) at an access is a function of these cells, as long as the thread learns nothing
//! new: not while it walks over a range. Words that lie side by side were mostly accessed together, so the walk decides once and
//! repeats that for as long as words look the same, several at a time. Whatever is no such function, a race among it, is done by
//! the detector of single words.

use crate::cells::CELLS;
use core::sync::atomic::{AtomicU32, Ordering::*};

/// The cells of eight bytes.
pub type Word = [AtomicU32; CELLS];

/// Words that are compared together.
const TOGETHER: usize = 4;

/// What cells become: those whose bit is set in `changed`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    pub cells: [u32; CELLS],
    pub changed: u32,
}

impl Change {
    pub const NONE: Self = Self { cells: [0; CELLS], changed: 0 };

    #[must_use]
    pub const fn and(mut self, at: usize, cell: u32) -> Self {
        self.cells[at] = cell;
        self.changed |= 1 << at;
        self
    }

    #[inline(always)]
    fn apply(&self, word: &Word) {
        for (at, (cell, new)) in word.iter().zip(self.cells).enumerate() {
            if self.changed >> at & 1 != 0 {
                cell.store(new, Relaxed);
            }
        }
    }
}

/// Whoever decides about one word.
pub trait Judge {
    /// The same number twice: whatever was in cells in between means what it meant. To be asked after cells were looked at.
    fn meaning(&self) -> u32;
    /// A word's cells as they are at one moment.
    fn look(&self, word: &Word) -> [u32; CELLS];
    /// Whether all of these words, [`TOGETHER`] at most, look so.
    fn are(&self, words: &[Word], seen: &[u32; CELLS]) -> bool;
    /// What a word becomes that looks so, of which nothing else is to be done or known.
    fn change(&mut self, seen: &[u32; CELLS]) -> Option<Change>;
    /// The word by itself. False: no other is to be looked at.
    fn one(&mut self, number: usize) -> bool;
    /// So many words were changed.
    fn changed(&mut self, words: usize);
}

/// All words, as if [`Judge::one`] were asked for each. An empty word that nobody has accessed yet and that is the first of
/// `words` is done by itself: it is where threads meet that begin side by side. False: the judge ended it.
#[inline]
pub fn walk(words: &[Word], judge: &mut impl Judge) -> bool {
    let mut at = 0;
    while at < words.len() {
        let meaning = judge.meaning();
        let seen = judge.look(&words[at]);
        let alone = at == 0 && seen == [0; CELLS];
        let Some(change) = (if alone { None } else { judge.change(&seen) }) else {
            if !judge.one(at) {
                return false;
            }
            at += 1;
            continue;
        };
        let alike = repeat(&words[at..], &seen, &change, meaning, judge);
        if change.changed != 0 {
            judge.changed(alike);
        }
        at += alike;
    }
    true
}

/// How many words, from the first on, looked so and were changed.
fn repeat(words: &[Word], seen: &[u32; CELLS], change: &Change, meaning: u32, judge: &impl Judge) -> usize {
    change.apply(&words[0]);
    let lane = change.changed.trailing_zeros() as usize;
    match change.changed.count_ones() {
        0 => 1 + alike(&words[1..], seen, meaning, judge, |_| {}),
        1 => {
            let new = change.cells[lane];
            1 + alike(&words[1..], seen, meaning, judge, |word| word[lane % CELLS].store(new, Relaxed))
        }
        _ => 1 + alike(&words[1..], seen, meaning, judge, |word| change.apply(word)),
    }
}

#[inline(always)]
fn alike(words: &[Word], seen: &[u32; CELLS], meaning: u32, judge: &impl Judge, apply: impl Fn(&Word)) -> usize {
    let mut done = 0;
    for length in [TOGETHER, 1] {
        for group in words[done..].chunks_exact(length) {
            if !judge.are(group, seen) || judge.meaning() != meaning {
                break;
            }
            group.iter().for_each(&apply);
            done += length;
        }
    }
    done
}
