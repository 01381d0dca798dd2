//! No unique race is lost: every small trace, and random ones with all kinds of synchronisation, against detectors by their
//! definitions.

mod support;

use rashomon_event::{Access, AccessClass, Address, EventKind, LockMode, SiteId, Trace};
use rashomon_filter::{Guarantee, Lookahead, Options, Relation, Statistics, Tree, without};
use rashomon_order::{Edges, Model};
use rashomon_testkit::{Features, Shape, SplitMix, describe, enumerate, random};
use support::{eraser, fast_track, unique_races};

const ATOMIC_EDGES: Relation = Relation {
    order: Some(Model { edges: Edges { locks: false, atomics: true, spare_posts: false }, ..Model::WEAK }),
    ..Relation::LOCKSET
};
const RELATIONS: [Relation; 5] =
    [Relation::LOCKSET, Relation::HYBRID, ATOMIC_EDGES, Relation::HAPPENS_BEFORE, Relation::RECORDER];

/// What the filters dropped over many traces.
#[derive(Default)]
struct Tally {
    online: [Statistics; 5],
    ahead: [Statistics; 5],
    races: usize,
}

fn add(sum: &mut Statistics, more: Statistics) {
    sum.accesses += more.accesses;
    sum.same_thread += more.same_thread;
    sum.two_threads += more.two_threads;
    sum.span += more.span;
}

fn check(trace: &Trace, locations: usize, tally: &mut Tally) {
    for (place, relation) in RELATIONS.into_iter().enumerate() {
        let races = unique_races(trace, relation);
        let (kept, statistics) = Tree::kept(trace, Options { locations, ..Options::new(relation) });
        let filtered = without(trace, &kept);
        assert_eq!(races, unique_races(&filtered, relation), "{relation:?}\n{}{kept:?}", describe(trace));
        let (ahead, ahead_statistics) = Lookahead::kept(trace, relation);
        assert_eq!(races, unique_races(&without(trace, &ahead), relation), "{relation:?}\n{}{ahead:?}", describe(trace));
        if relation == Relation::HAPPENS_BEFORE {
            assert_eq!(fast_track(trace).1, fast_track(&filtered).1, "{}{kept:?}", describe(trace));
            assert!(fast_track(&filtered).0.is_subset(&races));
        }
        if relation == Relation::RECORDER {
            for other in [Relation::LOCKSET, Relation::HYBRID, ATOMIC_EDGES, Relation::HAPPENS_BEFORE] {
                assert_eq!(unique_races(trace, other), unique_races(&filtered, other), "{other:?}\n{}{kept:?}", describe(trace));
            }
        }
        let spans = Options { guarantee: Guarantee::Addresses, locations, ..Options::new(relation) };
        let spanned = without(trace, &Tree::kept(trace, spans).0);
        if relation == Relation::HAPPENS_BEFORE {
            assert_eq!(fast_track(trace).1, fast_track(&spanned).1, "{}", describe(trace));
        }
        assert_eq!(races.is_empty(), unique_races(&spanned, relation).is_empty(), "{}", describe(trace));
        add(&mut tally.online[place], statistics);
        add(&mut tally.ahead[place], ahead_statistics);
        tally.races += races.len();
    }
    let states = Tree::kept(trace, Options { locations, ..Options::new(Relation::ERASER) }).0;
    assert_eq!(eraser(trace), eraser(&without(trace, &states)), "{}{states:?}", describe(trace));
}

const STEP: u64 = 0x1000;

/// An access of `site`; [`sites`] takes the site out of the address again.
fn access(class: AccessClass, site: u64) -> EventKind {
    EventKind::Access(Access { address: Address(0x10_0000 + STEP * site), size: 8, class, atomic: false })
}

fn sites(mut trace: Trace) -> Trace {
    trace.events.change(|_, event| {
        if let EventKind::Access(access) = &mut event.kind {
            event.site = SiteId((access.address.0 / STEP % 16) as u32);
            access.address = Address(0x10_0000);
        }
    });
    trace
}

fn locks(lock: u64) -> [EventKind; 2] {
    let lock = Address(0x20_0000 + 64 * lock);
    [
        EventKind::Acquire { lock, mode: LockMode::Exclusive, may_wait: true },
        EventKind::Release { lock, mode: LockMode::Exclusive },
    ]
}

#[test]
fn every_small_trace() {
    let (write, read, other) = (access(AccessClass::Write, 1), access(AccessClass::Read, 2), access(AccessClass::Write, 3));
    let object = Address(0x30_0000);
    let (given, taken) = (EventKind::ReleaseObject { object }, EventKind::AcquireObject { object });
    let mut tally = Tally::default();
    let mut count = 0;
    for (threads, length, alphabet) in [
        (2, 6, [&[write, read][..], &locks(0)].concat()),
        (2, 7, [&[write][..], &locks(0)].concat()),
        (2, 5, [&[write, other][..], &locks(0), &[given, taken]].concat()),
        (2, 6, [&[write][..], &locks(0), &locks(1)].concat()),
        (3, 5, [&[write, read][..], &locks(0)].concat()),
        (3, 5, vec![write, other, given, taken]),
    ] {
        enumerate(threads, length, &alphabet, &mut |trace| {
            check(&sites(trace), 16, &mut tally);
            count += 1;
        });
    }
    assert!(count > 100_000 && tally.races > 10_000, "{count} {}", tally.races);
    assert!(tally.online.iter().all(|sum| sum.same_thread > 10_000));
    assert!(tally.ahead.iter().all(|sum| sum.two_threads > 1000));
}

/// Code locations are few, and every trace is one program's loops.
fn few_sites(mut trace: Trace, seed: u64) -> Trace {
    let mut rng = SplitMix(seed);
    trace.events.change(|_, event| {
        event.site = SiteId(rng.below(2 + seed / 4 % 6) as u32);
    });
    trace
}

#[test]
fn random_traces() {
    let mut tally = Tally::default();
    for seed in 0..6000u64 {
        let plain = Features { shared_locks: true, fork_join: true, ..Features::default() };
        let shape = Shape {
            threads: 2 + (seed % 4) as u32,
            events: 10 + (seed % 70) as usize,
            variables: 1 + seed % 2,
            locks: 1 + seed % 3,
            features: if seed % 3 == 0 { Features::ALL } else { Features { partial_overlaps: seed % 3 == 1, ..plain } },
        };
        // A bound of 4 forgets all the time.
        check(&few_sites(random(seed, shape), seed), [4, 1 << 20][(seed % 2) as usize], &mut tally);
    }
    assert!(tally.races > 10_000 && tally.online.iter().all(|sum| sum.same_thread > 1000));
    assert!(tally.online[0].two_threads > 300 && tally.ahead.iter().all(|sum| sum.two_threads > 300));
    assert!(tally.online[1..].iter().all(|sum| sum.two_threads == 0), "without look-ahead, threads do not speak for each other");
}

#[test]
fn a_forgotten_location_is_kept_again() {
    let trace = rashomon_testkit::parse("t1 w x; t1 w y; t1 w z; t1 w x").expect("well-formed").trace;
    let mut trace = few_sites(trace, 0);
    trace.events.change(|_, event| {
        event.site = SiteId(0);
    });
    let skipped = |locations| Tree::kept(&trace, Options { locations, ..Options::new(Relation::LOCKSET) }).1;
    assert_eq!((skipped(8).skipped(), skipped(8).locations), (1, 3));
    assert_eq!((skipped(2).skipped(), skipped(2).locations, skipped(2).forgotten), (0, 2, 2));
}
