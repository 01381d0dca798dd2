//! What we read in the sources about every report: a report that nobody has read, or that was read as false, fails the
//! evaluation.

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt;

#[derive(Debug, Deserialize)]
struct Table {
    reading: Vec<Reading>,
}

/// One pair of places, whoever reported it.
#[derive(Debug, Deserialize)]
pub struct Reading {
    pub program: String,
    /// `function file`, as in [`Report::places`]; a place that ends with `*` stands for all that begin so.
    pub places: Vec<String>,
    /// Whether the program does it.
    pub real: bool,
    pub why: String,
}

/// What a report says: its kind, and the innermost place in the program's own code of each side.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Report {
    pub kind: String,
    pub places: BTreeSet<String>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind, self.places.iter().map(String::as_str).collect::<Vec<_>>().join(" | "))
    }
}

pub fn readings() -> Result<Vec<Reading>> {
    let table: Table = toml::from_str(&super::programs::ours("real/readings.toml")?).context("readings.toml")?;
    for reading in &table.reading {
        if reading.places.is_empty() || reading.why.trim().is_empty() {
            bail!("readings.toml: a reading of {} has no places or no reason", reading.program);
        }
    }
    Ok(table.reading)
}

impl Reading {
    pub fn is_of(&self, program: &str, report: &Report) -> bool {
        let matches = |place: &str| {
            self.places.iter().any(|known| match known.strip_suffix('*') {
                Some(start) => place.starts_with(start),
                None => place == known,
            })
        };
        self.program == program && report.places.iter().all(|place| matches(place))
    }
}

/// Of the lines of `detect --format json`.
pub fn of_detect(log: &str) -> Result<Vec<Report>> {
    let mut reports = Vec::new();
    for line in log.lines().filter(|line| line.starts_with('{')) {
        let warning: Value = serde_json::from_str(line).context("a line of detect's log is no JSON")?;
        let accesses = list(&warning["accesses"]).iter().map(|access| place_of(&access["stack"]));
        let stacks = list(&warning["stacks"]).iter().map(place_of);
        reports
            .push(Report { kind: warning["kind"].as_str().unwrap_or("?").to_owned(), places: accesses.chain(stacks).collect() });
    }
    reports.sort();
    reports.dedup();
    Ok(reports)
}

/// What `check --json` shows by default, and whether it was proven.
pub fn of_check(report: &Value) -> Vec<(Report, bool)> {
    let findings =
        list(&report["findings"]).iter().filter(|finding| matches!(finding["verdict"].as_str(), Some("proven" | "predicted")));
    findings
        .map(|finding| {
            let places = list(&finding["sides"]).iter().map(|side| place_of(&side["stack"])).collect();
            let kind = finding["kind"].as_str().unwrap_or("?").to_owned();
            (Report { kind, places }, finding["verdict"] == "proven")
        })
        .collect()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// The first frame that has a file: what lies before it belongs to libraries.
fn place_of(stack: &Value) -> String {
    let frames = list(stack);
    let own = frames.iter().find(|frame| frame["file"].is_string()).or(frames.first());
    let Some(frame) = own else { return "nowhere".into() };
    let file = frame["file"].as_str().or(frame["module"].as_str()).unwrap_or("?");
    let file = file.rsplit('/').next().unwrap_or(file);
    format!("{} {file}", frame["function"].as_str().unwrap_or("?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readings_are_well_formed() {
        readings().unwrap();
    }

    #[test]
    fn a_report_is_known_by_all_its_places() {
        let reading = Reading { program: "p".into(), places: vec!["f a.c".into(), "g*".into()], real: true, why: "read".into() };
        let report = |places: &[&str]| Report { kind: "race".into(), places: places.iter().map(|&place| place.into()).collect() };
        assert!(reading.is_of("p", &report(&["f a.c", "g_more b.c"])));
        assert!(reading.is_of("p", &report(&["f a.c"])));
        assert!(!reading.is_of("p", &report(&["f a.c", "h a.c"])));
        assert!(!reading.is_of("q", &report(&["f a.c"])));
    }
}
