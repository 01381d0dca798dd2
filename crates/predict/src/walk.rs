//! All sync-preserving races, one for each pair of sites.
//!
//! Mathur, Pavlogiannis, Viswanathan, "Optimal Prediction of Synchronization-Preserving Races", POPL 2021, §5: the
//! sync-preserving ideal only grows as either access moves on in its thread. So two lists of accesses, each of one thread and one
//! site, are walked side by side: an access that the ideal holds is replaced by the first one of its list behind it, and the
//! first pair of which the ideal holds neither is a race.
//!
//! Guarantee: a pair of sites is reported iff some pair of its accesses is a sync-preserving race, unless the budget of ideals is
//! spent. No history is forgotten. Cost: four bytes per access of contested memory, and per two lists at most as many ideals as
//! they have accesses.

use crate::closure::{Closures, Infeasible};
use rashomon_event::{Access, Deadline, EventIndex, SiteId};
use rashomon_order::SharedMemory;
use std::collections::{BTreeMap, BTreeSet, HashMap};

pub type Sites = (SiteId, SiteId);

/// Accesses of one thread and one site to one granule that are alike.
struct List {
    thread: u32,
    site: SiteId,
    /// Stands for all of them.
    access: Access,
    events: Vec<EventIndex>,
}

pub struct Races {
    pub found: BTreeMap<Sites, (EventIndex, EventIndex)>,
    /// Whether everything was looked at.
    pub complete: bool,
}

/// Pairs of `known` sites are not looked at. At most `ideals` are computed, none after the deadline.
pub fn races(
    closures: &Closures<'_, '_>,
    memory: &SharedMemory,
    known: &BTreeSet<Sites>,
    ideals: usize,
    deadline: Deadline,
) -> Races {
    let mut races = Races { found: BTreeMap::new(), complete: true };
    let mut left = ideals;
    for lists in lists(closures, memory, deadline).into_values() {
        for (place, one) in lists.iter().enumerate() {
            for other in &lists[place + 1..] {
                let sites = (one.site.min(other.site), one.site.max(other.site));
                let conflict = one.thread != other.thread && one.access.conflicts(&other.access);
                if !conflict || known.contains(&sites) || races.found.contains_key(&sites) {
                    continue;
                }
                match walk(closures, one, other, &mut left, deadline) {
                    Some(Walk::Race(first, second)) => {
                        races.found.insert(sites, (first.min(second), first.max(second)));
                    }
                    Some(Walk::None) => {}
                    None => {
                        races.complete = false;
                        return races;
                    }
                }
            }
        }
    }
    races
}

fn lists(closures: &Closures<'_, '_>, memory: &SharedMemory, deadline: Deadline) -> BTreeMap<usize, Vec<List>> {
    let trace = closures.index.trace;
    let mut granules: BTreeMap<usize, Vec<List>> = BTreeMap::new();
    let mut places = HashMap::new();
    for event in deadline.bound(trace.indices()).filter(|&event| memory.contends(event)) {
        let (thread, site) = (trace.event(event).thread.0, trace.event(event).site);
        let Some(access) = trace.access(event) else { continue };
        for (granule, _) in memory.contested_granules(&access) {
            let lists = granules.entry(granule).or_default();
            let place = *places.entry((granule, thread, site, access)).or_insert(lists.len());
            if place == lists.len() {
                lists.push(List { thread, site, access, events: Vec::new() });
            }
            lists[place].events.push(event);
        }
    }
    granules
}

/// Ideals computed between two looks at the clock.
const LOOK_EVERY: usize = 16;

enum Walk {
    Race(EventIndex, EventIndex),
    None,
}

/// `None`: the budget is spent, or the time is over.
fn walk(closures: &Closures<'_, '_>, one: &List, other: &List, left: &mut usize, deadline: Deadline) -> Option<Walk> {
    let lists = [one, other];
    let mut at = [0, 0];
    while at[0] < one.events.len() && at[1] < other.events.len() {
        *left = left.checked_sub(1)?;
        // An ideal of a long trace takes a while.
        if left.is_multiple_of(LOOK_EVERY) && deadline.is_over() {
            return None;
        }
        let goals = [one.events[at[0]], other.events[at[1]]];
        match closures.sync_preserving(&goals) {
            Ok(_) => return Some(Walk::Race(goals[0], goals[1])),
            Err(Infeasible::NeverReleased) => return Some(Walk::None),
            Err(Infeasible::Goal { number, count }) => {
                at[number] = lists[number].events.partition_point(|&event| closures.index.place(event).1 < count);
            }
        }
    }
    Some(Walk::None)
}
