//! `rashomon replay`: a stored finding happens again, alone or under gdb.

use super::trust::run_that_may;
use super::{NOTHING_FORCED, Ui, end_children_on_interruption, open_store, program_of, settings_of};
use crate::arguments::ConfirmOptions;
use crate::exit::Exit;
use crate::terminal::{print, say};
use anyhow::Result;
use rashomon_event::Finding;
use rashomon_pipeline::findings::failure::crash_of;
use rashomon_pipeline::program::{Forcing, Program};
use rashomon_pipeline::replay as pipeline;
use rashomon_pipeline::replay::debugger::under_gdb;
use rashomon_pipeline::store::surroundings::Surroundings;
use rashomon_pipeline::{Binaries, Job, Store};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;
use tempfile::TempDir;

pub struct Request {
    pub finding: String,
    pub store: Option<PathBuf>,
    pub times: u32,
    pub timeout: Option<Duration>,
    pub trust: bool,
}

/// What may explain that an execution was not the same again.
fn hint(then: &Surroundings) {
    if let Some(difference) = then.difference(&Surroundings::now()) {
        say!("hint: the environment differs from that of the recording: {difference}");
    }
}

struct Found {
    /// In use as long as this is there.
    #[expect(dead_code, reason = "held for its lock")]
    store: Store,
    finding: Finding,
    program: Program,
    surroundings: Surroundings,
    forcing: Forcing,
    #[expect(dead_code, reason = "goes away with us")]
    folder: TempDir,
    session: PathBuf,
}

fn find(ui: Ui, request: &Request) -> Result<Found> {
    let store = open_store(request.store.as_deref())?;
    let finding = store.finding(&request.finding)?;
    // Said before anything else: a schedule for another binary explains every other failure.
    if pipeline::provocation_of(&finding)?.is_none() {
        pipeline::schedule_of(&finding)?;
    }
    store.use_together()?;
    let (run, _) = run_that_may(ui, &store, request.trust)?;
    let program = program_of(&run)?;
    let options = ConfirmOptions { forced_timeout: request.timeout, ..NOTHING_FORCED };
    let settings = settings_of(&run, &options)?;
    let forcing = Job { program: &program, store: &store, settings: &settings, symbols: &Binaries::new() }.forcing(&run);
    let folder = store.temporary("replay")?;
    let session = folder.path().join("session");
    Ok(Found { store, finding, program, surroundings: run.surroundings, forcing, folder, session })
}

pub fn replay(ui: Ui, request: &Request) -> Result<Exit> {
    end_children_on_interruption();
    let found = find(ui, request)?;
    let symbols = Binaries::new();
    let mut all = true;
    for number in 1..=request.times {
        let (words, same) = match &found.finding.provocation {
            Some(provocation) => match pipeline::provoke_again(&found.program, provocation, &found.session, &found.forcing)? {
                Some(executions) => (format!("both threads stood at their accesses (execution {executions})"), true),
                None => ("the accesses did not meet".to_owned(), false),
            },
            None => {
                let Found { program, finding, session, forcing, .. } = &found;
                let (attempt, same) = pipeline::replay(program, finding, session, forcing, &symbols)?;
                let crash = crash_of(&found.session).map(|crash| format!("; the kernel said: {crash}"));
                (format!("{}{}", attempt.outcome, crash.unwrap_or_default()), same)
            }
        };
        all &= same;
        if !ui.quiet {
            let which = if request.times > 1 { format!(" {number} of {}", request.times) } else { String::new() };
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
pub fn recording(
    ui: Ui,
    store: Option<PathBuf>,
    output: Option<PathBuf>,
    timeout: Option<Duration>,
    trust: bool,
) -> Result<Exit> {
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

pub fn in_gdb(ui: Ui, request: &Request, arguments: &[OsString]) -> Result<Exit> {
    // Keys go to gdb, which is in our process group; it decides what an interruption means.
    let _ = ctrlc::set_handler(|| {});
    let found = find(ui, request)?;
    let status = under_gdb(&found.program, &found.finding, &found.session, &found.forcing, arguments)?;
    Ok(if status.success() { Exit::Success } else { Exit::Different })
}
