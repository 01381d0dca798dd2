//! An execution to be forced, in terms that survive re-execution and that no filter can change.

use crate::ids::{ProcessPath, ThreadPath};
use serde::{Deserialize, Serialize};

/// Version of the serialised form.
pub const SCHEDULE_VERSION: u32 = 1;

/// A code address as module and offset from its load bias. `module` is an index into [`Schedule::modules`]; `None`: absolute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CodePlace {
    pub module: Option<u32>,
    pub offset: u64,
}

/// An object in terms that survive re-execution. Threads are indices into [`Schedule::threads`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ObjectName {
    Global {
        place: CodePlace,
    },
    Heap {
        thread: u32,
        site: CodePlace,
        ordinal: u32,
    },
    Mapping {
        thread: u32,
        site: CodePlace,
        ordinal: u32,
    },
    /// Offsets count downwards from the high end.
    Stack {
        thread: u32,
    },
    Tls {
        thread: u32,
    },
    /// Any address matches.
    Any,
}

/// Where within a stretch between two synchronisation events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Place {
    /// At the synchronisation event itself. `op`: code of the expected operation (`rashomon_abi::record::Op`), 0 = do not check.
    Synchronisation { op: u16 },
    /// After exactly this many accesses.
    Count { accesses: u64 },
    /// Inside the operation that was begun after this many accesses, where the thread waits.
    Waiting { accesses: u64 },
    /// The first access at this code place that touches these bytes of this object. For stacks and TLS `delta` counts down from
    /// the high end.
    Access { site: CodePlace, object: ObjectName, delta: u64, size: u32 },
    /// The end of the thread, or as far as it gets.
    End,
}

/// "About to execute": the event at the position has not happened yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Position {
    /// Synchronisation events that the thread has completed.
    pub ordinal: u32,
    pub place: Place,
}

/// A synchronisation event by which a position is recognised where the thread's ordinals are others than in the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Landmark {
    pub site: CodePlace,
    /// Its number among the thread's synchronisation events at this site, from 0.
    pub occurrence: u32,
}

/// `thread` (index into [`Schedule::threads`]) runs alone until the position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Turn {
    pub thread: u32,
    pub until: Position,
    /// For elastic enforcement, of positions at synchronisation events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub landmark: Option<Landmark>,
}

/// What must hold after the last turn. Goal sides are indices of the turns that bring the threads there.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Goal {
    /// Nothing: replay only.
    None,
    /// The two threads stand at conflicting accesses.
    Race { turns: [u32; 2] },
    /// The threads block each other for ever.
    Deadlock { turns: Vec<u32> },
}

/// A place whose plain accesses are recorded where those of others are not.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct KeptPlace {
    /// Path of the module.
    pub module: String,
    /// Offset of the access's return address from the module's load bias.
    pub offset: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScheduleModule {
    pub path: String,
    pub build_id: Option<String>,
}

/// Of a schedule for a process that another one made: which one it is, and how all others run, so that they make it again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Surroundings {
    pub process: ProcessPath,
    /// Code of the serial policy (`rashomon_abi::control::policy`) of the recording, and its seed.
    pub policy: u64,
    pub seed: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schedule {
    pub version: u32,
    /// Module 0 is the program.
    pub modules: Vec<ScheduleModule>,
    /// Thread 0 is the initial thread; a parent precedes its children.
    pub threads: Vec<ThreadPath>,
    pub turns: Vec<Turn>,
    pub goal: Goal,
    /// Serial parameters of the recording that a replay must share.
    pub quantum: u64,
    /// Calls into code without instrumentation are events that positions count.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unseen_calls: bool,
    /// `None`: the schedule is for the initial process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub surroundings: Option<Surroundings>,
    /// The plain accesses of these places alone are kept by executions of this schedule. Empty: all are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<KeptPlace>,
}
