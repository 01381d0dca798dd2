use super::*;
use rashomon_event::{Access, AccessClass};
use rashomon_testkit::TraceBuilder;

const WORD: Address = Address(0x1000);
const OTHER: Address = Address(0x2000);
const A: ThreadId = ThreadId(0);
const B: ThreadId = ThreadId(1);
const MUTEX: SiteId = SiteId(1);
const RWLOCK: SiteId = SiteId(2);
const TRY: SiteId = SiteId(3);
const PROGRAM: SiteId = SiteId(4);

#[derive(Default)]
struct Made(Vec<(ThreadId, EventKind, SiteId)>);

impl Made {
    fn atomic(mut self, thread: ThreadId, site: SiteId, op: AtomicOp, order: MemoryOrder, at: Address, value: u64) -> Self {
        let class = match op {
            AtomicOp::Load | AtomicOp::CasFailed => AccessClass::Read,
            AtomicOp::Store => AccessClass::Write,
            AtomicOp::Rmw => AccessClass::ReadWrite,
        };
        let access = Access { address: at, size: 4, class, atomic: true };
        self.0.push((thread, EventKind::Atomic { access, op, order, value }, site));
        self
    }
    fn sets(self, thread: ThreadId, site: SiteId, value: u64) -> Self {
        let order = if value == 0 { MemoryOrder::Release } else { MemoryOrder::Acquire };
        self.atomic(thread, site, AtomicOp::Rmw, order, WORD, value)
    }
    fn gives(self, thread: ThreadId, value: u64) -> Self {
        self.atomic(thread, RWLOCK, AtomicOp::Rmw, MemoryOrder::Release, WORD, value)
    }
    fn reads(self, thread: ThreadId, order: MemoryOrder, value: u64) -> Self {
        self.atomic(thread, PROGRAM, AtomicOp::Load, order, WORD, value)
    }
    /// What becomes of the operations.
    fn recognised(self) -> (Vec<EventKind>, Last, Trace) {
        let mut builder = TraceBuilder::with_threads(2);
        let from = builder.len();
        for (thread, kind, site) in self.0 {
            builder.push_at(thread, kind, site);
        }
        let mut trace = builder.build();
        let maker = |_: &Trace, event: &Event| match event.site {
            MUTEX => Some(Maker { kind: MadeLock::Mutex, may_wait: true }),
            TRY => Some(Maker { kind: MadeLock::Mutex, may_wait: false }),
            RWLOCK => Some(Maker { kind: MadeLock::RwLock, may_wait: true }),
            _ => None,
        };
        let last = recognise_with(&mut trace, maker);
        (trace.events.range(from..trace.events.len()).map(|event| event.kind).collect(), last, trace)
    }
    fn leaves_alone(self) {
        let before: Vec<_> = self.0.iter().map(|(_, kind, _)| *kind).collect();
        let (after, _, trace) = self.recognised();
        assert_eq!(after, before);
        assert!(trace.made_locks.is_empty());
    }
}

fn takes(mode: LockMode, may_wait: bool) -> EventKind {
    EventKind::Acquire { lock: WORD, mode, may_wait }
}

fn gives_back(mode: LockMode) -> EventKind {
    EventKind::Release { lock: WORD, mode }
}

const IN_VAIN: EventKind = EventKind::Other(OtherOp::FailsToLock);

#[test]
fn a_mutex_is_one() {
    let made = Made::default()
        .sets(A, MUTEX, 1)
        .atomic(B, MUTEX, AtomicOp::CasFailed, MemoryOrder::Relaxed, WORD, 1)
        .sets(B, MUTEX, 2)
        .reads(A, MemoryOrder::Relaxed, 2)
        .sets(A, MUTEX, 0)
        .sets(B, MUTEX, 2)
        .sets(B, MUTEX, 0)
        .sets(A, TRY, 1)
        .sets(A, MUTEX, 0);
    let (kinds, last, trace) = made.recognised();
    let (take, give) = (takes(LockMode::Exclusive, true), gives_back(LockMode::Exclusive));
    let attempt = takes(LockMode::Exclusive, false);
    assert_eq!(kinds, [take, IN_VAIN, IN_VAIN, IN_VAIN, give, take, give, attempt, give]);
    assert_eq!(trace.made_locks.get(&WORD), Some(&MadeLock::Mutex));
    assert!(last.holders[&WORD].is_empty() && last.wanted.is_empty());
}

