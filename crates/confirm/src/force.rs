//! Making a schedule happen, and believing only what happens again.
//!
//! A forced execution runs serially under the schedule; after its last turn threads take turns at random (the same in every
//! execution). Its end is told by the runtime. [`confirm`] calls a schedule's goal proven when it came about, and came about
//! again in a second execution.

use crate::error::ConfirmError;
use crate::execution::{Execution, Input, Output, Program, Time, execute};
use crate::outcome::{Divergence, Outcome};
use rashomon_abi::control::option;
use rashomon_event::{CodePlace, Deadline, Goal, Grade, Schedule, Surroundings};
use rashomon_trace::control::{self, After, ControlRequest, Enforcement, Policy};
use rashomon_trace::{RunHeader, RunMode, TraceError, process_folder};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What all forced executions of one program share.
#[derive(Clone, Debug)]
pub struct Forcing {
    /// Wall-clock time of one execution.
    pub limit: Duration,
    /// When all of them have to be over.
    pub deadline: Deadline,
    /// Time a call into the kernel may take before the runtime gives up on it.
    pub call_timeout: Duration,
    pub input: Input,
    pub output: Output,
    /// Where virtual time begins: as in the recording.
    pub base_time_nanoseconds: u64,
    pub trace_limit: u64,
    /// The most processes that are recorded; 0: no limit.
    pub processes: u64,
    /// How often a goal has to come about to be called proven; at least 1.
    pub times: u32,
}

impl Forcing {
    /// Wall-clock time of an execution that starts now.
    pub fn limit(&self) -> Duration {
        self.deadline.limit(self.limit)
    }

    /// Of an execution and what comes before it.
    pub fn time(&self) -> Time {
        Time { limit: Some(self.limit), until: self.deadline }
    }
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
pub enum Confirmation {
    Proven(Grade),
    /// The goal did not come about.
    Not(Outcome),
    /// The program ended as the goal wants, but showed something else.
    Another(Outcome),
    /// It came about once, and then not.
    Unstable {
        then: Outcome,
    },
}

/// How a schedule is kept, and who runs where it does not say.
#[derive(Clone, Copy, Debug)]
pub struct Manner {
    pub enforcement: Enforcement,
    pub policy: Policy,
    pub seed: u64,
}

impl Manner {
    /// The policy is fair, so that a thread that waits in a loop does not keep the others from the goal.
    pub const STRICT: Self = Self { enforcement: Enforcement::Strict, policy: Policy::Random, seed: 1 };
}

/// The control file of the process that a schedule is for.
fn control_of(
    schedule: &Schedule,
    after: After,
    manner: Manner,
    known: &[[CodePlace; 2]],
    forcing: &Forcing,
) -> Result<Vec<u8>, ConfirmError> {
    let request = ControlRequest {
        policy: manner.policy,
        seed: manner.seed,
        enforcement: manner.enforcement,
        known,
        after,
        schedule: Some(schedule),
        ..request_of(schedule.quantum, forcing)
    };
    Ok(control::encode(&request)?)
}

/// The control file of all other processes: they run as they were recorded, so that they make the process again.
fn control_of_surroundings(of: &Surroundings, schedule: &Schedule, forcing: &Forcing) -> Result<Vec<u8>, ConfirmError> {
    let policy = Policy::from_code(of.policy).ok_or(ConfirmError::NoSuchPolicy { code: of.policy })?;
    let options = if schedule.unseen_calls { option::UNSEEN_CALLS } else { 0 };
    Ok(control::encode(&ControlRequest { policy, seed: of.seed, options, ..request_of(schedule.quantum, forcing) })?)
}

fn request_of(quantum: u64, forcing: &Forcing) -> ControlRequest<'static> {
    ControlRequest {
        mode: RunMode::Serial,
        quantum,
        call_timeout_ms: u64::try_from(forcing.call_timeout.as_millis()).unwrap_or(u64::MAX),
        trace_limit: forcing.trace_limit,
        processes: forcing.processes,
        base_time_nanoseconds: forcing.base_time_nanoseconds,
        ..ControlRequest::default()
    }
}

