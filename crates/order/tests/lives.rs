//! Uses unordered with an edge of their object's life, against accesses put in the places of both and compared one by one.

use rashomon_event::{AccessClass, Address, Deadline, Edge, Event, EventIndex, EventKind, ThreadId, Trace};
use rashomon_order::lives::{unordered_uses, used_by};
use rashomon_order::{Model, unordered};
use rashomon_testkit::random::SplitMix;
use rashomon_testkit::{Features, Shape, describe, random};
use std::collections::BTreeSet;

/// An access of its own before each use and at each edge; where they are.
fn with_accesses(trace: &Trace, edges: &[Edge]) -> (Trace, Vec<EventIndex>, Vec<(EventIndex, EventIndex)>) {
    let access = rashomon_event::Access { address: Address(1), size: 1, class: AccessClass::Read, atomic: false };
    let (mut events, mut at_edges, mut at_uses) = (Vec::new(), Vec::new(), Vec::new());
    // Waits name the signal that woke them by its number.
    let mut moved = Vec::new();
    let here = |events: &Vec<Event>| EventIndex(events.len() as u32);
    for (index, event) in trace.indices().zip(&trace.events) {
        for edge in edges.iter().filter(|edge| edge.before == index) {
            at_edges.push(here(&events));
            events.push(Event { thread: edge.thread, kind: EventKind::Access(access), ..*event });
        }
        if used_by(&event.kind).is_some() {
            at_uses.push((index, here(&events)));
            events.push(Event { kind: EventKind::Access(access), ..*event });
        }
        moved.push(here(&events));
        events.push(*event);
    }
    for event in &mut events {
        if let EventKind::WaitEnd { woken_by: Some(signal), .. } = &mut event.kind {
            *signal = moved[signal.index()];
        }
    }
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
            let thread = trace.events[before].thread;
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
        let found: BTreeSet<_> =
            unordered_uses(&trace, Model::C11, &edges, |_, event| used_by(&event.kind), Deadline::NEVER).into_iter().collect();
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
