//! Happens-before by vector clocks.
//!
//! Computed: C++20 happens-before ([intro.races]; `consume` as `acquire`) over a totally ordered trace: release sequences (see
//! [`crate::release_sequence`]), fences (a sequentially consistent fence is both a release and an acquire fence; an acquire fence
//! receives what earlier relaxed loads of its thread saw; a store after a release fence passes on what the fence saw), mutexes (a
//! shared release is received by exclusive acquisitions only), fork and join, conditions (through the mutex, and from the signal
//! to the wake-up), barriers (all entries of a generation to each exit), semaphores (all earlier posts to a take), once,
//! publication (all earlier ones to an observation), and what calls into unseen code may have ordered ([`crate::gaps`]). The
//! *weak* order (Carril, Tichy, "Interleaving Generation for Data Race and Deadlock Reproduction", SEPS 2015, §3) leaves out
//! locks, atomics, and posts that a take can do without (see [`crate::semaphores`]).
//!
//! Guarantee: exact for the edges above. Deviations, towards more order: (1) `signal` to wake-up is an edge though C++ has it
//! only through the mutex; (2) a wake-up whose signal is unknown receives from every earlier signal of the condition; (3) those
//! of `release_sequence`.

use crate::clock::{JoinedClocks, ThreadClock, VectorClock};
use crate::release_sequence::Locations;
pub use crate::release_sequence::ReleaseSequences;
use crate::semaphores::{Needed, initial_counts};
use rashomon_event::{Address, AtomicOp, Event, EventIndex, EventKind, EventSet, LockMode, MemoryOrder, ThreadId, Trace};
use rustc_hash::FxHashMap;

/// Which edges beside those of thread creation, conditions, barriers, semaphores, once and publication.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Edges {
    pub locks: bool,
    pub atomics: bool,
    /// From every earlier post to a take, not only from as many as it needs.
    pub spare_posts: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Model {
    pub release_sequences: ReleaseSequences,
    pub edges: Edges,
}

impl Model {
    pub const CPP20: Self =
        Self { release_sequences: ReleaseSequences::Cpp20, edges: Edges { locks: true, atomics: true, spare_posts: true } };
    pub const C11: Self =
        Self { release_sequences: ReleaseSequences::C11, edges: Edges { locks: true, atomics: true, spare_posts: true } };
    /// Carril, Tichy §3: without mutex edges (and without atomics and spare posts).
    pub const WEAK: Self =
        Self { release_sequences: ReleaseSequences::Cpp20, edges: Edges { locks: false, atomics: false, spare_posts: false } };
}

#[derive(Default)]
struct LockClock {
    exclusive: Option<VectorClock>,
    shared: JoinedClocks,
}

#[derive(Default)]
struct Fences {
    /// What the latest release fence saw.
    released: Option<VectorClock>,
    /// What loads have seen that no acquire has received yet.
    seen: JoinedClocks,
}

pub struct HappensBefore {
    model: Model,
    threads: Vec<ThreadClock>,
    fences: Vec<Fences>,
    locks: FxHashMap<Address, LockClock>,
    locations: Locations,
    /// Signals that woke somebody.
    waking: EventSet,
    signals: FxHashMap<EventIndex, VectorClock>,
    conditions: FxHashMap<Address, JoinedClocks>,
    barriers: FxHashMap<(Address, u32), JoinedClocks>,
    /// Semaphores, once controls and released objects.
    objects: FxHashMap<Address, JoinedClocks>,
    /// Semaphores, where only some posts count.
    needed: FxHashMap<Address, Needed>,
    /// What calls into unseen code may have ordered, from the next one on: see [`Trace::kept`].
    kept: std::vec::IntoIter<(EventIndex, EventIndex)>,
    /// What the first events of `kept` passed on.
    passed: FxHashMap<EventIndex, Option<VectorClock>>,
}

