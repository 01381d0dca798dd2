//! Counted loops of a stream: what the records of nests stand for, one by one ([`rashomon_abi::nest`]). Loops of recordings of
//! version 3 are nests of one loop.

use crate::chunks::FaultKind;
use crate::stream::Record;
use rashomon_abi::nest::{self, Iterations, Loop, MOST_LOOPS, MOST_VALUES, MOST_WORDS, Nest, WRITTEN};
use rashomon_abi::record::counted::{MOST_BASES, MOST_OPERATIONS};
use rashomon_abi::record::{self, LOW_BITS, LOW_MASK};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// A stream whose records stand for more operations than this is damaged: a small file must not become a large trace.
const MOST_OF_A_STREAM: u64 = 1 << 28;

#[derive(Debug, PartialEq, Eq)]
struct Plan {
    operations: Vec<u64>,
    values: usize,
    /// The first ones of these.
    fixed: Vec<u64>,
}

/// Where the reader is in a nest.
#[derive(Clone, Debug)]
struct Position {
    plan: Arc<Plan>,
    values: Vec<u64>,
    at: usize,
    /// Of each open loop: where it begins, how often it iterates, and in which iteration it is.
    begins: [usize; MOST_LOOPS],
    counts: Iterations,
    iterations: Iterations,
    open: usize,
}

impl Position {
    /// What the nest tells next; `None` at its end.
    fn next_record(&mut self) -> Option<Record> {
        let words = &self.plan.operations;
        let nest = Nest::recorded(words, &self.values);
        loop {
            let &word = words.get(self.at)?;
            let (kind, low, at) = (record::kind_of(word), record::low_of(word), self.at);
            match kind {
                nest::LOOP => {
                    let open = self.open;
                    (self.begins[open], self.iterations[open]) = (at, 0);
                    self.counts[open] = nest.count(at, &self.iterations)?;
                    self.open += 1;
                    self.at += 1 + open;
                }
                nest::EXIT if self.iterations[self.open - 1] == self.counts[self.open - 1] => {
                    self.open -= 1;
                    self.iterations[self.open] = 0;
                    let begin = self.begins[self.open];
                    self.at = Loop::of(words[begin]).end(begin) + 1;
                }
                nest::EXIT => self.at += 1,
                nest::END => {
                    self.iterations[self.open - 1] += 1;
                    self.at = self.begins[self.open - 1] + self.open;
                }
                record::SEGMENT => {
                    self.at += 1;
                    return Some(Record::Segment { segment: low });
                }
                _ => {
                    let (class, log2) = record::access_of_kind(kind)?;
                    let address = nest.address(at, &self.iterations);
                    self.at += 2 + low as usize;
                    return Some(Record::Access { class, size: 1 << log2, address, site: words[self.at - 1] & LOW_MASK });
                }
            }
        }
    }
}

/// The nests that a stream has defined, and the one that is being told.
#[derive(Clone, Debug, Default)]
pub struct Counted {
    plans: FxHashMap<u64, Arc<Plan>>,
    position: Option<Box<Position>>,
    operations: u64,
}

/// Words of a chunk from the first one of a record on, and how many of a record there are: `Ok(None)`: it was not written as a
/// whole.
type Length = Result<Option<usize>, FaultKind>;

fn has(words: &[u64], needed: usize) -> Result<(), FaultKind> {
    let available = words.len();
    if needed <= available { Ok(()) } else { Err(FaultKind::RecordLength { needed, available }) }
}

impl Counted {
    pub const fn is_inside(&self) -> bool {
        self.position.is_some()
    }

    /// What the nest tells next; `None` at its end.
    pub fn next_record(&mut self) -> Option<Record> {
        let next = self.position.as_mut()?.next_record();
        if next.is_none() {
            self.position = None;
        }
        next
    }

    /// Takes the record that begins the words.
    pub fn take(&mut self, kind: u64, words: &[u64]) -> Length {
        match kind {
            record::NEST_DEFINITION => self.define(words),
            record::COUNTED_DEFINITION => self.define_loop(words),
            _ => self.begin(words),
        }
    }

