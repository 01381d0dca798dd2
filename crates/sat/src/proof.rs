//! Proofs that there is no solution, and the checker that accepts or refuses them.
//!
//! A proof is a list of clauses, each of which follows from the problem and the clauses before it by reverse unit propagation:
//! if all its literals are false, unit propagation meets a conflict (Goldberg, Novikov, "Verification of Proofs of
//! Unsatisfiability for CNF Formulas", DATE 2003). What a step needs of the theory it says itself, as cycles: not all literals of
//! a cycle's edges hold. The last clause denies the assumptions, or is empty.
//!
//! Guarantee: if a proof is accepted, no values satisfy the problem's clauses and the core with edges free of cycles. The checker
//! knows the statement of the problem and nothing of the solver.

use crate::literal::Literal;
use crate::problem::{Edge, Node, Problem};
use std::collections::HashSet;

/// Why one node comes before another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Why {
    /// They stand so in one chain.
    Chain,
    /// By an edge that always holds.
    Fixed,
    /// By an edge of this literal.
    If(Literal),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Hop {
    pub from: Node,
    pub to: Node,
    pub why: Why,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    Derive {
        clause: Vec<Literal>,
        /// The last hop of each leads to where its first one starts.
        cycles: Vec<Vec<Hop>>,
    },
    /// The clause of the step with this number is not used any more.
    Forget(u32),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proof {
    pub steps: Vec<Step>,
}

/// Why a proof is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("step {step}: number {cycle} is not a cycle: {why}")]
    NoCycle { step: usize, cycle: usize, why: &'static str },
    #[error("step {step}: a literal of a variable that the problem does not have")]
    UnknownVariable { step: usize },
    #[error("step {step}: the clause does not follow by unit propagation")]
    DoesNotFollow { step: usize },
    #[error("step {step}: forgets step {forgotten}, which derives no clause or is forgotten")]
    NothingToForget { step: usize, forgotten: u32 },
    #[error("the last step does not derive that the assumptions are impossible")]
    NoConclusion,
}

/// Accepts a proof that the problem has no solution in which all literals of `core` hold.
pub fn check(problem: &Problem, core: &[Literal], proof: &Proof) -> Result<(), Refusal> {
    let mut checker = Checker::new(problem);
    let mut derived: Vec<Option<usize>> = Vec::with_capacity(proof.steps.len());
    for (number, step) in proof.steps.iter().enumerate() {
        match step {
            Step::Derive { clause, cycles } => {
                let lemmas = cycles
                    .iter()
                    .enumerate()
                    .map(|(cycle, hops)| checker.lemma(hops).map_err(|why| Refusal::NoCycle { step: number, cycle, why }));
                let lemmas = lemmas.collect::<Result<Vec<_>, _>>()?;
                if clause.iter().any(|literal| literal.variable().index() >= problem.variables()) {
                    return Err(Refusal::UnknownVariable { step: number });
                }
                if !checker.follows(clause, &lemmas) {
                    return Err(Refusal::DoesNotFollow { step: number });
                }
                derived.push(Some(checker.add(clause)));
            }
            Step::Forget(forgotten) => {
                let clause = derived.get_mut(*forgotten as usize).and_then(Option::take);
                let nothing = Refusal::NothingToForget { step: number, forgotten: *forgotten };
                checker.clauses[clause.ok_or(nothing)?].clear();
                derived.push(None);
            }
        }
    }
    match proof.steps.last() {
        Some(Step::Derive { clause, .. }) if clause.iter().all(|&literal| core.contains(&!literal)) => Ok(()),
        _ => Err(Refusal::NoConclusion),
    }
}

struct Checker<'p> {
    problem: &'p Problem,
    fixed: HashSet<Edge>,
    conditional: HashSet<(Literal, Edge)>,
    /// An empty one is forgotten. Of others the first two literals are watched.
    clauses: Vec<Vec<Literal>>,
    /// Per literal, the clauses that are looked at once it is false.
    watching: Vec<Vec<usize>>,
    values: Vec<Option<bool>>,
    trail: Vec<Literal>,
    head: usize,
    /// The clauses contradict each other without any further assumption.
    refuted: bool,
}

impl<'p> Checker<'p> {
    fn new(problem: &'p Problem) -> Self {
        let mut checker = Self {
            problem,
            fixed: problem.fixed().iter().copied().collect(),
            conditional: problem.conditional().iter().copied().collect(),
            clauses: Vec::new(),
            watching: vec![Vec::new(); 2 * problem.variables()],
            values: vec![None; problem.variables()],
            trail: Vec::new(),
            head: 0,
            refuted: false,
        };
        for clause in problem.clauses() {
            checker.add(clause);
        }
        checker
    }

