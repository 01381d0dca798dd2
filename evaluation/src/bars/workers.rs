//! A thousand workers on one queue. The server, what coordinator and workers say to it, and the transfers are real; executing a
//! unit is a sleep, so that one machine can be many.
//!
//! What is fair. Workers of one machine share a connection and a folder of programs, as `rashomon worker --jobs` has it. All
//! machines share the two processors or so of this one with the server: real ones would leave it more.

use crate::common::bar::{self, Bar};
use crate::common::command_line;
use crate::common::nats::{self, Running};
use crate::common::table::Table;
use anyhow::{Context as _, Result, anyhow};
use rashomon_queue::{
    Access, Coordinator, Execute, Hash, Nats, PROTOCOL, QueueError, RECORDING, ShippedFile, Task, Unit, Unmade, Worker, archive,
};
use rashomon_testkit::SplitMix;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

const WORKERS: [u32; 3] = [10, 100, 1000];
const QUICK_WORKERS: [u32; 2] = [4, 16];
/// Of one machine.
const JOBS: u32 = 8;
const PROGRAM_BYTES: usize = 2 << 20;
const STORE_BYTES: usize = 64 << 10;
const RECORDING_BYTES: usize = 1 << 20;
/// No unit begins before it is there.
const RECORDING_TAKES: Duration = Duration::from_secs(1);
const LEASE: Duration = Duration::from_secs(60);
const PATIENCE: Duration = Duration::from_secs(120);
/// The least part of the time that a queue without any cost would leave to the units.
const LEAST: f64 = 0.8;

#[derive(Debug, clap::Args)]
pub struct Options {
    /// How many workers, several numbers separated by commas (10, 100 and 1000; with --quick fewer).
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=2000))]
    pub workers: Vec<u32>,
    /// Units for each worker.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub units: u32,
    /// The mean of the seconds that a unit takes; they are drawn, from half of it to half more (20; with --quick 1).
    #[arg(long)]
    pub seconds: Option<u32>,
    /// Few workers: shows that everything works, measures little.
    #[arg(long)]
    pub quick: bool,
    /// Machine-readable output.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Serialize)]
struct Run {
    workers: u32,
    units: u32,
    seconds: f64,
    /// If nothing took time but the units.
    least_seconds: f64,
    /// Executions of units, and archives that came of them.
    executed: u32,
    accepted: u32,
    twice: u32,
    server_processor_seconds: f64,
    server_peak_megabytes: f64,
}

impl Run {
    fn efficiency(&self) -> f64 {
        self.least_seconds / self.seconds
    }
}

#[derive(Debug, Serialize)]
struct Report {
    evaluation: &'static str,
    command: String,
    runs: Vec<Run>,
    bars: Vec<Bar>,
}

pub fn run(options: &Options) -> Result<bool> {
    let server = nats::program()?;
    let folder = tempfile::tempdir().context("cannot create a temporary folder")?;
    let seconds = options.seconds.unwrap_or(if options.quick { 1 } else { 20 });
    let numbers: &[u32] = match options.workers.as_slice() {
        [] if options.quick => &QUICK_WORKERS,
        [] => &WORKERS,
        asked => asked,
    };
    let mut runs = Vec::new();
    for workers in numbers {
        let place = folder.path().join(workers.to_string());
        fs::create_dir(&place).with_context(|| format!("cannot create {}", place.display()))?;
        let swarm = Swarm { place: &place, workers: *workers, durations: durations(workers * options.units, seconds) };
        let run = swarm.run(&server)?;
        eprintln!("{workers} workers: {:.1} s, {:.1} s at least", run.seconds, run.least_seconds);
        runs.push(run);
        // Caches of so many machines take room.
        fs::remove_dir_all(&place).with_context(|| format!("cannot remove {}", place.display()))?;
    }
    let bars = bars_of(&runs);
    let report = Report { evaluation: "workers", command: command_line(), runs, bars };
    bar::finish(&report, &report.bars, options.json, || print(&report))
}

/// Of each unit, in the order of their numbers.
fn durations(units: u32, mean: u32) -> Vec<Duration> {
    let mut random = SplitMix(1);
    let milliseconds = u64::from(mean) * 1000;
    (0..units).map(|_| Duration::from_millis(milliseconds / 2 + random.below(milliseconds.max(1)))).collect()
}

