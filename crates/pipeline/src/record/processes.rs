//! Which programs a recording is of: the one that was started may be a script, and a program may start others.

use crate::error::PipelineError;
use rashomon_abi::MODULES_FILE;
use rashomon_event::{ProcessPath, path_of};
use rashomon_trace::modules::{self, ModuleLine};
use rashomon_trace::{RunHeader, RunState, TraceError, processes};
use std::io::Read as _;
use std::path::Path;

/// More are counted, not named.
const MOST_NAMED: usize = 8;
/// The line of a program's own file is the first.
const HEAD_BYTES: u64 = 1 << 16;

/// `recorded: redis-server (initial), redis-server (process 0)`. Nothing is said of a single process whose program is `expected`.
pub fn said_of(session: &Path, expected: &Path) -> Result<Option<String>, PipelineError> {
    let processes = processes(session)?;
    let named = processes.iter().take(MOST_NAMED).map(|process| Ok((&process.path, program_of(&process.folder)?)));
    let named: Vec<(&ProcessPath, Option<String>)> = named.collect::<Result<_, PipelineError>>()?;
    let expected = expected.file_name().map(|name| name.to_string_lossy().into_owned());
    if processes.len() == 1 && named.iter().all(|(_, name)| name.is_none() || *name == expected) {
        return Ok(None);
    }
    let said = named.into_iter().map(|(path, name)| {
        let name = name.unwrap_or_else(|| "a program without a name".into());
        if path.is_initial() { format!("{name} (initial process)") } else { format!("{name} (process {path})") }
    });
    let mut said: Vec<String> = said.collect();
    if processes.len() > MOST_NAMED {
        said.push(format!("and {} more", processes.len() - MOST_NAMED));
    }
    Ok(Some(format!("recorded: {}", said.join(", "))))
}

/// Processes that the program made and that crashed, and what the kernel said.
pub fn crashes_of(session: &Path) -> Result<Vec<String>, PipelineError> {
    let mut said = Vec::new();
    for process in processes(session)?.iter().skip(1) {
        let Ok(RunHeader { state: RunState::Crashed, crash, .. }) = RunHeader::read(&process.folder) else { continue };
        let name = program_of(&process.folder)?.unwrap_or_else(|| "a program without a name".into());
        let reason = crash.map_or_else(|| "by a signal".into(), |crash| crash.to_string());
        said.push(format!("process {} ({name}), which the program made, died: {reason}", process.path));
    }
    if said.len() > MOST_NAMED {
        let further = said.split_off(MOST_NAMED).len();
        said.push(format!("{further} further processes that the program made died"));
    }
    Ok(said)
}

/// The name of the program's file. `None` if the process ended before it could be told.
fn program_of(folder: &Path) -> Result<Option<String>, PipelineError> {
    let path = folder.join(MODULES_FILE);
    let mut bytes = Vec::new();
    match rashomon_files::open(&path, rashomon_files::Links::Refused) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(TraceError::Io { action: "open", path, source }.into()),
        Ok(file) => file.take(HEAD_BYTES).read_to_end(&mut bytes).map_err(|source| TraceError::Io {
            action: "read",
            path: path.clone(),
            source,
        })?,
    };
    let first = bytes.split_inclusive(|&byte| byte == b'\n').next().unwrap_or_default();
    let lines = modules::parse(&path, first)?.lines.into_iter();
    let name = lines.filter_map(|line| match line {
        ModuleLine::Loaded { module, .. } => Some(path_of(&module.path).file_name()?.to_string_lossy().into_owned()),
        ModuleLine::Unloaded { .. } => None,
    });
    Ok(name.into_iter().next())
}
