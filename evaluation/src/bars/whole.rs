//! Plain `rashomon check --budget 60` on every program of ours with a known bug, and on those that have none.
//!
//! What is fair. Nothing is given but the program and its arguments, and the budget is the same for all. A bug counts as proven
//! if a finding of its kind is; of `tests/programs` these are the kinds that the manifest expects, of `tests/explore` any (each
//! has one bug), of `tests/loop` and `tests/correlated` those in the source's second line, one of which is enough, of
//! `tests/scenarios` that in the second line; of `tests/provocation` and `tests/shacham` races. Programs without a bug, and the
//! twins in which it is mended, are to end with nothing proven and nothing shown.

mod corpora;

use crate::common::bar::{self, Bar};
use crate::common::command_line;
use crate::common::compile::succeed;
use crate::common::suite::{self, Program};
use crate::common::table::Table;
use anyhow::{Context as _, Result, bail};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;
use xtask::workspace::{self, root};

pub const BUDGET: &str = "60";
/// Of `tests/shacham`, those whose lockset warnings are spurious.
const RACE_FREE_PORTS: [&str; 2] = ["figure6.cpp", "handed_over.cpp"];
/// With --quick every so many programs.
const QUICK: usize = 8;

#[derive(Debug, clap::Args)]
pub struct Options {
    /// Only programs whose name contains this.
    #[arg(long, visible_aliases = ["filter", "program"])]
    pub only: Option<String>,
    /// A selection of the programs: shows that everything works, measures little.
    #[arg(long)]
    pub quick: bool,
    /// Give `check` these engines: what it would find if they were the usual ones. Without it plain `check` is measured.
    #[arg(long, value_name = "LIST")]
    pub engines: Option<String>,
    /// Programs below this folder instead of ours, beside what ThreadSanitizer, Helgrind and DRD say of them.
    #[arg(long, value_name = "FOLDER")]
    pub corpora: Option<PathBuf>,
    /// With --corpora: executions under each of the other tools.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    pub runs: u32,
    /// With --corpora: programs at the same time; without it as many as there are processors.
    #[arg(long)]
    pub jobs: Option<std::num::NonZeroUsize>,
    /// Machine-readable output.
    #[arg(long)]
    pub json: bool,
}

/// Kinds of findings, as reports name them.
#[derive(Clone, Debug)]
enum Wanted {
    /// None at all.
    Nothing,
    Any,
    OneOf(BTreeSet<String>),
    All(BTreeSet<String>),
}

impl Wanted {
    fn is_met(&self, proven: &BTreeSet<String>) -> bool {
        match self {
            Self::Nothing => proven.is_empty(),
            Self::Any => !proven.is_empty(),
            Self::OneOf(kinds) => !kinds.is_disjoint(proven),
            Self::All(kinds) => kinds.is_subset(proven),
        }
    }
}

/// A program to be checked.
#[derive(Clone)]
pub struct Subject {
    pub name: String,
    wanted: Wanted,
    pub source: PathBuf,
    /// Of the compiler.
    flags: Vec<String>,
    arguments: Vec<String>,
    stdin: Option<String>,
}

#[derive(Debug, Serialize)]
pub struct Checked {
    pub name: String,
    pub has_bug: bool,
    /// The bug is proven; of a program without one, nothing is.
    pub met: bool,
    /// Claims that are not proven.
    pub shown: usize,
    /// What found what is proven.
    pub found_by: BTreeSet<String>,
    pub executions: u64,
    pub seconds: f64,
}

#[derive(Debug, Serialize)]
struct Report {
    evaluation: &'static str,
    command: String,
    programs: Vec<Checked>,
    bars: Vec<Bar>,
}

