//! An event next while other threads have run so far, in whole traces and in windows of them, against brute force.

use rashomon_event::{CandidateKind, Deadline, EventIndex, EventKind, LockMode, Stand, ThreadId, Trace, Witness, WitnessLevel};
use rashomon_order::SharedMemory;
use rashomon_predict::index::Index;
use rashomon_predict::maximal::{Decision, Facts, Limits, Target, Values, decide, meets, window};
use rashomon_testkit::{Contents, Features, Rules, Shape, SplitMix, TraceBuilder, can_meet, describe, random};
use rashomon_witness::{Checker, Rejection};

#[derive(Debug, Default)]
struct Tally {
    found: usize,
    refuted: usize,
    /// In a window that is not the whole trace, where none of it shows the meeting.
    left_open: usize,
}

/// Some events, each with where some other threads are to stand.
fn meetings(trace: &Trace, rng: &mut SplitMix) -> Vec<(EventIndex, Vec<Stand>)> {
    let (events, threads) = (trace.events.len() as u64, trace.threads.len() as u64);
    let meeting = |_| {
        let next = EventIndex(rng.below(events) as u32);
        let mut stands = Vec::new();
        for _ in 0..1 + rng.below(2) {
            let (thread, before) = (ThreadId(rng.below(threads) as u32), EventIndex(1 + rng.below(events) as u32));
            let kinds = [Stand::at, Stand::behind, Stand::up_to];
            stands.push(kinds[rng.below(3) as usize](thread, before));
        }
        stands.retain(|stand| stand.thread != trace.event(next).thread);
        (next, stands)
    };
    // That the end of a wait is next asks for the signal, too.
    let is_wait = |next: EventIndex| matches!(trace.kind(next), EventKind::WaitEnd { .. });
    (0..40).map(meeting).filter(|(next, _)| !is_wait(*next)).collect()
}

fn check(trace: &Trace, contents: Option<&Contents>, (window_of, seed): (Option<usize>, u64), tally: &mut Tally) {
    let memory = SharedMemory::new(trace);
    let index = Index::new(trace, &memory);
    let values = contents.map(|contents| {
        let mut values = Values::default();
        contents.read.iter().for_each(|(&event, bytes)| values.set_read(event, bytes));
        contents.written.iter().for_each(|(&event, bytes)| values.set_written(event, bytes));
        values
    });
    let facts = if trace.uses.is_empty() {
        Facts::new(&index, &memory, values.as_ref())
    } else {
        Facts::with_values(&index, &memory, Deadline::NEVER).unwrap()
    };
    let checker = Checker::new(trace);
    let nothing = Contents::default();
    let may_see = |sight| contents.unwrap_or(&nothing).may_see(trace, sight);
    for (next, stands) in meetings(trace, &mut SplitMix(seed)) {
        let goals = [next];
        let target = Target { goals: &goals, orders: &[], stands: &stands };
        let whole = 0..trace.events.len();
        let range = window_of.map_or_else(|| Some(whole.clone()), |events| window(&facts, target, events));
        let told = || format!("{next} {stands:?} in {range:?}\n{}\n{values:?}", describe(trace));
        let decision = meets(&facts, next, &stands, &Limits { window: window_of, ..Limits::NONE }, Deadline::NEVER).decision;
        let question = [(next, stands.clone())];
        let expected = range.clone().is_some_and(|range| can_meet(trace, Rules::CAUSAL, range, &question, &may_see)[0]);
        match decision {
            Decision::Witness(order) => {
                assert!(expected, "{}", told());
                let level = checker.meets(&order, next, &stands);
                assert!(level.is_ok() && (contents.is_some() || level == Ok(WitnessLevel::Causal)), "{level:?} {}", told());
                assert!(contents.unwrap_or(&nothing).hold(trace, &order) || !trace.uses.is_empty(), "{}", told());
                let start = range.as_ref().map_or(0, |range| range.start);
                assert!((0..start).all(|event| order.contains(&EventIndex(event as u32))), "{}", told());
                tally.found += 1;
            }
            Decision::Refuted => {
                assert!(!expected && range == Some(whole), "{}", told());
                tally.refuted += 1;
            }
            Decision::Undecided => {
                assert!(!expected && range != Some(whole), "{}", told());
                tally.left_open += 1;
            }
        }
    }
}

fn shape(seed: u64, events: usize) -> Shape {
    let variables = if seed.is_multiple_of(5) { 0 } else { 1 + seed % 2 };
    let all = Features { semaphores: seed % 4 == 1, fork_join: variables > 0, ..Features::ALL };
    let features = if seed.is_multiple_of(2) { Features::default() } else { all };
    Shape { threads: 2 + (seed % 3) as u32, events: events + (seed % 5) as usize, variables, locks: 1 + seed % 3, features }
}

