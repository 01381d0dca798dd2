//! Each class of correct reorderings against its definition, pair by pair and cycle by cycle.

use rashomon_event::{
    Access, AccessClass, Address, CandidateKind, EventIndex, EventKind, LockMode, SiteId, Trace, Witness, WitnessLevel,
};
use rashomon_order::{LockGraph, SharedMemory};
use rashomon_predict::closure::Closures;
use rashomon_predict::deadlocks;
use rashomon_predict::exact::{self, Decision, Limits};
use rashomon_predict::index::Index;
use rashomon_predict::reversal::sync_reversal;
use rashomon_predict::walk;
use rashomon_testkit::{Features, Reachable, Rules, Shape, cuts, describe, enumerate, random, reachable, reversal};
use rashomon_witness::Checker;
use std::collections::BTreeSet;

#[derive(Debug, Default)]
struct Tally {
    traces: usize,
    pairs: usize,
    sync_preserving: usize,
    sync_reversal: usize,
    all: usize,
    refuted: usize,
    deadlocks: usize,
    deadlocks_refuted: usize,
}

fn oracle(trace: &Trace, rules: Rules) -> Reachable {
    cuts::reach(trace, rules, usize::MAX).unwrap_or_else(|| reachable(trace, rules))
}

fn pairs(trace: &Trace) -> Vec<(EventIndex, EventIndex)> {
    let mut pairs = Vec::new();
    for second in trace.indices() {
        for first in trace.indices().take(second.index()) {
            let (one, other) = (trace.event(first), trace.event(second));
            if one.thread != other.thread
                && let (Some(one), Some(other)) = (one.access(), other.access())
                && one.conflicts(&other)
            {
                pairs.push((first, second));
            }
        }
    }
    pairs
}

fn check(trace: &Trace, bytewise: bool, tally: &mut Tally) {
    let memory = SharedMemory::new(trace);
    let index = Index::new(trace, &memory);
    let closures = Closures::new(&index);
    let checker = Checker::new(trace);
    let accepted = |candidate: &CandidateKind, order: &[EventIndex]| {
        let witness = Witness { candidate: candidate.clone(), order: order.to_vec(), level: WitnessLevel::Causal };
        assert_eq!(checker.check(&witness), Ok(WitnessLevel::Causal), "{witness:?}\n{}", describe(trace));
    };
    let (causal, preserving) = (oracle(trace, Rules::CAUSAL), oracle(trace, Rules::SYNC_PRESERVING));
    assert!(preserving.races.is_subset(&causal.races) && preserving.deadlocks.is_subset(&causal.deadlocks));
    for (first, second) in pairs(trace) {
        let goals = [first, second];
        let candidate = CandidateKind::Race { first, second };
        let of_class = closures.sync_preserving(&goals).is_ok();
        assert_eq!(of_class, preserving.races.contains(&(first, second)), "{goals:?}\n{}", describe(trace));
        let reversed = sync_reversal(&closures, &memory, &goals);
        if let Some(order) = &reversed {
            accepted(&candidate, order);
        }
        if !bytewise {
            assert_eq!(reversed.is_some(), reversal::races(trace, &goals), "{goals:?}\n{}", describe(trace));
        }
        let decision = exact::decide(&closures, &memory, &goals, &Limits::NONE);
        match &decision {
            Decision::Witness(order) => accepted(&candidate, order),
            Decision::Refuted => {}
            Decision::Undecided => assert!(index.semaphores, "{goals:?}\n{}", describe(trace)),
            Decision::Ordered => panic!("the exact decider proves no order: {goals:?}\n{}", describe(trace)),
        }
        let real = causal.races.contains(&(first, second));
        if !index.semaphores {
            assert_eq!(matches!(decision, Decision::Witness(_)), real, "{goals:?} {decision:?}\n{}", describe(trace));
        }
        tally.pairs += 1;
        tally.sync_preserving += usize::from(of_class);
        tally.sync_reversal += usize::from(reversed.is_some());
        tally.all += usize::from(real);
        tally.refuted += usize::from(decision == Decision::Refuted);
    }
    let graph = LockGraph::new(trace);
    // Of those with a condition wait only the sync-preserving ones are decided.
    let condition = |cycle: &Vec<EventIndex>| cycle.iter().any(|&event| matches!(trace.kind(event), EventKind::WaitEnd { .. }));
    let mut expected = causal.deadlocks;
    expected.retain(|cycle| !condition(cycle));
    for pattern in graph.patterns(5, usize::MAX) {
        for tuple in deadlocks::concurrent(&graph, &pattern, usize::MAX) {
            if condition(&tuple) {
                continue;
            }
            let decision = exact::decide(&closures, &memory, &tuple, &Limits::NONE);
            let candidate = deadlocks::candidate(&graph, &pattern, &tuple);
            let mut cycle = tuple.clone();
            let least = (0..cycle.len()).min_by_key(|&place| cycle[place]).unwrap_or(0);
            cycle.rotate_left(least);
            if let Decision::Witness(order) = &decision {
                accepted(&candidate, order);
                assert!(expected.remove(&cycle), "{tuple:?}\n{}", describe(trace));
                tally.deadlocks += 1;
            }
            tally.deadlocks_refuted += usize::from(decision == Decision::Refuted);
        }
    }
    assert!(index.semaphores || expected.is_empty(), "{expected:?}\n{}", describe(trace));
    tally.traces += 1;
}

