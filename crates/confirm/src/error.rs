//! What can go wrong on the host's side. That a program diverges or hangs is an outcome, not an error.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum ConfirmError {
    #[error("cannot {action} {path}: {source}", path = path.display())]
    Io { action: &'static str, path: PathBuf, source: io::Error },
    #[error("cannot execute {program}: {source}", program = program.display())]
    Execute { program: PathBuf, source: io::Error },
    #[error("the command to run before each execution failed ({status}): {command}", command = command.to_string_lossy())]
    BeforeEach { command: OsString, status: String },
    #[error("the command to run before each execution failed (it did not end within \
        the time of an execution): {command}", command = command.to_string_lossy())]
    NoTimeLeft { command: OsString },
    #[error(transparent)]
    Trace(#[from] rashomon_trace::TraceError),
    #[error(transparent)]
    Control(#[from] rashomon_trace::ControlError),
    #[error("event {event} of the witness does not exist in the trace ({events} events)")]
    NoSuchEvent { event: u32, events: usize },
    #[error("thread {thread} has no event left to stand at after the witness")]
    NoGoalEvent { thread: u32 },
    #[error("unknown policy {code} in a schedule")]
    NoSuchPolicy { code: u64 },
    #[error("a schedule of {turns} turns is longer than the format allows; record a shorter execution")]
    TooLong { turns: usize },
}

impl ConfirmError {
    pub(crate) fn io(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { action, path, source }
    }
}
