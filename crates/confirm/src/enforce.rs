//! Orders of synchronisation that are kept while the program runs in parallel under the online detector.
//!
//! L. M. Carril, W. F. Tichy, "Interleaving Generation for Data Race and Deadlock Reproduction", SEPS 2015, §2.3: a
//! counterexample is its synchronisation operations only; each thread's next one waits until those before it were made, all else
//! runs freely, and behind the last one everything does. Whether the order came about is the runtime's to say
//! (`rashomon_abi::enforced`); what raced or blocked in it, the detector's.

use crate::error::ConfirmError;
use crate::execution::{Execution, Input, Output, Program, Time, execute, no_session};
use crate::force::new_session;
use crate::schedule::Planner;
use rashomon_abi::ENFORCED_FILE;
use rashomon_abi::enforced::{WORDS, field, outcome};
use rashomon_abi::record::Op;
use rashomon_event::{Event, EventIndex, EventKind, LockMode, OtherOp, Place, Position, Schedule, Trace, Turn};
use rashomon_files::Links;
use rashomon_trace::control::{self, ControlRequest};
use std::path::Path;
use std::time::Duration;

/// The code of the operation that an event is at the place where the runtime holds threads; `None`: it holds nobody there. 0: a
/// lock or a semaphore that was not to be had.
pub fn operation(event: &Event) -> Option<u16> {
    let op = match event.kind {
        EventKind::Fork { .. } => Op::ThreadCreate,
        EventKind::Join { .. } => Op::ThreadJoin,
        EventKind::Acquire { mode: LockMode::Exclusive, .. } | EventKind::Other(OtherOp::LocksAgain) => Op::Lock,
        EventKind::Acquire { mode: LockMode::Shared, .. } => Op::LockShared,
        EventKind::Release { .. } | EventKind::Other(OtherOp::UnlocksInner) => Op::Unlock,
        EventKind::WaitBegin { .. } => Op::CondWaitBegin,
        EventKind::WaitEnd { .. } => Op::CondWaitEnd,
        EventKind::Signal { broadcast: false, .. } => Op::CondSignal,
        EventKind::Signal { broadcast: true, .. } => Op::CondBroadcast,
        EventKind::BarrierEnter { .. } => Op::BarrierEnter,
        EventKind::Post { .. } => Op::SemaphorePost,
        EventKind::Take { .. } => Op::SemaphoreWait,
        EventKind::Other(OtherOp::FailsToLock) => return Some(0),
        _ => return None,
    };
    Some(op as u16)
}

/// Of an order of events, those that have a turn.
pub fn steps(trace: &Trace, order: &[EventIndex]) -> Vec<EventIndex> {
    order.iter().copied().filter(|&event| operation(&trace.event(event)).is_some()).collect()
}

/// A turn for each step: who synchronises next, and how.
pub fn order_of(trace: &Trace, steps: &[EventIndex]) -> Schedule {
    let turn = |&index: &EventIndex| {
        let event = trace.event(index);
        let place = Place::Synchronisation { op: operation(&event).unwrap_or(0) };
        Turn { thread: event.thread.0, until: Position { ordinal: event.ordinal, place }, landmark: None }
    };
    Schedule { turns: steps.iter().map(turn).collect(), ..Planner::new(trace, 0).empty() }
}

/// How far an execution followed its order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// To its end.
    Whole,
    /// The process ended before this turn.
    Ended { turn: usize },
    /// In place of this turn its thread was about to do something else.
    OtherOperation { turn: usize, op: u64 },
    /// Before this turn nobody could go on, and threads did not block each other.
    Stuck { turn: usize },
    /// The thread of this turn did not come within its timeout.
    Late { turn: usize },
    /// Before this turn, threads blocked each other for ever.
    Deadlock { turn: usize },
}

/// Executes the program once under an order, in an empty folder. The environment of `program` says what the detector is to do,
/// that it finds the order there included.
pub fn enforce(
    program: &Program,
    order: &Schedule,
    folder: &Path,
    (step_timeout, time): (Duration, Time),
    input: &Input,
) -> Result<(Kept, Execution), ConfirmError> {
    let call_timeout_ms = u64::try_from(step_timeout.as_millis()).unwrap_or(u64::MAX);
    let request = ControlRequest { call_timeout_ms, schedule: Some(order), ..ControlRequest::default() };
    new_session(folder, &control::encode(&request)?)?;
    let path = folder.join(ENFORCED_FILE);
    std::fs::write(&path, [0; WORDS * 8]).map_err(ConfirmError::io("write", &path))?;
    let execution = execute(program, no_session(), input, Output::Discard, time)?;
    let bytes = rashomon_files::read(&path, Links::Refused, (WORDS * 8) as u64).map_err(ConfirmError::io("read", &path))?;
    Ok((kept(&bytes), execution))
}

fn kept(bytes: &[u8]) -> Kept {
    let word = |index: usize| {
        let bytes = bytes.get(index * 8..index * 8 + 8).and_then(|bytes| bytes.try_into().ok());
        bytes.map_or(0, u64::from_le_bytes)
    };
    let number = |index: usize| usize::try_from(word(index)).unwrap_or(usize::MAX);
    let turn = number(field::TURN);
    match word(field::OUTCOME) {
        outcome::KEPT => Kept::Whole,
        outcome::OTHER_OPERATION => Kept::OtherOperation { turn, op: word(field::ACTUAL_OP) },
        outcome::STUCK => Kept::Stuck { turn },
        outcome::LATE => Kept::Late { turn },
        outcome::DEADLOCK => Kept::Deadlock { turn },
        _ => Kept::Ended { turn: number(field::DONE) },
    }
}
