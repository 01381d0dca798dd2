//! Programs with races that somebody else wrote, from a folder given by `--corpora`: what plain `check` proves, beside what one
//! run of clang's ThreadSanitizer reports.

pub mod corpus;
mod make;
mod places;
pub mod run;

use crate::common::bar::{self, Bar};
use crate::common::debian::{self, starts};
use crate::common::table::Table;
use anyhow::{Context as _, Result, bail};
use places::Pair;
use run::{Case, Result as CaseResult, Tools};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use xtask::workspace;

/// Races that ThreadSanitizer reports and `check` does not prove, each with its reason: `program: file:line file:line`.
static EXCEPTIONS: &str = include_str!("exceptions.toml");

#[derive(Debug, Serialize)]
struct Missed {
    case: String,
    one: String,
    other: String,
    /// What our report says of this pair instead, if anything.
    verdict: Option<String>,
    exception: Option<String>,
}

#[derive(Debug, Serialize)]
struct Report {
    evaluation: &'static str,
    cases: Vec<CaseResult>,
    missed: Vec<Missed>,
    not_built: BTreeMap<String, String>,
    bars: Vec<Bar>,
}

#[derive(Debug, clap::Args)]
pub struct Options {
    /// Cases that run at the same time; without it as many as there are processors.
    #[arg(long)]
    pub jobs: Option<std::num::NonZeroUsize>,
    /// Folder of the programs.
    #[arg(long)]
    pub corpora: Option<std::path::PathBuf>,
    /// Only programs (if none does, cases) whose name contains this.
    #[arg(long, visible_aliases = ["filter", "program"])]
    pub only: Option<String>,
    /// Machine-readable output.
    #[arg(long)]
    pub json: bool,
}

pub fn run(options: &Options) -> Result<bool> {
    let Some(folder) = &options.corpora else {
        bail!("--corpora FOLDER names the folder with the programs");
    };
    let folder = fs::canonicalize(folder).with_context(|| format!("cannot open {}", folder.display()))?;
    provide_compiler()?;
    let tool = workspace::build_tool()?;
    let exceptions: BTreeMap<String, String> = toml::from_str(EXCEPTIONS).context("exceptions.toml")?;
    let exceptions = exceptions.into_iter().map(|(key, reason)| (without_folders(&key), reason)).collect();
    let scratch = tempfile::tempdir().context("cannot create a temporary folder")?;
    let tools = Tools { tool, folder: folder.clone(), scratch: scratch.path().to_owned() };

    let mut programs = corpus::programs(&folder)?;
    // A part of a program's name, else of a case's.
    let only = options.only.as_deref().unwrap_or_default();
    let names_program = programs.iter().any(|program| program.name.contains(only));
    programs.retain(|program| !names_program || program.name.contains(only));
    if programs.is_empty() {
        bail!("no program's name contains that");
    }
    corpus::provide(&programs)?;
    let jobs = jobs(options.jobs);
    let built = in_parallel(&programs, jobs, "built", |number, program| tools.build(number, program))?;
    let mut not_built = BTreeMap::new();
    let mut cases: Vec<Case> = Vec::new();
    for (program, result) in programs.iter().zip(built) {
        match result {
            Ok(binaries) => cases.extend(tools.cases(program, &binaries)?),
            Err(complaint) => drop(not_built.insert(program.name.clone(), complaint)),
        }
    }
    cases.retain(|case| names_program || case.name.contains(only));
    if cases.is_empty() {
        bail!("no name contains {only}, or nothing could be built");
    }
    let results = in_parallel(&cases, jobs, "run", |number, case| tools.run(number, case))?;
    let results: Vec<CaseResult> = results.into_iter().collect::<Result<_>>()?;
    let missed = missed_of(&results, &exceptions);
    let bars = bars_of(&results, &missed, &exceptions, options.only.is_none());
    let report = Report { evaluation: "public", cases: results, missed, not_built, bars };
    if options.json {
        println!("{}", serde_json::to_string_pretty(&report)?);
        return Ok(bar::all_met(&report.bars));
    }
    print(&report, &folder);
    Ok(bar::print(&report.bars))
}

