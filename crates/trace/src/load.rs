//! From thread streams to one totally ordered trace.
//!
//! Streams are merged by sequence number: a record with one is followed by the accesses behind it in its own stream. In serial
//! mode that is the order in which everything happened; in free mode it agrees with synchronisation.
//!
//! A fault in any stream ends the merge: what other threads did later may depend on what is lost. The events up to there are a
//! prefix of the execution, and the trace is marked incomplete.
//!
//! Operations without a synchronisation ordinal make events only where analyses need them: requests, blocked threads, and
//! allocations (as [`EventKind::Other`], so that a block's call context is kept).

use crate::error::TraceError;
use crate::header::{RunHeader, RunMode, RunState};
use crate::identity::{Identities, SyncObjects, kind_of, lock_kind_of};
use crate::intern::{Contexts, Sites, WordMap};
use crate::modules::ModuleLine;
use crate::recording::Recording;
use crate::space::{LastHits, Space};
use crate::stream::{Fault, FaultKind, Reader, Record, SyncRecord};
use crate::threads::ThreadTable;
use crate::turns::HandoverLog;
use rashomon_abi::record::{self, Op, atomic_aux, lock_kind};
use rashomon_event::{
    Access, AccessClass, Address, AtomicOp, ContextId, Event, EventIndex, EventKind, LockMode,
    MemoryOrder, Mode, ModuleInfo, ObjectKind, SiteId, ThreadId, Trace,
};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::PathBuf;

/// Events are numbered with 32 bits.
const MAX_EVENTS: u64 = u32::MAX as u64 - 1;
/// `ETIMEDOUT` of x86-64 Linux, the result of a condition wait that ran out of time.
const TIMED_OUT: u64 = 110;

/// Why a trace is not whole.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Shortcoming {
    #[error("the program was still running when its recording ended (it was killed)")]
    NotEnded,
    #[error("the runtime ended the program: its outcome was decided")]
    Stopped,
    #[error("the program died of a signal")]
    Crashed,
    #[error(
        "the last chunk of thread {thread} was not finished; its records up to the last whole one are used"
    )]
    Unfinished { thread: u32 },
    #[error("{} is damaged at byte {offset}: {what}; events from there on are left out", path.display())]
    Damaged {
        path: PathBuf,
        offset: u64,
        what: FaultKind,
    },
    #[error(
        "plain accesses of thread {thread} are missing from event {from} on (disk full or limit reached)"
    )]
    Truncated { thread: u32, from: u32 },
    #[error("the list of modules ends in the middle of a line")]
    ModulesCutShort,
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
    pub event: EventIndex,
}

/// A recording in memory: the trace and what the recorder says about the run.
#[derive(Clone, Debug)]
pub struct LoadedTrace {
    pub trace: Trace,
    pub header: RunHeader,
    pub goals: Vec<GoalRecord>,
    pub blocked: Vec<BlockedRecord>,
    pub sync_objects: SyncObjects,
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

impl Recording {
    /// Merges the streams into one trace.
    pub fn load(&self) -> Result<LoadedTrace, TraceError> {
        let mut loader = Loader::new(self);
        loader.merge()?;
        Ok(loader.finish())
    }
}

/// A record with a sequence number, read but not yet placed.
#[derive(Clone, Copy, Debug)]
enum Sequenced<'a> {
    Sync(SyncRecord<'a>),
    Turn { accesses: u64 },
}

/// What came after a thread's accesses.
enum Advance {
    /// A record with this sequence number.
    Next(u64),
    End,
    /// Noted; nothing behind it can be placed.
    Fault,
}

struct ThreadCursor<'a> {
    reader: Reader<'a>,
    thread: ThreadId,
    path: &'a PathBuf,
    /// Context numbers of this stream → contexts of the trace.
    contexts: Vec<Option<ContextId>>,
    max_contexts: usize,
    context: ContextId,
    ordinal: u32,
    hits: LastHits,
    /// Recorded accesses since the last operation with an ordinal.
    accesses: u64,
    executed: u64,
    next: Option<Sequenced<'a>>,
    /// Event of the last `CondWaitBegin`.
    wait_begin: Option<EventIndex>,
    ended: bool,
}

