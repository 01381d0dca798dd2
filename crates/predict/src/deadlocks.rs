//! From an abstract deadlock pattern to waits that can block each other.
//!
//! Sync-preserving deadlocks (Tunç, Mathur, Pavlogiannis, Viswanathan, "Sound Dynamic Deadlock Prediction in Linear Time", PLDI
//! 2023, §4): a tuple of instances is one iff the sync-preserving ideal of what comes before them holds none of them. The ideal
//! only grows as instances move on, so a tuple is walked forward: an instance that the ideal holds is replaced by the first one
//! behind it. One walk decides the whole pattern. Limit: [`MAX_WALK`] ideals per pattern.
//!
//! A wait for a thread (a join, the exit of a barrier) is an instance like an acquisition, and must be next like one: so its
//! thread has come as far under the values that it read, and stands there with its locks until the other one goes on. It blocks
//! for events of that thread only up to the one it waits for; one that comes too early for them moves on, which keeps the walk
//! complete. A condition wait stands where it wants its mutex again once its signal has run, which the ideal therefore holds.

use crate::closure::{Closures, Cut, Infeasible};
use rashomon_event::{Address, CandidateKind, EventIndex};
use rashomon_order::{Instance, LockGraph, Pattern, Wish};

pub const MAX_WALK: usize = 256;
/// Tuples of instances looked at for one that is unordered.
const MAX_TUPLES: usize = 4096;

pub fn candidate(graph: &LockGraph, pattern: &Pattern, tuple: &[EventIndex]) -> CandidateKind {
    CandidateKind::Deadlock { waits: tuple.to_vec(), locks: pattern.iter().map(|&number| lock_of(graph, number)).collect() }
}

/// The lock that a dependency wishes for; `None`: it waits for a thread.
pub fn lock_of(graph: &LockGraph, number: usize) -> Option<Address> {
    match graph.dependencies[number].wish {
        Wish::Lock { lock, .. } | Wish::Mutex(lock) => Some(lock),
        Wish::Thread(_) => None,
    }
}

/// The first sync-preserving deadlock of a pattern, with its ideal.
pub fn sync_preserving(closures: &Closures<'_, '_>, graph: &LockGraph, pattern: &Pattern) -> Option<(Vec<EventIndex>, Cut)> {
    let instances = |side: usize| &graph.dependencies[pattern[side]].instances;
    let mut at = vec![0; pattern.len()];
    for _ in 0..MAX_WALK {
        catch_up(graph, pattern, &mut at)?;
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

/// Moves waits for a thread on, to the first ones that are for something behind where that thread stands.
fn catch_up(graph: &LockGraph, pattern: &Pattern, at: &mut [usize]) -> Option<()> {
    // Only waits of the sides before are moved by a side, so once around, and once more for those that came first, is enough.
    for side in (0..2 * pattern.len()).rev().map(|side| side % pattern.len()) {
        let next = (side + 1) % pattern.len();
        let awaited = graph.dependencies[pattern[next]].instances.get(at[next])?;
        let instances = &graph.dependencies[pattern[side]].instances;
        while !graph.in_time((pattern[side], instances.get(at[side])?), awaited) {
            at[side] += 1;
        }
    }
    Some(())
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
    let in_time = |side: usize, instance: &Instance, next: &Instance| graph.in_time((pattern[side], instance), next);
    if let (Some(first), Some(last), true) = (chosen.first(), chosen.last(), chosen.len() == pattern.len()) {
        if in_time(chosen.len() - 1, last, first) {
            found.push(chosen.iter().map(|instance| instance.event).collect());
        }
        return;
    }
    for instance in &graph.dependencies[pattern[chosen.len()]].instances {
        if *tuples == 0 || found.len() >= limit {
            return;
        }
        *tuples -= 1;
        let follows = chosen.last().is_none_or(|last| in_time(chosen.len() - 1, last, instance));
        if follows && chosen.iter().all(|earlier| LockGraph::concurrent(earlier, instance)) {
            chosen.push(instance);
            extend(graph, pattern, chosen, tuples, limit, found);
            chosen.pop();
        }
    }
}
