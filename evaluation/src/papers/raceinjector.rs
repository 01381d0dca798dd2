//! RaceInjector's traces (ICSE NIER 2023): a solver put one race into each, so that it exists and a given algorithm misses it.
//! The folder names the algorithm. The two writes of `BUGGY_ADDR` are the race.

use super::imported::{Decided, Deciders, Known, Reports, TITLES, corpus};
use crate::common::bar::{self, Bar};
use crate::common::command_line;
use crate::common::only::Only;
pub use crate::common::options::Reading as Options;
use crate::common::table::Table;
use anyhow::{Result, ensure};
use rashomon_event::{CandidateKind, EventIndex, WitnessLevel};
use rashomon_order::SharedMemory;
use rashomon_packed::Space;
use rashomon_predict::index::Index;
use rashomon_predict::{Options as Prediction, predict_each};
use rashomon_witness::Checker;
use serde::Serialize;
use std::path::PathBuf;
use std::time::Instant;

const VARIABLE: &str = "BUGGY_ADDR";

#[derive(Clone, Debug, Default, Serialize)]
struct Row {
    folder: String,
    traces: usize,
    hb: usize,
    shb: usize,
    wcp: usize,
    lock_sets: usize,
    hybrid: usize,
    sync_preserving: usize,
    sync_reversal: usize,
    exact: usize,
    /// The whole prediction found it, with a causal witness that the checker accepts.
    predicted: usize,
    /// Predictions with a causal witness.
    races: usize,
    rejected: usize,
    events: usize,
    milliseconds: u128,
}

#[derive(Serialize)]
struct Report<'a> {
    command: String,
    rows: &'a [Row],
    bars: &'a [Bar],
}

pub fn run(options: &Options) -> Result<bool> {
    let root = corpus(options.corpora.as_deref(), "raceinjector")?;
    let only = Only::of(options.only.as_deref());
    let mut rows: Vec<Row> = Vec::new();
    for folder in sorted(&root)?.into_iter().filter(|path| path.is_dir()) {
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut row = Row { folder: name, ..Row::default() };
        for program in sorted(&folder)? {
            for path in sorted(&program)? {
                if path.extension().is_some_and(|extension| extension == "std") && only.wants(&path.to_string_lossy()) {
                    add(&mut row, &path)?;
                }
            }
        }
        rows.push(row);
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

fn sorted(folder: &std::path::Path) -> Result<Vec<PathBuf>> {
    let mut paths = std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    paths.sort();
    Ok(paths)
}

fn add(row: &mut Row, path: &std::path::Path) -> Result<()> {
    let known = Known::read(path)?;
    let of = |index: usize| {
        let event = known.events[index];
        event.op.is_access() && known.names.get(Space::Variable, event.target) == VARIABLE
    };
    let injected: Vec<EventIndex> =
        (0..known.events.len()).filter(|&index| of(index)).map(|index| EventIndex(index as u32)).collect();
    let &[first, second] = injected.as_slice() else {
        anyhow::bail!("{}: {} accesses of {VARIABLE} instead of two", path.display(), injected.len());
    };
    let trace = known.trace();
    ensure!(trace.event(first).thread != trace.event(second).thread, "{}: one thread makes both accesses", path.display());
    let linear = known.linear();
    let has = |reports: &Reports| usize::from(reports.pairs.contains(&(first, second)));
    row.traces += 1;
    row.events += known.events.len();
    row.hb += has(&linear.hb);
    row.shb += has(&linear.shb);
    row.wcp += has(&linear.wcp);
    row.lock_sets += usize::from(linear.lock_sets.later.contains(&second));
    row.hybrid += has(&linear.hybrid);
    let memory = SharedMemory::new(trace);
    let index = Index::new(trace, &memory);
    let Decided { sync_preserving, sync_reversal, any, rejected, .. } = Deciders::new(&index, &memory).decide((first, second));
    row.sync_preserving += usize::from(sync_preserving);
    row.sync_reversal += usize::from(sync_reversal);
    row.exact += usize::from(any);
    row.rejected += rejected as usize;
    let checker = Checker::new(trace);
    let mut predictions = Vec::new();
    let start = Instant::now();
    predict_each(trace, &Prediction::default(), |prediction| predictions.push(prediction));
    row.milliseconds += start.elapsed().as_millis();
    for prediction in predictions {
        let Some(witness) = prediction.witness.filter(|witness| witness.level == WitnessLevel::Causal) else { continue };
        row.races += 1;
        if checker.check(&witness) != Ok(WitnessLevel::Causal) {
            row.rejected += 1;
        } else if prediction.candidate.kind == (CandidateKind::Race { first, second }) {
            row.predicted += 1;
        }
    }
    Ok(())
}

fn print(rows: &[Row]) {
    println!("in how many traces the injected race is reported\n");
    let titles = [&["missed by", "traces"], &TITLES[..], &["predicted", "races", "events/trace", "ms/trace"]].concat();
    let mut table = Table::new(&titles);
    for row in rows {
        let counts = [
            row.traces,
            row.hb,
            row.shb,
            row.wcp,
            row.lock_sets,
            row.hybrid,
            row.sync_preserving,
            row.sync_reversal,
            row.exact,
            row.predicted,
            row.races,
        ];
        let mut cells = vec![row.folder.trim_end_matches("_missed").to_owned()];
        cells.extend(counts.map(|count| count.to_string()));
        cells.push((row.events / row.traces.max(1)).to_string());
        cells.push(format!("{:.1}", row.milliseconds as f64 / row.traces.max(1) as f64));
        table.row(cells);
    }
    table.print();
    println!(
        "\npredicted: found by the whole prediction, with a causal witness that the checker \
            accepts; races: all such predictions\n"
    );
}

fn bars(rows: &[Row]) -> Vec<Bar> {
    let sum = |count: fn(&Row) -> usize| rows.iter().map(count).sum::<usize>();
    let traces = sum(|row| row.traces);
    let of = |folder: &str| rows.iter().find(|row| row.folder == folder).cloned().unwrap_or_default();
    let (wcp, preserving) = (of("wcp_missed"), of("syncp_missed"));
    let others = traces - preserving.traces;
    vec![
        Bar::holds(
            "the injected race is predicted with a checked witness",
            traces > 0 && sum(|row| row.predicted) == traces,
            format!("{} of {traces}", sum(|row| row.predicted)),
        ),
        Bar::holds("witnesses that the checker rejects", sum(|row| row.rejected) == 0, sum(|row| row.rejected).to_string()),
        Bar::holds("HB reports it in no trace", sum(|row| row.hb) == 0, format!("{} of {traces}", sum(|row| row.hb))),
        Bar::holds("SHB reports it in no trace", sum(|row| row.shb) == 0, format!("{} of {traces}", sum(|row| row.shb))),
        Bar::holds(
            "WCP misses all of what WCP is proven to miss",
            wcp.traces > 0 && wcp.wcp == 0,
            format!("reported in {} of {}", wcp.wcp, wcp.traces),
        ),
        Bar::holds(
            "sync-preserving prediction misses all of what it is proven to miss",
            preserving.traces > 0 && preserving.sync_preserving == 0,
            format!(
                "found in {} of {}, and in {} of the other {others}",
                preserving.sync_preserving,
                preserving.traces,
                sum(|row| row.sync_preserving) - preserving.sync_preserving
            ),
        ),
    ]
}
