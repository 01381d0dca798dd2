//! Declared sets, readers' locks, atomic instructions, barriers, copies, bounds.

use crate::support::figures::{inc, scale_vector};
use crate::support::{A, B, Code, M, N, Program, cell, count, count_some, names, races, variable};
use rashomon_units::{Analysis, Bytes, Event, Limits, Line, Lock, LockSet, Mode, Object, Options, Reason, Sharing, Step, Thread};

fn run(analysis: &mut Analysis, thread: Thread, code: Code) {
    for (line, step) in code.0 {
        analysis.event(&Event { thread, line, step });
    }
}

fn set(analysis: &Analysis, name: char) -> String {
    names(&analysis.correlated_set(variable(name).start).expect("it was accessed"))
}

#[test]
fn declared_sets_stay_what_they_are() {
    let (x, y, z) = (variable('x'), variable('y'), variable('z'));
    let mut analysis = Analysis::new(Options::default());
    analysis.declare(&[x, y]);
    run(&mut analysis, A, Code::new().load(x, 0).load(z, 1).compute(2, &[0, 1]).store(y, &[]).store(z, &[0]));
    assert_eq!((set(&analysis, 'x'), set(&analysis, 'z')), ("xy".to_owned(), "z".to_owned()));
}

/// Two blind writes of a structure, each under a lock of its own: nothing depends on anything, so only the declaration tells.
#[test]
fn declared_sets_are_judged() {
    let thread = |line: u32| {
        let write = |name, line| Code::new().at(line).store(variable(name), &[]);
        Code::new().locked(&[M], write('x', line)).locked(&[N], write('y', line + 1))
    };
    let events = Program::new(Code::new(), &[thread(10), thread(20)]).in_turn();
    for (declared, infer_sets, expected) in [(true, true, true), (true, false, true), (false, true, false), (false, false, false)]
    {
        let mut analysis = Analysis::new(Options { infer_sets, ..Options::default() });
        if declared {
            analysis.declare(&[variable('x'), variable('y')]);
        }
        events.iter().for_each(|event| analysis.event(event));
        let races = analysis.races();
        assert_eq!(!races.is_empty(), expected);
        assert!(races.iter().all(|race| race.reason == Reason::DifferentLocks && names(&race.members) == "xy"), "{races:?}");
    }
}

#[test]
fn without_inference_sets_are_single_locations() {
    let mut analysis = Analysis::new(Options { infer_sets: false, ..Options::default() });
    run(&mut analysis, A, scale_vector(10, true));
    assert_eq!(set(&analysis, 'x'), "x");
    // Units are inferred all the same.
    assert_eq!(analysis.writer(variable('x').start), analysis.writer(variable('y').start));
}

/// What one analysis inferred, another one judges from the beginning.
#[test]
fn inferred_sets_can_be_declared() {
    let (x, y) = (variable('x'), variable('y'));
    // That x and y belong together shows only behind both writes, when one is overwritten with the other.
    let both = Code::new().at(30).load(x, 0).store(y, &[0]);
    let before = Code::new().store(x, &[]).store(y, &[]);
    let one = Code::new().locked(&[M], Code::new().at(10).store(x, &[]));
    let other = Code::new().locked(&[N], Code::new().at(20).store(y, &[]));
    let program = Program { after: both, ..Program::new(before, &[one, other]) };
    let events = program.in_turn();
    assert!(races(&Options::default(), &events).is_empty(), "no pair of theirs was judged again");
    let inferred = crate::support::analyse(&Options::default(), &events).correlated_sets();
    assert_eq!(inferred, vec![vec![x, y]]);
    let mut analysis = Analysis::new(Options::default());
    inferred.iter().for_each(|set| analysis.declare(set));
    [x, y].into_iter().for_each(|range| analysis.share(range));
    events.iter().for_each(|event| analysis.event(event));
    assert_eq!(analysis.races().iter().map(|race| names(&race.members)).collect::<Vec<_>>(), ["xy"]);
}

