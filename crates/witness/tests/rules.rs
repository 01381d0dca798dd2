//! Each rule of the checker, accepted and broken.

use rashomon_event::{CandidateKind, EventIndex, Witness, WitnessLevel};
use rashomon_testkit::{Labelled, parse};
use rashomon_witness::{Rejection, check};

fn trace(text: &str) -> Labelled {
    parse(text).expect("the test's trace is well-formed")
}

/// Checks the events with these labels, in this order, as a witness of a race between events `a` and `b`.
fn race(of: &Labelled, order: &str) -> Result<WitnessLevel, Rejection> {
    let order = order.split_whitespace().map(|label| of.at(label)).collect();
    let candidate = CandidateKind::Race { first: of.at("a"), second: of.at("b") };
    check(&of.trace, &Witness { candidate, order, level: WitnessLevel::Causal })
}

/// Carril, Tichy, Listing 1, recorded with main's section first.
const LISTING_1: &str = "
    main fork t #f
    main w y #a
    main lock m #1
    main rw x #2
    main unlock m #3
    t start #s
    t lock m #4
    t rw x #5
    t unlock m #6
    t w y #b
    t end #e
    main join t #j
";

#[test]
fn listing_1_has_a_synchronisation_witness_and_no_causal_one() {
    let listing = trace(LISTING_1);
    assert_eq!(race(&listing, "f s 4 5 6"), Ok(WitnessLevel::Synchronisation));
    assert_eq!(race(&listing, "f a 1 2 3 s 4 5 6").map_err(|e| matches!(e, Rejection::GoalNotNext { .. })), Err(true));
}

#[test]
fn orders_that_break_a_basic_rule_are_rejected() {
    let listing = trace(LISTING_1);
    let reject = |order: &str| race(&listing, order).expect_err(order);
    assert!(matches!(reject("f f s 4 5 6"), Rejection::NotAPrefix { .. }), "an event twice");
    assert!(matches!(reject("f s 5 4 6"), Rejection::NotAPrefix { .. }), "against program order");
    assert!(matches!(reject("s f 4 5 6"), Rejection::BeforeFork { .. }));
    assert!(matches!(reject("f s 4"), Rejection::GoalNotNext { .. }));
    assert!(matches!(reject("f a 1 s 4"), Rejection::LockHeld { .. }));
    assert!(matches!(reject("f a 1 2 3 j"), Rejection::JoinBeforeEnd { .. }));
}

#[test]
fn an_event_outside_the_trace_is_rejected() {
    let listing = trace(LISTING_1);
    let candidate = CandidateKind::Race { first: EventIndex(1), second: EventIndex(9) };
    let witness = Witness { candidate, order: vec![EventIndex(99)], level: WitnessLevel::Causal };
    assert_eq!(check(&listing.trace, &witness), Err(Rejection::UnknownEvent { event: EventIndex(99), events: 12 }));
}

#[test]
fn goals_must_conflict_and_be_of_two_threads() {
    let reads = trace("main r x #a; t r x #b");
    assert!(matches!(race(&reads, ""), Err(Rejection::NoConflict { .. })));
    let apart = trace("main w x:4 #a; t w x+4:4 #b");
    assert!(matches!(race(&apart, ""), Err(Rejection::NoConflict { .. })));
    let atomics = trace("main st x relaxed #a; t ld x relaxed #b");
    assert!(matches!(race(&atomics, ""), Err(Rejection::NoConflict { .. })));
    let mixed = trace("main st x relaxed #a; t r x+7:1 #b");
    assert_eq!(race(&mixed, ""), Ok(WitnessLevel::Causal));
    let same = trace("main w x #a; main w x #b");
    assert!(race(&same, "").is_err());
}

#[test]
fn reads_from_is_compared_byte_by_byte() {
    let bytes = trace("main w x #1; t w x+4:4 #2; u r x:4 #3; u w y #a; t w y #b");
    assert_eq!(race(&bytes, "1 2 3"), Ok(WitnessLevel::Causal));
    assert_eq!(race(&bytes, "2 1 3"), Ok(WitnessLevel::Causal), "the write of the upper half is not seen");
    let whole = trace("main w x #1; t w x+4:4 #2; u r x #3; u w y #a; t w y #b");
    assert_eq!(race(&whole, "1 2 3"), Ok(WitnessLevel::Causal));
    assert_eq!(race(&whole, "2 1 3"), Ok(WitnessLevel::Synchronisation));
    let initial = trace("main r x #1; t w x #2; t w y #b; main w y #a");
    assert_eq!(race(&initial, "2 1"), Ok(WitnessLevel::Synchronisation), "the read saw the initial value");
    let atomic = trace("main st f relaxed #1; t ld f relaxed #2; t w y #a; main w y #b");
    assert_eq!(race(&atomic, "2 1"), Ok(WitnessLevel::Synchronisation));
    assert_eq!(race(&atomic, "1 2"), Ok(WitnessLevel::Causal));
}

