//! Tests 0-13 of Table 2, in every execution that they have.

use crate::support::{A, B, Code, M, N, Program, count, variable};
use rashomon_units::{Analysis, Detection, Options, Overwriting, SharedDependences};

fn inc(line: u32) -> Code {
    Code::new().at(line).enter(&[]).load(variable('x'), 0).store(variable('x'), &[0]).exit(&[], None)
}

fn read(line: u32) -> Code {
    Code::new().at(line).enter(&[]).load(variable('x'), 0).exit(&[], None)
}

fn write(line: u32) -> Code {
    Code::new().at(line).enter(&[]).store(variable('x'), &[]).exit(&[], None)
}

/// Main initialises the variable, as any program does.
fn two(a: Code, b: Code) -> Program {
    assert_eq!((A.0, B.0), (1, 2));
    Program::new(Code::new().at(1).store(variable('x'), &[]), &[a, b])
}

fn program(test: u32) -> Program {
    let under = |locks, code| Code::new().locked(locks, code);
    match test {
        0 => two(inc(10), inc(20)),
        1 => two(read(10), inc(20)),
        2 => two(read(10), read(20)),
        3 => two(under(&[M], inc(10)), under(&[M], inc(20))),
        4 => two(write(10), write(20)),
        5 => two(under(&[M], inc(10)).then(under(&[M], inc(11))), under(&[M], inc(20))),
        6 => two(under(&[M, N], inc(10)), under(&[M], inc(20))),
        7 => two(under(&[M], inc(10)), under(&[N], inc(20))),
        8 => two(under(&[M], inc(10)).then(under(&[N], inc(11))), under(&[M], inc(20))),
        9 => two(inc(10).signal(1), Code::new().wait(1).then(inc(20))),
        10 => two(under(&[M], inc(10)).signal(1), under(&[M], inc(20)).wait(1).then(inc(21))),
        11 => two(under(&[M], inc(10)).signal(1).then(read(11)), under(&[M], inc(20)).wait(1).then(read(21))),
        12 => two(under(&[M], inc(10)).signal(1).wait(2).then(read(11)), under(&[M], inc(20)).signal(2).wait(1).then(read(21))),
        13 => two(under(&[M], inc(10)).barrier(3).then(read(11)), under(&[M], inc(20)).barrier(3).then(read(21))),
        _ => unreachable!(),
    }
}

/// In how many executions a race is found.
fn found(test: u32, detection: Detection, overwriting: Overwriting) -> (usize, usize) {
    count(&Options { detection, overwriting, ..Options::default() }, &program(test))
}

/// The column *Expected*.
fn expected(test: u32) -> bool {
    matches!(test, 0 | 1 | 4 | 7 | 8 | 11)
}

#[test]
fn pairs_give_the_expected_column_in_every_execution() {
    for test in 0..=13 {
        let (racy, all) = found(test, Detection::Pairs, Overwriting::Replaces);
        assert!(all > 0);
        assert_eq!(racy, if expected(test) { all } else { 0 }, "test {test}");
    }
}

/// Test 4 is the paper's known failure: overwriting with a value that depends on nothing makes a new set, which the other
/// thread's access does not belong to.
#[test]
fn states_give_the_detected_column() {
    for test in 0..=13 {
        let (racy, all) = found(test, Detection::States, Overwriting::Replaces);
        match test {
            4 => assert_eq!(racy, 0, "what the paper fails to find"),
            // Not in every execution: an ordered read makes the set exclusive again, and what it forgets is the write that the
            // other thread's read races with.
            11 => assert_eq!((racy, all), (80, 86)),
            _ => assert_eq!(racy, if expected(test) { all } else { 0 }, "test {test}"),
        }
    }
}

/// The remedy that §5.1 names: the old set of what is overwritten merges with that of the new value.
#[test]
fn merging_what_is_overwritten_finds_test_4() {
    for test in 0..=13 {
        let (racy, all) = found(test, Detection::States, Overwriting::MergesIfShared);
        match test {
            11 => assert_eq!((racy, all), (80, 86)),
            _ => assert_eq!(racy, if expected(test) { all } else { 0 }, "test {test}"),
        }
    }
}

/// Main initialises the variable, so it is shared by the time a thread reads it back; nothing has to be known beforehand.
#[test]
fn without_knowing_what_is_shared_the_columns_are_the_same() {
    for test in 0..=13 {
        for detection in [Detection::Pairs, Detection::States] {
            let options = Options { detection, ..Options::default() };
            let mut racy = 0;
            program(test).each_execution(|events| {
                let mut analysis = Analysis::new(options.clone());
                events.iter().for_each(|event| analysis.event(event));
                racy += usize::from(!analysis.races().is_empty());
                true
            });
            assert_eq!(racy, found(test, detection, Overwriting::Replaces).0, "test {test}");
        }
    }
}

/// Increments in a loop, whose iterations the loop's condition and its counter relate: reading the variable again ends the unit
/// that wrote it, whether or not the other thread has written in between.
#[test]
fn loops_of_increments_are_no_false_positive() {
    let thread = |line| {
        let iteration = |code: Code| code.branch(&[1], 9).locked(&[M], inc(line)).compute(1, &[1]);
        iteration(iteration(Code::new().compute(1, &[]))).branch(&[1], 9).reach(9)
    };
    let inline = |line| {
        let body = Code::new().at(line).load(variable('x'), 0).store(variable('x'), &[0]);
        let iteration = |code: Code| code.branch(&[1], 9).locked(&[M], body.clone()).compute(1, &[1]);
        iteration(iteration(Code::new().compute(1, &[]))).branch(&[1], 9).reach(9)
    };
    for program in [two(thread(10), thread(20)), two(inline(10), inline(20))] {
        for detection in [Detection::Pairs, Detection::States] {
            let (racy, all) = count(&Options { detection, ..Options::default() }, &program);
            assert!(racy == 0 && all > 5, "{racy} of {all}");
        }
    }
}

/// Why shared dependences end units by default: two increments in one function would be one unit, which gives its lock back.
#[test]
fn shared_dependences_within_a_function_make_test_5_a_false_positive() {
    let one_function = |steps: Code| Code::new().enter(&[]).then(steps).exit(&[], None);
    let inc = |line| Code::new().at(line).load(variable('x'), 0).store(variable('x'), &[0]);
    let twice = one_function(Code::new().locked(&[M], inc(10)).locked(&[M], inc(11)));
    let program = two(twice, Code::new().locked(&[M], inc(20)));
    for (shared_dependences, expected) in [(SharedDependences::Close, false), (SharedDependences::WithinFunction, true)] {
        let (racy, all) = count(&Options { shared_dependences, ..Options::default() }, &program);
        // Unless the other thread's increment comes between the two: then the second reads what the other wrote.
        assert_eq!(racy, if expected { all - 1 } else { 0 });
    }
}
