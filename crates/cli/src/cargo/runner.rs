//! The tool as the runner of what cargo has built: checks the program and ends as it does, so that cargo goes on as it would
//! have. A test that nextest executes alone fails where something is proven.
//!
//! Programs of tests that are asked for a list of these run as they are.
//!
//! What cargo, nextest and libtest find in the environment is kept with the store: a finding is replayed later, from another
//! shell.

use super::arguments::RunnerOptions;
use super::session::{ProgramResult, Session, Settings};
use crate::arguments::Colour;
use crate::commands::check::check_prepared;
use crate::commands::prepare::prepare_inspected;
use crate::commands::{Ui, end_children_on_interruption};
use crate::exit::Exit;
use crate::program::{self, Instrumentation, Unfit};
use crate::settings::complete_options;
use crate::terminal::say;
use anyhow::{Context as _, Result, bail};
use clap::{CommandFactory as _, Parser as _};
use rashomon_pipeline::Store;
use rashomon_report::Counts;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::Command;

/// Tests of one program are executed one after the other: side by side they would have to be told apart in every recording, and
/// libtest chooses their number by that of the processors.
const TEST_THREADS: &str = "RUST_TEST_THREADS";
/// A panic's backtrace reads all debug information of the program, and each access of that is recorded: a million of them, for
/// what the report has anyway.
const NO_BACKTRACE: (&str, &str) = ("RUST_BACKTRACE", "0");

pub fn run(arguments: &[OsString]) -> Result<Exit> {
    let session = Session::current()?;
    let settings = session.settings()?;
    let Some((executable, arguments)) = arguments.split_first() else { bail!("cargo named no program to run") };
    if settings.tests && arguments.iter().any(|argument| argument == "--list") {
        return plainly(Command::new(executable).args(arguments));
    }
    let program = Path::new(executable).file_name().unwrap_or(executable).to_string_lossy().into_owned();
    let test = if settings.tests { single_test(arguments) } else { None };
    let mut result = ProgramResult { program, test, store: None, counts: Counts::default(), met: false, failure: None };
    let exit = match check(&settings, executable, arguments, &mut result) {
        Ok(exit) => exit,
        Err(error) => {
            say!("{error:#}");
            result.failure = Some(format!("{error:#}"));
            Exit::Failed
        }
    };
    session.add_result(&result)?;
    // Cargo would stop at a program that fails. nextest goes on, and has to know which tests those are.
    let is_red = result.test.is_some() && result.met && exit.code() == 0;
    Ok(if is_red { Exit::Findings } else { exit })
}

/// Of a program's arguments as nextest gives them: the one test that is executed.
fn single_test(arguments: &[OsString]) -> Option<String> {
    let at = arguments.iter().position(|argument| argument == "--exact")?;
    let name = arguments.get(at + 1)?.to_str()?;
    (std::env::var_os("NEXTEST").is_some() && !name.starts_with('-')).then(|| name.to_owned())
}

fn check(settings: &Settings, executable: &OsStr, arguments: &[OsString], result: &mut ProgramResult) -> Result<Exit> {
    let inspection = match program::inspect(executable, false) {
        Ok(found) if found.instrumentation == Instrumentation::Linked => found,
        // Procedural macros and their tests are programs of the host.
        Ok(_) | Err(Unfit::Unsuitable(_)) => {
            say!("{} is not instrumented and runs as it is", result.program);
            return plainly(Command::new(executable).args(arguments));
        }
        Err(unfit) => return Err(unfit.into()),
    };
    let line: Vec<OsString> =
        std::iter::once("rashomon").chain(settings.options.iter().map(String::as_str)).map(Into::into).collect();
    let line = complete_options(&RunnerOptions::command(), &line, Path::new(executable))?;
    let mut options = RunnerOptions::try_parse_from(line)?;
    options.report.name_files_after(&result.name().replace([' ', ':', '/'], "-"));
    if options.detect {
        return detect(executable, arguments, result);
    }
    rashomon_pipeline::program::keep().context("cannot start another process")?;
    end_children_on_interruption();
    let store = Store::create_in(&settings.stores, Path::new(executable))?;
    result.store = Some(store.path().to_path_buf());
    let ui = Ui { colour: Colour::Auto, quiet: settings.quiet };
    let mut variables = environment();
    variables.push((NO_BACKTRACE.0.into(), NO_BACKTRACE.1.into()));
    let prepared = prepare_inspected(&options.run, store, inspection, arguments.to_vec(), variables)?;
    let checked = check_prepared(ui, &options.run, &options.confirm, &options.report, prepared)?;
    result.counts = checked.counts;
    result.met = checked.met;
    Ok(checked.exit)
}

fn environment() -> Vec<(OsString, OsString)> {
    let mut variables: Vec<(OsString, OsString)> =
        std::env::vars_os().filter(|(name, _)| is_of_cargo(name) || name == TEST_THREADS).collect();
    if !variables.iter().any(|(name, _)| name == TEST_THREADS) {
        variables.push((TEST_THREADS.into(), "1".into()));
    }
    variables.sort();
    variables
}

/// What programs may look at; nothing that steers cargo itself or gives access to anything.
fn is_of_cargo(name: &OsStr) -> bool {
    let starts = ["CARGO_MANIFEST_", "CARGO_PKG_", "CARGO_BIN_", "CARGO_TARGET_TMPDIR", "NEXTEST"];
    let names = ["CARGO", "CARGO_CRATE_NAME", "CARGO_PRIMARY_PACKAGE", "LD_LIBRARY_PATH", "OUT_DIR"];
    starts.iter().any(|start| name.as_bytes().starts_with(start.as_bytes())) || names.iter().any(|known| name == *known)
}

fn plainly(command: &mut Command) -> Result<Exit> {
    let status = command.status().with_context(|| format!("cannot execute {}", Path::new(command.get_program()).display()))?;
    Ok(match (status.code(), status.signal()) {
        (Some(code), _) => Exit::Program(u8::try_from(code).unwrap_or(1)),
        (None, signal) => Exit::Signal(signal.and_then(|signal| u8::try_from(signal).ok()).unwrap_or(0)),
    })
}

/// Online detection, by the tool's own command. Its exit code tells of findings where the program's own is not that one.
fn detect(executable: &OsStr, arguments: &[OsString], result: &mut ProgramResult) -> Result<Exit> {
    let mut command = Command::new(std::env::current_exe().context("cannot tell where this program is")?);
    command.arg("detect").arg("--").arg(executable).args(arguments).envs(environment());
    let exit = plainly(&mut command)?;
    result.met = exit == Exit::Program(Exit::Findings.code());
    Ok(if result.met { Exit::Success } else { exit })
}
