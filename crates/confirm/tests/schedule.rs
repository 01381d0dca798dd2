//! Witnesses become schedules: positions of hand-made traces, checked one by one.

use rashomon_abi::record::Op;
use rashomon_confirm::Planner;
use rashomon_event::{CandidateKind, EventIndex, Goal, Place, Turn, Witness, WitnessLevel};
use rashomon_testkit::{Labelled, parse};

const QUANTUM: u64 = 77;

/// Listing 1 with main's critical section first.
fn listing1() -> Labelled {
    parse(
        "main start #s0; main rw y #y0; main fork t #f; t start #s1; main rw y #y1; main lock m #l0; main rw x #x0;
         main unlock m #u0
         t lock m #l1; t rw x #x1; t unlock m #u1; t rw y #y2; t end #e1; main join t #j; main end #e0",
    )
    .unwrap()
}

fn witness(labelled: &Labelled, candidate: CandidateKind, order: &[&str]) -> Witness {
    let order = order.iter().map(|label| labelled.at(label)).collect();
    Witness { candidate, order, level: WitnessLevel::Synchronisation }
}

fn turn_words(turn: &Turn) -> Words {
    let place = match turn.until.place {
        Place::Synchronisation { op: 0 } => "anything".into(),
        Place::Synchronisation { op } => Op::from_code(op.into()).unwrap().name().to_owned(),
        Place::Access { size, .. } => format!("access {size}"),
        Place::Count { accesses } => format!("count {accesses}"),
        Place::Waiting { accesses } => format!("waits {accesses}"),
        Place::End => "end".into(),
    };
    (turn.thread, turn.until.ordinal, place)
}

/// Thread, ordinal and place of a turn.
type Words = (u32, u32, String);

fn plan(labelled: &Labelled, witness: &Witness) -> (Vec<Words>, Goal, Vec<Option<EventIndex>>) {
    let plan = Planner::new(&labelled.trace, QUANTUM).plan(witness).unwrap();
    assert_eq!(plan.schedule.quantum, QUANTUM);
    assert_eq!(plan.schedule.turns.len(), plan.stops.len());
    (plan.schedule.turns.iter().map(turn_words).collect(), plan.schedule.goal, plan.stops)
}

fn race(labelled: &Labelled, first: &str, second: &str) -> CandidateKind {
    CandidateKind::Race { first: labelled.at(first), second: labelled.at(second) }
}

#[test]
fn runs_end_right_before_the_next_event_of_their_thread() {
    let labelled = listing1();
    let order = ["s0", "y0", "f", "s1", "l1", "x1", "u1"];
    let (turns, goal, stops) = plan(&labelled, &witness(&labelled, race(&labelled, "y1", "y2"), &order));
    let ordinal = |label: &str| labelled.trace.event(labelled.at(label)).ordinal;
    assert_eq!(turns, [(0, ordinal("y1"), "access 8".into()), (1, ordinal("y2"), "access 8".into())]);
    assert_eq!(goal, Goal::Race { turns: [0, 1] });
    assert_eq!(stops, [Some(labelled.at("y1")), Some(labelled.at("y2"))]);
}

#[test]
fn a_thread_that_already_stands_at_its_goal_gets_no_second_turn() {
    let labelled = listing1();
    // Main stops at its goal first; t then runs in two pieces with main's turn in between moved behind.
    let order = ["s0", "y0", "f", "s1", "l1", "x1", "u1"];
    let swapped = race(&labelled, "y2", "y1");
    let (turns, goal, _) = plan(&labelled, &witness(&labelled, swapped, &order));
    assert_eq!(turns.len(), 2);
    assert_eq!(goal, Goal::Race { turns: [1, 0] });
}

#[test]
fn a_goal_thread_without_events_gets_a_turn_of_its_own() {
    let labelled = parse("main w x #a; main fork t; t r x #b").unwrap();
    let (turns, goal, stops) = plan(&labelled, &witness(&labelled, race(&labelled, "a", "b"), &[]));
    assert_eq!(turns.iter().map(|turn| turn.0).collect::<Vec<_>>(), [0, 1]);
    assert_eq!(goal, Goal::Race { turns: [0, 1] });
    assert_eq!(stops, [Some(labelled.at("a")), Some(labelled.at("b"))]);
}

#[test]
fn deadlock_turns_end_at_the_blocking_acquisitions() {
    let labelled = parse(
        "main start #s; main fork p #fp; main fork q #fq
         p start #sp; p lock a #pa; p lock b #pb; p unlock b; p unlock a; p end
         q start #sq; q lock b #qb; q lock a #qa; q unlock a; q unlock b; q end",
    )
    .unwrap();
    let at = |label: &str| labelled.at(label);
    let candidate = CandidateKind::Deadlock { waits: vec![at("pb"), at("qa")], locks: vec![] };
    let (turns, goal, _) = plan(&labelled, &witness(&labelled, candidate, &["s", "fp", "fq", "sp", "pa", "sq", "qb"]));
    assert_eq!(
        turns[1..],
        [(1, labelled.trace.event(at("pb")).ordinal, "Lock".into()), (2, labelled.trace.event(at("qa")).ordinal, "Lock".into())]
    );
    assert_eq!(goal, Goal::Deadlock { turns: vec![1, 2] });
}

#[test]
fn requests_and_unordered_events_are_not_stood_at() {
    // The next event of p is its request; it has no ordinal, the acquisition behind it is what can be stood at.
    let labelled = parse("main fork p #f; p start #s; p w x #w; main w z #z; p request a; p lock a #l; main r x #r").unwrap();
    let (turns, _, stops) = plan(&labelled, &witness(&labelled, race(&labelled, "l", "z"), &["f", "s", "w"]));
    assert_eq!(turns[1].2, "Lock");
    assert_eq!(stops[1], Some(labelled.at("l")));
}

#[test]
fn a_run_to_the_end_of_a_thread_says_so() {
    let labelled = parse("main fork t #f; t start #s; t w x #x; main w y #y; main w z #z").unwrap();
    let (turns, _, stops) = plan(&labelled, &witness(&labelled, race(&labelled, "y", "z"), &["f", "s", "x"]));
    assert_eq!(turns[1].2, "end");
    assert_eq!(stops[1], None);
}

#[test]
fn operations_whose_result_may_change_are_not_checked() {
    let labelled = parse("main w x #x; main rmw a seqcst 1 #rmw; main r y #y")
        .or_else(|_| parse("main w x #x; main trylock m #rmw; main r y #y"));
    let labelled = labelled.unwrap();
    let (turns, ..) = plan(&labelled, &witness(&labelled, race(&labelled, "rmw", "y"), &["x"]));
    assert_eq!(turns[0].2, "anything");
}

#[test]
fn a_witness_of_another_trace_is_an_error() {
    let labelled = listing1();
    let mut foreign = witness(&labelled, race(&labelled, "y1", "y2"), &[]);
    foreign.order.push(EventIndex(1_000));
    assert!(Planner::new(&labelled.trace, 0).plan(&foreign).is_err());
}
