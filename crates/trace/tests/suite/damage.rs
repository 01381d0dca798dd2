//! Recordings that were cut short or damaged: a clear error or a marked prefix, never a panic.

use proptest::prelude::*;
use rashomon_abi::record::{AccessClass, CHUNK_BYTES, Op, lock_kind};
use rashomon_abi::{HEADER_FILE, MODULES_FILE, OLDEST_RECORDING, PROTOCOL_VERSION};
use rashomon_event::{EventKind, Events, ModuleInfo};
use rashomon_trace::modules::ModuleLine;
use rashomon_trace::{
    DumpOptions, FaultKind, LoadedTrace, Recording, RunHeader, RunState, SessionWriter, Shortcoming, TraceError, stream_file_name,
};
use std::fs;
use std::path::Path;

const CODE: u64 = 0x4000_0000;

fn small_session() -> SessionWriter {
    let mut session = SessionWriter::new(RunHeader::default());
    let module = ModuleInfo { path: "/bin/prog".into(), build_id: None, base: CODE, start: CODE, end: CODE + 0x1000 };
    session.modules.push(ModuleLine::Loaded { sequence: 0, module });
    session.sync(0, Op::ThreadStart, 7, 0, CODE, &[u64::MAX, 0, 0x1000, 0x2000, 0, 0]);
    session.sync(0, Op::ThreadCreate, 1, 0, CODE + 4, &[0]);
    session.sync(1, Op::ThreadStart, 8, 0, CODE + 8, &[0, 0, 0x3000, 0x4000, 0, 0]);
    session.stream(1).define_context(1, 0, CODE + 12);
    session.stream(1).set_context(1);
    session.stream(1).access(AccessClass::Write, CODE + 0x800, 8, CODE + 16);
    session.stream(1).access(AccessClass::Read, CODE + 0x900, 100, CODE + 20);
    session.sync(1, Op::Lock, CODE + 0x880, lock_kind::MUTEX, CODE + 24, &[]);
    session.turn(0, 0);
    session.sync(0, Op::Allocate, 0x9000, 1, CODE + 28, &[64, 0]);
    session.stream(0).access(AccessClass::Write, 0x9010, 4, CODE + 32);
    session.turn(1, 0);
    session.sync(1, Op::Unlock, CODE + 0x880, 0, CODE + 36, &[]);
    session.sync(1, Op::ThreadEnd, 0, 0, 0, &[]);
    session.turn(0, 1);
    session.sync(0, Op::ThreadJoin, 1, 0, CODE + 40, &[]);
    session.stream(0).executed(1);
    session.sync(0, Op::ThreadEnd, 0, 0, 0, &[]);
    session
}

fn written() -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a temporary directory");
    small_session().write(directory.path()).expect("a session is written");
    directory
}

/// Everything that can be asked of a recording.
fn use_fully(directory: &Path) -> Result<LoadedTrace, TraceError> {
    let recording = Recording::open(directory)?;
    let mut text = Vec::new();
    recording.stat(&mut text)?;
    let _ = recording.verify();
    let loaded = recording.load()?;
    loaded.dump(&DumpOptions::default(), &mut text)?;
    let _ = (loaded.normalised_digest(), loaded.turns());
    Ok(loaded)
}

fn whole() -> Events {
    use_fully(written().path()).expect("a whole session loads").trace.events
}

/// The error says where, unless there is nothing at all.
fn assert_located(error: &TraceError) {
    let text = error.to_string();
    let nothing = matches!(error, TraceError::NotARecording { .. } | TraceError::NotBegun { .. });
    assert!(text.contains("byte") || nothing, "{text}");
}

#[test]
fn a_whole_session_is_valid() {
    let directory = written();
    let verification = Recording::open(directory.path()).expect("opens").verify().expect("is valid");
    assert_eq!((verification.threads, verification.sequenced), (2, 12));
    assert_eq!(verification.shortcomings, []);
    let mut text = Vec::new();
    Recording::open(directory.path()).expect("opens").stat(&mut text).expect("counts");
    let text = String::from_utf8(text).expect("text");
    assert!(text.contains("accesses kept      3\n") && text.contains("Lock                 1\n"), "{text}");
}

