//! Plain accesses before which explored threads stop.

use rashomon_confirm::Planner;
use rashomon_event::{CodePlace, Deadline, EventKind, SiteId, Trace};
use rashomon_explore::shape::MOST_EVENTS;
use rashomon_order::{SharedMemory, hybrid_until};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

/// The accesses of hybrid candidates, as code places with modules of the trace's table.
pub fn racing_sites(trace: &Trace, deadline: Deadline) -> Vec<CodePlace> {
    let memory = SharedMemory::until(trace, deadline);
    let sites: BTreeSet<SiteId> =
        hybrid_until(trace, &memory, 1, deadline).iter().flat_map(|pair| [pair.sites.0, pair.sites.1]).collect();
    let plain: BTreeSet<SiteId> = deadline
        .bound(&trace.events)
        .filter(|event| matches!(event.kind, EventKind::Access(_)) && sites.contains(&event.site))
        .map(|event| event.site)
        .collect();
    let planner = Planner::new(trace, 0);
    plain.into_iter().map(|site| planner.code_place(site)).collect()
}

/// The plain accesses of data that several threads touch, few times in all, and one of them writes.
pub(super) fn rare_sites(trace: &Trace, deadline: Deadline) -> Vec<CodePlace> {
    #[derive(Default)]
    struct Touched {
        times: usize,
        threads: BTreeSet<u32>,
        written: bool,
        sites: BTreeSet<SiteId>,
    }
    let mut all: FxHashMap<u64, Touched> = FxHashMap::default();
    for event in deadline.bound(&trace.events) {
        let EventKind::Access(access) = event.kind else { continue };
        let touched = all.entry(access.address.0).or_default();
        touched.times += 1;
        if touched.times <= MOST_EVENTS {
            touched.threads.insert(event.thread.0);
            touched.written |= access.class.writes();
            touched.sites.insert(event.site);
        }
    }
    let is_rare = |one: &&Touched| one.times <= MOST_EVENTS && one.threads.len() > 1 && one.written;
    let sites: BTreeSet<SiteId> = all.values().filter(is_rare).flat_map(|one| one.sites.iter().copied()).collect();
    let planner = Planner::new(trace, 0);
    sites.into_iter().map(|site| planner.code_place(site)).collect()
}