/// Two variables side by side are one range, and two members all the same.
#[test]
fn neighbours_are_members_of_a_set() {
    let (a, b) = (Bytes::new(0x1000, 4), Bytes::new(0x1004, 4));
    let both = |line| Code::new().at(line).load(a, 0).load(b, 1).compute(2, &[0, 1]).branch(&[2], 1).reach(1);
    let initial = Code::new().store(a, &[]).store(b, &[]);
    let program = Program::new(initial, &[both(10), both(20)]);
    let inferred = crate::support::analyse(&Options::default(), &program.in_turn()).correlated_sets();
    assert_eq!(inferred, vec![vec![Bytes::new(0x1000, 8)]]);
    let alone = |line| Code::new().at(line).load(a, 0).branch(&[0], 1).reach(1);
    let program = Program::new(Code::new().store(a, &[]), &[alone(10), alone(20)]);
    assert!(crate::support::analyse(&Options::default(), &program.in_turn()).correlated_sets().is_empty());
}

#[test]
fn readers_exclude_writers_only() {
    let under = |mode, code: Code| Code::new().step(Step::Acquire { lock: M, mode }).then(code).release(M);
    let initial = Code::new().store(variable('x'), &[]);
    let read = Code::new().at(20).load(variable('x'), 0);
    for (mode, other, racy) in [
        (Mode::Exclusive, under(Mode::Shared, read.clone()), false),
        (Mode::Shared, under(Mode::Shared, read), true),
        (Mode::Shared, under(Mode::Shared, inc(30, 'x')), true),
    ] {
        let program = Program::new(initial.clone(), &[under(mode, inc(10, 'x')), other]);
        for detection in [rashomon_units::Detection::Pairs, rashomon_units::Detection::States] {
            assert_eq!(!races(&Options { detection, ..Options::default() }, &program.in_turn()).is_empty(), racy);
        }
    }
}

/// An atomic increment is one critical section; a load and a store are two.
#[test]
fn atomic_instructions_exclude_each_other() {
    let x = variable('x');
    let lock = Lock::of_atomic(x);
    let initial = Code::new().store(x, &[]);
    let whole = |line| Code::new().locked(&[lock], inc(line, 'x'));
    let halves = |line| {
        let load = Code::new().at(line).load(x, 0);
        Code::new().locked(&[lock], load).locked(&[lock], Code::new().at(line + 1).store(x, &[0]))
    };
    let (racy, _) = count(&Options::default(), &Program::new(initial.clone(), &[whole(10), whole(20)]));
    assert_eq!(racy, 0);
    let (racy, all) = count(&Options::default(), &Program::new(initial, &[halves(10), halves(20)]));
    assert_eq!(racy, all);
}

/// Two generations of one barrier: the second orders what the first does not.
#[test]
fn barriers_have_generations() {
    let (x, y) = (variable('x'), variable('y'));
    let initial = Code::new().store(x, &[]).store(y, &[]);
    let one = Code::new().at(10).store(x, &[]).barrier(1).at(11).store(y, &[]).barrier(1);
    let other = Code::new().at(20).barrier(1).load(x, 0).barrier(1).load(y, 1);
    assert_eq!(count_some(&Options::default(), &Program::new(initial.clone(), &[one.clone(), other]), 200).0, 0);
    // Reading y one generation too early.
    let early = Code::new().at(20).barrier(1).load(y, 0).barrier(1).load(x, 1);
    assert_eq!(count_some(&Options::default(), &Program::new(initial, &[one, early]), 200).0, 200);
}

#[test]
fn a_barrier_that_was_not_entered_is_counted() {
    let mut analysis = Analysis::new(Options::default());
    run(&mut analysis, A, Code::new().step(Step::Leave { barrier: Object(1) }));
    assert_eq!(analysis.summary().steps_out_of_place, 1);
}

