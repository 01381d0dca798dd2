//! Hypothesis 1 of the RaceHunter paper (Programming and Computer Software 50(6), 2024): checking conflicting accesses one and
//! all proves more races than break-points at random.
//!
//! The same tool, recording and time for each program; what differs is where threads are held: at all conflicting accesses, at
//! one pair of suspected statements an execution (RaceFuzzer's way), or at statements drawn at random, for a short time
//! (DataCollider's). The last two go on while there is time; the first ends when everything is decided, unless it is to use the
//! whole budget. Then what leaving out pairs that creation and joining order saves, and loses, and what merging pairs by their
//! places saves. Before that, the paper's comparison in isolation: the same seeds and so the same recordings, a budget that no
//! one spends, and as many executions as it takes to decide all conflicting accesses; only where threads wait differs. What the
//! others get from us: a hold ends as soon as nobody can arrive, and executions run at once without a pause in between.

use super::provoke::Options;
use super::provoke::numbers_of;
use crate::common::bar::Bar;
use crate::common::compile::succeed;
use crate::common::only::Only;
use crate::common::table::Table;
use anyhow::{Context as _, Result, bail};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime};
use xtask::workspace::root;

/// Title, and options of `rashomon provoke`.
const STRATEGIES: [(&str, &[&str]); 5] = [
    ("conflicting accesses", &[]),
    ("the whole budget", &["--whole-budget"]),
    ("statement pairs", &["--strategy", "statements"]),
    ("random", &["--strategy", "random"]),
    ("ordered pairs as well", &["--with-ordered"]),
];
/// Where they are among the strategies.
const TARGETS: usize = 0;
const WHOLE: usize = 1;
const STATEMENTS: usize = 2;
const RANDOM: usize = 3;
const ORDERED: usize = 4;
/// Seconds that each strategy has for a program.
const BUDGET: &str = "4";
const QUICK_BUDGET: &str = "0.5";
/// Seconds of the comparison by executions; a bound, for none should spend it.
const LONG_BUDGET: &str = "60";
/// What is compared by executions, and the seeds of the recordings. Many of the programs have a single pair, which any way may
/// prove by chance: one recording of each says little. Of programs that hang, each of whose executions lasts until it is ended,
/// there is only the first, or as many as begin within this time.
const ISOLATED: [usize; 3] = [TARGETS, STATEMENTS, RANDOM];
const SEEDS: std::ops::RangeInclusive<u32> = 1..=5;
const BEGUN_WITHIN: Duration = Duration::from_secs(20);
const PROGRAMS: usize = 15;
/// Exit codes of the tool's own that say that there is no result.
const WRONG_USE: i32 = 2;
const FAILED: std::ops::RangeInclusive<i32> = 125..=127;
/// Seconds after which the races are counted.
const WITHIN: [f64; 6] = [0.125, 0.25, 0.5, 1.0, 2.0, 4.0];

#[derive(Debug, Default, Serialize)]
struct Cell {
    /// Ids of what was proven, and how many seconds after the start it was stored.
    races: BTreeMap<String, f64>,
    pairs: u64,
    /// Of the pairs.
    proven: u64,
    merged: u64,
    executions: u64,
    seconds: f64,
}

#[derive(Debug, Serialize)]
pub struct Compared {
    name: String,
    cells: Vec<Cell>,
    /// For each seed.
    isolated: Vec<Isolated>,
}

/// With the same recording and number of executions, by `ISOLATED`.
#[derive(Debug, Serialize)]
struct Isolated(Vec<Cell>);

impl Compared {
    fn isolated(&self) -> impl Iterator<Item = &Isolated> {
        self.isolated.iter().filter(|isolated| isolated.is_isolated())
    }
}

impl Isolated {
    /// Whether nothing but the choice of where to wait differed: as many executions, fewer only if no pair was left to be proven,
    /// and the same pairs from the recording, of which a provocation keeps no events to compare.
    fn is_isolated(&self) -> bool {
        let Some(first) = self.0.first() else { return false };
        let same = |of: fn(&Cell) -> u64| self.0.iter().all(|cell| of(cell) == of(first));
        let as_many = |cell: &Cell| cell.executions == first.executions || cell.proven == cell.pairs;
        same(|cell| cell.pairs) && same(|cell| cell.merged) && self.0.iter().all(as_many)
    }
}