struct Loader<'a> {
    recording: &'a Recording,
    cursors: Vec<ThreadCursor<'a>>,
    events: Vec<Event>,
    space: Space,
    sites: Sites,
    contexts: Contexts,
    identities: Identities,
    threads: ThreadTable,
    handovers: HandoverLog,
    serial: bool,
    /// Serial: the cursor whose thread runs.
    running: Option<usize>,
    modules: Vec<ModuleInfo>,
    /// Handle of each module's data in `space`.
    module_objects: Vec<Option<u32>>,
    next_module_line: usize,
    next_module: u32,
    goals: Vec<GoalRecord>,
    blocked: Vec<BlockedRecord>,
    /// Sequence number of a signal → its event.
    signals: WordMap<u64, EventIndex>,
    /// Condition → the last signal on it, for free mode.
    last_signal: WordMap<u64, EventIndex>,
    shortcomings: Vec<Shortcoming>,
    not_reexecutable_from: Option<EventIndex>,
}

impl<'a> Loader<'a> {
    fn new(recording: &'a Recording) -> Self {
        let cursors = recording.streams.iter().map(|stream| ThreadCursor {
            reader: stream.reader(),
            thread: ThreadId(stream.thread),
            path: &stream.path,
            contexts: vec![Some(ContextId::ROOT)],
            max_contexts: (stream.record_bytes() / 16) as usize + 2,
            context: ContextId::ROOT,
            ordinal: 0,
            hits: LastHits::default(),
            accesses: 0,
            executed: 0,
            next: None,
            wait_begin: None,
            ended: false,
        });
        let mut loader = Self {
            recording,
            cursors: cursors.collect(),
            events: Vec::new(),
            space: Space::default(),
            sites: Sites::default(),
            contexts: Contexts::default(),
            identities: Identities::default(),
            threads: ThreadTable::default(),
            handovers: HandoverLog::default(),
            serial: recording.header.mode == RunMode::Serial,
            running: None,
            modules: Vec::new(),
            module_objects: Vec::new(),
            next_module_line: 0,
            next_module: 0,
            goals: Vec::new(),
            blocked: Vec::new(),
            signals: WordMap::default(),
            last_signal: WordMap::default(),
            shortcomings: Vec::new(),
            not_reexecutable_from: None,
        };
        loader.place_modules();
        loader
    }

    /// All modules get their places at once, because a module's line may be written after its code first ran. Where modules
    /// share addresses one after the other, the lines' sequence numbers decide.
    fn place_modules(&mut self) {
        for line in &self.recording.modules.lines {
            let ModuleLine::Loaded { module, .. } = line else {
                continue;
            };
            let index = self.modules.len() as u32;
            let contested = self
                .modules
                .iter()
                .any(|other| other.start < module.end && module.start < other.end);
            self.modules.push(module.clone());
            let object = self.space.place_module(index, module.start, module.end);
            self.module_objects.push(object);
            if !contested {
                self.sites.load(index, module);
            }
        }
        // A contested range belongs to whoever was loaded first until another line says otherwise.
        for object in self.module_objects.iter().rev().flatten() {
            self.space.place_again(*object);
        }
    }

    /// Module lines up to a sequence number take effect.
    fn load_modules(&mut self, sequence: u64) {
        while let Some(line) = self
            .recording
            .modules
            .lines
            .get(self.next_module_line)
            .filter(|line| line.sequence() <= sequence)
        {
            self.next_module_line += 1;
            let ModuleLine::Loaded { module, .. } = line else {
                continue;
            };
            let index = self.next_module;
            self.next_module += 1;
            self.sites.load(index, module);
            if let Some(object) = self.module_objects[index as usize] {
                self.space.place_again(object);
            }
        }
    }

