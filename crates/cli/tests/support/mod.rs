//! What the tests over programs share: compiling through the wrapper, running the tool, reading its report.
#![allow(dead_code, reason = "each test file uses a part of it")]

pub mod manifest;
pub mod place;
pub mod terminal;

use manifest::Program;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

pub type Failure = libtest_mimic::Failed;

pub fn rashomon() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rashomon"));
    command.arg("--quiet").env_remove("RASHOMON_SESSION");
    command
}

static SCRATCH: OnceLock<PathBuf> = OnceLock::new();

/// A folder of this run of the tests. [`conclude`] removes it.
pub fn scratch() -> &'static Path {
    SCRATCH.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("programs-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("the scratch folder can be made");
        folder
    })
}

/// Runs the tests and ends the process. What they wrote stays only if one failed: all of it together is many gigabytes.
pub fn conclude(arguments: &libtest_mimic::Arguments, trials: Vec<libtest_mimic::Trial>) -> ! {
    let conclusion = libtest_mimic::run(arguments, trials);
    if !conclusion.has_failed()
        && let Some(folder) = SCRATCH.get()
        && let Err(error) = std::fs::remove_dir_all(folder)
    {
        eprintln!("cannot remove {}: {error}", folder.display());
    }
    conclusion.exit()
}

pub fn fail(message: impl Into<String>) -> Failure {
    Failure::from(message.into())
}

fn text(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let tail: Vec<_> = text.lines().rev().take(60).collect();
    tail.into_iter().rev().collect::<Vec<_>>().join("\n")
}

pub fn describe(output: &Output) -> String {
    format!("{}\n--- standard output\n{}\n--- standard error\n{}", output.status, text(&output.stdout), text(&output.stderr))
}

/// The program, compiled through `rashomon cc` or `rashomon c++` for the first of its tests that asks.
pub fn compile(program: &Program) -> Result<PathBuf, Failure> {
    type Compiled = Arc<OnceLock<Result<PathBuf, String>>>;
    static BINARIES: Mutex<BTreeMap<String, Compiled>> = Mutex::new(BTreeMap::new());
    let mut binaries = BINARIES.lock().unwrap_or_else(PoisonError::into_inner);
    let binary = Arc::clone(binaries.entry(program.slug()).or_default());
    drop(binaries);
    binary.get_or_init(|| compile_now(program)).clone().map_err(fail)
}

fn compile_now(program: &Program) -> Result<PathBuf, String> {
    let binary = scratch().join(program.slug());
    let (wrapper, standard) = if program.language == "c" { ("cc", "-std=gnu11") } else { ("c++", "-std=c++17") };
    let output = rashomon()
        .arg(wrapper)
        .args(["-g", "-O1", "-w", standard, "-pthread", "-o"])
        .arg(&binary)
        .arg(program.source())
        .args(&program.link)
        .output()
        .map_err(|error| error.to_string())?;
    if output.status.success() { Ok(binary) } else { Err(format!("does not compile: {}", describe(&output))) }
}

/// A command of ours over the program, to be run in the manifest's folder.
pub fn over(program: &Program, subcommand: &[&str], store: &Path, binary: &Path) -> Command {
    let mut command = rashomon();
    command.args(subcommand).arg("--output").arg(store).current_dir(manifest::folder());
    match &program.stdin {
        Some(text) => {
            let input = scratch().join(format!("{}-input", program.slug()));
            std::fs::write(&input, text).expect("the scratch folder is writable");
            command.arg("--stdin").arg(input);
        }
        None => {
            command.stdin(Stdio::null());
        }
    }
    command.arg("--timeout").arg(program.timeout_seconds.to_string());
    command.arg("--").arg(binary).args(&program.args);
    command
}

/// A finding of the JSON report, reduced to what the manifest says of it: `race 14 23 co-enabled`.
pub fn summarise(finding: &Value, source: &Path) -> String {
    let name = source.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let mut lines: Vec<u64> = finding["sides"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|side| {
            let frames = side["stack"].as_array().cloned().unwrap_or_default();
            frames
                .iter()
                .find(|frame| frame["file"].as_str().is_some_and(|file| file.ends_with(name)))
                .and_then(|frame| frame["line"].as_u64())
                .unwrap_or(0)
        })
        .collect();
    lines.sort_unstable();
    let lines = lines.iter().map(u64::to_string).collect::<Vec<_>>().join(" ");
    match finding["kind"].as_str().unwrap_or_default() {
        "data-race" => format!("race {lines} {}", finding["grade"].as_str().unwrap_or("?")),
        "deadlock" => format!("deadlock {lines}"),
        "failure" => format!("failure {}", finding["grade"].as_str().unwrap_or("?")),
        kind @ ("endless"
        | "use-after-free"
        | "use-of-destroyed"
        | "destroy-awaited"
        | "lifetime-race"
        | "atomicity-violation") => kind.to_owned(),
        _ => "stuck".to_owned(),
    }
}

/// An expectation in the same form, its lines sorted.
pub fn canonical(expectation: &str) -> String {
    let mut words: Vec<&str> = expectation.split(' ').collect();
    let numbers = words.iter().skip(1).take_while(|word| word.parse::<u64>().is_ok()).count();
    words[1..=numbers].sort_unstable_by_key(|word| word.parse::<u64>().unwrap_or(0));
    words.join(" ")
}

/// Of what a report's proven findings are to say in their notes, that which none says.
pub fn untold<'t>(report: &Value, tells: &'t [String]) -> Vec<&'t String> {
    let proven = report["findings"].as_array().into_iter().flatten().filter(|finding| finding["verdict"] == "proven");
    let notes: Vec<&str> = proven.flat_map(|finding| finding["notes"].as_array()).flatten().filter_map(Value::as_str).collect();
    tells.iter().filter(|wanted| !notes.iter().any(|note| note.contains(wanted.as_str()))).collect()
}

/// The proven findings of a report, and everything else it shows by default.
pub fn findings(report: &Value, source: &Path) -> (BTreeSet<String>, Vec<String>) {
    let (mut proven, mut others) = (BTreeSet::new(), Vec::new());
    for finding in report["findings"].as_array().into_iter().flatten() {
        let summary = summarise(finding, source);
        match finding["verdict"].as_str() {
            Some("proven") => {
                proven.insert(summary);
            }
            status => others.push(format!("{} {summary}", status.unwrap_or("?"))),
        }
    }
    (proven, others)
}
