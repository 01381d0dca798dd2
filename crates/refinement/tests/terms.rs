//! The model as terms: its refinements hold if and only if brute force finds nothing, and if and only if the search does.

use rashomon_csp::refine::{Limits, Verdict};
use rashomon_csp::script::Script;
use rashomon_event::{
    Access, AccessClass, Address, CandidateKind, EventIndex, EventKind, LockMode, ThreadId, Trace, Witness, WitnessLevel,
};
use rashomon_refinement::facts::Atomics;
use rashomon_refinement::live::{Live, live};
use rashomon_refinement::model::Model;
use rashomon_refinement::objects::Objects;
use rashomon_refinement::search::{self, Answer, Window, find};
use rashomon_refinement::terms::{About, Form, script};
use rashomon_testkit::{Features, Rules, Shape, TraceBuilder, describe, enumerate, random, reachable};
use rashomon_witness::Checker;
use std::collections::BTreeSet;

#[derive(Debug, Default)]
struct Tally {
    races: usize,
    without_race: usize,
    deadlocks: usize,
    without_deadlock: usize,
    states: usize,
}

/// Whether the assertion fails.
fn fails(script: &Script, number: usize, tally: &mut Tally, trace: &Trace) -> bool {
    match script.clone().check(script.assertions[number].claim, &Limits::default()) {
        Verdict::Holds { states } => {
            tally.states += states;
            false
        }
        Verdict::Fails { states, .. } => {
            tally.states += states;
            true
        }
        Verdict::Undecided { why, .. } => panic!("{why}\n{}\n{}", describe(trace), script.written()),
    }
}

fn agree(trace: &Trace, tally: &mut Tally) {
    let objects = Objects::new(trace);
    let expected = reachable(trace, Rules::SYNCHRONISATION);
    let model = Model::new(trace, Atomics::Free);
    let questions: Vec<About> = (0..objects.all.len()).map(About::Race).chain([About::Deadlock]).collect();
    let written = script(trace, &objects, &questions, &[Form::Hidden, Form::Schedule]).written();
    let script = Script::read(&written).unwrap_or_else(|error| panic!("{error}\n{written}"));
    for object in 0..objects.all.len() {
        let pairs = objects.conflicts(trace, object);
        let found = fails(&script, 2 * object, tally, trace);
        assert_eq!(found, fails(&script, 2 * object + 1, tally, trace), "two forms\n{}", describe(trace));
        let races = pairs.iter().any(|pair| expected.races.contains(pair));
        assert_eq!(found, races, "object {object}\n{}\n{written}", describe(trace));
        let searched = pairs.iter().any(|&(first, second)| {
            let answer = find(&model, &[first, second], Window::whole(&model), &search::Limits::default()).answer;
            matches!(answer, Answer::Order(_))
        });
        assert_eq!(found, searched, "object {object}\n{}", describe(trace));
        *(if found { &mut tally.races } else { &mut tally.without_race }) += 1;
    }
    let number = 2 * objects.all.len();
    let found = fails(&script, number, tally, trace);
    assert_eq!(found, fails(&script, number + 1, tally, trace), "two forms\n{}", describe(trace));
    assert!(found || expected.deadlocks.is_empty(), "{}\n{written}", describe(trace));
    if only_locks_all_released(trace) {
        assert_eq!(found, !expected.deadlocks.is_empty(), "{}\n{written}", describe(trace));
    }
    live_agrees(trace, &model, found);
    *(if found { &mut tally.deadlocks } else { &mut tally.without_deadlock }) += 1;
}

/// The search for states in which nobody can go on, with partial order and without: as the refinement says, and of the same
/// threads at the same events. What waits in a cycle is a deadlock to the checker as well.
fn live_agrees(trace: &Trace, model: &Model<'_>, expected: bool) {
    let all = |partial_order| live(model, usize::MAX, &search::Limits::default(), partial_order);
    let (reduced, whole) = (all(true), all(false));
    assert!(reduced.complete && whole.complete);
    assert!(reduced.states <= whole.states, "{} of {} states\n{}", reduced.states, whole.states, describe(trace));
    let waits = |of: &Live| of.stuck.iter().map(|one| (one.waits.clone(), one.is_cycle)).collect::<BTreeSet<_>>();
    assert_eq!(waits(&reduced), waits(&whole), "{}", describe(trace));
    assert_eq!(!reduced.stuck.is_empty(), expected, "{}", describe(trace));
    let checker = Checker::new(trace);
    let of_locks = |&event: &EventIndex| matches!(trace.kind(event), EventKind::Acquire { .. });
    for one in reduced.stuck.iter().filter(|one| one.is_cycle && one.waits.len() > 1 && one.waits.iter().all(of_locks)) {
        let lock = |&event: &EventIndex| match trace.kind(event) {
            EventKind::Acquire { lock, .. } => Some(lock),
            _ => None,
        };
        let candidate = CandidateKind::Deadlock { waits: one.waits.clone(), locks: one.waits.iter().map(lock).collect() };
        let witness = Witness { candidate, order: one.order.clone(), level: WitnessLevel::Synchronisation };
        let checked = checker.check(&witness);
        assert!(checked.is_ok(), "{checked:?} {witness:?}\n{}", describe(trace));
    }
}