#[test]
fn of_whole_traces() {
    let mut tally = Tally::default();
    for seed in 0..600 {
        let trace = random(seed, shape(seed, 10));
        let contents = Contents::random(&trace, seed, 7);
        check(&trace, None, (None, seed), &mut tally);
        check(&trace, Some(&contents), (None, seed), &mut tally);
    }
    assert!(tally.found > 1000 && tally.refuted > 1000 && tally.left_open == 0, "{tally:?}");
}

#[test]
fn of_windows() {
    let mut tally = Tally::default();
    for seed in 0..1500 {
        let trace = random(200_000 + seed, shape(seed, 12));
        let contents = Contents::random(&trace, seed, 7);
        let values = seed.is_multiple_of(2).then_some(&contents);
        check(&trace, values, (Some(4 + (seed % 10) as usize), seed), &mut tally);
    }
    assert!(tally.found > 1000 && tally.left_open > 1000, "{tally:?}");
    // One that holds the trace is the trace.
    let mut whole = Tally::default();
    for seed in 0..200 {
        check(&random(seed, shape(seed, 10)), None, (Some(64), seed), &mut whole);
    }
    assert!(whole.found > 100 && whole.refuted > 100 && whole.left_open == 0, "{whole:?}");
}

/// What a thread does at an edge may depend on whatever it has read.
#[test]
fn reads_on_which_nothing_depends_count_before_an_edge() {
    let mut builder = TraceBuilder::with_threads(2);
    let (one, other) = (ThreadId(0), ThreadId(1));
    let lock = rashomon_event::Address(8);
    let flag = rashomon_event::Address(0x100);
    builder.access(one, rashomon_event::AccessClass::Write, flag, 8);
    let used = builder.push(one, EventKind::Acquire { lock, mode: LockMode::Exclusive, may_wait: true });
    builder.push(one, EventKind::Release { lock, mode: LockMode::Exclusive });
    let read = builder.access(other, rashomon_event::AccessClass::Read, flag, 8);
    let mut trace = builder.build();
    trace.uses = vec![rashomon_event::ReadUse { read, first: None, written: Vec::new() }];
    let memory = SharedMemory::new(&trace);
    let index = Index::new(&trace, &memory);
    let facts = Facts::with_values(&index, &memory, Deadline::NEVER).unwrap();
    let behind = [Stand::behind(other, EventIndex(read.0 + 1))];
    let of = |next| meets(&facts, next, &behind, &Limits::NONE, Deadline::NEVER).decision;
    // The write comes first, so that the other thread reads what it read.
    assert_eq!(of(EventIndex(0)), Decision::Refuted);
    assert_eq!(of(used), Decision::Witness(vec![EventIndex(0), read]));
    let claimed = Checker::new(&trace).meets(&[read], EventIndex(0), &behind);
    assert_eq!(claimed, Ok(WitnessLevel::Synchronisation));
    let elsewhere = Checker::new(&trace).meets(&[], EventIndex(0), &behind);
    assert_eq!(elsewhere, Err(Rejection::StandsElsewhere { thread: other }));
}

/// What depends on more events than the solver takes is decided in a window.
#[test]
fn a_window_decides_where_the_slice_is_too_large() {
    let mut builder = TraceBuilder::with_threads(2);
    let (one, other) = (ThreadId(0), ThreadId(1));
    let lock = rashomon_event::Address(8);
    let shared = rashomon_event::Address(0x100);
    let write = rashomon_event::AccessClass::Write;
    for _ in 0..50 {
        for thread in [one, other] {
            builder.push(thread, EventKind::Acquire { lock, mode: LockMode::Exclusive, may_wait: true });
            builder.access(thread, write, shared, 8);
            builder.push(thread, EventKind::Release { lock, mode: LockMode::Exclusive });
        }
    }
    let first = builder.access(one, write, rashomon_event::Address(0x200), 8);
    builder.push(one, EventKind::Acquire { lock, mode: LockMode::Exclusive, may_wait: true });
    builder.push(one, EventKind::Release { lock, mode: LockMode::Exclusive });
    builder.push(other, EventKind::Acquire { lock, mode: LockMode::Exclusive, may_wait: true });
    builder.push(other, EventKind::Release { lock, mode: LockMode::Exclusive });
    let second = builder.access(other, write, rashomon_event::Address(0x200), 8);
    let trace = builder.build();
    let memory = SharedMemory::new(&trace);
    let index = Index::new(&trace, &memory);
    let facts = Facts::new(&index, &memory, None);
    let few = Limits { events: 40, ..Limits::NONE };
    let of = |limits: &Limits| decide(&facts, &[first, second], limits, Deadline::NEVER).0;
    assert_eq!(of(&few), Decision::Undecided);
    let Decision::Witness(order) = of(&Limits { window: Some(30), ..few }) else { panic!("the window has an order") };
    let witness = Witness { candidate: CandidateKind::Race { first, second }, order, level: WitnessLevel::Causal };
    assert_eq!(Checker::new(&trace).check(&witness), Ok(WitnessLevel::Causal));
    assert_eq!(of(&Limits { window: Some(4), ..few }), Decision::Undecided);
}
