//! Pairs of accesses that may race.
//!
//! [`races`]: conflicting accesses that happens-before leaves unordered in this very execution (epochs as in Flanagan, Freund,
//! "FastTrack", PLDI 2009, but several accesses per granule, so that all pairs of sites are found and not only one per variable).
//! Byte-exact; atomic against plain accesses conflict, atomic against atomic do not.
//!
//! [`hybrid`]: conflicting accesses that the weak order (no mutexes, no atomics) leaves unordered and whose lock sets do not
//! exclude each other (Carril, Tichy, SEPS 2015, §3). Every pair that [`races`] finds is in it, but for pairs both forget.
//!
//! Guarantee: every pair returned satisfies its definition. Limit: accesses forgotten by [`crate::history`].

use crate::happens_before::{HappensBefore, Model};
use crate::history::{Cell, History};
use crate::lockset::{LockSetId, LockSets};
use crate::pairs::{Pairs, SitePair};
use crate::shared_memory::SharedMemory;
use rashomon_event::{Deadline, EventKind, Trace};

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
    assert!(model.edges.locks, "locks order what is not contested");
    if memory.contested() == 0 {
        return Vec::new();
    }
    let mut order = HappensBefore::new(trace, model);
    let mut history = History::new(memory.len());
    let mut pairs = Pairs::new(trace, representatives);
    for (index, event) in deadline.bound(trace.indices().zip(&trace.events)) {
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
    let mut pairs = Pairs::new(trace, representatives);
    for (index, event) in deadline.bound(trace.indices().zip(&trace.events)) {
        let plain = matches!(event.kind, EventKind::Access(_));
        let passive = plain && !order.is_kept(index);
        if !passive {
            order.receive(index, event);
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
            locks.step(index, event);
        }
        if !passive {
            order.release(index, event);
        }
    }
    pairs.finish()
}
