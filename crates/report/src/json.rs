//! For machines. Findings: one object, `"format": "rashomon-report"`, `"version": 2`; `docs/reference/formats.md` has its fields.
//!
//! The fields are listed here and not derived from the model, so that the model may change without changing the format. A
//! field may be added without a new version; a field that changes its meaning or goes away needs one. `exit` is the
//! program's, `status` is the report's, `verdict` a finding's. Schedules are left out: they are in the store, and `reproduce`
//! runs them.

mod analysis;
mod names;
pub mod schema;
mod warning;

use self::names::{EvidenceName, GradeName, HarmName, KindName, VerdictName, WitnessName};
use crate::analysis::Analysis;
use crate::fingerprint::fingerprints;
use crate::format::{Format, Options, Rendered};
use crate::lost::Lost;
use crate::order::by_importance;
use crate::summary::{Counts, ProgramExit, RunSummary, Status, TestCase, Unexamined, is_false};
use crate::warning::Warning;
use rashomon_event::finding::{HeldLock, Step};
use rashomon_event::harmless::harmless_json;
use rashomon_event::{Finding, FindingId, Frame, Replays, Side, Verdict};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

pub const FORMAT: &str = "rashomon-report";
pub const VERSION: u32 = 2;

/// The format for machines.
#[derive(Clone, Copy, Debug)]
pub struct Json;

/// A report: what was executed, and what was found.
#[derive(Serialize, JsonSchema)]
struct Document<'a> {
    #[schemars(extend("const" = FORMAT))]
    format: &'static str,
    #[schemars(extend("const" = VERSION))]
    version: u32,
    /// Of the whole report.
    status: Status,
    /// Findings by verdict, also those that are not shown.
    counts: Counts,
    run: Run<'a>,
    /// Uninstrumented libraries whose calls may order threads, and how many suspicions were not predicted because of each.
    lost: Vec<Lost>,
    /// The surest first.
    findings: Vec<FindingView<'a>>,
}

/// What was executed.
#[derive(Serialize, JsonSchema)]
struct Run<'a> {
    /// The program and its arguments.
    command: &'a [String],
    /// How the recorded program ended.
    exit: ProgramExit,
    recordings: u32,
    /// In all recordings.
    events: u64,
    /// Of the recording with the most.
    threads: u64,
    /// Beside recordings.
    executions: u64,
    /// Findings that the budget left untried.
    untried: u64,
    /// Only there if there is any.
    #[serde(skip_serializing_if = "Unexamined::is_nothing")]
    unexamined: Unexamined,
    /// Where everything is kept.
    store: &'a str,
    notes: &'a [String],
    /// Only there with `check --per-test-case`: in the order in which they were checked.
    #[serde(skip_serializing_if = "<[TestCase]>::is_empty")]
    test_cases: &'a [TestCase],
    /// Only there while the tool is at work, or when it was ended before its time.
    #[serde(skip_serializing_if = "is_false")]
    interrupted: bool,
}

/// A finding.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Finding")]
struct FindingView<'a> {
    /// Its name, the same in every run of a program whose functions and variables stay.
    id: &'a str,
    /// Of the same bug in another build, even if lines were added or another compiler was used.
    fingerprint: &'a str,
    kind: KindName,
    verdict: VerdictName,
    #[serde(flatten)]
    detail: VerdictView<'a>,
    /// What made it a candidate.
    evidence: EvidenceName,
    /// The level of its predicted schedule.
    witness: Option<WitnessName>,
    /// What both sides touch, or the locks of the cycle.
    subject: &'a str,
    sides: Vec<SideView<'a>>,
    /// How many steps come before those of `schedule`.
    #[serde(skip_serializing_if = "Option::is_none")]
    earlier_steps: Option<usize>,
    schedule: Vec<StepView<'a>>,
    /// Only there where both orders of a race were executed.
    #[serde(skip_serializing_if = "Option::is_none")]
    harm: Option<HarmName>,
    /// Pairs of events at these places.
    occurrences: u64,
    /// Libraries without which it would have been predicted.
    unseen: &'a [String],
    notes: &'a [String],
    /// The command that makes it happen again.
    reproduce: Option<&'a str>,
}

// What a verdict says beside its name.
#[derive(Default, Serialize, JsonSchema)]
struct VerdictView<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    grade: Option<GradeName>,
    #[serde(skip_serializing_if = "Option::is_none")]
    replays: Option<ReplaysView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expected: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    actual: Option<&'a str>,
}

/// `shown` of `of` further executions showed it again.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Replays")]
struct ReplaysView {
    shown: u32,
    of: u32,
}

impl<'a> From<&'a Verdict> for VerdictView<'a> {
    fn from(verdict: &'a Verdict) -> Self {
        let replays = verdict.replays().map(|Replays { shown, of }| ReplaysView { shown, of });
        let proof = Self { grade: verdict.grade().map(GradeName::from), replays, ..Self::default() };
        match verdict {
            Verdict::Diverged { expected, actual } => Self { expected: Some(expected), actual: Some(actual), ..proof },
            _ => proof,
        }
    }
}

