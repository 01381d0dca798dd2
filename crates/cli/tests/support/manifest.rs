//! `tests/programs/manifest.toml`: what is true of each program.

use serde::Deserialize;
use std::path::PathBuf;

#[derive(Debug, Deserialize)]
struct Manifest {
    program: Vec<Program>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Program {
    pub path: String,
    pub language: String,
    pub group: String,
    pub args: Vec<String>,
    pub stdin: Option<String>,
    #[serde(default)]
    pub link: Vec<String>,
    pub exit: Option<i32>,
    pub signal: Option<String>,
    #[serde(default)]
    pub hangs: bool,
    #[serde(default)]
    pub may_hang: bool,
    pub stdout_bytes: Option<u64>,
    pub expect: Vec<String>,
    #[serde(default)]
    pub allow: Vec<String>,
    #[serde(default)]
    pub tells: Vec<String>,
    pub timeout_seconds: u64,
    pub deterministic: bool,
    #[serde(default)]
    pub replays: bool,
}

/// The folder of the manifest.
pub fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/programs")
        .canonicalize()
        .expect("tests/programs is part of the sources")
}

pub fn programs() -> Vec<Program> {
    let text = std::fs::read_to_string(folder().join("manifest.toml")).expect("the manifest is part of the sources");
    toml::from_str::<Manifest>(&text).expect("the manifest is well formed").program
}

impl Program {
    /// The source file.
    pub fn source(&self) -> PathBuf {
        folder().join(&self.path)
    }
    /// The exit code of a shell that runs it; `None` if it never ends.
    pub fn exit_code(&self) -> Option<i32> {
        let signal = match self.signal.as_deref() {
            None => return self.exit,
            Some("SIGABRT") => 6,
            Some("SIGKILL") => 9,
            Some("SIGSEGV") => 11,
            Some(other) => panic!("{}: the tests do not know {other}", self.path),
        };
        Some(128 + signal)
    }
    /// A name for files made from it.
    pub fn slug(&self) -> String {
        self.path.replace(['/', '.'], "_")
    }
    /// The `// expect:`, `// allow:` and `// tells:` lines of the source itself.
    pub fn header(&self, word: &str) -> Vec<String> {
        let text = std::fs::read_to_string(self.source()).unwrap_or_default();
        let prefix = format!("// {word}: ");
        text.lines().filter_map(|line| line.strip_prefix(&prefix)).filter(|what| *what != "none").map(str::to_owned).collect()
    }
}
