//! Lock dependencies and the cycles among them.
//!
//! Computed: abstract dependencies ⟨thread, wish, locks held, site⟩ with their instances in the trace, and *abstract deadlock
//! patterns*: cycles of 2 to 5 dependencies of different threads, each with a wish for what the next one has, no two of them
//! holding a lock that would exclude the other (a gate lock); Tunç, Mathur, Pavlogiannis, Viswanathan, "Sound Dynamic Deadlock
//! Prediction in Linear Time", PLDI 2023, §4. Instances ordered by thread creation, conditions, barriers and the like are told
//! apart by [`LockGraph::concurrent`].
//!
//! Multi-thread lock sets (Sulzmann, "Beyond Per-Thread Lock Sets: Multi-Thread Critical Sections and Dynamic Deadlock
//! Prediction", arXiv 2512.23552, 2025): (1) What a thread waits for can be a thread: the one that it joins, or those that have
//! yet to enter its barrier; a thread has itself. So what a thread holds that waits for another stays held while that other waits
//! for a lock. The source puts the lock into the other's lock set; a wish for a thread finds more (the thread may be older than
//! the section), and says where the holder stands. (2) Sections that enclose an acquisition ([`crate::spanning`]) are gate locks,
//! if their holders differ; one holder's section may enclose several threads at once.
//!
//! Rules: an acquisition or a join that cannot wait (try, timed) has no wish, but holds; a condition wait, once woken or timed
//! out, wishes for its mutex; a request that never got its lock counts like an acquisition; both sides in shared mode do not
//! exclude. A wait for a thread matters only where its thread holds a lock or is waited for in turn by one that does: such waits,
//! and all acquisitions of threads they are for, are gathered in a second pass, which other traces do not have. Limits:
//! [`MAX_INSTANCES`] instances per dependency (the first ones); a thread that waits for a signal, a post or a once routine has no
//! wish; a thread blocked on itself is no pattern.

use crate::clock::VectorClock;
use crate::happens_before::{HappensBefore, Model};
use crate::lockset::{Held, LockSets, exclude};
use crate::spanning::{HeldBy, Spanning};
use rashomon_event::{Address, Deadline, Event, EventIndex, EventKind, LockMode, SiteId, ThreadId, Trace};
use rustc_hash::{FxHashMap, FxHashSet};

pub const MAX_INSTANCES: usize = 4096;
/// Search steps after which the enumeration of cycles stops.
const MAX_STEPS: usize = 4_000_000;

/// What a thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Wish {
    Lock {
        lock: Address,
        mode: LockMode,
    },
    /// The mutex of a condition wait that was woken, again.
    Mutex(Address),
    /// That the thread ends, or enters the barrier.
    Thread(ThreadId),
}

/// One acquisition, request or wait of a dependency.
#[derive(Clone, Debug)]
pub struct Instance {
    pub event: EventIndex,
    /// The moment in the weak order; of a wait, before it has received anything.
    pub moment: VectorClock,
    /// Of a wish for a thread: the last of that thread's moments that come before what is waited for.
    pub until: u32,
}

#[derive(Clone, Debug)]
pub struct Dependency {
    pub thread: ThreadId,
    pub wish: Wish,
    /// Sorted.
    pub held: Vec<(Address, LockMode)>,
    /// Number in [`LockGraph::enclosing`] of the locks that others hold around this thread.
    pub around: u32,
    pub site: SiteId,
    /// In the order of the trace.
    pub instances: Vec<Instance>,
    /// All instances, also those not kept.
    pub occurrences: u64,
}

impl Dependency {
    /// Whether the other has this one's wish, in a mode that blocks it.
    fn blocked_by(&self, other: &Self) -> bool {
        match self.wish {
            Wish::Lock { lock, mode } => {
                other.held.iter().any(|&(held, as_)| held == lock && !(as_ == LockMode::Shared && mode == LockMode::Shared))
            }
            Wish::Mutex(mutex) => other.held.iter().any(|&(held, _)| held == mutex),
            Wish::Thread(thread) => thread == other.thread,
        }
    }

