//! Critical sections that belong together: plain check on programs with such a bug, and on their mended twins, beside
//! ThreadSanitizer and Helgrind.
//!
//! What is fair. The programs are written after public descriptions of real bugs; no access in them races. `check` is given
//! nothing but the program and 60 seconds. ThreadSanitizer and Helgrind have no option for such bugs: what they are asked is
//! whether they report anything at all on the program with the bug, ThreadSanitizer in twenty executions. How many of these
//! fail natively says what testing alone would have shown.

use crate::bars::whole::{self, Checked, Subject};
use crate::common::bar::{self, Bar};
use crate::common::command_line;
use crate::common::compile::{Compilers, succeed};
use crate::common::table::Table;
use anyhow::{Context as _, Result, bail};
use serde::Serialize;
use std::path::Path;
use std::process::{Command, Stdio};
use xtask::workspace;

/// Executions, natively and under ThreadSanitizer.
const RUNS: u32 = 20;
/// What a detector is told to exit with if it reports something; no program does.
const REPORTED: i32 = 97;

#[derive(Debug, clap::Args)]
pub struct Options {
    /// Only programs whose name contains this.
    #[arg(long, visible_aliases = ["filter", "program"])]
    only: Option<String>,
    /// Machine-readable output.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Row {
    bug: Checked,
    mended: Checked,
    /// Of so many executions, those that failed natively and those that ThreadSanitizer reported on.
    executions: u32,
    failed: u32,
    sanitizer: u32,
    /// `None`: Helgrind is not installed.
    helgrind: Option<bool>,
}

#[derive(Debug, Serialize)]
struct Report {
    evaluation: &'static str,
    command: String,
    programs: Vec<Row>,
    bars: Vec<Bar>,
}

pub fn run(options: &Options) -> Result<bool> {
    let (tool, compilers) = (workspace::build_tool()?, Compilers::find()?);
    let folder = tempfile::tempdir().context("cannot create a temporary folder")?;
    let all = whole::twins("correlated")?;
    let is_chosen = |pair: &&[Subject]| options.only.as_ref().is_none_or(|part| pair[0].name.contains(part));
    let mut programs = Vec::new();
    for (number, pair) in all.chunks_exact(2).filter(is_chosen).enumerate() {
        let place = |kind: &str| folder.path().join(format!("{number}-{kind}"));
        let bug = whole::check(&pair[0], &tool, &place("bug"), None)?;
        let mended = whole::check(&pair[1], &tool, &place("mended"), None)?;
        let peers = place("peers");
        std::fs::create_dir(&peers).with_context(|| format!("cannot create {}", peers.display()))?;
        let row = beside(&pair[0].source, &compilers, &peers, bug, mended)?;
        eprintln!("{}: {:.1} s{}", row.bug.name, row.bug.seconds, if row.bug.met { "" } else { ", missed" });
        programs.push(row);
    }
    if programs.is_empty() {
        bail!("no program of tests/correlated has a name that contains that");
    }
    let bars = bars_of(&programs);
    let report = Report { evaluation: "correlated", command: command_line(), programs, bars };
    bar::finish(&report, &report.bars, options.json, || print(&report))
}

/// The same program under what people use today.
fn beside(source: &Path, compilers: &Compilers, place: &Path, bug: Checked, mended: Checked) -> Result<Row> {
    let is_c = source.extension().is_some_and(|extension| extension == "c");
    let (compiler, standard) = if is_c { (&compilers.c, "-std=gnu11") } else { (&compilers.cxx, "-std=c++17") };
    let (native, sanitized) = (place.join("native"), place.join("sanitized"));
    let common = [standard, "-g", "-O1", "-w", "-pthread"];
    succeed(Command::new(compiler).args(common).arg(source).arg("-o").arg(&native))?;
    succeed(Command::new(compiler).args(common).arg("-fsanitize=thread").arg(source).arg("-o").arg(&sanitized))?;
    let (mut failed, mut sanitizer) = (0, 0);
    for _ in 0..RUNS {
        failed += u32::from(code(&mut Command::new(&native))? != Some(0));
        let options = format!("exitcode={REPORTED}");
        sanitizer += u32::from(code(Command::new(&sanitized).env("TSAN_OPTIONS", options))? == Some(REPORTED));
    }
    let has_helgrind = Command::new("valgrind").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    let helgrind = if has_helgrind.is_ok_and(|status| status.success()) {
        let mut command = Command::new("valgrind");
        command.args(["--tool=helgrind", "--quiet"]).arg(format!("--error-exitcode={REPORTED}")).arg(&native);
        Some(code(&mut command)? == Some(REPORTED))
    } else {
        None
    };
    Ok(Row { bug, mended, executions: RUNS, failed, sanitizer, helgrind })
}

fn code(command: &mut Command) -> Result<Option<i32>> {
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    Ok(quiet.status().with_context(|| format!("cannot start {command:?}"))?.code())
}

fn bars_of(programs: &[Row]) -> Vec<Bar> {
    let proven = programs.iter().filter(|row| row.bug.met).count();
    let loud = programs.iter().filter(|row| !row.mended.met || row.mended.shown > 0).count();
    let all = programs.len();
    vec![
        Bar::holds("bugs proven as atomicity violations", proven == all, format!("{proven} of {all}")),
        Bar::holds("mended twins with a finding", loud == 0, format!("{loud} of {all}")),
        Bar::holds("at least 15 programs", all >= 15, all.to_string()),
    ]
}

fn print(report: &Report) {
    println!("{}", report.command);
    let runs = format!("of {RUNS} runs");
    let titles = ["program", "check", "mended", "executions", "seconds", "fails natively", "ThreadSanitizer", "Helgrind"];
    let mut table = Table::new(&titles);
    for row in &report.programs {
        let verdict = |is_met: bool, good: &str, bad: &str| if is_met { good } else { bad }.to_owned();
        let helgrind = row.helgrind.map_or("not installed", |reports| if reports { "reports" } else { "silent" });
        table.row(vec![
            row.bug.name.clone(),
            verdict(row.bug.met, "violated", "missed"),
            verdict(row.mended.met && row.mended.shown == 0, "silent", "FALSE"),
            row.bug.executions.to_string(),
            format!("{:.1}", row.bug.seconds),
            format!("{} {runs}", row.failed),
            format!("{} {runs}", row.sanitizer),
            helgrind.to_owned(),
        ]);
    }
    table.print();
    let seconds = |of: fn(&Row) -> f64| whole::median(report.programs.iter().map(of).collect());
    let (bug, mended) = (seconds(|row| row.bug.seconds), seconds(|row| row.mended.seconds));
    println!("median: {bug:.1} s with the bug, {mended:.1} s without");
}
