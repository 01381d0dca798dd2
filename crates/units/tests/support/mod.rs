//! Small programs as sequences of steps of each thread, and the executions that they have.
#![allow(dead_code, reason = "each test uses a part of it")]

use rashomon_units::{Analysis, Bytes, Event, ExtendedRace, Line, Lock, Meeting, Mode, Object, Options, Register, Step, Thread};
use std::collections::BTreeMap;

pub const MAIN: Thread = Thread(0);
pub const A: Thread = Thread(1);
pub const B: Thread = Thread(2);
pub const M: Lock = Lock(100);
pub const N: Lock = Lock(101);

/// A variable of four bytes.
pub fn variable(name: char) -> Bytes {
    Bytes::new(0x1000 + 16 * u64::from(u32::from(name)), 4)
}

pub fn cell(array: char, index: u32) -> Bytes {
    Bytes::new(0x10_0000 * u64::from(u32::from(array)) + u64::from(index), 1)
}

pub fn registers(numbers: &[u32]) -> &'static [Register] {
    numbers.iter().copied().map(Register).collect::<Vec<_>>().leak()
}

/// Steps of one thread, each with its source line. A step without a line of its own has that of the one before.
#[derive(Clone, Default)]
pub struct Code(pub Vec<(Line, Step<'static>)>);

impl Code {
    pub fn new() -> Code {
        Code::default()
    }

    fn line(&self) -> u32 {
        self.0.last().map_or(0, |(line, _)| line.0)
    }

    /// What follows is at this line.
    pub fn at(mut self, line: u32) -> Code {
        // A step that changes nothing carries the line.
        self.0.push((Line(line), Step::Reach { meeting: Meeting(u32::MAX) }));
        self
    }

    pub fn step(mut self, step: Step<'static>) -> Code {
        let line = Line(self.line());
        self.0.push((line, step));
        self
    }

    pub fn then(mut self, other: Code) -> Code {
        self.0.extend(other.0);
        self
    }

    pub fn load(self, bytes: Bytes, into: u32) -> Code {
        self.step(Step::Load { bytes, address: &[], into: Register(into) })
    }

    pub fn load_through(self, bytes: Bytes, address: &[u32], into: u32) -> Code {
        self.step(Step::Load { bytes, address: registers(address), into: Register(into) })
    }

    pub fn store(self, bytes: Bytes, from: &[u32]) -> Code {
        self.step(Step::Store { bytes, address: &[], from: registers(from) })
    }

    pub fn store_through(self, bytes: Bytes, address: &[u32], from: &[u32]) -> Code {
        self.step(Step::Store { bytes, address: registers(address), from: registers(from) })
    }

    pub fn compute(self, into: u32, from: &[u32]) -> Code {
        self.step(Step::Compute { into: Register(into), from: registers(from) })
    }

    pub fn branch(self, on: &[u32], meeting: u32) -> Code {
        self.step(Step::Branch { on: registers(on), meeting: Meeting(meeting) })
    }

    pub fn reach(self, meeting: u32) -> Code {
        self.step(Step::Reach { meeting: Meeting(meeting) })
    }

    pub fn enter(self, arguments: &[&[u32]]) -> Code {
        let arguments: &'static [&'static [Register]] = arguments.iter().map(|each| registers(each)).collect::<Vec<_>>().leak();
        self.step(Step::Enter { arguments })
    }

    pub fn exit(self, result: &[u32], into: Option<u32>) -> Code {
        self.step(Step::Exit { result: registers(result), into: into.map(Register) })
    }

    pub fn acquire(self, lock: Lock) -> Code {
        self.step(Step::Acquire { lock, mode: Mode::Exclusive })
    }

    pub fn release(self, lock: Lock) -> Code {
        self.step(Step::Release { lock })
    }

    pub fn signal(self, object: u64) -> Code {
        self.step(Step::Signal { object: Object(object) })
    }

    pub fn wait(self, object: u64) -> Code {
        self.step(Step::Wait { object: Object(object) })
    }

    pub fn barrier(self, barrier: u64) -> Code {
        self.step(Step::Arrive { barrier: Object(barrier) }).step(Step::Leave { barrier: Object(barrier) })
    }

    pub fn locked(self, locks: &[Lock], inside: Code) -> Code {
        let taken = locks.iter().fold(self, |code, lock| code.acquire(*lock));
        locks.iter().rev().fold(taken.then(inside), |code, lock| code.release(*lock))
    }
}

/// A program of `main`, which runs `before`, starts the threads, waits for them and runs `after`.
#[derive(Clone, Default)]
pub struct Program {
    pub before: Code,
    pub threads: Vec<Code>,
    pub after: Code,
}

impl Program {
    pub fn new(before: Code, threads: &[Code]) -> Program {
        Program { before, threads: threads.to_vec(), after: Code::new() }
    }

    fn code(&self) -> Vec<Vec<(Line, Step<'static>)>> {
        let children = (1..=self.threads.len() as u32).map(Thread);
        let forks = children.clone().fold(self.before.clone(), |code, child| code.step(Step::Fork { child }));
        let joins = children.fold(forks, |code, child| code.step(Step::Join { child }));
        let main = joins.then(self.after.clone());
        std::iter::once(main.0).chain(self.threads.iter().map(|code| code.0.clone())).collect()
    }

    /// The execution in which the threads run one after the other.
    pub fn in_turn(&self) -> Vec<Event<'static>> {
        let mut found = None;
        self.each_execution(|events| {
            found.get_or_insert_with(|| events.to_vec());
            false
        });
        found.expect("it can be executed")
    }

    /// Executions chosen at random, the same ones each time.
    pub fn some_executions(&self, count: u64) -> Vec<Vec<Event<'static>>> {
        let code = self.code();
        let executions = (0..count).map(|seed| {
            let mut search = Search { positions: vec![0; code.len()], code: &code, done: Vec::new(), count: 0, enough: false };
            let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) + 1;
            loop {
                let runnable: Vec<_> = (0..code.len()).filter(|thread| search.can_step(*thread)).collect();
                if runnable.is_empty() {
                    assert!(search.positions.iter().zip(&code).all(|(position, code)| *position == code.len()), "it got stuck");
                    break search.done;
                }
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let thread = runnable[(state >> 33) as usize % runnable.len()];
                let (line, step) = code[thread][search.positions[thread]];
                search.positions[thread] += 1;
                search.done.push(Event { thread: Thread(thread as u32), line, step });
            }
        });
        executions.collect()
    }

    /// Visits every execution, until the visitor has enough.
    pub fn each_execution(&self, mut visit: impl FnMut(&[Event<'static>]) -> bool) -> usize {
        let code = self.code();
        let mut search = Search { positions: vec![0; code.len()], code: &code, done: Vec::new(), count: 0, enough: false };
        search.go(&mut visit);
        search.count
    }
}

struct Search<'a> {
    code: &'a [Vec<(Line, Step<'static>)>],
    positions: Vec<usize>,
    done: Vec<Event<'static>>,
    count: usize,
    enough: bool,
}

