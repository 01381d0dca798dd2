//! What one thread did at one moment.

use crate::ids::{Address, ContextId, EventIndex, SiteId, ThreadId};
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum AccessClass {
    Read,
    Write,
    /// Reads, then writes, the same bytes in one plain operation.
    ReadWrite,
    /// Gives the bytes back: whoever touches them at the same time, or later, touches what is no more.
    End,
}

impl AccessClass {
    pub const fn reads(self) -> bool {
        matches!(self, Self::Read | Self::ReadWrite)
    }
    pub const fn writes(self) -> bool {
        !matches!(self, Self::Read)
    }
}

/// Bytes touched by a plain or atomic access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Access {
    pub address: Address,
    /// Bytes; at least 1.
    pub size: u32,
    pub class: AccessClass,
    pub atomic: bool,
}

impl Access {
    pub const fn overlaps(&self, other: &Self) -> bool {
        self.address.0 < other.address.0 + other.size as u64 && other.address.0 < self.address.0 + self.size as u64
    }
    /// Overlapping bytes, at least one writes, not both atomic (RaceHunter, Definition of conflict, threads apart).
    pub const fn conflicts(&self, other: &Self) -> bool {
        self.overlaps(other) && (self.class.writes() || other.class.writes()) && !(self.atomic && other.atomic)
    }
}

/// C++20 memory orders. `Consume` is treated as `Acquire` everywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum MemoryOrder {
    Relaxed,
    Consume,
    Acquire,
    Release,
    AcqRel,
    SeqCst,
}

impl MemoryOrder {
    pub const fn acquires(self) -> bool {
        matches!(self, Self::Consume | Self::Acquire | Self::AcqRel | Self::SeqCst)
    }
    pub const fn releases(self) -> bool {
        matches!(self, Self::Release | Self::AcqRel | Self::SeqCst)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum AtomicOp {
    Load,
    Store,
    /// Successful read-modify-write.
    Rmw,
    /// Failed compare-exchange: a load.
    CasFailed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum LockMode {
    Exclusive,
    Shared,
}

/// Locks, condition variables, barriers, … are named by their synthetic address, which is unique per lifetime.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventKind {
    /// A plain access (`access.atomic == false`).
    Access(Access),
    /// An atomic access (`access.atomic == true`).
    Atomic {
        access: Access,
        op: AtomicOp,
        order: MemoryOrder,
        /// That it wrote, or else read: the low 8 bytes. Where [`crate::Trace::atomic_values`] says that it is known.
        value: u64,
    },
    Fence {
        order: MemoryOrder,
    },

    Start,
    End,
    Fork {
        child: ThreadId,
    },
    /// `may_wait` is false for try and timed joins.
    Join {
        child: ThreadId,
        may_wait: bool,
    },

    /// `may_wait` is false for try and timed acquisitions.
    Acquire {
        lock: Address,
        mode: LockMode,
        may_wait: bool,
    },
    Release {
        lock: Address,
        mode: LockMode,
    },
    /// The thread is about to block on a taken lock. The `Acquire` follows if it ever got it.
    Request {
        lock: Address,
        mode: LockMode,
    },

    /// Releases `mutex` (no separate `Release` event).
    WaitBegin {
        condition: Address,
        mutex: Address,
    },
    /// Acquires `mutex` again (no separate `Acquire` event). `woken_by`: the signal, where known.
    WaitEnd {
        condition: Address,
        mutex: Address,
        woken_by: Option<EventIndex>,
        timed_out: bool,
    },
    Signal {
        condition: Address,
        broadcast: bool,
    },

    BarrierEnter {
        barrier: Address,
        generation: u32,
    },
    BarrierExit {
        barrier: Address,
        generation: u32,
    },

    Post {
        semaphore: Address,
    },
    /// A successful wait.
    Take {
        semaphore: Address,
    },

    OnceBegin {
        once: Address,
    },
    OnceDone {
        once: Address,
    },
    OnceSeen {
        once: Address,
    },

    /// Release / acquire on an object that is neither lock nor atomic: pipes, sockets, futexes, annotations.
    ReleaseObject {
        object: Address,
    },
    AcquireObject {
        object: Address,
    },

    /// Blocked for good when the program ended or was stopped.
    Blocked {
        on: Address,
    },
    /// A synchronisation event that orders nothing (yield, sleep, failed try, allocation, …). Kept so that ordinals can be
    /// counted.
    Other(OtherOp),
}

impl EventKind {
    /// The access that it is, plain or atomic.
    pub const fn access(self) -> Option<Access> {
        match self {
            Self::Access(access) | Self::Atomic { access, .. } => Some(access),
            _ => None,
        }
    }
}

/// What an event that orders nothing is, for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OtherOp {
    Allocates,
    Detaches,
    FailsToLock,
    /// Of a lock that it goes on holding.
    LocksAgain,
    UnlocksInner,
    MayBlock,
    Yields,
    Sleeps,
    MakesProcess,
    AsksForEnd,
    EndsProcess,
    /// See [`crate::Gap`].
    CallsUnseen,
    ReturnsUnseen,
    Unknown,
}

impl OtherOp {
    pub const fn words(self) -> &'static str {
        match self {
            Self::Allocates => "allocates memory",
            Self::Detaches => "detaches a thread",
            Self::FailsToLock => "fails to take a lock",
            Self::LocksAgain => "takes a lock that it holds already",
            Self::UnlocksInner => "releases a lock that it goes on holding",
            Self::MayBlock => "makes a call that may block",
            Self::Yields => "yields",
            Self::Sleeps => "sleeps",
            Self::MakesProcess => "makes a process",
            Self::AsksForEnd => "is about to end the process",
            Self::EndsProcess => "ends the process",
            Self::CallsUnseen => "calls code without instrumentation",
            Self::ReturnsUnseen => "is back from code without instrumentation",
            Self::Unknown => "executes an operation that orders nothing",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    pub thread: ThreadId,
    pub site: SiteId,
    pub context: ContextId,
    /// How many events with a synchronisation ordinal the thread had completed before this one. For a synchronisation event this
    /// is its own ordinal.
    pub ordinal: u32,
    pub kind: EventKind,
}

impl Event {
    /// The access made by this event, plain or atomic.
    pub const fn access(self) -> Option<Access> {
        self.kind.access()
    }
}
