//! The report for people: kind and grade, both sides with full stacks, what they hold, where their threads come from, the
//! schedule in words, and as the last line of every finding the command that makes it happen again, ready to paste.

mod analysis;
mod undecided;
mod warning;

use crate::analysis::Analysis;
use crate::format::{Format, Options, Rendered, Report};
use crate::lost::Lost;
use crate::order::{Shown, by_importance};
use crate::summary::{Counts, ProgramExit, RunSummary};
use crate::warning::Warning;
use rashomon_event::harmless::harmless;
use rashomon_event::{Evidence, Finding, FindingKind, Frame, Grade, Replays, Side, Verdict, WitnessLevel};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The format for people.
#[derive(Clone, Copy, Debug)]
pub struct Text;

impl Format for Text {
    fn name(&self) -> &'static str {
        "text"
    }

    fn about(&self) -> &'static str {
        "For people to read"
    }

    fn report(&self, report: Report<'_>, options: &Options) -> String {
        render(report.findings, report.run, options)
    }

    fn warning(&self, warning: &Warning, process: u64, options: &Options) -> Rendered {
        Rendered { text: warning::render(warning, process, options), ..Rendered::default() }
    }

    fn analysis(&self, analysis: &Analysis, options: &Options) -> String {
        analysis::render(analysis, options.limit)
    }
}

/// ANSI attributes by meaning.
#[derive(Clone, Copy)]
enum Tint {
    Alarm,
    Warning,
    Strong,
    Quiet,
}

#[derive(Clone, Copy)]
struct Painter {
    colour: bool,
}

impl Painter {
    fn paint(self, tint: Tint, text: &str) -> String {
        if !self.colour {
            return text.to_owned();
        }
        let code = match tint {
            Tint::Alarm => "1;31",
            Tint::Warning => "1;33",
            Tint::Strong => "1",
            Tint::Quiet => "2",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}

/// Names come from the program under test.
pub(crate) fn clean(text: &str) -> String {
    harmless(text).into_owned()
}

pub const fn kind_name(kind: FindingKind) -> &'static str {
    match kind {
        FindingKind::DataRace => "data race",
        FindingKind::Deadlock => "deadlock",
        FindingKind::Stuck => "lost wake-up",
        FindingKind::Endless => "endless",
        FindingKind::Failure => "failure",
        FindingKind::UnlockNotHeld => "unlock of a lock that is not held",
        FindingKind::DestroyLocked => "destruction of a locked lock",
        FindingKind::DoubleLock => "double lock",
        FindingKind::UseOfDestroyed => "use of a destroyed lock",
        FindingKind::ThreadLeak => "thread leak",
        FindingKind::UseAfterFree => "use after free",
        FindingKind::UnsafeInSignal => "unsafe in a signal handler",
        FindingKind::WrongContext => "lock held in the wrong context",
        FindingKind::NotSerialisable => "regions that are not serialisable",
    }
}

pub const fn grade_name(grade: Grade) -> &'static str {
    match grade {
        Grade::CoEnabled => "co-enabled",
        Grade::Unordered => "unordered",
        Grade::Deadlocked => "deadlocked",
        Grade::Stuck => "stuck",
        Grade::Endless => "endless",
        Grade::Crashed => "crashed",
        Grade::WrongExit => "wrong exit code",
        Grade::Observed => "observed",
    }
}

fn verdict_words(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Proven(_) => verdict.grade().map_or_else(String::new, |grade| format!("proven, {}", grade_name(grade))),
        Verdict::Predicted => "predicted".into(),
        Verdict::Suspected => "suspected".into(),
        Verdict::Diverged { .. } => "diverged".into(),
        Verdict::Refuted => "refuted".into(),
    }
}

/// What a proof of this grade says, for who reads it the first time.
const fn proof_words(kind: FindingKind, grade: Grade) -> &'static str {
    match grade {
        Grade::CoEnabled => "a forced execution stopped both threads right before these two accesses to the same bytes",
        Grade::Unordered => "both accesses were executed and nothing orders them under the rules of C++20 and of C11",
        Grade::Deadlocked => "an execution ended with these threads waiting for each other for ever",
        Grade::Stuck => "an execution ended with every thread waiting and nobody left to wake them",
        Grade::Endless => {
            "an execution came to where every thread that is left repeats the same state for ever, or is blocked: a livelock"
        }
        Grade::Crashed => "an execution under the stored schedule was ended by a signal",
        Grade::WrongExit => "an execution under the stored schedule ended with this exit code",
        Grade::Observed => match kind {
            FindingKind::UnlockNotHeld => {
                "the recorded execution did it: only the thread that holds a lock may release it, or it protects nothing"
            }
            FindingKind::DestroyLocked => {
                "the recorded execution did it: who holds the lock, or waits for it, goes on with what is no lock any more"
            }
            FindingKind::DoubleLock => "the recorded execution did it: the lock is not recursive",
            FindingKind::UseOfDestroyed => "the recorded execution did it: what lies there is no lock, and protects nothing",
            FindingKind::ThreadLeak => {
                "the recorded execution did it: what the system keeps of a thread is given back when it is joined or detached"
            }
            FindingKind::UseAfterFree => {
                "an execution did it: what lies there may belong to somebody else by then, whatever orders the threads"
            }
            _ => "the recorded execution did it",
        },
    }
}

