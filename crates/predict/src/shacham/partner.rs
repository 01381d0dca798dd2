//! The access a1 that a warning a2 may race with: Shacham et al. 2007, §3.1. The last access before a2 with m^a1 = m^a2,
//! t^a1 ≠ t^a2, one a write, one not protected (an atomic access is protected), and disjoint locks.
//!
//! Extension (their Fig. 7): if there is none before it, the first one after it is taken, and the roles change: the earlier
//! access is a1. Locks held in shared mode by both do not exclude each other.
//!
//! Deviation 1: accesses that creation and join of threads order in every schedule of this execution are passed over.
//!
//! Cost: one pass for the lock sets of all warnings' accesses, then a scan from each warning.

use super::warnings::Warning;
use rashomon_event::{Access, EventIndex, EventKind, LockMode, Trace};
use rashomon_order::lockset::exclude;
use rashomon_order::{LockSetId, LockSets};

/// Two accesses that may race; `a1` is the earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Pair {
    pub a1: EventIndex,
    pub a2: EventIndex,
}

/// What each thread knows of the others by creation and join alone.
#[derive(Debug, Default)]
struct ForkJoin {
    /// By thread: from which event of its own on it knows the others' events below these.
    known: Vec<Vec<(EventIndex, Vec<u32>)>>,
}

impl ForkJoin {
    fn of(trace: &Trace) -> Self {
        let threads = trace.threads.len();
        let mut known: Vec<Vec<(EventIndex, Vec<u32>)>> = vec![Vec::new(); threads];
        let mut current: Vec<Vec<u32>> = vec![vec![0; threads]; threads];
        for (index, event) in trace.indices().zip(&trace.events) {
            let thread = event.thread.index();
            let (from, to) = match event.kind {
                EventKind::Fork { child } => (thread, child.index()),
                EventKind::Join { child, .. } => (child.index(), thread),
                _ => continue,
            };
            if from >= threads || to >= threads {
                continue;
            }
            let mut given = current[from].clone();
            // All of its events so far.
            given[from] = index.0 + 1;
            for (mine, theirs) in current[to].iter_mut().zip(&given) {
                *mine = (*mine).max(*theirs);
            }
            known[to].push((index, current[to].clone()));
        }
        Self { known }
    }

    fn orders(&self, trace: &Trace, first: EventIndex, second: EventIndex) -> bool {
        let (one, other) = (trace.event(first).thread.index(), trace.event(second).thread.index());
        let known = &self.known[other];
        let behind = known.partition_point(|(from, _)| *from < second);
        behind.checked_sub(1).is_some_and(|at| known[at].1[one] > first.0)
    }
}

/// The lock set of every access of a trace, and what orders them whatever happens.
pub struct AccessLocks {
    sets: LockSets,
    of_event: Vec<LockSetId>,
    fork_join: ForkJoin,
}

impl AccessLocks {
    pub fn of(trace: &Trace) -> Self {
        let mut sets = LockSets::new(trace.threads.len());
        let mut of_event = Vec::with_capacity(trace.events.len());
        for (index, event) in trace.indices().zip(&trace.events) {
            of_event.push(sets.current(event.thread));
            sets.step(index, &event);
        }
        Self { sets, of_event, fork_join: ForkJoin::of(trace) }
    }

    pub fn held(&self, event: EventIndex) -> &[(rashomon_event::Address, LockMode)] {
        self.sets.locks(self.of_event[event.index()])
    }
}

/// The five conditions.
fn may_race(trace: &Trace, locks: &AccessLocks, one: EventIndex, access: &Access, other: EventIndex) -> bool {
    let event = trace.event(other);
    event.thread != trace.event(one).thread
        && event.access().is_some_and(|second| access.conflicts(&second))
        && !exclude(locks.held(one), locks.held(other))
        && !locks.fork_join.orders(trace, one.min(other), one.max(other))
}

/// `None`: the warning is spurious, as far as this execution tells (their Fig. 6).
pub fn partner(trace: &Trace, locks: &AccessLocks, warning: &Warning) -> Option<Pair> {
    let at = warning.event;
    let access = trace.access(at)?;
    let fits = |index: &EventIndex| may_race(trace, locks, at, &access, *index);
    if let Some(a1) = (0..at.0).rev().map(EventIndex).find(fits) {
        return Some(Pair { a1, a2: at });
    }
    let a2 = (at.0 + 1..trace.events.len() as u32).map(EventIndex).find(fits)?;
    Some(Pair { a1: at, a2 })
}
