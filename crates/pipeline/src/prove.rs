//! Forcing one finding: `co-enabled` or `deadlocked` by its schedule, else `unordered` by the recorded one.

use crate::compose::{Composer, keep_actions};
use crate::error::PipelineError;
use crate::misuse::misuse_kind;
use crate::modules::Unseen;
use crate::symbols::Symbols;
use rashomon_confirm::force::{folder_of, grade_of};
use rashomon_confirm::{Attempt, Decision, Ending, Forcing, Outcome, Program, confirm, force, unordered_pair};
use rashomon_event::{Deadline, Evidence, Finding, FindingKind, Frame, Grade, Schedule, Side, Verdict};
use rashomon_explore::Failure;
use rashomon_trace::{BlockedRecord, LoadedTrace, Recording};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What forcing needs, for all findings of one program.
pub struct Prover<'a, S: ?Sized> {
    pub program: &'a Program,
    pub forcing: Forcing,
    pub symbols: &'a S,
    /// Session of executions whose traces are not kept.
    pub scratch: &'a Path,
    /// Forced executions so far.
    pub executions: u64,
}

pub(crate) fn load_until(session: &Path, deadline: Deadline) -> Result<LoadedTrace, PipelineError> {
    Ok(Recording::open(session)?.load_until(deadline)?)
}

pub fn load(session: &Path) -> Result<LoadedTrace, PipelineError> {
    Ok(Recording::open(session)?.load()?)
}

impl<S: Symbols + ?Sized> Prover<'_, S> {
    /// Forces the finding's schedule; changes its verdict, and its sides to those of the proof. `true`: proven.
    pub fn force_schedule(&mut self, finding: &mut Finding, schedule: &Schedule, session: &Path) -> Result<bool, PipelineError> {
        // Other threads that wait for each other are no proof of this deadlock; `pursue` makes them a finding of their own.
        let shows = |outcome: &Outcome, session: &Path| {
            !matches!(outcome, Outcome::Deadlocked | Outcome::Stuck)
                || self.shown(schedule, outcome, session).is_some_and(|(shown, _)| shown.id == finding.id)
                || self.is_stuck_there(finding, schedule, outcome, session)
        };
        let (decision, executions) = confirm(self.program, schedule, session, self.scratch, &self.forcing, &shows)?;
        self.executions += u64::from(executions);
        match decision {
            Decision::Proven(grade) => {
                finding.verdict = Verdict::Proven { grade };
                finding.schedule = Some(schedule.clone());
                self.take_sides_of_proof(finding, schedule, session);
                Ok(true)
            }
            Decision::Not(outcome) => {
                not_proven(finding, &outcome);
                Ok(false)
            }
            Decision::Another(outcome) => {
                finding.notes.push(format!("forcing it showed another finding: {outcome}"));
                Ok(false)
            }
            Decision::Unstable { then } => {
                finding.notes.push(format!("it came about once when forced, and then not: {then}"));
                Ok(false)
            }
        }
    }

    /// The proof's trace knows the stacks of the very execution that shows the finding. If it cannot be read the prediction's stay.
    pub(crate) fn take_sides_of_proof(&self, finding: &mut Finding, schedule: &Schedule, session: &Path) {
        // What is proven is told whatever the time; a moment longer for its stacks.
        let Ok(loaded) = load_until(&folder_of(schedule, session), self.forcing.deadline.and(Duration::from_millis(200))) else {
            finding.notes.push("the stacks are those of the recorded execution: the proof's trace cannot be read".into());
            return;
        };
        let composer = Composer::new(&loaded, self.symbols, schedule.quantum);
        match finding.kind {
            FindingKind::DataRace => {
                if let Some(mut sides) = composer.goal_sides() {
                    keep_actions(&finding.sides, &mut sides);
                    finding.sides = sides;
                }
            }
            FindingKind::Deadlock | FindingKind::Stuck => {
                let sides = composer.blocked_sides();
                if !sides.is_empty() {
                    finding.sides = sides;
                }
            }
            FindingKind::Failure
            | FindingKind::UnlockNotHeld
            | FindingKind::DestroyLocked
            | FindingKind::DoubleLock
            | FindingKind::UseOfDestroyed
            | FindingKind::ThreadLeak => {}
        }
    }

    /// Replays the recorded execution and looks for the pair in it, unordered by every rule. `true`: proven.
    /// `known`: what an earlier replay of the same recording held that was not seen, so that no other one need be executed.
    pub fn prove_unordered(
        &mut self,
        finding: &mut Finding,
        recorded: &Schedule,
        known: &mut Unseen,
        session: &Path,
    ) -> Result<bool, PipelineError> {
        let Some(places) = places_of(finding) else { return Ok(false) };
        if !known.is_empty() {
            may_have_ordered(finding, known);
            return Ok(false);
        }
        for number in 0..self.forcing.times.max(1) {
            let session = if number == 0 { session } else { self.scratch };
            force(self.program, recorded, session, &self.forcing)?;
            self.executions += 1;
            let Ok(loaded) = load_until(&folder_of(recorded, session), self.forcing.deadline) else { return Ok(false) };
            *known = Unseen::of(&loaded.trace, self.symbols.trusted());
            if !known.is_empty() {
                may_have_ordered(finding, known);
                return Ok(false);
            }
            let Some((first, second)) =
                unordered_pair(&loaded.trace, places.clone().each_ref().map(|(path, offset)| (path.as_str(), *offset)))
            else {
                return Ok(false);
            };
            if number == 0 {
                let composer = Composer::new(&loaded, self.symbols, recorded.quantum);
                finding.sides = [first, second].map(|event| composer.describer.side_before(event)).to_vec();
            }
        }
        finding.verdict = Verdict::Proven { grade: Grade::Unordered };
        finding.schedule = Some(recorded.clone());
        finding.steps = Vec::new();
        Ok(true)
    }

    /// What the recorded execution itself did, again. The one place that decides about a proof that does not: it is tried [`REPLAYS`] times, and then it is none.
    pub fn replay_observed(&mut self, finding: &mut Finding, recorded: &Schedule, session: &Path) -> Result<(), PipelineError> {
        finding.schedule = Some(recorded.clone());
        let mut tries = 0;
        let actual = loop {
            if self.forcing.deadline.is_over() {
                // The end of the budget says nothing about what was recorded, and its schedule can be replayed later.
                finding.notes.push("the budget was over before its recorded schedule was replayed".into());
                return Ok(());
            }
            let attempt = force(self.program, recorded, session, &self.forcing)?;
            self.executions += 1;
            if same_again(finding, &attempt, session)? && self.shows_same(finding, &attempt, session) {
                return Ok(());
            }
            tries += 1;
            if tries >= REPLAYS && !self.forcing.deadline.is_over() {
                break attempt.outcome.to_string();
            }
        };
        demote(finding, actual);
        Ok(())
    }

    /// Whether every thread waits, those of a cycle that is not one of locks alone at their calls in it: nobody says then which of the waits make up the cycle.
    fn is_stuck_there(&self, finding: &Finding, schedule: &Schedule, outcome: &Outcome, session: &Path) -> bool {
        finding.kind == FindingKind::Deadlock
            && *outcome == Outcome::Stuck
            && load_until(&folder_of(schedule, session), self.forcing.deadline)
                .is_ok_and(|loaded| others_than(finding, &loaded).is_some())
    }

    /// Of an execution that ended blocked: whether it is blocked at the places of the finding.
    fn shows_same(&self, finding: &Finding, attempt: &Attempt, session: &Path) -> bool {
        let Some(schedule) = finding.schedule.as_ref().filter(|_| !finding.kind.is_misuse()) else { return true };
        self.shown(schedule, &attempt.outcome, session).is_some_and(|(shown, _)| shown.id == finding.id)
    }
}

