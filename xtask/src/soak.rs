//! `cargo xtask soak`: programs that do everything at once (`tests/soak/chaos.c`), started, forked, signalled and killed at
//! random moments, under recording and under detection.
//!
//! Every round is checked: it ends; nothing in it went wrong that the program or the tool can notice; every trace, of every
//! process, is readable up to its last completed buffer; no process is left, and no file where none belongs. What a round does
//! follows from the seed and its number, but for the moments at which signals arrive. A round that fails is kept, with the
//! command that repeats it.

use anyhow::{Context as _, Result, bail};
use clap::Args;
use rashomon_abi::numbers::SplitMix;
use rashomon_trace::{Recording, TraceError, processes};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use xtask::workspace::{build_tool, root};

#[derive(Debug, Args)]
pub struct Options {
    #[arg(long, default_value_t = 30.0)]
    minutes: f64,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Only the round of this number.
    #[arg(long)]
    round: Option<u64>,
}

/// A round takes seconds; what takes longer hangs. The tool's own time limit is longer, so that what hangs can be looked at.
const TIMEOUT: Duration = Duration::from_secs(60);
const LIMIT: &str = "300";
const PAUSE: Duration = Duration::from_millis(3);
/// The kernel takes a while to clear a killed process away, and what it started may go on for as long as it would have.
const GRACE: Duration = TIMEOUT;
const MODES: [&[&str]; 9] = [
    &["record", "--policy", "free"],
    &["record", "--policy", "random"],
    &["record", "--policy", "pct"],
    &["record", "--policy", "round-robin"],
    &["detect"],
    &["detect", "--detector", "hybrid"],
    &["detect", "--detector", "lockset"],
    &["detect", "--filter", "tree"],
    &["record", "--policy", "free", "--filter", "tree"],
];
const GENERATIONS: &str = "3";

/// Signals that arrive from outside, and after how long.
struct Attack {
    signal: Signal,
    after: Duration,
}

struct Round {
    number: u64,
    mode: &'static [&'static str],
    seed: u64,
    attack: Option<Attack>,
}

impl Round {
    fn new(seed: u64, number: u64) -> Self {
        let mut random = SplitMix(seed.wrapping_mul(0xd134_2543_de82_ef95) ^ number);
        let mode = MODES[random.below(MODES.len() as u64) as usize];
        let signals = [Signal::KILL, Signal::SEGV, Signal::ABORT, Signal::TERM, Signal::USR1];
        let attack = (random.below(3) == 0).then(|| Attack {
            signal: signals[random.below(signals.len() as u64) as usize],
            after: Duration::from_millis(random.below(400)),
        });
        Self { number, mode, seed: random.draw(), attack }
    }
}

/// Things that rounds did, counted.
type Tally = BTreeMap<String, u64>;

struct Bench {
    tool: PathBuf,
    program: PathBuf,
    libraries: PathBuf,
    folder: PathBuf,
}

pub fn run(options: &Options) -> Result<bool> {
    let folder = tempfile::Builder::new().prefix("rashomon-soak-").tempdir().context("cannot make a folder")?;
    let bench = Bench::prepare(folder.path())?;
    let (start, length) = (Instant::now(), Duration::from_secs_f64(options.minutes * 60.0));
    let mut tally = Tally::new();
    let mut failures = Vec::new();
    let mut number = options.round.unwrap_or(0);
    while options.round.map_or(start.elapsed() < length, |only| only == number) {
        let round = Round::new(options.seed, number);
        let place = folder.path().join(format!("round-{number}"));
        match bench.play(&round, &place, &mut tally) {
            Ok(()) => fs::remove_dir_all(&place).with_context(|| format!("cannot remove {}", place.display()))?,
            Err(error) => {
                println!("round {number} failed: {error:#}");
                println!("  again: cargo xtask soak --seed {} --round {number}", options.seed);
                failures.push(number);
            }
        }
        number += 1;
        if number.is_multiple_of(50) {
            println!("{number} rounds in {} s, {} failed", start.elapsed().as_secs(), failures.len());
        }
    }
    println!("\n{} rounds in {} s:", number - options.round.unwrap_or(0), start.elapsed().as_secs());
    for (what, count) in &tally {
        println!("  {count:>6} {what}");
    }
    if failures.is_empty() {
        println!("nothing failed");
    } else {
        println!("{} rounds failed: {failures:?}; they are kept in {}", failures.len(), folder.keep().display());
        return Ok(false);
    }
    Ok(true)
}

