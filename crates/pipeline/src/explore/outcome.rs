//! What executions prove of failures.

use rashomon_confirm::{Attempt, Ending, Outcome};
use rashomon_event::Grade;
use rashomon_explore::Failure;

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
