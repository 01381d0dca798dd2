//! What outgrows its limits, or has no meaning, is undecided.

use rashomon_csp::refine::{Limits, Verdict, Why, deadlock_free};
use rashomon_csp::script::Script;
use rashomon_csp::term::{Event, Events, Name, Processes, Term};
use rashomon_csp::transitions::StepError;

fn recursive(body: impl Fn(&mut Processes) -> Term) -> Processes {
    let mut processes = Processes::default();
    let term = body(&mut processes);
    let id = processes.make(term);
    processes.definitions.push((String::from("P"), id));
    processes
}

fn check(mut processes: Processes, limits: &Limits) -> Verdict {
    let process = processes.make(Term::Call(Name(0)));
    deadlock_free(&mut processes, process, limits)
}

#[test]
fn more_terms_than_allowed() {
    // P = a -> (P ||| P)
    let processes = recursive(|processes| {
        let again = processes.make(Term::Call(Name(0)));
        let two = processes.make(Term::Parallel(again, Events::default(), again));
        Term::Prefix(Event(0), two)
    });
    let verdict = check(processes, &Limits { states: 500, ..Limits::default() });
    assert!(matches!(verdict, Verdict::Undecided { states, why: Why::Terms } if states > 0), "{verdict:?}");
}

/// Few terms, of which each of the one process meets each of the other.
#[test]
fn more_states_than_allowed() {
    let ring = |length: usize| "a -> ".repeat(length);
    let text = format!("channel a\nP = {}P\nQ = {}Q\nassert Q [T= P\n", ring(7), ring(11));
    let mut script = Script::read(&text).unwrap_or_else(|error| panic!("{error}"));
    let claim = script.assertions[0].claim;
    let limited = script.clone().check(claim, &Limits { states: 60, ..Limits::default() });
    assert!(matches!(limited, Verdict::Undecided { states: 61, why: Why::States }), "{limited:?}");
    let whole = script.check(claim, &Limits { states: 80, ..Limits::default() });
    assert!(matches!(whole, Verdict::Holds { states: 77 }), "{whole:?}");
}

#[test]
fn no_time() {
    let processes = recursive(|processes| Term::Prefix(Event(0), processes.make(Term::Call(Name(0)))));
    let verdict = check(processes, &Limits { until: Some(std::time::Instant::now()), ..Limits::default() });
    assert!(matches!(verdict, Verdict::Undecided { why: Why::Time, .. }), "{verdict:?}");
}

#[test]
fn recursion_without_an_event() {
    // P = P ; STOP
    let processes = recursive(|processes| {
        let (again, stop) = (processes.make(Term::Call(Name(0))), processes.make(Term::Stop));
        Term::Sequence(again, stop)
    });
    let verdict = check(processes, &Limits::default());
    let Verdict::Undecided { why: Why::Step(StepError::Unguarded { .. }), .. } = verdict else { panic!("{verdict:?}") };
}

#[test]
fn terms_that_grow_deep() {
    // P = a -> (P ; STOP)
    let processes = recursive(|processes| {
        let (again, stop) = (processes.make(Term::Call(Name(0))), processes.make(Term::Stop));
        let then = processes.make(Term::Sequence(again, stop));
        Term::Prefix(Event(0), then)
    });
    let verdict = check(processes, &Limits::default());
    let Verdict::Undecided { why: Why::Step(StepError::Deep { .. }), .. } = verdict else { panic!("{verdict:?}") };
}
