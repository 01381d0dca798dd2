//! Recorded executions that ended wrongly: by a fault, an abort, or with an exit code that is not the right one.
//!
//! What is right is said by [`Norm`]: with `--expect-exit` that code. Without it a program may end with any code, as tests do
//! that fail in every schedule; but one that ends with 0 under one schedule and with another code under the next does what its
//! schedule decides, and the other code is wrong. A fault or an abort is always wrong. Signals that others send to end a program
//! (SIGTERM, SIGPIPE, …) say nothing about it.
//!
//! It is proven by the recorded schedule, replayed, ending the same way again, while the schedule of a recording that ended well,
//! replayed after it, ends as well again, with the same exit code: else what earlier executions left behind (a file, a port in
//! use) decides and not the schedule, or nothing is known of what decides. Where no recording ended well there is nothing to
//! compare with, and the replay alone counts.

use crate::check::prove::Prover;
use crate::error::PipelineError;
use crate::findings::compose::Composer;
use crate::findings::identity::{finding_id, is_system, place_key};
use crate::findings::symbols::Symbols;
use rashomon_confirm::execution::OUTPUT_FILE;
use rashomon_confirm::force::{attempt, forced_session};
use rashomon_confirm::{Attempt, Ending, Output, execute};
use rashomon_event::library::is_library;
use rashomon_event::{
    ContextId, EventIndex, EventKind, Evidence, Finding, FindingKind, Grade, Replays, Schedule, Side, SiteId, ThreadId, Trial,
};
use rashomon_explore::Failure;
use rashomon_report::ProgramExit;
use rashomon_report::order::NOT_REPLAYED;
use rashomon_trace::{After, Crash, LoadedTrace, RunHeader};
use rustc_hash::FxHashMap;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;
use std::sync::Arc;

/// Signals that a program brings upon itself: SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, SIGSYS.
const OWN: [i32; 7] = [4, 5, 6, 7, 8, 11, 31];
const SIGABRT: i32 = 6;

/// Whether a program brings that signal upon itself; others say nothing about it.
pub(crate) fn is_own(signal: i32) -> bool {
    OWN.contains(&signal)
}

/// What exit is right, as all recordings together show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Norm {
    code: Option<i32>,
}

impl Norm {
    pub fn of(expected: Option<i32>, exits: impl IntoIterator<Item = ProgramExit>) -> Self {
        let zero = || exits.into_iter().any(|exit| exit == ProgramExit::Code { code: 0 }).then_some(0);
        Self { code: expected.or_else(zero) }
    }

    /// What an exit can be called before all are known.
    pub const fn at_worst(expected: Option<i32>) -> Self {
        match expected {
            None => Self { code: Some(0) },
            some => Self { code: some },
        }
    }

    /// The one code that is right, if there is one.
    pub const fn code(self) -> Option<i32> {
        self.code
    }

    pub fn is_wrong(self, exit: ProgramExit) -> bool {
        match exit {
            ProgramExit::Signal { signal } => is_own(signal),
            ProgramExit::Code { code } => self.code.is_some_and(|right| right != code),
            ProgramExit::TimedOut | ProgramExit::Blocked | ProgramExit::Endless | ProgramExit::Unknown => false,
        }
    }
}

/// The failure that an exit may be, once the norm is known.
pub fn failure_of(exit: ProgramExit) -> Option<Failure> {
    match exit {
        ProgramExit::Signal { signal } if is_own(signal) => Some(Failure::Signal(signal)),
        ProgramExit::Code { code } => Some(Failure::Code(code)),
        _ => None,
    }
}

/// What the kernel said of a crash follows.
const KERNEL: &str = "the kernel said: ";
/// Among so many events the last one of the program's own code is looked for. Behind what made an exit code wrong a framework of
/// tests may have done much by itself.
const RECENT_EVENTS: usize = 256;
const EVENTS_BEFORE_EXIT: usize = 1 << 20;
/// Threads that are shown.
const MOST_THREADS: usize = 64;

