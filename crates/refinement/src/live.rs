//! Whether the model reaches a state in which nobody can go on although not all threads are through: LIVE in the stable-failures
//! model, asked of the same states that [`crate::search`] visits. A thread that waits for a signal that was lost, for a semaphore
//! that nobody posts, for itself or for one that waits in turn is such a thread.
//!
//! Partial order. Of the threads that can go on in a state, only some are tried: a set such that nothing that the others may do
//! before matters to the next steps of these (persistent sets; P. Godefroid, *Partial-Order Methods for the Verification of
//! Concurrent Systems*, 1996, §4.2-4.4). Traces have no cycles, so every state in which nobody can go on is reached all the same.
//!
//! Locks whose sections contain nothing but accesses matter to nobody: whoever holds one can go on and release it, so none is
//! held where nobody can go on, and a thread before such a section has gone through it there. On the way to that state it may as
//! well do so at once, since its section and what the others do in between do not change each other.
//!
//! Guarantee: each order found leads to such a state of the model. [`Live::complete`]: all of them were seen; else a limit was
//! reached, and there may be others. As everywhere in the model, values are ignored: a thread that would not wait in the program
//! waits here.

use crate::model::{Effect, Model, Need};
use crate::search::{Limits, Window, written_out};
use crate::state::State;
use crate::trim::trim;
use rashomon_event::{EventIndex, LockMode};
use rustc_hash::FxHashSet;
use std::collections::BTreeSet;

/// A state in which nobody can go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stuck {
    /// All events before `waits`, those excluded.
    pub order: Vec<EventIndex>,
    /// What threads cannot do: the next events of those that wait for each other in a cycle; without one, of all.
    pub waits: Vec<EventIndex>,
    /// Whether they wait for each other: else something is lost that nobody does any more.
    pub is_cycle: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Live {
    /// One for each set of waits, cycles first, of these those with the fewest events.
    pub stuck: Vec<Stuck>,
    pub complete: bool,
    pub states: usize,
    pub steps: usize,
}

/// Those states, with at most that many different sets of waits. `limits.reductions.runs` is not looked at: a thread that runs
/// alone passes by states in which it would be stuck. `partial_order` is left out only where it is measured.
pub fn live(model: &Model<'_>, most: usize, limits: &Limits, partial_order: bool) -> Live {
    let everything = model.steps.iter().map(|steps| steps.len() as u32).collect();
    let mut search = Search {
        state: State::new(model, everything, Vec::new()),
        limits,
        partial_order,
        harmless: harmless(model),
        seen: FxHashSet::default(),
        known: BTreeSet::new(),
        found: Vec::new(),
        states: 0,
        steps: 0,
    };
    let complete = search.run(most).is_some();
    let Search { mut found, states, steps, .. } = search;
    found.sort_by_key(|one| (!one.is_cycle, one.order.len()));
    Live { stuck: found, complete, states, steps }
}

/// Per lock, whether each of its acquisitions is followed by its release, and neither is part of a wait or can be held up.
fn harmless(model: &Model<'_>) -> Vec<bool> {
    let mut harmless = vec![true; model.locks.len()];
    for (thread, steps) in model.steps.iter().enumerate() {
        let begins = |at: usize| model.begun_by(thread, at as u32).is_some();
        let mut entered = None;
        for (at, step) in steps.iter().enumerate() {
            let released = match step.effect {
                Effect::Release { lock, mode } => Some((lock, mode)),
                _ => None,
            };
            if let Some((lock, _)) = released.filter(|_| released != entered || begins(at)) {
                harmless[lock as usize] = false;
            }
            if let Some((lock, _)) =
                entered.filter(|_| released != entered || begins(at) || !model.needs(thread, at as u32).is_empty())
            {
                harmless[lock as usize] = false;
            }
            entered = None;
            if let Effect::Acquire { lock, mode, wait } = step.effect {
                entered = Some((lock, mode));
                if wait.is_some() || begins(at) {
                    harmless[lock as usize] = false;
                }
            }
        }
        if let Some((lock, _)) = entered {
            harmless[lock as usize] = false;
        }
    }
    harmless
}

