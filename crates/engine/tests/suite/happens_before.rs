//! The detector against the definitions, on all small traces of small alphabets and on drawn ones with everything.

use crate::support::random::{Shape, SplitMix, draw, enumerate, traces};
use crate::support::relations::{Set, bit, happens_before, racing, racing_within, schedulable};
use crate::support::{feed, later, text};
use rashomon_engine::synchronisation::Tree;
use rashomon_engine::{Analysis as _, Detector, Found, Wanted};
use rashomon_packed::{Event, Op};
use std::collections::{BTreeMap, BTreeSet};

const ALL: Wanted = Wanted { shb: true, lock_sets: true };

fn detect(trace: &[Event], block: usize) -> Found {
    let mut detector = Detector::new(ALL).keeping_all();
    feed(&mut detector, trace, block);
    let found = detector.found();
    let mut with_trees = Detector::<Tree>::with_clocks(ALL).keeping_all();
    feed(&mut with_trees, trace, block);
    assert_eq!(with_trees.found(), found, "clocks as trees\n{}", text(trace));
    found
}

/// Eraser as in its paper, with sets that are sets. Says which accesses are warned of.
fn eraser(trace: &[Event]) -> Set {
    #[derive(PartialEq)]
    enum State {
        Exclusive(u16),
        Shared,
        SharedModified,
        Warned,
    }
    const ATOMIC: u32 = u32::MAX;
    let mut held: BTreeMap<u16, Vec<(u32, Op)>> = BTreeMap::new();
    let mut variables: BTreeMap<u32, (State, BTreeSet<u32>)> = BTreeMap::new();
    let mut warned = 0;
    for (number, event) in trace.iter().enumerate() {
        let held = held.entry(event.thread).or_default();
        match event.op {
            Op::Acquire | Op::AcquireShared => held.push((event.target, event.op)),
            Op::Release | Op::ReleaseShared => {
                let mode = if event.op == Op::Release { Op::Acquire } else { Op::AcquireShared };
                let place = held.iter().rposition(|lock| *lock == (event.target, mode));
                held.remove(place.expect("held"));
            }
            Op::Forget => drop(variables.remove(&event.target)),
            _ => {}
        }
        if !event.op.is_access() {
            continue;
        }
        let counts = |lock: &&(u32, Op)| lock.1 == Op::Acquire || !event.op.writes();
        let mut locks: BTreeSet<u32> = held.iter().filter(counts).map(|lock| lock.0).collect();
        if !event.op.is_plain() {
            locks.insert(ATOMIC);
        }
        let Some((state, candidates)) = variables.get_mut(&event.target) else {
            variables.insert(event.target, (State::Exclusive(event.thread), BTreeSet::new()));
            continue;
        };
        match state {
            State::Exclusive(owner) if *owner == event.thread => continue,
            State::Exclusive(_) => (*state, *candidates) = (State::Shared, locks),
            State::Shared | State::SharedModified => candidates.retain(|lock| locks.contains(lock)),
            State::Warned => continue,
        }
        if event.op.writes() {
            *state = State::SharedModified;
        }
        if *state == State::SharedModified && candidates.is_empty() {
            *state = State::Warned;
            warned |= bit(number);
        }
    }
    warned
}

fn check(trace: &[Event]) {
    let found = detect(trace, 3);
    let hb = racing(trace, &happens_before(trace));
    let shb = racing(trace, &schedulable(trace));
    assert_eq!(later(&found.hb), hb, "HB\n{}", text(trace));
    assert_eq!(later(found.shb.as_ref().unwrap()), shb, "SHB\n{}", text(trace));
    assert_eq!(later(found.lock_sets.as_ref().unwrap()), eraser(trace), "lock sets\n{}", text(trace));
    assert_eq!(found.hb.events(), u64::from(hb.count_ones()));
    // What SHB leaves unordered HB does too, and the first race of HB is one of SHB's.
    assert_eq!(shb & !hb, 0);
    // Reading an atomic write orders under SHB, and is no race under HB.
    if !trace.iter().any(|event| event.op.is_access() && !event.op.is_plain()) {
        assert_eq!(hb & hb.wrapping_neg(), shb & shb.wrapping_neg(), "first races\n{}", text(trace));
    }
}

