//! Predictions whose witnesses an independent checker accepted.
//!
//! The predictor is not trusted: a witness that the checker rejects is dropped, and the candidate stays as one without.

pub mod agreement;
pub mod calls;
pub(crate) mod examine;
pub mod filter;
pub(crate) mod foreseen;
pub mod gaps;
mod guards;
pub mod imported;
pub mod libraries;
pub mod linear;
pub(crate) mod lives;
pub mod model;
pub mod modules;
pub(crate) mod reach;
pub mod selection;
mod semaphore_locks;
pub mod sources;
pub mod timed;
pub mod traces;
pub(crate) mod word_locks;

use rashomon_event::{Candidate, Deadline, Trace, Witness};
pub use rashomon_predict::Engine;
use rashomon_predict::{Options, Prediction, Statistics, Wanted, predict_and_ask};
use rashomon_trace::LoadedTrace;
use rashomon_witness::Checker;
use std::cell::LazyCell;

/// Words and semaphores that are used as locks, as locks, and loads of the guards of static variables as what they tell.
pub fn recognise(loaded: &mut LoadedTrace) {
    word_locks::recognise(loaded);
    semaphore_locks::recognise(&mut loaded.trace);
    guards::recognise(&mut loaded.trace);
}

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
    /// In the witness some read sees another write than it saw: of the same value, or nothing in it depends on the read.
    pub by_value: bool,
}

/// What of values of plain accesses is looked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Values {
    /// Those that the trace tells count.
    #[default]
    Known,
    /// Moreover: which ones could show more, that the trace does not tell.
    Asked,
    /// Nothing is told but what rests on them.
    Alone,
}

/// Refuted candidates of a trace about which that is asked: each is one more decision.
const MOST_ASKED: usize = 200;

/// Hands over each prediction as it is made, so that only one witness at a time is in memory. The checker reads the whole trace,
/// so there is none before there is a witness. No further witness is looked for after the deadline.
pub fn analyse(trace: &Trace, engine: Engine, deadline: Deadline, found: impl FnMut(Analysed)) -> Statistics {
    analyse_values(trace, engine, Values::Known, deadline, found).0
}

/// The same, and which values could show more.
pub fn analyse_values(
    trace: &Trace,
    engine: Engine,
    values: Values,
    deadline: Deadline,
    mut found: impl FnMut(Analysed),
) -> (Statistics, Wanted) {
    let checker = LazyCell::new(|| Checker::new(trace));
    let options = Options {
        deciders: engine.deciders().to_vec(),
        maximal: engine.limits(),
        deadline,
        ask_for_values: if values == Values::Asked { MOST_ASKED } else { 0 },
        by_value_only: values == Values::Alone,
        optimistic: values != Values::Alone,
        ..Options::default()
    };
    predict_and_ask(trace, &options, |prediction| {
        let Prediction { candidate, refuted, by_value, .. } = prediction;
        let mut analysed = Analysed { candidate, witness: None, rejected: None, refuted, despite_calls: false, by_value };
        if let Some(witness) = prediction.witness {
            match checker.check(&witness) {
                Ok(level) => analysed.witness = Some(Witness { level, ..witness }),
                Err(rejection) => analysed.rejected = Some(rejection.to_string()),
            }
        }
        found(analysed);
    })
}
