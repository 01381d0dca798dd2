//! What every candidate of one trace shares: positions, critical sections, dependences. One pass.
//!
//! Three lists of needs, each containing the one before: *instances* (creation, join, conditions, barriers, semaphores, once,
//! publication), *atomic* (and each atomic read its writers), *causal* (and each plain read its writers, byte by byte). The k-th
//! take of a semaphore needs the first k − n posts of the trace, n being the initial count: sufficient under any order of the
//! takes.

use crate::closure::Cut;
use crate::dependences::Dependences;
use rashomon_event::{Address, Deadline, EventIndex, EventKind, EventSet, LockMode, ProgramOrder, Trace};
use rashomon_order::{SharedMemory, initial_counts};
use rustc_hash::{FxHashMap, FxHashSet};

/// No such position.
pub const NEVER: u32 = u32::MAX;

/// A critical section. Positions count within its thread.
#[derive(Clone, Copy, Debug)]
pub struct Section {
    pub thread: u32,
    /// Dense number of the lock.
    pub lock: u32,
    pub mode: LockMode,
    pub acquire: u32,
    /// [`NEVER`] if the trace ends first.
    pub release: u32,
    /// The acquisition in the trace.
    pub event: EventIndex,
    /// The latest section of the thread that was open when this one began, or [`NEVER`].
    pub outer: u32,
}

impl Section {
    pub fn conflicts(&self, other: &Self) -> bool {
        self.lock == other.lock && (self.mode == LockMode::Exclusive || other.mode == LockMode::Exclusive)
    }
}

/// One thread's sections of one lock, by number.
#[derive(Clone, Debug, Default)]
pub struct LockUse {
    pub thread: u32,
    pub sections: Vec<u32>,
    pub exclusive: Vec<u32>,
}

/// What a synchronisation event does to locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    None,
    /// Number of the section.
    Acquire(u32),
    Release(u32),
}

/// An event that takes part in ordering: any but plain accesses, fences and events that order nothing, unless calls into unseen
/// code may have ordered them.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    pub at: u32,
    pub effect: Effect,
}

/// A wait that a signal ended.
#[derive(Clone, Copy, Debug)]
pub struct Wait {
    pub thread: u32,
    pub begin: u32,
    pub end: u32,
}

pub struct Index<'t> {
    pub trace: &'t Trace,
    /// By thread, its events in program order.
    pub threads: &'t ProgramOrder,
    /// In the order of acquisition in the trace.
    pub sections: Vec<Section>,
    /// Per thread, numbers of its sections in the order of acquisition.
    pub sections_of: Vec<Vec<u32>>,
    /// Per lock, the sections of each thread that takes it, in program order.
    pub sections_on: Vec<Vec<LockUse>>,
    pub locks: usize,
    pub steps: Vec<Vec<Step>>,
    pub instances: Dependences,
    /// The instances without takes of semaphores, which are not exact.
    pub structure: Dependences,
    pub atomic: Dependences,
    pub causal: Dependences,
    pub woken_by: FxHashMap<EventIndex, Vec<Wait>>,
    /// Whether there are semaphores, whose needs are conservative.
    pub semaphores: bool,
    /// Per thread: the fork (thread, position) that creates it.
    pub fork: Vec<Option<(u32, u32)>>,
    /// Whether all of the trace was looked at.
    pub complete: bool,
}

#[derive(Default)]
struct Semaphore {
    initial: u64,
    takes: u64,
    /// Thread and position of each post.
    posts: Vec<(u32, u32)>,
    /// Per thread, how many of its events the takes so far need; for the first `counted` posts.
    needed: Vec<(u32, u32)>,
    counted: usize,
}

/// The state of the one pass.
struct Builder<'t> {
    index: Index<'t>,
    lock_numbers: FxHashMap<Address, u32>,
    open: Vec<Vec<u32>>,
    waiting: Vec<u32>,
    entered: FxHashMap<(Address, u32), Vec<(u32, u32)>>,
    semaphores: FxHashMap<Address, Semaphore>,
    released: FxHashMap<(Address, bool), (u32, u32)>,
    /// Per shared granule and byte, the last writer + 1.
    writers: Vec<[u32; 8]>,
    /// Events that calls into unseen code may have ordered.
    kept: FxHashSet<EventIndex>,
}

