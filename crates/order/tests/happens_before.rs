//! Vector clocks against the definition: edges written down from the standard's words, closed by brute force.

use rashomon_event::{
    AccessClass, Address, AtomicOp, Deadline, Event, EventIndex, EventKind, LockMode, MemoryOrder, SiteId, ThreadId, Trace,
};
use rashomon_order::{Model, ReleaseSequences, SharedMemory, hybrid, races, races_if_atomic, unordered};
use rashomon_testkit::{Features, Shape, describe, parse, random};
use std::collections::BTreeSet;

/// `before[a][b]`: event `a` happens before event `b`.
fn closure(trace: &Trace, model: Model) -> Vec<Vec<bool>> {
    let events: Vec<Event> = trace.events.iter().collect();
    let n = events.len();
    let mut before = vec![vec![false; n]; n];
    for b in 0..n {
        for a in 0..b {
            let synchronises = events[a].thread == events[b].thread
                || edge(trace, a, b, model)
                || (model.edges.locks && lock_edge(trace, a, b))
                || (model.edges.atomics && atomic_edge(trace, a, b, model.release_sequences));
            before[a][b] = synchronises;
        }
    }
    for middle in 0..n {
        for a in 0..middle {
            for b in middle + 1..n {
                before[a][b] |= before[a][middle] && before[middle][b];
            }
        }
    }
    before
}

fn edge(trace: &Trace, a: usize, b: usize, model: Model) -> bool {
    let (one, other) = (trace.events.at(a), trace.events.at(b));
    match (one.kind, other.kind) {
        (EventKind::Fork { child }, _) if child == other.thread => true,
        (_, EventKind::Join { child, .. }) => child == one.thread,
        (EventKind::Signal { condition, .. }, EventKind::WaitEnd { condition: other, woken_by, timed_out, .. }) => match woken_by
        {
            Some(signal) => signal.index() == a,
            None => condition == other && !timed_out,
        },
        (EventKind::BarrierEnter { barrier: x, generation: g }, EventKind::BarrierExit { barrier: y, generation: h }) => {
            (x, g) == (y, h)
        }
        (EventKind::Post { semaphore: x }, EventKind::Take { semaphore: y }) => {
            x == y && (model.edges.spare_posts || is_needed(trace, a, b, x))
        }
        (EventKind::OnceDone { once: x }, EventKind::OnceSeen { once: y })
        | (EventKind::ReleaseObject { object: x }, EventKind::AcquireObject { object: y }) => x == y,
        _ => false,
    }
}

/// Whether the take `b` cannot do without the post `a`, if posts and takes keep their orders.
fn is_needed(trace: &Trace, a: usize, b: usize, semaphore: Address) -> bool {
    let kinds = |end: usize| trace.events.range(0..end).map(|event| event.kind);
    let posts = |end: usize| kinds(end).filter(|&kind| kind == EventKind::Post { semaphore }).count() as i64;
    let takes = |end: usize| kinds(end).filter(|&kind| kind == EventKind::Take { semaphore }).count() as i64;
    let least = (0..=trace.events.len()).map(|end| takes(end) - posts(end)).max().unwrap_or(0);
    let initial = trace.semaphores.get(&semaphore).map_or(least, |&said| least.max(said as i64));
    posts(a) < takes(b) + 1 - initial
}

fn lock_edge(trace: &Trace, a: usize, b: usize) -> bool {
    let released = match trace.events.at(a).kind {
        EventKind::Release { lock, mode } => (lock, mode),
        EventKind::WaitBegin { mutex, .. } => (mutex, LockMode::Exclusive),
        _ => return false,
    };
    let acquired = match trace.events.at(b).kind {
        EventKind::Acquire { lock, mode, .. } => (lock, mode),
        EventKind::WaitEnd { mutex, .. } => (mutex, LockMode::Exclusive),
        _ => return false,
    };
    released.0 == acquired.0 && (released.1 == LockMode::Exclusive || acquired.1 == LockMode::Exclusive)
}

