//! What threads do with each variable under each guard.

use super::calls::{Around, Calls};
use rashomon_event::{Address, AtomicOp, Deadline, Event, EventIndex, EventKind, ThreadId, Trace};
use rustc_hash::{FxHashMap, FxHashSet};

/// Units of one variable and guard that are kept, so that a hot counter does not take all memory. Their numbers fit in 16 bits.
const MOST_UNITS: usize = 4096;

/// What guards a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Guard {
    Lock(Address),
    /// Each access is its own unit.
    Atomic,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Read,
    Write,
}

/// What a thread does with a variable in one section.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unit {
    pub thread: ThreadId,
    /// The acquisition of the guard, or the atomic access.
    pub begin: EventIndex,
    /// It begins where a condition wait ends.
    pub after_wait: bool,
    /// The first ones.
    pub read: Option<EventIndex>,
    pub write: Option<EventIndex>,
    /// It reads before it writes.
    pub rereads: bool,
    /// It has an atomic read-modify-write.
    pub modifies: bool,
    /// The oldest acquisition of the locks held at the first access.
    pub outermost: EventIndex,
}

/// A lock that is held, the event that took it, and whether that is the end of a condition wait.
type Taken = (Address, EventIndex, bool);

/// What is done with a variable under one guard.
pub(super) struct Variable {
    pub address: Address,
    pub guard: Guard,
    /// In the order of their first accesses.
    pub units: Vec<Unit>,
    /// Numbers of the units that write, in the order of their first writes.
    writers: Vec<u16>,
    /// Of those that read, likewise.
    readers: Vec<u16>,
}

/// One pass over the trace.
#[derive(Default)]
pub(super) struct Units {
    /// In the order of the first accesses.
    pub by_variable: Vec<Variable>,
    /// The end of each section, by its acquisition.
    pub ends: FxHashMap<EventIndex, EventIndex>,
    surroundings: Surroundings,
}

/// What holds at the guarded accesses of units: there are as many of them as events, and few things that hold.
#[derive(Default)]
struct Surroundings {
    /// In the order of the accesses.
    accesses: Vec<Surrounded>,
    /// Acquisitions, oldest first.
    held: Vec<Box<[EventIndex]>>,
    calls: Vec<Around>,
    /// By thread, the latest of both, as long as it holds.
    latest: Vec<(Option<u32>, Option<u32>)>,
}

/// An access, and numbers of what was held and of the calls that it belongs to.
struct Surrounded {
    access: EventIndex,
    held: u32,
    calls: u32,
}

impl Surroundings {
    /// The thread acquires or releases something.
    fn change(&mut self, thread: ThreadId) {
        if let Some((held, _)) = self.latest.get_mut(thread.index()) {
            *held = None;
        }
    }

    fn add(&mut self, thread: ThreadId, access: EventIndex, around: Around, acquired: impl Iterator<Item = EventIndex>) {
        if self.latest.len() <= thread.index() {
            self.latest.resize(thread.index() + 1, (None, None));
        }
        let (held, calls) = &mut self.latest[thread.index()];
        // There are no more of them than events, whose numbers have 32 bits.
        let held = *held.get_or_insert_with(|| {
            self.held.push(acquired.collect());
            self.held.len() as u32 - 1
        });
        let calls = match *calls {
            Some(number) if self.calls[number as usize] == around => number,
            _ => {
                self.calls.push(around);
                *calls.insert(self.calls.len() as u32 - 1)
            }
        };
        self.accesses.push(Surrounded { access, held, calls });
    }

    fn of(&self, access: EventIndex) -> Option<&Surrounded> {
        let at = self.accesses.binary_search_by_key(&access, |known| known.access).ok()?;
        self.accesses.get(at)
    }
}

impl Units {
    /// What was held at a guarded access: acquisitions, oldest first.
    pub fn held(&self, access: EventIndex) -> &[EventIndex] {
        let known = self.surroundings.of(access);
        known.map_or(&[], |known| &self.surroundings.held[known.held as usize])
    }

    /// The calls that a guarded access belongs to.
    pub fn calls(&self, access: EventIndex) -> Option<&Around> {
        self.surroundings.of(access).map(|known| &self.surroundings.calls[known.calls as usize])
    }

    /// What is held at these accesses, guarded or not, and nothing else.
    pub fn around(trace: &Trace, wanted: &FxHashSet<EventIndex>, deadline: Deadline) -> Self {
        let mut units = Self::default();
        let mut open: Vec<Vec<Taken>> = vec![Vec::new(); trace.threads.len()];
        for index in deadline.bound(trace.indices()) {
            let event = trace.event(index);
            let Some(held) = open.get_mut(event.thread.index()) else { continue };
            units.synchronise(&event, index, held);
            if wanted.contains(&index) {
                units.surroundings.add(event.thread, index, Around::default(), held.iter().map(|&(_, begin, _)| begin));
            }
        }
        units
    }

    /// Keeps what the thread of this event holds.
    fn synchronise(&mut self, event: &Event, index: EventIndex, held: &mut Vec<Taken>) {
        match event.kind {
            EventKind::Acquire { lock, .. } => {
                held.push((lock, index, false));
                self.surroundings.change(event.thread);
            }
            EventKind::WaitEnd { mutex, .. } => {
                held.push((mutex, index, true));
                self.surroundings.change(event.thread);
            }
            EventKind::Release { lock, .. } | EventKind::WaitBegin { mutex: lock, .. } => {
                if let Some(at) = held.iter().rposition(|(other, ..)| *other == lock) {
                    let (_, acquired, _) = held.remove(at);
                    self.surroundings.change(event.thread);
                    self.ends.insert(acquired, index);
                }
            }
            _ => {}
        }
    }