    /// What it holds, and what is held around it.
    fn holds<'d>(&'d self, around: &'d [HeldBy]) -> impl Iterator<Item = HeldBy> + 'd {
        let own = self.held.iter().map(|&(lock, mode)| HeldBy { lock, mode, holder: self.thread });
        own.chain(around.iter().copied())
    }
}

/// A cycle: indices into [`LockGraph::dependencies`]; each has a wish for what the next one has.
pub type Pattern = Vec<usize>;

pub struct LockGraph {
    pub dependencies: Vec<Dependency>,
    /// Sets of locks that others hold around a thread; the first one is empty.
    pub enclosing: Vec<Vec<HeldBy>>,
    /// Events that are requests which never got their lock.
    pub unanswered: Vec<EventIndex>,
}

/// What instances of one dependency have in common.
type Shape = (ThreadId, Wish, Vec<(Address, LockMode)>, u32, SiteId);

#[derive(Default)]
struct Gathering {
    numbers: FxHashMap<Shape, usize>,
    /// The same by lock set number where nothing encloses, to spare the common case the long key: site, set, wanted, thread,
    /// whether shared.
    short: FxHashMap<(u32, u32, u64, u32, u8), usize>,
    dependencies: Vec<Dependency>,
}

impl Gathering {
    fn add(&mut self, event: &Event, wish: Wish, set: (u32, &[Held]), around: u32, instance: Instance) {
        let number = match wish {
            Wish::Lock { lock, mode } if around == 0 => {
                let short = (event.site.0, set.0, lock.0, event.thread.0, u8::from(mode == LockMode::Shared));
                self.short.get(&short).copied().unwrap_or_else(|| {
                    let number = self.number(event, wish, set.1, around);
                    self.short.insert(short, number);
                    number
                })
            }
            _ => self.number(event, wish, set.1, around),
        };
        let dependency = &mut self.dependencies[number];
        dependency.occurrences += 1;
        if dependency.instances.len() < MAX_INSTANCES {
            dependency.instances.push(instance);
        }
    }

    fn number(&mut self, event: &Event, wish: Wish, held: &[Held], around: u32) -> usize {
        let mut held: Vec<_> = held.iter().map(|held| (held.lock, held.mode)).collect();
        held.sort_unstable();
        let next = self.dependencies.len();
        let key = (event.thread, wish, held, around, event.site);
        let number = *self.numbers.entry(key.clone()).or_insert(next);
        if number == next {
            let (thread, wish, held, around, site) = key;
            self.dependencies.push(Dependency { thread, wish, held, around, site, instances: Vec::new(), occurrences: 0 });
        }
        number
    }
}

/// The waits for threads that one pass has seen, for the next.
#[derive(Default)]
struct Waits {
    /// (Who waits, for whom, whether holding a lock).
    seen: FxHashSet<(ThreadId, ThreadId, bool)>,
    /// Threads that one who holds a lock waits for, itself or through others.
    awaited: Vec<bool>,
    spanning: Spanning,
}

impl Waits {
    fn is_awaited(&self, thread: ThreadId) -> bool {
        self.awaited.get(thread.index()).is_some_and(|&awaited| awaited)
    }

    /// Whether there is anything to gather in another pass.
    fn close(&mut self, threads: usize) -> bool {
        self.awaited = vec![false; threads];
        let mut grown = true;
        while grown {
            grown = false;
            for &(waits, awaited, holding) in &self.seen {
                if (holding || self.awaited[waits.index()]) && !self.awaited[awaited.index()] {
                    self.awaited[awaited.index()] = true;
                    grown = true;
                }
            }
        }
        self.spanning.seal();
        self.awaited.contains(&true)
    }
}

struct Pass<'t> {
    trace: &'t Trace,
    order: HappensBefore,
    locks: LockSets,
    gathering: Gathering,
    /// Threads that entered each generation of a barrier, and when.
    entered: FxHashMap<(Address, u32), Vec<(ThreadId, u32)>>,
}

