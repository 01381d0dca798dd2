//! Counted loops of a stream: what their records stand for, one by one.

use crate::chunks::FaultKind;
use crate::stream::Record;
use rashomon_abi::record::counted::{MOST_ACCESSES, MOST_BASES, MOST_OPERATIONS, WRITTEN};
use rashomon_abi::record::{self, LOW_BITS, LOW_MASK};
use rustc_hash::FxHashMap;
use std::rc::Rc;

/// A stream whose records stand for more accesses than this is damaged: a small file must not become a large trace.
const MOST_OF_A_STREAM: u64 = 1 << 28;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    Segment { segment: u64 },
    Access { class: record::AccessClass, size: u32, base: usize, stride: i64, site: u64 },
}

#[derive(Debug, PartialEq, Eq)]
struct Plan {
    /// Operations before the exit.
    once: usize,
    bases: usize,
    /// The first ones of these.
    fixed: Vec<u64>,
    operations: Vec<Operation>,
}

impl Plan {
    fn accesses(&self, until: usize) -> u64 {
        self.operations[..until].iter().filter(|one| matches!(one, Operation::Access { .. })).count() as u64
    }
}

/// Where the reader is in a loop.
#[derive(Clone, Debug)]
struct Position {
    plan: Rc<Plan>,
    bases: Vec<u64>,
    iterations: u64,
    iteration: u64,
    at: usize,
}

/// The loops that a stream has defined, and the one whose iterations are being told.
#[derive(Clone, Debug, Default)]
pub struct Counted {
    plans: FxHashMap<u64, Rc<Plan>>,
    position: Option<Position>,
    accesses: u64,
}

impl Counted {
    pub const fn is_inside(&self) -> bool {
        self.position.is_some()
    }

    /// What the loop tells next; `None` at its end.
    pub fn next_record(&mut self) -> Option<Record> {
        let position = self.position.as_mut()?;
        if position.iteration < position.iterations && position.at == position.plan.operations.len() {
            (position.iteration, position.at) = (position.iteration + 1, 0);
        }
        if position.iteration == position.iterations && position.at == position.plan.once {
            self.position = None;
            return None;
        }
        let operation = position.plan.operations[position.at];
        position.at += 1;
        Some(match operation {
            Operation::Segment { segment } => Record::Segment { segment },
            Operation::Access { class, size, base, stride, site } => {
                let grown = (position.iteration as i64).wrapping_mul(stride) as u64;
                let address = position.bases[base].wrapping_add(grown) & LOW_MASK;
                Record::Access { class, size, address, site }
            }
        })
    }

    /// Takes a definition whose first word is at `first`, of a chunk with so many words from there on. How many it has; `None`:
    /// it was not written as a whole.
    pub fn define(&mut self, words: &[u64], first: usize, available: usize) -> Result<Option<usize>, FaultKind> {
        let further = |words: usize| match words <= available {
            true => Ok(()),
            false => Err(FaultKind::RecordLength { needed: words, available }),
        };
        further(2)?;
        let (head, counts) = (words[first], words[first + 1]);
        if counts & WRITTEN == 0 {
            return Ok(None);
        }
        let (once, all) = (record::top_of(head) as usize, counts as u32 as usize);
        let (bases, fixed) = ((counts >> 32) as u16 as usize, ((counts & !WRITTEN) >> 48) as usize);
        if once > all || all > MOST_OPERATIONS || bases > MOST_BASES || fixed > bases {
            return Err(FaultKind::Loop);
        }
        let mut length = 2 + fixed;
        further(length)?;
        let Some(fixed) = written(words, first + 2, fixed) else { return Ok(None) };
        let mut operations = Vec::with_capacity(all);
        for _ in 0..all {
            further(length + 1)?;
            let word = words[first + length];
            length += 1;
            let (kind, low) = (record::kind_of(word), record::low_of(word));
            if kind == record::SEGMENT {
                operations.push(Operation::Segment { segment: low });
                continue;
            }
            further(length + 1)?;
            let site = words[first + length];
            length += 1;
            if word == 0 || site == 0 {
                return Ok(None);
            }
            let (class, log2) = record::access_of_kind(kind).ok_or(FaultKind::RecordKind(kind))?;
            let base = record::top_of(word) as usize;
            if base >= bases {
                return Err(FaultKind::Loop);
            }
            let stride = ((low << (64 - LOW_BITS)) as i64) >> (64 - LOW_BITS);
            operations.push(Operation::Access { class, size: 1 << log2, base, stride, site: site & LOW_MASK });
        }
        let plan = Plan { once, bases, fixed, operations };
        if plan.accesses(all) == 0 {
            return Err(FaultKind::Loop);
        }
        self.plans.insert(record::low_of(head), Rc::new(plan));
        Ok(Some(length))
    }

