//! Exit codes of `rashomon`.
//!
//! `check` and `record` end as the recorded program did, so that they can stand in front of any command of a script or a build;
//! only what `--fail-on` asks for changes that.

use rashomon_report::ProgramExit;
use std::process::ExitCode;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    Success,
    /// `replay`, `minimise`: something else happened. `trace verify`, `trace diff`: not sound, not the same.
    Different,
    /// The command line is wrong (clap's own code).
    Usage,
    /// `--fail-on` is met.
    Findings,
    /// The recorded program did not end by itself: the time limit or a deadlock ended it.
    NotEnded,
    /// Recording or analysis failed. `csp`: something is undecided, and nothing else found.
    Failed,
    /// The program is there but cannot be executed.
    NotExecutable,
    NotFound,
    /// The recorded program's own code.
    Program(u8),
    /// It was ended by this signal.
    Signal(u8),
}

impl Exit {
    pub const fn code(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::Different => 1,
            Self::Usage => 2,
            Self::Findings => 66,
            Self::NotEnded => 124,
            Self::Failed => 125,
            Self::NotExecutable => 126,
            Self::NotFound => 127,
            Self::Program(code) => code,
            Self::Signal(signal) => 128_u8.saturating_add(signal),
        }
    }

    pub fn of_program(exit: ProgramExit) -> Self {
        match exit {
            ProgramExit::Code { code } => Self::Program(u8::try_from(code).unwrap_or(1)),
            ProgramExit::Signal { signal } => Self::Signal(u8::try_from(signal).unwrap_or(0)),
            ProgramExit::TimedOut | ProgramExit::Blocked | ProgramExit::Endless => Self::NotEnded,
            ProgramExit::Unknown => Self::Success,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// The table for `--help`.
pub const HELP: &str = "\
Exit codes:
  the recorded program's own (128 + signal where one ended it); unless:
    1  replay, trace: not the same, not sound
    2  wrong usage
   66  --fail-on is met (default: something is proven)
  124  the recorded program did not end by itself (time limit, deadlock)
  125  recording or analysis failed; csp: undecided
  126  the program cannot be executed
  127  the program was not found
  130  interrupted (Ctrl-C); what was decided is in the store";
