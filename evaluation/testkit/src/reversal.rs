//! Optimistic sync-reversal reorderings by their definition (Shi, Mathur, Pavlogiannis, ICSE 2024), with sets of events and a
//! relation on them: for traces of at most 64 events with accesses, exclusive locks, threads and publications.

use rashomon_event::{Address, EventIndex, EventKind, LockMode, Trace};

struct Facts<'t> {
    trace: &'t Trace,
    /// Per event: itself and all that it needs.
    past: Vec<u64>,
}

fn is_acquire(kind: EventKind) -> Option<(Address, LockMode)> {
    match kind {
        EventKind::Acquire { lock, mode, .. } => Some((lock, mode)),
        EventKind::WaitEnd { mutex, .. } => Some((mutex, LockMode::Exclusive)),
        _ => None,
    }
}

fn is_release(kind: EventKind, lock: Address, of: LockMode) -> bool {
    match kind {
        EventKind::Release { lock: other, mode } => other == lock && of == mode,
        EventKind::WaitBegin { mutex, .. } => mutex == lock && of == LockMode::Exclusive,
        _ => false,
    }
}

impl<'t> Facts<'t> {
    fn new(trace: &'t Trace) -> Self {
        let mut past: Vec<u64> = Vec::new();
        for (index, event) in trace.events.iter().enumerate() {
            let mut set = 1 << index;
            for (other, earlier) in trace.events.range(0..index).enumerate() {
                let needed = earlier.thread == event.thread
                    || earlier.kind == EventKind::Fork { child: event.thread }
                    || matches!(event.kind, EventKind::Join { child, .. }
                        if child == earlier.thread || earlier.kind == EventKind::Fork { child });
                if needed {
                    set |= past[other];
                }
            }
            if let Some(access) = event.access().filter(|access| access.class.reads()) {
                let writer = trace
                    .events
                    .range(0..index)
                    .rposition(|other| other.access().is_some_and(|other| other.class.writes() && other.overlaps(&access)));
                set |= writer.map_or(0, |writer| past[writer]);
            }
            past.push(set);
        }
        Self { trace, past }
    }

    fn before(&self, goals: &[EventIndex]) -> u64 {
        let mut set = 0;
        for goal in goals {
            let thread = self.trace.event(*goal).thread;
            for (index, event) in self.trace.events.range(0..goal.index()).enumerate() {
                if event.thread == thread || event.kind == (EventKind::Fork { child: thread }) {
                    set |= self.past[index];
                }
            }
        }
        set
    }

    fn release_of(&self, acquire: usize) -> Option<usize> {
        let event = self.trace.events.at(acquire);
        let (lock, mode) = is_acquire(event.kind)?;
        let mut behind = self.trace.events.iter().enumerate().skip(acquire + 1);
        behind.find(|(_, other)| other.thread == event.thread && is_release(other.kind, lock, mode)).map(|(index, _)| index)
    }
}

/// Whether the two accesses are a race of the class.
pub fn races(trace: &Trace, goals: &[EventIndex]) -> bool {
    let facts = Facts::new(trace);
    let forbidden: u64 = goals.iter().map(|goal| 1 << goal.0).sum();
    let mut set = facts.before(goals);
    let acquires: Vec<usize> =
        (0..trace.events.len()).filter(|&index| is_acquire(trace.events.at(index).kind).is_some()).collect();
    while let Some(release) = acquires.iter().find_map(|&acquire| {
        let release = facts.release_of(acquire).filter(|&release| set >> release & 1 == 0)?;
        (set >> acquire & 1 == 1 && facts.past[release] & forbidden == 0).then_some(release)
    }) {
        set |= facts.past[release];
    }
    set & forbidden == 0 && ordered(&facts, set)
}

/// Whether the reordering graph of the set has no cycle: its events can be taken away one by one.
fn ordered(facts: &Facts<'_>, set: u64) -> bool {
    let events = &facts.trace.events;
    let inside = |index: usize| set >> index & 1 == 1;
    let precedes = |one: usize, other: usize| {
        if facts.past[other] >> one & 1 == 1 {
            return true;
        }
        if let (Some(a), Some(b)) = (events.at(one).access(), events.at(other).access())
            && a.overlaps(&b)
            && (a.class.writes() || b.class.writes())
        {
            return one < other;
        }
        // A section's end and the begin of another that it excludes.
        let Some((lock, mode)) = is_acquire(events.at(other).kind) else { return false };
        let ends = (0..one).rev().find(|&acquire| facts.release_of(acquire) == Some(one));
        let excludes = ends
            .and_then(|acquire| is_acquire(events.at(acquire).kind))
            .is_some_and(|(of, as_)| of == lock && (as_ == LockMode::Exclusive || mode == LockMode::Exclusive));
        let stays_open = facts.release_of(other).is_none_or(|release| !inside(release));
        excludes && (one < other || stays_open)
    };
    let open: Vec<(usize, Address, LockMode)> = (0..events.len())
        .filter(|&index| inside(index) && facts.release_of(index).is_none_or(|release| !inside(release)))
        .filter_map(|index| is_acquire(events.at(index).kind).map(|(lock, mode)| (index, lock, mode)))
        .collect();
    let clash = |one: &(usize, Address, LockMode), other: &(usize, Address, LockMode)| {
        one.0 < other.0 && one.1 == other.1 && (one.2 == LockMode::Exclusive || other.2 == LockMode::Exclusive)
    };
    if open.iter().any(|one| open.iter().any(|other| clash(one, other))) {
        return false;
    }
    let mut left = set;
    while left != 0 {
        let free = (0..events.len()).find(|&index| {
            left >> index & 1 == 1
                && (0..events.len()).all(|other| other == index || left >> other & 1 == 0 || !precedes(other, index))
        });
        match free {
            Some(index) => left &= !(1 << index),
            None => return false,
        }
    }
    true
}
