//! The maximal causal model against its definition: brute force on all small traces and on drawn ones, with values and without.
//!
//! What is fair. The oracle (`testkit::oracle`) runs all reorderings of a trace and shares no code with the decider. Each
//! trace without values is asked about as it is; each with values under all values of one bit for its writes if it is one of a
//! small alphabet, and under drawn ones otherwise, of which some are not known.

use super::claims::{Claim, Claims};
use super::lives::{self, LIVES, WINDOWS};
use crate::common::table::Table;
use anyhow::Result;
use rashomon_event::{
    Access, AccessClass, Address, CandidateKind, Deadline, EventIndex, EventKind, LockMode, Trace, Witness, WitnessLevel,
};
use rashomon_order::{LockGraph, SharedMemory};
use rashomon_predict::closure::Closures;
use rashomon_predict::deadlocks;
use rashomon_predict::exact;
use rashomon_predict::index::Index;
use rashomon_predict::maximal::{Decision, Facts, Limits, Target, Values, comes_between, examine};
use rashomon_predict::reversal::sync_reversal;
use rashomon_testkit::{Contents, Features, MOST_TRIPLES, Rules, Shape, come_between, describe, enumerate, random, reachable_if};
use rashomon_witness::Checker;
use serde::Serialize;
use std::collections::BTreeSet;

/// Values of a small trace that are tried: all of so many writes.
const MOST_WRITES: usize = 3;

const RACES: &str = "races equal brute force";
const DEADLOCKS: &str = "deadlocks equal brute force";
const BETWEEN: &str = "accesses that come between two others equal brute force";
pub const ACCEPTED: &str = "witnesses pass the checker, and replay with the same values";
pub const PROVEN: &str = "what is refuted has a proof that the checker of proofs accepts";
const CONTAINS: &str = "contains what the other exact deciders find";

pub const CLAIMS: [&str; 8] = [RACES, DEADLOCKS, BETWEEN, LIVES, WINDOWS, ACCEPTED, PROVEN, CONTAINS];

/// Of traces, one in so many is asked about lifetimes, too: of each question brute force runs all reorderings once more.
const ASKED_OF_LIVES: u64 = 8;

#[derive(Clone, Debug, Default, Serialize)]
pub struct Tally {
    pub name: &'static str,
    pub traces: u64,
    pub questions: u64,
    pub found: u64,
    pub refuted: u64,
    /// Found only because a read may see another write of the same value.
    pub by_value: u64,
    #[serde(skip)]
    pub claims: Claims,
}

impl Tally {
    fn add(&mut self, other: Self) {
        self.traces += other.traces;
        self.questions += other.questions;
        self.found += other.found;
        self.refuted += other.refuted;
        self.by_value += other.by_value;
        self.claims.add(other.claims);
    }
}

enum Work {
    /// Threads, most events, what they do.
    Every(u32, usize, Vec<EventKind>),
    /// How many, and how the one with a number looks.
    Drawn(u64, fn(u64) -> Shape),
}

struct Batch {
    name: &'static str,
    work: Work,
}

fn access(class: AccessClass, address: u64) -> EventKind {
    EventKind::Access(Access { class, address: Address(address), size: 8, atomic: false })
}

fn section(lock: u64) -> [EventKind; 2] {
    let (lock, mode) = (Address(lock), LockMode::Exclusive);
    [EventKind::Acquire { lock, mode, may_wait: true }, EventKind::Release { lock, mode }]
}

fn all_kinds(seed: u64) -> Shape {
    let variables = if seed.is_multiple_of(5) { 0 } else { 1 + seed % 2 };
    let all = Features { semaphores: seed % 4 == 1, fork_join: variables > 0, ..Features::ALL };
    let features = if seed.is_multiple_of(2) { Features::default() } else { all };
    let events = 9 + (seed % 5) as usize + if variables == 0 { 6 } else { 0 };
    Shape { threads: 2 + (seed % 3) as u32, events, variables, locks: 1 + seed % 3, features }
}

fn locks_only(seed: u64) -> Shape {
    let features = Features { shared_locks: true, fork_join: true, barriers: true, ..Features::default() };
    Shape { threads: 2 + (seed % 3) as u32, events: 18 + (seed % 5) as usize, variables: 0, locks: 2, features }
}

fn batches(quick: bool) -> Vec<Batch> {
    let [read, write] = [AccessClass::Read, AccessClass::Write];
    let one = [&section(8)[..], &[access(read, 0x100), access(write, 0x100)]].concat();
    let two = [&one[..], &[access(read, 0x200), access(write, 0x200)]].concat();
    let nested = [&section(8)[..], &section(16), &[access(read, 0x100), access(write, 0x100)]].concat();
    let less = usize::from(quick);
    let drawn = |count: u64| if quick { count / 10 } else { count };
    vec![
        Batch { name: "3 threads, 1 lock, 1 variable", work: Work::Every(3, 5 - less, one) },
        Batch { name: "2 threads, 1 lock, 2 variables", work: Work::Every(2, 5 - less, two) },
        Batch { name: "2 threads, 2 locks, 1 variable", work: Work::Every(2, 6 - 2 * less, nested) },
        Batch { name: "drawn, all kinds of events", work: Work::Drawn(drawn(4000), all_kinds) },
        Batch { name: "drawn, locks alone", work: Work::Drawn(drawn(2000), locks_only) },
    ]
}

