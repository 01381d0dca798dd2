//! The `header` file as a typed value: how the run ended and what came of the control's goal.

use crate::bytes::word_at;
use crate::crash::Crash;
use crate::error::TraceError;
use crate::notes::RunNotes;
use rashomon_abi::header::{HEADER_BYTES, MAGIC, divergence, field, origin, outcome, state};
use rashomon_abi::unwritten::{self, Cause};
use rashomon_abi::{HEADER_FILE, OLDEST_RECORDING, PROTOCOL_VERSION, control};
use rashomon_files::Links;
use std::path::Path;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunState {
    /// The process was killed, or still runs.
    Running,
    Complete,
    /// The runtime ended the process: goal reached, deadlock, divergence.
    Stopped,
    Crashed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunMode {
    Off,
    Free,
    Serial,
}

/// How a process came to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The host started it.
    Initial,
    Forked,
    /// Another process started this program, or it took that one's place.
    Executed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunOutcome {
    None,
    CoEnabled,
    Deadlock,
    Stuck,
    /// [`RunHeader::divergence`] says how.
    Diverged,
    ScheduleDone,
    NoOverlap,
    /// Every thread is blocked for good, or repeats the same state for ever.
    Endless,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DivergenceKind {
    Blocked,
    Passed,
    Ended,
    NoSuchThread,
    OtherOperation,
    ProgramEnded,
    TimedOut,
}

/// Where and how an execution left its schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Divergence {
    pub kind: DivergenceKind,
    pub expected_ordinal: u64,
    pub actual_ordinal: u64,
    /// Code of `rashomon_abi::record::Op`; 0 is a plain access.
    pub actual_op: u64,
    /// Machine addresses of that execution.
    pub actual_site: u64,
    pub actual_object: u64,
}

/// What the runtime says about the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunHeader {
    pub state: RunState,
    pub process_id: u64,
    pub mode: RunMode,
    pub threads: u64,
    /// Next sequence number that would have been given.
    pub sequence: u64,
    pub start_time_nanoseconds: u64,
    pub notes: RunNotes,
    /// Sequence number from which on a re-execution may differ.
    pub not_reexecutable_from: Option<u64>,
    /// The first error of the kernel for which something could not be written; 0: none.
    pub unwritten: u64,
    pub crash: Option<Crash>,
    pub outcome: RunOutcome,
    pub outcome_turn: u64,
    pub outcome_threads: [u64; 2],
    pub divergence: Option<Divergence>,
    pub turns_done: u64,
    pub virtual_nanoseconds: u64,
    pub switches: u64,
    pub forced_handovers: u64,
    pub forks: u64,
    pub accesses_executed: u64,
    pub accesses_redundant: u64,
    pub parent_process_id: u64,
    pub origin: Origin,
    /// Of a forked process: the sequence number that was next in its parent.
    pub forked_at: u64,
    /// Places that it gave to processes it made.
    pub places: u64,
    /// In the initial process: processes of the session, also beyond the limit.
    pub processes: u64,
    /// Functions that were called and are not served ([`rashomon_abi::unserved`]).
    pub unserved: u64,
}

/// What is to blame for what could not be written, and what to do.
fn blame(error: u64) -> String {
    match unwritten::cause(error) {
        Some(Cause { name, words, advice }) => format!("{words} ({name}); {advice}"),
        None => format!("the kernel refused it with error {error}"),
    }
}

/// Bytes of a file that is read at most.
const LARGEST: u64 = 1 << 20;

impl RunHeader {
    /// Reads the header of a session without looking at its streams.
    pub fn read(session: &Path) -> Result<Self, TraceError> {
        let path = session.join(HEADER_FILE);
        match rashomon_files::read(&path, Links::Refused, LARGEST) {
            Ok(bytes) => Self::parse(&path, &bytes),
            Err(source) if matches!(source.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) => {
                Err(TraceError::NotARecording { path: session.to_path_buf() })
            }
            Err(source) => Err(TraceError::Io { action: "read", path, source }),
        }
    }

