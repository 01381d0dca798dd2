//! A check by way of a queue, while workers and the server are killed: the findings are those of the same units without a queue,
//! nothing is lost, and nothing counts twice.
//!
//! What is fair. All processes share this machine, so that more workers than processors gain nothing. The units without a queue
//! are executed by as many processes at the same time as there are workers.

use crate::common::bar::{self, Bar};
use crate::common::command_line;
use crate::common::compile::succeed;
use crate::common::nats::{self, Running};
use crate::common::table::Table;
use anyhow::{Context as _, Result, bail};
use rashomon_testkit::SplitMix;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use xtask::workspace::{self, root};

const PROGRAM: &str = "tests/programs/racy/stack_variable.c";
const OPTIONS: [&str; 6] = ["--recordings", "1", "--engines", "force", "--proofs", "1"];
const WORKERS: [u32; 3] = [1, 2, 4];
const QUICK_WORKERS: [u32; 1] = [2];
/// Of the run in which something is killed.
const KILLED_WORKERS: u32 = 2;
const UNITS: u32 = 200;
const QUICK_UNITS: u32 = 20;
const KILLS: u32 = 20;
const QUICK_KILLS: u32 = 3;
/// Where something was proven.
const FINDINGS: i32 = 66;
/// What has not ended by then never will.
const TIMEOUT: Duration = Duration::from_secs(1800);
const PAUSE: Duration = Duration::from_millis(5);

#[derive(Debug, clap::Args)]
pub struct Options {
    /// Units of the check (200; with --quick fewer).
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub units: Option<u32>,
    /// How often a worker or the server is killed (20; with --quick fewer).
    #[arg(long, value_parser = clap::value_parser!(u32).range(0..=1000))]
    pub kills: Option<u32>,
    /// Who is killed when follows from it.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// This tool, in place of one that is built now.
    #[arg(long)]
    pub tool: Option<PathBuf>,
    /// One run on few units: shows that everything works, measures nothing.
    #[arg(long)]
    pub quick: bool,
    /// Machine-readable output.
    #[arg(long)]
    pub json: bool,
}

/// What one report says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Found {
    code: i32,
    /// Ids with verdicts.
    findings: BTreeSet<(String, String)>,
    recordings: u64,
    /// Stores of units.
    units: u32,
}

#[derive(Debug, Serialize)]
struct Run {
    workers: u32,
    kills_of_workers: u32,
    kills_of_the_server: u32,
    queue_seconds: f64,
    shards_seconds: f64,
    queue: Found,
    shards: Found,
}

#[derive(Debug, Serialize)]
struct Report {
    evaluation: &'static str,
    command: String,
    units: u32,
    runs: Vec<Run>,
    bars: Vec<Bar>,
}

pub fn run(options: &Options) -> Result<bool> {
    let tool = match &options.tool {
        Some(tool) => std::path::absolute(tool)?,
        None => workspace::build_tool()?,
    };
    let server = nats::program()?;
    let folder = tempfile::tempdir().context("cannot create a temporary folder")?;
    let program = folder.path().join("program");
    succeed(Command::new(&tool).args(["cc", "-g", "-O1", "-w", "-pthread", "-o"]).arg(&program).arg(root().join(PROGRAM)))?;
    let units = options.units.unwrap_or(if options.quick { QUICK_UNITS } else { UNITS });
    let kills = options.kills.unwrap_or(if options.quick { QUICK_KILLS } else { KILLS });
    let plan: Vec<(u32, u32)> = if options.quick { &QUICK_WORKERS[..] } else { &WORKERS }
        .iter()
        .map(|workers| (*workers, 0))
        .chain([(KILLED_WORKERS, kills)])
        .collect();
    let mut runs: Vec<Run> = Vec::new();
    for (number, (workers, kills)) in plan.into_iter().enumerate() {
        let place = folder.path().join(format!("run-{number}"));
        fs::create_dir(&place).with_context(|| format!("cannot create {}", place.display()))?;
        let setting = Setting { tool: &tool, server: &server, program: &program, place: &place, workers, units };
        let (queue, queue_seconds, killed) = setting.by_queue(kills, options.seed)?;
        // With as many processes they have been measured before.
        let (shards, shards_seconds) = match runs.iter().find(|run| run.workers == workers) {
            Some(run) => (run.shards.clone(), run.shards_seconds),
            None => setting.by_shards()?,
        };
        eprintln!("{workers} workers, {kills} kills: {queue_seconds:.1} s, without a queue {shards_seconds:.1} s");
        let (kills_of_workers, kills_of_the_server) = killed;
        runs.push(Run { workers, kills_of_workers, kills_of_the_server, queue_seconds, shards_seconds, queue, shards });
    }
    let bars = bars_of(&runs, units, kills);
    let report = Report { evaluation: "distribute", command: command_line(), units, runs, bars };
    bar::finish(&report, &report.bars, options.json, || print(&report))
}

