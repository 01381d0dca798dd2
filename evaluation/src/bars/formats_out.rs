//! Every output format of one check, read by a tool that nobody here wrote.
//!
//! Each reader has to accept what the tool writes, and to refuse the same file damaged: one that accepts everything would show
//! nothing. Readers come from PyPI and npm, in the versions named here, into a folder below `target`. Perfetto's trace processor
//! is a program that its package fetches from elsewhere; in its place the trace is read with the definitions that Perfetto
//! publishes in the same package, and its slices and flows are checked. Tables of events are asked every query of the book's
//! chapter on SQL.
//!
//! The HTML report is opened in headless Chromium: see [`browser`].

mod browser;
mod tables;

use crate::common::bar::{self, Bar};
use crate::common::command_line;
use crate::common::table::Table;
use anyhow::{Context as _, Result, bail};
use serde::Serialize;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use xtask::workspace::{build_tool, root, target};

const FROM_PYPI: [&str; 6] =
    ["perfetto==0.59.1", "protobuf==7.36.2", "jsonschema", "junitparser==5.0.3", "duckdb==2.0.1", "pypdf==7.1.1"];
const FROM_NPM: &str = "@microsoft/sarif-multitool-linux@5.7.0";
const SARIF_VALIDATOR: &str = "node_modules/@microsoft/sarif-multitool-linux/Sarif.Multitool";
const VALIDATE: &str = include_str!("formats_out/validate.py");
/// A race that a check of it proves.
const PROGRAM: &str = "examples/listing1.c";
/// Where a check proved something.
const FINDINGS: i32 = 66;

