//! Streams of many chunks: compressed as the specification says, and read whatever the writer died of.

use proptest::prelude::*;
use rashomon_abi::compress::{self, Model};
use rashomon_abi::record::{
    AccessClass, CHUNK_BYTES, CHUNK_HEADER_WORDS, CHUNK_MAGIC, CHUNK_USED_WORD, COMPRESSED_MAGIC, Checksum, LOW_BITS, LOW_MASK,
    Op,
};
use rashomon_trace::{Fault, FaultKind, Recording, RunHeader, SessionWriter, Shortcoming, TraceError, stream_file_name};
use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;

const CODE: u64 = 0x4000_0000;
const HEADER: usize = CHUNK_HEADER_WORDS * 8;

/// The specification, word by word, with contexts that never share an entry by accident: they are keyed by what the specification
/// computes for them.
fn decompressed(mut bytes: &[u8], count: usize) -> Vec<u64> {
    #[derive(Default)]
    struct Context {
        last: u64,
        step: u64,
        next: u16,
        other: u16,
    }
    let mut take = |count: usize| {
        let (taken, rest) = bytes.split_at(count);
        bytes = rest;
        taken.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte))
    };
    let mut contexts: HashMap<u64, Context> = HashMap::new();
    let mut highs = [0_u64; 3];
    let number_of = |[third, second, first]: [u64; 3]| {
        let key = third << 48 | second << 32 | first << 16;
        key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 53
    };
    let (mut before, mut codes) = (0, 0);
    let mut words = Vec::new();
    for at in 0..count {
        codes = if at % 4 == 0 { take(1) } else { codes >> 2 };
        let code = codes & 3;
        let (mode, bytes) = match code {
            3 => {
                let head = take(1);
                (head >> 4, head & 15)
            }
            bytes => (0, bytes),
        };
        let follower = contexts.entry(before).or_default();
        let high = match mode {
            0 => follower.next,
            1 => follower.other,
            _ => take(2) as u16,
        };
        if high != follower.next {
            follower.other = follower.next;
            follower.next = high;
        }
        highs = [highs[1], highs[2], u64::from(high)];
        before = number_of(highs);
        let context = contexts.entry(before).or_default();
        if bytes > 0 {
            let zigzag = take(bytes as usize);
            context.step = if zigzag % 2 == 0 { zigzag / 2 } else { 0_u64.wrapping_sub(zigzag / 2 + 1) };
        }
        context.last = context.last.wrapping_add(context.step) & LOW_MASK;
        words.push(u64::from(high) << LOW_BITS | context.last);
    }
    assert!(bytes.is_empty(), "{} bytes are left", bytes.len());
    words
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// Few places and few steps, as programs have them, with some words of any value in between.
    #[test]
    fn compressed_words_are_what_the_specification_says(
        steps in prop::collection::vec((0_u64..12, -3_i64..4, any::<u64>(), 0..20_u8), 0..3000),
    ) {
        let mut addresses = [0x7f00_0000_0000_u64; 12];
        let words: Vec<u64> = steps
            .iter()
            .map(|&(place, step, any, kind)| {
                let address = &mut addresses[place as usize];
                *address = address.wrapping_add_signed(step * 8) & LOW_MASK;
                if kind == 0 { any } else { place << 51 | *address }
            })
            .collect();
        let mut bytes = vec![0; compress::bound(words.len())];
        let used = compress::compress(&mut Model::new(), &words, &mut bytes).expect("the bound is enough");
        prop_assert_eq!(&decompressed(&bytes[..used], words.len()), &words);
        let mut again = vec![0; words.len()];
        prop_assert_eq!(compress::decompress(&mut Model::new(), &bytes[..used], &mut again), Some(()));
        prop_assert_eq!(again, words);
    }

    #[test]
    fn any_bytes_are_decompressed_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..400), words in 0_usize..200) {
        let _ = compress::decompress(&mut Model::new(), &bytes, &mut vec![0; words]);
    }
}