impl<'t> Index<'t> {
    pub fn new(trace: &'t Trace, memory: &SharedMemory) -> Self {
        Self::until(trace, memory, Deadline::NEVER)
    }

    /// What comes behind the deadline is not looked at: then the answer is of no use.
    pub fn until(trace: &'t Trace, memory: &SharedMemory, deadline: Deadline) -> Self {
        let threads = trace.program_order();
        let count = rashomon_order::happens_before::thread_count(trace);
        let index = Index {
            trace,
            threads,
            sections: Vec::new(),
            sections_of: vec![Vec::new(); count],
            sections_on: Vec::new(),
            locks: 0,
            steps: vec![Vec::new(); count],
            instances: Dependences::new(count),
            structure: Dependences::new(count),
            atomic: Dependences::new(count),
            causal: Dependences::new(count),
            woken_by: FxHashMap::default(),
            semaphores: false,
            fork: vec![None; count],
            complete: true,
        };
        let mut builder = Builder {
            index,
            lock_numbers: FxHashMap::default(),
            open: vec![Vec::new(); count],
            waiting: vec![NEVER; count],
            entered: FxHashMap::default(),
            semaphores: initial_counts(trace)
                .into_iter()
                .map(|(semaphore, initial)| (semaphore, Semaphore { initial, ..Semaphore::default() }))
                .collect(),
            released: FxHashMap::default(),
            writers: vec![[0; 8]; memory.len()],
            kept: trace.kept.iter().flat_map(|&(before, after)| [before, after]).collect(),
        };
        let begins = (0..count).filter(|thread| threads.count(*thread) > 0).map(|thread| threads.at(thread, 0)).collect();
        let kept = trace.kept_events();
        let all = EventSet::union([trace.events.besides_accesses(), memory.sharing(), &kept, &begins]);
        let mut events = deadline.bound(all);
        for event in events.by_ref() {
            builder.event(event, memory);
        }
        builder.index.complete = !events.was_cut();
        let mut index = builder.index;
        index.semaphores = !builder.semaphores.is_empty();
        index.locks = builder.lock_numbers.len();
        index.group_sections();
        index.instances.seal();
        index.structure.seal();
        index.atomic.seal();
        index.causal.seal();
        index
    }

    fn group_sections(&mut self) {
        self.sections_on = vec![Vec::new(); self.locks];
        for (number, section) in self.sections.iter().enumerate() {
            let uses = &mut self.sections_on[section.lock as usize];
            let place = uses.iter().position(|use_| use_.thread == section.thread).unwrap_or_else(|| {
                uses.push(LockUse { thread: section.thread, ..LockUse::default() });
                uses.len() - 1
            });
            uses[place].sections.push(number as u32);
            if section.mode == LockMode::Exclusive {
                uses[place].exclusive.push(number as u32);
            }
        }
    }

    /// The sections that a thread has begun and not ended after its first `count` events, latest first.
    pub fn open_at(&self, thread: usize, count: u32) -> impl Iterator<Item = u32> + '_ {
        let sections = &self.sections_of[thread];
        let begun = sections.partition_point(|&number| self.sections[number as usize].acquire < count);
        let latest = begun.checked_sub(1).map(|place| sections[place]);
        let chain =
            std::iter::successors(latest, |&number| Some(self.sections[number as usize].outer).filter(|&outer| outer != NEVER));
        chain.filter(move |&number| self.sections[number as usize].release >= count)
    }

    /// What has to have happened where a goal is next, beside what comes before it in its thread and the creation of that: the
    /// signal that has woken it, and what calls into unseen code may have ordered before it.
    pub fn needed_at(&self, goal: EventIndex) -> impl Iterator<Item = (u32, u32)> + '_ {
        let woken = match self.trace.kind(goal) {
            EventKind::WaitEnd { woken_by: Some(signal), timed_out: false, .. } => Some(signal),
            _ => None,
        };
        woken.into_iter().filter(move |&signal| signal < goal).map(|signal| self.place(signal)).chain(self.kept_at(goal))
    }

    /// The part of [`Self::needed_at`] that calls into unseen code may have ordered.
    pub fn kept_at(&self, goal: EventIndex) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.trace.kept_before(goal).filter(move |&before| before < goal).map(|before| self.place(before))
    }

    /// How many threads the trace names.
    pub const fn thread_count(&self) -> usize {
        self.fork.len()
    }

    /// How many events each of them has.
    pub fn counts(&self) -> Cut {
        (0..self.thread_count()).map(|thread| self.threads.count(thread)).collect()
    }

    /// Thread and position of an event.
    pub fn place(&self, event: EventIndex) -> (u32, u32) {
        self.threads.place(event)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Instance,
    /// An instance, if conservatively.
    Take,
    AtomicRead,
    PlainRead,
}