struct Search<'m, 't, 'l> {
    state: State<'m, 't>,
    limits: &'l Limits,
    partial_order: bool,
    /// Per lock, whether all its sections contain nothing but accesses.
    harmless: Vec<bool>,
    seen: FxHashSet<Box<[u32]>>,
    known: BTreeSet<Vec<EventIndex>>,
    found: Vec<Stuck>,
    states: usize,
    steps: usize,
}

/// A state that was entered, and the threads that have not been tried there.
struct Frame {
    mark: usize,
    choices: Vec<u32>,
}

impl Search<'_, '_, '_> {
    /// `None`: not all states were seen.
    fn run(&mut self, most: usize) -> Option<()> {
        let mut frames: Vec<Frame> = Vec::new();
        loop {
            if !self.limits.reductions.memory || self.seen.insert(self.state.key()) {
                self.states += 1;
                if self.states > self.limits.states {
                    return None;
                }
                let choices = self.choices();
                if choices.is_empty() {
                    self.tell();
                    if self.found.len() >= most {
                        return None;
                    }
                }
                frames.push(Frame { mark: self.state.mark(), choices });
            }
            loop {
                let Some(frame) = frames.last_mut() else { return Some(()) };
                self.state.back_to(frame.mark);
                match frame.choices.pop() {
                    Some(thread) => {
                        self.state.take(thread as usize);
                        self.steps += 1;
                        if self.steps > self.limits.steps || (self.steps.is_multiple_of(4096) && self.limits.deadline.is_over()) {
                            return None;
                        }
                        break;
                    }
                    None => _ = frames.pop(),
                }
            }
        }
    }

    /// Threads whose next steps are tried, the one that was first in the trace last; none if nobody can go on.
    fn choices(&self) -> Vec<u32> {
        let enabled: Vec<u32> = (0..self.state.done.len() as u32).filter(|&thread| self.state.enabled(thread as usize)).collect();
        let mut choices = enabled.clone();
        if self.partial_order {
            for &first in &enabled {
                let persistent = self.persistent(first as usize);
                if persistent.len() < choices.len() {
                    choices = persistent;
                }
                if choices.len() == 1 {
                    break;
                }
            }
        }
        choices.sort_unstable_by_key(|&thread| std::cmp::Reverse(self.state.next(thread as usize).map(|step| step.event)));
        choices
    }

    /// Those that can go on of the smallest set with this thread such that what the others may do does not matter to the next
    /// steps of the set.
    fn persistent(&self, first: usize) -> Vec<u32> {
        let mut within = vec![false; self.state.done.len()];
        within[first] = true;
        let (mut open, mut enabled) = (vec![first], Vec::new());
        while let Some(thread) = open.pop() {
            let mut add = |other: usize| {
                if !within[other] {
                    within[other] = true;
                    open.push(other);
                }
            };
            if self.state.enabled(thread) {
                enabled.push(thread as u32);
                self.each_dependent(thread, &mut add);
            } else {
                self.each_that_may_help(thread, &mut add);
            }
        }
        enabled
    }

    fn remains(&self, need: Need) -> bool {
        need.steps > self.state.done[need.thread as usize]
    }

    /// Threads with a step to come that excludes the next one of this thread, or changes what it does.
    fn each_dependent(&self, thread: usize, add: &mut impl FnMut(usize)) {
        let model = self.state.model;
        let Some(step) = self.state.next(thread) else { return };
        match step.effect {
            Effect::Acquire { lock, .. } if self.harmless[lock as usize] => {}
            Effect::Acquire { lock, mode, .. } => {
                for other in self.state.still_using(&model.locks, lock, mode) {
                    add(other);
                }
            }
            Effect::Take(semaphore) => {
                for other in self.state.still_using(&model.takers, semaphore, LockMode::Exclusive) {
                    add(other);
                }
            }
            Effect::Wakes { .. } => {
                for wait in self.state.woken_too_early(step) {
                    add(model.waits[wait as usize].thread as usize);
                }
            }
            Effect::None | Effect::Release { .. } | Effect::Post(_) | Effect::Never { .. } => {}
        }
        // Whoever signals before the wait has begun wakes nobody.
        if let Some(wait) = model.begun_by(thread, self.state.done[thread])
            && self.remains(model.waits[wait as usize].signal)
        {
            add(model.waits[wait as usize].signal.thread as usize);
        }
    }

    /// Threads without which the next step of this one does not become possible: one reason is enough.
    fn each_that_may_help(&self, thread: usize, add: &mut impl FnMut(usize)) {
        let model = self.state.model;
        let Some(step) = self.state.next(thread) else { return };
        let needs = model.needs(thread, self.state.done[thread]);
        if let Some(need) = needs.iter().find(|&&need| self.remains(need)) {
            return add(need.thread as usize);
        }
        match step.effect {
            Effect::Acquire { lock, wait, .. } if wait.is_none_or(|wait| !self.state.has_missed(wait)) => {
                for holder in self.state.holders(lock) {
                    add(holder);
                }
            }
            Effect::Take(semaphore) => {
                for other in self.state.still_using(&model.posters, semaphore, LockMode::Exclusive) {
                    add(other);
                }
            }
            _ => {}
        }
    }

    /// Nobody can go on here.
    fn tell(&mut self) {
        let model = self.state.model;
        let through = |thread: usize| match self.state.next(thread) {
            None => true,
            // Those that wait for others wait for these.
            Some(step) => matches!(step.effect, Effect::Never { for_thread: true }),
        };
        let threads: Vec<usize> = (0..self.state.done.len()).filter(|&thread| !through(thread)).collect();
        if threads.is_empty() {
            return;
        }
        let cycle = self.cycle(&threads);
        let is_cycle = !cycle.is_empty();
        let concerned = if is_cycle { cycle } else { threads };
        let mut waits: Vec<EventIndex> = concerned.iter().filter_map(|&thread| Some(self.state.next(thread)?.event)).collect();
        waits.sort_unstable();
        if !self.known.insert(waits.clone()) {
            return;
        }
        let start = vec![0; model.steps.len()];
        let mut required = if is_cycle { start.clone() } else { self.state.done.clone() };
        for &thread in &concerned {
            required[thread] = self.state.done[thread];
            for need in model.born[thread].into_iter().chain(model.needs(thread, self.state.done[thread]).iter().copied()) {
                // What is awaited of one who waits itself has not come.
                let wanted = &mut required[need.thread as usize];
                *wanted = (*wanted).max(need.steps.min(self.state.done[need.thread as usize]));
            }
        }
        let path: Vec<u32> = self.state.path().collect();
        let path = trim(model, &start, &required, &path);
        let order = written_out(model, Window::whole(model), &start, &path, &waits);
        self.found.push(Stuck { order, waits, is_cycle });
    }

    /// Threads of these that wait for each other, one after the other.
    fn cycle(&self, threads: &[usize]) -> Vec<usize> {
        for &first in threads {
            let mut way = vec![first];
            while let Some(next) = way.last().and_then(|&last| self.blocker(last)) {
                if let Some(place) = way.iter().position(|&known| known == next) {
                    return way.split_off(place);
                }
                way.push(next);
            }
        }
        Vec::new()
    }

    /// Who has what a thread waits for.
    fn blocker(&self, thread: usize) -> Option<usize> {
        let step = self.state.next(thread)?;
        let needs = self.state.model.needs(thread, self.state.done[thread]);
        if let Some(need) = needs.iter().find(|&&need| self.remains(need)) {
            return Some(need.thread as usize);
        }
        match step.effect {
            Effect::Acquire { lock, .. } => self.state.holders(lock).next(),
            _ => None,
        }
    }
}
