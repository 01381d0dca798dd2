//! Orders the steps of a set so that locks exclude and every read sees its writer.
//!
//! Depth-first over cuts of the set: from the saturated order ([`crate::saturate`]) the earliest possible step of the trace is
//! tried first; a step that can only help (a release, a read that sees its writer) is taken at once; a write waits until what it
//! overwrites has been read by all that read it. So the values follow from the cut, and a cut that failed is not entered twice.
//!
//! Complete unless the budget is spent (up to a 64-bit hash of failed cuts). The problem is NP-hard (Mathur, Pavlogiannis,
//! Viswanathan, "The Complexity of Dynamic Data Race Prediction", LICS 2020). Pavlogiannis, POPL 2020, §4: for two threads the
//! saturated order needs no search.

use crate::index::{Effect, Index};
use crate::saturate::{Cell, Place, Step, Steps};
use rashomon_event::LockMode;
use rustc_hash::FxHashSet;

/// What the search says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// The thread of each step.
    Order(Vec<u32>),
    Impossible,
    /// The budget is spent.
    Unknown,
}

/// Who wrote a cell last, and how many are still to read that.
#[derive(Clone, Copy, Default)]
struct Value {
    writer: Option<Place>,
    readers: u32,
}

pub struct Ordering<'a, 't> {
    index: &'a Index<'t>,
    steps: &'a Steps,
    /// Per step and cell it writes: how many read that.
    readers: Vec<Vec<Vec<u32>>>,
    done: Vec<u32>,
    values: Vec<Value>,
    /// Per lock: who holds it exclusively, and how many share it.
    exclusive: Vec<Option<u32>>,
    shared: Vec<u32>,
    /// Values to restore, newest last.
    undo: Vec<(Cell, Value)>,
    failed: FxHashSet<u64>,
}

struct Frame {
    /// Threads still to try, best last.
    choices: Vec<u32>,
    undo: usize,
}

impl<'a, 't> Ordering<'a, 't> {
    /// `budget` bounds failures; every failure is charged to it.
    pub fn find(index: &'a Index<'t>, steps: &'a Steps, budget: &mut usize) -> Found {
        let mut values = vec![Value::default(); steps.cells];
        let mut readers: Vec<Vec<Vec<u32>>> =
            steps.threads.iter().map(|list| list.iter().map(|step| vec![0; step.writes.len()]).collect()).collect();
        for step in steps.threads.iter().flatten() {
            for &(cell, writer) in &step.reads {
                let Some((thread, number)) = writer else {
                    values[cell as usize].readers += 1;
                    continue;
                };
                let writes = &steps.threads[thread as usize][number as usize].writes;
                if let Some(place) = writes.iter().position(|&written| written == cell) {
                    readers[thread as usize][number as usize][place] += 1;
                }
            }
        }
        let mut ordering = Self {
            index,
            steps,
            readers,
            done: vec![0; steps.threads.len()],
            values,
            exclusive: vec![None; index.locks],
            shared: vec![0; index.locks],
            undo: Vec::new(),
            failed: FxHashSet::default(),
        };
        ordering.descend(budget)
    }

    fn descend(&mut self, budget: &mut usize) -> Found {
        let total: usize = self.steps.threads.iter().map(Vec::len).sum();
        let mut path: Vec<u32> = Vec::with_capacity(total);
        let mut frames: Vec<Frame> = Vec::with_capacity(total);
        loop {
            if path.len() == total {
                return Found::Order(path);
            }
            if frames.len() == path.len() {
                let choices = if self.failed.contains(&self.state()) { Vec::new() } else { self.choices() };
                frames.push(Frame { choices, undo: self.undo.len() });
            }
            let Some(frame) = frames.last_mut() else { return Found::Impossible };
            if let Some(thread) = frame.choices.pop() {
                frame.undo = self.undo.len();
                self.run(thread);
                path.push(thread);
                continue;
            }
            let state = self.state();
            if self.failed.insert(state) {
                let Some(left) = budget.checked_sub(1) else { return Found::Unknown };
                *budget = left;
            }
            frames.pop();
            let (Some(thread), Some(frame)) = (path.pop(), frames.last()) else { return Found::Impossible };
            let undo = frame.undo;
            self.take_back(thread, undo);
        }
    }