pub fn run(quick: bool) -> Result<Vec<Tally>> {
    let workers = std::thread::available_parallelism().map_or(1, |count| count.get() as u64);
    let of = |batch: &Batch| {
        eprintln!("exactness: {}", batch.name);
        let mut total = Tally { name: batch.name, ..Tally::default() };
        std::thread::scope(|scope| {
            let share = |worker| scope.spawn(move || share(batch, worker, workers));
            let handles: Vec<_> = (0..workers).map(share).collect();
            for handle in handles {
                total.add(handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            }
        });
        total
    };
    Ok(batches(quick).iter().map(of).collect())
}

fn share(batch: &Batch, worker: u64, workers: u64) -> Tally {
    let mut tally = Tally::default();
    match &batch.work {
        Work::Every(threads, most, alphabet) => {
            let mut number = 0;
            for length in 2..=*most {
                enumerate(*threads, length, alphabet, &mut |trace| {
                    number += 1;
                    if number % workers == worker {
                        every_value(&trace, &mut tally);
                    }
                });
            }
        }
        Work::Drawn(count, shape) => {
            for seed in (0..*count).filter(|seed| seed % workers == worker) {
                let trace = random(seed, shape(seed));
                ask(&trace, None, &mut tally);
                let known = if seed.is_multiple_of(3) { 6 } else { 8 };
                ask(&trace, Some(&Contents::random(&trace, seed, known)), &mut tally);
            }
        }
    }
    tally
}

fn every_value(trace: &Trace, tally: &mut Tally) {
    ask(trace, None, tally);
    let accesses = || trace.events.iter().filter_map(rashomon_event::Event::access);
    let writes = accesses().filter(|access| access.class.writes()).count();
    if accesses().any(|access| access.class.reads()) {
        for number in 0..1 << writes.min(MOST_WRITES) {
            ask(trace, Some(&Contents::numbered(trace, number)), tally);
        }
    }
}

/// For the decider.
pub fn values_of(contents: &Contents) -> Values {
    let mut values = Values::default();
    contents.read.iter().for_each(|(&event, bytes)| values.set_read(event, bytes));
    contents.written.iter().for_each(|(&event, bytes)| values.set_written(event, bytes));
    values
}

/// Accesses of different threads that conflict, the earlier one first.
pub fn pairs(trace: &Trace) -> Vec<(EventIndex, EventIndex)> {
    let earlier = |second: EventIndex| trace.indices().take(second.index()).map(move |first| (first, second));
    trace.indices().flat_map(earlier).filter(|&(first, second)| conflict(trace, first, second)).collect()
}

fn conflict(trace: &Trace, one: EventIndex, other: EventIndex) -> bool {
    let accesses = trace.access(one).zip(trace.access(other));
    trace.event(one).thread != trace.event(other).thread && accesses.is_some_and(|(one, other)| one.conflicts(&other))
}

/// Two accesses of one thread, and one of another thread in the middle that conflicts with both.
fn triples(trace: &Trace) -> Vec<[EventIndex; 3]> {
    let mut triples = Vec::new();
    for first in trace.indices() {
        let behind = trace.indices().skip(first.index() + 1);
        for last in behind.filter(|&last| trace.event(last).thread == trace.event(first).thread) {
            let middle = trace.indices().filter(|&event| conflict(trace, event, first) && conflict(trace, event, last));
            triples.extend(middle.map(|event| [first, event, last]));
        }
    }
    triples
}

/// What is asked of one trace.
struct Asked<'a, 't> {
    trace: &'t Trace,
    contents: Option<&'a Contents>,
    facts: &'a Facts<'a, 't>,
    checker: Checker<'t>,
}

impl Asked<'_, '_> {
    /// Whether a reordering was found.
    fn race_or_deadlock(&self, candidate: &CandidateKind, tally: &mut Tally) -> bool {
        let goals = candidate.goals();
        let decision = examine(self.facts, Target::next(&goals), &Limits::NONE, Deadline::NEVER).decision;
        let Some(order) = self.count(decision, tally) else { return false };
        let holds = self.holds(&order);
        let witness = Witness { candidate: candidate.clone(), order, level: WitnessLevel::Causal };
        let level = self.checker.check(&witness);
        // The checker knows no values: with them reads may see other writes.
        let accepted = if self.contents.is_some() { level.is_ok() } else { level == Ok(WitnessLevel::Causal) };
        tally.claims.claim(ACCEPTED, accepted && holds, || describe(self.trace));
        true
    }

    fn between(&self, triple: [EventIndex; 3], tally: &mut Tally) -> bool {
        let decision = comes_between(self.facts, triple, &Limits::NONE, Deadline::NEVER).decision;
        let Some(order) = self.count(decision, tally) else { return false };
        let [first, middle, last] = triple.map(|event| order.iter().position(|&other| other == event));
        let shows = first.is_some() && first < middle && last.is_none();
        tally.claims.claim(ACCEPTED, shows && self.holds(&order), || describe(self.trace));
        true
    }

    fn holds(&self, order: &[EventIndex]) -> bool {
        self.contents.unwrap_or(&Contents::default()).hold(self.trace, order)
    }

    /// The order, if there is one. Without limits nothing stays undecided, unless a proof was not accepted.
    fn count(&self, decision: Decision, tally: &mut Tally) -> Option<Vec<EventIndex>> {
        tally.questions += 1;
        match decision {
            Decision::Witness(order) => {
                tally.found += 1;
                Some(order)
            }
            Decision::Refuted | Decision::Undecided => {
                tally.claims.claim(PROVEN, decision == Decision::Refuted, || describe(self.trace));
                tally.refuted += 1;
                None
            }
        }
    }
}

fn ask(trace: &Trace, contents: Option<&Contents>, tally: &mut Tally) {
    tally.traces += 1;
    let memory = SharedMemory::new(trace);
    let index = Index::new(trace, &memory);
    let closures = Closures::new(&index);
    let values = contents.map(values_of);
    let facts = Facts::new(&index, &memory, values.as_ref());
    let nothing = Contents::default();
    let may_see = |sight| contents.unwrap_or(&nothing).may_see(trace, sight);
    let expected = reachable_if(trace, Rules::CAUSAL, &may_see);
    let asked = Asked { trace, contents, facts: &facts, checker: Checker::new(trace) };
    for (first, second) in pairs(trace) {
        let found = asked.race_or_deadlock(&CandidateKind::Race { first, second }, tally);
        tally.claims.claim(RACES, found == expected.races.contains(&(first, second)), || describe(trace));
        let exact = exact::decide(&closures, &memory, &[first, second], &exact::Limits::NONE);
        let by_others = matches!(exact, exact::Decision::Witness(_))
            || closures.sync_preserving(&[first, second]).is_ok()
            || sync_reversal(&closures, &memory, &[first, second]).is_some();
        tally.claims.claim(CONTAINS, found || !by_others, || describe(trace));
        tally.by_value += u64::from(found && contents.is_some() && exact == exact::Decision::Refuted);
    }
    let mut triples = triples(trace);
    triples.truncate(MOST_TRIPLES);
    if !triples.is_empty() {
        let shown = come_between(trace, Rules::CAUSAL, &triples, &may_see);
        for triple in triples {
            let found = asked.between(triple, tally);
            tally.claims.claim(BETWEEN, found == shown.contains(&triple), || describe(trace));
        }
    }
    cycles(&asked, expected.deadlocks, tally);
    if tally.traces.is_multiple_of(ASKED_OF_LIVES) {
        lives::ask(trace, contents, &facts, tally.traces, &mut tally.claims);
    }
}

/// Each cycle of the lock graph is found iff brute force has it, and brute force has no other ones. Those through the wake-up of
/// a condition apart, which the decider does not take up.
fn cycles(asked: &Asked<'_, '_>, mut expected: BTreeSet<Vec<EventIndex>>, tally: &mut Tally) {
    let trace = asked.trace;
    let is_wake_up = |event: &EventIndex| matches!(trace.kind(*event), EventKind::WaitEnd { .. });
    expected.retain(|cycle| !cycle.iter().any(is_wake_up));
    let graph = LockGraph::new(trace);
    for pattern in graph.patterns(5, usize::MAX) {
        for mut cycle in deadlocks::concurrent(&graph, &pattern, usize::MAX) {
            let candidate = deadlocks::candidate(&graph, &pattern, &cycle);
            let found = asked.race_or_deadlock(&candidate, tally);
            let least = (0..cycle.len()).min_by_key(|&place| cycle[place]).unwrap_or(0);
            cycle.rotate_left(least);
            if !cycle.iter().any(is_wake_up) {
                tally.claims.claim(DEADLOCKS, found == expected.remove(&cycle), || describe(trace));
            }
        }
    }
    tally.claims.claim(DEADLOCKS, expected.is_empty(), || describe(trace));
}

/// Of all batches together.
pub fn claims(tallies: &[Tally]) -> Claims {
    let mut all = Claims::default();
    tallies.iter().for_each(|tally| all.add(tally.claims.clone()));
    all
}

pub fn print(tallies: &[Tally], claims: &[Claim]) {
    println!("The maximal causal model against brute force\n");
    let mut table = Table::new(&["traces", "traces × values", "questions", "found", "refuted", "found by value"]);
    for tally in tallies {
        let counts = [tally.traces, tally.questions, tally.found, tally.refuted, tally.by_value];
        table.row(std::iter::once(tally.name.to_owned()).chain(counts.map(|count| count.to_string())).collect());
    }
    table.print();
    for claim in claims {
        if let Some(example) = &claim.example {
            println!("\n{} does not hold of\n{example}", claim.name);
        }
    }
    println!();
}
