//! What it costs to record calls into libraries, and values of plain accesses besides, beside recording without: three real
//! programs.
//!
//! What is fair. Same policy, seed and input for all; the tool's own time is part of it. The ways are measured in turns, so that
//! a machine that slows down slows all of them down, and it is processor time that is compared, which does not depend on what
//! else the machine does as much as the time on the clock.

use crate::bars::pbzip2;
use crate::common::bar::Bar;
use crate::common::compile::succeed;
use crate::common::debian;
use crate::common::measure::{self, Usage, medians};
use crate::common::table::Table;
use crate::common::trace_size;
use anyhow::{Context as _, Result, bail};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::process::Command;
use xtask::workspace::root;

/// No calls; all calls, each with the whole of what it reaches; all calls, each place told once; the same without calls that are
/// known to order nothing; and that with all accesses and their values.
const WAYS: [(&str, &[&str]); 5] = [
    ("plain", &["--unseen-calls=off"]),
    ("naive", &["--unseen-calls=naive"]),
    ("once", &["--unseen-calls=every"]),
    ("needed", &[]),
    ("values", &["--values"]),
];
/// Of the way that is the default.
const NEEDED: usize = 3;
const NAMES: [&str; 3] = ["pbzip2", "sqlite", "words"];
const RUNS: u32 = 5;
/// In percent (Rajagopalan, thesis, §5.2, has 4 % on average).
const LIMIT: f64 = 13.0;

#[derive(Debug, Serialize)]
pub struct Cost {
    program: &'static str,
    /// In the order of [`WAYS`].
    seconds: Vec<f64>,
    bytes: Vec<u64>,
    /// Processor time of *plain* and of *needed* with ten times the input, where what is above takes a tenth of a second: to that
    /// the machine adds more than what is measured.
    long: Option<[f64; 2]>,
}

impl Cost {
    /// What a way costs more than none, in percent.
    fn more(&self, way: usize) -> f64 {
        100.0 * (self.seconds[way] / self.seconds[0] - 1.0)
    }

    fn larger(&self, way: usize) -> f64 {
        100.0 * (self.bytes[way] as f64 / self.bytes[0] as f64 - 1.0)
    }
}

/// A program, built in a folder, and what is removed before each execution.
pub struct Subject {
    folder: tempfile::TempDir,
    program: PathBuf,
    arguments: Vec<&'static str>,
    /// For ten times the work, where the usual one takes a tenth of a second.
    longer: Option<Vec<&'static str>>,
    results: &'static [&'static str],
    /// If it is one of ours.
    source: Option<String>,
}

/// Names of the programs that `only` selects.
pub fn selected(only: Option<&str>) -> Vec<&'static str> {
    NAMES.into_iter().filter(|name| only.is_none_or(|part| name.contains(part))).collect()
}

