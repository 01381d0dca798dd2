//! The search: conflict-driven clause learning over the clauses, with the order of nodes as a theory.
//!
//! Marques-Silva, Sakallah, "GRASP: A Search Algorithm for Propositional Satisfiability", IEEE Transactions on Computers 48(5),
//! 1999; Eén, Sörensson, "An Extensible SAT-solver", SAT 2003 (assumptions, the final conflict); Nieuwenhuis, Oliveras, Tinelli,
//! "Solving SAT and SAT Modulo Theories", JACM 53(6), 2006 (the theory within). Ge, Ma, Huang, Zhang, "SMT Solving for the Theory
//! of Ordering Constraints", LCPC 2015, solve race prediction so.
//!
//! Guarantee: `Sat` and `Unsat` are right, and each can be checked without the solver; `Unknown` only when a limit is reached.
//! The same calls give the same answers. Cost: exponential at worst.

use crate::clauses::{ClauseNumber, Clauses, Learnt};
use crate::graph::{EdgeNumber, Graph, Mark};
use crate::heap::Heap;
use crate::literal::{Literal, Variable};
use crate::model::Model;
use crate::problem::{Node, Problem};
use crate::proof::{Hop, Proof, Step};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    Sat(Model),
    /// Of the assumptions those that cannot hold together; the solver's proof says why.
    Unsat(Vec<Literal>),
    /// A limit is reached.
    Unknown,
}

/// What a call may cost.
#[derive(Clone, Copy)]
pub struct Limits<'a> {
    pub conflicts: u64,
    /// Asked now and then whether to give up.
    pub is_over: &'a dyn Fn() -> bool,
}

impl Limits<'_> {
    pub const NONE: Self = Self { conflicts: u64::MAX, is_over: &|| false };
}

/// What all calls have cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    pub conflicts: u64,
    /// Of these, those with a cycle.
    pub cycles: u64,
    pub decisions: u64,
    /// Literals that follow from clauses.
    pub propagations: u64,
    /// Literals that follow from the order.
    pub implied: u64,
    pub restarts: u64,
}

/// Why a literal holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// It was decided, or needs no reason.
    None,
    Clause(ClauseNumber),
    /// This edge of its negation would close a cycle.
    Order(EdgeNumber),
}

/// What contradicts itself.
pub(crate) enum Conflict {
    Clause(ClauseNumber),
    Cycle(Vec<Hop>),
}

/// A decision level: where it begins.
#[derive(Clone, Copy)]
pub(crate) struct Level {
    pub trail: usize,
    pub graph: Mark,
}

/// Conflicts of the shortest run between two restarts.
const RESTART: u64 = 100;
/// Decisions between two looks at the deadline.
const LOOK_EVERY: u64 = 256;
/// Learnt clauses that are kept at first, and by how much their number grows with each reduction.
const LEARNT: usize = 2000;
const LEARNT_MORE: usize = 300;

/// Solves a problem that may grow between calls.
pub struct Solver {
    problem: Problem,
    pub(crate) clauses: Clauses,
    pub(crate) graph: Graph,
    pub(crate) heap: Heap,
    pub(crate) values: Vec<Option<bool>>,
    pub(crate) phases: Vec<bool>,
    pub(crate) reasons: Vec<Reason>,
    /// Per variable, its place in the trail and its decision level.
    pub(crate) places: Vec<(u32, u32)>,
    /// Per variable that holds by the order, the cycle, once it was looked for.
    pub(crate) cycles: Vec<Option<Vec<Hop>>>,
    pub(crate) seen: Vec<bool>,
    pub(crate) trail: Vec<Literal>,
    pub(crate) levels: Vec<Level>,
    /// How much of the trail the clauses have seen, and the graph.
    pub(crate) clauses_head: usize,
    pub(crate) graph_head: usize,
    /// Per literal, its edges.
    pub(crate) edges: Vec<Vec<EdgeNumber>>,
    pub(crate) impossible: Vec<EdgeNumber>,
    /// The part of the problem that was taken in: variables, clauses, nodes, edges of both kinds.
    taken: (usize, usize, usize, usize, usize),
    pub(crate) proof: Option<Proof>,
    refuted: bool,
    allowed: usize,
    pub(crate) statistics: Statistics,
}

