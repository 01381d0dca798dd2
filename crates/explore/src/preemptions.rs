//! All schedules with few preemptions first.
//!
//! M. Musuvathi, S. Qadeer, "Iterative Context Bounding for Systematic Testing of Multithreaded Programs", PLDI 2007, Algorithm
//! 1: schedules with c preemptions are executed before any with c + 1; changes of the running thread where it cannot go on are
//! free.
//!
//! **States** ([`PreemptionBounding::remembering`]). Two lists of decisions lead to the same state if the same steps are in the
//! same partial order (M. Musuvathi, S. Qadeer, "Partial-Order Reduction for Context-Bounded State Exploration", MSR-TR-2007-12,
//! 2007: happens-before graphs for states). What follows from a state is tried once, unless it is reached with fewer preemptions
//! than before. The thread that ran is part of the state, since another one that goes on is a preemption; so are the threads that
//! can go on and those that are passed over, which depend on more than the order. That is sound as far as the order is that of
//! all accesses that matter: where plain accesses race that are not visible, it is not. From the first step on of which is not
//! known what it depends on (files), nothing is remembered. Without a bound ([`UNBOUNDED`]) neither the thread that ran nor the
//! number of preemptions matters.
//!
//! **Sleep sets** (P. Godefroid, "Partial-Order Methods for the Verification of Concurrent Systems", LNCS 1032, 1996, §5.2) take
//! the place of states where there is no bound: of the schedules that differ in the order of independent steps one is executed to
//! its end. With a bound they would be wrong, as the one that is executed may have more preemptions than the one that is not.
//! They need the dependences of every step. So the first step of which they are not known begins the search anew, without them.
//!
//! **Hints.** What a search does by itself behind its decisions costs nothing. Without a preferred thread that is never a
//! preemption. With one, turns that it takes are free, as in delay bounding (M. Emmi, S. Qadeer, Z. Rakamarić, "Delay-Bounded
//! Scheduling", POPL 2011), where a schedule costs what it deviates from a deterministic scheduler: no schedule costs more than
//! its preemptions.
//!
//! Guarantee: when it is exhaustive, every schedule with at most that many preemptions was executed, or one that leads through
//! the same states. Cost: of the order of (steps)^c; one list of decisions a schedule still to be tried. Limit: lists beyond
//! [`MAX_PLANNED`] are dropped, and the search is then not exhaustive.

use crate::dependence::{Order, is_opaque};
use crate::file::End;
use crate::log::Log;
use crate::search::{Plan, Search};
use rashomon_event::counted;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};

/// Steps times threads of an execution beyond which it is not asked whether what it comes to is known: to order one takes so many
/// numbers of four bytes.
const MOST_COMPARED: usize = 1 << 26;
/// Decisions of all lists that wait to be tried.
const MAX_PLANNED: usize = 1 << 26;
/// States that are remembered; further ones are tried whenever they are reached.
const MAX_STATES: usize = 1 << 22;

/// Preemptions of a search that has no bound.
pub const UNBOUNDED: usize = usize::MAX;

/// Steps and their order; the thread that ran, with a bound; threads that can go on, and those passed over.
type State = (u128, Option<u32>, u64, u64);

/// A list of decisions, how many preemptions they make, and which threads are asleep at the last of them.
#[derive(Clone, Debug, Default)]
struct Planned {
    decisions: Vec<u32>,
    cost: usize,
    asleep: u64,
}

/// A list that was given and is not learned yet.
#[derive(Clone, Copy, Debug)]
struct Given {
    cost: usize,
    /// Given before the search began anew: what it leads to is planned from the beginning.
    stale: bool,
}

#[derive(Clone, Debug)]
pub struct PreemptionBounding {
    most: usize,
    bound: usize,
    current: VecDeque<Planned>,
    next: VecDeque<Planned>,
    given: VecDeque<Given>,
    planned: usize,
    dropped: bool,
    executed: u64,
    /// With the fewest preemptions that led there.
    states: Option<HashMap<State, usize>>,
    sleeps: bool,
    /// Which of the changes of the first schedule are tried, as an index and a number of parts: (1, 5) is the second of every
    /// five.
    part: (usize, usize),
}

impl PreemptionBounding {
    /// Schedules with up to `most` preemptions.
    pub fn new(most: usize) -> Self {
        Self {
            most,
            bound: 0,
            current: [Planned::default()].into(),
            next: VecDeque::new(),
            given: VecDeque::new(),
            planned: 0,
            dropped: false,
            executed: 0,
            states: None,
            sleeps: false,
            part: (0, 1),
        }
    }

    /// Only a part of them, such as (1, 5), the second of five: the first schedule, and every fifth of those that change it, with
    /// all that follows from them. All parts together are exhaustive if each is: a part leaves out what follows from a state that
    /// it knows, and that state is on the first schedule, whose changes other parts try, or in the part itself.
    #[must_use]
    pub fn part(self, (index, of): (usize, usize)) -> Self {
        Self { part: (index, of.max(1)), ..self }
    }

