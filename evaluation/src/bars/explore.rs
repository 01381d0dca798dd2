//! How many schedules each strategy of `rashomon explore` needs to make small programs of ours fail, against plain stress:
//! executing them again and again as they are.
//!
//! What is fair. Stress executes the program without instrumentation, and so more often in the same time; what is compared is
//! executions. A program that hangs has failed. Every stored schedule (each is minimised) has to replay 20 times out of 20.

use crate::common::bar::{self, Bar};
use crate::common::command_line;
use crate::common::compile::succeed;
pub use crate::common::options::Selecting as Options;
use crate::common::table::Table;
use anyhow::{Context as _, Result, bail};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use xtask::workspace::{self, root};

const STRATEGIES: [&str; 6] = ["random", "pct", "pos", "reads-from", "dpor", "preemptions"];
/// Knows nothing of priorities, dependences or bounds: the others have to be better.
const BASELINE: &str = "random";
/// The most schedules of one program and strategy.
const MOST: u32 = 10_000;
const STRESS: u32 = 1_000;
const REPLAYS: u32 = 20;
/// Longer than any of the programs takes.
const TIMEOUT: Duration = Duration::from_secs(2);

#[derive(Debug, Serialize)]
struct Cell {
    strategy: &'static str,
    /// The schedule, counted from 1, that failed.
    schedule: Option<u32>,
    failure: String,
    replayed: bool,
}

#[derive(Debug, Serialize)]
struct ProgramResult {
    name: String,
    /// The execution that failed under stress.
    stress: Option<u32>,
    stressed: u32,
    cells: Vec<Cell>,
}

#[derive(Debug, Serialize)]
struct Report {
    evaluation: &'static str,
    command: String,
    programs: Vec<ProgramResult>,
    bars: Vec<Bar>,
}

pub fn run(options: &Options) -> Result<bool> {
    let tool = workspace::build_tool()?;
    let folder = tempfile::tempdir().context("cannot create a temporary folder")?;
    let mut programs = Vec::new();
    for source in sources(options.only.as_deref())? {
        programs.push(measure(&source, &tool, folder.path(), options.quick)?);
    }
    let bars = bars_of(&programs);
    let report = Report { evaluation: "explore", command: command_line(), programs, bars };
    if options.json {
        println!("{}", serde_json::to_string_pretty(&report)?);
        return Ok(bar::all_met(&report.bars));
    }
    print(&report);
    Ok(bar::print(&report.bars))
}

fn sources(only: Option<&str>) -> Result<Vec<PathBuf>> {
    let folder = root().join("tests/explore");
    let entries = std::fs::read_dir(&folder).with_context(|| format!("cannot list {}", folder.display()))?;
    let mut found: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    found.retain(|path| only.is_none_or(|part| path.to_string_lossy().contains(part)));
    found.sort();
    if found.is_empty() {
        bail!("no program's name contains that; they are in tests/explore");
    }
    Ok(found)
}

fn measure(source: &Path, tool: &Path, folder: &Path, quick: bool) -> Result<ProgramResult> {
    let name = source.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let is_c = source.extension().is_some_and(|extension| extension == "c");
    let (native, ours) = (folder.join(format!("{name}.native")), folder.join(&name));
    let flags = ["-g", "-O1", "-pthread"];
    succeed(Command::new(if is_c { "gcc" } else { "g++" }).args(flags).arg(source).arg("-o").arg(&native))?;
    succeed(Command::new(tool).arg(if is_c { "cc" } else { "c++" }).args(flags).arg(source).arg("-o").arg(&ours))?;
    let stressed = if quick { 20 } else { STRESS };
    let stress = (1..=stressed).find(|_| !ends_well(&native));
    let mut cells = Vec::new();
    for strategy in STRATEGIES {
        let store = folder.join(format!("{name}-{strategy}"));
        let output = Command::new(tool)
            .args(["explore", "--strategy", strategy, "--preemptions", "3", "--fail-on", "never", "--schedules"])
            .arg(MOST.to_string())
            .arg("--output")
            .arg(&store)
            .arg("--")
            .arg(&ours)
            .stdin(Stdio::null())
            .output()
            .context("cannot start the tool")?;
        let said = String::from_utf8_lossy(&output.stderr);
        if !output.status.success() {
            bail!("exploring {name} with {strategy} failed ({})\n{said}", output.status);
        }
        let line = said.lines().find_map(|line| line.strip_prefix("rashomon: ")?.split_once(": schedule "));
        let schedule = line.and_then(|(_, number)| number.trim().parse().ok());
        let failure = line.map(|(failure, _)| failure.to_owned()).unwrap_or_default();
        let replayed = schedule.is_some() && replays(tool, &store)?;
        cells.push(Cell { strategy, schedule, failure, replayed });
    }
    Ok(ProgramResult { name, stress, stressed, cells })
}

