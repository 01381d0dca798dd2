//! What the runtime's filters know of what a thread sent (`rashomon_logic::sent`) is what this crate's readable form knows, after
//! every event of every trace: the forms cannot disagree on which accesses are redundant without disagreeing here. The filter
//! before the recorder as a whole, and the one before detection, are compared with this crate on generated programs in
//! `crates/cli/tests/recorded_filter.rs`.

use rashomon_event::{Address, AtomicOp, Event, EventKind, LockMode, ThreadId, Trace};
use rashomon_filter::Relation;
use rashomon_filter::context::Contexts;
use rashomon_logic::sent::Sent;
use rashomon_order::happens_before::thread_count;
use rashomon_testkit::{Features, Shape, describe, enumerate, random};
use std::collections::HashMap;

/// More mutexes than any of these traces has: nothing counts as received for want of room.
const ROOM: usize = 8;

/// One thread as the runtime follows it.
#[derive(Default)]
struct Thread<const N: usize> {
    outgoing: u32,
    sent: Sent<N>,
}

/// As `runtime/src/record/tree/{mod,locks,context}.rs` do: numbers of outgoing events, and who acquired a lock last.
struct Runtime<const N: usize> {
    threads: Vec<Thread<N>>,
    acquirers: HashMap<Address, ThreadId>,
    numbers: HashMap<Address, u32>,
}

impl<const N: usize> Runtime<N> {
    fn new(threads: usize) -> Self {
        let threads = (0..threads).map(|_| Thread::default()).collect();
        Self { threads, acquirers: HashMap::new(), numbers: HashMap::new() }
    }

    fn number(&mut self, lock: Address) -> u32 {
        let next = self.numbers.len() as u32;
        *self.numbers.entry(lock).or_insert(next)
    }

    fn step(&mut self, event: &Event) {
        let thread = event.thread.index();
        match event.kind {
            EventKind::Acquire { lock, mode, .. } => self.acquire(event.thread, lock, mode == LockMode::Exclusive),
            EventKind::WaitEnd { mutex, .. } => self.acquire(event.thread, mutex, true),
            EventKind::Release { lock, .. } | EventKind::WaitBegin { mutex: lock, .. } => {
                let number = self.number(lock);
                let thread = &mut self.threads[thread];
                thread.outgoing += 1;
                thread.sent.release(number, thread.outgoing);
            }
            EventKind::Atomic { op: AtomicOp::Store | AtomicOp::Rmw, order, .. } | EventKind::Fence { order }
                if order.releases() =>
            {
                self.send(thread)
            }
            EventKind::Fork { .. }
            | EventKind::End
            | EventKind::Signal { .. }
            | EventKind::BarrierEnter { .. }
            | EventKind::Post { .. }
            | EventKind::OnceDone { .. }
            | EventKind::ReleaseObject { .. } => self.send(thread),
            _ => {}
        }
    }

    fn send(&mut self, thread: usize) {
        let thread = &mut self.threads[thread];
        thread.outgoing += 1;
        thread.sent.send(thread.outgoing);
    }

    fn acquire(&mut self, thread: ThreadId, lock: Address, exclusive: bool) {
        let alone = self.acquirers.insert(lock, thread) == Some(thread);
        let number = self.number(lock);
        self.threads[thread.index()].sent.acquire(number, exclusive, |_| alone);
    }
}

/// How many events left something that was sent dead.
fn compare(trace: &Trace) -> usize {
    let threads = thread_count(trace);
    let mut model = Contexts::new(threads, Relation::RECORDER);
    let mut runtime = Runtime::<ROOM>::new(threads);
    let mut small = Runtime::<1>::new(threads);
    let mut dead = 0;
    for (place, event) in trace.events.iter().enumerate() {
        model.step(&event);
        runtime.step(&event);
        small.step(&event);
        let thread = event.thread;
        let known = &runtime.threads[thread.index()];
        let wanted = (model.outgoing(thread), model.alive(thread));
        assert_eq!((known.outgoing, known.sent.alive()), wanted, "event {place} of\n{}", describe(trace));
        // Want of room only makes it keep more.
        assert!(small.threads[thread.index()].sent.alive() >= wanted.1, "event {place} of\n{}", describe(trace));
        dead += usize::from(wanted.1 < wanted.0);
    }
    dead
}

#[test]
fn on_every_small_trace() {
    let lock = |at: u64| Address(0x20_0000 + 64 * at);
    let acquire = |at| EventKind::Acquire { lock: lock(at), mode: LockMode::Exclusive, may_wait: true };
    let share = |at| EventKind::Acquire { lock: lock(at), mode: LockMode::Shared, may_wait: true };
    let release = |at, mode| EventKind::Release { lock: lock(at), mode };
    let given = EventKind::ReleaseObject { object: Address(0x30_0000) };
    let (mut count, mut dead) = (0, 0);
    for (threads, length, alphabet) in [
        (2, 7, vec![acquire(0), release(0, LockMode::Exclusive), given]),
        (2, 7, vec![acquire(0), release(0, LockMode::Exclusive), share(0), release(0, LockMode::Shared)]),
        (2, 6, vec![acquire(0), release(0, LockMode::Exclusive), acquire(1), release(1, LockMode::Exclusive)]),
        (3, 6, vec![acquire(0), release(0, LockMode::Exclusive)]),
    ] {
        enumerate(threads, length, &alphabet, &mut |trace| {
            dead += compare(&trace);
            count += 1;
        });
    }
    assert!(count > 1000 && dead > 1000, "{count} traces, {dead} events");
}

#[test]
fn on_random_traces() {
    let mut dead = 0;
    for seed in 0..4000u64 {
        let shape = Shape {
            threads: 2 + (seed % 4) as u32,
            events: 10 + (seed % 90) as usize,
            variables: 1,
            locks: 1 + seed % 4,
            features: Features::ALL,
        };
        dead += compare(&random(seed, shape));
    }
    assert!(dead > 1000, "{dead} events");
}
