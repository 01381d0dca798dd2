//! What the TREE filter is good for: the counterparts of Table 5.1 and of Figures 5.1 to 5.3 of Rajagopalan's thesis (2016), with
//! our happens-before detector in place of FastTrack, and the promise that the filter loses no race.
//!
//! The thesis measures Java programs under RoadRunner on four threads. Table 5.1 gives for each the share of events skipped, the
//! additional memory, and the percentage by which the time improves; Figure 5.2 plots time, memory and share for a
//! micro-benchmark (Figure 5.1) over threads, iterations and locks; Figure 5.3 is the one that hurts.
//!
//! Deviations: (1) the share is of accesses, not of events, since only accesses are ever skipped; (2) an improvement of s percent
//! is a time that is s percent shorter, which the thesis leaves open; (3) what is plotted for Figure 5.3 the thesis only
//! describes.

mod textbook;

use crate::common::bar::{self, Bar};
use crate::common::command_line;
use crate::common::compile::{self, Built, Compilers};
use crate::common::detector::{self, Configuration, Detector, Filter, SILENT, Statistics};
use crate::common::measure::{Usage, medians};
pub use crate::common::options::Measuring as Options;
use crate::common::plot::{self, Panel};
use crate::common::programs::{self, BenchProgram};
use crate::common::races::{Missing, Observed, Pair, missing, observe};
use crate::common::suite::{self, Program, Suite};
use crate::common::table::Table;
use anyhow::{Context as _, Result, bail};
use serde::Serialize;
use std::path::{Path, PathBuf};
use xtask::workspace;

/// How many times as often as without the filter executions with it may be repeated to see the same races.
const MORE: u32 = 10;
/// Of the micro-benchmarks, while another parameter varies: threads, iterations, locks.
const USUAL: [u32; 3] = [8, 10_000, 4];
const PARAMETERS: [&str; 3] = ["threads", "iterations", "locks"];
const VALUES: [&[u32]; 3] =
    [&[1, 2, 4, 8, 16, 32, 64], &[100, 300, 1000, 3000, 10_000, 30_000, 100_000], &[1, 2, 4, 8, 16, 32, 64]];
const OFF: Configuration = Configuration { detector: Detector::Hb, filter: Filter::None };
const ON: Configuration = Configuration { detector: Detector::Hb, filter: Filter::Tree };

#[derive(Debug, Serialize)]
struct Comparison {
    off: Usage,
    on: Usage,
    statistics: Statistics,
}

impl Comparison {
    fn measure(built: &Built, arguments: &[&str], runs: u32) -> Result<Self> {
        let (mut off, mut on) = (Vec::new(), Vec::new());
        for _ in 0..runs {
            off.push(detector::run(OFF, &built.ours, arguments, SILENT)?);
            on.push(detector::run(ON, &built.ours, arguments, SILENT)?);
        }
        Ok(Self { off: medians(&off), on: medians(&on), statistics: detector::count(ON, &built.ours, arguments, SILENT)? })
    }

    fn more_megabytes(&self) -> f64 {
        self.on.peak_megabytes - self.off.peak_megabytes
    }

    /// By how much the filter shortens the time.
    fn speed_up(&self, quantity: fn(&Usage) -> f64) -> f64 {
        100.0 * (1.0 - quantity(&self.on) / quantity(&self.off).max(0.001))
    }
}

#[derive(Debug, Serialize)]
struct Row {
    name: &'static str,
    thesis: &'static str,
    #[serde(flatten)]
    comparison: Comparison,
}

#[derive(Debug, Serialize)]
struct Point {
    program: &'static str,
    varied: &'static str,
    value: u32,
    #[serde(flatten)]
    comparison: Comparison,
}

#[derive(Debug, Serialize)]
struct Races {
    path: String,
    detector: Detector,
    runs: [u32; 2],
    off: Vec<Pair>,
    on: Vec<Pair>,
    lost: Vec<Pair>,
    /// Seen without the filter only, and too seldom to be compared.
    seldom: Vec<Pair>,
}

