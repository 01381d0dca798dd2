//! Forcing an order that ends with a wrong use of a lock, a condition variable or a barrier.
//!
//! Behind the order the execution goes on as it likes, and its trace is looked at as any recording is: proven is what that tells.

use crate::analyse::lives::lifetime_races;
use crate::check::prove::{Prover, load_until, not_proven};
use crate::error::PipelineError;
use crate::findings::compose::Composer;
use crate::findings::misuse::misuse_kind;
use crate::findings::symbols::Symbols;
use rashomon_confirm::force;
use rashomon_confirm::force::folder_of;
use rashomon_event::{Deadline, Finding, FindingKind, Grade, Replays, Schedule, Trial};
use std::path::Path;

impl<S: Symbols + ?Sized> Prover<'_, S> {
    /// Forces the schedule of a finding that [`crate::analyse::foreseen`] made; changes its verdict. `true`: proven.
    pub(crate) fn force_use(
        &mut self,
        finding: &mut Finding,
        schedule: &Schedule,
        session: &Path,
    ) -> Result<bool, PipelineError> {
        let times = self.forcing.times.max(1);
        for number in 0..times {
            let session = if number == 0 { session } else { self.scratch };
            let attempt = force(self.program, schedule, session, &self.forcing)?;
            self.executions += 1;
            let again = self.wrong_use(finding, schedule, session);
            match (again, number) {
                (Some(shown), 0) => {
                    (finding.subject, finding.sides) = (shown.subject, shown.sides);
                    finding.forget_steps();
                }
                (Some(_), _) => {}
                (None, 0) => {
                    not_proven(finding, &attempt.outcome);
                    return Ok(false);
                }
                (None, _) => {
                    let expected = "what its schedule showed once, when it was forced again".into();
                    finding.advance(Trial::ShownOnce { expected, actual: attempt.outcome.to_string(), of: number });
                    return Ok(false);
                }
            }
        }
        let grade = if finding.kind == FindingKind::LifetimeRace { Grade::Unordered } else { Grade::Observed };
        finding.advance(Trial::Shown { grade, replays: Replays::all(times - 1) });
        if let Ok(loaded) = self.load_of_proof(schedule, session) {
            self.draw(finding, &loaded, schedule.quantum);
        }
        Ok(true)
    }

    /// The same finding, as the execution in that session tells it.
    fn wrong_use(&self, finding: &Finding, schedule: &Schedule, session: &Path) -> Option<Finding> {
        let loaded = load_until(&folder_of(schedule, session), Deadline::NEVER).ok()?;
        let of_order =
            if finding.kind == FindingKind::LifetimeRace { lifetime_races(&loaded, self.forcing.deadline) } else { Vec::new() };
        let composer = Composer::new(&loaded, self.symbols, schedule.quantum);
        let all = loaded.misuses.iter().chain(&of_order).filter(|record| misuse_kind(record.misuse) == finding.kind);
        all.map(|record| composer.of_misuse(record)).find(|shown| shown.id == finding.id && shown.verdict.is_proven())
    }
}
