//! Refinement against the denotational equations of the stable-failures model, computed for whole finite terms.

use proptest::prelude::*;
use rashomon_csp::reduce::Reductions;
use rashomon_csp::refine::{Limits, Model, Verdict, Why, deadlock_free, deterministic, refines};
use rashomon_csp::term::{Event, Processes, Term, TermId};
use std::collections::BTreeSet;

/// Events are 0 and 1; the tick is 2.
const TICK: u8 = 2;
const VISIBLE: u8 = 0b011;
const ALL: u8 = 0b111;

type Trace = Vec<u8>;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Meaning {
    traces: BTreeSet<Trace>,
    /// With refused sets as masks, all of them.
    failures: BTreeSet<(Trace, u8)>,
}

#[derive(Clone, Debug)]
enum Tree {
    Stop,
    Skip,
    Prefix(u8, Box<Tree>),
    External(Box<Tree>, Box<Tree>),
    Internal(Box<Tree>, Box<Tree>),
    Parallel(Box<Tree>, u8, Box<Tree>),
    Hide(Box<Tree>, u8),
    Interrupt(Box<Tree>, Box<Tree>),
    Sequence(Box<Tree>, Box<Tree>),
}

fn ends(trace: &[u8]) -> bool {
    trace.last() == Some(&TICK)
}

fn subsets(of: u8) -> impl Iterator<Item = u8> {
    (0..=ALL).filter(move |set| set & !of == 0)
}

/// Every way to run two traces beside each other; ticks only together.
fn beside(one: &[u8], other: &[u8], shared: u8, so_far: &mut Trace, all: &mut BTreeSet<Trace>) {
    if one.is_empty() && other.is_empty() {
        all.insert(so_far.clone());
    }
    let together = |event: u8| event == TICK || shared & (1 << event) != 0;
    let mut step = |event: u8, one: &[u8], other: &[u8]| {
        so_far.push(event);
        beside(one, other, shared, so_far, all);
        so_far.pop();
    };
    match (one.first(), other.first()) {
        (Some(&a), Some(&b)) if a == b && together(a) => step(a, &one[1..], &other[1..]),
        _ => {}
    }
    if let Some(&a) = one.first().filter(|&&a| !together(a)) {
        step(a, &one[1..], other);
    }
    if let Some(&b) = other.first().filter(|&&b| !together(b)) {
        step(b, one, &other[1..]);
    }
}

fn followed(one: &[u8], other: &[u8]) -> Trace {
    [one, other].concat()
}

fn meaning(tree: &Tree) -> Meaning {
    let mut to = Meaning::default();
    match tree {
        Tree::Stop => {
            to.traces.insert(vec![]);
            to.failures.extend(subsets(ALL).map(|set| (vec![], set)));
        }
        Tree::Skip => {
            to.traces.extend([vec![], vec![TICK]]);
            to.failures.extend(subsets(VISIBLE).map(|set| (vec![], set)));
            to.failures.extend(subsets(ALL).map(|set| (vec![TICK], set)));
        }
        Tree::Prefix(event, next) => {
            let next = meaning(next);
            to.traces.insert(vec![]);
            to.traces.extend(next.traces.iter().map(|trace| followed(&[*event], trace)));
            to.failures.extend(subsets(ALL & !(1 << event)).map(|set| (vec![], set)));
            to.failures.extend(next.failures.iter().map(|(trace, set)| (followed(&[*event], trace), *set)));
        }
        Tree::Internal(a, b) => {
            let (a, b) = (meaning(a), meaning(b));
            to.traces = &a.traces | &b.traces;
            to.failures = &a.failures | &b.failures;
        }
        Tree::External(a, b) => {
            let (a, b) = (meaning(a), meaning(b));
            to.traces = &a.traces | &b.traces;
            to.failures = (&a.failures | &b.failures)
                .into_iter()
                .filter(|failure| !failure.0.is_empty() || a.failures.contains(failure) && b.failures.contains(failure))
                .collect();
            if to.traces.contains(&vec![TICK]) {
                to.failures.extend(subsets(VISIBLE).map(|set| (vec![], set)));
            }
        }
        Tree::Sequence(a, b) => {
            let (a, b) = (meaning(a), meaning(b));
            to.traces.extend(a.traces.iter().filter(|trace| !ends(trace)).cloned());
            to.failures.extend(
                a.failures
                    .iter()
                    .filter(|(trace, set)| !ends(trace) && a.failures.contains(&(trace.clone(), set | 1 << TICK)))
                    .cloned(),
            );
            for first in a.traces.iter().filter(|trace| ends(trace)) {
                let first = &first[..first.len() - 1];
                to.traces.extend(b.traces.iter().map(|trace| followed(first, trace)));
                to.failures.extend(b.failures.iter().map(|(trace, set)| (followed(first, trace), *set)));
            }
        }
        Tree::Hide(a, hidden) => {
            let a = meaning(a);
            let seen = |trace: &Trace| trace.iter().copied().filter(|event| hidden & (1 << event) == 0).collect::<Trace>();
            to.traces.extend(a.traces.iter().map(seen));
            for (trace, set) in a.failures.iter().filter(|(_, set)| set & hidden == *hidden) {
                to.failures.extend(subsets(*hidden).map(|less| (seen(trace), set & !less)));
            }
        }
        Tree::Interrupt(a, b) => interrupted(&mut to, &meaning(a), &meaning(b)),
        Tree::Parallel(a, shared, b) => in_parallel(&mut to, &meaning(a), *shared, &meaning(b)),
    }
    to
}

