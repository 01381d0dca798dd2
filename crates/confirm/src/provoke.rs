//! The host side of provocation: one free execution in which threads are held at descriptors until others arrive.
//!
//! After the RaceHunter paper (Programming and Computer Software 50(6), 2024), §3, "Data Race Provocation". Guarantee: a catch that is reported happened: the
//! runtime held one thread right before its access while another stood right before a conflicting one.

use crate::error::ConfirmError;
use crate::execution::{Execution, Input, Output, Program, execute};
use crate::force::new_session;
use rashomon_event::ModuleInfo;
use rashomon_trace::control::{self, After, ControlRequest};
use rashomon_trace::modules::{self, ModuleLine};
use rashomon_trace::{DescriptorState, HoldEnd, ProvokeRequest, Provoked, RunMode, Step, TraceError};
use std::path::Path;
use std::time::Duration;

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
    /// Wall-clock time.
    pub limit: Duration,
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
    let execution = execute(program, session, &setting.input, setting.output, Some(setting.limit))?;
    let mut provoked = Provoked::read(session)?.unwrap_or_default();
    // An execution that ended before it began has met nothing.
    provoked.descriptors.resize(request.watched.len(), DescriptorState::default());
    Ok(ProvokedRun { execution, provoked, modules: modules_of(session)? })
}

fn modules_of(session: &Path) -> Result<Vec<ModuleInfo>, ConfirmError> {
    let path = session.join(rashomon_abi::MODULES_FILE);
    let bytes = match std::fs::read(&path) {
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

/// The attempts at a pair that an execution made by holding a thread at one of its descriptors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Attempts {
    /// The thread was held for as long as anybody could arrive, and the other side was still to come.
    pub fair: u64,
    /// The other side came while the same thread was held at another place right before: it was not given its chance here.
    pub missed: u64,
}

/// Attempts with a thread held at descriptor `held` while `other` could come.
///
/// A hold that finds all other threads blocked since an earlier hold of its thread says something only if the other side did not come meanwhile.
pub fn attempts(log: &[Step], held: usize, other: usize) -> Attempts {
    let came = |from: usize, to: usize, holder: u32| {
        let steps = log.get(from..to).unwrap_or_default();
        steps.iter().any(|step| matches!(*step, Step::Match { descriptor, thread } if descriptor == other && thread != holder))
    };
    let mut attempts = Attempts::default();
    // The thread held last, since when it is known that nobody else ran between its holds, and the hold at hand.
    let mut chain: Option<(u32, usize)> = None;
    let mut current: Option<(u32, usize, usize)> = None;
    for (at, step) in log.iter().enumerate() {
        match *step {
            Step::Hold { descriptor, thread, alone } => {
                let since = chain.filter(|(holder, _)| alone && *holder == thread).map_or(at, |(_, since)| since);
                chain = Some((thread, since));
                current = (descriptor == held).then_some((thread, since, at));
            }
            Step::End { descriptor, how } if descriptor == held => {
                let Some((thread, since, begin)) = current.take() else { continue };
                if !matches!(how, HoldEnd::Blocked | HoldEnd::Looking | HoldEnd::TimedOut) {
                    continue;
                }
                if came(since, begin, thread) {
                    attempts.missed += 1;
                } else if came(begin, log.len(), thread) || !came(0, begin, thread) {
                    attempts.fair += 1;
                }
            }
            _ => {}
        }
    }
    attempts
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOLD: Step = Step::Hold { descriptor: 0, thread: 1, alone: false };
    const END: Step = Step::End { descriptor: 0, how: HoldEnd::Blocked };
    const OTHER: Step = Step::Match { descriptor: 1, thread: 2 };

    #[test]
    fn a_hold_is_fair_unless_the_other_side_was_there_for_the_last_time_before() {
        assert_eq!(attempts(&[HOLD, END], 0, 1), Attempts { fair: 1, missed: 0 });
        assert_eq!(attempts(&[HOLD, END, OTHER], 0, 1), Attempts { fair: 1, missed: 0 });
        assert_eq!(attempts(&[OTHER, HOLD, END], 0, 1), Attempts::default());
        assert_eq!(attempts(&[OTHER, HOLD, END, OTHER], 0, 1), Attempts { fair: 1, missed: 0 });
        let cut = Step::End { descriptor: 0, how: HoldEnd::CutShort };
        assert_eq!(attempts(&[HOLD, cut, OTHER], 0, 1), Attempts::default());
        // Its own accesses there are not the other side's.
        let own = Step::Match { descriptor: 1, thread: 1 };
        assert_eq!(attempts(&[own, HOLD, END], 0, 1), Attempts { fair: 1, missed: 0 });
    }

    #[test]
    fn a_hold_at_an_earlier_place_can_take_another_one_s_chance() {
        let earlier = Step::Hold { descriptor: 2, thread: 1, alone: false };
        let earlier_ends = Step::End { descriptor: 2, how: HoldEnd::Blocked };
        let alone = Step::Hold { descriptor: 0, thread: 1, alone: true };
        assert_eq!(attempts(&[earlier, OTHER, earlier_ends, alone, END, OTHER], 0, 1), Attempts { fair: 0, missed: 1 });
        assert_eq!(attempts(&[earlier, earlier_ends, alone, END, OTHER], 0, 1), Attempts { fair: 1, missed: 0 });
        // Others ran in between: what came during the earlier hold is of no interest.
        assert_eq!(attempts(&[earlier, OTHER, earlier_ends, HOLD, END, OTHER], 0, 1), Attempts { fair: 1, missed: 0 });
    }
}
