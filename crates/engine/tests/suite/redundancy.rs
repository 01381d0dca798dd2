//! Leaving repetitions out loses no variable that races.

use crate::support::random::{Shape, SplitMix, draw, traces};
use crate::support::{feed, text};
use rashomon_engine::redundancy::Redundancy;
use rashomon_engine::{Detector, Hybrid, Races, Wanted};
use rashomon_packed::{Event, Slice, Source as _};
use std::collections::BTreeSet;

fn variables(races: &Races) -> BTreeSet<u32> {
    races.all().expect("all are kept").iter().map(|race| race.variable).collect()
}

fn racing(trace: &[Event]) -> [BTreeSet<u32>; 2] {
    let mut detector = Detector::new(Wanted::default()).keeping_all();
    feed(&mut detector, trace, 3);
    let mut hybrid = Hybrid::default().keeping_all();
    feed(&mut hybrid, trace, 3);
    [variables(&detector.found().hb), variables(&hybrid.found())]
}

#[test]
fn the_same_variables_race() {
    let mut random = SplitMix(1);
    let mut left_out = 0;
    for number in 0..traces(100_000) {
        let shape = Shape {
            threads: 2 + (number % 3) as u16,
            events: 8 + (number % 40) as usize,
            variables: 1 + (number % 4) as u32,
            locks: (number % 3) as u32,
            everything: number % 3 == 0,
            regions: false,
        };
        let trace = draw(&mut random, &shape);
        let mut source = Redundancy::new(Slice::new(&trace));
        let mut less = Vec::new();
        source.next(&mut less).expect("events in memory");
        assert_eq!(less.len(), trace.len());
        left_out += source.left_out();
        assert_eq!(racing(&less), racing(&trace), "{}", text(&trace));
    }
    assert!(left_out > 1000, "something is left out");
}
