//! Plain `rashomon check --budget 60` on programs that somebody else wrote, beside what other tools say of them.
//!
//! What a program's bug is can only be known from its author: `buggy.txt` at the top of the folder or above it, in lines
//! `COLLECTION PROGRAM …` (SCTBench has one), else the name, as benchmarks of verifiers have it: `_bad` and `_sat` fail in some
//! schedule, `_ok` and `_unsat` in none. That says that the program's own assertions hold, not that it has no race.
//!
//! A failure is whatever ends or hangs a program: an assertion, a crash, a wrong exit, a deadlock, an endless loop. The other
//! tools show a bug if they report something, or if the program fails under them.

use super::{BUDGET, Options, finder_of, median};
use crate::bars::public::corpus::{self, Program};
use crate::bars::public::run::{Binaries, Case, Tools};
use crate::bars::public::{in_parallel, jobs, provide_compiler};
use crate::common::bar::{self, Bar};
use crate::common::command_line;
use crate::common::debian::{self, starts};
use crate::common::races;
use crate::common::table::Table;
use anyhow::{Context as _, Result, bail};
use serde::Serialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use xtask::workspace;

/// Lists the programs that fail in some schedule.
const LIST: &str = "buggy.txt";
/// Of one execution under another tool: what takes longer hangs.
const TIMEOUT: Duration = Duration::from_secs(10);
/// What `check` may take.
const CHECK_TIMEOUT: Duration = Duration::from_secs(90);
/// What hung so often in a row hangs: it is not executed again.
const HANGS: u32 = 3;
/// The exit code of another tool that reports something.
const REPORTED: i32 = 66;
/// Valgrind says so of itself, and not of the program.
const GAVE_UP: &str = "I can't recover.  Giving up.";
/// Of ThreadSanitizer's reports.
const RACE: &str = "WARNING: ThreadSanitizer: data race";
/// Kinds of findings that say how an execution failed, and not only what is wrong with it.
const FAILURES: [&str; 4] = ["failure", "deadlock", "stuck", "endless"];
/// A list of 36 bugs may miss one.
const SHARE: f64 = 35.0 / 36.0;

/// What its author says of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Said {
    Fails,
    Holds,
    Nothing,
}

/// Executions under another tool.
#[derive(Clone, Debug, Default, Serialize)]
struct Others {
    /// The first one reported something, or failed.
    first: bool,
    reported: u32,
    /// Of these, data races, as ThreadSanitizer calls them.
    races: u32,
    /// Crashed, failed or hung, whatever was reported.
    failed: u32,
}

impl Others {
    fn shows(&self) -> bool {
        self.reported > 0 || self.failed > 0
    }
}

#[derive(Debug, Serialize)]
struct Judged {
    name: String,
    said: Said,
    /// Kinds of what is proven.
    proven: BTreeSet<String>,
    found_by: BTreeSet<&'static str>,
    executions: u64,
    seconds: f64,
    sanitizer: Others,
    /// `None`: it does not link without ThreadSanitizer's runtime, whose functions it calls.
    helgrind: Option<Others>,
    drd: Option<Others>,
    /// The check itself went wrong.
    broken: Option<String>,
}

impl Judged {
    fn fails(&self) -> bool {
        self.proven.iter().any(|kind| FAILURES.contains(&kind.as_str()))
    }
}

#[derive(Debug, Serialize)]
struct Report {
    evaluation: &'static str,
    command: String,
    programs: Vec<Judged>,
    not_built: BTreeMap<String, String>,
    bars: Vec<Bar>,
}