fn interrupted(to: &mut Meaning, a: &Meaning, b: &Meaning) {
    to.traces = a.traces.clone();
    to.failures.extend(a.failures.iter().filter(|(trace, set)| ends(trace) || b.failures.contains(&(vec![], *set))).cloned());
    for trace in &a.traces {
        if ends(trace) {
            let before = trace[..trace.len() - 1].to_vec();
            to.failures.extend(subsets(VISIBLE).map(|set| (before.clone(), set)));
            continue;
        }
        to.traces.extend(b.traces.iter().map(|by| followed(trace, by)));
        let by = b.failures.iter().filter(|(by, _)| !by.is_empty());
        to.failures.extend(by.map(|(by, set)| (followed(trace, by), *set)));
        if b.traces.contains(&vec![TICK]) {
            to.failures.extend(subsets(VISIBLE).map(|set| (trace.clone(), set)));
        }
    }
}

fn in_parallel(to: &mut Meaning, a: &Meaning, shared: u8, b: &Meaning) {
    let both = shared | 1 << TICK;
    for one in &a.traces {
        for other in &b.traces {
            beside(one, other, shared, &mut vec![], &mut to.traces);
        }
    }
    for (one, left) in &a.failures {
        for (other, right) in b.failures.iter().filter(|(_, right)| right & !both == left & !both) {
            let mut traces = BTreeSet::new();
            beside(one, other, shared, &mut vec![], &mut traces);
            to.failures.extend(traces.into_iter().map(|trace| (trace, left | right)));
        }
    }
}

fn term(processes: &mut Processes, tree: &Tree) -> TermId {
    let set = |mask: u8| (0..2).filter(|event| mask & (1 << event) != 0).map(|event| Event(event as u32)).collect();
    let mut of = |tree: &Tree| term(processes, tree);
    let term = match tree {
        Tree::Stop => Term::Stop,
        Tree::Skip => Term::Skip,
        Tree::Prefix(event, next) => Term::Prefix(Event(u32::from(*event)), of(next)),
        Tree::External(a, b) => Term::External(of(a), of(b)),
        Tree::Internal(a, b) => Term::Internal(of(a), of(b)),
        Tree::Parallel(a, shared, b) => Term::Parallel(of(a), set(*shared), of(b)),
        Tree::Hide(a, hidden) => Term::Hide(of(a), set(*hidden)),
        Tree::Interrupt(a, b) => Term::Interrupt(of(a), of(b)),
        Tree::Sequence(a, b) => Term::Sequence(of(a), of(b)),
    };
    processes.make(term)
}