/// The folder in a session that the process which a schedule is for records in.
pub fn folder_of(schedule: &Schedule, session: &Path) -> PathBuf {
    match &schedule.surroundings {
        None => session.to_path_buf(),
        Some(surroundings) => process_folder(session, &surroundings.process),
    }
}

/// An empty session in which the program will be forced, with its control files.
pub fn forced_session(schedule: &Schedule, after: After, session: &Path, forcing: &Forcing) -> Result<(), ConfirmError> {
    session_in_manner(schedule, after, Manner::STRICT, &[], session, forcing)
}

fn session_in_manner(
    schedule: &Schedule,
    after: After,
    manner: Manner,
    known: &[[CodePlace; 2]],
    session: &Path,
    forcing: &Forcing,
) -> Result<(), ConfirmError> {
    match &schedule.surroundings {
        None => new_session(session, &control_of(schedule, after, manner, known, forcing)?),
        Some(surroundings) => {
            new_session(session, &control_of_surroundings(surroundings, schedule, forcing)?)?;
            process_in_manner(schedule, after, manner, known, session, forcing)
        }
    }
}

/// Adds what is asked of one more process to a session.
pub fn force_process(schedule: &Schedule, after: After, session: &Path, forcing: &Forcing) -> Result<(), ConfirmError> {
    process_in_manner(schedule, after, Manner::STRICT, &[], session, forcing)
}

fn process_in_manner(
    schedule: &Schedule,
    after: After,
    manner: Manner,
    known: &[[CodePlace; 2]],
    session: &Path,
    forcing: &Forcing,
) -> Result<(), ConfirmError> {
    write_control(&folder_of(schedule, session), &control_of(schedule, after, manner, known, forcing)?)
}

/// What is asked of the process that records in a folder.
fn write_control(folder: &Path, control: &[u8]) -> Result<(), ConfirmError> {
    std::fs::create_dir_all(folder).map_err(ConfirmError::io("create", folder))?;
    let path = folder.join(rashomon_abi::CONTROL_FILE);
    std::fs::write(&path, control).map_err(ConfirmError::io("write", path))
}

/// An empty session with its control file. What an earlier execution left there is removed.
pub fn new_session(session: &Path, control: &[u8]) -> Result<(), ConfirmError> {
    remove(session)?;
    std::fs::create_dir_all(session).map_err(ConfirmError::io("create", session))?;
    let path = session.join(rashomon_abi::CONTROL_FILE);
    std::fs::write(&path, control).map_err(ConfirmError::io("write", path))
}

/// Removes what an execution left, if it left anything, also while a process that escaped it still writes there.
pub fn remove(session: &Path) -> Result<(), ConfirmError> {
    const TRIES: u32 = 100;
    for again in (0..TRIES).rev() {
        match std::fs::remove_dir_all(session) {
            Err(error) if error.kind() == std::io::ErrorKind::DirectoryNotEmpty && again > 0 => {
                std::thread::sleep(Duration::from_millis(10));
            }
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(ConfirmError::io("remove", session)(error));
            }
            _ => break,
        }
    }
    Ok(())
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
    force_in(Manner::STRICT, &[], program, schedule, session, forcing)
}

/// The same, with the schedule kept more or less closely. `known`: pairs of code places whose races are not looked for.
pub fn force_in(
    manner: Manner,
    known: &[[CodePlace; 2]],
    program: &Program,
    schedule: &Schedule,
    session: &Path,
    forcing: &Forcing,
) -> Result<Attempt, ConfirmError> {
    session_in_manner(schedule, After::Stop, manner, known, session, forcing)?;
    let execution = execute(program, session, &forcing.input, forcing.output, forcing.time())?;
    attempt(schedule, session, execution)
}

/// The same with the values of plain accesses at these code places, whose modules are the schedule's. `dependences`: moreover
/// which way control goes in functions that the compiler's plugin has instrumented, and every access.
pub fn force_with_values(
    program: &Program,
    schedule: &Schedule,
    (places, dependences): (&[CodePlace], bool),
    session: &Path,
    forcing: &Forcing,
) -> Result<Attempt, ConfirmError> {
    let options = option::VALUES | if dependences { option::DEPENDENCES | option::NO_FILTER } else { 0 };
    let request = ControlRequest { options, valued: places, ..strict_request(schedule, forcing) };
    session_of(schedule, &request, session, forcing)?;
    let execution = execute(program, session, &forcing.input, forcing.output, forcing.time())?;
    attempt(schedule, session, execution)
}