struct Setting<'a> {
    tool: &'a Path,
    server: &'a Path,
    program: &'a Path,
    place: &'a Path,
    workers: u32,
    units: u32,
}

impl Setting<'_> {
    fn start(&self, command: &mut Command, log: &str) -> Result<Running> {
        nats::start(command, self.place, log)
    }

    fn start_worker(&self, url: &str, number: u32) -> Result<Running> {
        let mut worker = Command::new(self.tool);
        worker.args(["worker", "--trust", "--lease", "2", "--cache", "cache", "--queue", url]);
        self.start(&mut worker, &format!("worker-{number}.log"))
    }

    /// The one report, how long it took, and how often workers and the server were killed.
    fn by_queue(&self, kills: u32, seed: u64) -> Result<(Found, f64, (u32, u32))> {
        let port = nats::free_port()?;
        let url = format!("nats://127.0.0.1:{port}");
        let mut server = nats::start_server(self.server, self.place, port)?;
        let mut workers = (0..self.workers).map(|number| self.start_worker(&url, number)).collect::<Result<Vec<_>>>()?;
        let mut check = Command::new(self.tool);
        check.args(["check", "--json", "queue.json", "--output", "group", "--queue", &url, "--units", &self.units.to_string()]);
        let begin = Instant::now();
        let mut check = self.start(check.args(OPTIONS).arg("--").arg(self.program), "check.log")?;
        let mut random = SplitMix(seed);
        // One behind each so many units, so that all fall into the job.
        let every = self.units / (kills + 1);
        let mut killed = (0, 0);
        let status = loop {
            if let Some(status) = check.0.try_wait().context("cannot wait for the check")? {
                break status;
            }
            if begin.elapsed() > TIMEOUT {
                bail!("the check did not end; see {}", self.place.display());
            }
            let done = killed.0 + killed.1;
            if done < kills && self.stores() >= done * every {
                match random.below(u64::from(self.workers) + 1) {
                    0 => {
                        drop(server);
                        server = nats::start_server(self.server, self.place, port)?;
                        killed.1 += 1;
                    }
                    chosen => {
                        let place = chosen as usize - 1;
                        drop(workers.remove(place));
                        workers.push(self.start_worker(&url, place as u32)?);
                        killed.0 += 1;
                    }
                }
            }
            std::thread::sleep(PAUSE);
        };
        let seconds = begin.elapsed().as_secs_f64();
        drop((workers, server));
        let found = self.found("queue.json", status.code().unwrap_or(-1), self.stores())?;
        Ok((found, seconds, killed))
    }

    /// Units that are in.
    fn stores(&self) -> u32 {
        let entries = fs::read_dir(self.place.join("group")).into_iter().flatten().filter_map(Result::ok);
        entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("unit-")).count() as u32
    }

    /// The same units by processes that know nothing of each other.
    fn by_shards(&self) -> Result<(Found, f64)> {
        let begin = Instant::now();
        let next = AtomicU32::new(1);
        let work = || -> Result<()> {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number > self.units {
                    return Ok(());
                }
                let (share, store) = (format!("{number}/{}", self.units), format!("shard-{number}"));
                let mut check = Command::new(self.tool);
                check.args(["--quiet", "check", "--fail-on", "never", "--shard", &share, "--output", &store]);
                check.args(OPTIONS).arg("--").arg(self.program);
                self.start(&mut check, &format!("{store}.log"))?.0.wait().context("cannot wait for a check")?;
            }
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..self.workers).map(|_| scope.spawn(work)).collect();
            threads.into_iter().try_for_each(|thread| thread.join().unwrap_or_else(|_| bail!("a thread panicked")))
        })?;
        let stores = (1..=self.units).map(|number| format!("shard-{number}"));
        let mut merge = Command::new(self.tool);
        merge.args(["merge", "--json", "shards.json"]).args(stores);
        let code = self.start(&mut merge, "merge.log")?.0.wait().context("cannot wait for the merge")?.code().unwrap_or(-1);
        Ok((self.found("shards.json", code, self.units)?, begin.elapsed().as_secs_f64()))
    }

    fn found(&self, name: &str, code: i32, units: u32) -> Result<Found> {
        let path = self.place.join(name);
        let said = || fs::read_to_string(self.place.join("check.log")).unwrap_or_default();
        let bytes = fs::read(&path).with_context(|| format!("there is no report, exit code {code}: {}", said()))?;
        let report: Value = serde_json::from_slice(&bytes).with_context(|| format!("{} is no report", path.display()))?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let findings = report["findings"].as_array().into_iter().flatten();
        let findings = findings.map(|finding| (text(&finding["id"]), text(&finding["verdict"]))).collect();
        Ok(Found { code, findings, recordings: report["run"]["recordings"].as_u64().unwrap_or(0), units })
    }
}

