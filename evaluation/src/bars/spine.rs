//! What recording costs: every program of `tests/bench` without instrumentation, under the compiler's ThreadSanitizer, and
//! recorded by us in free and in serial mode, in turns, so that a machine that slows down slows all of them down.

use crate::common::bar::Bar;
use crate::common::bench::{Bench, Report};
use crate::common::measure::{self, Usage, geometric_mean, medians};
pub use crate::common::options::Measuring as Options;
use crate::common::programs::Use;
use crate::common::table::Table;
use crate::common::trace_size::{self, TraceSize};
use anyhow::{Context as _, Result, bail};
use serde::Serialize;
use std::path::Path;
use std::process::Command;

const FREE_TIME_LIMIT: f64 = 1.3;
const BYTES_LIMIT: f64 = 8.0;
/// What recording is to reach.
const FREE_TIME_AIM: f64 = 0.7;
const SERIAL_PROCESSOR_AIM: f64 = 1.0;
const BYTES_AIM: f64 = 2.0;
const RECORDS_AIM: f64 = 20e6;
/// Policy of `rashomon record` for the serial runs: its default.
const SERIAL_POLICY: &str = "random";

#[derive(Debug, Serialize)]
struct ProgramResult {
    name: &'static str,
    kind: &'static str,
    native: Usage,
    sanitizer: Usage,
    free: Usage,
    serial: Usage,
    free_trace: TraceSize,
    serial_trace: TraceSize,
}

pub fn run(options: &Options) -> Result<bool> {
    let said = "native, sanitizer, free, serial";
    Report::of(("spine", Use::Recording), options, said, measure_program, bars_of)?.finish(options.json, print)
}

fn measure_program(bench: &Bench<'_>) -> Result<ProgramResult> {
    let Bench { program, built, arguments, runs, tool, folder } = *bench;
    let (mut native, mut sanitizer, mut free, mut serial) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let (mut free_trace, mut serial_trace) = (None, None);
    for _ in 0..runs {
        native.push(measure::run(Command::new(&built.native).args(arguments))?);
        sanitizer.push(measure::run(Command::new(&built.sanitizer).args(arguments))?);
        let (usage, size) = record(tool, "free", &built.ours, arguments, folder)?;
        free.push(usage);
        free_trace = Some(size);
        let (usage, size) = record(tool, SERIAL_POLICY, &built.ours, arguments, folder)?;
        serial.push(usage);
        serial_trace = Some(size);
    }
    Ok(ProgramResult {
        name: program.name,
        kind: program.kind,
        native: medians(&native),
        sanitizer: medians(&sanitizer),
        free: medians(&free),
        serial: medians(&serial),
        free_trace: free_trace.context("no run")?,
        serial_trace: serial_trace.context("no run")?,
    })
}

/// Records one execution through the tool, so that its own time is part of the measurement.
fn record(tool: &Path, policy: &str, program: &Path, arguments: &[&str], folder: &Path) -> Result<(Usage, TraceSize)> {
    let store = folder.join("store");
    let mut command = Command::new(tool);
    command.args(["--quiet", "record", "--trace-limit", "0", "--timeout", "0", "--policy", policy, "--output"]);
    command.arg(&store).arg("--").arg(program).args(arguments).current_dir(folder);
    let usage = measure::run(&mut command)?;
    let sessions = trace_size::sessions_below(&store)?;
    let [session] = sessions.as_slice() else {
        bail!("{} holds {} recordings instead of one", store.display(), sessions.len());
    };
    let size = trace_size::of(session)?;
    std::fs::remove_dir_all(&store).with_context(|| format!("cannot remove {}", store.display()))?;
    Ok((usage, size))
}