/// Whoever counts under one lock is never stuck there: that takes no more states than one order of all.
#[test]
fn sections_of_accesses_alone_are_not_interleaved() {
    let mut builder = TraceBuilder::with_threads(4);
    for thread in (0..4).cycle().take(200).map(ThreadId) {
        for kind in [acquire(M, LockMode::Exclusive), write(8), release(M, LockMode::Exclusive)] {
            builder.push(thread, kind);
        }
    }
    let trace = builder.build();
    let found = live(&Model::to_the_end(&trace, Atomics::Kept, &[]), usize::MAX, &search::Limits::default(), true);
    assert!(found.complete && found.stuck.is_empty());
    assert_eq!(found.states, 401);
}

/// Then who is stuck is so in a cycle.
fn only_locks_all_released(trace: &Trace) -> bool {
    let mut open = 0_i32;
    trace.events.iter().all(|event| match event.kind {
        EventKind::Acquire { .. } => {
            open += 1;
            true
        }
        EventKind::Release { .. } => {
            open -= 1;
            true
        }
        EventKind::Access(_) | EventKind::Atomic { .. } => true,
        _ => false,
    }) && open == 0
}

const M: Address = Address(0x100);
const N: Address = Address(0x200);

const fn acquire(lock: Address, mode: LockMode) -> EventKind {
    EventKind::Acquire { lock, mode, may_wait: true }
}

const fn release(lock: Address, mode: LockMode) -> EventKind {
    EventKind::Release { lock, mode }
}

const fn write(address: u64) -> EventKind {
    EventKind::Access(Access { address: Address(address), size: 4, class: AccessClass::Write, atomic: false })
}

#[test]
fn all_small_traces_agree() {
    const EXCLUSIVE: LockMode = LockMode::Exclusive;
    let locks = [acquire(M, EXCLUSIVE), release(M, EXCLUSIVE), acquire(N, EXCLUSIVE), release(N, EXCLUSIVE)];
    let alphabet: Vec<_> = locks.into_iter().chain([write(0x300)]).collect();
    let mut tally = Tally::default();
    for length in 2..=5 {
        enumerate(2, length, &alphabet, &mut |trace| agree(&trace, &mut tally));
    }
    enumerate(2, 8, &locks, &mut |trace| {
        if only_locks_all_released(&trace) {
            agree(&trace, &mut tally);
        }
    });
    let shared =
        [write(0x300), acquire(M, EXCLUSIVE), release(M, EXCLUSIVE), acquire(M, LockMode::Shared), release(M, LockMode::Shared)];
    enumerate(2, 5, &shared, &mut |trace| agree(&trace, &mut tally));
    let one = [write(0x300), acquire(M, EXCLUSIVE), release(M, EXCLUSIVE)];
    enumerate(2, 7, &one, &mut |trace| agree(&trace, &mut tally));
    assert!(tally.races > 100 && tally.without_race > 10, "{tally:?}");
    assert!(tally.deadlocks > 10 && tally.without_deadlock > 100, "{tally:?}");
}

#[test]
fn random_traces_agree() {
    let mut tally = Tally::default();
    for seed in 0..400 {
        let shape = Shape {
            threads: 2 + (seed % 2) as u32,
            events: 10,
            variables: 1 + seed % 2,
            locks: 1 + seed % 2,
            features: Features::ALL,
        };
        agree(&random(seed, shape), &mut tally);
    }
    let features = Features { conditions: true, semaphores: true, barriers: true, ..Features::default() };
    for seed in 0..400 {
        let shape = Shape { threads: 2 + (seed % 2) as u32, events: 14, variables: seed % 2, locks: 2, features };
        agree(&random(seed, shape), &mut tally);
    }
    assert!(tally.races > 50 && tally.without_race > 50, "{tally:?}");
    assert!(tally.deadlocks > 10 && tally.without_deadlock > 50, "{tally:?}");
}

/// Listing 1 as it is printed, after the run in which main takes the lock first: the scheduling of §2.2.1, letter by letter.
#[test]
fn listing_one_has_the_schedule_of_the_paper() {
    let (main, task) = (ThreadId(0), ThreadId(1));
    let mut builder = TraceBuilder::with_threads(2);
    let (x, y) = (0x400, 0x500);
    for kind in [
        write(y),
        EventKind::Fork { child: task },
        write(y),
        acquire(M, LockMode::Exclusive),
        write(x),
        release(M, LockMode::Exclusive),
    ] {
        builder.push(main, kind);
    }
    let of_task =
        [EventKind::Start, acquire(M, LockMode::Exclusive), write(x), release(M, LockMode::Exclusive), write(y), EventKind::End];
    for kind in of_task {
        builder.push(task, kind);
    }
    builder.push(main, EventKind::Join { child: task, may_wait: true });
    let trace = builder.build();
    let objects = Objects::new(&trace);
    assert_eq!(objects.all.len(), 2);
    let mut script = script(&trace, &objects, &[About::Race(0), About::Race(1), About::Deadlock], &[Form::Schedule]);
    let [of_x, of_y, deadlock] = [0, 1, 2].map(|number| {
        let verdict = script.check(script.assertions[number].claim, &Limits::default());
        let Verdict::Fails { counterexamples, .. } = verdict else { return None };
        let text = script.counterexample(&counterexamples[0]);
        let synchronises = |name: &&str| !name.starts_with("write") && *name != "race";
        Some(text.split(", ").filter(synchronises).collect::<Vec<_>>().join(", "))
    });
    assert_eq!((of_x, deadlock), (None, None));
    assert_eq!(of_y.as_deref(), Some("fork_t1_t2, start_t2, lock_t2_m1, unlock_t2_m1"));
}
