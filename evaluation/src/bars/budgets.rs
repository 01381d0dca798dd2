//! Random programs under random budgets, the tool ended at random: it ends in time, and nothing that it had said is lost.
//!
//! What is fair. A budget bounds the whole command, the first recording included. A tool that is asked to end (SIGINT, SIGTERM)
//! has a second for it. What counts as said is what stands on its standard error.

use crate::common::bar::{self, Bar};
use crate::common::command_line;
use crate::common::compile::succeed;
use crate::common::options::Selecting;
use crate::common::table::Table;
use anyhow::{Context as _, Result, bail};
use rashomon_testkit::SplitMix;
use serde::Serialize;
use serde_json::Value;
use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use xtask::workspace::{self, root};

const RUNS: u32 = 100;
const QUICK: u32 = 12;
/// Of the test programs, the folders that runs draw from, besides `tests/budgets`.
const FOLDERS: [&str; 3] = ["measured", "race_free", "racy"];
/// Budgets, in seconds.
const LEAST: f64 = 0.3;
const MOST: f64 = 6.0;
/// What a command may take beyond its budget: a tenth of it, and a second.
const SHARE: f64 = 0.1;
const GRACE: f64 = 1.0;
/// A tool that has not ended by then never will.
const TIMEOUT: Duration = Duration::from_secs(120);
const COMMANDS: [&str; 4] = ["check", "explore", "provoke", "witness"];

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Killed {
    No,
    Int,
    Term,
    Kill,
}

impl Killed {
    const fn signal(self) -> Option<&'static str> {
        match self {
            Self::No => None,
            Self::Int => Some("INT"),
            Self::Term => Some("TERM"),
            Self::Kill => Some("KILL"),
        }
    }
}

/// One run of the tool.
#[derive(Debug, Serialize)]
struct Run {
    number: u32,
    program: String,
    command: &'static str,
    budget: f64,
    killed: Killed,
    /// Seconds of the whole command; behind the signal, where the tool was asked to end.
    took: f64,
    /// Seconds beyond what it may take without an allowance.
    over: f64,
    in_time: bool,
    /// Findings said to be proven.
    said: usize,
    /// Of these, those that the store or the report lacks.
    lost: usize,
    /// What is wrong with the store or the report, or with how the tool ended.
    fault: Option<String>,
}

#[derive(Debug, Serialize)]
struct Report {
    evaluation: &'static str,
    command: String,
    runs: Vec<Run>,
    bars: Vec<Bar>,
}

#[derive(Debug, clap::Args)]
pub struct Options {
    /// Runs altogether (100; with --quick fewer).
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub runs: Option<u32>,
    /// What is drawn at random follows from it.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    #[command(flatten)]
    pub selecting: Selecting,
}

pub fn run(options: &Options) -> Result<bool> {
    let tool = workspace::build_tool()?;
    let folder = tempfile::tempdir().context("cannot create a temporary folder")?;
    let programs = compiled(&tool, folder.path(), options.selecting.only.as_deref())?;
    let runs = if options.selecting.quick { QUICK } else { options.runs.unwrap_or(RUNS) };
    let mut random = SplitMix(options.seed);
    let mut all = Vec::new();
    for number in 0..runs {
        let drawn = Drawn::new(number, &mut random, &programs);
        let run = one(&tool, folder.path(), &drawn)?;
        eprintln!("{number}: {} {} {:.1} s {:?}: {:.1} s", run.command, run.program, run.budget, run.killed, run.took);
        all.push(run);
    }
    let bars = bars_of(&all);
    let report = Report { evaluation: "budgets", command: command_line(), runs: all, bars };
    if options.selecting.json {
        println!("{}", serde_json::to_string_pretty(&report)?);
        return Ok(bar::all_met(&report.bars));
    }
    print(&report);
    Ok(bar::print(&report.bars))
}

/// Sources of `tests/budgets`, twice as likely as all test programs together, and of the folders of test programs.
struct Programs {
    made: Vec<PathBuf>,
    others: Vec<PathBuf>,
}

fn compiled(tool: &Path, folder: &Path, only: Option<&str>) -> Result<Programs> {
    let sources = |path: &Path| -> Result<Vec<PathBuf>> {
        let entries = fs::read_dir(path).with_context(|| format!("cannot list {}", path.display()))?;
        let mut found: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        found.retain(|path| path.extension().is_some_and(|extension| extension == "c"));
        found.retain(|path| only.is_none_or(|part| path.to_string_lossy().contains(part)));
        found.sort();
        Ok(found)
    };
    let compile = |sources: Vec<PathBuf>| -> Result<Vec<PathBuf>> {
        let one = |source: &PathBuf| {
            let binary = folder.join(source.file_stem().unwrap_or_default());
            succeed(Command::new(tool).args(["cc", "-g", "-O1", "-w", "-pthread", "-o"]).arg(&binary).arg(source)).map(|_| binary)
        };
        sources.iter().map(one).collect()
    };
    let made = compile(sources(&root().join("tests/budgets"))?)?;
    let mut others = Vec::new();
    for name in FOLDERS {
        others.extend(sources(&root().join("tests/programs").join(name))?);
    }
    let others = compile(others)?;
    if made.is_empty() && others.is_empty() {
        bail!("no program's name contains that; they are in tests/budgets and tests/programs");
    }
    Ok(Programs { made, others })
}

