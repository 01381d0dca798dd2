//! How large a recording is, and what its bytes are spent on.
//!
//! Counting maps the whole recording. Pages that a process ever had resident count in the peak of the programs it starts
//! (the kernel keeps the larger of both across `exec`), so this runs in a process of its own.

use anyhow::{Context as _, Result, bail};
use rashomon_trace::Recording;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// The hidden command that counts.
pub const COMMAND: &str = "count-recording";

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TraceSize {
    /// All records.
    pub bytes: u64,
    /// What they take in the files, compressed as they are.
    pub stored_bytes: u64,
    pub accesses_kept: u64,
    pub accesses_executed: u64,
    pub synchronisation_events: u64,
    /// To decompress and decode the records of all threads, one after the other.
    pub read_seconds: f64,
}

impl TraceSize {
    /// All that is stored, synchronisation included, for each access kept.
    pub fn per_kept(&self) -> f64 {
        self.stored_bytes as f64 / self.accesses_kept.max(1) as f64
    }
    pub fn per_executed(&self) -> f64 {
        self.stored_bytes as f64 / self.accesses_executed.max(1) as f64
    }
}

/// Counts in a process of its own.
pub fn of(session: &Path) -> Result<TraceSize> {
    let own = std::env::current_exe().context("cannot find this program's own file")?;
    let output =
        Command::new(own).arg(COMMAND).arg(session).stderr(Stdio::inherit()).output().context("cannot start the counter")?;
    if !output.status.success() {
        bail!("{} cannot be counted", session.display());
    }
    serde_json::from_slice(&output.stdout).context("the counter printed something else")
}

/// The body of [`COMMAND`].
pub fn count(session: &Path) -> Result<TraceSize> {
    let recording = Recording::open(session)?;
    let statistics = recording.statistics();
    if let Some((file, fault)) = statistics.faults.first() {
        bail!("{}: {file} is damaged at byte {}: {}", session.display(), fault.offset, fault.what);
    }
    let begin = Instant::now();
    for stream in &recording.streams {
        let mut reader = stream.reader();
        while let Ok(Some(record)) = reader.next_record() {
            std::hint::black_box(&record);
        }
    }
    let read_seconds = begin.elapsed().as_secs_f64();
    Ok(TraceSize {
        bytes: statistics.record_bytes,
        stored_bytes: statistics.stored_bytes,
        accesses_kept: statistics.accesses_kept(),
        accesses_executed: statistics.accesses_executed,
        synchronisation_events: statistics.operations.values().sum(),
        read_seconds,
    })
}

/// The recordings in a folder and below it, in order of names.
pub fn sessions_below(folder: &Path) -> Result<Vec<PathBuf>> {
    if folder.join("header").is_file() {
        return Ok(vec![folder.to_path_buf()]);
    }
    let entries = std::fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
    let mut folders: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).filter(|path| path.is_dir()).collect();
    folders.sort();
    let mut found = Vec::new();
    for below in folders {
        found.extend(sessions_below(&below)?);
    }
    Ok(found)
}
