//! How many schedules each strategy of `rashomon explore` needs to make small programs of ours fail, against plain stress:
//! executing them again and again as they are.
//!
//! What is fair. Stress executes the program without instrumentation, and so more often in the same time; what is compared is
//! executions. A program that hangs has failed. Every stored schedule (each is minimised) has to replay 20 times out of 20.
//!
//! What a sampling strategy needs is a matter of its seed: a cell is the geometric mean over several. Seeds after the first are
//! given up after fewer schedules, and count as if the next one had failed: means of strategies that need many are too low.

use crate::bars::public::corpus;
use crate::common::bar::{self, Bar};
use crate::common::command_line;
use crate::common::compile::succeed;
use crate::common::options::Selecting;
use crate::common::table::Table;
use anyhow::{Context as _, Result, bail};
use rashomon_event::counted;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use xtask::workspace::{self, root};

const STRATEGIES: [&str; 7] = ["random", "pct", "pos", "reads-from", "orders", "dpor", "preemptions"];
/// Knows nothing of priorities, dependences or bounds: the others have to be better.
const BASELINE: &str = "random";
/// The most schedules of one program and strategy.
const MOST: u32 = 10_000;
const STRESS: u32 = 1_000;
const REPLAYS: u32 = 20;
/// Decide by their seed.
const SAMPLED: [&str; 5] = ["random", "pct", "pos", "reads-from", "orders"];
/// The most schedules of seeds after the first.
const MOST_OF_FURTHER: u32 = 2_000;
/// What steers, in a check too, and what it is measured by: it has to need half as many schedules.
const STEERED: &str = "orders";
const MEASURE: &str = "pos";
/// Programs that need so many by that measure take a search.
const MORE: f64 = 10.0;
/// Longer than any of the programs takes.
const TIMEOUT: Duration = Duration::from_secs(2);

#[derive(Debug, Serialize)]
struct Cell {
    strategy: &'static str,
    /// The schedule, counted from 1, that failed.
    schedule: Option<u32>,
    /// The same with further seeds.
    further: Vec<Option<u32>>,
    failure: String,
    replayed: bool,
}

impl Cell {
    /// The geometric mean over all seeds; whether all of them failed.
    fn mean(&self) -> (f64, bool) {
        let first = f64::from(self.schedule.unwrap_or(MOST + 1));
        let further = self.further.iter().map(|one| f64::from(one.unwrap_or(MOST_OF_FURTHER + 1)));
        let all_failed = self.schedule.is_some() && self.further.iter().all(Option::is_some);
        (geometric_mean([first].into_iter().chain(further)), all_failed)
    }
}

/// Of nothing it is 1.
fn geometric_mean(of: impl Iterator<Item = f64>) -> f64 {
    let (count, sum) = of.fold((0_u32, 0.0), |(count, sum), one| (count + 1, sum + one.ln()));
    (sum / f64::from(count.max(1))).exp()
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
    /// Of --corpora: what the compiler of this machine refuses.
    unbuilt: Vec<String>,
    bars: Vec<Bar>,
}

#[derive(Debug, clap::Args)]
pub struct Options {
    #[command(flatten)]
    selecting: Selecting,
    /// Seeds of each strategy that samples.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    pub seeds: u32,
    /// Only these strategies.
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = clap::builder::PossibleValuesParser::new(STRATEGIES))]
    pub strategies: Vec<String>,
    /// The programs below this folder, instead of ours. Those that no strategy makes fail are listed, and do not count.
    #[arg(long, value_name = "FOLDER")]
    pub corpora: Option<PathBuf>,
}

impl Options {
    fn strategies(&self) -> impl Iterator<Item = &'static str> {
        STRATEGIES.into_iter().filter(|known| self.strategies.is_empty() || self.strategies.iter().any(|wanted| wanted == known))
    }
}

pub fn run(options: &Options) -> Result<bool> {
    let tool = workspace::build_tool()?;
    let folder = tempfile::tempdir().context("cannot create a temporary folder")?;
    let mut programs = Vec::new();
    let mut unbuilt = Vec::new();
    for source in sources(options)? {
        let Some(measured) = measure(&source, &tool, folder.path(), options)? else {
            unbuilt.push(source.display().to_string());
            continue;
        };
        let means = measured.cells.iter().map(|cell| format!("{} {:.1}", cell.strategy, cell.mean().0));
        eprintln!("{}: {}", measured.name, means.collect::<Vec<_>>().join(", "));
        programs.push(measured);
    }
    let bars = bars_of(&programs, options.corpora.is_some());
    let report = Report { evaluation: "explore", command: command_line(), programs, unbuilt, bars };
    if options.selecting.json {
        println!("{}", serde_json::to_string_pretty(&report)?);
        return Ok(bar::all_met(&report.bars));
    }
    print(&report);
    Ok(bar::print(&report.bars))
}