/// One thread's accesses at rising addresses, in four full chunks and a part of a fifth.
fn session() -> SessionWriter {
    let mut session = SessionWriter::new(RunHeader::default());
    session.sync(0, Op::ThreadStart, 0, 0, CODE, &[u64::MAX, 0, 0, 0, 0, 0]);
    for number in 0..accesses() {
        session.stream(0).access(AccessClass::Write, 0x9000_0000 + number * 8, 8, CODE + (number % 5).pow(2) * 4);
    }
    session
}

const fn accesses() -> u64 {
    CHUNK_BYTES as u64 / 8 * 9 / 2
}

struct Written {
    directory: tempfile::TempDir,
    stream: PathBuf,
    bytes: Vec<u8>,
    /// Bytes of the file at which the compressed chunks begin, and where the last one ends.
    chunks: Vec<usize>,
}

impl Written {
    fn new(session: SessionWriter) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        session.write(directory.path()).expect("a session is written");
        let stream = directory.path().join(stream_file_name(0));
        let bytes = fs::read(&stream).expect("the stream is there");
        let mut chunks = vec![CHUNK_BYTES];
        while let Some(&at) = chunks.last().filter(|&&at| at < bytes.len()) {
            assert_eq!(word(&bytes, at), COMPRESSED_MAGIC);
            chunks.push(at + HEADER + (word(&bytes, at + 16) as u32 as usize).next_multiple_of(8));
        }
        Self { directory, stream, bytes, chunks }
    }

    /// How many accesses are read of these bytes, and what the recording lacks.
    fn read(&self, bytes: &[u8]) -> (u64, Vec<Shortcoming>) {
        fs::write(&self.stream, bytes).expect("written");
        let recording = Recording::open(self.directory.path()).expect("opens");
        let loaded = recording.load().expect("loads");
        let found = loaded.trace.events.iter().filter_map(|event| event.access()).map(|access| access.address.0 & LOW_MASK);
        let count = found.clone().count() as u64;
        for (number, address) in (0..).zip(found) {
            assert_eq!(address, 0x9000_0000 + number * 8, "access {number} of {count}");
        }
        (count, loaded.shortcomings)
    }

    fn verify(&self, bytes: &[u8]) -> Result<(), TraceError> {
        fs::write(&self.stream, bytes).expect("written");
        Recording::open(self.directory.path()).expect("opens").verify().map(|_| ())
    }

    /// Accesses in the first compressed chunks.
    fn accesses_before(&self, chunk: usize) -> u64 {
        let records: u64 = self.chunks[..chunk].iter().map(|&at| word(&self.bytes, at + 16) >> 35).sum();
        // Nine words are the start of the thread, and its place is given once a chunk.
        records.saturating_sub(9 + chunk as u64)
    }
}

fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

fn set_word(bytes: &mut [u8], at: usize, word: u64) {
    bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
}

#[test]
fn full_chunks_are_compressed_behind_the_last_one() {
    let written = Written::new(session());
    let bytes = &written.bytes;
    assert_eq!(written.chunks.len(), 5, "four compressed chunks");
    assert_eq!(written.chunks.last(), Some(&bytes.len()));
    assert_eq!((word(bytes, 0), word(bytes, 8) >> 32), (CHUNK_MAGIC, 4));
    for (index, &at) in written.chunks[..4].iter().enumerate() {
        let lengths = word(bytes, at + 16);
        let (records, stored) = ((lengths >> 32) as usize, lengths as u32 as usize);
        assert_eq!(word(bytes, at + 8) >> 32, index as u64);
        let body = &bytes[at + HEADER..written.chunks[index + 1]];
        assert!(body[stored..].iter().all(|&byte| byte == 0) && body.len() - stored < 8);
        let sum = (0..body.len() / 8).fold(Checksum::new(), |sum, number| sum.add(word(body, number * 8)));
        assert_eq!(sum.finish(), word(bytes, at + 24));
        assert_eq!(decompressed(&body[..stored], records / 8).len(), records / 8);
        assert!(stored < records / 20, "chunk {index}: {stored} bytes for {records} of a plain loop");
    }
    assert_eq!(written.read(bytes), (accesses(), vec![]));
    written.verify(bytes).expect("is sound");
}