    /// `path` is for messages only.
    pub fn parse(path: &Path, bytes: &[u8]) -> Result<Self, TraceError> {
        check_format(path, bytes)?;
        let word = |number: usize| word_at(bytes, number);
        let unknown = |number: usize, name: &str| TraceError::Corrupt {
            path: path.to_path_buf(),
            offset: number as u64 * 8,
            what: format!("{} is no {name}", word(number)),
        };
        let outcome = outcome_of(word(field::OUTCOME)).ok_or_else(|| unknown(field::OUTCOME, "outcome"))?;
        let divergence = match divergence_of(word(field::DIVERGENCE)) {
            Some(kind) => Some(Divergence {
                kind,
                expected_ordinal: word(field::EXPECTED_ORDINAL),
                actual_ordinal: word(field::ACTUAL_ORDINAL),
                actual_op: word(field::ACTUAL_OP),
                actual_site: word(field::ACTUAL_SITE),
                actual_object: word(field::ACTUAL_OBJECT),
            }),
            None if word(field::DIVERGENCE) == 0 => None,
            None => return Err(unknown(field::DIVERGENCE, "kind of divergence")),
        };
        Ok(Self {
            state: state_of(word(field::STATE)).ok_or_else(|| unknown(field::STATE, "state"))?,
            process_id: word(field::PROCESS_ID),
            mode: mode_of(word(field::MODE)).ok_or_else(|| unknown(field::MODE, "mode"))?,
            threads: word(field::THREADS),
            sequence: word(field::SEQUENCE),
            start_time_nanoseconds: word(field::START_TIME),
            notes: RunNotes(word(field::NOTES)),
            not_reexecutable_from: Some(word(field::NOT_REEXECUTABLE_FROM)).filter(|&from| from != 0),
            unwritten: word(field::UNWRITTEN),
            crash: (word(field::FAULT_SIGNAL) != 0).then(|| Crash {
                signal: word(field::FAULT_SIGNAL),
                code: word(field::FAULT_CODE).cast_signed() as i32,
                address: word(field::FAULT_ADDRESS),
            }),
            outcome,
            outcome_turn: word(field::OUTCOME_TURN),
            outcome_threads: [word(field::OUTCOME_THREAD_A), word(field::OUTCOME_THREAD_B)],
            divergence,
            turns_done: word(field::TURNS_DONE),
            virtual_nanoseconds: word(field::VIRTUAL_TIME),
            switches: word(field::SWITCHES),
            forced_handovers: word(field::FORCED_HANDOVERS),
            forks: word(field::FORKS),
            accesses_executed: word(field::ACCESSES_EXECUTED),
            accesses_redundant: word(field::ACCESSES_REDUNDANT),
            parent_process_id: word(field::PARENT_PROCESS_ID),
            origin: origin_of(word(field::ORIGIN)).ok_or_else(|| unknown(field::ORIGIN, "origin"))?,
            forked_at: word(field::FORKED_AT),
            places: word(field::PLACES),
            processes: word(field::PROCESSES),
            unserved: word(field::UNSERVED),
        })
    }

    /// What is missing that should have been recorded, and what is to blame.
    pub fn losses(&self) -> Vec<String> {
        let mut losses = Vec::new();
        if self.notes.truncated() {
            losses.push(match self.unwritten {
                0 => "plain accesses were no longer kept from some point on: --trace-limit was reached; a larger one (0: none) \
                    keeps more"
                    .into(),
                error => format!("the recording could not be written to its end: {}", blame(error)),
            });
        }
        if self.notes.process_unwritten() {
            losses.push(format!("a process that it made could not be recorded: {}", blame(self.unwritten)));
        }
        losses
    }

