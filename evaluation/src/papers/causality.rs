//! Libraries without instrumentation, and exact decisions, after Rajagopalan, "Fast and Precise On-the-Fly Data Race Detection",
//! thesis, 2016, chapters 4 and 5: one part each, which says what is fair.

mod agreement;
mod caveats;
mod claims;
mod differences;
mod exact;
mod injected;
mod lives;
mod overhead;
mod programs;
mod real;
mod smt;
mod valued;

use crate::common::bar::{self, Bar};
use crate::common::command_line;
use crate::common::options::Selecting;
use agreement::Agreement;
use anyhow::{Result, bail};
use claims::{Claim, Claims};
use differences::Difference;
use injected::Times;
use overhead::Cost;
use programs::Row;
use real::Real;
use serde::Serialize;
use smt::Z3;
use std::path::PathBuf;
use xtask::workspace;

/// Recordings of each program.
const SEEDS: u32 = 8;
/// Parts that are no programs, for `--only`.
const EXACTNESS: &str = "exactness";
const DECISIONS: &str = "decisions";

#[derive(Debug, clap::Args)]
pub struct Options {
    /// Folder of traces with known answers; without it `tests/corpora`.
    #[arg(long)]
    pub corpora: Option<PathBuf>,
    #[command(flatten)]
    pub selecting: Selecting,
}

#[derive(Debug, Serialize)]
struct Report<'a> {
    evaluation: &'static str,
    command: String,
    recordings: u32,
    programs: &'a [Row],
    /// What it costs to record calls.
    costs: &'a [Cost],
    real: &'a [Real],
    /// Programs that rest on values of plain accesses.
    valued: &'a [valued::Row],
    exactness: &'a [exact::Tally],
    claims: &'a [Claim],
    agreement: Option<Agreement>,
    /// Traces of which the answer rests on values, explained.
    differences: &'a [Difference],
    decisions: &'a [Times],
    bars: &'a [Bar],
}

pub fn run(options: &Options) -> Result<bool> {
    let Selecting { only, quick, json } = &options.selecting;
    let (only, quick) = (only.as_deref(), *quick);
    let sources = programs::sources(only)?;
    let measured = overhead::selected(only);
    let valued = valued::sources(only)?;
    let wants = |part: &str| only.is_none_or(|only| part.contains(only));
    if sources.is_empty() && measured.is_empty() && valued.is_empty() && ![EXACTNESS, DECISIONS].into_iter().any(wants) {
        bail!("no program's name contains that (tests/programs/unseen, installed and values), nor {EXACTNESS} or {DECISIONS}");
    }
    let mut bars = Vec::new();
    let recordings = if quick { 2 } else { SEEDS };
    let (mut rows, mut costs, mut reals, mut by_value) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    if !sources.is_empty() || !measured.is_empty() || !valued.is_empty() {
        let tool = workspace::build_tool()?;
        rows = sources.iter().map(|source| programs::row(&tool, source, recordings)).collect::<Result<Vec<_>>>()?;
        costs = overhead::costs(&tool, &measured, quick)?;
        reals = real::run(&tool, &measured, quick)?;
        by_value = valued.iter().map(|source| valued::row(&tool, source)).collect::<Result<Vec<_>>>()?;
        bars.extend(valued::bars(&by_value));
        bars.extend(programs::bars(&rows, only.is_none()).into_iter().chain(overhead::bars(&costs)).chain(real::bars(&reals)));
    }
    let mut solver = [EXACTNESS, DECISIONS].into_iter().any(wants).then(Z3::start).flatten();
    let (mut tallies, mut agreement, mut differences, mut claims) = (Vec::new(), None, Vec::new(), Claims::default());
    if wants(EXACTNESS) {
        tallies = exact::run(quick)?;
        claims = exact::claims(&tallies);
        agreement = solver.as_mut().map(|solver| agreement::run(solver, quick, &mut claims)).transpose()?;
        differences = differences::run(&mut claims);
        bars.extend(exact::CLAIMS.into_iter().chain([differences::EXPLAINED, agreement::AGREES]).map(|name| claims.bar(name)));
    }
    let mut times = Vec::new();
    if wants(DECISIONS) {
        times = injected::run(options.corpora.as_deref(), solver.as_mut(), quick, &mut claims)?;
        bars.extend(injected::bars(&times));
        bars.push(claims.bar(injected::AGREES));
    }
    let report = Report {
        evaluation: "causality",
        command: command_line(),
        recordings,
        programs: &rows,
        costs: &costs,
        real: &reals,
        valued: &by_value,
        exactness: &tallies,
        claims: &claims.0,
        agreement,
        differences: &differences,
        decisions: &times,
        bars: &bars,
    };
    bar::finish(&report, &bars, *json, || print(&report, solver.is_some()))
}

fn print(report: &Report<'_>, has_solver: bool) {
    println!("{}\n", report.command);
    if !report.programs.is_empty() {
        programs::print(report.programs, report.recordings);
    }
    overhead::print(report.costs);
    real::print(report.real);
    valued::print(report.valued);
    if !report.exactness.is_empty() {
        exact::print(report.exactness, report.claims);
        agreement::print(report.agreement);
        differences::print(report.differences);
    }
    if !report.decisions.is_empty() {
        injected::print(report.decisions, has_solver);
    }
}
