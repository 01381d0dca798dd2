//! A stored finding under a debugger: the execution that shows it, stopped where it has come about, or at a turn before.
//!
//! What a debugger shows and can be told is a script in Python: `session.py`, which knows no debugger, and a thin layer for each
//! of them. Each execution needs a session of its own, and the program's world restored: the script has the tool do that whenever
//! the program starts again.

pub mod gdb;
pub mod lldb;
pub mod vscode;

use super::{provocation_of, schedule_of};
use crate::error::PipelineError;
use crate::provoke::request_of;
use rashomon_abi::debugged::{SNAPSHOTS, THREADS, WAKE, word};
use rashomon_abi::exploration::snapshot::refusal;
use rashomon_confirm::force::debugged_session;
use rashomon_confirm::provoke::provoking_session;
use rashomon_confirm::{Forcing, Input, Program, client, execution};
use rashomon_event::{Deadline, Finding, First, harmless};
use rashomon_explore::file::Refusal;
use rashomon_trace::{After, Watched};
use serde_json::{Value, json};
use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::Duration;

/// How long a thread is held at least while a debugger watches.
const DEBUGGED_HOLD: Duration = Duration::from_secs(60);
/// Processor time between two process snapshots to go back to, at first.
const BETWEEN_SNAPSHOTS: Duration = Duration::from_millis(200);
const SESSION_SCRIPT: &str = include_str!("session.py");

/// What is replayed.
#[derive(Clone, Copy, Debug)]
pub struct Debugged<'a> {
    pub program: &'a Program,
    pub finding: &'a Finding,
    pub forcing: &'a Forcing,
    /// The folder of the execution, which [`prepare`] makes. The script lies beside it.
    pub session: &'a Path,
    /// The command that makes it again, and restores the program's world.
    pub again: &'a [OsString],
    /// Stop at this turn of each execution, and not only at the finding.
    pub stop: Option<u64>,
}

/// A debugger that is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Debugger {
    Gdb,
    Lldb,
}

/// Runs the debugger on the program with the finding's schedule or provocation in force, and waits for it. `arguments` are its
/// own. Keys go to the debugger, which is in the caller's process group; the caller ignores interruptions meanwhile.
pub fn under(debugger: Debugger, debugged: &Debugged<'_>, arguments: &[OsString]) -> Result<ExitStatus, PipelineError> {
    let program = debugged.program;
    let (mut command, name, option) = match debugger {
        Debugger::Gdb => (gdb::command(debugged, arguments)?, "gdb", "--gdb"),
        Debugger::Lldb => (lldb::command(debugged, arguments)?, "lldb", "--lldb"),
    };
    prepare(debugged.finding, debugged.session, debugged.forcing)?;
    execution::restore(program, Deadline::NEVER)?;
    let mut child = command.spawn().map_err(|error| match error.kind() {
        ErrorKind::NotFound => PipelineError::NoDebugger { name, option },
        _ => PipelineError::Io { action: "execute", path: name.into(), source: error },
    })?;
    let asked = client::beside_debugger(program, &child, debugged.session);
    let status = child.wait().map_err(|source| PipelineError::Io { action: "wait for", path: name.into(), source })?;
    asked?;
    Ok(status)
}

/// A session in which the program, started by somebody else, goes on after the finding has come about. What an earlier execution
/// left there is removed.
pub fn prepare(finding: &Finding, session: &Path, forcing: &Forcing) -> Result<(), PipelineError> {
    if let Some(provocation) = provocation_of(finding)? {
        let watched = [Watched { descriptor: provocation.held.clone(), holds: 1 }];
        let mut request = request_of(provocation, &watched, First::Either);
        // A debugger stops threads as it likes: the time that others need to arrive is not theirs alone.
        request.hold = request.hold.max(DEBUGGED_HOLD);
        request.holds = request.holds.max(DEBUGGED_HOLD * 2);
        return Ok(provoking_session(&request, session, After::Continue, forcing.processes)?);
    }
    let schedule = schedule_of(finding)?;
    Ok(debugged_session(schedule, session, forcing)?)
}

