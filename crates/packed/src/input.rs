//! Bytes of a file, a pipe or standard input, uncompressed on the way, through a buffer of fixed size.

use crate::error::{Place, TraceError};
use rashomon_event::Deadline;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};

/// What is read at once. Also the longest line, and the longest thing that must be seen whole.
const BUFFER: usize = 1 << 18;
/// Memory a decompressor may ask for: 2 to this power.
const ZSTD_WINDOW: u32 = 27;

enum Compression {
    Gzip,
    Zstandard,
}

/// A pipe, or whatever else may send nothing for ever.
struct Waiting {
    file: File,
    until: Deadline,
}

impl Read for Waiting {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        loop {
            let left = self.until.left();
            let time = left.map(|left| Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: left.subsec_nanos().into() });
            match poll(&mut [PollFd::new(&self.file, PollFlags::IN)], time.as_ref()) {
                Ok(0) => return Err(std::io::Error::new(ErrorKind::TimedOut, "nothing came in time")),
                Ok(_) => return self.file.read(buffer),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

pub(crate) struct Input {
    path: PathBuf,
    reader: Box<dyn Read + Send>,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Offset of `start` in the content.
    offset: u64,
    ended: bool,
    /// Bytes of an uncompressed regular file.
    length: Option<u64>,
}

impl Input {
    /// `-` is standard input. What is no regular file is waited for until then, whenever it has nothing.
    pub fn open(path: &Path, until: Deadline) -> Result<Self, TraceError> {
        let failed = |action| move |source| TraceError::Io { action, path: path.to_path_buf(), source };
        let file = if path == Path::new("-") {
            File::from(std::io::stdin().as_fd().try_clone_to_owned().map_err(failed("open"))?)
        } else {
            File::open(path).map_err(failed("open"))?
        };
        let metadata = file.metadata().map_err(failed("examine"))?;
        // What is read of standard input may begin behind the file's beginning.
        let length = (metadata.is_file() && path != Path::new("-")).then_some(metadata.len());
        let reader: Box<dyn Read + Send> = if metadata.is_file() { Box::new(file) } else { Box::new(Waiting { file, until }) };
        Self::new(path, reader, length)
    }

    pub fn new(path: &Path, reader: Box<dyn Read + Send>, length: Option<u64>) -> Result<Self, TraceError> {
        let mut input =
            Self { path: path.to_path_buf(), reader, buffer: vec![0; BUFFER], start: 0, end: 0, offset: 0, ended: false, length };
        input.require(4)?;
        let failed = |source| TraceError::Io { action: "uncompress", path: path.to_path_buf(), source };
        let compression = match input.bytes() {
            [0x1f, 0x8b, ..] => Some(Compression::Gzip),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(Compression::Zstandard),
            _ => None,
        };
        if let Some(compression) = compression {
            let seen = std::io::Cursor::new(input.bytes().to_vec());
            let raw = seen.chain(input.reader);
            let reader: Box<dyn Read + Send> = match compression {
                Compression::Gzip => Box::new(flate2::read::MultiGzDecoder::new(raw)),
                Compression::Zstandard => {
                    let mut decoder = zstd::Decoder::new(raw).map_err(failed)?;
                    decoder.window_log_max(ZSTD_WINDOW).map_err(failed)?;
                    Box::new(decoder)
                }
            };
            input = Self { reader, start: 0, end: 0, offset: 0, ended: false, length: None, ..input };
        }
        Ok(input)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes of the whole content, where known.
    pub fn length(&self) -> Option<u64> {
        self.length
    }

    /// What is in the buffer.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Offset of the first byte in the buffer.
    #[inline]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    #[inline]
    pub fn consume(&mut self, count: usize) {
        debug_assert!(count <= self.end - self.start);
        self.start += count;
        self.offset += count as u64;
    }

    /// Longest thing that can be required.
    pub const fn capacity(&self) -> usize {
        BUFFER
    }

    /// Reads on until `count` bytes are in the buffer or the content ends. Returns how many there are.
    pub fn require(&mut self, count: usize) -> Result<usize, TraceError> {
        debug_assert!(count <= BUFFER);
        while self.end - self.start < count && self.read_more()? {}
        Ok(self.end - self.start)
    }

    /// Reads something more, if there is more and room for it.
    pub fn read_more(&mut self) -> Result<bool, TraceError> {
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        while !self.ended && self.end < self.buffer.len() {
            match self.reader.read(&mut self.buffer[self.end..]) {
                Ok(0) => self.ended = true,
                Ok(count) => {
                    self.end += count;
                    return Ok(true);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error)
                    if matches!(
                        error.kind(),
                        ErrorKind::InvalidData | ErrorKind::UnexpectedEof | ErrorKind::InvalidInput | ErrorKind::Other
                    ) =>
                {
                    let offset = self.offset + (self.end - self.start) as u64;
                    return Err(self.malformed(offset, None, format!("cannot be uncompressed: {error}")));
                }
                Err(source) => return Err(TraceError::Io { action: "read", path: self.path.clone(), source }),
            }
        }
        Ok(false)
    }

    pub fn place(&self, offset: u64, line: Option<u64>) -> Place {
        Place { path: self.path.clone(), offset, line }
    }

    pub fn malformed(&self, offset: u64, line: Option<u64>, what: impl Into<String>) -> TraceError {
        TraceError::Malformed { place: self.place(offset, line), what: what.into() }
    }
}
