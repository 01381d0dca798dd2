//! Values of atomic events: the maximal causal model and the checker of witnesses against brute force over all reorderings.

use rashomon_event::{
    Access, AccessClass, Address, AtomicOp, CandidateKind, Deadline, EventIndex, EventKind, MemoryOrder, ThreadId, Trace,
    Witness, WitnessLevel,
};
use rashomon_order::SharedMemory;
use rashomon_predict::index::Index;
use rashomon_predict::maximal::{Decision, Facts, Limits, decide};
use rashomon_predict::{Options, predict};
use rashomon_testkit::{Contents, Features, Rules, Shape, SplitMix, TraceBuilder, describe, random, reachable_if};
use rashomon_witness::check;
use std::collections::BTreeSet;

/// Makes two of three accesses atomic, by lot, with values; those of plain ones are not known. `None`: of what some
/// read-modify-write read only a part is known.
fn mostly_atomic(mut trace: Trace, seed: u64, values: u64) -> Option<(Trace, Contents)> {
    let mut contents = Contents::random(&trace, values, 8);
    let mut lots = SplitMix(seed);
    let mut known: BTreeSet<u64> = BTreeSet::new();
    for index in trace.indices() {
        let Some(access) = trace.access(index) else { continue };
        let bytes = access.address.0..access.address.0 + u64::from(access.size);
        let op = match access.class {
            AccessClass::Read => AtomicOp::Load,
            AccessClass::Write => AtomicOp::Store,
            AccessClass::ReadWrite => AtomicOp::Rmw,
            AccessClass::End => AtomicOp::CasFailed,
        };
        if op == AtomicOp::CasFailed || access.size > 8 || lots.below(3) == 0 {
            contents.read.remove(&index);
            contents.written.remove(&index);
            if access.class.writes() {
                bytes.for_each(|byte| _ = known.remove(&byte));
            }
            continue;
        }
        let count = bytes.clone().filter(|byte| known.contains(byte)).count();
        if op == AtomicOp::Rmw && count < access.size as usize {
            contents.read.remove(&index).filter(|_| count == 0)?;
        }
        let values = if op == AtomicOp::Load { &contents.read[&index] } else { &contents.written[&index] };
        let mut value = [0; 8];
        value[..values.len()].copy_from_slice(values);
        if access.class.writes() {
            known.extend(bytes);
        }
        let access = Access { atomic: true, ..access };
        let (order, value) = (MemoryOrder::Relaxed, u64::from_le_bytes(value));
        trace.events.set_kind(index.index(), EventKind::Atomic { access, op, order, value });
    }
    trace.atomic_values = true;
    Some((trace, contents))
}

fn traces(values: impl Fn(u64) -> u64) -> impl Iterator<Item = (Trace, Contents)> {
    let features = Features { atomics: false, relaxed: false, semaphores: false, ..Features::ALL };
    let shape =
        move |seed: u64| Shape { threads: 3, events: 16 + (seed % 5) as usize, locks: 1, variables: 1 + seed % 2, features };
    (0..6000).filter_map(move |seed| mostly_atomic(random(seed, shape(seed)), seed, values(seed)))
}

/// Conflicting accesses of different threads.
fn pairs(trace: &Trace) -> Vec<(EventIndex, EventIndex)> {
    let conflict = |one: EventIndex, other: EventIndex| {
        let accesses = trace.access(one).zip(trace.access(other));
        trace.event(one).thread != trace.event(other).thread && accesses.is_some_and(|(one, other)| one.conflicts(&other))
    };
    let earlier = |second: EventIndex| trace.indices().take(second.index()).map(move |first| (first, second));
    trace.indices().flat_map(earlier).filter(|&(first, second)| conflict(first, second)).collect()
}

fn race(first: EventIndex, second: EventIndex, order: Vec<EventIndex>) -> Witness {
    Witness { candidate: CandidateKind::Race { first, second }, order, level: WitnessLevel::Causal }
}

