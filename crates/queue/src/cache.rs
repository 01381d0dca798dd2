//! Files of units on the worker's machine, by their hashes.

use crate::content::Hash;
use crate::error::QueueError;
use crate::message::{LARGEST_FILE, ShippedFile};
use rashomon_files::{Folder, Links};
use std::fs;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Archives of recordings in the cache, and the folder of these.
const MOST_RECORDINGS: usize = 4;
const RECORDINGS: &str = "recordings";

/// Has the file of a hash and a length sent.
pub(crate) type Fetch<'a> = dyn Fn(&Hash, u64) -> Result<Vec<u8>, QueueError> + 'a;

pub(crate) struct Cache<'a> {
    pub folder: &'a Path,
}

impl Cache<'_> {
    /// The file in the cache, under its own name; fetched if it is not there, or not what it should be.
    pub fn file(&self, file: &ShippedFile, fetch: &Fetch<'_>) -> Result<PathBuf, QueueError> {
        let name = file.path.rsplit('/').next().unwrap_or("file");
        let folder = self.folder.join(file.hash.as_str());
        let path = folder.join(name);
        if self.content(&path, file).is_none() {
            let bytes = fetch(&file.hash, file.size)?;
            if Hash::of(&bytes) != file.hash {
                return Err(QueueError::damaged(&file.path, "it has another hash than it should"));
            }
            fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder).map_err(QueueError::io("create", &folder))?;
            let opened = Folder::open(&folder).map_err(QueueError::io("open", &folder))?;
            opened.write(name, &bytes).map_err(QueueError::io("write", &path))?;
        }
        make_executable(&path, file.executable)?;
        Ok(path)
    }

    /// The same of a recording. These are of one job each, so that they are not kept for ever.
    pub fn recording(&self, file: &ShippedFile, fetch: &Fetch<'_>) -> Result<PathBuf, QueueError> {
        let folder = self.folder.join(RECORDINGS);
        let path = Cache { folder: &folder }.file(file, fetch)?;
        let mut all: Vec<(SystemTime, PathBuf)> = fs::read_dir(&folder)
            .map_err(QueueError::io("list", &folder))?
            .filter_map(|entry| entry.ok().and_then(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path()))))
            .filter(|(_, other)| !path.starts_with(other))
            .collect();
        all.sort();
        for (_, old) in all.iter().rev().skip(MOST_RECORDINGS - 1) {
            // Who is about to read it fetches it again.
            let _ = fs::remove_dir_all(old);
        }
        Ok(path)
    }

    /// What the path holds, if that is the file's content.
    pub fn content(&self, path: &Path, file: &ShippedFile) -> Option<Vec<u8>> {
        let bytes = rashomon_files::read(path, Links::Followed, LARGEST_FILE).ok()?;
        (bytes.len() as u64 == file.size && Hash::of(&bytes) == file.hash).then_some(bytes)
    }
}

pub(crate) fn make_executable(path: &Path, executable: bool) -> Result<(), QueueError> {
    let mode = if executable { 0o755 } else { 0o644 };
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).map_err(QueueError::io("change the permissions of", path))
}
