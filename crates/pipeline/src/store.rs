//! The folder in which everything about one run is kept.
//!
//! ```text
//! .rashomon/
//!   latest -> 2-prog
//!   2-prog/
//!     run.json                 the program and how it was run
//!     summary.json             numbers of the report, once known
//!     build/                   the program, if it was compiled here
//!     recording-0/             a session: the trace
//!     findings/<id>.json       one file per finding, with its schedule
//!     proofs/<id>/             the session that proved it
//! ```
//!
//! Files appear under their names only when they are whole (written beside, then renamed). The folder can be moved: nothing in it
//! names it, the reproduce commands excepted.

use crate::error::PipelineError;
use crate::run::{RUN_FORMAT, RUN_VERSION, RunRecord};
use rashomon_event::{Finding, Verdict};
use rashomon_report::RunSummary;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// The folder of stores in the working directory.
pub const DEFAULT_BASE: &str = ".rashomon";
const LATEST: &str = "latest";
const RUN_FILE: &str = "run.json";
const SUMMARY_FILE: &str = "summary.json";
const FINDINGS: &str = "findings";
const FINDING_FORMAT: &str = "rashomon-finding";
const FINDING_VERSION: u32 = 1;
/// No file of a store is larger; a schedule of a million turns is smaller.
const MAX_FILE_BYTES: u64 = 1 << 30;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Store {
    /// Absolute.
    path: PathBuf,
}

#[derive(Serialize, Deserialize)]
struct FindingFile {
    format: String,
    version: u32,
    finding: Finding,
}

impl Store {
    /// A new store in `base`, named after the program, and the latest from now on.
    pub fn create_in(base: &Path, program: &Path) -> Result<Self, PipelineError> {
        fs::create_dir_all(base).map_err(PipelineError::io("create", base))?;
        let base = fs::canonicalize(base).map_err(PipelineError::io("find", base))?;
        let name: String = program
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default()
            .chars()
            .map(|c| if c.is_alphanumeric() || "._-+".contains(c) { c } else { '_' })
            .collect();
        let mut number = 1 + largest_number(&base);
        let path = loop {
            let path = base.join(format!("{number}-{name}"));
            match fs::create_dir(&path) {
                Ok(()) => break path,
                Err(error) if error.kind() == ErrorKind::AlreadyExists => number += 1,
                Err(error) => return Err(PipelineError::io("create", path)(error)),
            }
        };
        let store = Self { path }.with_folders()?;
        store.make_latest(&base)?;
        Ok(store)
    }

    /// A new store that is `path` itself, which must not hold anything yet.
    pub fn create_at(path: &Path) -> Result<Self, PipelineError> {
        fs::create_dir_all(path).map_err(PipelineError::io("create", path))?;
        let path = fs::canonicalize(path).map_err(PipelineError::io("find", path))?;
        if fs::read_dir(&path).map_err(PipelineError::io("list", &path))?.next().is_some() {
            return Err(PipelineError::OutputExists { path });
        }
        Self { path }.with_folders()
    }

    fn with_folders(self) -> Result<Self, PipelineError> {
        let folder = self.path.join(FINDINGS);
        fs::create_dir(&folder).map_err(PipelineError::io("create", folder))?;
        Ok(self)
    }

    fn make_latest(&self, base: &Path) -> Result<(), PipelineError> {
        let Some(name) = self.path.file_name() else {
            return Ok(());
        };
        let fresh = base.join(format!("{LATEST}.{}", std::process::id()));
        let _ = fs::remove_file(&fresh);
        symlink(name, &fresh).map_err(PipelineError::io("create", &fresh))?;
        let link = base.join(LATEST);
        fs::rename(&fresh, &link).map_err(PipelineError::io("replace", link))
    }

    /// An existing store: `path` itself, or the latest one if `path` is a folder of stores or has one.
    pub fn open(path: &Path) -> Result<Self, PipelineError> {
        for candidate in [path.to_path_buf(), path.join(LATEST), path.join(DEFAULT_BASE).join(LATEST)] {
            if candidate.join(RUN_FILE).is_file() {
                return Ok(Self { path: fs::canonicalize(&candidate).map_err(PipelineError::io("find", candidate))? });
            }
        }
        Err(PipelineError::NoStore { path: std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf()) })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn recording(&self, number: u32) -> PathBuf {
        self.path.join(format!("recording-{number}"))
    }

    /// Where a program is compiled to.
    pub fn build_folder(&self) -> PathBuf {
        self.path.join("build")
    }

    pub fn proof(&self, id: &str) -> PathBuf {
        self.path.join("proofs").join(id)
    }

    /// A folder for executions whose traces are not kept.
    pub fn scratch(&self) -> PathBuf {
        self.path.join("scratch")
    }

    pub fn write_run(&self, run: &RunRecord) -> Result<(), PipelineError> {
        write_json(&self.path.join(RUN_FILE), run)
    }

    pub fn run(&self) -> Result<RunRecord, PipelineError> {
        let path = self.path.join(RUN_FILE);
        let run: RunRecord = read_json(&path)?;
        check_version(&path, (&run.format, run.version), (RUN_FORMAT, RUN_VERSION))?;
        Ok(run)
    }

    pub fn write_summary(&self, summary: &RunSummary) -> Result<(), PipelineError> {
        write_json(&self.path.join(SUMMARY_FILE), summary)
    }

