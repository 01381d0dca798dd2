//! A model of the exploring scheduler: small programs of accesses, locks, tries, condition variables and semaphores, executed as
//! `runtime/src/serial/explore.rs` does it, and all their schedules one by one.

pub mod random;

use rashomon_abi::exploration::{NO_WAIT, Operation};
use rashomon_abi::record::Op;
use rashomon_explore::file::End;
use rashomon_explore::log::ThreadBirth;
use rashomon_explore::{Log, Pending, Plan, Search, Step};
use std::collections::{BTreeSet, HashSet};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Do {
    Read(u64),
    Write(u64),
    Lock(u64),
    Unlock(u64),
    LockShared(u64),
    UnlockShared(u64),
    /// Whether it succeeded is seen; what follows up to the matching `UnlockTried` happens either way.
    Try(u64),
    /// Nothing if the try failed.
    UnlockTried(u64),
    /// Gives up the lock (second) and waits for the condition (first).
    Wait(u64, u64),
    Signal(u64),
    Broadcast(u64),
    Take(u64),
    Post(u64),
    /// Waits until that thread has ended.
    Join(usize),
}

pub type Program = Vec<Vec<Do>>;
/// What reads saw, what is in memory at the end, and who did not get there.
pub type Outcome = (Vec<Vec<u32>>, Vec<u32>, Vec<usize>);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Phase {
    Ready,
    /// Cannot be chosen until it is let go.
    Blocked,
    /// Has been let out of a condition, and needs the lock.
    Woken,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
struct LockState {
    holder: Option<usize>,
    readers: u64,
}

#[derive(Clone, PartialEq, Eq, Hash)]
pub struct State<'a> {
    program: &'a Program,
    at: Vec<usize>,
    phases: Vec<Phase>,
    saw: Vec<Vec<u32>>,
    memory: Vec<u32>,
    locks: Vec<LockState>,
    waiting: Vec<Vec<usize>>,
    counts: Vec<u32>,
    writes: Vec<u32>,
    ended: Vec<bool>,
}

const OBJECTS: usize = 4;

impl<'a> State<'a> {
    pub fn new(program: &'a Program) -> Self {
        let threads = program.len();
        Self {
            program,
            at: vec![0; threads],
            phases: vec![Phase::Ready; threads],
            saw: vec![Vec::new(); threads],
            memory: vec![0; OBJECTS],
            locks: vec![LockState::default(); OBJECTS],
            waiting: vec![Vec::new(); OBJECTS],
            counts: vec![0; OBJECTS],
            writes: vec![0; threads],
            ended: vec![false; threads],
        }
    }

    fn next(&self, thread: usize) -> Option<Do> {
        self.program[thread].get(self.at[thread]).copied()
    }

    fn is_taken(&self, lock: u64, shared: bool) -> bool {
        let lock = &self.locks[lock as usize];
        lock.holder.is_some() || !shared && lock.readers != 0
    }

    fn would_block(&self, thread: usize) -> bool {
        match (self.phases[thread], self.next(thread)) {
            (Phase::Woken, Some(Do::Wait(_, lock))) | (_, Some(Do::Lock(lock))) => self.is_taken(lock, false),
            (_, Some(Do::LockShared(lock))) => self.is_taken(lock, true),
            (_, Some(Do::Join(other))) => !self.ended[other],
            _ => false,
        }
    }

    fn enabled(&self) -> u64 {
        self.enabled_but(None)
    }

    /// The same where one thread makes no step.
    fn enabled_but(&self, held: Option<usize>) -> u64 {
        let can_run = |thread: &usize| held != Some(*thread) && !self.ended[*thread] && self.phases[*thread] != Phase::Blocked;
        let set = |wanted: &dyn Fn(&usize) -> bool| (0..self.at.len()).filter(wanted).fold(0, |set, thread| set | 1 << thread);
        match set(&|thread| can_run(thread) && !self.would_block(*thread)) {
            0 => set(&can_run),
            some => some,
        }
    }

