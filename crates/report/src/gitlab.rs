//! GitLab's code quality report (a subset of the Code Climate format): an artifact that merge requests show beside their lines.

use crate::fingerprint::fingerprints;
use crate::format::{Format, Options, Report};
use crate::order::by_importance;
use crate::place::{self, Place};
use crate::text::clean;
use rashomon_event::harmless::harmless_json;
use rashomon_event::{Finding, Verdict};
use serde_json::{Value, json};

/// One array of issues. Findings without a line of source are at line 1 of the binary.
#[derive(Clone, Copy, Debug)]
pub struct GitLab;

impl Format for GitLab {
    fn name(&self) -> &'static str {
        "gitlab"
    }

    fn about(&self) -> &'static str {
        "GitLab's code quality report"
    }

    fn is_for_machines(&self) -> bool {
        true
    }

    fn report(&self, report: Report<'_>, options: &Options) -> String {
        let findings = by_importance(report.findings, options.shown);
        let fingerprints = fingerprints(report.findings);
        let issue = |finding: &Finding| issue(finding, &fingerprints[&finding.id], &options.folder);
        let issues: Vec<Value> = findings.into_iter().map(issue).collect();
        // Only maps with non-string keys and failing `Serialize` impls can fail; there are none here.
        let text = serde_json::to_string_pretty(&issues).unwrap_or_default();
        format!("{}\n", harmless_json(&text))
    }
}

fn issue(finding: &Finding, fingerprint: &str, folder: &str) -> Value {
    let severity = match finding.verdict {
        Verdict::Proven(_) => "critical",
        Verdict::Predicted => "major",
        Verdict::Diverged { .. } | Verdict::Suspected => "minor",
        Verdict::Refuted => "info",
    };
    let binary = || finding.sides.iter().flat_map(|side| &side.stack).map(|frame| frame.module.as_str()).next().unwrap_or("");
    let (file, line) = Place::of_finding(finding, folder).map_or_else(|| (binary(), 1), |place| (place.file, place.line));
    let sides: Vec<String> = finding.sides.iter().map(|side| place::side_words(side, folder)).collect();
    json!({
        "check_name": place::rule(finding.kind),
        "description": format!("{}. {}", place::title(finding), sides.join("; ")),
        "fingerprint": fingerprint,
        "severity": severity,
        "location": { "path": clean(file), "lines": { "begin": line } },
    })
}
