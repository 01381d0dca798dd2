//! The model against brute force and against the exact engine on small traces, and what searching models of large ones costs.

use crate::common::bar::Bar;
use crate::common::table::Table;
use rashomon_event::{
    Access, AccessClass, Address, CandidateKind, Deadline, EventIndex, EventKind, LockMode, Trace, Witness, WitnessLevel,
};
use rashomon_order::{SharedMemory, hybrid};
use rashomon_predict::Options as Prediction;
use rashomon_predict::deciders::{Decider, Decision, Question, named};
use rashomon_predict::index::Index;
use rashomon_refinement::facts::Atomics;
use rashomon_refinement::model::Model;
use rashomon_refinement::search::{Answer, Limits, Window, find};
use rashomon_testkit::random::large;
use rashomon_testkit::{Features, Rules, Shape, enumerate, random, reachable};
use rashomon_witness::Checker;
use serde::Serialize;
use std::time::{Duration, Instant};

/// How long either engine may take for a large trace: what is left then is undecided.
const DECIDING: Duration = Duration::from_secs(90);

/// Pairs of events of small traces.
#[derive(Debug, Default, Serialize)]
pub struct Agreement {
    traces: usize,
    pairs: usize,
    races: usize,
    /// Pairs of which the search and brute force say different things.
    differ: usize,
    /// Orders that the witness checker rejects.
    rejected: usize,
    /// Pairs with a correct reordering by the exact engine that the search does not have.
    missed: usize,
    /// The same of the maximal-causality engine, and pairs of which it and the exact one say different things.
    missed_maximal: usize,
    engines_differ: usize,
    /// Pairs that only values forbid: the exact engine refutes them, and the search has an order.
    despite_values: usize,
    deadlocks: usize,
    deadlocks_missed: usize,
    states: usize,
    seconds: f64,
}

fn conflicting(trace: &Trace) -> Vec<(EventIndex, EventIndex)> {
    let access = |event: EventIndex| Some((trace.event(event).thread, trace.access(event)?));
    let pairs = trace.indices().flat_map(|second| (0..second.0).map(move |first| (EventIndex(first), second)));
    let conflicts = |&(first, second): &(EventIndex, EventIndex)| match (access(first), access(second)) {
        (Some((one, first)), Some((other, second))) => one != other && first.conflicts(&second),
        _ => false,
    };
    pairs.filter(conflicts).collect()
}

pub fn agreement(quick: bool) -> Agreement {
    let mut agreement = Agreement::default();
    let lock = |lock| EventKind::Acquire { lock: Address(lock), mode: LockMode::Exclusive, may_wait: true };
    let unlock = |lock| EventKind::Release { lock: Address(lock), mode: LockMode::Exclusive };
    let access = |class| EventKind::Access(Access { address: Address(0x300), size: 4, class, atomic: false });
    let alphabet = [access(AccessClass::Write), access(AccessClass::Read), lock(8), unlock(8), lock(16), unlock(16)];
    for length in 2..=if quick { 5 } else { 6 } {
        enumerate(2, length, &alphabet, &mut |trace| agreement.add(&trace));
    }
    for seed in 0..if quick { 2_000 } else { 10_000 } {
        let features = Features { relaxed: false, ..Features::ALL };
        let shape = Shape { threads: 2 + (seed % 3) as u32, events: 16, variables: 1 + seed % 2, locks: 1 + seed % 3, features };
        agreement.add(&random(seed, shape));
    }
    agreement
}

impl Agreement {
    fn add(&mut self, trace: &Trace) {
        self.traces += 1;
        let expected = reachable(trace, Rules::SYNCHRONISATION);
        let memory = SharedMemory::new(trace);
        let (index, options) = (Index::new(trace, &memory), Prediction::default());
        let question = Question::new(&index, &memory, &options);
        let (exact, maximal) = (named("exact"), named("maximal"));
        let begin = Instant::now();
        let model = Model::new(trace, Atomics::Free);
        self.seconds += begin.elapsed().as_secs_f64();
        let checker = Checker::new(trace);
        let mut search = |goals: &[EventIndex]| {
            let begin = Instant::now();
            let found = find(&model, goals, Window::whole(&model), &Limits::default());
            self.seconds += begin.elapsed().as_secs_f64();
            self.states += found.states;
            found.answer
        };
        for (first, second) in conflicting(trace) {
            let answer = search(&[first, second]);
            let found = matches!(answer, Answer::Order(_));
            self.pairs += 1;
            self.races += usize::from(found);
            self.differ += usize::from(found != expected.races.contains(&(first, second)));
            if let Answer::Order(order) = answer {
                let candidate = CandidateKind::Race { first, second };
                let witness = Witness { candidate, order, level: WitnessLevel::Synchronisation };
                self.rejected += usize::from(checker.check(&witness).is_err());
            }
            let has = |decider: Option<&dyn Decider>| match decider.map(|decider| decider.decide(&question, &[first, second])) {
                Some(Decision::Witness(_)) => Some(true),
                Some(Decision::Refuted) => Some(false),
                _ => None,
            };
            let (exact, maximal) = (has(exact), has(maximal));
            self.missed += usize::from(exact == Some(true) && !found);
            self.despite_values += usize::from(exact == Some(false) && found);
            self.missed_maximal += usize::from(maximal == Some(true) && !found);
            self.engines_differ += usize::from(exact.zip(maximal).is_some_and(|(one, other)| one != other));
        }
        for cycle in &expected.deadlocks {
            let found = matches!(search(cycle), Answer::Order(_));
            self.deadlocks += 1;
            self.deadlocks_missed += usize::from(!found);
        }
    }

