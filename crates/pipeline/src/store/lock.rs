//! Who uses a store. A second command that would get in the way of the first ends and says whose way it was: waiting could last
//! for ever (the first may be the one that runs the second), and who wants to wait can. It waits only as long as a command that
//! was killed needs to be gone.

use crate::error::PipelineError;
use rashomon_files::{Folder, Links};
use std::time::{Duration, Instant};

/// Bytes of `/proc/locks` that are looked at.
const MOST: u64 = 1 << 22;
/// How long a command that was killed may keep its locks: before the kernel shows that it is dying, and from then on, while it
/// gives back memory and files.
const KILLED: Duration = Duration::from_millis(500);
const DYING: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_millis(5);

/// Locks the store's folder, until its handle is closed: alone, or beside others that want no more.
pub(crate) fn lock(folder: &Folder, alone: bool) -> Result<(), PipelineError> {
    let start = Instant::now();
    while !folder.lock(alone) {
        let waited = start.elapsed();
        let by = if waited < KILLED { None } else { holder(folder) };
        if waited < KILLED || waited < DYING && by.as_ref().is_some_and(|by| by.words.is_empty()) {
            std::thread::sleep(PAUSE);
            continue;
        }
        let by = by.map_or_else(|| "another command".into(), |by| format!("process {} ({})", by.process, by.words));
        return Err(PipelineError::InUse { path: folder.path().to_path_buf(), by });
    }
    Ok(())
}

/// Who holds a lock.
struct Holder {
    process: u32,
    /// Its command line; nothing once it is dying.
    words: String,
}

/// The kernel knows who holds a lock; no file has to tell, which could be wrong.
fn holder(folder: &Folder) -> Option<Holder> {
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
    Some(Holder { process, words: words.trim_end().to_owned() })
}
