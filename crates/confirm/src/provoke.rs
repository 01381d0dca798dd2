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
use rashomon_trace::{DescriptorState, ProvokeRequest, Provoked, RunMode, TraceError};
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

/// Whether a descriptor was given its chance in an execution, with regard to another one: its thread was held for as long as anybody could arrive, and the
/// other descriptor was not already behind its last match.
pub fn was_fair(held: &DescriptorState, other: &DescriptorState) -> bool {
    let waited = held.blocked + held.looking + held.timed_out > 0;
    waited && (other.matches == 0 || other.last_match > held.first_hold)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hold_behind_the_other_side_is_not_fair() {
        let held =
            DescriptorState { matches: 1, holds: 1, blocked: 1, first_hold: 5, last_hold: 5, ..DescriptorState::default() };
        let at = |last_match| DescriptorState { matches: 1, last_match, ..DescriptorState::default() };
        assert!(was_fair(&held, &DescriptorState::default()));
        assert!(was_fair(&held, &at(6)));
        assert!(!was_fair(&held, &at(4)));
        assert!(!was_fair(&DescriptorState { blocked: 0, cut_short: 1, ..held }, &at(6)));
    }
}
