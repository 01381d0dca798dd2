//! Carril and Tichy's evaluation (SEPS 2015, §4): the CSP engine alone on programs whose bugs are known (Table 1) and on
//! applications (Table 2), the model against brute force and against the exact engine, and what models cost as they grow.

mod applications;
mod enforced;
mod listing;
mod models;
mod scaling;
mod scenarios;
mod terms;
mod windows;

use crate::common::bar::{self, Bar};
use crate::common::command_line;
use anyhow::{Result, bail};
use serde::Serialize;
use std::path::PathBuf;
use xtask::workspace;

#[derive(Debug, clap::Args)]
pub struct Options {
    /// Only programs and applications whose path or name contains this; the models of generated traces are left out then.
    #[arg(long, visible_aliases = ["filter", "program"])]
    pub only: Option<String>,
    /// A part of the programs and of the traces: shows that everything works, measures little.
    #[arg(long)]
    pub quick: bool,
    /// Where the scaling plot is drawn.
    #[arg(long, value_name = "FILE", default_value = "target/evaluation/csp.svg")]
    pub plot: PathBuf,
    /// Machine-readable output.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Serialize)]
struct Report {
    evaluation: &'static str,
    command: String,
    programs: Vec<scenarios::Row>,
    applications: Vec<applications::Row>,
    listing: Option<listing::Listing>,
    algebra: Option<terms::Algebra>,
    agreement: Option<models::Agreement>,
    costs: Vec<models::Cost>,
    windows: Vec<windows::Row>,
    scaling: Vec<scaling::Point>,
    bars: Vec<Bar>,
}

pub fn run(options: &Options) -> Result<bool> {
    let mut report = Report {
        evaluation: "csp",
        command: command_line(),
        programs: Vec::new(),
        applications: Vec::new(),
        listing: None,
        algebra: None,
        agreement: None,
        costs: Vec::new(),
        windows: Vec::new(),
        scaling: Vec::new(),
        bars: Vec::new(),
    };
    if options.only.is_none() {
        let listing = listing::listing(&workspace::build_tool()?)?;
        report.bars.extend(listing.bars());
        report.listing = Some(listing);
        let algebra = terms::algebra(options.quick)?;
        report.bars.extend(algebra.bars());
        report.algebra = Some(algebra);
        let agreement = models::agreement(options.quick);
        report.bars.extend(agreement.bars());
        report.agreement = Some(agreement);
        report.costs = models::costs(options.quick);
        report.bars.extend(models::bars(&report.costs));
        report.windows = windows::rows(options.quick);
        report.bars.extend(windows::bars(&report.windows));
        report.scaling = scaling::points(options.quick);
        report.bars.extend(scaling::bars(&report.scaling));
        scaling::draw(&options.plot, &report.scaling)?;
    }
    report.programs = scenarios::rows(options.only.as_deref(), options.quick)?;
    report.applications = applications::rows(options.only.as_deref(), options.quick)?;
    if report.programs.is_empty() && report.applications.is_empty() {
        bail!("no program with races or deadlocks, or without bugs, has such a path, and no application such a name");
    }
    if !report.programs.is_empty() {
        report.bars.extend(scenarios::bars(&report.programs, options.only.is_none() && !options.quick));
    }
    if !report.applications.is_empty() {
        report.bars.extend(applications::bars(&report.applications));
    }
    if options.json {
        println!("{}", serde_json::to_string_pretty(&report)?);
        return Ok(bar::all_met(&report.bars));
    }
    println!("{}", report.command);
    if let Some(listing) = &report.listing {
        listing.print();
    }
    if let Some(algebra) = &report.algebra {
        algebra.print();
    }
    if let Some(agreement) = &report.agreement {
        agreement.print();
        models::print(&report.costs);
        windows::print(&report.windows);
        scaling::print(&report.scaling);
        println!("drawn in {}", options.plot.display());
    }
    if !report.programs.is_empty() {
        scenarios::print(&report.programs);
    }
    if !report.applications.is_empty() {
        applications::print(&report.applications);
    }
    Ok(bar::print(&report.bars))
}
