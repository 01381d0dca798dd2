//! How large a recording is, and what its bytes are spent on.
//!
//! Counting maps the whole recording. Pages that a process ever had resident count in the peak of the programs it starts
//! (the kernel keeps the larger of both across `exec`), so this runs in a process of its own.

use anyhow::{Context as _, Result, bail};
use rashomon_trace::Recording;
use rashomon_trace::stream::Record;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The hidden command that counts.
pub const COMMAND: &str = "count-recording";

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceSize {
    /// All records.
    pub bytes: u64,
    /// Records of accesses: all but those of synchronisation and of turns. Sites and call contexts are part of it.
    pub access_bytes: u64,
    pub accesses_kept: u64,
    pub accesses_executed: u64,
    pub synchronisation_events: u64,
}

impl TraceSize {
    pub fn per_kept(&self) -> f64 {
        self.access_bytes as f64 / self.accesses_kept.max(1) as f64
    }
    pub fn per_executed(&self) -> f64 {
        self.access_bytes as f64 / self.accesses_executed.max(1) as f64
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
    let mut other_words = 0;
    for stream in &recording.streams {
        let mut reader = stream.reader();
        while let Ok(Some(record)) = reader.next_record() {
            other_words += match record {
                Record::Sync(sync) => 3 + sync.arguments.count() as u64,
                Record::Turn { .. } => 2,
                Record::Executed { .. } => 1,
                _ => 0,
            };
        }
    }
    Ok(TraceSize {
        bytes: statistics.record_bytes,
        access_bytes: statistics.record_bytes.saturating_sub(other_words * 8),
        accesses_kept: statistics.accesses_kept(),
        accesses_executed: statistics.accesses_executed,
        synchronisation_events: statistics.operations.values().sum(),
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
