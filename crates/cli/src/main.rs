//! `rashomon`: the command line over the pipeline. Nothing here computes; it reads arguments, shows progress, and maps outcomes
//! to exit codes.
#![forbid(unsafe_code)]

mod arguments;
mod bounds;
mod cargo;
mod commands;
mod deep;
mod excerpts;
mod exit;
mod known;
mod live;
mod ongoing;
mod program;
mod progress;
mod runtime;
mod settings;
mod suites;
mod terminal;
mod timelines;
mod waiting;
mod wrapper;

use crate::arguments::{Arguments, Command, separated};
use crate::cargo::session::Role;
use crate::commands::provoke::Stored;
use crate::exit::Exit;
use crate::settings::Refused;
use crate::terminal::say;
use anyhow::{Context as _, Result};
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use wrapper::Language;

/// `analyse --memory` may put tables on disk.
#[global_allocator]
static ALLOCATOR: rashomon_spill::Allocator = rashomon_spill::Allocator;

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    if let Some((language, rest)) = wrapper_call(&arguments) {
        wrapper::say_what_is_added(language, rest);
        return match wrapper::become_compiler(language, rest) {
            Err(error) => failed(&error),
        };
    }
    let arguments = as_called_by_cargo(arguments);
    let role = arguments.first().and_then(|name| Role::of_name(Path::new(name).file_name()?));
    let outcome = match role {
        Some(role) => cargo::act_as(role, &arguments[1..]),
        None => match settings::parse(&separated(arguments)) {
            Ok(parsed) => run(parsed),
            Err(Refused::Misunderstood(error)) => return misunderstood(&error),
            Err(Refused::Failed(error)) => Err(error),
        },
    };
    match outcome {
        Ok(exit) => exit.into(),
        Err(error) => failed(&error),
    }
}

/// Called as `cargo-rashomon`, by way of a link, the tool does what `rashomon cargo` does.
fn as_called_by_cargo(mut arguments: Vec<OsString>) -> Vec<OsString> {
    let is_link = arguments.first().is_some_and(|name| Path::new(name).file_name() == Some("cargo-rashomon".as_ref()));
    if is_link {
        // Cargo repeats the name of its subcommand.
        let repeated = usize::from(arguments.get(1).is_some_and(|first| first == "rashomon"));
        arguments.splice(..=repeated, ["rashomon".into(), "cargo".into()]);
    }
    arguments
}

/// Compiler calls are told before the command line is parsed: all their options are the compiler's.
fn wrapper_call(arguments: &[OsString]) -> Option<(Language, &[OsString])> {
    let (name, rest) = arguments.split_first()?;
    match Path::new(name).file_name()?.to_str()? {
        "rashomon-cc" => return Some((Language::C, rest)),
        "rashomon-c++" | "rashomon-cxx" => return Some((Language::Cxx, rest)),
        _ => {}
    }
    let mut rest = rest;
    while let Some(("-q" | "--quiet", further)) = rest.split_first().and_then(|(first, further)| Some((first.to_str()?, further)))
    {
        rest = further;
    }
    let (command, rest) = rest.split_first()?;
    match command.to_str()? {
        "cc" => Some((Language::C, rest)),
        "c++" | "cxx" => Some((Language::Cxx, rest)),
        _ => None,
    }
}

/// A command line that cannot be understood. Whoever names a program and no command means to check it.
fn misunderstood(error: &clap::Error) -> ExitCode {
    use clap::error::{ContextKind, ContextValue, ErrorKind};
    if error.kind() == ErrorKind::InvalidSubcommand
        && let Some(ContextValue::String(given)) = error.get(ContextKind::InvalidSubcommand)
        && (given.contains('/') || Path::new(given).exists())
    {
        say!("{given} is no command; to check a program: rashomon check -- {given}");
        return Exit::Usage.into();
    }
    error.exit()
}

/// What went wrong, and why: each reason once, though errors tell those below them, too.
fn chain(error: &anyhow::Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !text.contains(&cause) {
            text.push_str(": ");
            text.push_str(&cause);
        }
    }
    text
}

