//! How long one decision of the maximal causal model takes, on RaceInjector's traces (ICSE NIER 2023), beside Z3.
//!
//! What is fair. Candidates: the injected race, and pairs that the hybrid analysis reports, evenly drawn. What all decisions of
//! a trace share is computed once, as in a prediction, and is no part of a decision's time; slice, encoding, all rounds of the
//! solver and the check of the proof are. Z3 gets the last encoding, with all rules that the rounds have added; its time is that
//! of `check-sat` alone, without reading the text.

use super::claims::Claims;
use super::smt::Z3;
use crate::common::bar::Bar;
use crate::common::table::Table;
use crate::papers::imported::{Known, Pair, corpus};
use anyhow::{Context as _, Result};
use rashomon_event::{Deadline, EventIndex};
use rashomon_order::SharedMemory;
use rashomon_packed::Space;
use rashomon_predict::index::Index;
use rashomon_predict::maximal::{Decision, Facts, Limits, Target, examine};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

pub const AGREES: &str = "Z3 agrees on the candidates of RaceInjector";

/// Pairs of one trace beside the injected one.
const PAIRS: usize = 40;
/// Larger slices are counted apart.
const SLICE: usize = 5000;
/// Milliseconds.
const MEDIAN: f64 = 10.0;
const PERCENTILE_99: f64 = 1000.0;
/// For one answer of Z3, and for all.
const WITHIN: Duration = Duration::from_secs(5);
const ALTOGETHER: Duration = Duration::from_secs(120);
const VARIABLE: &str = "BUGGY_ADDR";

#[derive(Debug, Default, Serialize)]
pub struct Times {
    pub folder: String,
    pub traces: usize,
    pub found: usize,
    pub refuted: usize,
    pub undecided: usize,
    /// Injected races for which an order is found.
    pub injected: usize,
    pub beyond: usize,
    pub largest_slice: usize,
    /// Milliseconds of each decision on a slice that is not beyond, sorted.
    #[serde(skip)]
    own: Vec<f64>,
    /// Of those that Z3 was asked about, its milliseconds and ours.
    #[serde(skip)]
    compared: Vec<(f64, f64)>,
    /// Z3 gave no answer in time.
    pub open: usize,
}

pub fn run(corpora: Option<&Path>, mut solver: Option<&mut Z3>, quick: bool, claims: &mut Claims) -> Result<Vec<Times>> {
    let root = match corpus(corpora, "raceinjector") {
        Ok(root) => root,
        Err(error) => {
            eprintln!("decision times are not judged: {error:#}");
            return Ok(Vec::new());
        }
    };
    let mut left = if quick { ALTOGETHER / 10 } else { ALTOGETHER };
    let mut all = Vec::new();
    for folder in sorted(&root)?.into_iter().filter(|path| path.is_dir()) {
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        eprintln!("decision times: {name}");
        let mut times = Times { folder: name.trim_end_matches("_missed").to_owned(), ..Times::default() };
        let mut paths = Vec::new();
        for program in sorted(&folder)? {
            paths.extend(sorted(&program)?);
        }
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "std"));
        for path in paths.iter().take(if quick { 2 } else { usize::MAX }) {
            trace(path, &mut times, solver.as_deref_mut(), &mut left, claims)?;
        }
        times.own.sort_by(f64::total_cmp);
        all.push(times);
    }
    Ok(all)
}

fn sorted(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    paths.sort();
    Ok(paths)
}

