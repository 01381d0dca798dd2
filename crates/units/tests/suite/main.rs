//! Computational units against the definitions, figures and tables of the paper, a file for each.

#[path = "../support/mod.rs"]
mod support;

mod alternatives;
mod features;
mod figures;
mod table2;
mod table3;