/// How often a proof may be replayed until it comes about again.
const REPLAYS: u32 = 3;

/// The finding was seen once and does not come about again: that is no proof.
fn demote(finding: &mut Finding, actual: String) {
    finding.verdict =
        Verdict::Diverged { expected: "what the recorded execution did, when its schedule was replayed".into(), actual };
}

/// Whether an outcome of replaying a stored finding is the one it was proven by. `session` holds the replayed execution.
pub fn same_again(finding: &Finding, attempt: &Attempt, session: &Path) -> Result<bool, PipelineError> {
    // An execution that was ended before it wrote its trace shows nothing.
    let loaded = || load(&folder_in(finding, session)).ok();
    Ok(match finding.verdict {
        Verdict::Proven { grade: Grade::CoEnabled } => attempt.outcome == Outcome::CoEnabled,
        Verdict::Proven { grade: Grade::Deadlocked } => {
            attempt.outcome == Outcome::Deadlocked && loaded().is_some_and(|loaded| stands_there(finding, &loaded))
        }
        Verdict::Proven { grade: Grade::Stuck } => {
            attempt.outcome == Outcome::Stuck && loaded().is_some_and(|loaded| stands_there(finding, &loaded))
        }
        // One failure for another is none: the subject names it.
        Verdict::Proven { grade: Grade::Crashed } => match attempt.execution.ending {
            Ending::Signal(signal) => finding.subject == Failure::Signal(signal).to_string(),
            _ => false,
        },
        Verdict::Proven { grade: Grade::WrongExit } => match attempt.execution.ending {
            Ending::Code(code) => finding.subject == Failure::Code(code).to_string() && attempt.outcome.is_orderly(),
            _ => false,
        },
        Verdict::Proven { grade: Grade::Unordered } => {
            let Some(places) = places_of(finding) else { return Ok(false) };
            let places = places.each_ref().map(|(path, offset)| (path.as_str(), *offset));
            loaded().is_some_and(|loaded| unordered_pair(&loaded.trace, places).is_some())
        }
        Verdict::Proven { grade: Grade::Observed } => loaded().is_some_and(|loaded| shows_misuse(&loaded, finding)),
        // That it did not come about before is nothing to come about again.
        Verdict::Diverged { .. } | Verdict::Predicted | Verdict::Suspected | Verdict::Refuted => {
            finding.schedule.as_ref().is_some_and(|schedule| grade_of(&schedule.goal, &attempt.outcome).is_some())
        }
    })
}

