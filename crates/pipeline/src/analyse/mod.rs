//! Predictions whose witnesses an independent checker accepted.
//!
//! The predictor is not trusted: a witness that the checker rejects is dropped, and the candidate stays as one without.

pub mod agreement;
pub mod calls;
pub(crate) mod examine;
pub mod filter;
pub mod gaps;
pub mod imported;
pub mod libraries;
pub mod linear;
pub mod model;
pub mod modules;
pub(crate) mod reach;
pub mod selection;
pub mod sources;
pub mod timed;
pub mod traces;

use rashomon_event::{Candidate, Deadline, Trace, Witness};
pub use rashomon_predict::Engine;
use rashomon_predict::{Options, Statistics, predict_each};
use rashomon_witness::Checker;
use std::cell::LazyCell;

/// A candidate, and what is known of other schedules that show it.
pub struct Analysed {
    pub candidate: Candidate,
    /// Checked; its level is the one the checker accepted.
    pub witness: Option<Witness>,
    /// Why a witness was dropped.
    pub rejected: Option<String>,
    /// No correct reordering shows it.
    pub refuted: bool,
    /// Found as if recorded calls into unseen code ordered nothing: a suspicion.
    pub despite_calls: bool,
}

/// Hands over each prediction as it is made, so that only one witness at a time is in memory. The checker reads the whole trace,
/// so there is none before there is a witness. No further witness is looked for after the deadline.
pub fn analyse(trace: &Trace, engine: Engine, deadline: Deadline, mut found: impl FnMut(Analysed)) -> Statistics {
    let checker = LazyCell::new(|| Checker::new(trace));
    let options = Options { deciders: engine.deciders().to_vec(), deadline, ..Options::default() };
    predict_each(trace, &options, |prediction| {
        let refuted = prediction.refuted;
        let mut analysed =
            Analysed { candidate: prediction.candidate, witness: None, rejected: None, refuted, despite_calls: false };
        if let Some(witness) = prediction.witness {
            match checker.check(&witness) {
                Ok(level) => analysed.witness = Some(Witness { level, ..witness }),
                Err(rejection) => analysed.rejected = Some(rejection.to_string()),
            }
        }
        found(analysed);
    })
}
