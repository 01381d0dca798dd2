//! Findings as ThreadSanitizer would print them, for tools that read its text. Addresses, and the process, are of an execution
//! that is over: 0 stands for them.

use super::RULE;
use crate::format::{Options, Report};
use crate::frame::{self, clean};
use crate::order::by_importance;
use crate::text::kind_name;
use crate::warning;
use rashomon_event::{Finding, FindingKind, Frame, Side};
use std::fmt::Write as _;

pub fn render(report: Report<'_>, options: &Options) -> String {
    let shown = by_importance(report.findings, options.shown);
    let mut text: String = shown.iter().map(|finding| one(finding, options)).collect();
    if !shown.is_empty() {
        let _ = writeln!(text, "ThreadSanitizer: reported {} warnings", shown.len());
    }
    text
}

fn frame_of(frame: &Frame) -> warning::Frame {
    warning::Frame {
        address: 0,
        function: frame.function.clone(),
        file: frame.file.clone(),
        line: frame.line,
        column: frame.column,
        module: Some(frame.module.clone()).filter(|module| !module.is_empty()),
        offset: frame.offset,
        build_id: None,
        inlined: frame.inlined,
    }
}

fn stack(text: &mut String, frames: &[Frame], options: &Options) {
    if frames.is_empty() {
        text.push_str("    [failed to restore the stack]\n");
    }
    for (number, one) in frames.iter().enumerate() {
        let _ = writeln!(text, "{}", frame::render(&options.stack_trace_format, number, &frame_of(one), options));
    }
    text.push('\n');
}

fn thread(path: &str) -> String {
    if path == "main" { "main thread".to_owned() } else { format!("thread T{}", clean(path)) }
}

/// With its first letter large.
fn begun(words: &str) -> String {
    let mut letters = words.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().collect::<String>() + letters.as_str())
}

fn side(text: &mut String, side: &Side, is_first: bool, options: &Options) {
    let action = clean(&side.action);
    let action = if is_first { begun(&action) } else { format!("Previous {action}") };
    let _ = writeln!(text, "  {action} by {}:", thread(&side.thread));
    stack(text, &side.stack, options);
    for held in &side.held {
        let _ = writeln!(text, "  While holding {}, acquired at:", clean(&held.words()));
        stack(text, &held.acquired_at, options);
    }
}

fn one(finding: &Finding, options: &Options) -> String {
    let kind = kind_name(finding.kind);
    let of_accesses = matches!(finding.kind, FindingKind::DataRace | FindingKind::UseAfterFree);
    let mut text = format!("{RULE}WARNING: ThreadSanitizer: {kind} (pid=0)\n");
    for (index, one) in finding.sides.iter().enumerate() {
        side(&mut text, one, index == 0 || !of_accesses, options);
    }
    let what = if of_accesses { "Location is" } else { "This is about" };
    let _ = writeln!(text, "  {what} {}.\n", clean(&finding.subject));
    for created in finding.sides.iter().filter(|side| !side.created_at.is_empty()) {
        let _ = writeln!(text, "  {} created at:", begun(&thread(&created.thread)));
        stack(&mut text, &created.created_at, options);
    }
    let place = finding.sides.iter().flat_map(|side| &side.stack).find(|frame| frame.file.is_some());
    if let Some(place) = place.filter(|_| options.print_summary) {
        let _ = writeln!(text, "SUMMARY: ThreadSanitizer: {kind} {}", frame::render("%L %F", 0, &frame_of(place), options));
    }
    text.push_str(RULE);
    text
}
