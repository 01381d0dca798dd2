//! What came of an execution: the runtime's own words in the `header` page, joined with how the process ended.
//!
//! Only the header is read for it, so an outcome is known even if the streams are damaged.

use crate::execution::{Ending, Execution};
use rashomon_abi::record::Op;
use rashomon_event::{Place, Schedule, counted};
use rashomon_trace::{self as trace, DivergenceKind, RunHeader};
use std::fmt;

/// Where an execution left its schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Divergence {
    /// Counted from 0.
    pub turn: u64,
    pub expected: String,
    pub actual: String,
}

impl fmt::Display for Divergence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at turn {}: expected {}; instead {}", self.turn + 1, self.expected, self.actual)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Both threads stood at conflicting accesses to the same bytes.
    CoEnabled,
    Deadlocked,
    /// Every thread blocked, and no cycle of holders.
    Stuck,
    /// Every thread is blocked for good, or repeats the same state for ever.
    Endless,
    /// Both threads stood at their places, but these touched different bytes.
    NoOverlap,
    /// The schedule was executed and asked for nothing more.
    ScheduleDone,
    Diverged(Divergence),
    /// Longer than allowed.
    TimedOut,
    /// The program ended by itself with nothing decided.
    ProgramEnded(Ending),
    /// The runtime never spoke: the program is not instrumented, or another runtime is linked into it.
    NotObserved,
}

impl Outcome {
    /// Whether two executions came to the same end; of divergences, whether they left the schedule at the same turn.
    pub fn same_as(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Diverged(a), Self::Diverged(b)) => a.turn == b.turn,
            _ => self == other,
        }
    }

    /// Whether the execution followed its schedule to an end.
    pub const fn is_orderly(&self) -> bool {
        !matches!(self, Self::Diverged(_) | Self::TimedOut | Self::NotObserved | Self::NoOverlap)
    }

    /// A word for command lines.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::CoEnabled => "co-enabled",
            Self::Deadlocked => "deadlocked",
            Self::Stuck => "stuck",
            Self::Endless => "endless",
            Self::NoOverlap => "no-overlap",
            Self::ScheduleDone => "schedule-done",
            Self::Diverged(_) => "diverged",
            Self::TimedOut => "timed-out",
            Self::ProgramEnded(_) => "program-ended",
            Self::NotObserved => "not-observed",
        }
    }

    /// `schedule`: the one that was asked for, to say what was expected.
    pub fn of(header: Option<&RunHeader>, schedule: Option<&Schedule>, execution: &Execution) -> Self {
        let Some(header) = header else { return Self::NotObserved };
        match header.outcome {
            trace::RunOutcome::CoEnabled => Self::CoEnabled,
            trace::RunOutcome::Deadlock => Self::Deadlocked,
            trace::RunOutcome::Stuck => Self::Stuck,
            trace::RunOutcome::Endless => Self::Endless,
            trace::RunOutcome::NoOverlap => Self::NoOverlap,
            trace::RunOutcome::Diverged => Self::Diverged(divergence_words(header, schedule)),
            trace::RunOutcome::None | trace::RunOutcome::ScheduleDone if execution.ending == Ending::TimedOut => Self::TimedOut,
            trace::RunOutcome::ScheduleDone => Self::ScheduleDone,
            trace::RunOutcome::None => Self::ProgramEnded(execution.ending),
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CoEnabled => f.write_str("co-enabled: both threads stand at their accesses to the same bytes"),
            Self::Deadlocked => f.write_str("deadlocked: the threads wait for each other for ever"),
            Self::Stuck => f.write_str("stuck: every thread waits and nobody is left to wake them"),
            Self::Endless => f.write_str("endless: every thread that is left repeats itself for ever, or is blocked"),
            Self::NoOverlap => f.write_str("both threads stand at their accesses, but these touch different bytes"),
            Self::ScheduleDone => f.write_str("the schedule was executed to its end"),
            Self::Diverged(divergence) => write!(f, "the execution left the schedule {divergence}"),
            Self::TimedOut => f.write_str("the execution took longer than allowed and was ended"),
            Self::ProgramEnded(Ending::Code(code)) => write!(f, "the program ended by itself with exit code {code}"),
            Self::ProgramEnded(Ending::Signal(signal)) => write!(f, "the program was ended by signal {signal}"),
            Self::ProgramEnded(Ending::TimedOut) => f.write_str("the execution was ended"),
            Self::NotObserved => f.write_str("the program ran without our runtime"),
        }
    }
}

/// What a thread is about to do, by the operation's code; 0 is a plain access. `AtomicStore` is an atomic store.
pub fn operation_words(code: u64) -> String {
    match Op::from_code(code) {
        Some(op) => {
            let mut words = String::new();
            for letter in op.name().chars() {
                if letter.is_uppercase() && !words.is_empty() {
                    words.push(' ');
                }
                words.push(letter.to_ascii_lowercase());
            }
            words
        }
        None if code == 0 => "a memory access".to_owned(),
        None => format!("operation {code}"),
    }
}

fn divergence_words(header: &RunHeader, schedule: Option<&Schedule>) -> Divergence {
    let turn = schedule.and_then(|schedule| {
        let turn = schedule.turns.get(usize::try_from(header.outcome_turn).ok()?)?;
        Some((turn, schedule.threads.get(turn.thread as usize)?.words()))
    });
    let left = header.divergence;
    let ordinal = left.map_or(0, |left| left.expected_ordinal);
    let expected = match turn {
        Some((turn, thread)) => match turn.until.place {
            Place::Synchronisation { op: 0 } => format!("{thread} at its synchronisation event {}", turn.until.ordinal),
            Place::Synchronisation { op } => {
                format!("{thread} at its synchronisation event {}, {}", turn.until.ordinal, operation_words(u64::from(op)))
            }
            Place::Access { size, .. } => {
                format!(
                    "{thread} at an access to {} after {}",
                    counted(u64::from(size), "byte"),
                    counted(u64::from(turn.until.ordinal), "synchronisation event")
                )
            }
            Place::Count { accesses } => {
                format!(
                    "{thread} after {} and {}",
                    counted(u64::from(turn.until.ordinal), "synchronisation event"),
                    counted(accesses, "access")
                )
            }
            Place::Waiting { accesses } => {
                format!(
                    "{thread} to wait after {} and {}",
                    counted(u64::from(turn.until.ordinal), "synchronisation event"),
                    counted(accesses, "access")
                )
            }
            Place::End => format!("{thread} to run to its end"),
        },
        None => format!("a thread at its synchronisation event {ordinal}"),
    };
    let actual = left.map_or_else(
        || "the execution went another way".to_owned(),
        |left| {
            let at = left.actual_ordinal;
            let operation = operation_words(left.actual_op);
            match left.kind {
                DivergenceKind::Blocked if left.actual_op == Op::Blocked as u64 => {
                    format!("it is blocked after {}", counted(at, "event"))
                }
                DivergenceKind::Blocked => format!("it is blocked at event {at}, {operation}"),
                DivergenceKind::Passed => format!("it went on to event {at}, {operation}, without coming by that place"),
                DivergenceKind::Ended => format!("it ended after {}", counted(at, "event")),
                DivergenceKind::NoSuchThread => "that thread was not created".into(),
                DivergenceKind::OtherOperation => format!("event {at} is {operation}"),
                DivergenceKind::ProgramEnded => "the program ended".into(),
                DivergenceKind::TimedOut => format!("a call into the kernel did not come back after event {at}"),
            }
        },
    );
    Divergence { turn: header.outcome_turn, expected, actual }
}
