//! From an abstract deadlock pattern to acquisitions that can block each other.
//!
//! Sync-preserving deadlocks (Tunç, Mathur, Pavlogiannis, Viswanathan, "Sound Dynamic Deadlock Prediction in Linear Time", PLDI 2023, §4):
//! a tuple of instances is one iff the sync-preserving ideal of what comes before them holds none of them. The ideal only grows as
//! instances move on, so a tuple is walked forward: an instance that the ideal holds is replaced by the first one behind it. One walk decides
//! the whole pattern. Limit: [`MAX_WALK`] ideals per pattern.

use crate::closure::{Closures, Cut, Infeasible};
use rashomon_event::{CandidateKind, EventIndex};
use rashomon_order::{Instance, LockGraph, Pattern};

pub const MAX_WALK: usize = 256;
/// Tuples of instances looked at for one that is unordered.
const MAX_TUPLES: usize = 4096;

pub fn candidate(graph: &LockGraph, pattern: &Pattern, tuple: &[EventIndex]) -> CandidateKind {
    let locks = pattern.iter().map(|&number| graph.dependencies[number].wanted).collect();
    CandidateKind::Deadlock { acquisitions: tuple.to_vec(), locks }
}

/// The first sync-preserving deadlock of a pattern, with its ideal.
pub fn sync_preserving(closures: &Closures<'_, '_>, graph: &LockGraph, pattern: &Pattern) -> Option<(Vec<EventIndex>, Cut)> {
    let instances = |side: usize| &graph.dependencies[pattern[side]].instances;
    let mut at = vec![0; pattern.len()];
    for _ in 0..MAX_WALK {
        let tuple: Vec<EventIndex> = at.iter().enumerate().map(|(side, &at)| instances(side)[at].event).collect();
        match closures.sync_preserving(&tuple) {
            Ok(cut) => return Some((tuple, cut)),
            Err(Infeasible::NeverReleased) => return None,
            Err(Infeasible::Goal { number, count }) => {
                at[number] = instances(number).partition_point(|instance| closures.index.place(instance.event).1 < count);
                if at[number] >= instances(number).len() {
                    return None;
                }
            }
        }
    }
    None
}

/// Up to `limit` tuples whose instances the weak order leaves pairwise unordered, earliest first.
pub fn concurrent(graph: &LockGraph, pattern: &Pattern, limit: usize) -> Vec<Vec<EventIndex>> {
    let mut found = Vec::new();
    let mut tuples = MAX_TUPLES;
    extend(graph, pattern, &mut Vec::new(), &mut tuples, limit, &mut found);
    found
}

fn extend<'g>(
    graph: &'g LockGraph,
    pattern: &Pattern,
    chosen: &mut Vec<&'g Instance>,
    tuples: &mut usize,
    limit: usize,
    found: &mut Vec<Vec<EventIndex>>,
) {
    if chosen.len() == pattern.len() {
        found.push(chosen.iter().map(|instance| instance.event).collect());
        return;
    }
    for instance in &graph.dependencies[pattern[chosen.len()]].instances {
        if *tuples == 0 || found.len() >= limit {
            return;
        }
        *tuples -= 1;
        if chosen.iter().all(|earlier| LockGraph::concurrent(earlier, instance)) {
            chosen.push(instance);
            extend(graph, pattern, chosen, tuples, limit, found);
            chosen.pop();
        }
    }
}
