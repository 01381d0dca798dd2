//! What one operation costs: nanoseconds of each primitive without instrumentation, under clang's ThreadSanitizer, with our
//! detector, and recorded, in turns.

mod contention;

use crate::common::bar::{self, Bar};
use crate::common::command_line;
use crate::common::compile::{self, Built, Compilers};
use crate::common::detector::{Configuration, Detector, Filter};
use crate::common::measure::{geometric_mean, median};
use crate::common::only::Only;
use crate::common::options::Measuring;
use crate::common::programs::Language;
use crate::common::table::Table;
use anyhow::{Context as _, Result, bail, ensure};
use serde::Serialize;
use std::path::Path;
use std::process::{Command, Stdio};
use xtask::workspace::{self, root};

/// Of the slowest primitive, and of all together, against ThreadSanitizer's.
const SLOWEST: f64 = 1.05;
const MEAN: f64 = 0.75;
/// How many primitives there are to be, however often each is measured.
const PRIMITIVES: usize = 24;
/// How long each is measured.
const NANOSECONDS: &str = "20000000";
const QUICK_NANOSECONDS: &str = "100000";

#[derive(Debug, clap::Args)]
pub struct Options {
    #[command(flatten)]
    measuring: Measuring,
    /// Count the cache lines that two threads pass to each other, and model what 64 threads would take, instead (needs the
    /// permission to trace processes).
    #[arg(long)]
    contention: bool,
}

#[derive(Debug, Serialize)]
struct Row {
    primitive: String,
    bytes: u32,
    threads: u32,
    native_nanoseconds: f64,
    sanitizer_nanoseconds: f64,
    detect_nanoseconds: f64,
    record_nanoseconds: f64,
}

#[derive(Debug, Serialize)]
struct Report {
    evaluation: &'static str,
    command: String,
    quick: bool,
    runs: u32,
    processors: usize,
    compilers: Compilers,
    rows: Vec<Row>,
    contention: Vec<contention::Row>,
    bars: Vec<Bar>,
}

/// What the program prints.
fn printed(command: &mut Command) -> Result<String> {
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("cannot start {command:?}"))?;
    if !output.status.success() {
        bail!("{command:?} failed ({})\n{}", output.status, String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn nanoseconds(command: &mut Command) -> Result<f64> {
    let printed = printed(command)?;
    printed.trim().parse().with_context(|| format!("{command:?} printed {printed:?} instead of nanoseconds"))
}

struct Measured<'a> {
    built: &'a Built,
    tool: &'a Path,
    folder: &'a Path,
    line: Vec<&'a str>,
}

impl Measured<'_> {
    fn native(&self) -> Result<f64> {
        nanoseconds(Command::new(&self.built.native).args(&self.line))
    }

    fn sanitizer(&self) -> Result<f64> {
        nanoseconds(Command::new(&self.built.sanitizer).args(&self.line).env_remove("TSAN_OPTIONS"))
    }

    fn detect(&self) -> Result<f64> {
        let configuration = Configuration { detector: Detector::Hb, filter: Filter::None };
        nanoseconds(configuration.apply(Command::new(&self.built.ours).args(&self.line), ""))
    }

    fn record(&self) -> Result<f64> {
        let store = self.folder.join("store");
        let mut command = Command::new(self.tool);
        command.args(["--quiet", "record", "--trace-limit", "0", "--timeout", "0", "--policy", "free", "--output"]);
        let taken = nanoseconds(command.arg(&store).arg("--").arg(&self.built.ours).args(&self.line).current_dir(self.folder));
        std::fs::remove_dir_all(&store).with_context(|| format!("cannot remove {}", store.display()))?;
        taken
    }
}