/// [atomics.order]/2 and [atomics.fences]: `a` is a release store or release fence, `b` an acquire load or acquire fence.
fn atomic_edge(trace: &Trace, a: usize, b: usize, rule: ReleaseSequences) -> bool {
    let stores: Vec<usize> = match trace.events.at(a).kind {
        EventKind::Atomic { op: AtomicOp::Store | AtomicOp::Rmw, order, .. } if order.releases() => vec![a],
        EventKind::Fence { order } if order.releases() => (a + 1..trace.events.len())
            .filter(|&store| trace.events.at(store).thread == trace.events.at(a).thread && writes(trace, store))
            .collect(),
        _ => return false,
    };
    let loads: Vec<usize> = match trace.events.at(b).kind {
        EventKind::Atomic { order, .. } if order.acquires() && reads(trace, b) => vec![b],
        EventKind::Fence { order } if order.acquires() => {
            (0..b).filter(|&load| trace.events.at(load).thread == trace.events.at(b).thread && reads(trace, load)).collect()
        }
        _ => return false,
    };
    stores.iter().any(|&store| loads.iter().any(|&load| sees_sequence(trace, store, load, rule)))
}

fn atomic(trace: &Trace, at: usize) -> Option<(AtomicOp, u64)> {
    match trace.events.at(at).kind {
        EventKind::Atomic { access, op, .. } => Some((op, access.address.0)),
        _ => None,
    }
}

fn writes(trace: &Trace, at: usize) -> bool {
    matches!(atomic(trace, at), Some((AtomicOp::Store | AtomicOp::Rmw, _)))
}

fn reads(trace: &Trace, at: usize) -> bool {
    matches!(atomic(trace, at), Some((AtomicOp::Load | AtomicOp::Rmw | AtomicOp::CasFailed, _)))
}

/// Whether `load` reads a value of the release sequence that `head` heads or would head.
fn sees_sequence(trace: &Trace, head: usize, load: usize, rule: ReleaseSequences) -> bool {
    let place = |at: usize| atomic(trace, at).map(|(_, address)| address);
    if head >= load || place(head) != place(load) {
        return false;
    }
    (head + 1..load).filter(|&at| writes(trace, at) && place(at) == place(head)).all(|at| {
        let same_thread = trace.events.at(at).thread == trace.events.at(head).thread;
        matches!(atomic(trace, at), Some((AtomicOp::Rmw, _))) || (rule == ReleaseSequences::C11 && same_thread)
    })
}

fn all_features(relaxed: bool) -> Features {
    // Locations are whole: partial overlaps are a stated deviation for atomics.
    Features { partial_overlaps: false, relaxed, ..Features::ALL }
}

fn traces() -> impl Iterator<Item = Trace> {
    (0..1500).map(|seed| {
        let shape = Shape {
            threads: 3,
            events: 12 + (seed % 20) as usize,
            variables: 2,
            locks: 2,
            features: all_features(seed % 3 != 0),
        };
        with_fences(random(seed, shape), seed)
    })
}

/// Turns some events into fences.
fn with_fences(mut trace: Trace, seed: u64) -> Trace {
    let orders = [MemoryOrder::Acquire, MemoryOrder::Release, MemoryOrder::AcqRel, MemoryOrder::SeqCst];
    trace.events.change(|place, event| {
        if matches!(event.kind, EventKind::Access(_)) && (place as u64 * 7 + seed).is_multiple_of(5) {
            event.kind = EventKind::Fence { order: orders[(place + seed as usize) % 4] };
        }
    });
    trace
}