#[derive(Debug, clap::Args)]
pub struct Options {
    /// The HTML report in the browser alone.
    #[arg(long)]
    pub browser: bool,
    /// Write the golden images of the HTML report as it looks, instead of comparing it with them; look at what changed.
    #[arg(long)]
    pub renew_goldens: bool,
    /// Machine-readable output.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Serialize)]
struct Row {
    format: &'static str,
    reader: &'static str,
    /// What it read, or why it refused.
    said: String,
    accepted: bool,
    refuses_damaged: bool,
}

#[derive(Debug, Serialize)]
struct Report {
    command: String,
    rows: Vec<Row>,
    bars: Vec<Bar>,
}

/// Where readers and files are.
struct Bench {
    folder: PathBuf,
    tool: PathBuf,
}

pub fn run(options: &Options) -> Result<bool> {
    let bench = Bench { folder: target()?.join("evaluate/formats-out"), tool: build_tool()? };
    bench.readers()?;
    let rows = if options.browser { Vec::new() } else { bench.rows()? };
    let bars = rows
        .iter()
        .map(|row| {
            let found = match (row.accepted, row.refuses_damaged) {
                (true, true) => row.said.clone(),
                (false, _) => format!("refused: {}", row.said),
                (true, false) => "accepts a damaged file, too".into(),
            };
            Bar::holds(&format!("{} is read by {}", row.format, row.reader), row.accepted && row.refuses_damaged, found)
        })
        .chain(browser::bars(&bench, options.renew_goldens)?)
        .collect();
    let report = Report { command: command_line(), rows, bars };
    bar::finish(&report, &report.bars, options.json, || {
        println!("{}", report.command);
        let mut table = Table::new(&["file", "reader", "accepted", "refuses damaged", "read"]);
        let yes = |yes: bool| if yes { "yes" } else { "no" }.to_owned();
        for row in &report.rows {
            let cells = [row.format.to_owned(), row.reader.into(), yes(row.accepted), yes(row.refuses_damaged), row.said.clone()];
            table.row(cells.into());
        }
        table.print();
        println!("not read: GitHub's and GitLab's annotations (no reader is published)");
    })
}

/// The last line that was said.
fn verdict(output: &Output) -> (bool, String) {
    let text = String::from_utf8_lossy(&output.stdout);
    let last = text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
    (output.status.success(), last.trim().chars().take(200).collect())
}

fn must(command: &mut Command) -> Result<()> {
    let output = command.output().with_context(|| format!("cannot start {command:?}"))?;
    if !output.status.success() {
        bail!("{command:?} failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}

impl Bench {
    /// Files that are data, each with its reader.
    fn rows(&self) -> Result<Vec<Row>> {
        self.files()?;
        self.tables()?;
        let mut rows = vec![
            self.row("report.json", "jsonschema, by the printed schema", &|file| {
                self.python(&["report"], file, &["schema.json"])
            })?,
            self.row("report.sarif", "Microsoft's SARIF multitool", &|file| self.sarif(file))?,
            self.row("report.xml", "junitparser", &|file| self.python(&["junit"], file, &[]))?,
            self.row("trace.pftrace", "Perfetto's definitions", &|file| self.python(&["perfetto"], file, &[]))?,
        ];
        rows.extend(self.asked()?);
        Ok(rows)
    }

    fn readers(&self) -> Result<()> {
        fs::create_dir_all(&self.folder)?;
        let python = self.folder.join("python");
        if !python.join("bin/python").exists() {
            must(Command::new("python3").args(["-m", "venv"]).arg(&python))?;
        }
        must(Command::new(python.join("bin/pip")).args(["install", "--quiet"]).args(FROM_PYPI))?;
        if !self.folder.join(SARIF_VALIDATOR).exists() {
            must(Command::new("npm").args(["install", "--silent", "--prefix"]).arg(&self.folder).arg(FROM_NPM))?;
        }
        Ok(fs::write(self.folder.join("validate.py"), VALIDATE)?)
    }

    /// One check, and its reports in every format.
    fn files(&self) -> Result<()> {
        let store = self.folder.join("store");
        if store.exists() {
            fs::remove_dir_all(&store)?;
        }
        let file = |name: &str| self.folder.join(name).display().to_string();
        let mut check = Command::new(&self.tool);
        check.args(["--quiet", "--no-config", "check", "--show", "everything", "--output"]).arg(&store);
        check.arg("--json").arg(file("report.json"));
        for (format, name) in [("sarif", "report.sarif"), ("junit", "report.xml")] {
            check.arg("--report").arg(format!("{format}={}", file(name)));
        }
        let output = check.arg(root().join(PROGRAM)).output().context("cannot start the tool")?;
        if output.status.code() != Some(FINDINGS) {
            bail!("{PROGRAM} was not proven to race: {}", String::from_utf8_lossy(&output.stderr));
        }
        let schema = Command::new(&self.tool).arg("schema").output()?;
        fs::write(self.folder.join("schema.json"), schema.stdout)?;
        let mut export = Command::new(&self.tool);
        must(export.args(["--quiet", "trace", "export", "--to", "perfetto", "--output"]).arg(file("trace.pftrace")).arg(&store))
    }

    /// A file as it is, and damaged.
    fn row(&self, format: &'static str, reader: &'static str, read: &dyn Fn(&Path) -> Result<(bool, String)>) -> Result<Row> {
        let file = self.folder.join(format);
        let (accepted, said) = read(&file)?;
        let damaged = self.folder.join(format!("damaged-{format}"));
        let bytes = fs::read(&file).with_context(|| file.display().to_string())?;
        fs::write(&damaged, &bytes[..bytes.len() * 2 / 3])?;
        let (accepted_damaged, _) = read(&damaged)?;
        Ok(Row { format, reader, said, accepted, refuses_damaged: !accepted_damaged })
    }

    fn python(&self, kind: &[&str], file: &Path, further: &[&str]) -> Result<(bool, String)> {
        let mut command = Command::new(self.folder.join("python/bin/python"));
        command.arg(self.folder.join("validate.py")).args(kind).arg(file);
        command.args(further.iter().map(|name| self.folder.join(name)));
        Ok(verdict(&command.output().context("cannot start python")?))
    }

    /// Schema and the format's rules; warnings are its advice.
    fn sarif(&self, file: &Path) -> Result<(bool, String)> {
        let log = self.folder.join("validated.sarif");
        let mut command = Command::new(self.folder.join(SARIF_VALIDATOR));
        command.env("DOTNET_SYSTEM_GLOBALIZATION_INVARIANT", "1").arg("validate").arg(file);
        let output = command.arg("--output").arg(log).args(["--log", "ForceOverwrite"]).output().context("cannot start it")?;
        let text = String::from_utf8_lossy(&output.stdout);
        let count = |word: &str| text.lines().filter(|line| line.contains(&format!(": {word} "))).count();
        let (errors, warnings) = (count("error"), count("warning"));
        let accepted = output.status.success() && errors == 0;
        Ok((accepted, format!("{errors} errors, {warnings} warnings")))
    }
}
