//! Real programs over libraries without instrumentation: what is predicted with calls recorded and without, what `check` proves,
//! and what of it is false.
//!
//! What is fair. Same input and seed for both recordings. False is what the program's own source rules out: *words* has one race,
//! on the counter that its threads increment without a lock; the driver of *sqlite* shares nothing that anybody writes. Of
//! *pbzip2*, which nobody here wrote, it is what was predicted and then not shown by an execution.

use super::overhead::Subject;
use crate::common::bar::Bar;
use crate::common::table::Table;
use anyhow::{Context as _, Result};
use serde::Serialize;
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// In words.c, the one access that races.
const RACY_LINE: &str = "finished++;";
const BUDGET: &str = "60";
const QUICK_BUDGET: &str = "10";

#[derive(Debug, Serialize)]
pub struct Real {
    program: &'static str,
    /// Races with a witness, without calls recorded and with them.
    predicted_without: usize,
    predicted: usize,
    /// By `check`: races, and other findings.
    proven: usize,
    proven_others: usize,
    false_reports: usize,
    seconds: f64,
}

pub fn run(tool: &Path, names: &[&'static str], quick: bool) -> Result<Vec<Real>> {
    names.iter().map(|name| program(tool, name, quick)).collect()
}

fn program(tool: &Path, name: &'static str, quick: bool) -> Result<Real> {
    eprintln!("{name}: what is predicted and proven");
    let subject = Subject::build(tool, name, true)?;
    let folder = subject.folder();
    let mut predicted = [0; 2];
    for (count, ways) in predicted.iter_mut().zip([&["--unseen-calls=off"][..], &[]]) {
        subject.clean();
        let mut record = Command::new(tool);
        record.args(["--quiet", "record"]).args(ways).arg("--output").arg(folder.join("store"));
        subject.run(record.arg("--"))?;
        let report = folder.join("predict.json");
        let mut predict = Command::new(tool);
        predict.args(["--quiet", "predict", "--json"]).arg(&report).arg(folder.join("store"));
        predict.output().with_context(|| format!("cannot start {}", tool.display()))?;
        *count = findings(&report)?.iter().filter(|it| is_race(it) && has_verdict(it, &["predicted", "proven"])).count();
        std::fs::remove_dir_all(folder.join("store"))?;
    }
    subject.clean();
    let report = folder.join("check.json");
    let remove = format!("rm -f {}", subject.results().join(" "));
    let mut check = Command::new(tool);
    check.args(["--quiet", "check", "--budget", if quick { QUICK_BUDGET } else { BUDGET }, "--json"]).arg(&report);
    check.args(["--before-each", &remove]).arg("--output").arg(folder.join("check"));
    let start = Instant::now();
    subject.run(check.arg("--"))?;
    let seconds = start.elapsed().as_secs_f64();
    let findings = findings(&report)?;
    let proven = |race: bool| findings.iter().filter(|it| is_race(it) == race && has_verdict(it, &["proven"])).count();
    let told = findings.iter().filter(|it| is_race(it) && has_verdict(it, &["proven", "predicted"]));
    let false_reports = told.filter(|it| is_false(name, subject.source(), it)).count();
    Ok(Real {
        program: name,
        predicted_without: predicted[0],
        predicted: predicted[1],
        proven: proven(true),
        proven_others: proven(false),
        false_reports,
        seconds,
    })
}

fn findings(report: &Path) -> Result<Vec<Value>> {
    let text = std::fs::read(report).with_context(|| format!("cannot read {}", report.display()))?;
    let report: Value = serde_json::from_slice(&text)?;
    Ok(report["findings"].as_array().cloned().unwrap_or_default())
}

fn is_race(finding: &Value) -> bool {
    finding["kind"] == "data-race"
}

fn has_verdict(finding: &Value, verdicts: &[&str]) -> bool {
    finding["verdict"].as_str().is_some_and(|verdict| verdicts.contains(&verdict))
}

fn is_false(name: &str, source: Option<&str>, race: &Value) -> bool {
    match name {
        "words" => {
            let is_racy = |line: u64| {
                let text = source.and_then(|source| source.lines().nth((line as usize).saturating_sub(1)));
                text.is_some_and(|text| text.contains(RACY_LINE))
            };
            let own = |side: &Value| side["stack"][0]["line"].as_u64().is_some_and(is_racy);
            !(own(&race["sides"][0]) && own(&race["sides"][1]))
        }
        "sqlite" => true,
        _ => !has_verdict(race, &["proven"]),
    }
}

pub fn bars(all: &[Real]) -> Vec<Bar> {
    if all.is_empty() {
        return Vec::new();
    }
    let wrong: usize = all.iter().map(|real| real.false_reports).sum();
    let mut bars = vec![Bar::holds("real programs over such libraries: no false report", wrong == 0, wrong.to_string())];
    if let Some(words) = all.iter().find(|real| real.program == "words") {
        bars.push(Bar::holds("the race of words is proven", words.proven > 0, words.proven.to_string()));
    }
    bars
}

pub fn print(all: &[Real]) {
    if all.is_empty() {
        return;
    }
    println!("Real programs: races predicted without calls recorded and with them; what check proves\n");
    let titles = ["program", "predicted without", "predicted", "races proven", "others proven", "false", "seconds"];
    let mut table = Table::new(&titles);
    for real in all {
        let counts = [real.predicted_without, real.predicted, real.proven, real.proven_others, real.false_reports];
        let mut cells = vec![real.program.to_owned()];
        cells.extend(counts.map(|count| count.to_string()));
        cells.push(format!("{:.1}", real.seconds));
        table.row(cells);
    }
    table.print();
    println!();
}
