//! The folder in which everything about one run is kept.
//!
//! ```text
//! .rashomon/
//!   latest -> 2-prog
//!   2-prog/
//!     run.json                 the program and how it was run, sealed by who recorded it
//!     summary.json             numbers of the report, once known
//!     build/                   the program, if it was compiled here
//!     recording-0/             a session: the trace
//!     findings/<id>.json       one file per finding, with its schedule
//!     proofs/<id>/             the session that proved it
//! ```
//!
//! Files appear under their names only when they are whole (written beside, then renamed). The folder can be moved: nothing in it
//! names it; reproduce commands are computed when a finding is read.
//!
//! A store is data, perhaps from somebody else: it is reached through a handle, holds folders and regular files and no links, ids
//! are checked before they become names of files, and nothing of it is executed before somebody looked at what
//! [`Store::run_and_origin`] says. Commands that use it at the same time find each other by a lock.

pub mod given;
mod group;
mod lock;
pub mod run;
pub mod seal;
pub mod surroundings;

use self::seal::Origin;
use crate::error::PipelineError;
use crate::store::run::{RUN_FORMAT, RUN_VERSION, RunRecord, ShellText, pasted};
use rashomon_confirm::force::remove;
use rashomon_event::{Finding, FindingId};
use rashomon_files::{Folder, Kind};
use rashomon_report::RunSummary;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::fs;
use std::io::{BufReader, ErrorKind, Read as _};
use std::os::unix::fs::symlink;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;

/// The folder of stores in the working directory.
pub const DEFAULT_BASE: &str = ".rashomon";
const LATEST: &str = "latest";
const RUN_FILE: &str = "run.json";
const SUMMARY_FILE: &str = "summary.json";
const FINDINGS: &str = "findings";
const PROOFS: &str = "proofs";
const SCRATCH: &str = "scratch";
const EDITORS: &str = "editors";
/// Folders of these names are a command's own, and left over where it was killed.
const TEMPORARY: [&str; 2] = ["replay-", "minimise-"];
const FINDING_FORMAT: &str = "rashomon-finding";
const FINDING_VERSION: u32 = 1;
/// A schedule of a million turns is smaller.
const LARGEST_FINDING: u64 = 1 << 29;
const LARGEST_RUN: u64 = 1 << 24;

#[derive(Clone, Debug)]
pub struct Store {
    /// Absolute.
    path: PathBuf,
    folder: Arc<Folder>,
}

impl PartialEq for Store {
    fn eq(&self, other: &Self) -> bool {
        self.path == other.path
    }
}

impl Eq for Store {}

#[derive(Serialize, Deserialize)]
struct FindingFile {
    format: String,
    version: u32,
    finding: Finding,
}

impl Store {
    /// A new store in `base`, named after the program, and the latest from now on.
    pub fn create_in(base: &Path, program: &Path) -> Result<Self, PipelineError> {
        let store = Self::at(Self::numbered(base, program)?)?.with_folders()?;
        make_latest(&store.path)?;
        Ok(store)
    }

    fn numbered(base: &Path, program: &Path) -> Result<PathBuf, PipelineError> {
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
        loop {
            let path = base.join(format!("{number}-{name}"));
            match fs::create_dir(&path) {
                Ok(()) => return Ok(path),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => number += 1,
                Err(error) => return Err(PipelineError::io("create", path)(error)),
            }
        }
    }

    /// A new store that is `path` itself, which must not hold anything yet.
    pub fn create_at(path: &Path) -> Result<Self, PipelineError> {
        Self::at(Self::empty(path)?)?.with_folders()
    }

    fn empty(path: &Path) -> Result<PathBuf, PipelineError> {
        fs::create_dir_all(path).map_err(PipelineError::io("create", path))?;
        let path = fs::canonicalize(path).map_err(PipelineError::io("find", path))?;
        if fs::read_dir(&path).map_err(PipelineError::io("list", &path))?.next().is_some() {
            return Err(PipelineError::OutputExists { path });
        }
        Ok(path)
    }

    fn at(path: PathBuf) -> Result<Self, PipelineError> {
        let folder = Folder::open(&path).map_err(PipelineError::io("open", &path))?;
        Ok(Self { path, folder: Arc::new(folder) })
    }

    fn with_folders(self) -> Result<Self, PipelineError> {
        self.folder.folder_made(FINDINGS).map_err(PipelineError::io("create", self.path.join(FINDINGS)))?;
        Ok(self)
    }

