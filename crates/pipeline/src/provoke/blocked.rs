//! Deadlocks and lost wake-ups that happen while races are provoked: an execution whose threads block each other is over, and
//! shows that.
//!
//! Its threads ran in parallel, and so it can be had again by luck only: that is a suspicion. A serial schedule makes a proof of
//! it: the order in which synchronisation operations were executed, where the execution was recorded, or else whichever serial
//! execution ends blocked at the same places. What that one executed is forced again, as often as for any other proof.

use crate::check::Job;
use crate::check::prove::{Prover, load};
use crate::error::PipelineError;
use crate::findings::compose::Composer;
use crate::findings::symbols::Symbols;
use crate::progress::{Observer, Progress};
use crate::provoke::NAME;
use crate::store::run::RunRecord;
use rashomon_confirm::force::{Manner, force_in};
use rashomon_confirm::{Forcing, Planner};
use rashomon_event::{Deadline, Finding, FindingId, FindingKind, Schedule, Verdict};
use rashomon_trace::{Enforcement, LoadedTrace, Policy, RunHeader, RunOutcome};
use std::collections::BTreeSet;
use std::path::Path;

/// Serial executions that are to end in the same way.
const EXECUTIONS: u64 = 16;
/// How often a proof has to come about at least.
const TIMES: u32 = 2;

/// What became of it.
#[derive(Default)]
pub struct Told {
    pub executions: u64,
    /// What the report has to say.
    pub note: Option<String>,
}

/// What proving takes.
pub struct Blocked<'b, 'j, S: ?Sized> {
    pub job: &'b Job<'j, S>,
    pub run: &'b RunRecord,
    pub deadline: Deadline,
}

impl<S: Symbols + ?Sized> Blocked<'_, '_, S> {
    /// Stores what an execution shows that ended blocked. `known`: ids of what was stored so.
    pub fn store(
        &self,
        loaded: &LoadedTrace,
        known: &mut BTreeSet<FindingId>,
        observer: &mut dyn Observer,
    ) -> Result<Told, PipelineError> {
        let store = self.job.store;
        let Some(mut finding) = Composer::new(loaded, self.job.symbols, 0).of_blocked() else { return Ok(Told::default()) };
        if !known.insert(finding.id.clone()) || store.has_proof(&finding.id) {
            return Ok(Told::default());
        }
        finding.verdict = Verdict::Suspected;
        // It happened, and whatever ends the tool, that is known.
        store.write_finding(&finding)?;
        let session = store.proof(&finding.id);
        let (shown, executions) = self.force(&finding, loaded, &session, observer)?;
        self.job.clean_up(&session)?;
        let note = if let Some(shown) = shown {
            finding = shown;
            None
        } else {
            let what = match finding.kind {
                FindingKind::Deadlock => "a deadlock",
                FindingKind::Endless => "a livelock",
                _ => "a lost wake-up",
            };
            let words = "an execution in which threads ran in parallel ended so, and no serial schedule that was tried";
            finding.notes.push(format!("{words} showed it again"));
            Some(format!("{what} is suspected ({}): {words} showed it again; --show suspicions", finding.subject))
        };
        self.job.complete(&mut finding);
        store.write_finding(&finding)?;
        observer.progress(Progress::Decided(&finding));
        Ok(Told { executions, note })
    }

    /// The same of the session of a provoking execution, in which nothing else is recorded.
    pub fn store_from(
        &self,
        session: &Path,
        known: &mut BTreeSet<FindingId>,
        observer: &mut dyn Observer,
    ) -> Result<Told, PipelineError> {
        let blocked = RunHeader::read(session)
            .is_ok_and(|header| matches!(header.outcome, RunOutcome::Deadlock | RunOutcome::Stuck | RunOutcome::Endless));
        if blocked && let Ok(loaded) = load(session) {
            return self.store(&loaded, known, observer);
        }
        Ok(Told::default())
    }

    /// The finding proven, if a schedule shows it, and the number of executions.
    fn force(
        &self,
        finding: &Finding,
        loaded: &LoadedTrace,
        session: &Path,
        observer: &mut dyn Observer,
    ) -> Result<(Option<Finding>, u64), PipelineError> {
        let forcing = self.job.forcing(self.run);
        let forcing = Forcing { times: forcing.times.max(TIMES), deadline: self.deadline, ..forcing };
        let scratch = self.job.store.scratch(NAME).join("blocked");
        let mut prover =
            Prover { program: self.job.program, forcing, symbols: self.job.symbols, scratch: &scratch, executions: 0 };
        let tries = tries(loaded, self.run.quantum);
        let of = tries.len();
        for (number, (schedule, manner)) in tries.into_iter().enumerate() {
            if self.deadline.is_over() {
                break;
            }
            observer.progress(Progress::Forcing { id: &finding.id, number, of });
            let attempt = force_in(manner, &[], prover.program, &schedule, session, &prover.forcing)?;
            prover.executions += 1;
            let Some((mut shown, _)) = prover.shown(&schedule, &attempt.outcome, session) else { continue };
            if shown.id == finding.id && prover.comes_about_again(&mut shown, session)? {
                return Ok((Some(shown), prover.executions));
            }
        }
        Ok((None, prover.executions))
    }
}

/// Schedules that may end in the same way, the likeliest first.
fn tries(loaded: &LoadedTrace, quantum: u64) -> Vec<(Schedule, Manner)> {
    let planner = Planner::new(&loaded.trace, quantum);
    let executed = if loaded.turns().is_empty() { planner.observed().ok() } else { Some(loaded.replay_schedule(quantum)) };
    let executed = executed.filter(|schedule| !schedule.turns.is_empty()).map(|schedule| (schedule, Manner::STRICT));
    let serial = (1..=EXECUTIONS).map(|seed| {
        let policy = if seed % 2 == 0 { Policy::Pct } else { Policy::Random };
        (planner.empty(), Manner { enforcement: Enforcement::Strict, policy, seed })
    });
    executed.into_iter().chain(serial).collect()
}