/// How often what was shown once came about again.
fn replays_words(finding: &Finding, replays: Replays) -> String {
    let how = if finding.provocation.is_some() { "provoked again" } else { "replayed" };
    match replays {
        Replays { of: 0, .. } => format!("seen in one execution, and not {how}"),
        Replays { shown, of } => format!("{how}: reproduces {shown} of {of}"),
    }
}

/// What the verdict means, for who reads it the first time.
fn explanation(finding: &Finding) -> Option<String> {
    Some(match &finding.verdict {
        Verdict::Proven(_) => proof_words(finding.kind, finding.verdict.grade()?).into(),
        Verdict::Predicted => "another schedule of the recorded execution shows it; it was not forced".into(),
        Verdict::Suspected if finding.kind == FindingKind::ThreadLeak => {
            "what the system keeps of a thread is given back when it is joined or detached, or when the process ends".into()
        }
        Verdict::Suspected if finding.kind == FindingKind::UseAfterFree => {
            "an execution did it when the process was about to end".into()
        }
        Verdict::Suspected if finding.kind.is_misuse() => {
            "the recorded execution did it, and the lock, which checks for errors, refused: a bug unless the program looks at the result".into()
        }
        Verdict::Suspected => match finding.witness_level {
            Some(WitnessLevel::Synchronisation) => {
                "the synchronisation allows it if no branch depends on the values that change; it was not forced".into()
            }
            _ => "an analysis suspects it; no schedule is known that shows it".into(),
        },
        Verdict::Diverged { expected, actual } => {
            format!("the forced execution left the schedule: expected {}; instead {}", clean(expected), clean(actual))
        }
        Verdict::Refuted => return None,
    })
}

const fn evidence_words(evidence: Evidence) -> &'static str {
    match evidence {
        Evidence::HappensBefore => "unordered in the recorded execution",
        Evidence::Hybrid => {
            "no common lock, and only hand-overs of locks, atomics or semaphore posts to spare order them in the recorded execution"
        }
        Evidence::Conflict => {
            "accesses to the same bytes in the recorded execution, ordered by neither creation nor joining of threads"
        }
        Evidence::Lockset => "no lock protects this memory in all accesses of the recorded execution",
        Evidence::LockOrder => "a cycle in the order in which locks are taken",
        Evidence::Observed => "the recorded execution itself",
    }
}

/// `function file:line:column`, or module and offset where debug information is missing.
pub fn frame_words(frame: &Frame) -> String {
    let mut text = clean(frame.function.as_deref().unwrap_or("??"));
    match (&frame.file, frame.line) {
        (Some(file), Some(line)) => {
            let _ = write!(text, " {}:{line}", clean(file));
            if let Some(column) = frame.column.filter(|column| *column > 0) {
                let _ = write!(text, ":{column}");
            }
        }
        _ => {
            let module = frame.module.rsplit('/').next().unwrap_or(&frame.module);
            let _ = write!(text, " ({}+{:#x})", clean(module), frame.offset);
        }
    }
    if frame.inlined {
        text.push_str(" (inlined)");
    }
    text
}

fn stack(out: &mut String, indent: &str, frames: &[Frame]) {
    if frames.is_empty() {
        let _ = writeln!(out, "{indent}(no stack)");
    }
    for (number, frame) in frames.iter().enumerate() {
        let _ = writeln!(out, "{indent}#{number} {}", frame_words(frame));
    }
}

fn thread_words(path: &str) -> String {
    if path == "main" { "main thread".into() } else { format!("thread {}", clean(path)) }
}

fn side(out: &mut String, painter: Painter, side: &Side) {
    let head = format!("{}: {}", thread_words(&side.thread), clean(&side.action));
    let _ = writeln!(out, "  {}", painter.paint(Tint::Strong, &head));
    stack(out, "    ", &side.stack);
    for held in &side.held {
        let _ = writeln!(out, "    holding {}, taken at", clean(&held.name));
        stack(out, "      ", &held.acquired_at);
    }
    if !side.created_at.is_empty() {
        let _ = writeln!(out, "    {} was created at", thread_words(&side.thread));
        stack(out, "      ", &side.created_at);
    }
}