impl HappensBefore {
    pub fn new(trace: &Trace, model: Model) -> Self {
        let count = thread_count(trace);
        let mut waking = EventSet::default();
        for event in EventSet::union([trace.events.besides_accesses()]) {
            // A signal behind the end of the trace is damage.
            if let EventKind::WaitEnd { woken_by: Some(signal), .. } = trace.kind(event)
                && signal.index() < trace.events.len()
            {
                waking.insert(signal);
            }
        }
        let counts = if model.edges.spare_posts { FxHashMap::default() } else { initial_counts(trace) };
        let needed = counts.into_iter().map(|(semaphore, initial)| (semaphore, Needed::new(initial))).collect();
        Self {
            model,
            threads: (0..count).map(|thread| ThreadClock::new(ThreadId(thread as u32), count)).collect(),
            fences: (0..count).map(|_| Fences::default()).collect(),
            locks: FxHashMap::default(),
            locations: Locations::new(model.release_sequences),
            waking,
            signals: FxHashMap::default(),
            conditions: FxHashMap::default(),
            barriers: FxHashMap::default(),
            objects: FxHashMap::default(),
            needed,
            passed: trace.kept.iter().map(|&(before, _)| (before, None)).collect(),
            kept: trace.kept.clone().into_iter(),
        }
    }

    /// How many threads the trace names.
    pub fn threads(&self) -> usize {
        self.threads.len()
    }

    pub fn clock(&self, thread: ThreadId) -> &ThreadClock {
        &self.threads[thread.index()]
    }

    /// The present moment of a thread.
    pub fn now(&mut self, thread: ThreadId) -> VectorClock {
        self.threads[thread.index()].now()
    }

    /// The first half of an event: what it receives. Between the halves, [`Self::clock`] is the clock *of* the event. Events come
    /// in the order of the trace.
    pub fn receive(&mut self, index: EventIndex, event: &Event) {
        while let Some(&(before, after)) = self.kept.as_slice().first().filter(|(_, after)| *after <= index) {
            if after == index
                && let Some(Some(sent)) = self.passed.get(&before)
            {
                self.threads[event.thread.index()].receive(sent);
            }
            self.kept.next();
        }
        let edges = self.model.edges;
        let threads = self.threads.len();
        let clock = &mut self.threads[event.thread.index()];
        match event.kind {
            EventKind::Atomic { access, op, order, .. } if edges.atomics && op != AtomicOp::Store => {
                let fences = &mut self.fences[event.thread.index()];
                self.locations.load(&access, |heads| {
                    if order.acquires() {
                        clock.receive_all(heads);
                    } else {
                        fences.seen.add_all(heads);
                    }
                });
            }
            EventKind::Fence { order } if edges.atomics && order.acquires() => {
                let fences = &mut self.fences[event.thread.index()];
                clock.receive_all(&fences.seen);
                fences.seen.clear();
            }
            EventKind::Join { child, .. } if child.index() < threads && child != event.thread => {
                let sent = self.threads[child.index()].release();
                self.threads[event.thread.index()].receive(&sent);
            }
            EventKind::Acquire { lock, mode, .. } => self.acquire(event.thread, lock, mode),
            EventKind::WaitEnd { condition, mutex, woken_by, timed_out } => {
                if let Some(sent) = woken_by.and_then(|signal| self.signals.get(&signal)) {
                    clock.receive(sent);
                } else if !timed_out && let Some(all) = self.conditions.get(&condition) {
                    clock.receive_all(all);
                }
                self.acquire(event.thread, mutex, LockMode::Exclusive);
            }
            EventKind::BarrierExit { barrier, generation } => {
                if let Some(entered) = self.barriers.get(&(barrier, generation)) {
                    clock.receive_all(entered);
                }
            }
            EventKind::Take { semaphore } if !edges.spare_posts => {
                if let Some(needed) = self.needed.get_mut(&semaphore) {
                    clock.receive_all(needed.take());
                }
            }
            EventKind::Take { semaphore: object }
            | EventKind::OnceSeen { once: object }
            | EventKind::AcquireObject { object } => {
                if let Some(all) = self.objects.get(&object) {
                    clock.receive_all(all);
                }
            }
            _ => {}
        }
    }

    /// Whether calls into unseen code may have ordered the event, which comes next, before or behind another one. Plain accesses
    /// for which it says no neither receive nor pass on anything.
    pub fn is_kept(&self, index: EventIndex) -> bool {
        self.passed.contains_key(&index)
            || self.kept.as_slice().iter().take_while(|(_, after)| *after <= index).any(|&(_, after)| after == index)
    }

