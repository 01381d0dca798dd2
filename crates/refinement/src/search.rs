//! Whether the model reaches a state in which each goal is the next event of its thread: an explicit search of its states.
//!
//! A state is how far each thread is, and which waits have missed their signals; who holds what follows. Accesses are no steps:
//! any of a segment can be next while its thread is there, so one state stands for all of a segment's.
//!
//! Reductions, none of which loses a goal. *Relevance*: threads stop where they hold no lock and nothing asks for more of them.
//! *Runs*: what a thread can do alone, and after which it holds no lock that it did not hold all the time, no semaphore is lower
//! than in between, and no signal is wasted, only helps all others, so it is done at once and without an alternative; locks and
//! semaphores that nobody else wants any more do not count. What is left to choose are acquisitions that others compete for.
//! *Memory*: no state is entered twice. *Symmetry*: nor one that differs in which of several threads that do the same is how
//! far.
//!
//! Guarantee: an order found is one of the model. [`Answer::No`] is exact: all states were seen. Otherwise `Undecided`, with the
//! number of states that were.

mod near;
mod symmetry;

pub use near::near;

use crate::model::{Effect, Model};
use crate::state::State;
use crate::trim::trim;
use rashomon_event::{Deadline, EventIndex, LockMode};
use rustc_hash::FxHashSet;

/// What keeps states small in number. All are on but where they are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reductions {
    pub relevance: bool,
    /// Steps that nobody competes with are done at once.
    pub chains: bool,
    /// And whole sections that only help others: partial order.
    pub runs: bool,
    pub memory: bool,
    pub symmetry: bool,
}

impl Reductions {
    pub const ALL: Self = Self { relevance: true, chains: true, runs: true, memory: true, symmetry: true };
}

#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// States seen.
    pub states: usize,
    /// Steps tried, back and forth, beside those of the trace.
    pub steps: usize,
    pub deadline: Deadline,
    pub reductions: Reductions,
}

impl Default for Limits {
    fn default() -> Self {
        Self { states: 100_000, steps: 20_000_000, deadline: Deadline::NEVER, reductions: Reductions::ALL }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// All events before the goals, goals excluded.
    Order(Vec<EventIndex>),
    /// The model has no such state. `ordered`: whatever holds locks, as one goal has to run before another.
    No {
        ordered: bool,
    },
    Undecided,
}

/// An answer, and what it cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    pub answer: Answer,
    /// States seen.
    pub states: usize,
    /// Steps tried, back and forth.
    pub steps: usize,
}

impl Found {
    const fn at_once(ordered: bool) -> Self {
        Self { answer: Answer::No { ordered }, states: 0, steps: 0 }
    }
}

/// What of the trace may be ordered anew: the rest before it is as it was, the rest behind it does not come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    pub from: usize,
    pub to: usize,
}

impl Window {
    pub const fn whole(model: &Model<'_>) -> Self {
        Self { from: 0, to: model.trace.events.len() }
    }

    /// The window of that many events that ends some way behind the last goal; `None` if it does not hold all goals.
    pub fn around(model: &Model<'_>, goals: &[EventIndex], events: usize) -> Option<Self> {
        let first = goals.iter().min()?.index();
        let last = goals.iter().max()?.index();
        let spare = events.checked_sub(last - first + 1)?;
        let to = (last + 1 + spare / 2).min(model.trace.events.len());
        Some(Self { from: to.saturating_sub(events), to })
    }
}