#[test]
fn vector_clocks_agree_with_the_definition() {
    let (mut ordered, mut free) = (0, 0);
    for trace in traces() {
        for model in [Model::CPP20, Model::C11, Model::WEAK] {
            let before = closure(&trace, model);
            for (b, earlier) in (0..trace.events.len()).map(|b| (b, 0..b)) {
                for a in earlier.filter(|&a| trace.events.at(a).thread != trace.events.at(b).thread) {
                    let (one, other) = (EventIndex(a as u32), EventIndex(b as u32));
                    let expected = !before[a][b];
                    assert_eq!(unordered(&trace, one, other, model), expected, "{one} {other} {model:?}\n{}", describe(&trace));
                    assert_eq!(unordered(&trace, other, one, model), expected);
                    if expected { free += 1 } else { ordered += 1 }
                }
            }
        }
    }
    assert!(ordered > 10_000 && free > 10_000, "the traces exercise both answers: {ordered} {free}");
}

#[test]
fn candidates_are_exactly_the_pairs_of_the_definition() {
    let mut found = 0;
    for trace in traces() {
        let memory = SharedMemory::new(&trace);
        let pairs = |list: Vec<rashomon_order::SitePair>| list.into_iter().flat_map(|pair| pair.pairs).collect::<BTreeSet<_>>();
        let of_races = pairs(races(&trace, &memory, Model::CPP20, 4));
        let of_hybrid = pairs(hybrid(&trace, &memory, 4));
        let definition = |model: Model, locks: bool| {
            let before = closure(&trace, model);
            let mut expected = BTreeSet::new();
            for (b, a) in (0..trace.events.len()).flat_map(|b| (0..b).map(move |a| (b, a))) {
                if trace.events.at(a).thread == trace.events.at(b).thread || before[a][b] {
                    continue;
                }
                if let (Some(one), Some(other)) = (trace.events.at(a).access(), trace.events.at(b).access())
                    && one.conflicts(&other)
                    && !(locks && common_lock(&trace, a, b))
                {
                    expected.insert((EventIndex(a as u32), EventIndex(b as u32)));
                }
            }
            expected
        };
        assert_eq!(of_races, definition(Model::CPP20, false), "{}", describe(&trace));
        assert_eq!(of_hybrid, definition(Model::WEAK, true), "{}", describe(&trace));
        assert!(of_races.is_subset(&of_hybrid), "{}", describe(&trace));
        found += of_races.len();
    }
    assert!(found > 1000, "the traces have races: {found}");
}

fn common_lock(trace: &Trace, a: usize, b: usize) -> bool {
    let held = |at: usize| rashomon_order::held_at(trace, EventIndex(at as u32));
    held(a).iter().any(|one| {
        held(b)
            .iter()
            .any(|other| one.lock == other.lock && (one.mode == LockMode::Exclusive || other.mode == LockMode::Exclusive))
    })
}

fn unordered_at(text: &str, model: Model) -> bool {
    let of = parse(text).expect("well-formed");
    unordered(&of.trace, of.at("a"), of.at("b"), model)
}

/// Two threads take turns: what is kept of the two places comes from everywhere in the trace.
#[test]
fn further_pairs_are_spread_over_the_trace() {
    let turns = "a w x; b w x; ".repeat(1000);
    let mut trace = parse(turns.trim_end_matches("; ")).expect("well-formed").trace;
    let mut number = 0;
    trace.events.change(|_, event| {
        if event.access().is_some() {
            event.site = SiteId(u32::from(number % 2 == 1));
            number += 1;
        }
    });
    let memory = SharedMemory::new(&trace);
    let found = hybrid(&trace, &memory, 4);
    let [pair] = found.as_slice() else { panic!("{found:?}") };
    assert!(pair.occurrences >= 1000 && pair.pairs.len() == 4, "{pair:?}");
    let length = trace.events.len() as u32;
    let of_part = |part: u32| pair.others.iter().filter(|(_, second)| second.0 * 4 / length == part).count();
    assert!((0..4).all(|part| of_part(part) >= 5), "{pair:?}");
    assert!(pair.others.len() <= rashomon_order::OTHERS && pair.others.iter().all(|other| !pair.pairs.contains(other)));
}

