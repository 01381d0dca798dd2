//! Becoming the tool, under another name.

use std::ffi::OsString;
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};

/// Executes `rashomon COMMAND ARGUMENTS…`: the tool beside this program, or the one in `PATH`. Returns only if that fails.
pub fn become_tool(own: &str, command: &str, arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let beside = std::env::current_exe().ok().map(|own| own.with_file_name("rashomon")).filter(|tool| tool.is_file());
    let error = Command::new(beside.unwrap_or_else(|| "rashomon".into())).arg(command).args(arguments).exec();
    // Nobody may be left to be told.
    let _ = writeln!(std::io::stderr(), "{own}: cannot execute rashomon, which belongs beside it: {error}");
    ExitCode::from(127)
}
