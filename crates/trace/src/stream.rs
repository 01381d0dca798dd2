//! One thread's stream: its chunks, validated, and its records, decoded in place.
//!
//! Layout and rules: `rashomon_abi::record` and `docs/trace-format.md`. A *fault* is a place that no orderly or killed writer
//! leaves behind; everything before it is good. An unfinished last chunk is no fault: its records are read up to the first word
//! zero or the first record that is not there as a whole (it is *torn*: the writer was killed between two of its words).

use crate::bytes::{get_word, word_at};
use crate::counted::Counted;
use rashomon_abi::record::{
    self, AccessClass, CHUNK_BYTES, CHUNK_CHECKSUM_WORD, CHUNK_HEADER_WORDS, CHUNK_MAGIC, CHUNK_USED_WORD, Checksum,
    MAX_ARGUMENTS, Op, SITE_BIAS,
};

const CHUNK_HEADER_BYTES: usize = CHUNK_HEADER_WORDS * 8;

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
    #[error("a counted loop of {0} iterations")]
    Iterations(u64),
}

/// Byte range of a chunk's records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    pub start: usize,
    pub end: usize,
    pub finished: bool,
}

/// The chunks of a stream up to its first fault.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chunks {
    pub list: Vec<Chunk>,
    pub fault: Option<Fault>,
}

impl Chunks {
    /// Validates the chunks of the stream of `thread`: magic, index, thread number, length, checksum.
    pub fn scan(thread: u32, bytes: &[u8]) -> Self {
        let mut chunks = Self::default();
        let mut offset = 0;
        while offset < bytes.len() {
            let index = (offset / CHUNK_BYTES) as u32;
            match scan_chunk(thread, index, &bytes[offset..]) {
                Ok(None) => break,
                Ok(Some((length, finished))) => {
                    if chunks.is_unfinished() {
                        chunks.fault = Some(Fault { offset: offset as u64, what: FaultKind::BehindUnfinished });
                        break;
                    }
                    let start = offset + CHUNK_HEADER_BYTES;
                    chunks.list.push(Chunk { start, end: start + length, finished });
                }
                Err(what) => {
                    chunks.fault = Some(Fault { offset: offset as u64, what });
                    break;
                }
            }
            offset += CHUNK_BYTES;
        }
        chunks
    }

    /// Whether the writer was still in the last chunk when it ended.
    pub fn is_unfinished(&self) -> bool {
        self.list.last().is_some_and(|chunk| !chunk.finished)
    }
}

/// Length of the records and whether the chunk is finished; `None` behind the last chunk (reserved space: nothing but zeros).
fn scan_chunk(thread: u32, index: u32, rest: &[u8]) -> Result<Option<(usize, bool)>, FaultKind> {
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
    let identity = word_at(bytes, 1);
    let (found_index, found_thread) = ((identity >> 32) as u32, identity as u32);
    if (found_index, found_thread) != (index, thread) {
        return Err(FaultKind::Identity { index, thread, found_index, found_thread });
    }
    let used = word_at(bytes, CHUNK_USED_WORD);
    let available = bytes.len() - CHUNK_HEADER_BYTES;
    if used == 0 {
        return Ok(Some((available & !7, false)));
    }
    if !used.is_multiple_of(8) || used > (CHUNK_BYTES - CHUNK_HEADER_BYTES) as u64 {
        return Err(FaultKind::Used(used));
    }
    if used > available as u64 {
        return Err(FaultKind::CutShort { needed: used, available: available as u64 });
    }
    let records = &bytes[CHUNK_HEADER_BYTES..CHUNK_HEADER_BYTES + used as usize];
    let computed = (0..records.len() / 8).fold(Checksum::new(), |sum, number| sum.add(word_at(records, number))).finish();
    let found = word_at(bytes, CHUNK_CHECKSUM_WORD);
    if found != computed {
        return Err(FaultKind::Checksum { found, computed });
    }
    Ok(Some((used as usize, true)))
}

/// Arguments of a [`SyncRecord`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arguments<'a>(&'a [u8]);

impl Arguments<'_> {
    /// Argument `number`; 0 where the writer gave none.
    pub fn get(self, number: usize) -> u64 {
        get_word(self.0, number).unwrap_or(0)
    }
    pub fn count(self) -> usize {
        self.0.len() / 8
    }
    pub fn iter(self) -> impl Iterator<Item = u64> {
        (0..self.count()).map(move |number| self.get(number))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyncRecord<'a> {
    pub op: Op,
    pub object: u64,
    pub sequence: u64,
    pub aux: u16,
    pub site: u64,
    pub arguments: Arguments<'a>,
}

