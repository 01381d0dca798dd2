//! The deciders that search the CSP model: alone they find each race and each deadlock that brute force reaches, where the
//! others miss some.

use rashomon_event::{AccessClass, Address, CandidateKind, EventIndex, EventKind, LockMode, ThreadId, Trace, WitnessLevel};
use rashomon_order::SharedMemory;
use rashomon_predict::Options;
use rashomon_predict::deciders::{Decision, Question, named};
use rashomon_predict::index::Index;
use rashomon_testkit::{Features, Rules, Shape, TraceBuilder, describe, random, reachable};
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

fn decide(name: &str, question: &Question<'_, '_>, goals: &[EventIndex]) -> Decision {
    named(name).expect("a decider").decide(question, goals)
}

#[test]
fn the_model_is_searched_completely() {
    let features = Features { semaphores: true, conditions: true, shared_locks: true, atomics: true, ..Features::default() };
    let options = Options::default();
    let (mut found, mut refuted, mut missed_by_others) = (0, 0, 0);
    for seed in 0..3000 {
        let shape = Shape { threads: 2 + (seed % 2) as u32, events: 14, variables: 1, locks: 1 + seed % 3, features };
        let trace = random(seed, shape);
        let expected = reachable(&trace, Rules::SYNCHRONISATION);
        let causal = reachable(&trace, Rules::CAUSAL);
        let memory = SharedMemory::new(&trace);
        let index = Index::new(&trace, &memory);
        let question = Question::new(&index, &memory, &options);
        let checker = Checker::new(&trace);
        for (first, second) in conflicting(&trace) {
            let goals = [first, second];
            let candidate = CandidateKind::Race { first, second };
            let real = expected.races.contains(&(first, second));
            for name in ["csp", "csp-despite-atomics"] {
                match decide(name, &question, &goals) {
                    Decision::Witness(order) => {
                        let level = WitnessLevel::Synchronisation;
                        let checked = checker.check(&rashomon_event::Witness { candidate: candidate.clone(), order, level });
                        assert!(checked.is_ok(), "{checked:?}\n{}", describe(&trace));
                        found += 1;
                    }
                    // Without atomics, an answer for all correct reorderings.
                    _ if name == "csp-despite-atomics" => {
                        assert!(!real, "{first:?} {second:?}\n{}", describe(&trace));
                        refuted += 1;
                    }
                    _ => assert!(!causal.races.contains(&(first, second)), "{first:?} {second:?}\n{}", describe(&trace)),
                }
            }
            missed_by_others +=
                usize::from(real && !matches!(decide("despite-atomics", &question, &goals), Decision::Witness(_)));
        }
    }
    assert!(found > 1000 && refuted > 100 && missed_by_others > 0, "{found} {refuted} {missed_by_others}");
}

const SEMAPHORE: Address = Address(0x50);

/// Main posts twice, with an access to x in between; two threads take. The second take in the trace needs but one post if it
/// comes first.
fn takes_in_another_order() -> Trace {
    let mut builder = TraceBuilder::with_threads(3);
    let (main, one, other) = (ThreadId(0), ThreadId(1), ThreadId(2));
    builder.semaphore(SEMAPHORE, 0);
    builder.push(main, EventKind::Post { semaphore: SEMAPHORE });
    builder.push(one, EventKind::Take { semaphore: SEMAPHORE });
    builder.access(main, AccessClass::Write, Address(0x300), 4);
    builder.push(main, EventKind::Post { semaphore: SEMAPHORE });
    builder.push(other, EventKind::Take { semaphore: SEMAPHORE });
    builder.access(other, AccessClass::Write, Address(0x300), 4);
    builder.build()
}

#[test]
fn a_take_may_be_served_by_an_earlier_post() {
    let trace = takes_in_another_order();
    let (memory, options) = (SharedMemory::new(&trace), Options::default());
    let index = Index::new(&trace, &memory);
    let question = Question::new(&index, &memory, &options);
    let goals = conflicting(&trace)[0];
    let witnesses = |name| matches!(decide(name, &question, &[goals.0, goals.1]), Decision::Witness(_));
    assert_eq!(["optimistic", "despite-atomics", "csp", "csp-despite-atomics"].map(witnesses), [false, false, true, true]);
}

/// What is too much is undecided, and no reason to refute.
#[test]
fn a_search_without_budget_refutes_nothing() {
    let mut builder = TraceBuilder::with_threads(2);
    for thread in [ThreadId(0), ThreadId(1)] {
        builder.push(thread, EventKind::Acquire { lock: Address(8), mode: LockMode::Exclusive, may_wait: true });
        builder.access(thread, AccessClass::Write, Address(0x300), 4);
        builder.push(thread, EventKind::Release { lock: Address(8), mode: LockMode::Exclusive });
        builder.access(thread, AccessClass::Write, Address(0x400), 4);
    }
    let trace = builder.build();
    let memory = SharedMemory::new(&trace);
    let index = Index::new(&trace, &memory);
    let mut options = Options::default();
    let goals = conflicting(&trace);
    let decisions = |options: &Options| -> Vec<Decision> {
        let question = Question::new(&index, &memory, options);
        goals.iter().map(|&(first, second)| decide("csp-despite-atomics", &question, &[first, second])).collect()
    };
    assert!(matches!(decisions(&options)[..], [Decision::Refuted, Decision::Witness(_)]));
    options.refinement.all_steps = 0;
    assert_eq!(decisions(&options), [Decision::Undecided, Decision::Undecided]);
}
