//! What it takes in memory to analyse a large recording and to predict from it: a program of accesses that no recorder can leave
//! out, recorded serially, and `rashomon predict` on the recording.
//!
//! What is fair. Nothing is given but the recording. Memory is the process's largest resident set, as the kernel accounts for it;
//! pages of the recording that are mapped count where they are resident.

use crate::common::bar::{self, Bar};
use crate::common::command_line;
use crate::common::compile::succeed;
use crate::common::measure;
use crate::common::only::Only;
use crate::common::options::Selecting;
use crate::common::table::Table;
use crate::common::trace_size;
use anyhow::{Context as _, Result, bail};
use serde::Serialize;
use std::path::Path;
use std::process::Command;
use xtask::workspace::{self, root};

/// Rounds of `tests/scale/events.c`, in each of which each of its threads makes so many accesses.
struct Size {
    name: &'static str,
    rounds: u32,
    least_events: u64,
    most_megabytes: f64,
}

const SIZES: [Size; 2] = [
    Size { name: "30 million", rounds: 60_000, least_events: 30_000_000, most_megabytes: 600.0 },
    Size { name: "100 million", rounds: 200_000, least_events: 100_000_000, most_megabytes: 4_096.0 },
];
/// In their place, to see that everything works.
const QUICK_ROUNDS: u32 = 2_000;
/// Seconds of search for other schedules.
const SEARCH: &str = "60";

#[derive(Debug, clap::Args)]
pub struct Options {
    #[command(flatten)]
    selecting: Selecting,
}

#[derive(Debug, Serialize)]
struct Row {
    size: &'static str,
    events: u64,
    recorded_megabytes: f64,
    seconds: f64,
    peak_megabytes: f64,
    bytes_an_event: f64,
}

#[derive(Debug, Serialize)]
struct Report {
    evaluation: &'static str,
    command: String,
    rows: Vec<Row>,
    bars: Vec<Bar>,
}

pub fn run(options: &Options) -> Result<bool> {
    let tool = workspace::build_tool()?;
    let folder = tempfile::tempdir().context("cannot create a temporary folder")?;
    let only = Only::of(options.selecting.only.as_deref());
    let (mut rows, mut bars) = (Vec::new(), Vec::new());
    for size in SIZES.iter().filter(|size| only.wants(size.name)) {
        let rounds = if options.selecting.quick { QUICK_ROUNDS } else { size.rounds };
        let row = measure_one(size.name, rounds, &tool, folder.path())?;
        if !options.selecting.quick {
            let is_large = row.events >= size.least_events;
            bars.push(Bar::holds(&format!("{}: as large as that", size.name), is_large, format!("{} events", row.events)));
            bars.push(Bar::at_most(&format!("{}: peak memory", size.name), row.peak_megabytes, size.most_megabytes, " MB"));
        }
        rows.push(row);
    }
    only.check()?;
    let report = Report { evaluation: "memory-of-check", command: command_line(), rows, bars };
    bar::finish(&report, &report.bars, options.selecting.json, || print(&report))
}

fn measure_one(size: &'static str, rounds: u32, tool: &Path, folder: &Path) -> Result<Row> {
    let (binary, store) = (folder.join("events"), folder.join("store"));
    let source = root().join("tests/scale/events.c");
    let define = format!("-DROUNDS={rounds}");
    succeed(Command::new(tool).args(["cc", "-g", "-O1", "-pthread", &define]).arg(source).arg("-o").arg(&binary))?;
    eprintln!("{size}: recording");
    succeed(Command::new(tool).args(["record", "--trace-limit", "0", "--output"]).arg(&store).arg("--").arg(&binary))?;
    let sessions = trace_size::sessions_below(&store)?;
    let [session] = sessions.as_slice() else { bail!("{} holds {} recordings, not one", store.display(), sessions.len()) };
    let recorded = trace_size::of(session)?;
    eprintln!("{size}: predicting");
    let usage = measure::run(Command::new(tool).args(["--quiet", "predict", "--predict-within", SEARCH]).arg(&store))?;
    std::fs::remove_dir_all(&store).with_context(|| format!("cannot remove {}", store.display()))?;
    let events = recorded.accesses_kept + recorded.synchronisation_events;
    Ok(Row {
        size,
        events,
        recorded_megabytes: recorded.stored_bytes as f64 / f64::from(1 << 20),
        seconds: usage.wall_seconds,
        peak_megabytes: usage.peak_megabytes,
        bytes_an_event: usage.peak_megabytes * f64::from(1 << 20) / events.max(1) as f64,
    })
}

fn print(report: &Report) {
    println!("{}\n", report.command);
    let mut table = Table::new(&["events", "counted", "recording MB", "seconds", "peak MB", "bytes an event"]);
    for row in &report.rows {
        table.row(vec![
            row.size.into(),
            row.events.to_string(),
            format!("{:.0}", row.recorded_megabytes),
            format!("{:.1}", row.seconds),
            format!("{:.0}", row.peak_megabytes),
            format!("{:.0}", row.bytes_an_event),
        ]);
    }
    table.print();
    println!();
}
