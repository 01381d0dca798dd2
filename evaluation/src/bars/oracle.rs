//! Every analysis and decider against brute force, on every trace of small alphabets and on drawn ones.
//!
//! Exhaustive: all traces of so many events over an alphabet of accesses and locks, threads in the order of their first event.
//! Drawn: random feasible traces of up to 14 events. Brute force is `testkit::cuts`, a search over all cuts; sync-reversal has
//! its definition in `testkit::reversal`.

mod summary;

use crate::common::bar::{self, Bar};
use crate::common::command_line;
use crate::common::only::Only;
pub use crate::common::options::Dividing as Options;
use anyhow::Result;
use rashomon_engine::{Analysis as _, Detector, Hybrid, Races, Wanted, Wcp};
use rashomon_event::{
    Access, AccessClass, Address, CandidateKind, EventIndex, EventKind, LockMode, ThreadId, Trace, Witness, WitnessLevel,
};
use rashomon_order::{LockGraph, SharedMemory};
use rashomon_packed::{Event, Op};
use rashomon_predict::closure::Closures;
use rashomon_predict::deadlocks;
use rashomon_predict::exact::{self, Decision, Limits};
use rashomon_predict::index::Index;
use rashomon_predict::reversal::sync_reversal;
use rashomon_testkit::{Features, Rules, Shape, cuts, describe, enumerate, random, reversal};
use rashomon_witness::Checker;
use serde::Serialize;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

type Pair = (EventIndex, EventIndex);

/// What is claimed, and how often it did not hold.
#[derive(Clone, Debug, Default, Serialize)]
struct Claim {
    name: &'static str,
    checked: u64,
    failed: u64,
    example: Option<String>,
}

#[derive(Clone, Debug, Default, Serialize)]
struct Tally {
    traces: u64,
    events: u64,
    states: u64,
    pairs: u64,
    races: u64,
    hb: u64,
    shb: u64,
    wcp: u64,
    hybrid: u64,
    sync_preserving: u64,
    sync_reversal: u64,
    synchronisation: u64,
    deadlocks: u64,
    sync_preserving_deadlocks: u64,
    /// Sync-preserving races that are no sync-reversal races.
    not_reversal: u64,
    not_reversal_example: Option<String>,
    claims: Vec<Claim>,
}

impl Tally {
    fn claim(&mut self, name: &'static str, holds: bool, trace: &Trace) {
        let place = self.claims.iter().position(|claim| claim.name == name).unwrap_or_else(|| {
            self.claims.push(Claim { name, ..Claim::default() });
            self.claims.len() - 1
        });
        let claim = &mut self.claims[place];
        claim.checked += 1;
        if !holds {
            claim.failed += 1;
            claim.example.get_or_insert_with(|| describe(trace));
        }
    }

    fn add(&mut self, other: Self) {
        let counts: [fn(&mut Self) -> &mut u64; 15] = [
            |tally| &mut tally.traces,
            |tally| &mut tally.events,
            |tally| &mut tally.states,
            |tally| &mut tally.pairs,
            |tally| &mut tally.races,
            |tally| &mut tally.hb,
            |tally| &mut tally.shb,
            |tally| &mut tally.wcp,
            |tally| &mut tally.hybrid,
            |tally| &mut tally.sync_preserving,
            |tally| &mut tally.sync_reversal,
            |tally| &mut tally.synchronisation,
            |tally| &mut tally.deadlocks,
            |tally| &mut tally.sync_preserving_deadlocks,
            |tally| &mut tally.not_reversal,
        ];
        let mut other = other;
        for count in counts {
            *count(self) += *count(&mut other);
        }
        self.not_reversal_example = self.not_reversal_example.take().or(other.not_reversal_example);
        for claim in other.claims {
            match self.claims.iter_mut().find(|known| known.name == claim.name) {
                Some(known) => {
                    known.checked += claim.checked;
                    known.failed += claim.failed;
                    known.example = known.example.take().or(claim.example);
                }
                None => self.claims.push(claim),
            }
        }
    }
}

