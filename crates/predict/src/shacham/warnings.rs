//! Violations of the locking discipline: Lockset as in Shacham et al. 2007, §2.3, Fig. 2: C(m) is the set of locks that were held
//! at all accesses to m so far; a warning is an access after which it is empty. As an option the states of Eraser (S. Savage et
//! al., TOCS 15 (4), 1997, §2.2, Fig. 4): no refinement while one thread only has accessed m, no warning while nobody has written
//! since; that loses warnings which turn out to be races in other schedules.
//!
//! Deviation 1: one C(m) for each eight bytes. A warning may so come from two neighbours; its partner must touch the same bytes,
//! so no pair comes from it. Deviation 2: memory that one thread only accesses, or that nobody writes, is left out: no pair could
//! come from it. Deviation 3: of a thread's warnings at one source site on one granule the first and the last are kept, of all
//! threads and granules up to a number for each site.
//!
//! Cost: two passes; one set number for each granule.

use rashomon_event::{EventIndex, LockMode, SiteId, ThreadId, Trace};
use rashomon_order::LockSets;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// Warnings kept of one source site.
const PER_SITE: usize = 16;
const GRANULE: u64 = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LocksetStates {
    /// Fig. 2.
    None,
    Eraser,
}

/// An access after which no lock protects its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Warning {
    pub event: EventIndex,
}

#[derive(Clone, Copy)]
struct Use {
    first: ThreadId,
    shared: bool,
    written: bool,
}

struct Candidates {
    /// `None`: all locks.
    locks: Option<Vec<rashomon_event::Address>>,
    owner: ThreadId,
    /// Eraser: another thread has accessed it; somebody has written since.
    shared: bool,
    modified: bool,
}

fn granules(address: u64, size: u32) -> impl Iterator<Item = u64> {
    address / GRANULE..=(address + u64::from(size.max(1)) - 1) / GRANULE
}

fn uses(trace: &Trace) -> FxHashMap<u64, Use> {
    let mut uses: FxHashMap<u64, Use> = FxHashMap::default();
    for event in &trace.events {
        let Some(access) = event.access() else { continue };
        for granule in granules(access.address.0, access.size) {
            let of = uses.entry(granule).or_insert(Use { first: event.thread, shared: false, written: false });
            of.shared |= of.first != event.thread;
            of.written |= access.class.writes();
        }
    }
    uses
}

/// Warnings in the order of the trace.
pub fn warnings(trace: &Trace, states: LocksetStates) -> Vec<Warning> {
    let uses = uses(trace);
    let mut sets = LockSets::new(trace.threads.len());
    let mut memory: FxHashMap<u64, Candidates> = FxHashMap::default();
    let mut kept: BTreeMap<(SiteId, ThreadId, u64), (EventIndex, EventIndex)> = BTreeMap::new();
    for (index, event) in trace.indices().zip(&trace.events) {
        if let Some(access) = event.access() {
            for granule in granules(access.address.0, access.size) {
                if !uses.get(&granule).is_some_and(|of| of.shared && of.written) {
                    continue;
                }
                let of = memory.entry(granule).or_insert_with(|| Candidates {
                    locks: None,
                    owner: event.thread,
                    shared: false,
                    modified: false,
                });
                of.shared |= of.owner != event.thread;
                of.modified |= access.class.writes() && of.shared;
                if states == LocksetStates::Eraser && !of.shared {
                    continue;
                }
                refine(&mut of.locks, sets.locks(sets.current(event.thread)));
                let empty = of.locks.as_ref().is_some_and(Vec::is_empty);
                if empty && (states == LocksetStates::None || of.modified) {
                    let entry = kept.entry((event.site, event.thread, granule)).or_insert((index, index));
                    entry.1 = index;
                }
            }
        }
        sets.step(index, &event);
    }
    let mut of_site: BTreeMap<SiteId, usize> = BTreeMap::new();
    let mut found: Vec<Warning> = Vec::new();
    for ((site, _, _), (first, last)) in kept {
        let count = of_site.entry(site).or_default();
        if *count < PER_SITE {
            *count += 1;
            found.push(Warning { event: first });
            found.extend((last != first).then_some(Warning { event: last }));
        }
    }
    found.sort_by_key(|warning| warning.event);
    found.dedup();
    found
}

fn refine(candidates: &mut Option<Vec<rashomon_event::Address>>, held: &[(rashomon_event::Address, LockMode)]) {
    match candidates {
        None => {
            let mut locks: Vec<_> = held.iter().map(|(lock, _)| *lock).collect();
            locks.dedup();
            *candidates = Some(locks);
        }
        Some(locks) => locks.retain(|lock| held.iter().any(|(other, _)| other == lock)),
    }
}