/// A copied structure is not one value: each part of the copy belongs to its original.
#[test]
fn copies_are_made_location_by_location() {
    let mut analysis = Analysis::new(Options::default());
    let code = Code::new().store(Bytes::new(0x1000, 4), &[]).store(Bytes::new(0x1004, 4), &[]);
    run(&mut analysis, A, code.step(Step::Copy { from: 0x1000, to: 0x2002, len: 8 }));
    let set = |address| analysis.correlated_set(address);
    assert_eq!(set(0x1000), Some(vec![Bytes::new(0x1000, 4), Bytes::new(0x2002, 4)]));
    assert_eq!(set(0x2009), Some(vec![Bytes::new(0x1004, 4), Bytes::new(0x2006, 4)]));
}

#[test]
fn overlapping_copies_read_before_they_write() {
    let mut analysis = Analysis::new(Options::default());
    let code = Code::new().store(Bytes::new(0x1000, 4), &[]).store(Bytes::new(0x1004, 4), &[]);
    run(&mut analysis, A, code.step(Step::Copy { from: 0x1000, to: 0x1004, len: 8 }));
    assert_eq!(analysis.correlated_set(0x1000), Some(vec![Bytes::new(0x1000, 8)]));
    assert_eq!(analysis.correlated_set(0x1008), Some(vec![Bytes::new(0x1008, 4)]));
}

#[test]
fn filling_correlates_nothing() {
    let mut analysis = Analysis::new(Options::default());
    let code = Code::new().load(cell('a', 0), 0).load(cell('a', 1), 1).compute(2, &[0, 1]);
    run(&mut analysis, A, code.step(Step::Fill { bytes: Bytes::new(cell('a', 0).start, 2), from: &[] }));
    assert_eq!(analysis.correlated_set(cell('a', 0).start), Some(vec![cell('a', 0)]));
}

/// Another life of an address is another variable: neither shared, nor in a set, nor raced with.
#[test]
fn memory_is_used_again() {
    let (x, y) = (variable('x'), variable('y'));
    let mut analysis = Analysis::new(Options::default());
    run(&mut analysis, A, Code::new().at(1).load(x, 0).store(y, &[0]));
    run(&mut analysis, A, Code::new().step(Step::Renew { start: x.start, len: 4 }));
    assert_eq!(analysis.correlated_set(x.start), None);
    assert_eq!(set(&analysis, 'y'), "y");
    run(&mut analysis, B, Code::new().at(2).store(x, &[]));
    assert!(analysis.races().is_empty());
    assert_eq!(set(&analysis, 'x'), "x");
}

/// Parts of a location go on with the history of the whole.
#[test]
fn locations_are_split() {
    let mut analysis = Analysis::new(Options::default());
    run(&mut analysis, A, Code::new().at(1).store(Bytes::new(0x1000, 8), &[]));
    run(&mut analysis, B, Code::new().at(2).load(Bytes::new(0x1002, 2), 0));
    let [race] = &analysis.races()[..] else { panic!() };
    assert_eq!(race.members, [Bytes::new(0x1002, 2)], "the rest is exclusive");
    assert_eq!(analysis.correlated_set(0x1000), Some(vec![Bytes::new(0x1000, 8)]));
}

#[test]
fn sharing_is_found_byte_by_byte() {
    let mut sharing = Sharing::new(16, 64);
    let mut access = |thread, start, len| {
        sharing.event(&Event {
            thread,
            line: Line(0),
            step: Step::Store { bytes: Bytes::new(start, len), address: &[], from: &[] },
        });
    };
    access(A, 0x1000, 8);
    access(B, 0x1006, 4);
    access(B, 0x2000, 8);
    sharing.event(&Event { thread: B, line: Line(0), step: Step::Renew { start: 0x2000, len: 8 } });
    let mut access = |thread, start, len| {
        sharing.event(&Event {
            thread,
            line: Line(0),
            step: Step::Store { bytes: Bytes::new(start, len), address: &[], from: &[] },
        });
    };
    access(A, 0x2000, 8);
    assert_eq!(sharing.shared(), [Bytes::new(0x1006, 2)]);
}

