//! The host side of provocation: one free execution in which threads are held at descriptors until others arrive.
//!
//! After the RaceHunter paper (Programming and Computer Software 50(6), 2024), §3, "Data Race Provocation". Guarantee: a catch
//! that is reported happened: the runtime held one thread right before its access while another stood right before a conflicting
//! one.

use crate::error::ConfirmError;
use crate::execution::{Execution, Input, Output, Program, Time, execute};
use crate::force::new_session;
use rashomon_event::ModuleInfo;
use rashomon_files::Links;
use rashomon_trace::control::{self, After, ControlRequest};
use rashomon_trace::modules::{self, ModuleLine};
use rashomon_trace::{DescriptorState, HoldEnd, ProvokeRequest, Provoked, RunMode, Step, TraceError};
use std::collections::BTreeMap;
use std::path::Path;

/// What came of one provoking execution.
#[derive(Clone, Debug)]
pub struct ProvokedRun {
    pub execution: Execution,
    pub provoked: Provoked,
    /// Where its modules lay.
    pub modules: Vec<ModuleInfo>,
}

/// How provoking executions are made.
#[derive(Clone, Debug)]
pub struct Setting {
    pub input: Input,
    pub output: Output,
    pub time: Time,
    /// [`After::Stop`]: the process ends when no hold is left to be made.
    pub after: After,
    pub processes: u64,
}

/// An empty session in which a program will be provoked.
pub fn provoking_session(request: &ProvokeRequest<'_>, session: &Path, after: After, processes: u64) -> Result<(), ConfirmError> {
    let control = ControlRequest { mode: RunMode::Free, after, processes, provoke: Some(request), ..ControlRequest::default() };
    new_session(session, &control::encode(&control)?)
}

/// Executes the program once.
pub fn provoke(
    program: &Program,
    request: &ProvokeRequest<'_>,
    session: &Path,
    setting: &Setting,
) -> Result<ProvokedRun, ConfirmError> {
    provoking_session(request, session, setting.after, setting.processes)?;
    let execution = execute(program, session, &setting.input, setting.output, setting.time)?;
    let mut provoked = Provoked::read(session)?.unwrap_or_default();
    // An execution that ended before it began has met nothing.
    provoked.descriptors.resize(request.watched.len(), DescriptorState::default());
    Ok(ProvokedRun { execution, provoked, modules: modules_of(session)? })
}

fn modules_of(session: &Path) -> Result<Vec<ModuleInfo>, ConfirmError> {
    let path = session.join(rashomon_abi::MODULES_FILE);
    let bytes = match rashomon_files::read(&path, Links::Refused, modules::LARGEST) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(TraceError::Io { action: "read", path, source }.into()),
    };
    let lines = modules::parse(&path, &bytes)?.lines.into_iter();
    let loaded = lines.filter_map(|line| match line {
        ModuleLine::Loaded { module, .. } => Some(module),
        ModuleLine::Unloaded { .. } => None,
    });
    Ok(loaded.collect())
}

/// What came of the holds of an execution at one side of a pair, each made in full: for as long as anybody could arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Attempts {
    /// The other side could come: whoever has it before him ran until he could not any more.
    pub fair: u64,
    /// Another hold let the other side pass: whoever has it before him ran while a thread was held elsewhere, and could not run
    /// any more now, or had nothing left to do.
    pub missed: u64,
    /// The other side had come for the last time while nobody was held, or came never.
    pub late: u64,
}

/// The time of one hold in the log.
struct Span {
    begin: usize,
    end: usize,
    holder: u32,
    descriptor: usize,
    how: HoldEnd,
}

impl Span {
    fn contains(&self, step: usize) -> bool {
        (self.begin..self.end).contains(&step)
    }
}

fn spans(log: &[Step]) -> Vec<Span> {
    let mut spans = Vec::new();
    let mut open = None;
    for (at, step) in log.iter().enumerate() {
        match *step {
            Step::Hold { descriptor, thread } => open = Some((at, thread, descriptor)),
            Step::End { descriptor, how } => {
                let begun = open.take().filter(|(_, _, held)| *held == descriptor);
                spans.extend(begun.map(|(begin, holder, _)| Span { begin, end: at, holder, descriptor, how }));
            }
            Step::Match { .. } | Step::Ran { .. } => {}
        }
    }
    spans
}