impl Builder<'_> {
    fn event(&mut self, event: EventIndex, memory: &SharedMemory) {
        let kind = self.index.trace.kind(event);
        let (thread, at) = self.index.place(event);
        if at == 0
            && let Some((parent, fork)) = self.index.fork[thread as usize]
        {
            self.need(Level::Instance, thread, at, (parent, fork));
        }
        let trace = self.index.trace;
        for before in trace.kept_before(event).filter(|&before| before < event) {
            self.need(Level::Instance, thread, at, self.index.place(before));
        }
        let effect = match kind {
            EventKind::Acquire { lock, mode, .. } => self.acquire(event, (thread, at), lock, mode),
            EventKind::WaitEnd { mutex, .. } => self.acquire(event, (thread, at), mutex, LockMode::Exclusive),
            EventKind::Release { lock, mode } => self.release((thread, at), lock, mode),
            EventKind::WaitBegin { mutex, .. } => self.release((thread, at), mutex, LockMode::Exclusive),
            _ => Effect::None,
        };
        let passive = matches!(kind, EventKind::Access(_) | EventKind::Other(_) | EventKind::Fence { .. });
        if !passive || self.kept.contains(&event) {
            self.index.steps[thread as usize].push(Step { at, effect });
        }
        self.instance(event, kind, thread, at);
        if let Some(access) = kind.access() {
            for (granule, bytes) in memory.granules(&access) {
                if access.class.reads() {
                    let level = if access.atomic { Level::AtomicRead } else { Level::PlainRead };
                    self.read(level, thread, at, granule, bytes);
                }
                if access.class.writes() {
                    for byte in (0..8).filter(|byte| bytes >> byte & 1 == 1) {
                        self.writers[granule][byte] = event.0 + 1;
                    }
                }
            }
        }
    }

    fn need(&mut self, level: Level, thread: u32, at: u32, (on, position): (u32, u32)) {
        self.index.causal.add(thread, at, on, position + 1);
        if level != Level::PlainRead {
            self.index.atomic.add(thread, at, on, position + 1);
        }
        if matches!(level, Level::Instance | Level::Take) {
            self.index.instances.add(thread, at, on, position + 1);
        }
        if level == Level::Instance {
            self.index.structure.add(thread, at, on, position + 1);
        }
    }

    fn read(&mut self, level: Level, thread: u32, at: u32, granule: usize, bytes: u8) {
        let mut last = 0;
        for byte in (0..8).filter(|byte| bytes >> byte & 1 == 1) {
            let writer = self.writers[granule][byte];
            if writer != 0 && writer != last {
                last = writer;
                self.need(level, thread, at, self.index.place(EventIndex(writer - 1)));
            }
        }
    }

    fn acquire(&mut self, event: EventIndex, (thread, at): (u32, u32), lock: Address, mode: LockMode) -> Effect {
        let next = self.lock_numbers.len() as u32;
        let lock = *self.lock_numbers.entry(lock).or_insert(next);
        let number = self.index.sections.len() as u32;
        let outer = self.open[thread as usize].last().copied().unwrap_or(NEVER);
        self.index.sections.push(Section { thread, lock, mode, acquire: at, release: NEVER, event, outer });
        self.index.sections_of[thread as usize].push(number);
        self.open[thread as usize].push(number);
        Effect::Acquire(number)
    }

    fn release(&mut self, (thread, at): (u32, u32), lock: Address, mode: LockMode) -> Effect {
        let Some(&lock) = self.lock_numbers.get(&lock) else {
            return Effect::None;
        };
        let sections = &mut self.index.sections;
        let open = &mut self.open[thread as usize];
        let matches = |&number: &u32| sections[number as usize].lock == lock && sections[number as usize].mode == mode;
        match open.iter().rposition(matches) {
            Some(place) => {
                let number = open.remove(place);
                sections[number as usize].release = at;
                Effect::Release(number)
            }
            None => Effect::None,
        }
    }

    fn instance(&mut self, event: EventIndex, kind: EventKind, thread: u32, at: u32) {
        match kind {
            EventKind::Fork { child } => {
                if let Some(fork) = self.index.fork.get_mut(child.index())
                    && self.index.threads.before(child.index(), event) == 0
                {
                    *fork = Some((thread, at));
                }
            }
            EventKind::Join { child, .. } => {
                let last = self.index.threads.before(child.index(), event).checked_sub(1);
                let created = || self.index.fork.get(child.index()).copied().flatten();
                if let Some(place) = last.map(|last| (child.0, last)).or_else(created) {
                    self.need(Level::Instance, thread, at, place);
                }
            }
            EventKind::WaitBegin { .. } => self.waiting[thread as usize] = at,
            EventKind::WaitEnd { woken_by, timed_out, .. } => {
                let begin = std::mem::replace(&mut self.waiting[thread as usize], NEVER);
                if let Some(signal) = woken_by.filter(|&signal| !timed_out && signal < event) {
                    self.need(Level::Instance, thread, at, self.index.place(signal));
                    if begin != NEVER {
                        self.index.woken_by.entry(signal).or_default().push(Wait { thread, begin, end: at });
                    }
                }
            }
            EventKind::BarrierEnter { barrier, generation } => {
                self.entered.entry((barrier, generation)).or_default().push((thread, at));
            }
            EventKind::BarrierExit { barrier, generation } => {
                for place in self.entered.get(&(barrier, generation)).cloned().unwrap_or_default() {
                    self.need(Level::Instance, thread, at, place);
                }
            }
            EventKind::Post { semaphore } => {
                if let Some(semaphore) = self.semaphores.get_mut(&semaphore) {
                    semaphore.posts.push((thread, at));
                }
            }
            EventKind::Take { semaphore } => {
                let needed = self.semaphores.get_mut(&semaphore).map(Semaphore::take).unwrap_or_default();
                for place in needed {
                    self.need(Level::Take, thread, at, place);
                }
            }
            EventKind::OnceDone { once } => {
                self.released.insert((once, true), (thread, at));
            }
            EventKind::ReleaseObject { object } => {
                self.released.insert((object, false), (thread, at));
            }
            EventKind::OnceSeen { once } => self.acquire_object((once, true), thread, at),
            EventKind::AcquireObject { object } => self.acquire_object((object, false), thread, at),
            _ => {}
        }
    }

    fn acquire_object(&mut self, what: (Address, bool), thread: u32, at: u32) {
        if let Some(&place) = self.released.get(&what) {
            self.need(Level::Instance, thread, at, place);
        }
    }
}

impl Semaphore {
    /// The latest post of each thread among those that the next take needs.
    fn take(&mut self) -> Vec<(u32, u32)> {
        self.takes += 1;
        let count = usize::try_from(self.takes.saturating_sub(self.initial)).unwrap_or(usize::MAX).min(self.posts.len());
        for &(thread, at) in &self.posts[self.counted.min(count)..count] {
            match self.needed.iter_mut().find(|needed| needed.0 == thread) {
                Some(needed) => needed.1 = at,
                None => self.needed.push((thread, at)),
            }
        }
        self.counted = count;
        self.needed.clone()
    }
}
