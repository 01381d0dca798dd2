//! Read-only maps of recording files: the one module of this crate with `unsafe`.
//!
//! Limit: a recording is read after its program has ended. Should another process shorten a file while it is mapped, the
//! operating system ends this process with SIGBUS; should one change a byte, that byte is read as it is then, and every
//! number read from a map is bounded before it is used.

#![expect(unsafe_code, reason = "mapping a file is unsafe because others may change it")]

use crate::error::TraceError;
use std::fs::File;
use std::ops::Deref;
use std::path::Path;

/// The bytes of a file.
#[derive(Debug)]
pub struct FileMap(Option<memmap2::Mmap>);

impl FileMap {
    pub fn open(path: &Path) -> Result<Self, TraceError> {
        let failed = |action| move |source| TraceError::Io { action, path: path.to_path_buf(), source };
        let file = File::open(path).map_err(failed("open"))?;
        if file.metadata().map_err(failed("examine"))?.len() == 0 {
            return Ok(Self(None));
        }
        // SAFETY: the map is private to this value and only ever read as plain bytes, for which any content is valid;
        // files of a recording are not written any more (see the module header for what happens if they are).
        let map = unsafe { memmap2::Mmap::map(&file) }.map_err(failed("map"))?;
        Ok(Self(Some(map)))
    }
}

impl Deref for FileMap {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        self.0.as_deref().unwrap_or_default()
    }
}
