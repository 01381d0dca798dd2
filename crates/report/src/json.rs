//! For machines. Findings: one object, `"format": "rashomon-report"`, `"version": 2`; `docs/reference/formats.md` has its fields.
//!
//! The fields are listed here and not derived from the model, so that the model may change without changing the format. A
//! field may be added without a new version; a field that changes its meaning or goes away needs one. `exit` is the
//! program's, `status` is the report's, `verdict` a finding's. Schedules are left out: they are in the store, and `reproduce`
//! runs them.

mod analysis;
mod warning;

use crate::analysis::Analysis;
use crate::format::{Format, Options, Rendered};
use crate::lost::Lost;
use crate::order::by_importance;
use crate::summary::{Counts, ProgramExit, RunSummary, Status, Unexamined, is_false};
use crate::warning::Warning;
use rashomon_event::finding::{HeldLock, Step};
use rashomon_event::harmless::harmless_json;
use rashomon_event::{Evidence, Finding, FindingKind, Frame, Grade, Harm, Replays, Side, Verdict, WitnessLevel};
use serde::Serialize;

pub const FORMAT: &str = "rashomon-report";
pub const VERSION: u32 = 2;

/// The format for machines.
#[derive(Clone, Copy, Debug)]
pub struct Json;

#[derive(Serialize)]
struct Document<'a> {
    format: &'static str,
    version: u32,
    status: Status,
    counts: Counts,
    run: Run<'a>,
    /// Uninstrumented libraries whose calls may order threads, and how many suspicions were not predicted because of each.
    lost: Vec<Lost>,
    findings: Vec<FindingView<'a>>,
}

#[derive(Serialize)]
struct Run<'a> {
    command: &'a [String],
    exit: ProgramExit,
    recordings: u32,
    events: u64,
    threads: u64,
    executions: u64,
    untried: u64,
    /// Only there if there is any.
    #[serde(skip_serializing_if = "Unexamined::is_nothing")]
    unexamined: Unexamined,
    store: &'a str,
    notes: &'a [String],
    /// Only there while the tool is at work, or when it was ended before its time.
    #[serde(skip_serializing_if = "is_false")]
    interrupted: bool,
}

#[derive(Serialize)]
struct FindingView<'a> {
    id: &'a str,
    kind: FindingKind,
    verdict: &'static str,
    #[serde(flatten)]
    detail: VerdictView<'a>,
    evidence: &'static str,
    witness: Option<&'static str>,
    subject: &'a str,
    sides: Vec<SideView<'a>>,
    /// How many steps come before those of `schedule`.
    #[serde(skip_serializing_if = "Option::is_none")]
    earlier_steps: Option<usize>,
    schedule: Vec<StepView<'a>>,
    /// Only there where both orders of a race were executed.
    #[serde(skip_serializing_if = "Option::is_none")]
    harm: Option<Harm>,
    occurrences: u64,
    unseen: &'a [String],
    notes: &'a [String],
    reproduce: Option<&'a str>,
}

/// What a verdict says beside its name.
#[derive(Default, Serialize)]
struct VerdictView<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    grade: Option<Grade>,
    #[serde(skip_serializing_if = "Option::is_none")]
    replays: Option<Replays>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expected: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    actual: Option<&'a str>,
}

impl<'a> From<&'a Verdict> for VerdictView<'a> {
    fn from(verdict: &'a Verdict) -> Self {
        let proof = Self { grade: verdict.grade(), replays: verdict.replays(), ..Self::default() };
        match verdict {
            Verdict::Diverged { expected, actual } => Self { expected: Some(expected), actual: Some(actual), ..proof },
            _ => proof,
        }
    }
}

#[derive(Serialize)]
struct SideView<'a> {
    thread: &'a str,
    action: &'a str,
    stack: Vec<FrameView<'a>>,
    held: Vec<HeldView<'a>>,
    created_at: Vec<FrameView<'a>>,
}

#[derive(Serialize)]
struct HeldView<'a> {
    name: &'a str,
    acquired_at: Vec<FrameView<'a>>,
}

#[derive(Serialize)]
struct StepView<'a> {
    thread: &'a str,
    until: &'a str,
    place: Option<FrameView<'a>>,
}

#[derive(Serialize)]
struct FrameView<'a> {
    function: Option<&'a str>,
    file: Option<&'a str>,
    line: Option<u32>,
    column: Option<u32>,
    module: &'a str,
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
        Self { name: &held.name, acquired_at: frames(&held.acquired_at) }
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

impl<'a> From<&'a Finding> for FindingView<'a> {
    fn from(finding: &'a Finding) -> Self {
        Self {
            id: &finding.id,
            kind: finding.kind,
            verdict: finding.verdict.name(),
            detail: VerdictView::from(&finding.verdict),
            evidence: match finding.evidence {
                Evidence::HappensBefore => "happens-before",
                Evidence::Hybrid => "hybrid",
                Evidence::Conflict => "conflict",
                Evidence::Lockset => "lockset",
                Evidence::LockOrder => "lock-order",
                Evidence::StaleValue => "stale-value",
                Evidence::Interposed => "interposed",
                Evidence::View => "view",
                Evidence::Apart => "apart",
                Evidence::Dependences => "dependences",
                Evidence::Observed => "observed",
            },
            witness: finding.witness_level.map(|level| match level {
                WitnessLevel::Causal => "causal",
                WitnessLevel::Synchronisation => "synchronisation",
            }),
            subject: &finding.subject,
            sides: finding.sides.iter().map(SideView::from).collect(),
            earlier_steps: (finding.earlier_steps > 0).then_some(finding.earlier_steps),
            schedule: finding.steps.iter().map(StepView::from).collect(),
            harm: finding.harm,
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
            interrupted: run.interrupted,
        },
        lost: Lost::of(findings),
        findings: by_importance(findings, options.shown).into_iter().map(FindingView::from).collect(),
    };
    // Only maps with non-string keys and failing `Serialize` impls can fail; there are none here.
    let text = serde_json::to_string_pretty(&document).unwrap_or_default();
    let mut text = harmless_json(&text).into_owned();
    text.push('\n');
    text
}
