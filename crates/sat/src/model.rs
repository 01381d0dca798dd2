//! Solutions, and the checker that accepts or refuses them.

use crate::literal::Literal;
use crate::problem::{Node, Problem};

/// A value per variable, and all nodes in an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Model {
    pub values: Vec<bool>,
    pub order: Vec<Node>,
}

impl Model {
    pub fn holds(&self, literal: Literal) -> bool {
        self.values.get(literal.variable().index()) == Some(&literal.sign())
    }
}

/// Why a model is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("{values} values for {variables} variables")]
    Values { values: usize, variables: usize },
    #[error("the order does not list each node exactly once")]
    NotAnOrder,
    #[error("the assumption {0:?} does not hold")]
    Assumption(Literal),
    #[error("the clause with number {0} does not hold")]
    Clause(usize),
    #[error("{from:?} does not come before {to:?}")]
    Edge { from: Node, to: Node },
}

/// Accepts a solution of the problem in which the assumptions hold.
pub fn check(problem: &Problem, assumptions: &[Literal], model: &Model) -> Result<(), Refusal> {
    if model.values.len() != problem.variables() {
        return Err(Refusal::Values { values: model.values.len(), variables: problem.variables() });
    }
    if let Some(&assumption) = assumptions.iter().find(|&&assumption| !model.holds(assumption)) {
        return Err(Refusal::Assumption(assumption));
    }
    if let Some(clause) = problem.clauses().iter().position(|clause| !clause.iter().any(|&literal| model.holds(literal))) {
        return Err(Refusal::Clause(clause));
    }
    let mut places = vec![usize::MAX; problem.nodes()];
    for (place, node) in model.order.iter().enumerate() {
        match places.get_mut(node.index()) {
            Some(free @ &mut usize::MAX) => *free = place,
            _ => return Err(Refusal::NotAnOrder),
        }
    }
    if model.order.len() != problem.nodes() {
        return Err(Refusal::NotAnOrder);
    }
    let in_chains = problem.chains().iter().flat_map(|chain| chain.windows(2)).map(|pair| (pair[0], pair[1]));
    let fixed = problem.fixed().iter().map(|edge| (edge.from, edge.to));
    let conditional = problem.conditional().iter().filter(|(literal, _)| model.holds(*literal));
    let conditional = conditional.map(|(_, edge)| (edge.from, edge.to));
    for (from, to) in in_chains.chain(fixed).chain(conditional) {
        if places[from.index()] >= places[to.index()] {
            return Err(Refusal::Edge { from, to });
        }
    }
    Ok(())
}