fn bars_of(runs: &[Run], units: u32, kills: u32) -> Vec<Bar> {
    let of = |holds: &dyn Fn(&Run) -> bool| {
        let met = runs.iter().filter(|run| holds(run)).count();
        (met == runs.len(), format!("{met} of {} runs", runs.len()))
    };
    let bar = |name: &str, holds: &dyn Fn(&Run) -> bool| {
        let (met, found) = of(holds);
        Bar::holds(name, met, found)
    };
    let killed: u32 = runs.iter().map(|run| run.kills_of_workers + run.kills_of_the_server).sum();
    vec![
        bar("findings equal those without a queue", &|run| {
            !run.queue.findings.is_empty() && run.queue.findings == run.shards.findings
        }),
        bar("no unit is lost", &|run| run.queue.units == units),
        bar("no unit counts twice", &|run| run.queue.recordings == run.shards.recordings),
        bar("checks end as without a queue", &|run| run.queue.code == FINDINGS && run.shards.code == FINDINGS),
        Bar::at_least("workers and server killed", f64::from(killed), f64::from(kills), ""),
    ]
}

fn print(report: &Report) {
    println!("{}\n", report.command);
    let titles = ["workers", "units", "kills", "queue s", "shards s", "efficiency", "findings", "recordings"];
    let mut table = Table::new(&titles);
    for run in &report.runs {
        let kills = format!("{} workers, {} server", run.kills_of_workers, run.kills_of_the_server);
        table.row(vec![
            run.workers.to_string(),
            report.units.to_string(),
            if run.kills_of_workers + run.kills_of_the_server > 0 { kills } else { "none".into() },
            format!("{:.1}", run.queue_seconds),
            format!("{:.1}", run.shards_seconds),
            format!("{:.2}", run.shards_seconds / run.queue_seconds),
            run.queue.findings.len().to_string(),
            run.queue.recordings.to_string(),
        ]);
    }
    table.print();
    println!();
}
