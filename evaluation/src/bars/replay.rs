//! Whether a serial recording happens again: every program of `tests/programs` and of `tests/bench` (small inputs), recorded
//! under several seeds and replayed, and both recordings compared, event by event.
//!
//! A recording that says from where on a re-execution may differ, because of external input, is compared up to there.

use crate::common::bar::{self, Bar};
use crate::common::command_line;
use crate::common::compile::{Compilers, succeed};
use crate::common::options::Selecting;
use crate::common::programs::{self, Language};
use crate::common::suite;
use crate::common::table::Table;
use anyhow::{Context as _, Result, bail};
use rashomon_trace::{Recording, RunState, processes};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;
use xtask::workspace::{build_tool, root};

/// Each seed is recorded under both. `round-robin` has no use for one.
const POLICIES: [&str; 2] = ["random", "pct"];
/// Of a bench program: its threads share one processor with everything else here.
const BENCH_SECONDS: u64 = 60;

struct Program {
    name: String,
    language: Language,
    source: PathBuf,
    optimise: &'static str,
    link: Vec<String>,
    arguments: Vec<String>,
    input: Option<String>,
    seconds: u64,
    exactly: Exactly,
}

/// How far two recordings can be the same.
#[derive(Clone, Copy)]
struct Exactly {
    /// Values, too: none of them is the kernel's.
    values: bool,
    /// To the end; what is endless is cut off in one round or another, and the threads that wait are told behind it.
    to_the_end: bool,
}

#[derive(Debug, Serialize)]
struct Run {
    seed: u32,
    policy: &'static str,
    events: u64,
    /// From there on a re-execution may differ: external input is not there again.
    until: Option<u64>,
    /// `None`: identical, as far as can be asked, and sound.
    fault: Option<String>,
}

#[derive(Debug, Serialize)]
struct ProgramResult {
    name: String,
    runs: Vec<Run>,
    seconds: f64,
}

#[derive(Debug, Serialize)]
struct Report {
    evaluation: &'static str,
    command: String,
    seeds: u32,
    compilers: Compilers,
    programs: Vec<ProgramResult>,
    bars: Vec<Bar>,
}

#[derive(Debug, clap::Args)]
pub struct Options {
    /// Seeds that every program is recorded under.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub seeds: u32,
    #[command(flatten)]
    pub selecting: Selecting,
}

pub fn run(options: &Options) -> Result<bool> {
    let tool = build_tool()?;
    let compilers = Compilers::find()?;
    let folder = tempfile::Builder::new().prefix("rashomon-replay-").tempdir().context("cannot create a temporary folder")?;
    let chosen = chosen(options.selecting.only.as_deref())?;
    let seeds = if options.selecting.quick { 1 } else { options.seeds };
    let bench = Bench { tool, compilers, folder: folder.path().to_path_buf() };
    let programs = suite::in_parallel(&chosen, |program| bench.program(program, seeds))?;
    let bars = bars_of(&programs);
    let command = command_line();
    let report = Report { evaluation: "replay", command, seeds, compilers: bench.compilers, programs, bars };
    if options.selecting.json {
        println!("{}", serde_json::to_string_pretty(&report)?);
        return Ok(bar::all_met(&report.bars));
    }
    print(&report);
    Ok(bar::print(&report.bars))
}

fn chosen(part: Option<&str>) -> Result<Vec<Program>> {
    let mut all = Vec::new();
    for program in suite::programs(part)? {
        all.push(Program {
            name: program.path.clone(),
            language: if program.language == "c" { Language::C } else { Language::Cxx },
            source: program.source(),
            optimise: "-O1",
            link: program.link.clone(),
            arguments: program.args.clone(),
            input: program.stdin.clone(),
            seconds: program.timeout_seconds,
            exactly: Exactly { values: program.deterministic, to_the_end: !program.is_endless() },
        });
    }
    for program in &programs::PROGRAMS {
        let name = format!("bench/{}", program.source());
        if part.is_none_or(|part| name.contains(part)) {
            all.push(Program {
                name,
                language: program.language,
                source: root().join("tests/bench").join(program.source()),
                optimise: "-O2",
                link: vec!["-lm".into()],
                arguments: program.small.iter().map(|&argument| argument.to_owned()).collect(),
                input: None,
                seconds: BENCH_SECONDS,
                exactly: Exactly { values: true, to_the_end: true },
            });
        }
    }
    if all.is_empty() {
        bail!("no program's path contains that; they are below tests/programs and tests/bench");
    }
    Ok(all)
}