fn plain(class: AccessClass, address: u64) -> EventKind {
    EventKind::Access(Access { address: Address(address), size: 8, class, atomic: false })
}

fn lock(lock: u64) -> EventKind {
    EventKind::Acquire { lock: Address(lock), mode: LockMode::Exclusive, may_wait: true }
}

fn unlock(lock: u64) -> EventKind {
    EventKind::Release { lock: Address(lock), mode: LockMode::Exclusive }
}

#[test]
fn every_trace_of_one_lock() {
    let mut tally = Tally::default();
    let alphabet = [plain(AccessClass::Read, 0x100), plain(AccessClass::Write, 0x100), lock(8), unlock(8)];
    for length in 2..=6 {
        enumerate(3, length, &alphabet, &mut |trace| check(&trace, false, &mut tally));
    }
    assert!(tally.sync_preserving < tally.sync_reversal && tally.sync_reversal <= tally.all && tally.refuted > 100, "{tally:?}");
}

#[test]
fn random_traces() {
    let mut tally = Tally::default();
    for seed in 0..6000 {
        let locks = 1 + seed % 3;
        let variables = if seed % 5 == 0 { 0 } else { 1 + seed % 2 };
        let all = Features { semaphores: seed % 8 == 0, fork_join: variables > 0, ..Features::ALL };
        let features = if seed % 2 == 0 { Features::default() } else { all };
        let events = 10 + (seed % 7) as usize + if variables == 0 { 8 } else { 0 };
        let shape = Shape { threads: 2 + (seed % 3) as u32, events, variables, locks, features };
        check(&random(seed, shape), seed % 2 != 0, &mut tally);
    }
    assert!(tally.sync_preserving < tally.sync_reversal && tally.sync_reversal < tally.all && tally.refuted > 100, "{tally:?}");
    assert!(tally.deadlocks > 200 && tally.deadlocks_refuted > 4, "{tally:?}");
}

/// Sites are few, so that many pairs of events share theirs and the walk has to move on.
#[test]
fn every_pair_of_sites_with_a_sync_preserving_race_is_found() {
    let mut found = 0;
    for seed in 0..4000 {
        let features = if seed % 2 == 0 { Features::default() } else { Features { semaphores: false, ..Features::ALL } };
        let shape = Shape { threads: 2 + (seed % 2) as u32, events: 16, variables: 1, locks: 1 + seed % 2, features };
        let mut trace = random(seed, shape);
        trace.events.change(|index, event| {
            event.site = SiteId(index as u32 % 2);
        });
        let memory = SharedMemory::new(&trace);
        let index = Index::new(&trace, &memory);
        let races = walk::races(&Closures::new(&index), &memory, &BTreeSet::new(), usize::MAX, rashomon_event::Deadline::NEVER);
        let sites = |first: EventIndex, second: EventIndex| {
            let (one, other) = (trace.event(first).site, trace.event(second).site);
            (one.min(other), one.max(other))
        };
        let expected = oracle(&trace, Rules::SYNC_PRESERVING).races;
        let expected_sites: BTreeSet<_> = expected.iter().map(|&(first, second)| sites(first, second)).collect();
        assert!(races.found.values().all(|pair| expected.contains(pair)), "{}", describe(&trace));
        assert_eq!(races.found.keys().copied().collect::<BTreeSet<_>>(), expected_sites, "{}", describe(&trace));
        found += expected_sites.len();
    }
    assert!(found > 2000, "{found}");
}
