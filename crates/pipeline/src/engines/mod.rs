//! The engines: one file each, registered in one list.

pub mod case;
pub mod engine;

use crate::check::plan::Plan;
use crate::engines::case::Case;
use crate::engines::engine::{Engine, Registered};
use crate::error::PipelineError;
use crate::findings::symbols::Symbols;
use rashomon_event::Deadline;
use std::time::Duration;

/// Declares the module of each engine, and lists them. Each has its `NAME`, and says with `of_check` whether and with which share
/// it takes part in a check.
macro_rules! engines {
    ($($engine:ident,)*) => {
        $(pub mod $engine;)*

        /// The names of all engines, in the order of a check.
        pub const NAMES: &[&str] = &[$($engine::NAME),*];

        /// Those that take part in a check, in their order.
        pub fn of_check<'a, S: Symbols + ?Sized>(asked: &mut Asked<'a>) -> Vec<Registered<'a, S>> {
            [$($engine::of_check(asked)),*].into_iter().flatten().collect()
        }
    };
}

// One line each, in the order in which a check runs them.
engines! {
    record,
    predict,
    force,
    witness,
    provoke,
    explore,
}

/// What a check is asked for.
pub struct Asked<'a> {
    /// What is recorded.
    pub plan: Option<&'a mut dyn Plan>,
    /// What is recorded already is analysed.
    pub stored: bool,
    /// The most time for searches of witnesses, after everything else; zero: none.
    pub search: Duration,
    /// Executions at the same time, where an engine makes several.
    pub jobs: usize,
}

/// Each engine until it has nothing more to offer, one after the other.
pub fn run_in_order<S: Symbols + ?Sized>(
    engines: Vec<Registered<'_, S>>,
    case: &mut Case<'_, '_, S>,
) -> Result<(), PipelineError> {
    for mut one in engines {
        if case.stopped.is_some() {
            break;
        }
        if let Some(until) = one.share.begin(&case.deadlines) {
            run(one.engine.as_mut(), case, until)?;
        }
    }
    Ok(())
}

/// One engine until it has nothing more to offer.
pub fn run<S: Symbols + ?Sized>(
    engine: &mut (dyn Engine<S> + '_),
    case: &mut Case<'_, '_, S>,
    until: Deadline,
) -> Result<(), PipelineError> {
    while case.stopped.is_none() && engine.offer(case).is_some() {
        engine.step(case, until)?;
    }
    engine.finish(case)
}
