//! What there was no time for is told as far as it is known.

use crate::check::leads::Lead;
use crate::engines::case::Case;
use crate::error::PipelineError;
use crate::findings::failure::{Norm, failure_of, unread};
use crate::findings::symbols::Symbols;
use crate::progress::Progress;
use rashomon_event::{Finding, FindingKind};
use rashomon_report::order::NOT_REPLAYED;
use rashomon_trace::RunHeader;

impl<S: Symbols + ?Sized> Case<'_, '_, S> {
    /// No time is left for these.
    pub(super) fn leave_untried<'l>(&mut self, leads: impl IntoIterator<Item = &'l Lead>) -> Result<(), PipelineError> {
        for lead in leads.into_iter().filter(|lead| lead.is_untried()) {
            self.tally.untried += 1;
            if lead.exit().is_some() {
                let mut finding = lead.finding.clone();
                finding.notes.push(NOT_REPLAYED.into());
                self.job.store.write_finding(&finding)?;
            }
        }
        Ok(())
    }

    /// Of a recording that ended wrongly, and that there was no time to read, that much is told.
    pub(super) fn tell_unread_failures(&mut self) -> Result<(), PipelineError> {
        if self.unread.is_empty() {
            return Ok(());
        }
        let job = self.job;
        let norm = Norm::of(job.settings.expected_exit, self.run.recordings.iter().map(|recording| recording.exit));
        let told = job.store.findings()?;
        for number in std::mem::take(&mut self.unread) {
            let exit = self.run.recordings.get(number as usize).map(|recording| recording.exit);
            let Some(failure) = exit.filter(|exit| norm.is_wrong(*exit)).and_then(failure_of) else { continue };
            let finding = unread(failure, &RunHeader::read(&job.store.recording(number))?);
            let is_told = |told: &Finding| told.kind == FindingKind::Failure && told.subject == finding.subject;
            if !told.iter().any(is_told) {
                job.store.write_finding(&finding)?;
                self.tally.untried += 1;
                self.observer.progress(Progress::Decided(&finding));
            }
        }
        Ok(())
    }
}
