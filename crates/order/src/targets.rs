//! All pairs of conflicting accesses of a trace, by their two source sites: what provocation has to try.
//!
//! After the RaceHunter paper (Programming and Computer Software 50(6), 2024), Definition 10 for conflicts and Algorithm 2 for
//! descriptors. Additions: pairs that the creation and joining of threads orders in every execution with these threads are left
//! out, nothing else is (the paper's Listing 1 holds one lock around both recorded accesses, and races); pairs with equal sites
//! are one target, those that happens-before leaves unordered come first, then those without a common lock, then the rest, rare
//! ones before frequent ones.
//!
//! Guarantee: every conflicting pair that fork and join leave unordered is represented, but for accesses beyond [`CELLS`] kinds
//! of a granule. Cost: one pass, and the square of the kinds of accesses of each shared granule.

use crate::candidates::{hybrid_until, races_until};
use crate::happens_before::{Model, thread_count};
use crate::shared_memory::SharedMemory;
use rashomon_event::{ContextId, Deadline, EventIndex, EventKind, Evidence, SiteId, ThreadId, Trace};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// Kinds of accesses (thread, time, site, bytes) that are kept of a granule.
pub const CELLS: usize = 256;
/// From so many on, the pairs of one granule take long enough to look at the clock before.
const MANY: usize = 16;

/// Two sites whose accesses conflict, and two accesses that do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Smaller site first.
    pub sites: (SiteId, SiteId),
    /// The earliest such pair of the trace, earlier event first.
    pub first: EventIndex,
    pub second: EventIndex,
    pub evidence: Evidence,
    /// Pairs of kinds of accesses with these sites.
    pub occurrences: u64,
}

/// Where a thread stands by fork and join alone. Equal (thread, time), equal knowledge.
#[derive(Clone)]
struct Moment {
    thread: ThreadId,
    time: u32,
    knows: Arc<[u32]>,
}

impl Moment {
    fn before(&self, later: &Self) -> bool {
        later.knows.get(self.thread.index()).is_some_and(|&time| time >= self.time)
    }
}

/// Vector clocks of creation and joining.
struct ForkJoin {
    now: Vec<Moment>,
}

impl ForkJoin {
    fn new(threads: usize) -> Self {
        let start = |thread: usize| {
            let mut knows = vec![0; threads];
            knows[thread] = 1;
            Moment { thread: ThreadId(thread as u32), time: 1, knows: knows.into() }
        };
        Self { now: (0..threads).map(start).collect() }
    }

    fn pass(&mut self, from: ThreadId, to: ThreadId) {
        let Some(given) = self.now.get(from.index()).map(|moment| Arc::clone(&moment.knows)) else { return };
        let Some(taker) = self.now.get_mut(to.index()) else { return };
        let mut knows: Vec<u32> = taker.knows.iter().zip(given.iter()).map(|(own, other)| *own.max(other)).collect();
        taker.time += 1;
        knows[to.index()] = taker.time;
        taker.knows = knows.into();
    }

    fn step(&mut self, thread: ThreadId, kind: EventKind) {
        match kind {
            EventKind::Fork { child } => {
                self.pass(thread, child);
                // What the parent does from here on the child does not know of.
                self.pass(thread, thread);
            }
            EventKind::Join { child, .. } => self.pass(child, thread),
            _ => {}
        }
    }
}

/// Accesses of one kind to one granule: the first of them stands for all.
struct Cell {
    moment: u32,
    site: SiteId,
    bytes: u8,
    writes: bool,
    atomic: bool,
    event: EventIndex,
}

/// What was found of a trace's targets, the likeliest first.
#[derive(Clone, Debug, Default)]
pub struct Targets {
    pub found: Vec<Target>,
    /// Not cut short by the deadline.
    pub complete: bool,
}

/// All targets, the likeliest first.
pub fn targets(trace: &Trace) -> Vec<Target> {
    targets_until(trace, false, Deadline::NEVER).found
}

