//! gdb, as a command of its own.

use super::{Debugged, in_its_folder, input, write_script};
use crate::error::PipelineError;
use crate::store::run::quoted;
use rashomon_confirm::execution;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What gdb is told before the program starts.
const PRELUDE: [&str; 3] = ["set breakpoint pending on", "set pagination off", "set confirm off"];
const SCRIPT: (&str, &str) = ("rashomon_gdb.py", include_str!("gdb.py"));
/// What gdb itself must not have: it would load the runtime, or claim the session.
const OF_THE_PROGRAM: [&str; 3] = [rashomon_abi::SESSION_VARIABLE, "LD_LIBRARY_PATH", "LD_PRELOAD"];

/// The script for a gdb that somebody else starts, in an environment of his own.
pub(super) fn script(debugged: &Debugged<'_>) -> Result<PathBuf, PipelineError> {
    write_script(debugged, SCRIPT, true, json!({ "environment": super::environment(debugged)? }))
}

/// gdb with the program's environment, as far as the program.
pub(super) fn command(debugged: &Debugged<'_>, arguments: &[OsString]) -> Result<Command, PipelineError> {
    let none = Value::Array(Vec::new());
    let script = write_script(debugged, SCRIPT, false, json!({ "environment": none }))?;
    let program = debugged.program;
    let mut gdb = in_its_folder("gdb", program);
    gdb.args(["-q", "-iex", "set debuginfod enabled off"]);
    for command in PRELUDE {
        gdb.args(["-ex", command]);
    }
    for (name, value) in execution::environment(program, debugged.session) {
        if OF_THE_PROGRAM.iter().any(|own| name == *own) {
            let mut set = OsString::from("set environment ");
            set.push(name);
            set.push(" ");
            set.push(value);
            gdb.arg("-ex").arg(set);
        } else {
            gdb.env(name, value);
        }
    }
    // A gdb without Python says so, and stops nowhere but at signals and breakpoints of its user.
    let mut source = OsString::from("source ");
    source.push(script);
    gdb.arg("-ex").arg(source).arg("-ex").arg(run(debugged));
    gdb.args(arguments).arg("--args").arg(&program.executable);
    Ok(gdb)
}

/// What follows `run` takes the place of the arguments that gdb itself was given, and holds for each later `run`.
fn run(debugged: &Debugged<'_>) -> OsString {
    let mut run = OsString::from("run");
    for argument in &debugged.program.arguments {
        run.push(" ");
        run.push(quoted(argument));
    }
    run.push(" < ");
    run.push(quoted(input(debugged.forcing).unwrap_or(Path::new("/dev/null")).as_os_str()));
    run
}
