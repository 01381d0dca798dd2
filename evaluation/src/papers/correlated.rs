//! Critical sections and variables that belong together: Tables 2 and 3 of Jannesari 2014, plain check on programs with such a
//! bug and on their mended twins, small programs with known answers, and what deep recording costs.
//!
//! What is fair. The programs of `tests/correlated` are written after public descriptions of real bugs; no access in them races.
//! `check` is given nothing but the program and 60 seconds, once without the compiler's plugin and once with it. ThreadSanitizer
//! and Helgrind have no option for such bugs: what they are asked is whether they report anything at all on the program with the
//! bug, ThreadSanitizer in twenty executions. How many of these fail natively says what testing alone would have shown.

mod micro;
mod overhead;
mod tables;

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
    /// Only these parts; without it all.
    #[arg(long, value_enum, value_delimiter = ',')]
    part: Vec<Part>,
    /// Only programs whose name contains this.
    #[arg(long, visible_aliases = ["filter", "program"])]
    only: Option<String>,
    /// Small inputs, and a tenth of the small programs: shows that everything works, measures little.
    #[arg(long)]
    quick: bool,
    /// Machine-readable output.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// Tables 2 and 3 of the paper.
    Tables,
    /// Programs after real bugs, and their mended twins.
    Bugs,
    /// Small programs with known answers, one for each situation.
    Micro,
    /// What recording with dependences and judging them costs.
    Overhead,
}

#[derive(Debug, Serialize)]
struct Row {
    bug: Checked,
    mended: Checked,
    /// The same with the compiler's plugin; `None`: it is not built.
    deep: Option<[Checked; 2]>,
    /// Of so many executions, those that failed natively and those that ThreadSanitizer reported on.
    executions: u32,
    failed: u32,
    sanitizer: u32,
    /// `None`: Helgrind is not installed.
    helgrind: Option<bool>,
}

#[derive(Debug, Default, Serialize)]
struct Report {
    evaluation: &'static str,
    command: String,
    /// Whether the plugin is built; what needs it is left out without.
    plugin: bool,
    tables: Vec<tables::Row>,
    programs: Vec<Row>,
    micro: Vec<micro::Row>,
    overhead: Vec<overhead::Row>,
    bars: Vec<Bar>,
}

pub fn run(options: &Options) -> Result<bool> {
    let (tool, compilers) = (workspace::build_tool()?, Compilers::find()?);
    // One that was built for another state of the tool would be measured.
    let plugin = xtask::plugin::build()?.is_some();
    let folder = tempfile::tempdir().context("cannot create a temporary folder")?;
    let mut report = Report { evaluation: "correlated", command: command_line(), plugin, ..Report::default() };
    let wants = |part: Part| options.part.is_empty() || options.part.contains(&part);
    if !plugin {
        let what = "what needs the plugin (`cargo xtask plugin` builds it)";
        report.bars.push(Bar::holds(what, false, "not built".to_owned()));
    }
    if wants(Part::Tables) && plugin {
        report.tables = tables::run(&tool, folder.path(), options.only.as_deref())?;
        report.bars.extend(tables::bars(&report.tables));
    }
    if wants(Part::Bugs) {
        report.programs = bugs(options, &tool, &compilers, plugin, folder.path())?;
        report.bars.extend(bars_of(&report.programs, options.only.is_some()));
    }
    if wants(Part::Micro) {
        report.micro = micro::run(options, &tool, &compilers, plugin, folder.path())?;
        report.bars.extend(micro::bars(&report.micro));
    }
    if wants(Part::Overhead) && plugin {
        report.overhead = overhead::run(options, &tool, &compilers, folder.path())?;
        report.bars.extend(overhead::bars(&report.overhead));
    }
    if report.tables.is_empty() && report.programs.is_empty() && report.micro.is_empty() && report.overhead.is_empty() {
        bail!("no program has a name that contains that");
    }
    bar::finish(&report, &report.bars, options.json, || print(&report))
}

fn bugs(options: &Options, tool: &Path, compilers: &Compilers, plugin: bool, folder: &Path) -> Result<Vec<Row>> {
    let all = whole::twins("correlated")?;
    let is_chosen = |pair: &&[Subject]| options.only.as_ref().is_none_or(|part| pair[0].name.contains(part));
    let mut programs = Vec::new();
    for (number, pair) in all.chunks_exact(2).filter(is_chosen).enumerate() {
        let place = |kind: &str| folder.join(format!("{number}-{kind}"));
        let bug = whole::check(&pair[0], tool, &place("bug"), None)?;
        let mended = whole::check(&pair[1], tool, &place("mended"), None)?;
        let checked = |subject: &Subject, kind| whole::check(&subject.deep(), tool, &place(kind), None);
        let deep = if plugin { Some([checked(&pair[0], "deep")?, checked(&pair[1], "deep-mended")?]) } else { None };
        let peers = place("peers");
        std::fs::create_dir(&peers).with_context(|| format!("cannot create {}", peers.display()))?;
        let row = Row { deep, ..beside(&pair[0].source, compilers, &peers, bug, mended)? };
        eprintln!("{}: {:.1} s{}", row.bug.name, row.bug.seconds, if row.bug.met { "" } else { ", missed" });
        programs.push(row);
    }
    Ok(programs)
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
    Ok(Row { bug, mended, deep: None, executions: RUNS, failed, sanitizer, helgrind })
}