pub fn run(options: &Options) -> Result<bool> {
    if let Some(folder) = &options.corpora {
        return corpora::run(folder, options);
    }
    let tool = workspace::build_tool()?;
    let folder = tempfile::tempdir().context("cannot create a temporary folder")?;
    let mut programs = Vec::new();
    let step = if options.quick { QUICK } else { 1 };
    let chosen: Vec<Subject> = subjects(options.only.as_deref())?.into_iter().step_by(step).collect();
    for (number, subject) in chosen.iter().enumerate() {
        let checked = check(subject, &tool, &folder.path().join(number.to_string()), options.engines.as_deref())?;
        eprintln!("{}: {:.1} s{}", checked.name, checked.seconds, if checked.met { "" } else { ", missed" });
        programs.push(checked);
    }
    let bars = bars_of(&programs);
    let report = Report { evaluation: "loop", command: command_line(), programs, bars };
    if options.json {
        println!("{}", serde_json::to_string_pretty(&report)?);
        return Ok(bar::all_met(&report.bars));
    }
    print(&report);
    Ok(bar::print(&report.bars))
}

/// What reports call what manifests and sources expect.
fn kind_of(expectation: &str) -> String {
    match expectation.split_whitespace().next().unwrap_or_default() {
        "race" => "data-race".into(),
        kind => kind.into(),
    }
}

fn subjects(only: Option<&str>) -> Result<Vec<Subject>> {
    let mut all = Vec::new();
    for program in suite::programs(None)? {
        all.extend(of_manifest(&program));
    }
    for source in sources("explore")? {
        all.push(Subject::new("explore", &source, Wanted::Any));
    }
    all.extend(twins("loop")?);
    all.extend(twins("correlated")?);
    for program in suite::scenarios(None)? {
        all.extend(of_manifest(&program));
    }
    let race = || Wanted::OneOf([kind_of("race")].into());
    for source in sources("provocation")? {
        // What orders its threads is inline assembly, which no tool sees.
        if !source.ends_with("barriers.c") {
            all.push(Subject::new("provocation", &source, race()));
        }
    }
    for source in sources("shacham")?.into_iter().filter(|source| source.extension().is_some_and(|kind| kind == "cpp")) {
        let has_race = !RACE_FREE_PORTS.iter().any(|name| source.ends_with(name));
        all.push(Subject::new("shacham", &source, if has_race { race() } else { Wanted::Nothing }));
    }
    all.retain(|subject| only.is_none_or(|part| subject.name.contains(part)));
    if all.is_empty() {
        bail!(
            "no program's name contains that; they are in tests/programs, explore, loop, correlated, \
             scenarios, provocation and shacham"
        );
    }
    Ok(all)
}

/// Each program of the folder, and its twin in which the bug is mended.
pub fn twins(group: &str) -> Result<Vec<Subject>> {
    let mut all = Vec::new();
    for source in sources(group)? {
        let text = std::fs::read_to_string(&source).with_context(|| format!("cannot read {}", source.display()))?;
        let Some(kinds) = text.lines().find_map(|line| line.strip_prefix("// shows: ")) else {
            bail!("{} does not say what it shows", source.display());
        };
        let bug = Subject::new(group, &source, Wanted::OneOf(kinds.split_whitespace().map(kind_of).collect()));
        let mut twin = Subject::new(group, &source, Wanted::Nothing);
        twin.name += " (mended)";
        twin.flags.push("-DFIXED".into());
        all.extend([bug, twin]);
    }
    Ok(all)
}

fn of_manifest(program: &Program) -> Option<Subject> {
    let wanted = match (program.expected(), program.has_allowances()) {
        ([], true) => return None,
        ([], false) => Wanted::Nothing,
        (expected, _) => Wanted::All(expected.iter().map(|one| kind_of(one)).collect()),
    };
    let mut subject = Subject::new("", &program.source(), wanted);
    subject.name = program.path.trim_start_matches("../").to_owned();
    subject.flags.extend(program.link.iter().cloned());
    subject.arguments.clone_from(&program.args);
    subject.stdin.clone_from(&program.stdin);
    Some(subject)
}

