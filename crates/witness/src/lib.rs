//! The trusted, independent checker of witnesses. It knows the vocabulary and nothing else: no clocks, no solver, no predictor.
#![forbid(unsafe_code)]

pub mod checker;
pub mod facts;
pub mod reads_from;
pub mod rejection;
mod values;

pub use checker::{Checker, check};
pub use rejection::Rejection;
