//! Divergence, renaming and the operators that are written with others: verdicts that are known, and graphs as an oracle.

use proptest::prelude::*;
use rashomon_csp::refine::{Limits, Model, Then, Verdict, divergence_free, refines};
use rashomon_csp::script::Script;
use rashomon_csp::term::{Event, Name, Processes, Term};
use std::collections::BTreeSet;

/// What is said of each assertion; the script that is written must say the same.
fn verdicts(text: &str) -> Vec<Option<String>> {
    let mut script = Script::read(text).unwrap_or_else(|error| panic!("{error}"));
    assert!(script.processes.unfold_all(100_000).unwrap_or_else(|error| panic!("{error}")));
    let again = Script::read(&script.written()).unwrap_or_else(|error| panic!("{error}\n{}", script.written()));
    let [first, second] = [script, again].map(|script| {
        let verdict = |claim| match script.clone().check(claim, &Limits::default()) {
            Verdict::Holds { .. } => None,
            Verdict::Fails { counterexamples, .. } => Some(script.counterexample(&counterexamples[0])),
            Verdict::Undecided { why, .. } => panic!("{why}"),
        };
        script.assertions.iter().map(|assertion| verdict(assertion.claim)).collect::<Vec<_>>()
    });
    assert_eq!(first, second);
    first
}

fn hold(text: &str) -> Vec<bool> {
    verdicts(text).iter().map(Option::is_none).collect()
}

