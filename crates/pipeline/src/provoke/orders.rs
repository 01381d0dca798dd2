//! A proven race again: how often it is reproduced, and what it does in either order, with one side first and then with the
//! other.

use crate::ended::Ended;
use crate::error::PipelineError;
use crate::findings::symbols::Symbols;
use crate::progress::{Observer, Progress};
use crate::provoke::{Campaign, NAME, ORDER_TRIES, request_of, side_words, watched_again};
use rashomon_confirm::{Output, ProvokedRun, provoke};
use rashomon_event::{First, Provocation, Replays, Trial};
use rashomon_trace::After;
use std::path::Path;

/// Executions that are to show a proven pair once more where orders are not compared.
const REPETITIONS: u32 = 3;
/// Further ones, if none so far could be drawn.
const FOR_DRAWING: u32 = 3;

impl<'c, 'j, S: Symbols + ?Sized> Campaign<'c, 'j, S> {
    /// Provokes each new proven pair again, each side going first once where that is asked for, and says what came of it and how
    /// often the pair met.
    pub(crate) fn repeat_proven(&mut self, observer: &mut dyn Observer) -> Result<(), PipelineError> {
        let session = self.job.store.scratch(NAME).join("order");
        for index in std::mem::replace(&mut self.known.repeated, self.known.findings.len())..self.known.findings.len() {
            let provocation = self.known.findings[index].provocation.clone();
            let mut met = Replays::default();
            let note = if self.settings.orders {
                let sides: Vec<String> = self.known.findings[index].finding.sides.iter().map(side_words).collect();
                self.compare_orders(&provocation, &sides, &session, &mut met)?
            } else {
                if self.is_to_be_drawn(index) && !self.is_spent() {
                    self.repeat_and_draw(index, &session, &mut met)?;
                }
                while met.of < REPETITIONS && !self.is_spent() {
                    self.repeat(&provocation, First::Either, (After::Stop, Output::Discard), &session, &mut met)?;
                }
                None
            };
            for _ in 0..FOR_DRAWING {
                if self.is_to_be_drawn(index) && !self.is_spent() {
                    self.repeat_and_draw(index, &session, &mut met)?;
                }
            }
            let proven = &mut self.known.findings[index];
            proven.finding.notes.extend(note);
            proven.finding.advance(Trial::Repeated(met));
            self.job.store.write_finding(&proven.finding)?;
            observer.progress(Progress::Decided(&proven.finding));
        }
        Ok(())
    }

    /// What the program does with either side first; `None` if the pair did not meet again in both orders.
    fn compare_orders(
        &mut self,
        provocation: &Provocation,
        sides: &[String],
        session: &Path,
        met: &mut Replays,
    ) -> Result<Option<String>, PipelineError> {
        let mut outcomes = Vec::new();
        for first in [First::Held, First::Arrived] {
            outcomes.extend(self.in_order(provocation, first, session, met)?);
        }
        Ok(match outcomes.as_slice() {
            [one, other] if one == other => Some(format!("both orders of the accesses end alike: {}", one.words())),
            [one, other] => {
                let what = if one.ending() == other.ending() { ", with different output" } else { "" };
                let (first, second) = (one.words(), other.words());
                Some(format!("the order matters: {} first: {first}; {} first: {second}{what}", sides[0], sides[1]))
            }
            _ => None,
        })
    }

    /// What comes of the execution in which the pair met and this side went first; `None` if it did not meet again.
    fn in_order(
        &mut self,
        provocation: &Provocation,
        first: First,
        session: &Path,
        met: &mut Replays,
    ) -> Result<Option<Ended>, PipelineError> {
        // Which side is held has to stay the same.
        let mut number = Replays::default();
        while number.of < ORDER_TRIES && !self.is_spent() {
            let run = self.repeat(provocation, first, (After::Continue, Output::Keep), session, &mut number)?;
            if number.shown > 0 {
                (met.shown, met.of) = (met.shown + number.shown, met.of + number.of);
                return Ok(Some(Ended::of(run.execution.ending, session)?));
            }
        }
        met.of += number.of;
        Ok(None)
    }

    /// One more execution that is to bring the pair about. `met`: how often the ones so far did.
    fn repeat(
        &mut self,
        provocation: &Provocation,
        first: First,
        (after, output): (After, Output),
        session: &Path,
        met: &mut Replays,
    ) -> Result<ProvokedRun, PipelineError> {
        let watched = watched_again(provocation, 1 + met.of % 2);
        let request = request_of(provocation, &watched, first);
        let run = provoke(self.job.program, &request, session, &self.setting(after, output))?;
        self.tally.executions += 1;
        met.of += 1;
        met.shown += u32::from(super::met(&run, provocation));
        Ok(run)
    }
}