/// So many, or as many as there are processors.
pub fn jobs(asked: Option<std::num::NonZeroUsize>) -> usize {
    asked.map_or_else(|| std::thread::available_parallelism().map_or(1, usize::from), usize::from)
}

/// Clang with ThreadSanitizer.
pub fn provide_compiler() -> Result<()> {
    let symbolizer = Path::new("/usr/lib/llvm-19/bin/llvm-symbolizer").is_file();
    let sanitizer = Path::new("/usr/lib/llvm-19/lib/clang/19/lib/linux/libclang_rt.tsan-x86_64.a").is_file();
    debian::provide(&[("clang-19", starts("clang-19")), ("libclang-rt-19-dev", sanitizer), ("llvm-19", symbolizer)])
}

/// Results in the order of what they are of.
pub fn in_parallel<T: Sync, R: Send>(all: &[T], jobs: usize, done: &str, work: impl Fn(usize, &T) -> R + Sync) -> Result<Vec<R>> {
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<(usize, R)>> = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(one) = all.get(index) else { break };
                    let result = work(index, one);
                    let mut results = results.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                    results.push((index, result));
                    if results.len().is_multiple_of(25) || results.len() == all.len() {
                        eprintln!("{done}: {} of {}", results.len(), all.len());
                    }
                }
            });
        }
    });
    let mut results = results.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    results.sort_by_key(|(index, _)| *index);
    Ok(results.into_iter().map(|(_, result)| result).collect())
}

fn key(case: &str, (one, other): &Pair) -> String {
    without_folders(&format!("{case}: {one} {other}"))
}

/// Where below FOLDER a collection lies says nothing about its programs.
fn without_folders(key: &str) -> String {
    key.split(' ').map(|word| word.rsplit('/').next().unwrap_or(word)).collect::<Vec<_>>().join(" ")
}

/// Why a race need not be proven: of the pair, or of each pair of the case.
fn exception_of<'e>(exceptions: &'e BTreeMap<String, String>, case: &str, pair: &Pair) -> Option<&'e String> {
    let of_all = || exceptions.get(&without_folders(&format!("{case}: *")));
    exceptions.get(&key(case, pair)).or_else(of_all)
}

fn missed_of(results: &[CaseResult], exceptions: &BTreeMap<String, String>) -> Vec<Missed> {
    let mut missed = Vec::new();
    for result in results {
        for pair in result.sanitizer.iter().filter(|pair| !result.proven.contains(pair)) {
            let verdict = result.others.iter().find(|other| other.pair.as_ref() == Some(pair)).map(|other| other.status.clone());
            let exception = exception_of(exceptions, &result.case, pair).cloned();
            missed.push(Missed {
                case: result.case.clone(),
                one: pair.0.to_string(),
                other: pair.1.to_string(),
                verdict,
                exception,
            });
        }
    }
    missed
}

