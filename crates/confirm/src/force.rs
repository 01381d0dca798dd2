//! Making a schedule happen, and believing only what happens again.
//!
//! A forced execution runs serially under the schedule; after its last turn threads take turns at random (the same in every execution). Its end is told by
//! the runtime. [`confirm`] calls a schedule's goal proven when it came about, and came about again in a second execution.

use crate::error::ConfirmError;
use crate::execution::{Execution, Input, Output, Program, execute};
use crate::outcome::Outcome;
use rashomon_event::{Goal, Grade, Schedule};
use rashomon_trace::control::{self, After, ControlRequest, Policy};
use rashomon_trace::{RunHeader, RunMode, TraceError};
use std::path::Path;
use std::time::Duration;

/// What all forced executions of one program share.
#[derive(Clone, Debug)]
pub struct Forcing {
    /// Wall-clock time of one execution.
    pub limit: Duration,
    /// Time a call into the kernel may take before the runtime gives up on it.
    pub patience: Duration,
    pub input: Input,
    /// Where virtual time begins: as in the recording.
    pub base_time_nanoseconds: u64,
    pub trace_limit: u64,
    /// How often a goal has to come about to be called proven; at least 1.
    pub times: u32,
}

/// One forced execution.
#[derive(Clone, Debug)]
pub struct Attempt {
    pub outcome: Outcome,
    pub header: Option<RunHeader>,
    pub execution: Execution,
}

/// What several attempts at one schedule say together.
#[derive(Clone, Debug)]
pub enum Decision {
    Proven(Grade),
    /// The goal did not come about.
    Not(Outcome),
    /// It came about once, and then not.
    Unstable {
        then: Outcome,
    },
}

/// The control file of a forced execution.
pub fn control_of(schedule: &Schedule, after: After, forcing: &Forcing) -> Result<Vec<u8>, ConfirmError> {
    let request = ControlRequest {
        mode: RunMode::Serial,
        // Fair, so that a thread that waits in a loop does not keep the others from the goal.
        policy: Policy::Random,
        quantum: schedule.quantum,
        patience_ms: u64::try_from(forcing.patience.as_millis()).unwrap_or(u64::MAX),
        trace_limit: forcing.trace_limit,
        after,
        base_time_nanoseconds: forcing.base_time_nanoseconds,
        schedule: Some(schedule),
        ..ControlRequest::default()
    };
    Ok(control::encode(&request)?)
}

/// An empty session with its control file. What an earlier execution left there is removed.
pub fn new_session(session: &Path, control: &[u8]) -> Result<(), ConfirmError> {
    match std::fs::remove_dir_all(session) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(ConfirmError::io("remove", session)(error)),
        _ => {}
    }
    std::fs::create_dir_all(session).map_err(ConfirmError::io("create", session))?;
    let path = session.join(rashomon_abi::CONTROL_FILE);
    std::fs::write(&path, control).map_err(ConfirmError::io("write", path))
}

/// The header of a session; `None` where no program with our runtime ran.
pub fn header_of(session: &Path) -> Result<Option<RunHeader>, ConfirmError> {
    match RunHeader::read(session) {
        Ok(header) => Ok(Some(header)),
        Err(TraceError::NotARecording { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Executes the program under the schedule once; the trace stays in `session`.
pub fn force(program: &Program, schedule: &Schedule, session: &Path, forcing: &Forcing) -> Result<Attempt, ConfirmError> {
    new_session(session, &control_of(schedule, After::Stop, forcing)?)?;
    let execution = execute(program, session, &forcing.input, Output::Discard, Some(forcing.limit))?;
    let header = header_of(session)?;
    let outcome = Outcome::of(header.as_ref(), Some(schedule), &execution);
    Ok(Attempt { outcome, header, execution })
}

/// The grade that an outcome proves of a schedule with this goal.
pub fn grade_of(goal: &Goal, outcome: &Outcome) -> Option<Grade> {
    match (goal, outcome) {
        (Goal::Race { .. }, Outcome::CoEnabled) => Some(Grade::CoEnabled),
        (Goal::Deadlock { .. } | Goal::None, Outcome::Deadlocked) => Some(Grade::Deadlocked),
        (Goal::Deadlock { .. } | Goal::None, Outcome::Stuck) => Some(Grade::Stuck),
        _ => None,
    }
}

/// Forces the schedule until its goal has come about `forcing.times` times or has not once. The trace of the last execution in
/// which it did is in `session`; later ones are made in `scratch`. Also says how many executions were made.
pub fn confirm(
    program: &Program,
    schedule: &Schedule,
    session: &Path,
    scratch: &Path,
    forcing: &Forcing,
) -> Result<(Decision, u32), ConfirmError> {
    let first = force(program, schedule, session, forcing)?;
    let Some(grade) = grade_of(&schedule.goal, &first.outcome) else { return Ok((Decision::Not(first.outcome), 1)) };
    for number in 1..forcing.times {
        let again = force(program, schedule, scratch, forcing)?;
        if !again.outcome.same_as(&first.outcome) {
            return Ok((Decision::Unstable { then: again.outcome }, number + 1));
        }
    }
    Ok((Decision::Proven(grade), forcing.times.max(1)))
}