/// What a record of turns says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnKind {
    /// The thread goes on after another one ran.
    Resumes,
    /// It begins to wait inside an operation, others run.
    Waits,
    /// The recording ends while it stands still, and could go on.
    Stands,
}

impl TurnKind {
    const fn of(top: u64) -> Self {
        match top {
            record::TURN_WAITS => Self::Waits,
            record::TURN_STANDS => Self::Stands,
            _ => Self::Resumes,
        }
    }
}

/// A decoded record. Sites are machine addresses, contexts are numbers of this stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record<'a> {
    Access {
        class: AccessClass,
        size: u32,
        address: u64,
        site: u64,
    },
    Range {
        class: AccessClass,
        address: u64,
        length: u64,
        site: u64,
    },
    Sync(SyncRecord<'a>),
    Turn {
        sequence: u64,
        accesses: u64,
        what: TurnKind,
    },
    Executed {
        count: u64,
    },
    /// The call context of what follows; also given at the start of each chunk, with number 0.
    Context {
        number: u32,
    },
    ContextDefinition {
        number: u32,
        parent: u32,
        call: u64,
    },
    /// Of the context that was defined right before: where its frame begins, above, and the stack pointer below.
    Frame {
        address: u64,
        stack_pointer: u64,
    },
    /// A function begins that the compiler's plugin has instrumented; `process`: of a line of forks.
    Activation {
        process: u64,
        table: u64,
    },
    /// The innermost one goes on with this segment.
    Segment {
        segment: u64,
    },
    /// The same of one that control comes back to.
    Resume {
        activation: u64,
        segment: u64,
    },
}

