//! The last decider: is there any correct reordering that makes the goals next?
//!
//! A witness is a set of events and an order of it. The sets that need to be tried are few: the least one, closed under program
//! order and causal needs, and those that follow from it by ending, one by one, sections that stand in another's way. For let R
//! be the set of any witness; end such sections as long as their ends lie in R; the set that this leads to is a subset of R in
//! which only sections that are open in R stay open in another's way, and the witness, restricted to it, is a witness still
//! (reads keep their writers, sections their order). Each set is saturated ([`crate::saturate`]) and then ordered
//! ([`crate::ordering`]).
//!
//! Guarantee: a causal witness, or `Refuted`: no correct reordering of this trace (values and branches unknown) shows the goals.
//! Exact but for the budget, and for semaphores, whose needs are conservative (see [`crate::index`]); then `Undecided`. Cost:
//! exponential at worst.

use crate::closure::{Closures, Cut, Infeasible};
pub use crate::deciders::Decision;
use crate::index::Index;
use crate::ordering::{Found, Ordering};
use crate::regroup::{Order, regroup};
use crate::reversal::clash;
use crate::saturate::Steps;
use rashomon_event::{Deadline, EventIndex};
use rashomon_order::SharedMemory;
use std::collections::BTreeSet;

/// What an exact decision may cost.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Sets of events that are tried.
    pub sets: usize,
    /// Steps (synchronisation and shared accesses) of a set.
    pub steps: usize,
    /// Cuts that fail, over all sets.
    pub failures: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { sets: 64, steps: 20_000, failures: 20_000 }
    }
}

impl Limits {
    pub const NONE: Self = Self { sets: usize::MAX, steps: usize::MAX, failures: usize::MAX };
}

pub fn decide(closures: &Closures<'_, '_>, memory: &SharedMemory, goals: &[EventIndex], limits: &Limits) -> Decision {
    decide_until(closures, memory, goals, limits, Deadline::NEVER)
}

/// Undecided if there is no time to try all sets.
pub fn decide_until(
    closures: &Closures<'_, '_>,
    memory: &SharedMemory,
    goals: &[EventIndex],
    limits: &Limits,
    deadline: Deadline,
) -> Decision {
    let index = closures.index;
    let least = match closures.before(goals) {
        Ok(cut) => cut,
        Err(Infeasible::Goal { .. } | Infeasible::NeverReleased) => return unless_conservative(index, true),
    };
    let mut failures = limits.failures;
    let mut seen = BTreeSet::from([least.clone()]);
    let mut waiting = vec![least];
    let mut complete = true;
    while let Some(cut) = waiting.pop() {
        if deadline.is_over() {
            return Decision::Undecided;
        }
        if !clash(closures, &cut) {
            match order(index, memory, &cut, limits.steps, &mut failures) {
                Ok(Some(order)) => return Decision::Witness(order),
                Ok(None) => {}
                Err(TooMuch) => complete = false,
            }
        }
        if failures == 0 {
            return Decision::Undecided;
        }
        for number in in_the_way(index, &cut) {
            if seen.len() >= limits.sets {
                complete = false;
                break;
            }
            if let Ok(longer) = closures.end(&index.sections[number as usize], goals, &cut)
                && seen.insert(longer.clone())
            {
                waiting.push(longer);
            }
        }
    }
    unless_conservative(index, complete)
}

fn unless_conservative(index: &Index<'_>, complete: bool) -> Decision {
    if complete && !index.semaphores { Decision::Refuted } else { Decision::Undecided }
}

/// Open sections of a lock that another thread takes, too, in the set.
fn in_the_way(index: &Index<'_>, cut: &Cut) -> Vec<u32> {
    let mut open: Vec<u32> = (0..cut.len()).flat_map(|thread| index.open_at(thread, cut[thread])).collect();
    open.retain(|&number| {
        let section = &index.sections[number as usize];
        index.sections_on[section.lock as usize].iter().any(|use_| {
            let begun = use_.sections.iter().map(|&other| &index.sections[other as usize]);
            let mut begun = begun.take_while(|other| other.acquire < cut[use_.thread as usize]);
            use_.thread != section.thread && begun.any(|other| other.conflicts(section))
        })
    });
    open
}

struct TooMuch;

/// A correct reordering of the whole set, grouped by threads.
fn order(
    index: &Index<'_>,
    memory: &SharedMemory,
    cut: &Cut,
    limit: usize,
    failures: &mut usize,
) -> Result<Option<Vec<EventIndex>>, TooMuch> {
    let mut steps = Steps::new(index, memory, cut, limit).ok_or(TooMuch)?;
    if steps.saturate(index, cut).is_err() {
        return Ok(None);
    }
    match Ordering::find(index, &steps, failures) {
        Found::Impossible => Ok(None),
        Found::Unknown => Err(TooMuch),
        Found::Order(sequence) => {
            let order = all_events(index, &steps, cut, &sequence);
            let constraints = Order::of(index, memory, cut, order.iter().copied());
            let regrouped = regroup(index, cut, &[&index.instances, &constraints]);
            Ok(Some(regrouped.unwrap_or(order)))
        }
    }
}

/// Each step, and what its thread does until its next one.
fn all_events(index: &Index<'_>, steps: &Steps, cut: &Cut, sequence: &[u32]) -> Vec<EventIndex> {
    let mut done = vec![0usize; cut.len()];
    let mut order = Vec::new();
    for &thread in sequence {
        let thread = thread as usize;
        let list = &steps.threads[thread];
        let start = list[done[thread]].at;
        done[thread] += 1;
        let end = list.get(done[thread]).map_or(cut[thread], |next| next.at);
        order.extend(index.threads.range(thread, start..end));
    }
    order
}
