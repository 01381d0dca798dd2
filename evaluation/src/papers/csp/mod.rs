//! Carril and Tichy's evaluation (SEPS 2015, §4): the CSP engine alone on programs whose bugs are known (Table 1), the model
//! against brute force and against the exact engine, and what models of larger traces cost.

mod models;
mod scenarios;

use crate::common::bar::{self, Bar};
use crate::common::command_line;
use anyhow::Result;
use serde::Serialize;

#[derive(Debug, clap::Args)]
pub struct Options {
    /// Only programs whose path contains this; the models of generated traces are left out then.
    #[arg(long, visible_aliases = ["filter", "program"])]
    pub only: Option<String>,
    /// A part of the programs and of the traces: shows that everything works, measures little.
    #[arg(long)]
    pub quick: bool,
    /// Machine-readable output.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Serialize)]
struct Report {
    evaluation: &'static str,
    command: String,
    programs: Vec<scenarios::Row>,
    agreement: Option<models::Agreement>,
    costs: Vec<models::Cost>,
    bars: Vec<Bar>,
}

pub fn run(options: &Options) -> Result<bool> {
    let mut report = Report {
        evaluation: "csp",
        command: command_line(),
        programs: Vec::new(),
        agreement: None,
        costs: Vec::new(),
        bars: Vec::new(),
    };
    if options.only.is_none() {
        let agreement = models::agreement(options.quick);
        report.bars.extend(agreement.bars());
        report.agreement = Some(agreement);
        report.costs = models::costs(options.quick);
        report.bars.extend(models::bars(&report.costs));
    }
    report.programs = scenarios::rows(options.only.as_deref(), options.quick)?;
    report.bars.extend(scenarios::bars(&report.programs));
    if options.json {
        println!("{}", serde_json::to_string_pretty(&report)?);
        return Ok(bar::all_met(&report.bars));
    }
    println!("{}", report.command);
    if let Some(agreement) = &report.agreement {
        agreement.print();
        models::print(&report.costs);
    }
    scenarios::print(&report.programs);
    Ok(bar::print(&report.bars))
}
