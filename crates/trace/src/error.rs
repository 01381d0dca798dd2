//! Errors of reading, writing and requesting recordings.

use std::path::PathBuf;
use thiserror::Error;

/// Why a recording cannot be used. Each message says where, and what to do.
#[derive(Debug, Error)]
pub enum TraceError {
    #[error("cannot {action} {}: {source}", path.display())]
    Io { action: &'static str, path: PathBuf, source: std::io::Error },

    #[error("{} is no recording: it holds no `header` file; name the directory that `rashomon record` wrote", path.display())]
    NotARecording { path: PathBuf },

    #[error("{} holds nothing: the program was ended before its recording began; record again", path.display())]
    NotBegun { path: PathBuf },

    #[error("{} is no recording: byte {offset} should begin the magic word {expected:#018x} but holds {found:#018x}; name the \
        directory that `rashomon record` wrote", path.display())]
    Magic { path: PathBuf, offset: u64, expected: u64, found: u64 },

    #[error("{} was written by version {found} of the format, this program reads versions {oldest} to {newest} (byte {offset}); \
        record again, or use the release that wrote it", path.display())]
    Version { path: PathBuf, offset: u64, found: u64, oldest: u32, newest: u32 },

    #[error("{} is cut short: {needed} bytes needed at byte {offset}, {available} there; record again", path.display())]
    CutShort { path: PathBuf, offset: u64, needed: u64, available: u64 },

    #[error("{} is damaged at byte {offset}: {what}; record again", path.display())]
    Corrupt { path: PathBuf, offset: u64, what: String },

    #[error("{} holds more than {limit} {what}; record a shorter run or set a trace limit", path.display())]
    TooLarge { path: PathBuf, what: &'static str, limit: u64 },

    #[error("{} was not loaded: there was no time; a larger budget gives more", path.display())]
    OutOfTime { path: PathBuf },

    #[error("cannot write the report: {0}")]
    Output(#[from] std::io::Error),
}

/// Why a control file cannot be written for a request.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum ControlError {
    #[error("the schedule has version {found}, this program writes version {supported}; find it again")]
    Version { found: u32, supported: u32 },

    #[error("{what} {index} of the schedule does not exist ({entries} there); the schedule is damaged, find it again")]
    NoSuchEntry { what: &'static str, index: u64, entries: u64 },

    #[error("the schedule has {entries} {what}, more than {limit}; confirm with a shorter schedule")]
    TooMany { what: &'static str, entries: u64, limit: u64 },
}