#[test]
fn truncation_at_every_byte_gives_a_prefix_or_an_error() {
    let events = whole();
    for file in [HEADER_FILE.to_owned(), MODULES_FILE.to_owned(), stream_file_name(0), stream_file_name(1)] {
        let directory = written();
        let path = directory.path().join(&file);
        let bytes = fs::read(&path).expect("the file is there");
        for length in 0..bytes.len() {
            fs::write(&path, &bytes[..length]).expect("cut");
            match use_fully(directory.path()) {
                Ok(loaded) => {
                    let found = &loaded.trace.events;
                    assert!(found.len() <= events.len(), "{file} cut to {length}");
                    let of_thread = |events: &Events, thread| events.iter().filter(|event| event.thread.0 == thread).count();
                    assert!((0..2).all(|thread| of_thread(found, thread) <= of_thread(&events, thread)));
                    if file == MODULES_FILE && length > 0 {
                        assert_eq!(loaded.shortcomings, [Shortcoming::ModulesCutShort]);
                    } else if file != MODULES_FILE && length > 0 {
                        assert!(!loaded.trace.complete, "{file} cut to {length}");
                        assert!(matches!(loaded.shortcomings[0], Shortcoming::Damaged { .. }));
                        assert_located(&Recording::open(directory.path()).expect("opens").verify().expect_err("not valid"));
                    }
                }
                Err(error) => {
                    assert_eq!(file, HEADER_FILE, "{error}");
                    assert_located(&error);
                }
            }
        }
    }
}

#[test]
fn every_flipped_bit_of_a_stream_is_noticed() {
    let directory = written();
    for thread in 0..2 {
        let path = directory.path().join(stream_file_name(thread));
        let bytes = fs::read(&path).expect("the file is there");
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            fs::write(&path, &damaged).expect("written");
            let error = Recording::open(directory.path()).expect("opens").verify().expect_err("a flipped bit");
            assert_located(&error);
            // Loading is slower; a bit of each byte in turn is enough.
            if bit % 9 == 0 {
                let loaded = use_fully(directory.path()).expect("loads up to the damage");
                assert!(!loaded.trace.complete);
            }
        }
        fs::write(&path, &bytes).expect("restored");
    }
}

/// Bits of the header that say nothing about validity are counts and notes, and those between one known version and another.
#[test]
fn a_flipped_bit_of_the_header_is_an_error_or_harmless() {
    let directory = written();
    let path = directory.path().join(HEADER_FILE);
    let bytes = fs::read(&path).expect("the header is there");
    for bit in 0..40 * 64 {
        let mut damaged = bytes.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        fs::write(&path, &damaged).expect("written");
        match use_fully(directory.path()) {
            Ok(_) => assert!(bit >= 128 || (OLDEST_RECORDING..=PROTOCOL_VERSION).contains(&u32::from(damaged[8])), "bit {bit}"),
            Err(error) => assert_located(&error),
        }
    }
}

/// The program was killed while it wrote: everything whole is there.
#[test]
fn an_unfinished_chunk_is_read_up_to_its_last_whole_record() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut session = small_session();
    session.header.state = RunState::Running;
    let stream = session.stream(1).clone();
    session.write(directory.path()).expect("a session is written");
    let path = directory.path().join(stream_file_name(1));
    let mut bytes = stream.abandon();
    let written = bytes.len();
    bytes.resize(CHUNK_BYTES, 0);
    fs::write(&path, &bytes).expect("written");
    let loaded = use_fully(directory.path()).expect("loads");
    assert_eq!(loaded.trace.events, whole());
    assert_eq!(loaded.shortcomings, [Shortcoming::NotEnded, Shortcoming::Unfinished { threads: vec![1] }]);
    let verification = Recording::open(directory.path()).expect("opens").verify().expect("a killed program is no error");
    assert_eq!(verification.shortcomings, loaded.shortcomings);

    // Killed between any two words: a prefix of the thread's events.
    let of_thread = |events: &Events| events.iter().filter(|event| event.thread.0 == 1).collect::<Vec<_>>();
    let all = of_thread(&whole());
    for length in (32..written).step_by(8) {
        let mut cut = bytes.clone();
        cut[length..].fill(0);
        fs::write(&path, &cut).expect("written");
        let found = of_thread(&use_fully(directory.path()).expect("loads").trace.events);
        assert!(
            found.len() <= all.len() && found.iter().zip(&all).all(|(left, right)| left.kind == right.kind),
            "cut at {length}"
        );
    }
}

