//! RapidBin, RAPID's binary form, as SPDOffline and its relatives read it.
//!
//! Numbers are big-endian. A header of 18 bytes counts threads (16 bits), locks (32), variables (32) and events (64). Each event
//! is a word: from the lowest bit, thread 10, operation 4, target 34, location 15; the highest bit is 0. The operations are, from
//! 0: acquire, release, read, write, fork, join, begin, end, request. Names are those that RAPID's text would have: `T3`, `L5`,
//! `V200`. A number that does not fit is refused; it is never cut.

use crate::error::{Place, TraceError};
use crate::event::{Event, Op, Space};
use crate::export::WriteOptions;
use crate::input::Input;
use crate::names::Names;
use crate::sink::Sink;
use crate::source::{BLOCK, Source};
use crate::text::Numbers;
use std::borrow::Cow;
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

const HEADER: usize = 18;
const THREAD_BITS: u32 = 10;
const OP_BITS: u32 = 4;
const TARGET_BITS: u32 = 34;
const LOCATION_BITS: u32 = 15;
const OP_SHIFT: u32 = THREAD_BITS;
const TARGET_SHIFT: u32 = OP_SHIFT + OP_BITS;
const LOCATION_SHIFT: u32 = TARGET_SHIFT + TARGET_BITS;
const OPS: [Op; 9] = [Op::Acquire, Op::Release, Op::Read, Op::Write, Op::Fork, Op::Join, Op::Begin, Op::End, Op::Request];

const fn field(word: u64, shift: u32, bits: u32) -> u64 {
    word >> shift & ((1 << bits) - 1)
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Header {
    threads: u16,
    locks: u32,
    variables: u32,
    events: u64,
}

impl Header {
    fn decode(bytes: &[u8; HEADER]) -> Self {
        Self {
            threads: u16::from_be_bytes([bytes[0], bytes[1]]),
            locks: u32::from_be_bytes(bytes[2..6].try_into().expect("four bytes")),
            variables: u32::from_be_bytes(bytes[6..10].try_into().expect("four bytes")),
            events: u64::from_be_bytes(bytes[10..18].try_into().expect("eight bytes")),
        }
    }

    fn encode(&self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        bytes[..2].copy_from_slice(&self.threads.to_be_bytes());
        bytes[2..6].copy_from_slice(&self.locks.to_be_bytes());
        bytes[6..10].copy_from_slice(&self.variables.to_be_bytes());
        bytes[10..].copy_from_slice(&self.events.to_be_bytes());
        bytes
    }

    /// The highest bits are signs, and no number is negative.
    fn fits(&self) -> bool {
        self.threads >> 15 == 0 && self.locks >> 31 == 0 && self.variables >> 31 == 0 && self.events >> 60 == 0
    }
}

pub(crate) struct RapidBinSource {
    input: Input,
    header: Header,
    numbers: Numbers,
    read: u64,
    /// Offset of the last block.
    block: u64,
}

impl RapidBinSource {
    /// Whether it may well be RapidBin, seen from the first bytes: there is no mark.
    pub fn is_plausible(bytes: &[u8], length: Option<u64>) -> bool {
        let Some(header) = bytes.first_chunk::<HEADER>().map(Header::decode) else { return false };
        let whole = header.fits() && length.is_none_or(|length| length == HEADER as u64 + 8 * header.events);
        let threads = 1..=1 << THREAD_BITS;
        whole && header.events > 0 && threads.contains(&header.threads) && {
            let words = bytes[HEADER..].chunks_exact(8).take(header.events.min(64) as usize);
            words
                .map(|word| u64::from_be_bytes(word.try_into().expect("eight bytes")))
                .all(|word| word >> 63 == 0 && (field(word, OP_SHIFT, OP_BITS) as usize) < OPS.len())
        }
    }

    pub fn new(mut input: Input) -> Result<Self, TraceError> {
        if input.require(HEADER)? < HEADER {
            return Err(input.malformed(0, None, "too short for a header of RapidBin"));
        }
        let header = Header::decode(input.bytes()[..HEADER].try_into().expect("of this length"));
        if !header.fits() {
            return Err(input.malformed(0, None, "a header of RapidBin has no negative numbers"));
        }
        input.consume(HEADER);
        Ok(Self { input, header, numbers: Numbers::new(false), read: 0, block: HEADER as u64 })
    }

    #[inline]
    fn event(numbers: &mut Numbers, word: u64) -> Result<Event, Cow<'static, str>> {
        let number = field(word, OP_SHIFT, OP_BITS);
        let Some(&op) = OPS.get(number as usize) else {
            return Err(format!("operation {number}, which RapidBin does not have").into());
        };
        if word >> 63 != 0 {
            return Err("an event whose highest bit is not 0".into());
        }
        let thread = numbers.numbered(Space::Thread, b'T', field(word, 0, THREAD_BITS))?;
        let space = op.space().expect("every operation of RapidBin has a target");
        let target = numbers.numbered(space, space.letter() as u8, field(word, TARGET_SHIFT, TARGET_BITS))?;
        let location = numbers.numbered(Space::Location, 0, field(word, LOCATION_SHIFT, LOCATION_BITS))?;
        Ok(Event::new(thread as u16, op, target, location))
    }

    /// At the end of the content.
    fn compare(&self) -> Result<(), TraceError> {
        let found = |space| u64::from(self.numbers.names.count(space));
        let header = &self.header;
        for (what, announced, found) in [
            ("events", header.events, self.read),
            ("threads", header.threads.into(), found(Space::Thread)),
            ("locks", header.locks.into(), found(Space::Lock)),
            ("variables", header.variables.into(), found(Space::Variable)),
        ] {
            if announced != found {
                let what = format!("the header announces {announced} {what}, and there are {found}");
                return Err(self.input.malformed(self.input.offset(), None, what));
            }
        }
        Ok(())
    }
}