#[test]
fn litmus() {
    let flag = "main w y #a; main st f relaxed; t ld f relaxed; t r y #b";
    assert!(unordered_at(flag, Model::CPP20), "a relaxed flag orders nothing");
    let fenced = "main w y #a; main fence release; main st f relaxed; t ld f relaxed; t fence acquire; t r y #b";
    assert!(!unordered_at(fenced, Model::CPP20));
    let half = "main w y #a; main fence release; main st f relaxed; t ld f relaxed; t r y #b";
    assert!(unordered_at(half, Model::CPP20));
    let late = "main w y #a; main st f relaxed; main fence release; t fence acquire; t ld f relaxed; t r y #b";
    assert!(unordered_at(late, Model::CPP20), "fences on the wrong sides");
    let continued = "main w y #a; main st f release; u rmw f relaxed; t ld f acquire; t r y #b";
    assert!(!unordered_at(continued, Model::CPP20), "a read-modify-write continues the sequence");
    let own_store = "main w y #a; main st f release; main st f relaxed; t ld f acquire; t r y #b";
    assert!(unordered_at(own_store, Model::CPP20), "C++20 ends the sequence at a plain store");
    assert!(!unordered_at(own_store, Model::C11));
    let other_store = "main w y #a; main st f release; u st f relaxed; t ld f acquire; t r y #b";
    assert!(unordered_at(other_store, Model::C11));
    let readers = "main rlock m; main w y #a; main runlock m; t rlock m; t w y #b; t runlock m";
    assert!(unordered_at(readers, Model::CPP20), "shared holders do not order each other");
}

#[test]
fn a_missing_thread_table_is_no_obstacle() {
    let mut trace = parse("main w y #a; t w y #b").expect("well-formed").trace;
    trace.threads.clear();
    assert!(unordered(&trace, EventIndex(0), EventIndex(1), Model::CPP20));
    assert_eq!(trace.event(EventIndex(1)).thread, ThreadId(1));
}

/// The trace with the plain accesses of some sites as atomic ones.
fn with_atomic(mut trace: Trace, sites: &[SiteId]) -> Trace {
    trace.events.change(|_, event| {
        if !sites.contains(&event.site) {
            return;
        }
        let EventKind::Access(mut access) = event.kind else { return };
        access.atomic = true;
        let op = match access.class {
            AccessClass::Read => AtomicOp::Load,
            AccessClass::Write => AtomicOp::Store,
            AccessClass::ReadWrite => AtomicOp::Rmw,
            AccessClass::End => return,
        };
        event.kind = EventKind::Atomic { access, op, order: MemoryOrder::SeqCst, value: 0 };
    });
    trace
}

#[test]
fn what_is_left_if_accesses_were_atomic_is_what_a_trace_with_atomic_ones_has() {
    let places = |pairs: Vec<rashomon_order::SitePair>| pairs.into_iter().map(|pair| pair.sites).collect::<BTreeSet<_>>();
    let (mut found, mut gone, mut left) = (0, 0, 0);
    for (seed, trace) in traces().enumerate() {
        let mut sites: Vec<SiteId> = trace.events.iter().map(|event| event.site).collect();
        sites.sort_unstable();
        sites.dedup();
        sites.retain(|site| (site.0 as usize + seed).is_multiple_of(3));
        let memory = SharedMemory::new(&trace);
        let before = places(races(&trace, &memory, Model::CPP20, 1));
        let after = places(races_if_atomic(&trace, &memory, Model::CPP20, &sites, Deadline::NEVER));
        let atomic = with_atomic(trace.clone(), &sites);
        let expected = places(races(&atomic, &SharedMemory::new(&atomic), Model::CPP20, 1));
        assert_eq!(after, expected, "{sites:?}\n{}", describe(&trace));
        found += before.len();
        left += after.len();
        gone += before.difference(&after).filter(|(one, other)| !(sites.contains(one) && sites.contains(other))).count();
    }
    assert!(gone > 100 && left > 100, "some races are ordered, some are not: {found} {gone} {left}");
}