pub fn run(options: &Options) -> Result<bool> {
    let Options { measuring: options, contention: contended } = options;
    let runs = if options.quick { 1 } else { options.runs };
    let tool = workspace::build_tool()?;
    let compilers = Compilers::find()?;
    let folder = tempfile::Builder::new().prefix("rashomon-evaluate-").tempdir().context("cannot create a temporary folder")?;
    let source = root().join("tests/primitives/primitives.c");
    let built = compile::build_from(&source, ("primitives", Language::C), &compilers, &tool, folder.path())?;
    let only = Only::of(options.only.as_deref());
    let time = if options.quick { QUICK_NANOSECONDS } else { NANOSECONDS };
    let (mut rows, mut contention) = (Vec::new(), Vec::new());
    for (name, bytes) in if *contended { contention::names(&built.native)? } else { Vec::new() } {
        if only.wants(&name) {
            eprintln!("{name}: two threads traced, {runs} × one alone");
            let line = vec![name.as_str(), bytes.as_str()];
            let mut measured = Measured { built: &built, tool: &tool, folder: folder.path(), line };
            contention.push(contention::measure(&mut measured, runs, time)?);
        }
    }
    let lines = if *contended { String::new() } else { printed(&mut Command::new(&built.native))? };
    for line in lines.lines().filter(|line| only.wants(line)) {
        let [primitive, bytes, threads] = line.split(' ').collect::<Vec<_>>()[..] else { bail!("{line:?} names no primitive") };
        eprintln!("{primitive}, {bytes} bytes, {threads} threads: {runs} × native, sanitizer, detect, record");
        let line = vec![primitive, bytes, threads, time];
        let measured = Measured { built: &built, tool: &tool, folder: folder.path(), line };
        let mut taken: [Vec<f64>; 4] = Default::default();
        for _ in 0..runs {
            let once = [measured.native()?, measured.sanitizer()?, measured.detect()?, measured.record()?];
            taken.iter_mut().zip(once).for_each(|(taken, once)| taken.push(once));
        }
        let [native_nanoseconds, sanitizer_nanoseconds, detect_nanoseconds, record_nanoseconds] = taken.map(median);
        rows.push(Row {
            primitive: primitive.into(),
            bytes: bytes.parse().context("bytes are a number")?,
            threads: threads.parse().context("threads are a number")?,
            native_nanoseconds,
            sanitizer_nanoseconds,
            detect_nanoseconds,
            record_nanoseconds,
        });
    }
    only.check()?;
    ensure!(!rows.is_empty() || !contention.is_empty(), "the program names no primitive");
    let bars = if *contended { contention_bars(&contention) } else { bars_of(&rows) };
    let report = Report {
        evaluation: "primitives",
        command: command_line(),
        quick: options.quick,
        runs,
        processors: std::thread::available_parallelism().map_or(1, usize::from),
        compilers,
        rows,
        contention,
        bars,
    };
    bar::finish(&report, &report.bars, options.json, || print(&report))
}

type Ours = fn(&Row) -> f64;

fn ratio(row: &Row, ours: Ours) -> f64 {
    ours(row) / row.sanitizer_nanoseconds.max(0.001)
}

fn bars_of(rows: &[Row]) -> Vec<Bar> {
    let mut names: Vec<&str> = rows.iter().map(|row| row.primitive.as_str()).collect();
    names.dedup();
    let mut bars = vec![Bar::at_least("primitives", names.len() as f64, PRIMITIVES as f64, "")];
    let ways: [(&str, Ours); 2] = [("detection", |row| row.detect_nanoseconds), ("recording", |row| row.record_nanoseconds)];
    for (way, ours) in ways {
        let slowest = rows.iter().map(|row| ratio(row, ours)).fold(0.0, f64::max);
        let mean = geometric_mean(rows.iter().map(|row| ratio(row, ours)));
        bars.push(Bar::at_most(&format!("{way}, the slowest primitive against ThreadSanitizer's"), slowest, SLOWEST, " ×"));
        bars.push(Bar::at_most(&format!("{way} against ThreadSanitizer's, geometric mean"), mean, MEAN, " ×"));
    }
    bars
}

/// Where it should go: no more than ThreadSanitizer where many threads meet.
fn contention_bars(rows: &[contention::Row]) -> Vec<Bar> {
    let [detection, recording] = contention::ratios(rows);
    [("detection", detection), ("recording", recording)]
        .map(|(way, ratio)| {
            Bar::at_most(&format!("{way} by 64 threads, modelled, against ThreadSanitizer's, geometric mean"), ratio, 1.0, " ×")
                .stretch()
        })
        .into()
}

fn print(report: &Report) {
    println!("{}: {} runs, {} processors, {}", report.command, report.runs, report.processors, report.compilers.version);
    if report.quick {
        println!("measured for a moment only: these numbers show that it works, not what it costs");
    }
    if !report.contention.is_empty() {
        return contention::print(&report.contention);
    }
    println!("\nnanoseconds an operation of each thread, and ours against tsan");
    let titles = ["primitive", "bytes", "threads", "native", "tsan", "detect", "record", "detect/tsan", "record/tsan"];
    let mut table = Table::new(&titles);
    for row in &report.rows {
        let mut cells = vec![row.primitive.clone(), row.bytes.to_string(), row.threads.to_string()];
        let taken = [row.native_nanoseconds, row.sanitizer_nanoseconds, row.detect_nanoseconds, row.record_nanoseconds];
        cells.extend(taken.map(|taken| format!("{taken:.1}")));
        cells.push(format!("{:.2}", ratio(row, |row| row.detect_nanoseconds)));
        cells.push(format!("{:.2}", ratio(row, |row| row.record_nanoseconds)));
        table.row(cells);
    }
    table.print();
    println!();
}
