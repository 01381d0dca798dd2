//! The locks a thread holds, and lock sets as small numbers.

use rashomon_event::{Address, Event, EventIndex, EventKind, LockMode, ThreadId, Trace};
use rustc_hash::FxHashMap;

/// A lock held by a thread, and the event that acquired it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    pub lock: Address,
    pub mode: LockMode,
    pub acquired: EventIndex,
}

/// A set of held locks with their modes. Equal numbers, equal sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LockSetId(pub u32);

impl LockSetId {
    pub const EMPTY: Self = Self(0);
}

type Lock = (Address, LockMode);

/// The held locks of every thread while a trace goes by.
pub struct LockSets {
    held: Vec<Vec<Held>>,
    current: Vec<LockSetId>,
    sets: Vec<Vec<Lock>>,
    numbers: FxHashMap<Vec<Lock>, LockSetId>,
    /// What was held before each acquisition in `held`.
    before: Vec<Vec<LockSetId>>,
    /// (set, lock, shared) acquired → set.
    transitions: FxHashMap<(u32, u64, u8), LockSetId>,
    exclusion: FxHashMap<u64, bool>,
}

impl LockSets {
    pub fn new(threads: usize) -> Self {
        Self {
            held: vec![Vec::new(); threads],
            current: vec![LockSetId::EMPTY; threads],
            sets: vec![Vec::new()],
            numbers: [(Vec::new(), LockSetId::EMPTY)].into_iter().collect(),
            before: vec![Vec::new(); threads],
            transitions: FxHashMap::default(),
            exclusion: FxHashMap::default(),
        }
    }

    /// Locks held by `thread`, in the order of acquisition.
    pub fn held(&self, thread: ThreadId) -> &[Held] {
        &self.held[thread.index()]
    }

    pub fn current(&self, thread: ThreadId) -> LockSetId {
        self.current[thread.index()]
    }

    /// Sorted; a lock that is held twice in shared mode is there twice.
    pub fn locks(&self, set: LockSetId) -> &[(Address, LockMode)] {
        &self.sets[set.0 as usize]
    }

    pub fn step(&mut self, index: EventIndex, event: &Event) {
        match event.kind {
            EventKind::Acquire { lock, mode, .. } => self.acquire(index, event.thread, lock, mode),
            EventKind::WaitEnd { mutex, .. } => self.acquire(index, event.thread, mutex, LockMode::Exclusive),
            EventKind::Release { lock, mode } => self.release(event.thread, lock, mode),
            EventKind::WaitBegin { mutex, .. } => self.release(event.thread, mutex, LockMode::Exclusive),
            _ => {}
        }
    }

    fn acquire(&mut self, index: EventIndex, thread: ThreadId, lock: Address, mode: LockMode) {
        let thread = thread.index();
        let before = self.current[thread];
        self.held[thread].push(Held { lock, mode, acquired: index });
        self.before[thread].push(before);
        let key = (before.0, lock.0, u8::from(mode == LockMode::Shared));
        self.current[thread] = match self.transitions.get(&key) {
            Some(&number) => number,
            None => {
                let number = self.number(thread, self.held[thread].len());
                self.transitions.insert(key, number);
                number
            }
        };
    }

    /// Most locks are given back in the reverse order: what was held before is known then.
    fn release(&mut self, thread: ThreadId, lock: Address, mode: LockMode) {
        let thread = thread.index();
        // Releasing what is not held changes nothing.
        let Some(place) = self.held[thread].iter().rposition(|held| held.lock == lock && held.mode == mode) else { return };
        self.held[thread].remove(place);
        self.current[thread] = self.before[thread].remove(place);
        for place in place..self.held[thread].len() {
            self.before[thread][place] = self.current[thread];
            self.current[thread] = self.number(thread, place + 1);
        }
    }

    /// Of the first so many locks that the thread holds.
    fn number(&mut self, thread: usize, count: usize) -> LockSetId {
        let mut set: Vec<Lock> = self.held[thread][..count].iter().map(|held| (held.lock, held.mode)).collect();
        set.sort_unstable();
        if let Some(&number) = self.numbers.get(&set) {
            return number;
        }
        let number = LockSetId(self.sets.len() as u32);
        self.sets.push(set.clone());
        self.numbers.insert(set, number);
        number
    }

    /// Whether two threads cannot hold these sets at once: a common lock, not shared by both.
    pub fn exclude(&mut self, one: LockSetId, other: LockSetId) -> bool {
        if one == LockSetId::EMPTY || other == LockSetId::EMPTY {
            return false;
        }
        let (low, high) = (one.min(other), one.max(other));
        let sets = &self.sets;
        *self
            .exclusion
            .entry(u64::from(low.0) << 32 | u64::from(high.0))
            .or_insert_with(|| exclude(&sets[low.0 as usize], &sets[high.0 as usize]))
    }
}

/// Whether two lock sets have a lock in common that not both hold in shared mode.
pub fn exclude(one: &[(Address, LockMode)], other: &[(Address, LockMode)]) -> bool {
    one.iter().any(|&(lock, mode)| {
        other.iter().any(|&(same, other)| same == lock && !(mode == LockMode::Shared && other == LockMode::Shared))
    })
}

/// The locks that the event's thread holds when the event happens, in the order of acquisition.
pub fn held_at(trace: &Trace, at: EventIndex) -> Vec<Held> {
    let thread = trace.event(at).thread;
    let mut sets = LockSets::new(thread.index() + 1);
    for (index, event) in trace.indices().zip(&trace.events).take(at.index()) {
        if event.thread == thread {
            sets.step(index, &event);
        }
    }
    sets.held(thread).to_vec()
}
