//! What coordinator and worker tell each other, as JSON.

use crate::archive::LARGEST_ARCHIVE;
use crate::content::Hash;
use crate::error::QueueError;
use serde::{Deserialize, Serialize};

/// Of the messages. Another one is not understood.
pub const PROTOCOL: u32 = 2;
/// Units of one job.
pub const MOST_UNITS: u32 = 10_000;
/// The number of the unit that makes the recording which all others of its job begin with.
pub const RECORDING: u32 = 0;
/// Bytes of one shipped file.
pub(crate) const LARGEST_FILE: u64 = 1 << 31;
const MOST_FILES: usize = 10_000;
/// Bytes of a path, and folders in it.
pub(crate) const LONGEST_PATH: usize = 1024;
pub(crate) const DEEPEST_PATH: usize = 32;

/// A file that a unit needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShippedFile {
    /// Relative to the folder that the unit is executed in; of the program, its name.
    pub path: String,
    pub hash: Hash,
    pub size: u64,
    pub executable: bool,
}

/// A part of a check, or the recording that its parts begin with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unit {
    pub protocol: u32,
    /// Of the tool that the coordinator is.
    pub version: String,
    pub job: String,
    /// From 1, or [`RECORDING`].
    pub number: u32,
    pub of: u32,
    /// Options of `rashomon check`, or of `rashomon record`, a word each.
    pub options: Vec<String>,
    pub program: ShippedFile,
    /// Where the program is on the coordinator's machine.
    pub program_path: String,
    pub arguments: Vec<String>,
    pub files: Vec<ShippedFile>,
    /// The archive of a store whose recordings the part begins with. `None`: it makes its own.
    pub recording: Option<ShippedFile>,
}

/// What every version of the messages has.
#[derive(Debug, Deserialize)]
struct Head {
    protocol: u32,
    version: String,
}

impl Unit {
    /// Whether it makes the recording that the others begin with.
    pub const fn is_recording(&self) -> bool {
        self.number == RECORDING
    }

    pub fn words(&self) -> String {
        if self.is_recording() {
            return format!("the first recording of job {}", self.job);
        }
        format!("unit {} of {} of job {}", self.number, self.of, self.job)
    }

    pub(crate) fn message(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Reads a message for a worker of this version.
    pub(crate) fn read(message: &[u8], version: &str) -> Result<Self, QueueError> {
        let damaged = |error: serde_json::Error| QueueError::damaged("a unit", error.to_string());
        let head: Head = serde_json::from_slice(message).map_err(damaged)?;
        if head.protocol != PROTOCOL || head.version != version {
            let words = |protocol: u32, version: &str| format!("rashomon {version} (queue protocol {protocol})");
            let (theirs, ours) = (words(head.protocol, &head.version), words(PROTOCOL, version));
            return Err(QueueError::OtherVersion { theirs, ours });
        }
        let unit: Self = serde_json::from_slice(message).map_err(damaged)?;
        unit.check().map_err(|reason| QueueError::damaged("a unit", reason))?;
        Ok(unit)
    }

    fn check(&self) -> Result<(), String> {
        if !is_job(&self.job) {
            return Err("its job is no name".into());
        }
        if self.number > self.of || !(1..=MOST_UNITS).contains(&self.of) {
            return Err(format!("there is no unit {} of {}", self.number, self.of));
        }
        if let Some(word) = self.options.iter().find(|word| !word.starts_with("--") || word.len() < 4) {
            return Err(format!("{word:?} is no option"));
        }
        if self.files.len() > MOST_FILES {
            return Err(format!("{} files are more than {MOST_FILES}", self.files.len()));
        }
        if self.program.path.contains('/') {
            return Err("its program has no name".into());
        }
        if let Some(recording) = &self.recording {
            if self.is_recording() {
                return Err("it makes a recording, and is to begin with one".into());
            }
            if recording.size > LARGEST_ARCHIVE {
                return Err(format!("its recording has {} bytes, more than {LARGEST_ARCHIVE}", recording.size));
            }
            path_parts(&recording.path)?;
        }
        for file in self.files.iter().chain([&self.program]) {
            path_parts(&file.path)?;
            if file.size > LARGEST_FILE {
                return Err(format!("{} has {} bytes, more than {LARGEST_FILE}", file.path, file.size));
            }
        }
        Ok(())
    }
}

/// What came of a unit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Outcome {
    /// Who says so.
    pub worker: String,
    pub came: Came,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Came {
    Archive { object: String, hash: Hash, size: u64 },
    Failure(String),
}

/// Jobs are parts of subjects and of names of objects.
fn is_job(job: &str) -> bool {
    (1..=64).contains(&job.len()) && job.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// The names in a path that leads nowhere but down.
pub(crate) fn path_parts(path: &str) -> Result<Vec<&str>, String> {
    let parts: Vec<&str> = path.split('/').collect();
    let is_name = |part: &&str| !part.is_empty() && *part != "." && *part != ".." && !part.contains('\0') && part.len() <= 255;
    if path.len() > LONGEST_PATH || parts.len() > DEEPEST_PATH || !parts.iter().all(is_name) {
        return Err(format!("{path:?} is no path below the folder"));
    }
    Ok(parts)
}
