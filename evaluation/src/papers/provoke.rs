//! Provocation on the tests of a small ARINC-653-like library of ours: the three seeded races are proven, the correct version
//! stays without a report, and what that takes in multiples of one run of the test without us. After Table 1 of the RaceHunter
//! paper (Programming and Computer Software 50(6), 2024). Then its Hypothesis 1 (see [`hypothesis`]).

use super::hypothesis;
use crate::common::bar::{self, Bar};
use crate::common::compile::succeed;
use crate::common::measure::{self, Usage};
use crate::common::only::Only;
pub use crate::common::options::Measuring as Options;
use crate::common::table::Table;
use crate::common::{command_line, trace_size};
use anyhow::{Context as _, Result};
use serde::Serialize;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;
use xtask::workspace::{self, root};

/// What the seeded race is on, per version of the library; 0 is the correct one.
const VERSIONS: [(&str, Option<&str>); 4] = [
    ("correct", None),
    ("race 1: no mutual exclusion", Some("arinc_last_length")),
    ("race 2: receiving looks too early", Some("measurements")),
    ("race 3: sending looks too early", Some("measurements")),
];
/// Of the test's computation; the quick one.
const AMOUNT: &str = "1";
const QUICK_AMOUNT: &str = "0.05";
/// What has to be reached: pairs left, seconds of computation, multiples of one run.
const PAIRS: u64 = 50;
const SECONDS: f64 = 2.0;
const LIMIT: f64 = 25.0;
/// Of each version, the median of which counts: how many executions decide all pairs is also a matter of chance.
const VERIFICATIONS: u32 = 3;
const AIM: f64 = 5.0;
/// Exit code when something was proven.
const FOUND: i32 = 66;

#[derive(Debug, Serialize)]
struct Row {
    version: &'static str,
    threads: u64,
    accesses: u64,
    recording_bytes: u64,
    pairs: u64,
    /// Of the pairs, those that the budget did not suffice for in one of the verifications.
    undecided: u64,
    proven: Vec<String>,
    /// In each verification.
    expected_proven: bool,
    executions: u64,
    holds: u64,
    native: Usage,
    /// Of the recording and all that follows.
    verification_seconds: f64,
    /// Of the provoking executions.
    provocation_seconds: f64,
    ratio: f64,
}

#[derive(Debug, Serialize)]
struct Report {
    evaluation: &'static str,
    quick: bool,
    rows: Vec<Row>,
    strategies: Vec<hypothesis::Compared>,
    bars: Vec<Bar>,
}

pub fn run(options: &Options) -> Result<bool> {
    let tool = workspace::build_tool()?;
    let folder = tempfile::Builder::new().prefix("rashomon-provoke-").tempdir().context("cannot create a temporary folder")?;
    let only = Only::of(options.only.as_deref());
    let mut rows = Vec::new();
    for (number, (version, on)) in VERSIONS.into_iter().enumerate() {
        if !only.wants(version) {
            continue;
        }
        eprintln!("{version}");
        rows.push(measure_version(&tool, folder.path(), number, version, on, options)?);
    }
    let strategies = hypothesis::measure(&tool, folder.path(), &only, options.quick)?;
    only.check()?;
    let mut bars = bars_of(&rows, options.quick);
    bars.extend(hypothesis::bars_of(&strategies, options));
    let report = Report { evaluation: "provoke", quick: options.quick, rows, strategies, bars };
    if options.json {
        println!("{}", serde_json::to_string_pretty(&report)?);
        return Ok(bar::all_met(&report.bars));
    }
    println!("{}", command_line());
    if !report.rows.is_empty() {
        print_table(&report.rows);
    }
    hypothesis::print(&report.strategies, options);
    Ok(bar::print(&report.bars))
}

