//! A real program that nobody here wrote: pbzip2 from Debian's source package, built with `rashomon c++` and checked while it
//! compresses with four threads.

use crate::common::bar::{self, Bar};
use crate::common::compile::succeed;
use crate::common::debian::{self, starts};
use crate::common::{command_line, trace_size};
use anyhow::{Context as _, Result, bail};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Instant;
use xtask::workspace;

const INPUT_BYTES: usize = 20_000_000;
const SMALL_INPUT_BYTES: usize = 2_000_000;
const THREADS: &str = "-p4";
/// Exit code of `check` when something was proven.
const FOUND: i32 = 66;

#[derive(Debug, Serialize)]
struct Report {
    evaluation: &'static str,
    quick: bool,
    input_bytes: usize,
    native_seconds: f64,
    check_seconds: f64,
    trace_bytes: u64,
    accesses_kept: u64,
    accesses_executed: u64,
    exit_code: i32,
    /// Verdict → findings.
    verdicts: BTreeMap<String, u64>,
    bars: Vec<Bar>,
}

#[derive(Debug, clap::Args)]
pub struct Options {
    /// One run on small inputs: shows that everything works, measures nothing.
    #[arg(long)]
    pub quick: bool,
    /// Machine-readable output.
    #[arg(long)]
    pub json: bool,
}

pub fn run(options: &Options) -> Result<bool> {
    let tool = workspace::build_tool()?;
    let folder = tempfile::Builder::new().prefix("rashomon-pbzip2-").tempdir().context("cannot create a temporary folder")?;
    let folder = folder.path();
    eprintln!("fetching the source package");
    let source = fetch_source(folder)?;
    eprintln!("building it twice: without instrumentation and with `rashomon c++`");
    let native = build(&source, &folder.join("native"), None)?;
    let checked = build(&source, &folder.join("checked"), Some(&tool))?;

    let bytes = if options.quick { SMALL_INPUT_BYTES } else { INPUT_BYTES };
    let input = folder.join("input");
    write_input(&input, bytes)?;
    let output = folder.join("input.bz2");
    let begin = Instant::now();
    succeed(Command::new(native).args(["-k", THREADS, "-f"]).arg(&input))?;
    let native_seconds = begin.elapsed().as_secs_f64();
    fs::remove_file(&output).context("pbzip2 wrote no output")?;

    eprintln!("checking it on {} MB", bytes / 1_000_000);
    let (store, json) = (folder.join("store"), folder.join("report.json"));
    let begin = Instant::now();
    let ended = check(&tool, &checked, [&input, &output, &store, &json])?;
    let check_seconds = begin.elapsed().as_secs_f64();
    let exit_code = ended.status.code().with_context(|| format!("the check was ended by a signal ({})", ended.status))?;
    if exit_code != 0 && exit_code != FOUND {
        eprintln!("{}", String::from_utf8_lossy(&ended.stderr));
    }

    let report = Json::read(&json)?;
    let size = match trace_size::sessions_below(&store)?.first() {
        Some(session) => trace_size::of(session)?,
        None => bail!("{} holds no recording", store.display()),
    };
    let whole_output = unpacks_to(&output, &input)?;
    let bars = vec![
        Bar::holds("the check completes", exit_code == 0 || exit_code == FOUND, format!("exit code {exit_code}")),
        Bar::holds("the recorded program exits with 0", report.program_exit_is_zero, report.program_exit.clone()),
        Bar::holds("the output that the check leaves decompresses to the input", whole_output, whole_output.to_string()),
        verdicts_bar(&report.verdicts),
    ];
    let report = Report {
        evaluation: "pbzip2",
        quick: options.quick,
        input_bytes: bytes,
        native_seconds,
        check_seconds,
        trace_bytes: size.bytes,
        accesses_kept: size.accesses_kept,
        accesses_executed: size.accesses_executed,
        exit_code,
        verdicts: report.verdicts,
        bars,
    };
    if options.json {
        println!("{}", serde_json::to_string_pretty(&report)?);
        return Ok(bar::all_met(&report.bars));
    }
    println!("{}", command_line());
    println!("input            {:.0} MB", bytes as f64 / 1e6);
    println!("native           {native_seconds:.1} s");
    println!("check            {check_seconds:.1} s");
    println!("trace            {:.1} MB", report.trace_bytes as f64 / 1e6);
    println!("accesses         {} executed, {} kept", report.accesses_executed, report.accesses_kept);
    println!("findings         {}", describe(&report.verdicts));
    Ok(bar::print(&report.bars))
}

fn check(tool: &Path, program: &Path, [input, output, store, json]: [&Path; 4]) -> Result<Output> {
    Command::new(tool)
        .args(["--quiet", "check", "--before-each"])
        .arg(format!("rm -f '{}'", output.display()))
        .arg("--output")
        .arg(store)
        .arg("--json")
        .arg(json)
        .args(["--show", "everything", "--"])
        .arg(program)
        .args(["-k", THREADS, "-f"])
        .arg(input)
        .current_dir(store.parent().unwrap_or(Path::new(".")))
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot start {}", tool.display()))
}

