//! What a store knows about the executions in it: enough to make each of them again.

use super::surroundings::Surroundings;
use rashomon_confirm::Client;
use rashomon_event::KeptPlace;
pub use rashomon_event::{pasted, quoted};
use rashomon_report::ProgramExit;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::PathBuf;
use std::time::Duration;

/// Text of the operating system: a string where it is one, else its bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ShellText {
    Text(String),
    Bytes(Vec<u8>),
}

impl From<&OsStr> for ShellText {
    fn from(text: &OsStr) -> Self {
        match text.to_str() {
            Some(text) => Self::Text(text.to_owned()),
            None => Self::Bytes(text.as_bytes().to_vec()),
        }
    }
}

impl From<&ShellText> for OsString {
    fn from(text: &ShellText) -> Self {
        match text {
            ShellText::Text(text) => text.into(),
            ShellText::Bytes(bytes) => Self::from_vec(bytes.clone()),
        }
    }
}

impl ShellText {
    pub fn to_path(&self) -> PathBuf {
        OsString::from(self).into()
    }
    /// For people.
    pub fn shown(&self) -> String {
        OsString::from(self).to_string_lossy().into_owned()
    }
}

/// One recorded execution.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedRun {
    /// Folder in the store.
    pub folder: String,
    pub policy: String,
    pub seed: u64,
    pub exit: ProgramExit,
    pub milliseconds: u64,
    /// Things the user should know about this execution.
    #[serde(default)]
    pub notes: Vec<String>,
    /// The places whose plain accesses alone were recorded; none: all were.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<KeptPlace>,
}

/// Who asks a program that serves, in every execution.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredClient {
    pub command: ShellText,
    pub ready: Option<ShellText>,
    pub grace_milliseconds: u64,
}

impl From<&Client> for StoredClient {
    fn from(client: &Client) -> Self {
        Self {
            command: client.command.as_os_str().into(),
            ready: client.ready.as_deref().map(ShellText::from),
            grace_milliseconds: u64::try_from(client.grace.as_millis()).unwrap_or(u64::MAX),
        }
    }
}

impl From<&StoredClient> for Client {
    fn from(client: &StoredClient) -> Self {
        Self {
            command: OsString::from(&client.command),
            ready: client.ready.as_ref().map(OsString::from),
            grace: Duration::from_millis(client.grace_milliseconds),
        }
    }
}

/// `run.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunRecord {
    pub format: String,
    pub version: u32,
    /// An absolute path; in the file, relative to the store's folder where it is in there.
    pub executable: ShellText,
    pub arguments: Vec<ShellText>,
    pub directory: ShellText,
    pub randomise_addresses: bool,
    /// Variables that every execution has in its environment, whatever else is there.
    #[serde(default)]
    pub environment: Vec<(ShellText, ShellText)>,
    /// The environment of the command that made the store.
    #[serde(default, skip_serializing_if = "Surroundings::is_unknown")]
    pub surroundings: Surroundings,
    pub before_each: Option<ShellText>,
    #[serde(default)]
    pub client: Option<StoredClient>,
    /// File that every execution reads as its standard input.
    pub input: Option<ShellText>,
    /// Whether the program loads the runtime (and does not have it linked in).
    pub loads_runtime: bool,
    pub quantum: u64,
    /// Where virtual time begins, in every execution.
    pub base_time_nanoseconds: u64,
    pub trace_limit: u64,
    /// The most processes that are recorded; 0: no limit.
    #[serde(default)]
    pub processes: u64,
    /// Libraries of which the user said that their calls order nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trusted_libraries: Vec<String>,
    /// Wall-clock limit of the recorded execution.
    pub limit_milliseconds: Option<u64>,
    pub recordings: Vec<RecordedRun>,
    /// Things the user should know about the program.
    pub notes: Vec<String>,
}

pub const RUN_FORMAT: &str = "rashomon-run";
pub const RUN_VERSION: u32 = 1;

impl RunRecord {
    pub fn command(&self) -> Vec<String> {
        std::iter::once(&self.executable).chain(&self.arguments).map(ShellText::shown).collect()
    }

    /// Each once.
    pub fn notes_of_recordings(&self) -> impl Iterator<Item = &String> {
        let all: BTreeSet<&String> = self.recordings.iter().flat_map(|recording| &recording.notes).collect();
        all.into_iter()
    }
}

impl RunRecord {
    /// Everything that an execution from this store makes the machine do, in lines.
    pub fn deeds(&self) -> Vec<String> {
        let word = |text: &ShellText| pasted(&OsString::from(text));
        let mut words: Vec<String> = Vec::new();
        words.extend(self.environment.iter().map(|(name, value)| format!("{}={}", word(name), word(value))));
        words.extend(std::iter::once(&self.executable).chain(&self.arguments).map(word));
        words.extend(self.input.iter().map(|input| format!("< {}", word(input))));
        let mut lines = vec![format!("in {}: {}", word(&self.directory), words.join(" "))];
        if let Some(client) = &self.client {
            lines.push(format!("beside it, as its client: sh -c {}", word(&client.command)));
            lines.extend(client.ready.iter().map(|command| format!("until it is ready: sh -c {}", word(command))));
        }
        lines.extend(self.before_each.iter().map(|command| format!("before each execution: sh -c {}", word(command))));
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_that_is_not_unicode_survives_json() {
        for bytes in [b"plain".as_slice(), b"\xff\xfe"] {
            let text = ShellText::from(OsStr::from_bytes(bytes));
            let again: ShellText = serde_json::from_str(&serde_json::to_string(&text).unwrap()).unwrap();
            assert_eq!(OsString::from(&again).as_bytes(), bytes);
        }
    }
}
