//! The operational semantics as a transition system that is computed where an exploration goes.
//!
//! Termination is an event of its own (tick). In a parallel composition a side terminates by an internal step, and the whole
//! terminates after both sides (distributed termination). A tick cannot be refused by the environment.

use crate::error::ScriptError;
use crate::term::{Event, Events, Processes, Term, TermId};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Action {
    /// Internal.
    Tau,
    Tick,
    Visible(Event),
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StepError {
    #[error("process {name} calls itself before any event")]
    Unguarded { name: String },
    #[error("terms grow deeper than {limit} operators")]
    Deep { limit: usize },
    #[error(transparent)]
    Script(#[from] ScriptError),
}

/// How deep a term that is stepped may be.
pub const DEPTH: usize = 1000;

pub type Steps = Arc<[(Action, TermId)]>;

/// Steps of terms, each computed once.
pub struct Transitions<'p> {
    pub processes: &'p mut Processes,
    known: FxHashMap<TermId, Steps>,
    under_way: FxHashSet<TermId>,
}

impl<'p> Transitions<'p> {
    pub fn new(processes: &'p mut Processes) -> Self {
        Self { processes, known: FxHashMap::default(), under_way: FxHashSet::default() }
    }

    /// Every action of a term and what it leads to, without duplicates.
    pub fn of(&mut self, id: TermId) -> Result<Steps, StepError> {
        self.within(id, DEPTH)
    }

    fn within(&mut self, id: TermId, depth: usize) -> Result<Steps, StepError> {
        if let Some(steps) = self.known.get(&id) {
            return Ok(steps.clone());
        }
        if depth == 0 || self.processes.depth(id) > DEPTH {
            self.under_way.clear();
            return Err(StepError::Deep { limit: DEPTH });
        }
        if !self.under_way.insert(id) {
            self.under_way.clear();
            let name = match self.processes.term(id) {
                Term::Call(name) => self.processes.definitions[name.0 as usize].0.clone(),
                _ => String::from("(unnamed)"),
            };
            return Err(StepError::Unguarded { name });
        }
        let mut steps = self.compute(id, depth - 1)?;
        steps.sort_unstable();
        steps.dedup();
        self.under_way.remove(&id);
        let steps: Steps = steps.into();
        self.known.insert(id, steps.clone());
        Ok(steps)
    }

    fn compute(&mut self, id: TermId, depth: usize) -> Result<Vec<(Action, TermId)>, StepError> {
        let mut steps = Vec::new();
        match self.processes.term(id).clone() {
            Term::Stop | Term::Done => {}
            Term::Skip => steps.push((Action::Tick, self.processes.make(Term::Done))),
            Term::Prefix(event, next) => steps.push((Action::Visible(event), next)),
            Term::Internal(one, other) => steps.extend([(Action::Tau, one), (Action::Tau, other)]),
            Term::Call(name) => {
                let body = self.processes.unfolded(name)?;
                steps.extend(self.within(body, depth)?.iter().copied());
            }
            Term::External(one, other) => {
                for &(action, next) in self.within(one, depth)?.iter() {
                    let kept = action == Action::Tau;
                    steps.push((action, if kept { self.processes.make(Term::External(next, other)) } else { next }));
                }
                for &(action, next) in self.within(other, depth)?.iter() {
                    let kept = action == Action::Tau;
                    steps.push((action, if kept { self.processes.make(Term::External(one, next)) } else { next }));
                }
            }
            Term::Hide(inner, hidden) => {
                for &(action, next) in self.within(inner, depth)?.iter() {
                    let next = match action {
                        Action::Tick => next,
                        _ => self.processes.make(Term::Hide(next, hidden.clone())),
                    };
                    let unseen = matches!(action, Action::Visible(event) if hidden.contains(&event));
                    steps.push((if unseen { Action::Tau } else { action }, next));
                }
            }
            Term::Rename(inner, renaming) => {
                for &(action, next) in self.within(inner, depth)?.iter() {
                    let Action::Visible(event) = action else {
                        let ends = action == Action::Tick;
                        steps.push((action, if ends { next } else { self.processes.make(Term::Rename(next, renaming.clone())) }));
                        continue;
                    };
                    let next = self.processes.make(Term::Rename(next, renaming.clone()));
                    steps.extend(renaming.of(event).into_iter().map(|event| (Action::Visible(event), next)));
                }
            }
            Term::Interrupt(inner, by) => {
                for &(action, next) in self.within(inner, depth)?.iter() {
                    let ends = action == Action::Tick;
                    steps.push((action, if ends { next } else { self.processes.make(Term::Interrupt(next, by)) }));
                }
                for &(action, next) in self.within(by, depth)?.iter() {
                    let kept = action == Action::Tau;
                    steps.push((action, if kept { self.processes.make(Term::Interrupt(inner, next)) } else { next }));
                }
            }
            Term::Sequence(first, then) => {
                for &(action, next) in self.within(first, depth)?.iter() {
                    steps.push(match action {
                        Action::Tick => (Action::Tau, then),
                        _ => (action, self.processes.make(Term::Sequence(next, then))),
                    });
                }
            }
            Term::Parallel(left, shared, right) => self.parallel(left, &shared, right, depth, &mut steps)?,
        }
        Ok(steps)
    }

    fn parallel(
        &mut self,
        left: TermId,
        shared: &Events,
        right: TermId,
        depth: usize,
        steps: &mut Vec<(Action, TermId)>,
    ) -> Result<(), StepError> {
        let done = self.processes.make(Term::Done);
        if left == done && right == done {
            steps.push((Action::Tick, done));
            return Ok(());
        }
        let of_left = self.within(left, depth)?;
        let of_right = self.within(right, depth)?;
        let common = |action| matches!(action, Action::Visible(event) if shared.contains(&event));
        let alone = |action| if action == Action::Tick { Action::Tau } else { action };
        for &(action, next) in of_left.iter().filter(|step| !common(step.0)) {
            steps.push((alone(action), self.processes.make(Term::Parallel(next, shared.clone(), right))));
        }
        for &(action, next) in of_right.iter().filter(|step| !common(step.0)) {
            steps.push((alone(action), self.processes.make(Term::Parallel(left, shared.clone(), next))));
        }
        for &(action, one) in of_left.iter().filter(|step| common(step.0)) {
            for &(_, other) in by(&of_right, action) {
                steps.push((action, self.processes.make(Term::Parallel(one, shared.clone(), other))));
            }
        }
        Ok(())
    }
}

/// The steps by one action, of sorted ones: of a process that watches all events there are thousands.
fn by(steps: &[(Action, TermId)], action: Action) -> &[(Action, TermId)] {
    let first = steps.partition_point(|step| step.0 < action);
    let count = steps[first..].partition_point(|step| step.0 == action);
    &steps[first..first + count]
}
