//! Read-only maps of recording files: the one module of this crate with `unsafe`.
//!
//! Limit: a recording is read after its program has ended. Should another process shorten a file while it is mapped, the
//! operating system ends this process with SIGBUS; should one change a byte, that byte is read as it is then, and every
//! number read from a map is bounded before it is used.

#![expect(unsafe_code, reason = "mapping a file is unsafe because others may change it")]

use crate::error::TraceError;
use rashomon_abi::record::CHUNK_BYTES;
use rashomon_files::Links;
use std::ops::Deref;
use std::path::Path;

/// The bytes of a file.
#[derive(Debug)]
pub struct FileMap {
    map: Option<memmap2::Mmap>,
    size: u64,
}

impl FileMap {
    pub fn open(path: &Path) -> Result<Self, TraceError> {
        let failed = |action| move |source| TraceError::Io { action, path: path.to_path_buf(), source };
        let file = rashomon_files::open(path, Links::Refused).map_err(failed("open"))?;
        let size = file.metadata().map_err(failed("examine"))?.len();
        // Whole chunks, so that what lies behind the last byte reads as it would have: as reserved space.
        let data = rashomon_files::end_of_data(&file).map_err(failed("examine"))?.next_multiple_of(CHUNK_BYTES as u64).min(size);
        let length = usize::try_from(data).map_err(|error| failed("map")(std::io::Error::other(error)))?;
        if length == 0 {
            return Ok(Self { map: None, size });
        }
        // SAFETY: the map is private to this value and only ever read as plain bytes, for which any content is valid;
        // files of a recording are not written any more (see the module header for what happens if they are).
        let map = unsafe { memmap2::MmapOptions::new().len(length).map(&file) }.map_err(failed("map"))?;
        Ok(Self { map: Some(map), size })
    }
}

impl FileMap {
    /// Of the file, reserved space included.
    pub const fn size(&self) -> u64 {
        self.size
    }
}

impl Deref for FileMap {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        self.map.as_deref().unwrap_or_default()
    }
}
