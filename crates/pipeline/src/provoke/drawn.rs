//! The execution that reports draw of a provoked race: the pair is provoked once more, and what orders threads is recorded.
//!
//! Other provoking executions record nothing, as what is recorded costs time, and the pair would meet less often. This one is
//! among those that show how often the pair meets, so that it is no execution more.

use crate::check::prove::load_until;
use crate::error::PipelineError;
use crate::findings::compose::Composer;
use crate::findings::symbols::Symbols;
use crate::provoke::catch::finding_of;
use crate::provoke::{Campaign, meeting, request_of, watched_again};
use crate::timeline::Drawing;
use rashomon_confirm::{Output, provoke};
use rashomon_event::{CodePlace, First, Replays};
use rashomon_report::timeline::DRAWN;
use rashomon_trace::{After, ProvokeRequest};
use std::path::Path;

impl<S: Symbols + ?Sized> Campaign<'_, '_, S> {
    /// Whether the finding has no timeline, and is among the first.
    pub(super) fn is_to_be_drawn(&self, index: usize) -> bool {
        index < DRAWN && self.known.findings[index].finding.forced.is_none()
    }

    /// Provokes a proven pair once more, and draws the execution if it meets. `met`: how often it did so far.
    pub(super) fn repeat_and_draw(&mut self, index: usize, session: &Path, met: &mut Replays) -> Result<(), PipelineError> {
        let provocation = self.known.findings[index].provocation.clone();
        let wanted = [provocation.held.site, provocation.arriving];
        // The first catch ends the execution.
        let is_other = |places: &&[CodePlace; 2]| **places != wanted && [places[1], places[0]] != wanted;
        let has_its_modules = provocation.modules == self.plan.modules;
        let known = self.known.proven.iter().filter(is_other).filter(|_| has_its_modules);
        let known: Vec<[CodePlace; 2]> = known.copied().collect();
        let watched = watched_again(&provocation, 1 + met.of % 3);
        let request = ProvokeRequest { known: &known, recorded: true, ..request_of(&provocation, &watched, First::Either) };
        let run = provoke(self.job.program, &request, session, &self.setting(After::Stop, Output::Discard))?;
        self.tally.executions += 1;
        met.of += 1;
        let Some(catch) = meeting(&run, &provocation) else { return Ok(()) };
        met.shown += 1;
        let Ok(loaded) = load_until(session, self.deadline) else { return Ok(()) };
        let finding = &mut self.known.findings[index].finding;
        let met_there = finding_of(&run.modules, catch, self.job.symbols, &self.recorded, finding.evidence, None);
        let composer = Composer::new(&loaded, self.job.symbols, 0);
        finding.forced = Some(Box::new(Drawing::of(&composer).to_meeting(met_there.sides)));
        Ok(())
    }
}
