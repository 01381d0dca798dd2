//! The project's own commands. `cargo xtask` lists them.
#![forbid(unsafe_code)]

mod book;
mod ci;
mod evaluate;
mod fuzz;
mod soak;
mod workspace;

use clap::{Parser, Subcommand};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

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
    /// Write the generated chapters of the book (docs/reference/cli.md), and build the book where mdbook is installed.
    Book(book::Options),
    /// Install manual pages and shell completions.
    InstallDocs(book::InstallOptions),
    /// Measure what the tool costs. Exit code 0 only if every bar is met.
    Evaluate(evaluate::Options),
    /// Fuzz every reader of files, guided by coverage. Exit code 0 only if nothing is found.
    Fuzz(fuzz::Options),
    /// Programs that do everything at once, ended at random moments. Exit code 0 only if nothing fails.
    Soak(soak::Options),
    /// Count the records of one recording, for `evaluate`.
    #[command(name = evaluate::trace_size::COMMAND, hide = true)]
    CountRecording { session: PathBuf },
}

/// `evaluate memory` puts tables on disk.
#[global_allocator]
static ALLOCATOR: rashomon_spill::Allocator = rashomon_spill::Allocator;

fn print_count(session: &Path) -> anyhow::Result<bool> {
    println!("{}", serde_json::to_string(&evaluate::trace_size::count(session)?)?);
    Ok(true)
}

fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Command::Ci(options) => ci::run(&options),
        Command::Book(options) => book::run(&options),
        Command::InstallDocs(options) => book::install(&options),
        Command::Evaluate(options) => evaluate::run(&options),
        Command::Fuzz(options) => fuzz::run(&options),
        Command::Soak(options) => soak::run(&options),
        Command::CountRecording { session } => print_count(&session),
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
