use super::*;
use rashomon_trace::{DescriptorState, HoldEnd, Step};

/// Pairs of descriptors, each of a thread of that number.
pub(crate) fn plan(threads: &[u32], pairs: &[[usize; 2]]) -> Plan {
    let place = |offset: usize| CodePlace { module: Some(0), offset: offset as u64 };
    let descriptor = |(site, thread): (usize, &u32)| Descriptor {
        thread: Some(ThreadPath(vec![*thread])),
        identity: 0,
        site: place(site),
        frames: Vec::new(),
        ordinal: 0,
    };
    let target = Target {
        sites: (SiteId(0), SiteId(1)),
        first: EventIndex(0),
        second: EventIndex(1),
        evidence: Evidence::Conflict,
        occurrences: 1,
    };
    Plan {
        modules: Vec::new(),
        descriptors: threads.iter().enumerate().map(descriptor).collect(),
        pairs: pairs.iter().map(|sides| Pair::new(target.clone(), sides.map(place), *sides)).collect(),
        seen: BTreeMap::new(),
        strategy: Strategy::Targets,
        complete: true,
        sites: Vec::new(),
        seeds: 0,
    }
}

fn held(round: &Round) -> Vec<usize> {
    let watched = round.descriptors.iter().zip(&round.watched);
    watched.filter(|(_, watched)| watched.holds > 0).map(|(descriptor, _)| *descriptor).collect()
}

/// An execution in which threads are held at some descriptors, and what the log says of it.
fn learn(plan: &mut Plan, round: &Round, log: &[Step], state: DescriptorState) {
    let descriptors = vec![state; round.watched.len()];
    plan.learn(round, &Provoked { descriptors, log: log.to_vec(), ..Provoked::default() });
}

const MATCHED: DescriptorState = DescriptorState {
    matches: 1,
    skipped: 0,
    holds: 1,
    caught: 0,
    blocked: 1,
    polling: 0,
    timed_out: 0,
    cut_short: 0,
    held: Duration::ZERO,
};
const SKIPPED: DescriptorState = DescriptorState { skipped: 1, holds: 0, blocked: 0, ..MATCHED };

/// A fair hold at the descriptor that is watched first.
const FAIR: [Step; 3] = [
    Step::Hold { descriptor: 0, thread: 1 },
    Step::End { descriptor: 0, how: HoldEnd::Blocked },
    Step::Match { descriptor: 1, thread: 2 },
];
/// The one that is watched second was over by then.
const LATE: [Step; 3] = [Step::Match { descriptor: 1, thread: 2 }, FAIR[0], FAIR[1]];

#[test]
fn executions_that_hold_nobody_at_a_side_do_not_count_for_it() {
    let mut plan = plan(&[0, 1], &[[0, 1]]);
    let round = plan.round(Grouping::All, vec![Held { descriptor: 0, ordinal: 0, holds: HOLDS }]);
    assert_eq!((round.watched.len(), held(&round)), (2, vec![0]));
    for _ in 0..20 {
        learn(&mut plan, &round, &FAIR, MATCHED);
    }
    assert!(plan.pairs[0].tried[0].settled);
    assert_eq!((plan.pairs[0].tried[1], plan.pairs[0].decision), (HoldState::default(), TargetState::Open));
    // What is left to do is to hold the other one.
    assert_eq!(held(&plan.rounds(1, 1)[0]), [1]);
}

#[test]
fn a_pair_is_decided_when_both_sides_had_fair_attempts() {
    let mut plan = plan(&[0, 1], &[[0, 1]]);
    let both: Vec<Step> = [
        Step::Hold { descriptor: 0, thread: 1 },
        Step::End { descriptor: 0, how: HoldEnd::TimedOut },
        Step::Match { descriptor: 1, thread: 2 },
        Step::Hold { descriptor: 1, thread: 2 },
        Step::End { descriptor: 1, how: HoldEnd::Blocked },
        Step::Match { descriptor: 0, thread: 1 },
    ]
    .into();
    for number in 0..WEIGHT {
        assert_eq!(plan.pairs[0].decision, TargetState::Open);
        let round = plan.rounds(number, 1).remove(0);
        assert_eq!(held(&round), [0, 1]);
        learn(&mut plan, &round, &both, MATCHED);
    }
    assert_eq!(plan.pairs[0].decision, TargetState::NotProvoked);
    assert!(plan.is_done());
}