fn trees() -> impl Strategy<Value = Tree> {
    let leaf = prop_oneof![Just(Tree::Stop), Just(Tree::Skip)];
    leaf.prop_recursive(4, 8, 2, |inner| {
        let some = inner.clone().prop_map(Box::new);
        let two = (some.clone(), some.clone());
        prop_oneof![
            3 => (0u8..2, some.clone()).prop_map(|(event, next)| Tree::Prefix(event, next)),
            1 => two.clone().prop_map(|(a, b)| Tree::External(a, b)),
            1 => two.clone().prop_map(|(a, b)| Tree::Internal(a, b)),
            1 => (some.clone(), 0u8..4, some.clone()).prop_map(|(a, shared, b)| Tree::Parallel(a, shared, b)),
            1 => (some, 0u8..4).prop_map(|(a, hidden)| Tree::Hide(a, hidden)),
            1 => two.clone().prop_map(|(a, b)| Tree::Interrupt(a, b)),
            1 => two.prop_map(|(a, b)| Tree::Sequence(a, b)),
        ]
    })
}

/// Length of the shortest counterexample, if any; counterexamples were accepted by the interpreter, or it is undecided.
fn shortest(verdict: &Verdict) -> Option<usize> {
    match verdict {
        Verdict::Holds { .. } => None,
        Verdict::Fails { counterexamples, .. } => {
            assert!(counterexamples.is_sorted_by_key(|found| found.trace.len()));
            Some(counterexamples[0].trace.len())
        }
        Verdict::Undecided { why, .. } => panic!("{why}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn agrees_with_the_equations(one in trees(), other in trees()) {
        let mut processes = Processes::default();
        let (specification, implementation) = (term(&mut processes, &one), term(&mut processes, &other));
        let (allowed, done) = (meaning(&one), meaning(&other));

        let longer = done.traces.difference(&allowed.traces).map(Vec::len).min();
        let many = Limits { counterexamples: 5, ..Limits::default() };
        for limits in [Limits::default(), many] {
            let traces = refines(&mut processes, Model::Traces, specification, implementation, &limits);
            prop_assert_eq!(shortest(&traces), longer);
        }
        let refused = done.failures.difference(&allowed.failures).map(|failure| failure.0.len()).min();
        let failures = refines(&mut processes, Model::StableFailures, specification, implementation, &Limits::default());
        prop_assert_eq!(shortest(&failures), longer.into_iter().chain(refused).min());

        let stuck = done.failures.iter().filter(|(trace, set)| *set == ALL && !ends(trace)).map(|failure| failure.0.len()).min();
        prop_assert_eq!(shortest(&deadlock_free(&mut processes, implementation, &Limits::default())), stuck);
    }
}

/// The pairs that were seen.
const fn states(verdict: &Verdict) -> usize {
    match verdict {
        Verdict::Holds { states } | Verdict::Fails { states, .. } | Verdict::Undecided { states, .. } => *states,
    }
}

/// Components without operators of concurrency.
fn sequential() -> impl Strategy<Value = Tree> {
    let leaf = prop_oneof![Just(Tree::Stop), Just(Tree::Skip)];
    leaf.prop_recursive(4, 6, 2, |inner| {
        let some = inner.prop_map(Box::new);
        let two = (some.clone(), some.clone());
        prop_oneof![
            6 => (0u8..2, some).prop_map(|(event, next)| Tree::Prefix(event, next)),
            1 => two.clone().prop_map(|(a, b)| Tree::External(a, b)),
            1 => two.prop_map(|(a, b)| Tree::Internal(a, b)),
        ]
    })
}

/// Several components, some of them alike, in parallel over one set or several, with some of it hidden.
fn compositions() -> impl Strategy<Value = Tree> {
    let components = proptest::collection::vec((sequential(), 1usize..4, 0u8..4, 0u8..4), 1..4);
    (components, 0u8..4, proptest::bool::ANY).prop_map(|(components, hidden, followed)| {
        let mut all: Option<Tree> = None;
        for (tree, copies, shared, own_hidden) in components {
            for _ in 0..copies {
                let tree = Box::new(tree.clone());
                all = Some(match all {
                    None => *tree,
                    Some(others) => Tree::Parallel(Box::new(others), shared, tree),
                });
            }
            all = all.map(|all| if own_hidden == 3 { Tree::Hide(Box::new(all), 1) } else { all });
        }
        let all = Box::new(all.unwrap_or(Tree::Stop));
        let all = if followed { Box::new(Tree::Sequence(all, Box::new(Tree::Prefix(0, Box::new(Tree::Stop))))) } else { all };
        Tree::Hide(all, hidden)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn reductions_change_no_verdict(one in trees(), other in compositions()) {
        reductions_keep(&one, &other)?;
    }
}

/// Each reduction alone and all together: the same verdicts, counterexamples of the same length, and no more states.
fn reductions_keep(one: &Tree, other: &Tree) -> Result<(), TestCaseError> {
    let mut processes = Processes::default();
    let (specification, implementation) = (term(&mut processes, one), term(&mut processes, other));
    let all = |processes: &mut Processes, (reductions, states): (Reductions, usize)| {
        let limits = Limits { reductions, states, ..Limits::default() };
        [
            refines(processes, Model::Traces, specification, implementation, &limits),
            refines(processes, Model::StableFailures, specification, implementation, &limits),
            refines(processes, Model::FailuresDivergences, specification, implementation, &limits),
            deadlock_free(processes, implementation, &limits),
            deterministic(processes, true, implementation, &limits),
        ]
    };
    // Nine components may have millions of states; those whose states are few without reductions say enough.
    let whole = all(&mut processes, (Reductions::NONE, 2_000));
    let is_too_large =
        |verdict: &Verdict| matches!(verdict, Verdict::Undecided { why: Why::States | Why::Terms | Why::Unchecked, .. });
    prop_assume!(!whole.iter().any(is_too_large));
    let alone = [
        Reductions { partial_order: true, symmetry: false },
        Reductions { partial_order: false, symmetry: true },
        Reductions::ALL,
    ];
    for reductions in alone {
        for (reduced, whole) in all(&mut processes, (reductions, Limits::default().states)).iter().zip(&whole) {
            prop_assert_eq!(shortest(reduced), shortest(whole), "{:?}", reductions);
            if matches!(whole, Verdict::Holds { .. }) {
                prop_assert!(states(reduced) <= states(whole), "{} of {}: {:?}", states(reduced), states(whole), reductions);
            }
        }
    }
    Ok(())
}

/// Two that end beside one that does not: as sides of another order they would end together, in one step more.
#[test]
fn sides_that_have_ended_make_no_states() {
    let boxed = |tree: &Tree| Box::new(tree.clone());
    let ends = Tree::External(Box::new(Tree::Stop), Box::new(Tree::External(Box::new(Tree::Stop), Box::new(Tree::Skip))));
    let stays = Tree::Prefix(0, Box::new(Tree::Stop));
    let first = Tree::Parallel(Box::new(Tree::Skip), 1, boxed(&stays));
    let second = Tree::Parallel(Box::new(first), 1, boxed(&ends));
    let all = Tree::Hide(Box::new(Tree::Parallel(Box::new(second), 1, boxed(&ends))), 0);
    reductions_keep(&Tree::Stop, &all).unwrap();
    // They all end: that is seen.
    let all = [&ends, &ends, &ends].into_iter().fold(Tree::Skip, |all, one| Tree::Parallel(Box::new(all), 1, boxed(one)));
    for specification in [Tree::Skip, Tree::Stop] {
        reductions_keep(&specification, &all).unwrap();
    }
}

/// Components that are alike: how many are where is all that counts. Such that nobody else hears of: one order is enough.
#[test]
fn reductions_leave_few_states() {
    let chain = |events: &[u8]| events.iter().rev().fold(Tree::Stop, |next, &event| Tree::Prefix(event, Box::new(next)));
    let many = |chain: &Tree| (1..6).fold(chain.clone(), |all, _| Tree::Parallel(Box::new(all), 0, Box::new(chain.clone())));
    let seen = |tree: &Tree, reductions| {
        let mut processes = Processes::default();
        let implementation = term(&mut processes, tree);
        let limits = Limits { reductions, ..Limits::default() };
        states(&deadlock_free(&mut processes, implementation, &limits))
    };
    let alike = many(&chain(&[0, 1, 0]));
    let symmetry = Reductions { partial_order: false, symmetry: true };
    assert_eq!(seen(&alike, Reductions::NONE), 4096);
    assert_eq!(seen(&alike, symmetry), 84);
    let hidden = Tree::Hide(Box::new(alike), VISIBLE);
    let partial_order = Reductions { partial_order: true, symmetry: false };
    assert_eq!((seen(&hidden, Reductions::NONE), seen(&hidden, partial_order)), (4096, 19));
}