#[test]
fn readers_share_and_a_writer_does_not() {
    let made = Made::default()
        .sets(A, RWLOCK, 1)
        .sets(B, RWLOCK, 2)
        .gives(A, 1)
        .gives(B, 0)
        .sets(A, RWLOCK, READERS)
        .sets(B, RWLOCK, READERS | 1 << 31)
        .gives(A, 1 << 31)
        .sets(B, RWLOCK, READERS);
    let (kinds, last, _) = made.recognised();
    let [read, write] = [LockMode::Shared, LockMode::Exclusive].map(|mode| (takes(mode, true), gives_back(mode)));
    assert_eq!(kinds, [read.0, read.0, read.1, read.1, write.0, IN_VAIN, write.1, write.0]);
    assert_eq!(last.holders[&WORD], [B]);
}

/// A flag, a word that others write, one that somebody else gives back, one with values from nowhere.
#[test]
fn what_does_something_else_is_no_lock() {
    Made::default().sets(A, PROGRAM, 1).sets(A, PROGRAM, 0).leaves_alone();
    Made::default().sets(A, MUTEX, 1).sets(A, PROGRAM, 0).leaves_alone();
    Made::default().sets(A, MUTEX, 1).sets(B, MUTEX, 0).leaves_alone();
    Made::default().sets(A, MUTEX, 1).sets(A, MUTEX, 2).leaves_alone();
    Made::default().sets(A, MUTEX, 1).reads(B, MemoryOrder::Relaxed, 3).leaves_alone();
    Made::default().sets(A, RWLOCK, READERS).gives(A, 1).leaves_alone();
    Made::default().sets(A, MUTEX, 1).sets(A, MUTEX, 0).reads(B, MemoryOrder::Acquire, 0).leaves_alone();
    let relaxed = Made::default().atomic(A, MUTEX, AtomicOp::Rmw, MemoryOrder::Relaxed, WORD, 1);
    relaxed.leaves_alone();
}

fn blocked(thread: ThreadId, object: Address) -> BlockedRecord {
    BlockedRecord {
        thread,
        site: SiteId(0),
        context: ContextId::ROOT,
        object,
        op: None,
        holder: None,
        repeats: false,
        event: EventIndex(0),
    }
}

#[test]
fn who_waits_for_each_other_is_a_cycle() {
    let take = |made: Made, thread, at, value| made.atomic(thread, MUTEX, AtomicOp::Rmw, MemoryOrder::Acquire, at, value);
    let made = take(take(Made::default(), A, WORD, 1), B, OTHER, 1);
    let made = take(take(made, A, OTHER, 2), B, WORD, 2);
    let (_, last, _) = made.recognised();
    assert_eq!(last.wanted_at(A, OTHER), Some(OTHER));
    assert_eq!(last.wanted_at(A, WORD), None, "it sleeps elsewhere");
    let waits = [(blocked(ThreadId(7), Address(3)), Address(3)), (blocked(A, OTHER), OTHER), (blocked(B, WORD), WORD)];
    let members = cycle(&waits, &last).expect("a cycle");
    let told: Vec<_> = members.iter().map(|record| (record.thread, record.object, record.holder)).collect();
    assert_eq!(told, [(A, OTHER, Some(B)), (B, WORD, Some(A))]);
    assert!(cycle(&waits[..2], &last).is_none());
}
