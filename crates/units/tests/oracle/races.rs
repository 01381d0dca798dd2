//! Extended data races of a stored execution, straight from the definition: every pair of units, every set.

use crate::construction::{Byte, Construction, Member, Operation};
use rashomon_units::{Event, Step};
use std::collections::{BTreeMap, BTreeSet};

pub struct Judge;

/// What was the case before an event.
pub struct Before {
    units: BTreeMap<Operation, usize>,
    locks: BTreeMap<usize, Option<BTreeSet<u64>>>,
    shared: BTreeSet<Byte>,
}

/// Whether what `earlier` did is known at `later`: a chain of program order, forks, joins, and signals that were waited for.
pub fn happens_before(events: &[Event<'_>], earlier: Operation, later: Operation) -> bool {
    let edge = |from: &Event<'_>, to: &Event<'_>| {
        from.thread == to.thread
            || match (from.step, to.step) {
                (Step::Signal { object }, Step::Wait { object: other }) => object == other,
                // A child that does nothing has a beginning and an end all the same.
                (Step::Fork { child }, Step::Join { child: other }) if child == other => true,
                (Step::Fork { child }, _) => child == to.thread,
                (_, Step::Join { child }) => child == from.thread,
                _ => false,
            }
    };
    let mut reached = BTreeSet::from([earlier]);
    for to in earlier + 1..=later {
        if reached.iter().any(|from| edge(&events[*from], &events[to])) {
            reached.insert(to);
        }
    }
    reached.contains(&later)
}

/// What a unit did to a set: its first and last access to shared members, and whether it modified any.
fn deeds(offline: &Construction, unit: usize, set: usize) -> Option<(Operation, Operation, bool)> {
    let mine = offline.accesses.iter().filter(|access| {
        offline.units[&access.operation] == unit
            && offline.shared(access.byte)
            && offline.sets.get(&Member::Byte(access.byte)) == Some(&set)
    });
    mine.map(|access| (access.operation, access.operation, access.wrote))
        .reduce(|one, other| (one.0.min(other.0), one.1.max(other.1), one.2 | other.2))
}

fn race(offline: &Construction, events: &[Event<'_>], one: usize, other: usize, set: usize) -> bool {
    let (Some(a), Some(b)) = (deeds(offline, one, set), deeds(offline, other, set)) else { return false };
    let parallel = |one: Operation, other: Operation| {
        events[one].thread != events[other].thread && !happens_before(events, one.min(other), one.max(other))
    };
    let protected = match (offline.locks(one), offline.locks(other)) {
        (Some(one), Some(other)) => !one.is_disjoint(&other),
        _ => true,
    };
    (a.2 || b.2) && !protected && [a.0, a.1].iter().any(|one| [b.0, b.1].iter().any(|other| parallel(*one, *other)))
}

impl Judge {
    pub fn prepare(offline: &Construction) -> Before {
        let units: BTreeSet<usize> = offline.units.values().copied().collect();
        Before {
            units: offline.units.clone(),
            locks: units.iter().map(|unit| (*unit, offline.locks(*unit))).collect(),
            shared: offline.accessors.keys().copied().filter(|byte| offline.shared(*byte)).collect(),
        }
    }

    /// Units that must be judged with all others, each in these sets or in all.
    fn changed(offline: &Construction, now: Operation, before: &Before) -> BTreeSet<(usize, Option<usize>)> {
        let mut changed = BTreeSet::new();
        for access in &offline.accesses {
            let unit = offline.units[&access.operation];
            let exposed = offline.shared(access.byte) && !before.shared.contains(&access.byte);
            let accessed = access.operation == now && offline.shared(access.byte);
            if exposed || accessed {
                changed.insert((unit, offline.sets.get(&Member::Byte(access.byte)).copied()));
            }
        }
        let units: BTreeSet<usize> = offline.units.values().copied().collect();
        for unit in units {
            let old: BTreeSet<usize> =
                offline.operations(unit).iter().filter_map(|operation| before.units.get(operation)).copied().collect();
            let locks = offline.locks(unit);
            if old.len() > 1 || old.iter().any(|old| before.locks[old] != locks) {
                changed.insert((unit, None));
            }
        }
        changed
    }

    /// Compares with the sets that the online analysis found racy, and takes its word for those that need not be judged.
    pub fn event(
        offline: &mut Construction,
        events: &[Event<'_>],
        now: Operation,
        before: &Before,
        online: impl Fn(u64) -> bool,
    ) {
        let changed = Self::changed(offline, now, before);
        let units: BTreeSet<usize> = offline.units.values().copied().collect();
        let sets: BTreeSet<usize> = offline.sets.values().copied().collect();
        for set in sets {
            let bytes = offline.bytes_of(set);
            let Some((address, _)) = bytes.first().filter(|_| !offline.racy.contains(&set)) else { continue };
            let parts = offline.merged_sets.get(&set).map_or(&[][..], |parts| parts);
            let acts_on = |unit: usize, part: &BTreeSet<Byte>| {
                let mut accesses = offline.accesses.iter().filter(|access| offline.units[&access.operation] == unit);
                accesses.any(|access| part.contains(&access.byte) && offline.shared(access.byte))
            };
            let meet = |one: usize, other: usize| {
                let of = |unit| (0..parts.len()).filter(|part| acts_on(unit, &parts[*part])).collect::<BTreeSet<_>>();
                of(one).iter().any(|part| of(other).iter().any(|other| part != other))
            };
            let new = |unit: usize| changed.contains(&(unit, None)) || changed.contains(&(unit, Some(set)));
            let pairs = units.iter().flat_map(|one| units.range(..one).map(|other| (*one, *other)));
            let racing: Vec<_> = pairs.filter(|(one, other)| race(offline, events, *one, *other, set)).collect();
            let must = racing.iter().any(|(one, other)| new(*one) || new(*other) || meet(*one, *other));
            let found = online(*address);
            assert!(found || !must, "a race of {racing:?} on {bytes:x?} behind {:?} was not found", events[now]);
            assert!(!found || !racing.is_empty(), "no units race on {bytes:x?} behind {:?}", events[now]);
            if found {
                offline.racy.insert(set);
            }
        }
    }
}