/// What is beyond a bound is counted, and nothing is kept for it.
#[test]
fn bounds_are_kept() {
    let limits = Limits { locations: 2, range: 8, threads: 1, registers: 2, ..Limits::default() };
    let mut analysis = Analysis::new(Options { limits, ..Options::default() });
    run(&mut analysis, A, Code::new().load(cell('a', 0), 0).load(cell('a', 1), 1).load(cell('a', 2), 0).load(cell('a', 3), 5));
    run(&mut analysis, B, Code::new().load(cell('a', 0), 0));
    run(&mut analysis, A, Code::new().enter(&[]).enter(&[]).exit(&[], None).exit(&[], None));
    run(
        &mut analysis,
        A,
        Code::new().step(Step::Load { bytes: Bytes::new(0x1000, u32::MAX), address: &[], into: rashomon_units::Register(0) }),
    );
    let summary = analysis.summary();
    assert_eq!(summary.events_of_further_threads, 1);
    assert_eq!(summary.steps_out_of_place, 0);
    assert!(summary.accesses_left_out >= 3 && summary.values_left_out >= 3, "{summary:?}");
    assert_eq!(analysis.correlated_set(cell('a', 2).start), None);
}

/// The ends of the address space are addresses like others.
#[test]
fn the_ends_of_the_address_space() {
    let mut analysis = Analysis::new(Options::default());
    for start in [0, u64::MAX - 3, u64::MAX] {
        let bytes = Bytes::new(start, 16);
        run(&mut analysis, A, Code::new().store(bytes, &[]).load(bytes, 0));
        run(&mut analysis, A, Code::new().step(Step::Copy { from: start, to: u64::MAX - 1, len: 16 }));
        run(&mut analysis, A, Code::new().step(Step::Renew { start, len: u64::MAX }));
    }
    let mut sharing = Sharing::new(16, 64);
    sharing.event(&Event { thread: A, line: Line(0), step: Step::Renew { start: u64::MAX, len: u64::MAX } });
    assert!(sharing.shared().is_empty());
}

/// A long loop over a few variables needs memory for these, not for its iterations.
#[test]
fn memory_does_not_grow_with_the_execution() {
    let limits = Limits { slack: 64, ..Limits::default() };
    let mut analysis = Analysis::new(Options { limits, ..Options::default() });
    run(&mut analysis, A, Code::new().enter(&[]));
    for _ in 0..20_000 {
        run(&mut analysis, A, Code::new().branch(&[2], 1).locked(&[M], inc(10, 'x')).compute(2, &[]));
        run(&mut analysis, B, Code::new().locked(&[M], scale_vector(20, false)));
    }
    assert_eq!(analysis.candidates(variable('x').start), LockSet::These(vec![(M, Mode::Exclusive)]));
    let kept = analysis.kept();
    assert!(kept < 2_000, "{kept} units, sets and moments");
}

/// L_u shrinks by an access to one set; the race is on another one, which the unit does not access again.
#[test]
fn what_shrinks_the_locks_of_a_unit_is_judged_in_all_its_sets() {
    let (x, y) = (variable('x'), variable('y'));
    let initial = Code::new().store(x, &[]).store(y, &[]);
    // One unit, because a branch on nothing that was loaded decides about both.
    let both =
        |code: Code| code.branch(&[], 1).locked(&[M], Code::new().at(10).store(x, &[])).locked(&[N], Code::new().store(y, &[]));
    let other = Code::new().locked(&[M], Code::new().at(20).store(x, &[]));
    let program = Program::new(initial, &[other, both(Code::new()).reach(1)]);
    let events = program.in_turn();
    let races = races(&Options::default(), &events);
    assert_eq!(races.iter().map(|race| names(&race.members)).collect::<Vec<_>>(), ["x"]);
    assert_eq!(races[0].reason, Reason::Unprotected);
}
