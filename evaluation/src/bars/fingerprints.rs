//! Whether a finding is known again after the program was edited: programs with known bugs, each edited in many ways, and each
//! checked before and after.
//!
//! What is fair. A finding is told from others by what stands in the source at its places, which no edit changes and which no
//! fingerprint knows. It is *kept* if the edited program has a finding of the same fingerprint and the same text there. If it has
//! none, but another of that text, its fingerprint is *changed*; if nothing of that text was found, it is *gone*, which says
//! nothing of fingerprints. Two findings of one program, edited or not, that have one fingerprint and different texts collide.

mod edits;

use crate::common::bar::{self, Bar};
use crate::common::command_line;
use crate::common::compile::succeed;
use crate::common::options::Selecting;
use crate::common::suite::{self, Program, in_parallel};
use crate::common::table::Table;
use anyhow::{Context as _, Result, bail};
use edits::Edit;
use serde::Serialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, Stdio};
use xtask::workspace;

/// Of each kind of finding some, several findings in one function among them.
const PROGRAMS: [&str; 16] = [
    "measured/hidden_race.cpp",
    "racy/after_the_line.c",
    "racy/condvar_flag.c",
    "racy/dining.c",
    "racy/double_checked.cpp",
    "racy/early_unlock.c",
    "racy/freed_in_between.c",
    "racy/heap_object.c",
    "racy/join_holding_lock.c",
    "racy/library_writes.c",
    "racy/lost_wakeup.c",
    "racy/mutex_destroyed_early.c",
    "racy/stack_variable.c",
    "racy/vector_push.cpp",
    "racy/wrong_lock.c",
    "hazards/crash.c",
];
/// With --quick every so many programs.
const QUICK: usize = 6;
const BUDGET: &str = "20";

#[derive(Debug, clap::Args)]
pub struct Options {
    #[command(flatten)]
    selecting: Selecting,
}

/// A finding that was proven or predicted.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Found {
    id: String,
    fingerprint: String,
    /// Its kind, and what stands in the source at its places.
    text: String,
    functions: Vec<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
struct Outcome {
    kept: usize,
    changed: usize,
    gone: usize,
    /// Of those kept, how many have the same id, too.
    same_id: usize,
}

#[derive(Debug, Serialize)]
struct Row {
    edit: &'static str,
    programs: usize,
    #[serde(flatten)]
    outcome: Outcome,
}

#[derive(Debug, Serialize)]
struct Report {
    evaluation: &'static str,
    command: String,
    programs: usize,
    edits: usize,
    rows: Vec<Row>,
    /// What changed or is gone.
    losses: Vec<String>,
    collisions: Vec<String>,
    bars: Vec<Bar>,
}