    fn merge(&mut self) -> Result<(), TraceError> {
        let mut heads = BinaryHeap::new();
        for at in 0..self.cursors.len() {
            match self.advance(at)? {
                Advance::Next(sequence) => heads.push(Reverse((sequence, at))),
                Advance::End => {}
                Advance::Fault => return Ok(()),
            }
        }
        let reexecutable_until = self
            .recording
            .header
            .not_reexecutable_from
            .unwrap_or(u64::MAX);
        while let Some(Reverse((mut sequence, at))) = heads.pop() {
            loop {
                if sequence >= reexecutable_until {
                    self.note_external_input();
                }
                self.load_modules(sequence);
                self.apply(at)?;
                match self.advance(at)? {
                    Advance::Next(next) => sequence = next,
                    Advance::End => break,
                    Advance::Fault => return Ok(()),
                }
                if heads
                    .peek()
                    .is_some_and(|&Reverse((other, _))| other < sequence)
                {
                    heads.push(Reverse((sequence, at)));
                    break;
                }
            }
        }
        Ok(())
    }

    fn note_external_input(&mut self) {
        self.not_reexecutable_from
            .get_or_insert(EventIndex(self.events.len() as u32));
    }

    /// Places accesses up to the stream's next record with a sequence number, which is kept.
    fn advance(&mut self, at: usize) -> Result<Advance, TraceError> {
        loop {
            let cursor = &mut self.cursors[at];
            let record = match cursor.reader.next_record() {
                Ok(Some(record)) => record,
                Ok(None) => return Ok(Advance::End),
                Err(fault) => return Ok(self.note_fault(at, fault)),
            };
            match record {
                Record::Access {
                    class,
                    size,
                    address,
                    site,
                } => self.access(at, class, address, size, site)?,
                Record::Range {
                    class,
                    address,
                    length,
                    site,
                } => {
                    // A machine has no more bytes than this; a larger number is damage that the checksum cannot see.
                    let mut left = length.min(record::LOW_MASK + 1 - address);
                    let mut from = address;
                    while left > 0 {
                        let size = left.min(u64::from(u32::MAX)) as u32;
                        self.access(at, class, from, size, site)?;
                        from += u64::from(size);
                        left -= u64::from(size);
                    }
                }
                Record::Sync(sync) => {
                    cursor.next = Some(Sequenced::Sync(sync));
                    return Ok(Advance::Next(sync.sequence));
                }
                Record::Turn { sequence, accesses } => {
                    cursor.next = Some(Sequenced::Turn { accesses });
                    return Ok(Advance::Next(sequence));
                }
                Record::Executed { count } => cursor.executed = cursor.executed.max(count),
                Record::Context { number } => {
                    match cursor.contexts.get(number as usize).copied().flatten() {
                        Some(context) => cursor.context = context,
                        None => return Ok(self.note_undefined(at, number)),
                    }
                }
                Record::ContextDefinition {
                    number,
                    parent,
                    call,
                } => {
                    let known = cursor.contexts.get(parent as usize).copied().flatten();
                    let (Some(parent), true) = (known, (number as usize) < cursor.max_contexts)
                    else {
                        return Ok(
                            self.note_undefined(at, if known.is_some() { number } else { parent })
                        );
                    };
                    let call = self.sites.intern(call);
                    let context = self.contexts.intern(parent, call);
                    let table = &mut cursor.contexts;
                    if table.len() <= number as usize {
                        table.resize(number as usize + 1, None);
                    }
                    table[number as usize] = Some(context);
                }
            }
        }
    }

    fn note_undefined(&mut self, at: usize, number: u32) -> Advance {
        let offset = self.cursors[at].reader.record_offset();
        self.note_fault(
            at,
            Fault {
                offset,
                what: FaultKind::UndefinedContext(number),
            },
        )
    }

    fn note_fault(&mut self, at: usize, fault: Fault) -> Advance {
        let path = self.cursors[at].path.clone();
        self.shortcomings.push(Shortcoming::Damaged {
            path,
            offset: fault.offset,
            what: fault.what,
        });
        Advance::Fault
    }

    #[inline]
    fn access(
        &mut self,
        at: usize,
        class: record::AccessClass,
        address: u64,
        size: u32,
        site: u64,
    ) -> Result<(), TraceError> {
        let cursor = &mut self.cursors[at];
        let site = self.sites.intern(site);
        let address = self
            .space
            .translate(&mut cursor.hits, address, u64::from(size));
        cursor.accesses += 1;
        let kind = EventKind::Access(Access {
            address,
            size,
            class: class_of(class),
            atomic: false,
        });
        let event = Event {
            thread: cursor.thread,
            site,
            context: cursor.context,
            ordinal: cursor.ordinal,
            kind,
        };
        self.push(event)?;
        Ok(())
    }

