//! All schedules of a small program, state by state: what a correct exploration has to reach.
//!
//! It knows nothing of exploration but what its documentation says of the program's world: nobody wakes up by himself, a signal
//! lets out who waits longest, a sleep may end at any time, and other time-outs come when nobody can go on, the first one first,
//! also while the process is about to end.

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
    /// Seconds of the program's own time that have passed by time-outs, and when each thread's timed step is over.
    now: u64,
    over: Vec<u64>,
    /// To be cancelled where they come to a point for that.
    cancelled: BTreeSet<usize>,
    /// Whose timed step is over.
    timed_out: BTreeSet<usize>,
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
            now: 0,
            over: vec![0; count],
            cancelled: BTreeSet::new(),
            timed_out: BTreeSet::new(),
        }
    }

    fn can_go_on(&self, program: &Program, thread: usize) -> bool {
        match (self.phases[thread], program.threads[thread].get(self.at[thread])) {
            (Phase::Unborn | Phase::Waits | Phase::Ends | Phase::Ended, _) => false,
            (Phase::Ready, Some(step)) if self.cancelled.contains(&thread) && is_cancellation_point(*step) => true,
            (Phase::Woken, Some(Do::Wait(lock) | Do::TimedWait(lock))) | (_, Some(Do::Lock(lock))) => {
                self.holders[*lock].is_none()
            }
            (_, Some(Do::TimedLock(lock))) => self.holders[*lock].is_none() || self.timed_out.contains(&thread),
            (_, Some(Do::TimedTake)) => self.posted > 0 || self.timed_out.contains(&thread),
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

    /// A thread ends that comes to a cancellation point, or waits there; behind a wait for a condition it has the mutex.
    fn is_cancelled(&mut self, step: Option<Do>, thread: usize) -> bool {
        let Some(step) = step.filter(|step| is_cancellation_point(*step)) else { return false };
        if !self.cancelled.contains(&thread) {
            return false;
        }
        if let (Phase::Woken, Do::Wait(lock) | Do::TimedWait(lock)) = (self.phases[thread], step) {
            self.holders[lock] = Some(thread);
        }
        self.phases[thread] = Phase::Ended;
        true
    }

    fn step(&mut self, program: &Program, thread: usize, found: &mut BTreeSet<Outcome>) {
        let body = &program.threads[thread];
        let at = self.at[thread];
        if self.is_cancelled(body.get(at).copied(), thread) {
            return;
        }
        match body.get(at).copied() {
            None | Some(Do::EndThread) => self.phases[thread] = Phase::Ended,
            Some(Do::Read(variable)) => self.saw[thread].push(self.plain[variable]),
            Some(Do::Write(variable)) => self.plain[variable] = Program::value(thread, at),
            Some(Do::Add(variable)) => {
                self.saw[thread].push(self.atomic[variable]);
                self.atomic[variable] += 1;
            }
            Some(Do::Lock(lock)) => self.holders[lock] = Some(thread),
            Some(Do::Try(lock) | Do::TimedLock(lock)) => {
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
            Some(Do::Wait(lock) | Do::TimedWait(lock)) if self.phases[thread] == Phase::Ready => {
                self.holders[lock] = None;
                self.waiting[lock].push(thread);
                self.phases[thread] = Phase::Waits;
                return;
            }
            Some(Do::Wait(lock)) => self.leaves_condition(thread, lock),
            Some(Do::TimedWait(lock)) => {
                self.saw[thread].push(i32::from(!self.timed_out.contains(&thread)));
                self.leaves_condition(thread, lock);
            }
            Some(Do::Signal(lock)) => self.let_out(lock, 1),
            Some(Do::Broadcast(lock)) => self.let_out(lock, usize::MAX),
            Some(Do::Take) => self.posted -= 1,
            Some(Do::TryTake | Do::TimedTake) => {
                self.saw[thread].push(i32::from(self.posted > 0));
                self.posted = self.posted.saturating_sub(1);
            }
            Some(Do::Post) => self.posted += 1,
            Some(Do::Create(child)) => {
                self.phases[child] = Phase::Ready;
                self.arrives(program, child);
                self.tell(program, child, found);
            }
            Some(Do::Join(child)) => {
                let known = self.joined[child].clone();
                self.joined[thread].extend(known);
                self.joined[thread].insert(child);
            }
            Some(Do::Cancel(child)) => {
                self.cancelled.insert(child);
                if self.phases[child] == Phase::Waits {
                    self.stops_waiting(child);
                }
            }
            Some(Do::Sleep | Do::Detach | Do::EndProcess) => {}
        }
        self.timed_out.remove(&thread);
        self.at[thread] += 1;
        while let Some(Do::UnlockTried(lock)) = body.get(self.at[thread])
            && self.holders[*lock] != Some(thread)
        {
            self.at[thread] += 1;
        }
        self.arrives(program, thread);
        self.tell(program, thread, found);
    }

    fn leaves_condition(&mut self, thread: usize, lock: usize) {
        self.holders[lock] = Some(thread);
        self.phases[thread] = Phase::Ready;
    }

    /// The thread asks for the time before a timed step, which is part of the step before.
    fn arrives(&mut self, program: &Program, thread: usize) {
        let at = self.at[thread];
        if let Some(Do::TimedLock(_) | Do::TimedWait(_) | Do::TimedTake) = program.threads[thread].get(at) {
            self.over[thread] = self.now + program.patience(thread, at);
        }
    }

    /// The next time-out, where nobody can go on; whether there is one.
    fn time_passes(&mut self, program: &Program) -> bool {
        let is_timed = |thread: &usize| match (self.phases[*thread], program.threads[*thread].get(self.at[*thread])) {
            (Phase::Waits, Some(Do::TimedWait(_))) => true,
            (Phase::Ready, Some(Do::TimedLock(_) | Do::TimedTake)) => !self.timed_out.contains(thread),
            _ => false,
        };
        let next = (0..self.at.len()).filter(is_timed).min_by_key(|thread| self.over[*thread]);
        let Some(thread) = next else { return false };
        self.now = self.now.max(self.over[thread]);
        self.timed_out.insert(thread);
        if self.phases[thread] == Phase::Waits {
            self.stops_waiting(thread);
        }
        true
    }

    fn stops_waiting(&mut self, thread: usize) {
        self.waiting.iter_mut().for_each(|waiting| waiting.retain(|other| *other != thread));
        self.phases[thread] = Phase::Woken;
    }

    /// Those that are left, if nobody ends the process.
    fn blocked(&self) -> Option<Outcome> {
        let left = |thread: &usize| !matches!(self.phases[*thread], Phase::Unborn | Phase::Ended);
        let ends = self.phases.contains(&Phase::Ends);
        (!ends).then(|| Outcome::Blocked((0..self.at.len()).filter(left).collect()))
    }
}

const fn is_cancellation_point(step: Do) -> bool {
    matches!(step, Do::Sleep | Do::Take | Do::TimedTake | Do::Wait(_) | Do::TimedWait(_))
}

/// What all schedules lead to. The end of the process is as late as can be: an earlier one shows a beginning of the same.
pub fn outcomes(program: &Program) -> BTreeSet<Outcome> {
    let mut found = BTreeSet::new();
    let mut known = HashSet::new();
    let mut first = State::new(program);
    first.arrives(program, 0);
    first.tell(program, 0, &mut found);
    let mut open = vec![first];
    while let Some(state) = open.pop() {
        let can: Vec<usize> = (0..program.threads.len()).filter(|thread| state.can_go_on(program, *thread)).collect();
        if can.is_empty() {
            let mut later = state.clone();
            match later.time_passes(program) {
                true if known.insert(later.clone()) => open.push(later),
                true => {}
                false => found.extend(state.blocked()),
            }
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
    fn time_outs_come_when_nobody_can_go_on_and_in_their_order() {
        let main = vec![Do::Create(1), Do::TimedTake, Do::Join(1)];
        let program = |other: Do| Program { threads: vec![main.clone(), vec![other]] };
        assert_eq!(outcomes(&program(Do::Post)), [Outcome::Ended("0 t0,1 t1".into())].into());
        assert_eq!(outcomes(&program(Do::TimedTake)), [Outcome::Ended("0 t0,0 t1,0".into())].into());
        let wait = vec![Do::Lock(0), Do::TimedWait(0), Do::Unlock(0)];
        let program = Program { threads: vec![vec![Do::Create(1), Do::Signal(0), Do::Join(1)], wait] };
        let wanted = ["0 t0 t1,0", "0 t0 t1,1"].map(|told| Outcome::Ended(told.into()));
        assert_eq!(outcomes(&program), wanted.into());
    }

    #[test]
    fn an_end_by_another_thread() {
        let program = Program { threads: vec![vec![Do::Create(1), Do::Write(0)], vec![Do::Detach, Do::Read(0), Do::EndProcess]] };
        let wanted = ["0 t0".to_owned(), "1 t1,0".to_owned(), format!("1 t1,{}", Program::value(0, 1))];
        assert_eq!(outcomes(&program), wanted.map(Outcome::Ended).into());
    }
}
