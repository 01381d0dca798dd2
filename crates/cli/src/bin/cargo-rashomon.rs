//! `cargo rashomon …`: becomes `rashomon cargo …`, the tool beside it or the one in `PATH`.
#![forbid(unsafe_code)]

use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1).peekable();
    // Cargo repeats the name of its subcommand.
    let _ = arguments.next_if(|first| first == "rashomon");
    let beside = std::env::current_exe().ok().map(|own| own.with_file_name("rashomon")).filter(|tool| tool.is_file());
    let error = Command::new(beside.unwrap_or_else(|| "rashomon".into())).arg("cargo").args(arguments).exec();
    // Nobody may be left to be told.
    let _ = writeln!(std::io::stderr(), "cargo-rashomon: cannot execute rashomon, which belongs beside it: {error}");
    ExitCode::from(127)
}
