//! From a conflict to a clause that is new.
//!
//! The first unique implication point (Zhang, Madigan, Moskewicz, Malik, "Efficient Conflict Driven Learning in a Boolean
//! Satisfiability Solver", ICCAD 2001), without literals that others imply (Sörensson, Biere, "Minimizing Learned Clauses", SAT
//! 2009). The cycles that were used go into the proof with the clause.

use crate::literal::{Literal, Variable};
use crate::proof::{Hop, Why};
use crate::solver::{Conflict, Reason, Solver};

/// Not all literals of a cycle hold.
fn lemma(cycle: &[Hop]) -> impl Iterator<Item = Literal> + '_ {
    cycle.iter().filter_map(|hop| if let Why::If(literal) = hop.why { Some(!literal) } else { None })
}

/// What an analysis has used of the theory.
#[derive(Default)]
struct Used {
    /// The conflict itself.
    cycle: Option<Vec<Hop>>,
    /// Variables that hold by the order.
    implied: Vec<Variable>,
}

impl Solver {
    /// Learns from a conflict, and goes back to where the clause learnt says something new.
    pub(crate) fn learn(&mut self, conflict: Conflict) {
        let mut used = Used::default();
        let literals = match conflict {
            Conflict::Clause(number) => {
                self.clauses.bump(number);
                self.clauses.of(number).to_vec()
            }
            Conflict::Cycle(cycle) => {
                let clause = lemma(&cycle).collect();
                used.cycle = Some(cycle);
                clause
            }
        };
        let mut clause = self.first_implication_point(literals, &mut used);
        self.minimise(&mut clause, &mut used);
        let step = self.derive_with(&clause, used);
        // The second literal is of the highest level but that of the first, so that both may be watched.
        let second = (1..clause.len()).max_by_key(|&place| self.level_of(clause[place]));
        let back = second.map_or(0, |second| {
            clause.swap(1, second);
            self.level_of(clause[1])
        });
        let mut levels: Vec<u32> = clause.iter().map(|&literal| self.level_of(literal)).collect();
        levels.sort_unstable();
        levels.dedup();
        self.back_to(back as usize);
        self.add_learnt(&clause, step, levels.len() as u32);
        self.heap.decay();
        self.clauses.decay();
    }

    /// Resolves until one literal of the current level is left, which comes first. Those of the clause stay marked as seen.
    fn first_implication_point(&mut self, mut literals: Vec<Literal>, used: &mut Used) -> Vec<Literal> {
        let level = self.levels.len() as u32;
        let (mut clause, mut open, mut place) = (Vec::new(), 0, self.trail.len());
        loop {
            for &literal in &literals {
                let variable = literal.variable();
                if self.level_of(literal) == 0 || std::mem::replace(&mut self.seen[variable.index()], true) {
                    continue;
                }
                self.heap.bump(variable);
                if self.level_of(literal) == level {
                    open += 1;
                } else {
                    clause.push(literal);
                }
            }
            debug_assert!(open > 0, "a conflict has a literal of its level");
            loop {
                place -= 1;
                if self.seen[self.trail[place].variable().index()] {
                    break;
                }
            }
            let literal = self.trail[place];
            open -= 1;
            if open == 0 {
                clause.insert(0, !literal);
                return clause;
            }
            self.seen[literal.variable().index()] = false;
            self.reason(literal, used, &mut literals);
        }
    }

    /// The literals, all false, from which a literal follows that holds.
    fn reason(&mut self, literal: Literal, used: &mut Used, literals: &mut Vec<Literal>) {
        literals.clear();
        let variable = literal.variable();
        match self.reasons[variable.index()] {
            Reason::None => {}
            Reason::Clause(number) => {
                self.clauses.bump(number);
                literals.extend(self.clauses.of(number).iter().filter(|&&other| other != literal));
            }
            Reason::Order(_) => {
                literals.extend(lemma(self.cycle_of(literal)).filter(|&other| other != literal));
                used.implied.push(variable);
            }
        }
    }

    /// Leaves out literals that are false because others of the clause are.
    fn minimise(&mut self, clause: &mut Vec<Literal>, used: &mut Used) {
        let mut marked: Vec<Variable> = clause.iter().map(|literal| literal.variable()).collect();
        let mut levels: Vec<u32> = clause[1..].iter().map(|&literal| self.level_of(literal)).collect();
        levels.sort_unstable();
        let mut place = 0;
        clause.retain(|&literal| {
            place += 1;
            place == 1 || !self.is_implied(literal, &levels, &mut marked, used)
        });
        marked.into_iter().for_each(|variable| self.seen[variable.index()] = false);
    }

    /// Whether a literal is false because literals that are seen are. What was found to be so is seen from then on.
    fn is_implied(&mut self, literal: Literal, levels: &[u32], marked: &mut Vec<Variable>, used: &mut Used) -> bool {
        let (before, implied) = (marked.len(), used.implied.len());
        let (mut open, mut literals) = (vec![literal], Vec::new());
        while let Some(literal) = open.pop() {
            let reason = self.reasons[literal.variable().index()];
            // To look for a cycle costs more than the literal.
            let cheap = !matches!(reason, Reason::Order(_)) || self.cycles[literal.variable().index()].is_some();
            if cheap {
                self.reason(!literal, used, &mut literals);
            }
            let fails = |other: &Literal| levels.binary_search(&self.level_of(*other)).is_err();
            let new = |other: &Literal| self.level_of(*other) > 0 && !self.seen[other.variable().index()];
            if !cheap || reason == Reason::None || literals.iter().filter(|other| new(other)).any(fails) {
                marked.drain(before..).for_each(|variable| self.seen[variable.index()] = false);
                used.implied.truncate(implied);
                return false;
            }
            for &other in &literals {
                if self.level_of(other) > 0 && !std::mem::replace(&mut self.seen[other.variable().index()], true) {
                    marked.push(other.variable());
                    open.push(other);
                }
            }
        }
        true
    }

    /// The assumptions of which the negation of one follows, that one included.
    pub(crate) fn core(&mut self, assumption: Literal) -> Vec<Literal> {
        let (mut core, mut used, mut literals) = (vec![assumption], Used::default(), Vec::new());
        let start = self.levels.first().map_or(self.trail.len(), |level| level.trail);
        let mut marked = vec![assumption.variable()];
        self.seen[assumption.variable().index()] = true;
        for place in (start..self.trail.len()).rev() {
            let literal = self.trail[place];
            if !self.seen[literal.variable().index()] {
                continue;
            }
            if self.reasons[literal.variable().index()] == Reason::None {
                core.push(literal);
                continue;
            }
            self.reason(literal, &mut used, &mut literals);
            for other in literals.iter().map(|literal| literal.variable()) {
                if !std::mem::replace(&mut self.seen[other.index()], true) {
                    marked.push(other);
                }
            }
        }
        marked.into_iter().for_each(|variable| self.seen[variable.index()] = false);
        let denied: Vec<Literal> = core.iter().map(|&literal| !literal).collect();
        self.derive_with(&denied, used);
        core
    }

    /// Into the proof, with the cycles that were used.
    fn derive_with(&mut self, clause: &[Literal], mut used: Used) -> u32 {
        if self.proof.is_none() {
            return 0;
        }
        used.implied.sort_unstable();
        used.implied.dedup();
        let implied = used.implied.iter().filter_map(|variable| self.cycles[variable.index()].clone());
        let cycles = used.cycle.into_iter().chain(implied).collect();
        self.derive(clause, cycles)
    }
}