    #[inline]
    fn push(&mut self, event: Event) -> Result<EventIndex, TraceError> {
        let index = self.events.len() as u64;
        if index >= MAX_EVENTS {
            let path = self.recording.directory.clone();
            return Err(TraceError::TooLarge {
                path,
                what: "events",
                limit: MAX_EVENTS,
            });
        }
        self.events.push(event);
        Ok(EventIndex(index as u32))
    }

    /// The kept record of a cursor happens now.
    fn apply(&mut self, at: usize) -> Result<(), TraceError> {
        let Some(next) = self.cursors[at].next.take() else {
            return Ok(());
        };
        if self.serial && self.running != Some(at) {
            if let Some(outgoing) = self.running.map(|running| &self.cursors[running]) {
                self.handovers
                    .stops(outgoing.thread, outgoing.ordinal, outgoing.accesses);
            }
            self.running = Some(at);
        }
        match next {
            Sequenced::Turn { accesses } => {
                // In free mode nothing was handed over; the log stays empty.
                self.handovers.resumes(
                    self.cursors[at].thread,
                    accesses,
                    self.cursors[at].accesses,
                );
                Ok(())
            }
            Sequenced::Sync(sync) => self.apply_sync(at, &sync),
        }
    }

    fn apply_sync(&mut self, at: usize, sync: &SyncRecord<'_>) -> Result<(), TraceError> {
        let site = self.sites.intern(sync.site);
        let cursor = &self.cursors[at];
        let (thread, context, ordinal) = (cursor.thread, cursor.context, cursor.ordinal);
        if self.serial && sync.op.has_ordinal() {
            self.handovers
                .synchronises(thread, sync.op, cursor.accesses);
        }
        if let Some(kind) = self.event_kind(at, sync, site) {
            let index = self.push(Event {
                thread,
                site,
                context,
                ordinal,
                kind,
            })?;
            self.after_event(at, sync, site, index);
        }
        if sync.op.has_ordinal() {
            let cursor = &mut self.cursors[at];
            cursor.ordinal = cursor.ordinal.saturating_add(1);
            cursor.accesses = 0;
        }
        Ok(())
    }

    fn data(&mut self, at: usize, machine: u64) -> Address {
        self.space.translate(&mut self.cursors[at].hits, machine, 1)
    }

    /// The identity of the operation's own object.
    fn identity(&mut self, at: usize, sync: &SyncRecord<'_>) -> Address {
        let Some(kind) = kind_of(sync.op, sync.aux) else {
            return self.data(at, sync.object);
        };
        let data = if kind.is_memory() {
            self.data(at, sync.object)
        } else {
            Address(sync.object)
        };
        let identity = match sync.op {
            Op::LockInit | Op::CondInit | Op::BarrierInit | Op::SemaphoreInit => {
                self.identities.initialised(kind, data, sync.object)
            }
            Op::LockDestroy | Op::CondDestroy | Op::BarrierDestroy | Op::SemaphoreDestroy => {
                self.identities.destroyed(kind, data, sync.object)
            }
            _ => self.identities.used(kind, data, sync.object),
        };
        if matches!(sync.op, Op::Lock | Op::LockShared | Op::LockInit) {
            self.identities.describe_lock(data, sync.aux);
        }
        identity
    }

    fn mutex(&mut self, at: usize, machine: u64) -> Address {
        let data = self.data(at, machine);
        self.identities
            .used(lock_kind_of(lock_kind::MUTEX), data, machine)
    }

    fn child(&mut self, number: u64) -> Option<ThreadId> {
        self.threads.known(number)
    }