    fn pending(&self, thread: usize) -> Option<Pending> {
        let access = |at: u64, class: u64| Operation { object: 0x1000 + 8 * at, class, bytes: 4, ..Operation::default() };
        let of = |op: Op, object: u64| Operation { op: op as u64, object, ..Operation::default() };
        let lock = |at: u64| 0x2000 + at;
        let condition = |op: Op, at: u64| of(op, 0x3000 + at);
        let operation = match self.next(thread) {
            None if self.ended[thread] => return None,
            None => of(Op::ThreadEnd, 1 + thread as u64),
            Some(Do::Read(at)) => access(at, 1),
            Some(Do::Write(at)) => access(at, 2),
            Some(Do::Lock(at)) => of(Op::Lock, lock(at)),
            Some(Do::LockShared(at)) => of(Op::LockShared, lock(at)),
            Some(Do::Try(at)) => Operation { second: NO_WAIT, ..of(Op::Lock, lock(at)) },
            Some(Do::Unlock(at) | Do::UnlockTried(at)) => of(Op::Unlock, lock(at)),
            Some(Do::UnlockShared(at)) => of(Op::UnlockShared, lock(at)),
            Some(Do::Wait(at, mutex)) => {
                let op = if self.phases[thread] == Phase::Ready { Op::CondWaitBegin } else { Op::CondWaitEnd };
                Operation { second: lock(mutex), ..condition(op, at) }
            }
            Some(Do::Signal(at)) => condition(Op::CondSignal, at),
            Some(Do::Broadcast(at)) => condition(Op::CondBroadcast, at),
            Some(Do::Take(at)) => of(Op::SemaphoreWait, 0x4000 + at),
            Some(Do::Post(at)) => of(Op::SemaphorePost, 0x4000 + at),
            Some(Do::Join(other)) => of(Op::ThreadJoin, 1 + other as u64),
        };
        let woken = u32::from(self.phases[thread] != Phase::Ready);
        Some(Pending { operation, site: 0, ordinal: 2 * self.at[thread] as u32 + woken, count: 0 })
    }

    fn let_out(&mut self, condition: u64, count: usize) {
        let waiting = &mut self.waiting[condition as usize];
        let out: Vec<usize> = waiting.drain(..count.min(waiting.len())).collect();
        out.into_iter().for_each(|thread| self.phases[thread] = Phase::Woken);
    }

    fn step(&mut self, thread: usize) {
        if self.would_block(thread) {
            self.phases[thread] = Phase::Blocked;
            return;
        }
        match self.next(thread) {
            None => self.ended[thread] = true,
            Some(Do::Read(at)) => self.saw[thread].push(self.memory[at as usize]),
            Some(Do::Write(at)) => {
                self.writes[thread] += 1;
                self.memory[at as usize] = 100 * (thread as u32 + 1) + self.writes[thread];
            }
            Some(Do::Lock(at)) => self.locks[at as usize].holder = Some(thread),
            Some(Do::LockShared(at)) => self.locks[at as usize].readers |= 1 << thread,
            Some(Do::Try(at)) => {
                let free = !self.is_taken(at, false);
                self.saw[thread].push(u32::from(free));
                if free {
                    self.locks[at as usize].holder = Some(thread);
                }
            }
            Some(Do::Unlock(at) | Do::UnlockTried(at)) => self.locks[at as usize].holder = None,
            Some(Do::UnlockShared(at)) => self.locks[at as usize].readers &= !(1 << thread),
            Some(Do::Wait(at, mutex)) if self.phases[thread] == Phase::Ready => {
                self.locks[mutex as usize].holder = None;
                self.waiting[at as usize].push(thread);
                self.phases[thread] = Phase::Blocked;
                return;
            }
            Some(Do::Wait(_, mutex)) => {
                self.locks[mutex as usize].holder = Some(thread);
                self.phases[thread] = Phase::Ready;
            }
            Some(Do::Signal(at)) => self.let_out(at, 1),
            Some(Do::Broadcast(at)) => self.let_out(at, usize::MAX),
            Some(Do::Take(at)) if self.counts[at as usize] == 0 => {
                self.phases[thread] = Phase::Blocked;
                return;
            }
            Some(Do::Take(at)) => self.counts[at as usize] -= 1,
            Some(Do::Post(at)) => {
                self.counts[at as usize] += 1;
                for other in 0..self.at.len() {
                    if self.phases[other] == Phase::Blocked && self.next(other) == Some(Do::Take(at)) {
                        self.phases[other] = Phase::Ready;
                    }
                }
            }
            Some(Do::Join(_)) => {}
        }
        self.at[thread] += 1;
        while let Some(Do::UnlockTried(lock)) = self.next(thread)
            && self.locks[lock as usize].holder != Some(thread)
        {
            self.at[thread] += 1;
        }
    }

    fn outcome(&self) -> Outcome {
        let left = (0..self.program.len()).filter(|thread| self.next(*thread).is_some());
        (self.saw.clone(), self.memory.clone(), left.collect())
    }
}

/// What every schedule leads to, state by state.
pub fn all_outcomes(program: &Program) -> BTreeSet<Outcome> {
    let mut found = BTreeSet::new();
    let mut known = HashSet::new();
    let mut left = vec![State::new(program)];
    while let Some(state) = left.pop() {
        let enabled = state.enabled();
        if enabled == 0 {
            found.insert(state.outcome());
        }
        for thread in (0..program.len()).filter(|thread| enabled >> thread & 1 != 0) {
            let mut next = state.clone();
            next.step(thread);
            if known.insert(next.clone()) {
                left.push(next);
            }
        }
    }
    found
}