fn sources(options: &Options) -> Result<Vec<PathBuf>> {
    let mut found: Vec<PathBuf> = if let Some(folder) = &options.corpora {
        corpus::programs(folder)?.into_iter().flat_map(|program| program.sources).collect()
    } else {
        let folder = root().join("tests/explore");
        let entries = std::fs::read_dir(&folder).with_context(|| format!("cannot list {}", folder.display()))?;
        entries.filter_map(|entry| Some(entry.ok()?.path())).collect()
    };
    let only = options.selecting.only.as_deref();
    found.retain(|path| only.is_none_or(|part| path.file_name().is_some_and(|name| name.to_string_lossy().contains(part))));
    found.sort();
    if found.is_empty() {
        bail!("no program's name contains that; they are in tests/explore, or in the folder of --corpora");
    }
    Ok(found)
}

/// `None`: a program of others that does not build without the tool either.
fn measure(source: &Path, tool: &Path, folder: &Path, options: &Options) -> Result<Option<ProgramResult>> {
    let name = source.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let is_c = source.extension().is_some_and(|extension| extension == "c");
    let (native, ours) = (folder.join(format!("{name}.native")), folder.join(&name));
    // What is older than C99, too.
    let flags = ["-g", "-O1", "-w", "-pthread", "-fcommon"];
    let compile = |compiler: &mut Command, binary: &Path| succeed(compiler.args(flags).arg(source).arg("-o").arg(binary));
    let built = compile(&mut Command::new(if is_c { "gcc" } else { "g++" }), &native);
    if built.is_err() && options.corpora.is_some() {
        return Ok(None);
    }
    built?;
    compile(Command::new(tool).arg(if is_c { "cc" } else { "c++" }), &ours)?;
    let stressed = if options.selecting.quick { 20 } else { STRESS };
    let stress = (1..=stressed).find(|_| !ends_well(&native));
    let mut cells = Vec::new();
    for strategy in options.strategies() {
        let store = folder.join(format!("{name}-{strategy}"));
        let (schedule, failure) = explore(tool, &ours, &store, strategy, None)?;
        let replayed = schedule.is_some() && replays(tool, &store)?;
        cells.push(Cell { strategy, schedule, further: Vec::new(), failure, replayed });
    }
    // What nobody makes fail does not count.
    let seeds = if options.selecting.quick || cells.iter().all(|cell| cell.schedule.is_none()) { 1 } else { options.seeds };
    for cell in cells.iter_mut().filter(|cell| SAMPLED.contains(&cell.strategy)) {
        for seed in 1..seeds {
            let store = folder.join(format!("{name}-{}-{seed}", cell.strategy));
            cell.further.push(explore(tool, &ours, &store, cell.strategy, Some(seed))?.0);
            std::fs::remove_dir_all(&store).with_context(|| format!("cannot remove {}", store.display()))?;
        }
    }
    Ok(Some(ProgramResult { name, stress, stressed, cells }))
}

/// The schedule that failed first, and how. `seed`: one after the first, of which nothing is wanted but the number.
fn explore(tool: &Path, program: &Path, store: &Path, strategy: &str, seed: Option<u32>) -> Result<(Option<u32>, String)> {
    let mut command = Command::new(tool);
    command.args(["explore", "--strategy", strategy, "--preemptions", "3", "--fail-on", "never", "--schedules"]);
    match seed {
        Some(seed) => command.args([&MOST_OF_FURTHER.to_string(), "--no-minimise", "--seed", &seed.to_string()]),
        None => command.arg(MOST.to_string()),
    };
    let output = command.arg("--output").arg(store).arg("--").arg(program).stdin(Stdio::null()).output();
    let output = output.context("cannot start the tool")?;
    let said = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        bail!("exploring {} with {strategy} failed ({})\n{said}", program.display(), output.status);
    }
    let line = said.lines().find_map(|line| line.strip_prefix("rashomon: ")?.split_once(": schedule "));
    let schedule = line.and_then(|(_, number)| number.trim().parse().ok());
    Ok((schedule, line.map(|(failure, _)| failure.to_owned()).unwrap_or_default()))
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