    /// The event that an operation makes, if any.
    fn event_kind(&mut self, at: usize, sync: &SyncRecord<'_>, site: SiteId) -> Option<EventKind> {
        let argument = |number: usize| sync.arguments.get(number);
        let thread = self.cursors[at].thread;
        let may_wait = sync.aux & lock_kind::TRY == 0;
        Some(match sync.op {
            Op::ThreadStart => {
                self.threads.started(thread, argument(0), argument(1));
                EventKind::Start
            }
            Op::ThreadEnd => {
                self.cursors[at].ended = true;
                EventKind::End
            }
            Op::ThreadCreate => match self.child(sync.object) {
                Some(child) => {
                    self.threads.created(child, thread, argument(0));
                    EventKind::Fork { child }
                }
                None => EventKind::Other,
            },
            Op::ThreadJoin => self
                .child(sync.object)
                .map_or(EventKind::Other, |child| EventKind::Join { child }),

            Op::Lock => EventKind::Acquire {
                lock: self.identity(at, sync),
                mode: LockMode::Exclusive,
                may_wait,
            },
            Op::LockShared => EventKind::Acquire {
                lock: self.identity(at, sync),
                mode: LockMode::Shared,
                may_wait,
            },
            Op::Unlock => EventKind::Release {
                lock: self.identity(at, sync),
                mode: LockMode::Exclusive,
            },
            Op::UnlockShared => EventKind::Release {
                lock: self.identity(at, sync),
                mode: LockMode::Shared,
            },
            Op::LockRequest => {
                let mode = if sync.aux & 1 == 1 {
                    LockMode::Shared
                } else {
                    LockMode::Exclusive
                };
                EventKind::Request {
                    lock: self.identity(at, sync),
                    mode,
                }
            }
            Op::LockInit
            | Op::LockDestroy
            | Op::CondInit
            | Op::CondDestroy
            | Op::BarrierInit
            | Op::BarrierDestroy
            | Op::SemaphoreInit
            | Op::SemaphoreDestroy => {
                self.identity(at, sync);
                return None;
            }

            Op::CondWaitBegin => EventKind::WaitBegin {
                condition: self.identity(at, sync),
                mutex: self.mutex(at, argument(0)),
            },
            Op::CondWaitEnd => {
                let condition = self.identity(at, sync);
                let woken_by = self.waking_signal(at, condition, argument(1), argument(2));
                EventKind::WaitEnd {
                    condition,
                    mutex: self.mutex(at, argument(0)),
                    woken_by,
                    timed_out: argument(1) == TIMED_OUT,
                }
            }
            Op::CondSignal => EventKind::Signal {
                condition: self.identity(at, sync),
                broadcast: false,
            },
            Op::CondBroadcast => EventKind::Signal {
                condition: self.identity(at, sync),
                broadcast: true,
            },

            Op::BarrierEnter => EventKind::BarrierEnter {
                barrier: self.identity(at, sync),
                generation: argument(0) as u32,
            },
            Op::BarrierExit => EventKind::BarrierExit {
                barrier: self.identity(at, sync),
                generation: argument(0) as u32,
            },
            Op::SemaphorePost => EventKind::Post {
                semaphore: self.identity(at, sync),
            },
            Op::SemaphoreWait => EventKind::Take {
                semaphore: self.identity(at, sync),
            },
            Op::OnceBegin => EventKind::OnceBegin {
                once: self.identity(at, sync),
            },
            Op::OnceDone => EventKind::OnceDone {
                once: self.identity(at, sync),
            },
            Op::OnceSeen => EventKind::OnceSeen {
                once: self.identity(at, sync),
            },
            Op::Publish => EventKind::Publish {
                object: self.identity(at, sync),
            },
            Op::Observe => EventKind::Observe {
                object: self.identity(at, sync),
            },

            Op::AtomicLoad => self.atomic(at, sync, AtomicOp::Load, argument(0)),
            Op::AtomicStore => self.atomic(at, sync, AtomicOp::Store, argument(0)),
            Op::AtomicRmw => self.atomic(at, sync, AtomicOp::Rmw, argument(1)),
            Op::AtomicCasFailed => self.atomic(at, sync, AtomicOp::CasFailed, argument(0)),
            Op::Fence => EventKind::Fence {
                order: order_of(atomic_aux::order(sync.aux)),
            },

            Op::GoalReached => {
                self.goal(at, sync, site);
                return None;
            }
            Op::Blocked => EventKind::Blocked {
                on: self.blocked_on(at, sync),
            },
            Op::Truncated => {
                let from = self.events.len() as u32;
                self.shortcomings.push(Shortcoming::Truncated {
                    thread: thread.0,
                    from,
                });
                return None;
            }
            Op::ExternalInput => {
                self.note_external_input();
                return None;
            }
            Op::Free | Op::SignalEnter | Op::SignalExit | Op::ProcessEnd => return None,
            Op::Allocate
            | Op::ThreadDetach
            | Op::LockFailed
            | Op::LockAgain
            | Op::UnlockInner
            | Op::SemaphoreFailed
            | Op::Blocking
            | Op::Yield
            | Op::Sleep
            | Op::Fork => EventKind::Other,
        })
    }