    /// Takes the iterations of a loop in the same way.
    pub fn begin(&mut self, words: &[u64], first: usize, available: usize) -> Result<Option<usize>, FaultKind> {
        let number = record::low_of(words[first]);
        let plan = Rc::clone(self.plans.get(&number).ok_or(FaultKind::UndefinedLoop(number))?);
        let length = 2 + plan.bases - plan.fixed.len();
        if length > available {
            return Err(FaultKind::RecordLength { needed: length, available });
        }
        let head = words[first + 1];
        let Some(given) = written(words, first + 2, length - 2).filter(|_| head & WRITTEN != 0) else { return Ok(None) };
        let iterations = head & !WRITTEN;
        let within = iterations.saturating_mul(plan.accesses(plan.operations.len()));
        let accesses = within.saturating_add(plan.accesses(plan.once));
        self.accesses = self.accesses.saturating_add(accesses);
        if accesses > MOST_ACCESSES || self.accesses > MOST_OF_A_STREAM {
            return Err(FaultKind::Iterations(iterations));
        }
        let bases = plan.fixed.iter().copied().chain(given).collect();
        self.position = Some(Position { plan, bases, iterations, iteration: 0, at: 0 });
        Ok(Some(length))
    }
}

/// So many bases; `None`: not all of them were written.
fn written(words: &[u64], first: usize, count: usize) -> Option<Vec<u64>> {
    words[first..first + count].iter().map(|word| (word & WRITTEN != 0).then_some(word & LOW_MASK)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rashomon_abi::record::{AccessClass, access_kind, word};

    const LOOP: u64 = 0x40_1000;
    const SITES: [u64; 2] = [0x40_1010, 0x40_1020];

    /// Reads a fixed place before the exit, then a segment, and writes an array backwards.
    fn definition() -> Vec<u64> {
        let read = word(0, access_kind(AccessClass::Read, 3), 0);
        let write = word(1, access_kind(AccessClass::Write, 2), -4_i64 as u64);
        let counts = WRITTEN | 1 << 48 | 2 << 32 | 3;
        let head = word(1, record::COUNTED_DEFINITION, LOOP);
        vec![head, counts, WRITTEN | 0x5000, read, SITES[0], word(0, record::SEGMENT, 7), write, SITES[1]]
    }

    fn iterations(count: u64, base: u64) -> Vec<u64> {
        vec![word(0, record::COUNTED, LOOP), WRITTEN | count, WRITTEN | base]
    }

    fn told(counted: &mut Counted) -> Vec<Record> {
        std::iter::from_fn(|| counted.next_record()).collect()
    }

    #[test]
    fn a_record_stands_for_all_iterations_and_the_last_look_at_the_condition() {
        let mut counted = Counted::default();
        let words = definition();
        assert_eq!(counted.define(&words, 0, words.len()), Ok(Some(words.len())));
        let words = iterations(2, 0x6000);
        assert_eq!(counted.begin(&words, 0, words.len()), Ok(Some(3)));
        let read = Record::Access { class: AccessClass::Read, size: 8, address: 0x5000, site: SITES[0] };
        let write = |address| Record::Access { class: AccessClass::Write, size: 4, address, site: SITES[1] };
        let segment = Record::Segment { segment: 7 };
        assert_eq!(told(&mut counted), [read, segment, write(0x6000), read, segment, write(0x5ffc), read]);
        assert!(!counted.is_inside());
    }

    #[test]
    fn what_was_not_written_as_a_whole_is_torn() {
        let words = definition();
        for missing in 1..words.len() {
            let mut cut = words.clone();
            cut[missing..].fill(0);
            assert_eq!(Counted::default().define(&cut, 0, cut.len()), Ok(None), "{missing} words");
        }
        let mut counted = Counted::default();
        assert!(counted.define(&words, 0, words.len()).is_ok());
        let words = iterations(2, 0x6000);
        for missing in 1..words.len() {
            let mut cut = words.clone();
            cut[missing..].fill(0);
            assert_eq!(counted.begin(&cut, 0, cut.len()), Ok(None), "{missing} words");
        }
    }

    #[test]
    fn damage_does_not_become_millions_of_events() {
        let mut counted = Counted::default();
        let words = iterations(1, 0x6000);
        assert_eq!(counted.begin(&words, 0, words.len()), Err(FaultKind::UndefinedLoop(LOOP)));
        let words = definition();
        assert!(counted.define(&words, 0, words.len()).is_ok());
        for count in [MOST_ACCESSES, !WRITTEN] {
            let words = iterations(count, 0x6000);
            assert_eq!(counted.begin(&words, 0, words.len()), Err(FaultKind::Iterations(count)));
        }
        // A base that there is not, and more operations than there may be.
        let mut words = definition();
        words[6] = word(2, access_kind(AccessClass::Write, 2), 4);
        assert_eq!(counted.define(&words, 0, words.len()), Err(FaultKind::Loop));
        words[1] |= 0xffff;
        assert_eq!(counted.define(&words, 0, words.len()), Err(FaultKind::Loop));
    }
}