/// One alphabet, or one kind of drawn traces.
struct Batch {
    name: &'static str,
    work: Work,
}

enum Work {
    Every { threads: u32, lengths: std::ops::RangeInclusive<usize>, alphabet: Vec<EventKind> },
    Drawn { seeds: std::ops::Range<u64>, shape: fn(u64) -> Shape },
}

#[derive(Serialize)]
struct Row {
    name: &'static str,
    seconds: f64,
    tally: Tally,
}

#[derive(Serialize)]
struct Report<'a> {
    command: String,
    rows: &'a [Row],
    bars: &'a [Bar],
}

pub fn run(options: &Options) -> Result<bool> {
    let workers = options.jobs.map_or_else(|| std::thread::available_parallelism().map_or(1, usize::from), usize::from);
    let mut rows = Vec::new();
    let only = Only::of(options.selecting.only.as_deref());
    for batch in batches(options.selecting.quick) {
        if !only.wants(batch.name) {
            continue;
        }
        let start = Instant::now();
        let tally = run_batch(&batch.work, workers);
        let row = Row { name: batch.name, seconds: start.elapsed().as_secs_f64(), tally };
        eprintln!("{}: {} traces in {:.0} s", row.name, row.tally.traces, row.seconds);
        rows.push(row);
    }
    only.check()?;
    let bars = summary::bars(&rows, options);
    if options.selecting.json {
        let command = command_line();
        println!("{}", serde_json::to_string_pretty(&Report { command, rows: &rows, bars: &bars })?);
        return Ok(bar::all_met(&bars));
    }
    summary::print(&rows);
    Ok(bar::print(&bars))
}

fn batches(quick: bool) -> Vec<Batch> {
    let plain = |class, address| EventKind::Access(Access { address: Address(address), size: 8, class, atomic: false });
    let (read, write, other) =
        (plain(AccessClass::Read, 0x100), plain(AccessClass::Write, 0x100), plain(AccessClass::Write, 0x200));
    let acquire = |lock| EventKind::Acquire { lock: Address(lock), mode: LockMode::Exclusive, may_wait: true };
    let release = |lock| EventKind::Release { lock: Address(lock), mode: LockMode::Exclusive };
    let (one, two) = ([acquire(8), release(8)], [acquire(8), release(8), acquire(16), release(16)]);
    let child = ThreadId(1);
    let threads = [EventKind::Fork { child }, EventKind::Join { child, may_wait: true }];
    let less = usize::from(quick) * 2;
    let every = |name, threads, longest: usize, alphabet: Vec<EventKind>| Batch {
        name,
        work: Work::Every { threads, lengths: 1..=longest - less, alphabet },
    };
    let drawn =
        |name, count: u64, shape| Batch { name, work: Work::Drawn { seeds: 0..if quick { count / 50 } else { count }, shape } };
    vec![
        every("2 threads, write, lock", 2, 10, [vec![write], one.to_vec()].concat()),
        every("2 threads, read, write, lock", 2, 8, [vec![read, write], one.to_vec()].concat()),
        every("3 threads, read, write, lock", 3, 7, [vec![read, write], one.to_vec()].concat()),
        every("2 threads, 2 variables, lock", 2, 7, [vec![read, write, other], one.to_vec()].concat()),
        every("2 threads, write, 2 locks", 2, 8, [vec![write], two.to_vec()].concat()),
        every("2 threads, 2 locks", 2, 10, two.to_vec()),
        every("3 threads, 2 locks", 3, 8, two.to_vec()),
        every("3 threads, 2 locks, one forked and joined", 3, 8, [threads.to_vec(), two.to_vec()].concat()),
        drawn("drawn, 2 variables, up to 3 locks", 200_000, |seed| Shape {
            threads: 2 + (seed % 3) as u32,
            events: 10 + (seed % 5) as usize,
            variables: 1 + seed / 3 % 2,
            locks: 1 + seed % 3,
            features: Features::default(),
        }),
        drawn("drawn, fork, join, shared locks", 100_000, |seed| Shape {
            threads: 2 + (seed % 3) as u32,
            events: 12 + (seed % 3) as usize,
            variables: 1 + seed % 2,
            locks: 1 + seed % 2,
            features: Features { fork_join: true, shared_locks: true, ..Features::default() },
        }),
        drawn("drawn, locks, fork, join, barriers", 100_000, |seed| Shape {
            threads: 3 + (seed % 2) as u32,
            events: 16 + (seed % 4) as usize,
            variables: 0,
            locks: 2 + seed % 2,
            features: Features { fork_join: true, barriers: seed % 2 == 0, shared_locks: seed % 3 == 0, ..Features::default() },
        }),
        drawn("drawn, locks only", 100_000, |seed| Shape {
            threads: 2 + (seed % 3) as u32,
            events: 14,
            variables: 0,
            locks: 2 + seed % 2,
            features: Features { shared_locks: seed % 2 == 0, ..Features::default() },
        }),
    ]
}

