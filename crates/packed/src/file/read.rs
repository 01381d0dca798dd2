//! Reads a packed trace: mapped, where it is a plain file, or as it comes.
//!
//! Memory: a window of the file or one chunk, the names, and nothing else. Every chunk's checksum is verified before any of its
//! events is handed on.

use super::layout::{
    ANNOUNCED_NUMBERS, CHUNK_HEADER, ChunkHeader, END_PAYLOAD, FileHeader, HEADER, Kind, Layout, Totals, number_bound, u32_at,
};
use crate::error::{Place, TraceError};
use crate::event::{Event, Op, Space};
use crate::input::Input;
use crate::names::Names;
use crate::source::{BLOCK, Source};
use crate::window::Window;
use std::fs::File;
use std::path::{Path, PathBuf};

enum Bytes {
    Mapped(Window),
    Streamed(Input, Vec<u8>),
}

/// The events of the chunk that is being read.
#[derive(Clone, Copy)]
struct Chunk {
    layout: Layout,
    /// Offset of its payload.
    start: u64,
    count: usize,
    next: usize,
}

pub struct PackedSource {
    path: PathBuf,
    bytes: Bytes,
    /// Offset of what is read next.
    offset: u64,
    header: FileHeader,
    /// What the file's end says, if that was looked at beforehand.
    known: Option<Totals>,
    /// What was found.
    seen: Totals,
    chunk: Option<Chunk>,
    /// Where the last block begins, and how many bytes its events take.
    block: (u64, usize),
    names: Names,
    lenient: bool,
    notices: Vec<String>,
    ended: bool,
}

impl PackedSource {
    /// An uncompressed regular file.
    pub fn map(path: &Path, lenient: bool) -> Result<Self, TraceError> {
        let failed = |action| move |source| TraceError::Io { action, path: path.to_path_buf(), source };
        let file = File::open(path).map_err(failed("open"))?;
        let length = file.metadata().map_err(failed("examine"))?.len();
        let mut window = Window::new(path, file, length);
        let end = (CHUNK_HEADER + END_PAYLOAD) as u64;
        let mut known = None;
        if length >= HEADER as u64 + end {
            let bytes = window.bytes(length - end, end as usize)?;
            let (header, payload) = bytes.split_at(CHUNK_HEADER);
            if let Ok(header) = ChunkHeader::decode(header.try_into().expect("of this length"))
                && header.kind == Kind::End
                && header.checksum == crc32fast::hash(payload)
            {
                known = Some(Totals::decode(payload.try_into().expect("of this length")));
            }
        }
        Self::start(path, Bytes::Mapped(window), known, lenient)
    }

    pub(crate) fn stream(input: Input, lenient: bool) -> Result<Self, TraceError> {
        let path = input.path().to_path_buf();
        Self::start(&path, Bytes::Streamed(input, Vec::new()), None, lenient)
    }

    fn start(path: &Path, bytes: Bytes, known: Option<Totals>, lenient: bool) -> Result<Self, TraceError> {
        let mut source = Self {
            path: path.to_path_buf(),
            bytes,
            offset: 0,
            header: FileHeader::default(),
            known,
            seen: Totals::default(),
            chunk: None,
            block: (0, 0),
            names: Names::default(),
            lenient,
            notices: Vec::new(),
            ended: false,
        };
        let header = match source.take(HEADER)? {
            Some(bytes) => bytes.try_into().expect("of this length"),
            None => return Err(source.malformed(0, "too short for a packed trace")),
        };
        source.header = FileHeader::decode(&header).map_err(|what| source.malformed(0, &what))?;
        Ok(source)
    }

    /// Whether the file's end was found when it was opened; of a stream nobody knows.
    pub fn is_finished(&self) -> Option<bool> {
        match self.bytes {
            Bytes::Mapped(_) => Some(self.known.is_some()),
            Bytes::Streamed(..) => None,
        }
    }

    /// Bytes that an event takes in the chunk that is being read.
    pub fn stride(&self) -> usize {
        self.block.1
    }

    fn malformed(&self, offset: u64, what: &str) -> TraceError {
        TraceError::Malformed { place: Place { path: self.path.clone(), offset, line: None }, what: what.into() }
    }

