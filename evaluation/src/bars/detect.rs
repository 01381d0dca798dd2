//! Whether our detector reports what clang's ThreadSanitizer reports: every program of `tests/programs`, the same object under
//! both runtimes, pairs of source lines compared.
//!
//! What is fair. Which races an execution shows depends on its schedule, and neither runtime chooses it, so one execution of each
//! compares luck. ThreadSanitizer executes a program `--runs` times; whatever it reports in *any* of them is wanted. Ours
//! executes as often, and then on, up to ten times as often, while something wanted is lacking. A race that ThreadSanitizer
//! shows in a share p of its executions would be missed by a detector equally good in all of ours with probability (1 -
//! p)^(10·runs). Silence is asked of every execution of a race-free program, however many there are.
//!
//! Race-free is what the manifest says: programs on which ThreadSanitizer reports a race that is none (fences, for one) want
//! silence.

use crate::common::bar::{self, Bar};
use crate::common::command_line;
use crate::common::compile::Compilers;
use crate::common::detector::{Configuration, Detector, Filter};
pub use crate::common::options::Measuring as Options;
use crate::common::races::{Observed, Pair, observe};
use crate::common::suite::{self, Program, Suite};
use crate::common::table::Table;
use anyhow::{Result, bail};
use serde::Serialize;
use xtask::workspace;

/// How many times as often as ThreadSanitizer ours may execute.
pub const MORE: u32 = 10;

#[derive(Debug, Serialize)]
struct ProgramResult {
    path: String,
    racy: bool,
    sanitizer: Summary,
    /// By configuration; all but the first only where silence is wanted of them.
    ours: Vec<(String, Summary)>,
    /// Reported by ThreadSanitizer and not by ours.
    lost: Vec<Pair>,
}

#[derive(Debug, Serialize)]
struct Summary {
    runs: u32,
    /// Pairs of lines, each with the executions that reported it.
    pairs: Vec<(Pair, u32)>,
    others: Vec<(String, u32)>,
    unfinished: u32,
}

impl From<&Observed> for Summary {
    fn from(observed: &Observed) -> Self {
        Self {
            runs: observed.runs,
            pairs: observed.pairs.iter().map(|(pair, count)| (*pair, *count)).collect(),
            others: observed.others.iter().map(|(kind, count)| (kind.clone(), *count)).collect(),
            unfinished: observed.unfinished,
        }
    }
}

impl Summary {
    /// `7-12 ×3, lock-order-inversion ×1`
    fn text(&self) -> String {
        let pairs = self.pairs.iter().map(|((one, other), count)| format!("{one}-{other} ×{count}"));
        let others = self.others.iter().map(|(kind, count)| format!("{} ×{count}", kind.split(" (").next().unwrap_or(kind)));
        pairs.chain(others).collect::<Vec<_>>().join(", ")
    }

    /// Reported although there is no race. Lock orders are not races; `detect` prints their inversions as ThreadSanitizer does.
    fn is_silent(&self) -> bool {
        self.pairs.is_empty() && !self.others.iter().any(|(kind, _)| kind.contains("race") || kind.contains("use-after-free"))
    }
}

#[derive(Debug, Serialize)]
struct Report {
    evaluation: &'static str,
    command: String,
    runs: u32,
    compilers: Compilers,
    programs: Vec<ProgramResult>,
    bars: Vec<Bar>,
}

pub fn run(options: &Options) -> Result<bool> {
    let chosen = suite::programs(options.only.as_deref())?;
    if chosen.is_empty() {
        bail!("no program's path contains that; they are below tests/programs");
    }
    if chosen.is_empty() {
        bail!("no program's path contains that; they are below tests/programs");
    }
    let runs = if options.quick { 1 } else { options.runs };
    let compilers = Compilers::find()?;
    let suite = Suite::new(workspace::build_tool()?, &compilers)?;
    let programs = suite::in_parallel(&chosen, |program| compare(&suite, program, &compilers, runs))?;
    let bars = bars_of(&programs);
    let command = command_line();
    let report = Report { evaluation: "detect", command, runs, compilers, programs, bars };
    if options.json {
        println!("{}", serde_json::to_string_pretty(&report)?);
        return Ok(bar::all_met(&report.bars));
    }
    print(&report);
    Ok(bar::print(&report.bars))
}