impl Source for RapidBinSource {
    fn next(&mut self, block: &mut Vec<Event>) -> Result<(), TraceError> {
        block.clear();
        let length = self.input.require(8 * BLOCK)?;
        self.block = self.input.offset();
        let words = (length / 8).min(BLOCK);
        if words == 0 {
            return match length {
                0 => self.compare(),
                _ => Err(self.input.malformed(self.block, None, format!("{length} bytes behind the last event"))),
            };
        }
        for (index, word) in self.input.bytes()[..8 * words].chunks_exact(8).enumerate() {
            let word = u64::from_be_bytes(word.try_into().expect("eight bytes"));
            match Self::event(&mut self.numbers, word) {
                Ok(event) => block.push(event),
                Err(what) => return Err(self.input.malformed(self.block + 8 * index as u64, None, what)),
            }
        }
        self.input.consume(8 * words);
        self.read += words as u64;
        Ok(())
    }

    fn expected(&self, space: Space) -> Option<u32> {
        // Nothing keeps a header from announcing what does not come.
        let bound = |number: u32| Some(number.min(1 << 24));
        match space {
            Space::Thread => bound(self.header.threads.into()),
            Space::Lock => bound(self.header.locks),
            Space::Variable => bound(self.header.variables),
            _ => None,
        }
    }

    fn events(&self) -> Option<u64> {
        Some(self.header.events)
    }

    fn names(&self) -> &Names {
        &self.numbers.names
    }

    fn place(&self, index: usize) -> Option<Place> {
        Some(self.input.place(self.block + 8 * index as u64, None))
    }
}

/// Writes RapidBin; numbers are those of the events, names are lost.
pub struct RapidBinWriter<W> {
    out: W,
    path: PathBuf,
    options: WriteOptions,
    /// Events given, left out or not.
    given: u64,
    written: u64,
    left_out: u64,
    /// Whether a number was used.
    used: [Vec<bool>; Space::COUNT],
    buffer: Vec<u8>,
}

impl<W: Write + Seek> RapidBinWriter<W> {
    pub fn new(out: W, path: &Path, options: WriteOptions) -> Result<Self, TraceError> {
        let used = Default::default();
        let path = path.to_path_buf();
        let mut writer = Self { out, path, options, given: 0, written: 0, left_out: 0, used, buffer: vec![0; HEADER] };
        writer.flush()?;
        Ok(writer)
    }

    fn failed(&self, source: std::io::Error) -> TraceError {
        TraceError::Io { action: "write", path: self.path.clone(), source }
    }

    fn flush(&mut self) -> Result<(), TraceError> {
        let result = self.out.write_all(&self.buffer);
        self.buffer.clear();
        result.map_err(|source| self.failed(source))
    }

    fn mark(&mut self, space: Space, number: u32) {
        let used = &mut self.used[space as usize];
        if used.len() <= number as usize {
            used.resize(number as usize + 1, false);
        }
        used[number as usize] = true;
    }

    fn word(event: &Event) -> Result<u64, String> {
        let bounded = |space: Space, number: u32, bits: u32| match u64::from(number) >> bits {
            0 => Ok(u64::from(number)),
            _ => Err(format!("{} number {number} does not fit RapidBin's {bits} bits", space.noun())),
        };
        let Some(op) = OPS.iter().position(|op| *op == event.op) else {
            return Err(format!("RapidBin cannot say `{}`", event.op.name()));
        };
        let target = match event.op.space() {
            Some(Space::Thread) => bounded(Space::Thread, event.target, THREAD_BITS)?,
            _ => event.target.into(),
        };
        let thread = bounded(Space::Thread, event.thread.into(), THREAD_BITS)?;
        let location = bounded(Space::Location, event.location, LOCATION_BITS)?;
        Ok(thread | (op as u64) << OP_SHIFT | target << TARGET_SHIFT | location << LOCATION_SHIFT)
    }
}

impl<W: Write + Seek> Sink for RapidBinWriter<W> {
    fn write(&mut self, block: &[Event], _: &Names) -> Result<(), TraceError> {
        for event in block {
            if !OPS.contains(&event.op) && self.options.lossy {
                self.left_out += 1;
            } else {
                let word = Self::word(event).map_err(|what| self.inexpressible(what))?;
                self.buffer.extend_from_slice(&word.to_be_bytes());
                self.mark(Space::Thread, event.thread.into());
                if let Some(space) = event.op.space() {
                    self.mark(space, event.target);
                }
                self.written += 1;
            }
            self.given += 1;
        }
        self.flush()
    }

    fn finish(&mut self, _: &Names) -> Result<(), TraceError> {
        let count = |space: Space| self.used[space as usize].iter().filter(|used| **used).count();
        let header = Header {
            threads: count(Space::Thread) as u16,
            locks: count(Space::Lock) as u32,
            variables: count(Space::Variable) as u32,
            events: self.written,
        };
        if !header.fits() {
            return Err(self.inexpressible(format!("a header of RapidBin cannot count {header:?}")));
        }
        let result = self.out.seek(SeekFrom::Start(0)).and_then(|_| self.out.write_all(&header.encode()));
        result.and_then(|()| self.out.flush()).map_err(|source| self.failed(source))
    }

    fn left_out(&self) -> u64 {
        self.left_out
    }
}

impl<W> RapidBinWriter<W> {
    fn inexpressible(&self, what: String) -> TraceError {
        TraceError::Inexpressible { path: self.path.clone(), event: self.given, what }
    }
}
