//! Editors that start debuggers by the Debug Adapter Protocol (DAP) or gdb's machine interface, for which this is what Visual
//! Studio Code reads from `launch.json`.
//!
//! An editor starts the program as often as it likes: the debugger's script has the session made each time, by the tool.

use super::lldb::{find, import, script as lldb_script};
use super::{Debugged, gdb, input, unicode};
use crate::error::PipelineError;
use serde_json::{Value, json};

/// A whole `launch.json` with one configuration for lldb-dap and one for gdb by the extension cpptools. Writes their scripts
/// beside the session.
pub fn launch_json(debugged: &Debugged<'_>) -> Result<Value, PipelineError> {
    let program = debugged.program;
    let executable = unicode(program.executable.as_os_str())?;
    let directory = unicode(program.directory.as_os_str())?;
    let id = &debugged.finding.id;
    let name = match debugged.stop {
        Some(turn) => format!("{id}, turn {turn}"),
        None => id.to_string(),
    };
    let mut lldb = json!({
        "name": format!("{name} (lldb)"),
        "type": "lldb-dap",
        "request": "launch",
        "program": executable,
        "cwd": directory,
        "preRunCommands": [import(&lldb_script(debugged, true)?)?],
    });
    // Debian's is called lldb-dap-19, and the editor looks for lldb-dap.
    if let Some(adapter) = find("lldb-dap") {
        lldb["debugAdapterExecutable"] = unicode(adapter.as_os_str())?.into();
    }
    let script = gdb::script(debugged)?;
    // gdb has a shell start the program.
    let mut arguments: Vec<String> =
        program.arguments.iter().map(|argument| unicode(argument).map(shell)).collect::<Result<_, _>>()?;
    let input = input(debugged.forcing).map(|path| unicode(path.as_os_str())).transpose()?;
    arguments.extend(["<".to_owned(), shell(input.unwrap_or("/dev/null"))]);
    let gdb = json!({
        "name": format!("{name} (gdb)"),
        "type": "cppdbg",
        "MIMode": "gdb",
        "request": "launch",
        "program": executable,
        "args": arguments,
        "cwd": directory,
        "setupCommands": [
            { "text": "set breakpoint pending on" },
            { "text": "set confirm off" },
            { "text": "-enable-pretty-printing", "ignoreFailures": true },
            { "text": format!("source {}", unicode(script.as_os_str())?) },
        ],
    });
    Ok(json!({ "version": "0.2.0", "configurations": [lldb, gdb] }))
}

/// One word of a shell.
fn shell(text: &str) -> String {
    crate::store::run::quoted(text.as_ref()).to_string_lossy().into_owned()
}