#[test]
fn shared_locks_exclude_only_exclusive_ones() {
    let shared = trace("main rlock m #1; t rlock m #2; t w x #b; main w x #a");
    assert_eq!(race(&shared, "2 1"), Ok(WitnessLevel::Causal));
    let mixed = trace("main rlock m #1; main runlock m #2; t lock m #3; t w x #b; main w x #a");
    assert!(matches!(race(&mixed, "3 1 2"), Err(Rejection::LockHeld { .. })));
    assert_eq!(race(&mixed, "1 2 3"), Ok(WitnessLevel::Causal));
}

#[test]
fn waits_release_and_reacquire_and_need_their_signal() {
    let text =
        "t lock m #1; t wait c m #2; main lock m #3; main signal c #s; main unlock m #4; t woken c m s #5; t w x #b; main w x #a";
    let wait = trace(text);
    assert_eq!(race(&wait, "1 2 3 s 4 5"), Ok(WitnessLevel::Causal));
    assert!(matches!(race(&wait, "1 2 3 s 5 4"), Err(Rejection::LockHeld { .. })), "woken while main holds the mutex");
    assert!(matches!(race(&wait, "1 2 5 3 s 4"), Err(Rejection::WokenBeforeSignal { .. })));
    assert!(matches!(race(&wait, "3 s 4 1 2 5"), Err(Rejection::SignalBeforeWait { .. })));
    let timeout = trace("t lock m #1; t wait c m #2; t timeout c m #3; t w x #b; main signal c #s; main w x #a");
    assert_eq!(race(&timeout, "1 2 3 s"), Ok(WitnessLevel::Causal));
}

#[test]
fn barriers_semaphores_once_and_objects() {
    let barrier = trace("main enter b #1; t enter b #2; t exit b #3; main exit b #4; main w x #a; t w x #b");
    assert_eq!(race(&barrier, "2 1 4 3"), Ok(WitnessLevel::Causal));
    assert!(matches!(race(&barrier, "1 4 2 3"), Err(Rejection::BarrierIncomplete { .. })));
    let semaphore = trace("main post s #1; t take s #2; t take s #3; main w x #a; t w x #b");
    assert_eq!(race(&semaphore, "2 1 3"), Ok(WitnessLevel::Causal), "the initial count is one");
    assert!(matches!(race(&semaphore, "2 3 1"), Err(Rejection::SemaphoreEmpty { .. })));
    let given = trace("u count s 1; main post s #1; t take s #2; main w x #a; t w x #b");
    assert_eq!(race(&given, "2 1"), Ok(WitnessLevel::Causal), "the trace says that it began with one");
    let too_little = trace("u count s 1; main post s #1; t take s #2; t take s #3; t take s #4; main w x #a; t w x #b");
    assert_eq!(race(&too_little, "2 3 1 4"), Ok(WitnessLevel::Causal), "it cannot have been less than two");
    assert!(matches!(race(&too_little, "2 3 4 1"), Err(Rejection::SemaphoreEmpty { .. })));
    let once = trace("main begin o #1; main done o #2; t seen o #3; main w x #a; t w x #b");
    assert!(matches!(race(&once, "1 3 2"), Err(Rejection::NotYetPublished { .. })));
    let object = trace("main release o #1; t acquire o #2; main w x #a; t w x #b");
    assert!(matches!(race(&object, "2 1"), Err(Rejection::NotYetPublished { .. })));
    assert_eq!(race(&object, "1 2"), Ok(WitnessLevel::Causal));
}

fn deadlock(of: &Labelled, order: &str, goals: &[(&str, &str)]) -> Result<WitnessLevel, Rejection> {
    let lock = |held: &str| match of.trace.kind(of.at(held)) {
        rashomon_event::EventKind::Acquire { lock, .. } => lock,
        kind => panic!("{held} is not an acquisition: {kind:?}"),
    };
    let candidate = CandidateKind::Deadlock {
        waits: goals.iter().map(|(goal, _)| of.at(goal)).collect(),
        locks: goals.iter().map(|(_, wanted)| Some(lock(wanted))).collect(),
    };
    let order = order.split_whitespace().map(|label| of.at(label)).collect();
    check(&of.trace, &Witness { candidate, order, level: WitnessLevel::Causal })
}