impl Bench {
    fn prepare(folder: &Path) -> Result<Self> {
        let bench = Self {
            tool: build_tool()?,
            program: folder.join("chaos"),
            libraries: folder.join("libraries"),
            folder: folder.to_path_buf(),
        };
        fs::create_dir(&bench.libraries).context("cannot make a folder")?;
        let sources = root().join("tests/soak");
        bench.compile(&sources.join("chaos.c"), &bench.program, &["-pthread"])?;
        for number in 0..2 {
            let library = bench.libraries.join(format!("libplugin{number}.so"));
            bench.compile(&sources.join("plugin.c"), &library, &["-shared", "-fPIC", "-pthread"])?;
        }
        Ok(bench)
    }

    fn compile(&self, source: &Path, to: &Path, flags: &[&str]) -> Result<()> {
        let mut command = Command::new(&self.tool);
        command.args(["--quiet", "cc", "-g", "-O1", "-w"]).args(flags).arg("-o").arg(to).arg(source).arg("-ldl");
        match command.status().context("cannot start the tool")?.success() {
            true => Ok(()),
            false => bail!("{} does not compile", source.display()),
        }
    }

    fn play(&self, round: &Round, place: &Path, tally: &mut Tally) -> Result<()> {
        fs::create_dir(place).with_context(|| format!("cannot make {}", place.display()))?;
        let store = place.join("store");
        let recording = round.mode[0] == "record";
        let mut command = Command::new(&self.tool);
        command.arg("--quiet").args(round.mode);
        if recording {
            command.args(["--seed", &(round.seed % 1000).to_string(), "--timeout", LIMIT, "--output"]).arg(&store);
        }
        command.arg("--").arg(&self.program).arg(round.seed.to_string()).arg(GENERATIONS).arg(&self.libraries);
        command
            .current_dir(place)
            .stdin(Stdio::null())
            .stdout(File::create(place.join("out"))?)
            .stderr(File::create(place.join("err"))?);
        command.process_group(0);
        let child = command.spawn().context("cannot start the tool")?;
        let status = self.supervise(child, round)?;
        let said = String::from_utf8_lossy(&fs::read(place.join("err"))?).into_owned();
        if let Some(line) = said.lines().find(|line| is_complaint(line)) {
            bail!("{}: {line}", round.mode.join(" "));
        }
        *tally.entry(format!("{}: {}", round.mode.join(" "), ending(status))).or_default() += 1;
        if recording && store.join("recording-0/header").is_file() {
            self.verify(&store, round, tally)?;
        } else if recording && round.attack.is_none() {
            bail!("nothing was recorded: {said}");
        }
        self.nothing_left(place)
    }

