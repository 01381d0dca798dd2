//! Table 1: programs with their ground truth. One recording each; what the CSP engine predicts from it is forced.
//!
//! What is fair. Nothing is given but the program, its arguments and 10 seconds; the same is done to programs with bugs and
//! without. A program counts as found if findings of all kinds that it has are proven; those with bugs of other kinds than races
//! and deadlocks are left out. Beside it: as many free executions under clang's ThreadSanitizer, of which one that reports a race
//! is enough (of a deadlock: an inversion of lock orders).

use super::enforced::{Enforced, enforced, said_by};
use crate::common::bar::{self, Bar};
use crate::common::compile::{Compilers, succeed};
use crate::common::races;
use crate::common::suite::{self, Program, Suite};
use crate::common::table::Table;
use anyhow::{Context as _, Result};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::time::Instant;
use xtask::workspace;

/// Seconds for what is forced.
const BUDGET: &str = "10";
/// A bug in code that one recording did not execute may be in another one.
pub const RECORDINGS: u32 = 4;
/// Seconds of one run under ThreadSanitizer, after which it counts as hanging.
const TIMEOUT: u64 = 4;
/// Groups of `tests/programs` that are scenarios; the others show what else a recording has to survive.
const GROUPS: [&str; 3] = ["measured/", "race_free/", "racy/"];
/// With --quick every so many programs.
const QUICK: usize = 8;
/// Programs of the paper's Table 1.
const PUBLISHED: usize = 48;

#[derive(Debug, Default, Serialize)]
pub struct Row {
    program: String,
    /// Why it was not measured.
    failed: Option<String>,
    /// Kinds of findings that exist.
    bugs: BTreeSet<String>,
    /// Further ones, of which only some schedules tell.
    possible: BTreeSet<String>,
    proven: BTreeSet<String>,
    /// In parallel.
    enforced: Enforced,
    /// Kinds that ThreadSanitizer reports.
    sanitizer: BTreeSet<String>,
    events: u64,
    executions: u64,
    seconds: f64,
}

impl Row {
    fn exists(&self, kind: &String) -> bool {
        self.bugs.contains(kind) || self.possible.contains(kind)
    }

    fn found(&self) -> usize {
        self.bugs.intersection(&self.proven).count()
    }

    fn confirmed(&self) -> usize {
        self.bugs.intersection(&self.enforced.kinds).count()
    }

    fn invented_in_parallel(&self) -> usize {
        self.enforced.kinds.iter().filter(|kind| !self.exists(kind)).count()
    }

    fn invented(&self) -> usize {
        self.proven.iter().filter(|kind| !self.exists(kind)).count()
    }
}

fn kind_of(expectation: &str) -> &str {
    match expectation.split_whitespace().next().unwrap_or_default() {
        "race" => "data-race",
        kind => kind,
    }
}

/// The bugs of a program, if all are races or deadlocks that every schedule may be asked for.
fn bugs(program: &Program) -> Option<BTreeSet<String>> {
    let kinds: BTreeSet<String> = program.expected().iter().map(|one| kind_of(one).to_owned()).collect();
    let known = |kind: &String| ["data-race", "deadlock"].contains(&kind.as_str());
    (kinds.iter().all(known) && !(kinds.is_empty() && program.has_allowances())).then_some(kinds)
}

pub fn rows(only: Option<&str>, quick: bool) -> Result<Vec<Row>> {
    let mut all = suite::programs(only)?;
    all.retain(|program| GROUPS.iter().any(|group| program.path.starts_with(group)));
    all.extend(suite::scenarios(only)?);
    all.iter_mut().for_each(|program| program.timeout_seconds = program.timeout_seconds.min(TIMEOUT));
    let chosen: Vec<(Program, BTreeSet<String>)> = all
        .into_iter()
        .filter_map(|program| Some((bugs(&program)?, program)))
        .map(|(bugs, program)| (program, bugs))
        .step_by(if quick { QUICK } else { 1 })
        .collect();
    let compilers = Compilers::find()?;
    let suite = Suite::new(workspace::build_tool()?, &compilers)?;
    let folder = tempfile::tempdir().context("cannot create a temporary folder")?;
    suite::in_parallel(&chosen, |(program, bugs)| {
        let place = folder.path().join(program.path.replace(['/', '.'], "_"));
        let (program_name, bugs) = (program.path.trim_start_matches("../").to_owned(), bugs.clone());
        let row = row(&suite, &compilers, program, &bugs, &place);
        let row = row.unwrap_or_else(|error| Row { failed: Some(format!("{error:#}")), bugs, ..Row::default() });
        eprintln!("{program_name}: {:.1} s{}", row.seconds, row.failed.as_ref().map_or("", |_| ", failed"));
        Ok(Row { program: program_name, ..row })
    })
}

