//! Carril and Tichy's evaluation (SEPS 2015, §4): the CSP engine alone on programs whose bugs are known (Table 1) and on
//! applications (Table 2), the model against brute force and against the exact engine, and what models cost as they grow.
//!
//! One part after the other, each printed with its bars once it is finished. A part that fails is a bar missed, and the next
//! one begins.

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
use crate::common::options::Selecting;
use anyhow::{Result, bail};
use serde::Serialize;
use serde_json::Value;
use std::path::PathBuf;
use std::time::Instant;
use xtask::workspace;

/// Parts, for `--only`, in their order.
const LISTING: &str = "listing";
const TERMS: &str = "terms";
const SMALL: &str = "small traces";
const LARGE: &str = "large traces";
const WINDOWS: &str = "windows";
const SCALING: &str = "scaling";
const PROGRAMS: &str = "programs";
const APPLICATIONS: &str = "applications";
const PARTS: [&str; 8] = [LISTING, TERMS, SMALL, LARGE, WINDOWS, SCALING, PROGRAMS, APPLICATIONS];

#[derive(Debug, clap::Args)]
pub struct Options {
    /// Where the scaling plot is drawn.
    #[arg(long, value_name = "FILE", default_value = "target/evaluation/csp.svg")]
    pub plot: PathBuf,
    #[command(flatten)]
    pub selecting: Selecting,
}

/// What is measured: parts whose name contains it; if there is none, programs and applications whose path or name does.
#[derive(Clone, Copy)]
enum Selected<'a> {
    Parts(&'a str),
    Programs(&'a str),
}

impl<'a> Selected<'a> {
    fn new(only: Option<&'a str>) -> Self {
        let only = only.unwrap_or_default();
        if PARTS.iter().any(|part| part.contains(only)) { Self::Parts(only) } else { Self::Programs(only) }
    }

    fn wants(self, part: &str) -> bool {
        match self {
            Self::Parts(only) => part.contains(only),
            Self::Programs(_) => [PROGRAMS, APPLICATIONS].contains(&part),
        }
    }

    /// What the path or name of a program contains.
    const fn of_programs(self) -> Option<&'a str> {
        match self {
            Self::Parts(_) => None,
            Self::Programs(only) => Some(only),
        }
    }
}

#[derive(Debug, Serialize)]
struct Part {
    part: &'static str,
    seconds: f64,
    figures: Value,
    bars: Vec<Bar>,
}

#[derive(Debug, Serialize)]
struct Report {
    evaluation: &'static str,
    command: String,
    parts: Vec<Part>,
}

struct Run<'a> {
    selected: Selected<'a>,
    json: bool,
    parts: Vec<Part>,
}

