//! Analyses that take one pass over a stream of packed events, each in a module that cites its rules.
#![forbid(unsafe_code)]

pub mod analysis;

pub use analysis::Analysis;
