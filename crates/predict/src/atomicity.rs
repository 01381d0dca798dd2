//! One thread reads bytes in one critical section and writes them in a later one, and another thread's write may come between.
//!
//! A *unit* of a variable is what one thread does with it in one critical section of a lock, or in one atomic access. Two units of
//! a thread, one after the other, of which the first only reads and the second writes, are meant to be one where what is written
//! depends on what was read. A unit of another thread that writes, guarded by the same lock, may come between: read, remote
//! write, local write has no serial order with the same reads and writes (Lu, Tucek, Qin, Zhou, "AVIO: Detecting Atomicity
//! Violations via Access Interleaving Invariants", ASPLOS 2006, Table 1; the *stale value* of Artho, Havelund, Biere, ATVA 2004).
//! Nobody races here: each access is guarded.
//!
//! Whether the units belong together is a guess: no dependence is known. So a [`Violation`] is a lead. What an execution prints
//! or ends with when the units are interleaved, and in no execution in which they come one after the other, says more; that is
//! for whoever executes it.
//!
//! Choices. (1) A second unit that begins with the wake-up of a condition wait is none: who waits wants a change. (2) If the
//! second unit reads the bytes again before it writes them, it may have looked again: the violation is not *stale* and comes
//! last. If it looks at the same place in the code it has begun anew, and is left out. (3) Variables are told apart by their first
//! byte. (4) Atomic read-modify-writes do not overwrite what they have not seen, and are no second unit.
//!
//! Guarantee: what [`observed`] gives came in this order in the trace. Of [`predict`]'s orders the deciders vouch for all but
//! the units at the end, which run undivided; only an execution shows them. Cost: one pass, and per violation two or three
//! decisions.

use crate::deciders::{Decision, Question, Stage, asked};
use crate::index::Index;
use crate::options::Options;
use rashomon_event::{Address, AtomicOp, Deadline, Event, EventIndex, EventKind, Mode, SiteId, ThreadId, Trace};
use rashomon_order::SharedMemory;
use rustc_hash::{FxHashMap, FxHashSet};

/// Units of one variable and guard that are kept, so that a hot counter does not take all memory.
const MOST_UNITS: usize = 4096;
/// Sets of three places that are told, and that are looked at.
const MOST_VIOLATIONS: usize = 64;
const MOST_TRIED: usize = 512;
/// Events of units that run undivided.
const MOST_UNDIVIDED: usize = 10_000;

/// `check` and `act` are of one thread, `between` is of another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Violation {
    /// Reads.
    pub check: EventIndex,
    /// Writes.
    pub between: EventIndex,
    /// Writes.
    pub act: EventIndex,
    /// The second unit writes without a look.
    pub stale: bool,
}

impl Violation {
    fn places(&self, trace: &Trace) -> [SiteId; 3] {
        [self.check, self.between, self.act].map(|index| trace.event(index).site)
    }
}

/// A violation, and orders of the trace's events that decide it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prediction {
    pub violation: Violation,
    /// The units interleaved. `None`: they are so in the trace.
    pub violated: Option<Vec<EventIndex>>,
    /// The other thread's unit before both, or behind both, whatever is possible.
    pub serial: Vec<Vec<EventIndex>>,
}

/// What guards a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Guard {
    Lock(Address),
    /// Each access is its own unit.
    Atomic,
}

/// What a thread does with a variable in one section.
#[derive(Clone, Copy, Debug)]
struct Unit {
    thread: ThreadId,
    /// The acquisition of the guard, or the atomic access.
    begin: EventIndex,
    after_wait: bool,
    read: Option<EventIndex>,
    write: Option<EventIndex>,
    rereads: bool,
    /// It has an atomic read-modify-write.
    modifies: bool,
    /// The oldest acquisition of the locks held at the first access.
    outermost: EventIndex,
}

/// What is done with a variable under one guard.
#[derive(Default)]
struct Variable {
    /// In the order of their first accesses.
    units: Vec<Unit>,
    /// Numbers of the units that write, in the order of their first writes.
    writers: Vec<usize>,
}

