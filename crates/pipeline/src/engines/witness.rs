//! Witnesses by model checking ([`crate::witness`]), one recording after the other.

use crate::engines::case::Case;
use crate::engines::engine::{Account, Engine, Expectation, Offer, Registered, Share, Turn, Yield};
use crate::engines::{Asked, portfolio};
use crate::error::PipelineError;
use crate::findings::symbols::Symbols;
use crate::record::Scheduling;
pub use crate::witness::NAME;
use crate::witness::{WitnessSettings, Witnessed};
use rashomon_event::Deadline;
use std::time::Duration;

/// Searches a witness for each pair of source sites with a lockset warning; stores what it finds.
pub struct Witness {
    settings: WitnessSettings,
    next: u32,
    /// What came of it.
    pub witnessed: Witnessed,
    expectation: Expectation,
}

impl Witness {
    pub fn new(settings: WitnessSettings) -> Self {
        let expectation = Expectation::new(0.1, Duration::from_secs(1));
        Self { settings, next: 0, witnessed: Witnessed::default(), expectation }
    }
}

impl<S: Symbols + ?Sized> Engine<S> for Witness {
    fn name(&self) -> &'static str {
        NAME
    }

    /// A recording of threads that ran in parallel holds no order of accesses.
    fn offer(&mut self, case: &Case<'_, '_, S>) -> Option<Offer> {
        let is_free = |recording: u32| {
            let recorded = case.run.recordings.get(recording as usize);
            self.settings.undecided && recorded.is_some_and(|recorded| recorded.policy == Scheduling::Free.name())
        };
        let of = case.run.recordings.len().max(1) as u32;
        (self.next < of && !(0..of).any(is_free)).then(|| self.expectation.offer())
    }

    /// The pairs of one recording.
    fn step(&mut self, case: &mut Case<'_, '_, S>, until: Deadline) -> Result<Yield, PipelineError> {
        let (proven, executions) = (self.witnessed.proven(), self.witnessed.executions);
        case.job.witnesses_of(case.run, self.next, &self.settings, until, &mut self.witnessed, case.observer)?;
        self.next += 1;
        case.tally.executions += self.witnessed.executions - executions;
        let made = Yield { proven: self.witnessed.proven() - proven, ..Yield::default() };
        self.expectation.learn(made, case.takes(self.witnessed.executions - executions));
        Ok(made)
    }

    fn finish(&mut self, case: &mut Case<'_, '_, S>) -> Result<(), PipelineError> {
        case.job.store.clear_scratch(NAME)
    }

    fn account(&self) -> Account {
        let tried = (self.next > 0).then(|| {
            let executions = portfolio::count(self.witnessed.executions, "execution");
            format!("witnesses searched by model checking in {executions}")
        });
        Account { tried, left: None, ..Account::default() }
    }
}

/// For what the others left undecided.
pub(super) fn of_check<'a, S: Symbols + ?Sized>(asked: &mut Asked<'a>) -> Option<Registered<'a, S>> {
    let engine = Box::new(Witness::new(WitnessSettings::of_check(asked.jobs)));
    Some(Registered { engine, share: Share::AtMost(asked.search), turn: Turn::ByOffer })
}
