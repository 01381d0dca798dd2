//! The systematic searches against brute force: what all schedules of a small program can lead to is what the searches see.

mod model;

use model::{Do, Program, all_outcomes, outcomes_of};
use rashomon_explore::dpor::Dpor;
use rashomon_explore::preemptions::PreemptionBounding;

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
    for most in [0, 1, 2, 32] {
        let (wanted, most_executions, _) = outcomes_of(program, &mut PreemptionBounding::new(most));
        let (remembering, executions, exhaustive) = outcomes_of(program, &mut PreemptionBounding::remembering(most));
        assert!(exhaustive && executions <= most_executions, "{executions} of {most_executions}, {program:?}");
        assert_eq!(remembering, wanted, "states, {most} preemptions, {program:?}");
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

fn guarded(lock: u64, inner: &[Do]) -> Vec<Do> {
    [&[Do::Lock(lock)], inner, &[Do::Unlock(lock)]].concat()
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

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    fn access(&mut self) -> Do {
        if self.below(2) == 0 { Do::Read(self.below(2)) } else { Do::Write(self.below(2)) }
    }

    /// Something that one thread does: an access, a critical section, a try, a wait, a wake-up.
    fn part(&mut self) -> Vec<Do> {
        let lock = self.below(2);
        match self.below(11) {
            0 | 1 => vec![self.access()],
            2 | 3 => guarded(lock, &[self.access()]),
            4 => guarded(lock, &guarded(1 - lock, &[self.access()])),
            5 => vec![Do::Try(lock), self.access(), Do::UnlockTried(lock)],
            // All that wait for a condition give up the same lock (POSIX).
            6 => guarded(lock, &[Do::Wait(lock, lock), self.access()]),
            7 => guarded(lock, &[if self.below(2) == 0 { Do::Signal(lock) } else { Do::Broadcast(lock) }]),
            8 => vec![if self.below(2) == 0 { Do::Signal(lock) } else { Do::Broadcast(lock) }],
            9 => vec![if self.below(2) == 0 { Do::Take(0) } else { Do::Post(0) }],
            _ => vec![Do::LockShared(lock), self.access(), Do::UnlockShared(lock)],
        }
    }

    fn program(&mut self) -> Program {
        let threads = 2 + self.below(3);
        let most = if threads == 2 { 3 } else { 2 };
        (0..threads)
            .map(|_| {
                let parts = if threads == 4 { 1 } else { 1 + self.below(most) };
                (0..parts).flat_map(|_| self.part()).collect()
            })
            .collect()
    }
}

#[test]
fn random_programs() {
    let mut random = Random(1);
    for _ in 0..PROGRAMS {
        check(&random.program());
    }
}

const PROGRAMS: u32 = 1_500;
