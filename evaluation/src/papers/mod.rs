//! Reproductions: the tables and figures of papers, and the traces that belong to them.

pub mod causality;
pub mod correlated;
pub mod csp;
mod hypothesis;
mod imported;
pub mod provoke;
pub mod raceinjector;
pub mod speedygo;
pub mod tree;
pub mod witnesses;
