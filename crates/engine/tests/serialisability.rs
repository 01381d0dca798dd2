//! Conflict serialisability against the graph of transactions.

mod support;

use rashomon_engine::serialisability::{Regions, Serialisability};
use rashomon_packed::{Event, Op};
use std::collections::BTreeSet;
use support::random::{Shape, SplitMix, draw, enumerate, traces};
use support::relations::same_life;
use support::{feed, text};

/// The transaction of each event: for a region the event that begins it.
fn transactions(trace: &[Event], regions: Regions) -> Vec<usize> {
    let begins = |op| match op {
        Op::Begin => regions != Regions::CriticalSections,
        Op::Acquire | Op::AcquireShared => regions != Regions::Marked,
        _ => false,
    };
    let ends = |op| match op {
        Op::End => regions != Regions::CriticalSections,
        Op::Release | Op::ReleaseShared => regions != Regions::Marked,
        _ => false,
    };
    let mut open: Vec<Vec<usize>> = vec![Vec::new(); 64];
    let mut of = Vec::new();
    for (at, event) in trace.iter().enumerate() {
        let open = &mut open[usize::from(event.thread)];
        if begins(event.op) {
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
                    | (Op::Publish, Op::Observe)
                    | (Op::Enter, Op::Exit)
                    | (Op::Fork, Op::Join)
            ))
}

/// The first event at which the graph has a cycle.
fn first_cycle(trace: &[Event], of: &[usize]) -> Option<usize> {
    let mut edges: BTreeSet<(usize, usize)> = BTreeSet::new();
    for at in 0..trace.len() {
        let sources: BTreeSet<usize> = (0..at).filter(|before| ordered(trace, *before, at)).map(|before| of[before]).collect();
        edges.extend(sources.into_iter().filter(|source| *source != of[at]).map(|source| (source, of[at])));
        let mut reached = vec![of[at]];
        let mut place = 0;
        while place < reached.len() {
            let from = reached[place];
            for &(_, to) in edges.range((from, 0)..(from + 1, 0)) {
                if to == of[at] {
                    return Some(at);
                }
                if !reached.contains(&to) {
                    reached.push(to);
                }
            }
            place += 1;
        }
    }
    None
}

fn check(trace: &[Event]) {
    for regions in [Regions::Marked, Regions::CriticalSections, Regions::All] {
        let of = transactions(trace, regions);
        let mut analysis = Serialisability::new(regions);
        feed(&mut analysis, trace, 3);
        let found = analysis.found();
        let first = found.pairs().values().map(|pair| pair.first.event as usize).min();
        assert_eq!(first, first_cycle(trace, &of), "{regions:?}\n{}", text(trace));
        // Whatever is reported is the region of the event that closes the cycle.
        for pair in found.pairs().values() {
            assert_eq!(of[pair.first.event as usize] as u64, pair.first.region.event, "{regions:?}\n{}", text(trace));
        }
    }
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