fn run_batch(work: &Work, workers: usize) -> Tally {
    let next = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let handles: Vec<_> = (0..workers)
            .map(|worker| {
                scope.spawn({
                    let next = &next;
                    move || share(work, worker as u64, workers as u64, next)
                })
            })
            .collect();
        let mut total = Tally::default();
        for handle in handles {
            total.add(handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        total
    })
}

/// What one worker does.
fn share(work: &Work, worker: u64, workers: u64, next: &AtomicU64) -> Tally {
    let mut tally = Tally::default();
    match work {
        Work::Every { threads, lengths, alphabet } => {
            let mut number = 0;
            for length in lengths.clone() {
                enumerate(*threads, length, alphabet, &mut |trace| {
                    if number % workers == worker {
                        check(&trace, &mut tally);
                    }
                    number += 1;
                });
            }
        }
        Work::Drawn { seeds, shape } => loop {
            let start = seeds.start + 256 * next.fetch_add(1, Ordering::Relaxed);
            if start >= seeds.end {
                return tally;
            }
            for seed in start..(start + 256).min(seeds.end) {
                let mut trace = random(seed, shape(seed));
                if seed % 2 == 0 {
                    without_updates(&mut trace);
                }
                check(&trace, &mut tally);
            }
        },
    }
    tally
}

/// The trace for the linear analyses.
fn packed(trace: &Trace) -> Vec<Event> {
    let event = |event: rashomon_event::Event| {
        let (op, target) = match event.kind {
            EventKind::Access(Access { class: AccessClass::Read, address, .. }) => (Op::Read, address.0),
            EventKind::Access(Access { address, .. }) => (Op::Write, address.0),
            EventKind::Acquire { lock, mode: LockMode::Exclusive, .. } => (Op::Acquire, lock.0),
            EventKind::Acquire { lock, mode: LockMode::Shared, .. } => (Op::AcquireShared, lock.0),
            EventKind::Release { lock, mode: LockMode::Exclusive } => (Op::Release, lock.0),
            EventKind::Release { lock, mode: LockMode::Shared } => (Op::ReleaseShared, lock.0),
            EventKind::Fork { child } => (Op::Fork, u64::from(child.0)),
            EventKind::Join { child, .. } => (Op::Join, u64::from(child.0)),
            _ => (Op::Nothing, 0),
        };
        // Addresses of drawn traces are small and far apart.
        let target = if matches!(op, Op::Fork | Op::Join) { target } else { target >> 3 & 0xfff };
        Event::new(event.thread.0 as u16, op, target as u32, 0)
    };
    trace.events.iter().map(event).collect()
}

fn pairs_of(races: &Races) -> BTreeSet<Pair> {
    let all = races.all().unwrap_or_default().iter();
    all.filter_map(|race| Some((EventIndex(race.earlier?.event as u32), EventIndex(race.later.event as u32)))).collect()
}

