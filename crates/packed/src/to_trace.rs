//! From a stream of packed events to an [`event::Trace`](rashomon_event::Trace), which the predictors and the witness checker
//! read.
//!
//! Thread, lock and object keep their numbers, as synthetic addresses; a variable is eight bytes, and another eight once it was
//! forgotten. The order of the events counts as the order in which they happened, so a read sees the last write before it.
//! Locations become sites; an event without a location gets one for its thread, operation and target. Barriers have one number a
//! generation already.
//!
//! Deviations of meaning: (1) an observation needs the latest publication of its object before it, not all of them. (2) Regions
//! and branches order nothing and become `Other`. (3) Values are unknown: atomics carry 0. (4) A thread that nothing forks exists
//! from the beginning. Limit: 2³² events.

use crate::error::TraceError;
use crate::event::{Event as Packed, Op, order};
use crate::source::{BLOCK, Source};
use rashomon_event::{
    Access, AccessClass, Address, AtomicOp, ContextId, Event, EventKind, LockMode, MemoryOrder, Mode, OtherOp, Site, SiteId,
    ThreadId, ThreadInfo, ThreadPath, Trace,
};
use std::collections::HashMap;

/// First synthetic addresses.
pub const VARIABLES: u64 = 1 << 40;
pub const LOCKS: u64 = 2 << 40;
pub const OBJECTS: u64 = 3 << 40;
/// Bytes of a variable; distance of locks and objects.
pub const SIZE: u64 = 8;

/// A trace, and what its numbers stand for.
pub struct Imported {
    pub trace: Trace,
    /// Per site, the location's number; 0 is nowhere.
    pub locations: Vec<u32>,
    /// Per variable of the trace ([`VARIABLES`] + 8 times its place), the number in the source.
    pub variables: Vec<u32>,
}

impl Imported {
    /// The variable, lock or object that an address stands for.
    pub fn target(&self, address: Address) -> Option<(crate::Space, u32)> {
        let number = |base: u64| ((address.0 - base) / SIZE) as u32;
        match address.0 {
            OBJECTS.. => Some((crate::Space::Object, number(OBJECTS))),
            LOCKS.. => Some((crate::Space::Lock, number(LOCKS))),
            VARIABLES.. => Some((crate::Space::Variable, *self.variables.get(number(VARIABLES) as usize)?)),
            _ => None,
        }
    }
}

/// Why there is no trace in memory.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    #[error(transparent)]
    Trace(#[from] TraceError),
    #[error("the trace has more than 2^32 events, which is too many to predict from: give a shorter one")]
    TooLong,
}

/// Reads a source to its end.
pub fn to_trace(source: &mut (impl Source + ?Sized)) -> Result<Imported, ImportError> {
    let mut builder = Builder::default();
    let mut block = Vec::with_capacity(BLOCK);
    loop {
        source.next(&mut block)?;
        if block.is_empty() {
            return Ok(builder.finish());
        }
        if builder.events.len() + block.len() > u32::MAX as usize {
            return Err(ImportError::TooLong);
        }
        for event in &block {
            builder.event(event);
        }
    }
}

#[derive(Default)]
struct Builder {
    events: Vec<Event>,
    ordinals: Vec<u32>,
    parents: Vec<Option<ThreadId>>,
    sites: HashMap<Place, SiteId>,
    locations: Vec<u32>,
    /// Per variable of the source, its present number here.
    lives: HashMap<u32, u32>,
    variables: Vec<u32>,
}

/// What makes a site.
#[derive(PartialEq, Eq, Hash)]
enum Place {
    Location(u32),
    Nowhere { thread: u16, op: Op, target: u32 },
}

impl Builder {
    fn thread(&mut self, number: u32) -> ThreadId {
        if self.ordinals.len() <= number as usize {
            self.ordinals.resize(number as usize + 1, 0);
            self.parents.resize(number as usize + 1, None);
        }
        ThreadId(number)
    }

