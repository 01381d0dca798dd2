//! How much semaphores begin with, and which posts a take cannot do without.
//!
//! The k-th take of a semaphore that begins with n needs k − n posts. Which ones another order of the posts could change; here
//! they are the first k − n of the trace, as in prediction. What later posts know is then no reason why a take comes after
//! them.

use crate::clock::{JoinedClocks, VectorClock};
use rashomon_event::{Address, EventKind, EventSet, Trace};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// Of each semaphore that is posted or taken: the count that the trace says it began with, or the least under which the trace is
/// possible if that is more.
pub fn initial_counts(trace: &Trace) -> FxHashMap<Address, u64> {
    let mut balance: FxHashMap<Address, i64> = FxHashMap::default();
    let mut counts: FxHashMap<Address, u64> = FxHashMap::default();
    for event in EventSet::union([trace.events.besides_accesses()]) {
        let (semaphore, change) = match trace.kind(event) {
            EventKind::Post { semaphore } => (semaphore, 1),
            EventKind::Take { semaphore } => (semaphore, -1),
            _ => continue,
        };
        let balance = balance.entry(semaphore).or_default();
        *balance += change;
        let count = counts.entry(semaphore).or_insert_with(|| trace.semaphores.get(&semaphore).copied().unwrap_or(0));
        *count = (*count).max(u64::try_from(-*balance).unwrap_or(0));
    }
    counts
}

/// What takes learn of the posts that they need.
#[derive(Default)]
pub(crate) struct Needed {
    /// Takes that still need no post.
    free: u64,
    /// Posts that no take has needed yet, first ones first.
    posts: VecDeque<VectorClock>,
    known: JoinedClocks,
}

impl Needed {
    pub fn new(initial: u64) -> Self {
        Self { free: initial, ..Self::default() }
    }

    pub fn post(&mut self, clock: VectorClock) {
        self.posts.push_back(clock);
    }

    pub fn take(&mut self) -> &JoinedClocks {
        if self.free > 0 {
            self.free -= 1;
        } else if let Some(clock) = self.posts.pop_front() {
            self.known.add(clock);
        }
        &self.known
    }
}
