//! What deep recording costs: programs of `tests/bench` natively, under ThreadSanitizer and Helgrind, and recorded with the
//! ways of control, in turns; and how fast such a recording is judged.

use super::Options;
use crate::common::bar::Bar;
use crate::common::compile::{self, Compilers, succeed};
use crate::common::measure::{self, Usage, medians};
use crate::common::programs::{self, Language, Use};
use crate::common::table::Table;
use anyhow::{Context as _, Result};
use rashomon_event::{Deadline, EventIndex};
use rashomon_flow::{Tables, feed};
use rashomon_units::{Analysis, Event};
use serde::Serialize;
use std::cell::Cell;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;
use xtask::workspace::root;

const RUNS: usize = 3;
const MEMORY_BOUND: &str = "matmul";

#[derive(Debug, Serialize)]
pub struct Row {
    name: &'static str,
    native: Usage,
    sanitizer: Usage,
    /// `None`: not installed.
    helgrind: Option<Usage>,
    /// `rashomon record --dependences`, the tool included.
    deep: Usage,
    /// Steps of the recording, and millions of them in a second of one pass of the analysis; and of the walk that tells them,
    /// with the analysis.
    steps: u64,
    analysis: f64,
    with_walk: f64,
}

pub fn run(options: &Options, tool: &Path, compilers: &Compilers, folder: &Path) -> Result<Vec<Row>> {
    let has_helgrind = Command::new("valgrind").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    let has_helgrind = has_helgrind.is_ok_and(|status| status.success());
    let mut rows = Vec::new();
    for program in programs::chosen(Some(Use::Recording), None)? {
        if options.only.as_ref().is_some_and(|part| !program.name.contains(part)) {
            continue;
        }
        eprintln!("{}: native, ThreadSanitizer, Helgrind, deep", program.name);
        let built = compile::build(program, compilers, tool, folder)?;
        let deep = folder.join(format!("{}.deep", program.file_name()));
        let wrapper = if program.language == Language::C { "cc" } else { "c++" };
        let source = root().join("tests/bench").join(program.source());
        let mut command = Command::new(tool);
        command.args([wrapper, "--deep", "-O2", "-g", "-pthread"]).arg(&source).arg("-o").arg(&deep).arg("-lm");
        succeed(&mut command)?;
        // As in `spine`: the start of the tool does not count for much.
        let arguments = if options.quick { program.small } else { &[] };
        let (mut native, mut sanitizer, mut helgrind, mut recorded) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let store = folder.join("deep-store");
        let record = |store: &Path| {
            let mut command = Command::new(tool);
            command.args(["--quiet", "record", "--dependences", "--trace-limit", "0", "--timeout", "0", "--output"]).arg(store);
            command
        };
        for run in 0..if options.quick { 1 } else { RUNS } {
            native.push(measure::run(Command::new(&built.native).args(arguments))?);
            sanitizer.push(measure::run(Command::new(&built.sanitizer).args(arguments))?);
            if has_helgrind && run == 0 {
                let mut command = Command::new("valgrind");
                helgrind.push(measure::run(command.args(["--tool=helgrind", "--quiet"]).arg(&built.native).args(arguments))?);
            }
            if store.exists() {
                std::fs::remove_dir_all(&store).with_context(|| format!("cannot remove {}", store.display()))?;
            }
            recorded.push(measure::run(record(&store).arg("--").arg(&deep).args(arguments))?);
        }
        // All of a recording has to fit into memory to be judged.
        std::fs::remove_dir_all(&store).with_context(|| format!("cannot remove {}", store.display()))?;
        measure::run(record(&store).arg("--").arg(&deep).args(program.small))?;
        let (steps, analysis, with_walk) = judge(&store)?;
        rows.push(Row {
            name: program.name,
            native: medians(&native),
            sanitizer: medians(&sanitizer),
            helgrind: (!helgrind.is_empty()).then(|| medians(&helgrind)),
            deep: medians(&recorded),
            steps,
            analysis,
            with_walk,
        });
    }
    Ok(rows)
}

/// How many steps, and millions of them in a second: of the analysis alone, and with the walk. Of each the fastest of three, as
/// what others take of the processor is nobody's speed.
fn judge(store: &Path) -> Result<(u64, f64, f64)> {
    let sessions = crate::common::trace_size::sessions_below(store)?;
    let session = sessions.first().with_context(|| format!("{} holds no recording", store.display()))?;
    let loaded = rashomon_trace::Recording::open(session)?.load()?;
    let mut tables = Tables::default();
    let at = Cell::new(EventIndex(0));
    let mut steps = 0u64;
    let mut walk = |mut analysis: Option<Analysis>| {
        steps = 0;
        let begin = Instant::now();
        let walked = feed(&loaded, &mut tables, Deadline::NEVER, &at, &mut |thread, line, step| {
            steps += 1;
            if let Some(analysis) = &mut analysis {
                analysis.event(&Event { thread, line, step });
            }
        });
        walked.map(|_| begin.elapsed().as_secs_f64()).context("the recording could not be walked through")
    };
    let (mut alone, mut both) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..RUNS {
        alone = alone.min(walk(None)?);
        both = both.min(walk(Some(Analysis::new(rashomon_units::Options::default())))?);
    }
    let millions = steps as f64 / 1e6;
    Ok((steps, millions / (both - alone).max(1e-9), millions / both.max(1e-9)))
}

pub fn bars(rows: &[Row]) -> Vec<Bar> {
    let mut bars = Vec::new();
    if let Some(row) = rows.iter().find(|row| row.name == MEMORY_BOUND) {
        let ratio = row.deep.cpu_seconds / row.native.cpu_seconds.max(0.001);
        bars.push(Bar::at_most("deep recording of the memory-bound program, processor time against native", ratio, 6.0, " ×"));
    }
    let slowest = rows.iter().map(|row| row.analysis).fold(f64::INFINITY, f64::min);
    if slowest.is_finite() {
        let found = format!("{slowest:.1} M events/s at least");
        bars.push(Bar::holds("the analysis takes 10 M events/s", slowest >= 10.0, found));
    }
    bars
}

pub fn print(rows: &[Row]) {
    let mut table = Table::new(&[
        "program",
        "native s",
        "tsan/nat",
        "helgrind/nat",
        "deep/nat",
        "native MB",
        "tsan MB",
        "helgrind MB",
        "deep MB",
        "M steps",
        "analysis M/s",
        "with walk M/s",
    ]);
    for row in rows {
        let ratio = |usage: &Usage| format!("{:.1}", usage.cpu_seconds / row.native.cpu_seconds.max(0.001));
        let megabytes = |usage: &Usage| format!("{:.0}", usage.peak_megabytes);
        let of = |usage: Option<&Usage>, words: &dyn Fn(&Usage) -> String| usage.map_or_else(|| "not installed".into(), words);
        table.row(vec![
            row.name.to_owned(),
            format!("{:.2}", row.native.cpu_seconds),
            ratio(&row.sanitizer),
            of(row.helgrind.as_ref(), &ratio),
            ratio(&row.deep),
            megabytes(&row.native),
            megabytes(&row.sanitizer),
            of(row.helgrind.as_ref(), &megabytes),
            megabytes(&row.deep),
            format!("{:.2}", row.steps as f64 / 1e6),
            format!("{:.1}", row.analysis),
            format!("{:.1}", row.with_walk),
        ]);
    }
    table.print();
}
