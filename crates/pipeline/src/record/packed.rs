//! Our own recordings as packed events.
//!
//! **Variables.** Accesses are of ranges of bytes, which overlap as they like. Neighbouring bytes are one variable when every
//! access that touches one touches the other: the boundaries of all accesses cut memory into such pieces. Two accesses overlap
//! exactly if they share a piece, so no conflict is lost and none is added (Carril, Tichy 2015, §3 join adjacent bytes
//! likewise). An access of several pieces becomes as many events, one that reads and writes becomes a read and a write of each.
//!
//! **Synchronisation.** Waiting for a condition releases the mutex and acquires it again; a signal releases what those it woke
//! acquire, an object for each such signal, so that a wake-up is ordered behind its own signal only. Barriers are objects, one a
//! generation; semaphores, once routines and channels release and acquire. Inner acquires of a recursive mutex, and what orders
//! nothing, are left out.
//!
//! Cost: a sort of all boundaries; memory: 12 bytes a boundary. [`Recorded::origin`] leads back to the recording's events.

use rashomon_event::harmless;
use rashomon_event::{Access, AccessClass, Address, AtomicOp, EventIndex, EventKind, LockMode, MemoryOrder, Site, SiteId, Trace};
use rashomon_packed::{BLOCK, Event, Names, Op, Source, Space, TraceError, order};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;

/// No variable begins at this boundary.
const GAP: u32 = u32::MAX;

/// Memory cut at the boundaries of all accesses.
#[derive(Debug, Default)]
pub(crate) struct Pieces {
    boundaries: Vec<u64>,
    /// Per boundary, the variable that begins there.
    variables: Vec<u32>,
}

impl Pieces {
    pub(crate) fn of(trace: &Trace) -> Self {
        let ranges = || trace.events.iter().filter_map(|event| event.access()).map(range);
        let mut boundaries: Vec<u64> = ranges().flat_map(|(start, end)| [start, end]).collect();
        boundaries.sort_unstable();
        boundaries.dedup();
        let at = |address: u64| boundaries.partition_point(|boundary| *boundary < address);
        // How many accesses begin less end there; what lies under none is no variable.
        let mut change = vec![0_i64; boundaries.len()];
        for (start, end) in ranges() {
            change[at(start)] += 1;
            change[at(end)] -= 1;
        }
        let (mut open, mut next) = (0, 0);
        let number = |change: &i64| {
            open += change;
            if open == 0 {
                return GAP;
            }
            next += 1;
            next - 1
        };
        let variables = change.iter().map(number).collect();
        Self { boundaries, variables }
    }

    /// The variables an access touches.
    fn of_access(&self, access: Access) -> &[u32] {
        &self.variables[self.places(access)]
    }

    /// The same, each with its first address and its bytes.
    pub(crate) fn with_bytes(&self, access: Access) -> impl Iterator<Item = (u32, Address, u64)> + '_ {
        self.places(access).map(|at| {
            let (begin, end) = (self.boundaries[at], self.boundaries[at + 1]);
            (self.variables[at], Address(begin), end - begin)
        })
    }

    fn places(&self, access: Access) -> Range<usize> {
        let (start, end) = range(access);
        let first = self.boundaries.partition_point(|boundary| *boundary < start);
        let count = self.boundaries[first..].partition_point(|boundary| *boundary < end);
        first..first + count
    }
}

fn range(access: Access) -> (u64, u64) {
    (access.address.0, access.address.0.saturating_add(access.size.max(1).into()))
}

/// What a place in the code is called: its module and the distance from the module's begin.
pub(crate) fn location(trace: &Trace, site: &Site) -> String {
    let module = site.module.and_then(|module| trace.modules.get(module as usize));
    let file = harmless(module.map_or("", |module| module.path.rsplit('/').next().unwrap_or_default()));
    format!("{file}+{:#x}", site.offset)
}

/// Dense numbers for what has sparse ones.
#[derive(Debug)]
struct Dense<K>(HashMap<K, u32>);

impl<K: std::hash::Hash + Eq> Dense<K> {
    fn new() -> Self {
        Self(HashMap::new())
    }

