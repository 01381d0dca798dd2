//! Programs in which a race or a deadlock rests on values of plain accesses, or on a read that nothing depends on, each with a
//! twin that differs in that.
//!
//! What is fair. The programs of `tests/programs/values` and `tests/programs/branches` are recorded once, thread by thread
//! (`run-to-block`), so that the writer that a reader saw is the same each time. *without*: what is predicted of the recording;
//! *with*: of one that was asked for all values at once, or for dependences, which the compiler's plugin tells. `check` has the
//! former kind, and asks for values itself. Twins are the same source with `-DTWIN`.

use crate::common::bar::Bar;
use crate::common::compile::succeed;
use crate::common::table::Table;
use anyhow::{Context as _, Result};
use serde::Serialize;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use xtask::workspace;

/// A kind of programs: its folder, how they are compiled, and how the recording is made that tells enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
enum Kind {
    Values,
    Branches,
}

impl Kind {
    const ALL: [Self; 2] = [Self::Values, Self::Branches];

    const fn name(self) -> &'static str {
        match self {
            Self::Values => "values",
            Self::Branches => "branches",
        }
    }

    const fn compile(self) -> &'static [&'static str] {
        match self {
            Self::Values => &[],
            Self::Branches => &["--deep"],
        }
    }

    const fn record(self) -> &'static str {
        match self {
            Self::Values => "--values",
            Self::Branches => "--dependences",
        }
    }
}

const ORDER: [&str; 4] = ["--policy", "run-to-block", "--recordings", "1"];

/// A program to be judged.
#[derive(Debug)]
pub struct Source {
    kind: Kind,
    path: PathBuf,
}

#[derive(Debug, Serialize)]
pub struct Row {
    kind: Kind,
    program: String,
    /// `None`: there is no plugin to compile it with.
    of: Option<[Counts; 2]>,
}

#[derive(Clone, Copy, Debug, Default, Serialize)]
struct Counts {
    without: usize,
    with: usize,
    proven: usize,
    /// The same with what `check` recorded itself: predicted or proven.
    told: usize,
}

/// The sources whose names contain this, sorted.
pub fn sources(only: Option<&str>) -> Result<Vec<Source>> {
    let mut all = Vec::new();
    for kind in Kind::ALL {
        let folder = workspace::root().join("tests/programs").join(kind.name());
        let files = std::fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))?;
        let mut paths = files.map(|file| Ok(file?.path())).collect::<std::io::Result<Vec<PathBuf>>>()?;
        paths.sort_unstable();
        all.extend(paths.into_iter().map(|path| Source { kind, path }));
    }
    all.retain(|source| only.is_none_or(|part| name_of(source).contains(part) || source.kind.name().contains(part)));
    Ok(all)
}

fn name_of(source: &Source) -> String {
    source.path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

pub fn row(tool: &Path, source: &Source) -> Result<Row> {
    let (kind, program) = (source.kind, name_of(source));
    if kind == Kind::Branches && !tool.with_file_name("librashomon_plugin.so").is_file() {
        eprintln!("{program}: `cargo xtask plugin` builds what it is compiled with");
        return Ok(Row { kind, program, of: None });
    }
    let of = [counts(tool, source, &[])?, counts(tool, source, &["-DTWIN"])?];
    eprintln!("{program}: {} proven, {} of its twin", of[0].proven, of[1].proven);
    Ok(Row { kind, program, of: Some(of) })
}

fn counts(tool: &Path, source: &Source, twin: &[&str]) -> Result<Counts> {
    let folder = tempfile::Builder::new().prefix("rashomon-evaluate-").tempdir()?;
    let at = |name: &str| folder.path().join(name);
    let mut compile = Command::new(tool);
    compile.args(["cc", "-g", "-O1", "-w", "-pthread"]).args(source.kind.compile()).args(twin);
    succeed(compile.arg("-o").arg(at("program")).arg(&source.path))?;
    let report = at("report.json");
    let run = |arguments: &[&str], store: &str| -> Result<()> {
        let mut command = Command::new(tool);
        command.arg("--quiet").args(arguments).args(ORDER).arg("--output").arg(at(store)).arg("--").arg(at("program"));
        command.output().with_context(|| format!("cannot start {}", tool.display()))?;
        Ok(())
    };
    let predicted = |options: &[&str], store: &str| -> Result<usize> {
        run(&[&["record"], options].concat(), store)?;
        let mut predict = Command::new(tool);
        succeed(predict.args(["--quiet", "predict", "--json"]).arg(&report).arg(at(store)))?;
        told(&report, &["predicted", "proven"])
    };
    let (without, with) = (predicted(&[], "without")?, predicted(&[source.kind.record()], "with")?);
    let json = report.to_string_lossy().into_owned();
    run(&["check", "--engines", "force", "--budget", "20", "--json", &json], "check")?;
    Ok(Counts { without, with, proven: told(&report, &["proven"])?, told: told(&report, &["predicted", "proven"])? })
}

/// Findings with one of these verdicts.
fn told(report: &Path, verdicts: &[&str]) -> Result<usize> {
    let text = std::fs::read(report).with_context(|| format!("cannot read {}", report.display()))?;
    let report: Value = serde_json::from_slice(&text)?;
    let findings = report["findings"].as_array().into_iter().flatten();
    Ok(findings.filter(|it| it["verdict"].as_str().is_some_and(|verdict| verdicts.contains(&verdict))).count())
}

pub fn bars(rows: &[Row]) -> Vec<Bar> {
    Kind::ALL.into_iter().flat_map(|kind| bars_of(kind, rows)).collect()
}

fn bars_of(kind: Kind, rows: &[Row]) -> Vec<Bar> {
    let rows: Vec<&Row> = rows.iter().filter(|row| row.kind == kind).collect();
    if rows.is_empty() {
        return Vec::new();
    }
    let (all, name) = (rows.len(), kind.name());
    let counts: Vec<&[Counts; 2]> = rows.iter().filter_map(|row| row.of.as_ref()).collect();
    let of = |count: usize| if counts.len() < all { "not judged".to_owned() } else { format!("{count} of {all}") };
    let shown = counts.iter().filter(|[it, _]| it.without == 0 && it.with == 1).count();
    let proven = counts.iter().filter(|[it, _]| it.proven == 1 && it.told == 1).count();
    let silent = counts.iter().filter(|[_, twin]| twin.with + twin.told == 0).count();
    vec![
        Bar::holds(&format!("{name}: what rests on them is predicted with them, and not without"), shown == all, of(shown)),
        Bar::holds(&format!("{name}: check asks by itself, and proves what it is told"), proven == all, of(proven)),
        Bar::holds(&format!("{name}: nothing is told of the twins"), silent == all, of(silent)),
    ]
}

pub fn print(rows: &[Row]) {
    if rows.is_empty() {
        return;
    }
    println!("Programs that rest on values of plain accesses, or on branches, and their twins: findings predicted, and proven\n");
    let titles = ["rests on", "program", "without", "with", "proven", "twin without", "twin with", "twin proven"];
    let mut table = Table::new(&titles);
    for Row { kind, program, of } in rows {
        let counts = of.map_or_else(Vec::new, |of| of.into_iter().flat_map(|it| [it.without, it.with, it.proven]).collect());
        let mut cells: Vec<String> = counts.iter().map(usize::to_string).collect();
        cells.resize(6, "–".to_owned());
        table.row([kind.name().to_owned(), program.clone()].into_iter().chain(cells).collect());
    }
    table.print();
    println!();
}
