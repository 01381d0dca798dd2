//! What the user reads. One model ([`rashomon_event::Finding`] and [`RunSummary`]), one file per format; no I/O, no clock, no
//! environment: the same input gives the same bytes.
#![forbid(unsafe_code)]

pub mod json;
pub mod lost;
pub mod order;
pub mod summary;
pub mod text;
mod undecided;

pub use lost::Lost;
pub use order::{Shown, by_importance};
pub use summary::{Counts, ProgramExit, RunSummary, Status};
