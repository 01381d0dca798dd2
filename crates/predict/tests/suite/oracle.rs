//! Predictions against every reordering of small traces.

use rashomon_event::{
    Access, AccessClass, Address, CandidateKind, EventIndex, EventKind, LockMode, ThreadId, Trace, Witness, WitnessLevel,
};
use rashomon_order::{LockGraph, SharedMemory};
use rashomon_predict::closure::Closures;
use rashomon_predict::deadlocks::sync_preserving;
use rashomon_predict::index::Index;
use rashomon_predict::optimistic::Optimistic;
use rashomon_predict::{Options, Predictions, predict};
use rashomon_testkit::{Features, Reachable, Rules, Shape, describe, enumerate, random, reachable};
use rashomon_witness::Checker;
use std::collections::BTreeSet;

/// Every pair and pattern is looked at.
fn thorough() -> Options {
    Options { representatives: 64, patterns_per_sites: 64, ..Options::default() }
}

fn conflicting_pairs(trace: &Trace) -> Vec<(EventIndex, EventIndex)> {
    let mut pairs = Vec::new();
    for b in trace.indices() {
        for a in trace.indices().take(b.index()) {
            if trace.event(a).thread != trace.event(b).thread
                && let (Some(one), Some(other)) = (trace.access(a), trace.access(b))
                && one.conflicts(&other)
            {
                pairs.push((a, b));
            }
        }
    }
    pairs
}

fn among(reachable: &Reachable, candidate: &CandidateKind) -> bool {
    match candidate {
        CandidateKind::Race { first, second } => reachable.races.contains(&(*first.min(second), *first.max(second))),
        CandidateKind::Deadlock { waits, .. } => {
            let least = (0..waits.len()).min_by_key(|&place| waits[place]).unwrap_or(0);
            let mut cycle = waits.clone();
            cycle.rotate_left(least);
            reachable.deadlocks.contains(&cycle)
        }
    }
}

#[derive(Default, Debug)]
struct Tally {
    traces: usize,
    causal: usize,
    synchronisation: usize,
    deadlocks: usize,
    /// Of these, those in which a thread waits for a thread.
    across: usize,
    /// And those in which a condition wait wants its mutex again.
    conditions: usize,
    sync_preserving: usize,
    reachable: usize,
    missed: usize,
}

/// The checker accepts each witness at its level, and the oracle reaches its goals.
fn sound(trace: &Trace, predictions: &Predictions, tally: &mut Tally) {
    let checker = Checker::new(trace);
    let (causal, synchronisation) = (reachable(trace, Rules::CAUSAL), reachable(trace, Rules::SYNCHRONISATION));
    assert!(causal.races.is_subset(&synchronisation.races));
    for prediction in &predictions.findings {
        let Some(witness) = &prediction.witness else {
            continue;
        };
        assert_eq!(witness.candidate, prediction.candidate.kind);
        let level = checker.check(witness);
        assert!(level.as_ref().is_ok_and(|&level| level >= witness.level), "{level:?} {witness:?}\n{}", describe(trace));
        match witness.level {
            WitnessLevel::Causal => assert!(among(&causal, &witness.candidate), "{witness:?}\n{}", describe(trace)),
            WitnessLevel::Synchronisation => {
                assert!(among(&synchronisation, &witness.candidate), "{witness:?}\n{}", describe(trace))
            }
        }
        *(if witness.level == WitnessLevel::Causal { &mut tally.causal } else { &mut tally.synchronisation }) += 1;
        if let CandidateKind::Deadlock { waits, locks } = &witness.candidate {
            tally.deadlocks += 1;
            tally.conditions += usize::from(waits.iter().any(|&wait| matches!(trace.kind(wait), EventKind::WaitEnd { .. })));
            tally.across += usize::from(locks.contains(&None));
        }
    }
}

fn sorted(mut cycle: Vec<EventIndex>) -> Vec<EventIndex> {
    cycle.sort_unstable();
    cycle
}

