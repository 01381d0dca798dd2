//! Memory is in proportion to what events name, not to how great its numbers are; and numbers change no answer.

use rashomon_engine::serialisability::Regions;
use rashomon_engine::{Findings, Kind, LinearResults, Settings, analyse};
use rashomon_packed::{Event, Names, Op, Slice, Source, Space, TraceError, order};

/// Events whose source promises as many numbers as a file can.
struct Promising<'a>(Slice<'a>);

impl Source for Promising<'_> {
    fn next(&mut self, block: &mut Vec<Event>) -> Result<(), TraceError> {
        self.0.next(block)
    }

    fn expected(&self, space: Space) -> Option<u32> {
        Some(space.limit().min(1 << 27))
    }

    fn names(&self) -> &Names {
        self.0.names()
    }
}

fn run(trace: &[Event], kind: Kind, workers: u32) -> LinearResults {
    let mut open = || -> Result<Box<dyn Source + Send + '_>, TraceError> { Ok(Box::new(Promising(Slice::new(trace)))) };
    let settings = Settings { kinds: vec![kind], regions: Regions::All, window: None, workers, memory: None, spill_to: None };
    analyse(&mut open, &settings, &mut |_| {}).expect("an answer")
}

/// Everything that has a number, under numbers that `number` makes of small ones.
fn trace(number: impl Fn(Space, u32) -> u32) -> Vec<Event> {
    let mut trace = Vec::new();
    let mut event = |thread: u32, op: Op, target: u32| {
        let target = op.space().map_or(target, |space| number(space, target));
        let mut event = Event::new(number(Space::Thread, thread) as u16, op, target, trace.len() as u32 + 1);
        event.order = if op.is_access() && !op.is_plain() { order::ACQUIRES | order::RELEASES } else { 0 };
        trace.push(event);
    };
    for round in 0..6 {
        for child in 1..4 {
            if round == 0 {
                event(0, Op::Fork, child);
            }
            for (acquire, release) in [(Op::Acquire, Op::Release), (Op::AcquireShared, Op::ReleaseShared)] {
                event(child, Op::Begin, child);
                event(child, Op::Request, round);
                event(child, acquire, round);
                event(child, acquire, round + 6);
                event(child, Op::Read, round % 2);
                event(child, Op::Write, child + 2);
                event(child, Op::AtomicUpdate, 7);
                event(child, release, round + 6);
                event(child, release, round);
                event(child, Op::End, child);
            }
            event(child, Op::Write, round % 2);
            event(child, Op::ReleaseObject, round);
            event(child, Op::AcquireObject, 0);
            event(child, Op::Enter, 1 + round);
            event(child, Op::Exit, 1);
        }
        event(1, Op::Forget, 5);
        // The second thread comes in between.
        event(1, Op::Begin, round);
        (1..3).for_each(|child| event(child, Op::Write, 0));
        event(1, Op::Read, 0);
        event(1, Op::End, round);
    }
    trace
}

/// Threads and events, whatever else is called.
fn told(findings: &Findings, thread: impl Fn(u16) -> u16) -> Vec<(u64, u64, u16, Option<u16>)> {
    match findings {
        Findings::Races(races) => {
            let pairs = races.pairs().values();
            let told = pairs.map(|pair| {
                let earlier = pair.first.earlier.map(|access| thread(access.thread));
                (pair.count, pair.first.later.event, thread(pair.first.later.thread), earlier)
            });
            told.collect()
        }
        Findings::Violations(violations) => {
            let pairs = violations.pairs().values();
            let told = pairs.map(|pair| {
                let first = &pair.first;
                (pair.count, first.event, thread(first.region.thread), Some(thread(first.other_thread)))
            });
            let mut told: Vec<_> = told.collect();
            told.sort_unstable();
            told
        }
    }
}

#[test]
fn few_events_take_little_memory() {
    let small = trace(|_, number| number);
    // As many as a file can name without having as many events, and the greatest there are.
    for top in [1 << 24, 1 << 27, u32::MAX] {
        let great = |space: Space, number: u32| space.limit().min(top) - 2 - 1_000 * number;
        let large = trace(great);
        let back = |thread: u16| ((Space::Thread.limit() - 2 - u32::from(thread)) / 1_000) as u16;
        for kind in Kind::ALL {
            for workers in [1, 3] {
                let (one, other) = (run(&small, kind, workers), run(&large, kind, workers));
                assert!(other.bytes < 1 << 20, "{kind:?} takes {} bytes for {} events", other.bytes, large.len());
                let (one, other) = (&one.reports[0].findings, &other.reports[0].findings);
                assert!(!one.is_empty(), "{kind:?} has something to tell");
                assert_eq!(told(one, |thread| thread), told(other, back), "{kind:?}");
            }
        }
    }
}

/// Many variables, few of which are near each other, and threads in no order.
#[test]
fn memory_follows_what_is_named() {
    let events = |variables: u32| -> Vec<Event> {
        let event = |number: u32| {
            let op = if number.is_multiple_of(3) { Op::Read } else { Op::Write };
            Event::new((number * 7_919 % 20) as u16 * 3_000, op, number.wrapping_mul(0x9e37_79b1) >> 5, 0)
        };
        (0..variables).map(event).collect()
    };
    for kind in [Kind::Hb, Kind::Shb, Kind::LockSet, Kind::Hybrid, Kind::Wcp, Kind::Serialisability] {
        let (few, many) = (run(&events(1_000), kind, 1).bytes, run(&events(16_000), kind, 1).bytes);
        // A page for each.
        assert!(few < 1_000 << 13 && many < 16_000 << 13, "{kind:?}: {few} and {many} bytes");
    }
}