pub fn run(folder: &Path, options: &Options) -> Result<bool> {
    let folder = fs::canonicalize(folder).with_context(|| format!("cannot open {}", folder.display()))?;
    provide_compiler()?;
    debian::provide(&[("valgrind", starts("valgrind"))])?;
    let tool = workspace::build_tool()?;
    let scratch = tempfile::tempdir().context("cannot create a temporary folder")?;
    let listed = listed(&folder)?;
    let tools = Tools { tool, folder: folder.clone(), scratch: scratch.path().to_owned() };
    let mut programs = corpus::programs(&folder)?;
    programs.retain(|program| options.only.as_ref().is_none_or(|part| program.name.contains(part.as_str())));
    if programs.is_empty() {
        bail!("no program's name contains that");
    }
    corpus::provide(&programs)?;
    let build = |number: usize, program: &Program| Ok((tools.build(number, program)?, tools.build_native(number, program).ok()));
    let built: Vec<Result<(Binaries, Option<PathBuf>), String>> = in_parallel(&programs, jobs(options.jobs), "built", build)?;
    let mut not_built = BTreeMap::new();
    let mut subjects = Vec::new();
    for (program, result) in programs.iter().zip(built) {
        match result {
            Ok((binaries, native)) => {
                let said = said_of(&program.name, listed.as_ref());
                subjects.extend(tools.cases(program, &binaries)?.into_iter().map(|case| (case, said, native.clone())));
            }
            Err(complaint) => drop(not_built.insert(program.name.clone(), complaint)),
        }
    }
    if let (true, Some((name, complaint))) = (subjects.is_empty(), not_built.first_key_value()) {
        bail!("nothing could be built: {name}: {complaint}");
    }
    let judged = in_parallel(&subjects, jobs(options.jobs), "judged", |number, (case, said, native)| {
        let place = scratch.path().join(format!("case-{number}"));
        fs::create_dir_all(&place).with_context(|| format!("cannot create {}", place.display()))?;
        let Case { name, binaries, arguments } = case;
        let mut judged = check(&tools.tool, &binaries.ours, arguments, &place)?;
        (judged.name, judged.said) = (name.clone(), *said);
        let mut sanitizer = Command::new(&binaries.sanitizer);
        sanitizer.env("TSAN_OPTIONS", format!("exitcode={REPORTED}"));
        judged.sanitizer = others(sanitizer.args(arguments).current_dir(&place), options.runs)?;
        let by_valgrind = |tool: &str| {
            let native = native.as_deref();
            native.map(|native| others(valgrind(tool, native).args(arguments).current_dir(&place), options.runs)).transpose()
        };
        (judged.helgrind, judged.drd) = (by_valgrind("helgrind")?, by_valgrind("drd")?);
        let proven = judged.proven.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        eprintln!("{name}: {:.1} s, {proven}", judged.seconds);
        Ok(judged)
    })?;
    let judged: Vec<Judged> = judged.into_iter().collect::<Result<_>>()?;
    let bars = bars_of(&judged);
    let report = Report { evaluation: "loop", command: command_line(), programs: judged, not_built, bars };
    bar::finish(&report, &report.bars, options.json, || print(&report, options.runs))
}

/// The names in the list beside the folder's programs, if there is one.
fn listed(folder: &Path) -> Result<Option<BTreeSet<String>>> {
    let Some(list) = folder.ancestors().take(3).map(|folder| folder.join(LIST)).find(|list| list.is_file()) else {
        return Ok(None);
    };
    let text = fs::read_to_string(&list).with_context(|| format!("cannot read {}", list.display()))?;
    Ok(Some(names_of(&text)))
}

fn names_of(text: &str) -> BTreeSet<String> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| Some(line.split_whitespace().nth(1)?.to_owned())).collect()
}

/// A name in the list is a file's without its ending, a program's of the manifest, or a folder's.
fn said_of(program: &str, listed: Option<&BTreeSet<String>>) -> Said {
    let parts = || Path::new(program).iter().filter_map(|part| part.to_str());
    let stems = || parts().map(|part| part.split('.').next().unwrap_or(part));
    if listed.is_some_and(|listed| stems().chain(parts()).any(|part| listed.contains(part))) {
        return Said::Fails;
    }
    let stem = stems().next_back().unwrap_or_default();
    match (stem.ends_with("_bad") || stem.ends_with("_sat"), stem.ends_with("_ok") || stem.ends_with("_unsat")) {
        (true, _) if listed.is_none() => Said::Fails,
        (_, true) => Said::Holds,
        _ => Said::Nothing,
    }
}