    fn atomic(&mut self, at: usize, sync: &SyncRecord<'_>, op: AtomicOp, value: u64) -> EventKind {
        let size = 1u32 << atomic_aux::size_log2(sync.aux).min(4);
        let class = match op {
            AtomicOp::Load | AtomicOp::CasFailed => AccessClass::Read,
            AtomicOp::Store => AccessClass::Write,
            AtomicOp::Rmw => AccessClass::ReadWrite,
        };
        let order = match op {
            AtomicOp::CasFailed => atomic_aux::failure_order(sync.aux),
            _ => atomic_aux::order(sync.aux),
        };
        let address =
            self.space
                .translate(&mut self.cursors[at].hits, sync.object, u64::from(size));
        EventKind::Atomic {
            access: Access {
                address,
                size,
                class,
                atomic: true,
            },
            op,
            order: order_of(order),
            value,
        }
    }

    /// The signal that ended a wait. In free mode, where the runtime cannot know it, the latest one on the condition since the
    /// wait began: waits that wake for another reason are then ordered too much, never too little.
    fn waking_signal(
        &self,
        at: usize,
        condition: Address,
        result: u64,
        sequence: u64,
    ) -> Option<EventIndex> {
        if let Some(&signal) = self.signals.get(&sequence) {
            return Some(signal);
        }
        if sequence != 0 || result != 0 || self.recording.header.mode != RunMode::Free {
            return None;
        }
        let began = self.cursors[at].wait_begin?;
        self.last_signal
            .get(&condition.0)
            .copied()
            .filter(|&signal| signal > began)
    }

    /// Notes about the event that was just made.
    fn after_event(&mut self, at: usize, sync: &SyncRecord<'_>, site: SiteId, index: EventIndex) {
        let argument = |number: usize| sync.arguments.get(number);
        let thread = self.cursors[at].thread;
        match sync.op {
            Op::ThreadStart => {
                let (low, high) = (argument(2), argument(3));
                let stack = self.space.place_fresh(
                    ObjectKind::Stack { thread },
                    low,
                    high.saturating_sub(low),
                    Some(index),
                );
                self.threads.set_stack(thread, stack);
                let (low, high) = (argument(4), argument(5));
                if low < high {
                    self.space.place_fresh(
                        ObjectKind::Tls { thread },
                        low,
                        high - low,
                        Some(index),
                    );
                }
            }
            Op::Allocate => {
                let ordinal = argument(1) as u32;
                let kind = match sync.aux {
                    record::allocation_kind::MAPPING => ObjectKind::Mapping {
                        thread,
                        site,
                        ordinal,
                    },
                    _ => ObjectKind::Heap {
                        thread,
                        site,
                        ordinal,
                    },
                };
                self.space
                    .place_fresh(kind, sync.object, argument(0), Some(index));
            }
            Op::CondWaitBegin => self.cursors[at].wait_begin = Some(index),
            Op::CondSignal | Op::CondBroadcast => {
                self.signals.insert(sync.sequence, index);
                if let EventKind::Signal { condition, .. } = self.events[index.index()].kind {
                    self.last_signal.insert(condition.0, index);
                }
            }
            Op::Blocked => {
                let cursor = &self.cursors[at];
                let EventKind::Blocked { on } = self.events[index.index()].kind else {
                    return;
                };
                self.blocked.push(BlockedRecord {
                    thread,
                    site,
                    context: cursor.context,
                    object: on,
                    op: Op::from_code(argument(0)),
                    holder: self.threads.known(argument(1)),
                    event: index,
                });
            }
            _ => {}
        }
    }

