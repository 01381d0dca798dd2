//! SARIF 2.1.0 (OASIS, "Static Analysis Results Interchange Format (SARIF) Version 2.1.0", 2020), for code scanning and viewers.
//!
//! A finding is a result: its kind is the rule, its verdict the level (proven: `error`, predicted: `warning`, suspected and
//! diverged: `note`, refuted: a result of kind `pass`). The place is that of the first side, the others are related locations;
//! stacks are stacks, and the schedule is a code flow with a thread flow for each thread, ordered by `executionOrder`.

use crate::Status;
use crate::fingerprint::fingerprints;
use crate::format::{Format, Options, Report};
use crate::order::by_importance;
use crate::place::{self, below};
use crate::summary::{Counts, ProgramExit, RunSummary};
use crate::text::{clean, kind_name, thread_words};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use rashomon_event::finding::Step;
use rashomon_event::harmless::harmless_json;
use rashomon_event::{Finding, FindingKind, Frame, Side, Verdict};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The schema of the version that is written.
const SCHEMA: &str = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";
/// What relative paths are relative to.
const ROOT: &str = "SRCROOT";
/// The names of our fingerprints, with their versions: the finding's id, and what stays when its functions change.
const ID: &str = "rashomonFinding/v1";
const FINGERPRINT: &str = "rashomonFingerprint/v1";
/// What may stand in a path of a URI as it is.
const PATH: &AsciiSet = &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The format of code scanning.
#[derive(Clone, Copy, Debug)]
pub struct Sarif;

impl Format for Sarif {
    fn name(&self) -> &'static str {
        "sarif"
    }

    fn about(&self) -> &'static str {
        "SARIF 2.1.0, for code scanning"
    }

    fn is_for_machines(&self) -> bool {
        true
    }

    fn report(&self, report: Report<'_>, options: &Options) -> String {
        let findings = by_importance(report.findings, options.shown);
        let mut kinds: Vec<FindingKind> = findings.iter().map(|finding| finding.kind).collect();
        kinds.sort();
        kinds.dedup();
        let fingerprints = fingerprints(report.findings);
        let result = |finding: &&Finding| result(finding, &kinds, &fingerprints[&finding.id], &options.folder);
        let mut run = json!({
            "tool": { "driver": {
                "name": "Rashomon",
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "rules": kinds.iter().map(|kind| rule(*kind)).collect::<Vec<_>>(),
            } },
            "columnKind": "utf16CodeUnits",
            "results": findings.iter().map(result).collect::<Vec<_>>(),
        });
        if !options.folder.is_empty() {
            run["originalUriBaseIds"] = json!({ ROOT: { "uri": format!("file://{}/", encoded(&options.folder)) } });
        }
        if !report.run.command.is_empty() {
            run["invocations"] = json!([invocation(report)]);
        }
        let document = json!({ "$schema": SCHEMA, "version": "2.1.0", "runs": [run] });
        // Only maps with non-string keys and failing `Serialize` impls can fail; there are none here.
        let text = serde_json::to_string_pretty(&document).unwrap_or_default();
        format!("{}\n", harmless_json(&text))
    }
}

fn encoded(path: &str) -> String {
    utf8_percent_encode(path, PATH).to_string()
}

/// `data-race` as the rule's id, `DataRace` as its name. A name that is no other word than the id is left out, as the format asks
/// for (§3.49.7).
fn rule(kind: FindingKind) -> Value {
    let (id, name) = (place::rule(kind), format!("{kind:?}"));
    let mut rule = json!({
        "id": id,
        "shortDescription": { "text": kind_name(kind) },
        "defaultConfiguration": { "level": "error" },
    });
    if !name.eq_ignore_ascii_case(&id) {
        rule["name"] = name.into();
    }
    rule
}

/// How the program went, and what there is to say of the run.
fn invocation(Report { findings, run }: Report<'_>) -> Value {
    let is_whole = !run.interrupted && run.unexamined.is_nothing();
    let notes: Vec<Value> = run.notes.iter().map(|note| json!({ "level": "note", "message": { "text": clean(note) } })).collect();
    let mut invocation = json!({
        "executionSuccessful": !run.interrupted,
        "commandLine": clean(&run.command.join(" ")),
        "arguments": run.command.iter().skip(1).map(|argument| clean(argument)).collect::<Vec<_>>(),
        "toolExecutionNotifications": notes,
        "properties": properties(run, Status::of(Counts::of(findings), is_whole)),
    });
    match run.exit {
        ProgramExit::Code { code } => invocation["exitCode"] = json!(code),
        ProgramExit::Signal { signal } => invocation["exitSignalNumber"] = json!(signal),
        ProgramExit::TimedOut | ProgramExit::Blocked | ProgramExit::Endless | ProgramExit::Unknown => {}
    }
    invocation
}

fn properties(run: &RunSummary, status: Status) -> Value {
    json!({
        "status": status,
        "recordings": run.recordings,
        "executions": run.executions,
        "events": run.events,
        "threads": run.threads,
        "unexamined": run.unexamined,
        "store": run.store,
    })
}

