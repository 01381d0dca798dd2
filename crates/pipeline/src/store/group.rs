//! A folder of stores: those of the test cases of one program.

use super::{DEFAULT_BASE, LATEST, RUN_FILE, SUMMARY_FILE, Store, make_latest, stays_beside};
use crate::error::PipelineError;
use std::fs;
use std::path::{Path, PathBuf};

impl Store {
    /// A new folder for the stores of one program's test cases, named and found as a store would be, or `at` itself. It has a
    /// summary and no run.
    pub fn group_in(base: &Path, program: &Path, at: Option<&Path>) -> Result<Self, PipelineError> {
        if let Some(path) = at {
            return Self::at(Self::empty(path)?);
        }
        let group = Self::at(Self::numbered(base, program)?)?;
        make_latest(&group.path)?;
        Ok(group)
    }

    /// As [`Store::open`]; of a folder of the stores of test cases, all of them.
    pub fn open_all(path: &Path) -> Result<Vec<Self>, PipelineError> {
        let Some(group) = Self::group(path)? else { return Ok(vec![Self::open(path)?]) };
        let entries = fs::read_dir(&group.path).map_err(PipelineError::io("list", &group.path))?;
        let folders = entries.filter_map(Result::ok).filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        let mut paths: Vec<PathBuf> = folders.map(|entry| entry.path()).filter(|path| has(path, RUN_FILE)).collect();
        paths.sort();
        paths.iter().map(|path| Self::open(path)).collect()
    }

    /// The folder of the stores of test cases, if it is such a one that `path` names, or that is the latest there.
    pub fn group(path: &Path) -> Result<Option<Self>, PipelineError> {
        let candidates = [path.to_path_buf(), path.join(LATEST), path.join(DEFAULT_BASE).join(LATEST)];
        let first = candidates.iter().find(|folder| has(folder, RUN_FILE) || has(folder, SUMMARY_FILE));
        let Some(group) = first.filter(|folder| !has(folder, RUN_FILE)) else { return Ok(None) };
        if group.ends_with(LATEST) {
            stays_beside(group)?;
        }
        Ok(Some(Self::at(fs::canonicalize(group).map_err(PipelineError::io("find", group))?)?))
    }
}

fn has(folder: &Path, name: &str) -> bool {
    fs::symlink_metadata(folder.join(name)).is_ok()
}
