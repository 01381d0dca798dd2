//! All schedules of a small program, state by state: what a correct exploration has to reach.
//!
//! It knows nothing of exploration but what its documentation says of the program's world: nobody wakes up by himself, a signal
//! lets out who waits longest, and a sleep may end at any time.

use super::program::{Do, LOCKS, Program, VARIABLES};
use std::collections::{BTreeSet, HashSet};

/// Who was about to end the process, and what it saw and those whose ends it knows of, as the program writes it; or who is left
/// where nobody can go on. One execution may lead to several.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    Ended(String),
    Blocked(BTreeSet<usize>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Phase {
    Unborn,
    Ready,
    Waits,
    /// Was let out of a condition, and needs the mutex.
    Woken,
    /// Is about to end the process.
    Ends,
    Ended,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct State {
    at: Vec<usize>,
    phases: Vec<Phase>,
    saw: Vec<Vec<i32>>,
    /// Whose ends each knows of.
    joined: Vec<BTreeSet<usize>>,
    plain: [i32; VARIABLES],
    atomic: [i32; VARIABLES],
    holders: [Option<usize>; LOCKS],
    waiting: [Vec<usize>; LOCKS],
    readers: BTreeSet<usize>,
    writer: Option<usize>,
    posted: u32,
}

impl State {
    fn new(program: &Program) -> Self {
        let count = program.threads.len();
        let mut phases = vec![Phase::Unborn; count];
        phases[0] = Phase::Ready;
        Self {
            at: vec![0; count],
            phases,
            saw: vec![Vec::new(); count],
            joined: vec![BTreeSet::new(); count],
            plain: [0; VARIABLES],
            atomic: [0; VARIABLES],
            holders: [None; LOCKS],
            waiting: Default::default(),
            readers: BTreeSet::new(),
            writer: None,
            posted: 0,
        }
    }

    fn can_go_on(&self, program: &Program, thread: usize) -> bool {
        match (self.phases[thread], program.threads[thread].get(self.at[thread])) {
            (Phase::Unborn | Phase::Waits | Phase::Ends | Phase::Ended, _) => false,
            (Phase::Woken, Some(Do::Wait(lock))) | (_, Some(Do::Lock(lock))) => self.holders[*lock].is_none(),
            (_, Some(Do::ReadLock)) => self.writer.is_none(),
            (_, Some(Do::WriteLock)) => self.writer.is_none() && self.readers.is_empty(),
            (_, Some(Do::Take)) => self.posted > 0,
            (_, Some(Do::Join(child))) => self.phases[*child] == Phase::Ended,
            _ => true,
        }
    }

    /// What a thread writes that is about to end the process; that is part of its step before.
    fn tell(&mut self, program: &Program, thread: usize, found: &mut BTreeSet<Outcome>) {
        let next = program.threads[thread].get(self.at[thread]);
        let ends = matches!(next, Some(Do::EndProcess)) || thread == 0 && next.is_none();
        if ends {
            self.phases[thread] = Phase::Ends;
            let is_known = |other: &usize| *other == thread || self.joined[thread].contains(other);
            let of = |other: usize| {
                let values: String = self.saw[other].iter().map(|value| format!(",{value}")).collect();
                format!(" t{other}{values}")
            };
            let known: String = (0..self.at.len()).filter(is_known).map(of).collect();
            found.insert(Outcome::Ended(format!("{thread}{known}")));
        }
    }

    fn let_out(&mut self, lock: usize, most: usize) {
        let count = most.min(self.waiting[lock].len());
        let out: Vec<usize> = self.waiting[lock].drain(..count).collect();
        out.into_iter().for_each(|thread| self.phases[thread] = Phase::Woken);
    }

    fn step(&mut self, program: &Program, thread: usize, found: &mut BTreeSet<Outcome>) {
        let body = &program.threads[thread];
        let at = self.at[thread];
        match body.get(at).copied() {
            None | Some(Do::EndThread) => self.phases[thread] = Phase::Ended,
            Some(Do::Read(variable)) => self.saw[thread].push(self.plain[variable]),
            Some(Do::Write(variable)) => self.plain[variable] = Program::value(thread, at),
            Some(Do::Add(variable)) => {
                self.saw[thread].push(self.atomic[variable]);
                self.atomic[variable] += 1;
            }
            Some(Do::Lock(lock)) => self.holders[lock] = Some(thread),
            Some(Do::Try(lock)) => {
                let free = self.holders[lock].is_none();
                self.saw[thread].push(i32::from(free));
                if free {
                    self.holders[lock] = Some(thread);
                }
            }
            Some(Do::Unlock(lock) | Do::UnlockTried(lock)) => self.holders[lock] = None,
            Some(Do::ReadLock) => drop(self.readers.insert(thread)),
            Some(Do::WriteLock) => self.writer = Some(thread),
            Some(Do::UnlockBoth) => {
                self.readers.remove(&thread);
                self.writer = self.writer.filter(|writer| *writer != thread);
            }
            Some(Do::Wait(lock)) if self.phases[thread] == Phase::Ready => {
                self.holders[lock] = None;
                self.waiting[lock].push(thread);
                self.phases[thread] = Phase::Waits;
                return;
            }
            Some(Do::Wait(lock)) => {
                self.holders[lock] = Some(thread);
                self.phases[thread] = Phase::Ready;
            }
            Some(Do::Signal(lock)) => self.let_out(lock, 1),
            Some(Do::Broadcast(lock)) => self.let_out(lock, usize::MAX),
            Some(Do::Take) => self.posted -= 1,
            Some(Do::TryTake) => {
                self.saw[thread].push(i32::from(self.posted > 0));
                self.posted = self.posted.saturating_sub(1);
            }
            Some(Do::Post) => self.posted += 1,
            Some(Do::Create(child)) => {
                self.phases[child] = Phase::Ready;
                self.tell(program, child, found);
            }
            Some(Do::Join(child)) => {
                let known = self.joined[child].clone();
                self.joined[thread].extend(known);
                self.joined[thread].insert(child);
            }
            Some(Do::Sleep | Do::Detach | Do::EndProcess) => {}
        }
        self.at[thread] += 1;
        while let Some(Do::UnlockTried(lock)) = body.get(self.at[thread])
            && self.holders[*lock] != Some(thread)
        {
            self.at[thread] += 1;
        }
        self.tell(program, thread, found);
    }

    /// Those that are left, if nobody ends the process.
    fn blocked(&self) -> Option<Outcome> {
        let left = |thread: &usize| !matches!(self.phases[*thread], Phase::Unborn | Phase::Ended);
        let ends = self.phases.contains(&Phase::Ends);
        (!ends).then(|| Outcome::Blocked((0..self.at.len()).filter(left).collect()))
    }
}

/// What all schedules lead to. The end of the process is as late as can be: an earlier one shows a beginning of the same.
pub fn outcomes(program: &Program) -> BTreeSet<Outcome> {
    let mut found = BTreeSet::new();
    let mut known = HashSet::new();
    let mut first = State::new(program);
    first.tell(program, 0, &mut found);
    let mut open = vec![first];
    while let Some(state) = open.pop() {
        let can: Vec<usize> = (0..program.threads.len()).filter(|thread| state.can_go_on(program, *thread)).collect();
        if can.is_empty() {
            found.extend(state.blocked());
        }
        for thread in can {
            let mut next = state.clone();
            next.step(program, thread, &mut found);
            if known.insert(next.clone()) {
                open.push(next);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_before_and_behind_a_write() {
        let program = Program { threads: vec![vec![Do::Create(1), Do::Read(0), Do::Join(1)], vec![Do::Write(0)]] };
        let told = |seen: i32| Outcome::Ended(format!("0 t0,{seen} t1"));
        assert_eq!(outcomes(&program), [told(0), told(Program::value(1, 0))].into());
    }

    #[test]
    fn a_signal_before_the_wait_is_lost() {
        let wait = vec![Do::Lock(0), Do::Wait(0), Do::Unlock(0)];
        let main = vec![Do::Create(1), Do::Signal(0), Do::Join(1)];
        let wanted = [Outcome::Ended("0 t0 t1".into()), Outcome::Blocked([0, 1].into())];
        assert_eq!(outcomes(&Program { threads: vec![main, wait] }), wanted.into());
    }

    #[test]
    fn an_end_by_another_thread() {
        let program = Program { threads: vec![vec![Do::Create(1), Do::Write(0)], vec![Do::Detach, Do::Read(0), Do::EndProcess]] };
        let wanted = ["0 t0".to_owned(), "1 t1,0".to_owned(), format!("1 t1,{}", Program::value(0, 1))];
        assert_eq!(outcomes(&program), wanted.map(Outcome::Ended).into());
    }
}
