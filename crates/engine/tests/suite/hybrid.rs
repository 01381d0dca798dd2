//! The hybrid analysis against its definition.

use crate::support::random::{Shape, SplitMix, draw, enumerate, traces};
use crate::support::relations::{Set, bit, conflicting, exclude, happens_before, held, racing, weak};
use crate::support::{feed, later, text};
use rashomon_engine::Hybrid;
use rashomon_packed::{Event, Op};

fn definition(trace: &[Event]) -> Set {
    let (before, held) = (weak(trace), held(trace));
    let pairs = |at: usize| {
        (0..at).any(|earlier| {
            conflicting(trace, earlier, at) && before[at] & bit(earlier) == 0 && !exclude(&held[earlier], &held[at])
        })
    };
    (0..trace.len()).filter(|at| pairs(*at)).map(bit).sum()
}

fn check(trace: &[Event]) {
    let mut hybrid = Hybrid::default().keeping_all();
    feed(&mut hybrid, trace, 3);
    let found = later(&hybrid.found());
    assert_eq!(found, definition(trace), "hybrid\n{}", text(trace));
    assert_eq!(racing(trace, &happens_before(trace)) & !found, 0, "races that the hybrid misses\n{}", text(trace));
}

#[test]
fn all_small_traces() {
    let alphabet =
        [(Op::Read, 0), (Op::Write, 0), (Op::Acquire, 0), (Op::Release, 0), (Op::AcquireShared, 0), (Op::ReleaseShared, 0)];
    let shape = Shape { threads: 2, events: 0, variables: 1, locks: 1, everything: false, regions: false };
    enumerate(&shape, &alphabet, 7, &mut check);
}

#[test]
fn drawn_traces() {
    let mut random = SplitMix(1);
    for number in 0..traces(100_000) {
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
