//! One recorded execution.

pub mod packed;
mod processes;

use crate::error::PipelineError;
use crate::store::run::RecordedRun;
use rashomon_abi::control::option;
use rashomon_confirm::force::{header_of, new_session};
use rashomon_confirm::{ConfirmError, Ending, Input, Output, Program, Served, Time, execute};
use rashomon_event::{Deadline, KeptPlace, ProcessPath, Surroundings};
use rashomon_report::ProgramExit;
use rashomon_trace::control::{self, ControlRequest, Policy};
use rashomon_trace::{RunHeader, RunMode, RunOutcome, RunState};
use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

/// How the threads of a recorded execution share the processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduling {
    /// Threads run in parallel. No prediction may rest on such a recording.
    Free,
    /// One thread at a time.
    Serial(Policy),
}

impl Scheduling {
    pub const NAMES: [&'static str; 5] = ["run-to-block", "random", "round-robin", "pct", "free"];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Serial(Policy::RunToBlock) => "run-to-block",
            Self::Serial(Policy::Random) => "random",
            Self::Serial(Policy::RoundRobin) => "round-robin",
            Self::Serial(Policy::Pct) => "pct",
            Self::Serial(Policy::Explore) => "explore",
            Self::Free => "free",
        }
    }
}

impl fmt::Display for Scheduling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Scheduling {
    /// Of the recording as it is stored: how the other processes of a forced one run.
    pub fn surroundings(&self, process: &ProcessPath, seed: u64) -> Option<Surroundings> {
        match self {
            Self::Serial(policy) if !process.is_initial() => {
                Some(Surroundings { process: process.clone(), policy: policy.code(), seed })
            }
            _ => None,
        }
    }
}

impl FromStr for Scheduling {
    type Err = String;
    fn from_str(name: &str) -> Result<Self, String> {
        let all = [
            Self::Serial(Policy::RunToBlock),
            Self::Serial(Policy::Random),
            Self::Serial(Policy::RoundRobin),
            Self::Serial(Policy::Pct),
            Self::Free,
        ];
        let found = all.into_iter().find(|scheduling| scheduling.name() == name);
        found.ok_or_else(|| format!("not one of {}", Self::NAMES.join(", ")))
    }
}

/// How to record.
#[derive(Clone, Debug)]
pub struct RecordSettings {
    pub scheduling: Scheduling,
    pub seed: u64,
    /// Accesses after which a serial thread offers its turn.
    pub quantum: u64,
    pub input: Input,
    pub output: Output,
    pub limit: Option<Duration>,
    /// When it has to be over.
    pub until: Deadline,
    /// Bytes of trace after which plain accesses are no longer kept; 0: no limit.
    pub trace_limit: u64,
    /// The most processes that are recorded; 0: no limit.
    pub processes: u64,
    pub call_timeout: Duration,
    /// Where virtual time begins, in every execution of this program.
    pub base_time_nanoseconds: u64,
    pub accesses: Accesses,
    pub unseen_calls: UnseenCalls,
    /// Which way control goes in functions that the compiler's plugin has instrumented is recorded, and every access.
    pub dependences: bool,
    /// Places whose plain accesses alone are kept; none: all are.
    pub kept: Vec<KeptPlace>,
    /// Serial: the values of plain accesses are recorded, and every access.
    pub values: bool,
}

/// Which plain accesses are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Accesses {
    /// All but repetitions without an event in between.
    #[default]
    Distinct,
    All,
    /// Those that are not redundant for detectors of races (TREE). Each thread remembers so many locations; 0: as many as the
    /// runtime thinks right.
    Needed {
        locations: u64,
    },
}

/// Serial: which calls into code without instrumentation are recorded, with what they can reach.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnseenCalls {
    #[default]
    Unrecorded,
    /// Those that are not known to order nothing.
    Needed,
    /// All. Re-executions have those that are needed, so that nothing can be forced from such a recording.
    Every,
    /// All, each with the whole of what it reaches.
    Naive,
}