/// Hiding an event that a process can do for ever (Roscoe, chapter 5): only the failures-divergences model sees it.
#[test]
fn hidden_loops_diverge() {
    let script = "channel a, b
        LOOP = a -> LOOP
        MAY = b -> MAY [] a -> MAY
        LATER = b -> LOOP
        assert LOOP \\ {a} :[divergence free]
        assert LOOP \\ {a} :[deadlock free [F]]
        assert LOOP \\ {a} :[deadlock free [FD]]
        assert MAY \\ {a} :[divergence free [FD]]
        assert MAY \\ {b} :[divergence free]
        assert MAY :[divergence free]
        assert STOP [F= LOOP \\ {a}
        assert STOP [FD= LOOP \\ {a}
        assert b -> STOP [FD= LATER \\ {a}";
    let [alone, stable, both, may, other, plain, failures, divergences, later] = &verdicts(script)[..] else { panic!() };
    assert_eq!(alone.as_deref(), Some("at once; then it may go on for ever by itself"));
    assert_eq!((stable, plain, failures), (&None, &None, &None));
    assert!(both.is_some() && may.is_some() && other.is_some() && divergences.is_some());
    assert_eq!(later.as_deref(), Some("b; then it may go on for ever by itself"));
}

/// Behind a divergence everything is allowed, before it nothing is.
#[test]
fn specifications_that_diverge_allow_everything_behind() {
    let script = "channel a, b, c
        LOOP = a -> LOOP
        CHAOTIC = b -> (LOOP \\ {a})
        assert CHAOTIC [FD= b -> c -> STOP
        assert CHAOTIC [FD= c -> STOP
        assert CHAOTIC [FD= b -> (LOOP \\ {a})
        assert CHAOTIC [F= b -> c -> STOP";
    assert_eq!(hold(script), [true, false, true, false]);
}

/// A scheduler whose inner talk is hidden talks only so much before each task (Milner): no divergence.
#[test]
fn a_ring_does_not_diverge() {
    let script = "channel a1, a2, c1, c2
        ONE = a1 -> c2 -> c1 -> ONE
        TWO = c2 -> a2 -> c1 -> TWO
        RING = ONE [| {c1, c2} |] TWO
        TURNS = a1 -> a2 -> TURNS
        assert RING \\ {c1, c2} :[deadlock free [FD]]
        assert TURNS [FD= RING \\ {c1, c2}
        assert RING \\ {a1, a2, c1, c2} :[divergence free]";
    assert_eq!(hold(script), [true, true, false]);
}

#[test]
fn renaming_maps_events() {
    let script = "channel a, b, c
        P = a -> b -> P
        assert c -> b -> STOP [T= (a -> b -> STOP)[[a <- c]]
        assert (a -> b -> STOP)[[a <- c]] [FD= c -> b -> STOP
        assert a -> a -> STOP [FD= (a -> b -> STOP)[[b <- a]]
        assert a -> STOP [] b -> STOP [FD= (c -> STOP)[[c <- a, c <- b]]
        assert (c -> STOP)[[c <- a, c <- b]] [F= a -> STOP [] b -> STOP
        assert P[[a <- b, b <- a]] [T= b -> a -> P[[a <- b, b <- a]]
        assert a -> b -> STOP [T= (a -> b -> STOP)[[a <- c]]";
    assert_eq!(hold(script), [true, true, true, true, true, true, false]);
}

/// The second philosopher takes the forks in the other order; forks and philosophers meet in their alphabets.
#[test]
fn alphabets_restrict_both_sides() {
    let script = "channel a, b, c
        assert a -> STOP [FD= (a -> c -> STOP) [{a} || {b}] (b -> STOP) \\ {b}
        assert a -> b -> STOP [] b -> a -> STOP [FD= (a -> STOP) [{a} || {b}] (b -> STOP)
        assert a -> b -> c -> STOP [FD= (a -> b -> STOP) [{a, b} || {b, c}] (b -> c -> STOP)
        assert SKIP [FD= SKIP [{a} || {b}] SKIP
        assert a -> STOP [T= (b -> STOP) [{a} || {a}] (a -> STOP)
        assert (b -> STOP) [{a} || {a}] (a -> STOP) :[deadlock free]";
    assert_eq!(hold(script), [true, true, true, true, true, false]);
}

/// What slides away may be taken, and need not be offered.
#[test]
fn sliding_choice_may_go_away() {
    let script = "channel a, b
        P = a -> STOP [> b -> STOP
        assert P [FD= b -> STOP
        assert P [T= a -> STOP
        assert P [F= a -> STOP
        assert (a -> STOP [] b -> STOP) |~| b -> STOP [FD= P
        assert P [FD= (a -> STOP [] b -> STOP) |~| b -> STOP
        assert a -> STOP [] b -> STOP [F= P";
    assert_eq!(hold(script), [true, true, false, true, true, false]);
}

/// Definitions whose bodies offer events that lead to definitions: a graph.
fn graph(edges: &[(usize, u32, usize)], nodes: usize) -> Processes {
    let mut processes = Processes::default();
    processes.events = vec![String::from("a"), String::from("b")];
    for node in 0..nodes {
        let mut body = processes.make(Term::Stop);
        for &(_, event, to) in edges.iter().filter(|edge| edge.0 == node) {
            let next = processes.make(Term::Call(Name(to as u32)));
            let step = processes.make(Term::Prefix(Event(event), next));
            body = processes.make(Term::External(body, step));
        }
        processes.definitions.push((format!("P{node}"), body));
    }
    processes
}

/// Length in `b` of the shortest way from node 0 to a cycle of `a`.
fn way_to_cycle(edges: &[(usize, u32, usize)], nodes: usize) -> Option<usize> {
    let mut by_a = vec![vec![false; nodes]; nodes];
    edges.iter().filter(|edge| edge.1 == 0).for_each(|&(from, _, to)| by_a[from][to] = true);
    for through in 0..nodes {
        for from in 0..nodes {
            for to in 0..nodes {
                by_a[from][to] |= by_a[from][through] && by_a[through][to];
            }
        }
    }
    let mut now = BTreeSet::from([0]);
    for length in 0..=nodes {
        let silent: BTreeSet<usize> = (0..nodes).filter(|&to| now.iter().any(|&from| from == to || by_a[from][to])).collect();
        if silent.iter().any(|&node| by_a[node][node]) {
            return Some(length);
        }
        now = edges.iter().filter(|edge| edge.1 == 1 && silent.contains(&edge.0)).map(|edge| edge.2).collect();
    }
    None
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn divergence_is_a_cycle_of_hidden_events(edges in prop::collection::vec((0usize..5, 0u32..2, 0usize..5), 0..9)) {
        let mut processes = graph(&edges, 5);
        let start = processes.make(Term::Call(Name(0)));
        let hidden = processes.make(Term::Hide(start, BTreeSet::from([Event(0)]).into()));
        let expected = way_to_cycle(&edges, 5);
        let shortest = |verdict: Verdict| match verdict {
            Verdict::Holds { .. } => None,
            Verdict::Fails { counterexamples, .. } => {
                assert_eq!(counterexamples[0].then, Then::Diverges);
                Some(counterexamples[0].trace.len())
            }
            Verdict::Undecided { why, .. } => panic!("{why}"),
        };
        prop_assert_eq!(shortest(divergence_free(&mut processes, hidden, &Limits::default())), expected);
        // A process refines itself in every model, whether it diverges or not.
        for model in [Model::Traces, Model::StableFailures, Model::FailuresDivergences] {
            let verdict = refines(&mut processes, model, hidden, hidden, &Limits::default());
            prop_assert!(matches!(verdict, Verdict::Holds { .. }), "{:?}", verdict);
        }
    }
}
