//! Critical sections of one thread that belong together, and another thread's section that may come between them.
//!
//! A *unit* of a variable is what one thread does with it in one critical section of a lock, or in one atomic access. Two units
//! of a thread, one after the other, are meant to be one where the second depends on the first. Nobody races here: each access
//! is guarded. What suggests that they belong together:
//!
//! - *One variable* ([`Pattern::Stale`], [`Pattern::LooksAgain`]): the first unit only reads, the second writes, and another
//!   thread's unit under the same guard may write between them. Read, remote write, local write has no serial order with the same
//!   reads and writes (Lu, Tucek, Qin, Zhou, "AVIO: Detecting Atomicity Violations via Access Interleaving Invariants", ASPLOS
//!   2006, Table 1; the stale value of Artho, Havelund, Biere, "Using Block-Local Atomicity to Detect Stale-Value Concurrency
//!   Errors", ATVA 2004). The table's other three cases are leads, too ([`Pattern::Interposed`]): two reads and a write between,
//!   a write and a read of what another thread wrote since, a value that was to be overwritten at once and is read.
//! - *Several variables* ([`Pattern::Views`]): another thread treats two variables together in one section of the lock, and this
//!   one treats one of them in each of two (Artho, Havelund, Biere, "High-Level Data Races", STVR 2003).
//!
//! No dependence is known, so a [`Violation`] is a lead. What an execution prints or ends with when the units are interleaved,
//! and in no execution in which they come one after the other, says more; that is for whoever executes it.
//!
//! Choices. (1) A second unit that begins with the wake-up of a condition wait is none: who waits wants a change. (2) If the
//! second unit reads the bytes again before it writes them, it may have looked again: such a violation comes last. If it looks
//! at the same place in the code, called from the same places, it has begun anew, and is left out. (3) Variables are told apart
//! by their first byte. (4) Atomic read-modify-writes do not overwrite what they have not seen, and are no second unit. (5) The
//! critical sections of both units are in one call of a function, or in functions that it calls, directly or by another one:
//! what a worker does for two tasks belongs to two calls.
//!
//! Guarantee: what [`observed`] gives came in this order in the trace. Of [`predict`]'s orders the deciders vouch for all but
//! the units at the end, which run undivided; only an execution shows them. Cost: one pass, and per violation two or three
//! decisions.

mod calls;
mod correlated;
mod interposed;
mod orders;
#[cfg(test)]
mod tests;
mod units;
mod views;

pub use correlated::{Extended, of_correlated};

use crate::deciders::Question;
use crate::index::Index;
use crate::options::Options;
use orders::Orders;
use rashomon_event::{Address, Deadline, EventIndex, Mode, SiteId, Trace};
use rashomon_order::SharedMemory;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::hash_map::Entry;
use units::{Unit, Units};

/// Sets of places that are told, and that are looked at.
const MOST_VIOLATIONS: usize = 64;
const MOST_TRIED: usize = 512;
/// Events of orders that are whole beginnings of the trace.
const MOST_EVENTS: usize = 1 << 24;
/// Suspects of one trace that are kept.
const MOST_SUSPECTS: usize = 4096;

/// Why two units are taken for one; the likeliest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Pattern {
    /// The first reads the variable, and the second writes it without a look.
    Stale,
    /// Each touches a part of what another thread treats together.
    Views,
    /// The first reads the variable, and the second reads and writes it.
    LooksAgain,
    /// What the other thread does between two accesses of one variable fits no serial order.
    Interposed,
    /// Each touches one of two variables that the other thread, too, treats in two sections.
    Apart,
    /// Dependences make them one operation on correlated variables.
    Correlated,
}

/// `check` and `act` are of one thread, `between` of another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Violation {
    /// In the first unit.
    pub check: EventIndex,
    /// The accesses that conflict with `check` and with `act`; of one variable both are the same.
    pub between: [EventIndex; 2],
    /// In the second unit.
    pub act: EventIndex,
    pub pattern: Pattern,
}

impl Violation {
    /// The accesses, in their order.
    pub fn accesses(&self) -> Vec<EventIndex> {
        let [first, second] = self.between;
        let mut all = vec![self.check, first.min(second), first.max(second), self.act];
        all.dedup();
        all
    }

    fn places(&self, trace: &Trace) -> [SiteId; 4] {
        let [first, second] = self.between;
        [self.check, first, second, self.act].map(|index| trace.event(index).site)
    }
}

/// A violation, and orders of the trace's events that decide it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prediction {
    pub violation: Violation,
    /// The units interleaved; the later ones order less. Empty: they are so in the trace. Of a trace that ended wrongly it is the
    /// trace up to there.
    pub violated: Vec<Vec<EventIndex>>,
    /// The other thread's unit before both, or behind both, whatever is possible; only the first thread's unit is ordered.
    pub serial: Vec<Vec<EventIndex>>,
    /// Whether the trace ended wrongly, and has the units interleaved. Then all orders are those of the trace up to the first
    /// unit.
    pub is_blamed: bool,
}

/// How the execution of a trace ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    Well,
    /// What takes least is the likeliest cause: whatever spans the cause is undone with it.
    Wrongly,
}

/// A violation, observed or not, with its units.
#[derive(Clone, Copy)]
struct Suspect<'u> {
    violation: Violation,
    before: &'u Unit,
    unit: &'u Unit,
    other: &'u Unit,
}

impl Units {
    /// Whether one call of a function makes both accesses, itself or by what it calls.
    fn are_near(&self, one: EventIndex, other: EventIndex) -> bool {
        let [one, other] = [one, other].map(|access| self.calls(access));
        one.zip(other).is_some_and(|(one, other)| calls::are_of_one(one, other))
    }
}