impl<S: Symbols + ?Sized> Composer<'_, S> {
    /// A failure that no blocked thread shows: the thread that had the last turn (of a free run, did something last) is where it
    /// came about. The others are shown where they did something last.
    pub fn of_failure(&self, failure: Failure) -> Finding {
        let trace = &self.loaded.trace;
        let mut known: FxHashMap<(SiteId, ContextId), bool> = FxHashMap::default();
        let mut own = |index: &EventIndex| {
            let event = trace.event(*index);
            *known.entry((event.site, event.context)).or_insert_with(|| {
                let frame = self.describer.place_of(*index);
                frame.is_some_and(|frame| !is_library(&frame) && frame.file.as_deref().is_some_and(|file| !is_system(file)))
            })
        };
        let runner = self.loaded.turns().last().map(|(thread, _)| *thread);
        let ran = |index: &EventIndex| runner.is_none_or(|runner| trace.event(*index).thread == runner);
        let is_exit = matches!(failure, Failure::Code(_));
        let most = if is_exit { EVENTS_BEFORE_EXIT } else { RECENT_EVENTS };
        let mut last = trace.indices().rev().filter(ran).take(most).find(&mut own);
        if last.is_none() && is_exit {
            // The harness of tests ran last, and has no code of the program.
            last = trace.indices().rev().take(most).find(&mut own);
        }
        let last = last.or_else(|| trace.indices().rev().find(ran));
        let side = |index: EventIndex, action: &str| {
            let event = trace.event(index);
            match event.kind {
                // It was somewhere before the program's own code.
                EventKind::Start => Side {
                    stack: Vec::new(),
                    ..self.describer.side(
                        event.thread,
                        format!("{action}, before any operation that is recorded"),
                        event.site,
                        event.context,
                        None,
                    )
                },
                _ => self.describer.side(event.thread, action.into(), event.site, event.context, None),
            }
        };
        let mut places = vec![failure.to_string()];
        // A thread that has done nothing is called by where it was created.
        let named = last
            .map(|index| if trace.kind(index) == EventKind::Start { self.creation_of(index).unwrap_or(index) } else { index });
        places.extend(named.map(|index| place_key(trace, self.symbols, trace.event(index).site, trace.event(index).context)));
        let story = self.story(runner);
        let did = |index| if ran(&index) { "ran last" } else { "was the last in the program's own code" };
        let mut sides: Vec<Side> = last.map(|index| side(index, did(index))).into_iter().collect();
        sides.extend(story.sides);
        let ran_last = last.map(|index| trace.event(index).thread);
        let others = self.standing().into_iter().filter(|(thread, _)| Some(*thread) != ran_last);
        sides.extend(others.take(MOST_THREADS).map(|(_, index)| side(index, "was here at that time")));
        let kernel = self.loaded.header.crash.iter().map(|crash| format!("{KERNEL}{crash}"));
        Finding {
            subject: failure.to_string(),
            sides,
            notes: kernel.chain(story.notes).collect(),
            ..Finding::suspected(FindingKind::Failure, Evidence::Observed, finding_id(FindingKind::Failure, places))
        }
    }

    /// Where the thread of an event was created.
    fn creation_of(&self, event: EventIndex) -> Option<EventIndex> {
        let (trace, child) = (&self.loaded.trace, self.loaded.trace.event(event).thread);
        trace.indices().find(|index| trace.kind(*index) == EventKind::Fork { child })
    }

    /// The last event of each thread that had begun and not ended.
    fn standing(&self) -> Vec<(ThreadId, EventIndex)> {
        let trace = &self.loaded.trace;
        let mut last: Vec<Option<EventIndex>> = vec![None; trace.threads.len()];
        for index in trace.indices() {
            let event = trace.event(index);
            let place = &mut last[event.thread.index()];
            *place = if event.kind == EventKind::End { None } else { Some(index) };
        }
        (0..).map(ThreadId).zip(last).filter_map(|(thread, index)| Some((thread, index?))).collect()
    }
}

/// A failure of a recording that there was no time to read: where it came about is not known.
pub(crate) fn unread(failure: Failure, header: &RunHeader) -> Finding {
    let kernel = header.crash.iter().map(|crash| format!("{KERNEL}{crash}"));
    Finding {
        subject: failure.to_string(),
        notes: kernel.chain([NOT_REPLAYED.to_owned()]).collect(),
        ..Finding::suspected(
            FindingKind::Failure,
            Evidence::Observed,
            finding_id(FindingKind::Failure, vec![failure.to_string()]),
        )
    }
}

