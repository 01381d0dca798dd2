//! Are regions that should be atomic conflict-serialisable in this trace?
//!
//! Farzan, Madhusudan (CAV 2008) and Flanagan, Freund, Yi, "Velodrome", PLDI 2008: a transaction is an outermost region, or a
//! single event outside; one is ordered before another if an event of the former comes before an event of the latter that is of
//! the same thread, conflicts with it, or is ordered behind it by synchronisation. The regions are serialisable exactly if that
//! graph has no cycle. Instead of the graph there are clocks, as in Mathur, Viswanathan, "Atomicity Checking in Linear Time using
//! Vector Clocks", ASPLOS 2020 (AeroDrome); over transactions, so that a variable needs only the names of its latest ones.
//!
//! An edge that closes a cycle is reported, with the open region that it ends in and the transaction that it comes from; then it
//! is an edge like others. A region *violates* if it lies on a cycle of the whole trace's graph; all that do are counted, and
//! named when the edge comes that closes their first cycle ([`crate::cycles`]).
//!
//! Ma et al., "RegionTrack: A Trace-Based Sound and Complete Checker to Debug Transactional Atomicity Violations and
//! Non-Serializable Traces", TOSEM 2021, tell violating transactions from non-serialisable traces. Causal atomicity of one
//! region (Farzan, Madhusudan, CAV 2006) is violated by fewer regions than lie on cycles: a cycle may leave a region before the
//! event at which it came in, as in `T2 begins, writes y; T1 begins, writes x; T2 writes x, ends; T1 writes y, ends`.
//!
//! Deviations: (1) clocks are propagated on demand, not at the end of a transaction ([`crate::transactions`]); (2) every
//! region on a cycle violates, not only one that is not causally atomic; (3) atomics are accesses, fences nothing; (4) a thread's
//! single events are one transaction until something reaches them that a cycle may go through, so an edge from one of them is
//! counted once.
//!
//! Guarantee: there is a report exactly if the trace is not conflict-serialisable, at the earliest event; violating regions are
//! exactly those on cycles, unless more than [`Serialisability::remembering`] are reachable from open regions: forgotten ones
//! are counted. Cost: O(1) for an access whose order is known, else O(threads²); 8 bytes a variable, 24 a remembered region.

use crate::analysis::Analysis;
use crate::clock::greatest_thread;
use crate::hints::{prefetch, push};
use crate::latest::{MANY_READERS, Readers, Record, UNTOUCHED};
use crate::table::Table;
use crate::transactions::{Graph, NONE, NodeId, Region};
use rashomon_packed::{Event, Op, Space};
use std::collections::BTreeMap;

/// How many events before its turn a variable is asked for.
const AHEAD: usize = 32;
/// And the names of its latest transactions, when their numbers are there.
const NEAR: usize = 12;
/// If there are so many transactions that no cache has all their names.
const MANY: usize = 1 << 17;

/// What counts as a region.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Regions {
    /// From begin to end.
    #[default]
    Marked,
    /// From the first lock taken to the last one given back.
    CriticalSections,
    /// Either; the outermost counts.
    All,
}

/// An edge that closes a cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Violation {
    pub region: Region,
    /// The edge's second event, in the region.
    pub event: u64,
    pub location: u32,
    /// Where the edge comes from, and its region if it is in one.
    pub other_thread: u16,
    pub other: Option<Region>,
}

/// All violating regions of one name that began at one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ViolatingPlace {
    /// The one that began first.
    pub first: Region,
    pub count: u64,
}

/// All edges that close cycles, of one pair of places where regions begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ViolationPair {
    pub first: Violation,
    pub count: u64,
}

/// (name, location) of the violating region and of the other one.
pub type Ends = ((u32, u32), Option<(u32, u32)>);

/// Pairs that are kept, and places.
pub const MAX_VIOLATIONS: usize = 1 << 16;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Violations {
    regions: u64,
    violating: u64,
    /// By name and location.
    places: BTreeMap<(u32, u32), ViolatingPlace>,
    pairs: BTreeMap<Ends, ViolationPair>,
    forgotten: u64,
    dropped: bool,
}

impl Violations {
    /// Regions that began.
    pub fn regions(&self) -> u64 {
        self.regions
    }

    /// Executions of regions that lie on a cycle.
    pub fn violating(&self) -> u64 {
        self.violating
    }

