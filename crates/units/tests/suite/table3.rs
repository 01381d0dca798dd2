//! Tests 14-21 of Table 3, in executions chosen at random.

use crate::support::figures::{append, buffer_append, dequeue_and_fill, inc, normalize, reflow, scale_vector, swap};
use crate::support::{Code, M, N, Program, analyse, cell, count_some, names, races, variable};
use rashomon_units::{Dependence, Detection, Line, Link, Options, Overwriting, Reason};

fn initialised(variables: &str, threads: &[Code]) -> Program {
    let before = variables
        .chars()
        .enumerate()
        .fold(Code::new(), |code, (index, name)| code.at(1 + index as u32).store(variable(name), &[]));
    Program::new(before, threads)
}

fn under(locks: &[rashomon_units::Lock], code: Code) -> Code {
    Code::new().locked(locks, code)
}

fn program(test: u32) -> Program {
    match test {
        14 => initialised("xy", &[scale_vector(10, false), scale_vector(20, false)]),
        15 => initialised("xy", &[scale_vector(10, true), scale_vector(20, true)]),
        16 => initialised("ab", &[normalize(10).then(normalize(20)), normalize(30)]),
        17 => initialised("cls", &[append(10).then(reflow(10)), append(30).then(reflow(30))]),
        18 => initialised("n", &[buffer_append(100, 'p', 2, 0), buffer_append(200, 'q', 2, 0)]),
        19 => {
            let thread = |line| {
                under(&[M], normalize_inside(line))
                    .then(under(&[M], swap(line + 10, 'a', 'b')))
                    .then(under(&[M], normalize_inside(line + 20)))
            };
            initialised("ab", &[thread(100), thread(200)])
        }
        20 => {
            let each = |line| under(&[M], inc(line, 'a')).then(under(&[N], inc(line + 1, 'b')));
            let thread = |line| each(line).then(under(&[M, N], swap(line + 10, 'a', 'b'))).then(each(line + 20));
            initialised("ab", &[thread(100), thread(200)])
        }
        21 => initialised("habn", &[under(&[M], dequeue_and_fill(10)), under(&[M], dequeue_and_fill(20))]),
        _ => unreachable!(),
    }
}

fn normalize_inside(line: u32) -> Code {
    let (a, b) = (variable('a'), variable('b'));
    Code::new().at(line).enter(&[]).load(a, 0).load(b, 1).compute(2, &[0, 1]).store(a, &[0, 2]).store(b, &[1, 2]).exit(&[], None)
}

const EXECUTIONS: u64 = 300;

fn options(detection: Detection, overwriting: Overwriting) -> Options {
    Options { detection, overwriting, ..Options::default() }
}

/// In how many executions a race is found, and how many in one at most.
fn found(test: u32, detection: Detection, overwriting: Overwriting) -> (usize, usize) {
    count_some(&options(detection, overwriting), &program(test), EXECUTIONS)
}

const ALWAYS: (usize, usize) = (EXECUTIONS as usize, 1);
const NEVER: (usize, usize) = (0, 0);

/// Column *Expected*: races in tests 14, 15, 17 and 18, one each.
fn expected(test: u32) -> (usize, usize) {
    if matches!(test, 14 | 15 | 17 | 18) { ALWAYS } else { NEVER }
}

#[test]
fn pairs_give_the_expected_column() {
    for test in 14..=21 {
        assert_eq!(found(test, Detection::Pairs, Overwriting::Replaces), expected(test), "test {test}");
    }
}

/// Test 20 is the paper's known failure: the swap leaves each variable in the other's set, whose C_s is of the other's lock.
#[test]
fn states_give_the_detected_column() {
    for test in (14..=21).filter(|test| *test != 20) {
        assert_eq!(found(test, Detection::States, Overwriting::Replaces), expected(test), "test {test}");
    }
    assert!(found(20, Detection::States, Overwriting::Replaces).0 > EXECUTIONS as usize / 2);
    assert!(!races(&options(Detection::States, Overwriting::Replaces), &program(20).in_turn()).is_empty());
}