    /// An existing store: `path` itself, or the latest one if `path` is a folder of stores or has one.
    pub fn open(path: &Path) -> Result<Self, PipelineError> {
        let latest = path.join(DEFAULT_BASE).join(LATEST);
        // Of a program whose test cases have stores of their own, the last one's.
        for (candidate, is_latest) in
            [(path.to_path_buf(), false), (path.join(LATEST), true), (latest.clone(), true), (latest.join(LATEST), true)]
        {
            let run = candidate.join(RUN_FILE);
            if fs::symlink_metadata(&run).is_err() {
                continue;
            }
            if is_latest {
                stays_beside(&candidate)?;
            }
            let path = fs::canonicalize(&candidate).map_err(PipelineError::io("find", &candidate))?;
            let store = Self::at(path)?;
            store.check_contents()?;
            return Ok(store);
        }
        Err(PipelineError::NoStore { path: std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf()) })
    }

    /// Links would lead what is written or removed in the store out of it, and no command of ours makes any.
    fn check_contents(&self) -> Result<(), PipelineError> {
        let top = (self.path.clone(), None);
        let proofs = (self.path.join(PROOFS), Some(PROOFS));
        for (path, name) in [top, proofs] {
            let failed = |source| PipelineError::io("look into", &path)(source);
            let entries = match name {
                None => self.folder.entries(),
                Some(name) if self.folder.kind(name).map_err(failed)? == Some(Kind::Folder) => {
                    self.folder.folder(name).and_then(|folder| folder.entries())
                }
                Some(_) => continue,
            };
            for entry in entries.map_err(failed)? {
                if matches!(entry.kind, Kind::Link | Kind::Special) {
                    return Err(PipelineError::Foreign { path: path.join(entry.name) });
                }
            }
        }
        for name in [FINDINGS, PROOFS, SCRATCH] {
            let path = self.path.join(name);
            if self.folder.kind(name).map_err(PipelineError::io("look at", &path))? == Some(Kind::File) {
                return Err(PipelineError::Foreign { path });
            }
        }
        Ok(())
    }

    /// Nobody else may use the store until this value and its clones are gone; what ended commands left behind is removed.
    pub fn use_alone(&self) -> Result<(), PipelineError> {
        lock::lock(&self.folder, true)?;
        let entries = self.folder.entries().map_err(PipelineError::io("list", &self.path))?;
        let left = entries
            .iter()
            .map(|entry| entry.name.as_str())
            .filter(|name| *name == SCRATCH || TEMPORARY.iter().any(|start| name.starts_with(start)));
        for name in left {
            // What cannot be removed can be used neither, which is told where it is.
            let _ = self.folder.remove_all(name);
        }
        Ok(())
    }

    /// For editors that start the program under a debugger: the folder of a finding's executions and of scripts.
    pub fn for_editors(&self, id: &FindingId) -> PathBuf {
        self.path.join(EDITORS).join(id.as_str())
    }

    /// The same, beside others that want no more.
    pub fn use_together(&self) -> Result<(), PipelineError> {
        lock::lock(&self.folder, false)
    }

    /// A folder for executions of one command; its name begins so. Where the store cannot be written it is a private one
    /// elsewhere.
    pub fn temporary(&self, command: &str) -> Result<TempDir, PipelineError> {
        let prefix = format!("{command}-");
        debug_assert!(TEMPORARY.contains(&prefix.as_str()));
        let mut builder = tempfile::Builder::new();
        builder.prefix(&prefix);
        match builder.tempdir_in(&self.path) {
            Ok(folder) => Ok(folder),
            Err(_) => builder.tempdir().map_err(PipelineError::io("create a folder in", std::env::temp_dir())),
        }
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

    pub fn proof(&self, id: &FindingId) -> PathBuf {
        self.path.join(PROOFS).join(id.as_str())
    }

    /// A folder for executions of an engine whose traces are not kept.
    pub fn scratch(&self, engine: &str) -> PathBuf {
        self.path.join(SCRATCH).join(engine)
    }

    /// Removes what the engine left there.
    pub fn clear_scratch(&self, engine: &str) -> Result<(), PipelineError> {
        remove(&self.scratch(engine))?;
        // Others may have theirs.
        let _ = fs::remove_dir(self.path.join(SCRATCH));
        Ok(())
    }

    /// Of a store of this user's own, sealed. What somebody else recorded stays so, whatever is changed in it.
    pub fn write_run(&self, run: &RunRecord) -> Result<(), PipelineError> {
        let origin = if self.path.join(RUN_FILE).exists() { self.run_and_origin()?.1 } else { Origin::Own };
        self.write_run_of(run, &origin)
    }

    /// What was read with this origin, in this store or another one, and goes on here: it is this user's own if it was.
    pub fn write_run_of(&self, run: &RunRecord, origin: &Origin) -> Result<(), PipelineError> {
        let path = self.path.join(RUN_FILE);
        let malformed = |error: serde_json::Error| PipelineError::Malformed { path: path.clone(), reason: error.to_string() };
        let mut value = serde_json::to_value(run).map_err(malformed)?;
        // What was compiled here goes with the store when that is moved.
        if let Ok(inside) = run.executable.to_path().strip_prefix(&self.path) {
            value["executable"] = serde_json::to_value(ShellText::from(inside.as_os_str())).map_err(malformed)?;
        }
        // Recorded without a key it is as if somebody else had recorded it.
        if *origin == Origin::Own
            && let Ok(key) = seal::key()
        {
            seal::seal(&mut value, &key, &self.path);
        }
        write_json(&self.folder, RUN_FILE, &value)
    }

    pub fn run(&self) -> Result<RunRecord, PipelineError> {
        self.understood(&self.stored_run()?)
    }

    /// What is to be executed, and who recorded it. One reading of the file: what is judged is what runs, whoever changes it
    /// meanwhile.
    pub fn run_and_origin(&self) -> Result<(RunRecord, Origin), PipelineError> {
        let stored = self.stored_run()?;
        Ok((self.understood(&stored)?, seal::origin(&stored, &self.path)))
    }

    fn stored_run(&self) -> Result<serde_json::Value, PipelineError> {
        self.read_json(&self.folder, RUN_FILE, LARGEST_RUN)
    }

    fn understood(&self, stored: &serde_json::Value) -> Result<RunRecord, PipelineError> {
        let path = self.path.join(RUN_FILE);
        let malformed = |error: serde_json::Error| PipelineError::Malformed { path: path.clone(), reason: error.to_string() };
        let mut run = RunRecord::deserialize(stored).map_err(malformed)?;
        check_version(&path, (&run.format, run.version), (RUN_FORMAT, RUN_VERSION))?;
        run.executable = ShellText::from(self.path.join(run.executable.to_path()).as_os_str());
        Ok(run)
    }

    pub fn write_summary(&self, summary: &RunSummary) -> Result<(), PipelineError> {
        write_json(&self.folder, SUMMARY_FILE, summary)
    }

    pub fn summary(&self) -> Result<Option<RunSummary>, PipelineError> {
        match self.folder.kind(SUMMARY_FILE).map_err(PipelineError::io("look at", self.path.join(SUMMARY_FILE)))? {
            None => Ok(None),
            Some(_) => self.read_json(&self.folder, SUMMARY_FILE, LARGEST_RUN).map(Some),
        }
    }

    /// What was proven once stays so: a later step that does not prove it, or is ended before it could, replaces nothing.
    pub fn write_finding(&self, finding: &Finding) -> Result<(), PipelineError> {
        if !finding.can_happen_again() && self.has_proof(&finding.id) {
            return Ok(());
        }
        let file = FindingFile { format: FINDING_FORMAT.into(), version: FINDING_VERSION, finding: finding.clone() };
        write_json(&self.findings_folder()?, &file_name(&finding.id), &file)
    }

    /// Whether the finding is there, proven, with what makes it happen again.
    pub fn has_proof(&self, id: &FindingId) -> bool {
        self.read_finding(id).is_ok_and(|known| known.can_happen_again())
    }

    /// Takes back a finding that another one has replaced.
    pub fn remove_finding(&self, id: &FindingId) -> Result<(), PipelineError> {
        let folder = self.findings_folder()?;
        folder.remove(&file_name(id)).map_err(PipelineError::io("remove", folder.path().join(file_name(id))))
    }

    fn findings_folder(&self) -> Result<Folder, PipelineError> {
        self.folder.folder(FINDINGS).map_err(PipelineError::io("open", self.path.join(FINDINGS)))
    }

    fn finding_ids(&self) -> Result<Vec<FindingId>, PipelineError> {
        let folder = self.findings_folder()?;
        let mut ids = Vec::new();
        for entry in folder.entries().map_err(PipelineError::io("list", folder.path()))? {
            if let Some(id) = entry.name.strip_suffix(FINDING_SUFFIX) {
                let malformed = |error: rashomon_event::NoFindingId| PipelineError::Malformed {
                    path: folder.path().join(&entry.name),
                    reason: error.to_string(),
                };
                ids.push(FindingId::new(id).map_err(malformed)?);
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
        if let Some(id) = ids.iter().find(|id| **id == *prefix) {
            return self.read_finding(id);
        }
        let starts = |id: &&FindingId| {
            !prefix.is_empty() && (id.starts_with(prefix) || id.rsplit('-').next().is_some_and(|hash| hash.starts_with(prefix)))
        };
        let matching: Vec<&FindingId> = ids.iter().filter(starts).collect();
        let list = |ids: &[&FindingId]| ids.iter().map(|id| id.as_str()).collect::<Vec<_>>().join(", ");
        match matching.as_slice() {
            [id] => self.read_finding(id),
            [] => {
                let known = if ids.is_empty() { "none".to_owned() } else { list(&ids.iter().collect::<Vec<_>>()) };
                Err(PipelineError::NoSuchFinding { id: prefix.into(), path: self.path.clone(), known })
            }
            several => Err(PipelineError::AmbiguousFinding { prefix: prefix.into(), known: list(several) }),
        }
    }

    fn read_finding(&self, id: &FindingId) -> Result<Finding, PipelineError> {
        let folder = self.findings_folder()?;
        let name = file_name(id);
        let path = folder.path().join(&name);
        let file: FindingFile = self.read_json(&folder, &name, LARGEST_FINDING)?;
        check_version(&path, (&file.format, file.version), (FINDING_FORMAT, FINDING_VERSION))?;
        let mut finding = file.finding;
        if finding.id != *id {
            return Err(PipelineError::Malformed { path, reason: format!("it holds another finding, {}", finding.id) });
        }
        // What the file says may be old, or anything.
        let again = finding.can_happen_again();
        let tool = std::env::current_exe().unwrap_or_else(|_| "rashomon".into());
        finding.reproduce = again.then(|| reproduce_command(tool.as_os_str(), self, id));
        Ok(finding)
    }

    fn read_json<T: DeserializeOwned>(&self, folder: &Folder, name: &str, most: u64) -> Result<T, PipelineError> {
        let path = folder.path().join(name);
        let file = folder.file(name).map_err(PipelineError::io("read", &path))?;
        let size = file.metadata().map_err(PipelineError::io("read", &path))?.len();
        if size > most {
            return Err(PipelineError::Malformed { path, reason: format!("{size} bytes are more than {most}") });
        }
        let malformed = |error: serde_json::Error| PipelineError::Malformed { path: path.clone(), reason: error.to_string() };
        if size > SMALL {
            // Not kept beside what is made of it.
            return serde_json::from_reader(BufReader::with_capacity(1 << 16, file.take(most))).map_err(malformed);
        }
        let bytes = rashomon_files::read_from(file, SMALL).map_err(PipelineError::io("read", &path))?;
        serde_json::from_slice(&bytes).map_err(malformed)
    }
}

/// Files up to here are read at once, which is faster.
const SMALL: u64 = 1 << 22;
const FINDING_SUFFIX: &str = ".json";

fn file_name(id: &FindingId) -> String {
    format!("{id}{FINDING_SUFFIX}")
}

/// From now on the folder is the latest of those beside it.
fn make_latest(path: &Path) -> Result<(), PipelineError> {
    let (Some(base), Some(name)) = (path.parent(), path.file_name()) else {
        return Ok(());
    };
    let fresh = base.join(format!("{LATEST}.{}", std::process::id()));
    let _ = fs::remove_file(&fresh);
    symlink(name, &fresh).map_err(PipelineError::io("create", &fresh))?;
    let link = base.join(LATEST);
    fs::rename(&fresh, &link).map_err(PipelineError::io("replace", link))
}

/// The latest store is a neighbour of the link to it.
fn stays_beside(link: &Path) -> Result<(), PipelineError> {
    let Ok(target) = fs::read_link(link) else { return Ok(()) };
    let mut parts = target.components();
    match (parts.next(), parts.next()) {
        (Some(Component::Normal(_)), None) => Ok(()),
        _ => Err(PipelineError::Foreign { path: link.to_path_buf() }),
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

fn write_json<T: Serialize>(folder: &Folder, name: &str, value: &T) -> Result<(), PipelineError> {
    let path = folder.path().join(name);
    let mut text = serde_json::to_vec_pretty(value)
        .map_err(|error| PipelineError::Malformed { path: path.clone(), reason: error.to_string() })?;
    text.push(b'\n');
    folder.write(name, &text).map_err(PipelineError::io("write", path))
}
/// What a shell calls the program: its name, if that is the one which a search of `PATH` finds.
fn called(tool: &OsStr) -> &OsStr {
    let Some(name) = Path::new(tool).file_name() else { return tool };
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&paths).map(|folder| folder.join(name)).find(|path| path.is_file());
    let same = found.and_then(|found| Some(found.canonicalize().ok()? == Path::new(tool).canonicalize().ok()?));
    if same == Some(true) { name } else { tool }
}

/// Ready to paste into a shell, whatever its working directory.
pub(crate) fn reproduce_command(tool: &OsStr, store: &Store, id: &FindingId) -> String {
    [pasted(called(tool)), "replay".into(), "--store".into(), pasted(store.path().as_os_str()), id.to_string()].join(" ")
}
