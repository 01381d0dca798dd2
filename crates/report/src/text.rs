//! The report for people: kind and grade, both sides with full stacks, what they hold, where their threads come from, the
//! schedule in words, and as the last line of every finding the command that makes it happen again, ready to paste.

mod analysis;
mod groups;
mod labels;
pub mod names;
pub(crate) mod result;
mod stacks;
mod steps;
mod undecided;
mod warning;

use crate::analysis::Analysis;
use crate::format::{Format, Options, Rendered, Report};
use crate::lost::Lost;
use crate::order::{Shown, has_failed_once, was_forced_in_vain, was_not_replayed};
use crate::summary::{Counts, ProgramExit, RunSummary};
use crate::warning::Warning;
use labels::Labels;
use rashomon_event::harmless::harmless;
use rashomon_event::{Evidence, Finding, FindingKind, Frame, Grade, Harm, Replays, Side, Verdict, WitnessLevel};
use std::collections::BTreeSet;
use std::fmt::Write as _;

use rashomon_event::counted as plural;
pub use stacks::frame_words;
pub(crate) use stacks::place_words;

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
        FindingKind::DestroyAwaited => "destruction of an awaited condition variable",
        FindingKind::DoubleLock => "double lock",
        FindingKind::UseOfDestroyed => "use after destruction",
        FindingKind::ThreadLeak => "thread leak",
        FindingKind::UseAfterFree => "use after free",
        FindingKind::LifetimeRace => "lifetime race",
        FindingKind::UnsafeInSignal => "unsafe in a signal handler",
        FindingKind::WrongContext => "lock held in the wrong context",
        FindingKind::NotSerialisable => "regions that are not serialisable",
        FindingKind::AtomicityViolation => "atomicity violation",
    }
}

/// `2 unlocks of a lock that is not held`.
fn counted_kind(count: u64, kind: FindingKind) -> String {
    match (kind, kind_name(kind).split_once(" of ")) {
        (FindingKind::Endless, _) => plural(count, "endless execution"),
        (FindingKind::UseAfterFree, _) => format!("{} after free", plural(count, "use")),
        (FindingKind::UseOfDestroyed, _) => format!("{} after destruction", plural(count, "use")),
        (FindingKind::UnsafeInSignal, _) => format!("{} in a signal handler", plural(count, "unsafe call")),
        (FindingKind::WrongContext, _) => format!("{} held in the wrong context", plural(count, "lock")),
        (FindingKind::NotSerialisable, _) => format!("{} that are not serialisable", plural(count, "region")),
        (_, Some((noun, rest))) => format!("{} of {rest}", plural(count, noun)),
        (_, None) => plural(count, kind_name(kind)),
    }
}

pub const fn grade_name(grade: Grade) -> &'static str {
    match grade {
        Grade::CoEnabled => "co-enabled",
        Grade::Unordered => "unordered",
        Grade::Deadlocked => "deadlocked",
        Grade::Stuck => "stuck",
        Grade::Endless => "endless",
        Grade::Violated => "violated",
        Grade::Crashed => "crashed",
        Grade::WrongExit => "wrong exit code",
        Grade::Observed => "observed",
        Grade::Freed => "freed",
    }
}

pub(crate) fn verdict_words(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Proven(_) => verdict.grade().map_or_else(String::new, |grade| format!("proven, {}", grade_name(grade))),
        Verdict::Predicted => "predicted".into(),
        Verdict::Suspected => "suspected".into(),
        Verdict::Diverged { .. } => "diverged".into(),
        Verdict::Refuted => "refuted".into(),
    }
}

/// What a proof of this grade says, for who reads it the first time.
fn proof_words(finding: &Finding, grade: Grade) -> String {
    let kind = finding.kind;
    let words = match grade {
        Grade::Unordered if matches!(kind, FindingKind::LifetimeRace) => {
            "both were executed and nothing orders them: the object may be used before its life begins, or when it is over"
        }
        Grade::CoEnabled => "a forced execution stopped both threads right before these two accesses to the same bytes",
        Grade::Unordered => "both accesses were executed and nothing orders them under the rules of C++20 and of C11",
        Grade::Deadlocked => "an execution ended with these threads waiting for each other for ever",
        Grade::Stuck => "an execution ended with every thread waiting and nobody left to wake them",
        Grade::Endless => {
            "an execution came to where every thread that is left repeats the same state for ever, or is blocked: a livelock"
        }
        Grade::Violated => {
            "an execution interleaved the critical sections in this order, with an outcome that no serial order of them had"
        }
        Grade::Crashed => "an execution under the stored schedule was ended by a signal",
        Grade::WrongExit => "an execution under the stored schedule ended with this exit code",
        Grade::Observed => {
            let which = if is_foreseen(finding) { "a forced" } else { "the recorded" };
            return match misuse_words(kind) {
                Some(why) => format!("{which} execution did it: {why}"),
                None => format!("{which} execution did it"),
            };
        }
        Grade::Freed => "an execution did it: what lies there may belong to somebody else by then, whatever orders the threads",
    };
    words.into()
}

