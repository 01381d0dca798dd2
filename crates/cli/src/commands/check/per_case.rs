//! `rashomon check --per-test-case`: each test case of a program is a check of its own; one report tells of all.

use super::{Executed, execute};
use crate::arguments::{ConfirmOptions, ReportOptions, RunOptions, Target};
use crate::commands::prepare::prepare_inspected;
use crate::commands::{Ui, end_children_on_interruption, present};
use crate::exit::Exit;
use crate::live;
use crate::program::{self, Inspection};
use crate::progress::Reporter;
use crate::suites::{Case, Framework};
use crate::terminal::say;
use crate::wrapper::Language;
use anyhow::{Context as _, Result, bail};
use rashomon_event::{Finding, FindingId, harmless};
use rashomon_pipeline::Store;
use rashomon_pipeline::store::DEFAULT_BASE;
use rashomon_report::{ProgramExit, RunSummary, TestCase};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// What all test cases have in common.
struct Suite<'a> {
    ui: Ui,
    options: (&'a RunOptions, &'a ConfirmOptions, &'a ReportOptions),
    framework: Framework,
    inspection: Inspection,
    arguments: Vec<OsString>,
    /// Where their stores are.
    group: Store,
}

pub fn check_each(
    ui: Ui,
    asked: Option<Framework>,
    options: (&RunOptions, &ConfirmOptions, &ReportOptions),
    target: Target,
) -> Result<Exit> {
    end_children_on_interruption();
    let (run, _, report) = options;
    report.json.as_deref().map(live::forget).transpose()?;
    if target.file.as_deref().is_some_and(|file| Language::of(file).is_some()) {
        bail!("--per-test-case takes a program that is built already: rashomon check --per-test-case -- PROG ARGS");
    }
    let mut command: Vec<OsString> = target.file.map(PathBuf::into_os_string).into_iter().chain(target.command).collect();
    if command.is_empty() {
        bail!("nothing to run: write `rashomon check --per-test-case -- PROG ARGS`");
    }
    let inspection = program::inspect(&command.remove(0))?;
    let path = inspection.path.clone();
    let framework = match asked {
        Some(framework) => framework,
        None => Framework::of(&path)?.with_context(|| {
            format!("{}: neither GoogleTest's, Catch2's nor doctest's; --per-test-case=FRAMEWORK names one", path.display())
        })?,
    };
    let cases = framework.cases(&path, &command)?;
    if cases.is_empty() {
        bail!("{} lists no test case", path.display());
    }
    let group = Store::group_in(Path::new(DEFAULT_BASE), &path, run.output.as_deref())
        .context("no store in this folder; --output FOLDER names another one")?;
    let suite = Suite { ui, options, framework, inspection, arguments: command, group };
    suite.check(&cases)
}

impl Suite<'_> {
    fn check(&self, cases: &[Case]) -> Result<Exit> {
        let mut all = All::default();
        for (number, case) in cases.iter().enumerate() {
            if !self.ui.quiet {
                say!("test case {} ({} of {})", harmless(&case.name), number + 1, cases.len());
            }
            match self.check_one(case) {
                Ok(executed) => all.add(case, executed),
                Err(error) => {
                    say!("test case {}: {error:#}", harmless(&case.name));
                    all.fail(case, format!("{error:#}"));
                }
            }
        }
        let summary = all.summary(&self.inspection, &self.arguments, self.group.path());
        self.group.write_summary(&summary)?;
        let findings: Vec<Finding> = all.findings.into_values().map(|(finding, cases)| told(finding, &cases)).collect();
        let met = present(self.ui, &findings, &summary, self.options.2)?;
        let exit = |one: &TestCase| match one.failure {
            Some(_) => Exit::Failed,
            None => Exit::of_program(one.exit),
        };
        let failed = || summary.test_cases.iter().map(exit).find(|exit| exit.code() != 0);
        Ok(if met { Exit::Findings } else { failed().unwrap_or(Exit::Success) })
    }

    fn check_one(&self, case: &Case) -> Result<Executed> {
        let (run, confirm, report) = self.options;
        let store = Store::create_in(self.group.path(), Path::new(&case.name.replace('/', "_")))?;
        let mut arguments = self.framework.unselected(&self.arguments);
        arguments.push(case.argument.clone().into());
        let prepared = prepare_inspected(run, store, self.inspection.clone(), arguments, self.framework.environment())?;
        let executed = execute(run, confirm, report.to_output(), Reporter::telling(self.ui.quiet, None), prepared)?;
        match executed.stopped {
            Some(error) if executed.findings.is_empty() => Err(error.into()),
            _ => Ok(executed),
        }
    }
}

