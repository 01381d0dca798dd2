//! Exploration ([`crate::explore`]): schedules of the program, a batch at a time, until one fails.

use crate::engines::Asked;
use crate::engines::case::Case;
use crate::engines::engine::{Engine, Expectation, Offer, Registered, Yield};
use crate::error::PipelineError;
pub use crate::explore::NAME;
use crate::explore::{ExploreSettings, Explored, Exploring};
use crate::findings::symbols::Symbols;
use rashomon_event::Deadline;
use std::time::{Duration, Instant};

/// Explores the program, whose first recording is in the store, and stores what fails.
pub struct Explore {
    settings: ExploreSettings,
    exploring: Option<Exploring>,
    is_over: bool,
    /// What came of it.
    pub explored: Explored,
    expectation: Expectation,
}

impl Explore {
    pub fn new(settings: ExploreSettings) -> Self {
        let explored = Explored { covered: "nothing".into(), ..Explored::default() };
        let expectation = Expectation::new(0.05, Duration::from_millis(100));
        Self { settings, exploring: None, is_over: false, explored, expectation }
    }
}

impl<S: Symbols + ?Sized> Engine<S> for Explore {
    fn name(&self) -> &'static str {
        NAME
    }

    fn offer(&mut self, _: &Case<'_, '_, S>) -> Option<Offer> {
        (!self.is_over).then(|| self.expectation.offer())
    }

    /// Schedules that are executed at the same time, with the replay of what fails; at the end, its minimising.
    fn step(&mut self, case: &mut Case<'_, '_, S>, until: Deadline) -> Result<Yield, PipelineError> {
        let begin = Instant::now();
        let exploring = match &mut self.exploring {
            Some(exploring) => exploring,
            None => match case.job.begin_exploring(case.run, &self.settings, until, case.observer)? {
                Some(exploring) => self.exploring.insert(exploring),
                None => {
                    self.is_over = true;
                    return Ok(Yield::default());
                }
            },
        };
        let before = exploring.found();
        let is_left = case.job.explore_batch(exploring, until, case.observer)?;
        let proven = exploring.found() - before;
        if !is_left {
            self.is_over = true;
            self.explored = case.job.end_exploring(exploring, until, case.observer)?;
            case.tally.executions += self.explored.executions;
        }
        let made = Yield { proven, ..Yield::default() };
        self.expectation.learn(made, begin.elapsed());
        Ok(made)
    }

    fn finish(&mut self, case: &mut Case<'_, '_, S>) -> Result<(), PipelineError> {
        case.job.store.clear_scratch(NAME)
    }
}

/// A command of its own.
pub(super) const fn of_check<'a, S: Symbols + ?Sized>(_: &mut Asked<'a>) -> Option<Registered<'a, S>> {
    None
}
