//! A stored finding, made to happen again.

pub mod debugger;

use crate::check::prove::{load, same_again};
use crate::error::PipelineError;
use crate::findings::symbols::Symbols;
use crate::provoke::{met, request_of, watched_again};
use rashomon_confirm::force::{attempt, force_process, forced_session};
use rashomon_confirm::provoke::Setting;
use rashomon_confirm::{Attempt, Forcing, Output, Program, execute, force, provoke};
use rashomon_event::{Finding, First, Provocation, Schedule, Surroundings, path_of};
use rashomon_trace::modules::ModuleLine;
use rashomon_trace::{After, LoadedTrace, Policy, Recording, processes};
use std::path::{Path, PathBuf};

/// A provoked race may need more than one execution: threads run as they like.
const PROVOKING_EXECUTIONS: u32 = 30;
/// The finding's schedule, if it has one and is for the binaries that are there now.
pub fn schedule_of(finding: &Finding) -> Result<&Schedule, PipelineError> {
    let schedule = finding
        .schedule
        .as_ref()
        .ok_or_else(|| PipelineError::NoSchedule { id: finding.id.to_string(), verdict: finding.verdict.name() })?;
    let modules = schedule.modules.iter().map(|module| (module.path.as_str(), module.build_id.as_deref()));
    check_binaries(&format!("the schedule of {}", finding.id), modules)?;
    Ok(schedule)
}

/// The finding's provocation, if it was proven by one, for the binaries that are there now.
pub fn provocation_of(finding: &Finding) -> Result<Option<&Provocation>, PipelineError> {
    let Some(provocation) = &finding.provocation else { return Ok(None) };
    let modules = provocation.modules.iter().map(|module| (module.path.as_str(), module.build_id.as_deref()));
    check_binaries(&format!("the provocation of {}", finding.id), modules)?;
    Ok(Some(provocation))
}

/// Provokes a finding again. How many executions it took; `None`: they did not show it.
pub fn provoke_again(
    program: &Program,
    provocation: &Provocation,
    session: &Path,
    forcing: &Forcing,
) -> Result<Option<u32>, PipelineError> {
    let setting = Setting {
        input: forcing.input.clone(),
        output: Output::Discard,
        time: forcing.time(),
        after: After::Stop,
        processes: forcing.processes,
    };
    for number in 1..=PROVOKING_EXECUTIONS {
        let watched = watched_again(provocation, number);
        let request = request_of(provocation, &watched, First::Either);
        if met(&provoke(program, &request, session, &setting)?, provocation) {
            return Ok(Some(number));
        }
    }
    Ok(None)
}

/// Whether the binaries that are there now are those of the recording.
pub fn check_recording(recording: &Path) -> Result<(), PipelineError> {
    let opened = Recording::open(recording)?;
    let modules = opened.modules.lines.iter().filter_map(|line| match line {
        ModuleLine::Loaded { module, .. } => Some((module.path.as_str(), module.build_id.as_deref())),
        ModuleLine::Unloaded { .. } => None,
    });
    check_binaries(&format!("the recording {}", recording.display()), modules)
}

/// Modules whose code is named, by path and build-id, must be the recorded ones.
fn check_binaries<'a>(what: &str, modules: impl Iterator<Item = (&'a str, Option<&'a str>)>) -> Result<(), PipelineError> {
    check_binaries_at(what, modules, |path| path)
}

/// The same, where some are at other places now.
pub(crate) fn check_binaries_at<'a>(
    what: &str,
    modules: impl Iterator<Item = (&'a str, Option<&'a str>)>,
    now: impl Fn(PathBuf) -> PathBuf,
) -> Result<(), PipelineError> {
    for (path, expected) in modules {
        let Some(expected) = expected else { continue };
        // A module that is gone (a plugin, the kernel's own) is found missing by the replay, which then diverges.
        let path = now(path_of(path));
        let Ok(found) = rashomon_symbolize::build_id(&path) else { continue };
        // Our runtime may be replaced by a newer one that speaks the same protocol.
        let ours = path.file_name().is_some_and(|name| {
            let name = name.to_string_lossy();
            name.starts_with("librashomon_runtime") || name.starts_with("libtsan")
        });
        let same = found.as_deref().is_some_and(|found| found.eq_ignore_ascii_case(expected));
        if !same && !ours {
            return Err(PipelineError::OtherBinary {
                what: what.into(),
                path,
                expected: expected.into(),
                found: found.unwrap_or_else(|| "none".into()),
            });
        }
    }
    Ok(())
}

/// Executes the schedule once. The second value says whether the same thing happened again.
pub fn replay<S: Symbols + ?Sized>(
    program: &Program,
    finding: &Finding,
    session: &Path,
    forcing: &Forcing,
    symbols: &S,
) -> Result<(Attempt, bool), PipelineError> {
    let schedule = schedule_of(finding)?;
    let attempt = force(program, schedule, session, forcing)?;
    let same = same_again(finding, &attempt, session, symbols)?;
    Ok((attempt, same))
}

/// Executes the schedule of a recording once more.
pub fn replay_recording(
    program: &Program,
    recording: &Path,
    quantum: u64,
    session: &Path,
    forcing: &Forcing,
) -> Result<Attempt, PipelineError> {
    let again = |loaded: LoadedTrace| {
        // A client asks the same again.
        if program.client.is_some() { loaded.whole_schedule(quantum) } else { loaded.replay_schedule(quantum) }
    };
    let schedule = again(load(recording)?);
    forced_session(&schedule, After::Stop, session, forcing)?;
    let mut others = Vec::new();
    for process in processes(recording)?.into_iter().skip(1) {
        let surroundings = Surroundings { process: process.path, policy: Policy::Random.code(), seed: 1 };
        let schedule = Schedule { surroundings: Some(surroundings), ..again(load(&process.folder)?) };
        force_process(&schedule, After::Stop, session, forcing)?;
        others.push(schedule);
    }
    let execution = execute(program, session, &forcing.input, Output::Discard, forcing.time())?;
    // The first process that left its schedule speaks for all.
    let initial = attempt(&schedule, session, execution)?;
    if initial.outcome.is_orderly() {
        for schedule in &others {
            let attempt = attempt(schedule, session, execution)?;
            if !attempt.outcome.is_orderly() {
                return Ok(attempt);
            }
        }
    }
    Ok(initial)
}
