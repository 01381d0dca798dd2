//! Sets of events of one trace: a bit each.

use crate::ids::EventIndex;
use std::ops::Range;

const BITS: usize = 64;

/// A set of events, which grows with the last one in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventSet(Vec<u64>);

impl EventSet {
    /// With room for the events of a trace.
    pub fn with_room(events: usize) -> Self {
        Self(Vec::with_capacity(events.div_ceil(BITS)))
    }

    #[inline]
    pub fn insert(&mut self, event: EventIndex) {
        let word = event.index() / BITS;
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << (event.index() % BITS);
    }

    #[inline]
    pub fn contains(&self, event: EventIndex) -> bool {
        self.0.get(event.index() / BITS).is_some_and(|word| word >> (event.index() % BITS) & 1 == 1)
    }

    /// The events of the set in a range, in their order.
    pub fn within(&self, range: Range<u32>) -> impl Iterator<Item = EventIndex> + '_ {
        let (start, end) = (range.start as usize, range.end as usize);
        let words = start / BITS..end.div_ceil(BITS).min(self.0.len());
        words.flat_map(move |word| {
            let first = word * BITS;
            let mut left = self.0[word];
            if first < start {
                left &= u64::MAX << (start - first);
            }
            if end - first < BITS {
                left &= (1 << (end - first)) - 1;
            }
            each(word, left)
        })
    }

    /// The events that are in any of the sets, in their order.
    pub fn union<const N: usize>(sets: [&Self; N]) -> impl Iterator<Item = EventIndex> + use<'_, N> {
        let words = sets.iter().map(|set| set.0.len()).max().unwrap_or(0);
        (0..words).flat_map(move |word| each(word, sets.iter().fold(0, |all, set| all | set.0.get(word).copied().unwrap_or(0))))
    }
}

impl FromIterator<EventIndex> for EventSet {
    fn from_iter<I: IntoIterator<Item = EventIndex>>(events: I) -> Self {
        let mut set = Self::default();
        events.into_iter().for_each(|event| set.insert(event));
        set
    }
}

/// The events whose bits are set in a word.
fn each(word: usize, mut left: u64) -> impl Iterator<Item = EventIndex> {
    std::iter::from_fn(move || {
        let bit = left.trailing_zeros();
        left &= left.wrapping_sub(1);
        (bit < BITS as u32).then(|| EventIndex((word * BITS) as u32 + bit))
    })
}

/// A set of events that numbers them, in their order.
#[derive(Clone, Debug, Default)]
pub struct NumberedEvents {
    set: EventSet,
    /// How many events of the set come before each word.
    before: Vec<u32>,
}

impl From<EventSet> for NumberedEvents {
    fn from(set: EventSet) -> Self {
        let counted = set.0.iter().scan(0, |count, word| {
            let before = *count;
            *count += word.count_ones();
            Some(before)
        });
        let before = counted.collect();
        Self { set, before }
    }
}

impl NumberedEvents {
    /// How many events of the set come before this one, if it is one of them.
    #[inline]
    pub fn number(&self, event: EventIndex) -> Option<usize> {
        let (word, bit) = (event.index() / BITS, event.index() % BITS);
        let bits = *self.set.0.get(word)?;
        let lower = bits & ((1 << bit) - 1);
        (bits >> bit & 1 == 1).then(|| self.before[word] as usize + lower.count_ones() as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn are_sets(events in prop::collection::btree_set(0..400_u32, 0..80), start in 0..450_u32, end in 0..450_u32) {
            let mut set = EventSet::default();
            // In any order.
            for &event in events.iter().rev().step_by(2).chain(events.iter()) {
                set.insert(EventIndex(event));
            }
            for event in 0..450 {
                prop_assert_eq!(set.contains(EventIndex(event)), events.contains(&event));
            }
            let within: Vec<u32> = set.within(start..end).map(|event| event.0).collect();
            let expected: BTreeSet<u32> = events.iter().copied().filter(|event| (start..end).contains(event)).collect();
            prop_assert_eq!(within, expected.into_iter().collect::<Vec<_>>());
            let others: EventSet = [start, end].into_iter().map(EventIndex).collect();
            let all: BTreeSet<u32> = events.iter().copied().chain([start, end]).collect();
            prop_assert!(EventSet::union([&set, &others]).map(|event| event.0).eq(all));
            let numbered = NumberedEvents::from(set);
            for event in 0..450 {
                let number = events.contains(&event).then(|| events.range(..event).count());
                prop_assert_eq!(numbered.number(EventIndex(event)), number);
            }
        }
    }
}
