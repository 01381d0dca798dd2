//! Analyses that need all variables at once, with a quarter of the memory that their tables take: the same reports, with the rest
//! on disk.

use super::{peak_megabytes, shapes, write};
use crate::common::bar::{self, Bar};
use crate::common::command_line;
use crate::common::only::Only;
pub use crate::common::options::Selecting as Options;
use crate::common::table::Table;
use anyhow::{Context as _, Result};
use rashomon_engine::serialisability::Regions;
use rashomon_engine::{Kind, LinearResults, Settings, analyse};
use rashomon_packed::{OpenOptions, Shape, Source, TraceError, open};
use serde::Serialize;
use std::path::Path;
use std::time::Instant;

const GROUPS: [(&str, &[Kind]); 4] = [
    ("hb+shb+lockset", &[Kind::Hb, Kind::Shb, Kind::LockSet]),
    ("wcp", &[Kind::Wcp]),
    ("serialisability", &[Kind::Serialisability]),
    ("all of them", &[Kind::Hb, Kind::Shb, Kind::LockSet, Kind::Hybrid, Kind::Wcp, Kind::Serialisability]),
];

/// Megabytes beside tables that are no larger for a larger trace: a part of the trace that is mapped, buffers, reports, and what
/// one block of events may bring into memory before somebody looks.
const BESIDE: f64 = 160.0;

#[derive(Debug, Serialize)]
struct Row {
    trace: &'static str,
    analyses: &'static str,
    /// Of tables, without a bound.
    whole_megabytes: f64,
    allowed_megabytes: f64,
    on_disk_megabytes: f64,
    /// Of the process, beyond what it had before.
    peak_megabytes: f64,
    passes: u32,
    whole_seconds: f64,
    seconds: f64,
    same: bool,
}

#[derive(Debug, Serialize)]
struct Report {
    evaluation: &'static str,
    command: String,
    rows: Vec<Row>,
    bars: Vec<Bar>,
}

fn resident_megabytes() -> Result<f64> {
    let statm = std::fs::read_to_string("/proc/self/statm").context("cannot read the memory of this process")?;
    let pages: f64 = statm.split(' ').nth(1).unwrap_or_default().parse().context("the memory of this process is no number")?;
    Ok(pages * 4096.0 / f64::from(1 << 20))
}

fn timed(path: &Path, kinds: &[Kind], memory: Option<usize>, folder: &Path) -> Result<(LinearResults, f64)> {
    let settings =
        Settings { kinds: kinds.into(), regions: Regions::All, window: None, workers: 1, memory, spill_to: Some(folder.into()) };
    let mut source = || -> Result<Box<dyn Source + Send>, TraceError> { open(path, &OpenOptions::default()) };
    let begun = Instant::now();
    let outcome = analyse(&mut source, &settings, &mut |_| {})?;
    Ok((outcome, begun.elapsed().as_secs_f64()))
}

pub fn run(options: &Options) -> Result<bool> {
    let folder = tempfile::Builder::new().prefix("rashomon-evaluate-").tempdir().context("cannot create a temporary folder")?;
    let path = folder.path().join("trace.packed");
    let events = if options.quick { 300_000 } else { 3_000_000 };
    let megabytes = |bytes: usize| bytes as f64 / f64::from(1 << 20);
    let mut rows = Vec::new();
    let only = Only::of(options.only.as_deref());
    for (trace, shape) in shapes(options.quick) {
        // Tables that fit into a cache need no disk.
        if !trace.contains("wide") || !only.wants(trace) {
            continue;
        }
        write(&Shape { events, ..shape }, &path)?;
        for (analyses, kinds) in GROUPS {
            eprintln!("{trace}: {analyses}");
            let (whole, whole_seconds) = timed(&path, kinds, None, folder.path())?;
            let allowed = whole.bytes / 4;
            let before = resident_megabytes()?;
            peak_megabytes()?;
            let (spilt, seconds) = timed(&path, kinds, Some(allowed), folder.path())?;
            rows.push(Row {
                trace,
                analyses,
                whole_megabytes: megabytes(whole.bytes),
                allowed_megabytes: megabytes(allowed),
                on_disk_megabytes: megabytes(spilt.bytes_on_disk),
                peak_megabytes: peak_megabytes()? - before,
                passes: spilt.passes,
                whole_seconds,
                seconds,
                same: spilt.reports == whole.reports,
            });
        }
    }
    let same = rows.iter().filter(|row| row.same).count();
    let beyond = rows.iter().map(|row| row.peak_megabytes - row.allowed_megabytes).fold(0.0, f64::max);
    only.check()?;
    let bars = vec![
        Bar::holds("every report is that of the whole memory", same == rows.len(), format!("{same} of {}", rows.len())),
        Bar::holds("tables were on disk", rows.iter().all(|row| row.on_disk_megabytes > 0.0), format!("{} rows", rows.len())),
        Bar::at_most("the process's peak beyond what is allowed", beyond, BESIDE, " MB"),
    ];
    let report = Report { evaluation: "memory", command: command_line(), rows, bars };
    bar::finish(&report, &report.bars, options.json, || print(&report))
}

fn print(report: &Report) {
    println!("{}\n", report.command);
    let mut table = Table::new(&[
        "trace",
        "analyses",
        "tables MB",
        "allowed MB",
        "on disk MB",
        "peak MB",
        "passes",
        "s, all in memory",
        "s",
        "same",
    ]);
    for row in &report.rows {
        table.row(vec![
            row.trace.to_owned(),
            row.analyses.to_owned(),
            format!("{:.0}", row.whole_megabytes),
            format!("{:.0}", row.allowed_megabytes),
            format!("{:.0}", row.on_disk_megabytes),
            format!("{:.0}", row.peak_megabytes),
            row.passes.to_string(),
            format!("{:.1}", row.whole_seconds),
            format!("{:.1}", row.seconds),
            if row.same { "yes" } else { "no" }.to_owned(),
        ]);
    }
    table.print();
    println!();
}
