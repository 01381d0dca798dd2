//! Γ: what is remembered of each thread's history (thesis, Definition 3.3.2; see [`crate::relation`] for why this suffices).

use crate::relation::Relation;
use rashomon_event::{Address, AtomicOp, Event, EventKind, LockMode, ThreadId};
use rustc_hash::FxHashMap;

/// An element of a context's path: a held lock.
pub type Lock = (Address, LockMode);

#[derive(Clone, Debug, Default)]
struct Thread {
    /// Held locks in the order of acquisition.
    held: Vec<Lock>,
    /// c: outgoing events so far.
    outgoing: u32,
    /// The highest number of an outgoing event that can never be dead.
    received: u32,
    /// Mutexes released and not acquired again, with the number of the release. Ascending.
    pending: Vec<(Address, u32)>,
}

/// The concurrency contexts of all threads while a trace goes by.
pub struct Contexts {
    relation: Relation,
    threads: Vec<Thread>,
    /// Who acquired a lock last.
    acquirer: FxHashMap<Address, ThreadId>,
}

impl Contexts {
    pub fn new(threads: usize, relation: Relation) -> Self {
        Self { relation, threads: vec![Thread::default(); threads], acquirer: FxHashMap::default() }
    }

    /// The locks held, where the detector looks at them.
    pub fn locks(&self, thread: ThreadId) -> &[Lock] {
        if self.relation.lock_sets { &self.threads[thread.index()].held } else { &[] }
    }

    /// c of an access made now.
    pub fn outgoing(&self, thread: ThreadId) -> u32 {
        self.threads[thread.index()].outgoing
    }

    /// ε of an access made now: the highest number of an outgoing event that is not dead.
    pub fn alive(&self, thread: ThreadId) -> u32 {
        let thread = &self.threads[thread.index()];
        thread.received.max(thread.pending.last().map_or(0, |&(_, number)| number))
    }

    pub fn step(&mut self, event: &Event) {
        let thread = event.thread;
        let atomics = self.relation.edges().is_some_and(|edges| edges.atomics);
        match event.kind {
            EventKind::Acquire { lock, mode, .. } => self.acquire(thread, lock, mode),
            EventKind::WaitEnd { mutex, .. } => self.acquire(thread, mutex, LockMode::Exclusive),
            EventKind::Release { lock, mode } => self.release(thread, lock, mode),
            EventKind::WaitBegin { mutex, .. } => self.release(thread, mutex, LockMode::Exclusive),
            // A relaxed store passes on what an earlier release fence saw: the fence is what counts.
            EventKind::Atomic { op: AtomicOp::Store | AtomicOp::Rmw, order, .. } if atomics && order.releases() => {
                self.send(thread)
            }
            EventKind::Fence { order } if atomics && order.releases() => self.send(thread),
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

    /// An outgoing event that others may receive from at any time.
    fn send(&mut self, thread: ThreadId) {
        let thread = &mut self.threads[thread.index()];
        thread.outgoing += 1;
        thread.received = thread.outgoing;
    }

    fn acquire(&mut self, thread: ThreadId, lock: Address, mode: LockMode) {
        let alone = self.acquirer.insert(lock, thread) == Some(thread);
        let known = &mut self.threads[thread.index()];
        known.held.push((lock, mode));
        let place = known.pending.iter().position(|&(pending, _)| pending == lock);
        if let Some(place) = place
            && (!alone || mode == LockMode::Exclusive)
        {
            let (_, number) = known.pending.remove(place);
            if !alone {
                known.received = known.received.max(number);
            }
        }
    }

    fn release(&mut self, thread: ThreadId, lock: Address, mode: LockMode) {
        let known = &mut self.threads[thread.index()];
        if let Some(place) = known.held.iter().rposition(|&held| held == (lock, mode)) {
            known.held.remove(place);
        }
        if self.relation.edges().is_some_and(|edges| edges.locks) {
            known.outgoing += 1;
            known.pending.retain(|&(pending, _)| pending != lock);
            known.pending.push((lock, known.outgoing));
        }
    }
}
