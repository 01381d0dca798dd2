//! Other ways to find sets, on the figures of the paper.

use crate::support::figures::{append, dequeue_and_fill, inc, reflow, scale_vector};
use crate::support::{Code, M, N, Program, names, variable};
use rashomon_units::{Analysis, Bytes, CoAccess, CoAccessOptions, Correlation, Event, Options, Sharing, Structures};

fn sets(mut correlation: impl Correlation, events: &[Event<'static>]) -> Vec<Vec<Bytes>> {
    events.iter().for_each(|event| correlation.event(event));
    correlation.sets()
}

fn named(sets: &[Vec<Bytes>]) -> Vec<String> {
    sets.iter().map(|set| names(set)).collect()
}

fn shared(events: &[Event<'_>]) -> Vec<Bytes> {
    let mut sharing = Sharing::new(1 << 16, 1 << 16);
    events.iter().for_each(|event| sharing.event(event));
    sharing.shared()
}

/// What region, co-access and structures find.
fn all_three(events: &[Event<'static>]) -> [Vec<String>; 3] {
    let shared = shared(events);
    let mut region = Analysis::new(Options::default());
    shared.iter().for_each(|range| region.share(*range));
    [
        named(&sets(region, events)),
        named(&sets(CoAccess::new(CoAccessOptions::default(), shared.clone()), events)),
        named(&sets(Structures::new(Options::default(), &shared), events)),
    ]
}

/// Each in a function of its own.
fn initialised(variables: &str) -> Code {
    variables.chars().fold(Code::new(), |code, name| code.at(1).enter(&[]).store(variable(name), &[]).exit(&[], None))
}

fn twice(code: impl Fn(u32) -> Code) -> Program {
    Program::new(Code::new(), &[code(10).then(code(20)), code(30).then(code(40))])
}

#[test]
fn scale_vector_is_found_by_dependences_and_by_co_access() {
    let events = Program { before: initialised("xy"), ..twice(|line| scale_vector(line, true)) }.in_turn();
    assert_eq!(all_three(&events), [vec!["xy".to_owned()], vec!["xy".to_owned()], vec![]]);
}

/// Fig. 14: no function accesses both, so co-access sees no more than what each has in common with the string.
#[test]
fn different_functions_are_beyond_co_access() {
    let events = Program { before: initialised("cls"), ..twice(|line| append(line).then(reflow(line))) }.in_turn();
    let [region, together, structures] = all_three(&events);
    assert_eq!(region, ["cls"]);
    assert!(together.is_empty() && structures.is_empty(), "{together:?} {structures:?}");
}

/// Fig. 16: what dependences alone do not find. The structure needs one execution, co-access some.
#[test]
fn members_that_are_written_independently() {
    let code = |line| Code::new().locked(&[M], dequeue_and_fill(line));
    let once = Program::new(initialised("habn"), &[code(10), code(20)]).in_turn();
    assert_eq!(all_three(&once), [vec!["hn".to_owned()], vec![], vec!["abhn".to_owned()]]);
    let often = Program { before: initialised("habn"), ..twice(code) }.in_turn();
    assert_eq!(all_three(&often), [vec!["hn".to_owned()], vec!["abhn".to_owned()], vec!["abhn".to_owned()]]);
}

/// Two counters in one structure, counted in one function: nothing relates them, though they are accessed together.
#[test]
fn counters_in_one_structure_are_none_without_evidence() {
    let count = |line| {
        let code = Code::new().at(line).enter(&[]).load(variable('h'), 0);
        let code = code.load_through(variable('a'), &[0], 1).store_through(variable('a'), &[0], &[1]);
        code.load_through(variable('b'), &[0], 2).store_through(variable('b'), &[0], &[2]).exit(&[], None)
    };
    let events = Program { before: initialised("hab"), ..twice(count) }.in_turn();
    let [region, together, structures] = all_three(&events);
    assert!(region.is_empty() && structures.is_empty(), "{region:?} {structures:?}");
    assert_eq!(together, ["abh"]);
}

/// A variable that every function reads belongs to none of them.
#[test]
fn what_everything_reads_is_in_no_set() {
    let with = |line, first, second| {
        let code = Code::new().at(line).enter(&[]).load(variable('k'), 0).load(variable(first), 1);
        code.load(variable(second), 2).store(variable(first), &[]).store(variable(second), &[]).exit(&[], None)
    };
    let code = |line| with(line, 'a', 'b').then(with(line, 'c', 'd')).then(with(line, 'e', 'f'));
    let events = Program { before: initialised("kabcdef"), ..twice(code) }.in_turn();
    assert_eq!(all_three(&events)[1], ["ab", "cd", "ef"]);
}

/// Mined sets are judged like any others: the members of test 21's object under different locks.
#[test]
fn mined_sets_are_judged() {
    let fill = |line: u32| Code::new().locked(&[M], dequeue_and_fill(line));
    let apart = |line: u32| Code::new().locked(&[N], inc(line, 'a'));
    let program = Program::new(initialised("habn"), &[fill(10), fill(20).then(apart(30))]);
    let events = program.in_turn();
    let shared = shared(&events);
    let found = sets(Structures::new(Options::default(), &shared), &events);
    let mut analysis = Analysis::new(Options { infer_sets: false, ..Options::default() });
    found.iter().for_each(|set| analysis.declare(set));
    shared.iter().for_each(|range| analysis.share(*range));
    events.iter().for_each(|event| analysis.event(event));
    assert_eq!(analysis.races().iter().map(|race| names(&race.members)).collect::<Vec<_>>(), ["abhn"]);
}