    /// Executions of regions that were forgotten before it was sure that they do not.
    pub fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// The regions that lie on a cycle.
    pub fn places(&self) -> &BTreeMap<(u32, u32), ViolatingPlace> {
        &self.places
    }

    /// The edges that close cycles.
    pub fn pairs(&self) -> &BTreeMap<Ends, ViolationPair> {
        &self.pairs
    }

    /// Whether there were more pairs, or places, than are kept.
    pub fn dropped(&self) -> bool {
        self.dropped
    }

    /// Calls threads by other names.
    pub(crate) fn rename_threads(&mut self, name: impl Fn(u16) -> u16) {
        self.places.values_mut().for_each(|place| place.first.thread = name(place.first.thread));
        for ViolationPair { first, .. } in self.pairs.values_mut() {
            first.other_thread = name(first.other_thread);
            for region in first.other.iter_mut().chain([&mut first.region]) {
                region.thread = name(region.thread);
            }
        }
    }

    /// The region lies on a cycle; told once.
    fn attribute(&mut self, region: Region) {
        self.violating += 1;
        let of_place = self.places.entry((region.name, region.location));
        let place = of_place.or_insert(ViolatingPlace { first: region, count: 0 });
        place.count += 1;
        if region.event < place.first.event {
            place.first = region;
        }
        if self.places.len() > MAX_VIOLATIONS {
            self.places.pop_last();
            self.dropped = true;
        }
    }

    fn add(&mut self, violation: Violation) {
        let name = |region: Region| (region.name, region.location);
        let ends = (name(violation.region), violation.other.map(name));
        self.pairs.entry(ends).and_modify(|pair| pair.count += 1).or_insert(ViolationPair { first: violation, count: 1 });
        if self.pairs.len() > MAX_VIOLATIONS {
            self.pairs.pop_last();
            self.dropped = true;
        }
    }
}

#[derive(Clone, Debug, Default)]
struct Released {
    exclusive: Option<NodeId>,
    shared: Vec<NodeId>,
}

#[derive(Clone, Debug, Default)]
pub struct Serialisability {
    regions: Regions,
    graph: Graph,
    records: Table<Record>,
    readers: Vec<Readers>,
    free: Vec<u32>,
    /// Readers that are in no cache line of the others.
    more: usize,
    locks: Table<Released>,
    objects: Table<Vec<NodeId>>,
    /// Regions that a thread is in, one inside the other.
    depth: Vec<u32>,
    /// Of a thread that has not done anything yet.
    forked_by: Vec<NodeId>,
    violations: Violations,
}

impl Serialisability {
    pub fn new(regions: Regions) -> Self {
        Self { regions, ..Self::default() }
    }

    /// Remembers at most so many regions, of those that an open one reaches, that a cycle may still be found through.
    pub fn remembering(mut self, most: usize) -> Self {
        self.graph.cycles().remember(most);
        self
    }

    /// Looks before every block for what may be forgotten. That takes time, and edges to one region may come in another order:
    /// each of the later ones is counted only if no earlier one implies it.
    pub fn eager(mut self) -> Self {
        self.graph.be_eager();
        self
    }

    pub fn found(mut self) -> Violations {
        self.violations.forgotten += self.graph.cycles().forgotten();
        self.violations
    }

    /// Nothing but what was found.
    pub(crate) fn without_tables(self) -> Self {
        Self { violations: self.found(), ..Self::default() }
    }

    fn begins(&self, op: Op) -> bool {
        match op {
            Op::Begin => self.regions != Regions::CriticalSections,
            Op::Acquire | Op::AcquireShared => self.regions != Regions::Marked,
            _ => false,
        }
    }

    fn ends(&self, op: Op) -> bool {
        match op {
            Op::End => self.regions != Regions::CriticalSections,
            Op::Release | Op::ReleaseShared => self.regions != Regions::Marked,
            _ => false,
        }
    }

    /// What the node did comes before the event.
    #[inline]
    fn order(&mut self, from: NodeId, event: &Event, number: u64) {
        let to = self.graph.current(event.thread);
        if from != NONE && from != to && !self.graph.reaches(from, to) {
            self.order_news(from, event, number);
        }
    }