    pub fn of(trace: &Trace, deadline: Deadline) -> Self {
        let shared = variables_of_several(trace, deadline);
        let mut numbers: FxHashMap<(Address, Guard), usize> = FxHashMap::default();
        let mut units = Self::default();
        let mut calls = Calls::new(trace);
        let mut open: Vec<Vec<Taken>> = vec![Vec::new(); trace.threads.len()];
        for index in deadline.bound(trace.indices()) {
            let event = trace.event(index);
            let Some(held) = open.get_mut(event.thread.index()) else { continue };
            units.synchronise(&event, index, held);
            let begun = held.last().map_or(event.context, |&(_, begin, _)| trace.event(begin).context);
            let around = calls.around(event.thread, event.context, begun);
            let Some(access) = event.access().filter(|access| shared.contains(&access.address)) else { continue };
            let guards = held.iter().map(|&(lock, begin, after_wait)| (Guard::Lock(lock), begin, after_wait));
            let atomic = access.atomic.then_some((Guard::Atomic, index, false));
            let outermost = held.first().map_or(index, |&(_, begin, _)| begin);
            let mut is_kept = false;
            for (guard, begin, after_wait) in guards.chain(atomic) {
                let number = *numbers.entry((access.address, guard)).or_insert(units.by_variable.len());
                if number == units.by_variable.len() {
                    units.by_variable.push(Variable::new(access.address, guard));
                }
                let Variable { units: all, writers, readers, .. } = &mut units.by_variable[number];
                let known = all.iter().rposition(|unit| unit.thread == event.thread).filter(|at| all[*at].begin == begin);
                let at = match known {
                    Some(at) => at,
                    None if all.len() == MOST_UNITS => continue,
                    None => {
                        let thread = event.thread;
                        let (read, write, rereads, modifies) = (None, None, false, false);
                        all.push(Unit { thread, begin, after_wait, read, write, rereads, modifies, outermost });
                        all.len() - 1
                    }
                };
                let (read, wrote) = (all[at].read.is_some(), all[at].write.is_some());
                is_kept |= all[at].add(&event, index);
                readers.extend((!read && all[at].read.is_some()).then_some(at as u16));
                writers.extend((!wrote && all[at].write.is_some()).then_some(at as u16));
            }
            if is_kept {
                let acquired = held.iter().map(|&(_, begin, _)| begin);
                units.surroundings.add(event.thread, index, around, acquired);
            }
        }
        units
    }
}

impl Variable {
    const fn new(address: Address, guard: Guard) -> Self {
        Self { address, guard, units: Vec::new(), writers: Vec::new(), readers: Vec::new() }
    }

    pub fn has_several_threads(&self) -> bool {
        self.units.iter().any(|unit| unit.thread != self.units[0].thread)
    }

    /// Units with this kind of access, and the first one.
    pub fn with(&self, kind: Kind) -> impl Iterator<Item = (&Unit, EventIndex)> {
        let all = self.all(kind).iter().map(|number| &self.units[usize::from(*number)]);
        all.filter_map(move |unit| Some((unit, unit.first(kind)?)))
    }

    /// Those whose first access of this kind comes between two events.
    pub fn between(&self, range: [EventIndex; 2], thread: ThreadId, kind: Kind) -> impl Iterator<Item = (&Unit, EventIndex)> {
        let [one, other] = range;
        let all = self.all(kind);
        let begin = all.partition_point(|number| self.units[usize::from(*number)].first(kind) <= Some(one));
        let later = all[begin..].iter().map(|number| &self.units[usize::from(*number)]);
        let later = later.filter_map(move |unit| Some((unit, unit.first(kind)?))).take_while(move |(_, at)| *at < other);
        later.filter(move |(unit, _)| unit.thread != thread)
    }

    fn all(&self, kind: Kind) -> &[u16] {
        match kind {
            Kind::Read => &self.readers,
            Kind::Write => &self.writers,
        }
    }
}

impl Unit {
    pub const fn first(&self, kind: Kind) -> Option<EventIndex> {
        match kind {
            Kind::Read => self.read,
            Kind::Write => self.write,
        }
    }

    /// Whether it is the first read, or the first write.
    fn add(&mut self, event: &Event, index: EventIndex) -> bool {
        let Some(access) = event.access() else { return false };
        let (mut reads, mut writes) = (access.class.reads(), access.class.writes());
        if let EventKind::Atomic { op, .. } = event.kind {
            (reads, writes) = (op != AtomicOp::Store, matches!(op, AtomicOp::Store | AtomicOp::Rmw));
            self.modifies |= matches!(op, AtomicOp::Rmw | AtomicOp::CasFailed);
        }
        let is_first = reads && self.read.is_none() || writes && self.write.is_none();
        if reads && self.read.is_none() {
            self.read = Some(index);
            self.rereads = self.write.is_none();
        }
        if writes && self.write.is_none() {
            self.write = Some(index);
        }
        is_first
    }
}

/// First bytes that threads access, of which at least one is another one.
fn variables_of_several(trace: &Trace, deadline: Deadline) -> FxHashSet<Address> {
    let mut first: FxHashMap<Address, ThreadId> = FxHashMap::default();
    let mut shared = FxHashSet::default();
    for index in deadline.bound(trace.indices()) {
        let event = trace.event(index);
        let Some(access) = event.access() else { continue };
        if *first.entry(access.address).or_insert(event.thread) != event.thread {
            shared.insert(access.address);
        }
    }
    shared
}