#[test]
fn the_model_equals_its_definition() {
    let (mut races, mut by_value, mut refuted) = (0, 0, 0);
    for (trace, contents) in traces(|seed| seed) {
        let memory = SharedMemory::new(&trace);
        let index = Index::new(&trace, &memory);
        let plain = Facts::new(&index, &memory, None);
        let valued = Facts::with_values(&index, &memory, Deadline::NEVER).unwrap();
        let expected = reachable_if(&trace, Rules::CAUSAL, &|sight| contents.may_see(&trace, sight));
        for (first, second) in pairs(&trace) {
            let decided = |facts| decide(facts, &[first, second], &Limits::NONE, Deadline::NEVER).0;
            let decision = decided(&valued);
            let real = expected.races.contains(&(first, second));
            assert_eq!(matches!(decision, Decision::Witness(_)), real, "{first:?} {second:?}\n{}", describe(&trace));
            let Decision::Witness(order) = decision else {
                assert_eq!(decision, Decision::Refuted, "{}", describe(&trace));
                refuted += 1;
                continue;
            };
            races += 1;
            by_value += usize::from(decided(&plain) == Decision::Refuted);
            let level = check(&trace, &race(first, second, order));
            assert_eq!(level, Ok(WitnessLevel::Causal), "{first:?} {second:?}\n{}", describe(&trace));
        }
    }
    assert!(races > 1000 && by_value > 50 && refuted > 1000, "{races} {by_value} {refuted}");
}

/// Orders that are right for other values.
#[test]
fn the_checker_accepts_the_same_values_and_no_others() {
    let (mut same, mut others, mut only_by_value) = (0, 0, 0);
    for ((trace, contents), (valued, _)) in traces(|seed| seed).zip(traces(|seed| !seed)) {
        let without = Trace { atomic_values: false, ..trace.clone() };
        let memory = SharedMemory::new(&valued);
        let index = Index::new(&valued, &memory);
        let facts = Facts::with_values(&index, &memory, Deadline::NEVER).unwrap();
        for (first, second) in pairs(&valued) {
            let (decision, _) = decide(&facts, &[first, second], &Limits::NONE, Deadline::NEVER);
            let Decision::Witness(order) = decision else { continue };
            let witness = race(first, second, order);
            let causal = check(&trace, &witness) == Ok(WitnessLevel::Causal);
            assert_eq!(causal, contents.hold(&trace, &witness.order), "{witness:?}\n{}", describe(&trace));
            if causal {
                same += 1
            } else {
                others += 1
            }
            only_by_value += usize::from(causal && check(&without, &witness) != Ok(WitnessLevel::Causal));
        }
    }
    assert!(same > 500 && others > 20 && only_by_value > 20, "{same} {others} {only_by_value}");
}

/// A flag that two threads set: whoever waits for one of them may see the other, if both set it to the same value.
#[test]
fn all_deciders_together_see_a_race_that_only_values_show() {
    let predicted = |first: u64, atomic_values: bool| {
        let mut builder = TraceBuilder::with_threads(3);
        let (one, other, reader) = (ThreadId(0), ThreadId(1), ThreadId(2));
        let atomic = |builder: &mut TraceBuilder, thread, op, class, order, value| {
            let access = Access { address: Address(0x100), size: 4, class, atomic: true };
            builder.push(thread, EventKind::Atomic { access, op, order, value });
        };
        atomic(&mut builder, one, AtomicOp::Store, AccessClass::Write, MemoryOrder::Release, first);
        builder.access(other, AccessClass::Write, Address(0x200), 8);
        atomic(&mut builder, other, AtomicOp::Store, AccessClass::Write, MemoryOrder::Release, 1);
        atomic(&mut builder, reader, AtomicOp::Load, AccessClass::Read, MemoryOrder::Acquire, 1);
        builder.access(reader, AccessClass::Read, Address(0x200), 8);
        let trace = Trace { atomic_values, ..builder.build() };
        let options = Options { optimistic: false, ..Options::default() };
        let mut found = predict(&trace, &options).findings;
        let finding = found.pop().expect("the pair is a candidate");
        assert!(found.is_empty());
        (finding.witness.map(|witness| check(&trace, &witness).unwrap()), finding.refuted)
    };
    assert_eq!(predicted(1, true), (Some(WitnessLevel::Causal), false));
    assert_eq!(predicted(2, true), (None, true));
    assert_eq!(predicted(1, false), (None, true));
}
