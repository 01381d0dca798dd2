//! The exact oracle for traces of tens of events, and for very many tiny ones: a search over cuts, each seen once.
//!
//! Computed: every race and deadlock that some reordering of the trace reaches, under the same [`Rules`] as [`crate::oracle`],
//! which it must equal. A state is a *cut* (how far each thread has run) and, where reads count, the last writer of each cell of
//! memory that is read by one thread and written by another; what is locked follows from the cut. Cells are the pieces into which
//! the accesses' bounds cut memory.
//!
//! Reduction: where a thread's next event is a release, a fork, a publication or an access to memory of its own, only that event
//! is tried. Sound and complete: such an event is always possible, takes nothing from another thread, and its thread is neither
//! about to make a shared access nor waiting, so no race and no deadlock is seen before it that is not seen after it.
//!
//! Limits: 8 threads, 255 events a thread, 16 cells, 32 locks; no conditions and no semaphores. [`reach`] says so by `None`.

use crate::oracle::{Reachable, Rules};
use rashomon_event::{Access, Address, EventIndex, EventKind, LockMode, ThreadId, Trace};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

const THREADS: usize = 8;
const CELLS: usize = 16;
const LOCKS: usize = 32;

/// Multiplicative hashing of a few words.
#[derive(Default)]
struct Mix(u64);

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 29
    }
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }
    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
    fn write_u128(&mut self, word: u128) {
        self.write_u64(word as u64);
        self.write_u64((word >> 64) as u64);
    }
}

/// Eight bits a thread, eight bits a cell (0: not written yet, else the write's number).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct State {
    cut: u64,
    writers: u128,
}

impl State {
    fn count(self, thread: usize) -> usize {
        (self.cut >> (8 * thread) & 255) as usize
    }
    fn writer(self, cell: usize) -> u8 {
        (self.writers >> (8 * cell)) as u8
    }
    fn write(&mut self, cell: usize, writer: u8) {
        self.writers = self.writers & !(255 << (8 * cell)) | u128::from(writer) << (8 * cell);
    }
}

/// One event, with everything about other threads said in counts of their events.
#[derive(Default)]
struct Step {
    event: u32,
    access: Option<Access>,
    /// Thread and how many of its events must have run.
    needs: Vec<(usize, usize)>,
    /// Thread and how many of its events may have run at most.
    limits: Vec<(usize, usize)>,
    /// Must not be held for the step to run.
    excluded: Excluded,
    /// A thread that is about to make this step waits for whoever holds them.
    wish: Excluded,
    /// And for threads that have not made so many events yet.
    awaits: Vec<(usize, usize)>,
    reads: Vec<(usize, u8)>,
    writes: Vec<(usize, u8)>,
    eager: bool,
}

/// Locks whose holders stand in the way: those that hold them exclusively, and those that hold them at all.
#[derive(Clone, Copy, Default)]
struct Excluded {
    exclusive: u32,
    any: u32,
}

impl Excluded {
    fn new(lock: u32, mode: LockMode) -> Self {
        match mode {
            LockMode::Exclusive => Self { exclusive: 0, any: lock },
            LockMode::Shared => Self { exclusive: lock, any: 0 },
        }
    }
}

struct Search {
    threads: Vec<Vec<Step>>,
    /// Per thread and count: locks held, exclusively and in either mode.
    held: Vec<Vec<(u32, u32)>>,
    /// Per thread: the fork that makes it.
    fork: Vec<Option<(usize, usize)>>,
}