impl Default for Solver {
    fn default() -> Self {
        Self::new(Problem::new())
    }
}

impl Solver {
    /// Writes a proof.
    pub fn new(problem: Problem) -> Self {
        Self {
            problem,
            clauses: Clauses::default(),
            graph: Graph::default(),
            heap: Heap::default(),
            values: Vec::new(),
            phases: Vec::new(),
            reasons: Vec::new(),
            places: Vec::new(),
            cycles: Vec::new(),
            seen: Vec::new(),
            trail: Vec::new(),
            levels: Vec::new(),
            clauses_head: 0,
            graph_head: 0,
            edges: Vec::new(),
            impossible: Vec::new(),
            taken: (0, 0, 0, 0, 0),
            proof: Some(Proof::default()),
            refuted: false,
            allowed: LEARNT,
            statistics: Statistics::default(),
        }
    }

    /// Spares the memory that a proof takes.
    #[must_use]
    pub fn without_proof(mut self) -> Self {
        self.proof = None;
        self
    }

    pub const fn problem(&self) -> &Problem {
        &self.problem
    }

    pub fn into_problem(self) -> Problem {
        self.problem
    }

    /// The problem, to add to it.
    pub const fn problem_mut(&mut self) -> &mut Problem {
        &mut self.problem
    }

    pub const fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// What was derived so far. After [`Answer::Unsat`] its last step denies the core.
    pub const fn proof(&self) -> Option<&Proof> {
        self.proof.as_ref()
    }

    /// The value to try first for the literal's variable, until the search has given it one: that with which the literal holds.
    pub fn prefer(&mut self, literal: Literal) {
        self.grow();
        self.phases[literal.variable().index()] = literal.sign();
    }

    /// Looks for a solution in which all assumptions hold.
    pub fn solve(&mut self, assumptions: &[Literal], limits: Limits<'_>) -> Answer {
        if self.refuted || self.take_in().is_err() {
            self.refuted = true;
            self.derive(&[], Vec::new());
            return Answer::Unsat(Vec::new());
        }
        let spent = self.statistics.conflicts;
        let mut run = 0;
        loop {
            run += 1;
            let until = self.statistics.conflicts + RESTART * luby(run);
            let ended = self.search(assumptions, until.min(spent.saturating_add(limits.conflicts)), limits);
            let answer = match ended {
                Ended::Model => Some(Answer::Sat(Model {
                    values: self.values.iter().map(|value| value.unwrap_or(false)).collect(),
                    order: self.order(),
                })),
                Ended::Refuted(core) => {
                    self.refuted |= core.is_empty();
                    Some(Answer::Unsat(core))
                }
                Ended::Conflicts if self.statistics.conflicts - spent < limits.conflicts => None,
                Ended::Conflicts | Ended::Time => Some(Answer::Unknown),
            };
            self.back_to(0);
            if let Some(answer) = answer {
                return answer;
            }
            self.statistics.restarts += 1;
        }
    }

    /// Room for all variables.
    fn grow(&mut self) {
        let variables = self.problem.variables();
        self.clauses.grow(variables);
        self.heap.grow(variables);
        self.values.resize(variables, None);
        self.phases.resize(variables, true);
        self.reasons.resize(variables, Reason::None);
        self.places.resize(variables, (0, 0));
        self.cycles.resize(variables, None);
        self.seen.resize(variables, false);
        self.edges.resize(2 * variables, Vec::new());
    }

    /// Takes in what was added to the problem since the last call. An error is a contradiction, which the proof has derived.
    fn take_in(&mut self) -> Result<(), ()> {
        self.grow();
        let problem = &self.problem;
        let (old, first) = (self.taken, self.taken.1);
        let (fixed, conditional) = (problem.fixed().len(), problem.conditional().len());
        self.taken = (problem.variables(), problem.clauses().len(), problem.nodes(), fixed, conditional);
        for (number, (literal, _)) in problem.conditional().iter().enumerate().skip(old.4) {
            self.edges[literal.index()].push(EdgeNumber(number as u32));
        }
        if let Err(cycle) = if old.2 == self.taken.2 { self.take_in_edges(old.3, old.4) } else { self.new_graph() } {
            self.derive(&[], vec![cycle]);
            return Err(());
        }
        for number in first..self.taken.1 {
            self.take_in_clause(number)?;
        }
        match self.propagate() {
            Some(conflict) => {
                let cycles = if let Conflict::Cycle(cycle) = conflict { vec![cycle] } else { Vec::new() };
                self.derive(&[], cycles);
                Err(())
            }
            None => Ok(()),
        }
    }