#[test]
fn deadlock_cycles_must_be_closed_by_waiting_acquisitions() {
    let cross =
        trace("main lock m #1; main lock n #2; main unlock n; main unlock m; t lock n #3; t lock m #4; t unlock m; t unlock n");
    assert_eq!(deadlock(&cross, "1 3", &[("2", "3"), ("4", "1")]), Ok(WitnessLevel::Causal));
    assert!(matches!(deadlock(&cross, "1 3", &[("2", "1"), ("4", "3")]), Err(Rejection::NotAnAcquisition { .. })));
    assert!(matches!(deadlock(&cross, "1 3", &[("2", "3")]), Err(Rejection::MalformedCycle { .. })));
    assert!(matches!(deadlock(&cross, "1", &[("2", "3"), ("4", "1")]), Err(Rejection::GoalNotNext { .. })));
    let tried = trace("main lock m #1; main trylock n #2; main unlock n; main unlock m; t lock n #3; t lock m #4");
    assert!(matches!(deadlock(&tried, "1 3", &[("2", "3"), ("4", "1")]), Err(Rejection::NotAnAcquisition { .. })));
    let readers = trace("main rlock m #1; main lock n #2; main unlock n; main runlock m; t lock n #3; t rlock m #4");
    assert!(matches!(deadlock(&readers, "1 3", &[("2", "3"), ("4", "1")]), Err(Rejection::NotBlocked { .. })));
}

/// Goals, each with the label of an acquisition of what it wants; `-` where it waits for the next one's thread.
fn cycle(of: &Labelled, order: &str, goals: &[(&str, &str)]) -> Result<WitnessLevel, Rejection> {
    let lock = |held: &str| match of.trace.kind(of.at(held)) {
        rashomon_event::EventKind::Acquire { lock, .. } => lock,
        kind => panic!("{held} is not an acquisition: {kind:?}"),
    };
    let candidate = CandidateKind::Deadlock {
        waits: goals.iter().map(|(goal, _)| of.at(goal)).collect(),
        locks: goals.iter().map(|(_, wanted)| (*wanted != "-").then(|| lock(wanted))).collect(),
    };
    let order = order.split_whitespace().map(|label| of.at(label)).collect();
    check(&of.trace, &Witness { candidate, order, level: WitnessLevel::Causal })
}

#[test]
fn a_thread_waits_for_one_that_it_joins() {
    let text = "main fork t #f; t lock l #1; t unlock l; t end; main lock l #2; main join t #j; main unlock l";
    let join = trace(text);
    assert_eq!(cycle(&join, "f 2", &[("1", "2"), ("j", "-")]), Ok(WitnessLevel::Causal));
    assert!(matches!(cycle(&join, "f 2", &[("1", "-"), ("j", "-")]), Err(Rejection::DoesNotWait { .. })));
    assert!(matches!(cycle(&join, "f 2", &[("1", "2"), ("j", "2")]), Err(Rejection::NotAnAcquisition { .. })));
    assert!(matches!(cycle(&join, "f 2", &[("j", "-")]), Err(Rejection::MalformedCycle { .. })));
    let tried = trace(&text.replace("join", "tryjoin"));
    assert!(matches!(cycle(&tried, "f 2", &[("1", "2"), ("j", "-")]), Err(Rejection::DoesNotWait { .. })));
    let other = trace("main fork t #f; main fork u #g; u end; t lock l #1; t unlock l; t end; main lock l #2; main join u #j");
    assert!(matches!(cycle(&other, "f g 2", &[("1", "2"), ("j", "-")]), Err(Rejection::DoesNotWait { .. })), "joins another");
}

#[test]
fn and_for_those_that_have_yet_to_enter_its_barrier() {
    let text = "t lock l #1; t unlock l #2; t enter b #3; u lock l #4; u enter b #5; u exit b #x; u unlock l #6; t exit b #7; t \
        lock l #8";
    let barrier = trace(text);
    assert_eq!(cycle(&barrier, "4 5", &[("1", "4"), ("x", "-")]), Ok(WitnessLevel::Causal));
    assert!(matches!(cycle(&barrier, "1 2 3 4 5 7", &[("8", "4"), ("x", "-")]), Err(Rejection::DoesNotWait { .. })), "it has");
}

#[test]
fn a_condition_wait_wants_its_mutex_once_it_was_woken() {
    let wait = trace(
        "t lock m #1; t lock n #2; t wait c m #3; main lock m #4; main signal c #s; main unlock m #5; t woken c m s #6; t \
         unlock m; \
         u lock m #7; u lock n #8; u unlock n; u unlock m",
    );
    let goals = [("6", "7"), ("8", "2")];
    assert_eq!(cycle(&wait, "1 2 3 4 s 5 7", &goals), Ok(WitnessLevel::Causal));
    assert!(matches!(cycle(&wait, "1 2 3 4 7", &goals), Err(Rejection::LockHeld { .. })));
    assert!(matches!(cycle(&wait, "1 2 3 7", &goals), Err(Rejection::WokenBeforeSignal { .. })));
    assert!(matches!(cycle(&wait, "4 s 5 1 2 3 7", &goals), Err(Rejection::SignalBeforeWait { .. })));
    assert!(matches!(cycle(&wait, "1 2 3 4 s 5", &[("6", "7"), ("7", "1")]), Err(Rejection::NotBlocked { .. })));
}
