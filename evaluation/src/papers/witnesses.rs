//! Witnesses by model checking for ports of the programs of Shacham et al. 2007, Table 1, with 2, 3 and 4 threads: their Tables 2
//! to 4, and the fourth combination.
//!
//! A cell is the time from the first execution behind the prefix to the witness for the variable that the program is about, and
//! the largest resident set of tool and program. The programs whose race is rare are also executed freely under clang's
//! ThreadSanitizer.

mod tables;

use crate::common::bar::{self, Bar};
use crate::common::command_line;
use crate::common::compile::succeed;
use crate::common::only::Only;
use crate::common::options::Dividing;
use anyhow::{Context as _, Result, bail};
use serde::Serialize;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use wait4::Wait4 as _;
use xtask::workspace::{self, root};

struct Port {
    name: &'static str,
    /// Of the race; both its lines name it.
    variable: &'static str,
    /// The race is on an interleaving that executions do not show.
    rare: bool,
    by_prefix: bool,
}

const fn port(name: &'static str, variable: &'static str, rare: bool) -> Port {
    Port { name, variable, rare, by_prefix: false }
}

const PORTS: [Port; 9] = [
    port("our_tsp", "all_calls", true),
    port("SortArray", "sorted", true),
    port("PrimeFinder", "largest", true),
    port("ElevSim", "last_floor", true),
    port("DQueries", "num_del_itr", true),
    port("hedc", "worker", false),
    port("tsp", "min_tour_len", false),
    Port { name: "mtrt", variable: "last_row", rare: false, by_prefix: true },
    port("numDelItr", "numDelItr", true),
];
/// Whose second access is behind a choice: a gate that is open for a short time.
const SEARCHED: [&str; 5] = ["our_tsp", "SortArray", "PrimeFinder", "ElevSim", "DQueries"];
const THREADS: [u32; 3] = [2, 3, 4];
/// Title, and options of `rashomon witness`.
const COMBINATIONS: [(&str, &[&str]); 4] = [
    ("Table 2: without t^a1, no hint", &["--no-hint"]),
    ("Table 3: without t^a1, hint", &[]),
    ("Table 4: with t^a1, hint", &["--no-exclusion"]),
    ("fourth: with t^a1, no hint", &["--no-exclusion", "--no-hint"]),
];
/// The most of one cell.
const RECORDINGS: u32 = 10;
/// Accesses between two switches of a recording, so that threads meet in the short times in which a gate is open.
const QUANTUM: &str = "500";
/// The most executions of the search for one pair.
const SCHEDULES: &str = "20000";
const LEAST_EVENTS: u64 = 1_000_000;

#[derive(Clone, Debug, Default, Serialize)]
struct Cell {
    program: &'static str,
    threads: u32,
    combination: usize,
    found: bool,
    by_prefix: bool,
    seconds: f64,
    schedules: u64,
    megabytes: f64,
    /// Executed before the search began.
    prefix: u64,
    /// Findings about the variable, and how many of them did not come about when their schedule was replayed.
    stored: usize,
    lost: usize,
}

impl Cell {
    /// Where the prefix alone shows the race, nothing was searched.
    fn executions(&self) -> String {
        if self.by_prefix { "p".into() } else { self.schedules.to_string() }
    }
}

#[derive(Debug, Serialize)]
struct Free {
    program: &'static str,
    runs: u32,
    hits: u32,
}

/// A search that finds nothing, because there is nothing: with process snapshots, and without.
#[derive(Debug, Serialize)]
struct Refuted {
    threads: u32,
    schedules: [u64; 2],
    /// Medians.
    seconds: [f64; 2],
    found: bool,
}

#[derive(Debug, Serialize)]
struct Report {
    evaluation: &'static str,
    command: String,
    cells: Vec<Cell>,
    refuted: Vec<Refuted>,
    free: Vec<Free>,
    bars: Vec<Bar>,
}

#[derive(Debug, clap::Args)]
pub struct Options {
    /// Free executions of each program with a rare race.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub free_runs: u32,
    #[command(flatten)]
    pub dividing: Dividing,
}