fn compare(suite: &Suite, program: &Program, compilers: &Compilers, runs: u32) -> Result<ProgramResult> {
    let built = suite.build(program, compilers)?;
    let nothing = Observed::default();
    let sanitizer = observe(runs, runs, &nothing, &program.source(), || suite.sanitizer(program, &built))?;
    let racy = program.is_racy();
    let wanted = if racy { &sanitizer } else { &nothing };
    let mut ours = Vec::new();
    let mut lost = Vec::new();
    for filter in Filter::ALL {
        let configuration = Configuration { detector: Detector::Hb, filter };
        let observed = observe(runs, runs * MORE, wanted, &program.source(), || suite.ours(program, &built, configuration))?;
        if filter == Filter::None {
            lost = observed.lacks(wanted);
        }
        ours.push((configuration.title(), Summary::from(&observed)));
    }
    eprintln!("{}: {} and {} pairs", program.path, sanitizer.pairs.len(), ours[0].1.pairs.len());
    Ok(ProgramResult { path: program.path.clone(), racy, sanitizer: Summary::from(&sanitizer), ours, lost })
}

fn bars_of(programs: &[ProgramResult]) -> Vec<Bar> {
    let racy = || programs.iter().filter(|one| one.racy);
    let wanted: usize = racy().map(|one| one.sanitizer.pairs.iter().filter(|(pair, _)| pair.0 != 0).count()).sum();
    let lost: usize = racy().map(|one| one.lost.len()).sum();
    let mut bars = vec![Bar::holds(
        "every pair of lines that ThreadSanitizer reports is reported",
        // Where nothing is wanted, nothing is shown.
        lost == 0 && wanted > 0,
        format!("{} of {wanted}", wanted - lost),
    )];
    for filter in Filter::ALL {
        let title = Configuration { detector: Detector::Hb, filter }.title();
        let race_free = || programs.iter().filter(|one| !one.racy);
        let loud =
            race_free().filter(|one| one.ours.iter().any(|(name, summary)| *name == title && !summary.is_silent())).count();
        bars.push(Bar::holds(
            &format!("{title} reports no race on the race-free programs"),
            loud == 0 && race_free().next().is_some(),
            format!("{} of {} silent", race_free().count() - loud, race_free().count()),
        ));
    }
    bars
}

fn print(report: &Report) {
    println!("{}: {} runs of each, {}", report.command, report.runs, report.compilers.version);
    println!("\nlines of each pair, and in how many executions; programs on which nobody reports anything are left out");
    let mut table = Table::new(&["program", "races", "tsan", "ours", "runs", "ours, filtered", "lost"]);
    for one in &report.programs {
        let [off, on] = [&one.ours[0].1, &one.ours[1].1];
        let texts = [one.sanitizer.text(), off.text(), on.text()];
        if texts.iter().all(String::is_empty) {
            continue;
        }
        let [sanitizer, off_text, on_text] = texts;
        let lost: Vec<String> = one.lost.iter().map(|(a, b)| format!("{a}-{b}")).collect();
        let racy = if one.racy { "yes" } else { "no" };
        table.row(vec![one.path.clone(), racy.into(), sanitizer, off_text, off.runs.to_string(), on_text, lost.join(", ")]);
    }
    table.print();
    let false_alarms = report.programs.iter().filter(|one| !one.racy && !one.sanitizer.is_silent()).count();
    println!("\nrace-free programs on which ThreadSanitizer reports a race: {false_alarms}");
    let unfinished: Vec<&str> = report
        .programs
        .iter()
        .filter(|one| one.ours.iter().any(|(_, summary)| summary.unfinished > 0))
        .map(|one| one.path.as_str())
        .collect();
    println!("programs that did not end by themselves under ours: {}\n", unfinished.join(", "));
}
