//! The search of the model against brute force: the same races and deadlocks, and orders that the witness checker accepts.

use rashomon_event::{
    Access, AccessClass, Address, AtomicOp, CandidateKind, EventIndex, EventKind, LockMode, MemoryOrder, Trace, Witness,
    WitnessLevel,
};
use rashomon_refinement::facts::Atomics;
use rashomon_refinement::model::Model;
use rashomon_refinement::search::{Answer, Limits, Reductions, Window, find, near};
use rashomon_testkit::{Features, Rules, Shape, alike, describe, enumerate, random, reachable};
use rashomon_witness::Checker;

fn conflicting(trace: &Trace) -> Vec<(EventIndex, EventIndex)> {
    let access = |event: EventIndex| Some((trace.event(event).thread, trace.access(event)?));
    let pairs = trace.indices().flat_map(|second| (0..second.0).map(move |first| (EventIndex(first), second)));
    let conflicts = |&(first, second): &(EventIndex, EventIndex)| match (access(first), access(second)) {
        (Some((one, first)), Some((other, second))) => one != other && first.conflicts(&second),
        _ => false,
    };
    pairs.filter(conflicts).collect()
}

#[derive(Debug, Default)]
struct Tally {
    traces: usize,
    pairs: usize,
    races: usize,
    /// That the order close to the trace leads to.
    near: usize,
    deadlocks: usize,
    states: usize,
}

/// Each pair and each cycle of the trace: found if and only if brute force reaches it.
fn agree(trace: &Trace, tally: &mut Tally) {
    tally.traces += 1;
    let expected = reachable(trace, Rules::SYNCHRONISATION);
    let model = Model::new(trace, Atomics::Free);
    let checker = Checker::new(trace);
    for (first, second) in conflicting(trace) {
        tally.pairs += 1;
        let goals = [first, second];
        let searched = find(&model, &goals, Window::whole(&model), &Limits::default());
        tally.states += searched.states;
        let found = match searched.answer {
            Answer::Order(order) => {
                let candidate = CandidateKind::Race { first, second };
                let witness = Witness { candidate, order, level: WitnessLevel::Synchronisation };
                let checked = checker.check(&witness);
                assert!(checked.is_ok(), "{checked:?} {witness:?}\n{}", describe(trace));
                true
            }
            Answer::No { .. } => false,
            Answer::Undecided => panic!(
                "undecided after {} states
{}",
                searched.states,
                describe(trace)
            ),
        };
        assert_eq!(found, expected.races.contains(&(first, second)), "{first:?} {second:?}\n{}", describe(trace));
        if let Some(order) = near(&model, &goals) {
            tally.near += 1;
            let witness =
                Witness { candidate: CandidateKind::Race { first, second }, order, level: WitnessLevel::Synchronisation };
            assert!(found && checker.check(&witness).is_ok(), "{witness:?}\n{}", describe(trace));
        }
        tally.races += usize::from(found);
    }
    for cycle in &expected.deadlocks {
        tally.deadlocks += 1;
        let answer = find(&model, cycle, Window::whole(&model), &Limits::default()).answer;
        assert!(matches!(answer, Answer::Order(_)), "{answer:?} {cycle:?}\n{}", describe(trace));
    }
}

const M: Address = Address(0x100);
const N: Address = Address(0x200);
const X: Address = Address(0x300);

const fn acquire(lock: Address, mode: LockMode) -> EventKind {
    EventKind::Acquire { lock, mode, may_wait: true }
}

const fn release(lock: Address, mode: LockMode) -> EventKind {
    EventKind::Release { lock, mode }
}

const WRITE: EventKind = EventKind::Access(Access { address: X, size: 4, class: AccessClass::Write, atomic: false });
const EXCLUSIVE: LockMode = LockMode::Exclusive;

#[test]
fn all_small_traces_of_two_locks_agree() {
    let alphabet = [WRITE, acquire(M, EXCLUSIVE), release(M, EXCLUSIVE), acquire(N, EXCLUSIVE), release(N, EXCLUSIVE)];
    let mut tally = Tally::default();
    for length in 2..=7 {
        enumerate(2, length, &alphabet, &mut |trace| agree(&trace, &mut tally));
    }
    enumerate(3, 6, &alphabet, &mut |trace| agree(&trace, &mut tally));
    assert!(tally.races > 1000 && tally.races < tally.pairs && tally.deadlocks > 10, "{tally:?}");
}