/// What an execution is asked for besides its plan.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wishes {
    /// Makes no step.
    pub hold: Option<usize>,
    /// Goes on as long as it can.
    pub prefer: Option<usize>,
    /// Two conflicting accesses side by side end it.
    pub races: bool,
}

impl State<'_> {
    /// Whether two threads stand before conflicting accesses.
    pub fn is_race(&self) -> bool {
        let accesses: Vec<Operation> = (0..self.at.len())
            .filter_map(|thread| self.pending(thread))
            .map(|pending| pending.operation)
            .filter(|operation| operation.class != 0)
            .collect();
        let conflict = |one: &Operation, other: &Operation| one.object == other.object && (one.writes() || other.writes());
        accesses.iter().enumerate().any(|(number, one)| accesses[number + 1..].iter().any(|other| conflict(one, other)))
    }
}

/// Whether some schedule of the others brings two conflicting accesses side by side, state by state.
pub fn has_race(program: &Program, hold: Option<usize>) -> bool {
    let mut known = HashSet::new();
    let mut left = vec![State::new(program)];
    while let Some(state) = left.pop() {
        if state.is_race() {
            return true;
        }
        let enabled = state.enabled_but(hold);
        for thread in (0..program.len()).filter(|thread| enabled >> thread & 1 != 0) {
            let mut next = state.clone();
            next.step(thread);
            if known.insert(next.clone()) {
                left.push(next);
            }
        }
    }
    false
}

/// Whether a search meets one, with how many executions, and whether it says that these are all.
pub fn finds_race(program: &Program, search: &mut dyn Search, wishes: Wishes) -> (bool, u32, bool) {
    let mut executions = 0;
    while let Some(plan) = search.next() {
        let (log, end, _, race) = execute_wishing(program, &plan, wishes);
        executions += 1;
        assert!(executions < 100_000, "the search does not end for {program:?}");
        if race {
            return (true, executions, false);
        }
        search.learn(&plan, &log, end);
    }
    (false, executions, search.is_exhaustive())
}

/// What the runtime does under CONTINUE, sleep sets included.
pub fn execute(program: &Program, plan: &Plan) -> (Log, End, Outcome) {
    let (log, end, outcome, _) = execute_wishing(program, plan, Wishes::default());
    (log, end, outcome)
}

fn execute_wishing(program: &Program, plan: &Plan, wishes: Wishes) -> (Log, End, Outcome, bool) {
    let mut state = State::new(program);
    let birth = ThreadBirth { parent: None, spawn_ordinal: 0, steps: 0 };
    let mut log = Log { threads: vec![Some(birth); program.len()], ..Log::default() };
    let mut asleep = 0;
    let mut end = End::None;
    let mut last = usize::MAX;
    let mut race;
    loop {
        race = wishes.races && state.is_race();
        let enabled = state.enabled_but(wishes.hold);
        if race || enabled == 0 {
            if !race && state.enabled() != 0 {
                end = End::Held;
            }
            break;
        }
        if log.steps.len() + 1 == plan.decisions.len() {
            asleep = plan.asleep & enabled;
        }
        let awake = enabled & !asleep;
        let thread = match plan.decisions.get(log.steps.len()) {
            Some(&decided) => decided as usize,
            None if awake == 0 => {
                end = End::Asleep;
                break;
            }
            None if wishes.prefer.is_some_and(|thread| awake >> thread & 1 != 0) => wishes.prefer.unwrap(),
            None if last < 64 && awake >> last & 1 != 0 => last,
            None => awake.trailing_zeros() as usize,
        };
        assert!(enabled >> thread & 1 != 0, "thread {thread} cannot be chosen");
        let does = state.pending(thread).unwrap();
        let shown = asleep & enabled;
        asleep &= !(1 << thread);
        for other in (0..program.len()).filter(|other| *other != thread) {
            if state.pending(other).is_some_and(|pending| pending.operation.depends(&does.operation)) {
                asleep &= !(1 << other);
            }
        }
        state.step(thread);
        let after = state.pending(thread);
        log.steps.push(Step { thread: thread as u32, enabled, asleep: shown, waiting: 0, does, after });
        last = thread;
    }
    log.left = (0..program.len()).filter_map(|thread| Some((thread as u32, state.pending(thread)?))).collect();
    (log, end, state.outcome(), race)
}

/// What a search sees, with how many executions, and whether it says that this is all.
pub fn outcomes_of(program: &Program, search: &mut dyn Search) -> (BTreeSet<Outcome>, u32, bool) {
    let mut found = BTreeSet::new();
    let mut executions = 0;
    while let Some(plan) = search.next() {
        let (log, end, outcome) = execute(program, &plan);
        executions += 1;
        assert!(executions < 100_000, "the search does not end for {program:?}");
        if end == End::None {
            found.insert(outcome);
        }
        search.learn(&plan, &log, end);
    }
    (found, executions, search.is_exhaustive())
}