impl<'t> Pass<'t> {
    fn new(trace: &'t Trace) -> Self {
        let order = HappensBefore::new(trace, Model::WEAK);
        let locks = LockSets::new(order.threads());
        Self { trace, order, locks, gathering: Gathering::default(), entered: FxHashMap::default() }
    }

    fn add(&mut self, event: &Event, wish: Wish, around: u32, instance: Instance) {
        let set = (self.locks.current(event.thread).0, self.locks.held(event.thread));
        self.gathering.add(event, wish, set, around, instance);
    }

    /// Those that an event waits for, and the last moment of each that comes before what it waits for.
    fn awaited(&self, event: &Event) -> Vec<(ThreadId, u32)> {
        match event.kind {
            EventKind::Join { child, may_wait: true } if child.index() < self.order.threads() && child != event.thread => {
                vec![(child, self.order.clock(child).time())]
            }
            EventKind::BarrierExit { barrier, generation } => {
                let others = self.entered.get(&(barrier, generation)).into_iter().flatten();
                others.copied().filter(|&(other, _)| other != event.thread).collect()
            }
            _ => Vec::new(),
        }
    }

    fn enter(&mut self, event: &Event, barrier: Address, generation: u32) {
        let time = self.order.clock(event.thread).time();
        self.entered.entry((barrier, generation)).or_default().push((event.thread, time));
        // Nobody can still be in the generation before the last one.
        if let Some(old) = generation.checked_sub(2) {
            self.entered.remove(&(barrier, old));
        }
    }

    /// The first pass, where a wait begins: nobody is awaited yet. What a holder of locks knows then.
    fn look(&mut self, event: &Event, waits: &mut Waits) -> Option<VectorClock> {
        let holding = !self.locks.held(event.thread).is_empty();
        waits.seen.extend(self.awaited(event).into_iter().map(|(awaited, _)| (event.thread, awaited, holding)));
        holding.then(|| self.order.now(event.thread))
    }

    /// The second pass: waits are dependencies.
    fn wait(&mut self, index: EventIndex, event: &Event, waits: &mut Waits) {
        if self.locks.held(event.thread).is_empty() && !waits.is_awaited(event.thread) {
            return;
        }
        let moment = self.order.now(event.thread);
        let around = waits.spanning.around(event.thread, self.order.clock(event.thread));
        for (awaited, until) in self.awaited(event) {
            let instance = Instance { event: index, moment: moment.clone(), until };
            self.add(event, Wish::Thread(awaited), around, instance);
        }
    }

    /// The first pass finds the waits; if there are any, another one, which knows them.
    fn run<const AGAIN: bool>(mut self, waits: &mut Waits, deadline: Deadline) -> LockGraph {
        let trace = self.trace;
        let mut asked: Vec<Option<(EventIndex, Address, LockMode)>> = vec![None; self.order.threads()];
        let kept = trace.kept_events();
        for (index, event) in deadline.bound(trace.events.select([trace.events.besides_accesses(), &kept])) {
            if matches!(event.kind, EventKind::Access(_)) {
                if self.order.is_kept(index) {
                    self.order.receive(index, &event);
                    self.order.release(index, &event);
                }
                continue;
            }
            let waits_since = match event.kind {
                EventKind::Join { .. } | EventKind::BarrierExit { .. } if AGAIN => {
                    self.wait(index, &event, waits);
                    None
                }
                EventKind::Join { .. } | EventKind::BarrierExit { .. } => self.look(&event, waits),
                _ => None,
            };
            self.order.receive(index, &event);
            if let Some(before) = waits_since {
                let held = self.locks.held(event.thread);
                waits.spanning.add(&before, self.order.clock(event.thread), held, self.order.threads());
            }
            match event.kind {
                EventKind::Request { lock, mode } => asked[event.thread.index()] = Some((index, lock, mode)),
                EventKind::Blocked { .. } => {}
                _ => asked[event.thread.index()] = None,
            }
            if AGAIN && matches!(event.kind, EventKind::Acquire { .. } | EventKind::WaitEnd { .. }) {
                waits.spanning.acquired(index, self.order.clock(event.thread).time());
            }
            match event.kind {
                EventKind::Acquire { lock, mode, may_wait: true }
                    if !self.locks.held(event.thread).is_empty() || AGAIN && waits.is_awaited(event.thread) =>
                {
                    self.lock::<AGAIN>(index, &event, Wish::Lock { lock, mode }, waits);
                }
                EventKind::WaitEnd { mutex, .. }
                    if !self.locks.held(event.thread).is_empty() || AGAIN && waits.is_awaited(event.thread) =>
                {
                    self.lock::<AGAIN>(index, &event, Wish::Mutex(mutex), waits);
                }
                EventKind::BarrierEnter { barrier, generation } => self.enter(&event, barrier, generation),
                _ => {}
            }
            self.locks.step(index, &event);
            self.order.release(index, &event);
        }
        let mut unanswered = Vec::new();
        for (index, lock, mode) in asked.into_iter().flatten().filter(|(index, ..)| does_nothing_behind(trace, *index)) {
            let event = trace.event(index);
            let held = self.locks.held(event.thread);
            if (!held.is_empty() || AGAIN && waits.is_awaited(event.thread)) && held.iter().all(|held| held.lock != lock) {
                // The thread did nothing after its request, so its present moment is that of the request.
                self.lock::<AGAIN>(index, &event, Wish::Lock { lock, mode }, waits);
                unanswered.push(index);
            }
        }
        unanswered.sort_unstable();
        LockGraph { dependencies: self.gathering.dependencies, enclosing: waits.spanning.sets(), unanswered }
    }

