//! Schedules a second beside native starts a second, of programs with two to sixteen threads.
//!
//! What is fair. Both use all processors: `explore` executes on all of them, and native starts are made by as many threads. Of
//! `explore` the difference between many schedules and few counts, so that its first recording and its report do not.

use crate::common::compile::succeed;
use anyhow::{Context as _, Result, bail};
use serde::Serialize;
use std::num::NonZeroUsize;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::available_parallelism;
use std::time::Instant;
use xtask::workspace::root;

/// Of `tests/bench`, with arguments for little work, and how many threads these make beside the main one.
const PROGRAMS: [(&str, [&str; 2], usize); 5] = [
    ("philosophers", ["3", "2"], 2),
    ("queue", ["20", "3"], 4),
    ("monitors", ["2", "8"], 8),
    ("twolock", ["2", "12"], 12),
    ("server", ["200", "16"], 16),
];
/// Schedules of the two explorations.
const FEW: u32 = 20;
const MANY: u32 = 320;
const ROUNDS: usize = 3;

#[derive(Debug, Serialize)]
pub struct Pace {
    pub program: &'static str,
    pub threads: usize,
    /// A second.
    pub starts: f64,
    pub schedules: f64,
}

impl Pace {
    pub fn ratio(&self) -> f64 {
        self.schedules / self.starts
    }
}

pub fn measure(tool: &Path, folder: &Path, quick: bool) -> Result<Vec<Pace>> {
    PROGRAMS.iter().map(|program| pace(program, tool, folder, quick)).collect()
}

fn pace(
    &(program, arguments, threads): &(&'static str, [&str; 2], usize),
    tool: &Path,
    folder: &Path,
    quick: bool,
) -> Result<Pace> {
    let source = root().join("tests/bench").join(program).with_extension("c");
    let (ours, native) = (folder.join(program), folder.join(format!("{program}-native")));
    let flags = ["-O1", "-g", "-w", "-pthread"];
    succeed(Command::new(tool).arg("cc").args(flags).arg(&source).arg("-o").arg(&ours).arg("-lm"))?;
    succeed(Command::new("gcc").args(flags).arg(&source).arg("-o").arg(&native).arg("-lm"))?;
    let explore = |schedules: u32| -> Result<f64> {
        let store = folder.join("store");
        let mut command = Command::new(tool);
        command.args(["explore", "--all", "--schedules", &schedules.to_string(), "--output"]).arg(&store).arg("--").arg(&ours);
        let begin = Instant::now();
        quietly(command.args(arguments))?;
        let seconds = begin.elapsed().as_secs_f64();
        std::fs::remove_dir_all(&store).with_context(|| format!("cannot remove {}", store.display()))?;
        Ok(seconds)
    };
    let (rounds, many) = if quick { (1, 2 * FEW) } else { (ROUNDS, MANY) };
    let (mut starts, mut schedules) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let count = f64::from(many - FEW);
        starts.push(count / native_seconds(&native, &arguments, many - FEW)?);
        schedules.push(count / (explore(many)? - explore(FEW)?).max(f64::EPSILON));
    }
    Ok(Pace { program, threads, starts: super::median(starts), schedules: super::median(schedules) })
}

/// How long so many starts take, on all processors.
fn native_seconds(native: &Path, arguments: &[&str], count: u32) -> Result<f64> {
    let workers = available_parallelism().map_or(1, NonZeroUsize::get);
    let begin = Instant::now();
    let share =
        |worker: usize| (worker..count as usize).step_by(workers).try_for_each(|_| quietly(Command::new(native).args(arguments)));
    std::thread::scope(|scope| {
        let started: Vec<_> = (0..workers).map(|worker| scope.spawn(move || share(worker))).collect();
        started.into_iter().try_for_each(|worker| worker.join().expect("a worker does not panic"))
    })?;
    Ok(begin.elapsed().as_secs_f64())
}

fn quietly(command: &mut Command) -> Result<()> {
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    let status = status.with_context(|| format!("cannot start {}", command.get_program().display()))?;
    if !status.success() {
        bail!("{command:?} failed ({status})");
    }
    Ok(())
}