/// What a finding may be after a whole check within its budget: forced in vain, or shown to be infeasible. A prediction or a
/// suspicion is one that was never tried, and of pbzip2 no race is known that could be proven.
const TRIED: [&str; 2] = ["diverged", "refuted"];

fn verdicts_bar(verdicts: &BTreeMap<String, u64>) -> Bar {
    let met = verdicts.keys().all(|verdict| TRIED.contains(&verdict.as_str()));
    Bar::holds("every finding was tried, and none is left that is reported", met, describe(verdicts))
}

fn describe(verdicts: &BTreeMap<String, u64>) -> String {
    if verdicts.is_empty() {
        return "none".into();
    }
    verdicts.iter().map(|(verdict, count)| format!("{count} {verdict}")).collect::<Vec<_>>().join(", ")
}

/// What we need of `check --json`.
struct Json {
    verdicts: BTreeMap<String, u64>,
    program_exit: String,
    program_exit_is_zero: bool,
}

impl Json {
    fn read(path: &Path) -> Result<Self> {
        let text = fs::read(path).with_context(|| format!("the check wrote no {}", path.display()))?;
        let report: serde_json::Value = serde_json::from_slice(&text).context("the report is no JSON")?;
        let mut verdicts = BTreeMap::new();
        for finding in report["findings"].as_array().context("the report has no list of findings")? {
            *verdicts.entry(finding["verdict"].as_str().unwrap_or("unmarked").to_owned()).or_default() += 1;
        }
        let exit = &report["run"]["exit"];
        Ok(Self { verdicts, program_exit: exit.to_string(), program_exit_is_zero: exit["code"].as_i64() == Some(0) })
    }
}

/// Whether a compressed file holds just what another one holds.
fn unpacks_to(output: &Path, input: &Path) -> Result<bool> {
    let unpacked =
        Command::new("bzip2").args(["-d", "-c"]).arg(output).stdin(Stdio::null()).output().context("cannot start bzip2")?;
    Ok(unpacked.status.success() && unpacked.stdout == fs::read(input)?)
}

/// Text-like bytes: words of a small vocabulary in an order that a fixed generator draws.
pub fn write_input(path: &Path, bytes: usize) -> Result<()> {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut draw = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let vocabulary: Vec<String> =
        (0..2000).map(|_| (0..2 + draw() % 8).map(|_| char::from(b'a' + (draw() % 26) as u8)).collect()).collect();
    let mut text = Vec::with_capacity(bytes + 16);
    while text.len() < bytes {
        // The smaller of two draws: some words are common.
        let word = (draw() % 2000).min(draw() % 2000) as usize;
        text.extend_from_slice(vocabulary[word].as_bytes());
        text.push(if draw() % 12 == 0 { b'\n' } else { b' ' });
    }
    text.truncate(bytes);
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// The unpacked source package.
pub fn fetch_source(folder: &Path) -> Result<PathBuf> {
    let there = [("libbz2-dev", header_is_there("bzlib.h")), ("bzip2", starts("bzip2")), ("dpkg-dev", starts("dpkg-source"))];
    debian::provide(&there)?;
    debian::download("pbzip2", debian::Part::Everything, folder)?;
    let description = debian::file_with_extension(folder, "dsc")?;
    let unpacked = folder.join("source");
    succeed(Command::new("dpkg-source").arg("-x").arg(&description).arg(&unpacked).current_dir(folder))?;
    Ok(unpacked)
}

fn header_is_there(name: &str) -> bool {
    let mut command = Command::new("cc");
    command.args(["-E", "-include", name, "-x", "c", "-"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Builds a copy of the source with its own Makefile.
pub fn build(source: &Path, folder: &Path, tool: Option<&Path>) -> Result<PathBuf> {
    succeed(Command::new("cp").arg("-r").arg(source).arg(folder))?;
    let compiler = tool.map_or("c++".into(), |tool| format!("{} c++", tool.display()));
    succeed(Command::new("make").arg("pbzip2").arg(format!("CXX={compiler}")).current_dir(folder))?;
    Ok(folder.join("pbzip2"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_that_is_reported_or_was_never_tried_misses_the_bar() {
        let of = |verdict: &str| BTreeMap::from([("diverged".to_owned(), 3), (verdict.to_owned(), 1)]);
        assert!(verdicts_bar(&BTreeMap::new()).met && verdicts_bar(&of("refuted")).met);
        for missed in ["proven", "predicted", "suspected", "unmarked", "a new verdict"] {
            assert!(!verdicts_bar(&of(missed)).met, "{missed}");
        }
    }
}