    fn lock<const AGAIN: bool>(&mut self, index: EventIndex, event: &Event, wish: Wish, waits: &mut Waits) {
        let around = if AGAIN { waits.spanning.around(event.thread, self.order.clock(event.thread)) } else { 0 };
        let instance = Instance { event: index, moment: self.order.now(event.thread), until: 0 };
        self.add(event, wish, around, instance);
    }
}

impl LockGraph {
    pub fn new(trace: &Trace) -> Self {
        Self::until(trace, Deadline::NEVER)
    }

    /// Of the events that there is time for.
    pub fn until(trace: &Trace, deadline: Deadline) -> Self {
        let mut waits = Waits::default();
        let pass = Pass::new(trace);
        let threads = pass.order.threads();
        let graph = pass.run::<false>(&mut waits, deadline);
        if waits.close(threads) { Pass::new(trace).run::<true>(&mut waits, deadline) } else { graph }
    }

    /// Whether the weak order leaves these two moments unordered.
    pub fn concurrent(one: &Instance, other: &Instance) -> bool {
        one.moment.concurrent(&other.moment)
    }

    /// Whether no state has the threads of both where they are: both hold one lock, or sections of different holders enclose
    /// them.
    fn exclude(&self, one: &Dependency, other: &Dependency) -> bool {
        exclude(&one.held, &other.held) || (one.around | other.around != 0 && self.enclosed_apart(one, other))
    }

    fn enclosed_apart(&self, one: &Dependency, other: &Dependency) -> bool {
        let [around_one, around_other] = [one, other].map(|dependency| self.enclosing[dependency.around as usize].as_slice());
        let apart = |one: &HeldBy, other: &HeldBy| {
            let shared = one.mode == LockMode::Shared && other.mode == LockMode::Shared;
            one.lock == other.lock && one.holder != other.holder && !shared
        };
        one.holds(around_one).any(|one| other.holds(around_other).any(|other| apart(&one, &other)))
    }

    /// Whether an instance of a dependency comes before what an instance of the one before it in a pattern waits for.
    pub fn in_time(&self, waits: (usize, &Instance), other: &Instance) -> bool {
        match self.dependencies[waits.0].wish {
            Wish::Lock { .. } | Wish::Mutex(_) => true,
            Wish::Thread(_) => other.moment.time <= waits.1.until,
        }
    }

