//! A walk over a range of words changes what asking for each word changes.

use core::sync::atomic::{AtomicU32, Ordering::Relaxed};
use proptest::prelude::*;
use rashomon_logic::cells::CELLS;
use rashomon_logic::ranges::{Change, Judge, Word, walk};
use std::cell::Cell;

type Seen = [u32; CELLS];

/// What becomes of cells that look so is drawn, by what they are.
struct Drawn<'a> {
    words: &'a [Word],
    salt: u32,
    /// Of words that were asked for by themselves.
    alone: Vec<usize>,
    asked: usize,
    changed: usize,
    meaning: Cell<u32>,
    /// Added to the meaning whenever it is asked for.
    restless: u32,
}

fn values(word: &Word) -> Seen {
    std::array::from_fn(|at| word[at].load(Relaxed))
}

impl Drawn<'_> {
    fn number(&self, seen: &Seen) -> u32 {
        let mixed = seen.iter().fold(self.salt, |mixed, cell| mixed.rotate_left(5).wrapping_mul(0x9e37_79b1) ^ cell);
        mixed.wrapping_mul(0x85eb_ca6b) >> 16
    }

    fn drawn(&self, seen: &Seen) -> Option<Change> {
        let number = self.number(seen);
        match number % 8 {
            0 => None,
            1 | 2 => Some(Change::NONE),
            3..=5 => Some(Change::NONE.and(number as usize / 8 % CELLS, number)),
            _ => Some(Change::NONE.and(number as usize / 8 % CELLS, 0).and(number as usize / 32 % CELLS, number)),
        }
    }
}

impl Judge for Drawn<'_> {
    fn meaning(&self) -> u32 {
        self.meaning.set(self.meaning.get() + self.restless);
        self.meaning.get()
    }

    fn look(&self, word: &Word) -> Seen {
        values(word)
    }

    fn are(&self, words: &[Word], seen: &Seen) -> bool {
        words.iter().all(|word| values(word) == *seen)
    }

    fn change(&mut self, seen: &Seen) -> Option<Change> {
        self.asked += 1;
        self.drawn(seen)
    }

    fn one(&mut self, number: usize) -> bool {
        self.alone.push(number);
        let word = &self.words[number];
        let seen = values(word);
        word[1].store(self.number(&seen) | 1, Relaxed);
        !self.number(&seen).is_multiple_of(16)
    }

    fn changed(&mut self, words: usize) {
        self.changed += words;
    }
}

/// Cells after it, words changed together and alone, whether it came to the end.
type Outcome = (Vec<Seen>, usize, Vec<usize>, bool);

fn made(cells: &[Seen]) -> Vec<Word> {
    cells.iter().map(|word| word.map(AtomicU32::new)).collect()
}

fn walked(cells: &[Seen], salt: u32, restless: u32) -> (Outcome, usize) {
    let words = made(cells);
    let mut judge = Drawn { words: &words, salt, alone: vec![], asked: 0, changed: 0, meaning: Cell::new(0), restless };
    let over = walk(&words, &mut judge);
    ((words.iter().map(values).collect(), judge.changed, judge.alone, over), judge.asked)
}

fn one_by_one(cells: &[Seen], salt: u32) -> Outcome {
    let words = made(cells);
    let mut judge = Drawn { words: &words, salt, alone: vec![], asked: 0, changed: 0, meaning: Cell::new(0), restless: 0 };
    let mut over = true;
    for (number, word) in words.iter().enumerate() {
        let seen = values(word);
        match judge.drawn(&seen).filter(|_| number > 0 || seen != [0; CELLS]) {
            Some(change) => {
                for (at, cell) in change.cells.into_iter().enumerate().filter(|(at, _)| change.changed >> at & 1 != 0) {
                    word[at].store(cell, Relaxed);
                }
                judge.changed += usize::from(change.changed != 0);
            }
            None => over = judge.one(number),
        }
        if !over {
            break;
        }
    }
    (words.iter().map(values).collect(), judge.changed, judge.alone, over)
}

/// Stretches of words that look the same, as in a program's memory.
fn cells() -> impl Strategy<Value = Vec<Seen>> {
    let word = prop_oneof![2 => Just([0; CELLS]), 5 => prop::array::uniform4(0..3u32)];
    prop::collection::vec((word, 1..14usize), 0..12)
        .prop_map(|stretches| stretches.into_iter().flat_map(|(word, length)| std::iter::repeat_n(word, length)).collect())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 16 } else { 4096 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_walk_is_every_word_by_itself(cells in cells(), salt in any::<u32>()) {
        prop_assert_eq!(walked(&cells, salt, 0).0, one_by_one(&cells, salt));
    }

    /// Whatever was decided before does not hold, but what comes of it is the same here.
    #[test]
    fn no_decision_outlives_what_cells_mean(cells in cells(), salt in any::<u32>()) {
        let (outcome, asked) = walked(&cells, salt, 1);
        prop_assert_eq!(&outcome, &one_by_one(&cells, salt));
        if outcome.3 {
            prop_assert_eq!(asked, cells.len() - usize::from(cells.first() == Some(&[0; CELLS])));
        }
    }
}

#[test]
fn words_that_look_the_same_are_decided_once() {
    let cells = vec![[7, 0, 0, 0]; 256];
    let salt = (0..).find(|&salt| one_by_one(&cells, salt).2.is_empty()).expect("most do");
    assert_eq!(walked(&cells, salt, 0).1, 1);
}