pub fn find(model: &Model<'_>, goals: &[EventIndex], window: Window, limits: &Limits) -> Found {
    let mut places: Vec<(usize, u32)> = Vec::new();
    for &goal in goals {
        let place = (model.trace.event(goal).thread.index(), model.steps_before(goal));
        if places.iter().any(|other| other.0 == place.0) || !(window.from..window.to).contains(&goal.index()) {
            return Found::at_once(true);
        }
        places.push(place);
    }
    let before: Vec<usize> = if window.from > 0 { observed(model, window.from).collect() } else { Vec::new() };
    let mut prefix = vec![0_u32; model.steps.len()];
    before.iter().for_each(|&thread| prefix[thread] += 1);
    let Some((required, useful)) = relevant(model, goals, &places, &prefix) else { return Found::at_once(true) };
    let everything = |thread: usize| places.iter().find(|place| place.0 == thread).map_or(u32::MAX, |place| place.1);
    let useful = if limits.reductions.relevance { useful } else { (0..useful.len()).map(everything).collect() };
    let within = |thread: usize| model.steps[thread].partition_point(|step| step.event.index() < window.to) as u32;
    let mut limit: Vec<u32> = useful.iter().enumerate().map(|(thread, &useful)| useful.min(within(thread))).collect();
    limit.iter_mut().zip(&prefix).for_each(|(limit, &prefix)| *limit = prefix.max(*limit));
    let of_goals = goals.iter().filter_map(|&goal| model.wait_of(goal)).collect();
    let mut state = State::new(model, limit, of_goals);
    before.iter().for_each(|&thread| state.take(thread));
    let prefix = state.mark();
    let start: Vec<u32> = state.done.clone();
    let mut search = Search {
        state,
        goals: &places,
        limits,
        tried: 0,
        states: 0,
        seen: FxHashSet::default(),
        waits: Vec::new(),
        kept: Vec::new(),
        classes: Vec::new(),
    };
    search.waits = search.state_waits(goals);
    search.kept = goals.iter().flat_map(|&goal| model.kept_at(goal)).collect();
    if required.iter().zip(&search.state.limit).any(|(required, limit)| required > limit) {
        return Found::at_once(false);
    }
    if search.goals_exclude() {
        return Found::at_once(false);
    }
    if limits.reductions.memory && limits.reductions.symmetry {
        let needed = search.kept.iter().chain(search.waits.iter().map(|(_, signal)| signal)).map(|need| need.thread as usize);
        let of_goals =
            places.iter().flat_map(|place| model.born[place.0].iter().map(|need| need.thread as usize).chain([place.0]));
        search.classes = symmetry::classes(model, &search.state.limit, needed.chain(of_goals));
    }
    let found = search.run();
    let (states, steps) = (search.states, search.tried);
    let answer = match found {
        Some(true) => {
            let path: Vec<u32> = search.state.path().skip(prefix).collect();
            let path = trim(model, &start, &required, &path);
            Answer::Order(written_out(model, window, &start, &path, goals))
        }
        Some(false) => Answer::No { ordered: false },
        None => Answer::Undecided,
    };
    Found { answer, states, steps }
}

/// The threads of the steps before an event, in the order of the trace.
fn observed<'m>(model: &'m Model<'_>, from: usize) -> impl Iterator<Item = usize> + 'm {
    let mut next = vec![0; model.steps.len()];
    model.trace.indices().take(from).filter_map(move |event| {
        let thread = model.trace.event(event).thread.index();
        let is_step = model.steps[thread].get(next[thread]).is_some_and(|step| step.event == event);
        next[thread] += usize::from(is_step);
        is_step.then_some(thread)
    })
}

/// Per thread, how many steps the goals need, and how many can be of use. `None`: a goal needs another one.
/// Whoever holds a lock where the window begins (`prefix`: steps before that) must be able to release it.
fn relevant(model: &Model<'_>, goals: &[EventIndex], places: &[(usize, u32)], prefix: &[u32]) -> Option<(Vec<u32>, Vec<u32>)> {
    let threads = model.steps.len();
    let mut required = Closure::new(threads, places);
    for (&goal, &(thread, before)) in goals.iter().zip(places) {
        required.want(thread, before);
        let signal = model.wait_of(goal).map(|wait| model.waits[wait as usize].signal);
        for need in model.born[thread].into_iter().chain(signal).chain(model.kept_at(goal)) {
            required.want(need.thread as usize, need.steps);
        }
    }
    required.close(model, false);
    if required.beyond {
        return None;
    }
    let mut useful = Closure { beyond: false, open: (0..threads).collect(), ..required.clone() };
    useful.seen = vec![0; threads];
    for (thread, &prefix) in prefix.iter().enumerate() {
        if prefix > 0 && !places.iter().any(|place| place.0 == thread) {
            useful.want(thread, model.without_locks(thread, prefix));
        }
    }
    useful.close(model, true);
    Some((required.steps, useful.steps))
}

#[derive(Clone)]
struct Closure<'p> {
    steps: Vec<u32>,
    /// Steps whose needs have been looked at.
    seen: Vec<u32>,
    goals: &'p [(usize, u32)],
    open: Vec<usize>,
    /// More of a goal's thread was wanted than comes before the goal.
    beyond: bool,
}

impl<'p> Closure<'p> {
    fn new(threads: usize, goals: &'p [(usize, u32)]) -> Self {
        Self { steps: vec![0; threads], seen: vec![0; threads], goals, open: Vec::new(), beyond: false }
    }

    fn want(&mut self, thread: usize, steps: u32) {
        let most = self.goals.iter().find(|goal| goal.0 == thread).map_or(u32::MAX, |goal| goal.1);
        self.beyond |= steps > most;
        let steps = steps.min(most);
        if self.steps[thread] < steps {
            self.steps[thread] = steps;
            self.open.push(thread);
        }
    }

