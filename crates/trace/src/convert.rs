//! What each operation of the recorder means as an event.

use crate::header::RunMode;
use crate::identity::{SyncKind, kind_of, lock_kind_of};
use crate::load::Loader;
use crate::loaded::{BlockedRecord, Flow, GoalRecord, LifeRecord, Shortcoming};
use crate::misuse::Moment;
use crate::stream::SyncRecord;
use rashomon_abi::deep::loop_kind;
use rashomon_abi::record::{self, Op, atomic_aux, lock_kind, sync_source};
use rashomon_event::{
    Access, AccessClass, Address, AtomicOp, EventIndex, EventKind, LockMode, LoopKind, LoopMark, MemoryOrder, ObjectKind,
    OtherOp, SiteId, ThreadId,
};

/// `ETIMEDOUT` of x86-64 Linux, the result of a condition wait that ran out of time.
const TIMED_OUT: u64 = 110;

/// Whether a lock or a join waits for its turn, and does not merely try.
const fn may_wait(sync: &SyncRecord) -> bool {
    sync.aux & lock_kind::TRY == 0
}

/// Of operations that are events of no other kind.
const fn other_of(op: Op) -> OtherOp {
    match op {
        Op::Allocate => OtherOp::Allocates,
        Op::ThreadDetach => OtherOp::Detaches,
        Op::LockFailed | Op::SemaphoreFailed => OtherOp::FailsToLock,
        Op::LockAgain => OtherOp::LocksAgain,
        Op::UnlockInner => OtherOp::UnlocksInner,
        Op::Blocking => OtherOp::MayBlock,
        Op::Yield => OtherOp::Yields,
        Op::Sleep => OtherOp::Sleeps,
        Op::Fork => OtherOp::MakesProcess,
        Op::ExitBegin => OtherOp::AsksForEnd,
        Op::ExitGoesOn => OtherOp::EndsProcess,
        Op::CallBegin => OtherOp::CallsUnseen,
        Op::CallEnd => OtherOp::ReturnsUnseen,
        _ => OtherOp::Unknown,
    }
}