/// Name, sources, options of the compiler and arguments.
type Program = (String, Vec<PathBuf>, Vec<String>, &'static [&'static str]);

fn programs() -> Result<Vec<Program>> {
    let tests = root().join("tests");
    let mut all = Vec::new();
    for (folder, race) in [("programs/racy", "race"), ("provocation", ""), ("shacham", "")] {
        let folder = tests.join(folder);
        let entries = std::fs::read_dir(&folder).with_context(|| format!("cannot list {}", folder.display()))?;
        let mut sources: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        sources.sort();
        for source in sources {
            let name = source.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let known = match folder.file_name().and_then(|name| name.to_str()) {
                Some("shacham") => ["tsp", "hedc", "mtrt", "figure7"].contains(&name.as_str()),
                _ => source.extension().is_some_and(|extension| extension != "hpp"),
            };
            let blocks = [
                "deadlock",
                "dining",
                "wakeup",
                "three_locks",
                "semaphore_cycle",
                "holding_lock",
                "spanning_section",
                "one_section",
            ];
            if known && !(race == "race" && blocks.iter().any(|part| name.contains(part))) {
                all.push((name, vec![source], vec!["-DRACE=1".into()], &[] as &[&str]));
            }
        }
    }
    for race in 1..=3 {
        let sources = ["exchange.c", "arinc.c"].map(|name| tests.join("arinc").join(name)).to_vec();
        all.push((format!("arinc {race}"), sources, vec![format!("-DRACE={race}")], &["0.05"]));
    }
    Ok(all)
}

pub fn measure(tool: &Path, folder: &Path, only: &Only<'_>, quick: bool) -> Result<Vec<Compared>> {
    let mut compared = Vec::new();
    for (name, sources, flags, arguments) in programs()? {
        if !only.wants(&format!("hypothesis {name}")) || quick && compared.len() == 3 {
            continue;
        }
        eprintln!("hypothesis {name}");
        let program = folder.join("compared");
        let compiler = if sources.iter().any(|source| source.extension().is_some_and(|it| it == "cpp")) { "c++" } else { "cc" };
        succeed(
            Command::new(tool)
                .args([compiler, "-g", "-O1", "-w", "-pthread"])
                .args(&flags)
                .arg("-o")
                .arg(&program)
                .args(&sources),
        )?;
        let mut cells = Vec::new();
        for (_, strategy) in STRATEGIES {
            let budget = if quick { QUICK_BUDGET } else { BUDGET };
            cells.push(one(tool, folder, &program, arguments, &[&["--budget", budget], strategy].concat())?);
        }
        let start = Instant::now();
        let seeds = SEEDS.take_while(|seed| seed == SEEDS.start() || !quick && start.elapsed() < BEGUN_WITHIN);
        let isolated = seeds.map(|seed| {
            let mut cells: Vec<Cell> = Vec::new();
            let seed = seed.to_string();
            for strategy in ISOLATED {
                // 0 would be no bound.
                let most = cells.first().map(|first| first.executions.max(1).to_string());
                let bound: Vec<&str> = most.iter().flat_map(|most| ["--runs", most]).collect();
                let same = ["--budget", LONG_BUDGET, "--second-look", "0", "--seed", &seed];
                cells.push(one(tool, folder, &program, arguments, &[&same, STRATEGIES[strategy].1, &bound].concat())?);
            }
            Ok(Isolated(cells))
        });
        let isolated = isolated.collect::<Result<_>>()?;
        compared.push(Compared { name, cells, isolated });
    }
    Ok(compared)
}

