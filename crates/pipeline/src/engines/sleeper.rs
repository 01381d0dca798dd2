//! Waits once, and finds nothing: the smallest engine.

use crate::engines::Asked;
use crate::engines::case::Case;
use crate::engines::engine::{Engine, Offer, Registered, Share, Turn, Yield};
use crate::error::PipelineError;
use crate::findings::symbols::Symbols;
use rashomon_event::Deadline;
use std::time::Duration;

pub const NAME: &str = "sleeper";

const SLEEP: Duration = Duration::from_millis(1);

#[derive(Default)]
pub struct Sleeper {
    slept: bool,
}

impl<S: Symbols + ?Sized> Engine<S> for Sleeper {
    fn name(&self) -> &'static str {
        NAME
    }

    fn offer(&mut self, _case: &Case<'_, '_, S>) -> Option<Offer> {
        (!self.slept).then_some(Offer { takes: SLEEP, gives: 0.0 })
    }

    fn step(&mut self, _case: &mut Case<'_, '_, S>, until: Deadline) -> Result<Yield, PipelineError> {
        std::thread::sleep(until.limit(SLEEP));
        self.slept = true;
        Ok(Yield::default())
    }

    fn finish(&mut self, _case: &mut Case<'_, '_, S>) -> Result<(), PipelineError> {
        Ok(())
    }
}

/// It takes part where it is asked for.
pub(super) fn of_check<'a, S: Symbols + ?Sized>(asked: &mut Asked<'a>) -> Option<Registered<'a, S>> {
    let share = Share::AtMost(asked.budget / 100);
    Some(Registered { engine: Box::new(Sleeper::default()), share, turn: Turn::ByOffer })
}
