//! The figures of papers as traces: how many races each holds, by brute force, and which of them every analysis and every decider
//! finds.
//!
//! An entry of `expected.csv` counts pairs of events, not of locations, that some correct reordering makes next at the same time
//! (in these traces no two pairs share both locations, so both counts are the same). The exact oracle is `testkit::cuts`, a
//! search over all cuts.
//!
//! Counts of linear analyses are pairs that they report. They remember one access of a thread at most, so an older one of the
//! same thread is counted as lost, and marked `kept`: the analysis does not order it, but does not name it either. So is one that
//! another thread's later access is ordered behind, without the mark.

use super::imported::{Deciders, Known, Pair, Reports, TITLES, corpus};
use crate::common::bar::{self, Bar};
use crate::common::command_line;
use crate::common::only::Only;
pub use crate::common::options::Reading as Options;
use crate::common::table::Table;
use anyhow::{Context as _, Result};
use rashomon_order::SharedMemory;
use rashomon_packed::Space;
use rashomon_predict::index::Index;
use rashomon_testkit::{Rules, cuts};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// States of one trace that are looked at.
const STATES: usize = 20_000_000;
/// What no definition of a race reproduces; see `docs/evaluation.md`.
const MISCOUNTED: [&str; 1] = ["Test6.log"];

#[derive(Debug, Serialize)]
struct Row {
    trace: String,
    events: usize,
    expected: Option<usize>,
    /// By brute force.
    races: usize,
    location_pairs: usize,
    /// By brute force, with reads-from free.
    synchronisation: usize,
    deadlocks: usize,
    states: usize,
    analyses: BTreeMap<&'static str, Analysis>,
    sync_preserving: usize,
    sync_reversal: usize,
    exact: usize,
    refuted: usize,
    conflicting: usize,
    /// Answers of deciders that brute force contradicts, and witnesses that the checker rejects.
    wrong: usize,
}

#[derive(Debug, Serialize)]
struct Analysis {
    found: usize,
    /// Reported and no race.
    no_race: usize,
    /// Pairs of locations.
    lost: Vec<String>,
}

#[derive(Serialize)]
struct Report<'a> {
    command: String,
    rows: &'a [Row],
    bars: &'a [Bar],
}

pub fn run(options: &Options) -> Result<bool> {
    let folder = corpus(options.corpora.as_deref(), "speedygo")?;
    let expected = std::fs::read_to_string(folder.join("expected.csv")).context("cannot read expected.csv")?;
    let expected: BTreeMap<&str, usize> = expected
        .lines()
        .skip(1)
        .filter_map(|line| line.split_once(',').and_then(|(name, count)| Some((name, count.parse().ok()?))))
        .collect();
    let mut rows = Vec::new();
    let only = Only::of(options.only.as_deref());
    for number in 1..=33 {
        let name = format!("Test{number}.log");
        if only.wants(&name) {
            let known = Known::read(&folder.join(&name))?;
            rows.push(row(&known, &name, expected.get(name.as_str()).copied())?);
        }
    }
    only.check()?;
    let bars = bars(&rows);
    if options.json {
        let command = command_line();
        println!("{}", serde_json::to_string_pretty(&Report { command, rows: &rows, bars: &bars })?);
        return Ok(bar::all_met(&bars));
    }
    print(&rows);
    Ok(bar::print(&bars))
}

fn row(known: &Known, name: &str, expected: Option<usize>) -> Result<Row> {
    let trace = known.trace();
    let reach = |rules| cuts::reach(trace, rules, STATES).with_context(|| format!("{name} is beyond the oracle's limits"));
    let causal = reach(Rules::CAUSAL)?;
    let preserving = reach(Rules::SYNC_PRESERVING)?;
    let place = |pair: &Pair| {
        let of = |event: rashomon_event::EventIndex| known.names.get(Space::Location, known.events[event.index()].location);
        let short = |name: &str| name.strip_prefix("Test.java:").unwrap_or(name).split(':').next().unwrap_or(name).to_owned();
        format!("{}–{}", short(&of(pair.0)), short(&of(pair.1)))
    };
    let locations: BTreeSet<String> = causal.races.iter().map(place).collect();
    let linear = known.linear();
    let analyses = [
        ("HB", &linear.hb),
        ("SHB", &linear.shb),
        ("WCP", &linear.wcp),
        ("lock sets", &linear.lock_sets),
        ("hybrid", &linear.hybrid),
    ];
    let analysis = |reports: &Reports| Analysis {
        found: reports.pairs.intersection(&causal.races).count(),
        no_race: reports.pairs.difference(&causal.races).count(),
        lost: causal.races.difference(&reports.pairs).map(|pair| lost(known, reports, pair, place(pair))).collect(),
    };
    let memory = SharedMemory::new(trace);
    let index = Index::new(trace, &memory);
    let deciders = Deciders::new(&index, &memory);
    let mut row = Row {
        trace: name.to_owned(),
        events: trace.events.len(),
        expected,
        races: causal.races.len(),
        location_pairs: locations.len(),
        synchronisation: reach(Rules::SYNCHRONISATION)?.races.len(),
        deadlocks: causal.deadlocks.len(),
        states: causal.states,
        analyses: analyses.into_iter().map(|(name, reports)| (name, analysis(reports))).collect(),
        sync_preserving: 0,
        sync_reversal: 0,
        exact: 0,
        refuted: 0,
        conflicting: 0,
        wrong: 0,
    };
    for pair in deciders.conflicting() {
        let decided = deciders.decide(pair);
        let real = causal.races.contains(&pair);
        row.conflicting += 1;
        row.sync_preserving += usize::from(decided.sync_preserving);
        row.sync_reversal += usize::from(decided.sync_reversal);
        row.exact += usize::from(decided.any);
        row.refuted += usize::from(decided.refuted);
        row.wrong += decided.rejected as usize
            + usize::from(decided.any != real)
            + usize::from(decided.refuted == real)
            + usize::from(decided.sync_preserving != preserving.races.contains(&pair))
            + usize::from(decided.sync_reversal && !real);
    }
    Ok(row)
}

