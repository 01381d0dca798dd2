//! Errors that need several accesses of different threads in one order, in executions of ten thousand to a million steps: how
//! many of those seeded into a program are shown by plain `rashomon check`, and by strategies that sample step by step.
//!
//! What is fair. All have the same time for everything, and go on behind a failure; nothing is given but the program. An error
//! counts if a finding is proven in whose stacks its function is, of which each error has its own (`tests/long/seeded.h`).

use crate::common::bar::{self, Bar};
use crate::common::command_line;
use crate::common::compile::succeed;
use crate::common::options::Selecting;
use crate::common::table::Table;
use anyhow::{Context as _, Result, bail};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;
use xtask::workspace::{self, root};

const PROGRAMS: [&str; 3] = ["grid", "warehouse", "ledger"];
const STRATEGIES: [&str; 3] = ["random", "pct", "pos"];
/// Errors in each program; the function of each begins with this.
const ERRORS: usize = 20;
const FUNCTION: &str = "fail_";
const QUICK: u32 = 20;

#[derive(Debug, clap::Args)]
pub struct Options {
    #[command(flatten)]
    selecting: Selecting,
    /// Seconds for each program and whoever looks at it.
    #[arg(long, value_name = "SECONDS", default_value_t = 300, value_parser = clap::value_parser!(u32).range(1..))]
    budget: u32,
    /// Only plain check, without the strategies beside it.
    #[arg(long)]
    check_only: bool,
}

/// What one of them showed.
#[derive(Debug, Serialize)]
struct Shown {
    by: &'static str,
    /// By number.
    errors: BTreeSet<usize>,
    seconds: f64,
}

#[derive(Debug, Serialize)]
struct ProgramResult {
    name: &'static str,
    shown: Vec<Shown>,
}

#[derive(Debug, Serialize)]
struct Report {
    evaluation: &'static str,
    command: String,
    programs: Vec<ProgramResult>,
    bars: Vec<Bar>,
}

pub fn run(options: &Options) -> Result<bool> {
    let tool = workspace::build_tool()?;
    let folder = tempfile::tempdir().context("cannot create a temporary folder")?;
    let budget = if options.selecting.quick { QUICK } else { options.budget };
    let only = options.selecting.only.as_deref();
    let mut programs = Vec::new();
    for name in PROGRAMS.into_iter().filter(|name| only.is_none_or(|part| name.contains(part))) {
        let binary = folder.path().join(name);
        let source = root().join("tests/long").join(name).with_extension("c");
        succeed(Command::new(&tool).args(["cc", "-g", "-O1", "-pthread"]).arg(&source).arg("-o").arg(&binary))?;
        let mut shown = vec![look("check", &[], budget, &tool, &binary)?];
        for strategy in STRATEGIES.into_iter().filter(|_| !options.check_only) {
            shown.push(look(strategy, &["--strategy", strategy, "--all", "--no-minimise"], budget, &tool, &binary)?);
        }
        eprintln!("{name}");
        programs.push(ProgramResult { name, shown });
    }
    if programs.is_empty() {
        bail!("no program's name contains that; they are {}", PROGRAMS.join(", "));
    }
    let bars = bars_of(&programs);
    let report = Report { evaluation: "long", command: command_line(), programs, bars };
    if options.selecting.json {
        println!("{}", serde_json::to_string_pretty(&report)?);
        return Ok(bar::all_met(&report.bars));
    }
    print(&report);
    Ok(bar::print(&report.bars))
}

/// By `check`, or by `explore` with these arguments.
fn look(by: &'static str, arguments: &[&str], budget: u32, tool: &Path, binary: &Path) -> Result<Shown> {
    let store = binary.with_extension(by);
    let mut command = Command::new(tool);
    command.args(["--quiet", if arguments.is_empty() { "check" } else { "explore" }]).args(arguments);
    let json = binary.with_extension(format!("{by}.json"));
    command.args(["--fail-on", "never", "--budget", &budget.to_string(), "--output"]).arg(&store).arg("--json").arg(&json);
    command.arg("--").arg(binary);
    let begin = Instant::now();
    let output = command.stdin(Stdio::null()).output().context("cannot start the tool")?;
    let seconds = begin.elapsed().as_secs_f64();
    if !output.status.success() {
        bail!("{by} of {} failed ({})\n{}", binary.display(), output.status, String::from_utf8_lossy(&output.stderr));
    }
    let text = std::fs::read_to_string(&json).with_context(|| format!("cannot read {}", json.display()))?;
    let report: Value = serde_json::from_str(&text).with_context(|| format!("{}", json.display()))?;
    let findings = report["findings"].as_array().with_context(|| format!("no findings in {}", json.display()))?;
    let proven = findings.iter().filter(|finding| finding["verdict"] == "proven");
    let errors = proven.flat_map(|finding| errors_in(&finding.to_string())).collect();
    // Recordings of long executions are large.
    std::fs::remove_dir_all(&store).with_context(|| format!("cannot remove {}", store.display()))?;
    Ok(Shown { by, errors, seconds })
}

/// The errors whose functions are named in a finding.
fn errors_in(text: &str) -> BTreeSet<usize> {
    let numbers = text.split(FUNCTION).skip(1).filter_map(|rest| {
        let digits = rest.find(|one: char| !one.is_ascii_digit()).unwrap_or(rest.len());
        rest[..digits].parse().ok()
    });
    numbers.filter(|&number| number < ERRORS).collect()
}

fn bars_of(programs: &[ProgramResult]) -> Vec<Bar> {
    let of = |program: &ProgramResult| {
        let found = program.shown.iter().find(|shown| shown.by == "check").map_or(0, |shown| shown.errors.len());
        let is_met = found * 10 >= ERRORS * 6;
        Bar::holds(&format!("6 of 10 seeded errors of {}", program.name), is_met, format!("{found} of {ERRORS}"))
    };
    programs.iter().map(of).collect()
}

fn print(report: &Report) {
    println!("{}", report.command);
    let mut table = Table::new(&["program", "by", "errors shown", "of", "seconds"]);
    for program in &report.programs {
        for shown in &program.shown {
            table.row(vec![
                program.name.to_owned(),
                shown.by.to_owned(),
                shown.errors.len().to_string(),
                ERRORS.to_string(),
                format!("{:.0}", shown.seconds),
            ]);
        }
    }
    table.print();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_told_by_their_functions() {
        assert_eq!(errors_in(r#"{"function":"fail_3"},{"function":"fail_17"},{"function":"fail_3"}"#), [3, 17].into());
        assert_eq!(errors_in("fail_99 fail_ fail"), BTreeSet::new());
    }

    #[test]
    fn six_of_ten_are_enough() {
        let program = |errors| ProgramResult {
            name: PROGRAMS[0],
            shown: vec![Shown { by: "check", errors: (0..errors).collect(), seconds: 1.0 }],
        };
        assert!(bar::all_met(&bars_of(&[program(12)])) && !bar::all_met(&bars_of(&[program(11)])));
    }
}