fn check(tool: &Path, program: &Path, arguments: &[String], place: &Path) -> Result<Judged> {
    let (json, store) = (place.join("report.json"), place.join("store"));
    let mut command = Command::new(tool);
    command.args(["check", "--quiet", "--budget", BUDGET, "--json"]).arg(&json).arg("--output").arg(&store);
    command.arg("--").arg(program).args(arguments).stdin(Stdio::null()).current_dir(place);
    let begin = Instant::now();
    let execution = races::execute(&mut command, CHECK_TIMEOUT)?;
    let seconds = begin.elapsed().as_secs_f64();
    let report: Option<Value> = fs::read(&json).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
    let broken = match (&report, execution.status) {
        (_, None) => Some(format!("did not end within {} s", CHECK_TIMEOUT.as_secs())),
        (None, Some(_)) => Some(execution.said.lines().last().unwrap_or("left no report").to_owned()),
        (Some(_), Some(_)) => None,
    };
    let report = report.unwrap_or_default();
    let findings = report["findings"].as_array().map(Vec::as_slice).unwrap_or_default();
    let proven: Vec<&Value> = findings.iter().filter(|finding| finding["verdict"] == "proven").collect();
    // Stores are large, and no longer needed.
    let _ = fs::remove_dir_all(&store);
    Ok(Judged {
        name: String::new(),
        said: Said::Nothing,
        proven: proven.iter().filter_map(|finding| Some(finding["kind"].as_str()?.to_owned())).collect(),
        found_by: proven.iter().map(|finding| finder_of(finding)).collect(),
        executions: report["run"]["executions"].as_u64().unwrap_or(0) + report["run"]["recordings"].as_u64().unwrap_or(0),
        seconds,
        sanitizer: Others::default(),
        helgrind: None,
        drd: None,
        broken,
    })
}

fn valgrind(tool: &str, program: &Path) -> Command {
    let mut command = Command::new("valgrind");
    command.arg(format!("--tool={tool}")).args(["--quiet", &format!("--error-exitcode={REPORTED}")]).arg(program);
    command
}

fn others(command: &mut Command, runs: u32) -> Result<Others> {
    let mut found = Others::default();
    let mut hung = 0;
    for run in 0..runs {
        if hung == HANGS {
            found.failed += runs - run;
            break;
        }
        let execution = races::execute(command.stdin(Stdio::null()), TIMEOUT)?;
        if execution.said.contains(GAVE_UP) {
            bail!("Valgrind cannot execute a program: {}", execution.said.lines().next().unwrap_or_default());
        }
        let code = execution.status.map(|status| status.code());
        hung = if code.is_none() { hung + 1 } else { 0 };
        let reported = code == Some(Some(REPORTED)) || execution.said.contains("WARNING: ThreadSanitizer");
        let failed = !matches!(code, Some(Some(0 | REPORTED)));
        found.reported += u32::from(reported);
        found.races += u32::from(execution.said.contains(RACE));
        found.failed += u32::from(failed);
        found.first |= run == 0 && (reported || failed);
    }
    Ok(found)
}

fn bars_of(programs: &[Judged]) -> Vec<Bar> {
    let mut bars = Vec::new();
    let buggy: Vec<&Judged> = programs.iter().filter(|one| one.said == Said::Fails).collect();
    if !buggy.is_empty() {
        let shown = buggy.iter().filter(|one| one.fails()).count();
        let required = (SHARE * buggy.len() as f64).floor() as usize;
        bars.push(Bar {
            name: "programs that fail in some schedule, as their author says: the failure is proven".into(),
            required: format!("≥ {required}, as 35 of 36"),
            found: format!("{shown} of {}", buggy.len()),
            met: shown >= required,
            stretch: false,
        });
    }
    let mut wherever = |what: &str, reports: fn(&Others) -> u32| {
        let reported: Vec<&Judged> = programs.iter().filter(|one| reports(&one.sanitizer) > 0).collect();
        let proven = reported.iter().filter(|one| !one.proven.is_empty()).count();
        let name = format!("something is proven wherever ThreadSanitizer reports {what}");
        bars.push(Bar::holds(&name, proven == reported.len(), format!("{proven} of {}", reported.len())));
    };
    wherever("anything, what cannot happen included", |others| others.reported);
    wherever("a data race", |others| others.races);
    let holds: Vec<&Judged> = programs.iter().filter(|one| one.said == Said::Holds).collect();
    let wrong = holds.iter().filter(|one| one.fails()).count();
    bars.push(Bar::holds("no failure where the author says there is none", wrong == 0, format!("{wrong} of {}", holds.len())));
    let broken = programs.iter().filter(|one| one.broken.is_some()).count();
    bars.push(Bar::holds(
        "every check ended in time and left its report",
        broken == 0,
        format!("{broken} of {}", programs.len()),
    ));
    bars
}