    /// What else a user has to know of the run, one phrase a note.
    pub fn phrases(&self) -> Vec<&'static str> {
        self.notes.phrases()
    }

    /// The page this header was read from, apart from words it does not know.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut words = [0u64; HEADER_BYTES / 8];
        words[field::MAGIC] = MAGIC;
        words[field::VERSION] = u64::from(PROTOCOL_VERSION);
        words[field::STATE] = match self.state {
            RunState::Running => state::RUNNING,
            RunState::Complete => state::COMPLETE,
            RunState::Stopped => state::STOPPED,
            RunState::Crashed => state::CRASHED,
        };
        words[field::PROCESS_ID] = self.process_id;
        words[field::MODE] = self.mode.code();
        words[field::THREADS] = self.threads;
        words[field::SEQUENCE] = self.sequence;
        words[field::START_TIME] = self.start_time_nanoseconds;
        words[field::NOTES] = self.notes.0;
        words[field::NOT_REEXECUTABLE_FROM] = self.not_reexecutable_from.unwrap_or(0);
        words[field::UNWRITTEN] = self.unwritten;
        if let Some(crash) = self.crash {
            words[field::FAULT_SIGNAL] = crash.signal;
            words[field::FAULT_CODE] = i64::from(crash.code).cast_unsigned();
            words[field::FAULT_ADDRESS] = crash.address;
        }
        words[field::OUTCOME] = match self.outcome {
            RunOutcome::None => outcome::NONE,
            RunOutcome::CoEnabled => outcome::CO_ENABLED,
            RunOutcome::Deadlock => outcome::DEADLOCK,
            RunOutcome::Stuck => outcome::STUCK,
            RunOutcome::Diverged => outcome::DIVERGED,
            RunOutcome::ScheduleDone => outcome::SCHEDULE_DONE,
            RunOutcome::NoOverlap => outcome::NO_OVERLAP,
            RunOutcome::Endless => outcome::ENDLESS,
        };
        words[field::OUTCOME_TURN] = self.outcome_turn;
        words[field::OUTCOME_THREAD_A] = self.outcome_threads[0];
        words[field::OUTCOME_THREAD_B] = self.outcome_threads[1];
        if let Some(left) = self.divergence {
            words[field::DIVERGENCE] = match left.kind {
                DivergenceKind::Blocked => divergence::BLOCKED,
                DivergenceKind::Passed => divergence::PASSED,
                DivergenceKind::Ended => divergence::ENDED,
                DivergenceKind::NoSuchThread => divergence::NO_SUCH_THREAD,
                DivergenceKind::OtherOperation => divergence::OTHER_OPERATION,
                DivergenceKind::ProgramEnded => divergence::PROGRAM_ENDED,
                DivergenceKind::TimedOut => divergence::TIMED_OUT,
            };
            words[field::EXPECTED_ORDINAL] = left.expected_ordinal;
            words[field::ACTUAL_ORDINAL] = left.actual_ordinal;
            words[field::ACTUAL_OP] = left.actual_op;
            words[field::ACTUAL_SITE] = left.actual_site;
            words[field::ACTUAL_OBJECT] = left.actual_object;
        }
        words[field::TURNS_DONE] = self.turns_done;
        words[field::VIRTUAL_TIME] = self.virtual_nanoseconds;
        words[field::SWITCHES] = self.switches;
        words[field::FORCED_HANDOVERS] = self.forced_handovers;
        words[field::FORKS] = self.forks;
        words[field::ACCESSES_EXECUTED] = self.accesses_executed;
        words[field::ACCESSES_REDUNDANT] = self.accesses_redundant;
        words[field::PARENT_PROCESS_ID] = self.parent_process_id;
        words[field::ORIGIN] = match self.origin {
            Origin::Initial => origin::INITIAL,
            Origin::Forked => origin::FORKED,
            Origin::Executed => origin::EXECUTED,
        };
        words[field::FORKED_AT] = self.forked_at;
        words[field::PLACES] = self.places;
        words[field::PROCESSES] = self.processes;
        words[field::UNSERVED] = self.unserved;
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }
}

impl Default for RunHeader {
    /// A serial run that completed and has nothing to tell.
    fn default() -> Self {
        Self {
            state: RunState::Complete,
            process_id: 0,
            mode: RunMode::Serial,
            threads: 0,
            sequence: 0,
            start_time_nanoseconds: 0,
            notes: RunNotes(0),
            not_reexecutable_from: None,
            unwritten: 0,
            crash: None,
            outcome: RunOutcome::None,
            outcome_turn: 0,
            outcome_threads: [0, 0],
            divergence: None,
            turns_done: 0,
            virtual_nanoseconds: 0,
            switches: 0,
            forced_handovers: 0,
            forks: 0,
            accesses_executed: 0,
            accesses_redundant: 0,
            parent_process_id: 0,
            origin: Origin::Initial,
            forked_at: 0,
            places: 0,
            processes: 0,
            unserved: 0,
        }
    }
}