fn without_updates(trace: &mut Trace) {
    trace.events.change(|_, event| {
        if let EventKind::Access(access) = &mut event.kind
            && access.class == AccessClass::ReadWrite
        {
            access.class = AccessClass::Write;
        }
    });
}

/// A read-modify-write in one event is nothing that packed events have.
fn has_updates(trace: &Trace) -> bool {
    trace.events.iter().filter_map(|event| event.access()).any(|access| access.class == AccessClass::ReadWrite)
}

fn check(trace: &Trace, tally: &mut Tally) {
    let reach = |rules| cuts::reach(trace, rules, usize::MAX);
    let (Some(causal), Some(preserving), Some(free)) =
        (reach(Rules::CAUSAL), reach(Rules::SYNC_PRESERVING), reach(Rules::SYNCHRONISATION))
    else {
        return;
    };
    tally.traces += 1;
    tally.events += trace.events.len() as u64;
    tally.states += causal.states as u64;
    tally.races += causal.races.len() as u64;
    tally.synchronisation += free.races.len() as u64;
    tally.deadlocks += causal.deadlocks.len() as u64;
    tally.sync_preserving_deadlocks += preserving.deadlocks.len() as u64;
    tally.claim(
        "causal ⊆ synchronisation",
        causal.races.is_subset(&free.races) && causal.deadlocks.is_subset(&free.deadlocks),
        trace,
    );
    if !has_updates(trace) {
        linear(trace, &causal, &preserving.races, tally);
    }
    let memory = SharedMemory::new(trace);
    let index = Index::new(trace, &memory);
    let closures = Closures::new(&index);
    let checker = Checker::new(trace);
    let accepted = |candidate: CandidateKind, order: &[EventIndex]| {
        let witness = Witness { candidate, order: order.to_vec(), level: WitnessLevel::Causal };
        checker.check(&witness) == Ok(WitnessLevel::Causal)
    };
    for pair in conflicting(trace) {
        let goals = [pair.0, pair.1];
        let candidate = || CandidateKind::Race { first: pair.0, second: pair.1 };
        let preserved = closures.sync_preserving(&goals).is_ok();
        let reversed = sync_reversal(&closures, &memory, &goals);
        let decision = exact::decide(&closures, &memory, &goals, &Limits::NONE);
        let real = causal.races.contains(&pair);
        tally.pairs += 1;
        tally.sync_preserving += u64::from(preserved);
        tally.sync_reversal += u64::from(reversed.is_some());
        tally.claim("sync-preserving = its definition", preserved == preserving.races.contains(&pair), trace);
        tally.claim("sync-reversal = its definition", reversed.is_some() == reversal::races(trace, &goals), trace);
        tally.claim("sync-reversal ⊆ all correct reorderings", reversed.is_none() || real, trace);
        tally.claim("exact = all correct reorderings", matches!(decision, Decision::Witness(_)) == real, trace);
        tally.claim("refuted = no correct reordering", (decision == Decision::Refuted) != real, trace);
        if let Some(order) = &reversed {
            tally.claim("witnesses pass the checker", accepted(candidate(), order), trace);
        }
        if let Decision::Witness(order) = &decision {
            tally.claim("witnesses pass the checker", accepted(candidate(), order), trace);
        }
        if preserved && reversed.is_none() {
            tally.not_reversal += 1;
            tally.not_reversal_example.get_or_insert_with(|| format!("{goals:?}\n{}", describe(trace)));
        }
    }
    cycles(trace, &closures, &memory, &causal.deadlocks, &preserving.deadlocks, accepted, tally);
}