    #[inline(never)]
    fn order_news(&mut self, from: NodeId, event: &Event, number: u64) {
        if self.graph.is_final(from) {
            return;
        }
        let mut to = self.graph.current(event.thread);
        if !self.graph.is_in_region(event.thread) {
            // Single events are transactions of their own; those without news can share one.
            to = self.graph.advance(event.thread, None);
        } else if self.graph.reaches_at_last(to, from) {
            self.violate(from, to, event, number);
        }
        self.graph.add_edge(from, to);
    }

    /// An edge is about to close a cycle.
    #[cold]
    fn violate(&mut self, from: NodeId, to: NodeId, event: &Event, number: u64) {
        // Over regions that are open, it may be known already.
        if self.graph.reaches_at_last(from, to) {
            return;
        }
        for region in self.graph.close_cycles(from, to) {
            self.violations.attribute(region);
        }
        self.violations.add(Violation {
            region: self.graph.region(to).expect("an open node is a region"),
            event: number,
            location: event.location,
            other_thread: self.graph.thread(from),
            other: self.graph.region(from),
        });
    }

    fn access(&mut self, event: &Event, number: u64) {
        let variable = event.target as usize;
        let record = *self.records.at(variable);
        self.order(record.write, event, number);
        if event.op.writes() {
            if let Some(list) = record.list() {
                let readers = self.forget_readers(list);
                readers.all().for_each(|(_, reader)| self.order(reader, event, number));
            } else {
                self.order(record.read, event, number);
            }
            *self.records.known_mut(variable) = Record { write: self.graph.current(event.thread), ..UNTOUCHED };
            return;
        }
        let own = self.graph.current(event.thread);
        let list = match record.list() {
            Some(list) => list,
            None => {
                let only = record.read;
                if only == NONE || only == own || self.graph.reaches(only, own) || self.graph.is_final(only) {
                    self.records.known_mut(variable).read = own;
                    return;
                }
                let list = self.list_of(only);
                self.records.known_mut(variable).read = MANY_READERS | list;
                list
            }
        };
        self.more += self.readers[list as usize].put(event.thread, own);
    }

    /// The number of a list with one reader.
    fn list_of(&mut self, reader: NodeId) -> u32 {
        let list = self.free.pop().unwrap_or_else(|| {
            push(&mut self.readers, Readers::default());
            self.readers.len() as u32 - 1
        });
        assert!(list < MANY_READERS - 1, "fewer lists than half of all numbers");
        self.more += self.readers[list as usize].put(self.graph.thread(reader), reader);
        list
    }

    /// The list can be another variable's.
    fn forget_readers(&mut self, list: u32) -> Readers {
        let readers = std::mem::take(&mut self.readers[list as usize]);
        self.more -= readers.more.len();
        self.free.push(list);
        readers
    }

    fn release(&mut self, event: &Event) {
        let lock = self.locks.at(event.target as usize);
        let own = self.graph.current(event.thread);
        if event.op == Op::Release {
            *lock = Released { exclusive: Some(own), shared: Vec::new() };
        } else {
            add(&mut lock.shared, own, &self.graph);
        }
    }

    fn acquire(&mut self, event: &Event, number: u64) {
        let Some(lock) = self.locks.get(event.target as usize) else { return };
        let shared = lock.shared.clone();
        if let Some(node) = lock.exclusive {
            self.order(node, event, number);
        }
        if event.op == Op::Acquire {
            shared.into_iter().for_each(|node| self.order(node, event, number));
        }
    }

