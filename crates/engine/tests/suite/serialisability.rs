//! Conflict serialisability against the graph of transactions.

use crate::support::random::{Shape, SplitMix, draw, enumerate, traces};
use crate::support::relations::{Set, bit, events, same_life};
use crate::support::{feed, text};
use rashomon_engine::serialisability::{Regions, Serialisability, Violations};
use rashomon_packed::{Event, Op};
use std::collections::BTreeSet;

fn begins(op: Op, regions: Regions) -> bool {
    match op {
        Op::Begin => regions != Regions::CriticalSections,
        Op::Acquire | Op::AcquireShared => regions != Regions::Marked,
        _ => false,
    }
}

/// The transaction of each event: for a region the event that begins it.
fn transactions(trace: &[Event], regions: Regions) -> Vec<usize> {
    let ends = |op| match op {
        Op::End => regions != Regions::CriticalSections,
        Op::Release | Op::ReleaseShared => regions != Regions::Marked,
        _ => false,
    };
    let mut open: Vec<Vec<usize>> = vec![Vec::new(); 64];
    let mut of = Vec::new();
    for (at, event) in trace.iter().enumerate() {
        let open = &mut open[usize::from(event.thread)];
        if begins(event.op, regions) {
            open.push(at);
        }
        of.push(open.first().copied().unwrap_or(at));
        if ends(event.op) {
            open.pop();
        }
    }
    of
}

fn ordered(trace: &[Event], one: usize, other: usize) -> bool {
    let (a, b) = (&trace[one], &trace[other]);
    let access = a.op.is_access()
        && b.op.is_access()
        && a.target == b.target
        && (a.op.writes() || b.op.writes())
        && same_life(trace, one, other);
    a.thread == b.thread
        || access
        || (a.op == Op::Fork && a.target == u32::from(b.thread))
        || (b.op == Op::Join && b.target == u32::from(a.thread))
        || (a.target == b.target
            && matches!(
                (a.op, b.op),
                (Op::Release, Op::Acquire | Op::AcquireShared)
                    | (Op::ReleaseShared, Op::Acquire)
                    | (Op::ReleaseObject, Op::AcquireObject)
                    | (Op::Enter, Op::Exit)
                    | (Op::Fork, Op::Join)
            ))
}

/// What reaches each node over at least one edge; `into[n]` are the edges into node n.
fn reaching(into: &[Set]) -> Vec<Set> {
    let mut reaching = into.to_vec();
    for middle in 0..into.len() {
        let before = reaching[middle];
        reaching.iter_mut().filter(|set| **set & bit(middle) != 0).for_each(|set| *set |= before);
    }
    reaching
}

/// The edges between nodes of the graph of transactions, those of event `at`.
fn add_edges(into: &mut [Set], trace: &[Event], of: &[usize], at: usize) {
    let before = (0..at).filter(|before| of[*before] != of[at] && ordered(trace, *before, at));
    into[of[at]] |= before.fold(0, |all, before| all | bit(of[before]));
}

/// The transactions on cycles, of the first `length` events.
fn on_cycles(trace: &[Event], of: &[usize], length: usize) -> BTreeSet<usize> {
    let mut into = vec![0; trace.len()];
    (0..length).for_each(|at| add_edges(&mut into, trace, of, at));
    reaching(&into).iter().enumerate().filter(|(node, before)| **before & bit(*node) != 0).map(|(node, _)| node).collect()
}

/// The first event at which the graph has a cycle.
fn first_cycle(trace: &[Event], of: &[usize]) -> Option<usize> {
    let is_cyclic = |length: usize| !on_cycles(trace, of, length).is_empty();
    if !is_cyclic(trace.len()) {
        return None;
    }
    (1..=trace.len()).collect::<Vec<usize>>().partition_point(|length| !is_cyclic(*length)).into()
}

/// Transactions that others come in between of: an event of the transaction, one of another that is ordered behind it, a later
/// one of the first that is ordered behind that.
fn not_causally_atomic(trace: &[Event], of: &[usize]) -> BTreeSet<usize> {
    let before = |at: usize| (0..at).filter(|before| ordered(trace, *before, at)).fold(0, |all, before| all | bit(before));
    let before = reaching(&(0..trace.len()).map(before).collect::<Vec<Set>>());
    let own = |of_one: usize| (0..trace.len()).filter(|at| of[*at] == of_one).fold(0, |all, at| all | bit(at));
    let cut = |at: &usize| {
        let own = own(of[*at]);
        events(before[*at] & !own).any(|other| before[other] & own != 0)
    };
    (0..trace.len()).filter(cut).map(|at| of[at]).collect()
}

