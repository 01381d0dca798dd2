//! Redundant accesses: which ones a detector of races need not see (TREE: Rajagopalan, "Fast and Precise On-the-fly Data Race
//! Detection", Texas A&M University 2016, ch. 3).
//!
//! What is preserved are the *unique races*: pairs of code locations with a race. [`relation`] says what a race is for a
//! detector, what must be remembered of a thread's history (Γ) for it, and proves it. [`tree`] filters as events go by;
//! [`lookahead`] with the whole trace at hand.
#![forbid(unsafe_code)]

pub mod context;
pub mod history;
pub mod lookahead;
pub mod relation;
pub mod tree;

pub use lookahead::Lookahead;
pub use relation::Relation;
pub use tree::{Guarantee, Options, Statistics, Tree, Verdict, without};
