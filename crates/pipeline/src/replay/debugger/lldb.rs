//! lldb, as a command of its own.

use super::{Debugged, in_its_folder, input, unicode, write_script};
use crate::error::PipelineError;
use serde_json::json;
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// lldb imports it as a module: its name is one.
const SCRIPT: (&str, &str) = ("rashomon_lldb.py", include_str!("lldb.py"));

/// A program of lldb's in the search path: `name` itself, or the highest version of it (`lldb-19`).
pub fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    if let Some(found) = folders.iter().map(|folder| folder.join(name)).find(|path| is_executable(path)) {
        return Some(found);
    }
    let entries = folders.iter().filter_map(|folder| std::fs::read_dir(folder).ok()).flatten().flatten();
    let versions = entries.filter_map(|entry| {
        let version: u32 = entry.file_name().to_str()?.strip_prefix(name)?.strip_prefix('-')?.parse().ok()?;
        Some((version, entry.path())).filter(|(_, path)| is_executable(path))
    });
    versions.max_by_key(|(version, _)| *version).map(|(_, path)| path)
}

fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// The script. `editor`: for lldb-dap.
pub(super) fn script(debugged: &Debugged<'_>, editor: bool) -> Result<PathBuf, PipelineError> {
    let program = debugged.program;
    let arguments = program.arguments.iter().map(|argument| unicode(argument)).collect::<Result<Vec<_>, _>>()?;
    let more = json!({
        "arguments": arguments,
        "directory": unicode(program.directory.as_os_str())?,
        "environment": super::environment(debugged)?,
        "input": input(debugged.forcing).map(|path| unicode(path.as_os_str())).transpose()?,
    });
    write_script(debugged, SCRIPT, editor, more)
}

/// The command of lldb that loads a script.
pub(super) fn import(script: &Path) -> Result<String, PipelineError> {
    let path = unicode(script.as_os_str())?.replace('\\', "\\\\").replace('"', "\\\"");
    Ok(format!("command script import \"{path}\""))
}

/// lldb, as far as the program.
pub(super) fn command(debugged: &Debugged<'_>, arguments: &[OsString]) -> Result<Command, PipelineError> {
    let Some(lldb) = find("lldb") else {
        return Err(PipelineError::NoDebugger { name: "lldb", option: "--lldb" });
    };
    let import = import(&script(debugged, false)?)?;
    let mut lldb = in_its_folder(lldb, debugged.program);
    lldb.args(["-o", &import, "-o", "rashomon launch"]).args(arguments).arg("-f").arg(&debugged.program.executable);
    Ok(lldb)
}
