//! A gate over a project's own tests: red for what is new and for nothing else, green once it is accepted or mended, and red when
//! an accepted entry is of no use any more.
//!
//! Three projects of 24 tests each (`tests/gates`) under CTest, GoogleTest and cargo-nextest. Five bugs of different kinds can be
//! put in, each of which one test can show. What is fair: checks have the default engines and the same budget, and are told
//! nothing of the bugs.

mod projects;

use crate::common::bar::{self, Bar};
use crate::common::table::Table;
use crate::common::{command_line, debian};
use anyhow::{Context as _, Result};
use projects::{Project, Ran};
use serde::Serialize;
use std::collections::BTreeSet;
use std::time::Instant;
use xtask::workspace;

pub const TESTS: usize = 24;
/// Seconds of one check.
pub const BUDGET: u32 = 30;
/// Something was proven, or an entry of the baseline is of no use.
const RED: i32 = 66;

#[derive(Debug, clap::Args)]
pub struct Options {
    /// Only projects whose name contains this: ctest, googletest, nextest.
    #[arg(long)]
    only: Option<String>,
    /// Put the first two bugs in, and execute the tests that can show them alone: shows that everything works.
    #[arg(long)]
    quick: bool,
    /// Machine-readable output.
    #[arg(long)]
    json: bool,
}

/// A bug that can be put into a project.
#[derive(Clone, Copy, Debug)]
pub struct Bug {
    pub name: &'static str,
    /// What the build is told.
    pub switch: &'static str,
    /// Who shows it.
    pub test: &'static str,
}

/// One round of tests.
#[derive(Debug, Serialize)]
struct Row {
    project: &'static str,
    round: String,
    tests: usize,
    red: BTreeSet<String>,
    expected: BTreeSet<String>,
    exit_code: i32,
    seconds: f64,
}

impl Row {
    fn is_right(&self) -> bool {
        self.red == self.expected && (self.exit_code == 0) == self.expected.is_empty()
    }
}

/// Whether an accepted entry that matches nothing turns the gate red, and none that matches does.
#[derive(Debug, Serialize)]
struct Strict {
    project: &'static str,
    while_there: i32,
    when_mended: i32,
}

#[derive(Debug, Serialize)]
struct Report {
    evaluation: &'static str,
    command: String,
    rows: Vec<Row>,
    strict: Vec<Strict>,
    bars: Vec<Bar>,
}

pub fn run(options: &Options) -> Result<bool> {
    let gtest = std::path::Path::new("/usr/include/gtest/gtest.h").exists();
    debian::provide(&[("cmake", debian::starts("ctest")), ("libgtest-dev", gtest)])?;
    let tool = workspace::build_tool()?;
    let folder = tempfile::tempdir().context("cannot create a temporary folder")?;
    let (mut rows, mut strict) = (Vec::new(), Vec::new());
    for mut project in projects::all(&tool, folder.path(), options.only.as_deref())? {
        let mut rounds = Rounds { project: project.as_mut(), quick: options.quick, rows: &mut rows };
        strict.push(rounds.run()?);
    }
    let bars = rows.iter().map(bar_of).chain(strict.iter().flat_map(bars_of_strict)).collect();
    let report = Report { evaluation: "gates", command: command_line(), rows, strict, bars };
    bar::finish(&report, &report.bars, options.json, || print(&report))
}

/// The rounds of one project.
struct Rounds<'a> {
    project: &'a mut dyn Project,
    quick: bool,
    rows: &'a mut Vec<Row>,
}

impl Rounds<'_> {
    fn run(&mut self) -> Result<Strict> {
        let bugs = self.project.bugs();
        let bugs = if self.quick { &bugs[..2] } else { &bugs[..] };
        let tests: Vec<&str> = bugs.iter().map(|bug| bug.test).collect();
        let most = if self.quick { tests.clone() } else { Vec::new() };
        self.build(&[])?;
        self.test("no bugs", &most, &[])?;
        self.build(bugs)?;
        self.test("all bugs", &most, bugs)?;
        for (number, new) in bugs.iter().enumerate() {
            let others: Vec<&str> = tests.iter().copied().filter(|test| *test != new.test).collect();
            self.project.forget_baseline()?;
            self.project.test(&others)?;
            self.project.accept_all()?;
            self.test(&format!("new: {}", new.name), &tests, &bugs[number..=number])?;
        }
        self.project.accept_all()?;
        self.test("all accepted", &most, &[])?;
        let while_there = self.project.strict(&most)?;
        self.build(&[])?;
        self.test("all mended", &most, &[])?;
        let when_mended = self.project.strict(&most)?;
        Ok(Strict { project: self.project.name(), while_there, when_mended })
    }

    fn build(&mut self, bugs: &[Bug]) -> Result<()> {
        eprintln!("{}: building with {} bugs", self.project.name(), bugs.len());
        self.project.build(&bugs.iter().map(|bug| bug.switch).collect::<Vec<_>>())
    }

    /// `only`: these tests; none: all.
    fn test(&mut self, round: &str, only: &[&str], expected: &[Bug]) -> Result<()> {
        let begin = Instant::now();
        let Ran { red, tests, exit_code } = self.project.test(only)?;
        let row = Row {
            project: self.project.name(),
            round: round.to_owned(),
            tests,
            red,
            expected: expected.iter().map(|bug| bug.test.to_owned()).collect(),
            exit_code,
            seconds: begin.elapsed().as_secs_f64(),
        };
        eprintln!("{}: {round}: {} red of {tests} in {:.0} s", row.project, row.red.len(), row.seconds);
        self.rows.push(row);
        Ok(())
    }
}

fn bar_of(row: &Row) -> Bar {
    let names = |tests: &BTreeSet<String>| match tests.is_empty() {
        true => "nothing".to_owned(),
        false => tests.iter().map(String::as_str).collect::<Vec<_>>().join(", "),
    };
    let name = format!("{}, {}: red are exactly {}", row.project, row.round, names(&row.expected));
    Bar::holds(&name, row.is_right(), format!("{}, exit code {}", names(&row.red), row.exit_code))
}

fn bars_of_strict(strict: &Strict) -> [Bar; 2] {
    let found = |code: i32| format!("exit code {code}");
    let (there, mended) = (strict.while_there, strict.when_mended);
    [
        Bar::holds(&format!("{}, all accepted, --strict: green", strict.project), there == 0, found(there)),
        Bar::holds(&format!("{}, all mended, --strict: red", strict.project), mended == RED, found(mended)),
    ]
}

fn print(report: &Report) {
    println!("gates over three projects of {TESTS} tests, {BUDGET} s a check ({})\n", report.command);
    let mut table = Table::new(&["project", "round", "tests", "red", "seconds", "a test"]);
    for row in &report.rows {
        let each = row.seconds / row.tests.max(1) as f64;
        table.row(vec![
            row.project.into(),
            row.round.clone(),
            row.tests.to_string(),
            row.red.len().to_string(),
            format!("{:.0}", row.seconds),
            format!("{each:.1}"),
        ]);
    }
    table.print();
    println!();
}
