//! From a trace to witnesses: reorderings that would show a race or a deadlock which the recorded schedule hid.
#![forbid(unsafe_code)]

pub mod atomicity;
mod candidates;
pub mod clocks;
pub mod closure;
pub mod deadlocks;
pub mod deciders;
pub mod dependences;
pub mod engines;
pub mod exact;
pub mod index;
pub mod linearise;
pub mod maximal;
pub mod optimistic;
pub mod options;
pub mod ordering;
pub mod predict;
pub mod prediction;
pub mod regroup;
pub mod reversal;
pub mod saturate;
pub mod search;
pub mod shacham;
mod share;
pub mod walk;

pub use engines::Engine;
pub use options::{Options, Refinement};
pub use predict::{predict, predict_and_ask, predict_each};
pub use prediction::{Prediction, Predictions, Statistics, Wanted};