    /// `all`: with the ends of open sections, and with all posts of semaphores that are taken.
    fn close(&mut self, model: &Model<'_>, all: bool) {
        while let Some(thread) = self.open.pop() {
            if all {
                self.steps[thread] = self.without_locks(model, thread);
            }
            for step in self.seen[thread]..self.steps[thread] {
                for need in model.needs(thread, step) {
                    self.want(need.thread as usize, need.steps);
                }
                if let Effect::Take(semaphore) = model.steps[thread][step as usize].effect
                    && all
                {
                    for poster in model.posters.get(semaphore as usize).into_iter().flatten() {
                        let last = poster.all.last().map_or(0, |last| last + 1);
                        self.want(poster.thread as usize, last);
                    }
                }
            }
            self.seen[thread] = self.seen[thread].max(self.steps[thread]);
        }
    }

    /// The first place from the thread's last wanted step on where it holds no lock.
    fn without_locks(&self, model: &Model<'_>, thread: usize) -> u32 {
        let wanted = self.steps[thread];
        if wanted == 0 || self.goals.iter().any(|goal| goal.0 == thread) {
            return wanted;
        }
        model.without_locks(thread, wanted)
    }
}

struct Search<'m, 't, 'g> {
    state: State<'m, 't>,
    goals: &'g [(usize, u32)],
    limits: &'g Limits,
    tried: usize,
    states: usize,
    /// Empty without the reduction.
    seen: FxHashSet<Box<[u32]>>,
    /// Waits that goals end, with what must have been done.
    waits: Vec<(u32, crate::model::Need)>,
    /// What calls into unseen code may have ordered before the goals.
    kept: Vec<crate::model::Need>,
    /// Threads that do the same.
    classes: Vec<Vec<u32>>,
}

/// A state that was entered, and the threads that have not been tried there.
struct Frame {
    mark: usize,
    choices: Vec<u32>,
}

impl<'m> Search<'m, '_, '_> {
    fn state_waits(&self, goals: &[EventIndex]) -> Vec<(u32, crate::model::Need)> {
        let model = self.state.model;
        let waits = goals.iter().filter_map(|&goal| model.wait_of(goal));
        waits.map(|wait| (wait, model.waits[wait as usize].signal)).collect()
    }

    fn reached(&self) -> bool {
        let done = |thread: u32| self.state.done[thread as usize];
        let kept = self.kept.iter().all(|need| done(need.thread) >= need.steps);
        kept && self.goals.iter().all(|&(thread, before)| {
            self.state.done[thread] == before && self.state.model.born[thread].is_none_or(|need| done(need.thread) >= need.steps)
        }) && self.waits.iter().all(|&(wait, signal)| done(signal.thread) >= signal.steps && !self.state.has_missed(wait))
    }

    /// Whether threads hold locks at their goals that exclude each other.
    fn goals_exclude(&self) -> bool {
        let mut held: Vec<(usize, u32, LockMode)> = Vec::new();
        for &(thread, before) in self.goals {
            for step in &self.state.model.steps[thread][..before as usize] {
                match step.effect {
                    Effect::Acquire { lock, mode, .. } => held.push((thread, lock, mode)),
                    Effect::Release { lock, mode } => {
                        if let Some(place) = held.iter().rposition(|&open| open == (thread, lock, mode)) {
                            held.swap_remove(place);
                        }
                    }
                    _ => {}
                }
            }
        }
        let exclude = |one: &(usize, u32, LockMode), other: &(usize, u32, LockMode)| {
            one.0 != other.0 && one.1 == other.1 && (one.2 == LockMode::Exclusive || other.2 == LockMode::Exclusive)
        };
        held.iter().enumerate().any(|(place, one)| held[place + 1..].iter().any(|other| exclude(one, other)))
    }

    /// `None`: a limit is reached.
    fn run(&mut self) -> Option<bool> {
        let mut frames: Vec<Frame> = Vec::new();
        loop {
            if self.limits.reductions.runs || self.limits.reductions.chains {
                self.run_all_alone()?;
            }
            if self.reached() {
                return Some(true);
            }
            if !self.limits.reductions.memory || self.seen.insert(self.key()) {
                self.states += 1;
                if self.states > self.limits.states {
                    return None;
                }
                frames.push(Frame { mark: self.state.mark(), choices: self.choices() });
            }
            loop {
                let Some(frame) = frames.last_mut() else { return Some(false) };
                self.state.back_to(frame.mark);
                match frame.choices.pop() {
                    Some(thread) => {
                        self.state.take(thread as usize);
                        self.tried += 1;
                        self.within_limits()?;
                        break;
                    }
                    None => _ = frames.pop(),
                }
            }
        }
    }

