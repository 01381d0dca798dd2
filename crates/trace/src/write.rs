//! Writing sessions: for importers of other formats and for tests. What is written here, [`crate::Recording`] reads.
//!
//! The program under test does not use this: its runtime writes the same bytes into mapped files without allocating.

use crate::bytes::word_at;
use crate::error::TraceError;
use crate::header::RunHeader;
use crate::modules::{ModuleLine, format_line};
use crate::recording::stream_file_name;
use rashomon_abi::compress::{self, Model};
use rashomon_abi::record::{
    self, AccessClass, CHUNK_BYTES, CHUNK_CHECKSUM_WORD, CHUNK_HEADER_WORDS, CHUNK_MAGIC, CHUNK_USED_WORD, COMPRESSED_MAGIC,
    Checksum, MAX_ARGUMENTS, Op, SITE_BIAS,
};
use rashomon_abi::{HEADER_FILE, MODULES_FILE};
use std::path::Path;

/// A stream in memory.
#[derive(Clone, Debug)]
pub struct StreamWriter {
    thread: u32,
    /// The chunk that is being written.
    words: Vec<u64>,
    /// Index of that chunk.
    index: u32,
    /// The chunks before it, compressed.
    full: Vec<u64>,
    model: Option<Box<Model>>,
    previous_site: u64,
    /// The context that records belong to, and the one the chunk says they belong to.
    context: u32,
    written_context: u32,
}

impl StreamWriter {
    pub fn new(thread: u32) -> Self {
        let mut writer = Self {
            thread,
            words: Vec::new(),
            index: 0,
            full: Vec::new(),
            model: None,
            previous_site: 0,
            context: 0,
            written_context: 0,
        };
        writer.begin_chunk();
        writer
    }

    fn begin_chunk(&mut self) {
        self.words.clear();
        self.words.extend([CHUNK_MAGIC, self.identity(), 0, 0]);
        self.previous_site = 0;
        self.written_context = 0;
    }

    fn identity(&self) -> u64 {
        u64::from(self.index) << 32 | u64::from(self.thread)
    }

    fn seal_chunk(&mut self) {
        let used = (self.words.len() - CHUNK_HEADER_WORDS) * 8;
        if used == 0 {
            return;
        }
        self.words[CHUNK_USED_WORD] = used as u64;
        self.words[CHUNK_CHECKSUM_WORD] = checksum(&self.words[CHUNK_HEADER_WORDS..]);
    }

    /// Appends the chunk, compressed, to those before it.
    fn compress_chunk(&mut self) {
        let records = &self.words[CHUNK_HEADER_WORDS..];
        let mut bytes = vec![0; compress::bound(records.len())];
        let used = compress::compress(self.model.get_or_insert_default(), records, &mut bytes).unwrap_or_default();
        bytes.truncate(used);
        bytes.resize(used.next_multiple_of(8), 0);
        let words: Vec<u64> = (0..bytes.len() / 8).map(|number| word_at(&bytes, number)).collect();
        let lengths = (records.len() as u64 * 8) << 32 | used as u64;
        self.full.extend([COMPRESSED_MAGIC, self.identity(), lengths, checksum(&words)]);
        self.full.extend(words);
        self.index += 1;
    }

    /// Appends a record whole to one chunk, behind the context it belongs to.
    fn append(&mut self, record: &[u64]) {
        self.reserve(record.len() + 1);
        self.write_context();
        self.words.extend_from_slice(record);
    }

    fn reserve(&mut self, words: usize) {
        if (self.words.len() + words) * 8 > CHUNK_BYTES {
            self.compress_chunk();
            self.begin_chunk();
        }
    }

    fn write_context(&mut self) {
        if self.context != self.written_context {
            self.words.push(record::word(0, record::CONTEXT, u64::from(self.context)));
            self.written_context = self.context;
        }
    }

    pub fn access(&mut self, class: AccessClass, address: u64, size: u64, site: u64) {
        if !size.is_power_of_two() || size > 16 {
            let words = [record::word(class as u64, record::RANGE, address), size, site & record::LOW_MASK];
            return self.append(&words);
        }
        self.reserve(3);
        self.write_context();
        let mut distance = site.wrapping_sub(self.previous_site).wrapping_add(SITE_BIAS);
        if distance >= 2 * SITE_BIAS {
            self.words.push(record::word(0, record::SITE, site));
            distance = SITE_BIAS;
        }
        self.previous_site = site;
        self.words.push(record::word(distance, record::access_kind(class, size.trailing_zeros()), address));
    }

    /// Arguments behind the first [`MAX_ARGUMENTS`] are left out.
    pub fn sync(&mut self, op: Op, object: u64, sequence: u64, aux: u16, site: u64, arguments: &[u64]) {
        let arguments = &arguments[..arguments.len().min(MAX_ARGUMENTS)];
        let mut words = vec![
            record::word(op as u64, record::SYNC, object),
            (arguments.len() as u64) << record::LOW_BITS | (sequence & record::LOW_MASK),
            u64::from(aux) << record::LOW_BITS | (site & record::LOW_MASK),
        ];
        words.extend_from_slice(arguments);
        self.append(&words);
    }

    pub fn turn(&mut self, sequence: u64, accesses: u64) {
        self.append(&[record::word(0, record::TURN, accesses), sequence & record::LOW_MASK]);
    }

