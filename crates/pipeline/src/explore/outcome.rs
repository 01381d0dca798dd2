//! What executions prove of failures, and what is known of them before.

use crate::explore::Strategy;
use rashomon_confirm::{Attempt, Ending, Outcome};
use rashomon_event::{FindingId, Grade};
use rashomon_explore::explorer::Go;
use rashomon_explore::{Expected, ExploreError, Failure, Observation, Sampling};
use rashomon_report::ProgramExit;
use rashomon_trace::Crash;

/// What became of a failure.
pub(super) enum Kept {
    Stored(FindingId),
    Known,
    /// No replay showed it, and only proofs are stored.
    NotAgain,
}

/// What an outcome of a replay proves of a failure.
pub(super) fn happened(failure: Failure, attempt: &Attempt) -> bool {
    match failure {
        Failure::Deadlock => attempt.outcome == Outcome::Deadlocked,
        Failure::Stuck => attempt.outcome == Outcome::Stuck,
        Failure::Repeats => attempt.outcome == Outcome::Endless,
        Failure::Race => attempt.outcome == Outcome::CoEnabled,
        Failure::Signal(signal) => attempt.execution.ending == Ending::Signal(signal),
        Failure::Code(code) => attempt.execution.ending == Ending::Code(code),
        Failure::Endless | Failure::TimedOut => attempt.execution.ending == Ending::TimedOut,
    }
}

/// Whether an execution that ended so would be told as a failure. One that its time limit ended may go on.
pub(super) const fn is_failure(exit: ProgramExit, expected: Expected) -> bool {
    match (exit, expected) {
        (ProgramExit::TimedOut, _) | (ProgramExit::Code { .. }, Expected::AnyCode) => false,
        (ProgramExit::Code { code }, Expected::Code(wanted)) => code != wanted,
        _ => true,
    }
}

pub(super) const fn grade_of(failure: Failure) -> Option<Grade> {
    match failure {
        Failure::Deadlock => Some(Grade::Deadlocked),
        Failure::Stuck => Some(Grade::Stuck),
        Failure::Repeats => Some(Grade::Endless),
        Failure::Race => Some(Grade::CoEnabled),
        Failure::Signal(_) => Some(Grade::Crashed),
        Failure::Code(_) => Some(Grade::WrongExit),
        // That something never ends cannot be shown by an execution.
        Failure::Endless | Failure::TimedOut => None,
    }
}

/// What is known of a failure before its schedule is replayed: how it ended, the code that ran last, and at which address it
/// crashed.
pub(super) type Look = (String, Option<(u32, u64)>, Option<(u64, u64)>);

/// What the length of an execution says of those that follow. `is_cut`: it had more to do than a search can follow.
pub(super) fn of_its_length(long: &mut bool, tried: u64, is_cut: bool, in_check: bool) -> Option<Go> {
    if !is_cut {
        return None;
    }
    if in_check && tried == 1 {
        *long = true;
        return Some(Go::Stop);
    }
    // It may have more to do than that. If the first one has, all have.
    long.then_some(if tried == 2 { Go::Stop } else { Go::On })
}

/// The strategy that a schedule was made by, where some take turns.
pub(super) const fn strategy_of(sampling: Sampling, asked: Strategy) -> Strategy {
    match sampling {
        Sampling::Wanted => Strategy::ReadsFrom,
        Sampling::Ordered { .. } => Strategy::Orders,
        _ => asked,
    }
}

pub(super) fn look_of(failure: Failure, observation: &Observation) -> Look {
    let last = observation.log.steps.last().map(|step| (step.thread, step.does.site));
    let last = last.filter(|_| !matches!(failure, Failure::Endless | Failure::TimedOut));
    let crash = observation.header.crash.filter(Crash::is_of_an_instruction).map(|crash| (crash.signal, crash.address));
    (failure.to_string(), last, crash)
}

/// How a batch ended. What a long execution does may be more than its process may write: then there are no more.
pub(super) fn unless_too_much(went: Result<Go, ExploreError>, long: bool) -> Result<Go, ExploreError> {
    match went {
        Err(ExploreError::NotObserved) if long => Ok(Go::Stop),
        other => other,
    }
}