/// A wrong use that another order of a recording shows.
fn is_foreseen(finding: &Finding) -> bool {
    finding.kind.is_misuse() && finding.evidence == Evidence::Conflict
}

/// Why it is wrong.
const fn misuse_words(kind: FindingKind) -> Option<&'static str> {
    Some(match kind {
        FindingKind::UnlockNotHeld => "only the thread that holds a lock may release it, or it protects nothing",
        FindingKind::DestroyLocked => "who holds the lock, or waits for it, goes on with what is no lock any more",
        FindingKind::DestroyAwaited => "what the other thread waits for is no more, and nobody can be sure to wake it",
        FindingKind::DoubleLock => "the lock is not recursive",
        FindingKind::UseOfDestroyed => "what lies there protects nobody, and wakes nobody",
        FindingKind::ThreadLeak => "what the system keeps of a thread is given back when it is joined or detached",
        _ => return None,
    })
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
        Verdict::Proven(_) => proof_words(finding, finding.verdict.grade()?),
        Verdict::Predicted => format!("another schedule of the recorded execution shows it; {}", unforced_words(finding)),
        Verdict::Suspected if finding.kind == FindingKind::ThreadLeak => {
            "what the system keeps of a thread is given back when it is joined or detached, or when the process ends".into()
        }
        Verdict::Suspected if finding.kind == FindingKind::UseAfterFree => {
            "an execution did it when the process was about to end".into()
        }
        Verdict::Suspected if finding.kind.is_misuse() && !is_foreseen(finding) => {
            "the recorded execution did it, and the lock, which checks for errors, refused: \
                a bug unless the program looks at the result"
                .into()
        }
        Verdict::Suspected if has_failed_once(finding) && was_not_replayed(finding) => {
            "an execution ended so; there was no time to replay it".into()
        }
        Verdict::Suspected if has_failed_once(finding) => "an execution ended so; no replay of it has shown it again".into(),
        Verdict::Suspected => match finding.witness_level {
            Some(WitnessLevel::Synchronisation) => {
                let unforced = unforced_words(finding);
                format!("the synchronisation allows it if no branch depends on the values that change; {unforced}")
            }
            _ if finding.steps.is_empty() && finding.schedule.is_none() => {
                "an analysis suspects it; no schedule is known that shows it".into()
            }
            _ => format!("an analysis suspects it; {}", unforced_words(finding)),
        },
        Verdict::Diverged { expected, actual } => {
            format!("the forced execution left the schedule: expected {}; instead {}", clean(expected), clean(actual))
        }
        Verdict::Refuted if finding.evidence == Evidence::Hybrid => {
            "in no order of the recorded execution in which every read sees what it saw does it happen".into()
        }
        Verdict::Refuted => return None,
    })
}

/// Whether two threads stand at the same place, and nothing else is to be said of them.
fn is_like(one: &Side, other: &Side) -> bool {
    let places = |stack: &[Frame]| stack.iter().map(|frame| (frame.module.clone(), frame.offset)).collect::<Vec<_>>();
    one.action == other.action
        && one.held.is_empty()
        && other.held.is_empty()
        && places(&one.stack) == places(&other.stack)
        && places(&one.created_at) == places(&other.created_at)
}

/// Of what is not proven and has a schedule.
fn unforced_words(finding: &Finding) -> &'static str {
    if was_forced_in_vain(finding) { "forcing that has not shown it" } else { "it was not forced" }
}

/// Of what another order shows.
const ORDERED_BY_CHANCE: &str = "in the recorded execution neither creation nor joining of threads orders them; it happens in \
    another order, in which every thread reads what it read";