fn one(tool: &Path, folder: &Path, program: &Path, arguments: &[&str], strategy: &[&str]) -> Result<Cell> {
    let (store, json) = (folder.join("compared-store"), folder.join("compared.json"));
    if store.exists() {
        std::fs::remove_dir_all(&store).context("cannot remove a store")?;
    }
    let mut command = Command::new(tool);
    command.args(["--quiet", "provoke", "--fail-on", "never", "--orders", "off", "--jobs", "1"]);
    command.args(strategy).arg("--output").arg(&store).arg("--json").arg(&json);
    command.arg("--").arg(program).args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let start = SystemTime::now();
    let status = command.status().context("cannot start the tool")?;
    // It ends as the program did, which may be badly.
    if status.code().is_none_or(|code| code == WRONG_USE || FAILED.contains(&code)) {
        bail!("{command:?}: {status}");
    }
    let text = std::fs::read_to_string(&json).with_context(|| format!("no report of {command:?}"))?;
    let report: serde_json::Value = serde_json::from_str(&text).context("the report is no JSON")?;
    let told = numbers_of(&report).context("the report does not tell of a provocation")?;
    let findings = report["findings"].as_array().into_iter().flatten();
    let races = findings.filter(|finding| finding["verdict"] == "proven").filter_map(|finding| finding["id"].as_str());
    // A race is stored when it is caught, and not touched afterwards, as orders are not compared.
    let stored = |id: &str| -> Result<f64> {
        let path = store.join("findings").join(id).with_extension("json");
        let time = path.metadata().and_then(|data| data.modified());
        let time = time.with_context(|| format!("no finding at {}", path.display()))?;
        Ok(time.duration_since(start).unwrap_or_default().as_secs_f64())
    };
    Ok(Cell {
        races: races.map(|id| Ok((id.to_owned(), stored(id)?))).collect::<Result<_>>()?,
        pairs: told.pairs,
        proven: told.proven,
        merged: told.merged,
        executions: told.executions,
        seconds: told.seconds,
    })
}

fn races(compared: &[Compared], strategy: usize) -> usize {
    compared.iter().map(|program| program.cells[strategy].races.len()).sum()
}

/// Races of the recordings in which nothing but where to wait differed.
fn races_isolated(compared: &[Compared], at: usize) -> usize {
    compared.iter().flat_map(Compared::isolated).map(|isolated| isolated.0[at].races.len()).sum()
}

fn print_isolated(compared: &[Compared]) {
    println!("\nHypothesis 1: races proven by the same recordings and number of executions; only where threads wait differs");
    let mut titles = vec!["program", "recordings", "executions"];
    titles.extend(ISOLATED.map(|strategy| STRATEGIES[strategy].0));
    let mut table = Table::new(&titles);
    let mut row = |name: &str, compared: &[Compared]| {
        let recordings = compared.iter().flat_map(Compared::isolated).count();
        let executions: u64 = compared.iter().flat_map(Compared::isolated).map(|isolated| isolated.0[0].executions).sum();
        let races = (0..ISOLATED.len()).map(|at| races_isolated(compared, at).to_string());
        table.row([name.to_owned(), recordings.to_string(), executions.to_string()].into_iter().chain(races).collect());
    };
    compared.iter().for_each(|program| row(&program.name, std::slice::from_ref(program)));
    row("all", compared);
    table.print();
}

/// Races proven in so many seconds, of which recording takes a part.
fn races_within(compared: &[Compared], strategy: usize, seconds: f64) -> usize {
    let times = compared.iter().flat_map(|program| program.cells[strategy].races.values());
    times.filter(|&&time| time <= seconds).count()
}

/// Programs with a race that is proven with ordered pairs, and by none of these strategies, which leave them out. That both sides
/// of a race meet is not certain, so that one of them does not prove it says little: it is by chance, as long as another one
/// does.
fn lost<'a>(compared: &'a [Compared], without: &[usize]) -> Vec<&'a str> {
    let lost = |program: &'a Compared| {
        let found = |id: &String| without.iter().any(|&strategy| program.cells[strategy].races.contains_key(id));
        program.cells[ORDERED].races.keys().filter(move |id| !found(id)).map(|_| program.name.as_str()).collect::<Vec<_>>()
    };
    compared.iter().flat_map(lost).collect()
}

