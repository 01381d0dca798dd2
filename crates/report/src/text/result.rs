//! The last line of a report.

use crate::Report;
use crate::order::{Shown, has_failed_once, was_not_replayed};
use crate::summary::{Counts, NOTHING_PREDICTED, RunSummary};
use crate::text::{counted_kind, groups, plural};
use rashomon_event::{Finding, FindingKind};
use std::collections::BTreeMap;

/// What the run says, in one line that tells a program with bugs from one without, and a whole look from half of one.
pub(super) fn result_words(findings: &[Finding], groups: &[groups::Group<'_>], counts: Counts, run: &RunSummary) -> String {
    let incomplete = incomplete_words(run).map(|words| format!("; incomplete: {words}")).unwrap_or_default();
    if counts.proven == 0 {
        let predicted = if counts.predicted > 0 { format!("; {} predicted", counts.predicted) } else { String::new() };
        let failed: Vec<&Finding> = findings.iter().filter(|finding| has_failed_once(finding)).collect();
        if !failed.is_empty() {
            let failures = plural(failed.len() as u64, "failure");
            let is_open = failed.iter().all(|finding| was_not_replayed(finding));
            let again = if is_open { ", and not replayed" } else { " that no replay has shown again" };
            return format!("{failures} seen{again}{predicted}{incomplete}");
        }
        let nothing = if run.known > 0 { "nothing new" } else { "no bug" };
        return format!("{nothing} was made to happen{}{predicted}{incomplete}", looked_at(run, counts));
    }
    let mut kinds: BTreeMap<FindingKind, u64> = BTreeMap::new();
    for finding in findings.iter().filter(|finding| finding.verdict.is_proven()) {
        *kinds.entry(finding.kind).or_default() += 1;
    }
    let words: Vec<String> = kinds.into_iter().map(|(kind, count)| counted_kind(count, kind)).collect();
    let causes = groups.iter().filter(|group| group[0].verdict.is_proven()).count() as u64;
    let of = if causes < counts.proven { format!(", of {}", plural(causes, "cause")) } else { String::new() };
    format!("PROVEN: {}{of}{incomplete}", words.join(", "))
}

/// The last line of the report.
pub(crate) fn result_of(report: Report<'_>, shown: Shown) -> String {
    let groups = groups::groups(report.findings, shown, false);
    result_words(report.findings, &groups, Counts::of(report.findings), report.run)
}

/// What a report without a bug is about.
fn looked_at(run: &RunSummary, counts: Counts) -> String {
    let schedules = plural(u64::from(run.recordings), "schedule");
    match (run.recordings, run.threads) {
        (0, _) => String::new(),
        (_, 0) => format!(" in {schedules}"),
        (_, 1) => format!(" in {schedules} of one thread, with which nothing can race"),
        (_, threads) => {
            let others = if counts.predicted > 0 {
                ""
            } else if run.notes.iter().any(|note| note.contains(NOTHING_PREDICTED)) {
                "; others are not predicted, as some code is not seen"
            } else {
                ", nor in others that these predict"
            };
            format!(" in {schedules} of {threads} threads{others}")
        }
    }
}

/// `None`: everything was looked at.
fn incomplete_words(run: &RunSummary) -> Option<String> {
    let unexamined = run.unexamined;
    let of = |count: u64, noun: &str| (count > 0).then(|| plural(count, noun));
    let pairs = of(unexamined.pairs, "pair").map(|pairs| format!("{pairs} of critical sections"));
    let parts = [of(unexamined.suspicions, "suspicion"), pairs, of(unexamined.recordings, "recording")];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    let unexamined = (!parts.is_empty()).then(|| format!("{} not examined", parts.join(", ")));
    let untried = of(run.untried, "suspicion").map(|untried| format!("{untried} not tried"));
    let words: Vec<String> = [untried, unexamined].into_iter().flatten().collect();
    (!words.is_empty()).then(|| words.join(", "))
}