    pub fn bars(&self) -> Vec<Bar> {
        let none = |name: &str, count: usize, of: usize| Bar::holds(name, count == 0, format!("{count} of {of}"));
        vec![
            none("pairs of which refinement and brute force say different things", self.differ, self.pairs),
            none("deadlocks that brute force has and refinement has not", self.deadlocks_missed, self.deadlocks),
            none("races by the exact engine that refinement misses", self.missed, self.races),
            none("races by the maximal-causality engine that refinement misses", self.missed_maximal, self.races),
            none(
                "pairs of which the exact and the maximal-causality engine say different things",
                self.engines_differ,
                self.pairs,
            ),
            none("orders that the checker rejects", self.rejected, self.races),
        ]
    }

    pub fn print(&self) {
        println!(
            "small traces: {} with {} pairs, {} races, {} of them refuted by the exact engine (values), {} deadlocks; {} states, \
             {:.2} s",
            self.traces, self.pairs, self.races, self.despite_values, self.deadlocks, self.states, self.seconds
        );
    }
}

/// One large trace: all hybrid candidates decided.
#[derive(Debug, Serialize)]
pub struct Cost {
    threads: u32,
    events: usize,
    /// Events that the model has as steps.
    synchronisation: usize,
    candidates: usize,
    found: usize,
    undecided: usize,
    states: usize,
    most_states: usize,
    seconds: f64,
    /// The exact engine on the same pairs.
    exact_found: usize,
    exact_undecided: usize,
    exact_seconds: f64,
}

pub fn costs(quick: bool) -> Vec<Cost> {
    let sizes: &[(u32, usize)] = if quick {
        &[(4, 10_000), (8, 10_000)]
    } else {
        &[(4, 10_000), (8, 10_000), (16, 10_000), (4, 100_000), (16, 100_000), (4, 1_000_000), (16, 1_000_000)]
    };
    sizes.iter().map(|&(threads, events)| cost(threads, events)).collect()
}

fn cost(threads: u32, events: usize) -> Cost {
    let trace = large(1, threads, u64::from(threads), events);
    let memory = SharedMemory::new(&trace);
    let pairs: Vec<(EventIndex, EventIndex)> = hybrid(&trace, &memory, 4).iter().flat_map(|pair| pair.pairs.clone()).collect();
    let begin = Instant::now();
    let model = Model::new(&trace, Atomics::Kept);
    let limits = Limits { deadline: Deadline::within(DECIDING), ..Limits::default() };
    let found: Vec<_> =
        pairs.iter().map(|&(first, second)| find(&model, &[first, second], Window::whole(&model), &limits)).collect();
    let seconds = begin.elapsed().as_secs_f64();
    let options = Prediction { deadline: Deadline::within(DECIDING), ..Prediction::default() };
    let index = Index::new(&trace, &memory);
    let question = Question::new(&index, &memory, &options);
    let begin = Instant::now();
    let exact: Vec<Decision> = named("exact")
        .map_or_else(Vec::new, |exact| pairs.iter().map(|&(first, second)| exact.decide(&question, &[first, second])).collect());
    Cost {
        threads,
        events,
        synchronisation: model.steps.iter().map(Vec::len).sum(),
        candidates: pairs.len(),
        found: found.iter().filter(|found| matches!(found.answer, Answer::Order(_))).count(),
        undecided: found.iter().filter(|found| found.answer == Answer::Undecided).count(),
        states: found.iter().map(|found| found.states).sum(),
        most_states: found.iter().map(|found| found.states).max().unwrap_or(0),
        seconds,
        exact_found: exact.iter().filter(|decision| matches!(decision, Decision::Witness(_))).count(),
        exact_undecided: exact.iter().filter(|decision| **decision == Decision::Undecided).count(),
        exact_seconds: begin.elapsed().as_secs_f64(),
    }
}

pub fn bars(costs: &[Cost]) -> Vec<Bar> {
    let most = costs.iter().map(|cost| cost.seconds).fold(0.0, f64::max);
    vec![Bar::at_most("model checking of the dearest trace (paper: up to half an hour)", most, 60.0, " s")]
}

pub fn print(costs: &[Cost]) {
    let titles = [
        "threads",
        "events",
        "steps",
        "candidates",
        "orders",
        "undecided",
        "states",
        "most",
        "seconds",
        "exact",
        "undecided",
        "seconds",
    ];
    let mut table = Table::new(&titles);
    for cost in costs {
        let numbers =
            [cost.events, cost.synchronisation, cost.candidates, cost.found, cost.undecided, cost.states, cost.most_states];
        let mut cells = vec![cost.threads.to_string()];
        cells.extend(numbers.map(|number| number.to_string()));
        cells.push(format!("{:.2}", cost.seconds));
        cells.extend([cost.exact_found.to_string(), cost.exact_undecided.to_string(), format!("{:.2}", cost.exact_seconds)]);
        table.row(cells);
    }
    table.print();
}
