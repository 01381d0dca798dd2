//! What came of an execution: the runtime's own words in the `header` page, joined with how the process ended.
//!
//! Only the header is read here, so an outcome is known even if the streams are damaged.

use crate::error::ConfirmError;
use crate::execution::{Ending, Execution};
use rashomon_abi::header::{self, divergence, field, note, outcome, state};
use rashomon_abi::record::Op;
use std::fmt;
use std::path::Path;

/// The words of the header that the host acts on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct HeaderFacts {
    pub state: u64,
    pub threads: u64,
    pub sequence: u64,
    pub notes: u64,
    pub not_reexecutable_from: u64,
    pub outcome: u64,
    pub outcome_turn: u64,
    pub outcome_threads: [u64; 2],
    pub divergence: u64,
    pub expected_ordinal: u64,
    pub actual_ordinal: u64,
    pub actual_op: u64,
    pub actual_site: u64,
    pub turns_done: u64,
    pub forced_handovers: u64,
    pub forks: u64,
    pub accesses_executed: u64,
}

impl HeaderFacts {
    /// `None`: the session has no header, so no instrumented program with our runtime ran in it.
    pub fn read(session: &Path) -> Result<Option<Self>, ConfirmError> {
        let path = session.join(rashomon_abi::HEADER_FILE);
        let bytes = match std::fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(ConfirmError::io("read", path)(error)),
        };
        let bad = |reason| ConfirmError::Header {
            path: path.clone(),
            reason,
        };
        if bytes.len() < header::HEADER_BYTES {
            return Err(bad("cut short"));
        }
        let word = |number: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[number * 8..number * 8 + 8]);
            u64::from_le_bytes(word)
        };
        if word(field::MAGIC) != header::MAGIC {
            return Err(bad("not one of ours"));
        }
        if word(field::VERSION) != u64::from(rashomon_abi::PROTOCOL_VERSION) {
            return Err(bad("of another protocol version"));
        }
        Ok(Some(Self {
            state: word(field::STATE),
            threads: word(field::THREADS),
            sequence: word(field::SEQUENCE),
            notes: word(field::NOTES),
            not_reexecutable_from: word(field::NOT_REEXECUTABLE_FROM),
            outcome: word(field::OUTCOME),
            outcome_turn: word(field::OUTCOME_TURN),
            outcome_threads: [word(field::OUTCOME_THREAD_A), word(field::OUTCOME_THREAD_B)],
            divergence: word(field::DIVERGENCE),
            expected_ordinal: word(field::EXPECTED_ORDINAL),
            actual_ordinal: word(field::ACTUAL_ORDINAL),
            actual_op: word(field::ACTUAL_OP),
            actual_site: word(field::ACTUAL_SITE),
            turns_done: word(field::TURNS_DONE),
            forced_handovers: word(field::FORCED_HANDOVERS),
            forks: word(field::FORKS),
            accesses_executed: word(field::ACCESSES_EXECUTED),
        }))
    }

    pub fn has_note(&self, bit: u64) -> bool {
        self.notes & bit != 0
    }

    /// The execution saw something that another one may not see again.
    pub fn has_external_input(&self) -> bool {
        self.has_note(note::EXTERNAL_INPUT) || self.not_reexecutable_from != 0
    }
}

/// Where an execution left its schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Divergence {
    pub turn: u64,
    pub expected: String,
    pub actual: String,
}

impl fmt::Display for Divergence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "at turn {}: expected {}; instead {}",
            self.turn, self.expected, self.actual
        )
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Both threads stood at conflicting accesses to the same bytes.
    CoEnabled,
    Deadlocked,
    /// Every thread blocked, and no cycle of holders.
    Stuck,
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
    /// Whether two executions came to the same end, details of divergences apart.
    pub fn same_as(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Diverged(a), Self::Diverged(b)) => a.turn == b.turn,
            _ => self == other,
        }
    }

    /// A word for stores and command lines.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::CoEnabled => "co-enabled",
            Self::Deadlocked => "deadlocked",
            Self::Stuck => "stuck",
            Self::NoOverlap => "no-overlap",
            Self::ScheduleDone => "schedule-done",
            Self::Diverged(_) => "diverged",
            Self::TimedOut => "timed-out",
            Self::ProgramEnded(_) => "program-ended",
            Self::NotObserved => "not-observed",
        }
    }

    pub fn of(facts: Option<&HeaderFacts>, execution: &Execution) -> Self {
        let Some(facts) = facts else {
            return Self::NotObserved;
        };
        match facts.outcome {
            outcome::CO_ENABLED => Self::CoEnabled,
            outcome::DEADLOCK => Self::Deadlocked,
            outcome::STUCK => Self::Stuck,
            outcome::NO_OVERLAP => Self::NoOverlap,
            outcome::SCHEDULE_DONE => Self::ScheduleDone,
            outcome::DIVERGED => Self::Diverged(divergence_words(facts)),
            _ if execution.ending == Ending::TimedOut => Self::TimedOut,
            _ => Self::ProgramEnded(execution.ending),
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CoEnabled => {
                f.write_str("co-enabled: both threads stand at their accesses to the same bytes")
            }
            Self::Deadlocked => f.write_str("deadlocked: the threads wait for each other for ever"),
            Self::Stuck => f.write_str("stuck: every thread waits and nobody is left to wake them"),
            Self::NoOverlap => {
                f.write_str("both threads stand at their accesses, but these touch different bytes")
            }
            Self::ScheduleDone => f.write_str("the schedule was executed to its end"),
            Self::Diverged(divergence) => write!(f, "the execution left the schedule {divergence}"),
            Self::TimedOut => f.write_str("the execution took longer than allowed and was ended"),
            Self::ProgramEnded(Ending::Code(code)) => {
                write!(f, "the program ended by itself with exit code {code}")
            }
            Self::ProgramEnded(Ending::Signal(signal)) => {
                write!(f, "the program was ended by signal {signal}")
            }
            Self::ProgramEnded(Ending::TimedOut) => f.write_str("the execution was ended"),
            Self::NotObserved => f.write_str("the program ran without our runtime"),
        }
    }
}

fn divergence_words(facts: &HeaderFacts) -> Divergence {
    let operation = || match Op::from_code(facts.actual_op) {
        Some(op) => format!("is about to execute {}", op.name()),
        None => "is about to access memory".to_owned(),
    };
    let expected = format!(
        "thread {} to reach synchronisation event {}",
        facts.outcome_threads[0], facts.expected_ordinal
    );
    let actual = match facts.divergence {
        divergence::BLOCKED => {
            format!(
                "it is blocked with {} events behind it and {}",
                facts.actual_ordinal,
                operation()
            )
        }
        divergence::PASSED => format!(
            "it went on to event {} without coming by the place, and {}",
            facts.actual_ordinal,
            operation()
        ),
        divergence::ENDED => format!("it ended after {} events", facts.actual_ordinal),
        divergence::NO_SUCH_THREAD => "that thread was never created".into(),
        divergence::OTHER_OPERATION => {
            format!("it {} as event {}", operation(), facts.actual_ordinal)
        }
        divergence::PROGRAM_ENDED => "the program ended".into(),
        divergence::TIMED_OUT => format!(
            "a call into the kernel did not come back after event {}",
            facts.actual_ordinal
        ),
        other => format!("an unknown divergence ({other}) happened"),
    };
    Divergence {
        turn: facts.outcome_turn,
        expected,
        actual,
    }
}

/// Whether the runtime saw an orderly end.
pub fn ended_orderly(facts: &HeaderFacts) -> bool {
    matches!(facts.state, state::COMPLETE | state::STOPPED)
}