    /// The second half of an event: what it passes on.
    pub fn release(&mut self, index: EventIndex, event: &Event) {
        if let Some(passed) = self.passed.get_mut(&index) {
            *passed = Some(self.threads[event.thread.index()].release());
        }
        let edges = self.model.edges;
        let threads = self.threads.len();
        let clock = &mut self.threads[event.thread.index()];
        match event.kind {
            EventKind::Atomic { access, op, order, .. } if edges.atomics && matches!(op, AtomicOp::Store | AtomicOp::Rmw) => {
                let own = order.releases().then(|| clock.release());
                let head = own.as_ref().or(self.fences[event.thread.index()].released.as_ref());
                self.locations.store(&access, event.thread, op == AtomicOp::Rmw, head);
            }
            EventKind::Fence { order } if edges.atomics && order != MemoryOrder::Relaxed && order.releases() => {
                self.fences[event.thread.index()].released = Some(clock.release());
            }
            EventKind::Fork { child } if child.index() < threads && child != event.thread => {
                let sent = clock.release();
                self.threads[child.index()].receive(&sent);
            }
            EventKind::Release { lock, mode } => self.unlock(event.thread, lock, mode),
            EventKind::WaitBegin { mutex, .. } => self.unlock(event.thread, mutex, LockMode::Exclusive),
            EventKind::Signal { condition, .. } => {
                let sent = clock.release();
                if self.waking.contains(index) {
                    self.signals.insert(index, sent.clone());
                }
                self.conditions.entry(condition).or_default().add(sent);
            }
            EventKind::BarrierEnter { barrier, generation } => {
                let sent = clock.release();
                self.barriers.entry((barrier, generation)).or_default().add(sent);
                // Nobody can still be in the generation before the last one.
                if let Some(old) = generation.checked_sub(2) {
                    self.barriers.remove(&(barrier, old));
                }
            }
            EventKind::Post { semaphore } if !edges.spare_posts => {
                let sent = clock.release();
                self.needed.entry(semaphore).or_default().post(sent);
            }
            EventKind::Post { semaphore: object }
            | EventKind::OnceDone { once: object }
            | EventKind::ReleaseObject { object } => {
                let sent = clock.release();
                self.objects.entry(object).or_default().add(sent);
            }
            _ => {}
        }
    }

    fn acquire(&mut self, thread: ThreadId, lock: Address, mode: LockMode) {
        if !self.model.edges.locks {
            return;
        }
        if let Some(known) = self.locks.get(&lock) {
            let clock = &mut self.threads[thread.index()];
            if let Some(sent) = &known.exclusive {
                clock.receive(sent);
            }
            if mode == LockMode::Exclusive {
                clock.receive_all(&known.shared);
            }
        }
    }

    fn unlock(&mut self, thread: ThreadId, lock: Address, mode: LockMode) {
        if !self.model.edges.locks {
            return;
        }
        let sent = self.threads[thread.index()].release();
        let known = self.locks.entry(lock).or_default();
        match mode {
            // The exclusive holder received all that came before, so its clock covers it.
            LockMode::Exclusive => {
                known.exclusive = Some(sent);
                known.shared.clear();
            }
            LockMode::Shared => known.shared.add(sent),
        }
    }
}

/// Threads named by the trace's table or by an event.
pub fn thread_count(trace: &Trace) -> usize {
    trace.events.last_thread().map_or(0, |last| last.index() + 1).max(trace.threads.len())
}

/// Whether happens-before orders neither of two events of different threads. Runs over the trace up to the later one.
pub fn unordered(trace: &Trace, one: EventIndex, other: EventIndex, model: Model) -> bool {
    let (first, second) = (one.min(other), one.max(other));
    if second.index() >= trace.events.len() || trace.event(first).thread == trace.event(second).thread {
        return false;
    }
    let mut order = HappensBefore::new(trace, model);
    let mut time = 0;
    for (index, event) in trace.indices().zip(&trace.events) {
        order.receive(index, &event);
        if index == first {
            time = order.clock(event.thread).time();
        }
        if index == second {
            return order.clock(event.thread).knows(trace.event(first).thread) < time;
        }
        order.release(index, &event);
    }
    false
}