fn bars_of(results: &[ProgramResult]) -> Vec<Bar> {
    let time = geometric_mean(results.iter().map(|result| result.free.wall_seconds / result.sanitizer.wall_seconds));
    // Over all programs, so that one that hardly accesses memory does not decide.
    let overall = |size: fn(&ProgramResult) -> TraceSize| {
        let bytes: u64 = results.iter().map(|result| size(result).stored_bytes).sum();
        let kept: u64 = results.iter().map(|result| size(result).accesses_kept).sum();
        bytes as f64 / kept.max(1) as f64
    };
    let bytes = overall(|result| result.free_trace).max(overall(|result| result.serial_trace));
    let processor = geometric_mean(results.iter().map(|result| result.serial.cpu_seconds / result.sanitizer.cpu_seconds));
    let traces = || results.iter().flat_map(|result| [result.free_trace, result.serial_trace]);
    let seconds: f64 = traces().map(|size| size.read_seconds).sum();
    let speed = traces().map(|size| size.bytes / 8).sum::<u64>() as f64 / seconds.max(1e-9);
    let of_time = "recording in free mode, time against ThreadSanitizer's, geometric mean";
    let of_bytes = "bytes stored per access kept, all programs together, free and serial";
    vec![
        Bar::at_most(of_time, time, FREE_TIME_LIMIT, " ×"),
        Bar::at_most(of_bytes, bytes, BYTES_LIMIT, " bytes"),
        Bar::at_most(of_bytes, bytes, BYTES_AIM, " bytes"),
        Bar::at_least("words of records decompressed and decoded, one core", speed / 1e6, RECORDS_AIM / 1e6, " M/s"),
        Bar::at_most(of_time, time, FREE_TIME_AIM, " ×").stretch(),
        Bar::at_most(
            "recording in serial mode, processor time against ThreadSanitizer's, geometric mean",
            processor,
            SERIAL_PROCESSOR_AIM,
            " ×",
        )
        .stretch(),
    ]
}

type Quantity = fn(&Usage) -> f64;

fn print(report: &Report<ProgramResult>) {
    report.print_head();
    let quantities: [(&str, &str, Quantity); 3] = [
        ("wall time", "s", |usage| usage.wall_seconds),
        ("user and system time", "s", |usage| usage.cpu_seconds),
        ("peak resident memory", "MB", |usage| usage.peak_megabytes),
    ];
    for (title, unit, quantity) in quantities {
        println!("\n{title}, {unit} and ratios");
        print_quantity(&report.programs, quantity);
    }
    println!("\ntrace");
    let titles = ["program", "mode", "MB", "MB stored", "executed", "kept", "sync events", "B/kept", "B/executed"];
    let mut table = Table::new(&titles);
    for result in &report.programs {
        for (mode, size) in [("free", &result.free_trace), ("serial", &result.serial_trace)] {
            table.row(vec![
                result.name.into(),
                mode.into(),
                format!("{:.1}", size.bytes as f64 / 1e6),
                format!("{:.1}", size.stored_bytes as f64 / 1e6),
                size.accesses_executed.to_string(),
                size.accesses_kept.to_string(),
                size.synchronisation_events.to_string(),
                format!("{:.2}", size.per_kept()),
                format!("{:.2}", size.per_executed()),
            ]);
        }
    }
    table.print();
    println!();
}

fn print_quantity(results: &[ProgramResult], quantity: Quantity) {
    let mut table = Table::new(&[
        "program",
        "stresses",
        "native",
        "tsan",
        "free",
        "serial",
        "tsan/nat",
        "free/nat",
        "serial/nat",
        "free/tsan",
        "serial/tsan",
    ]);
    let mut ratios: [Vec<f64>; 5] = Default::default();
    for result in results {
        // The kernel counts in ticks; a time of nothing would make every ratio meaningless.
        let value = |usage: &Usage| quantity(usage).max(0.001);
        let [native, sanitizer, free, serial] = [&result.native, &result.sanitizer, &result.free, &result.serial].map(value);
        let all = [sanitizer / native, free / native, serial / native, free / sanitizer, serial / sanitizer];
        let mut row = vec![result.name.into(), result.kind.into()];
        row.extend([native, sanitizer, free, serial].map(|number| format!("{number:.2}")));
        row.extend(all.map(|ratio| format!("{ratio:.2}")));
        table.row(row);
        for (list, ratio) in ratios.iter_mut().zip(all) {
            list.push(ratio);
        }
    }
    let mut row = vec!["geometric mean".into()];
    row.extend(std::iter::repeat_n(String::new(), 5));
    row.extend(ratios.map(|list| format!("{:.2}", geometric_mean(list))));
    table.row(row);
    table.print();
}
