//! Where the printed algorithm loses a race or misses a saving: one example for each numbered deviation of `relation`.

mod support;

use rashomon_event::Trace;
use rashomon_filter::{Guarantee, Lookahead, Options, Relation, Tree, without};
use rashomon_testkit::parse;
use support::{eraser, fast_track, printed, unique_races};

fn trace(text: &str) -> Trace {
    parse(text).expect("well-formed").trace
}

fn kept(trace: &Trace, relation: Relation) -> Vec<bool> {
    Tree::kept(trace, Options::new(relation)).0
}

/// Whether the events with these numbers are all that is dropped.
fn drops(kept: &[bool], numbers: &[usize]) -> bool {
    (0..).zip(kept).filter(|(_, kept)| !**kept).map(|(number, _)| number).eq(numbers.iter().copied())
}

fn loses(trace: &Trace, kept: &[bool], relation: Relation) -> bool {
    let (all, left) = (unique_races(trace, relation), unique_races(&without(trace, kept), relation));
    assert!(left.is_subset(&all));
    left != all
}

#[test]
fn deviation_1_address_and_class_belong_to_the_location() {
    let address = trace("t1 w x @loop; t1 w y @loop; t2 w y @other");
    assert!(loses(&address, &printed(&address, true), Relation::HAPPENS_BEFORE), "x hides y");
    let class = trace("t1 r x @memcpy; t1 w x @memcpy; t2 r x @other");
    assert!(loses(&class, &printed(&class, true), Relation::HAPPENS_BEFORE), "the read hides the write");
    for relation in [Relation::HAPPENS_BEFORE, Relation::HYBRID, Relation::LOCKSET, Relation::RECORDER] {
        assert!(drops(&kept(&address, relation), &[]) && drops(&kept(&class, relation), &[]));
    }
}

#[test]
fn deviation_2_a_released_lock_is_an_edge() {
    let text = "t1 w x @a; t1 lock m; t1 unlock m; t2 lock m; t2 unlock m; t1 w x @a; t2 r x @b";
    let trace = trace(text);
    assert!(loses(&trace, &printed(&trace, true), Relation::HAPPENS_BEFORE));
    assert!(drops(&kept(&trace, Relation::HAPPENS_BEFORE), &[]));
    assert!(drops(&kept(&trace, Relation::RECORDER), &[]));
    assert!(drops(&kept(&trace, Relation::HYBRID), &[5]), "without lock edges it is no difference");
}

#[test]
fn deviation_2_a_release_that_nobody_received_is_none() {
    let iteration = "t1 lock a; t1 lock m; t1 w x @a; t1 unlock m; t1 unlock a;";
    let alone = trace(&iteration.repeat(3));
    assert!(drops(&kept(&alone, Relation::HAPPENS_BEFORE), &[7, 12]));
    let taken = trace(&format!("{iteration} t2 lock a; t2 unlock a; {iteration}"));
    assert!(drops(&kept(&taken, Relation::HAPPENS_BEFORE), &[]), "another thread has received the release");
    let shared = trace("t1 rlock m; t1 w x @a; t1 runlock m; t1 rlock m; t1 w x @a; t2 rlock m; t2 w x @b");
    assert!(drops(&kept(&shared, Relation::HAPPENS_BEFORE), &[]), "others may share the lock while it is held");
    let free = trace("t1 lock m; t1 w x @a; t1 unlock m; t1 w x @a; t2 lock m; t2 w x @b");
    assert!(drops(&kept(&free, Relation::HAPPENS_BEFORE), &[]), "not acquired again");
    let back = trace("t1 lock m; t1 unlock m; t1 w x @a; t1 lock m; t1 w x @a");
    assert!(drops(&kept(&back, Relation::HAPPENS_BEFORE), &[4]), "inside again, covered by what was outside");
    let fenced = trace("t1 w x @a; t1 fence release; t1 w x @a; t1 st f relaxed; t2 ld f acquire; t2 w x @b");
    assert!(drops(&kept(&fenced, Relation::HAPPENS_BEFORE), &[]), "the fence is where the store's knowledge ends");
    assert!(loses(&fenced, &[true, true, false, true, true, true], Relation::HAPPENS_BEFORE));
}

#[test]
fn deviation_3_only_what_was_sent_counts() {
    let received = trace("t1 w x @a; t2 release o; t1 acquire o; t1 w x @a; t2 w x @b");
    assert!(drops(&kept(&received, Relation::HAPPENS_BEFORE), &[3]));
    let joined = trace("main fork t1; main w x @a; main join t1; main w x @a");
    assert!(printed(&joined, true).iter().all(|kept| *kept), "the printed one keeps the second");
    assert!(drops(&kept(&joined, Relation::HYBRID), &[3]));
    let sent = trace("t1 w x @a; t1 release o; t1 w x @a; t2 acquire o; t2 w x @b");
    for relation in [Relation::HAPPENS_BEFORE, Relation::HYBRID] {
        assert!(drops(&kept(&sent, relation), &[]));
        assert!(loses(&sent, &[true, true, false, true, true], relation));
    }
    assert!(drops(&kept(&sent, Relation::LOCKSET), &[2]));
}