impl UnseenCalls {
    const fn options(self) -> u64 {
        match self {
            Self::Unrecorded => 0,
            Self::Needed => option::UNSEEN_CALLS,
            Self::Every => option::UNSEEN_CALLS | option::EVERY_CALL,
            Self::Naive => option::UNSEEN_CALLS | option::EVERY_CALL | option::NAIVE_REACH,
        }
    }
}

/// Why there is no header in a session that a program ran in.
fn not_observed(session: &Path) -> PipelineError {
    let path = session.to_path_buf();
    if !session.join(rashomon_abi::CONTROL_FILE).is_file() {
        PipelineError::SessionGone { path }
    } else if session.join(rashomon_abi::CLAIM_FILE).is_file() {
        PipelineError::NotBegun { path }
    } else {
        PipelineError::NotObserved
    }
}

fn options_of(settings: &RecordSettings) -> u64 {
    let accesses = match settings.accesses {
        Accesses::Distinct => 0,
        Accesses::All => option::NO_FILTER,
        Accesses::Needed { .. } => option::TREE,
    };
    // An access that is left out would be taken for the next one.
    let dependences = if settings.dependences { option::DEPENDENCES | option::NO_FILTER } else { 0 };
    let values = if settings.values { option::VALUES } else { 0 };
    accesses | settings.unseen_calls.options() | dependences | values
}

/// Records one execution into `session`.
pub fn record(program: &Program, session: &Path, settings: &RecordSettings) -> Result<(RecordedRun, RunHeader), PipelineError> {
    let (mode, policy) = match settings.scheduling {
        Scheduling::Free => (RunMode::Free, Policy::RunToBlock),
        Scheduling::Serial(policy) => (RunMode::Serial, policy),
    };
    let request = ControlRequest {
        mode,
        policy,
        seed: settings.seed,
        quantum: settings.quantum,
        trace_limit: settings.trace_limit,
        processes: settings.processes,
        call_timeout_ms: u64::try_from(settings.call_timeout.as_millis()).unwrap_or(u64::MAX),
        base_time_nanoseconds: settings.base_time_nanoseconds,
        options: options_of(settings),
        kept: &settings.kept,
        filter_locations: if let Accesses::Needed { locations } = settings.accesses { locations } else { 0 },
        ..ControlRequest::default()
    };
    let control = control::encode(&request).map_err(ConfirmError::from)?;
    new_session(session, &control)?;
    let time = Time { limit: settings.limit, until: settings.until };
    let execution = execute(program, session, &settings.input, settings.output, time)?;
    let header = match (header_of(session)?, execution.ending, &program.before_each) {
        (Some(header), _, _) => header,
        (None, Ending::TimedOut, Some(command)) => return Err(ConfirmError::NoTimeLeft { command: command.clone() }.into()),
        (None, Ending::TimedOut, None) => return Err(PipelineError::NothingRecorded),
        (None, _, _) => return Err(not_observed(session)),
    };
    let exit = match (header.outcome, header.state, execution.ending) {
        (RunOutcome::Deadlock | RunOutcome::Stuck, RunState::Stopped, _) => ProgramExit::Blocked,
        (RunOutcome::Endless, RunState::Stopped, _) => ProgramExit::Endless,
        (_, _, Ending::Code(code)) => ProgramExit::Code { code },
        (_, _, Ending::Signal(signal)) => ProgramExit::Signal { signal },
        (_, _, Ending::TimedOut) => ProgramExit::TimedOut,
    };
    let notes = execution.served.map(Served::phrases).unwrap_or_default();
    let run = RecordedRun {
        folder: session.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default(),
        policy: settings.scheduling.name().into(),
        seed: settings.seed,
        exit,
        milliseconds: u64::try_from(execution.duration.as_millis()).unwrap_or(u64::MAX),
        notes: notes
            .into_iter()
            .chain(processes::said_of(session, &program.executable)?)
            .chain(processes::crashes_of(session)?)
            .collect(),
        kept: settings.kept.clone(),
    };
    Ok((run, header))
}