fn code(command: &mut Command) -> Result<Option<i32>> {
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    Ok(quiet.status().with_context(|| format!("cannot start {command:?}"))?.code())
}

/// Whether the bug is proven, and nothing is shown of its twin.
const fn is_found(bug: &Checked) -> bool {
    bug.met
}

const fn is_silent(mended: &Checked) -> bool {
    mended.met && mended.shown == 0
}

fn bars_of(programs: &[Row], is_selection: bool) -> Vec<Bar> {
    let all = programs.len();
    let count = |of: &dyn Fn(&Row) -> bool| programs.iter().filter(|row| of(row)).count();
    let (proven, loud) = (count(&|row| is_found(&row.bug)), count(&|row| !is_silent(&row.mended)));
    let mut bars = vec![
        Bar::holds("bugs proven as atomicity violations", proven == all, format!("{proven} of {all}")),
        Bar::holds("mended twins with a finding", loud == 0, format!("{loud} of {all}")),
    ];
    if programs.iter().any(|row| row.deep.is_some()) {
        let with = |of: &dyn Fn(&[Checked; 2]) -> bool| count(&|row| row.deep.as_ref().is_some_and(of));
        let (proven, loud) = (with(&|[bug, _]| is_found(bug)), with(&|[_, mended]| !is_silent(mended)));
        bars.push(Bar::holds("the same with the plugin", proven == all, format!("{proven} of {all}")));
        bars.push(Bar::holds("mended twins with a finding, with the plugin", loud == 0, format!("{loud} of {all}")));
    }
    if !is_selection {
        bars.push(Bar::holds("at least 15 programs", all >= 15, all.to_string()));
    }
    bars
}

fn print(report: &Report) {
    println!("{}", report.command);
    if !report.tables.is_empty() {
        println!("\nTables 2 and 3");
        tables::print(&report.tables);
    }
    if !report.programs.is_empty() {
        println!("\nprograms after real bugs, and their mended twins");
        print_bugs(&report.programs);
    }
    if !report.micro.is_empty() {
        println!("\nsmall programs");
        micro::print(&report.micro);
    }
    if !report.overhead.is_empty() {
        println!("\ncost");
        overhead::print(&report.overhead);
    }
    println!();
}

fn print_bugs(programs: &[Row]) {
    let runs = format!("of {RUNS} runs");
    let mut table = Table::new(&[
        "program",
        "check",
        "mended",
        "with plugin",
        "mended",
        "executions",
        "seconds",
        "with plugin",
        "fails natively",
        "ThreadSanitizer",
        "Helgrind",
    ]);
    for row in programs {
        let verdict = |is_met: bool, good: &str, bad: &str| if is_met { good } else { bad }.to_owned();
        let helgrind = row.helgrind.map_or("not installed", |reports| if reports { "reports" } else { "silent" });
        let of_deep = |of: &dyn Fn(&[Checked; 2]) -> String| row.deep.as_ref().map_or_else(String::new, of);
        table.row(vec![
            row.bug.name.clone(),
            verdict(is_found(&row.bug), "violated", "missed"),
            verdict(is_silent(&row.mended), "silent", "FALSE"),
            of_deep(&|[bug, _]| verdict(is_found(bug), "violated", "missed")),
            of_deep(&|[_, mended]| verdict(is_silent(mended), "silent", "FALSE")),
            row.bug.executions.to_string(),
            format!("{:.1}", row.bug.seconds),
            of_deep(&|[bug, _]| format!("{:.1}", bug.seconds)),
            format!("{} {runs}", row.failed),
            format!("{} {runs}", row.sanitizer),
            helgrind.to_owned(),
        ]);
    }
    table.print();
    let seconds = |of: fn(&Row) -> f64| whole::median(programs.iter().map(of).collect());
    let (bug, mended) = (seconds(|row| row.bug.seconds), seconds(|row| row.mended.seconds));
    println!("median: {bug:.1} s with the bug, {mended:.1} s without");
}
