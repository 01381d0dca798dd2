//! The project's own commands. `cargo xtask` lists them.
#![forbid(unsafe_code)]

mod assertions;
mod book;
mod ci;
mod fuzz;
mod package;
mod soak;

use anyhow::Context as _;
use clap::{Parser, Subcommand};
use std::ffi::OsString;
use std::process::ExitCode;
use xtask::plugin;
use xtask::workspace::cargo;

#[derive(Debug, Parser)]
#[command(name = "cargo xtask", about, disable_help_subcommand = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Check everything: formatting, lints, build, tests, laws. The same here as in continuous integration.
    Ci(ci::Options),
    /// Write the generated chapters of the book (docs/reference/cli.md), build the book as HTML and check its links.
    Book(book::Options),
    /// Install manual pages, shell completions, the header, and what CMake and pkg-config find.
    InstallDocs(book::InstallOptions),
    /// Measure what the tool costs and finds. Exit code 0 only if every bar is met.
    #[command(disable_help_flag = true)]
    Evaluate {
        /// Name of an evaluation and its options; without a name the evaluations are listed.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    /// Fuzz every reader of files, guided by coverage. Exit code 0 only if nothing is found.
    Fuzz(fuzz::Options),
    /// Make what others install from, in target/package: a wheel, a Debian package, crates.
    Package(package::Options),
    /// Build the plugin for clang 19 that `rashomon cc --deep` uses, and put it beside the tool. Needs LLVM 19.
    Plugin(plugin::Options),
    /// Programs that do everything at once, ended at random moments. Exit code 0 only if nothing fails.
    Soak(soak::Options),
}

/// Evaluations are a program of their own: the checks are built without them.
fn evaluate(arguments: &[OsString]) -> anyhow::Result<ExitCode> {
    let mut command = cargo();
    command.args(["run", "--quiet", "--release", "--package", "rashomon-evaluation", "--"]).args(arguments);
    command.current_dir(std::env::current_dir().context("the folder in which this runs is gone")?);
    let ended = command.status().context("cannot start cargo")?;
    let code = ended.code().with_context(|| format!("the evaluation was ended by a signal ({ended})"))?;
    Ok(ExitCode::from(u8::try_from(code).unwrap_or(1)))
}

fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Command::Ci(options) => ci::run(&options),
        Command::Book(options) => book::run(&options),
        Command::InstallDocs(options) => book::install(&options),
        Command::Evaluate { arguments } => {
            return evaluate(&arguments).unwrap_or_else(|error| {
                eprintln!("error: {error:#}");
                ExitCode::FAILURE
            });
        }
        Command::Fuzz(options) => fuzz::run(&options),
        Command::Package(options) => package::run(&options),
        Command::Plugin(options) => plugin::run(&options),
        Command::Soak(options) => soak::run(&options),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
