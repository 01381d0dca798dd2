//! A long file, mapped a part at a time: the one module of this crate with `unsafe`.
//!
//! Memory: what is mapped counts as used by the process, so no more than a window is. Limit: should another process shorten the
//! file while it is read, the operating system ends this process with SIGBUS; should one change a byte, checksums may find it,
//! and every number read is bounded before it is used.

#![expect(unsafe_code, reason = "mapping a file is unsafe because others may change it")]

use crate::error::TraceError;
use memmap2::{Mmap, MmapOptions};
use std::fs::File;
use std::path::{Path, PathBuf};

/// What is mapped at once, if there is no need for more.
const WINDOW: u64 = 64 << 20;
/// Windows begin at a multiple of this, which is one of every page size.
const ALIGNMENT: u64 = 1 << 16;

pub(crate) struct Window {
    path: PathBuf,
    file: File,
    length: u64,
    start: u64,
    map: Option<Mmap>,
}

impl Window {
    pub fn new(path: &Path, file: File, length: u64) -> Self {
        Self { path: path.to_path_buf(), file, length, start: 0, map: None }
    }

    pub fn length(&self) -> u64 {
        self.length
    }

    /// The bytes at `offset`, which the caller has checked to be inside the file.
    pub fn bytes(&mut self, offset: u64, count: usize) -> Result<&[u8], TraceError> {
        let end = offset + count as u64;
        assert!(end <= self.length, "bounded by the caller");
        let mapped = self.map.as_ref().map_or(0, |map| map.len() as u64);
        if offset < self.start || end > self.start + mapped {
            self.map = None;
            self.start = offset / ALIGNMENT * ALIGNMENT;
            let length = (end - self.start).max(WINDOW).min(self.length - self.start);
            let failed = |source| TraceError::Io { action: "map", path: self.path.clone(), source };
            // SAFETY: the map is private to this value and only ever read as plain bytes, for which any content is valid;
            // see the module header for what happens if others change the file.
            let map = unsafe { MmapOptions::new().offset(self.start).len(length as usize).map(&self.file) }.map_err(failed)?;
            self.map = Some(map);
        }
        let from = (offset - self.start) as usize;
        Ok(&self.map.as_deref().expect("just mapped")[from..from + count])
    }
}
