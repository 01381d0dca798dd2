use std::path::PathBuf;
use thiserror::Error;

/// Why a trace cannot be read, with the place in the file.
#[derive(Debug, Error)]
pub enum TraceError {
    #[error("cannot {action} {}: {source}", path.display())]
    Io { action: &'static str, path: PathBuf, source: std::io::Error },
    /// `line` counts from 1, where the format has lines.
    #[error("{}: byte {offset}{}: {what}", path.display(), line.map(|line| format!(" (line {line})")).unwrap_or_default())]
    Malformed { path: PathBuf, offset: u64, line: Option<u64>, what: String },
}