/// The acquisitions of deadlocks with a witness of at least this level.
fn deadlocks(predictions: &Predictions, level: WitnessLevel) -> BTreeSet<Vec<EventIndex>> {
    let witnesses = predictions.findings.iter().filter_map(|prediction| prediction.witness.as_ref());
    let cycles = witnesses.filter(|witness| witness.level >= level).filter_map(|witness| match &witness.candidate {
        CandidateKind::Deadlock { waits, .. } => Some(sorted(waits.clone())),
        CandidateKind::Race { .. } => None,
    });
    cycles.collect()
}

/// The sync-preserving ideal decides exactly the sync-preserving races and deadlocks.
fn sync_preserving_is_exact(trace: &Trace, tally: &mut Tally) {
    let expected = reachable(trace, Rules::SYNC_PRESERVING);
    let memory = SharedMemory::new(trace);
    let index = Index::new(trace, &memory);
    let closures = Closures::new(&index);
    let found = conflicting_pairs(trace).into_iter().filter(|&(a, b)| closures.sync_preserving(&[a, b]).is_ok());
    let found: BTreeSet<_> = found.collect();
    assert_eq!(found, expected.races, "{}", describe(trace));
    let graph = LockGraph::new(trace);
    let patterns = graph.patterns(5, usize::MAX);
    // Every event has a site of its own, so a pattern has one tuple.
    let deadlocks = patterns.iter().filter_map(|pattern| sync_preserving(&closures, &graph, pattern));
    let deadlocks: BTreeSet<_> = deadlocks.map(|(tuple, _)| sorted(tuple)).collect();
    let expected_deadlocks: BTreeSet<_> = expected.deadlocks.into_iter().map(sorted).collect();
    assert_eq!(deadlocks, expected_deadlocks, "{}", describe(trace));
    tally.sync_preserving += found.len() + deadlocks.len();
}

/// How many races and deadlocks of the synchronisation level are missed.
fn optimistic_completeness(trace: &Trace, predictions: &Predictions, tally: &mut Tally) {
    let expected = reachable(trace, Rules::SYNCHRONISATION);
    let found = deadlocks(predictions, WitnessLevel::Synchronisation);
    // Of those with a condition wait only the sync-preserving ones are looked for.
    let condition = |event: &EventIndex| matches!(trace.kind(*event), EventKind::WaitEnd { .. });
    for cycle in expected.deadlocks.iter().filter(|cycle| !cycle.iter().any(condition)).cloned().map(sorted) {
        tally.reachable += 1;
        tally.missed += usize::from(!found.contains(&cycle));
    }
    let memory = SharedMemory::new(trace);
    let index = Index::new(trace, &memory);
    let checker = Checker::new(trace);
    for (first, second) in conflicting_pairs(trace) {
        let goals = [first, second];
        let search = Optimistic {
            index: &index,
            memory: &memory,
            needs: &index.instances,
            goals: &goals,
            budget: 2_000,
            regroup_limit: 1000,
        };
        let found = search.find();
        let real = expected.races.contains(&(first, second));
        if let Ok(order) = &found {
            let candidate = CandidateKind::Race { first, second };
            let witness = Witness { candidate, order: order.clone(), level: WitnessLevel::Synchronisation };
            assert!(checker.check(&witness).is_ok(), "{:?}\n{}", checker.check(&witness), describe(trace));
            assert!(real, "{witness:?}\n{}", describe(trace));
        }
        tally.reachable += usize::from(real);
        tally.missed += usize::from(real && found.is_err());
    }
}

