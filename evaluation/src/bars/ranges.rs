//! The online detector on drawn programs of accesses to ranges, against a model that looks at each byte: `tests/ranges/ranges.c`
//! is both. It does a program's steps as fibres of one thread, so that their order is known, and asks after each one whether the
//! detector reported what the model says.

use crate::common::bar::{self, Bar};
use crate::common::command_line;
use crate::common::compile::{Compilers, succeed};
use crate::common::detector::{Configuration, Detector, Filter};
pub use crate::common::options::Dividing as Options;
use crate::common::table::Table;
use anyhow::{Context as _, Result, bail, ensure};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use xtask::workspace::{self, root};

const PROGRAMS: u64 = 10_000_000;
const QUICK_PROGRAMS: u64 = 20_000;
/// One process's.
const BATCH: u64 = 20_000;
/// Of programs whose first access is kept from the model, in which that makes a difference often.
const FORGETFUL: u64 = 20_000;
/// Reports as they are, one for each race, without names.
const REPORTS: &str = ":suppress_equal_stacks=0:symbolize=0:exitcode=0";

#[derive(Clone, Debug, Default, Serialize)]
struct Counts {
    programs: u64,
    /// Of which every race had to be found.
    whole: u64,
    racy: u64,
    accesses: u64,
    bytes: u64,
    differences: u64,
    /// The first ones.
    examples: Vec<String>,
}

impl Counts {
    const EXAMPLES: usize = 10;

    /// Of what a process prints: a line for each difference, then names and numbers.
    fn parse(text: &str) -> Result<Self> {
        let (examples, last) = text.trim_end().rsplit_once('\n').unwrap_or(("", text.trim_end()));
        let mut counts = Self { examples: examples.lines().take(Self::EXAMPLES).map(str::to_owned).collect(), ..Self::default() };
        let words: Vec<&str> = last.split(' ').collect();
        for pair in words.chunks(2) {
            let [name, number] = pair else { bail!("{last:?} is not names and numbers") };
            let place = match *name {
                "programs" => &mut counts.programs,
                "whole" => &mut counts.whole,
                "racy" => &mut counts.racy,
                "accesses" => &mut counts.accesses,
                "bytes" => &mut counts.bytes,
                "differences" => &mut counts.differences,
                _ => bail!("{last:?} is not names and numbers"),
            };
            *place = number.parse().with_context(|| format!("{last:?} is not names and numbers"))?;
        }
        Ok(counts)
    }

    fn add(&mut self, other: Self) {
        self.programs += other.programs;
        self.whole += other.whole;
        self.racy += other.racy;
        self.accesses += other.accesses;
        self.bytes += other.bytes;
        self.differences += other.differences;
        self.examples.extend(other.examples);
        self.examples.truncate(Self::EXAMPLES);
    }
}

#[derive(Debug, Serialize)]
struct Report {
    evaluation: &'static str,
    command: String,
    quick: bool,
    compilers: Compilers,
    drawn: Counts,
    /// With the first access of each program kept from the model.
    forgetful: Counts,
    bars: Vec<Bar>,
}

pub fn run(options: &Options) -> Result<bool> {
    ensure!(options.selecting.only.is_none(), "there is one kind of programs: --only chooses nothing");
    let quick = options.selecting.quick;
    let programs = if quick { QUICK_PROGRAMS } else { PROGRAMS };
    let jobs = options.jobs.map_or_else(|| std::thread::available_parallelism().map_or(1, usize::from), usize::from);
    let tool = workspace::build_tool()?;
    let compilers = Compilers::find()?;
    let folder = tempfile::Builder::new().prefix("rashomon-evaluate-").tempdir().context("cannot create a temporary folder")?;
    let program = build(&compilers, &tool, folder.path())?;
    let drawn = in_parallel(&program, programs, jobs)?;
    let forgetful = batch(&program, 0, FORGETFUL.min(programs), &["forget"])?;
    let bars = vec![
        Bar::at_least("programs", drawn.programs as f64, programs as f64, ""),
        Bar::at_most("programs of which detector and model say different things", drawn.differences as f64, 0.0, ""),
        Bar::at_least("of a hundred programs, those with a race", percent(drawn.racy, drawn.programs), 25.0, ""),
        Bar::at_most("of a hundred programs, those with a race", percent(drawn.racy, drawn.programs), 75.0, ""),
        Bar::at_least(
            "of a hundred programs, those of which no race may be missed",
            percent(drawn.whole, drawn.programs),
            75.0,
            "",
        ),
        Bar::at_least(
            "of a hundred whose first access the model does not know, those that differ",
            percent(forgetful.differences, forgetful.programs),
            10.0,
            "",
        ),
    ];
    let report = Report { evaluation: "ranges", command: command_line(), quick, compilers, drawn, forgetful, bars };
    bar::finish(&report, &report.bars, options.selecting.json, || print(&report))
}

