//! What a recording shows that earlier ones did not: the measure by which more recordings are worth their time.
//!
//! Three things are counted, each by places in the code, which are the same in every execution: *sites* that ran; *orders*, a
//! site and the next one of another thread that touches the same bytes (one of the two writes) or the same synchronisation
//! object; *lock edges*, an acquisition within the critical section that another one began.
//!
//! A schedule that shows none of them new has shown what the analyses knew: they look at pairs of sites and at pairs of
//! acquisitions. It is a measure and no proof: values and longer patterns are not in it.

use rashomon_event::{Access, Address, Deadline, EventKind, SiteId, Trace};
use rustc_hash::{FxHashMap, FxHashSet, FxHasher};
use std::hash::{Hash as _, Hasher as _};

/// A site in all executions: a hash of its module's path and its offset there.
type Place = u64;

/// What one recording shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shown {
    sites: FxHashSet<Place>,
    orders: FxHashSet<(Place, Place)>,
    lock_edges: FxHashSet<(Place, Place)>,
}

/// What all recordings so far have shown.
#[derive(Clone, Debug, Default)]
pub struct Novelty {
    known: Shown,
}

/// How much of a recording was new.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct New {
    pub sites: usize,
    pub orders: usize,
    pub lock_edges: usize,
}

impl New {
    pub const fn is_any(self) -> bool {
        self.sites + self.orders + self.lock_edges > 0
    }
}

impl Novelty {
    /// Adds what a recording shows.
    pub fn learn(&mut self, shown: Shown) -> New {
        fn add<T: Eq + std::hash::Hash>(known: &mut FxHashSet<T>, shown: FxHashSet<T>) -> usize {
            let before = known.len();
            known.extend(shown);
            known.len() - before
        }
        New {
            sites: add(&mut self.known.sites, shown.sites),
            orders: add(&mut self.known.orders, shown.orders),
            lock_edges: add(&mut self.known.lock_edges, shown.lock_edges),
        }
    }
}

/// Bytes that are looked at together. Of a long access only its beginning is.
const GRANULE: u64 = 8;
const MOST_GRANULES: u64 = 64;

/// Who came to a granule last: thread and site of the last write, and of the last read since.
#[derive(Clone, Copy, Default)]
struct Last {
    write: Option<(u32, SiteId)>,
    read: Option<(u32, SiteId)>,
}

impl Shown {
    /// Of the events up to the deadline.
    pub fn of(trace: &Trace, deadline: Deadline) -> Self {
        let mut sites: FxHashSet<SiteId> = FxHashSet::default();
        let mut orders: FxHashSet<(SiteId, SiteId)> = FxHashSet::default();
        let mut edges: FxHashSet<(SiteId, SiteId)> = FxHashSet::default();
        let mut granules: FxHashMap<u64, Last> = FxHashMap::default();
        let mut objects: FxHashMap<Address, (u32, SiteId)> = FxHashMap::default();
        let mut held: FxHashMap<u32, Vec<(Address, SiteId)>> = FxHashMap::default();
        for event in deadline.bound(&trace.events) {
            let (thread, site) = (event.thread.0, event.site);
            sites.insert(site);
            if let Some(access) = event.access() {
                for granule in granules_of(&access) {
                    let last = granules.entry(granule).or_default();
                    let others = if access.class.writes() { [last.write, last.read] } else { [last.write, None] };
                    orders.extend(others.into_iter().flatten().filter(|other| other.0 != thread).map(|other| (other.1, site)));
                    if access.class.writes() {
                        *last = Last { write: Some((thread, site)), read: None };
                    } else {
                        last.read = Some((thread, site));
                    }
                }
            }
            if let Some(object) = object_of(&event.kind)
                && let Some(other) = objects.insert(object, (thread, site))
                && other.0 != thread
            {
                orders.insert((other.1, site));
            }
            match event.kind {
                EventKind::Acquire { lock, .. } | EventKind::WaitEnd { mutex: lock, .. } => {
                    let held = held.entry(thread).or_default();
                    edges.extend(held.iter().map(|(_, around)| (*around, site)));
                    held.push((lock, site));
                }
                EventKind::Request { .. } => {
                    edges.extend(held.entry(thread).or_default().iter().map(|(_, around)| (*around, site)));
                }
                EventKind::Release { lock, .. } | EventKind::WaitBegin { mutex: lock, .. } => {
                    let held = held.entry(thread).or_default();
                    if let Some(at) = held.iter().rposition(|(other, _)| *other == lock) {
                        held.remove(at);
                    }
                }
                _ => {}
            }
        }
        let places: Vec<Place> = trace.sites.iter().map(|site| place(trace, site)).collect();
        let of = |site: SiteId| places.get(site.index()).copied().unwrap_or_default();
        let pairs = |pairs: FxHashSet<(SiteId, SiteId)>| pairs.into_iter().map(|(one, other)| (of(one), of(other))).collect();
        Self { sites: sites.into_iter().map(of).collect(), orders: pairs(orders), lock_edges: pairs(edges) }
    }

