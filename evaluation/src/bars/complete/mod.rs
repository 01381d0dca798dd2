//! Whether exploration that says it has tried everything has: small programs, drawn, whose outcomes under `dpor` and under
//! `preemptions` without a bound are compared with brute force over a model; and what a schedule costs beside a native start.
//!
//! What is fair. The model knows what the documentation says of the program's world, and nothing of exploration. Real executions
//! tell their outcomes themselves, by system calls that no tool sees; who is left where nobody can go on is told by the log.

mod brute;
mod pace;
mod program;

use crate::common::bar::{self, Bar};
use crate::common::command_line;
use crate::common::compile::succeed;
use crate::common::table::Table;
use anyhow::{Context as _, Result, bail};
use brute::{Outcome, outcomes};
use pace::Pace;
use program::Program;
use serde::Serialize;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use xtask::workspace;

/// With --quick so many programs.
const QUICK: u64 = 8;
/// Native executions whose time is taken, the fastest of which counts less than their median.
const NATIVE: usize = 21;
/// As the example program that executes the schedules calls them.
const SEARCHES: [&str; 2] = ["dpor", "preemptions"];

#[derive(Debug, clap::Args)]
pub struct Options {
    /// Programs that are drawn.
    #[arg(long, value_name = "N", default_value_t = 200)]
    pub programs: u64,
    /// Only the program that this seed draws.
    #[arg(long, value_name = "SEED")]
    pub only: Option<u64>,
    /// A few programs: shows that everything works.
    #[arg(long)]
    pub quick: bool,
    /// Machine-readable output.
    #[arg(long)]
    pub json: bool,
}

/// What a search reached.
#[derive(Debug, Serialize)]
struct Reached {
    search: &'static str,
    schedules: u64,
    milliseconds: f64,
    from_snapshots: u64,
    /// It says that nothing is left.
    exhausted: bool,
    /// Outcomes of brute force that it did not reach.
    missing: Vec<String>,
    /// Outcomes that brute force does not know.
    unknown: Vec<String>,
}

impl Reached {
    const fn is_right(&self) -> bool {
        self.missing.is_empty() && self.unknown.is_empty()
    }

    const fn is_complete(&self) -> bool {
        self.exhausted && self.is_right()
    }

    const fn verdict(&self) -> &'static str {
        match (self.is_complete(), self.exhausted) {
            (true, _) => "complete",
            (false, true) => "WRONG",
            (false, false) => "not exhausted",
        }
    }
}

#[derive(Debug, Serialize)]
struct Compared {
    seed: u64,
    threads: usize,
    outcomes: usize,
    /// Median of native executions.
    native_milliseconds: f64,
    reached: Vec<Reached>,
}

#[derive(Debug, Serialize)]
struct Report {
    evaluation: &'static str,
    command: String,
    programs: Vec<Compared>,
    /// None with --only.
    paces: Vec<Pace>,
    bars: Vec<Bar>,
}

pub fn run(options: &Options) -> Result<bool> {
    let tools = Tools::build()?;
    let folder = tempfile::tempdir().context("cannot create a temporary folder")?;
    let count = if options.quick { QUICK } else { options.programs };
    let mut programs = Vec::new();
    for seed in options.only.map_or(0..count, |seed| seed..seed + 1) {
        let compared = compare(seed, &tools, folder.path())?;
        let verdicts: Vec<&str> = compared.reached.iter().map(Reached::verdict).collect();
        eprintln!("seed {seed}: {}", verdicts.join(", "));
        programs.push(compared);
    }
    let paces = match options.only {
        Some(_) => Vec::new(),
        None => pace::measure(&tools.rashomon, folder.path(), options.quick)?,
    };
    let mut bars = bars_of(&programs);
    if let Some(slowest) = paces.iter().map(Pace::ratio).min_by(f64::total_cmp) {
        bars.push(Bar::at_least("schedules a second beside native starts, least of five programs", slowest, 0.5, " of them"));
    }
    let report = Report { evaluation: "complete", command: command_line(), programs, paces, bars };
    bar::finish(&report, &report.bars, options.json, || print(&report))
}