const FORKED: &str = "main fork t1; main fork t2; main fork t3; t1 w x @a; t2 w x @a; t3 w x @a; t1 end; t2 end; t3 end;";

#[test]
fn deviation_4_siblings_cannot_speak_for_each_other() {
    // Third to be joined: it alone races.
    let uneven = trace(&format!("{FORKED} main join t1; main join t2; main r x @b; main join t3"));
    for relation in [Relation::HYBRID, Relation::HAPPENS_BEFORE] {
        assert!(drops(&printed(&uneven, false), &[5]) && loses(&uneven, &printed(&uneven, false), relation));
        assert!(drops(&kept(&uneven, relation), &[]));
        assert!(drops(&Lookahead::kept(&uneven, relation).0, &[]), "looking ahead shows the difference");
    }
    assert!(drops(&kept(&uneven, Relation::LOCKSET), &[5]), "lock sets know no joins");

    let even = trace(&format!("{FORKED} main join t1; main join t2; main join t3; main r x @b"));
    let worked =
        trace("main fork t1; main r x @b; main fork t2; main r x @b; main fork t3; t1 w x @a; t2 w x @a; t3 w x @a; main r x @c");
    for relation in [Relation::HYBRID, Relation::HAPPENS_BEFORE] {
        assert!(drops(&printed(&even, true), &[]), "unique receipts never match");
        assert!(drops(&Lookahead::kept(&even, relation).0, &[5]), "equivalent forks and joins");
        assert!(Lookahead::kept(&worked, relation).1.two_threads == 1, "the earlier forks race with more");
        assert!(!loses(&worked, &Lookahead::kept(&worked, relation).0, relation));
        let unequal = trace("main r x @b; main release o; t1 acquire o; t2 acquire o; t1 w x @a; t2 w x @a; t3 w x @a");
        assert!(drops(&Lookahead::kept(&unequal, relation).0, &[]), "the third has not received");
    }
}

#[test]
fn deviation_5_fewer_locks_cover_more() {
    let trace = trace("t1 lock a; t1 w x @s; t1 lock b; t1 w x @s; t1 unlock b; t1 unlock a; t1 lock b; t1 w x @s");
    for relation in [Relation::LOCKSET, Relation::HYBRID] {
        assert!(drops(&kept(&trace, relation), &[3]), "{{a}} covers {{a, b}}, not {{b}}");
    }
}

#[test]
fn deviation_6_what_the_first_thread_did_alone_is_forgotten() {
    let trace = trace("t1 w x @a; t2 lock m; t2 w x @b; t2 unlock m; t1 w x @a");
    let lockset = kept(&trace, Relation::LOCKSET);
    assert!(drops(&lockset, &[4]));
    assert_ne!(
        eraser(&trace),
        eraser(&without(&trace, &lockset)),
        "with Eraser's states the second write is the first that counts"
    );
    assert!(drops(&kept(&trace, Relation::ERASER), &[]));
}

#[test]
fn deviation_7_spans_stand_for_addresses_only() {
    let options = |relation| Options { guarantee: Guarantee::Addresses, ..Options::new(relation) };
    let spans = trace("t1 w x @a; t1 w x @b; t1 r x @c; t2 r x @d");
    let (kept, statistics) = Tree::kept(&spans, options(Relation::HAPPENS_BEFORE));
    assert!(drops(&kept, &[1, 2]) && statistics.span == 2);
    assert!(loses(&spans, &kept, Relation::HAPPENS_BEFORE), "the pair of b and d");
    assert_eq!(fast_track(&spans).1, fast_track(&without(&spans, &kept)).1, "not the address");
    let upgrade = trace("t1 r x @a; t1 w x @b; t2 r x @c");
    assert!(drops(&Tree::kept(&upgrade, options(Relation::HAPPENS_BEFORE)).0, &[]), "a read does not stand for a write");
}

#[test]
fn one_epoch_per_variable_shows_other_pairs() {
    // FastTrack proper remembers the last write only. It finds whether x races in both, but names another pair of sites.
    let trace = trace("t1 w x @a; t1 w x @b; t1 w x @a; t2 w x @c");
    let filtered = without(&trace, &kept(&trace, Relation::HAPPENS_BEFORE));
    assert_ne!(fast_track(&trace).0, fast_track(&filtered).0);
    assert_eq!(fast_track(&trace).1, fast_track(&filtered).1);
    assert_eq!(unique_races(&trace, Relation::HAPPENS_BEFORE), unique_races(&filtered, Relation::HAPPENS_BEFORE));
}
