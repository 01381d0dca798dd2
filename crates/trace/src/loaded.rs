//! A recording in memory.

use crate::chunks::FaultKind;
use crate::header::RunHeader;
use crate::identity::SyncObjects;
use crate::misuse::{MisuseRecord, Moment};
use crate::turns::HandoverLog;
use rashomon_abi::record::{Op, input};
use rashomon_event::{AccessClass, Address, ContextId, EventIndex, SiteId, ThreadId, Trace};
use std::path::PathBuf;

/// Why a trace is not whole.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Shortcoming {
    #[error("the program was still running when its recording ended (a signal ended it)")]
    NotEnded,
    #[error("the runtime ended the program: its outcome was decided")]
    Stopped,
    #[error("the program died of a signal")]
    Crashed,
    #[error("{}; records up to the last whole one are used", last_chunks(threads))]
    Unfinished { threads: Vec<u32> },
    #[error("{} is damaged at byte {offset}: {what}; events from there on are left out", path.display())]
    Damaged { path: PathBuf, offset: u64, what: FaultKind },
    #[error("thread {thread} has no stream; events from number {sequence} on are left out")]
    Lost { thread: u32, sequence: u64 },
    #[error("it could not be written to its end; events behind the first that is missing are left out")]
    Unwritten,
    #[error("plain accesses of thread {thread} are missing from event {from} on (disk full or limit reached)")]
    Truncated { thread: u32, from: u32 },
    #[error("the list of modules ends in the middle of a line")]
    ModulesCutShort,
}

fn last_chunks(threads: &[u32]) -> String {
    match threads {
        [thread] => format!("the last chunk of thread {thread} was not finished"),
        threads => format!("the last chunks of {} threads were not finished", threads.len()),
    }
}

/// A thread that stood at its goal, about to access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GoalRecord {
    pub thread: ThreadId,
    pub site: SiteId,
    pub context: ContextId,
    pub address: Address,
    pub machine_address: u64,
    pub class: AccessClass,
    pub size: u64,
    pub atomic: bool,
    /// Synchronisation events that the thread had completed, and accesses it had executed since (`None`: an older recording).
    pub ordinal: u32,
    pub executed: Option<u64>,
}

/// A thread that was blocked for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockedRecord {
    pub thread: ThreadId,
    pub site: SiteId,
    pub context: ContextId,
    /// Identity of what it waits for; for a join the number of the thread.
    pub object: Address,
    /// The operation that does not return, where it is one of this version.
    pub op: Option<Op>,
    pub holder: Option<ThreadId>,
    /// It does not wait, but repeats this for ever; no operation then is a plain access.
    pub repeats: bool,
    pub event: EventIndex,
}

/// The first external input, so that a re-execution may see something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InputRecord {
    pub thread: ThreadId,
    /// Where it was asked for; a signal was not.
    pub site: SiteId,
    pub context: ContextId,
    /// Of a signal its number.
    pub object: u64,
    /// [`rashomon_abi::record::sync_source`]
    pub source: u16,
    pub file: Option<InputFile>,
}

/// What a descriptor was of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InputFile {
    pub descriptor: u32,
    /// [`input::PATH`] or [`input::PEER`].
    pub what: u64,
    pub name: [u8; input::NAME_BYTES],
}

/// Where the frame of a function lay on its thread's stack, in machine addresses: `[stack_pointer, address)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameRecord {
    pub thread: ThreadId,
    /// The one that the function runs in. If it was called so more than once, the frame is that of the first time.
    pub context: ContextId,
    /// The canonical frame address, as DWARF has it.
    pub address: u64,
    /// Inside the function, behind what it does first.
    pub stack_pointer: u64,
}

/// Where a synchronisation object, other than a semaphore, is initialised or destroyed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LifeRecord {
    /// The address of its bytes.
    pub data: Address,
    pub begins: bool,
    pub at: Moment,
}

/// Which way control goes in a function that the compiler's plugin has instrumented (`rashomon_abi::deep`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowRecord {
    /// The first event behind it.
    pub before: EventIndex,
    pub thread: ThreadId,
    pub flow: Flow,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// A function begins. Activations of a thread and process are numbered from 1.
    Activation {
        process: u64,
        table: SiteId,
    },
    Segment {
        segment: u64,
    },
    /// Its number, and above `record::PROCESS_SHIFT` its process.
    Resume {
        activation: u64,
        segment: u64,
    },
    /// A handler of a signal begins, and returns.
    Interrupted,
    Continues,
}

/// A recording in memory: the trace and what the recorder says about the run.
#[derive(Clone, Debug)]
pub struct LoadedTrace {
    pub trace: Trace,
    pub header: RunHeader,
    pub goals: Vec<GoalRecord>,
    pub blocked: Vec<BlockedRecord>,
    /// Wrong uses of locks and threads, in order.
    pub misuses: Vec<MisuseRecord>,
    /// In the order of the trace.
    pub lives: Vec<LifeRecord>,
    pub sync_objects: SyncObjects,
    pub input: Option<InputRecord>,
    pub frames: Vec<FrameRecord>,
    /// In the order of the trace; of programs that the compiler's plugin has instrumented, if the recording was asked for it.
    pub flow: Vec<FlowRecord>,
    /// Empty if and only if `trace.complete`.
    pub shortcomings: Vec<Shortcoming>,
    /// Accesses executed, kept or not, as far as the threads wrote it down; by thread.
    pub accesses_executed: Vec<u64>,
    pub(crate) handovers: HandoverLog,
}

impl LoadedTrace {
    /// The synthetic address of the bytes behind a lock's (condition's, …) identity.
    pub fn data_address(&self, identity: Address) -> Address {
        self.sync_objects.data_address(identity)
    }
}
