//! What uninstrumented libraries took away: suspicions that would be predictions if calls into such a library were known to order nothing.

use rashomon_event::{Finding, Verdict, pasted};
use serde::Serialize;
use std::collections::BTreeMap;

/// One library, and how many findings of the report hang on it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Lost {
    pub library: String,
    pub suspicions: u64,
}

impl Lost {
    /// Sorted by library. What was proven nevertheless is not lost.
    pub fn of(findings: &[Finding]) -> Vec<Self> {
        let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
        let open = |finding: &&Finding| matches!(finding.verdict, Verdict::Suspected | Verdict::Diverged { .. });
        for library in findings.iter().filter(open).flat_map(|finding| &finding.unseen) {
            *counts.entry(library).or_default() += 1;
        }
        counts.into_iter().map(|(library, suspicions)| Self { library: library.to_owned(), suspicions }).collect()
    }

    /// For people.
    pub fn words(&self) -> String {
        let Self { library, suspicions } = self;
        let (suspicions, were) =
            if *suspicions == 1 { ("1 suspicion".to_owned(), "was") } else { (format!("{suspicions} suspicions"), "were") };
        format!(
            "{library}: {suspicions} {were} not predicted because its calls may order threads; --trust-library {} if they do not",
            pasted(library.as_ref())
        )
    }
}
