//! Findings that an engine goes through, one a step, when all others have had their turn.

use crate::engines::case::Case;
use crate::engines::engine::Offer;
use crate::error::PipelineError;
use crate::findings::symbols::Symbols;
use rashomon_event::Finding;
use std::collections::VecDeque;

/// `None`: nobody has looked yet which ones there are.
#[derive(Default)]
pub struct Left(Option<VecDeque<Finding>>);

impl Left {
    /// Of so many executions for each. They prove nothing new. A program that serves a client is not executed so often.
    pub fn offer<S: Symbols + ?Sized>(&self, case: &Case<'_, '_, S>, executions: u64) -> Option<Offer> {
        let is_left = self.0.as_ref().is_none_or(|open| !open.is_empty());
        (is_left && case.job.program.client.is_none()).then(|| Offer { takes: case.takes(executions), gives: 0.0 })
    }

    /// The next of those in the store that are wanted, of which there are `most` at most.
    pub fn next<S: Symbols + ?Sized>(
        &mut self,
        case: &Case<'_, '_, S>,
        is_wanted: fn(&Finding) -> bool,
        most: usize,
    ) -> Result<Option<Finding>, PipelineError> {
        let open = match &mut self.0 {
            Some(open) => open,
            None => self.0.insert(case.job.store.findings()?.into_iter().filter(is_wanted).take(most).collect()),
        };
        Ok(open.pop_front())
    }
}