struct Bench {
    tool: PathBuf,
    compilers: Compilers,
    folder: PathBuf,
}

impl Bench {
    fn tool(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.tool);
        command.arg("--quiet").args(arguments).env_remove("RASHOMON_SESSION").stdin(Stdio::null());
        command
    }

    fn program(&self, program: &Program, seeds: u32) -> Result<ProgramResult> {
        let start = Instant::now();
        let folder = self.folder.join(program.name.replace(['/', '.'], "_"));
        std::fs::create_dir(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let (binary, input) = (folder.join("program"), folder.join("input"));
        let (wrapper, variable, standard) = match program.language {
            Language::C => ("cc", "RASHOMON_CC", "-std=gnu11"),
            Language::Cxx => ("c++", "RASHOMON_CXX", "-std=c++17"),
        };
        let mut compile = self.tool(&[wrapper, "-g", program.optimise, "-w", "-pthread", standard, "-o"]);
        compile.arg(&binary).arg(&program.source).args(&program.link).env(variable, self.compilers.of(program.language));
        succeed(&mut compile)?;
        if let Some(text) = &program.input {
            std::fs::write(&input, text).with_context(|| format!("cannot write {}", input.display()))?;
        }
        let mut runs = Vec::new();
        for seed in 1..=seeds {
            for policy in POLICIES {
                runs.push(self.one(program, &folder, &binary, &input, seed, policy)?);
            }
        }
        std::fs::remove_dir_all(&folder).with_context(|| format!("cannot remove {}", folder.display()))?;
        let faults = runs.iter().filter(|run| run.fault.is_some()).count();
        eprintln!("{}: {} of {} identical", program.name, runs.len() - faults, runs.len());
        Ok(ProgramResult { name: program.name.clone(), runs, seconds: start.elapsed().as_secs_f64() })
    }

    fn one(&self, program: &Program, folder: &Path, binary: &Path, input: &Path, seed: u32, policy: &'static str) -> Result<Run> {
        let (recorded, replayed) = (folder.join("recorded"), folder.join("replayed"));
        let seconds = program.seconds.to_string();
        let mut record =
            self.tool(&["record", "--policy", policy, "--seed", &seed.to_string(), "--timeout", &seconds, "--output"]);
        record.arg(&recorded).current_dir(root().join("tests/programs")).stdout(Stdio::null()).stderr(Stdio::null());
        if program.input.is_some() {
            record.arg("--stdin").arg(input);
        }
        record.arg("--").arg(binary).args(&program.arguments);
        // How the program ends is its own affair: some are killed, and some deadlock.
        let status = record.status().context("cannot start the tool")?;
        let mut run = Run { seed, policy, events: 0, until: None, fault: None };
        if status.code() == Some(125) {
            run.fault = Some("recording failed".into());
            return Ok(run);
        }
        let mut replay = self.tool(&["replay", "--recording"]);
        replay.arg(&recorded).arg("--output").arg(&replayed);
        let output = replay.output().context("cannot start the tool")?;
        run.fault = compare(&recorded, &replayed, program.exactly, &mut run).unwrap_or_else(|error| Some(format!("{error:#}")));
        // A recording that something came into may be left from there on: what was compared tells.
        if run.fault.is_none() && !output.status.success() && run.until.is_none() {
            run.fault = Some(String::from_utf8_lossy(&output.stdout).trim().to_owned());
        }
        for store in [&recorded, &replayed] {
            std::fs::remove_dir_all(store).with_context(|| format!("cannot remove {}", store.display()))?;
        }
        Ok(run)
    }
}