struct Swarm<'a> {
    place: &'a Path,
    workers: u32,
    durations: Vec<Duration>,
}

impl Swarm<'_> {
    fn run(&self, server: &Path) -> Result<Run> {
        let port = nats::free_port()?;
        let server = nats::start_server(server, self.place, port)?;
        let address = format!("nats://127.0.0.1:{port}");
        let access = Access { address: address.parse().map_err(|error| anyhow!("{error}"))?, credentials: None, authority: None };
        let (executed, over) = (AtomicU32::new(0), AtomicBool::new(false));
        let sleeping = Sleeping { durations: &self.durations, executed: &executed };
        let coordinator = Nats::connect(&access, LEASE)?;
        let (accepted, twice, seconds) = std::thread::scope(|scope| {
            let machines: Vec<_> = (0..self.workers.div_ceil(JOBS))
                .map(|number| {
                    let (access, sleeping, over) = (&access, &sleeping, &over);
                    scope.spawn(move || self.machine(number, access, sleeping, over))
                })
                .collect();
            let handed_out = self.distribute(&coordinator);
            over.store(true, Ordering::Relaxed);
            for machine in machines {
                machine.join().map_err(|_| anyhow!("a machine panicked"))??;
            }
            handed_out
        })?;
        let (server_processor_seconds, server_peak_megabytes) = used(&server)?;
        Ok(Run {
            workers: self.workers,
            units: self.durations.len() as u32,
            seconds,
            least_seconds: (RECORDING_TAKES + least(&self.durations, self.workers as usize)).as_secs_f64(),
            executed: executed.into_inner(),
            accepted,
            twice,
            server_processor_seconds,
            server_peak_megabytes,
        })
    }

    /// Units of which there is an archive, those of which there came another one, and the seconds that all took.
    fn distribute(&self, nats: &Nats) -> Result<(u32, u32, f64)> {
        let mut random = SplitMix(2);
        let program: Vec<u8> = (0..PROGRAM_BYTES).map(|_| random.below(256) as u8).collect();
        let shipped =
            ShippedFile { path: "program".into(), hash: Hash::of(&program), size: program.len() as u64, executable: true };
        let of = self.durations.len() as u32;
        let unit = |number| Unit {
            protocol: PROTOCOL,
            version: env!("CARGO_PKG_VERSION").into(),
            job: "thousand".into(),
            number,
            of,
            options: Vec::new(),
            program: shipped.clone(),
            program_path: String::new(),
            arguments: Vec::new(),
            files: Vec::new(),
            recording: None,
        };
        let units: Vec<Unit> = (1..=of).map(unit).collect();
        let contents = BTreeMap::from([(shipped.hash.clone(), program)]);
        let (mut accepted, mut twice) = (BTreeSet::new(), 0);
        let begin = Instant::now();
        let mut coordinator = Coordinator { exchange: nats, patience: PATIENCE, tell: &mut |_| {} };
        let result = coordinator.distribute(Some(&unit(RECORDING)), &units, &contents, &mut |number, archive| {
            if number == RECORDING {
                return Ok(());
            }
            twice += u32::from(!accepted.insert(number));
            if archive.len() == STORE_BYTES { Ok(()) } else { Err(format!("{} bytes", archive.len())) }
        })?;
        if let Some((number, reason)) = result.failed.first_key_value() {
            return Err(anyhow!("unit {number} failed: {reason}"));
        }
        Ok((accepted.len() as u32, twice, begin.elapsed().as_secs_f64()))
    }

    /// Workers with one connection and one folder of programs, until the job is over.
    fn machine(&self, number: u32, access: &Access, sleeping: &Sleeping<'_>, over: &AtomicBool) -> Result<()> {
        let cache = self.place.join(format!("machine-{number}"));
        let nats = Nats::connect(access, LEASE)?;
        let name = format!("machine {number}");
        let worker = Worker {
            exchange: &nats,
            version: env!("CARGO_PKG_VERSION"),
            name: &name,
            cache: &cache,
            lease: LEASE,
            patience: PATIENCE,
            tell: &|_| {},
        };
        std::thread::scope(|scope| {
            let jobs = JOBS.min(self.workers - number * JOBS);
            let work = || -> Result<()> {
                while !over.load(Ordering::Relaxed) {
                    worker.run(sleeping, true)?;
                }
                Ok(())
            };
            let threads: Vec<_> = (0..jobs).map(|_| scope.spawn(work)).collect();
            threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| anyhow!("a worker panicked"))?)
        })
    }
}

