//! Small programs with known answers, over the situations of Google's data-race-test: `tests/micro/situations.c`, whose head
//! tells the truth of each case. Each case is compiled for each kind of variable, and each tool is asked once.
//!
//! What is fair. A tool is right on a program with a bug if it reports anything, and on one without if it reports nothing. Plain
//! `check --budget 10` is asked for what it shows by default (what is proven or predicted), without the plugin and with it.

use super::{Options, REPORTED, code};
use crate::common::bar::Bar;
use crate::common::compile::{Compilers, succeed};
use crate::common::table::Table;
use anyhow::{Context as _, Result, bail};
use serde::Serialize;
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};
use xtask::workspace::root;

const KINDS: u32 = 5;
const BUDGET: &str = "10";
/// With --quick every so many programs.
const QUICK: usize = 10;
const TOOLS: [&str; 5] = ["check", "check, with plugin", "ThreadSanitizer", "Helgrind", "DRD"];

#[derive(Debug, Serialize)]
pub struct Row {
    case: u32,
    kind: u32,
    description: String,
    truth: String,
    /// Whether each of the tools reports anything; `None`: it is not there.
    reports: [Option<bool>; TOOLS.len()],
}

impl Row {
    fn has_bug(&self) -> bool {
        self.truth != "none"
    }
}

/// Number, truth and description of each case.
fn cases(text: &str) -> Result<Vec<(u32, String, String)>> {
    let lines = text.lines().filter_map(|line| line.strip_prefix(" * case "));
    let cases: Vec<_> = lines
        .filter_map(|line| {
            let mut parts = line.splitn(3, ": ");
            Some((parts.next()?.parse().ok()?, parts.next()?.to_owned(), parts.next()?.to_owned()))
        })
        .collect();
    match cases.iter().find(|(_, truth, _)| !["race", "violation", "none"].contains(&truth.as_str())) {
        Some((case, truth, _)) => bail!("case {case} has the truth `{truth}`, which is none of race, violation and none"),
        None => Ok(cases),
    }
}

pub fn run(options: &Options, tool: &Path, compilers: &Compilers, plugin: bool, folder: &Path) -> Result<Vec<Row>> {
    let source = root().join("tests/micro/situations.c");
    let text = std::fs::read_to_string(&source).with_context(|| format!("cannot read {}", source.display()))?;
    let all = cases(&text)?.into_iter().flat_map(|case| (1..=KINDS).map(move |kind| (case.clone(), kind)));
    let chosen = all.filter(|((_, _, description), _)| options.only.as_ref().is_none_or(|part| description.contains(part)));
    let has_valgrind = Command::new("valgrind").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    let has_valgrind = has_valgrind.is_ok_and(|status| status.success());
    let mut rows = Vec::new();
    for ((case, truth, description), kind) in chosen.step_by(if options.quick { QUICK } else { 1 }) {
        let place = folder.join(format!("micro-{case}-{kind}"));
        std::fs::create_dir(&place).with_context(|| format!("cannot create {}", place.display()))?;
        let one = Situation { source: &source, place: &place, defines: [format!("-DCASE={case}"), format!("-DKIND={kind}")] };
        let mut reports = [None; TOOLS.len()];
        reports[0] = Some(one.check(tool, &[])?);
        if plugin {
            reports[1] = Some(one.check(tool, &["--deep"])?);
        }
        reports[2] = Some(one.sanitizer(&compilers.c)?);
        if has_valgrind {
            let native = one.compile(Command::new(&compilers.c), "native", &[])?;
            for (number, name) in [(3, "helgrind"), (4, "drd")] {
                let mut command = Command::new("timeout");
                command.args(["20", "valgrind", "--quiet"]).arg(format!("--tool={name}"));
                command.arg(format!("--error-exitcode={REPORTED}")).arg(&native);
                reports[number] = Some(code(&mut command)? == Some(REPORTED));
            }
        }
        std::fs::remove_dir_all(&place).with_context(|| format!("cannot remove {}", place.display()))?;
        let row = Row { case, kind, description, truth, reports };
        for (tool, reports) in TOOLS.iter().zip(row.reports).take(2) {
            if reports.is_some_and(|reports| reports != row.has_bug()) {
                eprintln!("case {case}, kind {kind} ({}): {tool} is wrong", row.description);
            }
        }
        rows.push(row);
    }
    Ok(rows)
}

struct Situation<'a> {
    source: &'a Path,
    place: &'a Path,
    defines: [String; 2],
}

