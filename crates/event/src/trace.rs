//! A whole recording in memory: a total order of events and the tables they refer to.

use crate::event::{Access, Event, EventKind};
use crate::event_set::EventSet;
use crate::events::Events;
use crate::ids::{Address, ContextId, EventIndex, ObjectId, SiteId, ThreadId, ThreadPath};
use crate::program_order::ProgramOrder;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Mode {
    /// Threads ran in parallel: the order of plain accesses of different threads is only known up to synchronisation, and
    /// reads-from is unknown. No prediction may rest on it.
    Free,
    /// One thread at a time: the order of events is the order in which they happened.
    Serial,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadInfo {
    pub path: ThreadPath,
    pub parent: Option<ThreadId>,
    pub spawn_ordinal: u32,
    /// The object that is this thread's stack.
    pub stack: Option<ObjectId>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModuleInfo {
    /// As [`crate::path_text`] writes it.
    pub path: String,
    /// Hexadecimal.
    pub build_id: Option<String>,
    /// What was added to the file's addresses.
    pub base: u64,
    pub start: u64,
    pub end: u64,
}

/// A code address: the return address of the call into the runtime, as it was in the recorded process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Site {
    pub address: u64,
    /// Index into [`Trace::modules`], where the address lies in one.
    pub module: Option<u32>,
    /// `address` − the module's base (or `address`).
    pub offset: u64,
}

/// A node of a calling-context tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Context {
    pub parent: ContextId,
    /// The call site in the parent (a return address). Meaningless for the root.
    pub call: SiteId,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ObjectKind {
    /// Static data of a module (index into [`Trace::modules`]); offsets count from its base.
    Global {
        module: u32,
    },
    /// The `ordinal`-th (from 0) allocation of `thread` at call site `site`.
    Heap {
        thread: ThreadId,
        site: SiteId,
        ordinal: u32,
    },
    Mapping {
        thread: ThreadId,
        site: SiteId,
        ordinal: u32,
    },
    /// A descriptor of a file, whose bytes stand for it: using it reads them.
    Descriptor {
        thread: ThreadId,
        site: SiteId,
        ordinal: u32,
    },
    /// A thread's stack (with its thread-local storage, for created threads).
    Stack {
        thread: ThreadId,
    },
    /// The initial thread's static thread-local storage.
    Tls {
        thread: ThreadId,
    },
    /// Everything else.
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Object {
    pub kind: ObjectKind,
    /// First synthetic address; `base.0 + size` is the first one behind.
    pub base: Address,
    pub size: u64,
    /// Bytes at its end that the allocator gave in addition to what was asked for.
    pub spare: u64,
    /// Machine address of `base` while the object lived.
    pub machine_base: u64,
    /// The event with which it began to live, where it did so within the trace.
    pub born: Option<EventIndex>,
}

/// A call into code that is not seen, from its begin to its end: a BarrierPair (Rajagopalan, "Fast and Precise On-the-Fly Data
/// Race Detection", thesis, 2016, §4.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    pub thread: ThreadId,
    pub begin: EventIndex,
    /// `None`: the trace ends first, or the call never returned (an exception, `longjmp`).
    pub end: Option<EventIndex>,
    /// Index into [`Trace::modules`] of the code that was called, where it lies in one.
    pub module: Option<u32>,
    /// Where the function begins that was called, where that is known.
    pub function: Option<SiteId>,
    /// What the code can reach from its arguments: first address and bytes.
    pub reach: Vec<(Address, u64)>,
    /// Threads whose handles it can reach.
    pub threads: Vec<ThreadId>,
}

#[derive(Clone, Debug)]
pub struct Trace {
    pub mode: Mode,
    pub threads: Vec<ThreadInfo>,
    pub modules: Vec<ModuleInfo>,
    pub sites: Vec<Site>,
    /// `contexts[0]` is the root.
    pub contexts: Vec<Context>,
    /// Sorted by `base`; synthetic ranges are disjoint.
    pub objects: Vec<Object>,
    pub events: Events,
    /// The counts that semaphores were given when they began. One that is not here begins with the least count under which the
    /// trace is possible.
    pub semaphores: BTreeMap<Address, u64>,
    /// Calls into code that is not seen, in the order of their begins.
    pub gaps: Vec<Gap>,
    /// What calls into unseen code may have ordered: wherever the second event happens, or is about to, the first one has
    /// happened. Of different threads, the first one earlier in the trace; sorted by the second.
    pub kept: Vec<(EventIndex, EventIndex)>,
    /// Wait loops that were entered and left, in the order of the trace; of programs that the compiler's plugin has instrumented.
    pub loops: Vec<LoopMark>,
    /// False: the program did not end in an orderly way, or the recording was cut.
    pub complete: bool,
    /// Atomic events tell the values that they saw and wrote. False: what they carry means nothing.
    pub atomic_values: bool,
    /// What plain accesses of at most eight bytes read and wrote, where that was recorded; sorted by event.
    pub plain_values: Vec<PlainValue>,
    /// Locks that the program has made of something else: what acquires and releases them are operations on that.
    pub made_locks: BTreeMap<Address, MadeLock>,
    /// What depends on reads, where that is known; sorted by read. On any other all later events of its thread do.
    pub uses: Vec<ReadUse>,
    /// First event from which on a re-execution may differ, where known.
    pub not_reexecutable_from: Option<EventIndex>,
}

/// What a lock is that is made of an atomic word, or of a semaphore.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MadeLock {
    Mutex,
    /// For readers or one writer.
    RwLock,
    Semaphore,
}