#[test]
fn all_small_traces() {
    let alphabet = [(Op::Read, 0), (Op::Write, 0), (Op::Acquire, 0), (Op::Release, 0)];
    let shape = Shape { threads: 3, events: 0, variables: 1, locks: 1, everything: false, regions: false };
    let mut count = 0_u64;
    enumerate(&shape, &alphabet, 6, &mut |trace| {
        count += 1;
        check(trace);
    });
    assert!(count > 40_000, "{count}");
    let alphabet = [(Op::Write, 0), (Op::Read, 1), (Op::Write, 1), (Op::AtomicUpdate, 1), (Op::Forget, 1)];
    enumerate(&Shape { threads: 2, variables: 2, ..shape }, &alphabet, 6, &mut check);
}

#[test]
fn drawn_traces() {
    let mut random = SplitMix(1);
    for number in 0..traces(150_000) {
        let shape = Shape {
            threads: 2 + (number % 3) as u16,
            events: 8 + (number % 17) as usize,
            variables: 1 + (number % 3) as u32,
            locks: (number % 4) as u32,
            everything: number % 8 != 0,
            regions: false,
        };
        check(&draw(&mut random, &shape));
    }
}

#[test]
fn many_threads() {
    let mut random = SplitMix(2);
    let shape = Shape { threads: 40, events: 60, variables: 2, locks: 2, everything: true, regions: false };
    for _ in 0..traces(2_000) {
        check(&draw(&mut random, &shape));
    }
}

/// Up to eleven locks at a time, some with great numbers, some shared, released in any order.
#[test]
fn many_locks() {
    const LOCKS: [u32; 11] = [0, 1, 2, 3, 4, 5, 6, 7, 65_532, 65_533, 1_000_000];
    let mut random = SplitMix(4);
    let mut warned = 0_u64;
    for _ in 0..traces(20_000) {
        let mut trace = Vec::new();
        // Nearly all locks in one trace, so that sets stay large, and nearly none in another.
        let rarely = 2 + random.below(6);
        // 24 events come at most each time, and a set of events has 64.
        while trace.len() <= 40 {
            let thread = random.below(3) as u16;
            let mut held: Vec<(u32, Op)> = Vec::new();
            for lock in LOCKS {
                if random.below(rarely) != 0 {
                    let op = if random.below(3) == 0 { Op::AcquireShared } else { Op::Acquire };
                    trace.push(Event::new(thread, op, lock, 0));
                    held.push((lock, op));
                }
            }
            for _ in 0..2 {
                let op = [Op::Read, Op::Write, Op::AtomicRead, Op::AtomicWrite][random.below(4) as usize];
                trace.push(Event::new(thread, op, random.below(2) as u32, 0));
            }
            while !held.is_empty() {
                let (lock, op) = held.swap_remove(random.below(held.len() as u64) as usize);
                let op = if op == Op::Acquire { Op::Release } else { Op::ReleaseShared };
                trace.push(Event::new(thread, op, lock, 0));
            }
        }
        let expected = eraser(&trace);
        warned += u64::from(expected != 0);
        assert_eq!(later(detect(&trace, 3).lock_sets.as_ref().unwrap()), expected, "{}", text(&trace));
    }
    assert!(warned > 0);
}

#[test]
fn windows_separate_pairs() {
    let mut random = SplitMix(3);
    for number in 0..traces(20_000) {
        let shape = Shape { threads: 3, events: 24, variables: 2, locks: 2, everything: true, regions: false };
        let trace = draw(&mut random, &shape);
        let window = 3 + (number % 9) as usize;
        let mut detector = Detector::new(ALL).keeping_all();
        for (number, block) in trace.chunks(window).enumerate() {
            let first = (number * window) as u64;
            detector.boundary(first);
            detector.block(first, block);
        }
        let found = detector.found();
        let mut with_trees = Detector::<Tree>::with_clocks(ALL).keeping_all();
        for (number, block) in trace.chunks(window).enumerate() {
            with_trees.boundary((number * window) as u64);
            with_trees.block((number * window) as u64, block);
        }
        assert_eq!(with_trees.found(), found, "clocks as trees, window {window}\n{}", text(&trace));
        assert_eq!(later(&found.hb), racing_within(&trace, &happens_before(&trace), window), "window {window}\n{}", text(&trace));
    }
}