    fn define(&mut self, words: &[u64]) -> Length {
        has(words, 2)?;
        let counts = words[1];
        if counts & WRITTEN == 0 {
            return Ok(None);
        }
        let (fixed, values, all) = ((counts & !WRITTEN) >> 48, (counts >> 32) & 0xffff, counts as u32);
        let (fixed, values, all) = (fixed as usize, values as usize, all as usize);
        if all > MOST_WORDS || values > MOST_VALUES || fixed > values {
            return Err(FaultKind::Loop);
        }
        let length = 2 + fixed + all;
        has(words, length)?;
        let operations = words[2 + fixed..length].to_vec();
        let Some(fixed) = written(&words[2..2 + fixed]).filter(|_| !operations.contains(&0)) else { return Ok(None) };
        if !nest::is_sound(&operations, values) {
            return Err(FaultKind::Loop);
        }
        self.plans.insert(record::low_of(words[0]), Arc::new(Plan { operations, values, fixed }));
        Ok(Some(length))
    }

    /// The definition of a loop in a recording of version 3.
    fn define_loop(&mut self, words: &[u64]) -> Length {
        has(words, 2)?;
        let (head, counts) = (words[0], words[1]);
        if counts & WRITTEN == 0 {
            return Ok(None);
        }
        let (once, all) = (record::top_of(head) as usize, counts as u32 as usize);
        let (bases, fixed) = ((counts >> 32) as u16 as usize, ((counts & !WRITTEN) >> 48) as usize);
        if once > all || all > MOST_OPERATIONS || bases > MOST_BASES || fixed > bases {
            return Err(FaultKind::Loop);
        }
        let mut length = 2 + fixed;
        has(words, length)?;
        let Some(fixed) = written(&words[2..length]) else { return Ok(None) };
        let mut operations = vec![0];
        for number in 0..all {
            if number == once {
                operations.push(record::word(0, nest::EXIT, 0));
            }
            has(words, length + 1)?;
            let word = words[length];
            length += 1;
            let (kind, low) = (record::kind_of(word), record::low_of(word));
            if kind == record::SEGMENT {
                operations.push(word);
                continue;
            }
            has(words, length + 1)?;
            let site = words[length];
            length += 1;
            if word == 0 || site == 0 {
                return Ok(None);
            }
            record::access_of_kind(kind).ok_or(FaultKind::RecordKind(kind))?;
            // The first value is the number of iterations.
            operations.push(nest::access(kind, record::top_of(word) + 1, 1));
            operations.push(nest::amount(((low << (64 - LOW_BITS)) as i64) >> (64 - LOW_BITS)));
            operations.push(site);
        }
        if once == all {
            operations.push(record::word(0, nest::EXIT, 0));
        }
        // Iterations come before bases in the record, and so fixed ones are put behind them.
        let words_within = operations.len() as u64;
        operations[0] = nest::begins(64, false, words_within, 0, 0);
        operations.push(record::word(0, nest::END, 0));
        if !nest::is_sound(&operations, bases + 1) {
            return Err(FaultKind::Loop);
        }
        self.plans.insert(record::low_of(head), Arc::new(Plan { operations, values: bases + 1, fixed }));
        Ok(Some(length))
    }

    /// Takes what a nest, or a loop, depends on this time.
    fn begin(&mut self, words: &[u64]) -> Length {
        let number = record::low_of(words[0]);
        let is_loop = record::kind_of(words[0]) == record::COUNTED;
        let plan = Arc::clone(self.plans.get(&number).ok_or(FaultKind::UndefinedLoop(number))?);
        let length = 1 + plan.values - plan.fixed.len();
        has(words, length)?;
        let Some(given) = written(&words[1..length]) else { return Ok(None) };
        let (first, rest) = given.split_at(usize::from(is_loop).min(given.len()));
        let values: Vec<u64> = [first, &plan.fixed, rest].concat();
        let size = Nest::recorded(&plan.operations, &values).size().ok_or(FaultKind::LoopSize)?;
        // Segments are records of the trace, too.
        self.operations = self.operations.saturating_add(size.operations);
        if self.operations > MOST_OF_A_STREAM {
            return Err(FaultKind::LoopSize);
        }
        let (begins, counts, iterations) = ([0; MOST_LOOPS], [0; MOST_LOOPS], [0; MOST_LOOPS]);
        self.position = Some(Box::new(Position { plan, values, at: 0, begins, counts, iterations, open: 0 }));
        Ok(Some(length))
    }
}

/// The numbers of words that say that they were written; `None`: not all of them do.
fn written(words: &[u64]) -> Option<Vec<u64>> {
    words.iter().map(|word| (word & WRITTEN != 0).then_some(word & LOW_MASK)).collect()
}

#[cfg(test)]
mod tests;
