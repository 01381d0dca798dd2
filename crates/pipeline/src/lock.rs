//! Who uses a store. A second command that would get in the way of the first ends at once and says whose way it was: waiting could last for ever (the first may be the one that
//! runs the second), and who wants to wait can.

use crate::error::PipelineError;
use rashomon_files::{Folder, Links};

/// Bytes of `/proc/locks` that are looked at.
const MOST: u64 = 1 << 22;

/// Locks the store's folder, until its handle is closed: alone, or beside others that want no more.
pub(crate) fn lock(folder: &Folder, alone: bool) -> Result<(), PipelineError> {
    if folder.lock(alone) {
        return Ok(());
    }
    let by = holder(folder).unwrap_or_else(|| "another command".into());
    Err(PipelineError::InUse { path: folder.path().to_path_buf(), by })
}

/// The kernel knows who holds a lock; no file has to tell, which could be wrong.
fn holder(folder: &Folder) -> Option<String> {
    let (_, number) = folder.identity().ok()?;
    let locks = rashomon_files::read("/proc/locks".as_ref(), Links::Refused, MOST).ok()?;
    let locks = String::from_utf8_lossy(&locks).into_owned();
    // `1: FLOCK  ADVISORY  WRITE 4711 08:01:1234 0 EOF`
    let process = locks.lines().find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [_, "FLOCK", _, _, process, file, ..] = fields[..] else { return None };
        (file.rsplit(':').next()?.parse() == Ok(number)).then_some(process.parse::<u32>().ok()?)
    })?;
    let command = rashomon_files::read(format!("/proc/{process}/cmdline").as_ref(), Links::Refused, MOST).unwrap_or_default();
    let words = String::from_utf8_lossy(&command).replace('\0', " ");
    Some(format!("process {process} ({})", words.trim_end()))
}
