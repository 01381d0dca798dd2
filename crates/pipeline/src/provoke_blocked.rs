//! Deadlocks and lost wake-ups that happen while races are provoked: an execution whose threads block each other is over, and shows that.

use crate::check::Job;
use crate::compose::Composer;
use crate::error::PipelineError;
use crate::progress::{Observer, Progress};
use crate::prove::load;
use crate::symbols::Symbols;
use rashomon_trace::{LoadedTrace, Outcome, RunHeader};
use std::collections::BTreeSet;
use std::path::Path;

/// Stores what an execution shows that ended blocked. `known`: ids of what is stored already.
pub fn store<S: Symbols + ?Sized>(
    job: &Job<'_, S>,
    loaded: &LoadedTrace,
    known: &mut BTreeSet<rashomon_event::FindingId>,
    observer: &mut dyn Observer,
) -> Result<(), PipelineError> {
    let Some(finding) = Composer::new(loaded, job.symbols, 0).of_blocked() else { return Ok(()) };
    if known.insert(finding.id.clone()) {
        job.store.write_finding(&finding)?;
        observer.progress(Progress::Decided(&finding));
    }
    Ok(())
}

/// The same of the session of a provoking execution, in which nothing else is recorded.
pub fn store_from<S: Symbols + ?Sized>(
    job: &Job<'_, S>,
    session: &Path,
    known: &mut BTreeSet<rashomon_event::FindingId>,
    observer: &mut dyn Observer,
) -> Result<(), PipelineError> {
    let blocked = RunHeader::read(session).is_ok_and(|header| matches!(header.outcome, Outcome::Deadlock | Outcome::Stuck));
    if blocked && let Ok(loaded) = load(session) {
        store(job, &loaded, known, observer)?;
    }
    Ok(())
}
