//! Where a finding is, for formats that put a mark at one line of a file.

use crate::text::kind_name;
use crate::text::{clean, place_words, thread_words, verdict_words};
use rashomon_event::finding::Origin;
use rashomon_event::{Finding, FindingKind, Frame, Side};

/// A line of a source, seen from the folder in which the tool runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place<'a> {
    pub file: &'a str,
    pub line: u32,
    pub column: Option<u32>,
}

impl<'a> Place<'a> {
    /// `None` where debug information is missing.
    pub fn of(frame: &'a Frame, folder: &str) -> Option<Self> {
        let (file, line) = (frame.file.as_deref()?, frame.line.filter(|line| *line > 0)?);
        Some(Self { file: below(file, folder), line, column: frame.column.filter(|column| *column > 0) })
    }

    /// The place that its user knows best: of the first side that has one in the program, else of the first that has any.
    pub fn of_finding(finding: &'a Finding, folder: &str) -> Option<Self> {
        let known = || finding.sides.iter().filter_map(|side| Frame::best_known(&side.stack));
        let own = known().filter(|frame| frame.origin() == Origin::Program);
        own.chain(known()).find_map(|frame| Self::of(frame, folder))
    }
}

/// The path as seen from the folder; elsewhere it stays whole.
pub fn below<'a>(path: &'a str, folder: &str) -> &'a str {
    let inside = path.strip_prefix(folder).and_then(|rest| rest.strip_prefix('/'));
    inside.filter(|_| !folder.is_empty()).unwrap_or(path)
}

/// The kind's name for programs, such as `data-race`.
pub fn rule(kind: FindingKind) -> String {
    serde_json::to_value(kind).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

/// `data race (proven, co-enabled): global y (4 bytes)`.
pub fn title(finding: &Finding) -> String {
    let head = format!("{} ({})", kind_name(finding.kind), verdict_words(&finding.verdict));
    match finding.subject.as_str() {
        "" => head,
        subject => format!("{head}: {}", clean(subject)),
    }
}

/// `thread 0: write of 4 bytes at task listing1.c:11:6`, seen from the folder.
pub fn side_words(side: &Side, folder: &str) -> String {
    let what = format!("{}: {}", thread_words(&side.thread), clean(&side.action));
    match Frame::best_known(&side.stack) {
        Some(frame) => format!("{what} at {}", place_words(frame, folder)),
        None => what,
    }
}

/// What happens and where, a line for each side, and how to see it again.
pub fn message(finding: &Finding, folder: &str) -> String {
    let again = finding.reproduce.iter().map(|command| format!("Make it happen again: {}", clean(command)));
    let lines: Vec<String> = finding.sides.iter().map(|side| side_words(side, folder)).chain(again).collect();
    lines.join("\n")
}