fn measure_version(
    tool: &Path,
    folder: &Path,
    number: usize,
    version: &'static str,
    on: Option<&str>,
    options: &Options,
) -> Result<Row> {
    let sources = ["exchange.c", "arinc.c"].map(|name| root().join("tests/arinc").join(name));
    let define = format!("-DRACE={number}");
    let flags = ["-g", "-O1", "-pthread", &define, "-o"];
    let (native, provoked) = (folder.join(format!("native-{number}")), folder.join(format!("provoked-{number}")));
    succeed(Command::new("cc").args(flags).arg(&native).args(&sources))?;
    succeed(Command::new(tool).arg("cc").args(flags).arg(&provoked).args(&sources))?;
    let amount = if options.quick { QUICK_AMOUNT } else { AMOUNT };
    let runs = if options.quick { 1 } else { options.runs };
    let natives: Vec<Usage> = (0..runs).map(|_| measure::run(Command::new(&native).arg(amount))).collect::<Result<_>>()?;
    let native = measure::medians(&natives);

    let names = [format!("store-{number}"), format!("report-{number}.json")];
    let verify = || verify(tool, [&provoked, &folder.join(&names[0]), &folder.join(&names[1])], (version, amount, on));
    let mut verifications = (0..if options.quick { 1 } else { VERIFICATIONS }).map(|_| verify()).collect::<Result<Vec<_>>>()?;
    verifications.sort_by(|one, other| one.seconds.total_cmp(&other.seconds));
    let undecided = verifications.iter().map(|one| one.told.undecided).max().unwrap_or(0);
    let expected_proven = verifications.iter().all(|one| one.expected_proven);
    let median = verifications.swap_remove(verifications.len() / 2);
    Ok(Row {
        version,
        threads: median.threads,
        accesses: median.accesses,
        recording_bytes: median.recording_bytes,
        pairs: median.told.pairs,
        undecided,
        proven: median.proven,
        expected_proven,
        executions: median.told.executions,
        holds: median.told.holds,
        ratio: median.seconds / native.wall_seconds,
        native,
        verification_seconds: median.seconds,
        provocation_seconds: median.told.seconds,
    })
}

/// What one verification took and found.
struct Verified {
    seconds: f64,
    told: Told,
    threads: u64,
    accesses: u64,
    recording_bytes: u64,
    proven: Vec<String>,
    expected_proven: bool,
}

/// The program, the store and the report.
fn verify(tool: &Path, [provoked, store, json]: [&Path; 3], with: (&str, &str, Option<&str>)) -> Result<Verified> {
    let (version, amount, on) = with;
    if store.exists() {
        std::fs::remove_dir_all(store).context("cannot remove a store")?;
    }
    let begin = Instant::now();
    let ended = Command::new(tool)
        .args(["--quiet", "provoke", "--output"])
        .arg(store)
        .arg("--json")
        .arg(json)
        .arg("--")
        .arg(provoked)
        .arg(amount)
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot start {}", tool.display()))?;
    let seconds = begin.elapsed().as_secs_f64();
    anyhow::ensure!(
        matches!(ended.status.code(), Some(0 | FOUND)),
        "{version}: {}\n{}",
        ended.status,
        String::from_utf8_lossy(&ended.stderr)
    );
    let text = std::fs::read_to_string(json).context("the provocation wrote no report")?;
    let report: serde_json::Value = serde_json::from_str(&text).context("the report is no JSON")?;
    let findings = report["findings"].as_array().context("the report has no findings")?;
    let subjects: Vec<String> =
        findings.iter().map(|finding| finding["subject"].as_str().unwrap_or_default().to_owned()).collect();
    let told = numbers_of(&report).context("the report does not tell of a provocation")?;
    let size = trace_size::of(&store.join("recording-0"))?;
    let expected_proven = match on {
        None => subjects.is_empty(),
        Some(on) => !subjects.is_empty() && subjects.iter().all(|subject| subject.contains(on)),
    };
    Ok(Verified {
        seconds,
        threads: report["run"]["threads"].as_u64().unwrap_or(0),
        accesses: size.accesses_executed,
        recording_bytes: size.bytes,
        proven: subjects,
        expected_proven,
        told,
    })
}

pub(super) struct Told {
    pub pairs: u64,
    pub proven: u64,
    undecided: u64,
    pub executions: u64,
    holds: u64,
    pub seconds: f64,
    /// Pairs of accesses that the pairs were merged from.
    pub merged: u64,
}