    fn blocked_on(&mut self, at: usize, sync: &SyncRecord<'_>) -> Address {
        match Op::from_code(sync.arguments.get(0)) {
            Some(Op::ThreadJoin) => Address(sync.object),
            Some(op) => match kind_of(op, sync.aux) {
                Some(kind) if kind.is_memory() => {
                    let data = self.data(at, sync.object);
                    self.identities.used(kind, data, sync.object)
                }
                Some(kind) => self
                    .identities
                    .used(kind, Address(sync.object), sync.object),
                None => self.data(at, sync.object),
            },
            None => self.data(at, sync.object),
        }
    }

    fn goal(&mut self, at: usize, sync: &SyncRecord<'_>, site: SiteId) {
        let class = record::AccessClass::from_code(sync.arguments.get(0))
            .map_or(AccessClass::ReadWrite, class_of);
        let size = sync.arguments.get(1);
        let address = self.data(at, sync.object);
        let cursor = &self.cursors[at];
        self.goals.push(GoalRecord {
            thread: cursor.thread,
            site,
            context: cursor.context,
            address,
            machine_address: sync.object,
            class,
            size,
        });
    }

    fn finish(mut self) -> LoadedTrace {
        let header = &self.recording.header;
        match header.state {
            RunState::Complete => {}
            RunState::Running => self.shortcomings.push(Shortcoming::NotEnded),
            RunState::Stopped => self.shortcomings.push(Shortcoming::Stopped),
            RunState::Crashed => self.shortcomings.push(Shortcoming::Crashed),
        }
        for stream in self
            .recording
            .streams
            .iter()
            .filter(|stream| stream.chunks.is_unfinished())
        {
            self.shortcomings.push(Shortcoming::Unfinished {
                thread: stream.thread,
            });
        }
        if self.recording.modules.unfinished_at.is_some() {
            self.shortcomings.push(Shortcoming::ModulesCutShort);
        }
        for cursor in &self.cursors {
            self.threads.exists(cursor.thread);
        }
        let mut accesses_executed = vec![0; self.threads.count()];
        for cursor in &self.cursors {
            accesses_executed[cursor.thread.index()] = cursor.executed;
            self.handovers
                .leaves(cursor.thread, cursor.ended, cursor.accesses);
        }
        if let Some(last) = self.running.map(|running| &self.cursors[running]) {
            self.handovers.ends(last.thread, last.ordinal);
        }
        let (objects, ids) = self.space.into_objects();
        let trace = Trace {
            mode: if header.mode == RunMode::Serial {
                Mode::Serial
            } else {
                Mode::Free
            },
            threads: self.threads.into_threads(|handle| ids[handle as usize]),
            modules: self.modules,
            sites: self.sites.list,
            contexts: self.contexts.list,
            objects,
            events: self.events,
            complete: self.shortcomings.is_empty(),
            not_reexecutable_from: self.not_reexecutable_from,
        };
        LoadedTrace {
            trace,
            header: header.clone(),
            goals: self.goals,
            blocked: self.blocked,
            sync_objects: self.identities.into_objects(),
            shortcomings: self.shortcomings,
            accesses_executed,
            handovers: self.handovers,
        }
    }
}

pub(crate) const fn class_of(class: record::AccessClass) -> AccessClass {
    match class {
        record::AccessClass::Read => AccessClass::Read,
        record::AccessClass::Write => AccessClass::Write,
        record::AccessClass::ReadWrite => AccessClass::ReadWrite,
    }
}

/// An order that does not exist counts as the strongest: it orders too much, never too little.
const fn order_of(code: u16) -> MemoryOrder {
    match code {
        atomic_aux::RELAXED => MemoryOrder::Relaxed,
        atomic_aux::CONSUME => MemoryOrder::Consume,
        atomic_aux::ACQUIRE => MemoryOrder::Acquire,
        atomic_aux::RELEASE => MemoryOrder::Release,
        atomic_aux::ACQ_REL => MemoryOrder::AcqRel,
        _ => MemoryOrder::SeqCst,
    }
}