    /// The same, without those that only lead to states from which everything was tried, or, if there is no bound, that only
    /// order independent steps in another way.
    pub fn remembering(most: usize) -> Self {
        Self { states: Some(HashMap::new()), sleeps: most == UNBOUNDED, ..Self::new(most) }
    }

    /// Goes on without sleep sets.
    fn begins_anew(&mut self) {
        self.sleeps = false;
        self.current = [Planned::default()].into();
        self.next.clear();
        self.planned = 0;
        self.given.iter_mut().for_each(|given| given.stale = true);
    }

    /// Whether everything that follows from a state was, or will be, tried with as few preemptions. If not, the caller sees to
    /// it.
    fn is_known(&mut self, state: State, preemptions: usize) -> bool {
        let Some(states) = &mut self.states else { return false };
        let full = states.len() >= MAX_STATES;
        match states.entry(state) {
            Entry::Occupied(mut known) if *known.get() > preemptions => {
                known.insert(preemptions);
                false
            }
            Entry::Occupied(_) => true,
            Entry::Vacant(new) => {
                if !full {
                    new.insert(preemptions);
                }
                false
            }
        }
    }

    /// The number of preemptions of the schedules that are being tried.
    pub fn bound(&self) -> usize {
        self.bound
    }
}

impl Search for PreemptionBounding {
    fn next(&mut self) -> Option<Plan> {
        if self.current.is_empty() && self.bound < self.most && !self.next.is_empty() {
            self.bound += 1;
            std::mem::swap(&mut self.current, &mut self.next);
        }
        let Planned { decisions, cost, asleep } = self.current.pop_front()?;
        self.planned -= decisions.len();
        self.given.push_back(Given { cost, stale: false });
        Some(Plan { asleep, ..Plan::of(decisions) })
    }

    fn learn(&mut self, plan: &Plan, log: &Log, end: End) {
        self.executed += 1;
        let given = self.given.pop_front().unwrap_or(Given { cost: 0, stale: false });
        if given.stale {
            return;
        }
        let whole = matches!(end, End::None | End::Held) || end == End::Asleep && self.sleeps;
        self.dropped |= !whole || !log.has_whole_sets();
        if !log.has_whole_sets() {
            return;
        }
        if self.sleeps && log.steps.iter().any(|step| is_opaque(&step.does.operation)) {
            self.begins_anew();
            return;
        }
        let decisions = log.decisions();
        let mut changes = 0;
        let compares = self.states.is_some() && !self.sleeps && log.steps.len() * log.threads.len() <= MOST_COMPARED;
        let states = if compares { Order::of(log).states() } else { Vec::new() };
        for (at, step) in log.steps.iter().enumerate().skip(plan.decisions.len()) {
            let ran = at.checked_sub(1).map(|before| log.steps[before].thread);
            let (ran, paid) = if self.most == UNBOUNDED { (None, 0) } else { (ran, given.cost) };
            if let Some(&state) = states.get(at)
                && self.is_known((state, ran, step.enabled, step.waiting), paid)
            {
                break;
            }
            let mut asleep = if self.sleeps { step.asleep | 1 << step.thread } else { 0 };
            let among = step.enabled & !step.waiting & !asleep;
            for thread in (0..64).filter(|&thread| thread != step.thread && among >> thread & 1 != 0) {
                let cost = given.cost + usize::from(log.is_preemption(at, thread));
                if cost > self.most {
                    continue;
                }
                changes += 1;
                if plan.decisions.is_empty() && (changes - 1) % self.part.1 != self.part.0 {
                    asleep |= if self.sleeps { 1 << thread } else { 0 };
                    continue;
                }
                if self.planned > MAX_PLANNED {
                    self.dropped = true;
                    continue;
                }
                let list: Vec<u32> = decisions[..at].iter().copied().chain([thread]).collect();
                self.planned += list.len();
                let planned = Planned { decisions: list, cost, asleep };
                if cost <= self.bound {
                    self.current.push_back(planned)
                } else {
                    self.next.push_back(planned)
                }
                asleep |= if self.sleeps { 1 << thread } else { 0 };
            }
        }
    }

    fn is_exhaustive(&self) -> bool {
        !self.dropped && self.given.is_empty() && self.current.is_empty() && (self.next.is_empty() || self.bound >= self.most)
    }

    fn parallel(&self) -> bool {
        true
    }

    fn describe(&self) -> String {
        let (index, of) = self.part;
        let part = if of > 1 { format!(", part {}/{of}", index + 1) } else { String::new() };
        format!("{} {}{part}", counted(self.executed, "schedule"), up_to(self.bound as u64))
    }
}

/// How many preemptions schedules have, in words.
pub fn up_to(preemptions: u64) -> String {
    if preemptions == 0 { "without preemptions".into() } else { format!("with up to {}", counted(preemptions, "preemption")) }
}