/// What is done in one run. All of it is drawn before, so that a run can be had again whatever became of others.
struct Drawn<'p> {
    number: u32,
    program: &'p Path,
    command: &'static str,
    budget: f64,
    seed: u64,
    killed: Killed,
    /// When, as a share of the budget.
    moment: f64,
}

impl<'p> Drawn<'p> {
    fn new(number: u32, random: &mut SplitMix, programs: &'p Programs) -> Self {
        let mut share = || random.below(1 << 20) as f64 / f64::from(1 << 20);
        let (of_ours, place, command, budget, killed, moment) = (share(), share(), share(), share(), share(), share());
        let ours = programs.others.is_empty() || of_ours < 2.0 / 3.0 && !programs.made.is_empty();
        let list = if ours { &programs.made } else { &programs.others };
        Self {
            number,
            program: &list[(place * list.len() as f64) as usize],
            // Half of them are checks.
            command: if command < 0.5 { COMMANDS[0] } else { COMMANDS[1 + ((command - 0.5) * 6.0) as usize] },
            budget: LEAST * (MOST / LEAST).powf(budget),
            seed: random.draw() >> 32,
            killed: match (killed * 6.0) as u32 {
                0 => Killed::Int,
                1 => Killed::Term,
                2 => Killed::Kill,
                _ => Killed::No,
            },
            moment,
        }
    }
}

fn one(tool: &Path, folder: &Path, drawn: &Drawn<'_>) -> Result<Run> {
    let place = folder.join(format!("run-{}", drawn.number));
    fs::create_dir(&place).with_context(|| format!("cannot create {}", place.display()))?;
    let (store, report, said) = (place.join("store"), place.join("report.json"), place.join("said"));
    let mut command = Command::new(tool);
    command.args([drawn.command, "--timeout", "20", "--fail-on", "never", "--budget", &format!("{:.3}", drawn.budget)]);
    command
        .args(["--seed", &drawn.seed.to_string(), "--json"])
        .arg(&report)
        .arg("--output")
        .arg(&store)
        .arg("--")
        .arg(drawn.program);
    command.current_dir(&place).stdin(Stdio::null()).stdout(Stdio::null());
    command.stderr(File::create(&said).with_context(|| format!("cannot create {}", said.display()))?);
    let begin = Instant::now();
    let mut child = command.spawn().context("cannot start the tool")?;
    let mut killed = Killed::No;
    if let Some(signal) = drawn.killed.signal() {
        let moment = Duration::from_secs_f64(drawn.budget * drawn.moment * 1.2);
        if !ends_within(&mut child, moment)? {
            let sent = Command::new("kill").args(["-s", signal, &child.id().to_string()]).status().context("cannot run kill")?;
            killed = if sent.success() { drawn.killed } else { Killed::No };
        }
    }
    let asked = Instant::now();
    let ended = ends_within(&mut child, TIMEOUT)?;
    if !ended {
        child.kill().context("cannot end the tool")?;
    }
    let status = child.wait().context("cannot wait for the tool")?;
    let said = String::from_utf8_lossy(&fs::read(&said).unwrap_or_default()).into_owned();
    let recorded = has_recording(&store);
    let (took, allowed) = match killed {
        Killed::No => (begin.elapsed().as_secs_f64(), drawn.budget),
        _ => (asked.elapsed().as_secs_f64(), 0.0),
    };
    let proven = proven_ids(&said);
    let lost = proven.iter().filter(|id| !(in_store(&store, id) && in_report(&report, id))).count();
    let code = status.code().unwrap_or_else(|| -status.signal().unwrap_or(0));
    let fault = if !ended {
        Some("it did not end".to_owned())
    } else if said.contains("panicked") || killed == Killed::No && matches!(code, 2 | 125 | 101) {
        Some(format!("exit code {code}: {}", said.lines().last().unwrap_or_default()))
    } else {
        fault_of(tool, &store, &report, killed, recorded)?
    };
    // Stores of long programs are large.
    fs::remove_dir_all(&place).with_context(|| format!("cannot remove {}", place.display()))?;
    Ok(Run {
        number: drawn.number,
        program: drawn.program.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        command: drawn.command,
        budget: drawn.budget,
        killed,
        took,
        over: took - allowed,
        in_time: ended && took <= allowed * (1.0 + SHARE) + GRACE,
        said: proven.len(),
        lost,
        fault,
    })
}