pub fn run(options: &Options) -> Result<bool> {
    let tool = workspace::build_tool()?;
    let folder = tempfile::tempdir().context("cannot create a temporary folder")?;
    let only = Only::of(options.dividing.selecting.only.as_deref());
    let wanted = |name: &str| only.wants(name);
    let mut cells = Vec::new();
    let mut free = Vec::new();
    for port in PORTS.iter().filter(|port| wanted(port.name)) {
        let program = build(port.name, &tool, folder.path())?;
        for threads in if options.dividing.selecting.quick { &THREADS[..1] } else { &THREADS } {
            for (combination, (_, flags)) in COMBINATIONS.iter().enumerate() {
                if port.by_prefix && combination > 0 {
                    continue;
                }
                let mut cell = witness(&tool, &program, Some((port, *threads)), flags, folder.path())?;
                cell.combination = combination;
                cells.push(cell);
            }
        }
        if port.rare {
            let runs = if options.dividing.selecting.quick { 10 } else { options.free_runs };
            let jobs =
                options.dividing.jobs.map_or_else(|| std::thread::available_parallelism().map_or(1, usize::from), usize::from);
            free.push(Free { program: port.name, runs, hits: free_hits(port, runs, jobs, folder.path())? });
        }
    }
    let mut bars = bars_of(&cells, &free);
    for (name, expected) in [("figure6", false), ("figure7", true)] {
        if wanted(name) {
            let program = build(name, &tool, folder.path())?;
            let found = witness(&tool, &program, None, &[], folder.path())?.found;
            bars.push(Bar::holds(
                if expected { "Fig. 7's race found" } else { "no witness for Fig. 6" },
                found == expected,
                if found { "a witness" } else { "none" }.into(),
            ));
        }
    }
    let refutes = wanted(REFUTED);
    only.check()?;
    let refuted = if refutes { refute(&tool, options.dividing.selecting.quick, folder.path())? } else { Vec::new() };
    if !refuted.is_empty() {
        let same = refuted.iter().filter(|row| !row.found && row.schedules[0] == row.schedules[1]).count();
        bars.push(Bar::holds(
            "searches from snapshots are those from the beginning",
            same == refuted.len(),
            format!("{same} of {}", refuted.len()),
        ));
    }
    let report = Report { evaluation: "witnesses", command: command_line(), cells, refuted, free, bars };
    if options.dividing.selecting.json {
        println!("{}", serde_json::to_string_pretty(&report)?);
        return Ok(bar::all_met(&report.bars));
    }
    tables::print(&report);
    Ok(bar::print(&report.bars))
}

/// The program whose pair no schedule shows.
const REFUTED: &str = "handed_over";
const ROUNDS: usize = 3;

fn refute(tool: &Path, quick: bool, folder: &Path) -> Result<Vec<Refuted>> {
    let program = build(REFUTED, tool, folder)?;
    let mut rows = Vec::new();
    for threads in if quick { &THREADS[..1] } else { &THREADS } {
        let arguments = [threads.to_string(), if quick { "100" } else { "1000" }.to_owned()];
        let mut times = [Vec::new(), Vec::new()];
        let mut row = Refuted { threads: *threads, schedules: [0; 2], seconds: [0.0; 2], found: false };
        for _ in 0..ROUNDS {
            for (way, more) in [&[][..], &["--no-snapshots"]].into_iter().enumerate() {
                let flags = [&["--schedules", "50", "--no-exclusion"], more].concat();
                let cell = search(tool, &program, None, &arguments, &flags, 1, folder)?;
                times[way].push(cell.seconds);
                row.schedules[way] = cell.schedules;
                row.found |= cell.found;
            }
        }
        for (way, mut times) in times.into_iter().enumerate() {
            times.sort_by(f64::total_cmp);
            row.seconds[way] = times[ROUNDS / 2];
        }
        rows.push(row);
    }
    Ok(rows)
}

fn build(name: &str, tool: &Path, folder: &Path) -> Result<std::path::PathBuf> {
    let program = folder.join(name);
    let source = root().join("tests/shacham").join(format!("{name}.cpp"));
    succeed(Command::new(tool).args(["c++", "-g", "-O1", "-pthread"]).arg(source).arg("-o").arg(&program))?;
    Ok(program)
}

/// Lines of the source that name the variable.
fn lines_of(port: &Port) -> Result<Vec<String>> {
    let path = root().join("tests/shacham").join(format!("{}.cpp", port.name));
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let numbered = text.lines().zip(1..).filter(|(line, _)| line.contains(port.variable));
    Ok(numbered.map(|(_, number): (&str, u32)| format!("{}.cpp:{number}", port.name)).collect())
}

/// Searches behind one recording, and behind more if there was nothing: a prefix commits to what was recorded, several recordings
/// give several (the paper's end of §3.2).
fn witness(tool: &Path, program: &Path, port: Option<(&Port, u32)>, flags: &[&str], folder: &Path) -> Result<Cell> {
    let arguments: Vec<String> = port.iter().map(|(_, threads)| threads.to_string()).collect();
    let first = search(tool, program, port, &arguments, flags, 1, folder)?;
    if first.found {
        return Ok(first);
    }
    let again = search(tool, program, port, &arguments, flags, RECORDINGS, folder)?;
    Ok(Cell { schedules: first.schedules + again.schedules, seconds: first.seconds + again.seconds, ..again })
}