fn row(suite: &Suite, compilers: &Compilers, program: &Program, bugs: &BTreeSet<String>, place: &Path) -> Result<Row> {
    std::fs::create_dir(place).with_context(|| format!("cannot create {}", place.display()))?;
    let (binary, store, json, input) =
        (place.join("program"), place.join("store"), place.join("report.json"), place.join("input"));
    let (wrapper, standard) = if program.language == "c" { ("cc", "-std=gnu11") } else { ("c++", "-std=c++17") };
    let mut compile = Command::new(&suite.tool);
    compile.args([wrapper, standard, "-g", "-O1", "-w", "-pthread"]).arg(program.source()).arg("-o").arg(&binary);
    succeed(compile.args(&program.link))?;
    let begin = Instant::now();
    let mut record = Command::new(&suite.tool);
    record.args(["--quiet", "record", "--recordings", &RECORDINGS.to_string(), "--output"]).arg(&store);
    if let Some(text) = &program.stdin {
        std::fs::write(&input, text).with_context(|| format!("cannot write {}", input.display()))?;
        record.arg("--stdin").arg(&input);
    }
    record.arg("--").arg(&binary).args(&program.args).current_dir(program.source().parent().unwrap_or(place));
    let recorded = said_by(&mut record)?;
    let mut confirm = Command::new(&suite.tool);
    confirm.args(["--quiet", "confirm", "--engine", "csp", "--budget", BUDGET, "--json"]).arg(&json).arg(&store);
    let confirmed = said_by(&mut confirm)?;
    let seconds = begin.elapsed().as_secs_f64();
    let text = std::fs::read(&json).with_context(|| format!("confirming left no report\n{recorded}{confirmed}"))?;
    let report: Value = serde_json::from_slice(&text).context("the report")?;
    let findings = report["findings"].as_array().into_iter().flatten();
    let proven = findings.filter(|finding| finding["verdict"] == "proven");
    let proven = proven.filter_map(|finding| finding["kind"].as_str()).map(str::to_owned).collect();
    let enforced = enforced(&suite.tool, &store, BUDGET)?;
    let sanitizer = sanitizer(suite, compilers, program)?;
    // Stores are large, and no longer needed.
    std::fs::remove_dir_all(place).with_context(|| format!("cannot remove {}", place.display()))?;
    let count = |name: &str| report["run"][name].as_u64().unwrap_or(0);
    Ok(Row {
        bugs: bugs.clone(),
        possible: program.allowed().iter().map(|one| kind_of(one).to_owned()).collect(),
        proven,
        enforced,
        sanitizer,
        events: count("events"),
        executions: count("executions"),
        seconds,
        ..Row::default()
    })
}

fn sanitizer(suite: &Suite, compilers: &Compilers, program: &Program) -> Result<BTreeSet<String>> {
    let built = suite.build(program, compilers)?;
    let mut kinds = BTreeSet::new();
    for _ in 0..RECORDINGS {
        let execution = suite.sanitizer(program, &built)?;
        for warning in races::parse(&execution.said, program.path.rsplit('/').next().unwrap_or(&program.path)) {
            if warning.kind.contains("data race") {
                kinds.insert(String::from("data-race"));
            } else if warning.kind.contains("lock-order-inversion") {
                kinds.insert(String::from("deadlock"));
            }
        }
        if execution.status.is_none() {
            break;
        }
    }
    Ok(kinds)
}

/// `whole`: of all programs.
pub fn bars(rows: &[Row], whole: bool) -> Vec<Bar> {
    let bugs: usize = rows.iter().map(|row| row.bugs.len()).sum();
    let found: usize = rows.iter().map(Row::found).sum();
    let invented: usize = rows.iter().map(Row::invented).sum();
    let clean = rows.iter().filter(|row| row.bugs.is_empty()).count();
    let failed: Vec<String> = rows.iter().filter_map(|row| Some(format!("{}: {}", row.program, row.failed.as_ref()?))).collect();
    let mut bars = vec![Bar::holds("every program is measured", failed.is_empty(), bar::all_but(&failed, rows.len()))];
    bars.push(Bar::holds(
        "programs without the bug: nothing of its kind is proven",
        invented == 0,
        format!("{invented} of {} programs, {clean} without any bug", rows.len()),
    ));
    if bugs > 0 {
        bars.push(Bar::holds("every race and deadlock is proven", found == bugs, format!("{found} of {bugs}")));
    }
    let wrong: usize = rows.iter().map(Row::invented_in_parallel).sum();
    bars.push(Bar::holds(
        "enforced in parallel: nothing is confirmed that does not exist",
        wrong == 0,
        format!("{wrong} of {} programs", rows.len()),
    ));
    if bugs > 0 {
        let confirmed: usize = rows.iter().map(Row::confirmed).sum();
        let name = "enforced in parallel: every race and deadlock is confirmed";
        bars.push(Bar::holds(name, confirmed == bugs, format!("{confirmed} of {bugs}")));
    }
    if !whole {
        return bars;
    }
    let enough = rows.len() >= PUBLISHED;
    bars.push(Bar::holds("at least as many programs as in Table 1 (48)", enough, rows.len().to_string()));
    bars
}

pub fn print(rows: &[Row]) {
    let mut table = Table::new(&[
        "program",
        "bugs",
        "proven",
        "in parallel",
        "orders",
        "infeasible",
        "TSan",
        "events",
        "executions",
        "seconds",
    ]);
    let list = |kinds: &BTreeSet<String>| kinds.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
    for row in rows {
        let missed = if row.found() < row.bugs.len() { " (missed)" } else { "" };
        table.row(vec![
            row.program.clone(),
            list(&row.bugs),
            format!("{}{missed}", list(&row.proven)),
            list(&row.enforced.kinds),
            row.enforced.orders.to_string(),
            row.enforced.infeasible.to_string(),
            list(&row.sanitizer),
            row.events.to_string(),
            row.executions.to_string(),
            format!("{:.1}", row.seconds),
        ]);
    }
    let sum = |count: fn(&Row) -> usize| rows.iter().map(count).sum::<usize>();
    let by_sanitizer = sum(|row| row.bugs.intersection(&row.sanitizer).count());
    let invented = sum(|row| row.sanitizer.iter().filter(|kind| !row.exists(kind)).count());
    table.print();
    println!(
        "{} programs: {} bugs, {} proven, {} confirmed in parallel, {by_sanitizer} by {RECORDINGS} runs of ThreadSanitizer, \
         which also reports {invented} that are \
         none (paper: 48 scenarios, 31, 31, 21)",
        rows.len(),
        sum(|row| row.bugs.len()),
        sum(Row::found),
        sum(Row::confirmed),
    );
}