fn percent(some: u64, all: u64) -> f64 {
    100.0 * some as f64 / all.max(1) as f64
}

/// Not instrumented: the program says itself what it accesses, and the model is no part of it.
fn build(compilers: &Compilers, tool: &Path, folder: &Path) -> Result<PathBuf> {
    let (object, program) = (folder.join("ranges.o"), folder.join("ranges"));
    let source = root().join("tests/ranges/ranges.c");
    succeed(Command::new(&compilers.c).args(["-O2", "-g", "-fno-builtin", "-c"]).arg(source).arg("-o").arg(&object))?;
    succeed(Command::new(tool).arg("cc").arg(&object).arg("-o").arg(&program).env("RASHOMON_CC", &compilers.c))?;
    Ok(program)
}

fn batch(program: &Path, first: u64, count: u64, more: &[&str]) -> Result<Counts> {
    let mut command = Command::new(program);
    command.args([first.to_string(), count.to_string()]).args(more).stdin(Stdio::null()).stderr(Stdio::null());
    let configuration = Configuration { detector: Detector::Hb, filter: Filter::None };
    let output = configuration.apply(&mut command, REPORTS).output().with_context(|| format!("cannot start {command:?}"))?;
    ensure!(output.status.success(), "{command:?} failed ({})", output.status);
    Counts::parse(&String::from_utf8_lossy(&output.stdout))
}

fn in_parallel(program: &Path, programs: u64, jobs: usize) -> Result<Counts> {
    let next = AtomicU64::new(0);
    let share = || -> Result<Counts> {
        let mut counts = Counts::default();
        loop {
            let first = next.fetch_add(BATCH, Ordering::Relaxed);
            if first >= programs {
                return Ok(counts);
            }
            counts.add(batch(program, first, BATCH.min(programs - first), &[])?);
            if first.is_multiple_of(50 * BATCH) {
                eprintln!("from program {first} on: {} differences so far in this share", counts.differences);
            }
        }
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..jobs).map(|_| scope.spawn(share)).collect();
        let mut all = Counts::default();
        for worker in workers {
            all.add(worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?);
        }
        Ok(all)
    })
}

fn print(report: &Report) {
    println!("{}: {}\n", report.command, report.compilers.version);
    let mut table = Table::new(&["", "programs", "no race may be missed", "with a race", "accesses", "bytes", "differences"]);
    for (name, counts) in [("drawn", &report.drawn), ("first access kept from the model", &report.forgetful)] {
        let numbers = [counts.programs, counts.whole, counts.racy, counts.accesses, counts.bytes, counts.differences];
        table.row(std::iter::once(name.to_owned()).chain(numbers.map(|number| number.to_string())).collect());
    }
    table.print();
    report.drawn.examples.iter().for_each(|example| println!("{example}"));
    println!();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_prints_differences_then_counts() {
        let counts =
            Counts::parse("program 7, step 1: no\nprograms 3 whole 2 racy 1 accesses 9 bytes 80 differences 1\n").unwrap();
        assert_eq!((counts.programs, counts.whole, counts.racy, counts.differences), (3, 2, 1, 1));
        assert_eq!(counts.examples, ["program 7, step 1: no"]);
        assert!(Counts::parse("").is_err() && Counts::parse("programs many").is_err() && Counts::parse("programs").is_err());
    }
}