/// Violations that happened in the trace, one for each set of places.
pub fn observed(trace: &Trace, deadline: Deadline) -> Vec<Violation> {
    if trace.mode != Mode::Serial {
        return Vec::new();
    }
    let units = Units::of(trace, deadline);
    let mut known = FxHashSet::default();
    let mut found = Vec::new();
    let none = None::<fn(Suspect<'_>)>;
    let mut add = |suspect: Suspect<'_>| {
        if known.insert(suspect.violation.places(trace)) {
            found.push(suspect.violation);
        }
    };
    interposed::suspects(trace, &units, deadline, &mut add, none);
    views::suspects(&units, deadline, &mut add, none);
    found
}

/// What may be violated by another order of the trace: one of each three sections first; of these what was observed, then the
/// likeliest.
pub fn predict(trace: &Trace, options: &Options, ended: Ended) -> Vec<Prediction> {
    let deadline = options.deadline;
    if trace.mode != Mode::Serial {
        return Vec::new();
    }
    let units = Units::of(trace, deadline);
    let suspects = ranked(trace, all_suspects(trace, &units, deadline), ended);
    if suspects.is_empty() || deadline.is_over() {
        return Vec::new();
    }
    let memory = SharedMemory::until(trace, deadline);
    let index = Index::until(trace, &memory, deadline);
    if !index.complete {
        return Vec::new();
    }
    let question = Question::new(&index, &memory, options);
    let orders = Orders { question: &question, units: &units };
    let mut found = Vec::new();
    let mut events = 0;
    for (suspect, was_seen) in suspects.into_iter().take(MOST_TRIED) {
        if found.len() == MOST_VIOLATIONS || deadline.is_over() {
            break;
        }
        if was_seen && ended == Ended::Wrongly {
            let (violated, serial) = orders.of_seen(&suspect);
            events += violated.iter().chain(&serial).map(Vec::len).sum::<usize>();
            if !violated.is_empty() && events <= MOST_EVENTS {
                found.push(Prediction { violation: suspect.violation, violated, serial, is_blamed: true });
            }
            continue;
        }
        let (mut violated, serial) = orders.of(&suspect);
        if !was_seen && violated.is_empty() {
            continue;
        }
        if was_seen {
            violated.clear();
        }
        found.push(Prediction { violation: suspect.violation, violated, serial, is_blamed: false });
    }
    if ended == Ended::Wrongly {
        found.sort_by_key(|Prediction { violation, .. }| violation.act.index() - violation.check.index());
    }
    found
}

/// One of each three sections in the code comes first: a container that is used in two of them has many variables, and who has
/// tried a few of these knows the sections.
fn ranked<'u>(trace: &Trace, suspects: Vec<(Suspect<'u>, bool)>, ended: Ended) -> Vec<(Suspect<'u>, bool)> {
    let mut suspects: Vec<_> = suspects.into_iter().enumerate().collect();
    suspects.sort_by_key(|(number, (suspect, was_seen))| {
        let latest = if ended == Ended::Wrongly { u64::MAX - suspect.violation.act.index() as u64 } else { 0 };
        (!was_seen, suspect.violation.pattern, latest, *number)
    });
    let mut counts: FxHashMap<[SiteId; 3], u32> = FxHashMap::default();
    let rank = |(_, one): (usize, (Suspect<'u>, bool))| {
        let Suspect { before, unit, other, .. } = one.0;
        let count = counts.entry([before, unit, other].map(|unit| trace.event(unit.begin).site)).or_default();
        *count += 1;
        (*count, one)
    };
    let mut ranked: Vec<_> = suspects.into_iter().map(rank).collect();
    ranked.sort_by_key(|(rank, _)| *rank);
    ranked.into_iter().map(|(_, one)| one).collect()
}

/// Two of each variable and set of places at most, the first and the last one: an observed one, if there is one.
fn all_suspects<'u>(trace: &Trace, units: &'u Units, deadline: Deadline) -> Vec<(Suspect<'u>, bool)> {
    let (mut seen, mut hidden) = (Representatives::default(), Representatives::default());
    {
        let mut see = |suspect: Suspect<'u>| seen.add(trace, suspect);
        let mut hide = |suspect: Suspect<'u>| hidden.add(trace, suspect);
        interposed::suspects(trace, units, deadline, &mut see, Some(&mut hide));
        views::suspects(units, deadline, &mut see, Some(&mut hide));
    }
    hidden.all.retain(|suspect| !seen.known.contains_key(&key_of(trace, suspect)));
    let seen = seen.all.into_iter().map(|suspect| (suspect, true));
    seen.chain(hidden.all.into_iter().map(|suspect| (suspect, false))).collect()
}

type Key = ([SiteId; 4], Option<Address>);

fn key_of(trace: &Trace, suspect: &Suspect<'_>) -> Key {
    let variable = trace.access(suspect.violation.check).map(|access| access.address);
    (suspect.violation.places(trace), variable)
}

/// Suspects by their places, and the first variable.
#[derive(Default)]
struct Representatives<'u> {
    all: Vec<Suspect<'u>>,
    /// The last one's number, if there is more than one.
    known: FxHashMap<Key, Option<usize>>,
}

impl<'u> Representatives<'u> {
    fn add(&mut self, trace: &Trace, suspect: Suspect<'u>) {
        match self.known.entry(key_of(trace, &suspect)) {
            Entry::Occupied(known) if let Some(last) = *known.get() => self.all[last] = suspect,
            _ if self.all.len() >= MOST_SUSPECTS => {}
            Entry::Occupied(mut known) => {
                known.insert(Some(self.all.len()));
                self.all.push(suspect);
            }
            Entry::Vacant(new) => {
                new.insert(None);
                self.all.push(suspect);
            }
        }
    }
}
