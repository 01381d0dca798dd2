//! Maximal causality: is there any reordering that every program with this trace can show, in which the goals are next?
//!
//! Decided: whether some prefixes of the threads have an order in which creation, joins, locks, conditions, barriers, semaphores
//! (exactly), once and publication hold and every read sees the value that it saw, from whichever write (Huang, Meredith, Roşu,
//! "Maximal Sound Predictive Race Detection with Control Flow Abstraction", PLDI 2014, §2-3; Rajagopalan, "Fast and Precise
//! On-the-Fly Data Race Detection", thesis, 2016, §4.4.1 and §4.4.4 without gaps). Values are those that the trace tells, of
//! atomic events and, where they were recorded, of plain accesses, or come as a side table ([`Values`]); a read of which they say
//! nothing keeps its writer, so that without values the answers are those of [`crate::exact`]. A read of which the trace knows
//! that nothing which runs, or is next, depends on it may see anything; who reads what is computed from it sees another value.
//!
//! Only the backward slice of the goals takes part, or if that is asked for a window of the trace, before which all is as it was.
//! It becomes a problem of clauses and edges for `rashomon-sat`; rules about pairs of sections and of accesses are added where a
//! model disregards them.
//!
//! Guarantee: a witness has passed a run of all rules but those of the theory; `Refuted` comes with a proof that the checker
//! of proofs has accepted. `Undecided` only when a limit is reached, or where no order of a window shows the goals that is
//! not of the whole trace. Limits: values are compared byte by byte, and the value of an access is not looked for in the
//! trace.
//!
//! Cost: exponential at worst. Memory: events of the slice that synchronise or touch shared memory, times threads.

mod encode;
mod facts;
mod refine;
mod slice;
mod values;
mod window;

pub use facts::Facts;
pub use values::Values;

use crate::closure::Cut;
use crate::index::Index;
use crate::regroup::{Order, regroup};
use encode::{Encoding, TooLarge};
use rashomon_event::{Deadline, EventIndex, Stand};
use rashomon_sat::{Answer, Model, Problem, Statistics, proof};
use slice::{MOST_LOOKS, Most};
use std::collections::BTreeSet;

/// Where any value may be the right one: writes that reads are compared with, by the most events of a slice.
const LOOKS_PER_EVENT: usize = 20;

/// What a decision may cost.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Events of the slice that synchronise or touch shared memory.
    pub events: usize,
    /// Rounds of the solver.
    pub rounds: usize,
    /// Conflicts over all rounds.
    pub conflicts: u64,
    /// Events of the window around the goals that is ordered anew, instead of their slice.
    pub window: Option<usize>,
}

impl Default for Limits {
    fn default() -> Self {
        Self { events: 10_000, rounds: 200, conflicts: 20_000, window: None }
    }
}

impl Limits {
    pub const NONE: Self = Self { events: usize::MAX, rounds: usize::MAX, conflicts: u64::MAX, window: None };

    const fn slice(&self) -> Most {
        Most { events: self.events, looks: MOST_LOOKS }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The order, goals excluded.
    Witness(Vec<EventIndex>),
    /// There is none.
    Refuted,
    /// A limit is reached.
    Undecided,
}

/// What a decision has cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Events of the slice that synchronise or touch shared memory.
    pub events: usize,
    pub variables: usize,
    pub clauses: usize,
    /// Calls of the solver.
    pub rounds: usize,
    pub solver: Statistics,
}

/// What a reordering has to show.
#[derive(Clone, Copy, Debug)]
pub struct Target<'q> {
    /// Events of different threads that are all to be next.
    pub goals: &'q [EventIndex],
    /// Events that have to run before, the first of each pair earlier than the second.
    pub orders: &'q [(EventIndex, EventIndex)],
    /// How far threads without a goal have to have run, and may have. What such a thread has read it has to have read, as what it
    /// does there is no event that could be known not to depend on it.
    pub stands: &'q [Stand],
}

impl<'q> Target<'q> {
    pub const fn next(goals: &'q [EventIndex]) -> Self {
        Self { goals, orders: &[], stands: &[] }
    }
}