fn sources(folder: &str) -> Result<Vec<PathBuf>> {
    let folder = root().join("tests").join(folder);
    let entries = std::fs::read_dir(&folder).with_context(|| format!("cannot list {}", folder.display()))?;
    let mut found: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    found.sort();
    Ok(found)
}

impl Subject {
    fn new(group: &str, source: &Path, wanted: Wanted) -> Self {
        let file = source.file_name().unwrap_or_default().to_string_lossy();
        Self {
            name: format!("{group}/{file}"),
            wanted,
            source: source.to_owned(),
            flags: Vec::new(),
            arguments: Vec::new(),
            stdin: None,
        }
    }
}

impl Subject {
    /// The same, compiled with the plugin of `rashomon cc --deep`.
    pub fn deep(&self) -> Self {
        let flags = self.flags.iter().cloned().chain(["--deep".to_owned()]).collect();
        Self { flags, ..self.clone() }
    }
}

pub fn check(subject: &Subject, tool: &Path, place: &Path, engines: Option<&str>) -> Result<Checked> {
    std::fs::create_dir(place).with_context(|| format!("cannot create {}", place.display()))?;
    let (binary, json, input) = (place.join("program"), place.join("report.json"), place.join("input"));
    let is_c = subject.source.extension().is_some_and(|extension| extension == "c");
    let (wrapper, standard) = if is_c { ("cc", "-std=gnu11") } else { ("c++", "-std=c++17") };
    let mut compile = Command::new(tool);
    compile.args([wrapper, standard, "-g", "-O1", "-w", "-pthread"]).arg(&subject.source).args(["-o"]).arg(&binary);
    succeed(compile.args(&subject.flags))?;
    let mut command = Command::new(tool);
    command.args(["--quiet", "check", "--budget", BUDGET, "--json"]).arg(&json).arg("--output").arg(place.join("store"));
    if let Some(engines) = engines {
        command.args(["--engines", engines]);
    }
    if let Some(text) = &subject.stdin {
        std::fs::write(&input, text).with_context(|| format!("cannot write {}", input.display()))?;
        command.arg("--stdin").arg(&input);
    }
    command.arg("--").arg(&binary).args(&subject.arguments).current_dir(subject.source.parent().unwrap_or(place));
    let begin = Instant::now();
    let output = command.stdin(Stdio::null()).output().context("cannot start the tool")?;
    let seconds = begin.elapsed().as_secs_f64();
    let said = || String::from_utf8_lossy(&output.stderr).into_owned();
    let text = std::fs::read(&json).with_context(|| format!("checking {} left no report\n{}", subject.name, said()))?;
    let report: Value = serde_json::from_slice(&text).with_context(|| format!("the report on {}", subject.name))?;
    let findings = report["findings"].as_array().cloned().unwrap_or_default();
    let of = |finding: &Value| finding["kind"].as_str().unwrap_or_default().to_owned();
    let (proven, others): (Vec<Value>, Vec<Value>) = findings.into_iter().partition(|finding| finding["verdict"] == "proven");
    // Stores are large, and no longer needed.
    std::fs::remove_dir_all(place).with_context(|| format!("cannot remove {}", place.display()))?;
    Ok(Checked {
        name: subject.name.clone(),
        has_bug: !matches!(subject.wanted, Wanted::Nothing),
        met: subject.wanted.is_met(&proven.iter().map(of).collect()),
        shown: others.iter().filter(|finding| finding["verdict"] == "predicted").count(),
        found_by: proven.iter().map(|finding| finder_of(finding).to_owned()).collect(),
        executions: report["run"]["executions"].as_u64().unwrap_or(0) + report["run"]["recordings"].as_u64().unwrap_or(0),
        seconds,
    })
}

/// Which engine's proof it is.
pub fn finder_of(finding: &Value) -> &'static str {
    let notes = finding["notes"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let mut notes = notes.map(|note| note.starts_with("found by exploration"));
    if notes.any(|explored| explored) {
        "explore"
    } else if finding["grade"] == "violated" {
        "atomicity"
    } else if finding["reproduce"].is_null() {
        "record"
    } else if !finding["provocation"].is_null() {
        "provoke"
    } else {
        "force"
    }
}