fn ends_well(program: &Path) -> bool {
    let command = Command::new(program).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let Ok(mut child) = command else { return false };
    let begin = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return status.success(),
            Ok(None) if begin.elapsed() < TIMEOUT => std::thread::sleep(Duration::from_micros(200)),
            _ => {
                // Both fail only if it has ended meanwhile.
                let _ = child.kill();
                let _ = child.wait();
                return false;
            }
        }
    }
}

fn replays(tool: &Path, store: &Path) -> Result<bool> {
    let folder = store.join("findings");
    let entries = std::fs::read_dir(&folder).with_context(|| format!("cannot list {}", folder.display()))?;
    let ids: Vec<String> =
        entries.filter_map(|entry| Some(entry.ok()?.file_name().to_str()?.strip_suffix(".json")?.to_owned())).collect();
    let again = |id: &String| {
        let mut command = Command::new(tool);
        command.args(["--quiet", "replay", "--store"]).arg(store).arg(id).args(["--times", &REPLAYS.to_string()]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
    };
    Ok(!ids.is_empty() && ids.iter().all(again))
}

fn bars_of(programs: &[ProgramResult]) -> Vec<Bar> {
    let mut bars = vec![Bar::holds("programs", programs.len() >= 20, programs.len().to_string())];
    let missing: Vec<&str> = programs
        .iter()
        .filter(|program| program.cells.iter().all(|cell| cell.schedule.is_none()))
        .map(|program| program.name.as_str())
        .collect();
    let found = if missing.is_empty() { "all".to_owned() } else { format!("all but {}", missing.join(", ")) };
    bars.push(Bar::holds("bugs found within 10 000 schedules", missing.is_empty(), found));
    for strategy in STRATEGIES {
        let cells = programs.iter().flat_map(|program| &program.cells).filter(|cell| cell.strategy == strategy);
        let found = cells.clone().filter(|cell| cell.schedule.is_some()).count();
        let bar = Bar::holds(&format!("found by {strategy}"), found == programs.len(), format!("{found} of {}", programs.len()));
        bars.push(if strategy == BASELINE { bar.stretch() } else { bar });
    }
    let found: Vec<&Cell> = programs.iter().flat_map(|program| &program.cells).filter(|cell| cell.schedule.is_some()).collect();
    let good = found.iter().filter(|cell| cell.replayed).count();
    bars.push(Bar::holds("minimised schedules that replay 20 of 20", good == found.len(), format!("{good} of {}", found.len())));
    bars
}

fn print(report: &Report) {
    println!("{}\nExecutions until the program fails (- : not within the limit)", report.command);
    let mut titles = vec!["program", "stress"];
    titles.extend(STRATEGIES);
    titles.push("failure");
    let mut table = Table::new(&titles);
    for program in &report.programs {
        let mut row =
            vec![program.name.clone(), program.stress.map_or_else(|| format!("> {}", program.stressed), |n| n.to_string())];
        row.extend(program.cells.iter().map(|cell| cell.schedule.map_or_else(|| "-".into(), |schedule| schedule.to_string())));
        row.push(program.cells.iter().map(|cell| cell.failure.clone()).find(|words| !words.is_empty()).unwrap_or_default());
        table.row(row);
    }
    table.print();
}