    fn site(&mut self, event: &Packed) -> SiteId {
        let place = match event.location {
            0 => Place::Nowhere { thread: event.thread, op: event.op, target: event.target },
            location => Place::Location(location),
        };
        let next = SiteId(self.locations.len() as u32);
        let site = *self.sites.entry(place).or_insert(next);
        if site == next {
            self.locations.push(event.location);
        }
        site
    }

    fn variable(&mut self, number: u32) -> Address {
        let next = self.variables.len() as u32;
        let life = *self.lives.entry(number).or_insert(next);
        if life == next {
            self.variables.push(number);
        }
        Address(VARIABLES + SIZE * u64::from(life))
    }

    fn event(&mut self, event: &Packed) {
        let thread = self.thread(u32::from(event.thread));
        let kind = self.kind(event, thread);
        let site = self.site(event);
        let ordinal = self.ordinals[thread.index()];
        if !matches!(kind, EventKind::Access(_) | EventKind::Request { .. }) {
            self.ordinals[thread.index()] += 1;
        }
        self.events.push(Event { thread, site, context: ContextId::ROOT, ordinal, kind });
    }

    fn access(&mut self, event: &Packed, class: AccessClass, atomic: bool) -> Access {
        Access { address: self.variable(event.target), size: SIZE as u32, class, atomic }
    }

    fn atomic(&mut self, event: &Packed, class: AccessClass, op: AtomicOp) -> EventKind {
        EventKind::Atomic { access: self.access(event, class, true), op, order: memory_order(event.order), value: 0 }
    }

    fn kind(&mut self, event: &Packed, thread: ThreadId) -> EventKind {
        let lock = Address(LOCKS + SIZE * u64::from(event.target));
        let object = Address(OBJECTS + SIZE * u64::from(event.target));
        let (exclusive, shared) = (LockMode::Exclusive, LockMode::Shared);
        match event.op {
            Op::Read => EventKind::Access(self.access(event, AccessClass::Read, false)),
            Op::Write => EventKind::Access(self.access(event, AccessClass::Write, false)),
            Op::AtomicRead => self.atomic(event, AccessClass::Read, AtomicOp::Load),
            Op::AtomicWrite => self.atomic(event, AccessClass::Write, AtomicOp::Store),
            Op::AtomicUpdate => self.atomic(event, AccessClass::ReadWrite, AtomicOp::Rmw),
            Op::Acquire => EventKind::Acquire { lock, mode: exclusive, may_wait: true },
            Op::Release => EventKind::Release { lock, mode: exclusive },
            Op::AcquireShared => EventKind::Acquire { lock, mode: shared, may_wait: true },
            Op::ReleaseShared => EventKind::Release { lock, mode: shared },
            Op::Request => EventKind::Request { lock, mode: exclusive },
            Op::RequestShared => EventKind::Request { lock, mode: shared },
            Op::Fork => {
                let child = self.thread(event.target);
                self.parents[child.index()].get_or_insert(thread);
                EventKind::Fork { child }
            }
            Op::Join => EventKind::Join { child: self.thread(event.target), may_wait: true },
            Op::ReleaseObject => EventKind::ReleaseObject { object },
            Op::AcquireObject => EventKind::AcquireObject { object },
            Op::Enter => EventKind::BarrierEnter { barrier: object, generation: 0 },
            Op::Exit => EventKind::BarrierExit { barrier: object, generation: 0 },
            Op::Fence => EventKind::Fence { order: memory_order(event.order) },
            Op::Forget => {
                self.lives.remove(&event.target);
                EventKind::Other(OtherOp::Unknown)
            }
            Op::Begin | Op::End | Op::Branch | Op::Nothing => EventKind::Other(OtherOp::Unknown),
        }
    }