    /// The next bytes, or none if the file ends before.
    fn take(&mut self, count: usize) -> Result<Option<&[u8]>, TraceError> {
        let offset = self.offset;
        match &mut self.bytes {
            Bytes::Mapped(window) => {
                if offset + count as u64 > window.length() {
                    return Ok(None);
                }
                self.offset += count as u64;
                window.bytes(offset, count).map(Some)
            }
            Bytes::Streamed(input, buffer) => {
                buffer.clear();
                while buffer.len() < count {
                    let bytes = input.bytes();
                    let now = bytes.len().min(count - buffer.len());
                    buffer.extend_from_slice(&bytes[..now]);
                    input.consume(now);
                    if now == 0 && !input.read_more()? {
                        return Ok(None);
                    }
                }
                self.offset += count as u64;
                Ok(Some(buffer))
            }
        }
    }

    /// Whether everything was read.
    fn at_end(&mut self) -> Result<bool, TraceError> {
        match &mut self.bytes {
            Bytes::Mapped(window) => Ok(self.offset == window.length()),
            Bytes::Streamed(input, _) => Ok(input.require(1)? == 0),
        }
    }

    /// The file ends without saying so.
    fn cut(&mut self, offset: u64) -> Result<(), TraceError> {
        let what = format!("the trace was not written to its end: {} events are whole; --lenient reads those", self.seen.events);
        if !self.lenient {
            return Err(self.malformed(offset, &what));
        }
        self.notices.push(self.malformed(offset, &what).to_string());
        self.ended = true;
        Ok(())
    }

    /// The next chunk: one of events stays to be decoded, all others are done with.
    fn next_chunk(&mut self) -> Result<(), TraceError> {
        let offset = self.offset;
        let header: [u8; CHUNK_HEADER] = match self.take(CHUNK_HEADER)? {
            Some(bytes) => bytes.try_into().expect("of this length"),
            None => return self.cut(offset),
        };
        let header = ChunkHeader::decode(&header).map_err(|what| self.malformed(offset, &what))?;
        let start = self.offset;
        let Some(checksum) = (match header.length {
            0 => Some(0),
            length => self.take(length as usize)?.map(crc32fast::hash),
        }) else {
            return self.cut(offset);
        };
        if checksum != header.checksum {
            return Err(self.malformed(start, "the checksum of a chunk does not match: these bytes are not those written"));
        }
        match header.kind {
            Kind::Events => self.begin_events(&header, offset, start),
            Kind::Names => self.take_names(&header, offset, start),
            Kind::End => self.finish(&header, offset),
        }
    }

    fn begin_events(&mut self, header: &ChunkHeader, offset: u64, start: u64) -> Result<(), TraceError> {
        let layout = Layout::from_detail(header.detail).map_err(|what| self.malformed(offset, &what))?;
        if header.count == 0 || u64::from(header.count) * layout.stride() as u64 != u64::from(header.length) {
            let what = format!("{} events of {} bytes in a chunk of {} bytes", header.count, layout.stride(), header.length);
            return Err(self.malformed(offset, &what));
        }
        if header.first != self.seen.events {
            let what = format!("events from number {} on, but {} is the next", header.first, self.seen.events);
            return Err(self.malformed(offset, &what));
        }
        self.chunk = Some(Chunk { layout, start, count: header.count as usize, next: 0 });
        self.seen.events += u64::from(header.count);
        Ok(())
    }

    /// The bytes of the chunk just taken.
    fn payload(&mut self, start: u64, range: std::ops::Range<usize>) -> Result<&[u8], TraceError> {
        match &mut self.bytes {
            Bytes::Mapped(window) => window.bytes(start + range.start as u64, range.len()),
            Bytes::Streamed(_, buffer) => Ok(&buffer[range]),
        }
    }

    fn take_names(&mut self, header: &ChunkHeader, offset: u64, start: u64) -> Result<(), TraceError> {
        let Some(space) = Space::ALL.into_iter().find(|space| *space as u8 == header.detail[0]) else {
            return Err(self.malformed(offset, "names of a space that there is not"));
        };
        let known = self.names.count(space);
        if header.first != u64::from(known) {
            let what = format!("names of {}s from number {} on, but {known} is the next", space.noun(), header.first);
            return Err(self.malformed(offset, &what));
        }
        if header.length == 0 || u64::from(known) + u64::from(header.count) > u64::from(space.limit()) {
            return Err(self.malformed(offset, &format!("{} names of {}s", header.count, space.noun())));
        }
        let mut names = std::mem::take(&mut self.names);
        let payload = self.payload(start, 0..header.length as usize)?;
        let mut rest = payload;
        let mut count = 0;
        while rest.len() >= 4 {
            let length = u32_at(rest, 0) as usize;
            let Some(name) = rest[4..].get(..length) else { break };
            names.push_bytes(space, name);
            rest = &rest[4 + length..];
            count += 1;
        }
        let whole = rest.is_empty() && count == header.count;
        self.names = names;
        if whole { Ok(()) } else { Err(self.malformed(start, "names that do not end where their chunk does")) }
    }