#[derive(Debug, Serialize)]
struct Report {
    evaluation: &'static str,
    command: String,
    quick: bool,
    runs: u32,
    processors: usize,
    compilers: Compilers,
    table: Vec<Row>,
    textbook: Vec<textbook::Row>,
    points: Vec<Point>,
    figures: Vec<PathBuf>,
    races: Vec<Races>,
    bars: Vec<Bar>,
}

/// `--only` chooses a part by its name, or programs by theirs.
fn parts(only: Option<&str>) -> ([bool; 3], Option<&str>) {
    match only {
        None => ([true; 3], None),
        Some("table") => ([true, false, false], None),
        Some("figures") => ([false, true, false], None),
        Some("races") => ([false, false, true], None),
        name => ([true, false, true], name),
    }
}

pub fn run(options: &Options) -> Result<bool> {
    let ([with_table, with_figures, with_races], part) = parts(options.only.as_deref());
    let runs = if options.quick { 1 } else { options.runs };
    let tool = workspace::build_tool()?;
    let compilers = Compilers::find()?;
    let folder = tempfile::Builder::new().prefix("rashomon-evaluate-").tempdir().context("cannot create a temporary folder")?;
    let (mut table, mut textbook) = (Vec::new(), Vec::new());
    // A name may be one of the suite's programs only.
    let benches = if with_table { programs::chosen(None, part).unwrap_or_default() } else { Vec::new() };
    for program in benches {
        eprintln!("{}: {runs} × filter off, on", program.name);
        let built = compile::build(program, &compilers, &tool, folder.path())?;
        let comparison = Comparison::measure(&built, if options.quick { program.small } else { &[] }, runs)?;
        table.push(Row { name: program.name, thesis: program.thesis, comparison });
        textbook.push(textbook::measure(program, &built, &tool, folder.path(), runs)?);
    }
    let (mut points, mut figures) = (Vec::new(), Vec::new());
    if with_figures {
        let target = workspace::target()?.join("evaluate/tree");
        std::fs::create_dir_all(&target).with_context(|| format!("cannot create {}", target.display()))?;
        for program in [&programs::FAVOURING, &programs::HURTING] {
            let built = compile::build(program, &compilers, &tool, folder.path())?;
            let from = points.len();
            sweep(program, &built, runs, options.quick, &mut points)?;
            figures.push(draw(program, &points[from..], &target)?);
        }
    }
    let races = if with_races { races_of(tool, &compilers, part, runs)? } else { Vec::new() };
    if table.is_empty() && points.is_empty() && races.is_empty() {
        bail!("no program with that in its name; they are in tests/bench, and racy ones below tests/programs");
    }
    let mut bars = bars_of(&races);
    bars.extend(textbook_bar(&textbook));
    let report = Report {
        evaluation: "tree",
        command: command_line(),
        quick: options.quick,
        runs,
        processors: std::thread::available_parallelism().map_or(1, usize::from),
        compilers,
        table,
        textbook,
        points,
        figures,
        races,
        bars,
    };
    if options.json {
        println!("{}", serde_json::to_string_pretty(&report)?);
        return Ok(bar::all_met(&report.bars));
    }
    print(&report);
    Ok(bar::print(&report.bars))
}

fn sweep(program: &BenchProgram, built: &Built, runs: u32, quick: bool, points: &mut Vec<Point>) -> Result<()> {
    for (parameter, varied) in PARAMETERS.into_iter().enumerate() {
        eprintln!("{} over {varied}", program.name);
        for &value in VALUES[parameter].iter().take(if quick { 3 } else { usize::MAX }) {
            let mut values = if quick { [2, 100, 2] } else { USUAL };
            values[parameter] = value;
            let texts = values.map(|value| value.to_string());
            let arguments = texts.each_ref().map(String::as_str);
            let comparison = Comparison::measure(built, &arguments, runs)?;
            points.push(Point { program: program.name, varied, value, comparison });
        }
    }
    Ok(())
}

