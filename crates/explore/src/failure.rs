//! What an execution is not to do.

use rashomon_confirm::Ending;
use rashomon_trace::{RunHeader, RunOutcome};
use std::fmt;

/// How the program is to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    AnyCode,
    Code(i32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Failure {
    /// Threads wait for each other for ever.
    Deadlock,
    /// Every thread waits and no cycle explains it: a lost wake-up.
    Stuck,
    /// Every thread that is left repeats the same state for ever, or is blocked: a livelock.
    Repeats,
    /// Ended by a signal: 6 is what a failed assertion does.
    Signal(i32),
    Code(i32),
    /// Conflicting accesses side by side, where they are looked for.
    Race,
    /// More steps than allowed.
    Endless,
    /// More time than allowed.
    TimedOut,
}

impl Failure {
    /// What is wrong with an execution that ended by itself, or that the runtime ended for what it found.
    pub fn of(header: &RunHeader, ending: Ending, expected: Expected) -> Option<Self> {
        match (header.outcome, ending) {
            (RunOutcome::Deadlock, _) => Some(Self::Deadlock),
            (RunOutcome::Stuck, _) => Some(Self::Stuck),
            (RunOutcome::Endless, _) => Some(Self::Repeats),
            (RunOutcome::CoEnabled, _) => Some(Self::Race),
            (_, Ending::Signal(signal)) => Some(Self::Signal(signal)),
            (_, Ending::TimedOut) => Some(Self::TimedOut),
            (_, Ending::Code(code)) => match expected {
                Expected::Code(right) if right != code => Some(Self::Code(code)),
                Expected::Code(_) | Expected::AnyCode => None,
            },
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Deadlock => f.write_str("deadlock"),
            Self::Stuck => f.write_str("lost wake-up: every thread waits"),
            Self::Repeats => f.write_str("endless: every thread repeats itself for ever, or is blocked"),
            Self::Signal(6) => f.write_str("aborted (a failed assertion, or the like)"),
            Self::Signal(11) => f.write_str("crashed: segmentation fault"),
            Self::Signal(signal) => write!(f, "ended by signal {signal}"),
            Self::Code(code) => write!(f, "exit code {code}"),
            Self::Race => f.write_str("conflicting accesses side by side"),
            Self::Endless => f.write_str("no end within the allowed number of steps"),
            Self::TimedOut => f.write_str("no end within the allowed time"),
        }
    }
}