/// One pass over the trace.
struct Units {
    /// In the order of the first accesses.
    by_variable: Vec<Variable>,
    /// The end of each section, by its acquisition.
    ends: FxHashMap<EventIndex, EventIndex>,
    /// Of each guarded access of a unit, what was held: acquisitions, oldest first.
    held: FxHashMap<EventIndex, Vec<EventIndex>>,
}

impl Units {
    fn of(trace: &Trace, deadline: Deadline) -> Self {
        let shared = variables_of_several(trace, deadline);
        let mut numbers: FxHashMap<(Address, Guard), usize> = FxHashMap::default();
        let mut units = Self { by_variable: Vec::new(), ends: FxHashMap::default(), held: FxHashMap::default() };
        let mut open: Vec<Vec<(Address, EventIndex, bool)>> = vec![Vec::new(); trace.threads.len()];
        for index in deadline.bound(trace.indices()) {
            let event = trace.event(index);
            let Some(held) = open.get_mut(event.thread.index()) else { continue };
            match event.kind {
                EventKind::Acquire { lock, .. } => held.push((lock, index, false)),
                EventKind::WaitEnd { mutex, .. } => held.push((mutex, index, true)),
                EventKind::Release { lock, .. } | EventKind::WaitBegin { mutex: lock, .. } => {
                    if let Some(at) = held.iter().rposition(|(other, ..)| *other == lock) {
                        let (_, acquired, _) = held.remove(at);
                        units.ends.insert(acquired, index);
                    }
                }
                _ => {}
            }
            let Some(access) = event.access().filter(|access| shared.contains(&access.address)) else { continue };
            let guards = held.iter().map(|&(lock, begin, after_wait)| (Guard::Lock(lock), begin, after_wait));
            let atomic = access.atomic.then_some((Guard::Atomic, index, false));
            let outermost = held.first().map_or(index, |&(_, begin, _)| begin);
            let mut is_kept = false;
            for (guard, begin, after_wait) in guards.chain(atomic) {
                let number = *numbers.entry((access.address, guard)).or_insert(units.by_variable.len());
                if number == units.by_variable.len() {
                    units.by_variable.push(Variable::default());
                }
                let Variable { units: all, writers } = &mut units.by_variable[number];
                let known = all.iter().rposition(|unit| unit.thread == event.thread).filter(|at| all[*at].begin == begin);
                let at = match known {
                    Some(at) => at,
                    None if all.len() == MOST_UNITS => continue,
                    None => {
                        let thread = event.thread;
                        let (read, write, rereads, modifies) = (None, None, false, false);
                        all.push(Unit { thread, begin, after_wait, read, write, rereads, modifies, outermost });
                        all.len() - 1
                    }
                };
                let wrote = all[at].write.is_some();
                is_kept |= all[at].add(event, index);
                if !wrote && all[at].write.is_some() {
                    writers.push(at);
                }
            }
            if is_kept {
                units.held.insert(index, held.iter().map(|&(_, begin, _)| begin).collect());
            }
        }
        units
    }

    /// Pairs of units of one thread, one after the other, that are meant to be one, with their variable.
    fn suspects(&self) -> impl Iterator<Item = (Unit, Unit, &Variable)> {
        self.by_variable.iter().flat_map(|variable| {
            let mut last: FxHashMap<ThreadId, Unit> = FxHashMap::default();
            let units = if variable.has_several_threads() { variable.units.as_slice() } else { &[] };
            units.iter().filter_map(move |unit| {
                let before = last.insert(unit.thread, *unit)?;
                is_suspect(&before, unit).then_some((before, *unit, variable))
            })
        })
    }
}

impl Variable {
    fn has_several_threads(&self) -> bool {
        self.units.iter().any(|unit| unit.thread != self.units[0].thread)
    }

    /// Units of other threads that write.
    fn remote(&self, thread: ThreadId) -> impl Iterator<Item = &Unit> {
        self.writers.iter().map(|number| &self.units[*number]).filter(move |unit| unit.thread != thread)
    }

    /// Those whose first write comes between two events.
    fn between(&self, one: EventIndex, other: EventIndex, thread: ThreadId) -> impl Iterator<Item = &Unit> {
        let begin = self.writers.partition_point(|number| self.units[*number].write <= Some(one));
        let later = self.writers[begin..].iter().map(|number| &self.units[*number]);
        later.take_while(move |unit| unit.write < Some(other)).filter(move |unit| unit.thread != thread)
    }
}