impl Loader<'_> {
    fn data(&mut self, at: usize, machine: u64) -> Address {
        self.space.translate(&mut self.cursors[at].hits, machine, 1)
    }

    /// The identity of the operation's own object.
    fn identity(&mut self, at: usize, sync: &SyncRecord) -> Address {
        let Some(kind) = kind_of(sync.op, sync.aux) else {
            return self.data(at, sync.object);
        };
        let data = if kind.is_memory() { self.data(at, sync.object) } else { Address(sync.object) };
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
        self.identities.used(lock_kind_of(lock_kind::MUTEX), data, machine)
    }

    fn child(&mut self, number: u64) -> Option<ThreadId> {
        self.threads.known(number)
    }

    /// The event that an operation makes, if any.
    pub(crate) fn event_kind(&mut self, at: usize, sync: &SyncRecord, site: SiteId) -> Option<EventKind> {
        let argument = |number: usize| sync.arguments.get(number);
        let thread = self.cursors[at].thread;
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
                None => EventKind::Other(OtherOp::Unknown),
            },
            Op::ThreadJoin => self
                .child(sync.object)
                .map_or(EventKind::Other(OtherOp::Unknown), |child| EventKind::Join { child, may_wait: may_wait(sync) }),

            Op::Lock | Op::LockShared | Op::Unlock | Op::UnlockShared | Op::LockRequest => self.lock(at, sync),
            Op::LockInit | Op::LockDestroy | Op::CondInit | Op::CondDestroy | Op::BarrierInit | Op::BarrierDestroy => {
                self.identity(at, sync);
                return None;
            }
            Op::SemaphoreInit | Op::SemaphoreDestroy => {
                self.semaphore_life(at, sync);
                return None;
            }

            Op::CondWaitBegin => EventKind::WaitBegin { condition: self.identity(at, sync), mutex: self.mutex(at, argument(0)) },
            Op::CondWaitEnd => self.wait_end(at, sync),
            Op::CondSignal => EventKind::Signal { condition: self.identity(at, sync), broadcast: false },
            Op::CondBroadcast => EventKind::Signal { condition: self.identity(at, sync), broadcast: true },

            Op::BarrierEnter => EventKind::BarrierEnter { barrier: self.identity(at, sync), generation: argument(0) as u32 },
            Op::BarrierExit => EventKind::BarrierExit { barrier: self.identity(at, sync), generation: argument(0) as u32 },
            Op::SemaphorePost => EventKind::Post { semaphore: self.identity(at, sync) },
            Op::SemaphoreWait => EventKind::Take { semaphore: self.identity(at, sync) },
            Op::OnceBegin => EventKind::OnceBegin { once: self.identity(at, sync) },
            Op::OnceDone => EventKind::OnceDone { once: self.identity(at, sync) },
            Op::OnceSeen => EventKind::OnceSeen { once: self.identity(at, sync) },
            Op::Release => EventKind::ReleaseObject { object: self.identity(at, sync) },
            Op::Acquire => EventKind::AcquireObject { object: self.identity(at, sync) },

            Op::AtomicLoad | Op::AtomicStore | Op::AtomicRmw | Op::AtomicCasFailed => self.atomic(at, sync),
            Op::Fence => EventKind::Fence { order: order_of(atomic_aux::order(sync.aux)) },

            Op::GoalReached => {
                self.goal(at, sync, site);
                return None;
            }
            Op::Blocked => EventKind::Blocked { on: self.blocked_on(at, sync) },
            Op::Truncated => {
                let from = self.events.len() as u32;
                self.shortcomings.push(Shortcoming::Truncated { thread: thread.0, from });
                return None;
            }
            Op::ExternalInput => {
                self.note_external_input();
                return None;
            }
            Op::CallReaches => {
                self.call_reaches(sync);
                return None;
            }
            Op::LoopEnter | Op::LoopExit => {
                self.wait_loop(at, sync);
                return None;
            }
            Op::SignalEnter | Op::SignalExit => return self.handler(at, sync.op),
            Op::Free | Op::ProcessEnd => return None,
            op => EventKind::Other(other_of(op)),
        })
    }

    /// Where it interrupts what, and no event.
    fn handler(&mut self, at: usize, op: Op) -> Option<EventKind> {
        self.flow(at, if op == Op::SignalEnter { Flow::Interrupted } else { Flow::Continues });
        None
    }

    fn wait_loop(&mut self, at: usize, sync: &SyncRecord) {
        let kind = match u64::from(sync.aux) {
            loop_kind::CONDITION => LoopKind::Condition,
            loop_kind::SPIN => LoopKind::Spin,
            loop_kind::SPIN_MODIFYING => LoopKind::SpinModifying,
            loop_kind::POLL => LoopKind::Poll,
            // Of a plugin that knows more than we do.
            _ => return,
        };
        let condition = Some(sync.arguments.get(0)).filter(|condition| *condition != 0).map(|machine| {
            let data = self.data(at, machine);
            self.identities.used(SyncKind::Condition, data, machine)
        });
        let (before, thread) = (EventIndex(self.events.len() as u32), self.cursors[at].thread);
        let table = self.sites.intern(sync.object);
        self.loops.push(LoopMark { before, thread, table, kind, condition, enters: sync.op == Op::LoopEnter });
    }

    fn wait_end(&mut self, at: usize, sync: &SyncRecord) -> EventKind {
        let argument = |number: usize| sync.arguments.get(number);
        let condition = self.identity(at, sync);
        let woken_by = self.waking_signal(at, condition, argument(1), argument(2));
        let mutex = self.mutex(at, argument(0));
        EventKind::WaitEnd { condition, mutex, woken_by, timed_out: argument(1) == TIMED_OUT }
    }

    fn lock(&mut self, at: usize, sync: &SyncRecord) -> EventKind {
        let lock = self.identity(at, sync);
        let shared = match sync.op {
            Op::LockRequest => sync.aux & 1 == 1,
            op => matches!(op, Op::LockShared | Op::UnlockShared),
        };
        let mode = if shared { LockMode::Shared } else { LockMode::Exclusive };
        match sync.op {
            Op::LockRequest => EventKind::Request { lock, mode },
            Op::Unlock | Op::UnlockShared => EventKind::Release { lock, mode },
            _ => EventKind::Acquire { lock, mode, may_wait: may_wait(sync) },
        }
    }

    /// Notes it if an object begins or ends its life.
    pub(crate) fn life(&mut self, at: usize, sync: &SyncRecord, moment: Moment) {
        let begins = matches!(sync.op, Op::LockInit | Op::CondInit | Op::BarrierInit);
        if begins || matches!(sync.op, Op::LockDestroy | Op::CondDestroy | Op::BarrierDestroy) {
            let data = self.data(at, sync.object);
            self.lives.push(LifeRecord { data, begins, at: moment });
        }
    }

    /// A semaphore begins or is over. A named one does so where its process opens it for the first and closes it for the last
    /// time.
    fn semaphore_life(&mut self, at: usize, sync: &SyncRecord) {
        let begins = sync.op == Op::SemaphoreInit;
        if sync.aux & record::semaphore::NAMED != 0 {
            let open = self.named.entry(sync.object).or_default();
            let before = *open;
            *open = if begins { before.saturating_add(1) } else { before.saturating_sub(1) };
            if before != u32::from(!begins) {
                return;
            }
        }
        let semaphore = self.identity(at, sync);
        if begins {
            self.semaphores.insert(semaphore, sync.arguments.get(0).min(record::semaphore::MOST));
        }
    }

    fn atomic(&mut self, at: usize, sync: &SyncRecord) -> EventKind {
        let (op, value) = match sync.op {
            Op::AtomicLoad => (AtomicOp::Load, 0),
            Op::AtomicStore => (AtomicOp::Store, 0),
            Op::AtomicRmw => (AtomicOp::Rmw, 1),
            _ => (AtomicOp::CasFailed, 0),
        };
        let value = sync.arguments.get(value);
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
        let address = self.space.translate(&mut self.cursors[at].hits, sync.object, u64::from(size));
        EventKind::Atomic { access: Access { address, size, class, atomic: true }, op, order: order_of(order), value }
    }

    /// The signal that ended a wait. In free mode, where the runtime cannot know it, the latest one on the condition since the
    /// wait began: waits that wake for another reason are then ordered too much, never too little.
    fn waking_signal(&self, at: usize, condition: Address, result: u64, sequence: u64) -> Option<EventIndex> {
        if let Some(&signal) = self.signals.get(&sequence) {
            return Some(signal);
        }
        if sequence != 0 || result != 0 || self.recording.header.mode != RunMode::Free {
            return None;
        }
        let began = self.cursors[at].wait_begin?;
        self.last_signal.get(&condition.0).copied().filter(|&signal| signal > began)
    }

    /// Notes about the event that was just made.
    pub(crate) fn after_event(&mut self, at: usize, sync: &SyncRecord, site: SiteId, index: EventIndex) {
        let argument = |number: usize| sync.arguments.get(number);
        let thread = self.cursors[at].thread;
        match sync.op {
            Op::ThreadStart => {
                let (low, high) = (argument(2), argument(3));
                let stack = self.space.place_fresh(ObjectKind::Stack { thread }, low, high.saturating_sub(low), Some(index));
                self.threads.set_stack(thread, stack);
                let (low, high) = (argument(4), argument(5));
                if low < high {
                    self.space.place_fresh(ObjectKind::Tls { thread }, low, high - low, Some(index));
                }
            }
            Op::Allocate => {
                let ordinal = argument(1) as u32;
                let kind = match sync.aux {
                    record::allocation_kind::MAPPING => ObjectKind::Mapping { thread, site, ordinal },
                    record::allocation_kind::DESCRIPTOR => ObjectKind::Descriptor { thread, site, ordinal },
                    _ => ObjectKind::Heap { thread, site, ordinal },
                };
                self.space.place_block(kind, sync.object, (argument(0), argument(2)), Some(index));
            }
            Op::CallBegin => self.call_begins(at, sync, index),
            Op::CallEnd => self.call_ends(at, sync, index),
            Op::CondWaitBegin => self.cursors[at].wait_begin = Some(index),
            Op::CondSignal | Op::CondBroadcast => {
                self.signals.insert(sync.sequence, index);
                if let EventKind::Signal { condition, .. } = self.events.kind(index.index()) {
                    self.last_signal.insert(condition.0, index);
                }
            }
            Op::Blocked => {
                let cursor = &self.cursors[at];
                let EventKind::Blocked { on } = self.events.kind(index.index()) else {
                    return;
                };
                self.blocked.push(BlockedRecord {
                    thread,
                    site,
                    context: cursor.context,
                    object: on,
                    op: Op::from_code(argument(0)),
                    holder: self.threads.known(argument(1)),
                    repeats: argument(2) == 1,
                    event: index,
                });
            }
            _ => {}
        }
    }

    fn blocked_on(&mut self, at: usize, sync: &SyncRecord) -> Address {
        match Op::from_code(sync.arguments.get(0)) {
            Some(Op::ThreadJoin) => Address(sync.object),
            Some(op) => match kind_of(op, waited_source(op, sync)) {
                Some(kind) if kind.is_memory() => {
                    let data = self.data(at, sync.object);
                    self.identities.used(kind, data, sync.object)
                }
                Some(kind) => self.identities.used(kind, Address(sync.object), sync.object),
                None => self.data(at, sync.object),
            },
            None => self.data(at, sync.object),
        }
    }

    fn goal(&mut self, at: usize, sync: &SyncRecord, site: SiteId) {
        let class = record::AccessClass::from_code(sync.arguments.get(0)).map_or(AccessClass::ReadWrite, class_of);
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
            atomic: sync.aux != 0,
            ordinal: cursor.ordinal,
            executed: (sync.arguments.count() > 2).then(|| sync.arguments.get(2)),
        });
    }
}

pub(crate) const fn class_of(class: record::AccessClass) -> AccessClass {
    match class {
        record::AccessClass::Read => AccessClass::Read,
        record::AccessClass::Write => AccessClass::Write,
        record::AccessClass::ReadWrite => AccessClass::ReadWrite,
        record::AccessClass::End => AccessClass::End,
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

/// What is observed by who waits: the record does not say its source, but descriptors have no addresses of memory.
const fn waited_source(op: Op, sync: &SyncRecord) -> u16 {
    const PAGE: u64 = 4096;
    const END_OF_MEMORY: u64 = 1 << 47;
    match (op, sync.aux) {
        (Op::Acquire, 0) if sync.object >= PAGE && sync.object < END_OF_MEMORY => sync_source::FUTEX,
        (Op::Acquire, 0) => sync_source::FILE,
        (_, aux) => aux,
    }
}
