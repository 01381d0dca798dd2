//! WCP against its definition, by fixpoint.

use crate::support::random::{Shape, SplitMix, draw, enumerate, traces};
use crate::support::relations::{happens_before, racing, weak_causal_precedence};
use crate::support::{feed, later, text};
use rashomon_engine::Wcp;
use rashomon_packed::{Event, Op};

fn check(trace: &[Event]) {
    let mut wcp = Wcp::default().keeping_all();
    feed(&mut wcp, trace, 3);
    let found = later(&wcp.found());
    assert_eq!(found, racing(trace, &weak_causal_precedence(trace)), "WCP\n{}", text(trace));
    assert_eq!(racing(trace, &happens_before(trace)) & !found, 0, "HB races that WCP misses\n{}", text(trace));
}

#[test]
fn all_small_traces() {
    let shape = Shape { threads: 2, events: 0, variables: 1, locks: 1, everything: false, regions: false };
    let alphabet = [(Op::Read, 0), (Op::Write, 0), (Op::Acquire, 0), (Op::Release, 0)];
    enumerate(&shape, &alphabet, 8, &mut check);
    let alphabet = [(Op::Write, 0), (Op::Write, 1), (Op::Acquire, 0), (Op::Release, 0), (Op::Acquire, 1), (Op::Release, 1)];
    enumerate(&Shape { variables: 2, locks: 2, ..shape }, &alphabet, 6, &mut check);
}

#[test]
fn drawn_traces() {
    let mut random = SplitMix(1);
    for number in 0..traces(100_000) {
        let shape = Shape {
            threads: 2 + (number % 3) as u16,
            events: 8 + (number % 21) as usize,
            variables: 1 + (number % 3) as u32,
            locks: 1 + (number % 3) as u32,
            everything: number % 3 == 0,
            regions: false,
        };
        check(&draw(&mut random, &shape));
    }
}