fn ends_within(child: &mut Child, time: Duration) -> Result<bool> {
    let begin = Instant::now();
    loop {
        if child.try_wait().context("cannot wait for the tool")?.is_some() {
            return Ok(true);
        }
        if begin.elapsed() >= time {
            return Ok(false);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn has_recording(store: &Path) -> bool {
    json(&store.join("run.json")).is_some_and(|run| run["recordings"][0].is_object())
}

fn json(path: &Path) -> Option<Value> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

/// The ids in lines such as `rashomon: proven (deadlocked): deadlock-0123abcd`.
fn proven_ids(said: &str) -> Vec<&str> {
    let of =
        |line: &'_ str| -> Option<usize> { line.strip_prefix("rashomon: proven (").map(|_| line.rfind(' ').unwrap_or(0) + 1) };
    let mut ids: Vec<&str> = said.lines().filter_map(|line| Some(&line[of(line)?..])).collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}

fn in_store(store: &Path, id: &str) -> bool {
    let finding = json(&store.join("findings").join(format!("{id}.json")));
    finding.is_some_and(|finding| finding["finding"]["verdict"]["status"] == "proven")
}

fn in_report(report: &Path, id: &str) -> bool {
    let findings = json(report).map(|report| report["findings"].clone());
    let findings = findings.as_ref().and_then(Value::as_array);
    findings.into_iter().flatten().any(|finding| finding["id"] == id && finding["verdict"] == "proven")
}

/// What is wrong with what the tool left.
fn fault_of(tool: &Path, store: &Path, report: &Path, killed: Killed, recorded: bool) -> Result<Option<String>> {
    if report.exists() && json(report).is_none() {
        return Ok(Some("the report is not whole".into()));
    }
    // SIGKILL may come between the recording's end and the first report.
    if recorded && !report.exists() && killed != Killed::Kill {
        return Ok(Some("there is no report".into()));
    }
    if store.join("run.json").exists() {
        let output = Command::new(tool).args(["report", "--store"]).arg(store).output().context("cannot start the tool")?;
        if !output.status.success() {
            return Ok(Some(format!("the store cannot be read: {}", String::from_utf8_lossy(&output.stderr).trim())));
        }
    }
    Ok(None)
}

fn bars_of(runs: &[Run]) -> Vec<Bar> {
    let late: Vec<String> = runs.iter().filter(|run| !run.in_time).map(|run| run.number.to_string()).collect();
    let lost: usize = runs.iter().map(|run| run.lost).sum();
    let said: usize = runs.iter().map(|run| run.said).sum();
    let faults: Vec<String> = runs.iter().filter_map(|run| Some(format!("{}: {}", run.number, run.fault.as_ref()?))).collect();
    let all = |list: &[String], well: &str| if list.is_empty() { well.to_owned() } else { list.join("; ") };
    vec![
        Bar::holds("ended within the budget, a tenth of it and a second", late.is_empty(), all(&late, "all runs")),
        Bar::holds("findings said are in the store and in the report", lost == 0, format!("{} of {said}", said - lost)),
        Bar::holds("stores and reports can be read", faults.is_empty(), all(&faults, "all runs")),
    ]
}

fn print(report: &Report) {
    println!("{}\n", report.command);
    let mut table = Table::new(&["run", "command", "program", "budget s", "ended by", "took s", "over s", "said", "lost"]);
    for run in &report.runs {
        table.row(vec![
            run.number.to_string(),
            run.command.into(),
            run.program.clone(),
            format!("{:.2}", run.budget),
            run.killed.signal().unwrap_or("itself").into(),
            format!("{:.2}", run.took),
            format!("{:.2}", run.over),
            run.said.to_string(),
            run.lost.to_string(),
        ]);
    }
    table.print();
    println!();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_tool_said_is_found() {
        let said = "rashomon: recording\nrashomon: proven (co-enabled): race-0a\nrashomon: proven (wrong exit \
            code): failure-1b\nproven (x): y\n";
        assert_eq!(proven_ids(said), ["failure-1b", "race-0a"]);
    }

    #[test]
    fn runs_are_drawn_by_their_seed() {
        let programs = Programs { made: vec!["a".into(), "b".into()], others: vec!["c".into()] };
        let draw = || {
            let mut random = SplitMix(7);
            let all = (0..50).map(|number| Drawn::new(number, &mut random, &programs));
            all.map(|drawn| (drawn.program.to_path_buf(), drawn.command, drawn.budget.to_bits(), drawn.killed))
                .collect::<Vec<_>>()
        };
        let drawn = draw();
        assert_eq!(drawn, draw());
        for command in COMMANDS {
            assert!(drawn.iter().any(|run| run.1 == command), "{command}");
        }
        assert!(drawn.iter().all(|run| (LEAST..=MOST).contains(&f64::from_bits(run.2))));
        assert!([Killed::No, Killed::Int, Killed::Term, Killed::Kill].iter().all(|how| drawn.iter().any(|run| run.3 == *how)));
    }
}