/// The program was killed while a chunk was appended: that chunk is still in the beginning of the file.
#[test]
fn a_chunk_that_was_being_appended_is_read_where_it_was_written() {
    let written = Written::new(session());
    let last = written.chunks[3];
    let mut killed = written.bytes.clone();
    // The fourth chunk as it was before it was compressed.
    let records = (word(&killed, last + 16) >> 32) as usize;
    let stored = word(&killed, last + 16) as u32 as usize;
    let words = decompressed(&killed[last + HEADER..last + HEADER + stored], records / 8);
    killed[HEADER..CHUNK_BYTES].fill(0);
    for (number, &value) in words.iter().enumerate() {
        set_word(&mut killed, HEADER + number * 8, value);
    }
    set_word(&mut killed, 8, 3 << 32);
    set_word(&mut killed, CHUNK_USED_WORD * 8, 0);
    set_word(&mut killed, 24, 0);
    let unfinished = vec![Shortcoming::Unfinished { threads: vec![0] }];
    let before_last = written.accesses_before(4);
    for cut in [last, last + 5, last + HEADER, last + HEADER + 100] {
        assert_eq!(written.read(&killed[..cut]), (before_last, unfinished.clone()), "cut at {cut}");
        written.verify(&killed[..cut]).expect("a killed program is no error");
    }
    // Appended as a whole, and the next one was not begun, or the last one's records were being cleared.
    assert_eq!(written.read(&killed), (before_last, unfinished.clone()));
    killed[HEADER..CHUNK_BYTES / 2].fill(0);
    assert_eq!(written.read(&killed), (before_last, unfinished));
    // It could not be appended, and was completed where it was.
    set_word(&mut killed, CHUNK_USED_WORD * 8, records as u64);
    for (number, &value) in words.iter().enumerate() {
        set_word(&mut killed, HEADER + number * 8, value);
    }
    let sum = words.iter().fold(Checksum::new(), |sum, &word| sum.add(word)).finish();
    set_word(&mut killed, 24, sum);
    assert_eq!(written.read(&killed[..last + 12]), (before_last, vec![]));
}

#[test]
fn damage_in_a_compressed_chunk_keeps_what_precedes_it() {
    let written = Written::new(session());
    for chunk in 0..4 {
        let (from, to) = (written.chunks[chunk], written.chunks[chunk + 1]);
        for at in (from..from + HEADER).chain((from + HEADER..to).step_by(97)) {
            let mut damaged = written.bytes.clone();
            damaged[at] ^= 1 << (at % 8);
            let error = written.verify(&damaged).expect_err("a flipped bit");
            let TraceError::Corrupt { offset, .. } = &error else { panic!("{error}") };
            assert_eq!(*offset, from as u64, "{error}");
            if at % 5 == 0 {
                assert_eq!(written.read(&damaged).0, written.accesses_before(chunk).min(accesses()));
            }
        }
    }
    let cut = written.bytes.len() - 8;
    assert!(written.verify(&written.bytes[..cut]).is_err(), "the last one is cut short, and the beginning is not it");
}

/// Bytes that a checksum vouches for and that no records were compressed to.
#[test]
fn compressed_bytes_of_no_records_are_a_fault_at_their_chunk() {
    let written = Written::new(session());
    let at = written.chunks[2];
    let mut damaged = written.bytes.clone();
    damaged[at + HEADER] = 0xff;
    damaged[at + HEADER + 1] = 0xff;
    let body = &damaged[at + HEADER..written.chunks[3]];
    let sum = (0..body.len() / 8).fold(Checksum::new(), |sum, number| sum.add(word(body, number * 8))).finish();
    set_word(&mut damaged, at + 24, sum);
    fs::write(&written.stream, &damaged).expect("written");
    let recording = Recording::open(written.directory.path()).expect("opens");
    let faults = recording.statistics().faults;
    let expected = Fault { offset: at as u64, what: FaultKind::Compression };
    assert_eq!(faults, [(stream_file_name(0), expected)]);
    assert_eq!(written.read(&damaged).0, written.accesses_before(2));
}