impl RunMode {
    pub const fn code(self) -> u64 {
        match self {
            Self::Off => control::mode::OFF,
            Self::Free => control::mode::FREE,
            Self::Serial => control::mode::SERIAL,
        }
    }
}

const fn mode_of(code: u64) -> Option<RunMode> {
    Some(match code {
        control::mode::OFF => RunMode::Off,
        control::mode::FREE => RunMode::Free,
        control::mode::SERIAL => RunMode::Serial,
        _ => return None,
    })
}

const fn state_of(code: u64) -> Option<RunState> {
    Some(match code {
        state::RUNNING => RunState::Running,
        state::COMPLETE => RunState::Complete,
        state::STOPPED => RunState::Stopped,
        state::CRASHED => RunState::Crashed,
        _ => return None,
    })
}

const fn origin_of(code: u64) -> Option<Origin> {
    Some(match code {
        origin::INITIAL => Origin::Initial,
        origin::FORKED => Origin::Forked,
        origin::EXECUTED => Origin::Executed,
        _ => return None,
    })
}

const fn outcome_of(code: u64) -> Option<RunOutcome> {
    Some(match code {
        outcome::NONE => RunOutcome::None,
        outcome::CO_ENABLED => RunOutcome::CoEnabled,
        outcome::DEADLOCK => RunOutcome::Deadlock,
        outcome::STUCK => RunOutcome::Stuck,
        outcome::DIVERGED => RunOutcome::Diverged,
        outcome::SCHEDULE_DONE => RunOutcome::ScheduleDone,
        outcome::NO_OVERLAP => RunOutcome::NoOverlap,
        outcome::ENDLESS => RunOutcome::Endless,
        _ => return None,
    })
}

const fn divergence_of(code: u64) -> Option<DivergenceKind> {
    Some(match code {
        divergence::BLOCKED => DivergenceKind::Blocked,
        divergence::PASSED => DivergenceKind::Passed,
        divergence::ENDED => DivergenceKind::Ended,
        divergence::NO_SUCH_THREAD => DivergenceKind::NoSuchThread,
        divergence::OTHER_OPERATION => DivergenceKind::OtherOperation,
        divergence::PROGRAM_ENDED => DivergenceKind::ProgramEnded,
        divergence::TIMED_OUT => DivergenceKind::TimedOut,
        _ => return None,
    })
}

/// That these are the bytes of a header of a version that is read here.
fn check_format(path: &Path, bytes: &[u8]) -> Result<(), TraceError> {
    if bytes.is_empty() {
        return Err(TraceError::NotBegun { path: path.to_path_buf() });
    }
    if bytes.len() < HEADER_BYTES {
        return Err(TraceError::CutShort {
            path: path.to_path_buf(),
            offset: 0,
            needed: HEADER_BYTES as u64,
            available: bytes.len() as u64,
        });
    }
    let word = |number: usize| word_at(bytes, number);
    let magic = word(field::MAGIC);
    // The magic word is the last that is written of a new header.
    if magic == 0 {
        return Err(TraceError::NotBegun { path: path.to_path_buf() });
    }
    if magic != MAGIC {
        return Err(TraceError::Magic { path: path.to_path_buf(), offset: 0, expected: MAGIC, found: magic });
    }
    let version = word(field::VERSION);
    if !(u64::from(OLDEST_RECORDING)..=u64::from(PROTOCOL_VERSION)).contains(&version) {
        return Err(TraceError::Version {
            path: path.to_path_buf(),
            offset: field::VERSION as u64 * 8,
            found: version,
            oldest: OLDEST_RECORDING,
            newest: PROTOCOL_VERSION,
        });
    }
    Ok(())
}
