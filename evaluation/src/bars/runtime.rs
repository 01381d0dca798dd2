//! What online detection costs: the programs of `tests/bench` without instrumentation, under clang's ThreadSanitizer, and with
//! our runtime under each detector with and without the filter, in turns.

use crate::common::bar::{self, Bar};
use crate::common::command_line;
use crate::common::compile::{self, Built, Compilers};
use crate::common::detector::{self, Configuration, Detector, Filter, SILENT, Statistics};
use crate::common::measure::{self, Usage, geometric_mean, medians};
use crate::common::programs::{self, BenchProgram, Use};
use crate::common::table::Table;
use anyhow::{Context as _, Result};
use serde::Serialize;
use std::process::Command;
use xtask::workspace;

const TIME_LIMIT: f64 = 1.5;
const MEMORY_LIMIT: f64 = 1.0;
const TIME_GOAL: f64 = 0.8;
const MEMORY_GOAL: f64 = 0.7;

#[derive(Debug, Serialize)]
struct Detecting {
    #[serde(flatten)]
    configuration: Configuration,
    usage: Usage,
    statistics: Statistics,
}

#[derive(Debug, Serialize)]
struct ProgramResult {
    name: &'static str,
    kind: &'static str,
    native: Usage,
    sanitizer: Usage,
    ours: Vec<Detecting>,
}

#[derive(Debug, Serialize)]
struct Report {
    evaluation: &'static str,
    command: String,
    quick: bool,
    runs: u32,
    processors: usize,
    compilers: Compilers,
    programs: Vec<ProgramResult>,
    bars: Vec<Bar>,
}

#[derive(Debug, clap::Args)]
pub struct Options {
    /// Runs of each configuration, of which the medians are taken.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub runs: u32,
    /// Only programs whose name contains this.
    #[arg(long, visible_aliases = ["filter", "program"])]
    pub only: Option<String>,
    /// One run on small inputs: shows that everything works, measures nothing.
    #[arg(long)]
    pub quick: bool,
    /// Machine-readable output.
    #[arg(long)]
    pub json: bool,
}

pub fn run(options: &Options) -> Result<bool> {
    let chosen = programs::chosen(Some(Use::Detecting), options.only.as_deref())?;
    let runs = if options.quick { 1 } else { options.runs };
    let tool = workspace::build_tool()?;
    let compilers = Compilers::find()?;
    let folder = tempfile::Builder::new().prefix("rashomon-evaluate-").tempdir().context("cannot create a temporary folder")?;
    let mut results = Vec::new();
    for program in chosen {
        eprintln!("{}: {runs} × native, sanitizer, {} of ours", program.name, Configuration::all().count());
        let built = compile::build(program, &compilers, &tool, folder.path())?;
        results.push(measure_program(program, &built, if options.quick { program.small } else { &[] }, runs)?);
    }
    let bars = bars_of(&results);
    let report = Report {
        evaluation: "runtime",
        command: command_line(),
        quick: options.quick,
        runs,
        processors: std::thread::available_parallelism().map_or(1, usize::from),
        compilers,
        programs: results,
        bars,
    };
    if options.json {
        println!("{}", serde_json::to_string_pretty(&report)?);
        return Ok(bar::all_met(&report.bars));
    }
    print(&report);
    Ok(bar::print(&report.bars))
}

fn measure_program(program: &BenchProgram, built: &Built, arguments: &[&str], runs: u32) -> Result<ProgramResult> {
    let (mut native, mut sanitizer) = (Vec::new(), Vec::new());
    let mut ours: Vec<(Configuration, Vec<Usage>)> = Configuration::all().map(|one| (one, Vec::new())).collect();
    for _ in 0..runs {
        native.push(measure::run(Command::new(&built.native).args(arguments))?);
        sanitizer.push(measure::run(Command::new(&built.sanitizer).args(arguments).env_remove("TSAN_OPTIONS"))?);
        for (configuration, usages) in &mut ours {
            usages.push(detector::run(*configuration, &built.ours, arguments, more(*configuration))?);
        }
    }
    let ours = ours.into_iter().map(|(configuration, usages)| {
        let statistics = detector::count(configuration, &built.ours, arguments, more(configuration))?;
        Ok(Detecting { configuration, usage: medians(&usages), statistics })
    });
    Ok(ProgramResult {
        name: program.name,
        kind: program.kind,
        native: medians(&native),
        sanitizer: medians(&sanitizer),
        ours: ours.collect::<Result<_>>()?,
    })
}

/// The programs are free of races, and a report of the happens-before detector is a failure. The others know no order by locks:
/// data that is handed over through a queue is a warning of theirs.
fn more(configuration: Configuration) -> &'static str {
    if configuration.detector == Detector::Hb { "" } else { SILENT }
}

type Quantity = fn(&Usage) -> f64;