    fn event(&mut self, event: &Event, number: u64) {
        let thread = usize::from(event.thread);
        if self.forked_by[thread] != NONE {
            let parent = std::mem::replace(&mut self.forked_by[thread], NONE);
            let first = self.graph.advance(event.thread, None);
            self.graph.add_edge(parent, first);
        }
        if self.begins(event.op) {
            self.depth[thread] += 1;
            if self.depth[thread] == 1 {
                let (name, location) = (event.target, event.location);
                self.graph.advance(event.thread, Some(Region { name, location, thread: event.thread, event: number }));
                self.violations.regions += 1;
            }
        }
        match event.op {
            op if op.is_access() => self.access(event, number),
            Op::Acquire | Op::AcquireShared => self.acquire(event, number),
            Op::Release | Op::ReleaseShared => self.release(event),
            Op::Fork if (event.target as usize) < self.depth.len() && event.target as usize != thread => {
                self.forked_by[event.target as usize] = self.graph.current(event.thread);
            }
            Op::Join if (event.target as usize) < self.depth.len() => {
                // A thread that did nothing is no transaction.
                let parent = self.forked_by[event.target as usize];
                let last = if parent == NONE { self.graph.current(event.target as u16) } else { parent };
                self.order(last, event, number);
            }
            Op::ReleaseObject | Op::Enter => {
                let own = self.graph.current(event.thread);
                add(self.objects.at(event.target as usize), own, &self.graph);
            }
            Op::AcquireObject | Op::Exit => {
                let released = self.objects.get(event.target as usize).cloned().unwrap_or_default();
                released.into_iter().for_each(|node| self.order(node, event, number));
            }
            Op::Forget => {
                let record = self.records.get_mut(event.target as usize).map(std::mem::take);
                if let Some(list) = record.and_then(Record::list) {
                    self.forget_readers(list);
                }
            }
            _ => {}
        }
        if self.ends(event.op) && self.depth[thread] > 0 {
            self.depth[thread] -= 1;
            if self.depth[thread] == 0 {
                self.graph.advance(event.thread, None);
            }
        }
    }

    /// Forgets final transactions, wherever they are named.
    fn sweep(&mut self) {
        let (unfinished, mut named) = (self.graph.unfinished(), self.graph.no_nodes());
        let mut keeps = |node: NodeId| {
            let keep = unfinished.has(node);
            if keep {
                named.add(node);
            }
            keep
        };
        for record in self.records.iter_mut() {
            if record.write != NONE && !keeps(record.write) {
                record.write = NONE;
            }
            if let Some(list) = record.list() {
                let readers = &mut self.readers[list as usize];
                self.more -= readers.retain(&mut keeps);
                if readers.count == 0 {
                    self.free.push(list);
                    record.read = NONE;
                }
            } else if record.read != NONE && !keeps(record.read) {
                record.read = NONE;
            }
        }
        for lock in self.locks.iter_mut() {
            lock.exclusive = lock.exclusive.filter(|node| keeps(*node));
            lock.shared.retain(|node| keeps(*node));
        }
        self.objects.iter_mut().for_each(|nodes| nodes.retain(|node| keeps(*node)));
        // Of a thread that has done nothing, this is what says so.
        self.forked_by.iter().for_each(|node| named.add(*node));
        self.graph.sweep(named, self.records.len());
    }
}

/// A node comes to a list of which all will be ordered before something: of a thread only the latest is needed.
fn add(nodes: &mut Vec<NodeId>, new: NodeId, graph: &Graph) {
    match nodes.iter().position(|node| graph.thread(*node) == graph.thread(new)) {
        Some(place) => nodes[place] = new,
        None => nodes.push(new),
    }
}

impl Analysis for Serialisability {
    fn block(&mut self, first: u64, events: &[Event]) {
        if let Some(thread) = greatest_thread(events) {
            self.graph.prepare(usize::from(thread) + 1);
            let threads = self.graph.threads();
            self.depth.resize(threads, 0);
            self.forked_by.resize(threads, NONE);
        }
        if self.graph.is_crowded() {
            self.sweep();
        }
        let many = self.graph.nodes() > MANY;
        for (place, event) in events.iter().enumerate() {
            if let Some(ahead) = events.get(place + AHEAD)
                && ahead.op.is_access()
            {
                self.records.prefetch(ahead.target as usize);
            }
            if many
                && let Some(near) = events.get(place + NEAR)
                && near.op.is_access()
                && let Some(record) = self.records.get(near.target as usize)
            {
                self.graph.prefetch(record.write);
                match record.list() {
                    None => self.graph.prefetch(record.read),
                    Some(list) => prefetch(&self.readers, list as usize),
                }
            }
            self.event(event, first + place as u64);
        }
    }

    /// Transactions are not cut.
    fn boundary(&mut self, _first: u64) {}

    fn expect(&mut self, space: Space, numbers: u32) {
        if space == Space::Variable {
            self.records.expect(numbers as usize);
        }
    }

    fn bytes(&self) -> usize {
        let lists = self.readers.capacity() * size_of::<Readers>() + self.more * size_of::<(u16, NodeId)>();
        self.graph.bytes() + self.records.bytes() + lists + self.locks.bytes() + self.objects.bytes()
    }
}
