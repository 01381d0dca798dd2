//! What uninstrumented libraries took away: suspicions that would be predictions if calls into such a library were known to order
//! nothing.

use rashomon_event::{Finding, Verdict, pasted};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// Libraries that a note names; the report as JSON has all.
const MOST_NAMED: usize = 6;

/// One library, and how many findings of the report hang on it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Lost {
    pub library: String,
    pub suspicions: u64,
}

impl Lost {
    /// Sorted by library. What was proven nevertheless is not lost.
    pub fn of(findings: &[Finding]) -> Vec<Self> {
        let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
        for library in findings.iter().filter(|finding| is_open(finding)).flat_map(|finding| &finding.unseen) {
            *counts.entry(library).or_default() += 1;
        }
        counts.into_iter().map(|(library, suspicions)| Self { library: library.to_owned(), suspicions }).collect()
    }

    /// For people: one note for the suspicions that hang on the same libraries, as each of these has to be trusted before any of
    /// those is predicted.
    pub fn notes(findings: &[Finding]) -> Vec<String> {
        let mut counts: BTreeMap<BTreeSet<&str>, u64> = BTreeMap::new();
        for finding in findings.iter().filter(|finding| is_open(finding) && !finding.unseen.is_empty()) {
            *counts.entry(finding.unseen.iter().map(String::as_str).collect()).or_default() += 1;
        }
        counts.iter().map(|(libraries, &suspicions)| note(libraries, suspicions)).collect()
    }
}

fn is_open(finding: &Finding) -> bool {
    matches!(finding.verdict, Verdict::Suspected | Verdict::Diverged { .. })
}

fn note(libraries: &BTreeSet<&str>, suspicions: u64) -> String {
    let (suspicions, were) =
        if suspicions == 1 { ("1 suspicion".to_owned(), "was") } else { (format!("{suspicions} suspicions"), "were") };
    let (its, if_so) = if libraries.len() == 1 { ("its", "if they do not") } else { ("their", "if none of them do") };
    let mut names = libraries.iter().copied().take(MOST_NAMED).collect::<Vec<_>>().join(", ");
    let options: Vec<String> = libraries.iter().map(|library| format!("--trust-library {}", pasted(library.as_ref()))).collect();
    let mut options = options.join(" ");
    if let more @ 1.. = libraries.len().saturating_sub(MOST_NAMED) {
        let _ = write!(names, " and {}", if more == 1 { "another library".into() } else { format!("{more} more libraries") });
        options = "--trust-library NAME for each of them (--json lists them)".into();
    }
    format!("{names}: {suspicions} {were} not predicted because {its} calls may order threads; {options} {if_so}")
}
