//! What follows: from clauses by unit propagation, from the order by reachability.
//!
//! Clauses come first; an edge is added once the clauses have nothing more to say.

use crate::clauses::Watch;
use crate::literal::Literal;
use crate::proof::{Hop, Why};
use crate::solver::{Conflict, Reason, Solver};

impl Solver {
    pub(crate) fn value(&self, literal: Literal) -> Option<bool> {
        self.values[literal.variable().index()].map(|value| value == literal.sign())
    }

    pub(crate) fn level_of(&self, literal: Literal) -> u32 {
        self.places[literal.variable().index()].1
    }

    pub(crate) fn set(&mut self, literal: Literal, reason: Reason) {
        debug_assert!(self.value(literal).is_none());
        let variable = literal.variable().index();
        self.values[variable] = Some(literal.sign());
        self.reasons[variable] = reason;
        self.places[variable] = (self.trail.len() as u32, self.levels.len() as u32);
        self.trail.push(literal);
    }

    /// Takes back all decisions above a level.
    pub(crate) fn back_to(&mut self, level: usize) {
        let Some(&end) = self.levels.get(level) else { return };
        for literal in self.trail.drain(end.trail..) {
            let variable = literal.variable();
            self.phases[variable.index()] = literal.sign();
            self.values[variable.index()] = None;
            self.cycles[variable.index()] = None;
            self.heap.insert(variable);
        }
        self.graph.undo_to(end.graph);
        self.levels.truncate(level);
        self.clauses_head = self.trail.len();
        self.graph_head = self.graph_head.min(self.trail.len());
        self.impossible.clear();
    }

    /// All that follows; or what contradicts itself.
    pub(crate) fn propagate(&mut self) -> Option<Conflict> {
        loop {
            if let Some(conflict) = self.propagate_clauses() {
                return Some(conflict);
            }
            while let Some(number) = self.impossible.pop() {
                let literal = !self.problem().conditional()[number.0 as usize].0;
                // If it is false, its negation holds and waits for its edges to be added.
                if self.value(literal).is_none() {
                    self.set(literal, Reason::Order(number));
                    self.statistics.implied += 1;
                    if self.levels.is_empty() && self.proof.is_some() {
                        let cycle = self.cycle_of(literal).to_vec();
                        self.derive(&[literal], vec![cycle]);
                    }
                }
            }
            if self.clauses_head < self.trail.len() {
                continue;
            }
            let &literal = self.trail.get(self.graph_head)?;
            self.graph_head += 1;
            for place in 0..self.edges[literal.index()].len() {
                let number = self.edges[literal.index()][place];
                let edge = self.problem().conditional()[number.0 as usize].1;
                if let Err(cycle) = self.graph.add(edge, Some(literal), &mut self.impossible) {
                    return Some(Conflict::Cycle(cycle));
                }
            }
        }
    }

    fn propagate_clauses(&mut self) -> Option<Conflict> {
        while let Some(&literal) = self.trail.get(self.clauses_head) {
            self.clauses_head += 1;
            let denied = !literal;
            let mut watches = self.clauses.take_watches(denied);
            let (mut kept, mut conflict) = (0, None);
            for place in 0..watches.len() {
                let watch = watches[place];
                if conflict.is_some() || self.value(watch.other) == Some(true) {
                    watches[kept] = watch;
                    kept += 1;
                    continue;
                }
                let Some(other) = self.move_watch(watch, denied) else { continue };
                watches[kept] = Watch { other, ..watch };
                kept += 1;
                match self.value(other) {
                    Some(true) => {}
                    Some(false) => conflict = Some(Conflict::Clause(watch.clause)),
                    None => {
                        self.statistics.propagations += 1;
                        self.set(other, Reason::Clause(watch.clause));
                    }
                }
            }
            watches.truncate(kept);
            self.clauses.put_watches(denied, watches);
            if conflict.is_some() {
                return conflict;
            }
        }
        None
    }

    /// Watches another literal in place of one that is false. `Some`: there is none to watch, and this is the clause's other one,
    /// which is its first.
    fn move_watch(&mut self, watch: Watch, denied: Literal) -> Option<Literal> {
        let values = &self.values;
        let value = |literal: Literal| values[literal.variable().index()].map(|value| value == literal.sign());
        let literals = self.clauses.of_mut(watch.clause);
        if literals[0] == denied {
            literals.swap(0, 1);
        }
        let first = literals[0];
        if value(first) != Some(true)
            && let Some(free) = (2..literals.len()).find(|&free| value(literals[free]) != Some(false))
        {
            literals.swap(1, free);
            let now = literals[1];
            self.clauses.add_watch(now, Watch { clause: watch.clause, other: first });
            return None;
        }
        Some(first)
    }

    /// Why a literal holds by the order: a cycle with an edge of its negation, whose other literals held before.
    pub(crate) fn cycle_of(&mut self, literal: Literal) -> &[Hop] {
        let variable = literal.variable().index();
        if let (None, Reason::Order(number)) = (&self.cycles[variable], self.reasons[variable]) {
            let (negation, edge) = self.problem().conditional()[number.0 as usize];
            let (places, place) = (&self.places, self.places[variable].0);
            let before = |other: Literal| places[other.variable().index()].0 < place;
            let mut cycle = self.graph.path(edge.to, edge.from, before).unwrap_or_default();
            cycle.push(Hop { from: edge.from, to: edge.to, why: Why::If(negation) });
            self.cycles[variable] = Some(cycle);
        }
        self.cycles[variable].as_deref().unwrap_or_default()
    }
}