/// A thread's part in a finding.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Side")]
struct SideView<'a> {
    /// Its path of spawn ordinals: `main`, `0`, `0.1`.
    thread: &'a str,
    action: &'a str,
    /// Innermost first.
    stack: Vec<FrameView<'a>>,
    held: Vec<HeldView<'a>>,
    created_at: Vec<FrameView<'a>>,
}

/// A lock that the thread holds there.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "HeldLock")]
struct HeldView<'a> {
    name: &'a str,
    /// For reading, beside others who read.
    shared: bool,
    acquired_at: Vec<FrameView<'a>>,
}

/// A turn of the schedule that shows the finding, in words.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Step")]
struct StepView<'a> {
    thread: &'a str,
    until: &'a str,
    place: Option<FrameView<'a>>,
}

/// A frame of a stack; null where debug information is missing.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Frame")]
struct FrameView<'a> {
    function: Option<&'a str>,
    file: Option<&'a str>,
    line: Option<u32>,
    column: Option<u32>,
    module: &'a str,
    /// Of the call, in the module.
    offset: u64,
    inlined: bool,
}

impl<'a> From<&'a Frame> for FrameView<'a> {
    fn from(frame: &'a Frame) -> Self {
        Self {
            function: frame.function.as_deref(),
            file: frame.file.as_deref(),
            line: frame.line,
            column: frame.column,
            module: &frame.module,
            offset: frame.offset,
            inlined: frame.inlined,
        }
    }
}

fn frames(stack: &[Frame]) -> Vec<FrameView<'_>> {
    stack.iter().map(FrameView::from).collect()
}

impl<'a> From<&'a HeldLock> for HeldView<'a> {
    fn from(held: &'a HeldLock) -> Self {
        Self { name: &held.name, shared: held.shared, acquired_at: frames(&held.acquired_at) }
    }
}

impl<'a> From<&'a Side> for SideView<'a> {
    fn from(side: &'a Side) -> Self {
        Self {
            thread: &side.thread,
            action: &side.action,
            stack: frames(&side.stack),
            held: side.held.iter().map(HeldView::from).collect(),
            created_at: frames(&side.created_at),
        }
    }
}

impl<'a> From<&'a Step> for StepView<'a> {
    fn from(step: &'a Step) -> Self {
        Self { thread: &step.thread, until: &step.until, place: step.place.as_ref().map(FrameView::from) }
    }
}

impl<'a> FindingView<'a> {
    fn of(finding: &'a Finding, fingerprints: &'a BTreeMap<&FindingId, String>) -> Self {
        Self {
            id: &finding.id,
            fingerprint: fingerprints.get(&finding.id).map_or("", String::as_str),
            kind: finding.kind.into(),
            verdict: VerdictName::from(&finding.verdict),
            detail: VerdictView::from(&finding.verdict),
            evidence: finding.evidence.into(),
            witness: finding.witness_level.map(WitnessName::from),
            subject: &finding.subject,
            sides: finding.sides.iter().map(SideView::from).collect(),
            earlier_steps: (finding.earlier_steps > 0).then_some(finding.earlier_steps),
            schedule: finding.steps.iter().map(StepView::from).collect(),
            harm: finding.harm.map(HarmName::from),
            occurrences: finding.occurrences,
            unseen: &finding.unseen,
            notes: &finding.notes,
            reproduce: finding.reproduce.as_deref(),
        }
    }
}

impl Format for Json {
    fn name(&self) -> &'static str {
        "json"
    }

    fn about(&self) -> &'static str {
        "For programs: one JSON object, of `detect` one per line"
    }

    fn is_for_machines(&self) -> bool {
        true
    }

    fn report(&self, report: crate::Report<'_>, options: &Options) -> String {
        render(report.findings, report.run, options)
    }

    fn warning(&self, warning: &Warning, process: u64, _: &Options) -> Rendered {
        Rendered { text: warning::render(warning, process), ..Rendered::default() }
    }

    fn analysis(&self, analysis: &Analysis, _: &Options) -> String {
        analysis::render(analysis)
    }
}

/// The whole report, ending in a newline. `counts` and `status` cover all findings, also those not shown.
fn render(findings: &[Finding], run: &RunSummary, options: &Options) -> String {
    let counts = Counts::of(findings);
    let fingerprints = fingerprints(findings);
    let shown = by_importance(findings, options.shown);
    let document = Document {
        format: FORMAT,
        version: VERSION,
        status: Status::of(counts, !run.interrupted && run.untried == 0 && run.unexamined.is_nothing()),
        counts,
        run: Run {
            command: &run.command,
            exit: run.exit,
            recordings: run.recordings,
            events: run.events,
            threads: run.threads,
            executions: run.executions,
            untried: run.untried,
            unexamined: run.unexamined,
            store: &run.store,
            notes: &run.notes,
            test_cases: &run.test_cases,
            interrupted: run.interrupted,
        },
        lost: Lost::of(findings),
        findings: shown.into_iter().map(|finding| FindingView::of(finding, &fingerprints)).collect(),
    };
    // Only maps with non-string keys and failing `Serialize` impls can fail; there are none here.
    let text = serde_json::to_string_pretty(&document).unwrap_or_default();
    let mut text = harmless_json(&text).into_owned();
    text.push('\n');
    text
}