/// The kernel counts in ticks; a time of nothing would make every ratio meaningless.
fn value(usage: &Usage, quantity: Quantity) -> f64 {
    quantity(usage).max(0.001)
}

/// Geometric mean of ours over ThreadSanitizer's.
fn against_sanitizer(results: &[ProgramResult], configuration: Configuration, quantity: Quantity) -> f64 {
    geometric_mean(results.iter().flat_map(|result| {
        let ours = result.ours.iter().filter(move |one| one.configuration == configuration);
        ours.map(|one| value(&one.usage, quantity) / value(&result.sanitizer, quantity))
    }))
}

fn bars_of(results: &[ProgramResult]) -> Vec<Bar> {
    let wall = |configuration| against_sanitizer(results, configuration, |usage| usage.wall_seconds);
    let memory = |configuration| against_sanitizer(results, configuration, |usage| usage.peak_megabytes);
    let [off, on] = Filter::ALL.map(|filter| Configuration { detector: Detector::Hb, filter });
    // One configuration has to meet both, as a user runs one.
    let better = if wall(on) < wall(off) { on } else { off };
    let name = |what: &str, configuration: Configuration| {
        format!("detection with {}, {what} against ThreadSanitizer's, geometric mean", configuration.title())
    };
    vec![
        Bar::at_most(&name("time", better), wall(better), TIME_LIMIT, " ×"),
        Bar::at_most(&name("memory", better), memory(better), MEMORY_LIMIT, " ×"),
        Bar::at_most(&name("time", on), wall(on), TIME_GOAL, " ×").stretch(),
        Bar::at_most(&name("memory", on), memory(on), MEMORY_GOAL, " ×").stretch(),
    ]
}

fn print(report: &Report) {
    println!("{}: {} runs, {} processors, {}", report.command, report.runs, report.processors, report.compilers.version);
    if report.quick {
        println!("inputs are small: these numbers show that it works, not what it costs");
    }
    let quantities: [(&str, Quantity); 3] = [
        ("wall time, s, and ours against tsan", |usage| usage.wall_seconds),
        ("user and system time, s, and ours against tsan", |usage| usage.cpu_seconds),
        ("peak resident memory, MB, and ours against tsan", |usage| usage.peak_megabytes),
    ];
    for (title, quantity) in quantities {
        println!("\n{title}");
        print_quantity(&report.programs, quantity);
    }
    println!("\naccesses, of one execution each");
    let mut table = Table::new(&[
        "program",
        "detector",
        "executed",
        "checked",
        "skipped",
        "% skipped",
        "same thread",
        "two threads",
        "by hooks anyway",
    ]);
    for result in &report.programs {
        for one in &result.ours {
            let statistics = &one.statistics;
            let mut row = vec![result.name.to_owned(), one.configuration.title()];
            row.push(statistics.executed().to_string());
            row.push(statistics.get("accesses_checked").to_string());
            row.push(statistics.skipped().to_string());
            row.push(format!("{:.1}", statistics.skipped_percent()));
            row.extend(Statistics::REASONS.map(|name| statistics.get(name).to_string()));
            row.push(statistics.recognised().to_string());
            table.row(row);
        }
    }
    table.print();
    println!();
}

fn print_quantity(results: &[ProgramResult], quantity: Quantity) {
    let mut titles: Vec<String> = ["program", "stresses", "native", "tsan"].map(str::to_owned).into();
    titles.extend(Configuration::all().map(Configuration::title));
    titles.push("tsan/nat".into());
    titles.extend(Configuration::all().map(|configuration| format!("{}/tsan", configuration.title())));
    let mut table = Table::new(&titles.iter().map(String::as_str).collect::<Vec<_>>());
    for result in results {
        let (native, sanitizer) = (value(&result.native, quantity), value(&result.sanitizer, quantity));
        let ours: Vec<f64> = result.ours.iter().map(|one| value(&one.usage, quantity)).collect();
        let mut row = vec![result.name.to_owned(), result.kind.to_owned(), format!("{native:.2}"), format!("{sanitizer:.2}")];
        row.extend(ours.iter().map(|one| format!("{one:.2}")));
        row.push(format!("{:.2}", sanitizer / native));
        row.extend(ours.iter().map(|one| format!("{:.2}", one / sanitizer)));
        table.row(row);
    }
    let mut row = vec!["geometric mean".to_owned()];
    row.extend(std::iter::repeat_n(String::new(), 3 + Configuration::all().count()));
    let slowdown = results.iter().map(|result| value(&result.sanitizer, quantity) / value(&result.native, quantity));
    row.push(format!("{:.2}", geometric_mean(slowdown)));
    row.extend(Configuration::all().map(|configuration| format!("{:.2}", against_sanitizer(results, configuration, quantity))));
    table.row(row);
    table.print();
}