fn linear(trace: &Trace, causal: &rashomon_testkit::Reachable, preserving: &BTreeSet<Pair>, tally: &mut Tally) {
    let events = packed(trace);
    let mut detector = Detector::new(Wanted { shb: true, lock_sets: false }).keeping_all();
    let mut hybrid = Hybrid::default().keeping_all();
    let mut wcp = Wcp::default().keeping_all();
    detector.block(0, &events);
    hybrid.block(0, &events);
    wcp.block(0, &events);
    let found = detector.found();
    let (hb, shb) = (pairs_of(&found.hb), found.shb.map(|races| pairs_of(&races)).unwrap_or_default());
    let (hybrid, wcp) = (pairs_of(&hybrid.found()), pairs_of(&wcp.found()));
    tally.hb += hb.len() as u64;
    tally.shb += shb.len() as u64;
    tally.wcp += wcp.len() as u64;
    tally.hybrid += hybrid.len() as u64;
    let first = hb.iter().map(|pair| pair.1).min();
    let schedulable = |later| shb.iter().any(|pair| pair.1 == later);
    tally.claim("the first HB race ∈ SHB", first.is_none_or(schedulable), trace);
    tally.claim("SHB ⊆ HB", shb.is_subset(&hb), trace);
    tally.claim("SHB ⊆ sync-preserving", shb.is_subset(preserving), trace);
    let racing = |events: &BTreeSet<Pair>| events.iter().map(|pair| pair.1).collect::<BTreeSet<_>>();
    let all = racing(&causal.races);
    tally.claim("second accesses of races ⊆ those of hybrid", all.is_subset(&racing(&hybrid)), trace);
    let weakly = wcp.is_empty() || !causal.races.is_empty() || !causal.deadlocks.is_empty();
    tally.claim("a WCP race means a race or a deadlock", weakly, trace);
    tally.claim("HB ⊆ WCP, by second accesses", racing(&hb).is_subset(&racing(&wcp)), trace);
}

fn conflicting(trace: &Trace) -> Vec<Pair> {
    let mut pairs = Vec::new();
    for second in trace.indices() {
        for first in trace.indices().take(second.index()) {
            let (one, other) = (trace.event(first), trace.event(second));
            let conflict = one.access().zip(other.access()).is_some_and(|(one, other)| one.conflicts(&other));
            if conflict && one.thread != other.thread {
                pairs.push((first, second));
            }
        }
    }
    pairs
}

fn sorted(mut tuple: Vec<EventIndex>) -> Vec<EventIndex> {
    tuple.sort_unstable();
    tuple
}

fn cycles(
    trace: &Trace,
    closures: &Closures<'_, '_>,
    memory: &SharedMemory,
    causal: &BTreeSet<Vec<EventIndex>>,
    preserving: &BTreeSet<Vec<EventIndex>>,
    accepted: impl Fn(CandidateKind, &[EventIndex]) -> bool,
    tally: &mut Tally,
) {
    let graph = LockGraph::new(trace);
    let mut found = BTreeSet::new();
    let mut found_preserving = BTreeSet::new();
    for pattern in graph.patterns(5, usize::MAX) {
        // Every event has a site of its own, so a pattern has one tuple.
        found_preserving.extend(deadlocks::sync_preserving(closures, &graph, &pattern).map(|(tuple, _)| sorted(tuple)));
        for tuple in deadlocks::concurrent(&graph, &pattern, usize::MAX) {
            let decision = exact::decide(closures, memory, &tuple, &Limits::NONE);
            if let Decision::Witness(order) = &decision {
                let candidate = deadlocks::candidate(&graph, &pattern, &tuple);
                tally.claim("witnesses of deadlocks pass the checker", accepted(candidate, order), trace);
                found.insert(sorted(tuple));
            }
        }
    }
    let all = |cycles: &BTreeSet<Vec<EventIndex>>| cycles.iter().cloned().map(sorted).collect::<BTreeSet<_>>();
    tally.claim("exact deadlocks = all correct reorderings", found == all(causal), trace);
    tally.claim("sync-preserving deadlocks = their definition", found_preserving == all(preserving), trace);
    tally.claim("sync-preserving deadlocks ⊆ exact ones", found_preserving.is_subset(&found), trace);
}
