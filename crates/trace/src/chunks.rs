//! The chunks of a stream: where they lie in the file, whether they are sound, and their records.
//!
//! A *fault* is a place that no orderly or killed writer leaves behind; everything before it is good. An unfinished last chunk is
//! no fault: its records are read up to the first word zero or the first record that is not there as a whole.

use crate::bytes::{get_word, word_at};
use rashomon_abi::compress::{self, Model};
use rashomon_abi::record::{
    CHUNK_BYTES, CHUNK_CHECKSUM_WORD, CHUNK_HEADER_WORDS, CHUNK_MAGIC, CHUNK_USED_WORD, COMPRESSED_MAGIC, Checksum,
    MAX_RECORD_WORDS,
};

const CHUNK_HEADER_BYTES: usize = CHUNK_HEADER_WORDS * 8;
/// Bytes.
const LONGEST_RECORD: usize = MAX_RECORD_WORDS * 8;

/// A damaged place of a stream file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Byte of the file.
    pub offset: u64,
    pub what: FaultKind,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FaultKind {
    #[error("a chunk does not begin with the chunk magic (found {0:#018x})")]
    Magic(u64),
    #[error("the chunk says it is chunk {found_index} of thread {found_thread}, expected chunk {index} of thread {thread}")]
    Identity { index: u32, thread: u32, found_index: u32, found_thread: u32 },
    #[error("the chunk claims {0} bytes of records, which is not possible")]
    Used(u64),
    #[error("the chunk's checksum is {found:#018x}, its bytes give {computed:#018x}")]
    Checksum { found: u64, computed: u64 },
    #[error("the file ends inside the chunk: {needed} bytes needed, {available} there")]
    CutShort { needed: u64, available: u64 },
    #[error("the compressed records say that they are {0} bytes, which is not possible")]
    Records(u64),
    #[error("the compressed records are no records that were compressed")]
    Compression,
    #[error("a chunk follows one that was never finished")]
    BehindUnfinished,
    #[error("{0} is no kind of record")]
    RecordKind(u64),
    #[error("{0} is no operation")]
    Operation(u64),
    #[error("{0} is no class of access")]
    Class(u64),
    #[error("an operation with {0} arguments")]
    Arguments(u64),
    #[error("a record of {needed} words does not fit into the chunk's last {available}")]
    RecordLength { needed: usize, available: usize },
    #[error("call context {0} is used but not defined")]
    UndefinedContext(u32),
    #[error("the counted loop at {0:#x} is used but not defined")]
    UndefinedLoop(u64),
    #[error("the definition of a counted loop is none")]
    Loop,
    #[error("counted loops stand for more than a recording may hold")]
    LoopSize,
    #[error("a value of no access")]
    Value,
}

/// A chunk that was found sound, and where its records lie in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Byte of the file behind the header.
    start: usize,
    /// Bytes from there.
    stored: usize,
    /// Bytes of records. As many as are stored, unless they are compressed.
    records: usize,
    compressed: bool,
    pub finished: bool,
}

impl Chunk {
    pub const fn compressed(&self) -> bool {
        self.compressed
    }

    /// Of records, once they are decompressed.
    pub const fn record_bytes(&self) -> u64 {
        self.records as u64
    }

    /// That they take in the file.
    pub const fn stored_bytes(&self) -> u64 {
        self.stored as u64
    }

    /// Byte of the file where this word of the records lies; in a compressed chunk, where the chunk does.
    pub(crate) const fn offset_of(&self, word: usize) -> u64 {
        match self.compressed {
            true => (self.start - CHUNK_HEADER_BYTES) as u64,
            false => (self.start + word * 8) as u64,
        }
    }

