//! The processes of a session: which folders below it hold recordings, and whose they are.

use crate::error::TraceError;
use rashomon_abi::{HEADER_FILE, PROCESS_FOLDER_PREFIX};
use rashomon_event::ProcessPath;
use rashomon_files::Links;
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};

/// No session has more; what lies behind is not looked at.
const MAX_PROCESSES: usize = 1 << 16;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessFolder {
    pub path: ProcessPath,
    pub folder: PathBuf,
}

/// The folder that a process of the session records in.
pub fn process_folder(session: &Path, process: &ProcessPath) -> PathBuf {
    let names = process.0.iter().map(|place| format!("{PROCESS_FOLDER_PREFIX}{place:04}"));
    names.fold(session.to_path_buf(), |folder, name| folder.join(name))
}

/// All processes of a session that recorded, the initial one first, each before those it made.
pub fn processes(session: &Path) -> Result<Vec<ProcessFolder>, TraceError> {
    let mut found = vec![ProcessFolder { path: ProcessPath::default(), folder: session.to_path_buf() }];
    let mut next = 0;
    while next < found.len() && found.len() < MAX_PROCESSES {
        let ProcessFolder { path, folder } = found[next].clone();
        next += 1;
        let failed = |source| TraceError::Io { action: "list", path: folder.clone(), source };
        let entries = match std::fs::read_dir(&folder) {
            Ok(entries) => entries,
            // No recording at all: opening it says so better.
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => continue,
            Err(error) => return Err(failed(error)),
        };
        for entry in entries {
            let entry = entry.map_err(failed)?;
            let place = entry.file_name().to_str().and_then(|name| name.strip_prefix(PROCESS_FOLDER_PREFIX)?.parse().ok());
            // A link would lead out of the session, or round in circles.
            if let Some(place) = place
                && entry.file_type().is_ok_and(|kind| kind.is_dir())
                && began(&entry.path().join(HEADER_FILE))
            {
                let mut path = path.clone();
                path.0.push(place);
                found.push(ProcessFolder { path, folder: entry.path() });
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found.truncate(MAX_PROCESSES);
    Ok(found)
}

/// Whether a process began to record. The magic word is the last that is written of a new header: who was killed before has
/// recorded nothing.
fn began(header: &Path) -> bool {
    let mut magic = [0; 8];
    rashomon_files::open(header, Links::Refused).is_ok_and(|mut file| file.read_exact(&mut magic).is_ok() && magic != [0; 8])
}