    fn key(&self) -> Box<[u32]> {
        let mut key = self.state.key();
        symmetry::sort(self.state.model, &self.classes, &mut key[..self.state.done.len()]);
        key
    }

    /// `None`: too many steps, or too late.
    fn within_limits(&self) -> Option<()> {
        let over = self.tried > self.limits.steps || (self.tried.is_multiple_of(4096) && self.limits.deadline.is_over());
        (!over).then_some(())
    }

    /// Threads that can do a step, the one that was first in the trace last.
    fn choices(&self) -> Vec<u32> {
        let mut choices: Vec<u32> =
            (0..self.state.done.len() as u32).filter(|&thread| self.state.enabled(thread as usize)).collect();
        choices.sort_unstable_by_key(|&thread| std::cmp::Reverse(self.state.next(thread as usize).map(|step| step.event)));
        choices
    }

    fn run_all_alone(&mut self) -> Option<()> {
        let mut moved = true;
        while moved {
            moved = false;
            for thread in 0..self.state.done.len() {
                while self.run_alone(thread)? {
                    moved = true;
                }
            }
        }
        Some(())
    }

    /// The longest run of a thread that only helps others; whether there is any.
    fn run_alone(&mut self, thread: usize) -> Option<bool> {
        let start = self.state.mark();
        let (mut best, mut open) = (start, Vec::new());
        let Reductions { chains, runs, .. } = self.limits.reductions;
        // Without chains, a run has to hold a section.
        let mut counts = chains;
        // Semaphores, how much they are changed, and the most they were.
        let mut levels: Vec<(u32, i64, i64)> = Vec::new();
        while let Some(step) = self.state.next(thread) {
            if self.state.wastes(step) || !self.state.enabled(thread) {
                break;
            }
            match step.effect {
                Effect::Acquire { lock, mode, .. } if self.competed(&self.state.model.locks, lock, thread, mode) => {
                    if !runs {
                        break;
                    }
                    counts = true;
                    open.push((lock, mode));
                }
                Effect::Release { lock, mode } => {
                    if let Some(place) = open.iter().rposition(|&held| held == (lock, mode)) {
                        open.swap_remove(place);
                    }
                }
                Effect::Post(semaphore) => change(&mut levels, semaphore, 1),
                Effect::Take(semaphore) if self.competed(&self.state.model.takers, semaphore, thread, LockMode::Exclusive) => {
                    if !runs {
                        break;
                    }
                    counts = true;
                    change(&mut levels, semaphore, -1);
                }
                _ => {}
            }
            self.state.take(thread);
            self.tried += 1;
            self.within_limits()?;
            if counts && open.is_empty() && levels.iter().all(|&(_, now, most)| now >= most) {
                best = self.state.mark();
            }
        }
        self.state.back_to(best);
        Some(best > start)
    }

    /// Whether another thread will still want it, in a mode that excludes this one.
    fn competed(&self, uses: &'m [Vec<crate::model::Use>], number: u32, thread: usize, mode: LockMode) -> bool {
        self.state.still_using(uses, number, mode).any(|other| other != thread)
    }
}

fn change(levels: &mut Vec<(u32, i64, i64)>, semaphore: u32, by: i64) {
    let place = levels.iter().position(|level| level.0 == semaphore).unwrap_or_else(|| {
        levels.push((semaphore, 0, 0));
        levels.len() - 1
    });
    let (_, now, most) = &mut levels[place];
    *now += by;
    *most = (*most).max(*now);
}

/// All events: what was observed before the window, each step with what its thread does before it, and what is left before the
/// goals.
pub(crate) fn written_out(
    model: &Model<'_>,
    window: Window,
    start: &[u32],
    path: &[u32],
    goals: &[EventIndex],
) -> Vec<EventIndex> {
    let mut order: Vec<EventIndex> = model.trace.indices().take(window.from).collect();
    let before = |events: &Vec<EventIndex>| events.partition_point(|event| event.index() < window.from);
    let mut events: Vec<usize> = model.facts.threads.iter().map(before).collect();
    let mut steps: Vec<u32> = start.to_vec();
    let mut until = |thread: usize, end: usize, order: &mut Vec<EventIndex>| {
        if events[thread] < end {
            order.extend_from_slice(&model.facts.threads[thread][events[thread]..end]);
            events[thread] = end;
        }
    };
    for &thread in path {
        let thread = thread as usize;
        let step = &model.steps[thread][steps[thread] as usize];
        steps[thread] += 1;
        until(thread, model.facts.position[step.event.index()] as usize + 1, &mut order);
    }
    for &goal in goals {
        let (thread, at) = model.facts.place(model.trace, goal);
        until(thread, at as usize, &mut order);
    }
    order
}