/// What is wrong, if anything is.
fn compare(recorded: &Path, replayed: &Path, exactly: Exactly, run: &mut Run) -> Result<Option<String>> {
    let (ours, theirs) = (processes(&recorded.join("recording-0"))?, processes(&replayed.join("recording-0"))?);
    let mut faults = Vec::new();
    for process in &ours {
        let one = Recording::open(&process.folder)?;
        let initial = ours.first().is_some_and(|first| first.path == process.path);
        let came_to_its_end = initial && one.header.state != RunState::Running;
        one.verify().with_context(|| format!("process {}", process.path))?;
        let killed = !initial && one.header.state == RunState::Running;
        let one = one.load()?;
        let limit = one.trace.not_reexecutable_from;
        run.until = run.until.or(limit.map(|event| u64::from(event.0)));
        let Some(other) = theirs.iter().find(|other| other.path == process.path) else {
            faults.push(format!("process {} is not there again", process.path));
            continue;
        };
        let other = Recording::open(&other.folder)?;
        // Also behind external input.
        if came_to_its_end && other.header.state == RunState::Running {
            return Ok(Some(format!("process {}: the replay did not come to its end", process.path)));
        }
        other.verify().with_context(|| format!("process {}, again", process.path))?;
        let killed_again = !initial && other.header.state == RunState::Running;
        let other = other.load()?;
        let seen = |line: &String| exactly.to_the_end || !is_wait(line);
        let told = |line: String| if exactly.values { line } else { without_value(&line).to_owned() };
        let mut left = one.normalised_before(limit).filter(seen).map(told);
        let mut right = other.normalised().filter(seen).map(told);
        let mut at = 0;
        loop {
            match (left.next(), right.next()) {
                (None, None) => break,
                (None, Some(_)) if limit.is_some() || !exactly.to_the_end || killed => break,
                (Some(_), None) if killed_again => break,
                (a, b) if a == b => at += 1,
                (a, b) => {
                    let text = |event: Option<String>| event.unwrap_or_else(|| "the end".into());
                    faults.push(format!("process {}, compared event {at}: {} / {}", process.path, text(a), text(b)));
                    break;
                }
            }
        }
        run.events += at;
    }
    // Where something came into one process, the others that it makes behind that are nobody's fault.
    let excused = run.until.is_some() && faults.iter().all(|fault| fault.ends_with("is not there again"));
    Ok(if excused { None } else { faults.into_iter().next() })
}

/// That a thread waits, as is said at the end of an execution.
fn is_wait(line: &str) -> bool {
    line.contains(" blocked ")
}

/// An atomic access, without what it read or wrote.
fn without_value(line: &str) -> &str {
    line.split_once(" = ").map_or(line, |(access, _)| access)
}

fn bars_of(programs: &[ProgramResult]) -> Vec<Bar> {
    let runs = || programs.iter().flat_map(|program| &program.runs);
    let faults = runs().filter(|run| run.fault.is_some()).count();
    let outside = programs.iter().filter(|program| program.runs.iter().any(|run| run.until.is_some())).count();
    let total = runs().count();
    let found = format!(
        "{} of {total} recordings of {} programs; {outside} programs up to their first external input",
        total - faults,
        programs.len()
    );
    vec![Bar::holds("every recording is sound, and happens again event by event", faults == 0, found)]
}

fn print(report: &Report) {
    println!("{}: policies {}, {}", report.command, POLICIES.join(" and "), report.compilers.version);
    let mut table = Table::new(&["program", "recordings", "identical", "events", "until", "s"]);
    for program in &report.programs {
        let identical = program.runs.iter().filter(|run| run.fault.is_none()).count();
        let events: u64 = program.runs.iter().map(|run| run.events).sum();
        let until = program.runs.iter().filter_map(|run| run.until).min();
        table.row(vec![
            program.name.clone(),
            program.runs.len().to_string(),
            identical.to_string(),
            events.to_string(),
            until.map_or("end".into(), |event| event.to_string()),
            format!("{:.1}", program.seconds),
        ]);
    }
    table.print();
    println!();
    for program in &report.programs {
        for run in program.runs.iter().filter(|run| run.fault.is_some()) {
            println!(
                "{} (--policy {} --seed {}): {}",
                program.name,
                run.policy,
                run.seed,
                run.fault.as_deref().unwrap_or_default()
            );
        }
    }
}