impl Situation<'_> {
    fn compile(&self, mut compiler: Command, name: &str, flags: &[&str]) -> Result<std::path::PathBuf> {
        let program = self.place.join(name);
        compiler.args(["-std=gnu11", "-g", "-O1", "-w", "-pthread"]).args(flags).args(&self.defines);
        succeed(compiler.arg(self.source).arg("-o").arg(&program))?;
        Ok(program)
    }

    fn check(&self, tool: &Path, flags: &[&str]) -> Result<bool> {
        let mut compiler = Command::new(tool);
        compiler.arg("cc");
        let program = self.compile(compiler, if flags.is_empty() { "plain" } else { "deep" }, flags)?;
        let (json, store) = (program.with_extension("json"), program.with_extension("store"));
        let mut command = Command::new(tool);
        command.args(["--quiet", "check", "--budget", BUDGET, "--json"]).arg(&json).arg("--output").arg(&store);
        let output = command.arg("--").arg(&program).stdin(Stdio::null()).output().context("cannot start the tool")?;
        let said = || String::from_utf8_lossy(&output.stderr).into_owned();
        let text = std::fs::read(&json).with_context(|| format!("{:?} left no report\n{}", self.defines, said()))?;
        let report: Value = serde_json::from_slice(&text)?;
        let mut findings = report["findings"].as_array().into_iter().flatten();
        Ok(findings.any(|finding| matches!(finding["verdict"].as_str(), Some("proven" | "predicted"))))
    }

    fn sanitizer(&self, compiler: &str) -> Result<bool> {
        let program = self.compile(Command::new(compiler), "sanitized", &["-fsanitize=thread"])?;
        let mut command = Command::new("timeout");
        command.arg("20").arg(&program).env("TSAN_OPTIONS", format!("exitcode={REPORTED}"));
        Ok(code(&mut command)? == Some(REPORTED))
    }
}

/// False negatives and false positives of a tool; `None`: it is not there.
fn wrong(rows: &[Row], tool: usize) -> Option<(usize, usize)> {
    let count = |has_bug: bool| {
        let judged = rows.iter().filter(|row| row.has_bug() == has_bug).map(|row| row.reports[tool]);
        judged.collect::<Option<Vec<bool>>>().map(|reports| reports.into_iter().filter(|reports| *reports != has_bug).count())
    };
    if rows.is_empty() { None } else { count(true).zip(count(false)) }
}

pub fn bars(rows: &[Row]) -> Vec<Bar> {
    let others: Vec<(usize, usize)> = (2..TOOLS.len()).filter_map(|tool| wrong(rows, tool)).collect();
    let mut bars = Vec::new();
    for (tool, name) in TOOLS.iter().enumerate().take(2) {
        let Some((negatives, positives)) = wrong(rows, tool) else { continue };
        let best = others.iter().map(|(negatives, _)| *negatives).min().unwrap_or(usize::MAX);
        let words = format!("{negatives} of ours, {best} of the best other");
        bars.push(Bar::holds(&format!("{name}: fewer false negatives than any other tool"), negatives < best, words));
        bars.push(Bar::holds(&format!("{name}: nothing false is shown"), positives == 0, positives.to_string()));
    }
    bars
}

pub fn print(rows: &[Row]) {
    let mut table = Table::new(&["tool", "bugs", "false negatives", "no bug", "false positives"]);
    let bugs = rows.iter().filter(|row| row.has_bug()).count();
    for (number, name) in TOOLS.iter().enumerate() {
        let cells = wrong(rows, number).map_or_else(
            || ["not there".to_owned(), String::new()],
            |(negatives, positives)| [negatives.to_string(), positives.to_string()],
        );
        let [negatives, positives] = cells;
        table.row(vec![(*name).to_owned(), bugs.to_string(), negatives, (rows.len() - bugs).to_string(), positives]);
    }
    table.print();
    println!("\nprograms of each case in which a tool is wrong");
    let mut titles = vec!["case"];
    titles.extend(TOOLS);
    let mut table = Table::new(&titles);
    let mut case = 0;
    for row in rows {
        if row.case == case {
            continue;
        }
        case = row.case;
        let of: Vec<&Row> = rows.iter().filter(|other| other.case == case).collect();
        let mut cells = vec![format!("{}: {}", row.truth, row.description)];
        cells.extend((0..TOOLS.len()).map(|tool| {
            let wrong = of.iter().filter(|row| row.reports[tool].is_some_and(|reports| reports != row.has_bug())).count();
            if wrong == 0 { String::new() } else { format!("{wrong} of {}", of.len()) }
        }));
        table.row(cells);
    }
    table.print();
}
