//! Refinement, on the fly: pairs of a state of the implementation and a normalised state of the specification, level by level
//! of the visible trace, so that the first counterexample is a shortest one.
//!
//! A normalised state is the set of all states that the specification may be in after a trace. Divergence is not looked at: in
//! the stable-failures model a state that only does internal steps refuses nothing.
//!
//! Guarantee: a verdict, or `Undecided` with the pairs that were seen. Each counterexample is run again by
//! [`crate::interpreter`], which shares no code with this. Pairs are visited once: of several counterexamples that end in the
//! same pair, one is told.

use crate::interpreter;
use crate::term::{Processes, TermId};
use crate::transitions::{Action, StepError, Transitions};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;
use std::time::Instant;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    Traces,
    StableFailures,
}

#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Pairs of states, and terms that the exploration may make.
    pub states: usize,
    pub counterexamples: usize,
    pub until: Option<Instant>,
}

impl Default for Limits {
    fn default() -> Self {
        Self { states: 1_000_000, counterexamples: 1, until: None }
    }
}

/// What the implementation does and the specification does not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counterexample {
    /// Ticks and visible events.
    pub trace: Vec<Action>,
    /// After the trace, all that the implementation offers. `None`: the trace itself is too much.
    pub offers: Option<BTreeSet<Action>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Holds {
        states: usize,
    },
    /// Shortest first.
    Fails {
        counterexamples: Vec<Counterexample>,
        states: usize,
    },
    Undecided {
        states: usize,
        why: Why,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Why {
    #[error("the limit of states is reached")]
    States,
    #[error("the time is over")]
    Time,
    #[error(transparent)]
    Step(#[from] StepError),
    #[error("the interpreter of terms does not accept a counterexample")]
    Rejected,
}

/// Whether each behaviour of the implementation is one of the specification.
pub fn refines(
    processes: &mut Processes,
    model: Model,
    specification: TermId,
    implementation: TermId,
    limits: &Limits,
) -> Verdict {
    explore(processes, Goal::Refinement(model, specification), implementation, limits)
}

/// Whether the process always can do something, until it terminates.
pub fn deadlock_free(processes: &mut Processes, process: TermId, limits: &Limits) -> Verdict {
    explore(processes, Goal::DeadlockFree, process, limits)
}

#[derive(Clone, Copy)]
enum Goal {
    Refinement(Model, TermId),
    DeadlockFree,
}

fn explore(processes: &mut Processes, goal: Goal, implementation: TermId, limits: &Limits) -> Verdict {
    let mut search = Search::new(processes, goal, limits);
    let ended = search.run(implementation);
    let (states, found) = (search.pairs.len(), std::mem::take(&mut search.found));
    let accepted = |found: &Counterexample| interpreter::shows(processes, implementation, &found.trace, found.offers.as_ref());
    if !found.iter().all(accepted) {
        return Verdict::Undecided { states, why: Why::Rejected };
    }
    match ended {
        _ if !found.is_empty() => Verdict::Fails { counterexamples: found, states },
        Err(why) => Verdict::Undecided { states, why },
        Ok(()) => Verdict::Holds { states },
    }
}

/// A normalised state of the specification.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Node(u32);

struct Search<'p, 'l> {
    transitions: Transitions<'p>,
    goal: Goal,
    limits: &'l Limits,
    nodes: Vec<BTreeSet<TermId>>,
    numbers: FxHashMap<BTreeSet<TermId>, Node>,
    after: FxHashMap<(Node, Action), Option<Node>>,
    acceptances: FxHashMap<Node, Vec<BTreeSet<Action>>>,
    pairs: Vec<Pair>,
    seen: FxHashSet<(TermId, Node)>,
    found: Vec<Counterexample>,
}

struct Pair {
    state: TermId,
    node: Node,
    /// Where it was reached from, and by what.
    from: Option<(usize, Action)>,
}

impl<'p, 'l> Search<'p, 'l> {
    fn new(processes: &'p mut Processes, goal: Goal, limits: &'l Limits) -> Self {
        Self {
            transitions: Transitions::new(processes),
            goal,
            limits,
            nodes: vec![BTreeSet::new()],
            numbers: FxHashMap::default(),
            after: FxHashMap::default(),
            acceptances: FxHashMap::default(),
            pairs: Vec::new(),
            seen: FxHashSet::default(),
            found: Vec::new(),
        }
    }

    fn run(&mut self, implementation: TermId) -> Result<(), Why> {
        let start = match self.goal {
            Goal::Refinement(_, specification) => self.node(BTreeSet::from([specification]))?,
            Goal::DeadlockFree => Node(0),
        };
        let (mut level, mut next) = (Vec::new(), Vec::new());
        next.push(Pair { state: implementation, node: start, from: None });
        while !next.is_empty() {
            // Seen from here on only: an internal step may have reached the same pair by the shorter trace.
            for pair in std::mem::take(&mut next) {
                self.reach(pair, &mut level);
            }
            let mut place = 0;
            // Internal steps extend the level itself.
            while let Some(&pair) = level.get(place) {
                place += 1;
                self.visit(pair, &mut level, &mut next)?;
            }
            level.clear();
            if self.found.len() >= self.limits.counterexamples {
                return Ok(());
            }
        }
        Ok(())
    }

    fn reach(&mut self, pair: Pair, into: &mut Vec<usize>) {
        if self.seen.insert((pair.state, pair.node)) {
            into.push(self.pairs.len());
            self.pairs.push(pair);
        }
    }

    fn visit(&mut self, pair: usize, level: &mut Vec<usize>, next: &mut Vec<Pair>) -> Result<(), Why> {
        self.afford()?;
        let Pair { state, node, .. } = self.pairs[pair];
        let steps = self.transitions.of(state)?;
        if let Some(offers) = offers(&steps)
            && self.refuses_too_much(node, &offers, state)?
        {
            let trace = self.trace(pair, None);
            self.tell(Counterexample { trace, offers: Some(offers) });
        }
        for &(action, successor) in steps.iter() {
            let from = Some((pair, action));
            match (action, self.goal) {
                (Action::Tau, _) => self.reach(Pair { state: successor, node, from }, level),
                (_, Goal::DeadlockFree) => next.push(Pair { state: successor, node, from }),
                (_, Goal::Refinement(..)) => match self.after(node, action)? {
                    Some(after) => next.push(Pair { state: successor, node: after, from }),
                    None => {
                        let trace = self.trace(pair, Some(action));
                        self.tell(Counterexample { trace, offers: None });
                    }
                },
            }
        }
        Ok(())
    }

    /// Keeps the shortest. Within a level, a refusal is shorter than a trace that goes too far.
    fn tell(&mut self, found: Counterexample) {
        if !self.found.contains(&found) {
            let place = self.found.partition_point(|other| other.trace.len() <= found.trace.len());
            self.found.insert(place, found);
            self.found.truncate(self.limits.counterexamples);
        }
    }

    fn refuses_too_much(&mut self, node: Node, offers: &BTreeSet<Action>, state: TermId) -> Result<bool, Why> {
        let done = *self.transitions.processes.term(state) == crate::term::Term::Done;
        match self.goal {
            Goal::Refinement(Model::Traces, _) => Ok(false),
            Goal::DeadlockFree => Ok(!done && offers.is_empty()),
            Goal::Refinement(Model::StableFailures, _) => {
                if !self.acceptances.contains_key(&node) {
                    let mut all = Vec::new();
                    for &state in &self.nodes[node.0 as usize].clone() {
                        all.extend(self::offers(&self.transitions.of(state)?));
                    }
                    self.acceptances.insert(node, all);
                }
                Ok(!self.acceptances[&node].iter().any(|accepted| accepted.is_subset(offers)))
            }
        }
    }

    /// The specification after one more action; `None` if it does not do it.
    fn after(&mut self, node: Node, action: Action) -> Result<Option<Node>, Why> {
        if let Some(&known) = self.after.get(&(node, action)) {
            return Ok(known);
        }
        let mut states = BTreeSet::new();
        for &state in &self.nodes[node.0 as usize].clone() {
            states.extend(self.transitions.of(state)?.iter().filter(|step| step.0 == action).map(|step| step.1));
        }
        let after = if states.is_empty() { None } else { Some(self.node(states)?) };
        self.after.insert((node, action), after);
        Ok(after)
    }

    /// With all that internal steps lead to.
    fn node(&mut self, mut states: BTreeSet<TermId>) -> Result<Node, Why> {
        let mut open: Vec<_> = states.iter().copied().collect();
        while let Some(state) = open.pop() {
            self.afford()?;
            for &(action, next) in self.transitions.of(state)?.iter() {
                if action == Action::Tau && states.insert(next) {
                    open.push(next);
                }
            }
        }
        let fresh = Node(self.nodes.len() as u32);
        let number = *self.numbers.entry(states.clone()).or_insert(fresh);
        if number == fresh {
            self.nodes.push(states);
        }
        Ok(number)
    }

    fn afford(&self) -> Result<(), Why> {
        let states = self.pairs.len().max(self.transitions.processes.count());
        if states > self.limits.states {
            return Err(Why::States);
        }
        if self.limits.until.is_some_and(|until| Instant::now() >= until) {
            return Err(Why::Time);
        }
        Ok(())
    }

    fn trace(&self, mut pair: usize, last: Option<Action>) -> Vec<Action> {
        let mut trace: Vec<_> = last.into_iter().collect();
        while let Some((before, action)) = self.pairs[pair].from {
            if action != Action::Tau {
                trace.push(action);
            }
            pair = before;
        }
        trace.reverse();
        trace
    }
}

/// What a state offers for sure: nothing to be said of an unstable one, and only its tick of one that may terminate.
fn offers(steps: &[(Action, TermId)]) -> Option<BTreeSet<Action>> {
    if steps.iter().any(|step| step.0 == Action::Tick) {
        return Some(BTreeSet::from([Action::Tick]));
    }
    steps.iter().all(|step| step.0 != Action::Tau).then(|| steps.iter().map(|step| step.0).collect())
}