/// Attempts with a thread held at descriptor `held` while `other` could come.
pub fn attempts(log: &[Step], held: usize, other: usize) -> Attempts {
    let mut attempts = Attempts::default();
    let spans = spans(log);
    let came: Vec<(usize, u32)> = log
        .iter()
        .enumerate()
        .filter_map(|(at, step)| match *step {
            Step::Match { descriptor, thread } if descriptor == other => Some((at, thread)),
            _ => None,
        })
        .collect();
    for (number, span) in spans.iter().enumerate() {
        if span.descriptor != held || !matches!(span.how, HoldEnd::Blocked | HoldEnd::Polling | HoldEnd::TimedOut) {
            continue;
        }
        // The last time that each of the others came before.
        let mut before: BTreeMap<u32, usize> = BTreeMap::new();
        for &(at, thread) in came.iter().take_while(|(at, _)| *at < span.begin).filter(|(_, thread)| *thread != span.holder) {
            before.insert(thread, at);
        }
        let chances = before.iter().map(|(&thread, &last)| chance(log, &spans[..=number], &came, thread, last));
        // Who has not come so far may be gone, unless it comes later.
        let comes = || came.iter().any(|(at, thread)| *at > span.begin && *thread != span.holder);
        match chances.max().unwrap_or(if comes() { Chance::Fair } else { Chance::Late }) {
            Chance::Fair => attempts.fair += 1,
            Chance::Missed => attempts.missed += 1,
            Chance::Late => attempts.late += 1,
        }
    }
    attempts
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Chance {
    Late,
    Missed,
    Fair,
}

/// Whether that thread, which came for the last time at step `last`, could come in the last of the holds.
fn chance(log: &[Step], spans: &[Span], came: &[(usize, u32)], thread: u32, last: usize) -> Chance {
    let Some((span, earlier)) = spans.split_last() else { return Chance::Fair };
    if !came.iter().any(|(at, who)| *at > span.begin && *who == thread) {
        return if earlier.iter().any(|earlier| earlier.contains(last)) { Chance::Missed } else { Chance::Late };
    }
    let did = |from: usize, to: usize| {
        let own = |step: &Step| matches!(*step, Step::Match { thread: who, .. } | Step::Ran { thread: who } if who == thread);
        log.get(from..to).unwrap_or_default().iter().rposition(own).map(|at| from + at)
    };
    if did(span.begin, span.end).is_some() {
        return Chance::Fair;
    }
    // It could not run: what did it do when it ran for the last time, during a hold or between two? If it came then, it was let
    // pass.
    let Some(active) = did(0, span.begin) else { return Chance::Fair };
    let since = match earlier.iter().rfind(|earlier| earlier.begin <= active) {
        Some(earlier) if earlier.contains(active) => earlier.begin,
        Some(earlier) => earlier.end,
        None => 0,
    };
    if last >= since { Chance::Missed } else { Chance::Fair }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOLD: Step = Step::Hold { descriptor: 0, thread: 1 };
    const END: Step = Step::End { descriptor: 0, how: HoldEnd::Blocked };
    const OTHER: Step = Step::Match { descriptor: 1, thread: 2 };
    const RAN: Step = Step::Ran { thread: 2 };
    const ELSEWHERE: Step = Step::Hold { descriptor: 2, thread: 1 };
    const ELSEWHERE_ENDS: Step = Step::End { descriptor: 2, how: HoldEnd::Blocked };

    fn fair(fair: u64) -> Attempts {
        Attempts { fair, ..Attempts::default() }
    }

    fn missed(missed: u64) -> Attempts {
        Attempts { missed, ..Attempts::default() }
    }

    #[test]
    fn a_hold_is_fair_if_the_other_side_is_still_to_come() {
        assert_eq!(attempts(&[HOLD, END, OTHER], 0, 1), fair(1));
        assert_eq!(attempts(&[HOLD, END], 0, 1), Attempts { late: 1, ..Attempts::default() });
        assert_eq!(attempts(&[OTHER, HOLD, END], 0, 1), Attempts { late: 1, ..Attempts::default() });
        assert_eq!(attempts(&[OTHER, HOLD, RAN, END, OTHER], 0, 1), fair(1));
        for how in [HoldEnd::CutShort, HoldEnd::Caught] {
            assert_eq!(attempts(&[HOLD, Step::End { descriptor: 0, how }, OTHER], 0, 1), Attempts::default());
        }
        // Its own accesses there are not the other side's.
        let own = Step::Match { descriptor: 1, thread: 1 };
        assert_eq!(attempts(&[own, HOLD, END, OTHER], 0, 1), fair(1));
    }

    #[test]
    fn a_hold_elsewhere_can_take_a_chance() {
        // The other side came then, and its thread cannot run now.
        assert_eq!(attempts(&[ELSEWHERE, OTHER, ELSEWHERE_ENDS, HOLD, END, OTHER], 0, 1), missed(1));
        // So it did for the last time.
        assert_eq!(attempts(&[ELSEWHERE, OTHER, ELSEWHERE_ENDS, HOLD, RAN, END], 0, 1), missed(1));
        // Its thread got stuck without coming.
        assert_eq!(attempts(&[OTHER, ELSEWHERE, RAN, ELSEWHERE_ENDS, HOLD, END, OTHER], 0, 1), fair(1));
        // Its thread goes on, and may come again.
        assert_eq!(attempts(&[ELSEWHERE, OTHER, ELSEWHERE_ENDS, HOLD, RAN, END, OTHER], 0, 1), fair(1));
    }

    #[test]
    fn a_third_thread_that_runs_gives_no_chance_back() {
        let third = Step::Ran { thread: 3 };
        assert_eq!(attempts(&[ELSEWHERE, OTHER, ELSEWHERE_ENDS, HOLD, third, END, OTHER], 0, 1), missed(1));
        // Nor does a hold of a third thread in between.
        let (hold, end) = (Step::Hold { descriptor: 3, thread: 3 }, Step::End { descriptor: 3, how: HoldEnd::Blocked });
        assert_eq!(attempts(&[ELSEWHERE, OTHER, ELSEWHERE_ENDS, hold, end, HOLD, third, END, OTHER], 0, 1), missed(1));
    }

    #[test]
    fn any_thread_that_can_still_come_makes_a_hold_fair() {
        let another = Step::Match { descriptor: 1, thread: 4 };
        let ran = Step::Ran { thread: 4 };
        assert_eq!(attempts(&[OTHER, another, HOLD, ran, END, another], 0, 1), fair(1));
    }
}
