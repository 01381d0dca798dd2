//! `rashomon detect`, and the reporter that the runtime starts under it.
//!
//! The program takes our place: its process id, its exit code and what signals do to it are what whoever called us sees. All
//! there is to arrange is its environment. Only beside a program with a client we stay.

use super::Ui;
use crate::arguments::{Colour, DetectOptions, Detector, Filter};
use crate::exit::Exit;
use crate::program::{self, Instrumentation};
use crate::runtime;
use crate::terminal::{error_is_terminal, say};
use anyhow::{Context as _, Result, bail};
use rashomon_files::Links;
use rashomon_pipeline::detect::{Detection, Flags};
use rashomon_pipeline::program::{Client, keep};
use rashomon_report::{Format as _, text::Text, tsan::Tsan};
use std::ffi::OsString;
use std::io::IsTerminal as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;

pub fn detect(ui: Ui, options: &DetectOptions, mut command: Vec<OsString>) -> Result<Exit> {
    let inspection = program::inspect(&command.remove(0), options.preload)?;
    for note in inspection.notes.iter().filter(|_| !ui.quiet && inspection.instrumentation != Instrumentation::Script) {
        say!("{note}");
    }
    let detection = Detection {
        executable: inspection.path,
        arguments: command,
        runtime: if inspection.instrumentation == Instrumentation::Linked { None } else { Some(runtime::folder()?) },
        flags: flags(ui, options)?,
        reporter: super::tool()?,
        environment: if options.preload { vec![runtime::preloaded()?] } else { Vec::new() },
    };
    if let Some(client) = options.client.asked() {
        return with_client(ui, detection, client);
    }
    let error = detection.command().exec();
    Err(error).with_context(|| format!("cannot execute {}", detection.executable.display()))
}

/// The program and who asks it.
fn with_client(ui: Ui, detection: Detection, client: Client) -> Result<Exit> {
    keep().context("cannot start another process")?;
    super::end_all_on_interruption();
    let directory = std::env::current_dir().context("cannot tell the working directory")?;
    let (exit, phrases) = detection.beside(client, directory)?;
    for phrase in phrases.iter().filter(|_| !ui.quiet) {
        say!("{phrase}");
    }
    Ok(Exit::of_program(exit))
}

/// The options as flags, behind those that the environment already has.
fn flags(ui: Ui, options: &DetectOptions) -> Result<Flags> {
    let mut list = Flags::of_environment();
    let detector = match options.detector {
        Detector::Hb => "hb",
        Detector::Lockset => "lockset",
        Detector::Hybrid => "hybrid",
    };
    list.push("detector", detector)?;
    list.push("filter", if options.filter == Filter::Tree { "tree" } else { "none" })?;
    list.push("format", options.format.name())?;
    match ui.colour {
        Colour::Always => list.push("color", "always")?,
        Colour::Never => list.push("color", "never")?,
        Colour::Auto if options.format.name() != Tsan.name() && !ui.colours(error_is_terminal()) => {
            list.push("color", "never")?
        }
        Colour::Auto => {}
    }
    if !ui.quiet && options.log.is_none() && options.format.name() == Text.name() {
        // The program takes our place, and our number.
        list.push("say_clean", std::process::id().to_string())?;
    }
    if let Some(file) = &options.suppressions {
        check_suppressions(file)?;
        list.push("suppressions", std::path::absolute(file)?)?;
    }
    for file in options.options.iter().filter_map(|option| option.strip_prefix("suppressions=")) {
        check_suppressions(Path::new(file))?;
    }
    if let Some(file) = &options.log {
        list.push("log_path", std::path::absolute(file)?)?;
    }
    if let Some(code) = options.exitcode {
        list.push("exitcode", code.to_string())?;
    }
    let switches = [
        ("print_suppressions", options.print_suppressions),
        ("halt_on_error", options.halt_on_error),
        ("second_deadlock_stack", options.second_deadlock_stack),
    ];
    for (name, _) in switches.iter().filter(|(_, asked)| *asked) {
        list.push(name, "1")?;
    }
    for option in &options.options {
        let Some((name, value)) = option.split_once('=') else { bail!("--option {option}: write NAME=VALUE") };
        list.push(name, value)?;
    }
    Ok(list)
}

/// A file that cannot be understood is told of before the program runs, and not at its first race.
fn check_suppressions(file: &Path) -> Result<(), Suppressions> {
    let bytes = rashomon_files::read(file, Links::Followed, LARGEST_SUPPRESSIONS)
        .map_err(|error| Suppressions(format!("cannot read the suppression file {}: {error}", file.display())))?;
    let read = rashomon_reporter::Suppressions::default().read(&String::from_utf8_lossy(&bytes));
    read.map_err(|error| Suppressions(format!("{} is no suppression file: {error}", file.display())))
}

/// What is wrong with a file of suppressions. Nothing has run then.
#[derive(Debug)]
pub struct Suppressions(String);

impl std::fmt::Display for Suppressions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Suppressions {}

/// No file that people write is larger.
const LARGEST_SUPPRESSIONS: u64 = 1 << 26;

/// Questions on standard input, answers on standard output.
pub fn reporter() -> Result<Exit> {
    if std::io::stdin().is_terminal() {
        bail!("the reporter is started by the runtime of a program; there is nothing to type here");
    }
    rashomon_reporter::serve(std::io::stdin().lock(), std::io::stdout().lock())?;
    Ok(Exit::Success)
}
