//! LLVM's own tests of ThreadSanitizer (compiler-rt/test/tsan), with clang's runtime as the peer and with ours.
//!
//! The tests come from Debian's source package; they are kept in the folder of builds and are no part of this project. They run
//! without a build tree of LLVM: the commands in their `RUN:` lines, with the substitutions that LLVM's test driver makes.

mod case;
mod condition;
mod run;
mod source;

use crate::common::bar::{self, Bar};
use crate::common::debian::{self, starts};
pub use crate::common::options::Dividing as Options;
use crate::common::table::Table;
use anyhow::{Context as _, Result, bail};
use case::{Case, Class};
use condition::Features;
use run::{Outcome, Run, Toolchain};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use xtask::workspace;

const TIME_LIMIT: Duration = Duration::from_secs(60);
const REQUIRED_PASSES: usize = 260;
/// Classes of which tests have to pass: ours covers the kind.
const REQUIRED_CLASSES: [Class; 6] =
    [Class::Race, Class::UseAfterFree, Class::MutexMisuse, Class::Deadlock, Class::Signal, Class::ThreadLeak];

static REASONS: &str = include_str!("reasons.toml");

#[derive(Debug, Serialize)]
struct TestResult {
    name: String,
    class: Class,
    /// `None`: not asked for.
    clang: Option<Run>,
    ours: Run,
    reason: Option<String>,
}

#[derive(Debug, Serialize)]
struct Report {
    evaluation: &'static str,
    tests: Vec<TestResult>,
    bars: Vec<Bar>,
}

pub fn run(options: &Options) -> Result<bool> {
    let there = |name: &str| Path::new(run::LLVM_TOOLS).join(name).is_file();
    let sanitizer = Path::new("/usr/lib/llvm-19/lib/clang/19/lib/linux/libclang_rt.tsan-x86_64.a").is_file();
    debian::provide(&[
        ("clang-19", starts("clang-19")),
        ("libclang-rt-19-dev", sanitizer),
        ("llvm-19", there("llvm-symbolizer")),
        ("llvm-19-tools", there("FileCheck") && there("not")),
    ])?;
    let tool = workspace::build_tool()?;
    let cache = workspace::target()?.join("evaluate").join("llvm-tsan");
    fs::create_dir_all(&cache).with_context(|| format!("cannot create {}", cache.display()))?;
    let tests = source::provide(&cache)?;
    let mut cases = case::all(&tests, &features()?)?;
    if let Some(part) = &options.selecting.only {
        cases.retain(|case| case.name.contains(part.as_str()));
    }
    if cases.is_empty() {
        bail!("no test's name contains that; they are in {}", tests.display());
    }
    let mut reasons: BTreeMap<String, String> = toml::from_str(REASONS).context("reasons.toml")?;

    let clang = Toolchain { c: "clang-19".into(), cxx: "clang++-19".into(), environment: Vec::new() };
    let quoted = format!("'{}'", tool.display());
    let ours = Toolchain {
        c: format!("{quoted} cc"),
        cxx: format!("{quoted} c++"),
        environment: vec![
            ("RASHOMON_CC", "clang-19".into()),
            ("RASHOMON_CXX", "clang++-19".into()),
            ("RASHOMON_REPORTER", tool.clone()),
        ],
    };
    let jobs = options.jobs.map_or_else(|| std::thread::available_parallelism().map_or(1, usize::from), usize::from);
    // The peer last: who waits for the result of a change sees it soonest.
    let our_runs = run_all("rashomon", &cases, &tests, &ours, &cache.join("rashomon"), jobs)?;
    let peer_runs = match options.selecting.quick {
        true => our_runs.iter().map(|_| None).collect(),
        false => run_all("clang", &cases, &tests, &clang, &cache.join("clang"), jobs)?.into_iter().map(Some).collect::<Vec<_>>(),
    };
    let results: Vec<TestResult> = cases
        .iter()
        .zip(our_runs)
        .zip(peer_runs)
        .map(|((case, ours), clang)| {
            let reason = reasons.remove(&case.name);
            TestResult { name: case.name.clone(), class: case.class, clang, ours, reason }
        })
        .collect();
    let unknown = if options.selecting.only.is_none() { reasons.into_keys().collect() } else { Vec::new() };
    let bars = bars_of(&results, options.selecting.only.is_none(), &unknown);
    let report = Report { evaluation: "llvm-tsan", tests: results, bars };
    if options.selecting.json {
        println!("{}", serde_json::to_string_pretty(&report)?);
        return Ok(bar::all_met(&report.bars));
    }
    print(&report, &cache);
    Ok(bar::print(&report.bars))
}

/// What LLVM's test driver would find of this system.
fn features() -> Result<Features> {
    let output = Command::new("getconf").arg("GNU_LIBC_VERSION").output().context("cannot start getconf")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let number = |text: &str| -> Option<(u32, u32)> {
        let (major, minor) = text.trim().strip_prefix("glibc ").unwrap_or(text).split_once('.')?;
        Some((major.parse().ok()?, minor.trim().parse().ok()?))
    };
    let version = number(&text).with_context(|| format!("getconf says {text:?}: not glibc"))?;
    let mut features: Features = [
        "linux",
        "x86_64",
        "x86_64-target-arch",
        "target=x86_64-unknown-linux-gnu",
        "stable-runtime",
        "shared_unwind",
        "compiler-rt-optimized",
        "glibc",
    ]
    .map(str::to_owned)
    .into();
    let steps = ["2.19", "2.27", "2.30", "2.33", "2.34", "2.37", "2.38", "2.40"];
    features
        .extend(steps.iter().filter(|step| number(step).is_some_and(|step| step <= version)).map(|step| format!("glibc-{step}")));
    Ok(features)
}