fn one(out: &mut String, painter: Painter, finding: &Finding) {
    let tint = if matches!(finding.verdict, Verdict::Proven { .. }) { Tint::Alarm } else { Tint::Warning };
    let head = format!("{} ({})", kind_name(finding.kind), verdict_words(&finding.verdict));
    let _ = writeln!(
        out,
        "{} {}: {}",
        painter.paint(tint, &head),
        painter.paint(Tint::Quiet, &format!("[{}]", clean(&finding.id))),
        painter.paint(Tint::Strong, &clean(&finding.subject))
    );
    for one in &finding.sides {
        side(out, painter, one);
    }
    if !finding.steps.is_empty() {
        let _ = writeln!(out, "  {}", painter.paint(Tint::Strong, "schedule that shows it:"));
        if finding.earlier_steps > 0 {
            let _ = writeln!(out, "    ({} earlier steps are not shown)", finding.earlier_steps);
        }
        for (number, step) in (finding.earlier_steps + 1..).zip(&finding.steps) {
            let place = step.place.as_ref().map(|frame| format!(" at {}", frame_words(frame))).unwrap_or_default();
            let _ = writeln!(out, "    {number}. {} {}{place}", thread_words(&step.thread), clean(&step.until));
        }
    }
    if let Some(text) = explanation(finding) {
        let _ = writeln!(out, "  = {text}");
    }
    if let Some(replays) = finding.verdict.replays() {
        let _ = writeln!(out, "  = {}", replays_words(finding, replays));
    }
    let _ = writeln!(out, "  = evidence: {}", evidence_words(finding.evidence));
    if finding.occurrences > 1 {
        let _ = match finding.evidence {
            Evidence::Observed => writeln!(out, "  = seen {} times", finding.occurrences),
            _ => writeln!(out, "  = {} pairs of events at these places", finding.occurrences),
        };
    }
    for note in &finding.notes {
        let _ = writeln!(out, "  = note: {}", clean(note));
    }
    if let Some(command) = &finding.reproduce {
        let _ = writeln!(out, "  make it happen again:");
        let _ = writeln!(out, "    {}", clean(command));
    }
}

fn exit_words(exit: ProgramExit) -> String {
    match exit {
        ProgramExit::Code { code } => format!("exit code {code}"),
        ProgramExit::Signal { signal } => format!("ended by signal {signal}"),
        ProgramExit::TimedOut => "ended by the time limit".into(),
        ProgramExit::Blocked => "ended because every thread was blocked".into(),
        ProgramExit::Endless => "ended because every thread repeated itself for ever, or was blocked".into(),
        ProgramExit::Unknown => "not run".into(),
    }
}

fn plural(count: u64, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

/// What the run says, in one line that tells a program with bugs from one without.
fn result_words(findings: &[Finding], counts: Counts) -> String {
    if counts.proven == 0 {
        let predicted = if counts.predicted > 0 { format!(", {} predicted", counts.predicted) } else { String::new() };
        return format!("no bug was made to happen{predicted}");
    }
    let mut kinds: BTreeMap<FindingKind, u64> = BTreeMap::new();
    for finding in findings.iter().filter(|finding| matches!(finding.verdict, Verdict::Proven { .. })) {
        *kinds.entry(finding.kind).or_default() += 1;
    }
    let words: Vec<String> = kinds.into_iter().map(|(kind, count)| plural(count, kind_name(kind))).collect();
    format!("PROVEN: {}", words.join(", "))
}

/// All findings, one empty line behind each, then the summary of the run.
fn render(findings: &[Finding], run: &RunSummary, options: &Options) -> String {
    let painter = Painter { colour: options.colour };
    let mut out = String::new();
    for finding in by_importance(findings, options.shown) {
        one(&mut out, painter, finding);
        out.push('\n');
    }
    if options.shown == Shown::Claims {
        out.push_str(&undecided::lines(findings, &run.store, run.recordings));
    }
    let counts = Counts::of(findings);
    let _ = writeln!(out, "{}", result_words(findings, counts));
    let _ = writeln!(
        out,
        "{} proven, {} predicted, {} suspected, {} diverged, {} refuted",
        counts.proven, counts.predicted, counts.suspected, counts.diverged, counts.refuted
    );
    let _ = writeln!(
        out,
        "program: {}; {}, {}, {}{}",
        exit_words(run.exit),
        plural(u64::from(run.recordings), "recording"),
        plural(run.threads, "thread"),
        // Provocation watches, and keeps no events.
        if run.events == 0 { String::new() } else { format!("{}, ", plural(run.events, "event")) },
        plural(run.executions, "forced execution"),
    );
    if run.untried > 0 {
        let _ = writeln!(out, "note: the budget left {} untried", plural(run.untried, "candidate"));
    }
    if run.interrupted {
        let _ = writeln!(out, "note: rashomon did not come to its end");
    }
    for lost in Lost::notes(findings) {
        let _ = writeln!(out, "note: {}", clean(&lost));
    }
    for note in &run.notes {
        let _ = writeln!(out, "note: {}", clean(note));
    }
    // A trace that somebody else recorded is kept nowhere.
    if !run.store.is_empty() {
        let _ = writeln!(out, "kept in {}", clean(&run.store));
    }
    out
}
