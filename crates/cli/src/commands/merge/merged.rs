//! What several checks found, as one report: each finding once, from the check that is surest of it.

use crate::exit::Exit;
use rashomon_event::{Finding, FindingId};
use rashomon_report::summary::{NOT_TRIED, TRIED};
use rashomon_report::{ProgramExit, RunSummary, TestCase};
use std::collections::BTreeMap;

/// What the checks are, in a note of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    TestCases,
    Checks,
    /// Parts of one check: which of them showed a finding tells nobody anything.
    Shards,
}

/// Checks so far.
#[derive(Default)]
pub struct Merged {
    /// Each with the checks that show it, of which one has its schedule.
    findings: BTreeMap<FindingId, (Finding, Vec<String>)>,
    checks: Vec<TestCase>,
    summary: Option<RunSummary>,
    /// What each tried, and what it did not.
    efforts: Vec<String>,
}

impl Merged {
    pub fn add(&mut self, name: &str, findings: Vec<Finding>, summary: RunSummary) {
        let mut told = TestCase { findings: Vec::new(), ..check_of(name, summary.exit, &summary.store) };
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
                known.1.push(name.to_owned());
            }
        }
        self.checks.push(told);
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
        let (efforts, notes): (Vec<_>, Vec<_>) =
            summary.notes.into_iter().partition(|note| [TRIED, NOT_TRIED].iter().any(|start| note.starts_with(start)));
        for note in notes {
            if !sum.notes.contains(&note) {
                sum.notes.push(note);
            }
        }
        self.efforts.extend(efforts);
    }

    /// What none of the checks knows.
    pub fn note(&mut self, note: String) {
        self.summary.get_or_insert_with(RunSummary::without_run).notes.push(note);
    }

    /// One that could not be made.
    pub fn fail(&mut self, name: &str, failure: String) {
        self.checks.push(TestCase { failure: Some(failure), ..check_of(name, ProgramExit::Unknown, "") });
    }

    /// How the first ended that did not end well.
    pub fn exit(&self) -> Exit {
        let exit = |one: &TestCase| match one.failure {
            Some(_) => Exit::Failed,
            None => Exit::of_program(one.exit),
        };
        self.checks.iter().map(exit).find(|exit| exit.code() != 0).unwrap_or(Exit::Success)
    }

    /// Of all: the exit of the first that failed.
    pub fn finish(self, of: Of, command: Vec<String>, store: String) -> (Vec<Finding>, RunSummary) {
        let Self { findings, checks, summary, efforts } = self;
        let mut summary = summary.unwrap_or_else(RunSummary::without_run);
        match efforts.len() {
            // Of one check.
            0..=2 => summary.notes.extend(efforts),
            _ => summary.notes.push("what was tried, and what was not, the report of each store says".into()),
        }
        (summary.command, summary.store) = (command, store);
        let failed = |one: &&TestCase| one.exit != ProgramExit::Code { code: 0 };
        summary.exit = checks.iter().find(failed).or(checks.first()).map_or(ProgramExit::Unknown, |one| one.exit);
        // A report without these is not whole.
        summary.unexamined.recordings += checks.iter().filter(|one| one.failure.is_some()).count() as u64;
        if of != Of::Shards {
            summary.test_cases = checks;
        }
        let findings = findings.into_values();
        (findings.map(|(finding, names)| told(finding, &names, of)).collect(), summary)
    }
}

fn check_of(name: &str, exit: ProgramExit, store: &str) -> TestCase {
    TestCase { name: name.to_owned(), exit, findings: Vec::new(), store: store.to_owned(), failure: None }
}

/// The finding, with a note of the checks that show it.
fn told(mut finding: Finding, names: &[String], of: Of) -> Finding {
    const MOST: usize = 5;
    let word = match of {
        Of::TestCases => "test case",
        Of::Checks => "check",
        Of::Shards => return finding,
    };
    let plural = if names.len() == 1 { "" } else { "s" };
    let mut named: Vec<&str> = names.iter().take(MOST).map(String::as_str).collect();
    let more = format!("{} more", names.len().saturating_sub(MOST));
    named.extend((names.len() > MOST).then_some(more.as_str()));
    let verb = if of == Of::TestCases { "shown by" } else { "shown by the" };
    finding.notes.push(format!("{verb} {word}{plural} {}{}", if of == Of::Checks { "of " } else { "" }, named.join(", ")));
    finding
}
