//! What race analyses report: how many events race, and an example for each pair of places, in bounded memory.

use crate::clock::{Row, Time};
use crate::history::Entry;
use rashomon_packed::Event;
use std::collections::BTreeMap;

/// One side of a race.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Access {
    /// The event's number in the trace, from 0.
    pub event: u64,
    pub thread: u16,
    pub location: u32,
}

/// The earlier access is unknown where an analysis keeps none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Race {
    pub variable: u32,
    pub earlier: Option<Access>,
    pub later: Access,
}

impl Race {
    /// The unordered pair of locations; nowhere for an access that is unknown.
    pub fn places(&self) -> Places {
        let earlier = self.earlier.map_or(0, |access| access.location);
        (earlier.min(self.later.location), earlier.max(self.later.location))
    }
}

pub type Places = (u32, u32);

/// All races of one pair of places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    /// The one whose later access comes first.
    pub first: Race,
    pub count: u64,
}

/// Pairs of places that are kept.
pub const MAX_PAIRS: usize = 1 << 16;

/// The races of a trace, or of a share of its variables. Beyond [`MAX_PAIRS`] the greatest pairs of places are dropped, so that
/// what is kept does not depend on how the variables were shared out, and every count that is kept is exact.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Races {
    events: u64,
    pairs: BTreeMap<Places, Pair>,
    dropped: bool,
    /// Every race, for who asked.
    all: Option<Vec<Race>>,
}

impl Races {
    /// Keeps every single race too, without bound.
    pub fn keeping_all() -> Self {
        Self { all: Some(Vec::new()), ..Self::default() }
    }

    /// In the order of the later accesses.
    pub fn all(&self) -> Option<&[Race]> {
        self.all.as_deref()
    }

    /// Accesses that race with an earlier one.
    pub fn events(&self) -> u64 {
        self.events
    }

    pub fn pairs(&self) -> &BTreeMap<Places, Pair> {
        &self.pairs
    }

    /// Whether there were more pairs of places than are kept.
    pub fn dropped(&self) -> bool {
        self.dropped
    }

    /// An access races; each of the earlier ones follows as a [`Self::race`].
    pub fn event(&mut self) {
        self.events += 1;
    }

    pub fn race(&mut self, race: Race) {
        if let Some(all) = &mut self.all {
            all.push(race);
        }
        self.add(race.places(), Pair { first: race, count: 1 });
    }

    /// The event races with those of the accesses it conflicts with that its thread does not know.
    #[inline]
    pub(crate) fn report<'a>(&mut self, event: &Event, now: Time, conflicts: impl Iterator<Item = &'a Entry>, known: &Row) {
        self.report_from(0, event, now, conflicts, known);
    }

    /// The same, where times count from event `origin` on.
    #[inline]
    pub(crate) fn report_from<'a>(
        &mut self,
        origin: u64,
        event: &Event,
        now: Time,
        conflicts: impl Iterator<Item = &'a Entry>,
        known: &Row,
    ) {
        let access = |entry: &Entry| {
            let access = entry.access();
            Access { event: origin + access.event, ..access }
        };
        let later = access(&Entry::of(event, now));
        let mut first = true;
        for entry in conflicts.filter(|entry| !entry.is_before(known)) {
            if std::mem::take(&mut first) {
                self.event();
            }
            self.race(Race { variable: event.target, earlier: Some(access(entry)), later });
        }
    }

    fn add(&mut self, places: Places, new: Pair) {
        if self.dropped && self.pairs.last_key_value().is_some_and(|(last, _)| places > *last) {
            return;
        }
        self.pairs
            .entry(places)
            .and_modify(|pair| {
                pair.count += new.count;
                let order = |race: &Race| (race.later.event, race.earlier);
                if order(&new.first) < order(&pair.first) {
                    pair.first = new.first;
                }
            })
            .or_insert(new);
        if self.pairs.len() > MAX_PAIRS {
            self.pairs.pop_last();
            self.dropped = true;
        }
    }

    /// Calls threads by other names.
    pub(crate) fn rename_threads(&mut self, name: impl Fn(u16) -> u16) {
        let races = self.pairs.values_mut().map(|pair| &mut pair.first).chain(self.all.iter_mut().flatten());
        let accesses = races.flat_map(|race| race.earlier.iter_mut().chain([&mut race.later]));
        accesses.for_each(|access| access.thread = name(access.thread));
    }

    /// The races of other variables, found by another worker.
    pub fn merge(&mut self, other: Self) {
        self.events += other.events;
        if let (Some(all), Some(others)) = (&mut self.all, other.all) {
            all.extend(others);
            all.sort_unstable_by_key(|race| (race.later.event, race.earlier));
        }
        // First, because of what the other one dropped nothing greater may be kept.
        if other.dropped {
            let last = *other.pairs.last_key_value().expect("something was kept").0;
            self.pairs.retain(|places, _| *places <= last);
            self.dropped = true;
        }
        for (places, pair) in other.pairs {
            self.add(places, pair);
        }
    }

    pub fn bytes(&self) -> usize {
        self.pairs.len() * 2 * (size_of::<Places>() + size_of::<Pair>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn race(event: u64, one: u32, other: u32) -> Race {
        let access = |event, location| Access { event, thread: 0, location };
        Race { variable: 0, earlier: Some(access(0, one)), later: access(event, other) }
    }

    #[test]
    fn what_is_kept_does_not_depend_on_the_shares() {
        let places = MAX_PAIRS as u32 + 100;
        let all: Vec<Race> = (0..3 * places).map(|event| race(u64::from(event), 1, (event * 7919) % places)).collect();
        let collect = |shares: usize| {
            let mut parts = vec![Races::default(); shares];
            for (number, &one) in all.iter().enumerate() {
                parts[number % 5 % shares].race(one);
            }
            parts.into_iter().reduce(|mut one, other| {
                one.merge(other);
                one
            })
        };
        let alone = collect(1).unwrap();
        assert!(alone.dropped() && alone.pairs().len() == MAX_PAIRS);
        for shares in 2..5 {
            assert_eq!(collect(shares).unwrap(), alone);
        }
    }
}