impl Unit {
    /// Whether it is the first read, or the first write.
    fn add(&mut self, event: &Event, index: EventIndex) -> bool {
        let Some(access) = event.access() else { return false };
        let (mut reads, mut writes) = (access.class.reads(), access.class.writes());
        if let EventKind::Atomic { op, .. } = event.kind {
            (reads, writes) = (op != AtomicOp::Store, matches!(op, AtomicOp::Store | AtomicOp::Rmw));
            self.modifies |= matches!(op, AtomicOp::Rmw | AtomicOp::CasFailed);
        }
        let is_first = reads && self.read.is_none() || writes && self.write.is_none();
        if reads && self.read.is_none() {
            self.read = Some(index);
            self.rereads = self.write.is_none();
        }
        if writes && self.write.is_none() {
            self.write = Some(index);
        }
        is_first
    }
}

/// The first only reads, the second writes.
fn is_suspect(before: &Unit, unit: &Unit) -> bool {
    before.read.is_some() && before.write.is_none() && unit.write.is_some() && !unit.after_wait && !unit.modifies
}

/// First bytes that threads access, of which at least one is another one.
fn variables_of_several(trace: &Trace, deadline: Deadline) -> FxHashSet<Address> {
    let mut first: FxHashMap<Address, ThreadId> = FxHashMap::default();
    let mut shared = FxHashSet::default();
    for index in deadline.bound(trace.indices()) {
        let event = trace.event(index);
        let Some(access) = event.access() else { continue };
        if *first.entry(access.address).or_insert(event.thread) != event.thread {
            shared.insert(access.address);
        }
    }
    shared
}

/// The two units and the one between, as a violation; `None`: the second begins anew.
fn violation(trace: &Trace, before: &Unit, unit: &Unit, between: &Unit) -> Option<Violation> {
    let (check, act, between) = (before.read?, unit.write?, between.write?);
    let site = |index| trace.event(index).site;
    if unit.rereads && unit.read.is_some_and(|read| site(read) == site(check)) {
        return None;
    }
    Some(Violation { check, between, act, stale: !unit.rereads })
}

/// Violations that happened in the trace, one for each three places, in the order of the second units.
pub fn observed(trace: &Trace, deadline: Deadline) -> Vec<Violation> {
    if trace.mode != Mode::Serial {
        return Vec::new();
    }
    let units = Units::of(trace, deadline);
    observed_in(trace, &units, deadline)
}

fn observed_in(trace: &Trace, units: &Units, deadline: Deadline) -> Vec<Violation> {
    let mut known = FxHashSet::default();
    let mut found = Vec::new();
    for (before, unit, variable) in deadline.bound(units.suspects()) {
        let (Some(check), Some(act)) = (before.read, unit.write) else { continue };
        for other in variable.between(check, act, unit.thread) {
            let Some(violation) = violation(trace, &before, &unit, other) else { continue };
            if known.insert(violation.places(trace)) {
                found.push(violation);
            }
        }
    }
    found
}

/// What may be violated by another order of the trace: what was observed first, then what is stale.
pub fn predict(trace: &Trace, options: &Options) -> Vec<Prediction> {
    let deadline = options.deadline;
    if trace.mode != Mode::Serial {
        return Vec::new();
    }
    let units = Units::of(trace, deadline);
    let seen = observed_in(trace, &units, deadline);
    let mut known: FxHashSet<[SiteId; 3]> = seen.iter().map(|violation| violation.places(trace)).collect();
    let seen: FxHashSet<Violation> = seen.into_iter().collect();
    let mut hidden: Vec<(Violation, Unit, Unit, Unit)> = Vec::new();
    let mut shown: Vec<(Violation, Unit, Unit, Unit)> = Vec::new();
    for (before, unit, variable) in deadline.bound(units.suspects()) {
        for other in variable.remote(unit.thread) {
            let Some(violation) = violation(trace, &before, &unit, other) else { continue };
            if seen.contains(&violation) {
                shown.push((violation, before, unit, *other));
            } else if known.insert(violation.places(trace)) {
                hidden.push((violation, before, unit, *other));
            }
        }
    }
    if shown.is_empty() && hidden.is_empty() {
        return Vec::new();
    }
    hidden.sort_by_key(|(violation, ..)| !violation.stale);
    shown.sort_by_key(|(violation, ..)| !violation.stale);
    let memory = SharedMemory::until(trace, deadline);
    let index = Index::until(trace, &memory, deadline);
    if !index.complete {
        return Vec::new();
    }
    let question = Question::new(&index, &memory, options);
    let orders = Orders { question: &question, units: &units };
    let mut found = Vec::new();
    let shown = shown.into_iter().map(|all| (all, true));
    let hidden = hidden.into_iter().map(|all| (all, false)).take(MOST_TRIED);
    for ((violation, before, unit, other), was_seen) in shown.chain(hidden) {
        if found.len() == MOST_VIOLATIONS || deadline.is_over() {
            break;
        }
        let (violated, serial) = orders.of(&violation, &before, &unit, &other);
        if was_seen || violated.is_some() {
            found.push(Prediction { violation, violated: violated.filter(|_| !was_seen), serial });
        }
    }
    found
}