fn attributed(violations: &Violations) -> BTreeSet<usize> {
    let places = violations.places().values();
    // Each event has a location of its own.
    places.inspect(|place| assert_eq!(place.count, 1)).map(|place| place.first.event as usize).collect()
}

/// Forgetting whatever may be forgotten before every block misses nothing.
fn check_eager(trace: &[Event], regions: Regions, found: &Violations) {
    let mut eager = Serialisability::new(regions).eager();
    feed(&mut eager, trace, 3);
    let of_regions = |found: &Violations| {
        let first = found.pairs().values().map(|pair| pair.first.event).min();
        (found.regions(), found.places().clone(), found.forgotten(), first)
    };
    assert_eq!(of_regions(&eager.found()), of_regions(found), "{regions:?}\n{}", text(trace));
}

fn check(trace: &[Event]) {
    for regions in [Regions::Marked, Regions::CriticalSections, Regions::All] {
        let of = transactions(trace, regions);
        let mut analysis = Serialisability::new(regions);
        feed(&mut analysis, trace, 3);
        let found = analysis.found();
        // A sweep looks at a thousand variables, so it is not tried on every trace.
        if trace.iter().map(|event| event.op as usize + event.target as usize).sum::<usize>().is_multiple_of(16) {
            check_eager(trace, regions, &found);
        }
        let first = found.pairs().values().map(|pair| pair.first.event as usize).min();
        assert_eq!(first, first_cycle(trace, &of), "{regions:?}\n{}", text(trace));
        // Whatever is reported is the region of the event that closes the cycle.
        for pair in found.pairs().values() {
            assert_eq!(of[pair.first.event as usize] as u64, pair.first.region.event, "{regions:?}\n{}", text(trace));
        }
        let in_regions = |mut all: BTreeSet<usize>| {
            all.retain(|node| begins(trace[*node].op, regions));
            all
        };
        let violating = in_regions(on_cycles(trace, &of, trace.len()));
        assert_eq!(attributed(&found), violating, "{regions:?}\n{}", text(trace));
        assert_eq!((found.violating(), found.forgotten()), (violating.len() as u64, 0));
        assert!(in_regions(not_causally_atomic(trace, &of)).is_subset(&violating), "{regions:?}\n{}", text(trace));
    }
}

/// What is forgotten is counted, and nothing else is missed.
#[test]
fn little_is_remembered() {
    let mut random = SplitMix(3);
    let (mut exact, mut short) = (0, 0);
    for _ in 0..traces(5_000) {
        let shape = Shape { threads: 3, events: 60, variables: 2, locks: 1, everything: false, regions: true };
        let trace = draw(&mut random, &shape);
        let of = transactions(&trace, Regions::All);
        let mut analysis = Serialisability::new(Regions::All).remembering(3);
        feed(&mut analysis, &trace, 3);
        let (found, violating) = (analysis.found(), on_cycles(&trace, &of, trace.len()));
        let violating = violating.into_iter().filter(|node| begins(trace[*node].op, Regions::All)).collect::<BTreeSet<_>>();
        let attributed = attributed(&found);
        assert!(attributed.is_subset(&violating), "{}", text(&trace));
        assert!(violating.len() as u64 <= attributed.len() as u64 + found.forgotten(), "{}", text(&trace));
        exact += u64::from(attributed == violating);
        short += u64::from(attributed != violating);
    }
    assert!(exact > 0 && short > 0, "{exact} and {short}");
}

#[test]
fn all_small_traces() {
    let shape = Shape { threads: 2, events: 0, variables: 1, locks: 0, everything: false, regions: true };
    enumerate(&shape, &[(Op::Read, 0), (Op::Write, 0), (Op::Begin, 0), (Op::End, 0)], 7, &mut check);
    let alphabet = [(Op::Write, 0), (Op::Write, 1), (Op::Begin, 0), (Op::End, 0)];
    enumerate(&Shape { threads: 3, variables: 2, ..shape }, &alphabet, 6, &mut check);
}

#[test]
fn drawn_traces() {
    let mut random = SplitMix(1);
    for number in 0..traces(60_000) {
        let shape = Shape {
            threads: 2 + (number % 4) as u16,
            events: 8 + (number % 30) as usize,
            variables: 1 + (number % 4) as u32,
            locks: (number % 3) as u32,
            everything: number % 3 == 0,
            regions: true,
        };
        check(&draw(&mut random, &shape));
    }
}