/// The same before another execution, and the program's world restored.
pub fn prepare_again(program: &Program, finding: &Finding, session: &Path, forcing: &Forcing) -> Result<(), PipelineError> {
    prepare(finding, session, forcing)?;
    execution::restore(program, Deadline::NEVER)?;
    Ok(())
}

/// How many turns the finding's schedule has. `None`: it is provoked, with threads in parallel.
pub fn turns(finding: &Finding) -> Option<usize> {
    let schedule = finding.schedule.as_ref().filter(|_| finding.provocation.is_none());
    schedule.map(|schedule| schedule.turns.len())
}

/// Writes a debugger's script beside the session. `editor`: an editor starts the program, each time anew; otherwise the first
/// execution has its session. `more`: what this debugger has to know besides.
fn write_script(debugged: &Debugged<'_>, (name, own): (&str, &str), editor: bool, more: Value) -> Result<PathBuf, PipelineError> {
    let sides = debugged.finding.sides.iter().map(|side| {
        // As a stack in memory has them: where calls return to.
        let calls = side.stack.iter().filter_map(|frame| Some((&frame.module, frame.offset.checked_add(1)?)));
        let calls: Vec<_> = calls.collect();
        json!({ "name": thread_words(&side.thread), "action": harmless(&side.action), "calls": calls })
    });
    // An editor starts its program itself. A client, and what is restored before each execution, do not go back to a turn.
    let snapshots = !editor && debugged.program.runs_alone();
    let again: Vec<_> = debugged.again.iter().map(|word| unicode(word)).collect::<Result<_, _>>()?;
    let mut settings = json!({
        "sides": Value::from_iter(sides),
        "turns": turns(debugged.finding),
        "words": {
            "TURN": word::TURN, "STOP": word::STOP, "HOLDER": word::HOLDER, "ADDRESS": word::ADDRESS, "BYTES": word::BYTES,
            "EVERY": word::EVERY, "DEBUGGER": word::DEBUGGER, "WANTED": word::WANTED, "REFUSED": word::REFUSED, "GO": word::GO,
            "SNAPSHOT": word::SNAPSHOT, "THREADS": word::THREADS,
        },
        "tables": { "SNAPSHOT": 2 * SNAPSHOTS, "THREADS": THREADS },
        "wake": WAKE,
        "every": if snapshots { u64::try_from(BETWEEN_SNAPSHOTS.as_nanos()).unwrap_or(u64::MAX) } else { 0 },
        "refusals": Value::from_iter((0..=refusal::LAST).map(|code| Refusal::of(code).words())),
        "stop": debugged.stop,
        "prepare": again,
        "prepared": !editor,
        "editor": editor,
    });
    if let (Some(settings), Value::Object(more)) = (settings.as_object_mut(), more) {
        settings.extend(more);
    }
    // A text of JSON in ASCII is one of Python, too.
    let text = Value::from(ascii(&settings.to_string()));
    let script = format!("import json\n\nSETTINGS = json.loads({text})\n\n{SESSION_SCRIPT}\n\n{own}");
    let path = debugged.session.with_file_name(name);
    std::fs::write(&path, script).map_err(PipelineError::io("write", &path))?;
    Ok(path)
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

/// What scripts and editors take.
fn unicode(text: &OsStr) -> Result<&str, PipelineError> {
    text.to_str().ok_or_else(|| PipelineError::NotUnicode { text: text.to_string_lossy().into_owned() })
}

/// What the program has in its environment beside that of the debugger.
fn environment(debugged: &Debugged<'_>) -> Result<Value, PipelineError> {
    let variables = execution::environment(debugged.program, debugged.session);
    let variables = variables.iter().map(|(name, value)| Ok(json!([unicode(name)?, unicode(value)?])));
    variables.collect()
}

/// Standard input of the program, if it is a file.
fn input(forcing: &Forcing) -> Option<&Path> {
    match &forcing.input {
        Input::File(path) => Some(path),
        _ => None,
    }
}

/// A command that is waited for, in the program's folder.
fn in_its_folder(debugger: impl AsRef<OsStr>, program: &Program) -> Command {
    let mut command = Command::new(debugger);
    command.current_dir(&program.directory);
    command
}