    /// All nodes and edges anew.
    fn new_graph(&mut self) -> Result<(), Vec<Hop>> {
        self.graph = Graph::new(&self.problem)?;
        self.graph_head = 0;
        self.impossible = self.graph.impossible();
        Ok(())
    }

    /// Edges between nodes that are known: those that always hold from a number on, and conditional ones.
    fn take_in_edges(&mut self, fixed: usize, conditional: usize) -> Result<(), Vec<Hop>> {
        for &edge in &self.problem.fixed()[fixed..] {
            self.graph.add(edge, None, &mut self.impossible)?;
        }
        for (number, &(literal, edge)) in self.problem.conditional().iter().enumerate().skip(conditional) {
            self.graph.watch(EdgeNumber(number as u32), edge, &mut self.impossible);
            let variable = literal.variable().index();
            let added = (self.places[variable].0 as usize) < self.graph_head;
            if self.values[variable] == Some(literal.sign()) && added {
                self.graph.add(edge, Some(literal), &mut self.impossible)?;
            }
        }
        self.graph.settle();
        Ok(())
    }

    fn take_in_clause(&mut self, number: usize) -> Result<(), ()> {
        let mut literals = self.problem.clauses()[number].clone();
        literals.sort_unstable();
        literals.dedup();
        let always = |pair: &[Literal]| pair[0] == !pair[1];
        if literals.windows(2).any(always) || literals.iter().any(|&literal| self.value(literal) == Some(true)) {
            return Ok(());
        }
        literals.retain(|&literal| self.value(literal).is_none());
        match literals[..] {
            [] => Err(()),
            [unit] => {
                self.set(unit, Reason::None);
                Ok(())
            }
            _ => {
                self.clauses.add(&literals, None);
                Ok(())
            }
        }
    }

    /// A clause and the cycles that it follows with, into the proof. The number of the step.
    pub(crate) fn derive(&mut self, clause: &[Literal], cycles: Vec<Vec<Hop>>) -> u32 {
        let Some(proof) = &mut self.proof else { return 0 };
        proof.steps.push(Step::Derive { clause: clause.to_vec(), cycles });
        proof.steps.len() as u32 - 1
    }

    fn search(&mut self, assumptions: &[Literal], until: u64, limits: Limits<'_>) -> Ended {
        loop {
            if let Some(conflict) = self.propagate() {
                self.statistics.conflicts += 1;
                self.statistics.cycles += u64::from(matches!(conflict, Conflict::Cycle(_)));
                if self.levels.is_empty() {
                    let cycles = if let Conflict::Cycle(cycle) = conflict { vec![cycle] } else { Vec::new() };
                    self.derive(&[], cycles);
                    return Ended::Refuted(Vec::new());
                }
                self.learn(conflict);
                continue;
            }
            if self.statistics.conflicts >= until {
                return Ended::Conflicts;
            }
            if self.clauses.learnt() > self.allowed + self.trail.len() {
                self.reduce();
            }
            if self.statistics.decisions.is_multiple_of(LOOK_EVERY) && (limits.is_over)() {
                return Ended::Time;
            }
            let decision = match self.assume(assumptions) {
                Ok(Some(assumption)) => assumption,
                Ok(None) => match self.choose() {
                    Some(variable) => variable.is(self.phases[variable.index()]),
                    None => return Ended::Model,
                },
                Err(core) => return Ended::Refuted(core),
            };
            self.statistics.decisions += 1;
            self.new_level();
            self.set(decision, Reason::None);
        }
    }

    fn new_level(&mut self) {
        self.levels.push(Level { trail: self.trail.len(), graph: self.graph.mark() });
    }