    /// What several processes of one recording show.
    pub fn add(&mut self, other: Self) {
        self.sites.extend(other.sites);
        self.orders.extend(other.orders);
        self.lock_edges.extend(other.lock_edges);
    }
}

fn granules_of(access: &Access) -> impl Iterator<Item = u64> + use<> {
    let first = access.address.0 / GRANULE;
    let last = access.address.0.saturating_add(u64::from(access.size.max(1)) - 1) / GRANULE;
    first..=last.min(first + (MOST_GRANULES - 1))
}

/// The object that other threads' operations meet at.
const fn object_of(kind: &EventKind) -> Option<Address> {
    match *kind {
        EventKind::Acquire { lock, .. } | EventKind::Release { lock, .. } | EventKind::Request { lock, .. } => Some(lock),
        EventKind::WaitBegin { condition, .. } | EventKind::WaitEnd { condition, .. } | EventKind::Signal { condition, .. } => {
            Some(condition)
        }
        EventKind::BarrierEnter { barrier, .. } => Some(barrier),
        EventKind::Post { semaphore } | EventKind::Take { semaphore } => Some(semaphore),
        EventKind::OnceBegin { once } | EventKind::OnceSeen { once } => Some(once),
        EventKind::ReleaseObject { object } | EventKind::AcquireObject { object } => Some(object),
        _ => None,
    }
}

fn place(trace: &Trace, site: &rashomon_event::Site) -> Place {
    let mut hasher = FxHasher::default();
    match site.module.and_then(|module| trace.modules.get(module as usize)) {
        Some(module) => module.path.hash(&mut hasher),
        None => 0_u8.hash(&mut hasher),
    }
    site.offset.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rashomon_event::{AccessClass, LockMode, ThreadId};
    use rashomon_testkit::TraceBuilder;

    const WORD: Address = Address(64);

    fn access(class: AccessClass) -> EventKind {
        EventKind::Access(Access { address: WORD, size: 4, class, atomic: false })
    }

    /// Thread, site and operation of each event.
    fn shown(events: &[(u32, u32, EventKind)]) -> Shown {
        let mut builder = TraceBuilder::with_threads(3);
        for &(thread, site, kind) in events {
            builder.push_at(ThreadId(thread), kind, SiteId(site));
        }
        Shown::of(&builder.build(), Deadline::NEVER)
    }

    fn acquire(lock: u64) -> EventKind {
        EventKind::Acquire { lock: Address(lock), mode: LockMode::Exclusive, may_wait: true }
    }

    fn release(lock: u64) -> EventKind {
        EventKind::Release { lock: Address(lock), mode: LockMode::Exclusive }
    }

    #[test]
    fn the_same_again_is_nothing_new() {
        let events = [(0, 0, access(AccessClass::Write)), (1, 1, access(AccessClass::Read))];
        let mut novelty = Novelty::default();
        assert_eq!(novelty.learn(shown(&events)), New { sites: 2, orders: 1, lock_edges: 0 });
        assert!(!novelty.learn(shown(&events)).is_any());
    }

    #[test]
    fn another_order_of_conflicting_sites_is_new() {
        let (write, read) = ((0, 0, access(AccessClass::Write)), (1, 1, access(AccessClass::Read)));
        let mut novelty = Novelty::default();
        novelty.learn(shown(&[write, read]));
        assert_eq!(novelty.learn(shown(&[read, write])), New { sites: 0, orders: 1, lock_edges: 0 });
    }

    #[test]
    fn reads_have_no_order() {
        let reads = [(0, 0, access(AccessClass::Read)), (1, 1, access(AccessClass::Read))];
        assert_eq!(shown(&reads).orders.len(), 0);
        let alone = [(0, 0, access(AccessClass::Write)), (0, 1, access(AccessClass::Read))];
        assert_eq!(shown(&alone).orders.len(), 0);
    }

    #[test]
    fn a_lock_within_another_is_an_edge() {
        let nested = [(0, 0, acquire(8)), (0, 1, acquire(16)), (0, 2, release(16)), (0, 3, release(8))];
        let mut novelty = Novelty::default();
        assert_eq!(novelty.learn(shown(&nested)).lock_edges, 1);
        let one_by_one = [(0, 0, acquire(8)), (0, 3, release(8)), (0, 1, acquire(16)), (0, 2, release(16))];
        assert!(!novelty.learn(shown(&one_by_one)).is_any());
        let other_way = [(1, 4, acquire(16)), (1, 5, acquire(8))];
        assert_eq!(novelty.learn(shown(&other_way)).lock_edges, 1);
    }

    #[test]
    fn who_has_a_lock_after_whom_is_an_order() {
        let one = [(0, 0, acquire(8)), (0, 1, release(8)), (1, 2, acquire(8)), (1, 3, release(8))];
        let other = [(1, 2, acquire(8)), (1, 3, release(8)), (0, 0, acquire(8)), (0, 1, release(8))];
        let mut novelty = Novelty::default();
        novelty.learn(shown(&one));
        assert_eq!(novelty.learn(shown(&other)), New { sites: 0, orders: 1, lock_edges: 0 });
    }
}
