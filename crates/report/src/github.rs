//! Annotations of GitHub Actions: printed to the log of a job, they stand beside the lines of a pull request. Proven: an error,
//! predicted: a warning, everything else: a notice.

use crate::format::{Format, Options, Report};
use crate::order::by_importance;
use crate::place::{self, Place};
use crate::text::clean;
use rashomon_event::{Finding, Verdict};

/// Commands of a workflow, one line each.
#[derive(Clone, Copy, Debug)]
pub struct GitHub;

impl Format for GitHub {
    fn name(&self) -> &'static str {
        "github"
    }

    fn about(&self) -> &'static str {
        "Annotations of GitHub Actions, to be printed by a step of a job"
    }

    fn is_for_machines(&self) -> bool {
        true
    }

    fn report(&self, report: Report<'_>, options: &Options) -> String {
        by_importance(report.findings, options.shown).into_iter().map(|finding| annotation(finding, &options.folder)).collect()
    }
}

fn annotation(finding: &Finding, folder: &str) -> String {
    let level = match finding.verdict {
        Verdict::Proven(_) => "error",
        Verdict::Predicted => "warning",
        Verdict::Suspected | Verdict::Diverged { .. } | Verdict::Refuted => "notice",
    };
    let mut properties = Vec::new();
    if let Some(place) = Place::of_finding(finding, folder) {
        properties.push(format!("file={}", property(&clean(place.file))));
        properties.push(format!("line={}", place.line));
        properties.extend(place.column.map(|column| format!("col={column}")));
    }
    properties.push(format!("title={}", property(&place::title(finding))));
    let message = format!("{}\n[{}]", place::message(finding, folder), finding.id);
    format!("::{level} {}::{}\n", properties.join(","), data(message.trim_start()))
}

/// What follows the second pair of colons goes to the end of the line.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_text_ends_its_command() {
        assert_eq!(property("100%: a,b\r\nc"), "100%25%3A a%2Cb%0D%0Ac");
        assert_eq!(data("a: b\n::error::c"), "a: b%0A::error::c");
    }
}