fn bars_of(programs: &[ProgramResult], of_others: bool) -> Vec<Bar> {
    let mut bars = Vec::new();
    let fails = |program: &&ProgramResult| program.cells.iter().any(|cell| cell.schedule.is_some());
    if !of_others {
        bars.push(Bar::holds("programs", programs.len() >= 20, programs.len().to_string()));
        let missing: Vec<&str> = programs.iter().filter(|program| !fails(program)).map(|program| program.name.as_str()).collect();
        let found = if missing.is_empty() { "all".to_owned() } else { format!("all but {}", missing.join(", ")) };
        bars.push(Bar::holds("bugs found within 10 000 schedules", missing.is_empty(), found));
        for strategy in compared(programs) {
            let found = cells_of(programs, strategy).filter(|cell| cell.schedule.is_some()).count();
            let name = format!("found by {strategy}");
            let bar = Bar::holds(&name, found == programs.len(), format!("{found} of {}", programs.len()));
            bars.push(if strategy == BASELINE { bar.stretch() } else { bar });
        }
    }
    let found: Vec<&Cell> = programs.iter().flat_map(|program| &program.cells).filter(|cell| cell.schedule.is_some()).collect();
    let good = found.iter().filter(|cell| cell.replayed).count();
    bars.push(Bar::holds("minimised schedules that replay 20 of 20", good == found.len(), format!("{good} of {}", found.len())));
    if ![STEERED, MEASURE].iter().all(|needed| compared(programs).any(|strategy| strategy == *needed)) {
        return bars;
    }
    let [ours, measure] = [STEERED, MEASURE].map(|strategy| overall(programs, strategy));
    bars.push(Bar::at_most("schedules of orders, beside those of pos", ours / measure, 0.5, " of them"));
    // A program that fails in the first executions of any strategy leaves nothing to be saved.
    let long = |program: &&ProgramResult| mean_of(program, MEASURE) > MORE;
    let long: Vec<&ProgramResult> = programs.iter().filter(fails).filter(long).collect();
    // Of nothing it is missed.
    let ratio = geometric_mean(long.iter().map(|program| mean_of(program, STEERED) / mean_of(program, MEASURE)));
    let name = format!("the same, in the {} where pos needs more than {MORE}", counted(long.len() as u64, "program"));
    bars.push(Bar::at_most(&name, ratio, 0.5, " of them"));
    let most = programs.iter().filter(fails).map(|program| mean_of(program, STEERED)).fold(0.0, f64::max);
    bars.push(Bar::at_most("schedules of orders, where it needs most", most, 50.0, ""));
    bars
}

/// The strategies that took part.
fn compared(programs: &[ProgramResult]) -> impl Iterator<Item = &'static str> {
    programs.first().into_iter().flat_map(|program| &program.cells).map(|cell| cell.strategy)
}

/// 0 if the strategy did not take part.
fn mean_of(program: &ProgramResult, strategy: &str) -> f64 {
    cells_of(std::slice::from_ref(program), strategy).map(|cell| cell.mean().0).sum()
}

fn cells_of<'p>(programs: &'p [ProgramResult], strategy: &str) -> impl Iterator<Item = &'p Cell> {
    programs.iter().flat_map(|program| &program.cells).filter(move |cell| cell.strategy == strategy)
}

/// The geometric mean over all programs that fail.
fn overall(programs: &[ProgramResult], strategy: &str) -> f64 {
    let fails = |program: &&ProgramResult| program.cells.iter().any(|cell| cell.schedule.is_some());
    geometric_mean(
        programs
            .iter()
            .filter(fails)
            .flat_map(|program| cells_of(std::slice::from_ref(program), strategy).map(|cell| cell.mean().0).collect::<Vec<_>>()),
    )
}

fn print(report: &Report) {
    let seeds = report.programs.iter().flat_map(|program| &program.cells).map(|cell| 1 + cell.further.len()).max().unwrap_or(1);
    println!("{}", report.command);
    println!("Executions until the program fails, geometric means of {seeds} seeds (> : some did not within the limit)");
    let mut titles = vec!["program", "stress"];
    titles.extend(compared(&report.programs));
    titles.push("failure");
    let mut table = Table::new(&titles);
    for program in &report.programs {
        let mut row =
            vec![program.name.clone(), program.stress.map_or_else(|| format!("> {}", program.stressed), |n| n.to_string())];
        row.extend(program.cells.iter().map(|cell| {
            let (mean, all_failed) = cell.mean();
            format!("{}{mean:.0}", if all_failed { "" } else { "> " })
        }));
        row.push(program.cells.iter().map(|cell| cell.failure.clone()).find(|words| !words.is_empty()).unwrap_or_default());
        table.row(row);
    }
    let mut row = vec!["all that fail".to_owned(), String::new()];
    row.extend(compared(&report.programs).map(|strategy| format!("{:.1}", overall(&report.programs, strategy))));
    row.push(String::new());
    table.row(row);
    table.print();
    if !report.unbuilt.is_empty() {
        println!("left out, as this machine's compiler refuses them: {}", report.unbuilt.join(", "));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_that_did_not_fail_counts_as_the_next_schedule() {
        let cell = |schedule, further| Cell { strategy: STEERED, schedule, further, failure: String::new(), replayed: true };
        assert_eq!(cell(Some(7), Vec::new()).mean(), (7.0_f64.ln().exp(), true));
        let (mean, all_failed) = cell(Some(1), vec![None]).mean();
        assert!((mean - f64::from(MOST_OF_FURTHER + 1).sqrt()).abs() < 1e-6 && !all_failed);
        assert!((geometric_mean([2.0, 8.0].into_iter()) - 4.0).abs() < 1e-9);
        assert!((geometric_mean(std::iter::empty()) - 1.0).abs() < 1e-9);
    }
}