fn check_all(trace: &Trace, exact: bool, tally: &mut Tally) {
    let predictions = predict(trace, &thorough());
    assert_eq!(predictions, predict(trace, &thorough()), "deterministic");
    sound(trace, &predictions, tally);
    if exact {
        sync_preserving_is_exact(trace, tally);
    }
    optimistic_completeness(trace, &predictions, tally);
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
fn every_trace_of_one_lock_and_two_variables() {
    let mut tally = Tally::default();
    let alphabet =
        [plain(AccessClass::Read, 0x100), plain(AccessClass::Write, 0x100), plain(AccessClass::Write, 0x200), lock(8), unlock(8)];
    for length in 2..=5 {
        enumerate(2, length, &alphabet, &mut |trace| check_all(&trace, true, &mut tally));
    }
    assert_eq!(tally.missed, 0, "{tally:?}");
    assert!(tally.causal > 1000 && tally.synchronisation > 10, "{tally:?}");
}

#[test]
fn every_trace_of_two_locks() {
    let mut tally = Tally::default();
    let alphabet = [plain(AccessClass::Write, 0x100), lock(8), unlock(8), lock(16), unlock(16)];
    for length in 6..=7 {
        enumerate(2, length, &alphabet, &mut |trace| check_all(&trace, true, &mut tally));
    }
    assert_eq!(tally.missed, 0, "{tally:?}");
    assert!(tally.causal > 1000 && tally.deadlocks > 10, "{tally:?}");
}

/// One thread that another creates and joins, and one that is there from the beginning.
#[test]
fn every_trace_of_two_locks_and_a_join() {
    let mut tally = Tally::default();
    let child = ThreadId(1);
    let thread = [EventKind::Fork { child }, EventKind::Join { child, may_wait: true }];
    for length in 5..=7 {
        let alphabet = [&thread[..], &[lock(8), unlock(8), lock(16), unlock(16)]].concat();
        enumerate(3, length, &alphabet, &mut |trace| check_all(&trace, true, &mut tally));
    }
    for length in 8..=8 {
        let alphabet = [&thread[..], &[lock(8), unlock(8), lock(16)]].concat();
        enumerate(3, length, &alphabet, &mut |trace| check_all(&trace, true, &mut tally));
    }
    assert_eq!(tally.missed, 0, "{tally:?}");
    assert!(tally.across > 100, "{tally:?}");
}

fn random_traces(seeds: std::ops::Range<u64>, variables: u64, features: Features, exact: bool) -> Tally {
    let mut tally = Tally::default();
    for seed in seeds {
        let threads = 2 + (seed % 3) as u32;
        let shape = Shape { threads, events: 8 + (seed % 7) as usize, variables, locks: 1 + seed % 3, features };
        check_all(&random(seed, shape), exact, &mut tally);
    }
    tally
}

#[test]
fn random_traces_with_locks() {
    let tally = random_traces(0..2500, 2, Features { shared_locks: true, partial_overlaps: true, ..Features::default() }, true);
    assert!(tally.causal > 1000 && tally.synchronisation > 100, "{tally:?}");
    assert_eq!(tally.missed, 0, "{tally:?}");
}

#[test]
fn random_traces_of_locks_only() {
    let tally = random_traces(30_000..33_000, 0, Features { shared_locks: true, ..Features::default() }, true);
    assert!(tally.deadlocks > 50, "{tally:?}");
    assert_eq!(tally.missed, 0, "{tally:?}");
}

#[test]
fn random_traces_of_locks_and_threads() {
    let features = Features { shared_locks: true, fork_join: true, barriers: true, ..Features::default() };
    let tally = random_traces(40_000..46_000, 0, features, true);
    assert!(tally.across > 50, "{tally:?}");
    assert_eq!(tally.missed, 0, "{tally:?}");
}

#[test]
fn random_traces_of_locks_and_conditions() {
    let features = Features { conditions: true, ..Features::default() };
    let mut tally = Tally::default();
    for seed in 50_000..56_000 {
        let shape = Shape { threads: 2 + (seed % 2) as u32, events: 15 + (seed % 4) as usize, variables: 0, locks: 2, features };
        check_all(&random(seed, shape), true, &mut tally);
    }
    assert!(tally.conditions > 10, "{tally:?}");
    assert_eq!(tally.missed, 0, "{tally:?}");
}

#[test]
fn random_traces_with_everything_but_semaphores() {
    let tally = random_traces(10_000..13_000, 2, Features { semaphores: false, ..Features::ALL }, true);
    assert!(tally.causal > 1000 && tally.synchronisation > 100, "{tally:?}");
    assert_eq!(tally.missed, 0, "{tally:?}");
}

#[test]
fn random_traces_with_everything() {
    // The posts that a take needs are those of the trace: sound, not complete.
    let tally = random_traces(20_000..22_000, 2, Features::ALL, false);
    assert!(tally.missed * 50 <= tally.reachable, "{tally:?}");
}
