//! Orders of one object's steps that do not contradict what is decided already: linear extensions of a partial order.
//!
//! Steps are taken together where no other can come between ([`Shape::units`]). Of each two units of different threads the one
//! comes first in any case if the other order would close a cycle with what is decided.

use crate::shape::{Behind, Decided, Edge, Event, Place, Shape};
use rashomon_abi::numbers::SplitMix;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hasher as _};

/// Threads, in the order of their steps at an object.
pub type Sequence = Vec<u32>;

/// What comes in an order. No object has more than 64 of them ([`MOST_EVENTS`](crate::shape::MOST_EVENTS)).
pub struct Units<'e> {
    units: Vec<Vec<&'e Event>>,
    /// Bits by number: which come before this one in any case.
    before: Vec<u64>,
    /// By thread, its first one; and behind each unit the next one of its thread.
    first: Vec<(u32, usize)>,
    next: Vec<Option<usize>>,
}

impl<'e> Units<'e> {
    pub fn of(shape: &Shape, events: &'e [Event], whole: bool, decided: &Decided) -> Self {
        let units = shape.units(events, whole);
        let mut known: FxHashMap<Place, Behind> = FxHashMap::default();
        let mut before = vec![0; units.len()];
        for one in 0..units.len() {
            for other in one + 1..units.len() {
                if units[one][0].at.id.thread == units[other][0].at.id.thread {
                    before[other] |= 1 << one;
                    continue;
                }
                let mut may_come = |first: usize, then: usize| {
                    // What cannot be asked for may still come.
                    let Some([from, to]) = edge(shape, &units[first], &units[then], whole) else { return true };
                    !known.entry(to).or_insert_with(|| decided.behind(to)).includes(from)
                };
                // If neither may come first, they come as they did.
                if !may_come(other, one) {
                    before[other] |= 1 << one;
                } else if !may_come(one, other) {
                    before[one] |= 1 << other;
                }
            }
        }
        let (first, next) = of_threads(&units);
        Self { units, before, first, next }
    }

    fn thread(&self, unit: usize) -> u32 {
        self.units[unit][0].at.id.thread
    }

    /// As they came.
    pub fn threads(&self) -> Sequence {
        (0..self.units.len()).map(|unit| self.thread(unit)).collect()
    }

    /// The extension that is nearest to an order of the units' threads: each as early as it may be.
    pub fn nearest(&self, wanted: &[u32]) -> Vec<usize> {
        let mut left: Vec<Option<usize>> = self.first.iter().map(|(_, unit)| Some(*unit)).collect();
        let mut take = |thread: &u32| {
            let at = self.first.binary_search_by_key(thread, |(thread, _)| *thread).ok()?;
            let unit = left[at]?;
            left[at] = self.next[unit];
            Some(unit)
        };
        let mut open: Vec<usize> = wanted.iter().filter_map(&mut take).collect();
        let (mut done, mut nearest) = (0_u64, Vec::with_capacity(open.len()));
        while !open.is_empty() {
            let next = open.iter().position(|&unit| self.before[unit] & !done == 0).unwrap_or(0);
            let unit = open.remove(next);
            done |= 1 << unit;
            nearest.push(unit);
        }
        nearest
    }

    /// Whether they are of different threads.
    pub fn are_apart(&self, one: usize, other: usize) -> bool {
        self.thread(one) != self.thread(other)
    }

    /// Whether the one may come before the other.
    pub fn may_come(&self, first: usize, then: usize) -> bool {
        self.before[first] >> then & 1 == 0
    }

    /// Threads of the steps in such an order.
    pub fn sequence(&self, order: &[usize]) -> Sequence {
        order.iter().flat_map(|&unit| self.units[unit].iter().map(|event| event.at.id.thread)).collect()
    }

    /// The last step of the one unit and the first of the other.
    pub fn between(&self, first: usize, then: usize) -> Option<(&'e Event, &'e Event)> {
        Some((*self.units[first].last()?, *self.units[then].first()?))
    }
}

/// Each thread's first unit, and what comes behind each in its thread.
fn of_threads(units: &[Vec<&Event>]) -> (Vec<(u32, usize)>, Vec<Option<usize>>) {
    let (mut first, mut next, mut last) = (BTreeMap::new(), vec![None; units.len()], BTreeMap::new());
    for (number, unit) in units.iter().enumerate() {
        let thread = unit[0].at.id.thread;
        first.entry(thread).or_insert(number);
        if let Some(before) = last.insert(thread, number) {
            let before: usize = before;
            next[before] = Some(number);
        }
    }
    (first.into_iter().collect(), next)
}

fn edge(shape: &Shape, first: &[&Event], then: &[&Event], whole: bool) -> Option<Edge> {
    shape.order(first.last()?, then.first()?, whole).map(|(_, edge)| edge)
}

/// The logarithm of the number of orders in which so many steps of each thread can come.
pub fn logarithm(threads: impl Iterator<Item = u32>) -> f64 {
    let mut of: FxHashMap<u32, u32> = FxHashMap::default();
    threads.zip(1_u32..).fold(0.0, |sum, (thread, all)| {
        let count = of.entry(thread).or_default();
        *count += 1;
        sum + f64::from(all).ln() - f64::from(*count).ln()
    })
}

/// Any order is as likely as any other.
pub fn shuffle<T>(random: &mut SplitMix, of: &mut [T]) {
    for at in (1..of.len()).rev() {
        of.swap(at, random.below(at as u64 + 1) as usize);
    }
}

/// What tells things apart, the same in every run.
pub fn hash(of: &impl std::hash::Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}

/// What tells the orders of all objects, whichever of them was decided first.
pub fn hash_of_all<'o>(orders: impl Iterator<Item = (u64, &'o [u32])>) -> u64 {
    orders.map(|order| hash(&order)).fold(0, u64::wrapping_add)
}

/// Of events, in the order in which they came.
pub fn sequence(events: &[Event]) -> Sequence {
    events.iter().map(|event| event.at.id.thread).collect()
}

/// A sequence without repetitions.
pub fn changes(sequence: &[u32]) -> Sequence {
    let mut changes = sequence.to_vec();
    changes.dedup();
    changes
}

/// The one sequence with as many steps of each thread as the other.
pub fn fitted(known: &[u32], like: &[u32]) -> Sequence {
    let mut left: BTreeMap<u32, usize> = BTreeMap::new();
    like.iter().for_each(|thread| *left.entry(*thread).or_default() += 1);
    let mut take = |thread: &u32| {
        let left = left.get_mut(thread).filter(|left| **left > 0);
        left.map(|left| *left -= 1).is_some()
    };
    let mut fitted: Sequence = known.iter().copied().filter(&mut take).collect();
    fitted.extend(like.iter().copied().filter(&mut take));
    fitted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_sequence_fits_other_counts() {
        assert_eq!(fitted(&[2, 1, 2], &[1, 1, 2]), [2, 1, 1]);
        assert_eq!(fitted(&[], &[0, 1]), [0, 1]);
    }
}
