//! Pairs of accesses that may race.
//!
//! [`races`]: conflicting accesses that happens-before leaves unordered in this very execution (epochs as in Flanagan, Freund,
//! "FastTrack", PLDI 2009, but several accesses per granule, so that all pairs of sites are found and not only one per variable).
//! Byte-exact; atomic against plain accesses conflict, atomic against atomic do not.
//!
//! [`hybrid`]: conflicting accesses that the weak order (no mutexes, no atomics) leaves unordered and whose lock sets do not
//! exclude each other (Carril, Tichy, SEPS 2015, §3). Every pair that [`races`] finds is in it, but for pairs both forget.
//!
//! [`races_if_atomic`]: what [`races`] would find if the accesses of some sites were atomic, and in the same order. What it does
//! not find is *apparent*: ordered by what these accesses hand over (Netzer, Miller, "What Are Race Conditions?", LOPLAS 1992).
//!
//! Guarantee: every pair returned satisfies its definition. Limit: accesses forgotten by [`crate::history`].

use crate::happens_before::{HappensBefore, Model};
use crate::history::{Cell, History};
use crate::lockset::{LockSetId, LockSets};
use crate::pairs::{Pairs, SitePair};
use crate::shared_memory::SharedMemory;
use rashomon_event::{Access, AccessClass, AtomicOp, Deadline, Event, EventKind, MemoryOrder, SiteId, Trace};

/// Conflicting pairs that happens-before does not order, by site pair, with up to `representatives` each.
///
/// Only contested granules are looked at, so the model must have the edges of locks.
pub fn races(trace: &Trace, memory: &SharedMemory, model: Model, representatives: usize) -> Vec<SitePair> {
    races_until(trace, memory, model, representatives, Deadline::NEVER)
}

/// As [`races`], of the events that there is time for.
pub fn races_until(
    trace: &Trace,
    memory: &SharedMemory,
    model: Model,
    representatives: usize,
    deadline: Deadline,
) -> Vec<SitePair> {
    races_as(trace, memory, model, (representatives, deadline), |event| *event)
}

/// Accesses of more bytes are no atomic ones of any machine.
const LARGEST_ATOMIC: u32 = 16;

/// The races that would be left if the plain accesses of these sites were atomic, sequentially consistent, in the same order.
///
/// Not always a part of those that there are: a store that is atomic ends a release sequence. The sites are in ascending order.
/// What ends a block stays what it is, and so do accesses of more than 16 bytes.
pub fn races_if_atomic(
    trace: &Trace,
    memory: &SharedMemory,
    model: Model,
    sites: &[SiteId],
    deadline: Deadline,
) -> Vec<SitePair> {
    races_as(trace, memory, model, (1, deadline), |event| match event.kind {
        EventKind::Access(access) if access.size <= LARGEST_ATOMIC && sites.binary_search(&event.site).is_ok() => {
            Event { kind: if_atomic(access), ..*event }
        }
        _ => *event,
    })
}

const fn if_atomic(access: Access) -> EventKind {
    let op = match access.class {
        AccessClass::Read => AtomicOp::Load,
        AccessClass::Write => AtomicOp::Store,
        AccessClass::ReadWrite => AtomicOp::Rmw,
        AccessClass::End => return EventKind::Access(access),
    };
    EventKind::Atomic { access: Access { atomic: true, ..access }, op, order: MemoryOrder::SeqCst, value: 0 }
}

fn races_as(
    trace: &Trace,
    memory: &SharedMemory,
    model: Model,
    (representatives, deadline): (usize, Deadline),
    told: impl Fn(&Event) -> Event,
) -> Vec<SitePair> {
    assert!(model.edges.locks, "locks order what is not contested");
    if memory.contested() == 0 {
        return Vec::new();
    }
    let mut order = HappensBefore::new(trace, model);
    let mut history = History::new(memory.len());
    let mut pairs = Pairs::new(trace, representatives);
    let kept = trace.kept_events();
    for (index, event) in deadline.bound(trace.events.select([trace.events.besides_accesses(), &kept, memory.contending()])) {
        let event = &told(&event);
        let passive = matches!(event.kind, EventKind::Access(_)) && !order.is_kept(index);
        if !passive {
            order.receive(index, event);
        }
        if memory.contends(index)
            && let Some(access) = event.access()
        {
            let clock = order.clock(event.thread);
            let cell = Cell::new(index, event.thread, event.site, clock.time(), 0, &access);
            for (granule, bytes) in memory.contested_granules(&access) {
                history.access(granule, bytes, cell, |old| {
                    if clock.knows(old.thread) < old.time {
                        pairs.add(old.event, index);
                    }
                });
            }
        }
        if !passive {
            order.release(index, event);
        }
    }
    pairs.finish()
}

/// Conflicting pairs that the weak order does not order and no common lock excludes.
pub fn hybrid(trace: &Trace, memory: &SharedMemory, representatives: usize) -> Vec<SitePair> {
    hybrid_until(trace, memory, representatives, Deadline::NEVER)
}

/// As [`hybrid`], of the events that there is time for.
pub fn hybrid_until(trace: &Trace, memory: &SharedMemory, representatives: usize, deadline: Deadline) -> Vec<SitePair> {
    if memory.contested() == 0 {
        return Vec::new();
    }
    let mut order = HappensBefore::new(trace, Model::WEAK);
    let mut locks = LockSets::new(order.threads());
    let mut history = History::new(memory.len());
    let mut pairs = Pairs::new(trace, representatives).with_others();
    let kept = trace.kept_events();
    for (index, event) in deadline.bound(trace.events.select([trace.events.besides_accesses(), &kept, memory.contending()])) {
        let plain = matches!(event.kind, EventKind::Access(_));
        let passive = plain && !order.is_kept(index);
        if !passive {
            order.receive(index, &event);
        }
        if memory.contends(index)
            && let Some(access) = event.access()
        {
            let clock = order.clock(event.thread);
            let held = locks.current(event.thread);
            let cell = Cell::new(index, event.thread, event.site, clock.time(), held.0, &access);
            for (granule, bytes) in memory.contested_granules(&access) {
                history.access(granule, bytes, cell, |old| {
                    if clock.knows(old.thread) < old.time && !locks.exclude(LockSetId(old.lockset), held) {
                        pairs.add(old.event, index);
                    }
                });
            }
        }
        if !plain {
            locks.step(index, &event);
        }
        if !passive {
            order.release(index, &event);
        }
    }
    pairs.finish()
}
