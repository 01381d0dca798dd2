//! Programs that crash: in every execution, or in few that nobody waits for. Plain `rashomon check` is to make each a finding
//! that tells the story of the address, and to replay it.
//!
//! The second line of each source (`// story: …`) is what the notes of the finding have to contain.

use crate::common::bar::{self, Bar};
use crate::common::command_line;
use crate::common::compile::succeed;
use crate::common::options::Selecting;
use crate::common::races;
use crate::common::table::Table;
use anyhow::{Context as _, Result, bail};
use serde::Serialize;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use xtask::workspace::{self, root};

const GROUPS: [&str; 2] = ["always", "rarely"];
const BUDGET: &str = "60";
/// Executions of each program without us; with --quick.
const NATIVE: u32 = 100;
const NATIVE_QUICK: u32 = 10;
const TIMEOUT: Duration = Duration::from_secs(5);
const REPLAYS: u32 = 20;
/// Of those that crash rarely, the most of `NATIVE`.
const RARELY: u32 = 5;

#[derive(Debug, clap::Args)]
pub struct Options {
    #[command(flatten)]
    selecting: Selecting,
}

#[derive(Debug, Serialize)]
struct Crashing {
    group: &'static str,
    name: String,
    native: u32,
    natively_crashed: u32,
    /// The finding that tells the story.
    finding: Option<String>,
    replayed: u32,
    seconds: f64,
}

#[derive(Debug, Serialize)]
struct Report {
    evaluation: &'static str,
    command: String,
    programs: Vec<Crashing>,
    bars: Vec<Bar>,
}

pub fn run(options: &Options) -> Result<bool> {
    let tool = workspace::build_tool()?;
    let folder = tempfile::tempdir().context("cannot create a temporary folder")?;
    let native = if options.selecting.quick { NATIVE_QUICK } else { NATIVE };
    let only = options.selecting.only.as_deref();
    let mut programs = Vec::new();
    for group in GROUPS {
        for source in sources(group)? {
            let name = source.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            if only.is_some_and(|part| !name.contains(part)) {
                continue;
            }
            programs.push(measure(group, &name, &source, &tool, &folder.path().join(format!("{group}-{name}")), native)?);
            eprintln!("{group}/{name}");
        }
    }
    if programs.is_empty() {
        bail!("no program's name contains that; they are in tests/crashes");
    }
    let bars = bars_of(&programs);
    let report = Report { evaluation: "crashes", command: command_line(), programs, bars };
    bar::finish(&report, &report.bars, options.selecting.json, || print(&report))
}

fn sources(group: &str) -> Result<Vec<PathBuf>> {
    let folder = root().join("tests/crashes").join(group);
    let entries = std::fs::read_dir(&folder).with_context(|| format!("cannot list {}", folder.display()))?;
    let mut found: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    found.sort();
    Ok(found)
}

fn measure(group: &'static str, name: &str, source: &Path, tool: &Path, place: &Path, native: u32) -> Result<Crashing> {
    std::fs::create_dir(place).with_context(|| format!("cannot create {}", place.display()))?;
    let text = std::fs::read_to_string(source).with_context(|| format!("cannot read {}", source.display()))?;
    let Some(story) = text.lines().find_map(|line| line.strip_prefix("// story: ")) else {
        bail!("{} does not say what the story is", source.display());
    };
    let (plain, ours, json, store) = (place.join("plain"), place.join("program"), place.join("report.json"), place.join("store"));
    let flags = ["-g", "-O1", "-pthread"];
    succeed(Command::new("gcc").args(flags).arg(source).arg("-o").arg(&plain))?;
    succeed(Command::new(tool).arg("cc").args(flags).arg(source).arg("-o").arg(&ours))?;
    let mut natively_crashed = 0;
    for _ in 0..native {
        let status = races::execute(Command::new(&plain).stdin(Stdio::null()).current_dir(place), TIMEOUT)?.status;
        natively_crashed += u32::from(status.is_some_and(|status| status.code().is_none()));
    }
    let mut check = Command::new(tool);
    check.args(["--quiet", "check", "--budget", BUDGET, "--fail-on", "never", "--json"]).arg(&json);
    check.arg("--output").arg(&store).arg("--").arg(&ours);
    let begin = Instant::now();
    let output = check.stdin(Stdio::null()).output().context("cannot start the tool")?;
    let seconds = begin.elapsed().as_secs_f64();
    let said = || String::from_utf8_lossy(&output.stderr).into_owned();
    let text = std::fs::read(&json).with_context(|| format!("checking {name} left no report\n{}", said()))?;
    let report: Value = serde_json::from_slice(&text).with_context(|| format!("the report on {name}"))?;
    let finding = finding_with(&report, story);
    let mut replayed = 0;
    if let Some(id) = &finding {
        for _ in 0..REPLAYS {
            let mut replay = Command::new(tool);
            replay.args(["--quiet", "replay", "--store"]).arg(&store).arg(id).stdin(Stdio::null());
            let output = replay.output().context("cannot start the tool")?;
            replayed += u32::from(output.status.success());
        }
    }
    Ok(Crashing { group, name: name.to_owned(), native, natively_crashed, finding, replayed, seconds })
}

