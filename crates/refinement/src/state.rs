//! A state of the model while a search runs: how far each thread is, and what follows from that. Steps can be taken back.

use crate::model::{Effect, Model, Step, Use};
use rashomon_event::LockMode;

#[derive(Clone, Debug, Default)]
struct Lock {
    /// The thread + 1.
    exclusive: u32,
    shared: Vec<u32>,
}

impl Lock {
    fn free_for(&self, mode: LockMode) -> bool {
        self.exclusive == 0 && (mode == LockMode::Shared || self.shared.is_empty())
    }
}

/// What taking a step back has to undo.
#[derive(Clone, Copy, Debug)]
struct Taken {
    thread: u32,
    missed: u32,
}

pub struct State<'m, 't> {
    pub model: &'m Model<'t>,
    /// Steps that each thread may do.
    pub limit: Vec<u32>,
    pub done: Vec<u32>,
    locks: Vec<Lock>,
    counts: Vec<i64>,
    /// Waits whose signal came before they began, in the order in which that happened.
    missed: Vec<u32>,
    /// By bit, which waits the goals themselves end.
    of_goals: Vec<u32>,
    taken: Vec<Taken>,
}

impl<'m, 't> State<'m, 't> {
    pub fn new(model: &'m Model<'t>, limit: Vec<u32>, of_goals: Vec<u32>) -> Self {
        Self {
            model,
            done: vec![0; limit.len()],
            limit,
            locks: vec![Lock::default(); model.locks.len()],
            counts: model.counts.iter().map(|&count| i64::from(count)).collect(),
            missed: Vec::new(),
            of_goals,
            taken: Vec::new(),
        }
    }

    pub fn next(&self, thread: usize) -> Option<&'m Step> {
        let done = self.done[thread];
        (done < self.limit[thread]).then(|| &self.model.steps[thread][done as usize])
    }

    pub fn enabled(&self, thread: usize) -> bool {
        let Some(step) = self.next(thread) else { return false };
        let needs = self.model.needs(thread, self.done[thread]);
        if !needs.iter().all(|need| self.done[need.thread as usize] >= need.steps) {
            return false;
        }
        match step.effect {
            Effect::Acquire { lock, mode, wait } => {
                self.locks[lock as usize].free_for(mode) && wait.is_none_or(|wait| !self.missed.contains(&wait))
            }
            Effect::Take(semaphore) => self.counts[semaphore as usize] > 0,
            Effect::Never { .. } => false,
            _ => true,
        }
    }

    /// Who holds a lock.
    pub fn holders(&self, lock: u32) -> impl Iterator<Item = usize> + '_ {
        let lock = &self.locks[lock as usize];
        let exclusive = lock.exclusive.checked_sub(1);
        exclusive.into_iter().chain(lock.shared.iter().copied()).map(|thread| thread as usize)
    }

    /// Threads that will still want to use something, in a mode that `mode` excludes.
    pub fn still_using(&self, uses: &'m [Vec<Use>], number: u32, mode: LockMode) -> impl Iterator<Item = usize> + '_ {
        let still = move |other: &&Use| {
            let steps = if mode == LockMode::Exclusive { &other.all } else { &other.exclusive };
            let within = steps.partition_point(|&step| step < self.limit[other.thread as usize]);
            let last = within.checked_sub(1).map(|place| steps[place]);
            last.is_some_and(|last| last >= self.done[other.thread as usize])
        };
        let uses = uses.get(number as usize).map_or(&[][..], Vec::as_slice);
        uses.iter().filter(still).map(|other| other.thread as usize)
    }

    /// The waits that the step would wake before they have begun.
    pub fn woken_too_early(&self, step: &Step) -> impl Iterator<Item = u32> + '_ {
        let woken = if let Effect::Wakes { first, count } = step.effect { self.woken(first, count) } else { &[] };
        woken.iter().copied().filter(|&wait| self.too_early(wait))
    }

    /// Whether the wait ends within the limits, or is about to.
    fn matters(&self, wait: u32) -> bool {
        let known = &self.model.waits[wait as usize];
        known.end < self.limit[known.thread as usize] || self.of_goals.contains(&wait)
    }

    fn woken(&self, first: u32, count: u32) -> &'m [u32] {
        &self.model.woken[first as usize..(first + count) as usize]
    }

    fn too_early(&self, wait: u32) -> bool {
        let known = &self.model.waits[wait as usize];
        known.begin.is_some_and(|begin| self.done[known.thread as usize] <= begin) && self.matters(wait)
    }

    /// Whether the step wakes nobody who should wait for it.
    pub fn wastes(&self, step: &Step) -> bool {
        self.woken_too_early(step).next().is_some()
    }

    pub fn has_missed(&self, wait: u32) -> bool {
        self.missed.contains(&wait)
    }

    pub fn take(&mut self, thread: usize) {
        let step = &self.model.steps[thread][self.done[thread] as usize];
        let before = self.missed.len();
        match step.effect {
            Effect::None | Effect::Never { .. } => {}
            Effect::Acquire { lock, mode, .. } => self.hold(thread as u32, lock, mode),
            Effect::Release { lock, mode } => self.let_go(thread as u32, lock, mode),
            Effect::Post(semaphore) => self.counts[semaphore as usize] += 1,
            Effect::Take(semaphore) => self.counts[semaphore as usize] -= 1,
            Effect::Wakes { first, count } => {
                for &wait in self.woken(first, count) {
                    if self.too_early(wait) {
                        self.missed.push(wait);
                    }
                }
            }
        }
        self.done[thread] += 1;
        self.taken.push(Taken { thread: thread as u32, missed: (self.missed.len() - before) as u32 });
    }

    fn hold(&mut self, thread: u32, lock: u32, mode: LockMode) {
        let lock = &mut self.locks[lock as usize];
        match mode {
            LockMode::Exclusive => lock.exclusive = thread + 1,
            LockMode::Shared => lock.shared.push(thread),
        }
    }

    fn let_go(&mut self, thread: u32, lock: u32, mode: LockMode) {
        let lock = &mut self.locks[lock as usize];
        match mode {
            LockMode::Exclusive => lock.exclusive = 0,
            LockMode::Shared => {
                if let Some(place) = lock.shared.iter().position(|&holder| holder == thread) {
                    lock.shared.swap_remove(place);
                }
            }
        }
    }

    /// How many steps have been taken.
    pub fn mark(&self) -> usize {
        self.taken.len()
    }

    /// Takes steps back until there are as many as there were.
    pub fn back_to(&mut self, mark: usize) {
        while self.taken.len() > mark {
            let Some(Taken { thread, missed }) = self.taken.pop() else { return };
            self.done[thread as usize] -= 1;
            self.missed.truncate(self.missed.len() - missed as usize);
            match self.model.steps[thread as usize][self.done[thread as usize] as usize].effect {
                Effect::None | Effect::Never { .. } | Effect::Wakes { .. } => {}
                Effect::Acquire { lock, mode, .. } => self.let_go(thread, lock, mode),
                Effect::Release { lock, mode } => self.hold(thread, lock, mode),
                Effect::Post(semaphore) => self.counts[semaphore as usize] -= 1,
                Effect::Take(semaphore) => self.counts[semaphore as usize] += 1,
            }
        }
    }

    /// The threads of the steps taken.
    pub fn path(&self) -> impl Iterator<Item = u32> + '_ {
        self.taken.iter().map(|taken| taken.thread)
    }

    /// What tells this state from others.
    pub fn key(&self) -> Box<[u32]> {
        let mut missed = self.missed.clone();
        missed.sort_unstable();
        self.done.iter().copied().chain(missed).collect()
    }
}
