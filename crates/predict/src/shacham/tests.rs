//! The figures of Shacham et al. 2007 as traces.

use super::partner::AccessLocks;
use super::*;
use rashomon_testkit::text::parse;

fn pairs(text: &str, states: LocksetStates) -> Vec<(u32, u32)> {
    let labelled = parse(text).unwrap();
    let trace = &labelled.trace;
    let locks = AccessLocks::of(trace);
    let mut pairs: Vec<(u32, u32)> = warnings(trace, states)
        .iter()
        .filter_map(|warning| partner(trace, &locks, warning))
        .map(|pair| (pair.a1.0, pair.a2.0))
        .collect();
    pairs.sort_unstable();
    pairs.dedup();
    pairs
}

/// Fig. 5: the running example of Fig. 4.
const RUNNING: &str = "main fork a; main fork b; a start; b start
    a lock key; a r n #a-reads; a unlock key
    b lock key; b r n #b-reads; b unlock key
    a lock num; a w deleted; a unlock num
    b lock num; b w deleted; b unlock num
    a lock del; a r n; a w n #a-writes; a unlock del";

#[test]
fn running_example() {
    let labelled = parse(RUNNING).unwrap();
    let trace = &labelled.trace;
    let locks = AccessLocks::of(trace);
    let found = warnings(trace, LocksetStates::None);
    assert!(found.contains(&Warning { event: labelled.at("a-writes") }));
    let pair = partner(trace, &locks, &Warning { event: labelled.at("a-writes") }).unwrap();
    assert_eq!(pair, Pair { a1: labelled.at("b-reads"), a2: labelled.at("a-writes") });
    // Fig. 9: b stands at its read while a goes on to its write.
    let prefix = prefix(trace, pair, true);
    assert_eq!(prefix.race, Some(labelled.at("a-writes")));
    assert!(!prefix.order.contains(&labelled.at("b-reads")));
    assert_eq!(prefix.stuck, [trace.event(pair.a1).thread]);
}

#[test]
fn spurious_warning_of_figure_6() {
    let text = "main fork a; main fork b; a start; b start
        a lock x; a lock y; a r Y; a w X; a unlock y; a unlock x
        b lock x; b w X; b unlock x
        b lock y; b r X; b w Y; b unlock y";
    assert!(!warnings(&parse(text).unwrap().trace, LocksetStates::None).is_empty());
    assert_eq!(pairs(text, LocksetStates::None), []);
}

#[test]
fn race_of_figure_7() {
    let text = "main fork a; main fork b; a start; b start
        b lock x; b lock y; b r X; b w Y; b unlock y; b unlock x
        a lock x; a lock y; a r X; a w Y; a unlock y; a unlock x
        b lock x; b w X; b unlock x
        b lock y; b r X #one; b w Y; b unlock y
        a lock x; a w X #other; a unlock x";
    let labelled = parse(text).unwrap();
    let pairs = pairs(text, LocksetStates::None);
    assert!(pairs.contains(&(labelled.at("one").0, labelled.at("other").0)), "{pairs:?}");
    // The warning is at the read; nothing before it may race with it.
    let locks = AccessLocks::of(&labelled.trace);
    let first = partner(&labelled.trace, &locks, &Warning { event: labelled.at("one") }).unwrap();
    assert_eq!(first.a2, labelled.at("other"));
}

#[test]
fn eraser_waits_for_sharing() {
    let text = "main fork a; a start; main w x; main lock m; main w x; main unlock m; a lock m; a w x; a unlock m";
    assert!(!pairs(text, LocksetStates::None).is_empty());
    assert_eq!(pairs(text, LocksetStates::Eraser), []);
}

#[test]
fn who_waits_for_a_stuck_thread_is_stuck() {
    // b's later steps need what a writes behind a1, a lock that a holds, a's end.
    let text = "main fork a; main fork b; main fork c; a start; b start; c start
        a lock m; a r x #a1; a w y; a unlock m; a end
        b r y; b w z
        c lock m; c unlock m
        main join a; main w x #a2";
    let labelled = parse(text).unwrap();
    let pair = Pair { a1: labelled.at("a1"), a2: labelled.at("a2") };
    let prefix = prefix(&labelled.trace, pair, true);
    assert_eq!(prefix.race, None);
    assert_eq!(prefix.stuck.len(), 4);
    let kept = prefix.order.iter().filter(|index| **index >= pair.a1).count();
    assert_eq!(kept, 0);
}

#[test]
fn a_read_modify_write_reads_first() {
    let text = "main fork a; main fork b; a start; b start
        a r x #a1; a st n relaxed 1
        b rmw n relaxed 2; b w x #a2";
    let labelled = parse(text).unwrap();
    let prefix = prefix(&labelled.trace, Pair { a1: labelled.at("a1"), a2: labelled.at("a2") }, true);
    assert_eq!((prefix.race, prefix.stuck.len()), (None, 2));
}

#[test]
fn creation_and_join_order_for_ever() {
    let text = "main w x; main fork a; a start; a w x; a end; main join a; main w x";
    assert!(!warnings(&parse(text).unwrap().trace, LocksetStates::None).is_empty());
    assert_eq!(pairs(text, LocksetStates::None), []);
}