/// Where an execution of the finding's schedule left its trace.
fn folder_in(finding: &Finding, session: &Path) -> PathBuf {
    finding.schedule.as_ref().map_or_else(|| session.to_path_buf(), |schedule| folder_of(schedule, session))
}

/// Whether the blocked threads stand where those of the finding stood: others that wait for each other are another finding.
fn stands_there(finding: &Finding, loaded: &LoadedTrace) -> bool {
    others_than(finding, loaded) == Some(0)
}

/// How many threads are blocked beside those of the finding, which are so at their calls; `None`: not all of them are.
fn others_than(finding: &Finding, loaded: &LoadedTrace) -> Option<usize> {
    let trace = &loaded.trace;
    let calls = |record: &BlockedRecord| -> Vec<(&str, u64)> {
        let sites = std::iter::once(record.site).chain(trace.callers(record.context)).map(|site| trace.site(site));
        let module = |module: u32| trace.modules.get(module as usize).map_or("", |module| module.path.as_str());
        sites.map(|site| (site.module.map_or("", module), site.offset)).collect()
    };
    let mut left: Vec<_> = loaded.blocked.iter().map(calls).collect();
    // A stack leaves out calls of the runtime, and of what starts a thread.
    let same = |side: &Side, calls: &[(&str, u64)]| {
        !side.stack.is_empty()
            && side
                .stack
                .iter()
                .all(|frame| frame.offset.checked_add(1).is_some_and(|offset| calls.contains(&(frame.module.as_str(), offset))))
    };
    let all = finding.sides.iter().all(|side| match left.iter().position(|calls| same(side, calls)) {
        Some(at) => {
            left.swap_remove(at);
            true
        }
        None => false,
    });
    all.then_some(left.len())
}

/// Module and return address of both accesses.
fn places_of(finding: &Finding) -> Option<[(String, u64); 2]> {
    if finding.kind != FindingKind::DataRace {
        return None;
    }
    let place = |frame: &Frame| Some((frame.module.clone(), frame.offset.checked_add(1)?));
    match finding.sides.as_slice() {
        [first, second] => Some([place(first.stack.first()?)?, place(second.stack.first()?)?]),
        _ => None,
    }
}

/// Whether the execution did the same wrong thing at the same place.
fn shows_misuse(loaded: &LoadedTrace, finding: &Finding) -> bool {
    let Some(place) = finding.sides.first().and_then(|side| side.stack.first()) else { return false };
    loaded.misuses.iter().any(|record| {
        let site = loaded.trace.site(record.at.site);
        let module = site.module.and_then(|module| loaded.trace.modules.get(module as usize));
        misuse_kind(record.misuse) == finding.kind
            && Some(site.offset) == place.offset.checked_add(1)
            && module.is_some_and(|module| module.path == place.module)
    })
}

/// Whether it makes sense to look for the pair in the recorded execution.
fn may_have_ordered(finding: &mut Finding, unseen: &Unseen) {
    let all: Vec<&str> = unseen.all().map(String::as_str).collect();
    finding.notes.push(format!("what is not seen may have ordered the accesses: {}", all.join(", ")));
    finding.unseen = unseen.libraries.clone();
}

pub fn may_be_unordered(finding: &Finding) -> bool {
    finding.kind == FindingKind::DataRace && finding.evidence == Evidence::HappensBefore
}

fn not_proven(finding: &mut Finding, outcome: &Outcome) {
    match outcome {
        // A sound witness stays a prediction: the execution may depend on what no trace holds.
        Outcome::Diverged(divergence) if finding.verdict == Verdict::Predicted => {
            finding.notes.push(format!("forcing it left the schedule {divergence}"));
        }
        Outcome::Diverged(divergence) => {
            let expected = format!("{} (turn {})", divergence.expected, divergence.turn + 1);
            finding.verdict = Verdict::Diverged { expected, actual: divergence.actual.clone() };
        }
        other => finding.notes.push(format!("forcing it did not show it: {other}")),
    }
}
