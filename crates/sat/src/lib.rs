//! Satisfiability of clauses modulo a strict order of nodes, with answers that can be checked.
//!
//! A [`Problem`] has clauses over boolean variables, nodes in chains, and edges between nodes: those that always hold, and those
//! that hold if a literal does. The [`Solver`] looks for values such that all clauses hold and the edges have no cycle. A model
//! comes with a linear order of all nodes and is checked by [`model::check`]. That there is none comes with a proof, which is
//! checked by [`proof::check`]. Neither checker shares code with the solver but the statement of the problem.
#![forbid(unsafe_code)]

mod analyse;
mod clauses;
mod graph;
mod heap;
pub mod literal;
pub mod model;
pub mod problem;
pub mod proof;
mod propagate;
pub mod solver;

pub use literal::{Literal, Variable};
pub use model::Model;
pub use problem::{Chain, Node, Problem};
pub use proof::Proof;
pub use solver::{Answer, Limits, Solver, Statistics};