    /// The clause that a cycle stands for.
    fn lemma(&self, hops: &[Hop]) -> Result<Vec<Literal>, &'static str> {
        let (Some(first), Some(last)) = (hops.first(), hops.last()) else { return Err("it is empty") };
        if last.to != first.from || hops.windows(2).any(|pair| pair[0].to != pair[1].from) {
            return Err("its hops do not meet");
        }
        let mut clause = Vec::new();
        for &Hop { from, to, why } in hops {
            let edge = Edge { from, to };
            if from.index().max(to.index()) >= self.problem.nodes() {
                return Err("a node that the problem does not have");
            }
            match why {
                Why::Chain => {
                    let (one, other) = (self.problem.place(from), self.problem.place(to));
                    if one.chain != other.chain || one.index >= other.index {
                        return Err("a hop that its chain does not have");
                    }
                }
                Why::Fixed if self.fixed.contains(&edge) => {}
                Why::If(literal) if self.conditional.contains(&(literal, edge)) => clause.push(!literal),
                Why::Fixed | Why::If(_) => return Err("an edge that the problem does not have"),
            }
        }
        Ok(clause)
    }

    fn value(&self, literal: Literal) -> Option<bool> {
        self.values[literal.variable().index()].map(|value| value == literal.sign())
    }

    fn set(&mut self, literal: Literal) {
        self.values[literal.variable().index()] = Some(literal.sign());
        self.trail.push(literal);
    }

    /// Adds a clause, with what follows from it at once. Its place.
    fn add(&mut self, clause: &[Literal]) -> usize {
        let mut clause: Vec<Literal> = clause.iter().copied().collect::<HashSet<_>>().into_iter().collect();
        // Literals that are not false come first.
        clause.sort_by_key(|&literal| (self.value(literal) == Some(false), literal));
        let open = clause.iter().take_while(|&&literal| self.value(literal) != Some(false)).count();
        match open {
            0 => self.refuted = true,
            1 if self.value(clause[0]).is_none() => self.set(clause[0]),
            _ => {}
        }
        let place = self.clauses.len();
        if clause.len() >= 2 {
            clause[..2].iter().for_each(|literal| self.watching[literal.index()].push(place));
        }
        self.clauses.push(clause);
        self.refuted |= self.propagate(&[]);
        place
    }

    fn follows(&mut self, clause: &[Literal], lemmas: &[Vec<Literal>]) -> bool {
        if self.refuted {
            return true;
        }
        let before = self.trail.len();
        let mut conflict = false;
        for &literal in clause {
            match self.value(literal) {
                Some(true) => conflict = true,
                Some(false) => {}
                None => self.set(!literal),
            }
        }
        conflict |= self.propagate(lemmas);
        for literal in self.trail.drain(before..) {
            self.values[literal.variable().index()] = None;
        }
        self.head = before;
        conflict
    }

    /// Whether unit propagation meets a conflict.
    fn propagate(&mut self, lemmas: &[Vec<Literal>]) -> bool {
        loop {
            while let Some(&literal) = self.trail.get(self.head) {
                self.head += 1;
                if self.visit(!literal) {
                    return true;
                }
            }
            let before = self.trail.len();
            for lemma in lemmas {
                let mut open = lemma.iter().filter(|&&literal| self.value(literal) != Some(false));
                match (open.next(), open.next()) {
                    (None, _) => return true,
                    (Some(&unit), None) if self.value(unit).is_none() => self.set(unit),
                    _ => {}
                }
            }
            if self.trail.len() == before {
                return false;
            }
        }
    }

    /// Looks at the clauses that watch a literal which is false. Whether one is false.
    fn visit(&mut self, literal: Literal) -> bool {
        let watching = std::mem::take(&mut self.watching[literal.index()]);
        let (mut kept, mut conflict) = (Vec::with_capacity(watching.len()), false);
        for place in watching {
            let mut clause = std::mem::take(&mut self.clauses[place]);
            if clause.is_empty() {
                continue;
            }
            if clause[0] == literal {
                clause.swap(0, 1);
            }
            let other = (2..clause.len()).find(|&other| self.value(clause[other]) != Some(false));
            match (self.value(clause[0]), other) {
                (Some(true), _) => kept.push(place),
                (_, Some(other)) => {
                    clause.swap(1, other);
                    self.watching[clause[1].index()].push(place);
                }
                (Some(false), None) => {
                    kept.push(place);
                    conflict = true;
                }
                (None, None) => {
                    kept.push(place);
                    self.set(clause[0]);
                }
            }
            self.clauses[place] = clause;
        }
        self.watching[literal.index()] = kept;
        conflict
    }
}