/// Those that there is time for. `with_ordered`: also those that creation and joining order, so that what leaving them out saves
/// and loses can be measured.
pub fn targets_until(trace: &Trace, with_ordered: bool, deadline: Deadline) -> Targets {
    let memory = SharedMemory::until(trace, deadline);
    if !memory.is_complete() {
        return Targets::default();
    }
    let threads = thread_count(trace);
    let mut order = ForkJoin::new(threads);
    let mut moments: Vec<Moment> = Vec::new();
    let mut moment_of: HashMap<(ThreadId, u32), u32> = HashMap::new();
    let mut granules: Vec<Vec<Cell>> = (0..memory.len()).map(|_| Vec::new()).collect();
    for (index, event) in deadline.bound(trace.indices().zip(&trace.events)) {
        order.step(event.thread, event.kind);
        let Some(access) = event.access() else { continue };
        for (granule, bytes) in memory.granules(&access) {
            let now = &order.now[event.thread.index()];
            let moment = *moment_of.entry((now.thread, now.time)).or_insert_with(|| {
                moments.push(now.clone());
                moments.len() as u32 - 1
            });
            let cell =
                Cell { moment, site: event.site, bytes, writes: access.class.writes(), atomic: access.atomic, event: index };
            let cells = &mut granules[granule];
            let known = cells.iter().any(|old| {
                (old.moment, old.site, old.bytes, old.writes, old.atomic)
                    == (cell.moment, cell.site, cell.bytes, cell.writes, cell.atomic)
            });
            if !known && cells.len() < CELLS {
                cells.push(cell);
            }
        }
    }
    let mut found: BTreeMap<(SiteId, SiteId), Target> = BTreeMap::new();
    for cells in &granules {
        if cells.len() >= MANY && deadline.is_over() {
            break;
        }
        for (at, second) in cells.iter().enumerate() {
            for first in &cells[..at] {
                let (one, other) = (&moments[first.moment as usize], &moments[second.moment as usize]);
                let conflict = one.thread != other.thread
                    && first.bytes & second.bytes != 0
                    && (first.writes || second.writes)
                    && !(first.atomic && second.atomic);
                if !conflict || !with_ordered && (one.before(other) || other.before(one)) {
                    continue;
                }
                let sites = (first.site.min(second.site), first.site.max(second.site));
                let target = found.entry(sites).or_insert_with(|| Target {
                    sites,
                    first: first.event,
                    second: second.event,
                    evidence: Evidence::Conflict,
                    occurrences: 0,
                });
                target.occurrences += 1;
                if (second.event, first.event) < (target.second, target.first) {
                    (target.first, target.second) = (first.event, second.event);
                }
            }
        }
    }
    let suspected = hybrid_until(trace, &memory, 1, deadline);
    let unordered = races_until(trace, &memory, Model::CPP20, 1, deadline);
    for (evidence, pairs) in [(Evidence::Hybrid, suspected), (Evidence::HappensBefore, unordered)] {
        for pair in pairs {
            if let Some(target) = found.get_mut(&pair.sites) {
                target.evidence = evidence;
            }
        }
    }
    let mut targets: Vec<Target> = found.into_values().collect();
    targets.sort_by_key(|target| (rank(target.evidence), target.occurrences, target.second, target.first));
    Targets { found: targets, complete: !deadline.is_over() }
}

const fn rank(evidence: Evidence) -> u8 {
    match evidence {
        Evidence::HappensBefore => 0,
        Evidence::Hybrid => 1,
        _ => 2,
    }
}

/// What tells an access of a thread apart from its other accesses at the same site (Algorithm 2): the shortest top of the call
/// stack, innermost call first, and the ordinal among the accesses that match it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Apart {
    pub frames: Vec<SiteId>,
    pub ordinal: u64,
}

/// Makes [`Apart`]s of a trace's accesses.
pub struct Describe<'t> {
    trace: &'t Trace,
    /// Accesses of each thread at each site of interest: how many in each context, in the order of first appearance.
    accesses: FxHashMap<(u32, u32), Vec<(EventIndex, ContextId)>>,
}

impl<'t> Describe<'t> {
    /// `sites`: those of the accesses that will be asked for.
    pub fn new(trace: &'t Trace, sites: &BTreeSet<SiteId>) -> Self {
        let mut accesses: FxHashMap<(u32, u32), Vec<(EventIndex, ContextId)>> = FxHashMap::default();
        for (index, event) in trace.indices().zip(&trace.events) {
            if event.access().is_some() && sites.contains(&event.site) {
                accesses.entry((event.thread.0, event.site.0)).or_default().push((index, event.context));
            }
        }
        Self { trace, accesses }
    }

    pub fn of(&self, index: EventIndex) -> Apart {
        let event = self.trace.event(index);
        let Some(accesses) = self.accesses.get(&(event.thread.0, event.site.0)) else {
            return Apart { frames: Vec::new(), ordinal: 0 };
        };
        let own = self.trace.callers(event.context);
        let others: BTreeSet<ContextId> =
            accesses.iter().map(|(_, context)| *context).filter(|context| *context != event.context).collect();
        // How many calls the other stacks have in common with this one, from the innermost on.
        let common = |context: ContextId| self.trace.callers(context).iter().zip(&own).take_while(|(a, b)| a == b).count();
        let length = others.iter().map(|context| common(*context) + 1).max().unwrap_or(0).min(own.len());
        let frames = own[..length].to_vec();
        let matches = |context: ContextId| self.trace.callers(context).starts_with(&frames);
        let matching: BTreeMap<ContextId, bool> =
            others.into_iter().chain([event.context]).map(|context| (context, matches(context))).collect();
        let before = accesses.iter().take_while(|(other, _)| *other < index);
        let ordinal = before.filter(|(_, context)| matching.get(context).copied().unwrap_or(false)).count() as u64;
        Apart { frames, ordinal }
    }
}
