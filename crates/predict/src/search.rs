//! Orders synchronisation steps so that locks exclude.
//!
//! Given: per thread, a prefix to run. Found: an order of its synchronisation steps in which each has what it needs, no lock is
//! taken while it is held in a conflicting mode, and sections that stay open come after all others of their lock. Sections may
//! change their order with respect to the trace. The problem is NP-hard (Mathur, Pavlogiannis, Viswanathan, "The Complexity of
//! Dynamic Data Race Prediction", LICS 2020), so this is depth-first search: a preference picks among the threads that can step,
//! states that failed are not entered twice, and a budget bounds the failures. Complete if the budget is not reached (up to a
//! 64-bit hash of failed states).

use crate::closure::Cut;
use crate::dependences::Dependences;
use crate::index::{Effect, Index, NEVER, Section, Step};
use rashomon_event::LockMode;
use rustc_hash::FxHashSet;

/// Which thread steps first where several can: lower rank, then earlier in the trace.
pub type Ranks = Vec<u32>;

/// Per lock, sections held (or still to begin).
#[derive(Clone, Copy, Default)]
struct Count {
    exclusive: u32,
    shared: u32,
}

impl Count {
    fn of(&mut self, mode: LockMode) -> &mut u32 {
        match mode {
            LockMode::Exclusive => &mut self.exclusive,
            LockMode::Shared => &mut self.shared,
        }
    }
    fn conflicting(self, mode: LockMode) -> u32 {
        match mode {
            LockMode::Exclusive => self.exclusive + self.shared,
            LockMode::Shared => self.exclusive,
        }
    }
}

pub struct Search<'a, 't> {
    index: &'a Index<'t>,
    needs: &'a Dependences,
    cut: &'a Cut,
    ranks: &'a Ranks,
    /// Steps to run per thread.
    limit: Vec<u32>,
    done: Vec<u32>,
    held: Vec<Count>,
    to_begin: Vec<Count>,
    failed: FxHashSet<u64>,
}

impl<'a, 't> Search<'a, 't> {
    /// The order, as the thread of each step; `None` if there is none or the budget of failures is spent.
    pub fn run(index: &'a Index<'t>, needs: &'a Dependences, cut: &'a Cut, ranks: &'a Ranks, budget: usize) -> Option<Vec<u32>> {
        let limit: Vec<u32> =
            cut.iter().zip(&index.steps).map(|(&cut, steps)| steps.partition_point(|step| step.at < cut) as u32).collect();
        let mut search = Self {
            index,
            needs,
            cut,
            ranks,
            done: vec![0; limit.len()],
            held: vec![Count::default(); index.locks],
            to_begin: vec![Count::default(); index.locks],
            failed: FxHashSet::default(),
            limit,
        };
        for (sections, &cut) in index.sections_of.iter().zip(cut) {
            for section in
                sections.iter().map(|&number| &index.sections[number as usize]).take_while(|section| section.acquire < cut)
            {
                *search.to_begin[section.lock as usize].of(section.mode) += 1;
            }
        }
        search.descend(budget)
    }

    fn descend(&mut self, budget: usize) -> Option<Vec<u32>> {
        let total: usize = self.limit.iter().map(|&limit| limit as usize).sum();
        let mut fuel = total.saturating_mul(2) + budget.saturating_mul(64);
        let mut failures = 0;
        let mut path: Vec<u32> = Vec::with_capacity(total);
        // The choices not yet tried at each depth, best last; `starts[d]` is where those of depth d begin.
        let (mut choices, mut starts) = (Vec::new(), Vec::with_capacity(total));
        loop {
            if path.len() == total {
                return Some(path);
            }
            if starts.len() == path.len() {
                starts.push(choices.len());
                self.choices(&mut choices);
            }
            let start = *starts.last()?;
            if choices.len() > start
                && let Some(thread) = choices.pop()
            {
                self.step(thread, true);
                path.push(thread);
                fuel = fuel.checked_sub(1)?;
            } else {
                let state = self.state();
                self.failed.insert(state);
                failures += 1;
                if failures > budget {
                    return None;
                }
                starts.pop();
                let thread = path.pop()?;
                self.step(thread, false);
            }
        }
    }

    /// Pushes the threads that can step, best last. None from a state that has failed before.
    fn choices(&self, choices: &mut Vec<u32>) {
        if !self.failed.is_empty() && self.failed.contains(&self.state()) {
            return;
        }
        let start = choices.len();
        choices.extend((0..self.limit.len() as u32).filter(|&thread| self.enabled(thread as usize)));
        choices[start..].sort_unstable_by_key(|&thread| {
            let step = self.next(thread as usize).map_or(NEVER, |step| self.index.threads.at(thread as usize, step.at).0);
            std::cmp::Reverse((self.ranks[thread as usize], step))
        });
    }

    fn state(&self) -> u64 {
        self.done.iter().fold(0, |hash, &done| (hash ^ u64::from(done)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29))
    }

    fn next(&self, thread: usize) -> Option<Step> {
        let done = self.done[thread];
        (done < self.limit[thread]).then(|| self.index.steps[thread][done as usize])
    }

    /// How many events of the thread have run, if it runs all up to its next step.
    fn position(&self, thread: u32) -> u32 {
        self.next(thread as usize).map_or(self.cut[thread as usize], |step| step.at)
    }

    fn enabled(&self, thread: usize) -> bool {
        let Some(step) = self.next(thread) else {
            return false;
        };
        let since = self.done[thread].checked_sub(1).map_or(0, |last| self.index.steps[thread][last as usize].at + 1);
        let needs = self.needs.of(thread);
        let first = needs.partition_point(|need| need.at < since);
        let met =
            needs[first..].iter().take_while(|need| need.at <= step.at).all(|need| self.position(need.thread) >= need.count);
        if !met {
            return false;
        }
        let event = self.index.threads.at(thread, step.at);
        let woken = self.index.woken_by.get(&event).into_iter().flatten();
        let mut waiters = woken.filter(|wait| wait.end < self.cut[wait.thread as usize]);
        if !waiters.all(|wait| self.position(wait.thread) > wait.begin) {
            return false;
        }
        match step.effect {
            Effect::Acquire(number) => self.can_begin(&self.index.sections[number as usize]),
            _ => true,
        }
    }

    fn can_begin(&self, section: &Section) -> bool {
        let lock = section.lock as usize;
        if self.held[lock].conflicting(section.mode) > 0 {
            return false;
        }
        let stays_open = section.release >= self.cut[section.thread as usize];
        let mut others = self.to_begin[lock];
        *others.of(section.mode) -= 1;
        !stays_open || others.conflicting(section.mode) == 0
    }

    fn step(&mut self, thread: u32, forward: bool) {
        let done = &mut self.done[thread as usize];
        let step = self.index.steps[thread as usize][if forward { *done } else { *done - 1 } as usize];
        *done = if forward { *done + 1 } else { *done - 1 };
        let (number, begins) = match step.effect {
            Effect::None => return,
            Effect::Acquire(number) => (number, true),
            Effect::Release(number) => (number, false),
        };
        let section = &self.index.sections[number as usize];
        let held = self.held[section.lock as usize].of(section.mode);
        *held = if begins == forward { *held + 1 } else { *held - 1 };
        if begins {
            let to_begin = self.to_begin[section.lock as usize].of(section.mode);
            *to_begin = if forward { *to_begin - 1 } else { *to_begin + 1 };
        }
    }
}
