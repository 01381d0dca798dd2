//! Uses unordered with an edge of their object's life, against accesses put in the places of both and compared one by one.

use rashomon_event::{
    AccessClass, Address, Deadline, Edge, Event, EventIndex, EventKind, EventSet, Events, MemoryOrder, ThreadId, Trace,
};
use rashomon_order::lives::{reorderable_uses, unordered_uses, used_by};
use rashomon_order::{Model, unordered};
use rashomon_testkit::random::SplitMix;
use rashomon_testkit::{Features, Shape, describe, random};
use std::collections::BTreeSet;

/// An access of its own before each use and at each edge; where they are.
fn with_accesses(trace: &Trace, edges: &[Edge]) -> (Trace, Vec<EventIndex>, Vec<(EventIndex, EventIndex)>) {
    let access = rashomon_event::Access { address: Address(1), size: 1, class: AccessClass::Read, atomic: false };
    let (mut events, mut at_edges, mut at_uses) = (Events::new(), Vec::new(), Vec::new());
    // Waits name the signal that woke them by its number.
    let mut moved = Vec::new();
    let here = |events: &Events| EventIndex(events.len() as u32);
    for (index, event) in trace.indices().zip(&trace.events) {
        for edge in edges.iter().filter(|edge| edge.before == index) {
            at_edges.push(here(&events));
            events.push(Event { thread: edge.thread, kind: EventKind::Access(access), ..event });
        }
        if used_by(&event.kind).is_some() {
            at_uses.push((index, here(&events)));
            events.push(Event { kind: EventKind::Access(access), ..event });
        }
        moved.push(here(&events));
        events.push(event);
    }
    events.change(|_, event| {
        if let EventKind::WaitEnd { woken_by: Some(signal), .. } = &mut event.kind {
            *signal = moved[signal.index()];
        }
    });
    (Trace { events, ..trace.clone() }, at_edges, at_uses)
}

/// Pairs of an edge and the thread of a use, as defined.
fn defined(trace: &Trace, edges: &[Edge]) -> BTreeSet<(usize, EventIndex)> {
    let (with, at_edges, at_uses) = with_accesses(trace, edges);
    let mut pairs = BTreeSet::new();
    for (number, (edge, &at_edge)) in edges.iter().zip(&at_edges).enumerate() {
        for &(used, at_use) in &at_uses {
            let event = trace.event(used);
            let same = used_by(&event.kind) == Some(edge.object) && event.thread != edge.thread;
            if same && unordered(&with, at_edge, at_use, Model::C11) {
                pairs.insert((number, used));
            }
        }
    }
    pairs
}

fn edges_in(trace: &Trace, random: &mut SplitMix) -> Vec<Edge> {
    let used: Vec<(Address, ThreadId)> =
        trace.events.iter().filter_map(|event| Some((used_by(&event.kind)?, event.thread))).collect();
    if used.is_empty() {
        return Vec::new();
    }
    let mut edges: Vec<Edge> = (0..1 + random.below(3))
        .map(|_| {
            // Of a thread that is there at that place.
            let before = random.below(trace.events.len() as u64) as usize;
            let thread = trace.events.at(before).thread;
            Edge { object: used[random.below(used.len() as u64) as usize].0, thread, before: EventIndex(before as u32) }
        })
        .collect();
    edges.sort_by_key(|edge| edge.before);
    edges
}

