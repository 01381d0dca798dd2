//! The maximal causal model against its definition, with and without values.

use rashomon_event::{
    Access, AccessClass, Address, CandidateKind, Deadline, EventIndex, EventKind, Gap, LockMode, OtherOp, ThreadId, Trace,
    Witness, WitnessLevel,
};
use rashomon_order::{LockGraph, SharedMemory};
use rashomon_predict::closure::Closures;
use rashomon_predict::deadlocks;
use rashomon_predict::exact;
use rashomon_predict::index::Index;
use rashomon_predict::maximal::{Decision, Facts, Limits, Values, comes_between, decide};
use rashomon_testkit::{
    Contents, Features, MOST_TRIPLES, Reachable, Rules, Shape, SplitMix, TraceBuilder, add_gaps, come_between, describe,
    enumerate, random, reachable, reachable_if,
};
use rashomon_witness::Checker;
use std::collections::BTreeSet;

#[derive(Debug, Default)]
struct Tally {
    pairs: usize,
    races: usize,
    refuted: usize,
    /// Races that need a read to see another write of the same value.
    by_value: usize,
    deadlocks: usize,
    deadlocks_refuted: usize,
    between: usize,
    not_between: usize,
    most_rounds: usize,
    conflicts: u64,
}

/// The same for the decider.
fn values_of(contents: &Contents) -> Values {
    let mut values = Values::default();
    contents.read.iter().for_each(|(&event, bytes)| values.set_read(event, bytes));
    contents.written.iter().for_each(|(&event, bytes)| values.set_written(event, bytes));
    values
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

/// Two accesses of one thread, and one of another thread in the middle that conflicts with both.
fn triples(trace: &Trace) -> Vec<[EventIndex; 3]> {
    let conflict = |one: EventIndex, other: EventIndex| {
        let accesses = trace.access(one).zip(trace.access(other));
        trace.event(one).thread != trace.event(other).thread && accesses.is_some_and(|(one, other)| one.conflicts(&other))
    };
    let mut triples = Vec::new();
    for first in trace.indices() {
        let behind =
            trace.indices().skip(first.index() + 1).filter(|&last| trace.event(last).thread == trace.event(first).thread);
        for last in behind {
            let middle = trace.indices().filter(|&event| conflict(event, first) && conflict(event, last));
            triples.extend(middle.map(|event| [first, event, last]));
        }
    }
    triples
}

/// The decision, if it is one of a reordering, is accepted by the checker, and by a replay with values.
fn decided(
    facts: &Facts<'_, '_>,
    trace: &Trace,
    candidate: &CandidateKind,
    bytes: Option<&Contents>,
    tally: &mut Tally,
) -> Option<bool> {
    let goals = candidate.goals();
    let (decision, cost) = decide(facts, &goals, &Limits::NONE, Deadline::NEVER);
    assert_eq!(decide(facts, &goals, &Limits::NONE, Deadline::NEVER), (decision.clone(), cost), "deterministic");
    // A slice that is as large as the limit is decided, and one that is larger is not.
    let at_most = |events| decide(facts, &goals, &Limits { events, ..Limits::NONE }, Deadline::NEVER);
    assert_eq!(at_most(cost.events), (decision.clone(), cost), "as large as the limit");
    if let Some(fewer) = cost.events.checked_sub(1) {
        assert_eq!(at_most(fewer).0, Decision::Undecided, "larger than the limit");
    }
    tally.most_rounds = tally.most_rounds.max(cost.rounds);
    tally.conflicts += cost.solver.conflicts;
    match decision {
        Decision::Witness(order) => {
            let witness = Witness { candidate: candidate.clone(), order, level: WitnessLevel::Causal };
            let level = Checker::new(trace).check(&witness);
            assert!(level.is_ok(), "{level:?} {witness:?}\n{}", describe(trace));
            assert!(bytes.is_some() || level == Ok(WitnessLevel::Causal), "{witness:?}\n{}", describe(trace));
            assert!(bytes.unwrap_or(&Contents::default()).hold(trace, &witness.order), "{witness:?}\n{}", describe(trace));
            Some(level == Ok(WitnessLevel::Causal))
        }
        Decision::Refuted => None,
        other @ Decision::Undecided => panic!("{other:?} without limits: {candidate:?}\n{}", describe(trace)),
    }
}

fn check(trace: &Trace, bytes: Option<&Contents>, tally: &mut Tally) {
    let memory = SharedMemory::new(trace);
    let index = Index::new(trace, &memory);
    let closures = Closures::new(&index);
    let values = bytes.map(values_of);
    let facts = Facts::new(&index, &memory, values.as_ref());
    let nothing = Contents::default();
    let expected: Reachable = reachable_if(trace, Rules::CAUSAL, &|sight| bytes.unwrap_or(&nothing).may_see(trace, sight));
    for (first, second) in pairs(trace) {
        let candidate = CandidateKind::Race { first, second };
        let decision = decided(&facts, trace, &candidate, bytes, tally);
        let real = expected.races.contains(&(first, second));
        assert_eq!(decision.is_some(), real, "{candidate:?}\n{}\n{:?}", describe(trace), values);
        match exact::decide(&closures, &memory, &[first, second], &exact::Limits::NONE) {
            exact::Decision::Witness(_) => assert!(real, "exact finds more: {candidate:?}\n{}", describe(trace)),
            exact::Decision::Refuted => {
                assert!(bytes.is_some() || !real, "exact refutes it: {candidate:?}\n{}", describe(trace));
                tally.by_value += usize::from(real);
            }
            _ => {}
        }
        tally.pairs += 1;
        tally.races += usize::from(real);
        tally.refuted += usize::from(!real);
    }
    let mut triples = triples(trace);
    triples.truncate(MOST_TRIPLES);
    let between = come_between(trace, Rules::CAUSAL, &triples, &|sight| bytes.unwrap_or(&nothing).may_see(trace, sight));
    for triple in triples {
        match comes_between(&facts, triple, &Limits::NONE, Deadline::NEVER).decision {
            Decision::Witness(order) => {
                assert!(between.contains(&triple), "{triple:?}\n{}", describe(trace));
                assert!(bytes.unwrap_or(&nothing).hold(trace, &order), "{order:?}\n{}", describe(trace));
                let place = |event| order.iter().position(|&other| other == event);
                assert!(place(triple[0]).is_some() && place(triple[0]) < place(triple[1]) && place(triple[2]).is_none());
                tally.between += 1;
            }
            Decision::Refuted => {
                assert!(!between.contains(&triple), "{triple:?}\n{}", describe(trace));
                tally.not_between += 1;
            }
            other @ Decision::Undecided => panic!("{other:?} without limits: {triple:?}\n{}", describe(trace)),
        }
    }
    let graph = LockGraph::new(trace);
    let condition = |cycle: &Vec<EventIndex>| cycle.iter().any(|&event| matches!(trace.kind(event), EventKind::WaitEnd { .. }));
    let mut deadlocks = expected.deadlocks;
    deadlocks.retain(|cycle| !condition(cycle));
    for pattern in graph.patterns(5, usize::MAX) {
        for tuple in deadlocks::concurrent(&graph, &pattern, usize::MAX) {
            let candidate = deadlocks::candidate(&graph, &pattern, &tuple);
            let found = decided(&facts, trace, &candidate, bytes, tally).is_some();
            let mut cycle = tuple.clone();
            let least = (0..cycle.len()).min_by_key(|&place| cycle[place]).unwrap_or(0);
            cycle.rotate_left(least);
            assert!(!found || condition(&cycle) || deadlocks.remove(&cycle), "{tuple:?}\n{}", describe(trace));
            *(if found { &mut tally.deadlocks } else { &mut tally.deadlocks_refuted }) += 1;
        }
    }
    assert!(deadlocks.is_empty(), "{deadlocks:?}\n{}", describe(trace));
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
    for length in 2..=5 {
        enumerate(3, length, &alphabet, &mut |trace| {
            check(&trace, None, &mut tally);
            let values = Contents::random(&trace, tally.pairs as u64, 8);
            check(&trace, Some(&values), &mut tally);
        });
    }
    assert!(tally.races > 1000 && tally.refuted > 100 && tally.by_value > 10, "{tally:?}");
    assert!(tally.between > 100 && tally.not_between > 100, "{tally:?}");
}

fn shape(seed: u64, events: usize) -> Shape {
    let variables = if seed.is_multiple_of(5) { 0 } else { 1 + seed % 2 };
    let all = Features { semaphores: seed % 4 == 1, fork_join: variables > 0, ..Features::ALL };
    let features = if seed.is_multiple_of(2) { Features::default() } else { all };
    let events = events + (seed % 5) as usize + if variables == 0 { 6 } else { 0 };
    Shape { threads: 2 + (seed % 3) as u32, events, variables, locks: 1 + seed % 3, features }
}

#[test]
fn random_traces_without_values() {
    let mut tally = Tally::default();
    for seed in 0..3000u64 {
        check(&random(seed, shape(seed, 10)), None, &mut tally);
    }
    assert!(tally.races > 1000 && tally.refuted > 1000 && tally.by_value == 0, "{tally:?}");
    assert!(tally.deadlocks > 50, "{tally:?}");
}

#[test]
fn random_traces_of_locks() {
    let mut tally = Tally::default();
    let features = Features { shared_locks: true, fork_join: true, barriers: true, ..Features::default() };
    for seed in 0..2000 {
        let shape = Shape { threads: 2 + (seed % 3) as u32, events: 18 + (seed % 5) as usize, variables: 0, locks: 2, features };
        check(&random(80_000 + seed, shape), None, &mut tally);
    }
    assert!(tally.deadlocks > 100 && tally.deadlocks_refuted > 0, "{tally:?}");
}

/// Too large for brute force: the decider whose reads keep their writers says the same.
#[test]
fn agrees_with_exact_on_longer_traces() {
    let (mut tally, mut undecided) = (Tally::default(), 0);
    for seed in 0..400u64 {
        let features =
            Features { shared_locks: seed.is_multiple_of(3), fork_join: seed.is_multiple_of(2), ..Features::default() };
        let threads = 3 + (seed % 4) as u32;
        let trace = random(90_000 + seed, Shape { threads, events: 60, variables: 2, locks: 1 + seed % 3, features });
        let memory = SharedMemory::new(&trace);
        let index = Index::new(&trace, &memory);
        let closures = Closures::new(&index);
        let facts = Facts::new(&index, &memory, None);
        for (first, second) in pairs(&trace).into_iter().step_by(7) {
            let candidate = CandidateKind::Race { first, second };
            let found = decided(&facts, &trace, &candidate, None, &mut tally).is_some();
            match exact::decide(&closures, &memory, &[first, second], &exact::Limits::default()) {
                exact::Decision::Witness(_) => assert!(found, "{candidate:?}\n{}", describe(&trace)),
                exact::Decision::Refuted => assert!(!found, "{candidate:?}\n{}", describe(&trace)),
                _ => undecided += 1,
            }
            *(if found { &mut tally.races } else { &mut tally.refuted }) += 1;
        }
    }
    assert!(undecided * 100 < tally.races && tally.races > 1000 && tally.refuted > 1000, "{undecided} {tally:?}");
    assert!(tally.most_rounds > 2, "{tally:?}");
}

#[test]
fn random_traces_with_values() {
    let mut tally = Tally::default();
    for seed in 0..3000u64 {
        let trace = random(seed, shape(seed, 9));
        let known = if seed.is_multiple_of(3) { 6 } else { 8 };
        check(&trace, Some(&Contents::random(&trace, seed, known)), &mut tally);
    }
    assert!(tally.races > 1000 && tally.refuted > 1000 && tally.by_value > 100, "{tally:?}");
}

#[test]
fn random_traces_with_calls_into_unseen_code() {
    let (mut tally, mut kept, mut silenced) = (Tally::default(), 0, 0);
    for seed in 0..3000u64 {
        let plain = random(100_000 + seed, shape(seed, 10));
        let mut trace = plain.clone();
        add_gaps(&mut trace, seed);
        trace.kept = rashomon_order::kept(&trace, &trace.gaps);
        check(&trace, None, &mut tally);
        kept += trace.kept.len();
        let races = |trace: &Trace| reachable(trace, Rules::CAUSAL).races;
        let (with, without) = (races(&trace), races(&plain));
        assert!(with.is_subset(&without), "{}", describe(&trace));
        silenced += without.len() - with.len();
    }
    assert!(tally.races > 500 && tally.refuted > 1000 && kept > 1000 && silenced > 300, "{kept} {silenced} {tally:?}");
}

/// Races that a technique reports on traces with calls into unseen code.
#[derive(Debug, Default, PartialEq, Eq)]
struct Reports {
    real: usize,
    false_alarms: usize,
}

impl Reports {
    fn add(&mut self, reported: &BTreeSet<(EventIndex, EventIndex)>, real: &BTreeSet<(EventIndex, EventIndex)>) {
        self.real += reported.intersection(real).count();
        self.false_alarms += reported.difference(real).count();
    }
}

/// A trace of two or three threads that access two variables, three times in four below the lock of the variable.
fn guarded(seed: u64) -> Trace {
    let mut rng = SplitMix(seed);
    let threads = 2 + rng.below(2) as usize;
    let mut builder = TraceBuilder::with_threads(threads as u32);
    let mut todo: Vec<Vec<EventKind>> = Vec::new();
    for _ in 0..threads {
        let mut events = Vec::new();
        for _ in 0..5 - threads {
            let variable = rng.below(2);
            let class = [AccessClass::Read, AccessClass::Write][rng.below(2) as usize];
            let access = EventKind::Access(Access { class, address: Address(0x1000 + 16 * variable), size: 8, atomic: false });
            let (lock, mode) = (Address(0x2000 + 16 * variable), LockMode::Exclusive);
            match rng.below(4) {
                0 => events.push(access),
                _ => {
                    events.extend([EventKind::Release { lock, mode }, access, EventKind::Acquire { lock, mode, may_wait: true }])
                }
            }
        }
        todo.push(events);
    }
    let mut held: Vec<Address> = Vec::new();
    while todo.iter().any(|events| !events.is_empty()) {
        let thread = rng.below(threads as u64) as usize;
        match todo[thread].last() {
            Some(EventKind::Acquire { lock, .. }) if held.contains(lock) => continue,
            Some(&EventKind::Acquire { lock, .. }) => held.push(lock),
            Some(EventKind::Release { lock, .. }) => held.retain(|other| other != lock),
            _ => {}
        }
        if let Some(kind) = todo[thread].pop() {
            builder.push(ThreadId(thread as u32), kind);
        }
    }
    builder.build()
}

/// The method of the thesis's §5.2.1: the truth is what the whole trace shows; then operations of some locks go into calls that
/// reach the lock, as if a library took it, and nothing else of them is known.
#[test]
fn locks_that_libraries_take() {
    let (mut without, mut all_barriers, mut pairs) = (Reports::default(), Reports::default(), Reports::default());
    let mut truth = 0;
    for seed in 0..2000u64 {
        let whole = guarded(seed);
        let mut trace = whole.clone();
        for index in whole.indices() {
            let (EventKind::Acquire { lock, .. } | EventKind::Release { lock, .. }) = whole.event(index).kind else { continue };
            let thread = whole.event(index).thread;
            trace.events.set_kind(index.index(), EventKind::Other(OtherOp::CallsUnseen));
            let reach = vec![(lock, 8)];
            let (begin, end, threads) = (index, Some(index), Vec::new());
            trace.gaps.push(Gap { thread, begin, end, module: None, function: None, reach, threads });
        }
        let gaps = std::mem::take(&mut trace.gaps);
        let real = reachable(&whole, Rules::CAUSAL).races;
        truth += real.len();
        let races = |trace: &Trace| reachable(trace, Rules::CAUSAL).races;
        without.add(&races(&trace), &real);
        let everything: Vec<Gap> = gaps.iter().map(|gap| Gap { reach: vec![(Address(0), 1)], ..gap.clone() }).collect();
        for (gaps, reports) in [(everything, &mut all_barriers), (gaps, &mut pairs)] {
            trace.gaps = gaps;
            trace.kept = rashomon_order::kept(&trace, &trace.gaps);
            reports.add(&races(&trace), &real);
            check(&trace, None, &mut Tally::default());
        }
    }
    assert_eq!((all_barriers.false_alarms, pairs.false_alarms), (0, 0), "{without:?} {all_barriers:?} {pairs:?}");
    assert!(without.false_alarms > 100 && without.real == truth, "{truth} {without:?}");
    assert!(pairs.real > all_barriers.real && all_barriers.real > 0, "{all_barriers:?} {pairs:?} of {truth}");
    println!("{truth} races; without barriers {without:?}, Caveat 0 {all_barriers:?}, barrier pairs {pairs:?}");
}

/// Semaphores of which other posts may serve a take than those of the trace: exact here, conservative in [`exact`].
#[test]
fn semaphores_are_exact() {
    let mut tally = Tally::default();
    let features = Features { semaphores: true, ..Features::default() };
    for seed in 0..1500 {
        let shape = Shape { threads: 2 + (seed % 2) as u32, events: 11 + (seed % 4) as usize, variables: 1, locks: 1, features };
        check(&random(70_000 + seed, shape), None, &mut tally);
    }
    assert!(tally.races > 300 && tally.refuted > 300, "{tally:?}");
}

/// A flag that two threads set to the same value: the one that was seen is not the only one that will do.
#[test]
fn another_write_of_the_same_value_will_do() {
    let mut builder = TraceBuilder::with_threads(3);
    let (one, other, reader) = (ThreadId(0), ThreadId(1), ThreadId(2));
    let access = |builder: &mut TraceBuilder, thread, class, address| builder.access(thread, class, Address(address), 8);
    let first = access(&mut builder, one, AccessClass::Write, 0x100);
    let data = access(&mut builder, other, AccessClass::Write, 0x200);
    let flag = access(&mut builder, other, AccessClass::Write, 0x100);
    let read = access(&mut builder, reader, AccessClass::Read, 0x100);
    let used = access(&mut builder, reader, AccessClass::Read, 0x200);
    let trace = builder.build();
    let memory = SharedMemory::new(&trace);
    let index = Index::new(&trace, &memory);
    let goals = [data, used];
    let without = Facts::new(&index, &memory, None);
    assert_eq!(decide(&without, &goals, &Limits::NONE, Deadline::NEVER).0, Decision::Refuted);
    let mut values = Values::default();
    values.set_written(first, &1u64.to_le_bytes());
    values.set_written(flag, &1u64.to_le_bytes());
    values.set_read(read, &1u64.to_le_bytes());
    let with = Facts::new(&index, &memory, Some(&values));
    assert_eq!(decide(&with, &goals, &Limits::NONE, Deadline::NEVER).0, Decision::Witness(vec![first, read]));
    values.set_written(first, &2u64.to_le_bytes());
    let with = Facts::new(&index, &memory, Some(&values));
    assert_eq!(decide(&with, &goals, &Limits::NONE, Deadline::NEVER).0, Decision::Refuted);
}

#[test]
fn a_limit_leaves_it_undecided() {
    let trace = random(8, shape(8, 12));
    let memory = SharedMemory::new(&trace);
    let index = Index::new(&trace, &memory);
    let facts = Facts::new(&index, &memory, None);
    let goals: Vec<EventIndex> = pairs(&trace).last().map(|&(first, second)| vec![first, second]).unwrap();
    for limits in [Limits { rounds: 0, ..Limits::NONE }, Limits { events: 0, ..Limits::NONE }] {
        assert_eq!(decide(&facts, &goals, &limits, Deadline::NEVER).0, Decision::Undecided);
    }
}