    /// The records. Of an unfinished chunk up to the last word that is not zero and what may belong to the same record.
    pub(crate) fn read(&self, bytes: &[u8], model: &mut Option<Box<Model>>, words: &mut Vec<u64>) -> Result<(), FaultKind> {
        let stored = &bytes[self.start..self.start + self.stored];
        words.clear();
        if self.compressed {
            words.resize(self.records / 8, 0);
            return compress::decompress(model.get_or_insert_default(), stored, words).ok_or(FaultKind::Compression);
        }
        let written = match self.finished {
            true => stored.len(),
            false => stored.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1 + LONGEST_RECORD).min(stored.len()),
        };
        words.extend((0..written / 8).map(|number| word_at(stored, number)));
        Ok(())
    }
}

/// The chunks of a stream up to its first fault.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chunks {
    pub list: Vec<Chunk>,
    pub fault: Option<Fault>,
}

impl Chunks {
    /// Validates the chunks of the stream of `thread`: magic, index, thread number, lengths, checksums.
    pub fn scan(thread: u32, bytes: &[u8]) -> Self {
        let mut chunks = Self::default();
        // Of chunks none of which is compressed, the one with index 0 comes first.
        let begins_later = get_word(bytes, 1).is_some_and(|identity| identity >> 32 != 0);
        if get_word(bytes, CHUNK_BYTES / 8) == Some(COMPRESSED_MAGIC) || begins_later {
            chunks.scan_compressed(thread, bytes);
        } else {
            chunks.scan_raw(thread, bytes);
        }
        chunks
    }

    /// Chunks in their order, none of them compressed.
    fn scan_raw(&mut self, thread: u32, bytes: &[u8]) {
        for offset in (0..bytes.len()).step_by(CHUNK_BYTES) {
            match scan_chunk((thread, Some((offset / CHUNK_BYTES) as u32)), offset, bytes) {
                Ok(None) => break,
                Ok(Some(_)) if self.is_unfinished() => return self.fail(offset, FaultKind::BehindUnfinished),
                Ok(Some((_, chunk))) => self.list.push(chunk),
                Err(what) => return self.fail(offset, what),
            }
        }
    }

    /// The chunk that was written last, and behind it the compressed ones before it.
    fn scan_compressed(&mut self, thread: u32, bytes: &[u8]) {
        let mut offset = CHUNK_BYTES;
        while offset < bytes.len() {
            match scan_compressed_chunk(thread, self.list.len() as u32, offset, bytes) {
                Ok(chunk) => {
                    offset = chunk.start + chunk.stored.next_multiple_of(8);
                    self.list.push(chunk);
                }
                Err(what) => {
                    self.fail(offset, what);
                    break;
                }
            }
        }
        let whole = self.list.len() as u32;
        let wrong = match scan_chunk((thread, None), 0, bytes) {
            // What lies behind the whole ones is this chunk again: writing it was cut short, or failed.
            Ok(Some((index, chunk))) if index == whole => {
                self.fault = None;
                self.list.push(chunk);
                return;
            }
            // It is the last one of them: the writer was killed before it began the next one.
            Ok(Some((index, chunk))) if index + 1 == whole && self.fault.is_none() => {
                self.list.push(Chunk { stored: 0, records: 0, finished: false, ..chunk });
                return;
            }
            Ok(Some((found_index, _))) => FaultKind::Identity { index: whole, thread, found_index, found_thread: thread },
            Ok(None) => FaultKind::Magic(0),
            Err(what) => what,
        };
        self.fault.get_or_insert(Fault { offset: 0, what: wrong });
    }

    fn fail(&mut self, offset: usize, what: FaultKind) {
        self.fault = Some(Fault { offset: offset as u64, what });
    }

    /// Whether the writer was still in the last chunk when it ended.
    pub fn is_unfinished(&self) -> bool {
        self.list.last().is_some_and(|chunk| !chunk.finished)
    }
}