/// Takes as long as a unit would, and makes as many bytes.
struct Sleeping<'a> {
    durations: &'a [Duration],
    executed: &'a AtomicU32,
}

impl Execute for Sleeping<'_> {
    fn execute(&self, task: &Task<'_>) -> Result<Vec<u8>, Unmade> {
        if task.unit.is_recording() {
            std::thread::sleep(RECORDING_TAKES);
            return Ok(archive_of_recording(task)?);
        }
        let recording = task.recording.as_ref().ok_or_else(|| Unmade::Failed("it has no recording".into()))?;
        if fs::metadata(recording.join("thread-0000")).map_or(0, |found| found.len()) != RECORDING_BYTES as u64 {
            return Err(Unmade::Failed("its recording is another one".into()));
        }
        let place = task.unit.number as usize - 1;
        std::thread::sleep(*self.durations.get(place).ok_or_else(|| Unmade::Failed("there is no such unit".into()))?);
        self.executed.fetch_add(1, Ordering::Relaxed);
        let mut random = SplitMix(u64::from(task.unit.number));
        Ok((0..STORE_BYTES).map(|_| random.below(256) as u8).collect())
    }
}

/// As large as that of a program of some seconds: it does not become smaller when it is packed.
fn archive_of_recording(task: &Task<'_>) -> Result<Vec<u8>, QueueError> {
    let failed = |action| move |source| QueueError::Io { action, path: task.store.clone(), source };
    fs::create_dir(&task.store).map_err(failed("create"))?;
    let mut random = SplitMix(3);
    let bytes: Vec<u8> = (0..RECORDING_BYTES).map(|_| random.below(256) as u8).collect();
    fs::write(task.store.join("thread-0000"), bytes).map_err(failed("write to"))?;
    archive::pack(&task.store, &|_, bytes| bytes)
}

/// When all are done, if each worker takes the next one as soon as it has none.
fn least(durations: &[Duration], workers: usize) -> Duration {
    let mut free = vec![Duration::ZERO; workers];
    for duration in durations {
        if let Some(first) = free.iter_mut().min() {
            *first += *duration;
        }
    }
    free.into_iter().max().unwrap_or_default()
}

/// Processor time in seconds, and the most memory in megabytes.
fn used(server: &Running) -> Result<(f64, f64)> {
    let of = |name: &str| {
        let path = format!("/proc/{}/{name}", server.0.id());
        fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))
    };
    let stat = of("stat")?;
    // Behind the name, which may have any characters: field 3 and those that follow.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks: u64 = fields.iter().skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
    let status = of("status")?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.split_whitespace().next()?.parse::<f64>().ok());
    let per_second = rustix::param::clock_ticks_per_second() as f64;
    Ok((ticks as f64 / per_second, peak.context("no peak of memory is told")? / 1024.0))
}

fn bars_of(runs: &[Run]) -> Vec<Bar> {
    let once = |run: &&Run| run.accepted == run.units && run.executed == run.units && run.twice == 0;
    let met = runs.iter().filter(once).count();
    let mut bars = vec![Bar::holds(
        "each unit is executed once, and counts once",
        met == runs.len(),
        format!("{met} of {} runs", runs.len()),
    )];
    for run in runs {
        bars.push(Bar::at_least(&format!("{} workers: efficiency", run.workers), run.efficiency(), LEAST, ""));
    }
    bars
}

fn print(report: &Report) {
    println!("{}\n", report.command);
    let titles = ["workers", "units", "seconds", "least s", "efficiency", "units/s", "server CPU ms/unit", "server MB"];
    let mut table = Table::new(&titles);
    for run in &report.runs {
        table.row(vec![
            run.workers.to_string(),
            run.units.to_string(),
            format!("{:.1}", run.seconds),
            format!("{:.1}", run.least_seconds),
            format!("{:.2}", run.efficiency()),
            format!("{:.1}", f64::from(run.units) / run.seconds),
            format!("{:.1}", run.server_processor_seconds * 1000.0 / f64::from(run.units)),
            format!("{:.0}", run.server_peak_megabytes),
        ]);
    }
    table.print();
    println!();
}