/// A program, and what was found before and after each edit.
struct Edited {
    name: String,
    before: Vec<Found>,
    after: Vec<(&'static Edit, Vec<Found>)>,
}

pub fn run(options: &Options) -> Result<bool> {
    let tool = workspace::build_tool()?;
    let folder = tempfile::tempdir().context("cannot create a temporary folder")?;
    let only = options.selecting.only.as_deref().unwrap_or_default();
    let step = if options.selecting.quick { QUICK } else { 1 };
    let mut programs = suite::programs(None)?;
    programs.retain(|program| PROGRAMS.contains(&program.path.as_str()) && program.path.contains(only));
    let programs: Vec<Program> = programs.into_iter().step_by(step).collect();
    if programs.is_empty() {
        bail!("no program's name contains that; they are {}", PROGRAMS.join(", "));
    }
    let edited = in_parallel(&programs, |program| {
        let place = folder.path().join(program.path.replace('/', "-"));
        let edited = edit(program, &tool, &place).with_context(|| program.path.clone())?;
        eprintln!("{}", program.path);
        Ok(edited)
    })?;
    let report = judged(&edited);
    bar::finish(&report, &report.bars, options.selecting.json, || print(&report))
}

fn edit(program: &Program, tool: &Path, place: &Path) -> Result<Edited> {
    let text = std::fs::read_to_string(program.source()).context("cannot read the source")?;
    let before = check(program, &text, &edits::NONE, tool, &place.join("before"))?;
    let functions: Vec<String> = before.iter().flat_map(|found| found.functions.iter().cloned()).collect();
    let mut after = Vec::new();
    for (number, edit) in edits::ALL.iter().enumerate() {
        let text = (edit.text)(&text, &functions);
        after.push((edit, check(program, &text, edit, tool, &place.join(number.to_string())).context(edit.name)?));
    }
    Ok(Edited { name: program.path.clone(), before, after })
}

fn check(program: &Program, text: &str, edit: &Edit, tool: &Path, place: &Path) -> Result<Vec<Found>> {
    let is_c = program.language == "c";
    let source = place.join(edit.file).with_extension(if is_c { "c" } else { "cpp" });
    let folder = source.parent().context("a file is in a folder")?;
    std::fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    std::fs::write(&source, text).with_context(|| format!("cannot write {}", source.display()))?;
    let (wrapper, standard) = if is_c { ("cc", "-std=gnu11") } else { ("c++", "-std=c++17") };
    let (binary, json) = (place.join("binary"), place.join("report.json"));
    let mut compile = Command::new(tool);
    compile.env("RASHOMON_CC", edit.compilers.0).env("RASHOMON_CXX", edit.compilers.1);
    compile.args(["--quiet", wrapper, standard, "-g", "-w", "-pthread"]).args(edit.flags).arg(&source).arg("-o").arg(&binary);
    succeed(compile.args(&program.link))?;
    let mut check = Command::new(tool);
    check.args(["--quiet", "check", "--no-config", "--budget", BUDGET, "--fail-on", "never", "--json"]).arg(&json);
    check.arg("--output").arg(place.join("store")).args(edit.options).arg("--").arg(&binary).args(&program.args);
    let output = check.stdin(Stdio::null()).current_dir(place).output().context("cannot start the tool")?;
    let said = || String::from_utf8_lossy(&output.stderr).into_owned();
    let report = std::fs::read(&json).with_context(|| format!("the check left no report\n{}", said()))?;
    let report: Value = serde_json::from_slice(&report).context("the report is damaged")?;
    // Stores are large, and no longer needed.
    std::fs::remove_dir_all(place).with_context(|| format!("cannot remove {}", place.display()))?;
    Ok(report["findings"].as_array().into_iter().flatten().map(|finding| found(finding, &source, text)).collect())
}

fn found(finding: &Value, source: &Path, text: &str) -> Found {
    let string = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let kind = string(&finding["kind"]);
    let own = |frame: &&Value| frame["file"].as_str().is_some_and(|file| Path::new(file) == source);
    let stacks = finding["sides"].as_array().into_iter().flatten().filter_map(|side| side["stack"].as_array());
    // Of a crash only the first side is where it happened.
    let stacks = stacks.take(if kind == "failure" { 1 } else { usize::MAX });
    let places: Vec<&Value> = stacks.filter_map(|stack| stack.iter().find(own)).collect();
    let line = |frame: &&Value| {
        let number = frame["line"].as_u64().and_then(|line| usize::try_from(line).ok()).unwrap_or_default();
        text.lines().nth(number.saturating_sub(1)).unwrap_or_default().trim().to_owned()
    };
    let mut lines: Vec<String> = places.iter().map(line).collect();
    lines.sort();
    if kind != "data-race" {
        lines.dedup();
    }
    let functions = finding["sides"].as_array().into_iter().flatten().filter_map(|side| side["stack"].as_array()).flatten();
    let functions = functions.filter(own).filter_map(|frame| frame["function"].as_str());
    Found {
        id: string(&finding["id"]),
        fingerprint: string(&finding["fingerprint"]),
        text: format!("{kind}: {}", lines.join(" | ")),
        // As the source names them.
        functions: functions.filter_map(|name| name.split('(').next()?.rsplit("::").next().map(str::to_owned)).collect(),
    }
}

fn outcome(before: &[Found], after: &[Found], mut loss: impl FnMut(&str, &Found)) -> Outcome {
    let mut outcome = Outcome::default();
    for one in before {
        match after.iter().find(|other| other.fingerprint == one.fingerprint && other.text == one.text) {
            Some(other) => {
                outcome.kept += 1;
                outcome.same_id += usize::from(other.id == one.id);
            }
            None if after.iter().any(|other| other.text == one.text) => {
                outcome.changed += 1;
                loss("changed", one);
            }
            None => {
                outcome.gone += 1;
                loss("gone", one);
            }
        }
    }
    outcome
}

/// Fingerprints that stand for more than one text.
fn collisions(edited: &Edited) -> Vec<String> {
    let mut texts: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for found in edited.before.iter().chain(edited.after.iter().flat_map(|(_, found)| found)) {
        texts.entry(&found.fingerprint).or_default().insert(&found.text);
    }
    let colliding = texts.into_iter().filter(|(_, texts)| texts.len() > 1);
    colliding.map(|(own, texts)| format!("{}: {own}: {texts:?}", edited.name)).collect()
}

fn judged(edited: &[Edited]) -> Report {
    let mut losses = Vec::new();
    let mut rows = Vec::new();
    let mut unknown = 0;
    for (number, edit) in edits::ALL.iter().enumerate() {
        let mut sum = Outcome::default();
        for program in edited {
            let (_, after) = &program.after[number];
            let one = outcome(&program.before, after, |what, found| {
                losses.push(format!("{what}: {}, {}: {} {}", program.name, edit.name, found.fingerprint, found.text));
            });
            sum.kept += one.kept;
            sum.changed += one.changed;
            sum.gone += one.gone;
            sum.same_id += one.same_id;
            let is_added = |found: &Found| edit.adds.is_some_and(|name| found.functions.iter().any(|own| own == name));
            unknown += after.iter().filter(|found| is_added(found)).count();
        }
        rows.push(Row { edit: edit.name, programs: edited.len(), outcome: sum });
    }
    let collisions: Vec<String> = edited.iter().flat_map(collisions).collect();
    let of = |part: fn(&Outcome) -> usize| rows.iter().map(|row| part(&row.outcome)).sum::<usize>();
    let (kept, changed, gone) = (of(|sum| sum.kept), of(|sum| sum.changed), of(|sum| sum.gone));
    let share = |part: usize, all: usize| 100.0 * part as f64 / (all.max(1)) as f64;
    let edits = edited.len() * edits::ALL.len();
    let bars = vec![
        Bar::at_least("edits", edits as f64, 30.0, ""),
        Bar::at_least("findings that keep their fingerprint", share(kept, kept + changed), 95.0, " %"),
        Bar::at_least("findings that are found after the edit", share(kept + changed, kept + changed + gone), 95.0, " %"),
        Bar::at_most("collisions between different bugs", collisions.len() as f64, 0.0, ""),
        Bar::holds("the race that was added is found", unknown >= edited.len(), format!("{unknown} in {}", edited.len())),
    ];
    let command = command_line();
    Report { evaluation: "fingerprints", command, programs: edited.len(), edits, rows, losses, collisions, bars }
}

fn print(report: &Report) {
    println!("{}\n{} programs, {} edits", report.command, report.programs, report.edits);
    let mut table = Table::new(&["edit", "kept", "changed", "gone", "same id"]);
    for Row { edit, outcome, .. } in &report.rows {
        let counts = [outcome.kept, outcome.changed, outcome.gone, outcome.same_id];
        table.row(std::iter::once((*edit).to_owned()).chain(counts.map(|count| count.to_string())).collect());
    }
    table.print();
    for line in report.losses.iter().chain(&report.collisions) {
        println!("{line}");
    }
    println!();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(fingerprint: &str, text: &str) -> Found {
        Found { id: String::from("race-1"), fingerprint: fingerprint.into(), text: text.into(), functions: Vec::new() }
    }

    #[test]
    fn what_is_not_found_says_nothing_of_fingerprints() {
        let before = [one("a", "x++"), one("b", "y++"), one("c", "z++")];
        let after = [one("a", "x++"), one("d", "y++")];
        let outcome = outcome(&before, &after, |_, _| ());
        assert_eq!(outcome, Outcome { kept: 1, changed: 1, gone: 1, same_id: 1 });
    }

    #[test]
    fn one_fingerprint_of_two_texts_is_a_collision() {
        let edited = |found| Edited { name: "p".into(), before: vec![one("a", "x++")], after: vec![(&edits::NONE, vec![found])] };
        assert_eq!(collisions(&edited(one("a", "x++"))).len(), 0);
        assert_eq!(collisions(&edited(one("a", "y++"))).len(), 1);
    }

    #[test]
    fn every_program_is_one_of_the_suite() {
        let all = suite::programs(None).unwrap();
        assert!(PROGRAMS.iter().all(|path| all.iter().any(|program| program.path == *path)));
    }
}