fn search(
    tool: &Path,
    program: &Path,
    port: Option<(&Port, u32)>,
    arguments: &[String],
    flags: &[&str],
    recordings: u32,
    folder: &Path,
) -> Result<Cell> {
    let store = folder.join("store");
    if store.exists() {
        std::fs::remove_dir_all(&store).context("cannot remove a store")?;
    }
    let said = folder.join("said");
    let file = std::fs::File::create(&said).context("cannot create a file")?;
    let mut command = Command::new(tool);
    command.args(["--quiet", "witness", "--fail-on", "never", "--recordings", &recordings.to_string()]);
    if !flags.contains(&"--schedules") {
        command.args(["--quantum", QUANTUM, "--schedules", SCHEDULES]);
    }
    command
        .arg("--output")
        .arg(&store)
        .args(flags)
        .arg("--json")
        .arg(folder.join("report"))
        .arg("--")
        .arg(program)
        .args(arguments);
    let mut child = command.stdin(Stdio::null()).stdout(file).stderr(Stdio::null()).spawn().context("cannot start the tool")?;
    let ended = child.wait4().context("cannot wait for the tool")?;
    let said = std::fs::read_to_string(&said).context("cannot read what the tool said")?;
    if !ended.status.success() {
        bail!("{command:?} failed ({})\n{said}", ended.status);
    }
    let lines = port.map(|(port, _)| lines_of(port)).transpose()?;
    let names = |side: &str| {
        let named = |line: &String| side.contains(&format!("{line}:")) || side.ends_with(line);
        lines.as_ref().is_none_or(|lines| lines.iter().any(named))
    };
    let mut cell = Cell { megabytes: ended.rusage.maxrss as f64 / f64::from(1 << 20), ..Cell::default() };
    if let Some((port, threads)) = port {
        (cell.program, cell.threads) = (port.name, threads);
    }
    // `witness by …: SITE | SITE: N schedules, S s, behind N accesses`
    for line in said.lines() {
        let Some((found, rest)) = line.split_once(": ") else { continue };
        let Some((sites, numbers)) = rest.rsplit_once(": ") else { continue };
        if cell.found
            || ![" schedule, ", " schedules, "].iter().any(|word| numbers.contains(word))
            || !sites.split(" | ").all(names)
        {
            continue;
        }
        // What was tried in vain before counts as well.
        let numbers: Vec<f64> = numbers.split([' ', ',']).filter_map(|word| word.parse().ok()).collect();
        let [schedules, seconds, prefix] = numbers[..] else { bail!("no three numbers in `{line}`") };
        cell.schedules += schedules as u64;
        cell.seconds += seconds;
        cell.prefix = prefix as u64;
        cell.found = found.starts_with("witness by");
        cell.by_prefix = found.ends_with("the prefix");
    }
    let text = std::fs::read_to_string(folder.join("report")).context("the search wrote no report")?;
    let report: serde_json::Value = serde_json::from_str(&text).context("the report is no JSON")?;
    for finding in report["findings"].as_array().context("the report has no findings")? {
        let sides = finding["sides"].as_array().into_iter().flatten();
        let mut places = sides.map(|side| &side["stack"][0]).map(|frame| {
            let file = frame["file"].as_str().and_then(|file| file.rsplit('/').next()).unwrap_or_default();
            format!("{file}:{}", frame["line"])
        });
        if finding["verdict"] == "proven" && places.all(|place| names(&place)) {
            let id = finding["id"].as_str().context("a finding has no id")?;
            cell.stored += 1;
            cell.lost += usize::from(!replays(tool, &store, id)?);
        }
    }
    Ok(cell)
}

/// Whether the stored schedule of a finding brings it about.
fn replays(tool: &Path, store: &Path, id: &str) -> Result<bool> {
    let mut command = Command::new(tool);
    command.args(["--quiet", "replay", "--store"]).arg(store).arg(id).stdin(Stdio::null());
    let output = command.output().context("cannot start the tool")?;
    Ok(output.status.success())
}

/// ThreadSanitizer ends a program with 66 if it reported something. Any other failure says that nothing was looked at.
fn ran(status: &std::process::ExitStatus) -> Result<()> {
    match status.code() {
        Some(0 | 66) => Ok(()),
        _ => bail!("it did not end by itself ({status})"),
    }
}

