//! Values of plain accesses that a recording lacks, where they could show a candidate that is refuted without.
//!
//! Recordings tell the values of atomic accesses alone. Where a candidate is refuted only because some read has to keep its
//! writer, the recorded process is executed once more, by its own schedule, and tells what is read and written at the places that
//! matter; of a program that the compiler's plugin has instrumented it also tells what depends on each read. It is the same
//! execution, so what is predicted from it is as good as what is predicted from the recording; it is not kept.
//!
//! Cost: an execution, in which each access takes longer, and each of those places is recorded without the filter. Limits:
//! [`MOST_REPLAYS`] in all; an execution that leaves the schedule tells nothing; behind the first external input there is none.

use crate::analyse::Values;
use crate::analyse::examine::Examination;
use crate::check::leads::{Lead, Source, leads_of};
use crate::check::longest;
use crate::engines::case::Case;
use crate::engines::correlated::has_tables;
use crate::error::PipelineError;
use crate::findings::symbols::Symbols;
use crate::progress::Progress;
use rashomon_confirm::force::{folder_of, force_with_values, remove};
use rashomon_event::{CodePlace, Verdict};
use rashomon_predict::Wanted;
use rashomon_report::ProgramExit;
use rashomon_trace::LoadedTrace;

const MOST_REPLAYS: u32 = 8;
/// Of the budget so many times the longest recording have to be left.
const LEAST_LEFT: u32 = 4;

impl<S: Symbols + ?Sized> Case<'_, '_, S> {
    /// What values show of a recorded process, if they are wanted and may be had.
    pub(super) fn leads_by_value(
        &mut self,
        loaded: &LoadedTrace,
        from: &Source,
        wanted: &Wanted,
    ) -> Result<Vec<Lead>, PipelineError> {
        if wanted.sites.is_empty() || !self.may_replay || self.stopped.is_some() || self.replayed >= MOST_REPLAYS {
            return Ok(Vec::new());
        }
        let job = self.job;
        let has_client = job.program.client.is_some();
        let Some(schedule) = from.schedule(loaded, job.settings.record.quantum, has_client) else { return Ok(Vec::new()) };
        if self.deadlines.total.left().is_some_and(|left| left < longest(self.run) * LEAST_LEFT) {
            return Ok(Vec::new());
        }
        let trace = &loaded.trace;
        let place = |site: &rashomon_event::Site| CodePlace { module: site.module, offset: site.offset };
        let places: Vec<CodePlace> = wanted.sites.iter().map(|&site| place(trace.site(site))).collect();
        let candidates = rashomon_event::counted(wanted.candidates as u64, "candidate");
        self.observer.progress(Progress::Working(&format!(
            "replaying recording {} for the values that {candidates} may rest on",
            from.recording + 1
        )));
        let dependences = has_tables(&job.program.executable);
        let session = job.store.scratch("values");
        let mut forcing = job.forcing(self.run);
        forcing.deadline = self.deadlines.total;
        self.replayed += 1;
        self.tally.executions += 1;
        let attempt = match force_with_values(job.program, &schedule, (&places, dependences), &session, &forcing) {
            Ok(attempt) => attempt,
            Err(error) => {
                self.tell(format!("values that a prediction may rest on could not be recorded: {error}"));
                remove(&session)?;
                return Ok(Vec::new());
            }
        };
        let mut leads = Vec::new();
        if attempt.outcome.is_orderly() {
            let folder = folder_of(&schedule, &session);
            let trusted = job.symbols.trusted();
            let mut examination = Examination::begin(folder, (job.settings.engine, Values::Alone), &self.deadlines, trusted);
            if let Some((valued, _)) = examination.loaded()? {
                let with = (job.symbols, job.settings.record.quantum);
                leads = leads_of(&valued, with, from, ProgramExit::Unknown, &mut examination, &mut self.tally);
                // Whatever else the execution showed, the recording had shown.
                leads.retain(|lead| lead.finding.verdict.rank() == Verdict::Predicted.rank());
            }
        }
        remove(&session)?;
        Ok(leads)
    }
}