fn result(finding: &Finding, kinds: &[FindingKind], fingerprint: &str, folder: &str) -> Value {
    let (kind, level) = match finding.verdict {
        Verdict::Proven(_) => ("fail", "error"),
        Verdict::Predicted => ("fail", "warning"),
        Verdict::Suspected | Verdict::Diverged { .. } => ("fail", "note"),
        Verdict::Refuted => ("pass", "none"),
    };
    let text = format!("{}\n{}", place::title(finding), place::message(finding, folder));
    let mut sides = finding.sides.iter();
    let stacks = finding.sides.iter().flat_map(|side| stacks(side, folder)).collect::<Vec<_>>();
    let mut result = json!({
        "ruleId": place::rule(finding.kind),
        "ruleIndex": kinds.iter().position(|kind| *kind == finding.kind),
        "kind": kind,
        "level": level,
        "message": { "text": text.trim_end() },
        "locations": sides.next().map(|side| location(side, folder)).into_iter().collect::<Vec<_>>(),
        "partialFingerprints": { ID: finding.id.as_str(), FINGERPRINT: fingerprint },
        "occurrenceCount": finding.occurrences.max(1),
        "properties": {
            "verdict": finding.verdict.name(),
            "grade": finding.verdict.grade(),
            "replays": finding.verdict.replays(),
            "subject": finding.subject,
            "notes": finding.notes,
            "reproduce": finding.reproduce,
        },
    });
    let related: Vec<Value> = sides.enumerate().map(|(number, side)| related(number, side, folder)).collect();
    // The schema wants none of these empty.
    for (name, list) in [("relatedLocations", related), ("stacks", stacks)] {
        if !list.is_empty() {
            result[name] = Value::Array(list);
        }
    }
    if !finding.steps.is_empty() {
        result["codeFlows"] = json!([code_flow(finding, folder)]);
    }
    result
}

/// A place in a source, or in a binary where debug information is missing.
fn frame_location(frame: &Frame, folder: &str) -> Value {
    let path = frame.file.as_deref().unwrap_or(&frame.module);
    let seen = below(path, folder);
    let artifact = if seen.starts_with('/') {
        json!({ "uri": format!("file://{}", encoded(seen)) })
    } else if folder.is_empty() {
        json!({ "uri": encoded(seen) })
    } else {
        json!({ "uri": encoded(seen), "uriBaseId": ROOT })
    };
    let mut physical = json!({ "artifactLocation": artifact });
    if let Some(line) = frame.line.filter(|line| *line > 0 && frame.file.is_some()) {
        physical["region"] = json!({ "startLine": line });
        if let Some(column) = frame.column.filter(|column| *column > 0) {
            physical["region"]["startColumn"] = json!(column);
        }
    }
    let mut location = json!({ "physicalLocation": physical });
    if let Some(function) = &frame.function {
        location["logicalLocations"] = json!([{ "fullyQualifiedName": clean(function), "kind": "function" }]);
    }
    location
}

fn location(side: &Side, folder: &str) -> Value {
    let mut location = Frame::best_known(&side.stack).map_or_else(|| json!({}), |frame| frame_location(frame, folder));
    location["message"] = json!({ "text": place::side_words(side, folder) });
    location
}

fn related(number: usize, side: &Side, folder: &str) -> Value {
    let mut location = location(side, folder);
    location["id"] = json!(number + 1);
    location
}

/// The side's own stack, where it took what it holds, and where its thread was created.
fn stacks(side: &Side, folder: &str) -> Vec<Value> {
    let thread = thread_words(&side.thread);
    let stack = |words: String, frames: &[Frame]| {
        let frames: Vec<Value> = frames.iter().map(|frame| stack_frame(frame, folder)).collect();
        json!({ "message": { "text": words }, "frames": frames })
    };
    let own = stack(format!("{thread}: {}", clean(&side.action)), &side.stack);
    let held = side.held.iter().map(|held| stack(format!("{thread} took {}", clean(&held.words())), &held.acquired_at));
    let created = (!side.created_at.is_empty()).then(|| stack(format!("{thread} was created"), &side.created_at));
    std::iter::once(own).chain(held).chain(created).collect()
}

fn stack_frame(frame: &Frame, folder: &str) -> Value {
    json!({ "location": frame_location(frame, folder), "module": clean(&frame.module), "properties": { "offset": frame.offset } })
}

/// The schedule: a flow for each thread, with turns numbered over all of them.
fn code_flow(finding: &Finding, folder: &str) -> Value {
    let mut flows: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
    for (number, step) in finding.steps.iter().enumerate() {
        let order = finding.earlier_steps + number + 1;
        flows.entry(&step.thread).or_default().push(turn(step, order, folder));
    }
    let flows: Vec<Value> = flows
        .into_iter()
        .map(|(thread, turns)| json!({ "id": thread, "message": { "text": thread_words(thread) }, "locations": turns }))
        .collect();
    json!({ "message": { "text": "the schedule that shows it" }, "threadFlows": flows })
}

fn turn(step: &Step, order: usize, folder: &str) -> Value {
    let mut location = step.place.as_ref().map_or_else(|| json!({}), |frame| frame_location(frame, folder));
    location["message"] = json!({ "text": format!("{} {}", thread_words(&step.thread), clean(&step.until)) });
    json!({ "location": location, "executionOrder": order })
}