pub fn costs(tool: &Path, names: &[&'static str], quick: bool) -> Result<Vec<Cost>> {
    names.iter().map(|name| cost(tool, name, quick)).collect()
}

fn cost(tool: &Path, name: &'static str, quick: bool) -> Result<Cost> {
    eprintln!("{name}: what recording calls costs");
    let mut subject = Subject::build(tool, name, quick)?;
    let mut usages: Vec<Vec<Usage>> = vec![Vec::new(); WAYS.len()];
    let mut bytes = vec![0; WAYS.len()];
    for _ in 0..if quick { 1 } else { RUNS } {
        for (way, (_, options)) in WAYS.iter().enumerate() {
            let (usage, size) = subject.record(tool, options)?;
            usages[way].push(usage);
            bytes[way] = size;
        }
    }
    let seconds = usages.iter().map(|runs| medians(runs).cpu_seconds).collect();
    let long = subject.longer.take().map(|arguments| Subject { arguments, ..subject }.long(tool)).transpose()?;
    Ok(Cost { program: name, seconds, bytes, long })
}

impl Subject {
    pub fn build(tool: &Path, name: &str, quick: bool) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("rashomon-evaluate-").tempdir()?;
        let program = folder.path().join("program");
        let compile = |source: &Path, package: &str, needs: &str| -> Result<()> {
            debian::provide(&[(needs, flags(package).is_ok())])?;
            let mut command = Command::new(tool);
            command.args(["cc", "-g", "-O2", "-w", "-pthread", "-o"]).arg(&program).arg(source).args(flags(package)?);
            succeed(&mut command)
        };
        let source = match name {
            "pbzip2" => {
                let source = pbzip2::fetch_source(folder.path())?;
                let program = pbzip2::build(&source, &folder.path().join("checked"), Some(tool))?;
                pbzip2::write_input(&folder.path().join("input"), if quick { 1_000_000 } else { 8_000_000 })?;
                let arguments = vec!["-k", "-p4", "-f", "input"];
                return Ok(Self { folder, program, arguments, results: &["input.bz2"], longer: None, source: None });
            }
            "sqlite" => {
                let source = root().join("evaluation/src/bars/real/sqlite_driver.c");
                compile(&source, "sqlite3", "libsqlite3-dev")?;
                source
            }
            _ => {
                let source = root().join("evaluation/src/papers/causality/words.c");
                compile(&source, "glib-2.0", "libglib2.0-dev")?;
                source
            }
        };
        let (arguments, results): (Vec<&str>, &[&str]) = match (name, quick) {
            ("sqlite", true) => (vec!["test.db", "4", "8"], &["test.db", "test.db-wal", "test.db-shm"]),
            ("sqlite", false) => (vec!["test.db", "4", "80"], &["test.db", "test.db-wal", "test.db-shm"]),
            (_, true) => (vec!["4", "200"], &[]),
            _ => (vec!["32", "400"], &[]),
        };
        let longer = match (name, quick) {
            (_, true) => None,
            ("sqlite", false) => Some(vec!["test.db", "4", "800"]),
            _ => Some(vec!["320", "400"]),
        };
        let source = Some(std::fs::read_to_string(source)?);
        Ok(Self { folder, program, arguments, longer, results, source })
    }

    /// What *plain* and *needed* take.
    fn long(&self, tool: &Path) -> Result<[f64; 2]> {
        let mut usages = [Vec::new(), Vec::new()];
        for _ in 0..RUNS {
            for (way, usages) in [0, NEEDED].into_iter().zip(&mut usages) {
                usages.push(self.record(tool, WAYS[way].1)?.0);
            }
        }
        Ok(usages.map(|runs| medians(&runs).cpu_seconds))
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub const fn results(&self) -> &'static [&'static str] {
        self.results
    }

    pub fn source(&self) -> Option<&str> {
        self.source.as_deref()
    }

    /// As before the first execution.
    pub fn clean(&self) {
        for name in self.results {
            let _absent = std::fs::remove_file(self.folder().join(name));
        }
    }

    /// Has a command execute the program.
    pub fn run(&self, command: &mut Command) -> Result<()> {
        command.arg(&self.program).args(&self.arguments).current_dir(self.folder());
        command.output().with_context(|| format!("cannot start {}", command.get_program().display()))?;
        Ok(())
    }

    fn record(&self, tool: &Path, options: &[&str]) -> Result<(Usage, u64)> {
        let folder = self.folder.path();
        self.clean();
        let store = folder.join("store");
        let mut command = Command::new(tool);
        command.args(["--quiet", "record", "--trace-limit", "0", "--timeout", "0"]).args(options).arg("--output").arg(&store);
        let usage = measure::run(command.arg("--").arg(&self.program).args(&self.arguments).current_dir(folder))?;
        let sessions = trace_size::sessions_below(&store)?;
        let [session] = sessions.as_slice() else {
            bail!("{} holds {} recordings instead of one", store.display(), sessions.len());
        };
        let bytes = trace_size::of(session)?.bytes;
        std::fs::remove_dir_all(&store).with_context(|| format!("cannot remove {}", store.display()))?;
        Ok((usage, bytes))
    }
}

/// What a compiler needs for an installed library.
pub fn flags(package: &str) -> Result<Vec<String>> {
    let output = Command::new("pkg-config").args(["--cflags", "--libs", package]).output().context("cannot start pkg-config")?;
    if !output.status.success() {
        bail!("pkg-config knows no {package}");
    }
    Ok(String::from_utf8_lossy(&output.stdout).split_whitespace().map(str::to_owned).collect())
}

pub fn bars(costs: &[Cost]) -> Vec<Bar> {
    let bar =
        |program: &str, more| Bar::at_most(&format!("recording calls, time more than without: {program}"), more, LIMIT, " %");
    let mut bars: Vec<Bar> = costs.iter().map(|cost| bar(cost.program, cost.more(NEEDED))).collect();
    for (cost, [plain, needed]) in costs.iter().filter_map(|cost| Some((cost, cost.long?))) {
        bars.push(bar(&format!("{}, ten times the input", cost.program), 100.0 * (needed / plain - 1.0)));
    }
    bars
}

pub fn print(costs: &[Cost]) {
    if costs.is_empty() {
        return;
    }
    println!("Recording calls: processor time and size of the recording, more than without\n");
    let mut titles = vec!["program", "plain"];
    titles.extend(WAYS[1..].iter().map(|(name, _)| *name));
    let mut table = Table::new(&titles);
    for cost in costs {
        let plain = format!("{:.3} s {:.1} MB", cost.seconds[0], cost.bytes[0] as f64 / 1e6);
        let more = (1..WAYS.len()).map(|way| format!("{:+.0} % {:+.0} %", cost.more(way), cost.larger(way)));
        table.row([cost.program.to_owned(), plain].into_iter().chain(more).collect());
    }
    table.print();
    println!();
}