fn bars_of(results: &[CaseResult], missed: &[Missed], exceptions: &BTreeMap<String, String>, whole: bool) -> Vec<Bar> {
    let pairs: usize = results.iter().map(|result| result.sanitizer.len()).sum();
    let unexplained = missed.iter().filter(|missed| missed.exception.is_none()).count();
    let is_racy = |result: &CaseResult| {
        let counts = |pair: &Pair| result.proven.contains(pair) || exception_of(exceptions, &result.case, pair).is_none();
        result.sanitizer.iter().any(counts)
    };
    let racy: Vec<&CaseResult> = results.iter().filter(|result| is_racy(result)).collect();
    let proven_of_racy = racy.iter().filter(|result| !result.proven.is_empty()).count();
    let proven = results.iter().filter(|result| !result.proven.is_empty()).count();
    let failed: Vec<&str> = results.iter().filter(|result| result.failure.is_some()).map(|result| result.case.as_str()).collect();
    let used: BTreeSet<String> = missed
        .iter()
        .flat_map(|missed| [format!("{}: {} {}", missed.case, missed.one, missed.other), format!("{}: *", missed.case)])
        .map(|name| without_folders(&name))
        .collect();
    let known: BTreeSet<String> = results.iter().map(|result| without_folders(&result.case)).collect();
    let is_here = |name: &str| name.split(": ").next().is_some_and(|case| known.contains(case));
    let stale = exceptions.keys().filter(|name| whole && is_here(name) && !used.contains(*name)).count();
    let none = |name: &str, found: usize, of: String| Bar {
        name: name.into(),
        required: "none".into(),
        found: of,
        met: found == 0,
        stretch: false,
    };
    vec![
        none(
            "races that one run of ThreadSanitizer reports and check does not prove, without a reason",
            unexplained,
            format!("{unexplained} of {pairs}, {} with a reason", missed.len() - unexplained),
        ),
        Bar {
            name: "programs with a proven race".into(),
            required: format!("≥ {}, as many as ThreadSanitizer reports one in that is no exception", racy.len()),
            found: format!("{proven}, {proven_of_racy} of those"),
            met: proven >= racy.len(),
            stretch: false,
        },
        none(
            "checks that did not end well",
            failed.len(),
            format!("{} {}", failed.len(), failed.join(" ")).trim_end().to_owned(),
        ),
        // An exception that is proven in this run may be missed in the next: ThreadSanitizer's runs differ.
        none("exceptions that were not needed", stale, stale.to_string()).stretch(),
    ]
}

fn print(report: &Report, folder: &Path) {
    println!(
        "cargo xtask evaluate public --corpora {}: races that one run of ThreadSanitizer reports, and check\n",
        folder.display()
    );
    let mut table =
        Table::new(&["folder", "cases", "TSan: cases", "races", "check: cases", "of TSan's races", "others", "seconds"]);
    let mut folders: BTreeMap<&str, Vec<&CaseResult>> = BTreeMap::new();
    for case in &report.cases {
        let parent = Path::new(&case.case).parent().and_then(Path::to_str).unwrap_or("");
        folders.entry(if parent.is_empty() { "." } else { parent }).or_default().push(case);
    }
    let mut row = |name: &str, cases: &[&CaseResult]| {
        let count = |holds: fn(&CaseResult) -> bool| cases.iter().filter(|case| holds(case)).count().to_string();
        let sum = |of: fn(&CaseResult) -> usize| cases.iter().map(|case| of(case)).sum::<usize>().to_string();
        let seconds: f64 = cases.iter().map(|case| case.check_seconds).sum();
        table.row(vec![
            name.to_owned(),
            cases.len().to_string(),
            count(|case| !case.sanitizer.is_empty()),
            sum(|case| case.sanitizer.len()),
            count(|case| !case.proven.is_empty()),
            sum(|case| case.sanitizer.intersection(&case.proven).count()),
            sum(|case| case.proven.difference(&case.sanitizer).count()),
            format!("{seconds:.0}"),
        ]);
    };
    for (name, cases) in &folders {
        row(name, cases);
    }
    row("all", &report.cases.iter().collect::<Vec<_>>());
    table.print();
    for missed in &report.missed {
        println!("\nnot proven: {}: {} {}", missed.case, missed.one, missed.other);
        println!("    our verdict: {}", missed.verdict.as_deref().unwrap_or("nothing"));
        if let Some(reason) = &missed.exception {
            println!("    reason: {reason}");
        }
    }
    for case in &report.cases {
        if let Some(failure) = &case.failure {
            println!("\nfailed: {}: {failure}", case.case);
        }
    }
    for (name, complaint) in &report.not_built {
        println!("\nnot built: {name}: {complaint}");
    }
    println!();
}