/// What was found in the test cases so far.
#[derive(Default)]
struct All {
    /// Each with the test cases that show it, of which one has its schedule.
    findings: BTreeMap<FindingId, (Finding, Vec<String>)>,
    cases: Vec<TestCase>,
    summary: Option<RunSummary>,
}

impl All {
    fn add(&mut self, case: &Case, executed: Executed) {
        let Executed { findings, summary, .. } = executed;
        let name = case.name.clone();
        let mut told = TestCase { findings: Vec::new(), failure: None, ..case_of(&name, summary.exit, &summary.store) };
        for finding in findings {
            if finding.verdict.rank() <= 1 {
                told.findings.push(finding.id.to_string());
            }
            let rank = finding.verdict.rank();
            let known = self.findings.entry(finding.id.clone()).or_insert_with(|| (finding.clone(), Vec::new()));
            if rank < known.0.verdict.rank() {
                known.0 = finding;
                known.1.clear();
            }
            if rank == known.0.verdict.rank() {
                known.1.push(name.clone());
            }
        }
        self.cases.push(told);
        let sum = self.summary.get_or_insert_with(RunSummary::without_run);
        sum.recordings += summary.recordings;
        sum.events += summary.events;
        sum.threads = sum.threads.max(summary.threads);
        sum.executions += summary.executions;
        sum.untried += summary.untried;
        sum.unexamined.suspicions += summary.unexamined.suspicions;
        sum.unexamined.pairs += summary.unexamined.pairs;
        sum.unexamined.recordings += summary.unexamined.recordings;
        sum.interrupted |= summary.interrupted;
        for note in summary.notes {
            if !sum.notes.contains(&note) {
                sum.notes.push(note);
            }
        }
    }

    fn fail(&mut self, case: &Case, failure: String) {
        self.cases.push(TestCase { failure: Some(failure), ..case_of(&case.name, ProgramExit::Unknown, "") });
    }

    /// Of all test cases: the exit of the first that failed.
    fn summary(&mut self, inspection: &Inspection, arguments: &[OsString], folder: &Path) -> RunSummary {
        let mut summary = self.summary.take().unwrap_or_else(RunSummary::without_run);
        let program = inspection.path.as_os_str();
        summary.command = std::iter::once(program)
            .chain(arguments.iter().map(OsString::as_os_str))
            .map(|word| word.to_string_lossy().into_owned())
            .collect();
        summary.store = folder.display().to_string();
        let failed = |one: &&TestCase| one.exit != ProgramExit::Code { code: 0 };
        summary.exit = self.cases.iter().find(failed).or(self.cases.first()).map_or(ProgramExit::Unknown, |one| one.exit);
        // A report without these test cases is not whole.
        summary.unexamined.recordings += self.cases.iter().filter(|one| one.failure.is_some()).count() as u64;
        summary.test_cases = std::mem::take(&mut self.cases);
        summary
    }
}

fn case_of(name: &str, exit: ProgramExit, store: &str) -> TestCase {
    TestCase { name: name.to_owned(), exit, findings: Vec::new(), store: store.to_owned(), failure: None }
}

/// The finding, with a note of the test cases that show it.
fn told(mut finding: Finding, cases: &[String]) -> Finding {
    const MOST: usize = 5;
    let mut names: Vec<&str> = cases.iter().take(MOST).map(String::as_str).collect();
    let more = format!("{} more", cases.len().saturating_sub(MOST));
    names.extend((cases.len() > MOST).then_some(more.as_str()));
    finding.notes.push(format!("shown by {} {}", if cases.len() == 1 { "test case" } else { "test cases" }, names.join(", ")));
    finding
}