/// A row of panels for each parameter, as in Figure 5.2: time, memory, share skipped; and the speed-up.
fn draw(program: &BenchProgram, points: &[Point], folder: &Path) -> Result<PathBuf> {
    let rows: Vec<Vec<Panel>> = PARAMETERS
        .into_iter()
        .map(|varied| {
            let of_parameter = || points.iter().filter(move |point| point.varied == varied);
            let line = |name: &str, quantity: &dyn Fn(&Comparison) -> f64| {
                (name.to_owned(), of_parameter().map(|point| quantity(&point.comparison)).collect())
            };
            let ticks: Vec<u32> = of_parameter().map(|point| point.value).collect();
            let panel = |y, lines| Panel { x: varied, y, ticks: ticks.clone(), lines };
            vec![
                panel(
                    "seconds",
                    vec![line("filter off", &|one| one.off.wall_seconds), line("filter on", &|one| one.on.wall_seconds)],
                ),
                panel(
                    "MB",
                    vec![line("filter off", &|one| one.off.peak_megabytes), line("filter on", &|one| one.on.peak_megabytes)],
                ),
                panel("% skipped", vec![line("filter on", &|one| one.statistics.skipped_percent())]),
                panel(
                    "% faster",
                    vec![
                        line("wall", &|one| one.speed_up(|usage| usage.wall_seconds)),
                        line("user and system", &|one| one.speed_up(|usage| usage.cpu_seconds)),
                    ],
                ),
            ]
        })
        .collect();
    let file = folder.join(format!("{}.svg", program.file_name()));
    let [threads, iterations, locks] = USUAL;
    let title =
        format!("TREE, {} ({threads} threads, {iterations} iterations, {locks} locks, but for what varies)", program.kind);
    plot::draw(&file, &title, &rows)?;
    Ok(file)
}

/// Pairs of lines with the filter off and on, of every racy program, under every detector.
fn races_of(tool: PathBuf, compilers: &Compilers, part: Option<&str>, runs: u32) -> Result<Vec<Races>> {
    let racy: Vec<Program> = suite::programs(part)?.into_iter().filter(Program::is_racy).collect();
    let suite = Suite::new(tool, compilers)?;
    let results = suite::in_parallel(&racy, |program| {
        let built = suite.build(program, compilers)?;
        let source = program.source();
        eprintln!("{}: {runs} × filter off, on, {} detectors", program.path, Detector::ALL.len());
        let of_detector = |detector| {
            let once = |filter| suite.ours(program, &built, Configuration { detector, filter });
            let mut off = observe(runs, runs, &Observed::default(), &source, || once(Filter::None))?;
            let mut on = observe(runs, runs * MORE, &off, &source, || once(Filter::Tree))?;
            let in_turn = |filtered| once(if filtered { Filter::Tree } else { Filter::None });
            let Missing { lost, seldom } = missing(&mut off, &mut on, &source, in_turn)?;
            Ok(Races {
                path: program.path.clone(),
                detector,
                runs: [off.runs, on.runs],
                lost,
                seldom,
                off: off.pairs.into_keys().collect(),
                on: on.pairs.into_keys().collect(),
            })
        };
        Detector::ALL.into_iter().map(of_detector).collect::<Result<Vec<_>>>()
    })?;
    Ok(results.into_iter().flatten().collect())
}

fn bars_of(races: &[Races]) -> Vec<Bar> {
    let present = Detector::ALL.into_iter().filter(|detector| races.iter().any(|one| one.detector == *detector));
    present
        .map(|detector| {
            let of_detector = || races.iter().filter(move |one| one.detector == detector);
            let compared = |one: &Races| one.off.iter().filter(|pair| pair.0 != 0 && !one.seldom.contains(pair)).count();
            let all: usize = of_detector().map(compared).sum();
            let lost: usize = of_detector().map(|one| one.lost.len()).sum();
            let name = format!("{}: every pair of lines reported without the filter is reported with it", detector.name());
            // Where nothing is reported, nothing is shown.
            Bar::holds(&name, lost == 0 && all > 0, format!("{} of {all}", all - lost))
        })
        .collect()
}

fn textbook_bar(rows: &[textbook::Row]) -> Option<Bar> {
    let lost: usize = rows.iter().map(textbook::Row::lost).sum();
    let name = "FastTrack: variables with a race that it does not find behind the filter";
    (!rows.is_empty()).then(|| Bar::at_most(name, lost as f64, 0.0, ""))
}

