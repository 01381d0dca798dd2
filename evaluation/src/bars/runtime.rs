//! What online detection costs: the programs of `tests/bench` without instrumentation, under clang's ThreadSanitizer, and with
//! our runtime under each detector with and without the filter, in turns.

use crate::common::bar::Bar;
use crate::common::bench::{Bench, Report};
use crate::common::detector::{self, Configuration, Detector, Filter, SILENT, Statistics};
use crate::common::measure::{self, Usage, geometric_mean, medians};
pub use crate::common::options::Measuring as Options;
use crate::common::programs::Use;
use crate::common::table::Table;
use anyhow::Result;
use serde::Serialize;
use std::process::Command;

const TIME_LIMIT: f64 = 1.5;
const MEMORY_LIMIT: f64 = 1.0;
const TIME_GOAL: f64 = 0.8;
/// Of the slowest program, against ThreadSanitizer's.
const SLOWEST: f64 = 1.1;
/// Of the filter, against detection without it.
const FILTERED: f64 = 1.0;
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

impl ProgramResult {
    fn of(&self, configuration: Configuration) -> Option<&Usage> {
        self.ours.iter().find(|one| one.configuration == configuration).map(|one| &one.usage)
    }
}

pub fn run(options: &Options) -> Result<bool> {
    let said = format!("native, sanitizer, {} of ours", Configuration::all().count());
    Report::of(("runtime", Use::Detecting), options, &said, measure_program, bars_of)?.finish(options.json, print)
}

fn measure_program(bench: &Bench<'_>) -> Result<ProgramResult> {
    let Bench { program, built, arguments, runs, .. } = *bench;
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
    let ratios = |over: fn(&ProgramResult) -> Option<&Usage>, configuration: Configuration| -> Vec<f64> {
        let pairs = results.iter().filter_map(|result| Some((result.of(configuration)?, over(result)?)));
        pairs.map(|(ours, theirs)| value(ours, |usage| usage.wall_seconds) / value(theirs, |usage| usage.wall_seconds)).collect()
    };
    let slowest = ratios(|result| Some(&result.sanitizer), better).into_iter().fold(0.0, f64::max);
    let filtered = ratios(|result| result.of(Configuration { detector: Detector::Hb, filter: Filter::None }), on);
    let filter = "detection with the filter against without it";
    vec![
        Bar::at_most(&name("time", better), wall(better), TIME_LIMIT, " ×"),
        Bar::at_most(&name("memory", better), memory(better), MEMORY_LIMIT, " ×"),
        Bar::at_most(&name("time", better), wall(better), TIME_GOAL, " ×"),
        Bar::at_most(
            &format!("detection with {}, the slowest program against ThreadSanitizer's", better.title()),
            slowest,
            SLOWEST,
            " ×",
        ),
        Bar::at_most(&format!("{filter}, the slowest program"), filtered.iter().copied().fold(0.0, f64::max), FILTERED, " ×"),
        Bar::at_most(&format!("{filter}, geometric mean"), geometric_mean(filtered), FILTERED, " ×"),
        Bar::at_most(&name("time", on), wall(on), TIME_GOAL, " ×").stretch(),
        Bar::at_most(&name("memory", on), memory(on), MEMORY_GOAL, " ×").stretch(),
    ]
}

fn print(report: &Report<ProgramResult>) {
    report.print_head();
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