/// Values of a plain access, their low bytes first; `None`: not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlainValue {
    pub event: EventIndex,
    /// That it found in memory, also if it only wrote.
    pub read: Option<u64>,
    /// That it left there.
    pub written: Option<u64>,
}

/// What depends on a read of shared memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadUse {
    pub read: EventIndex,
    /// The first event of its thread that need not happen as it did if the read sees another value; `None`: all happen.
    pub first: Option<EventIndex>,
    /// Writes of its thread to shared memory that need not write what they wrote then.
    pub written: Vec<EventIndex>,
}

/// What a wait loop does until another thread has done something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoopKind {
    /// It waits on a condition variable.
    Condition,
    /// It reads memory.
    Spin,
    /// The same with atomic read-modify-write operations.
    SpinModifying,
    /// It reads memory under a lock that it takes each time.
    Poll,
}

/// A thread enters a wait loop, or leaves it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoopMark {
    /// The first event behind it.
    pub before: EventIndex,
    pub thread: ThreadId,
    /// Names the loop: its table in the program.
    pub table: SiteId,
    pub kind: LoopKind,
    /// The condition variable that it waits on, where that is known before the loop.
    pub condition: Option<Address>,
    pub enters: bool,
}

impl Trace {
    /// A complete trace of which nothing else is known.
    pub fn of_events(mode: Mode, events: impl IntoIterator<Item = Event>) -> Self {
        Self {
            mode,
            threads: Vec::new(),
            modules: Vec::new(),
            sites: Vec::new(),
            contexts: vec![Context { parent: ContextId::ROOT, call: SiteId(0) }],
            objects: Vec::new(),
            events: events.into_iter().collect(),
            semaphores: BTreeMap::new(),
            gaps: Vec::new(),
            kept: Vec::new(),
            loops: Vec::new(),
            complete: true,
            atomic_values: false,
            plain_values: Vec::new(),
            made_locks: BTreeMap::new(),
            uses: Vec::new(),
            not_reexecutable_from: None,
        }
    }

    #[inline]
    pub fn event(&self, index: EventIndex) -> Event {
        self.events.at(index.index())
    }
    /// What the event is: cheaper than [`Self::event`], which also tells whose it is.
    #[inline]
    pub fn kind(&self, index: EventIndex) -> EventKind {
        self.events.kind(index.index())
    }
    /// The access that it makes, plain or atomic.
    #[inline]
    pub fn access(&self, index: EventIndex) -> Option<Access> {
        self.kind(index).access()
    }
    /// Where each event is in its thread.
    pub fn program_order(&self) -> &ProgramOrder {
        self.events.program_order()
    }
    /// The events that calls into unseen code may have ordered.
    pub fn kept_events(&self) -> EventSet {
        self.kept.iter().flat_map(|&(before, after)| [before, after]).filter(|event| event.index() < self.events.len()).collect()
    }
    /// The events that have to come before this one because of calls into unseen code.
    pub fn kept_before(&self, event: EventIndex) -> impl Iterator<Item = EventIndex> + '_ {
        let start = self.kept.partition_point(|&(_, after)| after < event);
        self.kept[start..].iter().take_while(move |&&(_, after)| after == event).map(|&(before, _)| before)
    }
    /// Whether two writes may be known to be of the same value.
    pub const fn has_values(&self) -> bool {
        self.atomic_values || !self.plain_values.is_empty()
    }
    /// What is known of the values of a plain access.
    pub fn plain_value(&self, event: EventIndex) -> Option<&PlainValue> {
        let at = self.plain_values.binary_search_by_key(&event, |value| value.event).ok()?;
        Some(&self.plain_values[at])
    }
    /// What is known to depend on a read.
    pub fn use_of(&self, read: EventIndex) -> Option<&ReadUse> {
        let at = self.uses.binary_search_by_key(&read, |one| one.read).ok()?;
        Some(&self.uses[at])
    }
    pub fn site(&self, id: SiteId) -> &Site {
        &self.sites[id.index()]
    }
    pub fn thread(&self, id: ThreadId) -> &ThreadInfo {
        &self.threads[id.index()]
    }
    pub fn indices(&self) -> impl DoubleEndedIterator<Item = EventIndex> + ExactSizeIterator + use<> {
        (0..self.events.len() as u32).map(EventIndex)
    }
    /// The object a synthetic address belongs to.
    pub fn object_at(&self, address: Address) -> Option<ObjectId> {
        let behind = self.objects.partition_point(|object| object.base <= address);
        let candidate = behind.checked_sub(1)?;
        let object = &self.objects[candidate];
        (address.0 - object.base.0 < object.size).then_some(ObjectId(candidate as u32))
    }
    /// Call sites from the innermost caller outwards.
    pub fn callers(&self, mut context: ContextId) -> Vec<SiteId> {
        let mut sites = Vec::new();
        while context != ContextId::ROOT && sites.len() < self.contexts.len() {
            let node = &self.contexts[context.index()];
            sites.push(node.call);
            context = node.parent;
        }
        sites
    }
}
