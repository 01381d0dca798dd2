//! Which order a failure needs: the schedule that proves it is compared with one that does not fail.
//!
//! Of each proven failure whose report does not say so yet the critical order is looked for ([`crate::minimise`]): the first pair
//! of dependent operations that the failing execution, and one that passes, make in different orders. It is the earliest point
//! where another order avoids the failure.
//!
//! Limits. [`EXECUTIONS`] of each failure, of [`MOST`] failures, and a part of the budget. Failures of a process that another one
//! made, and of programs that serve a client, are not looked at.

use crate::check::leads::is_proven;
use crate::engines::Asked;
use crate::engines::case::Case;
use crate::engines::engine::{Account, Engine, Offer, Registered, Share, Turn, Yield};
use crate::engines::left::Left;
use crate::engines::portfolio::count;
use crate::error::PipelineError;
use crate::findings::critical;
use crate::findings::symbols::Symbols;
use crate::progress::Progress;
use rashomon_event::{Deadline, Finding, FindingKind};
use std::time::Duration;

pub const NAME: &str = "critical";

/// Of what is left behind the first recording, this engine may take one part in so many.
const PART: u32 = 10;
const EXECUTIONS: u64 = 60;
const MOST: usize = 4;

/// Names the critical order of failures.
#[derive(Default)]
pub struct Critical {
    open: Left,
    looked_at: u64,
    executions: u64,
}

impl<S: Symbols + ?Sized> Engine<S> for Critical {
    fn name(&self) -> &'static str {
        NAME
    }

    fn offer(&mut self, case: &Case<'_, '_, S>) -> Option<Offer> {
        self.open.offer(case, EXECUTIONS)
    }

    /// One failure.
    fn step(&mut self, case: &mut Case<'_, '_, S>, until: Deadline) -> Result<Yield, PipelineError> {
        let job = case.job;
        let Some(mut finding) = self.open.next(case, is_open, MOST)? else { return Ok(Yield::default()) };
        case.observer.progress(Progress::Working(&format!("looking for the order that {} needs", finding.id)));
        let (told, made) = job.critical_order(case.run, &mut finding, (EXECUTIONS, until), case.observer)?;
        self.looked_at += 1;
        self.executions += made;
        case.tally.executions += made;
        if told {
            job.store.write_finding(&finding)?;
        }
        Ok(Yield::default())
    }

    fn finish(&mut self, case: &mut Case<'_, '_, S>) -> Result<(), PipelineError> {
        case.job.store.clear_scratch(NAME)
    }

    fn account(&self) -> Account {
        let tried = (self.looked_at > 0).then(|| {
            let executions = count(self.executions, "execution");
            let needs = if self.looked_at == 1 { "needs" } else { "need" };
            format!("the order that {} {needs} looked for in {executions}", count(self.looked_at, "failure"))
        });
        Account { tried, ..Account::default() }
    }
}

/// A failure that a schedule brings about, and of which no order is told.
fn is_open(finding: &Finding) -> bool {
    finding.kind == FindingKind::Failure
        && is_proven(finding)
        && !critical::is_told(finding)
        && finding.schedule.as_ref().is_some_and(|schedule| schedule.surroundings.is_none() && !schedule.turns.is_empty())
}

/// Behind all others, if there is a program to execute that serves nobody.
pub(super) fn of_check<'a, S: Symbols + ?Sized>(asked: &mut Asked<'a>) -> Option<Registered<'a, S>> {
    if asked.stored || asked.budget.is_zero() {
        return None;
    }
    let share = Share::AtMost((asked.budget / PART).max(Duration::from_millis(1)));
    Some(Registered { engine: Box::new(Critical::default()), share, turn: Turn::Last })
}