    /// Abstract deadlock patterns of at most `threads` threads, at most `limit` of them; shorter ones first, of these such of
    /// locks alone first. The smallest dependency of a cycle comes first in it.
    pub fn patterns(&self, threads: usize, limit: usize) -> Vec<Pattern> {
        let mut holders: FxHashMap<Address, Vec<usize>> = FxHashMap::default();
        let mut awaited: FxHashMap<ThreadId, Vec<usize>> = FxHashMap::default();
        for dependency in &self.dependencies {
            if let Wish::Thread(thread) = dependency.wish {
                awaited.entry(thread).or_default();
            }
        }
        for (number, dependency) in self.dependencies.iter().enumerate() {
            for &(lock, _) in &dependency.held {
                holders.entry(lock).or_default().push(number);
            }
            if let Some(awaited) = awaited.get_mut(&dependency.thread) {
                awaited.push(number);
            }
        }
        let mut search = Search { graph: self, holders: &holders, awaited: &awaited, limit, steps: 0, found: Vec::new() };
        search.all::<false>(threads);
        // Their own steps, so that neither kind keeps the other from being found.
        if !awaited.is_empty() {
            search.all::<true>(threads);
            search.found.iter_mut().for_each(|pattern| {
                let least = (0..pattern.len()).min_by_key(|&place| pattern[place]).unwrap_or(0);
                pattern.rotate_left(least);
            });
            search.found.sort_by_key(Vec::len);
        }
        search.found
    }
}

/// For cycles of wishes for locks, each found from its smallest dependency; or for those with a wish for a thread, each found
/// from the smallest that has one. Wishes for threads alone make no cycle: what they wait for happened.
struct Search<'g> {
    graph: &'g LockGraph,
    /// Per lock and per thread that somebody waits for, the dependencies that have it.
    holders: &'g FxHashMap<Address, Vec<usize>>,
    awaited: &'g FxHashMap<ThreadId, Vec<usize>>,
    limit: usize,
    steps: usize,
    found: Vec<Pattern>,
}

impl Search<'_> {
    fn all<const WAITS: bool>(&mut self, threads: usize) {
        self.steps = MAX_STEPS;
        for length in 2..=threads.min(5) {
            for start in 0..self.graph.dependencies.len() {
                if self.waits(start) == WAITS {
                    self.extend::<WAITS>(&mut vec![start], length);
                }
            }
        }
    }

    /// Whether a dependency wishes for a thread.
    fn waits(&self, number: usize) -> bool {
        matches!(self.graph.dependencies[number].wish, Wish::Thread(_))
    }

    fn extend<const WAITS: bool>(&mut self, path: &mut Pattern, length: usize) {
        if self.steps == 0 || self.found.len() >= self.limit {
            return;
        }
        self.steps -= 1;
        let (graph, dependencies) = (self.graph, &self.graph.dependencies);
        let last = &dependencies[path[path.len() - 1]];
        if path.len() == length {
            if last.blocked_by(&dependencies[path[0]]) && (!WAITS || path.iter().any(|&number| !self.waits(number))) {
                self.found.push(path.clone());
            }
            return;
        }
        let having = match last.wish {
            Wish::Lock { lock, .. } | Wish::Mutex(lock) => self.holders.get(&lock),
            Wish::Thread(thread) => self.awaited.get(&thread),
        };
        for &next in having.into_iter().flatten() {
            if next <= path[0] && !WAITS {
                continue;
            }
            let other = &dependencies[next];
            // Of wishes of the kind that the path began with, none before the first.
            let in_order = if WAITS { next > path[0] || !self.waits(next) } else { !self.waits(next) };
            let fits = in_order
                && last.blocked_by(other)
                && path.iter().all(|&earlier| {
                    let earlier = &dependencies[earlier];
                    earlier.thread != other.thread && !graph.exclude(earlier, other)
                });
            if fits {
                path.push(next);
                self.extend::<WAITS>(path, length);
                path.pop();
            }
        }
    }
}

/// Whether the event's thread makes no access behind it.
fn does_nothing_behind(trace: &Trace, event: EventIndex) -> bool {
    let order = trace.program_order();
    let (thread, at) = order.place(event);
    let is_access = |event: EventIndex| matches!(trace.kind(event), EventKind::Access(_));
    !order.range(thread as usize, at + 1..order.count(thread as usize)).any(is_access)
}
