//! What is recorded already is analysed, one recording after the other. A check looks at each recording when it is made; only a
//! large first one waits, so that others need not wait for it.

use crate::engines::Asked;
use crate::engines::case::Case;
use crate::engines::engine::{Engine, Expectation, Offer, Registered, Share, Turn, Yield};
use crate::error::PipelineError;
use crate::findings::symbols::Symbols;
use crate::shard::Shard;
use rashomon_event::Deadline;
use std::time::{Duration, Instant};

pub const NAME: &str = "predict";

/// Analyses the recordings of a store. The budget begins with the first one.
#[derive(Default)]
pub struct Predict {
    /// Recordings so far.
    done: u32,
    /// Only those that have a place in it, if recordings are dealt out.
    dealt: Shard,
    expectation: Option<Expectation>,
}

impl Predict {
    /// Analyses the recordings of a part.
    pub fn of(dealt: Shard) -> Self {
        Self { dealt, ..Self::default() }
    }

    fn next(&self) -> u32 {
        self.dealt.place(self.done)
    }
}

impl<S: Symbols + ?Sized> Engine<S> for Predict {
    fn name(&self) -> &'static str {
        NAME
    }

    fn offer(&mut self, case: &Case<'_, '_, S>) -> Option<Offer> {
        let is_there = (self.next() as usize) < case.run.recordings.len();
        let expectation = self.expectation.get_or_insert(Expectation::new(1.0, Duration::ZERO));
        is_there.then(|| expectation.offer())
    }

    /// One recording.
    fn step(&mut self, case: &mut Case<'_, '_, S>, _: Deadline) -> Result<Yield, PipelineError> {
        if self.done == 0 {
            case.begin_budget();
        }
        let (before, begin) = (case.gathered.leads.len(), Instant::now());
        case.analyse(self.next())?;
        self.done += 1;
        let made = Yield { leads: case.gathered.leads.len() - before, ..Yield::default() };
        if let Some(expectation) = &mut self.expectation {
            expectation.learn(made, begin.elapsed());
        }
        Ok(made)
    }

    fn finish(&mut self, case: &mut Case<'_, '_, S>) -> Result<(), PipelineError> {
        case.settle()
    }
}

/// Analyses the first recording, if that waits.
#[derive(Default)]
struct First {
    expectation: Option<Expectation>,
}

/// Analysing it takes as long as so many executions.
const LARGE: u64 = 8;

impl<S: Symbols + ?Sized> Engine<S> for First {
    fn name(&self) -> &'static str {
        NAME
    }

    fn offer(&mut self, case: &Case<'_, '_, S>) -> Option<Offer> {
        let expectation = self.expectation.get_or_insert_with(|| Expectation::new(1.0, case.takes(LARGE)));
        case.first_waits.then(|| expectation.offer())
    }

    fn step(&mut self, case: &mut Case<'_, '_, S>, until: Deadline) -> Result<Yield, PipelineError> {
        let before = case.gathered.leads.len();
        case.first_waits = false;
        if let Some(shown) = case.analyse_late(0, until)?.shown {
            case.novelty.learn(shown);
        }
        case.settle()?;
        Ok(Yield { leads: case.gathered.leads.len().saturating_sub(before), ..Yield::default() })
    }

    /// No time was left to look at it.
    fn finish(&mut self, case: &mut Case<'_, '_, S>) -> Result<(), PipelineError> {
        if std::mem::take(&mut case.first_waits) {
            case.tally.not_analysed += 1;
            case.unread.push(0);
            case.settle()?;
        }
        case.tell_unread_failures()
    }
}

/// Where nothing is recorded, and where a recording may wait.
pub(super) fn of_check<'a, S: Symbols + ?Sized>(asked: &mut Asked<'a>) -> Option<Registered<'a, S>> {
    Some(if asked.stored {
        Registered { engine: Box::new(Predict::default()), share: Share::Whole, turn: Turn::First }
    } else {
        Registered { engine: Box::new(First::default()), share: Share::Whole, turn: Turn::ByOffer }
    })
}