impl Run<'_> {
    /// Measures a part, if it is wanted, and prints it. `measure`: `None` if there is nothing of it.
    fn part<T: Serialize>(
        &mut self,
        part: &'static str,
        measure: impl FnOnce() -> Result<Option<T>>,
        bars: impl FnOnce(&T) -> Vec<Bar>,
        print: impl FnOnce(&T),
    ) -> Result<()> {
        if !self.selected.wants(part) {
            return Ok(());
        }
        eprintln!("{part} …");
        let begin = Instant::now();
        let measured = measure();
        let seconds = begin.elapsed().as_secs_f64();
        let (figures, bars) = match measured {
            Ok(None) => return Ok(()),
            Ok(Some(figures)) => {
                if !self.json {
                    println!("\n{part}: {seconds:.1} s");
                    print(&figures);
                }
                (serde_json::to_value(&figures)?, bars(&figures))
            }
            Err(error) => (Value::Null, vec![Bar::holds(&format!("{part}: measured"), false, format!("{error:#}"))]),
        };
        if !self.json {
            bar::print(&bars);
        }
        self.parts.push(Part { part, seconds, figures, bars });
        Ok(())
    }

    fn models(&mut self, options: &Options) -> Result<()> {
        let quick = options.selecting.quick;
        let of_listing = || listing::listing(&workspace::build_tool()?).map(Some);
        self.part(LISTING, of_listing, listing::Listing::bars, listing::Listing::print)?;
        self.part(TERMS, || terms::algebra(quick).map(Some), terms::Algebra::bars, terms::Algebra::print)?;
        let agreement = || Ok(Some(models::agreement(quick)));
        self.part(SMALL, agreement, models::Agreement::bars, models::Agreement::print)?;
        let costs = || Ok(Some(models::costs(quick)));
        self.part(LARGE, costs, |costs| models::bars(costs), |costs| models::print(costs))?;
        let rows = || Ok(Some(windows::rows(quick)));
        self.part(WINDOWS, rows, |rows| windows::bars(rows), |rows| windows::print(rows))?;
        let points = || {
            let points = scaling::points(quick);
            scaling::draw(&options.plot, &points)?;
            Ok(Some(points))
        };
        let print = |points: &Vec<scaling::Point>| {
            scaling::print(points);
            println!("drawn in {}", options.plot.display());
        };
        self.part(SCALING, points, |points| scaling::bars(points), print)
    }

    fn programs(&mut self, quick: bool) -> Result<()> {
        let only = self.selected.of_programs();
        let rows = || Ok(Some(scenarios::rows(only, quick)?).filter(|rows| !rows.is_empty()));
        let is_whole = only.is_none() && !quick;
        self.part(PROGRAMS, rows, |rows| scenarios::bars(rows, is_whole), |rows| scenarios::print(rows))?;
        let rows = || Ok(Some(applications::rows(only, quick)?).filter(|rows| !rows.is_empty()));
        self.part(APPLICATIONS, rows, |rows| applications::bars(rows), |rows| applications::print(rows))
    }
}

pub fn run(options: &Options) -> Result<bool> {
    let Selecting { only, quick, json } = &options.selecting;
    let mut run = Run { selected: Selected::new(only.as_deref()), json: *json, parts: Vec::new() };
    let command = command_line();
    if !json {
        println!("{command}");
    }
    if [LISTING, PROGRAMS, APPLICATIONS].into_iter().any(|part| run.selected.wants(part)) {
        // Building it is no part's time.
        workspace::build_tool()?;
    }
    run.models(options)?;
    run.programs(*quick)?;
    if run.parts.is_empty() {
        bail!("no part, no program and no application has such a name; parts: {}", PARTS.join(", "));
    }
    let report = Report { evaluation: "csp", command, parts: run.parts };
    if *json {
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        report.print();
    }
    Ok(report.parts.iter().all(|part| bar::all_met(&part.bars)))
}

impl Report {
    /// What was missed, once more, below all that is printed.
    fn print(&self) {
        println!();
        for Part { part, seconds, bars, .. } in &self.parts {
            let missed: Vec<&str> = bars.iter().filter(|bar| !bar.met).map(|bar| bar.name.as_str()).collect();
            let missed = if missed.is_empty() { String::new() } else { format!("; missed: {}", missed.join("; ")) };
            println!("{part}: {seconds:.1} s, {} of {} bars met{missed}", bars.iter().filter(|bar| bar.met).count(), bars.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_selected_as_a_whole_and_else_programs_are() {
        let wanted = |only| PARTS.into_iter().filter(|part| Selected::new(only).wants(part)).collect::<Vec<_>>();
        assert_eq!(wanted(None), PARTS);
        assert_eq!(wanted(Some("traces")), [SMALL, LARGE]);
        assert_eq!(Selected::new(Some("programs")).of_programs(), None);
        assert_eq!(wanted(Some("barrier")), [PROGRAMS, APPLICATIONS]);
        assert_eq!(Selected::new(Some("barrier")).of_programs(), Some("barrier"));
    }

    #[test]
    fn a_part_that_fails_is_a_bar_missed() {
        let mut run = Run { selected: Selected::new(None), json: true, parts: Vec::new() };
        run.part(SMALL, || bail!("no memory"), |(): &()| Vec::new(), |&()| ()).unwrap();
        run.part(LARGE, || Ok(None), |(): &()| Vec::new(), |&()| ()).unwrap();
        assert_eq!(run.parts.len(), 1);
        assert!(!bar::all_met(&run.parts[0].bars) && run.parts[0].bars[0].found == "no memory");
    }
}
