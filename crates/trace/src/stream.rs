//! One thread's stream: the records of its chunks, decoded one chunk at a time.
//!
//! Layout and rules: `rashomon_abi::record` and `docs/trace-format.md`. A record that an unfinished chunk does not hold as a
//! whole is *torn*: the writer was killed between two of its words. [`Reader`] says where that is; it is no fault.

use crate::chunks::{Chunk, Chunks, Fault, FaultKind};
use crate::counted::Counted;
use rashomon_abi::compress::Model;
use rashomon_abi::record::{self, AccessClass, MAX_ARGUMENTS, Op, SITE_BIAS};

/// Arguments of a [`SyncRecord`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arguments {
    count: u8,
    words: [u64; MAX_ARGUMENTS],
}

impl Arguments {
    /// At most [`MAX_ARGUMENTS`] words.
    fn new(given: &[u64]) -> Self {
        let mut words = [0; MAX_ARGUMENTS];
        words[..given.len()].copy_from_slice(given);
        Self { count: given.len() as u8, words }
    }
    /// Argument `number`; 0 where the writer gave none.
    pub fn get(self, number: usize) -> u64 {
        self.words.get(number).copied().unwrap_or(0)
    }
    pub fn count(self) -> usize {
        usize::from(self.count)
    }
    pub fn iter(self) -> impl Iterator<Item = u64> {
        self.words.into_iter().take(self.count())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyncRecord {
    pub op: Op,
    pub object: u64,
    pub sequence: u64,
    pub aux: u16,
    pub site: u64,
    pub arguments: Arguments,
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
pub enum Record {
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
    Sync(SyncRecord),
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
    /// Of the last access of the stream; `written`: what it has left in memory, else what it found there.
    Value {
        written: bool,
        value: u64,
    },
}

/// Reads the records of a stream in order. Holds the records of one chunk at a time.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    chunks: &'a [Chunk],
    fault: Option<&'a Fault>,
    /// Records of the current chunk, and the chunk.
    words: Vec<u64>,
    chunk: Option<&'a Chunk>,
    /// For chunks that are compressed.
    model: Option<Box<Model>>,
    /// Words.
    position: usize,
    end: usize,
    previous_site: u64,
    /// Where the record that was read last begins.
    record: usize,
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
            words: Vec::new(),
            chunk: None,
            model: None,
            position: 0,
            end: 0,
            previous_site: 0,
            record: 0,
            stopped_at: None,
            torn_at: None,
            counted: Counted::default(),
        }
    }

    /// Byte of the file at which the record that was read last begins; in a compressed chunk, that of the chunk.
    pub fn record_offset(&self) -> u64 {
        self.offset_of(self.record)
    }

    /// Byte behind the last whole record of the stream, once its end was reached.
    pub fn good_until(&self) -> u64 {
        self.offset_of(self.stopped_at.unwrap_or(self.position))
    }

    fn offset_of(&self, word: usize) -> u64 {
        self.chunk.map_or(0, |chunk| chunk.offset_of(word))
    }

    /// Where an unfinished chunk holds half a record.
    pub const fn torn_at(&self) -> Option<u64> {
        self.torn_at
    }

    fn finished(&self) -> bool {
        self.chunk.is_none_or(|chunk| chunk.finished)
    }