/// What finds test 4 does not mend test 20: there the swap correlates the two variables for good. Histories that move with the
/// variables mend both.
#[test]
fn merging_what_is_overwritten_does_not_mend_test_20() {
    for test in (14..=21).filter(|test| *test != 20) {
        for detection in [Detection::States, Detection::Pairs] {
            assert_eq!(found(test, detection, Overwriting::MergesIfShared), expected(test), "test {test}");
        }
    }
    assert_eq!(found(20, Detection::States, Overwriting::MergesIfShared), ALWAYS);
    assert_eq!(found(20, Detection::Pairs, Overwriting::MergesIfShared), ALWAYS);
}

/// Column *CUs and CSets*: the set of each variable after the test.
#[test]
fn correlated_sets() {
    let sets = [
        (14, &["xy"][..]),
        (15, &["xy"]),
        (16, &["ab"]),
        (17, &["cls"]),
        (18, &["nopq"]),
        (19, &["ab"]),
        // That the swap leaves these apart is no failure: each is a set of its own before and after.
        (20, &["a", "b"]),
        // The paper's known failure: list_head and next are correlated, what is stored into the object is not.
        (21, &["a", "b", "hn"]),
    ];
    for (test, expected) in sets {
        let analysis = analyse(&Options::default(), &program(test).in_turn());
        for variables in expected {
            for name in variables.chars() {
                let address = if matches!(name, 'o' | 'p' | 'q') { cell(name, 0).start } else { variable(name).start };
                let set = analysis.correlated_set(address).expect("it was accessed");
                assert_eq!(names(&set), **variables, "test {test}, {name}");
            }
        }
    }
}

/// The remedy that §5.2 names, off by default: members of a structure need not belong together.
#[test]
fn dependences_of_addresses_correlate_test_21() {
    let options = Options { addresses: true, ..Options::default() };
    let analysis = analyse(&options, &program(21).in_turn());
    assert_eq!(names(&analysis.correlated_set(variable('a').start).expect("it was accessed")), "abhn");
    // A structure that counts packets in and packets out: independent, and correlated all the same.
    let counter = |line, name| {
        let through = Code::new().at(line).load(variable('h'), 0).load_through(variable(name), &[0], 1);
        under(&[M], through.store_through(variable(name), &[0], &[1]))
    };
    let program = initialised("hab", &[counter(10, 'a').then(counter(20, 'b')), Code::new()]);
    for (options, expected) in [(Options::default(), "a"), (options, "abh")] {
        let analysis = analyse(&options, &program.in_turn());
        assert_eq!(names(&analysis.correlated_set(variable('a').start).expect("it was accessed")), expected);
    }
}

/// Fig. 15: one finding with the whole unit, instead of one for each place.
#[test]
fn one_finding_for_the_buffer() {
    for events in program(18).some_executions(50) {
        let races = races(&Options::default(), &events);
        let [race] = &races[..] else { panic!("{races:?}") };
        assert_eq!(names(&race.members), "no");
        assert_eq!(race.reason, Reason::Unprotected);
        for side in &race.sides {
            let lines: Vec<_> = side.lines.iter().map(|line| line.0 % 100).collect();
            assert!([3, 8, 10, 14].iter().all(|line| lines.contains(line)), "{lines:?}");
        }
    }
}

#[test]
fn reasons() {
    let reason = |test| races(&Options::default(), &program(test).in_turn())[0].reason;
    assert_eq!(reason(14), Reason::Unprotected);
    assert_eq!(reason(15), Reason::Interrupted(M));
    assert_eq!(reason(17), Reason::DifferentLocks);
}

/// Why x and y of Fig. 2 belong together: line 4 compares them.
#[test]
fn the_chain_of_dependences() {
    let races = races(&Options::default(), &program(15).in_turn());
    let link = |line, from, to| Link { dependence: Dependence::Data, line: Line(line), from: Some(from), to: Some(to) };
    assert!(races[0].links.contains(&link(14, variable('x').start, variable('y').start)), "{:?}", races[0].links);
    assert_eq!(races[0].sides[0].lines, [12, 14, 17].map(Line));
}