impl Search<'_> {
    fn go(&mut self, visit: &mut impl FnMut(&[Event<'static>]) -> bool) {
        if self.enough {
            return;
        }
        if self.positions.iter().zip(self.code).all(|(position, code)| *position == code.len()) {
            self.count += 1;
            self.enough = !visit(&self.done);
            return;
        }
        // A step that no other thread can tell from nothing needs no alternatives.
        let runnable: Vec<_> = (0..self.code.len()).filter(|thread| self.can_step(*thread)).collect();
        let silent = runnable.iter().copied().find(|thread| self.is_silent(*thread));
        for thread in silent.map_or(runnable, |thread| vec![thread]) {
            let (line, step) = self.code[thread][self.positions[thread]];
            self.positions[thread] += 1;
            self.done.push(Event { thread: Thread(thread as u32), line, step });
            self.go(visit);
            self.done.pop();
            self.positions[thread] -= 1;
        }
    }

    fn is_silent(&self, thread: usize) -> bool {
        let (_, step) = self.code[thread][self.positions[thread]];
        matches!(
            step,
            Step::Enter { .. }
                | Step::Exit { .. }
                | Step::Reach { .. }
                | Step::Branch { .. }
                | Step::Compute { .. }
                | Step::Fork { .. }
        )
    }

    fn can_step(&self, thread: usize) -> bool {
        let started =
            thread == 0 || self.done.iter().any(|event| matches!(event.step, Step::Fork { child } if child.0 as usize == thread));
        let Some((_, step)) = self.code[thread].get(self.positions[thread]) else { return false };
        started
            && match step {
                Step::Join { child } => self.positions[child.0 as usize] == self.code[child.0 as usize].len(),
                Step::Acquire { lock, .. } => self.held(*lock) == 0,
                Step::Wait { object } => self.done(|step| matches!(step, Step::Signal { object: other } if other == object)) > 0,
                Step::Leave { barrier } => {
                    let arrives = |step: &Step<'_>| matches!(step, Step::Arrive { barrier: other } if other == barrier);
                    let arrivals = |thread: usize| {
                        self.code[thread][..self.positions[thread]].iter().filter(|(_, step)| arrives(step)).count()
                    };
                    let takes_part = |thread: &usize| self.code[*thread].iter().any(|(_, step)| arrives(step));
                    (0..self.code.len()).filter(takes_part).all(|other| arrivals(other) >= arrivals(thread))
                }
                _ => true,
            }
    }

    fn done(&self, which: impl Fn(&Step<'_>) -> bool) -> usize {
        self.done.iter().filter(|event| which(&event.step)).count()
    }

    fn held(&self, lock: Lock) -> usize {
        self.done(|step| matches!(step, Step::Acquire { lock: other, .. } if *other == lock))
            - self.done(|step| matches!(step, Step::Release { lock: other } if *other == lock))
    }
}

/// The races of an execution. Variables that several threads access are known beforehand, as §3.2 assumes.
pub fn races(options: &Options, events: &[Event<'_>]) -> Vec<ExtendedRace> {
    let analysis = analyse(options, events);
    assert_eq!(analysis.summary().steps_out_of_place, 0);
    analysis.races()
}

pub fn analyse(options: &Options, events: &[Event<'_>]) -> Analysis {
    let mut sharing = rashomon_units::Sharing::new(1 << 16, 1 << 16);
    events.iter().for_each(|event| sharing.event(event));
    let mut analysis = Analysis::new(options.clone());
    sharing.shared().into_iter().for_each(|range| analysis.share(range));
    events.iter().for_each(|event| analysis.event(event));
    analysis
}

/// In how many of some executions there is a race, and the largest number of races in one.
pub fn count_some(options: &Options, program: &Program, executions: u64) -> (usize, usize) {
    let all = program.some_executions(executions);
    let counts: Vec<_> = all.iter().map(|events| races(options, events).len()).collect();
    (counts.iter().filter(|count| **count > 0).count(), counts.into_iter().max().unwrap_or(0))
}

/// In how many executions of how many there is a race.
pub fn count(options: &Options, program: &Program) -> (usize, usize) {
    let mut racy = 0;
    let all = program.each_execution(|events| {
        racy += usize::from(!races(options, events).is_empty());
        true
    });
    (racy, all)
}

/// Names of the variables of a set.
pub fn names(members: &[Bytes]) -> String {
    let mut names = BTreeMap::new();
    for range in members {
        for address in range.start..range.end() {
            let name = ('A'..='z').find(|name| (variable(*name).start..variable(*name).end()).contains(&address));
            let array = ('A'..='z').find(|name| (cell(*name, 0).start..cell(*name, 0x1000).start).contains(&address));
            names.insert(name.or(array).unwrap_or('?'), ());
        }
    }
    names.into_keys().collect()
}

pub mod figures;