fn strict_request<'a>(schedule: &'a Schedule, forcing: &Forcing) -> ControlRequest<'a> {
    let Manner { enforcement, policy, seed } = Manner::STRICT;
    ControlRequest { policy, seed, enforcement, schedule: Some(schedule), ..request_of(schedule.quantum, forcing) }
}

/// A session in which the process that a schedule is for is asked for this.
fn session_of(schedule: &Schedule, request: &ControlRequest<'_>, session: &Path, forcing: &Forcing) -> Result<(), ConfirmError> {
    let control = control::encode(request)?;
    match &schedule.surroundings {
        None => new_session(session, &control),
        Some(surroundings) => {
            new_session(session, &control_of_surroundings(surroundings, schedule, forcing)?)?;
            write_control(&folder_of(schedule, session), &control)
        }
    }
}

/// A session for a debugger: the program goes on behind the goal, and leaves no trace.
pub fn debugged_session(schedule: &Schedule, session: &Path, forcing: &Forcing) -> Result<(), ConfirmError> {
    let request = ControlRequest { options: option::NO_STREAMS, after: After::Continue, ..strict_request(schedule, forcing) };
    session_of(schedule, &request, session, forcing)
}

/// What came of an execution in the process that a schedule is for.
pub fn attempt(schedule: &Schedule, session: &Path, execution: Execution) -> Result<Attempt, ConfirmError> {
    let header = match header_of(&folder_of(schedule, session)) {
        // Its time was over before its first step.
        Err(ConfirmError::Trace(TraceError::NotBegun { .. })) => None,
        header => header?,
    };
    let outcome = match (&header, &schedule.surroundings) {
        (None, Some(surroundings)) => Outcome::Diverged(Divergence {
            turn: 0,
            expected: format!("process {} to be made", surroundings.process),
            actual: "it was not".into(),
        }),
        _ => Outcome::of(header.as_ref(), Some(schedule), &execution),
    };
    Ok(Attempt { outcome, header, execution })
}

/// The grade that an outcome proves of a schedule with this goal.
pub fn grade_of(goal: &Goal, outcome: &Outcome) -> Option<Grade> {
    match (goal, outcome) {
        (Goal::Race { .. }, Outcome::CoEnabled) => Some(Grade::CoEnabled),
        (Goal::Deadlock { .. } | Goal::None, Outcome::Deadlocked) => Some(Grade::Deadlocked),
        (Goal::Deadlock { .. } | Goal::None, Outcome::Stuck) => Some(Grade::Stuck),
        (Goal::None, Outcome::Endless) => Some(Grade::Endless),
        _ => None,
    }
}

/// Forces the schedule until its goal has come about `forcing.times` times or has not once. The trace of the last execution in
/// which it did is in `session`; later ones are made in `scratch`. Also says how many executions were made.
/// `shows`: whether the execution in that session shows what is to be proven. The same outcome may be that of other threads.
pub fn confirm(
    program: &Program,
    schedule: &Schedule,
    session: &Path,
    scratch: &Path,
    forcing: &Forcing,
    shows: &dyn Fn(&Outcome, &Path) -> bool,
) -> Result<(Confirmation, u32), ConfirmError> {
    let first = force(program, schedule, session, forcing)?;
    let Some(grade) = grade_of(&schedule.goal, &first.outcome) else { return Ok((Confirmation::Not(first.outcome), 1)) };
    if !shows(&first.outcome, session) {
        return Ok((Confirmation::Another(first.outcome), 1));
    }
    for number in 1..forcing.times {
        let again = force(program, schedule, scratch, forcing)?;
        if !again.outcome.same_as(&first.outcome) || !shows(&again.outcome, scratch) {
            return Ok((Confirmation::Unstable { then: again.outcome }, number + 1));
        }
    }
    Ok((Confirmation::Proven(grade), forcing.times.max(1)))
}
