//! Events per second of the analysis, on three loops: `cargo run --release -p rashomon-units --example units_throughput`.

use rashomon_units::{Analysis, Bytes, Detection, Event, Line, Lock, Meeting, Mode, Options, Register, Step, Thread};
use std::time::Instant;

const EVENTS: u64 = 4_000_000;
const ONE: [Register; 1] = [Register(0)];
const TWO: [Register; 2] = [Register(0), Register(1)];

fn measure(name: &str, detection: Detection, mut steps: impl FnMut(u64, &mut dyn FnMut(u32, Step<'_>))) {
    let mut analysis = Analysis::new(Options { detection, ..Options::default() });
    let (mut events, begin) = (0, Instant::now());
    let mut round = 0;
    while events < EVENTS {
        steps(round, &mut |line, step| {
            analysis.event(&Event { thread: Thread((round % 4) as u32), line: Line(line), step });
            events += 1;
        });
        round += 1;
    }
    let seconds = begin.elapsed().as_secs_f64();
    let kept = analysis.kept();
    println!("{name:<24} {detection:?}: {:.1} M events/s, {kept} units, sets and moments kept", events as f64 / seconds / 1e6);
}

fn load(start: u64, into: u32) -> Step<'static> {
    Step::Load { bytes: Bytes::new(start, 4), address: &[], into: Register(into) }
}

fn store(start: u64, from: &'static [Register]) -> Step<'static> {
    Step::Store { bytes: Bytes::new(start, 4), address: &[], from }
}

fn main() {
    for detection in [Detection::Pairs, Detection::States] {
        measure("locked increments", detection, |_, tell| {
            tell(1, Step::Acquire { lock: Lock(1), mode: Mode::Exclusive });
            tell(2, load(0x1000, 0));
            tell(3, store(0x1000, &ONE));
            tell(4, Step::Release { lock: Lock(1) });
        });
        // Each thread adds up an array of its own, under a loop's condition.
        measure("sums of private arrays", detection, |round, tell| {
            let base = 0x10_0000 * (1 + round % 4);
            for index in 0..256 {
                tell(5, Step::Branch { on: &TWO, meeting: Meeting(1) });
                tell(6, load(base + 4 * (round % 16 * 256 + index), 1));
                tell(7, Step::Compute { into: Register(0), from: &TWO });
            }
            tell(8, Step::Reach { meeting: Meeting(1) });
            tell(9, Step::Compute { into: Register(0), from: &[] });
        });
        // All threads go over one array that is shared, a lock for each 64 cells.
        measure("shared array", detection, |round, tell| {
            let part = round % 64;
            tell(10, Step::Acquire { lock: Lock(100 + part), mode: Mode::Exclusive });
            for index in 0..64 {
                let cell = 0x2000 + 4 * (part * 64 + index);
                tell(11, load(cell, 0));
                tell(12, store(cell, &ONE));
            }
            tell(13, Step::Release { lock: Lock(100 + part) });
        });
    }
}