fn compare(seed: u64, tools: &Tools, folder: &Path) -> Result<Compared> {
    let program = Program::drawn(seed);
    let place = folder.join(seed.to_string());
    std::fs::create_dir(&place).with_context(|| format!("cannot create {}", place.display()))?;
    let (source, ours, native) = (place.join("program.c"), place.join("program"), place.join("native"));
    std::fs::write(&source, program.source()).with_context(|| format!("cannot write {}", source.display()))?;
    let flags = ["-std=gnu11", "-O0", "-w", "-pthread"];
    succeed(Command::new(&tools.rashomon).arg("cc").args(flags).arg(&source).arg("-o").arg(&ours))?;
    succeed(Command::new("gcc").args(flags).arg(&source).arg("-o").arg(&native))?;
    let wanted = outcomes(&program);
    let mut reached = Vec::new();
    for search in SEARCHES {
        let (found, searched) = explore(&program, &tools.outcomes, &ours, (search, &place.join(search)))?;
        let words = |one: &Outcome| format!("{one:?}");
        reached.push(Reached {
            search,
            schedules: searched.schedules,
            milliseconds: searched.milliseconds,
            from_snapshots: searched.from_snapshots,
            exhausted: searched.exhausted,
            missing: wanted.difference(&found).map(words).collect(),
            unknown: found.difference(&wanted).map(words).collect(),
        });
    }
    let told = place.join("told");
    let native_milliseconds = median((0..NATIVE).map(|_| native_time(&native, &told)).collect::<Result<Vec<_>>>()?);
    std::fs::remove_dir_all(&place).with_context(|| format!("cannot remove {}", place.display()))?;
    Ok(Compared { seed, threads: program.threads.len(), outcomes: wanted.len(), native_milliseconds, reached })
}

/// The tools that take part.
struct Tools {
    rashomon: PathBuf,
    /// The example of `rashomon-explore` that executes schedules.
    outcomes: PathBuf,
}

impl Tools {
    fn build() -> Result<Self> {
        let rashomon = workspace::build_tool()?;
        let arguments = ["build", "--quiet", "--release", "--package", "rashomon-explore", "--example", "outcomes"];
        if !workspace::cargo().args(arguments).status().context("cannot start cargo")?.success() {
            bail!("the example that executes schedules does not build");
        }
        Ok(Self { rashomon, outcomes: workspace::target()?.join("release/examples/outcomes") })
    }
}

/// What a search said of itself at the end.
#[derive(Default)]
struct Searched {
    schedules: u64,
    from_snapshots: u64,
    milliseconds: f64,
    exhausted: bool,
}

impl Searched {
    fn parse(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        Some(Self {
            schedules: words.next()?.parse().ok()?,
            from_snapshots: words.next()?.parse().ok()?,
            milliseconds: words.next()?.parse().ok()?,
            exhausted: words.next()?.parse().ok()?,
        })
    }
}

/// What executions told, and who was left in those that nobody ended.
fn explore(
    program: &Program,
    outcomes: &Path,
    executable: &Path,
    (search, place): (&str, &Path),
) -> Result<(BTreeSet<Outcome>, Searched)> {
    std::fs::create_dir(place).with_context(|| format!("cannot create {}", place.display()))?;
    let told = place.join("told");
    let output = Command::new(outcomes).arg(search).arg(place).arg(executable).arg(&told).stderr(Stdio::inherit()).output();
    let output = output.with_context(|| format!("cannot start {}", outcomes.display()))?;
    if !output.status.success() {
        bail!("{} {search} failed ({})", outcomes.display(), output.status);
    }
    let (mut found, mut searched) = (BTreeSet::new(), None);
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        match line.split_once(' ') {
            Some(("left", paths)) => found.insert(Outcome::Blocked(left(program, paths))),
            Some(("searched", rest)) => Searched::parse(rest).is_some_and(|said| searched.replace(said).is_none()),
            _ => found.insert(Outcome::Ended(line.to_owned())),
        };
    }
    let text = if told.exists() { std::fs::read_to_string(&told)? } else { String::new() };
    found.extend(text.lines().map(|line| Outcome::Ended(line.to_owned())));
    Ok((found, searched.with_context(|| format!("{} {search} did not say what it did", outcomes.display()))?))
}

