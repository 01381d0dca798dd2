//! Lock dependencies and the cycles among them.
//!
//! Computed: abstract dependencies ⟨thread, lock wanted, locks held, site⟩ with their instances in the trace, and *abstract deadlock
//! patterns*: cycles of 2 to 5 dependencies of different threads, each wanting a lock that the next holds, no two of them holding a lock that
//! would exclude the other (a gate lock); Tunç, Mathur, Pavlogiannis, Viswanathan, "Sound Dynamic Deadlock Prediction in Linear Time",
//! PLDI 2023, §4. Instances ordered by thread creation, conditions, barriers and the like are told apart by [`LockGraph::concurrent`].
//!
//! Rules: an acquisition that cannot wait (try, timed) wants nothing but holds; a request that never got its lock counts like an
//! acquisition; both sides in shared mode do not exclude. Limits: [`MAX_INSTANCES`] instances per dependency (the first ones); the
//! re-acquisition of a mutex after a condition wait holds, but is not counted as wanting; a thread blocked on itself is no pattern.

use crate::clock::Stamp;
use crate::happens_before::{HappensBefore, Model};
use crate::hash::IntegerMap;
use crate::lockset::{Held, LockSets, exclude};
use rashomon_event::{Address, Event, EventIndex, EventKind, LockMode, SiteId, ThreadId, Trace};

pub const MAX_INSTANCES: usize = 4096;
/// Search steps after which the enumeration of cycles stops.
const MAX_STEPS: usize = 4_000_000;

/// One acquisition (or request) of a dependency.
#[derive(Clone, Debug)]
pub struct Instance {
    pub event: EventIndex,
    /// The moment in the weak order.
    pub moment: Stamp,
}

#[derive(Clone, Debug)]
pub struct Dependency {
    pub thread: ThreadId,
    pub wanted: Address,
    pub mode: LockMode,
    /// Sorted.
    pub held: Vec<(Address, LockMode)>,
    pub site: SiteId,
    /// In the order of the trace.
    pub instances: Vec<Instance>,
    /// All instances, also those not kept.
    pub occurrences: u64,
}

impl Dependency {
    /// Whether this one's wish is held by the other in a mode that blocks it.
    fn blocked_by(&self, other: &Self) -> bool {
        other.held.iter().any(|&(lock, mode)| lock == self.wanted && !(mode == LockMode::Shared && self.mode == LockMode::Shared))
    }
}

/// A cycle: indices into [`LockGraph::dependencies`]; each wants a lock that the next one holds.
pub type Pattern = Vec<usize>;

pub struct LockGraph {
    pub dependencies: Vec<Dependency>,
    /// Events that are requests which never got their lock.
    pub unanswered: Vec<EventIndex>,
}

/// What instances of one dependency have in common.
type Shape = (ThreadId, Address, LockMode, Vec<(Address, LockMode)>, SiteId);

#[derive(Default)]
struct Gathering {
    numbers: IntegerMap<Shape, usize>,
    /// The same by lock set number, to spare the common case the long key: site, set, wanted, thread, whether shared.
    short: IntegerMap<(u32, u32, u64, u32, u8), usize>,
    dependencies: Vec<Dependency>,
}

impl Gathering {
    fn add(&mut self, event: &Event, wanted: Address, mode: LockMode, set: (u32, &[Held]), instance: Instance) {
        let short = (event.site.0, set.0, wanted.0, event.thread.0, u8::from(mode == LockMode::Shared));
        let number = self.short.get(&short).copied().unwrap_or_else(|| {
            let mut held: Vec<_> = set.1.iter().map(|held| (held.lock, held.mode)).collect();
            held.sort_unstable();
            let next = self.dependencies.len();
            let key = (event.thread, wanted, mode, held, event.site);
            let number = *self.numbers.entry(key.clone()).or_insert(next);
            if number == next {
                let (thread, wanted, mode, held, site) = key;
                let instances = Vec::new();
                self.dependencies.push(Dependency { thread, wanted, mode, held, site, instances, occurrences: 0 });
            }
            self.short.insert(short, number);
            number
        });
        let dependency = &mut self.dependencies[number];
        dependency.occurrences += 1;
        if dependency.instances.len() < MAX_INSTANCES {
            dependency.instances.push(instance);
        }
    }
}