    /// The thread begins to wait inside an operation.
    pub fn waits(&mut self, sequence: u64, accesses: u64) {
        self.append(&[record::word(record::TURN_WAITS, record::TURN, accesses), sequence & record::LOW_MASK]);
    }

    /// The recording ends while the thread stands still, and could go on.
    pub fn stands(&mut self, sequence: u64, accesses: u64) {
        self.append(&[record::word(record::TURN_STANDS, record::TURN, accesses), sequence & record::LOW_MASK]);
    }

    pub fn executed(&mut self, count: u64) {
        self.append(&[record::word(0, record::EXECUTED, count)]);
    }

    pub fn define_context(&mut self, number: u32, parent: u32, call: u64) {
        self.append(&[record::word(0, record::CONTEXT_DEFINITION, call), u64::from(parent) << 32 | u64::from(number)]);
    }

    /// Of the context that was defined right before.
    pub fn frame(&mut self, address: u64, stack_pointer: u64) {
        self.append(&[record::word(0, record::FRAME, address), stack_pointer & record::LOW_MASK]);
    }

    /// What the last access found in memory, or has left there.
    pub fn value(&mut self, written: bool, value: u64) {
        let (what, high) = (if written { record::value::WRITTEN } else { 0 }, value >> record::LOW_BITS);
        match high {
            0 => self.append(&[record::word(what, record::VALUE, value)]),
            _ => self.append(&[record::word(what | record::value::LONG, record::VALUE, value), high]),
        }
    }

    /// A function begins that the compiler's plugin has instrumented.
    pub fn activation(&mut self, process: u64, table: u64) {
        self.append(&[record::word(process, record::ACTIVATION, table)]);
    }

    /// It goes on with this segment.
    pub fn segment(&mut self, segment: u64) {
        self.append(&[record::word(0, record::SEGMENT, segment)]);
    }

    /// The same of an activation that control comes back to.
    pub fn resume(&mut self, activation: u64, segment: u64) {
        self.append(&[record::word(0, record::RESUME, segment), activation]);
    }

    /// What follows was called through this context; 0 is the thread's start routine.
    pub fn set_context(&mut self, number: u32) {
        self.context = number;
    }

    /// The file of a stream that was closed in an orderly way.
    pub fn finish(mut self) -> Vec<u8> {
        self.seal_chunk();
        self.into_bytes()
    }

    /// The file as it is when the program is killed now.
    pub fn abandon(self) -> Vec<u8> {
        self.into_bytes()
    }

    fn into_bytes(mut self) -> Vec<u8> {
        if !self.full.is_empty() {
            self.words.resize(CHUNK_BYTES / 8, 0);
        }
        self.words.iter().chain(&self.full).flat_map(|word| word.to_le_bytes()).collect()
    }
}

fn checksum(words: &[u64]) -> u64 {
    words.iter().fold(Checksum::new(), |sum, &word| sum.add(word)).finish()
}

/// A session in memory; gives out sequence numbers.
#[derive(Clone, Debug)]
pub struct SessionWriter {
    pub header: RunHeader,
    pub modules: Vec<ModuleLine>,
    pub streams: Vec<StreamWriter>,
    next_sequence: u64,
}

impl SessionWriter {
    pub fn new(header: RunHeader) -> Self {
        Self { header, modules: Vec::new(), streams: Vec::new(), next_sequence: 1 }
    }

    /// The stream of a thread, begun if it was not there.
    pub fn stream(&mut self, thread: u32) -> &mut StreamWriter {
        while self.streams.len() <= thread as usize {
            let number = self.streams.len() as u32;
            self.streams.push(StreamWriter::new(number));
        }
        &mut self.streams[thread as usize]
    }

    /// Appends an operation with the next sequence number, which is returned.
    pub fn sync(&mut self, thread: u32, op: Op, object: u64, aux: u16, site: u64, arguments: &[u64]) -> u64 {
        let sequence = self.take_sequence();
        self.stream(thread).sync(op, object, sequence, aux, site, arguments);
        sequence
    }

    /// Serial mode: the thread goes on running after another one ran.
    pub fn turn(&mut self, thread: u32, accesses: u64) {
        let sequence = self.take_sequence();
        self.stream(thread).turn(sequence, accesses);
    }

    /// Serial mode: the thread begins to wait inside an operation.
    pub fn waits(&mut self, thread: u32, accesses: u64) {
        let sequence = self.take_sequence();
        self.stream(thread).waits(sequence, accesses);
    }

    fn take_sequence(&mut self) -> u64 {
        self.next_sequence += 1;
        self.next_sequence - 1
    }

    /// Writes the session into a directory, which is created if it is not there.
    pub fn write(self, directory: &Path) -> Result<(), TraceError> {
        let failed = |action, path: &Path| {
            let path = path.to_path_buf();
            move |source| TraceError::Io { action, path, source }
        };
        std::fs::create_dir_all(directory).map_err(failed("create", directory))?;
        let write = |name: &str, bytes: &[u8]| {
            let path = directory.join(name);
            std::fs::write(&path, bytes).map_err(failed("write", &path))
        };
        let header = RunHeader { threads: self.streams.len() as u64, sequence: self.next_sequence, ..self.header };
        for stream in self.streams {
            write(&stream_file_name(stream.thread), &stream.finish())?;
        }
        write(MODULES_FILE, self.modules.iter().map(format_line).collect::<String>().as_bytes())?;
        write(HEADER_FILE, &header.to_bytes())
    }
}