    /// The next assumption that does not hold yet; or those that cannot hold together.
    fn assume(&mut self, assumptions: &[Literal]) -> Result<Option<Literal>, Vec<Literal>> {
        while let Some(&assumption) = assumptions.get(self.levels.len()) {
            match self.value(assumption) {
                None => return Ok(Some(assumption)),
                Some(true) => self.new_level(),
                Some(false) => return Err(self.core(assumption)),
            }
        }
        Ok(None)
    }

    fn choose(&mut self) -> Option<Variable> {
        std::iter::from_fn(|| self.heap.pop()).find(|variable| self.values[variable.index()].is_none())
    }

    /// Forgets learnt clauses that help little.
    fn reduce(&mut self) {
        let (clauses, reasons) = (&mut self.clauses, &mut self.reasons);
        let mut needed: Vec<u32> = Vec::new();
        for literal in &self.trail {
            if let Reason::Clause(clause) = reasons[literal.variable().index()] {
                needed.push(clause.0);
            }
        }
        needed.sort_unstable();
        let (numbers, forgotten) = clauses.reduce(|clause| needed.binary_search(&clause.0).is_ok());
        for literal in &self.trail {
            if let Reason::Clause(clause) = &mut reasons[literal.variable().index()]
                && let Some(number) = numbers[clause.0 as usize]
            {
                *clause = number;
            }
        }
        if let Some(proof) = &mut self.proof {
            proof.steps.extend(forgotten.into_iter().map(Step::Forget));
        }
        self.allowed = (self.allowed + LEARNT_MORE).max(self.clauses.learnt() + LEARNT / 2);
    }

    /// A clause that a conflict has taught; its first literal follows from the others.
    pub(crate) fn add_learnt(&mut self, literals: &[Literal], step: u32, levels: u32) {
        let reason = match literals {
            [_] => Reason::None,
            _ => Reason::Clause(self.clauses.add(literals, Some(Learnt { step, levels, activity: 0.0 }))),
        };
        if let Reason::Clause(clause) = reason {
            self.clauses.bump(clause);
        }
        self.set(literals[0], reason);
    }

    /// All nodes, as the edges that hold order them; those made first come first where they may.
    fn order(&self) -> Vec<Node> {
        let nodes = self.problem.nodes();
        let mut next: Vec<Vec<Node>> = vec![Vec::new(); nodes];
        let mut missing = vec![0usize; nodes];
        let chains = self.problem.chains().iter().flat_map(|chain| chain.windows(2)).map(|pair| (pair[0], pair[1]));
        let fixed = self.problem.fixed().iter().map(|edge| (edge.from, edge.to));
        let conditional = self.problem.conditional().iter().filter(|(literal, _)| self.value(*literal) == Some(true));
        for (from, to) in chains.chain(fixed).chain(conditional.map(|(_, edge)| (edge.from, edge.to))) {
            next[from.index()].push(to);
            missing[to.index()] += 1;
        }
        let first = (0..nodes as u32).map(Node).filter(|node| missing[node.index()] == 0);
        let mut ready: BinaryHeap<Reverse<Node>> = first.map(Reverse).collect();
        let mut order = Vec::with_capacity(nodes);
        while let Some(Reverse(node)) = ready.pop() {
            order.push(node);
            for &after in &next[node.index()] {
                missing[after.index()] -= 1;
                if missing[after.index()] == 0 {
                    ready.push(Reverse(after));
                }
            }
        }
        order
    }
}

enum Ended {
    Model,
    Refuted(Vec<Literal>),
    Conflicts,
    Time,
}

/// The reluctant doubling sequence 1, 1, 2, 1, 1, 2, 4, … (Luby, Sinclair, Zuckerman, "Optimal Speedup of Las Vegas Algorithms",
/// 1993), from its first element.
fn luby(number: u64) -> u64 {
    let mut number = number;
    loop {
        let next = (number + 1).next_power_of_two();
        if next == number + 1 {
            return next / 2;
        }
        number -= next / 2 - 1;
    }
}

#[test]
fn restarts_double_reluctantly() {
    let first: Vec<u64> = (1..=15).map(luby).collect();
    assert_eq!(first, [1, 1, 2, 1, 1, 2, 4, 1, 1, 2, 1, 1, 2, 4, 8]);
}
