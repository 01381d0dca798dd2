//! How a pair of accesses is provoked: in terms that survive re-execution, without any schedule.
//!
//! After the RaceHunter paper (Programming and Computer Software 50(6), 2024), Definitions 11 and 12. Deviation: an `ordinal`
//! that comes from a recording counts the matching accesses that were kept, so it may be smaller than the access's own:
//! repetitions are left out of recordings.

use crate::ids::ThreadPath;
use crate::schedule::{CodePlace, ScheduleModule};
use serde::{Deserialize, Serialize};

/// Version of the serialised form.
pub const PROVOCATION_VERSION: u32 = 1;

/// An access in terms of its thread, its instruction, the top of the call stack and how often that was met before.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Descriptor {
    /// `None`: any thread.
    pub thread: Option<ThreadPath>,
    /// What the program calls the thread, which then counts instead; 0: nothing.
    pub identity: u64,
    /// Return address of the call into the runtime.
    pub site: CodePlace,
    /// Call sites of the innermost calls that must match, innermost first.
    pub frames: Vec<CodePlace>,
    /// From 0.
    pub ordinal: u64,
}

/// Which of two threads that stand at conflicting accesses goes on first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum First {
    Either,
    Held,
    Arrived,
}

/// The target of a re-execution: a thread is held at `held` until another one arrives at `arriving`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provocation {
    pub version: u32,
    /// Module 0 is the program.
    pub modules: Vec<ScheduleModule>,
    pub held: Descriptor,
    pub arriving: CodePlace,
    /// The thread that may go ahead until it is held.
    pub favoured: Option<ThreadPath>,
    /// Longest time that the thread is held.
    pub hold_milliseconds: u64,
}