/// A decision, and what it came down to.
#[derive(Clone, Debug)]
pub struct Examined {
    pub decision: Decision,
    pub cost: Cost,
    /// With all rules that were added until the answer. `None`: there was no time for one, or no room.
    pub problem: Option<Problem>,
}

/// Whether the goals, events of different threads, can all be next.
pub fn decide(facts: &Facts<'_, '_>, goals: &[EventIndex], limits: &Limits, deadline: Deadline) -> (Decision, Cost) {
    let Examined { decision, cost, .. } = examine(facts, Target::next(goals), limits, deadline);
    (decision, cost)
}

/// Whether an access of another thread can come between two of one thread, with the second one next.
pub fn comes_between(
    facts: &Facts<'_, '_>,
    [first, between, second]: [EventIndex; 3],
    limits: &Limits,
    deadline: Deadline,
) -> Examined {
    examine(facts, Target { goals: &[second], orders: &[(first, between)], stands: &[] }, limits, deadline)
}

/// Whether an event can be next while other threads have run so far.
pub fn meets(facts: &Facts<'_, '_>, next: EventIndex, stands: &[Stand], limits: &Limits, deadline: Deadline) -> Examined {
    examine(facts, Target { goals: &[next], orders: &[], stands }, limits, deadline)
}

/// A witness in which some read sees another write, of the value that it saw or because nothing depends on it. `None`: there is
/// none, or a limit is reached.
pub fn by_value(facts: &Facts<'_, '_>, goals: &[EventIndex], limits: &Limits, deadline: Deadline) -> Option<Vec<EventIndex>> {
    let target = Target::next(goals);
    let slice = slice::slice(facts, target, limits.slice(), deadline).filter(slice::Slice::has_choices)?;
    match within(facts, target, Part::of(slice.cut), limits, deadline).decision {
        Decision::Witness(order) => Some(order),
        Decision::Refuted | Decision::Undecided => None,
    }
}

/// Of which granules values that are not known could make a difference: there is a witness if they are right. None: there is no
/// such witness, or a limit is reached. `facts`: [`Facts::with_any_values`].
pub fn values_may_tell(facts: &Facts<'_, '_>, goals: &[EventIndex], limits: &Limits, deadline: Deadline) -> BTreeSet<u32> {
    let target = Target::next(goals);
    // Every write of the same bytes is a choice: a slice that would take long is beyond the limits.
    let most = Most { looks: limits.events.saturating_mul(LOOKS_PER_EVENT), ..limits.slice() };
    let Some(slice) = slice::slice(facts, target, most, deadline).filter(|slice| !slice.choices.is_empty()) else {
        return BTreeSet::new();
    };
    let slice::Slice { cut, choices, .. } = slice;
    match within(facts, target, Part::of(cut), limits, deadline).decision {
        Decision::Witness(_) => choices,
        Decision::Refuted | Decision::Undecided => BTreeSet::new(),
    }
}

/// Decides, and tells of what.
pub fn examine(facts: &Facts<'_, '_>, target: Target<'_>, limits: &Limits, deadline: Deadline) -> Examined {
    let part = match limits.window {
        Some(events) => window::around(facts.index, target, events),
        None => slice::slice(facts, target, limits.slice(), deadline).map(|slice| Part::of(slice.cut)),
    };
    match part {
        Some(part) => within(facts, target, part, limits, deadline),
        None => Examined { decision: Decision::Undecided, cost: Cost::default(), problem: None },
    }
}

/// The events of the trace that would be ordered anew. `None`: no window of that size holds what the target is about.
pub fn window(facts: &Facts<'_, '_>, target: Target<'_>, events: usize) -> Option<std::ops::Range<usize>> {
    window::range(facts.index.trace.events.len(), target, events)
}

/// Thread and position of what has to have run where a thread stands: its creation, and what it does last before.
fn needed_by(index: &Index<'_>, stand: &Stand) -> impl Iterator<Item = (u32, u32)> {
    let thread = stand.thread.index();
    let last = index.threads.before(thread, stand.from).checked_sub(1).map(|last| (thread as u32, last));
    index.fork[thread].into_iter().chain(last).filter(|_| stand.has_begun())
}