/// The threads of these paths, as the program counts them.
fn left(program: &Program, paths: &str) -> BTreeSet<usize> {
    let child = |thread: usize, ordinal: &str| program.children(thread).get(ordinal.parse::<usize>().ok()?).copied();
    let number = |path: &str| if path == "main" { Some(0) } else { path.split('.').try_fold(0, child) };
    paths.split(' ').filter_map(number).collect()
}

/// Milliseconds. An execution that blocks is ended after a while, which counts.
fn native_time(native: &Path, told: &Path) -> Result<f64> {
    const TIMEOUT: Duration = Duration::from_millis(100);
    let begin = Instant::now();
    let mut child = Command::new(native).arg(told).stdin(Stdio::null()).spawn().context("cannot start a program")?;
    while child.try_wait()?.is_none() {
        if begin.elapsed() > TIMEOUT {
            child.kill()?;
        }
        std::thread::sleep(Duration::from_micros(50));
    }
    Ok(begin.elapsed().as_secs_f64() * 1_000.0)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

fn bars_of(programs: &[Compared]) -> Vec<Bar> {
    let complete = |search: &str| {
        let of = |one: &&Compared| one.reached.iter().all(|reached| reached.search != search || reached.is_complete());
        programs.iter().filter(of).count()
    };
    let mut bars = vec![Bar::holds("programs", programs.len() >= 200, programs.len().to_string())];
    for search in SEARCHES {
        let equal = complete(search);
        let name = format!("programs whose outcomes under {search} are those of brute force");
        bars.push(Bar::holds(&name, equal == programs.len(), format!("{equal} of {}", programs.len())));
        let of = |one: &&Compared| one.reached.iter().any(|reached| reached.search == search && !reached.is_right());
        let wrong = programs.iter().filter(of).count();
        let name = format!("the same, where {search} ended by itself or not: programs with an outcome missing or unknown");
        bars.push(Bar::holds(&name, wrong == 0, wrong.to_string()));
    }
    // Native executions that block say nothing of what a start costs.
    let ratio = |one: &Compared| {
        let (schedules, time) =
            one.reached.iter().fold((0, 0.0), |sum, reached| (sum.0 + reached.schedules, sum.1 + reached.milliseconds));
        (schedules > 1 && one.native_milliseconds < 50.0).then(|| time / schedules as f64 / one.native_milliseconds)
    };
    let ratios: Vec<f64> = programs.iter().filter_map(ratio).collect();
    bars.push(Bar::at_most("median time of a schedule, beside a native start", median(ratios), 2.0, " of it"));
    bars
}

fn print(report: &Report) {
    println!("{}", report.command);
    let titles =
        ["seed", "threads", "outcomes", "native ms", "search", "schedules", "ms each", "snapshots", "missing", "unknown", ""];
    let mut table = Table::new(&titles);
    for one in &report.programs {
        for reached in &one.reached {
            table.row(vec![
                one.seed.to_string(),
                one.threads.to_string(),
                one.outcomes.to_string(),
                format!("{:.2}", one.native_milliseconds),
                reached.search.into(),
                reached.schedules.to_string(),
                format!("{:.2}", reached.milliseconds / reached.schedules.max(1) as f64),
                reached.from_snapshots.to_string(),
                reached.missing.len().to_string(),
                reached.unknown.len().to_string(),
                reached.verdict().into(),
            ]);
        }
    }
    table.print();
    let mut paces = Table::new(&["program", "threads", "starts a second", "schedules a second", "ratio"]);
    for pace in &report.paces {
        paces.row(vec![
            pace.program.into(),
            pace.threads.to_string(),
            format!("{:.0}", pace.starts),
            format!("{:.0}", pace.schedules),
            format!("{:.2}", pace.ratio()),
        ]);
    }
    paces.print();
    for one in &report.programs {
        for reached in one.reached.iter().filter(|reached| !reached.is_complete()) {
            println!("seed {}, {}: missing {:?}, unknown {:?}", one.seed, reached.search, reached.missing, reached.unknown);
        }
    }
}
