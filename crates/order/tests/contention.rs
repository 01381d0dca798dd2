//! The shortcut of contested granules against plain definitions: no pair is lost, and well-synchronised granules are let off.

use rashomon_event::{EventIndex, EventKind, OtherOp, Trace};
use rashomon_order::{Model, SharedMemory, held_at, lockset, unordered};
use rashomon_testkit::{Features, Shape, describe, parse, random};

/// Conflicting accesses that happens-before leaves unordered, or that the weak order does and no common lock excludes.
fn is_candidate(trace: &Trace, one: EventIndex, other: EventIndex) -> bool {
    let conflict = trace.access(one).zip(trace.access(other)).is_some_and(|(a, b)| a.conflicts(&b));
    let held = |at| held_at(trace, at).iter().map(|held| (held.lock, held.mode)).collect::<Vec<_>>();
    conflict
        && (unordered(trace, one, other, Model::CPP20)
            || unordered(trace, one, other, Model::C11)
            || unordered(trace, one, other, Model::WEAK) && !lockset::exclude(&held(one), &held(other)))
}

/// Asserts that every candidate is contested; how many granules are shared and how many of them are not contested.
fn check(trace: &Trace) -> (usize, usize) {
    let memory = SharedMemory::new(trace);
    for second in trace.indices() {
        for first in (0..second.0).map(EventIndex) {
            if trace.event(first).thread == trace.event(second).thread || !is_candidate(trace, first, second) {
                continue;
            }
            let granules = |at| {
                let access = trace.access(at).expect("a candidate is two accesses");
                memory.contested_granules(&access).map(|(granule, _)| granule).collect::<Vec<_>>()
            };
            let common = granules(first).iter().any(|granule| granules(second).contains(granule));
            assert!(common, "{first} {second}\n{}", describe(trace));
            assert!(memory.contends(first) && memory.contends(second), "{first} {second}\n{}", describe(trace));
        }
    }
    (memory.len(), memory.len() - memory.contested())
}

fn shape(seed: u64) -> Shape {
    let plain = Features { shared_locks: true, fork_join: true, barriers: true, conditions: true, ..Features::default() };
    let features = if seed.is_multiple_of(2) { plain } else { Features::ALL };
    Shape {
        threads: 2 + (seed % 3) as u32,
        events: 10 + (seed % 23) as usize,
        variables: 1 + seed % 3,
        locks: 1 + seed % 2,
        features,
    }
}

#[test]
fn no_candidate_lies_outside_contested_granules() {
    let (mut shared, mut spared) = (0, 0);
    for seed in 0..4000 {
        let (all, not_contested) = check(&random(seed, shape(seed)));
        shared += all;
        spared += not_contested;
    }
    assert!(spared > 300 && shared - spared > 1000, "the traces exercise both answers: {spared} of {shared} spared");
}

#[test]
fn nor_when_locks_do_not_exclude() {
    for seed in 0..4000 {
        let mut trace = random(seed, Shape { variables: 1, ..shape(seed) });
        trace.events.change(|place, event| {
            let damaged = matches!(event.kind, EventKind::Release { .. } | EventKind::Acquire { .. });
            if damaged && (place as u64 * 5 + seed).is_multiple_of(4) {
                event.kind = EventKind::Other(OtherOp::Unknown);
            }
        });
        check(&trace);
    }
}

fn contested(text: &str) -> usize {
    let trace = parse(text).expect("well-formed").trace;
    check(&trace);
    SharedMemory::new(&trace).contested()
}

#[test]
fn usual_synchronisation_is_let_off() {
    for text in [
        "main w x; main fork t; main fork u; t r x; u r x; t r x; main join t; main join u; main w x",
        "t lock m; t w x; t unlock m; u lock m; u rw x; u unlock m; t lock m; t w x; t unlock m",
        "t rlock m; t r x; t runlock m; u lock m; u w x; u unlock m",
        "main w x; main fork t; t lock m; t w x; t unlock m; main lock m; main r x; main unlock m; main join t; main r x",
        "t w x; t enter b; u enter b; t exit b; u exit b; u r x; t r x; t enter c; u enter c; t exit c; u exit c; t w x",
        "t rmw x relaxed; u rmw x relaxed; t ld x relaxed",
    ] {
        assert_eq!(contested(text), 0, "{text}");
    }
    for text in [
        "t w x; u r x",
        "t lock m; t w x; t unlock m; u lock n; u w x; u unlock n",
        "t rlock m; t w x; t runlock m; u rlock m; u w x; u runlock m",
        "main fork u; main w x; main fork t; t lock m; t w x; t unlock m; u lock m; u w x; u unlock m",
        "t st x release; u r x",
        "t lock m; t w x; u lock m; u w x; u unlock m; t unlock m",
    ] {
        assert_eq!(contested(text), 1, "{text}");
    }
}
