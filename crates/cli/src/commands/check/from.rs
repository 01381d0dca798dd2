//! `rashomon check --from`: the first recordings are those of a store.
//!
//! What is executed is either named on the command line, as of any other check, and then has to be what was recorded; or the
//! store says it, with everything that belongs to it, and may be asked to show that it is the user's own.

use super::super::Ui;
use super::super::prepare::{Prepared, new_store, prepare_inspected};
use super::super::trust::run_that_may;
use crate::arguments::{FromOptions, RunOptions, Switch, Target};
use crate::program;
use crate::runtime;
use crate::wrapper::Language;
use anyhow::{Context as _, Result, bail};
use rashomon_pipeline::program::Client;
use rashomon_pipeline::store::given::Given;
use rashomon_pipeline::{Origin, RunRecord, Store};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// How the note of the report begins that names the store.
pub const CAME_FROM: &str = "the first recording came from ";

/// What is executed, in a new store that holds the recordings of another one. `options` become those of the recordings.
pub fn prepare_from(ui: Ui, options: &mut RunOptions, (path, from): (&Path, &FromOptions), target: Target) -> Result<Prepared> {
    if let Some(group) = Store::group(path)? {
        bail!("{} has a store for each of several checks: --from takes one of them", group.path().display());
    }
    let source = Store::open(path)?;
    source.use_together()?;
    if target.file.as_deref().is_some_and(|file| Language::of(file).is_some()) {
        bail!("--from takes a program that is built already: rashomon check --from STORE -- PROG ARGS");
    }
    let mut command: Vec<OsString> = target.file.map(PathBuf::into_os_string).into_iter().chain(target.command).collect();
    let is_named = !command.is_empty();
    let (stored, origin) = if is_named { (source.run()?, Origin::Own) } else { run_that_may(ui, &source, from.trust)? };
    if !is_named {
        take_over(options, &stored);
        command = std::iter::once(&stored.executable).chain(&stored.arguments).map(OsString::from).collect();
    }
    // A recorded schedule counts in it.
    options.quantum = stored.quantum;
    if let Some(path) = &options.stdin {
        rashomon_files::open_input(path).with_context(|| format!("cannot read --stdin {}", path.display()))?;
    }
    let inspection = program::inspect(&command.remove(0), options.preload)?;
    // All that may be wrong with the recordings, before there is a store of nothing.
    let given = Given::of(&source, &stored, (&inspection.path, &command))?;
    let number = given.number();
    let store = new_store(options, &inspection.path)?;
    let environment = if is_named { Vec::new() } else { environment_of(options, &stored) };
    let mut prepared = prepare_inspected(options, store, inspection, command, environment)?;
    let run = &mut prepared.run;
    if !is_named {
        prepared.program.directory = stored.directory.to_path();
        run.directory = stored.directory;
        let said = std::mem::take(&mut run.trusted_libraries);
        run.trusted_libraries = stored.trusted_libraries;
        run.trusted_libraries.extend(said.into_iter().filter(|one| !run.trusted_libraries.contains(one)).collect::<Vec<_>>());
    }
    // What was recorded is executed again at the same time.
    run.base_time_nanoseconds = stored.base_time_nanoseconds;
    run.recordings = given.copy_into(&prepared.store)?;
    run.notes.push(match number {
        1 => format!("{CAME_FROM}{}", path.display()),
        _ => format!("the first {number} recordings came from {}", path.display()),
    });
    prepared.store.write_run_of(run, &origin)?;
    Ok(prepared)
}

/// How the store's program is executed; what is said on the command line counts more.
fn take_over(options: &mut RunOptions, stored: &RunRecord) {
    options.aslr = if stored.randomise_addresses { Switch::On } else { Switch::Off };
    options.before_each = options.before_each.take().or_else(|| stored.before_each.as_ref().map(OsString::from));
    options.stdin =
        options.stdin.take().or_else(rashomon_files::own_input).or_else(|| stored.input.as_ref().map(|input| input.to_path()));
    options.trace_limit = stored.trace_limit >> 20;
    options.processes = stored.processes;
    options.preload |= stored.environment.iter().any(|(name, _)| OsString::from(name) == runtime::PRELOAD);
    if let (None, Some(client)) = (&options.client.with_client, &stored.client) {
        let Client { command, ready, grace } = Client::from(client);
        (options.client.with_client, options.client.ready, options.client.grace) = (Some(command), ready, grace);
    }
}

fn environment_of(options: &RunOptions, stored: &RunRecord) -> Vec<(OsString, OsString)> {
    let all = stored.environment.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
    let is_said = !options.filter.library_globals.is_empty();
    // What is preloaded is said by the option.
    all.filter(|(name, _)| name != runtime::PRELOAD && !(is_said && name == rashomon_abi::GLOBALS_VARIABLE)).collect()
}