    pub fn summary(&self) -> Result<Option<RunSummary>, PipelineError> {
        let path = self.path.join(SUMMARY_FILE);
        if path.exists() { read_json(&path).map(Some) } else { Ok(None) }
    }

    /// What was proven once stays so: a later step that does not prove it, or is ended before it could, replaces nothing.
    pub fn write_finding(&self, finding: &Finding) -> Result<(), PipelineError> {
        let is_proven = |finding: &Finding| {
            matches!(finding.verdict, Verdict::Proven { .. }) && (finding.schedule.is_some() || finding.provocation.is_some())
        };
        if !is_proven(finding) && self.read_finding(&finding.id).is_ok_and(|known| is_proven(&known)) {
            return Ok(());
        }
        let file = FindingFile { format: FINDING_FORMAT.into(), version: FINDING_VERSION, finding: finding.clone() };
        write_json(&self.finding_path(&finding.id), &file)
    }

    /// Takes back a finding that another one has replaced.
    pub fn remove_finding(&self, id: &str) -> Result<(), PipelineError> {
        let path = self.finding_path(id);
        fs::remove_file(&path).map_err(PipelineError::io("remove", path))
    }

    fn finding_path(&self, id: &str) -> PathBuf {
        self.path.join(FINDINGS).join(format!("{id}.json"))
    }

    fn finding_ids(&self) -> Result<Vec<String>, PipelineError> {
        let folder = self.path.join(FINDINGS);
        let mut ids = Vec::new();
        for entry in fs::read_dir(&folder).map_err(PipelineError::io("list", &folder))? {
            let entry = entry.map_err(PipelineError::io("list", &folder))?;
            if let Some(id) = entry.file_name().to_str().and_then(|name| name.strip_suffix(".json")) {
                ids.push(id.to_owned());
            }
        }
        ids.sort();
        Ok(ids)
    }

    /// All findings, sorted by id.
    pub fn findings(&self) -> Result<Vec<Finding>, PipelineError> {
        self.finding_ids()?.iter().map(|id| self.read_finding(id)).collect()
    }

    /// The finding with this id, or the only one whose id, with or without its kind, starts so.
    pub fn finding(&self, prefix: &str) -> Result<Finding, PipelineError> {
        let ids = self.finding_ids()?;
        if ids.iter().any(|id| id == prefix) {
            return self.read_finding(prefix);
        }
        let starts = |id: &&String| {
            !prefix.is_empty() && (id.starts_with(prefix) || id.rsplit('-').next().is_some_and(|hash| hash.starts_with(prefix)))
        };
        let matching: Vec<&String> = ids.iter().filter(starts).collect();
        let list = |ids: &[&String]| ids.iter().map(|id| id.as_str()).collect::<Vec<_>>().join(", ");
        match matching.as_slice() {
            [id] => self.read_finding(id),
            [] => {
                let known = if ids.is_empty() { "none".to_owned() } else { list(&ids.iter().collect::<Vec<_>>()) };
                Err(PipelineError::NoSuchFinding { id: prefix.into(), path: self.path.clone(), known })
            }
            several => Err(PipelineError::AmbiguousFinding { prefix: prefix.into(), known: list(several) }),
        }
    }

    fn read_finding(&self, id: &str) -> Result<Finding, PipelineError> {
        let path = self.finding_path(id);
        let file: FindingFile = read_json(&path)?;
        check_version(&path, (&file.format, file.version), (FINDING_FORMAT, FINDING_VERSION))?;
        Ok(file.finding)
    }
}

fn largest_number(base: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(base) else {
        return 0;
    };
    // Greater numbers are not ours, and must not be counted on from.
    let number = |entry: fs::DirEntry| entry.file_name().to_str()?.split_once('-')?.0.parse::<u32>().ok();
    entries.flatten().filter_map(number).max().map_or(0, u64::from)
}

fn check_version(path: &Path, found: (&str, u32), expected: (&str, u32)) -> Result<(), PipelineError> {
    if found == expected {
        return Ok(());
    }
    let reason = format!("{} version {} where {} version {} was expected", found.0, found.1, expected.0, expected.1);
    Err(PipelineError::Malformed { path: path.to_path_buf(), reason })
}

fn write_json<T: Serialize>(path: &Path, value: &T) -> Result<(), PipelineError> {
    let mut text = serde_json::to_vec_pretty(value)
        .map_err(|error| PipelineError::Malformed { path: path.to_path_buf(), reason: error.to_string() })?;
    text.push(b'\n');
    let mut fresh = path.as_os_str().to_owned();
    fresh.push(".new");
    fs::write(&fresh, text).map_err(PipelineError::io("write", &fresh))?;
    fs::rename(&fresh, path).map_err(PipelineError::io("replace", path))
}

fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, PipelineError> {
    let size = fs::metadata(path).map_err(PipelineError::io("read", path))?.len();
    if size > MAX_FILE_BYTES {
        return Err(PipelineError::Malformed { path: path.to_path_buf(), reason: format!("{size} bytes are too many") });
    }
    let bytes = fs::read(path).map_err(PipelineError::io("read", path))?;
    serde_json::from_slice(&bytes)
        .map_err(|error| PipelineError::Malformed { path: path.to_path_buf(), reason: error.to_string() })
}