fn run_all(who: &str, cases: &[Case], tests: &Path, toolchain: &Toolchain, folder: &Path, jobs: usize) -> Result<Vec<Run>> {
    let next = AtomicUsize::new(0);
    let runs: Mutex<Vec<(usize, Result<Run>)>> = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(case) = cases.get(index) else { break };
                    let result = run::run(case, tests, toolchain, folder, TIME_LIMIT);
                    let mut runs = runs.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                    runs.push((index, result));
                    if runs.len().is_multiple_of(50) || runs.len() == cases.len() {
                        eprintln!("{who}: {} of {} tests", runs.len(), cases.len());
                    }
                }
            });
        }
    });
    let mut runs = runs.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    runs.sort_by_key(|(index, _)| *index);
    runs.into_iter().map(|(_, run)| run).collect()
}

fn bars_of(results: &[TestResult], whole: bool, unknown: &[String]) -> Vec<Bar> {
    let passed = results.iter().filter(|test| test.ours.outcome.good()).count();
    let required = if whole { REQUIRED_PASSES } else { results.iter().filter(|test| applies(test)).count() };
    let silent = results.iter().filter(|test| test.class == Class::Silent);
    let loud: Vec<&str> = silent.clone().filter(|test| test.ours.reported).map(|test| test.name.as_str()).collect();
    let dead: Vec<&str> = REQUIRED_CLASSES
        .iter()
        .filter(|class| {
            let mut of_class = results.iter().filter(|test| test.class == **class && applies(test)).peekable();
            of_class.peek().is_some() && !of_class.any(|test| test.ours.outcome.good())
        })
        .map(|class| class.name())
        .collect();
    let unexplained: Vec<&str> = results
        .iter()
        .filter(|test| applies(test) && !test.ours.outcome.good() && test.reason.is_none())
        .map(|test| test.name.as_str())
        .collect();
    let stale: Vec<&str> = results
        .iter()
        .filter(|test| test.ours.outcome.good() && test.reason.is_some())
        .map(|test| test.name.as_str())
        .chain(unknown.iter().map(String::as_str))
        .collect();
    let nothing = |name: String, found: &[&str]| Bar {
        name,
        required: "none".into(),
        found: if found.is_empty() { "none".into() } else { format!("{}: {}", found.len(), found.join(" ")) },
        met: found.is_empty(),
        stretch: false,
    };
    vec![
        Bar {
            name: "tests that pass".into(),
            required: format!("≥ {required}"),
            found: format!("{passed} of {}", results.len()),
            met: passed >= required,
            stretch: false,
        },
        nothing(format!("of the {} that must stay silent, those that report", silent.count()), &loud),
        nothing("classes without a test that passes".into(), &dead),
        nothing("failing tests without a reason".into(), &unexplained),
        nothing("tests with a reason that pass, or do not exist".into(), &stale),
    ]
}

fn applies(test: &TestResult) -> bool {
    test.ours.outcome != Outcome::NotApplicable
}

fn print(report: &Report, cache: &Path) {
    println!("cargo xtask evaluate llvm-tsan: tests that pass, by what they expect to be reported\n");
    let mut table = Table::new(&["class", "tests", "apply", "clang", "ours"]);
    let row = |name: &str, tests: &[&TestResult]| {
        let good = |run: Option<&Run>| run.is_some_and(|run| run.outcome.good());
        let peer = tests.iter().any(|test| test.clang.is_some());
        let clang = if peer { tests.iter().filter(|test| good(test.clang.as_ref())).count().to_string() } else { "-".to_owned() };
        let ours = tests.iter().filter(|test| good(Some(&test.ours))).count();
        let apply = tests.iter().filter(|test| applies(test)).count();
        vec![name.to_owned(), tests.len().to_string(), apply.to_string(), clang, ours.to_string()]
    };
    for class in Class::ALL {
        let tests: Vec<&TestResult> = report.tests.iter().filter(|test| test.class == class).collect();
        if !tests.is_empty() {
            table.row(row(class.name(), &tests));
        }
    }
    table.row(row("all", &report.tests.iter().collect::<Vec<_>>()));
    table.print();
    println!("\nnot passed with our runtime (scripts, output and logs: {}):", cache.join("rashomon").display());
    for test in report.tests.iter().filter(|test| !test.ours.outcome.good()) {
        let peer = test.clang.as_ref().map_or(String::new(), |run| format!("; clang's: {}", run.outcome.name()));
        println!("  {} [{}] {}{peer}", test.name, test.class.name(), test.ours.outcome.name());
        let (why, text) = match (&test.reason, &test.ours.complaint) {
            (Some(reason), _) => ("reason", reason.as_str()),
            (None, Some(complaint)) => ("first complaint", complaint.as_str()),
            (None, None) => continue,
        };
        println!("      {why}: {text}");
    }
    println!();
}