fn print(report: &Report) {
    println!("{}: {} runs, {} processors, {}", report.command, report.runs, report.processors, report.compilers.version);
    if report.quick {
        println!("inputs are small: these numbers show that it works, not what it costs");
    }
    if !report.table.is_empty() {
        println!("\nthe filter behind the happens-before detector, four threads");
        print_table(&report.table);
        textbook::print(&report.textbook);
    }
    if !report.points.is_empty() {
        println!("\nthe micro-benchmarks");
        let mut table = Table::new(&["program", "varied", "value", "off s", "on s", "off MB", "on MB", "% skipped", "% faster"]);
        for point in &report.points {
            let one = &point.comparison;
            let mut row = vec![point.program.to_owned(), point.varied.to_owned(), point.value.to_string()];
            row.extend([one.off.wall_seconds, one.on.wall_seconds].map(|seconds| format!("{seconds:.3}")));
            row.extend([one.off.peak_megabytes, one.on.peak_megabytes].map(|megabytes| format!("{megabytes:.1}")));
            row.push(format!("{:.1}", one.statistics.skipped_percent()));
            row.push(format!("{:.1}", one.speed_up(|usage| usage.wall_seconds)));
            table.row(row);
        }
        table.print();
        for figure in &report.figures {
            println!("drawn: {}", figure.display());
        }
    }
    for one in &report.races {
        for (what, pairs) in [("lost", &one.lost), ("too seldom to compare", &one.seldom)] {
            if !pairs.is_empty() {
                let pairs: Vec<String> = pairs.iter().map(|(a, b)| format!("{a}-{b}")).collect();
                println!("{}, {}: {what} in {} executions: {}", one.path, one.detector.name(), one.runs[1], pairs.join(", "));
            }
        }
    }
    println!();
}

fn print_table(rows: &[Row]) {
    let titles = [
        "program",
        "as in Table 5.1",
        "executed",
        "% skipped",
        "same thread",
        "two threads",
        "% by hooks anyway",
        "Δ MB",
        "% faster",
        "% faster, CPU",
    ];
    let mut table = Table::new(&titles);
    for row in rows {
        let (one, statistics) = (&row.comparison, &row.comparison.statistics);
        let mut cells = vec![row.name.to_owned(), row.thesis.to_owned(), statistics.executed().to_string()];
        cells.push(format!("{:.1}", statistics.skipped_percent()));
        for reason in Statistics::REASONS {
            cells.push(format!("{:.1}", statistics.percent(statistics.get(reason))));
        }
        cells.push(format!("{:.1}", statistics.percent(statistics.recognised())));
        cells.push(format!("{:+.1}", one.more_megabytes()));
        cells.push(format!("{:+.1}", one.speed_up(|usage| usage.wall_seconds)));
        cells.push(format!("{:+.1}", one.speed_up(|usage| usage.cpu_seconds)));
        table.row(cells);
    }
    table.print();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_speed_up_is_the_share_of_time_saved() {
        let usage = |seconds| Usage { wall_seconds: seconds, cpu_seconds: seconds, peak_megabytes: seconds };
        let comparison = Comparison { off: usage(4.0), on: usage(3.0), statistics: Statistics::default() };
        assert_eq!(comparison.speed_up(|usage| usage.wall_seconds), 25.0);
        assert_eq!(comparison.more_megabytes(), -1.0);
    }

    #[test]
    fn a_filter_that_loses_a_race_misses_the_bar() {
        let races = |detector, off: &[Pair], lost: &[Pair]| Races {
            path: String::new(),
            detector,
            runs: [1, 1],
            off: off.to_vec(),
            on: Vec::new(),
            lost: lost.to_vec(),
            seldom: Vec::new(),
        };
        let all = [races(Detector::Hb, &[(1, 2)], &[]), races(Detector::Lockset, &[(1, 2), (3, 4)], &[(3, 4)])];
        assert_eq!(bars_of(&all).iter().map(|bar| bar.met).collect::<Vec<_>>(), [true, false]);
        assert!(bars_of(&[]).is_empty());
    }

    #[test]
    fn only_names_a_part_or_programs() {
        assert_eq!(parts(None), ([true; 3], None));
        assert_eq!(parts(Some("races")), ([false, false, true], None));
        assert_eq!(parts(Some("fft")), ([true, false, true], Some("fft")));
    }
}
