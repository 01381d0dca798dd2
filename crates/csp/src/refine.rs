//! Refinement, on the fly: pairs of a state of the implementation and a normalised state of the specification, level by level
//! of the visible trace, so that the first counterexample is a shortest one.
//!
//! A normalised state is the set of all states that the specification may be in after a trace. In the stable-failures model a
//! state that goes on with internal steps refuses nothing, whether it can do so for ever or not; the failures-divergences model
//! tells those that can: they are cycles of internal steps. Behind a trace after which the specification can diverge it allows
//! everything, so nothing is looked at there (divergence strictness).
//!
//! Guarantee: a verdict, or `Undecided` with the pairs that were seen. Each counterexample is run again by
//! [`crate::interpreter`], which shares no code with this. Pairs are visited once: of several counterexamples that end in the
//! same pair, one is told.

use crate::interpreter;
use crate::reduce::{Reducer, Reductions};
use crate::term::{Processes, TermId};
use crate::transitions::{Action, StepError, Transitions};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;
use std::time::Instant;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    Traces,
    StableFailures,
    FailuresDivergences,
}

#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Pairs of states, and terms that the exploration may make.
    pub states: usize,
    pub counterexamples: usize,
    pub until: Option<Instant>,
    pub reductions: Reductions,
}

impl Default for Limits {
    fn default() -> Self {
        Self { states: 1_000_000, counterexamples: 1, until: None, reductions: Reductions::ALL }
    }
}

/// What the implementation does and the specification does not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counterexample {
    /// Ticks and visible events.
    pub trace: Vec<Action>,
    /// What happens then.
    pub then: Then,
}