impl LockGraph {
    pub fn new(trace: &Trace) -> Self {
        let mut order = HappensBefore::new(trace, Model::WEAK);
        let count = order.threads();
        let mut locks = LockSets::new(count);
        let mut gathering = Gathering::default();
        let mut asked: Vec<Option<(EventIndex, Address, LockMode)>> = vec![None; count];
        for (index, event) in trace.indices().zip(&trace.events) {
            if matches!(event.kind, EventKind::Access(_)) {
                asked[event.thread.index()] = None;
                continue;
            }
            order.receive(event);
            match event.kind {
                EventKind::Request { lock, mode } => asked[event.thread.index()] = Some((index, lock, mode)),
                EventKind::Blocked { .. } => {}
                _ => asked[event.thread.index()] = None,
            }
            if let EventKind::Acquire { lock, mode, may_wait: true } = event.kind
                && !locks.held(event.thread).is_empty()
            {
                let set = (locks.current(event.thread).0, locks.held(event.thread));
                gathering.add(event, lock, mode, set, Instance { event: index, moment: order.now(event.thread) });
            }
            locks.step(index, event);
            order.release(index, event);
        }
        let mut unanswered = Vec::new();
        for (index, lock, mode) in asked.into_iter().flatten() {
            let event = trace.event(index);
            let held = locks.held(event.thread);
            if !held.is_empty() && held.iter().all(|held| held.lock != lock) {
                let set = (locks.current(event.thread).0, held);
                // The thread did nothing after its request, so its present moment is that of the request.
                gathering.add(event, lock, mode, set, Instance { event: index, moment: order.now(event.thread) });
                unanswered.push(index);
            }
        }
        unanswered.sort_unstable();
        Self { dependencies: gathering.dependencies, unanswered }
    }

    /// Whether the weak order leaves these two moments unordered.
    pub fn concurrent(one: &Instance, other: &Instance) -> bool {
        one.moment.concurrent(&other.moment)
    }

    /// Abstract deadlock patterns of at most `threads` threads, at most `limit` of them; shorter ones first. The smallest dependency
    /// of a cycle comes first in it.
    pub fn patterns(&self, threads: usize, limit: usize) -> Vec<Pattern> {
        let mut holders: IntegerMap<Address, Vec<usize>> = IntegerMap::default();
        for (number, dependency) in self.dependencies.iter().enumerate() {
            for &(lock, _) in &dependency.held {
                holders.entry(lock).or_default().push(number);
            }
        }
        let mut search = Search { graph: self, holders: &holders, limit, steps: MAX_STEPS, found: Vec::new() };
        for length in 2..=threads.min(5) {
            for start in 0..self.dependencies.len() {
                search.extend(&mut vec![start], length);
            }
        }
        search.found
    }
}

struct Search<'g> {
    graph: &'g LockGraph,
    holders: &'g IntegerMap<Address, Vec<usize>>,
    limit: usize,
    steps: usize,
    found: Vec<Pattern>,
}

impl Search<'_> {
    fn extend(&mut self, path: &mut Pattern, length: usize) {
        if self.steps == 0 || self.found.len() >= self.limit {
            return;
        }
        self.steps -= 1;
        let graph = self.graph;
        let last = &graph.dependencies[path[path.len() - 1]];
        if path.len() == length {
            if last.blocked_by(&graph.dependencies[path[0]]) {
                self.found.push(path.clone());
            }
            return;
        }
        let Some(holders) = self.holders.get(&last.wanted) else { return };
        for &next in holders {
            let other = &graph.dependencies[next];
            let fits = next > path[0]
                && last.blocked_by(other)
                && path.iter().all(|&earlier| {
                    let earlier = &graph.dependencies[earlier];
                    earlier.thread != other.thread && !exclude(&earlier.held, &other.held)
                });
            if fits {
                path.push(next);
                self.extend(path, length);
                path.pop();
            }
        }
    }
}