/// Free executions in which ThreadSanitizer reports the race.
fn free_hits(port: &Port, runs: u32, jobs: usize, folder: &Path) -> Result<u32> {
    let program = folder.join(format!("{}.sanitizer", port.name));
    let source = root().join("tests/shacham").join(format!("{}.cpp", port.name));
    succeed(Command::new("clang++-19").args(["-g", "-O1", "-fsanitize=thread"]).arg(source).arg("-o").arg(&program))?;
    let lines = lines_of(port)?;
    let left = AtomicU32::new(runs);
    let worker = || -> Result<u32> {
        let mut hits = 0;
        while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok() {
            let output = Command::new(&program).arg("2").stdin(Stdio::null()).output().context("cannot start the program")?;
            let said = String::from_utf8_lossy(&output.stderr);
            ran(&output.status).with_context(|| format!("{}: a free execution\n{said}", port.name))?;
            hits += u32::from(said.contains("data race") && lines.iter().any(|line| said.contains(&format!("{line}:"))));
        }
        Ok(hits)
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..jobs).map(|_| scope.spawn(worker)).collect();
        let hits = workers.into_iter().map(|worker| match worker.join() {
            Ok(hits) => hits,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        hits.sum()
    })
}

fn bars_of(cells: &[Cell], free: &[Free]) -> Vec<Bar> {
    let found = cells.iter().filter(|cell| cell.found).count();
    let mut bars = vec![Bar::holds("cells with a witness", found == cells.len(), format!("{found} of {}", cells.len()))];
    let mut seconds: Vec<f64> = cells.iter().filter(|cell| cell.found).map(|cell| cell.seconds).collect();
    seconds.sort_by(f64::total_cmp);
    if let (Some(worst), Some(median)) = (seconds.last(), seconds.get(seconds.len() / 2)) {
        bars.push(Bar::at_most("worst cell", *worst, 60.0, " s"));
        bars.push(Bar::at_most("median cell", *median, 1.0, " s"));
    }
    let prefix = cells.iter().filter(|cell| cell.program == "mtrt");
    if prefix.clone().next().is_some() {
        bars.push(Bar::holds("mtrt by the prefix alone", prefix.clone().all(|cell| cell.by_prefix), "asked of every row".into()));
    }
    // Tables 2 and 3 of the paper agree for two threads: without t^a1 there is one thread to advance, so no hint is needed.
    for (name, others, least_threads) in
        [("executions with t^a1 / without", 2, 2), ("executions without the hint / with, ≥ 3 threads", 0, 3)]
    {
        let mut ratios: Vec<f64> = cells
            .iter()
            .filter(|cell| {
                cell.combination == 1 && cell.found && cell.threads >= least_threads && SEARCHED.contains(&cell.program)
            })
            .filter_map(|cell| Some(executions(cells, cell, others)? as f64 / cell.schedules.max(1) as f64))
            .collect();
        ratios.sort_by(f64::total_cmp);
        if let Some(median) = ratios.get(ratios.len() / 2) {
            bars.push(Bar::holds(name, *median >= 10.0, format!("median {median:.1}, ≥ 10 wanted")));
        }
    }
    let rare = |cell: &&Cell| PORTS.iter().any(|port| port.rare && port.name == cell.program);
    if let Some(least) = cells.iter().filter(rare).map(|cell| cell.prefix).min() {
        bars.push(Bar::holds("accesses of the prefixes of rare races ≥ 10^6", least >= LEAST_EVENTS, format!("least {least}")));
    }
    let stored: usize = cells.iter().map(|cell| cell.stored).sum();
    let lost: usize = cells.iter().map(|cell| cell.lost).sum();
    let all = lost == 0 && cells.iter().all(|cell| cell.stored > 0 || !cell.found);
    bars.push(Bar::holds("every witness is stored and replays", all, format!("{} of {stored}", stored - lost)));
    if !free.is_empty() {
        let hits: u32 = free.iter().map(|free| free.hits).sum();
        let runs: u32 = free.iter().map(|free| free.runs).sum();
        bars.push(Bar::holds("free executions that show a rare race", hits == 0, format!("{hits} of {runs}")));
    }
    bars
}

/// Of the same program and threads under another combination.
fn executions(cells: &[Cell], cell: &Cell, combination: usize) -> Option<u64> {
    let same = |other: &&Cell| (other.program, other.threads, other.combination) == (cell.program, cell.threads, combination);
    cells.iter().find(same).map(|other| other.schedules)
}