/// What a process does after a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Then {
    /// The trace itself is too much.
    Anything,
    /// It offers exactly this.
    Offers(BTreeSet<Action>),
    /// It can go on with internal steps for ever.
    Diverges,
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
    #[error("the limit of states is reached by the terms that they are made of")]
    Terms,
    #[error("out of time")]
    Time,
    #[error(transparent)]
    Step(#[from] StepError),
    #[error("the interpreter of terms does not accept a counterexample")]
    Rejected,
    #[error("a counterexample is known, and running it without reductions takes more than the limits allow")]
    Unchecked,
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

/// Whether it never goes on with internal steps for ever.
pub fn divergence_free(processes: &mut Processes, process: TermId, limits: &Limits) -> Verdict {
    explore(processes, Goal::DivergenceFree, process, limits)
}

/// Both.
pub fn deadlock_and_divergence_free(processes: &mut Processes, process: TermId, limits: &Limits) -> Verdict {
    explore(processes, Goal::Free, process, limits)
}

/// Whether after each trace it either can or must do an event; with `divergence`, it must not diverge either.
pub fn deterministic(processes: &mut Processes, divergence: bool, process: TermId, limits: &Limits) -> Verdict {
    explore(processes, Goal::Deterministic { divergence, itself: process }, process, limits)
}

#[derive(Clone, Copy)]
enum Goal {
    Refinement(Model, TermId),
    DeadlockFree,
    DivergenceFree,
    /// Of both.
    Free,
    /// What it may do after a trace is what each state after that trace offers.
    Deterministic {
        divergence: bool,
        itself: TermId,
    },
}

impl Goal {
    /// Whether hidden steps may be put off that nobody else depends on: they may go on for ever.
    const fn allows_partial_order(self) -> bool {
        matches!(self, Self::Refinement(Model::Traces | Model::StableFailures, _) | Self::DeadlockFree)
    }

    const fn forbids_divergence(self) -> bool {
        matches!(
            self,
            Self::Refinement(Model::FailuresDivergences, _)
                | Self::DivergenceFree
                | Self::Free
                | Self::Deterministic { divergence: true, .. }
        )
    }
}

fn explore(processes: &mut Processes, goal: Goal, implementation: TermId, limits: &Limits) -> Verdict {
    let mut search = Search::new(processes, goal, limits);
    let ended = search.run(implementation);
    let (states, found) = (search.pairs.len(), std::mem::take(&mut search.found));
    for found in &found {
        let why = match interpreter::shows(processes, implementation, (&found.trace, &found.then), limits) {
            Some(true) => continue,
            Some(false) => Why::Rejected,
            None => Why::Unchecked,
        };
        return Verdict::Undecided { states, why };
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
    /// Of nodes that were asked for: all that their states may do next, internal steps aside.
    initials: FxHashMap<Node, BTreeSet<Action>>,
    /// Of nodes and of states that were asked for: whether they diverge.
    divergent_nodes: FxHashMap<Node, bool>,
    divergent: FxHashMap<TermId, bool>,
    pairs: Vec<Pair>,
    seen: FxHashSet<(TermId, Node)>,
    reducer: Reducer,
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
            initials: FxHashMap::default(),
            divergent_nodes: FxHashMap::default(),
            divergent: FxHashMap::default(),
            pairs: Vec::new(),
            seen: FxHashSet::default(),
            reducer: Reducer::default(),
            found: Vec::new(),
        }
    }

    fn run(&mut self, implementation: TermId) -> Result<(), Why> {
        let start = match self.goal {
            Goal::Refinement(_, specification) | Goal::Deterministic { itself: specification, .. } => {
                self.node(BTreeSet::from([specification]))?
            }
            Goal::DeadlockFree | Goal::DivergenceFree | Goal::Free => Node(0),
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

    fn reach(&mut self, mut pair: Pair, into: &mut Vec<usize>) {
        if self.limits.reductions.symmetry {
            pair.state = self.reducer.canonical(self.transitions.processes, pair.state);
        }
        if self.seen.insert((pair.state, pair.node)) {
            into.push(self.pairs.len());
            self.pairs.push(pair);
        }
    }

    fn visit(&mut self, pair: usize, level: &mut Vec<usize>, next: &mut Vec<Pair>) -> Result<(), Why> {
        self.afford()?;
        let Pair { state, node, .. } = self.pairs[pair];
        if self.goal.forbids_divergence() {
            if matches!(self.goal, Goal::Refinement(..)) && self.node_diverges(node)? {
                return Ok(());
            }
            if self.diverges(state)? {
                let trace = self.trace(pair, None);
                self.tell(Counterexample { trace, then: Then::Diverges });
                return Ok(());
            }
        }
        let steps = self.transitions.of(state)?;
        if let Some(offers) = offers(&steps)
            && self.refuses_too_much(node, &offers, state)?
        {
            let trace = self.trace(pair, None);
            self.tell(Counterexample { trace, then: Then::Offers(offers) });
        }
        // What stands for all is hidden.
        let hides = steps.iter().any(|step| step.0 == Action::Tau);
        let ample = if hides && self.limits.reductions.partial_order && self.goal.allows_partial_order() {
            let (seen, symmetry) = (&self.seen, self.limits.reductions.symmetry);
            self.reducer.ample(&mut self.transitions, state, steps.len(), |reducer, processes, next| {
                let next = if symmetry { reducer.canonical(processes, next) } else { next };
                !seen.contains(&(next, node))
            })?
        } else {
            None
        };
        for &(action, successor) in ample.as_deref().unwrap_or(&steps) {
            let from = Some((pair, action));
            match (action, self.goal) {
                (Action::Tau, _) => self.reach(Pair { state: successor, node, from }, level),
                (_, Goal::Refinement(..) | Goal::Deterministic { .. }) => match self.after(node, action)? {
                    Some(after) => next.push(Pair { state: successor, node: after, from }),
                    None => {
                        let trace = self.trace(pair, Some(action));
                        self.tell(Counterexample { trace, then: Then::Anything });
                    }
                },
                (_, _) => next.push(Pair { state: successor, node, from }),
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
            Goal::Refinement(Model::Traces, _) | Goal::DivergenceFree => Ok(false),
            Goal::DeadlockFree | Goal::Free => Ok(!done && offers.is_empty()),
            Goal::Deterministic { .. } => {
                if !self.initials.contains_key(&node) {
                    let mut all = BTreeSet::new();
                    for &state in &self.nodes[node.0 as usize].clone() {
                        let steps = self.transitions.of(state)?;
                        all.extend(steps.iter().map(|step| step.0).filter(|action| *action != Action::Tau));
                    }
                    self.initials.insert(node, all);
                }
                Ok(!self.initials[&node].is_subset(offers))
            }
            Goal::Refinement(Model::StableFailures | Model::FailuresDivergences, _) => {
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

    /// Whether one of the node's states diverges.
    fn node_diverges(&mut self, node: Node) -> Result<bool, Why> {
        if let Some(&known) = self.divergent_nodes.get(&node) {
            return Ok(known);
        }
        let mut diverges = false;
        for &state in &self.nodes[node.0 as usize].clone() {
            diverges = diverges || self.diverges(state)?;
        }
        self.divergent_nodes.insert(node, diverges);
        Ok(diverges)
    }

    /// Whether internal steps can go on for ever: whether they lead to a cycle of them.
    fn diverges(&mut self, state: TermId) -> Result<bool, Why> {
        if let Some(&known) = self.divergent.get(&state) {
            return Ok(known);
        }
        // The way from the state to where the search is, and how many steps of each were followed.
        let mut way = vec![(state, 0)];
        let mut on_the_way = FxHashSet::from_iter([state]);
        while let Some((at, followed)) = way.last_mut() {
            self.afford()?;
            let at = *at;
            let steps = self.transitions.of(at)?;
            let Some(step) = steps.iter().skip(*followed).position(|step| step.0 == Action::Tau) else {
                self.divergent.insert(at, false);
                on_the_way.remove(&at);
                way.pop();
                continue;
            };
            *followed += step + 1;
            let next = steps[*followed - 1].1;
            let known = if on_the_way.contains(&next) { Some(true) } else { self.divergent.get(&next).copied() };
            match known {
                Some(true) => {
                    self.divergent.extend(way.into_iter().map(|(state, _)| (state, true)));
                    return Ok(true);
                }
                Some(false) => {}
                None => {
                    on_the_way.insert(next);
                    way.push((next, 0));
                }
            }
        }
        Ok(false)
    }

    fn afford(&self) -> Result<(), Why> {
        if self.pairs.len() > self.limits.states {
            return Err(Why::States);
        }
        if self.transitions.processes.count() > self.limits.states {
            return Err(Why::Terms);
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