#[test]
fn damage_ends_the_trace_for_all_threads() {
    let directory = written();
    let path = directory.path().join(stream_file_name(1));
    let mut bytes = fs::read(&path).expect("the stream is there");
    let used = bytes.len();
    bytes[used - 1] ^= 0x40;
    fs::write(&path, &bytes).expect("written");
    let loaded = use_fully(directory.path()).expect("loads");
    // Nothing of thread 1 can be trusted, and thread 0 joins it: no event remains that depends on it.
    assert!(loaded.trace.events.iter().all(|event| !matches!(event.kind, EventKind::Join { .. })));
    let Shortcoming::Damaged { offset, what, .. } = &loaded.shortcomings[0] else { panic!("{:?}", loaded.shortcomings) };
    assert_eq!(*offset, 0);
    assert!(matches!(what, FaultKind::Checksum { .. }));
}

#[test]
fn other_versions_and_other_things_are_told_apart() {
    let directory = written();
    let path = directory.path().join(HEADER_FILE);
    let bytes = fs::read(&path).expect("the header is there");
    let mut newer = bytes.clone();
    newer[8] = PROTOCOL_VERSION as u8 + 1;
    fs::write(&path, &newer).expect("written");
    let error = Recording::open(directory.path()).expect_err("another version");
    let versions = (OLDEST_RECORDING, PROTOCOL_VERSION);
    assert!(matches!(error, TraceError::Version { oldest, newest, offset: 8, .. } if (oldest, newest) == versions), "{error}");
    let mut other = bytes.clone();
    other[0] = b'X';
    fs::write(&path, &other).expect("written");
    assert!(matches!(Recording::open(directory.path()).expect_err("another magic"), TraceError::Magic { offset: 0, .. }));
    for begun in [0, bytes.len()] {
        fs::write(&path, vec![0; begun]).expect("written");
        assert!(matches!(Recording::open(directory.path()).expect_err("no magic yet"), TraceError::NotBegun { .. }));
    }
    fs::remove_file(&path).expect("removed");
    for no_recording in [directory.path().to_path_buf(), directory.path().join(MODULES_FILE), directory.path().join("none")] {
        assert!(matches!(Recording::open(&no_recording), Err(TraceError::NotARecording { .. })), "{}", no_recording.display());
    }
}

#[test]
fn a_lost_stream_ends_the_trace_where_its_events_are_missing() {
    let whole = whole();
    for (thread, known) in [(0, 0), (1, 2)] {
        let directory = written();
        fs::remove_file(directory.path().join(stream_file_name(thread))).expect("removed");
        let loaded = use_fully(directory.path()).expect("loads what there is");
        assert!(loaded.trace.events.iter().eq(whole.range(0..known)));
        assert!(matches!(loaded.shortcomings.first(), Some(Shortcoming::Lost { thread: lost, .. }) if *lost == thread));
        let error = Recording::open(directory.path()).expect("opens").verify().expect_err("a stream is lost");
        assert!(error.to_string().contains(&format!("thread {thread} has no stream")), "{error}");
    }
}

#[test]
fn a_thread_that_did_nothing_needs_no_stream() {
    const THREADS: usize = rashomon_abi::header::field::THREADS * 8;
    let directory = written();
    let path = directory.path().join(HEADER_FILE);
    let mut bytes = fs::read(&path).expect("the header is there");
    assert_eq!(bytes[THREADS], 2);
    bytes[THREADS] = 3;
    fs::write(&path, &bytes).expect("written");
    let loaded = use_fully(directory.path()).expect("loads");
    assert_eq!((loaded.trace.events, loaded.shortcomings), (whole(), vec![]));
    Recording::open(directory.path()).expect("opens").verify().expect("is sound");
}

