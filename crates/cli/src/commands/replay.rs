//! `rashomon replay`: a stored finding happens again, alone or under a debugger.

use super::trust::run_that_may;
use super::{NOTHING_FORCED, Ui, end_children_on_interruption, open_store, program_of, settings_of};
use crate::arguments::{ConfirmOptions, ReplayOptions};
use crate::exit::Exit;
use crate::terminal::{print, say};
use anyhow::{Context as _, Result, bail};
use rashomon_event::{Finding, Grade};
use rashomon_pipeline::findings::failure::crash_of;
use rashomon_pipeline::program::{Ending, Forcing, Outcome, Program};
use rashomon_pipeline::replay as pipeline;
use rashomon_pipeline::replay::debugger::{self, Debugged, Debugger, lldb, vscode};
use rashomon_pipeline::store::surroundings::Surroundings;
use rashomon_pipeline::{Binaries, Job, Store};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What may explain that an execution was not the same again.
fn hint(then: &Surroundings) {
    if let Some(difference) = then.difference(&Surroundings::now()) {
        say!("hint: the environment differs from that of the recording: {difference}");
    }
}

struct Found {
    /// In use as long as this is there.
    store: Store,
    finding: Finding,
    program: Program,
    surroundings: Surroundings,
    forcing: Forcing,
}

fn find(ui: Ui, finding: &str, options: &ReplayOptions) -> Result<Found> {
    let store = open_store(options.store.as_deref())?;
    let finding = store.finding(finding)?;
    // Said before anything else: a schedule for another binary explains every other failure.
    if pipeline::provocation_of(&finding)?.is_none() {
        pipeline::schedule_of(&finding)?;
    }
    store.use_together()?;
    let (run, _) = run_that_may(ui, &store, options.trust)?;
    let program = program_of(&run)?;
    let confirm = ConfirmOptions { forced_timeout: options.timeout, ..NOTHING_FORCED };
    let settings = settings_of(&run, &confirm)?;
    let forcing = Job { program: &program, store: &store, settings: &settings, symbols: &Binaries::new() }.forcing(&run);
    Ok(Found { store, finding, program, surroundings: run.surroundings, forcing })
}

/// What the options say.
pub fn replay(ui: Ui, options: ReplayOptions) -> Result<Exit> {
    let Some(finding) = options.finding.as_deref() else {
        return recording(ui, options.recording.flatten(), options.output, options.timeout, options.trust);
    };
    match options {
        ReplayOptions { gdb: true, .. } => under(ui, finding, &options, Debugger::Gdb),
        ReplayOptions { lldb: true, .. } => under(ui, finding, &options, Debugger::Lldb),
        ReplayOptions { vscode: true, .. } => in_an_editor(ui, finding, &options),
        ReplayOptions { prepare: Some(ref session), .. } => {
            end_children_on_interruption();
            let Found { program, finding, forcing, .. } = &find(ui, finding, &options)?;
            debugger::prepare_again(program, finding, session, forcing)?;
            Ok(Exit::Success)
        }
        _ => again(ui, finding, &options),
    }
}

/// What an execution showed; where that does not follow from how it ended, what was looked for in it.
fn came_about(finding: &Finding, outcome: &Outcome, same: bool) -> String {
    let ended = matches!(outcome, Outcome::ScheduleDone | Outcome::ProgramEnded(Ending::Code(_)));
    match finding.verdict.grade().filter(|_| ended) {
        Some(Grade::Unordered) if same => "both were executed, and nothing orders them".into(),
        Some(Grade::Violated) if same => "the critical sections were interleaved, and the outcome is no serial one".into(),
        Some(Grade::Freed) if same => "the memory was used when it was freed".into(),
        Some(Grade::Observed) if same => "the execution did it once more".into(),
        Some(Grade::Unordered | Grade::Violated | Grade::Freed | Grade::Observed) => format!("{outcome}, without it"),
        _ => outcome.to_string(),
    }
}

/// As often as asked for.
fn again(ui: Ui, finding: &str, options: &ReplayOptions) -> Result<Exit> {
    end_children_on_interruption();
    let found = find(ui, finding, options)?;
    let folder = found.store.temporary("replay")?;
    let session = &folder.path().join("session");
    let symbols = Binaries::new();
    let mut all = true;
    for number in 1..=options.times {
        let (words, same) = match &found.finding.provocation {
            Some(provocation) => match pipeline::provoke_again(&found.program, provocation, session, &found.forcing)? {
                Some(executions) => (format!("both threads stood at their accesses (execution {executions})"), true),
                None => ("the accesses did not meet".to_owned(), false),
            },
            None => {
                let Found { program, finding, forcing, .. } = &found;
                let (attempt, same) = pipeline::replay(program, finding, session, forcing, &symbols)?;
                let crash = crash_of(session).map(|crash| format!("; the kernel said: {crash}"));
                (format!("{}{}", came_about(finding, &attempt.outcome, same), crash.unwrap_or_default()), same)
            }
        };
        all &= same;
        if !ui.quiet {
            let which = if options.times > 1 { format!(" {number} of {}", options.times) } else { String::new() };
            let verdict = if same { "again" } else { "not again" };
            print(&format!("{}: replay{which}: {verdict}: {words}\n", found.finding.id))?;
        }
    }
    if !all {
        hint(&found.surroundings);
    }
    Ok(if all { Exit::Success } else { Exit::Different })
}

