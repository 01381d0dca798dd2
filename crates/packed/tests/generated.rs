//! Made-up traces are executions, of the size asked for, and the same again for the same seed.

mod support;

use rashomon_packed::{CheckOptions, Checked, Event, Generator, Op, Preset, Shape, Source as _, Space};
use support::drain;

fn generate(shape: &Shape) -> Vec<Event> {
    drain(&mut Generator::new(shape.clone()).unwrap()).unwrap()
}

fn presets() -> impl Iterator<Item = Shape> {
    let all = [Preset::Flat, Preset::Nest, Preset::Wide, Preset::Regions];
    let shapes = all.into_iter().flat_map(|preset| [5_000, 5_001, 50_000].map(|events| preset.shape(events, events ^ 7)));
    shapes.flat_map(|shape| {
        let other = Shape { ordered: false, requests: true, race_rate: 0.01, nesting: shape.nesting + 1, ..shape.clone() };
        [shape, other]
    })
}

#[test]
fn what_is_generated_is_an_execution() {
    for shape in presets() {
        let mut source = Checked::new(Generator::new(shape.clone()).unwrap(), CheckOptions::default());
        let events = drain(&mut source).unwrap();
        assert_eq!(events.len() as u64, shape.events);
        assert_eq!(source.notices(), [""; 0]);
        for event in &events {
            if let Some(space) = event.op.space() {
                assert!(event.target < source.expected(space).unwrap(), "{event:?}");
            }
            assert!(event.location < source.expected(Space::Location).unwrap());
        }
        assert_eq!(events, generate(&shape), "the same seed");
        assert_ne!(events, generate(&Shape { seed: shape.seed + 1, ..shape.clone() }), "another seed");
        let count = |op| events.iter().filter(|event| event.op == op).count() as u32;
        assert_eq!(count(Op::Acquire), count(Op::Release));
        assert_eq!(count(Op::Fork), shape.threads - 1);
        assert_eq!(count(Op::Request) > 0, shape.requests);
        assert_eq!(count(Op::Begin) > 0, shape.transactions);
        assert_eq!(count(Op::Begin), count(Op::End));
    }
}

#[test]
fn shares_are_kept() {
    for shape in presets().filter(|shape| shape.events == 50_000) {
        let events = generate(&shape);
        let accesses: Vec<_> = events.iter().filter(|event| event.op.is_access()).collect();
        let mut held = vec![0; shape.threads as usize];
        let (mut locked, mut racy) = (0, 0);
        for event in &events {
            match event.op {
                Op::Acquire => held[event.thread as usize] += 1,
                Op::Release => held[event.thread as usize] -= 1,
                _ if event.op.is_access() => locked += i32::from(held[event.thread as usize] > 0),
                _ => {}
            }
        }
        let first_racy = Generator::new(shape.clone()).unwrap().expected(Space::Variable).unwrap() - shape.racy;
        racy += accesses.iter().filter(|access| access.target >= first_racy).count();
        let share = f64::from(locked) / accesses.len() as f64;
        assert!((0.25..0.6).contains(&share), "{share} of the accesses are in critical sections, of {shape:?}");
        let share = racy as f64 / accesses.len() as f64;
        assert!((share - shape.race_rate).abs() <= 0.005, "{share} of the accesses are racy, of {shape:?}");
    }
}

#[test]
fn shapes_that_make_no_sense_are_refused() {
    let flat = Preset::Flat.shape(10_000, 1);
    for (shape, reason) in [
        (Shape { events: 100, ..flat.clone() }, "needs"),
        (Shape { threads: 0, ..flat.clone() }, "threads"),
        (Shape { threads: 70_000, ..flat.clone() }, "threads"),
        (Shape { locks: 0, ..flat.clone() }, "--locked"),
        (Shape { variables: 100, ..flat.clone() }, "fewer variables"),
        (Shape { reads: f64::NAN, ..flat.clone() }, "share"),
        (Shape { race_rate: 0.5, racy: 0, ..flat.clone() }, "racy"),
        (Shape { locations: 0, ..flat.clone() }, "locations"),
    ] {
        let error = Generator::new(shape).unwrap_err();
        assert!(error.contains(reason), "{error}");
    }
    let without_locks = Shape { locks: 0, nesting: 0, locked: 0.0, ..flat };
    assert_eq!(generate(&without_locks).len(), 10_000);
}