/// The line of the report that begins with `provocation:`, by its numbers.
pub(super) fn numbers_of(report: &serde_json::Value) -> Option<Told> {
    let notes = report["run"]["notes"].as_array()?;
    let line = notes.iter().filter_map(|note| note.as_str()).find(|note| note.starts_with("provocation: "))?;
    let words = line.split(|c: char| !c.is_ascii_digit() && c != '.');
    let numbers: Vec<f64> = words.filter_map(|word| word.parse().ok()).collect();
    match numbers.as_slice() {
        [pairs, proven, _, _, undecided, executions, holds, seconds, merged] => Some(Told {
            pairs: *pairs as u64,
            proven: *proven as u64,
            undecided: *undecided as u64,
            executions: *executions as u64,
            holds: *holds as u64,
            seconds: *seconds,
            merged: *merged as u64,
        }),
        _ => None,
    }
}

fn bars_of(rows: &[Row], quick: bool) -> Vec<Bar> {
    let mut bars = Vec::new();
    for row in rows {
        let found = if row.proven.is_empty() { "nothing".into() } else { row.proven.join(", ") };
        let what = if row.version == "correct" { "nothing is reported" } else { "the seeded race is proven, and nothing else" };
        bars.push(Bar::holds(&format!("{}: {what}", row.version), row.expected_proven, found));
        if !quick {
            let name = format!("{}: verification, the recording included, in runs of the test", row.version);
            bars.push(Bar::at_most(&name, row.ratio, LIMIT, "×"));
            bars.push(Bar::at_most(&name, row.ratio, AIM, "×").stretch());
            let computes = row.native.cpu_seconds >= SECONDS;
            let name = format!("{}: the test computes for {SECONDS} s or more", row.version);
            bars.push(Bar::holds(&name, computes, format!("{:.2} s", row.native.cpu_seconds)));
        }
        let name = format!("{}: {PAIRS} pairs or more are decided", row.version);
        bars.push(decided_bar(&name, row.pairs, row.undecided));
    }
    bars
}

/// A pair that the budget left is not decided.
fn decided_bar(name: &str, pairs: u64, undecided: u64) -> Bar {
    let decided = pairs.saturating_sub(undecided);
    Bar::holds(name, decided >= PAIRS && undecided == 0, format!("{decided} of {pairs}"))
}

fn print_table(rows: &[Row]) {
    let mut titles = vec!["parameter"];
    titles.extend(rows.iter().map(|row| row.version));
    let mut table = Table::new(&titles);
    let mut line = |name: &str, cell: &dyn Fn(&Row) -> String| {
        table.row(std::iter::once(name.to_owned()).chain(rows.iter().map(cell)).collect());
    };
    line("threads in the test", &|row| row.threads.to_string());
    line("memory accesses", &|row| row.accesses.to_string());
    line("pairs of conflicting accesses", &|row| row.pairs.to_string());
    line("of these undecided", &|row| row.undecided.to_string());
    line("bytes of the recording", &|row| row.recording_bytes.to_string());
    line("test without us, s", &|row| format!("{:.2}", row.native.wall_seconds));
    line("verification, s", &|row| format!("{:.2}", row.verification_seconds));
    line("of these provocation, s", &|row| format!("{:.2}", row.provocation_seconds));
    line("verification / test", &|row| format!("{:.2}", row.ratio));
    line("executions", &|row| row.executions.to_string());
    line("holds", &|row| row.holds.to_string());
    line("races proven", &|row| row.proven.len().to_string());
    table.print();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn undecided_pairs_are_not_decided() {
        assert!(decided_bar("", PAIRS, 0).met);
        assert!(
            !decided_bar("", PAIRS + 10, 11).met && !decided_bar("", PAIRS + 10, 1).met && !decided_bar("", PAIRS - 1, 0).met
        );
        let note = "provocation: 60 pairs of conflicting accesses: 1 proven, 2 not provoked, 3 not reached, 7 undecided; \
                    9 executions with 11 holds, decided in 0.500 s; merged from 80";
        let told = numbers_of(&serde_json::json!({ "run": { "notes": [note] } })).unwrap();
        assert_eq!((told.pairs, told.undecided, told.executions, told.merged), (60, 7, 9, 80));
    }
}