fn scan_compressed_chunk(thread: u32, index: u32, offset: usize, bytes: &[u8]) -> Result<Chunk, FaultKind> {
    let bytes = &bytes[offset..];
    let available = bytes.len() as u64;
    if available < CHUNK_HEADER_BYTES as u64 {
        return Err(FaultKind::CutShort { needed: CHUNK_HEADER_BYTES as u64, available });
    }
    let (magic, lengths) = (word_at(bytes, 0), word_at(bytes, CHUNK_USED_WORD));
    if magic != COMPRESSED_MAGIC {
        return Err(FaultKind::Magic(magic));
    }
    check_identity(bytes, thread, Some(index))?;
    let (records, stored) = ((lengths >> 32) as usize, lengths as u32 as usize);
    if !records.is_multiple_of(8) || records == 0 || records > CHUNK_BYTES - CHUNK_HEADER_BYTES {
        return Err(FaultKind::Records(records as u64));
    }
    if stored > compress::bound(records / 8) {
        return Err(FaultKind::Used(stored as u64));
    }
    let padded = stored.next_multiple_of(8);
    let Some(compressed) = bytes.get(CHUNK_HEADER_BYTES..CHUNK_HEADER_BYTES + padded) else {
        return Err(FaultKind::CutShort { needed: (CHUNK_HEADER_BYTES + padded) as u64, available });
    };
    check_sum(bytes, compressed)?;
    Ok(Chunk { start: offset + CHUNK_HEADER_BYTES, stored, records, compressed: true, finished: true })
}

/// The chunk's index.
fn check_identity(bytes: &[u8], thread: u32, index: Option<u32>) -> Result<u32, FaultKind> {
    let identity = word_at(bytes, 1);
    let (found_index, found_thread) = ((identity >> 32) as u32, identity as u32);
    let index = index.unwrap_or(found_index);
    match (found_index, found_thread) == (index, thread) {
        true => Ok(index),
        false => Err(FaultKind::Identity { index, thread, found_index, found_thread }),
    }
}

fn check_sum(header: &[u8], of: &[u8]) -> Result<(), FaultKind> {
    let computed = (0..of.len() / 8).fold(Checksum::new(), |sum, number| sum.add(word_at(of, number))).finish();
    let found = word_at(header, CHUNK_CHECKSUM_WORD);
    if found == computed { Ok(()) } else { Err(FaultKind::Checksum { found, computed }) }
}

/// A chunk that is not compressed, and its index; `None` behind the last one (reserved space: nothing but zeros).
fn scan_chunk((thread, index): (u32, Option<u32>), offset: usize, bytes: &[u8]) -> Result<Option<(u32, Chunk)>, FaultKind> {
    let rest = &bytes[offset..];
    let bytes = &rest[..rest.len().min(CHUNK_BYTES)];
    let Some(magic) = get_word(bytes, 0).filter(|_| bytes.len() >= CHUNK_HEADER_BYTES) else {
        return match bytes.iter().all(|&byte| byte == 0) {
            true => Ok(None),
            false => Err(FaultKind::CutShort { needed: CHUNK_HEADER_BYTES as u64, available: bytes.len() as u64 }),
        };
    };
    if magic != CHUNK_MAGIC {
        return match magic == 0 && rest.iter().all(|&byte| byte == 0) {
            true => Ok(None),
            false => Err(FaultKind::Magic(magic)),
        };
    }
    let index = check_identity(bytes, thread, index)?;
    let start = offset + CHUNK_HEADER_BYTES;
    let used = word_at(bytes, CHUNK_USED_WORD);
    let available = bytes.len() - CHUNK_HEADER_BYTES;
    if used == 0 {
        let stored = available & !7;
        return Ok(Some((index, Chunk { start, stored, records: stored, compressed: false, finished: false })));
    }
    if !used.is_multiple_of(8) || used > (CHUNK_BYTES - CHUNK_HEADER_BYTES) as u64 {
        return Err(FaultKind::Used(used));
    }
    if used > available as u64 {
        return Err(FaultKind::CutShort { needed: used, available: available as u64 });
    }
    let stored = used as usize;
    check_sum(bytes, &bytes[CHUNK_HEADER_BYTES..CHUNK_HEADER_BYTES + stored])?;
    Ok(Some((index, Chunk { start, stored, records: stored, compressed: false, finished: true })))
}
