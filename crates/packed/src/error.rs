use std::fmt;
use std::path::PathBuf;
use thiserror::Error;

/// Somewhere in a file. Of a compressed file the offset is one of its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub path: PathBuf,
    pub offset: u64,
    /// Counts from 1, where the format has lines.
    pub line: Option<u64>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: byte {}", self.path.display(), self.offset)?;
        match self.line {
            Some(line) => write!(f, " (line {line})"),
            None => Ok(()),
        }
    }
}

/// Why a trace cannot be read or written, with the place.
#[derive(Debug, Error)]
pub enum TraceError {
    #[error("cannot {action} {}: {source}", path.display())]
    Io { action: &'static str, path: PathBuf, source: std::io::Error },
    /// The file is not what its format says.
    #[error("{place}: {what}")]
    Malformed { place: Place, what: String },
    /// The events make no execution. Events count from 0.
    #[error("{}event {event}: {what}", place.as_ref().map(|place| format!("{place}: ")).unwrap_or_default())]
    IllFormed { event: u64, place: Option<Place>, what: String },
    /// What the format written has no way to say.
    #[error("cannot write {}: event {event}: {what}", path.display())]
    Inexpressible { path: PathBuf, event: u64, what: String },
}
