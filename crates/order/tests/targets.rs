//! Targets of provocation against the plain definition: every conflicting pair that fork and join leave unordered, and no other.

use rashomon_event::{Deadline, EventIndex, EventKind, SiteId, ThreadId, Trace};
use rashomon_order::targets::{Describe, targets, targets_until};
use rashomon_testkit::{Features, Shape, describe, parse, random};
use std::collections::BTreeSet;
use std::time::Duration;

/// Whether fork, join and program order lead from one event to the other: a search over the trace's edges.
fn ordered(trace: &Trace, from: EventIndex, to: EventIndex) -> bool {
    let mut reached = vec![false; trace.events.len()];
    let mut started: Vec<ThreadId> = Vec::new();
    for index in trace.indices().skip(from.index()) {
        let event = trace.event(index);
        let by_own = trace
            .indices()
            .take(index.index())
            .any(|before| reached[before.index()] && trace.event(before).thread == event.thread);
        let by_join = match event.kind {
            EventKind::Join { child, .. } => {
                trace.indices().take(index.index()).any(|before| reached[before.index()] && trace.event(before).thread == child)
            }
            _ => false,
        };
        reached[index.index()] = index == from || by_own || by_join || started.contains(&event.thread);
        if let EventKind::Fork { child } = event.kind
            && reached[index.index()]
        {
            started.push(child);
        }
    }
    reached[to.index()]
}

fn by_definition(trace: &Trace) -> BTreeSet<(SiteId, SiteId)> {
    let mut pairs = BTreeSet::new();
    for second in trace.indices() {
        for first in (0..second.0).map(EventIndex) {
            let (one, other) = (trace.event(first), trace.event(second));
            let conflict = one.access().zip(other.access()).is_some_and(|(a, b)| a.conflicts(&b));
            if one.thread != other.thread && conflict && !ordered(trace, first, second) {
                pairs.insert((one.site.min(other.site), one.site.max(other.site)));
            }
        }
    }
    pairs
}

#[test]
fn targets_are_the_conflicts_that_fork_and_join_leave_unordered() {
    let (mut found, mut ordered_away) = (0, 0);
    for seed in 0..600u64 {
        let features = if seed.is_multiple_of(2) { Features { fork_join: true, ..Features::default() } } else { Features::ALL };
        let shape = Shape {
            threads: 2 + (seed % 3) as u32,
            events: 8 + (seed % 25) as usize,
            variables: 1 + seed % 3,
            locks: 1,
            features,
        };
        let trace = random(seed, shape);
        let expected = by_definition(&trace);
        let actual: BTreeSet<_> = targets(&trace).iter().map(|target| target.sites).collect();
        assert_eq!(actual, expected, "seed {seed}\n{}", describe(&trace));
        for target in targets(&trace) {
            let (one, other) = (trace.event(target.first), trace.event(target.second));
            assert!(one.access().zip(other.access()).is_some_and(|(a, b)| a.conflicts(&b)), "seed {seed}");
            assert!(!ordered(&trace, target.first, target.second), "seed {seed}");
        }
        found += actual.len();
        let all = trace.indices().any(|second| {
            (0..second.0).map(EventIndex).any(|first| {
                let (one, other) = (trace.event(first), trace.event(second));
                one.thread != other.thread
                    && one.access().zip(other.access()).is_some_and(|(a, b)| a.conflicts(&b))
                    && ordered(&trace, first, second)
            })
        });
        ordered_away += usize::from(all);
    }
    assert!(found > 500 && ordered_away > 50, "{found} {ordered_away}");
}

/// A common lock does not make a pair a lesser target.
#[test]
fn locks_prune_nothing() {
    let labelled = parse("main fork a; main fork b; a lock m; a w x; a unlock m; b lock m; b w x; b unlock m").unwrap();
    assert_eq!(targets(&labelled.trace).len(), 1);
}

#[test]
fn ordinals_count_what_matches() {
    let trace = random(7, Shape { threads: 2, events: 40, variables: 1, locks: 1, features: Features::default() });
    let sites: BTreeSet<SiteId> = trace.events.iter().map(|event| event.site).collect();
    let describe = Describe::new(&trace, &sites);
    for index in trace.indices().filter(|index| trace.access(*index).is_some()) {
        let event = trace.event(index);
        let apart = describe.of(index);
        let before = trace.indices().take(index.index()).filter(|before| {
            let other = trace.event(*before);
            (other.thread, other.site) == (event.thread, event.site)
                && other.access().is_some()
                && trace.callers(other.context).starts_with(&apart.frames)
        });
        assert_eq!(apart.ordinal, before.count() as u64);
    }
}

/// Whoever has no time is told so, and at once.
#[test]
fn a_deadline_that_is_over_is_kept() {
    let trace = random(3, Shape { threads: 3, events: 20_000, variables: 4, locks: 1, features: Features::default() });
    let all = targets_until(&trace, false, Deadline::NEVER);
    assert!(all.complete && all.found == targets(&trace) && !all.found.is_empty());
    let none = targets_until(&trace, false, Deadline::within(Duration::ZERO));
    assert!(!none.complete && none.found.is_empty(), "{none:?}");
}