/// The proven finding whose notes contain the story.
fn finding_with(report: &Value, story: &str) -> Option<String> {
    let findings = report["findings"].as_array().into_iter().flatten();
    let mut proven = findings.filter(|finding| finding["verdict"] == "proven" && finding["grade"] == "crashed");
    let tells = |finding: &&Value| {
        finding["notes"].as_array().into_iter().flatten().any(|note| note.as_str().is_some_and(|note| note.contains(story)))
    };
    proven.find(tells).and_then(|finding| Some(finding["id"].as_str()?.to_owned()))
}

fn bars_of(programs: &[Crashing]) -> Vec<Bar> {
    let count = |holds: &dyn Fn(&Crashing) -> bool| programs.iter().filter(|one| holds(one)).count();
    let (always, rarely) = (count(&|one| one.group == "always"), count(&|one| one.group == "rarely"));
    let crash = count(&|one| one.group == "always" && one.natively_crashed == one.native);
    let seldom = count(&|one| one.group == "rarely" && one.natively_crashed * NATIVE <= RARELY * one.native);
    let told = count(&|one| one.finding.is_some());
    let replayed = count(&|one| one.replayed == REPLAYS);
    vec![
        Bar::holds("programs that crash natively in every execution", crash == always, format!("{crash} of {always}")),
        Bar::holds("programs that crash natively in at most 5 of 100", seldom == rarely, format!("{seldom} of {rarely}")),
        Bar::holds(
            "the crash is proven, with the story of its address",
            told == programs.len(),
            format!("{told} of {}", programs.len()),
        ),
        Bar::holds("it replays 20 times of 20", replayed == programs.len(), format!("{replayed} of {}", programs.len())),
    ]
}

fn print(report: &Report) {
    println!("{}\n", report.command);
    let mut table = Table::new(&["program", "crashes natively", "finding", "replayed", "seconds"]);
    for one in &report.programs {
        table.row(vec![
            format!("{}/{}", one.group, one.name),
            format!("{} of {}", one.natively_crashed, one.native),
            one.finding.clone().unwrap_or_else(|| "none".into()),
            format!("{} of {REPLAYS}", one.replayed),
            format!("{:.1}", one.seconds),
        ]);
    }
    table.print();
    println!();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_proven_crash_with_the_story_counts() {
        let notes = ["it was freed before by x"];
        let report = |verdict: &str, grade: &str| {
            let finding = serde_json::json!({ "id": "failure-1", "verdict": verdict, "grade": grade, "notes": notes });
            serde_json::json!({ "findings": [finding] })
        };
        assert_eq!(finding_with(&report("proven", "crashed"), "freed before"), Some("failure-1".into()));
        assert_eq!(finding_with(&report("proven", "crashed"), "unmapped before"), None);
        assert_eq!(finding_with(&report("suspected", "crashed"), "freed before"), None);
        assert_eq!(finding_with(&report("proven", "co-enabled"), "freed before"), None);
    }

    #[test]
    fn there_are_five_of_each() {
        assert!(GROUPS.iter().all(|group| sources(group).unwrap().len() >= 5));
    }
}
