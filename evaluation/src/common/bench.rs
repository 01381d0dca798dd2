//! Evaluations that build each program of `tests/bench` and run it in several configurations, in turns.

use crate::common::bar::{self, Bar};
use crate::common::command_line;
use crate::common::compile::{self, Built, Compilers};
use crate::common::options::Measuring;
use crate::common::programs::{self, BenchProgram, Use};
use anyhow::{Context as _, Result};
use serde::Serialize;
use std::path::Path;
use xtask::workspace;

/// What a program is measured with.
pub struct Bench<'a> {
    pub program: &'static BenchProgram,
    pub built: &'a Built,
    pub arguments: &'a [&'a str],
    pub runs: u32,
    pub tool: &'a Path,
    pub folder: &'a Path,
}

#[derive(Debug, Serialize)]
pub struct Report<T> {
    evaluation: &'static str,
    pub command: String,
    pub quick: bool,
    pub runs: u32,
    pub processors: usize,
    pub compilers: Compilers,
    pub programs: Vec<T>,
    bars: Vec<Bar>,
}

impl<T: Serialize> Report<T> {
    /// Measures all programs of that use, and compares with the bars. `said`: the configurations, for whoever waits.
    pub fn of(
        (evaluation, purpose): (&'static str, Use),
        options: &Measuring,
        said: &str,
        measure: impl Fn(&Bench<'_>) -> Result<T>,
        bars_of: impl FnOnce(&[T]) -> Vec<Bar>,
    ) -> Result<Self> {
        let chosen = programs::chosen(Some(purpose), options.only.as_deref())?;
        let runs = if options.quick { 1 } else { options.runs };
        let tool = workspace::build_tool()?;
        let compilers = Compilers::find()?;
        let prefix = "rashomon-evaluate-";
        let folder = tempfile::Builder::new().prefix(prefix).tempdir().context("cannot create a temporary folder")?;
        let mut results = Vec::new();
        for program in chosen {
            eprintln!("{}: {runs} × {said}", program.name);
            let built = compile::build(program, &compilers, &tool, folder.path())?;
            let arguments = if options.quick { program.small } else { &[] };
            results.push(measure(&Bench { program, built: &built, arguments, runs, tool: &tool, folder: folder.path() })?);
        }
        Ok(Self {
            evaluation,
            command: command_line(),
            quick: options.quick,
            runs,
            processors: std::thread::available_parallelism().map_or(1, usize::from),
            compilers,
            bars: bars_of(&results),
            programs: results,
        })
    }

    pub fn finish(&self, json: bool, print_text: impl FnOnce(&Self)) -> Result<bool> {
        bar::finish(self, &self.bars, json, || print_text(self))
    }

    /// The first lines of the text.
    pub fn print_head(&self) {
        println!("{}: {} runs, {} processors, {}", self.command, self.runs, self.processors, self.compilers.version);
        if self.quick {
            println!("inputs are small: these numbers show that it works, not what it costs");
        }
    }
}