/// The recorded schedule itself, enforced. Exit code 0 if the program did not leave it.
fn recording(ui: Ui, store: Option<PathBuf>, output: Option<PathBuf>, timeout: Option<Duration>, trust: bool) -> Result<Exit> {
    end_children_on_interruption();
    let store = open_store(store.as_deref())?;
    store.use_together()?;
    let (mut run, origin) = run_that_may(ui, &store, trust)?;
    let program = program_of(&run)?;
    let options = ConfirmOptions { forced_timeout: timeout, ..NOTHING_FORCED };
    let settings = settings_of(&run, &options)?;
    let forcing = Job { program: &program, store: &store, settings: &settings, symbols: &Binaries::new() }.forcing(&run);
    let temporary;
    let session = match output {
        Some(folder) => {
            let again = Store::create_at(&folder)?;
            run.recordings.truncate(1);
            again.write_run_of(&run, &origin)?;
            again.recording(0)
        }
        None => {
            temporary = store.temporary("replay")?;
            temporary.path().join("session")
        }
    };
    let attempt = pipeline::replay_recording(&program, &store.recording(0), run.quantum, &session, &forcing)?;
    if !ui.quiet || !attempt.outcome.is_orderly() {
        print(&format!("replay: {}\n", attempt.outcome))?;
    }
    if !attempt.outcome.is_orderly() {
        hint(&run.surroundings);
    }
    Ok(if attempt.outcome.is_orderly() { Exit::Success } else { Exit::Different })
}

/// How a debugger has the session of its next execution made. `trusted`: what the store names may run, as was said before.
fn again_command(found: &Found, trusted: bool, session: &Path) -> Result<Vec<OsString>> {
    let tool = std::env::current_exe().context("cannot find the tool's own program")?;
    let store = std::path::absolute(found.store.path()).context("cannot find the working directory")?;
    let mut line: Vec<OsString> = vec![tool.into(), "--quiet".into(), "replay".into(), found.finding.id.as_str().into()];
    line.extend(["--store".into(), store.into(), "--prepare".into(), session.into()]);
    line.extend(trusted.then(|| "--trust".into()));
    Ok(line)
}

/// Whether the finding's replay has turns, if one is asked for.
fn check_turn(found: &Found, options: &ReplayOptions) -> Result<()> {
    if options.back_to.is_some() && debugger::turns(&found.finding).is_none() {
        bail!("{} is replayed with threads in parallel, which take no turns: do without --back-to", found.finding.id);
    }
    Ok(())
}

fn under(ui: Ui, finding: &str, options: &ReplayOptions, which: Debugger) -> Result<Exit> {
    // Keys go to the debugger, which is in our process group; it decides what an interruption means.
    let _ = ctrlc::set_handler(|| {});
    let found = find(ui, finding, options)?;
    check_turn(&found, options)?;
    let folder = found.store.temporary("replay")?;
    let session = std::path::absolute(folder.path().join("session")).context("cannot find the working directory")?;
    let again = again_command(&found, true, &session)?;
    let Found { program, finding, forcing, .. } = &found;
    let debugged = Debugged { program, finding, forcing, session: &session, again: &again, stop: options.back_to };
    let status = debugger::under(which, &debugged, &options.debugger_arguments)?;
    Ok(if status.success() { Exit::Success } else { Exit::Different })
}

fn in_an_editor(ui: Ui, finding: &str, options: &ReplayOptions) -> Result<Exit> {
    let found = find(ui, finding, options)?;
    check_turn(&found, options)?;
    if found.program.client.is_some() {
        bail!("{} needs the client of its program, which an editor does not start: take --gdb or --lldb", found.finding.id);
    }
    let folder = found.store.for_editors(&found.finding.id);
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let session = std::path::absolute(folder.join("session")).context("cannot find the working directory")?;
    let again = again_command(&found, options.trust, &session)?;
    let Found { program, finding, forcing, .. } = &found;
    let debugged = Debugged { program, finding, forcing, session: &session, again: &again, stop: options.back_to };
    let text = serde_json::to_string_pretty(&vscode::launch_json(&debugged)?)?;
    print(&format!("{text}\n"))?;
    if lldb::find("lldb-dap").is_none() {
        say!("hint: lldb-dap is not in PATH, which the first configuration needs");
    }
    Ok(Exit::Success)
}
