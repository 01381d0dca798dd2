//! What formats of one event a line have in common.

use crate::error::{Place, TraceError};
use crate::event::{Event, Op, Space};
use crate::input::Input;
use crate::intern::{Full, Interner};
use crate::names::Names;
use crate::source::{BLOCK, Source};
use std::borrow::Cow;

/// The parts of a line, as they stand there.
pub(crate) struct Parts<'a> {
    pub thread: &'a [u8],
    pub op: Op,
    pub target: &'a [u8],
    /// Empty: nowhere.
    pub location: &'a [u8],
}

/// How a line is taken apart. An error is the reason, as the end of a sentence about the line.
pub(crate) trait Dialect {
    fn parts(line: &[u8]) -> Result<Parts<'_>, Cow<'static, str>>;

    /// The event of a line as nearly all are, of names that are known, and the line's length with its end. Whatever it is in
    /// doubt about it leaves to [`Dialect::parts`].
    #[inline]
    fn at_once(_bytes: &[u8], _numbers: &Numbers) -> Option<(Event, usize)> {
        None
    }
}

/// Where the events of a block stand, relative to its begin: the distance in bytes and in lines.
#[derive(Default)]
struct Positions {
    offset: u64,
    line: u64,
    events: Vec<(u32, u32)>,
}

impl Positions {
    /// One more event of the block, and where it stands.
    #[inline]
    fn add(&mut self, block: &mut Vec<Event>, event: Event, (offset, line): (u64, u64)) {
        if block.is_empty() {
            (self.offset, self.line) = (offset, line);
        }
        block.push(event);
        // Blocks are short and lines bounded: but for many empty lines, for which positions are the last that fits.
        let distance = |from: u64, to: u64| u32::try_from(to - from).unwrap_or(u32::MAX);
        self.events.push((distance(self.offset, offset), distance(self.line, line)));
    }
}

/// Names and their numbers, of every space.
pub(crate) struct Numbers {
    pub names: Names,
    interners: [Interner; Space::COUNT],
    /// `T12` and `12` are the same thread.
    bare_threads: bool,
}

impl Numbers {
    pub fn new(bare_threads: bool) -> Self {
        let mut names = Names::default();
        // Location 0 is nowhere; nothing in a file is called so.
        names.push(Space::Location, "-");
        Self { names, interners: Space::ALL.map(Interner::new), bare_threads }
    }

    /// What is called by a letter (0: none) and a decimal number, if it is found at once.
    #[inline]
    pub fn known(&self, space: Space, (prefix, decimal): (u8, u32)) -> Option<u32> {
        let is_itself = space != Space::Thread || !self.bare_threads;
        self.interners[space as usize].known(prefix, decimal.into()).filter(|_| is_itself)
    }

    /// What is called by a letter (0: none) and a decimal number.
    #[inline]
    pub fn numbered(&mut self, space: Space, prefix: u8, decimal: u64) -> Result<u32, Cow<'static, str>> {
        self.interners[space as usize].numbered(&mut self.names, prefix, decimal).map_err(|Full| full(space))
    }

    #[inline]
    fn number(&mut self, space: Space, name: &[u8]) -> Result<u32, Cow<'static, str>> {
        self.interners[space as usize].number(&mut self.names, name).map_err(|Full| full(space))
    }

    #[inline]
    fn thread(&mut self, name: &[u8]) -> Result<u32, Cow<'static, str>> {
        self.number(Space::Thread, if self.bare_threads { bare(name) } else { name })
    }

    #[inline]
    pub fn event(&mut self, parts: &Parts<'_>) -> Result<Event, Cow<'static, str>> {
        let thread = self.thread(parts.thread)? as u16;
        let target = match parts.op.space() {
            Some(Space::Thread) => self.thread(parts.target)?,
            Some(space) => self.number(space, parts.target)?,
            None => 0,
        };
        let location = if parts.location.is_empty() { 0 } else { self.number(Space::Location, parts.location)? };
        Ok(Event::new(thread, parts.op, target, location))
    }
}

pub(crate) fn full(space: Space) -> Cow<'static, str> {
    match space {
        Space::Thread => format!("more than {} threads", space.limit()),
        _ => format!("too many {}s: their numbers or the room for their names ran out", space.noun()),
    }
    .into()
}

/// The number behind letters.
fn bare(name: &[u8]) -> &[u8] {
    let letters = name.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
    let digits = &name[letters..];
    if !digits.is_empty() && digits.iter().all(u8::is_ascii_digit) { digits } else { name }
}

/// A line is shown in messages up to here.
const SHOWN: usize = 80;

fn shown(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(&line[..line.len().min(SHOWN)]).escape_debug().to_string();
    if line.len() > SHOWN { format!("`{text}…`") } else { format!("`{text}`") }
}

/// One event a line; empty lines are passed over.
pub(crate) struct TextSource<D> {
    input: Input,
    numbers: Numbers,
    positions: Positions,
    /// Lines before what is in the buffer.
    line: u64,
    dialect: std::marker::PhantomData<fn() -> D>,
}

impl<D: Dialect> TextSource<D> {
    pub fn new(input: Input, bare_threads: bool) -> Self {
        Self {
            input,
            numbers: Numbers::new(bare_threads),
            positions: Positions::default(),
            line: 0,
            dialect: std::marker::PhantomData,
        }
    }

    /// Events of the whole lines in the buffer. `last`: what has no line end is a line, too.
    fn take_lines(&mut self, block: &mut Vec<Event>, last: bool) -> Result<(), TraceError> {
        let bytes = self.input.bytes();
        let base = self.input.offset();
        let mut at = 0;
        while block.len() < BLOCK && at < bytes.len() {
            if let Some((event, length)) = D::at_once(&bytes[at..], &self.numbers) {
                self.positions.add(block, event, (base + at as u64, self.line));
                self.line += 1;
                at += length;
                continue;
            }
            let (line, next) = match memchr::memchr(b'\n', &bytes[at..]) {
                Some(length) => (&bytes[at..at + length], at + length + 1),
                None if last => (&bytes[at..], bytes.len()),
                None => break,
            };
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if !line.is_empty() {
                let offset = base + at as u64;
                let event = match D::parts(line).and_then(|parts| self.numbers.event(&parts)) {
                    Ok(event) => event,
                    Err(what) => {
                        return Err(self.input.malformed(offset, Some(self.line + 1), format!("{what}, in {}", shown(line))));
                    }
                };
                self.positions.add(block, event, (offset, self.line));
            }
            self.line += 1;
            at = next;
        }
        self.input.consume(at);
        Ok(())
    }
}

impl<D: Dialect> Source for TextSource<D> {
    fn next(&mut self, block: &mut Vec<Event>) -> Result<(), TraceError> {
        block.clear();
        self.positions.events.clear();
        loop {
            self.take_lines(block, false)?;
            if block.len() == BLOCK {
                return Ok(());
            }
            if self.input.bytes().len() == self.input.capacity() {
                let what = format!("a line of more than {} bytes", self.input.capacity());
                return Err(self.input.malformed(self.input.offset(), Some(self.line + 1), what));
            }
            if !self.input.read_more()? {
                return self.take_lines(block, true);
            }
        }
    }

    fn names(&self) -> &Names {
        &self.numbers.names
    }

    fn place(&self, index: usize) -> Option<Place> {
        let (bytes, lines) = *self.positions.events.get(index)?;
        Some(self.input.place(self.positions.offset + u64::from(bytes), Some(self.positions.line + u64::from(lines) + 1)))
    }
}