/// Reads the records of a stream in order.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    chunks: &'a [Chunk],
    fault: Option<&'a Fault>,
    position: usize,
    end: usize,
    finished: bool,
    previous_site: u64,
    record_offset: usize,
    /// Where the records of the current chunk ended before its end.
    stopped_at: Option<usize>,
    torn_at: Option<u64>,
    counted: Counted,
}

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8], chunks: &'a Chunks) -> Self {
        Self {
            bytes,
            chunks: &chunks.list,
            fault: chunks.fault.as_ref(),
            position: 0,
            end: 0,
            finished: true,
            previous_site: 0,
            record_offset: 0,
            stopped_at: None,
            torn_at: None,
            counted: Counted::default(),
        }
    }

    /// Byte of the file at which the record that was read last begins.
    pub const fn record_offset(&self) -> u64 {
        self.record_offset as u64
    }

    /// Byte behind the last whole record of the stream, once its end was reached.
    pub const fn good_until(&self) -> u64 {
        match self.stopped_at {
            Some(stopped) => stopped as u64,
            None => self.position as u64,
        }
    }

    /// Where an unfinished chunk holds half a record.
    pub const fn torn_at(&self) -> Option<u64> {
        self.torn_at
    }

    /// The next record; `None` at the end of the stream. After a fault, and after the end, it stays there.
    #[inline]
    pub fn next_record(&mut self) -> Result<Option<Record<'a>>, Fault> {
        loop {
            if self.counted.is_inside() {
                match self.counted.next_record() {
                    Some(record) => return Ok(Some(record)),
                    None => continue,
                }
            }
            if self.position >= self.end {
                return self.enter_next_chunk();
            }
            self.record_offset = self.position;
            let word = word_at(self.bytes, self.position / 8);
            let kind = record::kind_of(word);
            if let Some((class, log2_size)) = record::access_of_kind(kind) {
                let site = self.previous_site.wrapping_add(record::top_of(word)).wrapping_sub(SITE_BIAS) & record::LOW_MASK;
                self.previous_site = site;
                self.position += 8;
                return Ok(Some(Record::Access { class, size: 1 << log2_size, address: record::low_of(word), site }));
            }
            if word == 0 {
                self.stopped_at = Some(self.position);
                self.position = self.end;
                continue;
            }
            match self.long_record(word, kind) {
                Ok(Some((record, words))) => {
                    self.position += words * 8;
                    match record {
                        Some(record) => return Ok(Some(record)),
                        None if kind == record::SITE => self.previous_site = record::low_of(word),
                        None => {}
                    }
                }
                Ok(None) => self.tear(),
                Err(_) if !self.finished => self.tear(),
                Err(what) => {
                    self.chunks = &[];
                    self.position = self.end;
                    return Err(Fault { offset: self.record_offset as u64, what });
                }
            }
        }
    }

    fn tear(&mut self) {
        self.stopped_at = Some(self.position);
        self.torn_at = Some(self.record_offset as u64);
        self.position = self.end;
    }

    #[cold]
    fn enter_next_chunk(&mut self) -> Result<Option<Record<'a>>, Fault> {
        let Some((chunk, rest)) = self.chunks.split_first() else {
            return self.fault.take().cloned().map_or(Ok(None), Err);
        };
        self.chunks = rest;
        self.position = chunk.start;
        self.stopped_at = None;
        self.end = chunk.end;
        self.finished = chunk.finished;
        self.previous_site = 0;
        self.record_offset = chunk.start;
        Ok(Some(Record::Context { number: 0 }))
    }

    /// The record (`None`: one that only the reader heeds) and its length in words; `Ok(None)` for a torn one.
    fn long_record(&mut self, word: u64, kind: u64) -> Result<Option<(Option<Record<'a>>, usize)>, FaultKind> {
        let first = self.position / 8;
        let available = self.end / 8 - first;
        let further = |words: usize| {
            if words <= available { Ok(()) } else { Err(FaultKind::RecordLength { needed: words, available }) }
        };
        let low = record::low_of(word);
        let (record, words) = match kind {
            record::SITE => return Ok(Some((None, 1))),
            record::COUNTED_DEFINITION | record::COUNTED => {
                let words = match kind {
                    record::COUNTED => self.counted.begin(self.bytes, first, available)?,
                    _ => self.counted.define(self.bytes, first, available)?,
                };
                return match words {
                    Some(words) => Ok(Some((None, words))),
                    None if self.finished => Err(FaultKind::Loop),
                    None => Ok(None),
                };
            }
            record::CONTEXT => (Record::Context { number: low as u32 }, 1),
            record::ACTIVATION => (Record::Activation { process: record::top_of(word), table: low }, 1),
            record::SEGMENT => (Record::Segment { segment: low }, 1),
            record::RESUME => {
                further(2)?;
                (Record::Resume { activation: word_at(self.bytes, first + 1), segment: low }, 2)
            }
            record::EXECUTED => (Record::Executed { count: low }, 1),
            record::CONTEXT_DEFINITION => {
                further(2)?;
                let numbers = word_at(self.bytes, first + 1);
                if numbers == 0 && !self.finished {
                    return Ok(None);
                }
                (Record::ContextDefinition { number: numbers as u32, parent: (numbers >> 32) as u32, call: low }, 2)
            }
            record::FRAME => {
                further(2)?;
                let stack_pointer = word_at(self.bytes, first + 1);
                if stack_pointer == 0 && !self.finished {
                    return Ok(None);
                }
                (Record::Frame { address: low, stack_pointer: stack_pointer & record::LOW_MASK }, 2)
            }
            record::TURN => {
                further(2)?;
                let sequence = word_at(self.bytes, first + 1) & record::LOW_MASK;
                if sequence == 0 && !self.finished {
                    return Ok(None);
                }
                (Record::Turn { sequence, accesses: low, what: TurnKind::of(record::top_of(word)) }, 2)
            }
            record::RANGE => {
                further(3)?;
                let code = record::top_of(word);
                let class = AccessClass::from_code(code).ok_or(FaultKind::Class(code))?;
                let (length, site) = (word_at(self.bytes, first + 1), word_at(self.bytes, first + 2));
                if site == 0 && !self.finished {
                    return Ok(None);
                }
                (Record::Range { class, address: low, length, site: site & record::LOW_MASK }, 3)
            }
            record::SYNC => {
                return self
                    .sync_record(word, first, available)
                    .map(|found| found.map(|(sync, words)| (Some(Record::Sync(sync)), words)));
            }
            other => return Err(FaultKind::RecordKind(other)),
        };
        Ok(Some((Some(record), words)))
    }

    fn sync_record(&self, word: u64, first: usize, available: usize) -> Result<Option<(SyncRecord<'a>, usize)>, FaultKind> {
        if available < 3 {
            return Err(FaultKind::RecordLength { needed: 3, available });
        }
        let code = record::top_of(word);
        let op = Op::from_code(code).ok_or(FaultKind::Operation(code))?;
        let (order, place) = (word_at(self.bytes, first + 1), word_at(self.bytes, first + 2));
        if order == 0 && !self.finished {
            return Ok(None);
        }
        let count = order >> record::LOW_BITS;
        if count > MAX_ARGUMENTS as u64 {
            return Err(FaultKind::Arguments(count));
        }
        let words = 3 + count as usize;
        if words > available {
            return Err(FaultKind::RecordLength { needed: words, available });
        }
        let arguments = Arguments(&self.bytes[(first + 3) * 8..(first + words) * 8]);
        let sync = SyncRecord {
            op,
            object: record::low_of(word),
            sequence: order & record::LOW_MASK,
            aux: (place >> record::LOW_BITS) as u16,
            site: place & record::LOW_MASK,
            arguments,
        };
        Ok(Some((sync, words)))
    }
}
