//! Optimistic sync-reversal races and deadlocks.
//!
//! Shi, Mathur, Pavlogiannis, "Optimistic Prediction of Synchronization-Reversal Data Races", ICSE 2024: of the optimistic lock
//! closure ([`Closures::optimistic`]), no two sections that stay open may exclude each other, and the *optimistic reordering
//! graph* must be free of cycles: program order, needs, conflicting accesses in the order of the trace, sections that end in the
//! order of the trace, and the end of each of them before a section of their lock that stays open. Any order of the graph is then
//! a witness, so only the acquisitions of sections that stay open change places.
//!
//! Guarantee: a causal witness. Complete for this class, but for accesses of different bytes within eight, which keep their order
//! too. Deviations: (1) shared locks, conditions and the like, as in [`crate::closure`]. (2) The graph of the whole set is
//! ordered once, in time linear in the set, where the source looks for cycles among the sections that stay open only, with an
//! index built beforehand.

use crate::closure::{Closures, Cut};
use crate::regroup::{Order, regroup};
use rashomon_event::EventIndex;
use rashomon_order::SharedMemory;

/// A witness of the class, if there is one.
pub fn sync_reversal(closures: &Closures<'_, '_>, memory: &SharedMemory, goals: &[EventIndex]) -> Option<Vec<EventIndex>> {
    let index = closures.index;
    let cut = closures.optimistic(goals).ok()?;
    if clash(closures, &cut) {
        return None;
    }
    let events = index.trace.indices().filter(|&event| below(closures, &cut, event));
    let graph = Order::open_last(index, memory, &cut, events);
    regroup(index, &cut, &[&index.instances, &graph])
}

fn below(closures: &Closures<'_, '_>, cut: &Cut, event: EventIndex) -> bool {
    let (thread, at) = closures.index.place(event);
    at < cut[thread as usize]
}

/// Whether two sections that stay open exclude each other.
pub fn clash(closures: &Closures<'_, '_>, cut: &Cut) -> bool {
    let index = closures.index;
    let mut open: Vec<u32> = (0..cut.len()).flat_map(|thread| index.open_at(thread, cut[thread])).collect();
    open.sort_unstable_by_key(|&number| (index.sections[number as usize].lock, number));
    open.iter().enumerate().any(|(place, &one)| {
        let one = &index.sections[one as usize];
        let others = open[place + 1..].iter().map(|&number| &index.sections[number as usize]);
        others.take_while(|other| other.lock == one.lock).any(|other| other.thread != one.thread && other.conflicts(one))
    })
}
