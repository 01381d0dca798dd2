//! The online analysis equals a construction that stores everything, on random executions.

mod construction;
mod programs;
mod races;

use construction::{Construction, Member, Operation};
use programs::{ADDRESSES, Action, events};
use proptest::prelude::*;
use races::Judge;
use rashomon_units::{Analysis, Bytes, Event, Limits, LockSet, Options, Overwriting, SharedDependences};
use std::collections::BTreeSet;

/// Nothing is forgotten.
fn unbounded(slack: usize) -> Limits {
    Limits {
        units_of_location: 1000,
        units_of_set: 1000,
        sets_of_unit: 1000,
        lines_of_unit: 1000,
        members: 1000,
        slack,
        ..Limits::default()
    }
}

fn addresses(ranges: &[Bytes]) -> BTreeSet<u64> {
    ranges.iter().flat_map(|range| range.start..range.end()).collect()
}

fn locks(set: &LockSet) -> Option<BTreeSet<u64>> {
    match set {
        LockSet::All => None,
        LockSet::These(locks) => Some(locks.iter().map(|(lock, _)| lock.0).collect()),
    }
}

/// Everything that both say about one byte.
fn same_byte(online: &Analysis, offline: &Construction, address: u64, swept: bool) {
    let byte = offline.byte(address);
    let set = offline.sets.get(&Member::Byte(byte)).copied();
    let members = set.map(|set| {
        let same = offline.sets.iter().filter(|(_, other)| **other == set);
        same.filter_map(|(member, _)| if let Member::Byte((address, _)) = member { Some(*address) } else { None }).collect()
    });
    assert_eq!(online.correlated_set(address).map(|ranges| addresses(&ranges)), members, "the set of {address:x}");
    let lines = |lines: &[rashomon_units::Line]| lines.iter().map(|line| line.0 as Operation).collect::<BTreeSet<_>>();
    let mut found: Vec<_> =
        online.units(address).iter().map(|unit| (lines(&unit.lines), unit.closed, locks(&unit.locks), unit.thread.0)).collect();
    found.sort();
    let units: BTreeSet<usize> =
        offline.accesses.iter().filter(|access| access.byte == byte).map(|access| offline.units[&access.operation]).collect();
    let view = |unit: usize| {
        let operations = offline.operations(unit);
        let thread = offline.threads[operations.first().unwrap()];
        (operations, offline.closed.contains(&unit), offline.locks(unit), thread)
    };
    let mut expected: Vec<_> = units.iter().map(|unit| view(*unit)).collect();
    expected.sort();
    assert_eq!(found, expected, "the units of {address:x}");
    let writer = offline.writer(byte).map(view);
    if !swept || writer.as_ref().is_some_and(|writer| !writer.1) {
        let found = online.writer(address).map(|unit| lines(&unit.lines));
        assert_eq!(found, writer.map(|writer| writer.0), "the writer of {address:x}");
    }
}

fn compare(options: &Options, events: &[Event<'_>]) {
    let mut online = Analysis::new(options.clone());
    let mut offline = Construction::new(options);
    for (now, event) in events.iter().enumerate() {
        let before = Judge::prepare(&offline);
        online.event(event);
        offline.event(now, event);
        for address in ADDRESSES {
            same_byte(&online, &offline, address, options.limits.slack == 0);
        }
        Judge::event(&mut offline, events, now, &before, |address| online.has_race(address));
    }
}

fn options() -> impl Strategy<Value = Options> {
    let shared = prop_oneof![Just(SharedDependences::Close), Just(SharedDependences::WithinFunction)];
    let overwriting = prop_oneof![2 => Just(Overwriting::Replaces), 1 => Just(Overwriting::MergesIfShared)];
    (shared, overwriting, prop::bool::weighted(0.3), any::<bool>()).prop_map(
        |(shared_dependences, overwriting, addresses, sweep)| {
            let limits = unbounded(if sweep { 0 } else { 1 << 16 });
            Options { shared_dependences, overwriting, addresses, limits, ..Options::default() }
        },
    )
}

/// Of three threads.
fn actions(most: usize) -> impl Strategy<Value = Vec<(u32, Action)>> {
    prop::collection::vec((0u32..3, any::<Action>()), 0..most)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, ..ProptestConfig::default() })]

    #[test]
    fn online_equals_offline(options in options(), actions in actions(45)) {
        compare(&options, &events(&actions));
    }

    /// Whatever is forgotten, nothing breaks.
    #[test]
    fn tight_limits_do_no_harm(options in options(), actions in actions(120), most in 1usize..4, states in any::<bool>()) {
        let limits = Limits {
            locations: 4 * most, range: 2, threads: 2, registers: 3 * most, units_of_location: most, units_of_set: most,
            sets_of_unit: most, lines_of_unit: most, links_of_set: most, members: most, races: most, slack: 0,
        };
        let detection = if states { rashomon_units::Detection::States } else { rashomon_units::Detection::Pairs };
        let mut analysis = Analysis::new(Options { limits, detection, ..options });
        for event in events(&actions) {
            analysis.event(&event);
            prop_assert!(analysis.races().len() <= most);
        }
    }
}