/// Says of a lost pair whether a later access of the same thread stands for it.
fn lost(known: &Known, reports: &Reports, pair: &Pair, place: String) -> String {
    let thread = |event: rashomon_event::EventIndex| known.trace().event(event).thread;
    let kept = reports.pairs.iter().any(|other| other.1 == pair.1 && thread(other.0) == thread(pair.0));
    if kept { format!("{place} (kept)") } else { place }
}

fn print(rows: &[Row]) {
    println!(
        "pairs of events that race in some correct reordering, and how many of them each analysis \
            reports (+ reports that are none)\n"
    );
    let titles = [&["trace", "expected", "races", "states"], &TITLES[..], &["refuted", "deadlocks"]].concat();
    let mut table = Table::new(&titles);
    for row in rows {
        let mut cells = vec![
            row.trace.clone(),
            row.expected.map_or("–".into(), |count| count.to_string()),
            row.races.to_string(),
            row.states.to_string(),
        ];
        for name in ["HB", "SHB", "WCP", "lock sets", "hybrid"] {
            let analysis = &row.analyses[name];
            cells.push(match analysis.no_race {
                0 => analysis.found.to_string(),
                more => format!("{} +{more}", analysis.found),
            });
        }
        cells.extend(
            [row.sync_preserving, row.sync_reversal, row.exact, row.refuted, row.deadlocks].map(|count| count.to_string()),
        );
        table.row(cells);
    }
    table.print();
    println!("\nwhat is lost, as pairs of lines (kept: the analysis names a later access of the same thread instead)\n");
    let mut table = Table::new(&["trace", "HB", "SHB", "WCP"]);
    for row in rows {
        let lost = |name| {
            let lost = &row.analyses[name].lost;
            if lost.len() > 6 { format!("{} pairs: {} …", lost.len(), lost[..2].join(" ")) } else { lost.join(" ") }
        };
        let cells = ["HB", "SHB", "WCP"].map(lost);
        if cells.iter().any(|cell| !cell.is_empty()) {
            table.row([vec![row.trace.clone()], cells.to_vec()].concat());
        }
    }
    table.print();
    println!();
}

fn bars(rows: &[Row]) -> Vec<Bar> {
    let known: Vec<&Row> = rows.iter().filter(|row| row.expected.is_some()).collect();
    let same = known.iter().filter(|row| row.expected == Some(row.races)).count();
    let others: Vec<&str> = known.iter().filter(|row| row.expected != Some(row.races)).map(|row| row.trace.as_str()).collect();
    let explained = others.iter().all(|name| MISCOUNTED.contains(name));
    let name = format!("expected counts that brute force reproduces, but for {}", MISCOUNTED.join(", "));
    let found =
        format!("{same} of {}, others: {}", known.len(), if others.is_empty() { "none".into() } else { others.join(", ") });
    let wrong: usize = rows.iter().map(|row| row.wrong).sum();
    let pairs: usize = rows.iter().map(|row| row.conflicting).sum();
    let locations = rows.iter().filter(|row| row.location_pairs != row.races).count();
    vec![
        Bar::holds(&name, explained, found),
        Bar::holds(
            "pairs of events and pairs of locations are the same number",
            locations == 0,
            format!("{locations} traces differ"),
        ),
        Bar::holds(
            "deciders that brute force contradicts, or whose witness is rejected",
            wrong == 0,
            format!("{wrong} of {pairs} pairs"),
        ),
        Bar::holds(
            "SHB reports nothing that is no race",
            rows.iter().all(|row| row.analyses["SHB"].no_race == 0),
            rows.iter().map(|row| row.analyses["SHB"].no_race).sum::<usize>().to_string(),
        ),
        Bar::holds(
            "every race is a pair of the hybrid analysis, or a later access stands for it",
            rows.iter().all(|row| row.analyses["hybrid"].lost.iter().all(|pair| pair.ends_with("(kept)"))),
            rows.iter()
                .map(|row| row.analyses["hybrid"].lost.iter().filter(|pair| !pair.ends_with("(kept)")).count())
                .sum::<usize>()
                .to_string(),
        ),
    ]
}
