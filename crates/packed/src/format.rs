//! Which format a file has, and the reader for it.

use crate::error::TraceError;
use crate::file::{MAGIC, PackedSource};
use crate::input::Input;
use crate::rapid_bin::RapidBinSource;
use crate::source::Source;
use crate::{speedygo, std_text};
use rashomon_event::Deadline;
use std::io::Read;
use std::path::Path;

/// Formats of traces in one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Our own: [`crate::file`].
    Packed,
    /// RAPID's text.
    Std,
    /// RAPID's words of 64 bits.
    RapidBin,
    /// SpeedyGo's CSV.
    SpeedyGo,
}

impl Format {
    pub const ALL: [Self; 4] = [Self::Packed, Self::Std, Self::RapidBin, Self::SpeedyGo];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Packed => "packed",
            Self::Std => "std",
            Self::RapidBin => "rapidbin",
            Self::SpeedyGo => "speedygo",
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub struct OpenOptions {
    /// None: what the content looks like.
    pub format: Option<Format>,
    /// Text formats: `T12` and `12` are the same thread.
    pub bare_threads: bool,
    /// What was cut off ends the trace instead of refusing it.
    pub lenient: bool,
    /// How long a pipe is waited for that sends nothing.
    pub until: Deadline,
}

/// What the first bytes look like.
fn detect(input: &Input) -> Option<Format> {
    let bytes = input.bytes();
    if bytes.starts_with(&MAGIC) {
        return Some(Format::Packed);
    }
    if RapidBinSource::is_plausible(bytes, input.length()) {
        return Some(Format::RapidBin);
    }
    let line = bytes.split(|byte| *byte == b'\n').find(|line| !line.trim_ascii().is_empty())?;
    if line.iter().any(|byte| *byte < b' ' && !byte.is_ascii_whitespace()) {
        return None;
    }
    if line.contains(&b'|') {
        return Some(Format::Std);
    }
    let word = line.split(|byte| *byte == b',').nth(1)?;
    speedygo::WORDS.iter().any(|(known, _)| known.as_bytes() == word).then_some(Format::SpeedyGo)
}

/// Bytes looked at.
const BEGIN: usize = 4096;

/// A trace in a file, a pipe or (`-`) standard input, compressed by gzip or Zstandard or not.
pub fn open(path: &Path, options: &OpenOptions) -> Result<Box<dyn Source + Send>, TraceError> {
    start(Input::open(path, options.until)?, options)
}

/// The same from any stream of bytes; `path` is for messages.
pub fn read(reader: Box<dyn Read + Send>, path: &Path, options: &OpenOptions) -> Result<Box<dyn Source + Send>, TraceError> {
    start(Input::new(path, reader, None)?, options)
}

fn start(mut input: Input, options: &OpenOptions) -> Result<Box<dyn Source + Send>, TraceError> {
    let length = input.require(BEGIN)?;
    let format = match options.format.or_else(|| detect(&input)) {
        Some(format) => format,
        None if length == 0 => return Err(input.malformed(0, None, "the file is empty")),
        None => {
            let formats = Format::ALL.map(Format::name).join(", ");
            let what = format!("the content looks like no format known ({formats}); --format says which it is");
            return Err(input.malformed(0, None, what));
        }
    };
    Ok(match format {
        Format::Packed if input.length().is_some() => Box::new(PackedSource::map(input.path(), options.lenient)?),
        Format::Packed => Box::new(PackedSource::stream(input, options.lenient)?),
        Format::RapidBin => Box::new(RapidBinSource::new(input)?),
        Format::Std => Box::new(std_text::source(input, options.bare_threads)),
        Format::SpeedyGo => Box::new(speedygo::source(input, options.bare_threads)),
    })
}