struct Orders<'q, 'a, 't> {
    question: &'q Question<'a, 't>,
    units: &'q Units,
}

impl Orders<'_, '_, '_> {
    /// The order in which the units are interleaved, and those in which they are not.
    fn of(
        &self,
        violation: &Violation,
        before: &Unit,
        unit: &Unit,
        other: &Unit,
    ) -> (Option<Vec<EventIndex>>, Vec<Vec<EventIndex>>) {
        let at_check = self.units.held.get(&violation.check);
        let second = self
            .units
            .held
            .get(&violation.act)
            .and_then(|held| held.iter().copied().find(|begin| !at_check.is_some_and(|check| check.contains(begin))))
            .unwrap_or(unit.begin);
        let remote = self.undivided(other.outermost, self.end_of(other.outermost, violation.between));
        let local = self.undivided(second, self.end_of(second, violation.act));
        let whole = self.undivided(before.begin, self.end_of(second, violation.act));
        let (mut violated, mut serial) = (None, Vec::new());
        if let (Some(remote), Some(local)) = (&remote, &local)
            && let Some(prefix) = self.before(&[second, other.outermost])
        {
            violated = Some([prefix.as_slice(), remote, local].concat());
            serial.push([prefix.as_slice(), local, remote].concat());
        }
        if let (Some(remote), Some(whole)) = (&remote, &whole)
            && let Some(prefix) = self.before(&[before.begin, other.outermost])
        {
            serial.push([prefix.as_slice(), remote, whole].concat());
        }
        (violated, serial)
    }

    /// The end of a section, or the access in it where the trace has none.
    fn end_of(&self, begin: EventIndex, access: EventIndex) -> EventIndex {
        self.units.ends.get(&begin).map_or(access, |end| access.max(*end))
    }

    /// Events of a thread, if none of them waits for another thread.
    fn undivided(&self, begin: EventIndex, end: EventIndex) -> Option<Vec<EventIndex>> {
        let index = self.question.index;
        let ((thread, first), (_, last)) = (index.place(begin), index.place(end));
        let events = index.threads.get(thread as usize)?.get(first as usize..=last as usize)?;
        let waits = |index_of: &EventIndex| {
            matches!(
                index.trace.event(*index_of).kind,
                EventKind::Join { .. }
                    | EventKind::WaitBegin { .. }
                    | EventKind::BarrierEnter { .. }
                    | EventKind::BarrierExit { .. }
                    | EventKind::Take { .. }
                    | EventKind::Observe { .. }
                    | EventKind::Blocked { .. }
            )
        };
        (events.len() <= MOST_UNDIVIDED && !events.iter().any(waits)).then(|| events.to_vec())
    }

    /// An order after which both events are next in their threads.
    fn before(&self, goals: &[EventIndex]) -> Option<Vec<EventIndex>> {
        for stage in [Stage::Causal, Stage::Synchronisation, Stage::DespiteAtomics] {
            for decider in asked(self.question.options, stage) {
                if let Decision::Witness(order) = decider.decide(self.question, goals) {
                    return Some(order);
                }
            }
        }
        None
    }
}
