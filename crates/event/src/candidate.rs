//! What an analysis suspects, and the reordering that would show it.

use crate::ids::{Address, EventIndex, ThreadId};
use serde::{Deserialize, Serialize};

/// Why something is suspected: the analysis that says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Evidence {
    /// Not ordered by C++20 happens-before in the recorded execution itself.
    HappensBefore,
    /// Disjoint lock sets and not ordered by fork/join, condition, barrier, semaphore, once and released objects (Carril, Tichy
    /// §3).
    Hybrid,
    /// Conflicting accesses that creation and joining of threads do not order (RaceHunter, Definition 10), or so the use of
    /// a lock and where its life begins or ends.
    Conflict,
    /// No lock protects the memory in all accesses (Shacham et al. 2007, Fig. 2).
    Lockset,
    /// A cycle of lock dependencies.
    LockOrder,
    /// A thread reads bytes in one critical section and writes them in the next, and another one's write may come between.
    StaleValue,
    /// A thread uses bytes in one critical section and in the next, and another one's use between fits no serial order.
    Interposed,
    /// What one thread treats together in a critical section, another one treats in two.
    View,
    /// Two threads treat the same variables in two critical sections each.
    Apart,
    /// Two threads' computational units work on variables that dependences of data and control correlate, and no lock is held
    /// throughout both (Jannesari 2014, an extended data race).
    Dependences,
    /// The recorded execution itself ended blocked.
    Observed,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CandidateKind {
    /// Conflicting accesses of different threads; `first` precedes `second` in the trace.
    Race { first: EventIndex, second: EventIndex },
    /// One wait per thread, each for the next one's thread: `waits[i]` wants `locks[i]`, which that thread holds; without a lock
    /// it joins the thread, or waits for it at a barrier.
    Deadlock { waits: Vec<EventIndex>, locks: Vec<Option<Address>> },
}

impl CandidateKind {
    /// The events that must be next in their threads after the witness.
    pub fn goals(&self) -> Vec<EventIndex> {
        match self {
            Self::Race { first, second } => vec![*first, *second],
            Self::Deadlock { waits, .. } => waits.clone(),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    pub kind: CandidateKind,
    pub evidence: Evidence,
    /// How many event pairs with the same two source sites this one stands for.
    pub occurrences: u64,
}

/// Where an object begins or ends its life: between two events of the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// By the address of its bytes.
    pub object: Address,
    pub thread: ThreadId,
    /// The event that comes next.
    pub before: EventIndex,
}

/// How far a thread has run: all of its events before `from`, and none from `to` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stand {
    pub thread: ThreadId,
    pub from: EventIndex,
    pub to: EventIndex,
}

impl Stand {
    /// Right between two events: the second one, of whichever thread, is `before`.
    pub const fn at(thread: ThreadId, before: EventIndex) -> Self {
        Self { thread, from: before, to: before }
    }

    /// There, or further.
    pub const fn behind(thread: ThreadId, before: EventIndex) -> Self {
        Self { thread, from: before, to: EventIndex(u32::MAX) }
    }

    /// There at most.
    pub const fn up_to(thread: ThreadId, before: EventIndex) -> Self {
        Self { thread, from: EventIndex(0), to: before }
    }

    /// Whether the thread has to have begun.
    pub const fn has_begun(&self) -> bool {
        self.from.0 > 0
    }
}

/// What a witness keeps of the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum WitnessLevel {
    /// Program order, fork/join, lock exclusion, condition and barrier instances; reads-from is free. An *optimistic* witness.
    Synchronisation,
    /// The same, and every read (plain or atomic) sees the write it saw in the trace: a correct reordering.
    Causal,
}

/// A reordering: `order` holds, for each thread, a prefix of its events, interleaved anew. After it every goal event is the next
/// of its thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Witness {
    pub candidate: CandidateKind,
    pub order: Vec<EventIndex>,
    pub level: WitnessLevel,
}