/// Everything that the rules reach; `None` beyond the limits. At most `states` are looked at.
pub fn reach(trace: &Trace, rules: Rules, states: usize) -> Option<Reachable> {
    let search = Search::new(trace, rules)?;
    let mut reachable = Reachable::default();
    let start = State { cut: 0, writers: 0 };
    let mut seen: HashSet<State, BuildHasherDefault<Mix>> = HashSet::default();
    seen.insert(start);
    let mut stack = vec![start];
    while let Some(state) = stack.pop() {
        let eager = (0..search.threads.len())
            .find(|&thread| search.next(state, thread).is_some_and(|step| step.eager) && search.enabled(state, thread).is_some());
        if eager.is_none() {
            search.observe(state, &mut reachable);
        }
        for thread in eager.map_or(0..search.threads.len(), |thread| thread..thread + 1) {
            if let Some(next) = search.enabled(state, thread)
                && seen.insert(next)
            {
                stack.push(next);
            }
        }
        if seen.len() > states {
            return None;
        }
    }
    reachable.states = seen.len();
    Some(reachable)
}

/// What building needs to know of the trace.
struct Shape {
    /// Per event, how many events of its thread come before it.
    position: Vec<usize>,
    length: Vec<usize>,
    locks: Vec<Address>,
    /// Bounds of cells that count, and the cell.
    cells: BTreeMap<(u64, u64), usize>,
    /// Memory touched by several threads, one of which writes.
    shared: BTreeSet<(u64, u64)>,
    pieces: Vec<(u64, u64)>,
}

impl Shape {
    fn new(trace: &Trace, rules: Rules) -> Option<Self> {
        let threads = trace.threads.len();
        let mut length = vec![0; threads];
        let mut position = Vec::with_capacity(trace.events.len());
        let mut locks = Vec::new();
        let mut bounds = BTreeSet::new();
        for event in &trace.events {
            let count = length.get_mut(event.thread.index())?;
            position.push(*count);
            *count += 1;
            if let EventKind::Acquire { lock, .. } | EventKind::Request { lock, .. } = event.kind
                && !locks.contains(&lock)
            {
                locks.push(lock);
            }
            if let Some(access) = event.access() {
                bounds.extend([access.address.0, access.address.0 + u64::from(access.size)]);
            }
        }
        if threads > THREADS || locks.len() > LOCKS || length.iter().any(|&length| length > 255) {
            return None;
        }
        let bounds: Vec<u64> = bounds.into_iter().collect();
        let pieces = bounds.windows(2).map(|pair| (pair[0], pair[1])).collect();
        let mut shape = Self { position, length, locks, cells: BTreeMap::new(), shared: BTreeSet::new(), pieces };
        for piece in shape.pieces.clone() {
            let touching = trace.events.iter().filter_map(|event| Some((event.thread, event.access()?)));
            let touching: Vec<_> = touching.filter(|(_, access)| within(piece, access)).collect();
            let several = touching.iter().any(|&(thread, _)| thread != touching[0].0);
            let written = touching.iter().any(|(_, access)| access.class.writes());
            let read = touching.iter().any(|(_, access)| access.class.reads());
            if several && written {
                shape.shared.insert(piece);
                if read && rules.reads_from {
                    let next = shape.cells.len();
                    shape.cells.insert(piece, next);
                }
            }
        }
        (shape.cells.len() <= CELLS).then_some(shape)
    }

    fn place(&self, trace: &Trace, event: usize) -> (usize, usize) {
        (trace.events.at(event).thread.index(), self.position[event] + 1)
    }

    fn bit(&self, lock: Address) -> u32 {
        self.locks.iter().position(|&other| other == lock).map_or(0, |place| 1 << place)
    }
}

fn within(piece: (u64, u64), access: &Access) -> bool {
    access.address.0 <= piece.0 && piece.1 <= access.address.0 + u64::from(access.size)
}

impl Search {
    fn new(trace: &Trace, rules: Rules) -> Option<Self> {
        let shape = Shape::new(trace, rules)?;
        let threads = trace.threads.len();
        let mut search = Self {
            threads: (0..threads).map(|_| Vec::new()).collect(),
            held: vec![vec![(0, 0)]; threads],
            fork: vec![None; threads],
        };
        let mut writers: BTreeMap<usize, u8> = BTreeMap::new();
        for (index, event) in trace.events.iter().enumerate() {
            if let EventKind::Fork { child } = event.kind
                && let Some(fork @ None) = search.fork.get_mut(child.index())
            {
                *fork = Some(shape.place(trace, index));
            }
        }
        for index in 0..trace.events.len() {
            search.add(trace, rules, &shape, index, &mut writers)?;
        }
        Some(search)
    }

