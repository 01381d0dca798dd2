//! Traces into files of any format.

use crate::error::TraceError;
use crate::event::{Event, Space};
use crate::file::PackedWriter;
use crate::format::Format;
use crate::names::Names;
use crate::rapid_bin::RapidBinWriter;
use crate::sink::Sink;
use crate::source::Source;
use crate::{speedygo, std_text};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteOptions {
    /// What the format cannot say is left out, and counted.
    pub lossy: bool,
    /// Numbers instead of names.
    pub numbers: bool,
}

/// A new file (`-`: standard output). What `source` knows beforehand goes into the header, where there is one.
pub fn create(
    path: &Path,
    format: Format,
    options: WriteOptions,
    source: &(impl Source + ?Sized),
) -> Result<Box<dyn Sink>, TraceError> {
    let failed = |source| TraceError::Io { action: "create", path: path.to_path_buf(), source };
    if format == Format::RapidBin {
        let file = File::create(path).map_err(failed)?;
        return Ok(Box::new(RapidBinWriter::new(file, path, options)?));
    }
    let out: Box<dyn Write> =
        if path == Path::new("-") { Box::new(std::io::stdout()) } else { Box::new(File::create(path).map_err(failed)?) };
    let out = BufWriter::with_capacity(1 << 17, out);
    Ok(match format {
        Format::Packed => Box::new(PackedWriter::new(out, path, source)?),
        Format::Std | Format::RapidBin => Box::new(TextWriter::<_, std_text::Writer>::new(out, path, options)),
        Format::SpeedyGo => Box::new(TextWriter::<_, speedygo::Writer>::new(out, path, options)),
    })
}

/// How events become lines.
pub(crate) trait Lines: Default {
    /// Appends the event's lines. An error is the reason why there are none; `lossy` is said so that the writer can tell what it
    /// may leave out (`Ok(false)`).
    fn event(&mut self, event: &Event, names: &Names, options: WriteOptions, out: &mut Vec<u8>) -> Result<bool, String>;
}

pub(crate) struct TextWriter<W, L> {
    out: W,
    path: PathBuf,
    options: WriteOptions,
    lines: L,
    buffer: Vec<u8>,
    given: u64,
    left_out: u64,
}

impl<W: Write, L: Lines> TextWriter<W, L> {
    pub fn new(out: W, path: &Path, options: WriteOptions) -> Self {
        let path = path.to_path_buf();
        Self { out, path, options, lines: L::default(), buffer: Vec::new(), given: 0, left_out: 0 }
    }

    fn failed(&self, source: std::io::Error) -> TraceError {
        TraceError::Io { action: "write", path: self.path.clone(), source }
    }
}

impl<W: Write, L: Lines> Sink for TextWriter<W, L> {
    fn write(&mut self, block: &[Event], names: &Names) -> Result<(), TraceError> {
        for event in block {
            match self.lines.event(event, names, self.options, &mut self.buffer) {
                Ok(true) => {}
                Ok(false) => self.left_out += 1,
                Err(what) => return Err(TraceError::Inexpressible { path: self.path.clone(), event: self.given, what }),
            }
            self.given += 1;
        }
        let result = self.out.write_all(&self.buffer);
        self.buffer.clear();
        result.map_err(|source| self.failed(source))
    }

    fn finish(&mut self, _: &Names) -> Result<(), TraceError> {
        self.out.flush().map_err(|source| self.failed(source))
    }

    fn left_out(&self) -> u64 {
        self.left_out
    }
}

pub(crate) fn push_number(out: &mut Vec<u8>, number: u64) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    let mut rest = number;
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

/// What a number without a name is called.
pub(crate) fn push_unnamed(out: &mut Vec<u8>, space: Space, number: u32) {
    if space != Space::Location {
        out.push(space.letter() as u8);
    }
    push_number(out, number.into());
}
