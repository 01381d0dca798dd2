//! Tables of events, read by DuckDB: of the program with the race, of pbzip2, which nobody here wrote, and of a made-up trace.

use super::{Bench, Row, must, verdict};
use crate::bars::pbzip2;
use anyhow::{Context as _, Result, bail};
use std::fs;
use std::path::Path;
use std::process::Command;
use xtask::workspace::root;

const ASK: &str = include_str!("sql.py");
const CHAPTER: &str = "docs/how-to/sql.md";
const INPUT_BYTES: usize = 2_000_000;

impl Bench {
    /// Recordings as tables, the one of pbzip2 also by way of a packed trace, with what is compared.
    pub(super) fn tables(&self) -> Result<()> {
        fs::write(self.folder.join("sql.py"), ASK)?;
        self.trace(&["export", "--to", "parquet", "--output", "race.parquet", "store"])?;
        let (program, source) = (self.folder.join("pbzip2"), self.folder.join("pbzip2/source"));
        if !source.exists() {
            eprintln!("fetching the source package of pbzip2");
            fs::create_dir_all(&program)?;
            pbzip2::fetch_source(&program)?;
        }
        // The runtime inside has to be that of this tool.
        let checked = program.join("checked");
        if checked.exists() {
            fs::remove_dir_all(&checked)?;
        }
        let built = pbzip2::build(&source, &checked, Some(&self.tool))?;
        let (input, recording) = (self.folder.join("input"), self.folder.join("recording"));
        pbzip2::write_input(&input, INPUT_BYTES)?;
        if recording.exists() {
            fs::remove_dir_all(&recording)?;
        }
        let mut record = Command::new(&self.tool);
        record.args(["--quiet", "--no-config", "record", "--output"]).arg(&recording).arg("--").arg(&built);
        must(record.args(["-k", "-p4", "-f"]).arg(&input))?;
        self.trace(&["export", "--to", "parquet", "--output", "events.parquet", "recording"])?;
        self.trace(&["import", "--output", "imported", "recording"])?;
        self.trace(&["export", "--to", "parquet", "--output", "imported.parquet", "imported"])?;
        fs::write(self.folder.join("imported.dump"), self.trace(&["dump", "imported"])?)?;
        // So that no query has an empty answer.
        self.trace(&["gen", "--events", "100000", "--nesting", "3", "--requests", "--any-order", "--output", "made-up"])?;
        self.trace(&["export", "--to", "parquet", "--output", "made-up.parquet", "made-up"])?;
        fs::write(self.folder.join("made-up.dump"), self.trace(&["dump", "made-up"])?)?;
        Ok(fs::write(self.folder.join("imported.stat"), self.trace(&["stat", "imported"])?)?)
    }

    /// What it prints.
    fn trace(&self, arguments: &[&str]) -> Result<Vec<u8>> {
        let mut command = Command::new(&self.tool);
        command.args(["--quiet", "trace"]).args(arguments).current_dir(&self.folder);
        let output = command.output().with_context(|| format!("cannot start {command:?}"))?;
        if !output.status.success() {
            bail!("{command:?} failed: {}", String::from_utf8_lossy(&output.stderr));
        }
        Ok(output.stdout)
    }

    pub(super) fn asked(&self) -> Result<Vec<Row>> {
        let by_dump = "DuckDB, with the answers of `trace dump`";
        let by_stat = "DuckDB, with the counts of `trace stat`";
        let by_report = "DuckDB, with the races of the report";
        Ok(vec![
            self.row("made-up.parquet", by_dump, &|file| self.ask(file, "--dump", "made-up.dump"))?,
            self.row("imported.parquet", by_dump, &|file| self.ask(file, "--dump", "imported.dump"))?,
            self.row("events.parquet", by_stat, &|file| self.ask(file, "--stat", "imported.stat"))?,
            self.row("race.parquet", by_report, &|file| self.ask(file, "--report", "report.json"))?,
        ])
    }

    fn ask(&self, table: &Path, option: &str, with: &str) -> Result<(bool, String)> {
        let mut command = Command::new(self.folder.join("python/bin/python"));
        command.arg(self.folder.join("sql.py")).arg(root().join(CHAPTER)).arg(table).arg(option).arg(self.folder.join(with));
        Ok(verdict(&command.output().context("cannot start python")?))
    }
}
