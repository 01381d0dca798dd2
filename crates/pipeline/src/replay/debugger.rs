//! A stored finding under gdb: the execution that shows it, stopped where it has come about.

use super::{provocation_of, schedule_of};
use crate::error::PipelineError;
use crate::provoke::request_of;
use crate::store::run::quoted;
use rashomon_confirm::force::forced_session;
use rashomon_confirm::provoke::provoking_session;
use rashomon_confirm::{Forcing, Input, Program, client, execution};
use rashomon_event::{Deadline, Finding, First, harmless};
use rashomon_trace::{After, Watched};
use std::ffi::OsString;
use std::io::{ErrorKind, Write as _};
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::time::Duration;

/// How long a thread is held at least while a debugger watches.
const DEBUGGED_HOLD: Duration = Duration::from_secs(60);
/// What gdb is told before the program starts. The runtime calls the function when the finding has come about.
const PRELUDE: [&str; 4] =
    ["set breakpoint pending on", "set pagination off", "set confirm off", "break rashomon_finding_reached"];
/// Shows threads and frames as the report does.
const SCRIPT: &str = include_str!("gdb.py");
/// What gdb itself must not have: it would load the runtime, or claim the session.
const OF_THE_PROGRAM: [&str; 3] = [rashomon_abi::SESSION_VARIABLE, "LD_LIBRARY_PATH", "LD_PRELOAD"];

/// Runs gdb on the program with the finding's schedule or provocation in force, and waits for gdb. `arguments` are gdb's own.
/// Keys go to gdb, which is in the caller's process group; the caller ignores interruptions meanwhile.
pub fn under_gdb(
    program: &Program,
    finding: &Finding,
    session: &Path,
    forcing: &Forcing,
    arguments: &[OsString],
) -> Result<ExitStatus, PipelineError> {
    prepare(finding, session, forcing)?;
    let script = tempfile::Builder::new().prefix("rashomon-").suffix(".py").tempfile();
    let script = script.and_then(|mut file| file.write_all(script_of(finding).as_bytes()).map(|()| file));
    let script = script.map_err(|source| PipelineError::Io { action: "write", path: "a script for gdb".into(), source })?;
    let mut gdb = command(program, session, &forcing.input, script.path());
    gdb.args(arguments).arg("--args").arg(&program.executable);
    execution::restore(program, Deadline::NEVER)?;
    let mut gdb = gdb.spawn().map_err(|error| match error.kind() {
        ErrorKind::NotFound => PipelineError::NoDebugger,
        _ => PipelineError::Io { action: "execute", path: "gdb".into(), source: error },
    })?;
    let asked = client::beside_debugger(program, &gdb, session);
    let status = gdb.wait().map_err(|source| PipelineError::Io { action: "wait for", path: "gdb".into(), source })?;
    asked?;
    Ok(status)
}

/// The script, with the sides of the finding.
fn script_of(finding: &Finding) -> String {
    let sides = finding.sides.iter().map(|side| {
        // As a stack in memory has them: where calls return to.
        let calls = side.stack.iter().filter_map(|frame| Some((&frame.module, frame.offset.checked_add(1)?)));
        let calls: Vec<_> = calls.collect();
        serde_json::json!({ "name": thread_words(&side.thread), "action": harmless(&side.action), "calls": calls })
    });
    // Lists, objects, texts in ASCII and numbers are the same in JSON and in Python.
    let sides = ascii(&serde_json::Value::from_iter(sides).to_string());
    format!("SIDES = {sides}\n{SCRIPT}")
}

/// The same JSON without characters beyond ASCII.
fn ascii(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        if c.is_ascii() {
            text.push(c);
        } else {
            c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| text.push_str(&format!("\\u{unit:04x}")));
        }
    }
    text
}

/// As reports call a thread.
fn thread_words(path: &str) -> String {
    if path == "main" { "main thread".to_owned() } else { format!("thread {}", harmless(path)) }
}

/// A session in which the program, started by somebody else, goes on after the finding has come about.
fn prepare(finding: &Finding, session: &Path, forcing: &Forcing) -> Result<(), PipelineError> {
    if let Some(provocation) = provocation_of(finding)? {
        let watched = [Watched { descriptor: provocation.held.clone(), holds: 1 }];
        let mut request = request_of(provocation, &watched, First::Either);
        // A debugger stops threads as it likes: the time that others need to arrive is not theirs alone.
        request.hold = request.hold.max(DEBUGGED_HOLD);
        request.holds = request.holds.max(DEBUGGED_HOLD * 2);
        return Ok(provoking_session(&request, session, After::Continue, forcing.processes)?);
    }
    let schedule = schedule_of(finding)?;
    Ok(forced_session(schedule, After::Continue, session, forcing)?)
}

/// gdb with the program's environment, as far as the program.
fn command(program: &Program, session: &Path, input: &Input, script: &Path) -> Command {
    // What follows `run` takes the place of the arguments that gdb itself was given.
    let mut run = OsString::from("run");
    for argument in &program.arguments {
        run.push(" ");
        run.push(quoted(argument));
    }
    match input {
        Input::File(path) => {
            run.push(" < ");
            run.push(quoted(path.as_os_str()));
        }
        _ => run.push(" < /dev/null"),
    }
    let mut gdb = Command::new("gdb");
    gdb.current_dir(&program.directory).args(["-q", "-iex", "set debuginfod enabled off"]);
    for command in PRELUDE {
        gdb.args(["-ex", command]);
    }
    // A gdb without Python says so, and shows everything.
    let mut source = OsString::from("source ");
    source.push(script);
    gdb.arg("-ex").arg(source);
    for (name, value) in execution::environment(program, session) {
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
    gdb.arg("-ex").arg(run);
    gdb
}