/// A recording that ended wrongly, and what it is compared with.
pub struct Replayed<'r> {
    pub exit: ProgramExit,
    pub recorded: &'r Schedule,
    /// Of recordings that ended well, with the codes that they ended with; empty: none did.
    pub controls: &'r [(Arc<Schedule>, i32)],
}

/// Recordings that ended well and are replayed for comparison, until one does so again.
pub const MOST_CONTROLS: usize = 3;

/// What replaying schedules that ended well says of one that did not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compared {
    /// It ended well again: the schedule decides.
    EndsWell,
    /// It fails now as the other one does.
    FailsAlike,
    /// None ended as it had when it was recorded.
    Unknown,
}

impl Compared {
    /// Why it is no proof.
    pub const fn objection(self) -> Option<&'static str> {
        match self {
            Self::EndsWell => None,
            Self::FailsAlike => Some(
                "a schedule that ended well when it was recorded ends so, too, now: what earlier executions left behind \
                    decides, not the schedule; --before-each restores it",
            ),
            Self::Unknown => Some(
                "no schedule that ended well when it was recorded did so again: whether the schedule decides is not known; \
                    --before-each restores what executions leave behind",
            ),
        }
    }
}

impl<S: Symbols + ?Sized> Prover<'_, S> {
    /// Makes a recorded failure happen again, and what ended well end well again.
    pub fn replay_failure(
        &mut self,
        finding: &mut Finding,
        replayed: &Replayed<'_>,
        session: &Path,
    ) -> Result<(), PipelineError> {
        finding.schedule = Some(replayed.recorded.clone());
        for number in 0..self.forcing.times.max(1) {
            let session = if number == 0 { session } else { self.scratch };
            let attempt = self.run_and_keep(replayed.recorded, After::Stop, session)?;
            let Some(loaded) = self.failed_again(finding, replayed.exit, &attempt, (replayed.recorded, session)) else {
                finding.notes.push(format!(
                    "it happened when recorded, but not when the recorded schedule was replayed: {}",
                    attempt.outcome
                ));
                return Ok(());
            };
            if number == 0 {
                self.draw(finding, &loaded, replayed.recorded.quantum);
            }
            if let (0, Some(crash)) = (number, crash_of(session)) {
                let again = format!("{KERNEL}{crash}");
                if !finding.notes.contains(&again) {
                    finding.notes.push(format!("when replayed, {again}"));
                }
            }
            if number == 0 && replayed.exit == (ProgramExit::Signal { signal: SIGABRT }) {
                finding.notes.extend(last_words(&session.join(OUTPUT_FILE)).map(|words| format!("its last words: {words}")));
            }
        }
        if !replayed.controls.is_empty()
            && let Some(objection) = self.compare(finding, replayed.exit, replayed.controls)?.objection()
        {
            finding.notes.push(objection.into());
            return Ok(());
        }
        let grade = if matches!(replayed.exit, ProgramExit::Signal { .. }) { Grade::Crashed } else { Grade::WrongExit };
        // The recorded execution was the first that showed it.
        finding.advance(Trial::Shown { grade, replays: Replays::all(self.forcing.times.max(1)) });
        Ok(())
    }

    /// Replays schedules that ended well, each to the program's end, until one does so again.
    pub fn compare(
        &mut self,
        finding: &Finding,
        failed: ProgramExit,
        controls: &[(Arc<Schedule>, i32)],
    ) -> Result<Compared, PipelineError> {
        for (schedule, code) in controls {
            let attempt = self.run_and_keep(schedule, After::Continue, self.scratch)?;
            if self.failed_again(finding, failed, &attempt, (schedule, self.scratch)).is_some() {
                return Ok(Compared::FailsAlike);
            }
            if attempt.execution.ending == Ending::Code(*code) && attempt.outcome.is_orderly() {
                return Ok(Compared::EndsWell);
            }
        }
        Ok(Compared::Unknown)
    }

    /// The trace of an execution, from the session, that failed as the finding says, and at the same place.
    fn failed_again(
        &self,
        finding: &Finding,
        exit: ProgramExit,
        attempt: &Attempt,
        (schedule, session): (&Schedule, &Path),
    ) -> Option<LoadedTrace> {
        if !is_same(exit, attempt.execution.ending) || !attempt.outcome.is_orderly() {
            return None;
        }
        let (failure, loaded) = failure_of(exit).zip(self.load_of_proof(schedule, session).ok())?;
        let shown = Composer::new(&loaded, self.symbols, schedule.quantum).of_failure(failure).id;
        (shown == finding.id).then_some(loaded)
    }

    fn run_and_keep(&mut self, schedule: &Schedule, after: After, session: &Path) -> Result<Attempt, PipelineError> {
        self.executions += 1;
        forced_session(schedule, after, session, &self.forcing)?;
        let execution = execute(self.program, session, &self.forcing.input, Output::Keep, self.forcing.time())?;
        Ok(attempt(schedule, session, execution)?)
    }
}

