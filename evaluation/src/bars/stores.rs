//! Stores from somebody else, damaged: every command on each. The damages and what is looked at are those of the test
//! `hostile_stores`, which has each damage meet some commands in turn.

use crate::common::bar::{self, Bar};
use crate::common::command_line;
use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};
use std::fs;
use xtask::workspace;

const DAMAGES: u32 = 1_000;
const FEW: u32 = 30;
/// Memory that a command may take at most.
const MEGABYTES: f64 = 1024.0;
/// What one command on a store of some kilobytes may take on average.
const SECONDS_EACH: f64 = 1.0;

/// As the test writes it when it has ended well.
#[derive(Debug, Serialize, Deserialize)]
struct Summary {
    damages: u64,
    commands: u64,
    peak_kilobytes: u64,
    seconds: f64,
}

#[derive(Debug, Serialize)]
struct Report {
    evaluation: &'static str,
    command: String,
    seed: u64,
    summary: Option<Summary>,
    bars: Vec<Bar>,
}

#[derive(Debug, clap::Args)]
pub struct Options {
    /// So many damaged stores (1 000; with --quick fewer).
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub damages: Option<u32>,
    /// What is drawn at random follows from it.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// One run on small inputs: shows that everything works, measures nothing.
    #[arg(long)]
    pub quick: bool,
    /// Machine-readable output.
    #[arg(long)]
    pub json: bool,
}

pub fn run(options: &Options) -> Result<bool> {
    let damages = options.damages.unwrap_or(if options.quick { FEW } else { DAMAGES });
    let folder = workspace::target()?.join("evaluate");
    fs::create_dir_all(&folder).context("cannot create a folder for the summary")?;
    let path = folder.join("stores.json");
    // What an earlier one left says nothing of this one.
    let _ = fs::remove_file(&path);
    let mut test = workspace::cargo();
    test.args(["test", "--quiet", "--package", "rashomon-cli", "--test", "hostile_stores"]);
    test.args(["--", "--exact", "a_thousand_damages"]);
    test.env("RASHOMON_DAMAGES", damages.to_string()).env("RASHOMON_DAMAGES_ALL", "1");
    test.env("RASHOMON_DAMAGES_SEED", options.seed.to_string()).env("RASHOMON_DAMAGES_SUMMARY", &path);
    // What it says belongs to no report.
    let status = test.stdout(std::io::stderr()).status().context("cannot start cargo")?;
    let summary: Option<Summary> = match fs::read(&path) {
        Ok(bytes) if status.success() => Some(serde_json::from_slice(&bytes).context("the test's summary is damaged")?),
        _ => None,
    };
    let held = Bar::holds(
        "no crash, no hang, nothing touched or executed outside the store, nothing that acts on a terminal",
        summary.is_some(),
        if summary.is_some() { "yes".into() } else { "no: the test's output says which damage and command".into() },
    );
    let mut bars = vec![held];
    if let Some(summary) = &summary {
        let complete = summary.damages == u64::from(damages) && summary.commands % summary.damages.max(1) == 0;
        bars.push(Bar::holds(
            "every damage met every command",
            complete,
            format!("{} damages, {} commands", summary.damages, summary.commands),
        ));
        bars.push(Bar::at_most("memory of a command", summary.peak_kilobytes as f64 / 1024.0, MEGABYTES, " MB"));
        let each = summary.seconds / summary.commands.max(1) as f64;
        bars.push(Bar::at_most("time of a command, on average", each, SECONDS_EACH, " s"));
    }
    let report = Report { evaluation: "stores", command: command_line(), seed: options.seed, summary, bars };
    if options.json {
        println!("{}", serde_json::to_string_pretty(&report)?);
        return Ok(report.bars.iter().all(|bar| bar.met));
    }
    if let Some(Summary { damages, commands, peak_kilobytes, seconds }) = &report.summary {
        println!(
            "{damages} damages of seed {}, {commands} commands, {seconds:.1} s, at most {} MB",
            report.seed,
            peak_kilobytes / 1024
        );
    }
    Ok(bar::print(&report.bars))
}
