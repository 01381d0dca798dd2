//! What one `cargo rashomon` call and the processes that cargo starts for it know of each other: a folder with a file of settings
//! that they read and a folder of results that they write.
//!
//! Cargo starts the tool again under the names of [`Role`]: as the wrapper of rustc, as the C and C++ compilers of build scripts,
//! and as the runner of what was built.

use anyhow::{Context as _, Result, bail};
use rashomon_report::Counts;
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// Names the folder to processes below cargo.
pub const VARIABLE: &str = "RASHOMON_CARGO_SESSION";
const SETTINGS: &str = "settings.json";
const RESULTS: &str = "results";
/// No file of a session is larger.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// What the tool is started as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Rustc,
    Cc,
    Cxx,
    Runner,
}

impl Role {
    const ALL: [Self; 4] = [Self::Rustc, Self::Cc, Self::Cxx, Self::Runner];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Rustc => "rashomon-cargo-rustc",
            Self::Cc => "rashomon-cargo-cc",
            Self::Cxx => "rashomon-cargo-c++",
            Self::Runner => "rashomon-cargo-runner",
        }
    }

    pub fn of_name(name: &OsStr) -> Option<Self> {
        Self::ALL.into_iter().find(|role| name == role.name())
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Settings {
    /// The target that is built for.
    pub triple: String,
    /// Further arguments of rustc for everything built for the target.
    pub compile: Vec<String>,
    /// And for programs.
    pub link: Vec<String>,
    /// What the user had wrapped around rustc.
    pub wrapper: Option<String>,
    pub cc: String,
    pub cxx: String,
    /// Options of ours from the command line, for the runner.
    pub options: Vec<String>,
    /// Where stores go.
    pub stores: PathBuf,
    /// Whether cargo runs programs that are asked for the list of their tests, too.
    pub tests: bool,
    pub quiet: bool,
}

/// What came of one program.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ProgramResult {
    pub program: String,
    /// The test, where it was executed alone.
    pub test: Option<String>,
    /// Its store, if there is one.
    pub store: Option<PathBuf>,
    pub counts: Counts,
    /// Whether `--fail-on` is met.
    pub met: bool,
    /// Why it was not checked.
    pub failure: Option<String>,
}

impl ProgramResult {
    pub fn name(&self) -> String {
        match &self.test {
            Some(test) => format!("{} {test}", self.program),
            None => self.program.clone(),
        }
    }
}

#[derive(Clone, Debug)]
pub struct Session {
    pub folder: PathBuf,
}

impl Session {
    /// A new one in `parent`.
    pub fn create(parent: &Path, settings: &Settings) -> Result<Self> {
        let folder = parent.join(format!("session-{}", std::process::id()));
        let cannot = || format!("cannot prepare {}", folder.display());
        if folder.exists() {
            fs::remove_dir_all(&folder).with_context(cannot)?;
        }
        fs::create_dir_all(folder.join(RESULTS)).with_context(cannot)?;
        fs::write(folder.join(SETTINGS), serde_json::to_vec(settings)?).with_context(cannot)?;
        let tool = std::env::current_exe().context("cannot tell where this program is")?;
        for role in Role::ALL {
            symlink(&tool, folder.join(role.name())).with_context(cannot)?;
        }
        Ok(Self { folder })
    }

    /// The one that this process belongs to.
    pub fn current() -> Result<Self> {
        match std::env::var_os(VARIABLE) {
            Some(folder) => Ok(Self { folder: folder.into() }),
            None => bail!("this name of rashomon is for `cargo rashomon`, which sets {VARIABLE}"),
        }
    }

    pub fn role(&self, role: Role) -> PathBuf {
        self.folder.join(role.name())
    }

    pub fn settings(&self) -> Result<Settings> {
        read(&self.folder.join(SETTINGS))
    }

    pub fn add_result(&self, result: &ProgramResult) -> Result<()> {
        let path = self.folder.join(RESULTS).join(format!("{}.json", std::process::id()));
        fs::write(&path, serde_json::to_vec(result)?).with_context(|| format!("cannot write {}", path.display()))
    }

    /// Sorted by program and test.
    pub fn results(&self) -> Result<Vec<ProgramResult>> {
        let folder = self.folder.join(RESULTS);
        let listed = fs::read_dir(&folder).with_context(|| format!("cannot list {}", folder.display()))?;
        let mut results = Vec::new();
        for entry in listed {
            results.push(read::<ProgramResult>(&entry?.path())?);
        }
        results.sort_by(|a, b| (&a.program, &a.test).cmp(&(&b.program, &b.test)));
        Ok(results)
    }
}

impl Drop for CleanUp<'_> {
    fn drop(&mut self) {
        // What is left behind is small, and in the folder of build results.
        let _ = fs::remove_dir_all(&self.0.folder);
    }
}

/// Removes the session at the end of the call that created it.
pub struct CleanUp<'a>(pub &'a Session);

fn read<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T> {
    let size = fs::metadata(path).with_context(|| format!("cannot read {}", path.display()))?.len();
    if size > MAX_FILE_BYTES {
        bail!("{} has {size} bytes; that is no file of ours", path.display());
    }
    let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_slice(&bytes).with_context(|| format!("{} is damaged", path.display()))
}