    /// The next record; `None` at the end of the stream. After a fault, and after the end, it stays there.
    #[inline]
    pub fn next_record(&mut self) -> Result<Option<Record>, Fault> {
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
            self.record = self.position;
            let word = self.words[self.position];
            let kind = record::kind_of(word);
            if let Some((class, log2_size)) = record::access_of_kind(kind) {
                let site = self.previous_site.wrapping_add(record::top_of(word)).wrapping_sub(SITE_BIAS) & record::LOW_MASK;
                self.previous_site = site;
                self.position += 1;
                return Ok(Some(Record::Access { class, size: 1 << log2_size, address: record::low_of(word), site }));
            }
            if word == 0 {
                self.stopped_at = Some(self.position);
                self.position = self.end;
                continue;
            }
            match self.long_record(word, kind) {
                Ok(Some((record, words))) => {
                    self.position += words;
                    match record {
                        Some(record) => return Ok(Some(record)),
                        None if kind == record::SITE => self.previous_site = record::low_of(word),
                        None => {}
                    }
                }
                Ok(None) => self.tear(),
                Err(_) if !self.finished() => self.tear(),
                Err(what) => {
                    self.chunks = &[];
                    self.position = self.end;
                    return Err(Fault { offset: self.record_offset(), what });
                }
            }
        }
    }

    fn tear(&mut self) {
        self.stopped_at = Some(self.position);
        self.torn_at = Some(self.record_offset());
        self.position = self.end;
    }

    #[cold]
    fn enter_next_chunk(&mut self) -> Result<Option<Record>, Fault> {
        let Some((chunk, rest)) = self.chunks.split_first() else {
            return self.fault.take().cloned().map_or(Ok(None), Err);
        };
        self.chunks = rest;
        self.chunk = Some(chunk);
        self.position = 0;
        self.record = 0;
        self.stopped_at = None;
        self.previous_site = 0;
        if let Err(what) = chunk.read(self.bytes, &mut self.model, &mut self.words) {
            self.words.clear();
            self.end = 0;
            self.chunks = &[];
            self.fault = None;
            return Err(Fault { offset: self.record_offset(), what });
        }
        self.end = self.words.len();
        Ok(Some(Record::Context { number: 0 }))
    }

    /// The record (`None`: one that only the reader heeds) and its length in words; `Ok(None)` for a torn one.
    fn long_record(&mut self, word: u64, kind: u64) -> Result<Option<(Option<Record>, usize)>, FaultKind> {
        let first = self.position;
        let available = self.end - first;
        let further = |words: usize| {
            if words <= available { Ok(()) } else { Err(FaultKind::RecordLength { needed: words, available }) }
        };
        let low = record::low_of(word);
        let (record, words) = match kind {
            record::SITE => return Ok(Some((None, 1))),
            record::COUNTED_DEFINITION | record::COUNTED | record::NEST_DEFINITION | record::NEST => {
                return match self.counted.take(kind, &self.words[first..self.end])? {
                    Some(words) => Ok(Some((None, words))),
                    None if self.finished() => Err(FaultKind::Loop),
                    None => Ok(None),
                };
            }
            record::CONTEXT => (Record::Context { number: low as u32 }, 1),
            record::ACTIVATION => (Record::Activation { process: record::top_of(word), table: low }, 1),
            record::SEGMENT => (Record::Segment { segment: low }, 1),
            record::RESUME => {
                further(2)?;
                (Record::Resume { activation: self.words[first + 1], segment: low }, 2)
            }
            record::EXECUTED => (Record::Executed { count: low }, 1),
            record::VALUE => {
                further(words_of_value(word))?;
                let high = if words_of_value(word) > 1 { self.words[first + 1] } else { 0 };
                if words_of_value(word) > 1 && high == 0 && !self.finished() {
                    return Ok(None);
                }
                let written = record::top_of(word) & record::value::WRITTEN != 0;
                (Record::Value { written, value: high << record::LOW_BITS | low }, words_of_value(word))
            }
            record::CONTEXT_DEFINITION => {
                further(2)?;
                let numbers = self.words[first + 1];
                if numbers == 0 && !self.finished() {
                    return Ok(None);
                }
                (Record::ContextDefinition { number: numbers as u32, parent: (numbers >> 32) as u32, call: low }, 2)
            }
            record::FRAME => {
                further(2)?;
                let stack_pointer = self.words[first + 1];
                if stack_pointer == 0 && !self.finished() {
                    return Ok(None);
                }
                (Record::Frame { address: low, stack_pointer: stack_pointer & record::LOW_MASK }, 2)
            }
            record::TURN => {
                further(2)?;
                let sequence = self.words[first + 1] & record::LOW_MASK;
                if sequence == 0 && !self.finished() {
                    return Ok(None);
                }
                (Record::Turn { sequence, accesses: low, what: TurnKind::of(record::top_of(word)) }, 2)
            }
            record::RANGE => {
                further(3)?;
                let code = record::top_of(word);
                let class = AccessClass::from_code(code).ok_or(FaultKind::Class(code))?;
                let (length, site) = (self.words[first + 1], self.words[first + 2]);
                if site == 0 && !self.finished() {
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

    fn sync_record(&self, word: u64, first: usize, available: usize) -> Result<Option<(SyncRecord, usize)>, FaultKind> {
        if available < 3 {
            return Err(FaultKind::RecordLength { needed: 3, available });
        }
        let code = record::top_of(word);
        let op = Op::from_code(code).ok_or(FaultKind::Operation(code))?;
        let (order, place) = (self.words[first + 1], self.words[first + 2]);
        if order == 0 && !self.finished() {
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
        let arguments = Arguments::new(&self.words[first + 3..first + words]);
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

const fn words_of_value(word: u64) -> usize {
    if record::top_of(word) & record::value::LONG != 0 { 2 } else { 1 }
}
