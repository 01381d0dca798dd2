//! The `modules` file: which files were loaded where, and from when to when.

use crate::error::TraceError;
use rashomon_abi::module::{FIELD_SEPARATOR, NEWLINE, NO_BUILD_ID};
use rashomon_abi::record::LOW_MASK;
use rashomon_event::{ModuleInfo, path_bytes, path_text};
use std::path::Path;

/// Bytes of a file that is read at most.
pub const LARGEST: u64 = 1 << 28;
/// More lines than this are refused.
const MAX_LINES: usize = 1 << 20;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModuleLine {
    Loaded { sequence: u64, module: ModuleInfo },
    Unloaded { sequence: u64, base: u64 },
}

impl ModuleLine {
    pub const fn sequence(&self) -> u64 {
        match self {
            Self::Loaded { sequence, .. } | Self::Unloaded { sequence, .. } => *sequence,
        }
    }
}

/// The lines, and the byte at which an unfinished last line begins (the program was killed while it was written).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModuleLines {
    pub lines: Vec<ModuleLine>,
    pub unfinished_at: Option<u64>,
}

/// `path` is for messages only.
pub fn parse(path: &Path, bytes: &[u8]) -> Result<ModuleLines, TraceError> {
    let mut parsed = ModuleLines::default();
    let mut offset = 0;
    for line in bytes.split_inclusive(|&byte| byte == b'\n') {
        let Some(content) = line.strip_suffix(b"\n") else {
            parsed.unfinished_at = Some(offset as u64);
            break;
        };
        if parsed.lines.len() == MAX_LINES {
            return Err(TraceError::TooLarge { path: path.to_path_buf(), what: "module lines", limit: MAX_LINES as u64 });
        }
        match parse_line(content) {
            Ok(line) => parsed.lines.push(line),
            Err(what) => {
                return Err(TraceError::Corrupt { path: path.to_path_buf(), offset: offset as u64, what });
            }
        }
        offset += line.len();
    }
    Ok(parsed)
}

fn parse_line(line: &[u8]) -> Result<ModuleLine, String> {
    if let Some(rest) = line.strip_prefix(b"!") {
        let mut fields = rest.split(is_separator);
        return Ok(ModuleLine::Unloaded { sequence: number(fields.next(), "sequence")?, base: number(fields.next(), "base")? });
    }
    let mut fields = line.splitn(6, is_separator);
    let sequence = number(fields.next(), "sequence")?;
    let base = number(fields.next(), "base")?;
    let start = number(fields.next(), "start")?;
    let end = number(fields.next(), "end")?;
    let build_id = fields.next().ok_or("a module line has no build-id field")?;
    let path = path_text(&path_bytes(fields.next().ok_or("a module line has no path")?));
    if start > end || end > LOW_MASK {
        return Err(format!("a module spans {start:x}..{end:x}, which is no range of addresses"));
    }
    let build_id = String::from_utf8_lossy(build_id);
    let build_id = (build_id != NO_BUILD_ID).then(|| build_id.into_owned());
    Ok(ModuleLine::Loaded { sequence, module: ModuleInfo { path, build_id, base, start, end } })
}

fn is_separator(byte: &u8) -> bool {
    char::from(*byte) == FIELD_SEPARATOR
}

fn number(field: Option<&[u8]>, name: &str) -> Result<u64, String> {
    let text = String::from_utf8_lossy(field.ok_or_else(|| format!("a module line has no {name}"))?);
    u64::from_str_radix(&text, 16).map_err(|_| format!("`{text}` is no hexadecimal {name} of a module"))
}

/// The line, newline included, as the runtime writes it.
pub fn format_line(line: &ModuleLine) -> String {
    match line {
        ModuleLine::Loaded { sequence, module } => {
            let build_id = module.build_id.as_deref().unwrap_or(NO_BUILD_ID);
            let path = module.path.replace('\n', NEWLINE);
            format!("{sequence:x}\t{:x}\t{:x}\t{:x}\t{build_id}\t{path}\n", module.base, module.start, module.end)
        }
        ModuleLine::Unloaded { sequence, base } => format!("!{sequence:x}\t{base:x}\n"),
    }
}