#[test]
fn what_is_found_is_what_is_defined() {
    let (mut some, mut none) = (0, 0);
    for seed in 0..3000 {
        let shape = Shape {
            threads: 2 + (seed % 3) as u32,
            events: 8 + (seed % 25) as usize,
            variables: 1,
            locks: 1 + seed % 2,
            features: Features::ALL,
        };
        let trace = random(seed, shape);
        let edges = edges_in(&trace, &mut SplitMix(seed));
        let found: BTreeSet<_> = {
            let used = |_: EventIndex, event: &Event| used_by(&event.kind);
            unordered_uses(&trace, Model::C11, &edges, used, &EventSet::default(), Deadline::NEVER).into_iter().collect()
        };
        let defined = defined(&trace, &edges);
        assert!(found.is_subset(&defined), "{found:?} {defined:?} {edges:?}\n{}", describe(&trace));
        // Of each object that has such a pair one is told, and of no other.
        let objects = |pairs: &BTreeSet<(usize, EventIndex)>| -> BTreeSet<Address> {
            pairs.iter().map(|(number, _)| edges[*number].object).collect()
        };
        assert_eq!(objects(&found), objects(&defined), "{edges:?}\n{}", describe(&trace));
        if found.is_empty() { none += 1 } else { some += 1 }
    }
    assert!(some > 300 && none > 300, "the traces exercise both answers: {some} and {none}");
}

/// The trace with the creation and the joining of threads alone, and accesses at the places given.
fn sparse(trace: &Trace) -> Trace {
    use EventKind::{Access, End, Fork, Join, Start};
    let mut sparse = trace.clone();
    sparse.events.change(|_, event| {
        if !matches!(event.kind, Access(_) | End | Fork { .. } | Join { .. } | Start) {
            event.kind = EventKind::Fence { order: MemoryOrder::Relaxed };
        }
    });
    sparse
}

/// Of each life and thread the uses that could be asked about, as defined.
fn defined_sparse(trace: &Trace, edges: &[Edge], is_end: &[bool]) -> BTreeSet<(usize, EventIndex)> {
    let (with, at_edges, at_uses) = with_accesses(trace, edges);
    let with = sparse(&with);
    let mut pairs = BTreeSet::new();
    for (number, (edge, &at_edge)) in edges.iter().zip(&at_edges).enumerate() {
        let others = || edges.iter().enumerate().filter(|(_, other)| other.object == edge.object);
        let since = others().filter(|(other, _)| *other < number).map(|(_, other)| other.before.0).max().unwrap_or(0);
        let until = others().find(|(other, _)| *other > number).map_or(u32::MAX, |(_, other)| other.before.0);
        for thread in (0..trace.threads.len() as u32).map(ThreadId).filter(|thread| *thread != edge.thread) {
            let uses = at_uses.iter().filter(|(used, _)| {
                let event = trace.event(*used);
                event.thread == thread && used_by(&event.kind) == Some(edge.object)
            });
            let mut within: Vec<_> = match is_end[number] {
                true => uses.filter(|(used, _)| (since..edge.before.0).contains(&used.0)).collect(),
                false => uses.filter(|(used, _)| (edge.before.0..until).contains(&used.0)).collect(),
            };
            let chosen = if is_end[number] { within.pop() } else { within.first().copied() };
            pairs.extend(chosen.filter(|(_, at)| unordered(&with, at_edge, *at, Model::C11)).map(|(used, _)| (number, *used)));
        }
    }
    pairs
}

#[test]
fn what_creation_and_joining_leave_open_is_what_is_defined() {
    let (mut some, mut none) = (0, 0);
    for seed in 0..3000 {
        let features = Features { fork_join: true, ..Features::default() };
        let (threads, events) = (2 + (seed % 3) as u32, 8 + (seed % 25) as usize);
        let trace = random(seed, Shape { threads, events, variables: 1, locks: 1 + seed % 2, features });
        let mut draws = SplitMix(seed);
        let edges = edges_in(&trace, &mut draws);
        let is_end: Vec<bool> = edges.iter().map(|_| draws.below(2) == 0).collect();
        let found = reorderable_uses(&trace, &edges, |number| is_end[number], Some, Deadline::NEVER);
        let uses: BTreeSet<_> = found.iter().copied().filter(|(_, used)| used_by(&trace.kind(*used)).is_some()).collect();
        let defined = defined_sparse(&trace, &edges, &is_end);
        assert_eq!(uses, defined, "{edges:?} {is_end:?}\n{}", describe(&trace));
        if uses.is_empty() { none += 1 } else { some += 1 }
    }
    assert!(some > 300 && none > 300, "the traces exercise both answers: {some} and {none}");
}