#[test]
fn a_chance_that_a_hold_took_is_given_back_with_fewer_and_fewer_others() {
    // Two threads with two sides each.
    let mut plan = plan(&[0, 1, 0, 1], &[[0, 1], [2, 3]]);
    let round = plan.rounds(0, 1).remove(0);
    assert_eq!(held(&round), [0, 1, 2, 3]);
    learn(&mut plan, &round, &[], SKIPPED);
    // Thread by thread, first together with another one of which there is little.
    let joined = plan.rounds(1, 9);
    assert_eq!(joined.iter().map(held).collect::<Vec<_>>(), [[0, 2, 1, 3]]);
    learn(&mut plan, &joined[0], &[], SKIPPED);
    let rounds = plan.rounds(2, 9);
    let of: Vec<Vec<usize>> = rounds.iter().map(held).collect();
    assert_eq!(of, [[0, 2], [1, 3]]);
    for round in &rounds {
        learn(&mut plan, round, &[], SKIPPED);
    }
    // Then a few of different threads.
    let few = plan.rounds(3, 9);
    assert_eq!(few.iter().map(held).collect::<Vec<_>>(), [[0, 1], [2, 3]]);
    for round in &few {
        learn(&mut plan, round, &[], SKIPPED);
    }
    let alone = plan.rounds(4, 9);
    assert_eq!(alone.iter().map(held).collect::<Vec<_>>(), [[0], [1], [2], [3]]);
    assert_eq!(plan.open(), 2);
    // What meets others even so is held alone until it does not.
    learn(&mut plan, &alone[0], &[], DescriptorState { caught: 1, blocked: 0, ..MATCHED });
    assert_eq!(held(&plan.rounds(5, 1)[0]), [0]);
    learn(&mut plan, &alone[0], &FAIR, MATCHED);
    assert_eq!(held(&plan.rounds(6, 1)[0]), [1]);
}

#[test]
fn a_side_that_always_comes_too_late_has_had_its_chance_after_a_head_start() {
    let mut plan = plan(&[0, 1], &[[0, 1]]);
    let settle = [Held { descriptor: 1, ordinal: 0, holds: HOLDS }];
    for _ in 0..WEIGHT {
        let round = plan.round(Grouping::All, settle.to_vec());
        learn(&mut plan, &round, &FAIR, MATCHED);
    }
    let round = plan.rounds(0, 1).remove(0);
    assert_eq!((held(&round), round.favoured.clone()), (vec![0], None));
    learn(&mut plan, &round, &LATE, MATCHED);
    assert_eq!(plan.open(), 1);
    let round = plan.rounds(1, 1).remove(0);
    assert_eq!((held(&round), round.favoured.clone()), (vec![0], Some(ThreadPath(vec![0]))));
    learn(&mut plan, &round, &LATE, MATCHED);
    assert_eq!(plan.pairs[0].decision, TargetState::NotProvoked);
}

#[test]
fn a_pair_without_any_fair_attempt_was_not_reached() {
    let mut plan = plan(&[0, 1], &[[0, 1]]);
    for number in 0.. {
        let Some(round) = plan.rounds(number, 1).pop() else { break };
        assert!(number < 20, "{:?}", plan.pairs);
        learn(&mut plan, &round, &[], DescriptorState::default());
    }
    assert_eq!(plan.pairs[0].decision, TargetState::NotReached);
}

#[test]
fn two_threads_that_want_a_head_start_have_an_execution_each() {
    let mut plan = plan(&[0, 1], &[[0, 1]]);
    let part = |descriptor| vec![Held { descriptor, ordinal: 0, holds: 1 }];
    assert_eq!(plan.joined(vec![part(0), part(1)], 2).len(), 1);
    plan.pairs[0].tried[0].fruitless = true;
    assert_eq!(plan.joined(vec![part(0), part(1)], 2).len(), 1);
    plan.pairs[0].tried[1].fruitless = true;
    assert_eq!(plan.joined(vec![part(0), part(1)], 2).len(), 2);
    assert_eq!(plan.joined(vec![part(0), part(1)], 1).len(), 2);
}

#[test]
fn places_in_a_loop_share_executions_at_different_ordinals() {
    let places = vec![(0, 3), (1, 2), (2, 2), (3, 2), (4, 100)];
    for later in [false, true] {
        let parts = spread(places.clone(), later);
        assert_eq!(parts.len(), 2, "{parts:?}");
        let mut all: Vec<usize> = parts.iter().flatten().map(|held| held.descriptor).collect();
        all.sort_unstable();
        assert_eq!(all, [0, 1, 2, 3, 4]);
        for part in parts {
            let ordinals: BTreeSet<u64> = part.iter().map(|held| held.ordinal).collect();
            assert_eq!(ordinals.len(), part.len(), "{part:?}");
            assert!(part.iter().all(|held| held.holds == 1 && held.ordinal < places[held.descriptor].1));
            assert!(part.iter().all(|held| held.ordinal == 0 || held.ordinal + 1 < places[held.descriptor].1.max(3)));
        }
    }
}
