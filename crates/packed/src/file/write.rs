//! Writes a packed trace, front to back.

use super::layout::{CHUNK_EVENTS, CHUNK_HEADER, ChunkHeader, FileHeader, Kind, Layout, MAX_PAYLOAD, Totals, number_bound};
use crate::error::TraceError;
use crate::event::{Event, Space};
use crate::names::Names;
use crate::sink::Sink;
use crate::source::Source;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Names of a chunk, in bytes, after which the next one is begun.
const NAME_BYTES: usize = 1 << 17;

pub struct PackedWriter<W> {
    out: W,
    path: PathBuf,
    header: FileHeader,
    pending: Vec<Event>,
    payload: Vec<u8>,
    totals: Totals,
}

impl<W: Write> PackedWriter<W> {
    /// What `source` knows beforehand is told to readers; `path` is for messages.
    pub fn new(out: W, path: &Path, source: &(impl Source + ?Sized)) -> Result<Self, TraceError> {
        let header = FileHeader {
            events: source.events().unwrap_or(0),
            numbers: Space::ALL.map(|space| source.expected(space).unwrap_or(0)),
        };
        let pending = Vec::with_capacity(CHUNK_EVENTS);
        let mut writer = Self { out, path: path.to_path_buf(), header, pending, payload: Vec::new(), totals: Totals::default() };
        writer.put(&header.encode())?;
        Ok(writer)
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), TraceError> {
        self.out.write_all(bytes).map_err(|source| TraceError::Io { action: "write", path: self.path.clone(), source })
    }

    /// The chunk whose bytes are in `payload`.
    fn put_chunk(&mut self, kind: Kind, count: u32, first: u64, detail: [u8; 4]) -> Result<(), TraceError> {
        debug_assert!(self.payload.len() <= MAX_PAYLOAD);
        let checksum = crc32fast::hash(&self.payload);
        let header: [u8; CHUNK_HEADER] =
            ChunkHeader { kind, length: self.payload.len() as u32, count, checksum, first, detail }.encode();
        self.put(&header)?;
        let payload = std::mem::take(&mut self.payload);
        let result = self.put(&payload);
        self.payload = payload;
        self.payload.clear();
        result
    }

    fn put_events(&mut self) -> Result<(), TraceError> {
        if self.pending.is_empty() {
            return Ok(());
        }
        for event in &self.pending {
            self.totals.count(event);
        }
        let (first, count) = (self.totals.events, self.pending.len() as u64);
        for space in Space::ALL {
            let used = self.totals.numbers[space as usize];
            if u64::from(used) > number_bound(self.header.numbers[space as usize], first + count) {
                return Err(TraceError::Inexpressible {
                    path: self.path.clone(),
                    event: first,
                    what: format!("{} {}: numbers must be dense", space.noun(), used - 1),
                });
            }
        }
        let layout = Layout::of(&self.pending);
        layout.encode(&self.pending, &mut self.payload);
        self.pending.clear();
        self.put_chunk(Kind::Events, count as u32, first, layout.detail())?;
        self.totals.events += count;
        Ok(())
    }

    /// A name stands in the file before the first event that needs it.
    fn put_names(&mut self, names: &Names) -> Result<(), TraceError> {
        for space in Space::ALL {
            let known = names.count(space);
            let mut first = self.totals.names[space as usize];
            let mut next = first;
            while next < known {
                let name = names.bytes(space, next).expect("counted");
                if name.len() + 4 > MAX_PAYLOAD {
                    return Err(TraceError::Inexpressible {
                        path: self.path.clone(),
                        event: self.totals.events,
                        what: format!("the name of {} {next} is {} bytes long", space.noun(), name.len()),
                    });
                }
                if !self.payload.is_empty() && self.payload.len() + name.len() + 4 > NAME_BYTES {
                    self.put_chunk(Kind::Names, next - first, first.into(), [space as u8, 0, 0, 0])?;
                    first = next;
                }
                self.payload.extend_from_slice(&(name.len() as u32).to_le_bytes());
                self.payload.extend_from_slice(name);
                next += 1;
            }
            if next > first {
                self.put_chunk(Kind::Names, next - first, first.into(), [space as u8, 0, 0, 0])?;
            }
            self.totals.names[space as usize] = known;
        }
        Ok(())
    }
}

impl<W: Write> Sink for PackedWriter<W> {
    fn write(&mut self, block: &[Event], names: &Names) -> Result<(), TraceError> {
        if Space::ALL.into_iter().any(|space| names.count(space) > self.totals.names[space as usize]) {
            self.put_names(names)?;
        }
        let mut rest = block;
        while !rest.is_empty() {
            let (now, later) = rest.split_at(rest.len().min(CHUNK_EVENTS - self.pending.len()));
            self.pending.extend_from_slice(now);
            rest = later;
            if self.pending.len() == CHUNK_EVENTS {
                self.put_events()?;
            }
        }
        Ok(())
    }

    fn finish(&mut self, names: &Names) -> Result<(), TraceError> {
        self.put_names(names)?;
        self.put_events()?;
        self.payload.extend_from_slice(&self.totals.encode());
        self.put_chunk(Kind::End, 0, self.totals.events, [0; 4])?;
        self.out.flush().map_err(|source| TraceError::Io { action: "write", path: self.path.clone(), source })
    }
}