const fn evidence_words(evidence: Evidence) -> &'static str {
    match evidence {
        Evidence::HappensBefore => "unordered in the recorded execution",
        Evidence::Hybrid => {
            "no common lock; in the recorded execution only the order of lock acquisitions, atomic operations or semaphore posts \
             orders them, which may be another one"
        }
        Evidence::Conflict => {
            "accesses to the same bytes in the recorded execution, ordered by neither creation nor joining of threads"
        }
        Evidence::Lockset => "no lock protects this memory in all accesses of the recorded execution",
        Evidence::LockOrder => "a cycle in the order in which locks are taken",
        Evidence::StaleValue => {
            "one thread reads in one critical section and writes in a later one; another thread's write may come between them"
        }
        Evidence::Interposed => {
            "one thread uses a variable in two critical sections; no serial order has what another thread may do between them"
        }
        Evidence::Apart => "each of two threads treats both variables, in two critical sections",
        Evidence::Dependences => "dependences correlate the variables, and no lock is held throughout both operations on them",
        Evidence::View => "what one thread treats together in one critical section, the other one treats in two",
        Evidence::Observed => "it happened in an execution",
    }
}

pub(crate) fn thread_words(path: &str) -> String {
    if path == "main" { "main thread".into() } else { format!("thread {}", clean(path)) }
}

/// How much further in a line goes on.
const FURTHER: usize = 2;

/// How findings look.
struct Look<'a> {
    painter: Painter,
    /// Paths below it are seen from it.
    folder: &'a str,
    width: usize,
    full_stacks: bool,
    full_schedule: bool,
}

impl<'a> Look<'a> {
    fn of(options: &'a Options) -> Self {
        Self {
            painter: Painter { colour: options.colour },
            folder: &options.folder,
            width: options.width,
            full_stacks: options.full_stacks,
            full_schedule: options.full_schedule,
        }
    }

    /// A line, wrapped where it is too wide; what it goes on with stands further in.
    fn line(&self, out: &mut String, indent: &str, text: &str) {
        let further = " ".repeat(indent.chars().count() + FURTHER);
        let options = textwrap::Options::new(self.width)
            .initial_indent(indent)
            .subsequent_indent(&further)
            .break_words(false)
            .word_splitter(textwrap::WordSplitter::NoHyphenation);
        for line in textwrap::wrap(text, options) {
            let _ = writeln!(out, "{line}");
        }
    }

    /// `like_it`: others that stand where it does, and say the same.
    fn side(&self, out: &mut String, side: &Side, like_it: &[&Side]) {
        let threads: Vec<String> =
            std::iter::once(side).chain(like_it.iter().copied()).map(|side| thread_words(&side.thread)).collect();
        let (threads, were) = (threads.join(", "), if like_it.is_empty() { "was" } else { "were" });
        let action = clean(&side.action);
        let action = action.strip_prefix("was ").map_or_else(|| action.to_string(), |rest| format!("{were} {rest}"));
        let head = format!("{threads}: {action}");
        self.line(out, "  ", &self.painter.paint(Tint::Strong, &head));
        self.stack(out, "    ", &side.stack);
        for held in &side.held {
            let holding = format!("holding {}, taken at", clean(&held.words()));
            if self.full_stacks {
                let _ = writeln!(out, "    {holding}");
                self.stack(out, "      ", &held.acquired_at);
            } else {
                self.line(out, "    ", &format!("{holding} {}", self.innermost(&held.acquired_at)));
            }
        }
        if side.created_at.is_empty() {
            return;
        }
        let created = format!("{threads} {were} created at");
        if self.full_stacks {
            let _ = writeln!(out, "    {created}");
            self.stack(out, "      ", &side.created_at);
        } else {
            self.line(out, "    ", &format!("{created} {}", self.innermost(&side.created_at)));
        }
    }

    /// One finding, with those of the same cause. `told`: notes of findings before it, which it does not repeat.
    fn group(&self, out: &mut String, group: &groups::Group<'_>, told: &mut BTreeSet<String>) {
        let (finding, labels) = Labels::put_in(group[0]);
        let finding = &finding;
        let tint = if finding.verdict.is_proven() { Tint::Alarm } else { Tint::Warning };
        let head = format!("{} ({})", kind_name(finding.kind), verdict_words(&finding.verdict));
        let id = self.painter.paint(Tint::Quiet, &format!("[{}]", clean(&finding.id)));
        let subject = self.painter.paint(Tint::Strong, &clean(&finding.subject));
        self.line(out, "", &format!("{} {id}: {subject}", self.painter.paint(tint, &head)));
        for line in labels.legend() {
            self.line(out, "  ", &clean(&line));
        }
        for (number, side) in finding.sides.iter().enumerate() {
            let alike = |other: &&Side| finding.sides.len() > 2 && is_like(other, side);
            if !finding.sides[..number].iter().any(|earlier| alike(&earlier)) {
                self.side(out, side, &finding.sides[number + 1..].iter().filter(alike).collect::<Vec<_>>());
            }
        }
        self.steps(out, finding);
        for phrase in phrases(finding) {
            self.line(out, "  = ", &phrase);
        }
        let from_the_folder = |note: &String| match self.folder {
            "" => clean(note),
            folder => clean(&note.replace(&format!("{folder}/"), "")),
        };
        for note in finding.notes.iter().map(from_the_folder) {
            if told.insert(note.clone()) {
                self.line(out, "  = ", &format!("note: {note}"));
            }
        }
        self.members(out, group);
        if let Some(command) = &finding.reproduce {
            let _ = writeln!(out, "  make it happen again:");
            let _ = writeln!(out, "    {}", clean(command));
        }
    }
}