fn bars_of(programs: &[Checked]) -> Vec<Bar> {
    let (bugs, clean): (Vec<&Checked>, Vec<&Checked>) = programs.iter().partition(|one| one.has_bug);
    let proven = bugs.iter().filter(|one| one.met).count();
    let mut bars = Vec::new();
    if !bugs.is_empty() {
        let is_met = proven as f64 >= 0.98 * bugs.len() as f64;
        bars.push(Bar::holds("bugs proven in 98 of 100 programs", is_met, format!("{proven} of {}", bugs.len())));
        let seconds = median(bugs.iter().map(|one| one.seconds).collect());
        bars.push(Bar::at_most("median time with a bug", seconds, 5.0, " s"));
    }
    if !clean.is_empty() {
        let wrong = clean.iter().filter(|one| !one.met || one.shown > 0).count();
        bars.push(Bar::holds("nothing shown where there is no bug", wrong == 0, format!("{wrong} of {}", clean.len())));
        let seconds = median(clean.iter().map(|one| one.seconds).collect());
        bars.push(Bar::at_most("median time without a bug", seconds, 10.0, " s"));
    }
    bars
}

pub fn median(mut seconds: Vec<f64>) -> f64 {
    seconds.sort_by(f64::total_cmp);
    seconds.get(seconds.len() / 2).copied().unwrap_or(0.0)
}

fn print(report: &Report) {
    println!("{}", report.command);
    let mut table = Table::new(&["program", "bug", "verdict", "found by", "executions", "seconds"]);
    for one in &report.programs {
        let verdict = match (one.has_bug, one.met) {
            (true, true) => "proven",
            (true, false) => "missed",
            (false, true) => "silent",
            (false, false) => "FALSE",
        };
        let found_by: Vec<&str> = one.found_by.iter().map(String::as_str).collect();
        table.row(vec![
            one.name.clone(),
            if one.has_bug { "yes" } else { "no" }.into(),
            verdict.into(),
            found_by.join(", "),
            one.executions.to_string(),
            format!("{:.1}", one.seconds),
        ]);
    }
    table.print();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_program_says_what_it_shows() {
        let all = subjects(None).unwrap();
        let loops: Vec<&Subject> =
            all.iter().filter(|one| one.name.starts_with("loop/") || one.name.starts_with("correlated/")).collect();
        assert!(loops.len() >= 26 && loops.len().is_multiple_of(2));
        let known = [
            "data-race",
            "deadlock",
            "stuck",
            "endless",
            "failure",
            "use-after-free",
            "use-of-destroyed",
            "lifetime-race",
            "atomicity-violation",
        ];
        let kinds = loops.iter().filter_map(|one| match &one.wanted {
            Wanted::OneOf(kinds) => Some(kinds),
            _ => None,
        });
        assert!(kinds.flatten().all(|kind| known.contains(&kind.as_str())));
        for name in ["explore/lost_signal.c", "scenarios/phases.c", "provocation/flag.c", "shacham/tsp.cpp"] {
            assert!(all.iter().any(|one| one.name == name), "{name}");
        }
        assert!(subjects(Some("no program is called so")).is_err());
    }

    #[test]
    fn a_bug_of_another_kind_does_not_count() {
        let race: BTreeSet<String> = [kind_of("race 1 2 unordered")].into();
        assert!(Wanted::All(race.clone()).is_met(&race) && Wanted::OneOf(race.clone()).is_met(&race));
        let stuck: BTreeSet<String> = ["stuck".to_owned()].into();
        assert!(!Wanted::All(race.clone()).is_met(&stuck) && !Wanted::OneOf(race).is_met(&stuck));
        assert!(!Wanted::Nothing.is_met(&stuck) && Wanted::Any.is_met(&stuck) && !Wanted::Any.is_met(&BTreeSet::new()));
    }
}