    fn number(&mut self, key: K, names: &mut Names, space: Space, name: impl FnOnce() -> String) -> u32 {
        let next = self.0.len() as u32;
        *self.0.entry(key).or_insert_with(|| {
            names.push(space, &name());
            next
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Object {
    Barrier(Address, u32),
    Signal(EventIndex),
    Plain(Address),
}

/// Of these variables of a recording, which bytes they are.
pub(crate) fn variables_of(trace: &Trace, numbers: &BTreeSet<u32>) -> BTreeMap<u32, (Address, u64)> {
    if numbers.is_empty() {
        return BTreeMap::new();
    }
    let pieces = Pieces::of(trace);
    let ends = pieces.boundaries.iter().skip(1);
    let all = pieces.variables.iter().zip(&pieces.boundaries).zip(ends);
    let wanted = all.filter(|((variable, _), _)| numbers.contains(variable));
    wanted.map(|((variable, begin), end)| (*variable, (Address(*begin), end - begin))).collect()
}

/// The lock of a recording that has this number.
pub(crate) fn lock_of(names: &Names, number: u32) -> Option<Address> {
    let name = names.bytes(Space::Lock, number)?;
    let digits = std::str::from_utf8(name).ok()?.strip_prefix("0x")?;
    u64::from_str_radix(digits, 16).ok().map(Address)
}

pub struct Recorded<'t> {
    trace: &'t Trace,
    pieces: Pieces,
    locks: Dense<Address>,
    objects: Dense<Object>,
    /// Owner of an exclusively held lock, and how often it took it.
    held: HashMap<u32, (u16, u32)>,
    next: usize,
    /// Made, and not yet handed on: from `given` on.
    ready: Vec<(Event, EventIndex)>,
    given: usize,
    origins: Vec<EventIndex>,
    names: Names,
}

impl<'t> Recorded<'t> {
    pub fn new(trace: &'t Trace) -> Result<Self, TraceError> {
        if trace.threads.len() > Space::Thread.limit() as usize {
            let what = format!("{} threads; packed events name {}", trace.threads.len(), Space::Thread.limit());
            return Err(TraceError::IllFormed { event: 0, place: None, what });
        }
        let pieces = Pieces::of(trace);
        let mut names = Names::default();
        for thread in &trace.threads {
            names.push(Space::Thread, &thread.path.to_string());
        }
        names.push(Space::Location, "-");
        for site in &trace.sites {
            names.push(Space::Location, &location(trace, site));
        }
        for (boundary, variable) in pieces.boundaries.iter().zip(&pieces.variables) {
            if *variable != GAP {
                names.push(Space::Variable, &Address(*boundary).to_string());
            }
        }
        Ok(Self {
            trace,
            pieces,
            locks: Dense::new(),
            objects: Dense::new(),
            held: HashMap::new(),
            next: 0,
            ready: Vec::new(),
            given: 0,
            origins: Vec::new(),
            names,
        })
    }

    /// The recording's event from which event `index` of the last block was made.
    pub fn origin(&self, index: usize) -> Option<EventIndex> {
        self.origins.get(index).copied()
    }

    fn lock(&mut self, lock: Address) -> u32 {
        self.locks.number(lock, &mut self.names, Space::Lock, || lock.to_string())
    }

    fn object(&mut self, object: Object) -> u32 {
        self.objects.number(object, &mut self.names, Space::Object, || match object {
            Object::Barrier(barrier, generation) => format!("{barrier} generation {generation}"),
            Object::Signal(event) => format!("signal {event}"),
            Object::Plain(address) => address.to_string(),
        })
    }

    /// `None`: an inner one, of a recursive mutex.
    fn acquire(&mut self, thread: u16, lock: Address, mode: LockMode) -> Option<(Op, u32)> {
        let lock = self.lock(lock);
        if mode == LockMode::Shared {
            return Some((Op::AcquireShared, lock));
        }
        let holder = self.held.entry(lock).or_insert((thread, 0));
        if holder.0 == thread && holder.1 > 0 {
            holder.1 += 1;
            return None;
        }
        *holder = (thread, 1);
        Some((Op::Acquire, lock))
    }

    fn release(&mut self, thread: u16, lock: Address, mode: LockMode) -> Option<(Op, u32)> {
        let lock = self.lock(lock);
        if mode == LockMode::Shared {
            return Some((Op::ReleaseShared, lock));
        }
        if let Some(holder) = self.held.get_mut(&lock)
            && holder.0 == thread
        {
            holder.1 = holder.1.saturating_sub(1);
            if holder.1 > 0 {
                return None;
            }
        }
        Some((Op::Release, lock))
    }

    fn access(&mut self, thread: u16, location: u32, index: EventIndex, access: Access, ops: &[Op], order: u8) {
        for &variable in self.pieces.of_access(access) {
            debug_assert_ne!(variable, GAP);
            for &op in ops {
                self.ready.push((Event { order, ..Event::new(thread, op, variable, location) }, index));
            }
        }
    }

    fn event(&mut self, index: EventIndex) {
        let event = self.trace.event(index);
        let thread = event.thread.0 as u16;
        let SiteId(site) = event.site;
        let location = if (site as usize) < self.trace.sites.len() { site + 1 } else { 0 };
        let step = match event.kind {
            EventKind::Access(access) => {
                let ops: &[Op] = match access.class {
                    AccessClass::Read => &[Op::Read],
                    AccessClass::Write | AccessClass::End => &[Op::Write],
                    AccessClass::ReadWrite => &[Op::Read, Op::Write],
                };
                self.access(thread, location, index, access, ops, 0);
                None
            }
            EventKind::Atomic { access, op, order, .. } => {
                let (op, mask) = match op {
                    AtomicOp::Load | AtomicOp::CasFailed => (Op::AtomicRead, !order::RELEASES),
                    AtomicOp::Store => (Op::AtomicWrite, !order::ACQUIRES),
                    AtomicOp::Rmw => (Op::AtomicUpdate, !0),
                };
                self.access(thread, location, index, access, &[op], bits(order) & mask);
                None
            }
            EventKind::Fence { order } => {
                self.ready.push((Event { order: bits(order), ..Event::new(thread, Op::Fence, 0, location) }, index));
                None
            }
            EventKind::Fork { child } => Some((Op::Fork, child.0)),
            EventKind::Join { child, .. } => Some((Op::Join, child.0)),
            EventKind::Acquire { lock, mode, .. } => self.acquire(thread, lock, mode),
            EventKind::Release { lock, mode } => self.release(thread, lock, mode),
            EventKind::Request { lock, mode: LockMode::Exclusive } => Some((Op::Request, self.lock(lock))),
            EventKind::Request { lock, mode: LockMode::Shared } => Some((Op::RequestShared, self.lock(lock))),
            EventKind::WaitBegin { mutex, .. } => self.release(thread, mutex, LockMode::Exclusive),
            EventKind::WaitEnd { mutex, woken_by, .. } => {
                if let Some(signal) = woken_by {
                    let object = self.object(Object::Signal(signal));
                    self.ready.push((Event::new(thread, Op::AcquireObject, object, location), index));
                }
                self.acquire(thread, mutex, LockMode::Exclusive)
            }
            EventKind::Signal { .. } => Some((Op::ReleaseObject, self.object(Object::Signal(index)))),
            EventKind::BarrierEnter { barrier, generation } => {
                Some((Op::Enter, self.object(Object::Barrier(barrier, generation))))
            }
            EventKind::BarrierExit { barrier, generation } => Some((Op::Exit, self.object(Object::Barrier(barrier, generation)))),
            EventKind::Post { semaphore: object }
            | EventKind::OnceDone { once: object }
            | EventKind::ReleaseObject { object } => Some((Op::ReleaseObject, self.object(Object::Plain(object)))),
            EventKind::Take { semaphore: object }
            | EventKind::OnceSeen { once: object }
            | EventKind::AcquireObject { object } => Some((Op::AcquireObject, self.object(Object::Plain(object)))),
            EventKind::Start | EventKind::End | EventKind::OnceBegin { .. } | EventKind::Blocked { .. } | EventKind::Other(_) => {
                None
            }
        };
        if let Some((op, target)) = step {
            self.ready.push((Event::new(thread, op, target, location), index));
        }
    }
}

fn bits(memory_order: MemoryOrder) -> u8 {
    let bit = |set: bool, bit: u8| if set { bit } else { 0 };
    bit(memory_order.acquires(), order::ACQUIRES)
        | bit(memory_order.releases(), order::RELEASES)
        | bit(memory_order == MemoryOrder::SeqCst, order::SEQUENTIALLY_CONSISTENT)
}

impl Source for Recorded<'_> {
    fn next(&mut self, block: &mut Vec<Event>) -> Result<(), TraceError> {
        block.clear();
        self.origins.clear();
        while self.ready.len() - self.given < BLOCK && self.next < self.trace.events.len() {
            self.event(EventIndex(self.next as u32));
            self.next += 1;
        }
        for (event, origin) in self.ready[self.given..].iter().take(BLOCK) {
            block.push(*event);
            self.origins.push(*origin);
        }
        self.given += block.len();
        if self.given >= 16 * BLOCK || self.given == self.ready.len() {
            self.ready.drain(..self.given);
            self.given = 0;
        }
        Ok(())
    }

    fn expected(&self, space: Space) -> Option<u32> {
        match space {
            Space::Thread | Space::Variable | Space::Location => Some(self.names.count(space)),
            _ => None,
        }
    }

    fn names(&self) -> &Names {
        &self.names
    }
}