/// What the two orders of a race did.
pub(crate) const fn harm_words(harm: Harm) -> &'static str {
    match harm {
        Harm::Crash => "crash: one order of the accesses ends the program by a signal",
        Harm::Hang => "hang: in one order of the accesses the program never ends",
        Harm::Result => "another result: the order of the accesses decides how the program ends, or what it prints",
        Harm::NoneSeen => "no difference seen between the two orders of the accesses",
    }
}

/// What is said of a finding, but for its notes.
pub(crate) fn phrases(finding: &Finding) -> Vec<String> {
    let mut phrases = Vec::new();
    phrases.extend(explanation(finding));
    phrases.extend(finding.verdict.replays().map(|replays| replays_words(finding, replays)));
    phrases.extend(finding.harm.map(|harm| format!("consequence: {}", harm_words(harm))));
    let evidence = if is_foreseen(finding) { ORDERED_BY_CHANCE } else { evidence_words(finding.evidence) };
    phrases.push(format!("evidence: {evidence}"));
    if finding.occurrences > 1 {
        phrases.push(match finding.evidence {
            Evidence::Observed => format!("seen {} times", finding.occurrences),
            _ => format!("{} pairs of events at these places", finding.occurrences),
        });
    }
    phrases
}

pub(crate) fn exit_words(exit: ProgramExit) -> String {
    match exit {
        ProgramExit::Code { code } => format!("exit code {code}"),
        ProgramExit::Signal { signal } => format!("ended by signal {signal}"),
        ProgramExit::TimedOut => "ended by the time limit".into(),
        ProgramExit::Blocked => "ended because every thread was blocked".into(),
        ProgramExit::Endless => "ended because every thread repeated itself for ever, or was blocked".into(),
        ProgramExit::Unknown => "not run".into(),
    }
}

/// All findings, one empty line behind each, then the summary of the run; the result is the last line.
fn render(findings: &[Finding], run: &RunSummary, options: &Options) -> String {
    let look = Look::of(options);
    let (mut out, mut told) = (String::new(), BTreeSet::new());
    let groups = groups::groups(findings, options.shown, options.ungrouped);
    for group in &groups {
        look.group(&mut out, group, &mut told);
        out.push('\n');
    }
    if options.shown == Shown::Claims {
        out.push_str(&undecided::lines(&look, findings, run));
        out.push_str(&undecided::unforced(&look, findings, run));
    }
    let counts = Counts::of(findings);
    let _ = writeln!(
        out,
        "{} proven, {} predicted, {} suspected, {} diverged, {} refuted",
        counts.proven, counts.predicted, counts.suspected, counts.diverged, counts.refuted
    );
    let program = format!(
        "program: {}; {}, {}{}{}",
        exit_words(run.exit),
        plural(u64::from(run.recordings), "recording"),
        // Exploration looks at schedules, not at recordings of them.
        if run.threads == 0 { String::new() } else { format!("{}, ", plural(run.threads, "thread")) },
        // Provocation watches, and keeps no events.
        if run.events == 0 { String::new() } else { format!("{}, ", plural(run.events, "event")) },
        plural(run.executions, "forced execution"),
    );
    look.line(&mut out, "", &program);
    if run.untried > 0 {
        let _ = writeln!(out, "note: the budget left {} untried", plural(run.untried, "suspicion"));
    }
    if run.interrupted {
        let _ = writeln!(out, "note: rashomon did not come to its end");
    }
    for note in Lost::notes(findings).iter().chain(&run.notes) {
        look.line(&mut out, "note: ", &clean(note));
    }
    // A trace that somebody else recorded is kept nowhere.
    if !run.store.is_empty() {
        let _ = writeln!(out, "kept in {}", clean(&run.store));
    }
    look.line(&mut out, "", &result::result_words(findings, &groups, counts, run));
    out
}