fn is_same(exit: ProgramExit, ending: Ending) -> bool {
    match (exit, ending) {
        (ProgramExit::Signal { signal }, Ending::Signal(again)) => signal == again,
        (ProgramExit::Code { code }, Ending::Code(again)) => code == again,
        _ => false,
    }
}

/// What ended the program of an execution.
pub fn crash_of(session: &Path) -> Option<Crash> {
    RunHeader::read(session).ok()?.crash
}

/// Bytes at the end of an output that are read, and lines of them that are told.
const END: u64 = 4096;
const LINES: usize = 4;

/// The last lines that an execution wrote: what a failed assertion, an uncaught exception or a damaged heap says of itself.
fn last_words(output: &Path) -> Option<String> {
    let mut file = rashomon_files::open(output, rashomon_files::Links::Refused).ok()?;
    let length = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(END))).ok()?;
    let mut bytes = Vec::new();
    file.take(END).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let last = lines[lines.len().saturating_sub(LINES)..].join(" / ");
    // What a program writes may be anything; a report is read on a terminal.
    let plain: String = last.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    (!plain.is_empty()).then_some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn code(code: i32) -> ProgramExit {
        ProgramExit::Code { code }
    }

    #[test]
    fn what_fails_in_every_schedule_is_no_finding() {
        let norm = Norm::of(None, [code(1), code(1), code(3)]);
        assert!(!norm.is_wrong(code(1)) && !norm.is_wrong(code(3)));
    }

    #[test]
    fn zero_under_one_schedule_makes_other_codes_wrong() {
        for exits in [[code(0), code(3)], [code(3), code(0)]] {
            let norm = Norm::of(None, exits);
            assert!(norm.is_wrong(code(3)) && !norm.is_wrong(code(0)));
        }
    }

    #[test]
    fn what_is_expected_is_right() {
        let norm = Norm::of(Some(3), [code(0), code(3)]);
        assert!(norm.is_wrong(code(0)) && !norm.is_wrong(code(3)));
    }

    #[test]
    fn faults_are_wrong_and_being_ended_is_not() {
        let norm = Norm::of(None, []);
        let signal = |signal| ProgramExit::Signal { signal };
        assert!([6, 11].iter().all(|&number| norm.is_wrong(signal(number))));
        assert!([2, 9, 13, 15].iter().all(|&number| !norm.is_wrong(signal(number)) && failure_of(signal(number)).is_none()));
        assert!(!norm.is_wrong(ProgramExit::TimedOut) && !norm.is_wrong(ProgramExit::Blocked));
    }

    #[test]
    fn the_last_lines_are_told_without_what_a_terminal_obeys() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("output");
        std::fs::write(&path, "one\ntwo\n\n\x1b[31mp: a.c:3: main: Assertion `x' failed.\n").unwrap();
        assert_eq!(last_words(&path).unwrap(), "one / two /  [31mp: a.c:3: main: Assertion `x' failed.");
        std::fs::write(&path, "\n").unwrap();
        assert_eq!(last_words(&path), None);
        assert_eq!(last_words(&folder.path().join("none")), None);
    }
}