    fn finish(self) -> Imported {
        let mut threads: Vec<ThreadInfo> = Vec::with_capacity(self.parents.len());
        let mut children: HashMap<Option<ThreadId>, u32> = HashMap::new();
        for parent in &self.parents {
            let ordinal = children.entry(*parent).or_default();
            let spawn_ordinal = *ordinal;
            *ordinal += 1;
            threads.push(ThreadInfo { path: ThreadPath::default(), parent: *parent, spawn_ordinal, stack: None });
        }
        // The first thread without a parent is the initial one; further ones count as its children behind those that it forks.
        let initial = self.parents.iter().position(Option::is_none);
        let forked = initial.and_then(|thread| children.get(&Some(ThreadId(thread as u32)))).copied().unwrap_or(0);
        for number in 0..threads.len() {
            threads[number].path = path(&threads, number, forked);
        }
        let sites = self.locations.iter().map(|&location| Site {
            address: u64::from(location),
            module: None,
            offset: u64::from(location),
        });
        let trace = Trace { threads, sites: sites.collect(), ..Trace::of_events(Mode::Serial, self.events) };
        Imported { trace, locations: self.locations, variables: self.variables }
    }
}

fn path(threads: &[ThreadInfo], number: usize, forked: u32) -> ThreadPath {
    let mut ordinals = Vec::new();
    let mut at = number;
    // A hostile file may fork in a circle.
    while ordinals.len() <= threads.len() {
        match threads[at].parent {
            Some(parent) => {
                ordinals.push(threads[at].spawn_ordinal);
                at = parent.index();
            }
            None => {
                if let Some(ordinal) = threads[at].spawn_ordinal.checked_sub(1) {
                    ordinals.push(forked + ordinal);
                }
                break;
            }
        }
    }
    ordinals.reverse();
    ThreadPath(ordinals)
}

/// What bits of [`order`] mean.
pub const fn memory_order(bits: u8) -> MemoryOrder {
    if bits & order::SEQUENTIALLY_CONSISTENT != 0 {
        return MemoryOrder::SeqCst;
    }
    match (bits & order::ACQUIRES != 0, bits & order::RELEASES != 0) {
        (true, true) => MemoryOrder::AcqRel,
        (true, false) => MemoryOrder::Acquire,
        (false, true) => MemoryOrder::Release,
        (false, false) => MemoryOrder::Relaxed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Slice;

    fn imported(events: &[Packed]) -> Imported {
        to_trace(&mut Slice::new(events)).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn a_forgotten_variable_is_another_one() {
        let imported = imported(&[
            Packed::new(0, Op::Write, 7, 1),
            Packed::new(0, Op::Forget, 7, 0),
            Packed::new(1, Op::Write, 7, 2),
            Packed::new(1, Op::Read, 7, 2),
        ]);
        let address = |index: usize| imported.trace.events.at(index).access().map(|access| access.address);
        assert_ne!(address(0), address(2));
        assert_eq!(address(2), address(3));
        assert_eq!(address(2).and_then(|address| imported.target(address)), Some((crate::Space::Variable, 7)));
        assert_eq!(imported.locations[imported.trace.events.at(2).site.index()], 2);
    }

    #[test]
    fn threads_have_paths() {
        let imported = imported(&[
            Packed::new(0, Op::Fork, 2, 0),
            Packed::new(2, Op::Fork, 3, 0),
            Packed::new(1, Op::Nothing, 0, 0),
            Packed::new(3, Op::Fork, 3, 0),
        ]);
        let paths: Vec<String> = imported.trace.threads.iter().map(|thread| thread.path.to_string()).collect();
        assert_eq!(paths, ["main", "1", "0", "0.0"]);
    }

    #[test]
    fn events_without_a_location_have_sites_of_their_own() {
        let imported =
            imported(&[Packed::new(0, Op::Read, 1, 0), Packed::new(0, Op::Write, 1, 0), Packed::new(0, Op::Read, 1, 0)]);
        let sites: Vec<_> = imported.trace.events.iter().map(|event| event.site).collect();
        assert!(sites[0] != sites[1] && sites[0] == sites[2]);
    }
}
