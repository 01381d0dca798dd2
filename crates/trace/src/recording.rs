//! A session directory, opened and validated.

use crate::chunks::{Chunk, Chunks};
use crate::error::TraceError;
use crate::header::{RunHeader, RunState};
use crate::loaded::Shortcoming;
use crate::map::FileMap;
use crate::modules::{self, ModuleLines};
use crate::stream::Reader;
use rashomon_abi::{MAX_THREADS, MODULES_FILE, THREAD_FILE_PREFIX};
use rashomon_files::Links;
use std::path::{Path, PathBuf};

/// The mapped stream of one thread.
#[derive(Debug)]
pub struct Stream {
    pub path: PathBuf,
    pub thread: u32,
    pub chunks: Chunks,
    map: FileMap,
}

impl Stream {
    fn open(path: PathBuf, thread: u32) -> Result<Self, TraceError> {
        let map = FileMap::open(&path)?;
        let chunks = Chunks::scan(thread, &map);
        Ok(Self { path, thread, chunks, map })
    }

    pub fn reader(&self) -> Reader<'_> {
        Reader::new(&self.map, &self.chunks)
    }

    /// Bytes of records in all chunks.
    pub fn record_bytes(&self) -> u64 {
        self.chunks.list.iter().map(Chunk::record_bytes).sum()
    }

    pub fn file_bytes(&self) -> u64 {
        self.map.size()
    }
}

/// A recording whose files were found readable. Damaged streams are kept with their faults: [`Recording::load`] uses what
/// precedes them, [`Recording::verify`] refuses them.
#[derive(Debug)]
pub struct Recording {
    pub directory: PathBuf,
    pub header: RunHeader,
    pub modules: ModuleLines,
    /// Sorted by thread number.
    pub streams: Vec<Stream>,
}

impl Recording {
    pub fn open(directory: &Path) -> Result<Self, TraceError> {
        let header = RunHeader::read(directory)?;
        let modules_path = directory.join(MODULES_FILE);
        let modules = match rashomon_files::read(&modules_path, Links::Refused, modules::LARGEST) {
            Ok(bytes) => modules::parse(&modules_path, &bytes)?,
            Err(source) if source.kind() == std::io::ErrorKind::NotFound => ModuleLines::default(),
            Err(source) => {
                return Err(TraceError::Io { action: "read", path: modules_path, source });
            }
        };
        let mut streams = Vec::new();
        for (thread, path) in stream_files(directory)? {
            streams.push(Stream::open(path, thread)?);
        }
        Ok(Self { directory: directory.to_path_buf(), header, modules, streams })
    }
}

impl Recording {
    /// The first thread that was created but has no stream. It did nothing before the program ended if no sequence number is
    /// missing; else its stream was lost.
    pub fn thread_without_stream(&self) -> Option<u32> {
        let threads = u32::try_from(self.header.threads).unwrap_or(u32::MAX);
        // Streams are sorted and their threads differ, so the first that is out of step stands behind a gap.
        let next = (0..).zip(&self.streams).find(|(number, stream)| *number != stream.thread);
        let first = next.map_or(self.streams.len() as u32, |(number, _)| number);
        (first < threads).then_some(first)
    }

    /// What the files, damage apart, lack of a whole recording.
    pub fn shortcomings_of_files(&self) -> Vec<Shortcoming> {
        let state = match self.header.state {
            RunState::Complete => None,
            RunState::Running => Some(Shortcoming::NotEnded),
            RunState::Stopped => Some(Shortcoming::Stopped),
            RunState::Crashed => Some(Shortcoming::Crashed),
        };
        let unfinished = self.streams.iter().filter(|stream| stream.chunks.is_unfinished());
        let threads: Vec<u32> = unfinished.map(|stream| stream.thread).collect();
        let chunks = (!threads.is_empty()).then_some(Shortcoming::Unfinished { threads });
        let modules = self.modules.unfinished_at.map(|_| Shortcoming::ModulesCutShort);
        state.into_iter().chain(chunks).chain(modules).collect()
    }
}

/// Thread numbers and paths of the stream files, sorted by number.
fn stream_files(directory: &Path) -> Result<Vec<(u32, PathBuf)>, TraceError> {
    let failed = |source| TraceError::Io { action: "list", path: directory.to_path_buf(), source };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name();
        let Some(digits) = name.to_str().and_then(|name| name.strip_prefix(THREAD_FILE_PREFIX)) else {
            continue;
        };
        let corrupt = |what: &str| TraceError::Corrupt { path: entry.path(), offset: 0, what: what.to_owned() };
        let thread: u32 = digits.parse().map_err(|_| corrupt("the file's name does not end in a thread number"))?;
        if thread as usize >= MAX_THREADS {
            return Err(TraceError::TooLarge { path: entry.path(), what: "threads", limit: MAX_THREADS as u64 });
        }
        files.push((thread, entry.path()));
    }
    files.sort();
    if let Some(pair) = files.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        let what = format!("thread {} has a second stream, {}", pair[0].0, pair[0].1.display());
        return Err(TraceError::Corrupt { path: pair[1].1.clone(), offset: 0, what });
    }
    Ok(files)
}

/// The file name of a thread's stream.
pub fn stream_file_name(thread: u32) -> String {
    format!("{THREAD_FILE_PREFIX}{thread:04}")
}