pub fn bars_of(compared: &[Compared], options: &Options) -> Vec<Bar> {
    if options.quick || options.only.is_some() {
        return Vec::new();
    }
    let counts: Vec<usize> = (0..STRATEGIES.len()).map(|strategy| races(compared, strategy)).collect();
    let more = |ours: usize| counts[ours] > counts[STATEMENTS] && counts[ours] > counts[RANDOM];
    let told = |ours: usize| format!("{} against {} and {}", counts[ours], counts[RANDOM], counts[STATEMENTS]);
    let lost = lost(compared, &[TARGETS, WHOLE]);
    let alone: Vec<usize> = (0..ISOLATED.len()).map(|at| races_isolated(compared, at)).collect();
    vec![
        Bar::holds(
            "with the same recordings and number of executions, conflicting accesses prove more races than the others",
            alone[1..].iter().all(|&other| alone[0] > other),
            format!("{} against {} and {}", alone[0], alone[2], alone[1]),
        ),
        Bar::holds("programs compared", compared.len() >= PROGRAMS, compared.len().to_string()),
        Bar::holds(
            "conflicting accesses prove more races than random break-points and statement pairs in the same time",
            more(WHOLE),
            told(WHOLE),
        ),
        Bar::holds("conflicting accesses prove more races although they end when all are decided", more(TARGETS), told(TARGETS))
            .stretch(),
        Bar::holds(
            "leaving out ordered pairs loses no race",
            lost.is_empty(),
            format!("{} lost {}", lost.len(), lost.join(", ")),
        ),
    ]
}

pub fn print(compared: &[Compared], options: &Options) {
    if compared.is_empty() {
        return;
    }
    print_isolated(compared);
    let budget = if options.quick { QUICK_BUDGET } else { BUDGET };
    println!("\nHypothesis 1 by time: races proven (executions) within {budget} s");
    let mut titles = vec!["program"];
    titles.extend(STRATEGIES[..ORDERED].iter().map(|(title, _)| *title));
    let mut table = Table::new(&titles);
    for program in compared {
        let cell = |cell: &Cell| format!("{} ({})", cell.races.len(), cell.executions);
        table.row(std::iter::once(program.name.clone()).chain(program.cells[..ORDERED].iter().map(cell)).collect());
    }
    let totals = (0..ORDERED).map(|strategy| races(compared, strategy).to_string());
    table.row(std::iter::once("all".to_owned()).chain(totals).collect());
    let seconds = |strategy: usize| compared.iter().map(|program| program.cells[strategy].seconds).sum::<f64>();
    // Only the first ends when everything is decided.
    let spent = (0..ORDERED).map(|strategy| format!("{:.1}", seconds(strategy)));
    table.row(std::iter::once("seconds spent".to_owned()).chain(spent).collect());
    table.print();
    println!("\nRaces proven within seconds of the start, the recording included");
    let mut titles = vec!["seconds".to_owned()];
    titles.extend(WITHIN.map(|seconds| format!("{seconds}")));
    let mut table = Table::new(&titles.iter().map(String::as_str).collect::<Vec<_>>());
    for (strategy, (title, _)) in STRATEGIES.iter().enumerate().take(ORDERED) {
        let counts = WITHIN.map(|seconds| races_within(compared, strategy, seconds).to_string());
        table.row(std::iter::once((*title).to_owned()).chain(counts).collect());
    }
    table.print();
    println!("\nWhat pruning saves and loses");
    let sum = |of: fn(&Cell) -> u64, strategy: usize| compared.iter().map(|program| of(&program.cells[strategy])).sum::<u64>();
    let mut table = Table::new(&[
        "rule",
        "pairs without",
        "pairs with",
        "executions without",
        "with",
        "s without",
        "with",
        "by chance not proven",
        "races lost",
    ]);
    let of_pairs: fn(&Cell) -> u64 = |cell| cell.pairs;
    let of_executions: fn(&Cell) -> u64 = |cell| cell.executions;
    table.row(vec![
        "creation and joining order them".into(),
        sum(of_pairs, ORDERED).to_string(),
        sum(of_pairs, TARGETS).to_string(),
        sum(of_executions, ORDERED).to_string(),
        sum(of_executions, TARGETS).to_string(),
        format!("{:.1}", seconds(ORDERED)),
        format!("{:.1}", seconds(TARGETS)),
        (lost(compared, &[TARGETS]).len() - lost(compared, &[TARGETS, WHOLE]).len()).to_string(),
        lost(compared, &[TARGETS, WHOLE]).len().to_string(),
    ]);
    let merged: fn(&Cell) -> u64 = |cell| cell.merged;
    let (before, after) = (sum(merged, TARGETS), sum(of_pairs, TARGETS));
    // One catch at a place is a catch for all pairs with it.
    let blanks = ["", "", "", "", ""].map(str::to_owned);
    let mut row = vec!["the same two places".into(), before.to_string(), after.to_string()];
    row.extend(blanks);
    row.push("0, by construction".into());
    table.row(row);
    table.print();
}