fn trace(path: &Path, times: &mut Times, mut solver: Option<&mut Z3>, left: &mut Duration, claims: &mut Claims) -> Result<()> {
    let known = Known::read(path)?;
    let is_injected = |event: &EventIndex| {
        let event = known.events[event.index()];
        event.op.is_access() && known.names.get(Space::Variable, event.target) == VARIABLE
    };
    let injected: Vec<EventIndex> = known.trace().indices().filter(is_injected).collect();
    let &[first, second] = injected.as_slice() else {
        anyhow::bail!("{}: {} accesses of {VARIABLE} instead of two", path.display(), injected.len());
    };
    let others: Vec<Pair> = known.linear().hybrid.pairs.into_iter().filter(|&pair| pair != (first, second)).collect();
    let step = others.len().div_ceil(PAIRS).max(1);
    let pairs = std::iter::once((first, second)).chain(others.into_iter().step_by(step));
    let memory = SharedMemory::new(known.trace());
    let index = Index::new(known.trace(), &memory);
    let facts = Facts::new(&index, &memory, None);
    times.traces += 1;
    for (number, pair) in pairs.enumerate() {
        let start = Instant::now();
        let examined = examine(&facts, Target::next(&[pair.0, pair.1]), &Limits::default(), Deadline::NEVER);
        let own = 1e3 * start.elapsed().as_secs_f64();
        times.largest_slice = times.largest_slice.max(examined.cost.events);
        let found = matches!(examined.decision, Decision::Witness(_));
        *match examined.decision {
            Decision::Witness(_) => &mut times.found,
            Decision::Refuted => &mut times.refuted,
            Decision::Undecided => &mut times.undecided,
        } += 1;
        times.injected += usize::from(number == 0 && found);
        if examined.cost.events > SLICE {
            times.beyond += 1;
            continue;
        }
        times.own.push(own);
        let decided = examined.problem.filter(|_| examined.decision != Decision::Undecided && !left.is_zero());
        if let (Some(problem), Some(solver)) = (decided, solver.as_deref_mut()) {
            let start = Instant::now();
            let (answer, took) = solver.solve(&problem, WITHIN)?;
            *left = left.saturating_sub(start.elapsed());
            times.compared.push((1e3 * took.as_secs_f64(), own));
            match answer {
                Some(answer) => claims.claim(AGREES, answer == found, || format!("{}: {pair:?}", path.display())),
                None => times.open += 1,
            }
        }
    }
    Ok(())
}

/// The value below which this part of sorted ones lies.
fn percentile(sorted: &[f64], part: f64) -> f64 {
    let place = (part * sorted.len() as f64).ceil() as usize;
    sorted.get(place.saturating_sub(1)).copied().unwrap_or(f64::NAN)
}

fn all_own(all: &[Times]) -> Vec<f64> {
    let mut own: Vec<f64> = all.iter().flat_map(|times| times.own.iter().copied()).collect();
    own.sort_by(f64::total_cmp);
    own
}

pub fn bars(times: &[Times]) -> Vec<Bar> {
    let own = all_own(times);
    let sum = |of: fn(&Times) -> usize| times.iter().map(of).sum::<usize>();
    let decided = sum(|times| times.found + times.refuted);
    let all = decided + sum(|times| times.undecided);
    let (injected, traces) = (sum(|times| times.injected), sum(|times| times.traces));
    vec![
        Bar::holds(
            "RaceInjector: each injected race is found",
            traces > 0 && injected == traces,
            format!("{injected} of {traces}"),
        ),
        Bar::holds("RaceInjector: each candidate is decided", all > 0 && decided == all, format!("{decided} of {all}")),
        Bar::at_most("RaceInjector: decision, median", percentile(&own, 0.5), MEDIAN, " ms"),
        Bar::at_most("RaceInjector: decision, 99th percentile", percentile(&own, 0.99), PERCENTILE_99, " ms"),
    ]
}

pub fn print(all: &[Times], has_solver: bool) {
    println!("Decisions of candidates in RaceInjector's traces, in milliseconds\n");
    let titles = ["missed by", "traces", "found", "refuted", "open", "slice ≤", "median", "p99", "asked", "Z3 median", "Z3 p99"];
    let mut table = Table::new(&[&titles[..], &["ours"]].concat());
    for times in all {
        let mut compared: Vec<f64> = times.compared.iter().map(|&(other, _)| other).collect();
        compared.sort_by(f64::total_cmp);
        let mut ours: Vec<f64> = times.compared.iter().map(|&(_, own)| own).collect();
        ours.sort_by(f64::total_cmp);
        let milliseconds = |sorted: &[f64], part| {
            if sorted.is_empty() { "-".to_owned() } else { format!("{:.2}", percentile(sorted, part)) }
        };
        let counts = [times.traces, times.found, times.refuted, times.undecided, times.largest_slice];
        let mut cells = vec![times.folder.clone()];
        cells.extend(counts.map(|count| count.to_string()));
        cells.extend([milliseconds(&times.own, 0.5), milliseconds(&times.own, 0.99)]);
        cells.push(compared.len().to_string());
        cells.extend([milliseconds(&compared, 0.5), milliseconds(&compared, 0.99), milliseconds(&ours, 0.5)]);
        table.row(cells);
    }
    table.print();
    let open: usize = all.iter().map(|times| times.open).sum();
    let answers =
        if has_solver { format!("{open} without an answer within {} s", WITHIN.as_secs()) } else { "it is not there".to_owned() };
    println!("\nslice: events that synchronise or touch shared memory; asked: so many of them Z3 was asked about, too");
    println!("({answers}); ours: the median of the same ones");
    let beyond: usize = all.iter().map(|times| times.beyond).sum();
    println!("larger slices than {SLICE}, which are not in the times: {beyond}\n");
}
