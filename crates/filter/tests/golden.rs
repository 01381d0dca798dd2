//! The thesis' example trace (Fig. 3.4b): of its twelve accesses e11, e15 and e27 are redundant.

mod support;

use rashomon_event::{EventKind, Trace};
use rashomon_filter::{Lookahead, Options, Relation, Tree, without};
use rashomon_testkit::parse;
use support::{printed, unique_races};

const FIGURE: &str = "
    main fork t1; main fork t2; main fork t3
    main lock L1; main w x @1; main unlock L1; main r x @2
    main lock L2; main w x @1; main unlock L2; main r x @2
    main lock L3; main w x @1; main unlock L3; main r x @2
    t1 lock L1; t1 w x @3; t1 unlock L1; t1 w x @4
    t2 lock L2; t2 w x @3; t2 unlock L2; t2 w x @4
    t3 lock L3; t3 w x @3; t3 unlock L3; t3 w x @4";

/// The figure's numbers of the events that are dropped: it counts from 1.
fn dropped(kept: &[bool]) -> Vec<usize> {
    (1..).zip(kept).filter(|(_, kept)| !**kept).map(|(number, _)| number).collect()
}

fn figure() -> Trace {
    let trace = parse(FIGURE).expect("well-formed").trace;
    assert_eq!(trace.events.iter().filter(|event| matches!(event.kind, EventKind::Access(_))).count(), 12);
    trace
}

#[test]
fn as_printed() {
    assert_eq!(dropped(&printed(&figure(), false)), [11, 15, 27]);
    assert_eq!(dropped(&printed(&figure(), true)), [11, 15], "unique receipts keep siblings apart");
}

#[test]
fn for_lock_sets() {
    assert_eq!(dropped(&Tree::kept(&figure(), Options::new(Relation::LOCKSET)).0), [11, 15, 27]);
}

#[test]
fn for_the_hybrid() {
    assert_eq!(dropped(&Lookahead::kept(&figure(), Relation::HYBRID).0), [11, 15, 27]);
    // e27 could be all that races with what the initial thread does after joining t1 and t2.
    assert_eq!(dropped(&Tree::kept(&figure(), Options::new(Relation::HYBRID)).0), [11, 15]);
}

#[test]
fn for_happens_before() {
    // Nobody else acquires the locks in between, but the reads are made while they are free: each release counts, until the lock
    // is taken again.
    assert_eq!(dropped(&Tree::kept(&figure(), Options::new(Relation::HAPPENS_BEFORE)).0), [] as [usize; 0]);
    for (kept, relation) in [
        (Lookahead::kept(&figure(), Relation::HAPPENS_BEFORE).0, Relation::HAPPENS_BEFORE),
        (Lookahead::kept(&figure(), Relation::HYBRID).0, Relation::HYBRID),
    ] {
        assert_eq!(unique_races(&figure(), relation), unique_races(&without(&figure(), &kept), relation));
    }
}
