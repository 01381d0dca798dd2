//! Correlated variables: one operation of a thread, by its dependences, and another thread's operation within it.
//!
//! Which accesses an operation has, and on which variables, is found elsewhere (computational units;
//! `docs/theory-correlated.md`). An operation that another one comes into is not serialisable with it if it conflicts with the
//! other before it, and again behind it: whichever of the two came first, one of these conflicts would have the other order
//! (conflict-serialisability). So each place between two accesses of the one operation is looked at where no lock that the
//! other takes is held.
//!
//! Limits. Of each operation the first [`MOST_ACCESSES`] accesses count, and [`MOST_PLACES`] places are decided.

use super::orders::Orders;
use super::units::{Unit, Units};
use super::{Pattern, Prediction, Suspect, Violation};
use crate::deciders::Question;
use crate::index::Index;
use crate::options::Options;
use rashomon_event::{AtomicOp, Event, EventIndex, EventKind, Mode, ThreadId, Trace};
use rashomon_order::SharedMemory;
use rustc_hash::FxHashSet;

const MOST_ACCESSES: usize = 256;
const MOST_PLACES: usize = 8;

/// Two operations on one correlated set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extended {
    /// Beginnings and ends of the members.
    pub members: Vec<(u64, u64)>,
    /// Their threads, and the first and the last event that may belong to them.
    pub units: [(ThreadId, EventIndex, EventIndex); 2],
}

/// Orders of the trace in which the one operation comes into the other, unserialisably; of each pair the first few, which come in
/// the order of the pairs with the number of theirs.
pub fn of_correlated(trace: &Trace, options: &Options, pairs: &[Extended]) -> Vec<(usize, Prediction)> {
    let deadline = options.deadline;
    if trace.mode != Mode::Serial {
        return Vec::new();
    }
    let operations: Vec<[Vec<EventIndex>; 2]> = pairs.iter().map(|pair| accesses(trace, pair)).collect();
    let wanted: FxHashSet<EventIndex> = operations.iter().flatten().flatten().copied().collect();
    if wanted.is_empty() {
        return Vec::new();
    }
    let units = Units::around(trace, &wanted, deadline);
    let memory = SharedMemory::until(trace, deadline);
    let index = Index::until(trace, &memory, deadline);
    if !index.complete {
        return Vec::new();
    }
    let question = Question::new(&index, &memory, options);
    let orders = Orders { question: &question, units: &units };
    let mut found = Vec::new();
    for (number, [one, other]) in operations.iter().enumerate() {
        let mut places = places(trace, &units, one, other);
        places.extend(self::places(trace, &units, other, one));
        let in_time = places.into_iter().take_while(|_| !deadline.is_over());
        found.extend(in_time.filter_map(|place| Some((number, place.predict(&orders)?))));
    }
    found
}

/// What each of the two does with the members.
fn accesses(trace: &Trace, pair: &Extended) -> [Vec<EventIndex>; 2] {
    pair.units.map(|(thread, first, last)| {
        let is_member = |event: &Event| {
            event.access().is_some_and(|access| {
                let (start, end) = (access.address.0, access.address.0 + u64::from(access.size));
                pair.members.iter().any(|(from, to)| *from < end && start < *to)
            })
        };
        let all = trace.indices().skip(first.index()).take_while(|index| *index <= last);
        let mine = all.filter(|index| trace.event(*index).thread == thread && is_member(&trace.event(*index)));
        mine.take(MOST_ACCESSES).collect()
    })
}

/// Where the other operation may come in.
struct Place {
    violation: Violation,
    before: Unit,
    unit: Unit,
    other: Unit,
}

impl Place {
    fn predict(&self, orders: &Orders<'_, '_, '_>) -> Option<Prediction> {
        let Self { violation, before, unit, other } = self;
        let was_seen = violation.accesses().is_sorted();
        let (violated, serial) = orders.of(&Suspect { violation: *violation, before, unit, other });
        let violated = if was_seen { Vec::new() } else { violated };
        (was_seen || !violated.is_empty()).then_some(Prediction { violation: *violation, violated, serial, is_blamed: false })
    }
}

/// Places in `mine` where `theirs` is not serialisable, one for each two sections in the code.
fn places(trace: &Trace, units: &Units, mine: &[EventIndex], theirs: &[EventIndex]) -> Vec<Place> {
    let (Some(first), Some(their_first)) = (mine.first(), theirs.first()) else { return Vec::new() };
    let begin = |access: &EventIndex| units.held(*access).first().copied().unwrap_or(*access);
    let mut places = Vec::new();
    let mut known = FxHashSet::default();
    for cut in 1..mine.len() {
        let (done, open) = mine.split_at(cut);
        // In one critical section nobody comes in who takes its lock; that decides the place behind it.
        if begin(&done[cut - 1]) == begin(&open[0]) && theirs.iter().any(|their| shares_lock(trace, units, done[cut - 1], *their))
        {
            continue;
        }
        let conflict = |access: &&EventIndex| conflicts(trace, **access, theirs);
        let (Some(check), Some(act)) = (done.iter().rev().find(conflict), open.iter().find(conflict)) else { continue };
        let site = |access: &EventIndex| trace.event(*access).site;
        if places.len() == MOST_PLACES || !known.insert((site(check), site(act))) {
            continue;
        }
        let one = theirs.iter().find(|their| conflict_of(trace, *check, **their));
        let other = theirs.iter().rev().find(|their| conflict_of(trace, *act, **their));
        let (Some(one), Some(other)) = (one, other) else { continue };
        let violation = Violation { check: *check, between: [*one, *other], act: *act, pattern: Pattern::Correlated };
        places.push(Place {
            violation,
            before: unit(trace, begin(first), begin(first)),
            unit: unit(trace, *act, begin(act)),
            other: unit(trace, begin(their_first), begin(their_first)),
        });
    }
    places
}

/// Whether both accesses are in sections of one lock.
fn shares_lock(trace: &Trace, units: &Units, one: EventIndex, other: EventIndex) -> bool {
    let lock = |begin: &EventIndex| match trace.kind(*begin) {
        EventKind::Acquire { lock, .. } => Some(lock),
        EventKind::WaitEnd { mutex, .. } => Some(mutex),
        _ => None,
    };
    let theirs: Vec<_> = units.held(other).iter().filter_map(lock).collect();
    units.held(one).iter().filter_map(lock).any(|lock| theirs.contains(&lock))
}

fn unit(trace: &Trace, begin: EventIndex, outermost: EventIndex) -> Unit {
    let thread = trace.event(begin).thread;
    Unit { thread, begin, after_wait: false, read: None, write: None, rereads: false, modifies: false, outermost }
}

fn conflicts(trace: &Trace, access: EventIndex, theirs: &[EventIndex]) -> bool {
    theirs.iter().any(|their| conflict_of(trace, access, *their))
}

/// Whether both touch the same bytes, and one of them writes.
fn conflict_of(trace: &Trace, one: EventIndex, other: EventIndex) -> bool {
    let (one, other) = (trace.event(one), trace.event(other));
    let (Some(mine), Some(theirs)) = (one.access(), other.access()) else { return false };
    mine.overlaps(&theirs) && (writes(&one) || writes(&other))
}

fn writes(event: &Event) -> bool {
    match event.kind {
        EventKind::Atomic { op, .. } => matches!(op, AtomicOp::Store | AtomicOp::Rmw),
        _ => event.access().is_some_and(|access| access.class.writes()),
    }
}