/// How many events of its thread may have run.
fn most_of(index: &Index<'_>, stand: &Stand) -> u32 {
    index.threads.before(stand.thread.index(), stand.to)
}

/// Of each thread, the events that may be ordered anew: those from `prefix` to `cut`.
struct Part {
    /// Where it begins in the trace. All before it have run, in the order of the trace.
    from: EventIndex,
    prefix: Cut,
    cut: Cut,
    /// Whether an order that shows the goals can be restricted to it, so that none of it means none at all.
    is_closed: bool,
}

impl Part {
    fn of(cut: Cut) -> Self {
        Self { from: EventIndex(0), prefix: vec![0; cut.len()], cut, is_closed: true }
    }
}

fn within(facts: &Facts<'_, '_>, target: Target<'_>, part: Part, limits: &Limits, deadline: Deadline) -> Examined {
    let mut cost = Cost::default();
    let is_closed = part.is_closed;
    let mut encoding = match Encoding::new(facts, target, part, limits.events) {
        Ok(encoding) => encoding,
        Err(TooLarge) => return Examined { decision: Decision::Undecided, cost, problem: None },
    };
    let decision = match search(&mut encoding, target, limits, deadline, &mut cost) {
        Decision::Refuted if !is_closed => Decision::Undecided,
        decision => decision,
    };
    cost.events = encoding.steps.len();
    cost.variables = encoding.solver.problem().variables();
    cost.clauses = encoding.solver.problem().clauses().len();
    cost.solver = *encoding.solver.statistics();
    Examined { decision, cost, problem: Some(encoding.solver.into_problem()) }
}

fn search(
    encoding: &mut Encoding<'_, '_, '_>,
    target: Target<'_>,
    limits: &Limits,
    deadline: Deadline,
    cost: &mut Cost,
) -> Decision {
    while cost.rounds < limits.rounds && !deadline.is_over() {
        cost.rounds += 1;
        let conflicts = limits.conflicts.saturating_sub(encoding.solver.statistics().conflicts);
        match encoding.solver.solve(&[], rashomon_sat::Limits { conflicts, is_over: &|| deadline.is_over() }) {
            Answer::Unknown => return Decision::Undecided,
            Answer::Unsat(core) => {
                let accepted = |proof| proof::check(encoding.solver.problem(), &core, proof).is_ok();
                return if encoding.solver.proof().is_some_and(accepted) { Decision::Refuted } else { Decision::Undecided };
            }
            Answer::Sat(model) => {
                if refine::refine(encoding, &model) == 0 {
                    return Decision::Witness(witness(encoding, target, &model));
                }
            }
        }
    }
    Decision::Undecided
}

/// The model's order with the events that have no node, and with few context switches.
fn witness(encoding: &Encoding<'_, '_, '_>, target: Target<'_>, model: &Model) -> Vec<EventIndex> {
    let index = encoding.facts.index;
    let mut cut: Cut = encoding.part.prefix.clone();
    let mut order: Vec<EventIndex> = index.trace.indices().take(encoding.part.from.index()).collect();
    let advance = |thread: u32, end: u32, cut: &mut Cut, order: &mut Vec<EventIndex>| {
        let start = std::mem::replace(&mut cut[thread as usize], end);
        order.extend(index.threads.range(thread as usize, start..end));
    };
    for step in model.order.iter().map(|node| &encoding.steps[node.index()]).filter(|step| model.holds(step.runs)) {
        let (thread, at) = index.place(step.event);
        advance(thread, at + 1, &mut cut, &mut order);
    }
    for &goal in target.goals {
        let (thread, at) = index.place(goal);
        advance(thread, at, &mut cut, &mut order);
    }
    let constraints = Order::of(index, encoding.facts.memory, &cut, order.iter().copied());
    let place = |order: &[EventIndex], event: EventIndex| order.iter().position(|&other| other == event);
    let shows = |order: &Vec<EventIndex>| target.orders.iter().all(|&(one, other)| place(order, one) < place(order, other));
    regroup(index, &cut, &[&index.instances, &constraints]).filter(shows).unwrap_or(order)
}