/// Of the programs that fail in some schedule.
fn count_of(report: &Report, of: impl Fn(&Judged) -> bool) -> usize {
    report.programs.iter().filter(|one| one.said == Said::Fails && of(one)).count()
}

fn print(report: &Report, runs: u32) {
    println!("{}\n", report.command);
    println!(
        "Of each other tool: executions of {runs} that reported something, and that failed or hung; * if the first did; \
        -: the program does not link without ThreadSanitizer's runtime.\n"
    );
    let mut table = Table::new(&["program", "author", "proven", "found by", "executions", "seconds", "TSan", "Helgrind", "DRD"]);
    let told = |others: &Others| format!("{} {}{}", others.reported, others.failed, if others.first { " *" } else { "" });
    for one in &report.programs {
        let author = match one.said {
            Said::Fails => "fails",
            Said::Holds => "holds",
            Said::Nothing => "",
        };
        table.row(vec![
            one.name.clone(),
            author.into(),
            one.proven.iter().cloned().collect::<Vec<_>>().join(", "),
            one.found_by.iter().copied().collect::<Vec<_>>().join(", "),
            one.executions.to_string(),
            format!("{:.1}", one.seconds),
            told(&one.sanitizer),
            one.helgrind.as_ref().map_or_else(|| "-".into(), told),
            one.drd.as_ref().map_or_else(|| "-".into(), told),
        ]);
    }
    table.print();
    let count = |of: fn(&Judged) -> bool| count_of(report, of);
    println!("\nOf the programs that fail in some schedule, something is shown by");
    println!("    check: {}, the failure itself: {}", count(|one| !one.proven.is_empty()), count(Judged::fails));
    println!(
        "    ThreadSanitizer: {} in one run, {} in {runs}",
        count(|one| one.sanitizer.first),
        count(|one| one.sanitizer.shows())
    );
    let by_valgrind = |name: &str, of: fn(&Judged) -> Option<&Others>| {
        let first = count_of(report, |one| of(one).is_some_and(|others| others.first));
        let shown = count_of(report, |one| of(one).is_some_and(Others::shows));
        println!("    {name}: {first} in one run, {shown} in {runs}");
    };
    by_valgrind("Helgrind", |one| one.helgrind.as_ref());
    by_valgrind("DRD", |one| one.drd.as_ref());
    println!("Median of the seconds of a check: {:.1}\n", median(report.programs.iter().map(|one| one.seconds).collect()));
    for one in &report.programs {
        if let Some(broken) = &one.broken {
            println!("broken: {}: {broken}", one.name);
        }
    }
    for (name, complaint) in &report.not_built {
        println!("not built: {name}: {complaint}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_says_more_than_a_name() {
        let listed = names_of("suite fft 2 152\n#other lu 1\nsuite cache_bad 3 2\n");
        assert_eq!(listed.len(), 2);
        assert_eq!(said_of("kernels/fft/fft.c", Some(&listed)), Said::Fails);
        assert_eq!(said_of("kernels/lu/lu.c", Some(&listed)), Said::Nothing);
        assert_eq!(said_of("x/cache_bad.c", Some(&listed)), Said::Fails);
        assert_eq!(said_of("x/other_bad.c", Some(&listed)), Said::Nothing);
        assert_eq!(said_of("x/other_bad.c", None), Said::Fails);
        assert_eq!(said_of("x/din_unsat.c", Some(&listed)), Said::Holds);
        assert_eq!(said_of("x/din_sat.c", None), Said::Fails);
    }
}