    fn add(&mut self, trace: &Trace, rules: Rules, shape: &Shape, index: usize, writers: &mut BTreeMap<usize, u8>) -> Option<()> {
        let event = trace.events.at(index);
        let thread = event.thread.index();
        let mut step = Step { event: index as u32, access: event.access(), ..Step::default() };
        step.needs.extend(self.fork[thread]);
        let (mut exclusive, mut shared) = *self.held[thread].last()?;
        let last = |kind: EventKind| (0..index).rev().find(|&other| trace.events.at(other).kind == kind);
        match event.kind {
            EventKind::Access(access) | EventKind::Atomic { access, .. } => {
                let pieces = || shape.pieces.iter().filter(|&&piece| within(piece, &access));
                step.eager = !pieces().any(|piece| shape.shared.contains(piece));
                for cell in pieces().filter_map(|piece| shape.cells.get(piece)) {
                    if access.class.reads() {
                        step.reads.push((*cell, writers.get(cell).copied().unwrap_or(0)));
                    }
                    if access.class.writes() {
                        let number = u8::try_from(index + 1).ok()?;
                        step.writes.push((*cell, number));
                        writers.insert(*cell, number);
                    }
                }
            }
            EventKind::Acquire { lock, mode, may_wait } => {
                let bit = shape.bit(lock);
                if (exclusive | shared) & bit != 0 {
                    return None;
                }
                step.excluded = Excluded::new(bit, mode);
                if may_wait {
                    step.wish = step.excluded;
                }
                if rules.lock_order {
                    self.limit(trace, shape, index, (lock, mode), &mut step);
                }
                match mode {
                    LockMode::Exclusive => exclusive |= shape.bit(lock),
                    LockMode::Shared => shared |= shape.bit(lock),
                }
            }
            EventKind::Release { lock, mode } => {
                step.eager = true;
                match mode {
                    LockMode::Exclusive => exclusive &= !shape.bit(lock),
                    LockMode::Shared => shared &= !shape.bit(lock),
                }
            }
            EventKind::Request { lock, mode } => step.wish = Excluded::new(shape.bit(lock), mode),
            EventKind::Join { child, may_wait } => {
                let end = (child.index(), *shape.length.get(child.index())?);
                step.needs.push(end);
                step.needs.extend(self.fork.get(child.index()).copied().flatten());
                step.awaits.extend(may_wait.then_some(end));
            }
            EventKind::BarrierExit { barrier, generation } => {
                let enter = EventKind::BarrierEnter { barrier, generation };
                let all = (0..trace.events.len()).filter(|&other| trace.events.at(other).kind == enter);
                step.awaits.extend(all.map(|other| shape.place(trace, other)));
                step.needs.extend(&step.awaits);
            }
            EventKind::OnceSeen { once } => {
                step.needs.extend(last(EventKind::OnceDone { once }).map(|other| shape.place(trace, other)));
            }
            EventKind::AcquireObject { object } => {
                step.needs.extend(last(EventKind::ReleaseObject { object }).map(|other| shape.place(trace, other)));
            }
            EventKind::WaitBegin { .. } | EventKind::WaitEnd { .. } | EventKind::Signal { .. } => return None,
            EventKind::Post { .. } | EventKind::Take { .. } => return None,
            _ => step.eager = true,
        }
        self.threads[thread].push(step);
        self.held[thread].push((exclusive, shared));
        Some(())
    }

    /// Later sections of the trace that exclude this one must not have begun.
    fn limit(&self, trace: &Trace, shape: &Shape, index: usize, (lock, mode): (Address, LockMode), step: &mut Step) {
        for thread in 0..self.threads.len() {
            let later = (index + 1..trace.events.len()).find(|&other| {
                let event = trace.events.at(other);
                event.thread == ThreadId(thread as u32)
                    && matches!(event.kind, EventKind::Acquire { lock: of, mode: as_, .. }
                        if of == lock && (as_ == LockMode::Exclusive || mode == LockMode::Exclusive))
            });
            step.limits.extend(later.map(|other| (thread, shape.position[other])));
        }
    }