    /// Waits for the tool, and attacks the program meanwhile.
    fn supervise(&self, mut child: Child, round: &Round) -> Result<ExitStatus> {
        let start = Instant::now();
        let mut attack = round.attack.as_ref();
        loop {
            if let Some(status) = child.try_wait().context("cannot wait")? {
                return Ok(status);
            }
            if let Some(due) = attack.filter(|attack| start.elapsed() >= attack.after) {
                attack = None;
                // The first process of the program: it does not matter when it is gone, or not there yet.
                if let Some(id) = self.programs().into_iter().min().and_then(Pid::from_raw) {
                    let _ = kill_process(id, due.signal);
                }
            }
            if start.elapsed() > TIMEOUT {
                let stacks = self.stacks();
                if let Some(group) = Pid::from_raw(child.id().cast_signed()) {
                    let _ = kill_process_group(group, Signal::KILL);
                }
                self.kill_programs();
                let _ = child.wait();
                bail!("{} did not end within {} s\n{stacks}", round.mode.join(" "), TIMEOUT.as_secs());
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Every process's trace: sound as far as it goes, and loadable.
    fn verify(&self, store: &Path, round: &Round, tally: &mut Tally) -> Result<()> {
        for process in processes(&store.join("recording-0"))? {
            let recording = match Recording::open(&process.folder) {
                Err(TraceError::NotBegun { .. }) if round.attack.is_some() => continue,
                opened => opened.with_context(|| format!("process {}", process.path))?,
            };
            let verified = recording.verify().with_context(|| format!("process {}", process.path))?;
            *tally.entry("processes recorded".into()).or_default() += 1;
            *tally.entry("records verified".into()).or_default() += verified.records;
            if !verified.shortcomings.is_empty() {
                *tally.entry("processes recorded that ended early".into()).or_default() += 1;
            }
            if round.number.is_multiple_of(4) {
                recording.load().with_context(|| format!("process {}", process.path))?;
            }
        }
        Ok(())
    }

    /// Processes that execute the program or the tool's reporter for it.
    fn programs(&self) -> Vec<i32> {
        let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
        let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        // A process whose main thread has left shows its program only where its other threads are.
        let ours = |id: &i32| {
            let threads = fs::read_dir(format!("/proc/{id}/task")).into_iter().flatten().flatten();
            let mut programs = threads.filter_map(|thread| fs::read_link(thread.path().join("exe")).ok());
            programs.any(|path| path == self.program)
        };
        numbers.filter(ours).collect()
    }

    fn kill_programs(&self) {
        for id in self.programs().into_iter().filter_map(Pid::from_raw) {
            let _ = kill_process(id, Signal::KILL);
        }
    }

    fn nothing_left(&self, place: &Path) -> Result<()> {
        let start = Instant::now();
        while !self.programs().is_empty() {
            if start.elapsed() > GRACE {
                let stacks = self.stacks();
                self.kill_programs();
                bail!("processes were left\n{stacks}");
            }
            std::thread::sleep(PAUSE);
        }
        let known = |folder: &Path, names: &[&str]| -> Result<()> {
            for entry in fs::read_dir(folder)? {
                let name = entry?.file_name().to_string_lossy().into_owned();
                if !names.contains(&name.as_str()) && !name.starts_with("round-") {
                    bail!("{name} was left in {}", folder.display());
                }
            }
            Ok(())
        };
        known(place, &["store", "out", "err"])?;
        known(&self.folder, &["chaos", "libraries"])
    }

    /// What all threads of the program are at, as gdb tells it.
    fn stacks(&self) -> String {
        let mut text = String::new();
        for id in self.programs() {
            let mut gdb = Command::new("gdb");
            gdb.args([
                "-q",
                "-batch",
                "-iex",
                "set debuginfod enabled off",
                "-ex",
                "thread apply all bt 20",
                "-p",
                &id.to_string(),
            ]);
            match gdb.stdin(Stdio::null()).output() {
                Ok(output) => {
                    let output = String::from_utf8_lossy(&output.stdout).into_owned();
                    let lines = output.lines().filter(|line| line.starts_with('#') || line.starts_with("Thread"));
                    text.push_str(&format!("process {id}\n"));
                    lines.for_each(|line| text.push_str(&format!("  {line}\n")));
                }
                Err(error) => text.push_str(&format!("process {id}: no stacks without gdb: {error}\n")),
            }
        }
        text
    }
}

fn is_complaint(line: &str) -> bool {
    ["chaos:", "internal error", "panicked", "out of memory", "CHECK failed"].iter().any(|what| line.contains(what))
}

fn ending(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "ended".into(),
    }
}