    fn state(&self) -> u64 {
        self.done.iter().fold(0, |hash, &done| (hash ^ u64::from(done)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29))
    }

    fn next(&self, thread: u32) -> Option<&'a Step> {
        let steps: &'a Steps = self.steps;
        steps.threads[thread as usize].get(self.done[thread as usize] as usize)
    }

    fn choices(&self) -> Vec<u32> {
        let mut choices = Vec::new();
        for thread in 0..self.done.len() as u32 {
            let Some(step) = self.next(thread).filter(|step| self.enabled(thread, step)) else { continue };
            if step.writes.is_empty() && !matches!(step.effect, Effect::Acquire(_)) {
                return vec![thread];
            }
            choices.push((std::cmp::Reverse(step.event), thread));
        }
        choices.sort_unstable();
        choices.into_iter().map(|(_, thread)| thread).collect()
    }

    fn enabled(&self, thread: u32, step: &Step) -> bool {
        let row = &self.steps.before[thread as usize][self.done[thread as usize] as usize];
        if !row.iter().zip(&self.done).all(|(needed, done)| needed <= done) {
            return false;
        }
        if let Effect::Acquire(number) = step.effect {
            let section = &self.index.sections[number as usize];
            let lock = section.lock as usize;
            let taken = self.exclusive[lock].is_some_and(|holder| holder != thread)
                || (section.mode == LockMode::Exclusive && self.shared[lock] > 0);
            if taken {
                return false;
            }
        }
        let sees = step.reads.iter().all(|&(cell, writer)| self.values[cell as usize].writer == writer);
        sees && step.writes.iter().all(|&cell| {
            let own = u32::from(step.reads.iter().any(|&(read, _)| read == cell));
            self.values[cell as usize].readers == own
        })
    }

    fn run(&mut self, thread: u32) {
        let Some(step) = self.next(thread) else { return };
        let place = (thread, self.done[thread as usize]);
        for &(cell, _) in &step.reads {
            let value = self.values[cell as usize];
            self.undo.push((cell, value));
            self.values[cell as usize].readers = value.readers.saturating_sub(1);
        }
        for (number, &cell) in step.writes.iter().enumerate() {
            self.undo.push((cell, self.values[cell as usize]));
            let readers = self.readers[thread as usize][place.1 as usize][number];
            self.values[cell as usize] = Value { writer: Some(place), readers };
        }
        self.lock(thread, step.effect, true);
        self.done[thread as usize] += 1;
    }

    fn take_back(&mut self, thread: u32, undo: usize) {
        self.done[thread as usize] -= 1;
        if let Some(step) = self.next(thread) {
            self.lock(thread, step.effect, false);
        }
        while self.undo.len() > undo {
            if let Some((cell, value)) = self.undo.pop() {
                self.values[cell as usize] = value;
            }
        }
    }

    fn lock(&mut self, thread: u32, effect: Effect, forward: bool) {
        let (number, begins) = match effect {
            Effect::None => return,
            Effect::Acquire(number) => (number, true),
            Effect::Release(number) => (number, false),
        };
        let section = &self.index.sections[number as usize];
        let lock = section.lock as usize;
        match (section.mode, begins == forward) {
            (LockMode::Exclusive, true) => self.exclusive[lock] = Some(thread),
            (LockMode::Exclusive, false) => self.exclusive[lock] = None,
            (LockMode::Shared, true) => self.shared[lock] += 1,
            (LockMode::Shared, false) => self.shared[lock] = self.shared[lock].saturating_sub(1),
        }
    }
}
