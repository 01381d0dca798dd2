//! The systematic searches against brute force: what all schedules of a small program can lead to is what the searches see.

mod model;

use model::random::{Random, guarded};
use model::{Do, Program, Wishes, all_outcomes, finds_race, has_race, outcomes_of};
use rashomon_explore::beside::Beside;
use rashomon_explore::dpor::Dpor;
use rashomon_explore::preemptions::{PreemptionBounding, UNBOUNDED};
use std::collections::BTreeSet;

/// Executions of DPOR, and of the search without reduction where the program is small enough for it.
fn check(program: &Program) -> (u32, Option<u32>) {
    let wanted = all_outcomes(program);
    let (reduced, few, exhaustive) = outcomes_of(program, &mut Dpor::new());
    assert!(exhaustive, "{program:?}");
    assert_eq!(reduced, wanted, "DPOR, {program:?}");
    if program.iter().map(Vec::len).sum::<usize>() > 7 {
        return (few, None);
    }
    let (bounded, many, exhaustive) = outcomes_of(program, &mut PreemptionBounding::new(32));
    assert!(exhaustive, "{program:?}");
    assert_eq!(bounded, wanted, "preemption bounding, {program:?}");
    for most in [0, 1, 2, 32, UNBOUNDED] {
        let (wanted, most_executions, _) = outcomes_of(program, &mut PreemptionBounding::new(most));
        let (remembering, executions, exhaustive) = outcomes_of(program, &mut PreemptionBounding::remembering(most));
        assert!(exhaustive && executions <= most_executions, "{executions} of {most_executions}, {program:?}");
        assert_eq!(remembering, wanted, "states, {most} preemptions, {program:?}");
        let mut parts = BTreeSet::new();
        for index in 0..3 {
            let part = &mut PreemptionBounding::remembering(most).part((index, 3));
            let (reached, of_part, exhaustive) = outcomes_of(program, part);
            assert!(exhaustive && of_part <= executions, "{of_part} of {executions}, {program:?}");
            parts.extend(reached);
        }
        assert_eq!(parts, wanted, "all parts, {most} preemptions, {program:?}");
        let (beside, _, exhaustive) = outcomes_of(program, &mut Beside::new(most, 1));
        assert!(exhaustive && beside == wanted, "beside steering, {most} preemptions, {program:?}");
    }
    (few, Some(many))
}

fn bodies(alphabet: &[Do], length: u32) -> Vec<Vec<Do>> {
    let digit = |number: usize, place: u32| alphabet[number / alphabet.len().pow(place) % alphabet.len()];
    (0..alphabet.len().pow(length)).map(|number| (0..length).map(|place| digit(number, place)).collect()).collect()
}

/// All pairs of threads with three accesses, all triples with one or two.
#[test]
fn accesses() {
    let alphabet = [Do::Read(0), Do::Write(0), Do::Write(1)];
    let mut executions = (0, 0);
    let three = bodies(&alphabet, 3);
    for one in &three {
        for other in &three {
            let (few, many) = check(&vec![one.clone(), other.clone()]);
            executions = (executions.0 + few, executions.1 + many.unwrap());
        }
    }
    assert!(executions.0 * 2 < executions.1, "reduction saves nothing: {executions:?}");
    for one in bodies(&alphabet, 2) {
        for other in bodies(&alphabet, 2) {
            for third in bodies(&alphabet, 1) {
                check(&vec![one.clone(), other.clone(), third]);
            }
        }
    }
}

#[test]
fn deadlocks_and_what_locks_protect() {
    let nested = |one: u64, other: u64| guarded(one, &guarded(other, &[Do::Write(0)]));
    let programs = [
        vec![nested(0, 1), nested(1, 0)],
        vec![nested(0, 1), nested(1, 2), nested(2, 0)],
        vec![guarded(0, &[Do::Read(0), Do::Write(0)]), guarded(0, &[Do::Read(0), Do::Write(0)]), vec![Do::Write(0)]],
        vec![guarded(0, &[Do::Write(0)]), guarded(1, &[Do::Read(0)]), guarded(0, &[Do::Write(1)])],
        // A critical section that touches nothing of others is passed over by a race behind it.
        vec![vec![Do::Write(0)], guarded(0, &[Do::Read(0)]), vec![Do::Read(0)]],
    ];
    programs.iter().for_each(|program| {
        check(program);
    });
}

#[test]
fn lost_wake_ups() {
    let wait = || guarded(0, &[Do::Read(0), Do::Wait(0, 0), Do::Read(0)]);
    let programs = [
        vec![wait(), guarded(0, &[Do::Write(0), Do::Signal(0)])],
        vec![wait(), vec![Do::Write(0), Do::Signal(0)]],
        vec![wait(), wait(), vec![Do::Broadcast(0)]],
        vec![wait(), wait(), guarded(0, &[Do::Signal(0)]), vec![Do::Signal(0)]],
        vec![vec![Do::Take(0), Do::Write(0)], vec![Do::Take(0), Do::Write(0)], vec![Do::Post(0), Do::Read(0), Do::Post(0)]],
        vec![vec![Do::Join(1), Do::Read(0)], vec![Do::Write(0)], vec![Do::Write(0)]],
    ];
    programs.iter().for_each(|program| {
        check(program);
    });
}

#[test]
fn random_programs() {
    let mut random = Random(1);
    for _ in 0..PROGRAMS {
        check(&random.program());
    }
}

/// Two conflicting accesses side by side are found by the search of all schedules, and by those that leave schedules out, exactly
/// where there are any: with one thread held, as in the search for witnesses, and with none; with a preferred thread, and with
/// none.
#[test]
fn accesses_side_by_side() {
    let mut random = Random(2);
    let mut numbers = (0, 0, 0, 0);
    for _ in 0..PROGRAMS {
        let program = random.program();
        let small = program.iter().map(Vec::len).sum::<usize>() <= 7;
        for hold in [None, Some(0)] {
            let wanted = has_race(&program, hold);
            for prefer in [None, Some(1)] {
                let wishes = Wishes { hold, prefer, races: true };
                let (found, few, all) = finds_race(&program, &mut Dpor::new(), wishes);
                assert!(found == wanted && (found || all), "DPOR, {wishes:?}, {program:?}");
                if !small {
                    continue;
                }
                for most in [0, 1, 2, 32, UNBOUNDED] {
                    let (without, many, _) = finds_race(&program, &mut PreemptionBounding::new(most), wishes);
                    let (with, states, all) = finds_race(&program, &mut PreemptionBounding::remembering(most), wishes);
                    assert!(with == without && (with || all), "states, {most} preemptions, {wishes:?}, {program:?}");
                    if most == 32 {
                        assert_eq!(without, wanted, "all schedules, {wishes:?}, {program:?}");
                        let sums = (few, states, many, 1);
                        numbers = (numbers.0 + sums.0, numbers.1 + sums.1, numbers.2 + sums.2, numbers.3 + sums.3);
                    }
                }
            }
        }
    }
    let (dpor, states, all, searches) = numbers;
    assert!(searches > 500 && dpor * 2 < all && states * 2 < all, "the reductions save nothing: {numbers:?}");
}

const PROGRAMS: u32 = 1_500;
