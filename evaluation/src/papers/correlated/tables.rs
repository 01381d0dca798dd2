//! Tables 2 and 3 of Jannesari 2014 as programs (`tests/jannesari`), compiled with `--deep` and judged by the engine for
//! correlated variables alone.

use crate::common::bar::Bar;
use crate::common::compile::succeed;
use crate::common::table::Table;
use anyhow::{Context as _, Result};
use serde::Serialize;
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};
use xtask::workspace::root;

/// What a test does, whether a race is expected, and whether the paper's tool detects one. *A* and *B* are threads, `{…}m` is
/// what is done under the lock m, an arrow is a signal.
const TESTS: [(&str, bool, bool); 22] = [
    ("inc A | inc B", true, true),
    ("read A | inc B", true, true),
    ("read A | read B", false, false),
    ("{inc A}m | {inc B}m", false, false),
    ("write A | write B", true, false),
    ("{inc A}m {inc A}m | {inc B}m", false, false),
    ("{inc A}mn | {inc B}m", false, false),
    ("{inc A}m | {inc B}n", true, true),
    ("{inc A}m {inc A}n | {inc B}m", true, true),
    ("inc A -> inc B", false, false),
    ("{inc A}m | {inc B}m, A -> B, inc B", false, false),
    ("{inc A}m | {inc B}m, A -> B, read A | read B", true, true),
    ("{inc A}m | {inc B}m, A <-> B, read A | read B", false, false),
    ("{inc A}m | {inc B}m, barrier, read A | read B", false, false),
    ("scale, no locks", true, true),
    ("scale, interrupted locks", true, true),
    ("normalise, one lock", false, false),
    ("different locks", true, true),
    ("append to a buffer, no locks", true, true),
    ("swap of correlated variables", false, false),
    ("swap of uncorrelated variables", false, true),
    ("independent members of one object", false, false),
];
const FIRST_OF_TABLE_3: usize = 14;

/// Where the paper's tool and the expectation differ, or its text says that it fails.
const fn reason(test: usize) -> &'static str {
    match test {
        4 => "the history of a variable that is overwritten comes along",
        20 => "histories move with the variables that are swapped",
        21 => "not correlated, as in the paper: only the address is common",
        _ => "",
    }
}

#[derive(Debug, Serialize)]
pub struct Row {
    test: usize,
    description: &'static str,
    expected: bool,
    paper: bool,
    /// An extended race is told.
    ours: bool,
    /// An execution showed that it does harm.
    proven: bool,
    seconds: f64,
}

pub fn run(tool: &Path, folder: &Path, only: Option<&str>) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (test, (description, expected, paper)) in TESTS.into_iter().enumerate() {
        if only.is_some_and(|part| !description.contains(part) && part != test.to_string()) {
            continue;
        }
        let place = folder.join(format!("table-{test}"));
        std::fs::create_dir(&place).with_context(|| format!("cannot create {}", place.display()))?;
        let source = root().join("tests/jannesari").join(if test < FIRST_OF_TABLE_3 { "table2.c" } else { "table3.c" });
        let (program, json) = (place.join("program"), place.join("report.json"));
        let mut compile = Command::new(tool);
        compile.args(["cc", "--deep", "-g", "-O1", "-w", "-pthread"]).arg(format!("-DTEST={test}"));
        succeed(compile.arg(&source).arg("-o").arg(&program).arg("-lm"))?;
        let mut command = Command::new(tool);
        command.args(["--quiet", "check", "--budget", "30", "--engines", "correlated", "--show", "suspicions"]);
        command.arg("--json").arg(&json);
        command.arg("--output").arg(place.join("store")).arg("--").arg(&program);
        let begin = std::time::Instant::now();
        command.stdin(Stdio::null()).output().context("cannot start the tool")?;
        let seconds = begin.elapsed().as_secs_f64();
        let report: Value =
            serde_json::from_slice(&std::fs::read(&json).with_context(|| format!("test {test} left no report"))?)?;
        let findings = report["findings"].as_array().into_iter().flatten();
        let told: Vec<&Value> = findings.filter(|finding| finding["evidence"] == "dependences").collect();
        let proven = told.iter().any(|finding| finding["verdict"] == "proven");
        rows.push(Row { test, description, expected, paper, ours: !told.is_empty(), proven, seconds });
    }
    Ok(rows)
}

pub fn bars(rows: &[Row]) -> Vec<Bar> {
    let right = rows.iter().filter(|row| row.ours == row.expected).count();
    vec![Bar::holds("Tables 2 and 3 as expected", right == rows.len(), format!("{right} of {}", rows.len()))]
}

pub fn print(rows: &[Row]) {
    let mut table = Table::new(&["test", "what the threads do", "expected", "the paper", "ours", "proven", "remark"]);
    let verdict = |race: bool| if race { "race" } else { "none" }.to_owned();
    for row in rows {
        table.row(vec![
            row.test.to_string(),
            row.description.to_owned(),
            verdict(row.expected),
            verdict(row.paper),
            verdict(row.ours),
            if row.proven { "violated" } else { "" }.to_owned(),
            reason(row.test).to_owned(),
        ]);
    }
    table.print();
}