#[test]
fn all_small_traces_of_shared_locks_and_atomics_agree() {
    let atomic = |class, op| EventKind::Atomic {
        access: Access { address: X, size: 4, class, atomic: true },
        op,
        order: MemoryOrder::SeqCst,
        value: 0,
    };
    let alphabet = [
        WRITE,
        atomic(AccessClass::Write, AtomicOp::Store),
        atomic(AccessClass::Read, AtomicOp::Load),
        acquire(M, EXCLUSIVE),
        release(M, EXCLUSIVE),
        acquire(M, LockMode::Shared),
        release(M, LockMode::Shared),
    ];
    let mut tally = Tally::default();
    for length in 2..=5 {
        enumerate(2, length, &alphabet, &mut |trace| agree(&trace, &mut tally));
    }
    assert!(tally.races > 1000 && tally.races < tally.pairs, "{tally:?}");
}

/// Conditions, barriers, semaphores, once, publication, creation and joining, partial overlaps.
#[test]
fn random_traces_agree() {
    let mut tally = Tally::default();
    for seed in 0..4000 {
        let (threads, events) = (2 + (seed % 3) as u32, 10 + (seed % 9) as usize);
        let shape = Shape { threads, events, variables: 1 + seed % 2, locks: seed % 4, features: Features::ALL };
        agree(&random(seed, shape), &mut tally);
    }
    let features = Features { conditions: true, semaphores: true, barriers: true, ..Features::default() };
    for seed in 0..4000 {
        let shape = Shape { threads: 2 + (seed % 2) as u32, events: 20, variables: seed % 2, locks: 3, features };
        agree(&random(seed, shape), &mut tally);
    }
    assert!(tally.races > 1000 && tally.races < tally.pairs && tally.deadlocks > 50, "{tally:?}");
    assert!(tally.near * 2 > tally.races, "{tally:?}");
}

/// What is found in a window begins with what was observed before it, and the checker accepts it.
#[test]
fn windows_begin_with_the_observed_prefix() {
    let (mut found, mut missed) = (0, 0);
    for seed in 0..1500 {
        let features = if seed % 2 == 0 { Features::ALL } else { Features::default() };
        let shape = Shape { threads: 3, events: 20, variables: 1, locks: 3, features };
        let trace = random(seed, shape);
        let model = Model::new(&trace, Atomics::Free);
        let checker = Checker::new(&trace);
        for (first, second) in conflicting(&trace) {
            let goals = [first, second];
            let Some(window) = Window::around(&model, &goals, 6) else { continue };
            let whole = find(&model, &goals, Window::whole(&model), &Limits::default()).answer;
            match find(&model, &goals, window, &Limits::default()).answer {
                Answer::Order(order) => {
                    assert!(order.iter().zip(0..).take(window.from).all(|(event, place)| event.0 == place));
                    let candidate = CandidateKind::Race { first, second };
                    let checked = checker.check(&Witness { candidate, order, level: WitnessLevel::Synchronisation });
                    assert!(checked.is_ok(), "{checked:?} {window:?}\n{}", describe(&trace));
                    assert!(matches!(whole, Answer::Order(_)));
                    found += 1;
                }
                _ => missed += usize::from(matches!(whole, Answer::Order(_))),
            }
        }
    }
    assert!(found > 100 && missed * 100 < found, "{found} found, {missed} missed");
}

#[test]
fn a_search_that_reaches_its_limit_says_so() {
    let shape = Shape { threads: 3, events: 18, variables: 1, locks: 2, features: Features::default() };
    let limits = Limits { steps: 3, ..Limits::default() };
    let mut undecided = 0;
    for seed in 0..200 {
        let trace = random(seed, shape);
        let model = Model::new(&trace, Atomics::Free);
        for (first, second) in conflicting(&trace) {
            let goals = [first, second];
            let limited = find(&model, &goals, Window::whole(&model), &limits).answer;
            match find(&model, &goals, Window::whole(&model), &Limits::default()).answer {
                Answer::Order(_) => assert!(!matches!(limited, Answer::No { .. })),
                Answer::No { .. } => assert!(!matches!(limited, Answer::Order(_))),
                Answer::Undecided => panic!("tiny"),
            }
            undecided += usize::from(matches!(limited, Answer::Undecided));
        }
    }
    assert!(undecided > 50, "{undecided}");
}

