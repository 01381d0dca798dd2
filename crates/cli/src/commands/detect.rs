//! `rashomon detect`, and the reporter that the runtime starts under it.
//!
//! The program takes our place: its process id, its exit code and what signals do to it are what whoever called us sees. All
//! there is to arrange is its environment. Only beside a program with a client we stay.

use super::Ui;
use crate::arguments::{Colour, DetectOptions, Detector, Filter};
use crate::exit::Exit;
use crate::program::{self, Inspection, Instrumentation};
use crate::runtime;
use crate::terminal::{error_is_terminal, say};
use anyhow::{Context as _, Result, bail};
use rashomon_abi::{DETECT_VARIABLE, REPORTER_VARIABLE, SESSION_VARIABLE};
use rashomon_confirm::{Client, Ending, Input, Output, Program, Served, Time, execute, no_session};
use rashomon_files::Links;
use rashomon_report::{Format as _, ProgramExit, tsan::Tsan};
use std::ffi::{OsStr, OsString};
use std::io::IsTerminal as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

pub fn detect(ui: Ui, options: &DetectOptions, mut command: Vec<OsString>) -> Result<Exit> {
    let inspection = program::inspect(&command.remove(0))?;
    for note in inspection.notes.iter().filter(|_| !ui.quiet && inspection.instrumentation != Instrumentation::Script) {
        say!("{note}");
    }
    if let Some(client) = options.client.asked() {
        return with_client(ui, options, client, &inspection, command);
    }
    let mut program = Command::new(&inspection.path);
    program
        .args(command)
        .env_remove(SESSION_VARIABLE)
        .env(DETECT_VARIABLE, flags(ui, options)?)
        .env(REPORTER_VARIABLE, super::tool()?);
    if inspection.instrumentation != Instrumentation::Linked {
        program.env("LD_LIBRARY_PATH", library_path(&runtime::folder()?));
    }
    let error = program.exec();
    Err(error).with_context(|| format!("cannot execute {}", inspection.path.display()))
}

/// The program and who asks it.
fn with_client(
    ui: Ui,
    options: &DetectOptions,
    client: Client,
    inspection: &Inspection,
    arguments: Vec<OsString>,
) -> Result<Exit> {
    rashomon_confirm::keep().context("cannot start another process")?;
    super::end_all_on_interruption();
    let mut list = Flags(flags(ui, options)?);
    list.push("end_on_sigterm", "1")?;
    let program = Program {
        executable: inspection.path.clone(),
        arguments,
        directory: std::env::current_dir().context("cannot tell the working directory")?,
        library_path: if inspection.instrumentation == Instrumentation::Linked { None } else { Some(runtime::folder()?) },
        randomise_addresses: true,
        environment: vec![(DETECT_VARIABLE.into(), list.0), (REPORTER_VARIABLE.into(), super::tool()?)],
        before_each: None,
        before_each_limit: None,
        client: Some(client),
    };
    let execution = execute(&program, no_session(), &Input::Inherit, Output::Inherit, Time::UNLIMITED)?;
    for phrase in execution.served.map(Served::phrases).unwrap_or_default().iter().filter(|_| !ui.quiet) {
        say!("{phrase}");
    }
    Ok(Exit::of_program(match execution.ending {
        Ending::Code(code) => ProgramExit::Code { code },
        Ending::Signal(signal) => ProgramExit::Signal { signal },
        Ending::TimedOut => ProgramExit::TimedOut,
    }))
}

/// Our runtime's folder before all others.
fn library_path(folder: &Path) -> OsString {
    let mut path = folder.as_os_str().to_owned();
    if let Some(rest) = std::env::var_os("LD_LIBRARY_PATH").filter(|rest| !rest.is_empty()) {
        path.push(":");
        path.push(rest);
    }
    path
}

/// The options as flags, behind those that the environment already has.
fn flags(ui: Ui, options: &DetectOptions) -> Result<OsString> {
    let mut list = Flags(std::env::var_os(DETECT_VARIABLE).unwrap_or_default());
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
    if let Some(file) = &options.suppressions {
        check_suppressions(file)?;
        list.push("suppressions", std::path::absolute(file)?)?;
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
    Ok(list.0)
}

/// A file that cannot be understood is told of before the program runs, and not at its first race.
fn check_suppressions(file: &Path) -> Result<()> {
    let bytes = rashomon_files::read(file, Links::Followed, LARGEST_SUPPRESSIONS)
        .with_context(|| format!("cannot read the suppressions {}", file.display()))?;
    let read = rashomon_reporter::Suppressions::default().read(&String::from_utf8_lossy(&bytes));
    read.with_context(|| format!("{} is no file of suppressions", file.display()))
}

/// No file that people write is larger.
const LARGEST_SUPPRESSIONS: u64 = 1 << 26;

struct Flags(OsString);

impl Flags {
    /// A value that could be taken apart stands in quotes.
    fn push(&mut self, name: &str, value: impl AsRef<OsStr>) -> Result<()> {
        let value = value.as_ref();
        let bytes = value.as_bytes();
        let quote = match (bytes.contains(&b'\''), bytes.contains(&b'"')) {
            (true, true) => bail!("{name}: a value with both kinds of quotes cannot be passed on: {}", value.display()),
            (true, false) => "\"",
            (false, _) => "'",
        };
        if !self.0.is_empty() {
            self.0.push(":");
        }
        for part in [OsStr::new(name), OsStr::new("="), OsStr::new(quote), value, OsStr::new(quote)] {
            self.0.push(part);
        }
        Ok(())
    }
}

/// Questions on standard input, answers on standard output.
pub fn reporter() -> Result<Exit> {
    if std::io::stdin().is_terminal() {
        bail!("the reporter is started by the runtime of a program; there is nothing to type here");
    }
    rashomon_reporter::serve(std::io::stdin().lock(), std::io::stdout().lock())?;
    Ok(Exit::Success)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_quoted_so_that_they_stay_whole() {
        let mut flags = Flags(OsString::new());
        flags.push("a", "x:y z").unwrap();
        flags.push("b", "it's").unwrap();
        assert_eq!(flags.0, OsStr::new("a='x:y z':b=\"it's\""));
        let parsed: Vec<_> = rashomon_abi::flags::Flags::new(flags.0.as_bytes()).map(|flag| flag.unwrap()).collect();
        assert_eq!(parsed, [(&b"a"[..], &b"x:y z"[..]), (b"b", b"it's")]);
        assert!(flags.push("c", "'\"").is_err());
    }
}