#[test]
fn a_number_that_a_thread_took_with_it_is_no_lost_stream() {
    let ended = |lost: u64| {
        let mut session = SessionWriter::new(RunHeader::default());
        session.sync(0, Op::ThreadStart, 7, 0, CODE, &[u64::MAX, 0, 0, 0, 0, 0]);
        session.sync(0, Op::ThreadCreate, 1, 0, CODE, &[0]);
        let directory = tempfile::tempdir().expect("a temporary directory");
        session.write(directory.path()).expect("a session is written");
        let path = directory.path().join(HEADER_FILE);
        let mut bytes = fs::read(&path).expect("the header is there");
        bytes[rashomon_abi::header::field::THREADS * 8] = 2;
        let sequence = rashomon_abi::header::field::SEQUENCE * 8;
        bytes[sequence..sequence + 8].copy_from_slice(&(3 + lost).to_le_bytes());
        fs::write(&path, &bytes).expect("written");
        Recording::open(directory.path()).expect("opens").verify()
    };
    ended(0).expect("the second thread never ran");
    ended(1).expect("the first thread was about to write");
    let error = ended(2).expect_err("one thread does not write two at once");
    assert!(error.to_string().contains("thread 1 has no stream, and event number 3 is missing"), "{error}");
}

#[test]
fn strict_checks_find_what_checksums_cannot() {
    type Change = fn(&mut SessionWriter);
    let cases: [(&str, Change); 7] = [
        ("occurs twice", |session| session.stream(0).sync(Op::Yield, 0, 6, 0, CODE, &[])),
        ("does not rise", |session| session.stream(0).sync(Op::Yield, 0, 1, 0, CODE, &[])),
        ("was not given yet", |session| session.stream(0).sync(Op::Yield, 0, 999, 0, CODE, &[])),
        ("before its ThreadStart", |session| session.stream(2).access(AccessClass::Read, 8, 8, CODE)),
        ("behind its ThreadEnd", |session| {
            session.sync(0, Op::ThreadEnd, 0, 0, CODE, &[]);
            session.sync(0, Op::Yield, 0, 0, CODE, &[]);
        }),
        ("context 9 is not defined", |session| {
            session.stream(0).set_context(9);
            session.sync(0, Op::Yield, 0, 0, CODE, &[]);
        }),
        ("defined twice", |session| {
            session.stream(0).define_context(1, 0, CODE);
            session.stream(0).define_context(1, 0, CODE);
        }),
    ];
    for (complaint, change) in cases {
        let mut session = SessionWriter::new(RunHeader::default());
        session.sync(0, Op::ThreadStart, 7, 0, CODE, &[u64::MAX, 0, 0, 0, 0, 0]);
        session.sync(1, Op::ThreadStart, 7, 0, CODE, &[0, 0, 0, 0, 0, 0]);
        for _ in 0..2 {
            session.sync(0, Op::Yield, 0, 0, CODE, &[]);
            session.sync(1, Op::Yield, 0, 0, CODE, &[]);
        }
        change(&mut session);
        let directory = tempfile::tempdir().expect("a temporary directory");
        session.write(directory.path()).expect("a session is written");
        let error = Recording::open(directory.path()).expect("opens").verify().expect_err(complaint);
        assert!(error.to_string().contains(complaint), "{complaint}: {error}");
        let _ = use_fully(directory.path());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    /// Words of a stream replaced by anything, under a checksum that says they are right.
    #[test]
    fn arbitrary_records_never_panic(
        words in prop::collection::vec(any::<u64>(), 1..60),
        kinds in prop::collection::vec(0u64..24, 60),
    ) {
        let directory = written();
        let mut bytes = Vec::new();
        let words: Vec<u64> = words.iter().zip(&kinds).map(|(word, kind)| word & !(31 << 48) | kind << 48).collect();
        let checksum = words.iter().fold(rashomon_abi::record::Checksum::new(), |sum, &word| sum.add(word)).finish();
        for word in [rashomon_abi::record::CHUNK_MAGIC, 1, words.len() as u64 * 8, checksum].iter().chain(&words) {
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        fs::write(directory.path().join(stream_file_name(1)), &bytes).expect("written");
        use_fully(directory.path()).expect("opens and loads what there is");
    }

    #[test]
    fn arbitrary_module_lists_never_panic(text in "[!0-9a-f\t\n/-]{0,80}") {
        let directory = written();
        fs::write(directory.path().join(MODULES_FILE), text).expect("written");
        if let Err(error) = use_fully(directory.path()) {
            assert_located(&error);
        }
    }
}