/// Each reduction changes how many states are seen, and no answer.
#[test]
fn reductions_lose_nothing() {
    let features = Features { conditions: true, semaphores: true, barriers: true, ..Features::default() };
    let without = [
        Reductions { relevance: false, ..Reductions::ALL },
        Reductions { chains: false, runs: false, ..Reductions::ALL },
        Reductions { chains: false, runs: false, memory: false, ..Reductions::ALL },
        Reductions { runs: false, ..Reductions::ALL },
        Reductions { chains: false, ..Reductions::ALL },
        Reductions { symmetry: false, ..Reductions::ALL },
    ];
    let (mut all, mut others) = (0, [0; 6]);
    for seed in 0..400 {
        let shape = Shape { threads: 2 + (seed % 2) as u32, events: 16, variables: 1, locks: 2, features };
        let trace = random(seed, shape);
        let model = Model::new(&trace, Atomics::Free);
        for (first, second) in conflicting(&trace) {
            let search = |reductions| {
                let limits = Limits { states: 2_000_000, reductions, ..Limits::default() };
                find(&model, &[first, second], Window::whole(&model), &limits)
            };
            let expected = search(Reductions::ALL);
            all += expected.states;
            for (reductions, states) in without.into_iter().zip(&mut others) {
                let found = search(reductions);
                *states += found.states;
                let same = matches!(
                    (&found.answer, &expected.answer),
                    (Answer::Order(_), Answer::Order(_)) | (Answer::No { .. }, Answer::No { .. })
                );
                assert!(same, "{reductions:?}: {:?}, {:?}\n{}", found.answer, expected.answer, describe(&trace));
            }
        }
    }
    // Where runs leave little to choose, memory has little to save.
    let [relevance, neither, memory, runs, chains, symmetry] = others;
    assert!(all < relevance && all < runs && runs < neither && neither < memory, "{all} states, {others:?} without reductions");
    assert!(all <= chains && all <= symmetry, "{all} states, {others:?} without reductions");
}

/// Of workers that do the same, it matters how many have come how far; and accesses are no steps, which changes no answer.
#[test]
fn symmetry_and_segments_lose_nothing() {
    let (mut orders, mut states) = (0, [0; 2]);
    for seed in 0..40 {
        let trace = alike(seed, 2 + (seed % 4) as u32, 1 + seed % 3);
        for atomics in [Atomics::Free, Atomics::Kept] {
            let (model, each) = (Model::new(&trace, atomics), Model::with_accesses(&trace, atomics));
            for (first, second) in conflicting(&trace).into_iter().rev().take(40) {
                let answer = |model: &Model<'_>, symmetry: bool, runs: bool, states: &mut usize| {
                    let reductions = Reductions { symmetry, runs, ..Reductions::ALL };
                    let limits = Limits { states: 200_000, reductions, ..Limits::default() };
                    let found = find(model, &[first, second], Window::whole(model), &limits);
                    *states += found.states;
                    match found.answer {
                        Answer::Order(order) => {
                            let candidate = CandidateKind::Race { first, second };
                            let witness = Witness { candidate, order, level: WitnessLevel::Synchronisation };
                            assert!(Checker::new(&trace).check(&witness).is_ok(), "{witness:?}\n{}", describe(&trace));
                            true
                        }
                        Answer::No { .. } => false,
                        Answer::Undecided => panic!("undecided: {symmetry} {runs}\n{}", describe(&trace)),
                    }
                };
                let expected = answer(&model, true, true, &mut states[0]);
                let mut ignored = 0;
                for (symmetry, runs, count) in
                    [(false, true, &mut states[1]), (true, false, &mut ignored), (false, false, &mut 0)]
                {
                    assert_eq!(answer(&model, symmetry, runs, count), expected, "{symmetry} {runs}\n{}", describe(&trace));
                }
                assert_eq!(answer(&each, true, true, &mut ignored), expected, "accesses\n{}", describe(&trace));
                orders += usize::from(expected);
            }
        }
    }
    assert!(orders > 20 && states[0] < states[1], "{orders} orders, {states:?} states with symmetry and without");
}

/// Whoever holds a lock where the window begins can release it, though nothing else asks for more of that thread.
#[test]
fn relevance_loses_nothing_in_windows() {
    let mut found = 0;
    for seed in 0..1500 {
        let shape = Shape { threads: 3 + (seed % 2) as u32, events: 24, variables: 1, locks: 2, features: Features::default() };
        let trace = random(seed, shape);
        let model = Model::new(&trace, Atomics::Free);
        for (first, second) in conflicting(&trace) {
            let goals = [first, second];
            let Some(window) = Window::around(&model, &goals, 10) else { continue };
            let order = |relevance| {
                let limits = Limits { reductions: Reductions { relevance, ..Reductions::ALL }, ..Limits::default() };
                matches!(find(&model, &goals, window, &limits).answer, Answer::Order(_))
            };
            assert_eq!(order(true), order(false), "{window:?} {goals:?}\n{}", describe(&trace));
            found += usize::from(window.from > 0 && order(true));
        }
    }
    assert!(found > 100, "{found}");
}