    fn next(&self, state: State, thread: usize) -> Option<&Step> {
        self.threads[thread].get(state.count(thread))
    }

    fn started(&self, state: State, thread: usize) -> bool {
        self.fork[thread].is_none_or(|(parent, count)| state.count(parent) >= count)
    }

    /// The state after the thread's next event, if it can run.
    fn enabled(&self, state: State, thread: usize) -> Option<State> {
        let step = self.next(state, thread)?;
        let possible = step.needs.iter().all(|&(on, count)| state.count(on) >= count)
            && step.limits.iter().all(|&(on, count)| state.count(on) <= count)
            && !self.blocked(state, step.excluded)
            && step.reads.iter().all(|&(cell, writer)| state.writer(cell) == writer);
        if !possible {
            return None;
        }
        let mut next = state;
        next.cut += 1 << (8 * thread);
        for &(cell, writer) in &step.writes {
            next.write(cell, writer);
        }
        Some(next)
    }

    fn blocked(&self, state: State, locks: Excluded) -> bool {
        (0..self.threads.len()).any(|thread| self.blocked_by(state, locks, thread))
    }

    fn waits(&self, state: State, step: &Step) -> bool {
        self.blocked(state, step.wish) || step.awaits.iter().any(|&(on, count)| state.count(on) < count)
    }

    fn blocked_by(&self, state: State, locks: Excluded, thread: usize) -> bool {
        let (exclusive, shared) = self.held[thread][state.count(thread)];
        locks.any & (exclusive | shared) != 0 || locks.exclusive & exclusive != 0
    }

    fn observe(&self, state: State, reachable: &mut Reachable) {
        let mut next: [Option<&Step>; THREADS] = [None; THREADS];
        for (thread, next) in next.iter_mut().enumerate().take(self.threads.len()) {
            *next = self.next(state, thread).filter(|_| self.started(state, thread));
        }
        for (thread, one) in next.iter().enumerate() {
            let Some(one) = one else { continue };
            let Some(access) = one.access else { continue };
            for other in next[thread + 1..].iter().flatten() {
                if other.access.is_some_and(|other| access.conflicts(&other)) {
                    let (first, second) = (one.event.min(other.event), one.event.max(other.event));
                    reachable.races.insert((EventIndex(first), EventIndex(second)));
                }
            }
        }
        let waiting: Vec<usize> =
            (0..self.threads.len()).filter(|&thread| next[thread].is_some_and(|step| self.waits(state, step))).collect();
        for (place, &first) in waiting.iter().enumerate() {
            self.cycles(state, &waiting[place + 1..], &mut vec![first], reachable);
        }
    }

    fn cycles(&self, state: State, others: &[usize], path: &mut Vec<usize>, reachable: &mut Reachable) {
        let waits_for = |waiter: usize, holder: usize| {
            self.next(state, waiter).is_some_and(|step| {
                let awaits = step.awaits.iter().any(|&(on, count)| on == holder && state.count(on) < count);
                awaits || self.blocked_by(state, step.wish, holder)
            })
        };
        let last = path[path.len() - 1];
        if path.len() >= 2 && waits_for(last, path[0]) {
            let mut cycle: Vec<EventIndex> =
                path.iter().filter_map(|&thread| Some(EventIndex(self.next(state, thread)?.event))).collect();
            let least = (0..cycle.len()).min_by_key(|&place| cycle[place]).unwrap_or(0);
            cycle.rotate_left(least);
            reachable.deadlocks.insert(cycle);
        }
        for &other in others {
            if !path.contains(&other) && waits_for(last, other) {
                path.push(other);
                self.cycles(state, others, path, reachable);
                path.pop();
            }
        }
    }
}