    fn finish(&mut self, header: &ChunkHeader, offset: u64) -> Result<(), TraceError> {
        if header.length as usize != END_PAYLOAD {
            return Err(self.malformed(offset, "a last chunk of a wrong length"));
        }
        let payload = self.payload(offset + CHUNK_HEADER as u64, 0..END_PAYLOAD)?;
        let totals = Totals::decode(payload.try_into().expect("of this length"));
        let names = Space::ALL.map(|space| self.names.count(space));
        if totals.events != self.seen.events || totals.names != names {
            let what = format!("{} events announced and {} found, or as many names", totals.events, self.seen.events);
            return Err(self.malformed(offset, &what));
        }
        let behind = self.offset;
        if !self.at_end()? {
            return Err(self.malformed(behind, "bytes behind the trace's end"));
        }
        self.ended = true;
        Ok(())
    }

    /// Refuses numbers that no trace of this length can need.
    fn bound_numbers(&self, block: &[Event], layout: Layout) -> Result<(), TraceError> {
        let bound = |space: Space| number_bound(self.header.numbers[space as usize], self.seen.events);
        let suspect = |bits: u32, space: Space| 1_u64 << bits > bound(space);
        let spaces = [Space::Variable, Space::Lock, Space::Region, Space::Object];
        let too_many_threads = |event: &Event| matches!(event.op, Op::Fork | Op::Join) && event.target >= Space::Thread.limit();
        if !spaces.into_iter().any(|space| suspect(layout.target, space))
            && !suspect(layout.location, Space::Location)
            && (layout.target <= 16 || !block.iter().any(too_many_threads))
        {
            return Ok(());
        }
        for (index, event) in block.iter().enumerate() {
            let location = u64::from(event.location) >= bound(Space::Location);
            let target = event.op.space().is_some_and(|space| match space {
                Space::Thread => event.target >= space.limit(),
                space => u64::from(event.target) >= bound(space),
            });
            if location || target {
                let what = if location { "a location" } else { "a target" };
                let what = format!("{what} whose number is higher than a trace of this length needs: numbers are dense");
                return Err(self.malformed(self.block.0 + (index * self.block.1) as u64, &what));
            }
        }
        Ok(())
    }
}

impl Source for PackedSource {
    fn next(&mut self, block: &mut Vec<Event>) -> Result<(), TraceError> {
        block.clear();
        let mut chunk = loop {
            match self.chunk {
                Some(chunk) if chunk.next < chunk.count => break chunk,
                _ if self.ended => return Ok(()),
                _ => self.next_chunk()?,
            }
        };
        let stride = chunk.layout.stride();
        let from = chunk.next;
        chunk.next = (from + BLOCK).min(chunk.count);
        self.chunk = Some(chunk);
        self.block = (chunk.start + (from * stride) as u64, stride);
        let payload = self.payload(chunk.start, from * stride..chunk.next * stride)?;
        let whole = chunk.layout.decode(payload, block);
        if !whole {
            let at = payload.chunks_exact(stride).position(|word| Op::from_number(word[0] & 31).is_none()).unwrap_or(0);
            let what = "an operation that version 1 does not have";
            return Err(self.malformed(self.block.0 + (at * stride) as u64, what));
        }
        self.bound_numbers(block, chunk.layout)
    }

    fn expected(&self, space: Space) -> Option<u32> {
        let announced = match &self.known {
            Some(totals) => totals.numbers[space as usize],
            None => self.header.numbers[space as usize],
        };
        (announced > 0).then_some(announced.min(ANNOUNCED_NUMBERS))
    }

    fn events(&self) -> Option<u64> {
        match &self.known {
            Some(totals) => Some(totals.events),
            None => Some(self.header.events).filter(|events| *events > 0),
        }
    }

    fn names(&self) -> &Names {
        &self.names
    }

    fn place(&self, index: usize) -> Option<Place> {
        Some(Place { path: self.path.clone(), offset: self.block.0 + (index * self.block.1) as u64, line: None })
    }

    fn notices(&self) -> &[String] {
        &self.notices
    }
}
