//! Times the maximal causal model beside the exact decider, on pairs of accesses of random traces, with and without values.
//! *Wide* ones look like programs, in *dense* ones every access is to one of a few variables that all threads share.
//!
//! `cargo run --release -p rashomon-predict --example maximal -- 2000 20000` names numbers of events.

use rashomon_event::{AccessClass, Deadline, EventIndex, Trace};
use rashomon_order::SharedMemory;
use rashomon_predict::closure::Closures;
use rashomon_predict::exact;
use rashomon_predict::index::Index;
use rashomon_predict::maximal::{Cost, Decision, Facts, Limits, Values, decide};
use rashomon_testkit::{Features, Shape, SplitMix, large, random};
use std::collections::HashMap;
use std::time::{Duration, Instant};

const PAIRS: usize = 200;
/// Values that accesses choose from.
const VALUES: u64 = 4;

/// Conflicting accesses of different threads, at most so many events apart.
fn pairs(trace: &Trace, rng: &mut SplitMix, apart: usize) -> Vec<(EventIndex, EventIndex)> {
    let mut pairs = Vec::new();
    for _ in 0..PAIRS * 10_000 {
        let first = rng.below(trace.events.len() as u64) as usize;
        let second = first + 1 + rng.below(apart as u64) as usize;
        let (Some(one), Some(other)) = (trace.events.get(first), trace.events.get(second)) else { continue };
        if let (Some(a), Some(b)) = (one.access(), other.access())
            && one.thread != other.thread
            && a.conflicts(&b)
        {
            pairs.push((EventIndex(first as u32), EventIndex(second as u32)));
        }
        if pairs.len() == PAIRS {
            break;
        }
    }
    pairs
}

fn values(trace: &Trace, rng: &mut SplitMix) -> Values {
    let (mut values, mut memory) = (Values::default(), HashMap::new());
    for event in trace.indices() {
        let Some(access) = trace.access(event) else { continue };
        if access.class != AccessClass::Write {
            values.set_read(event, &[memory.get(&access.address).copied().unwrap_or(0); 8]);
        }
        if access.class != AccessClass::Read {
            let value = rng.below(VALUES) as u8;
            memory.insert(access.address, value);
            values.set_written(event, &[value; 8]);
        }
    }
    values
}

#[derive(Default)]
struct Row {
    times: Vec<Duration>,
    witnesses: usize,
    refuted: usize,
    most: Cost,
    conflicts: u64,
}

impl Row {
    fn add(&mut self, decision: &Decision, took: Duration, cost: Cost) {
        self.times.push(took);
        self.witnesses += usize::from(matches!(decision, Decision::Witness(_)));
        self.refuted += usize::from(*decision == Decision::Refuted);
        self.most.events = self.most.events.max(cost.events);
        self.most.rounds = self.most.rounds.max(cost.rounds);
        self.most.clauses = self.most.clauses.max(cost.clauses);
        self.conflicts += cost.solver.conflicts;
    }

    fn print(&mut self, kind: &str, events: usize, who: &str) {
        self.times.sort_unstable();
        let at = |part: f64| self.times[((self.times.len() - 1) as f64 * part) as usize].as_secs_f64() * 1e3;
        println!(
            "{kind:6} {events:7} {who:12} {:6} {:9} {:7} {:5} {:8.2} {:8.2} {:8.2} {:6} {:8} {:6} {:9}",
            self.times.len(),
            self.witnesses,
            self.refuted,
            self.times.len() - self.witnesses - self.refuted,
            at(0.5),
            at(0.99),
            at(1.0),
            self.most.events,
            self.most.clauses,
            self.most.rounds,
            self.conflicts
        );
    }
}

fn main() {
    let mut sizes: Vec<usize> =
        std::env::args().skip(1).filter_map(|size| size.parse().ok()).filter(|&size| size > 100).collect();
    if sizes.is_empty() {
        sizes = vec![1000, 5000, 20_000];
    }
    println!("times in ms; the largest slice, clauses and rounds; all conflicts; undecided ones are open");
    println!(
        "kind    events who           pairs witnesses refuted  open   median      p99      max  slice  clauses rounds conflicts"
    );
    for events in sizes {
        measure("wide", &large(1, 6, 12, events), events / 4);
        let features = Features { shared_locks: true, ..Features::default() };
        measure("dense", &random(1, Shape { threads: 6, events: events / 5, variables: 40, locks: 6, features }), events / 20);
    }
}

fn measure(kind: &str, trace: &Trace, apart: usize) {
    let (mut rng, events) = (SplitMix(2), trace.events.len());
    let (pairs, values) = (pairs(trace, &mut rng, apart), values(trace, &mut rng));
    if pairs.is_empty() {
        return;
    }
    let memory = SharedMemory::new(trace);
    let index = Index::new(trace, &memory);
    let closures = Closures::new(&index);
    let mut row = Row::default();
    for &(first, second) in &pairs {
        let start = Instant::now();
        let decision = match exact::decide(&closures, &memory, &[first, second], &exact::Limits::default()) {
            exact::Decision::Witness(order) => Decision::Witness(order),
            exact::Decision::Refuted => Decision::Refuted,
            _ => Decision::Undecided,
        };
        row.add(&decision, start.elapsed(), Cost::default());
    }
    row.print(kind, events, "exact");
    for (who, values) in [("maximal", None), ("with values", Some(&values))] {
        let facts = Facts::new(&index, &memory, values);
        let mut row = Row::default();
        for &(first, second) in &pairs {
            let start = Instant::now();
            let until = Deadline::within(Duration::from_secs(5));
            let (decision, cost) = decide(&facts, &[first, second], &Limits::default(), until);
            row.add(&decision, start.elapsed(), cost);
        }
        row.print(kind, events, who);
    }
}