fn failed(error: &anyhow::Error) -> ExitCode {
    say!("{}", chain(error));
    let exit = match error.downcast_ref::<program::Unfit>() {
        Some(program::Unfit::NotFound(_)) => Exit::NotFound,
        Some(program::Unfit::NotExecutable(_)) => Exit::NotExecutable,
        _ if error.is::<commands::detect::Suppressions>() || error.is::<settings::Fault>() => Exit::Usage,
        _ => Exit::Failed,
    };
    exit.into()
}

fn run(arguments: Arguments) -> Result<Exit> {
    if arguments.command.executes() {
        rashomon_pipeline::program::keep().context("cannot start another process")?;
    }
    let ui = commands::Ui { colour: arguments.color, quiet: arguments.quiet };
    match arguments.command {
        Command::Check { run, confirm, report, queue, target, .. } if queue.queue.is_some() => {
            commands::check::queued::check_queued(ui, (&run, &confirm, &report), &queue, target)
        }
        Command::Check { mut run, from, confirm, report, per_test_case: None, target, .. } => {
            commands::check::check(ui, (&mut run, &from), &confirm, &report, target)
        }
        Command::Check { run, confirm, report, per_test_case: Some(framework), target, .. } => {
            commands::check::per_case::check_each(ui, framework, (&run, &confirm, &report), target)
        }
        Command::Record { run, shard, command } => commands::record::record(ui, &run, shard, command),
        Command::Provoke { run, provoke, report, store, trust, command } => {
            commands::provoke::provoke(ui, &run, &provoke, &report, Stored { store, trust }, command)
        }
        Command::Detect { detect, command } => commands::detect::detect(ui, &detect, command),
        Command::Explore { run, explore, report, target } => commands::explore::explore(ui, &run, &explore, &report, target),
        Command::Witness { run, witness, report, target } => commands::witness::witness(ui, &run, &witness, &report, target),
        Command::Reporter => commands::detect::reporter(),
        Command::Predict { trace, predict_within, reading, engine, window, shard, correlated, trust, report } => {
            let how = ((engine, window), predict_within, shard.unwrap_or_default());
            commands::predict::predict(ui, trace, how, correlated.as_deref(), &reading, &trust, &report)
        }
        Command::Analyse { analyse } => commands::analyse::analyse(ui, &analyse),
        Command::Confirm { trace, trust, engine, window, libraries, confirm, report } => {
            commands::confirm::confirm(ui, trace, (&libraries, trust), ((engine, window), &confirm), &report)
        }
        Command::Replay(options) => commands::replay::replay(ui, options),
        Command::Minimise { finding, store, executions, budget, timeout, trust } => {
            commands::minimise::minimise(ui, &finding, store.as_deref(), (executions, budget), timeout, trust)
        }
        Command::Report { store, named, format, show, look } => commands::report::report(ui, store.or(named), format, show, look),
        Command::Accept(accept) => commands::accept::accept(&accept),
        Command::Merge(merge) => commands::merge::merge(ui, &merge),
        Command::Worker(worker) => commands::worker::worker(ui, &worker),
        Command::Trace { command } => commands::trace::trace(ui, command),
        Command::Csp { command } => commands::csp::csp(ui, command),
        Command::Cc { arguments } => wrapper::become_compiler(Language::C, &arguments).map(|never| match never {}),
        Command::Cxx { arguments } => wrapper::become_compiler(Language::Cxx, &arguments).map(|never| match never {}),
        Command::Cargo { arguments } => cargo::cargo(&arguments, ui.quiet),
        Command::Doctor { program } => commands::doctor::doctor(program),
        Command::RuntimePath => commands::runtime_path::runtime_path(),
        Command::Env => commands::env::env(),
        Command::Completions { shell } => commands::completions::completions(shell),
        Command::Man { command, output } => commands::man::man(&command, output.as_deref()),
        Command::Config { line } => commands::config::config(&line),
        Command::Schema { document } => commands::schema::schema(&document),
        Command::Reference => commands::reference::reference(),
    }
}
