//! Values of plain accesses: written, read by the rules of the specification alone, and loaded.

use rashomon_abi::record::{AccessClass as Class, Op};
use rashomon_event::{EventIndex, ModuleInfo, PlainValue};
use rashomon_trace::modules::ModuleLine;
use rashomon_trace::{LoadedTrace, Recording, RunHeader, SessionWriter, Shortcoming, stream_file_name};

const CODE: u64 = 0x10_0000;
const DATA: u64 = CODE + 0x4000;

fn session() -> SessionWriter {
    let mut session = SessionWriter::new(RunHeader::default());
    let module = ModuleInfo { path: "/bin/prog".into(), build_id: None, base: CODE, start: CODE, end: CODE + 0x8000 };
    session.modules.push(ModuleLine::Loaded { sequence: 0, module });
    for thread in 0..2 {
        let parent = if thread == 0 { u64::MAX } else { 0 };
        session.sync(thread, Op::ThreadStart, 0, 0, CODE, &[parent, u64::from(thread), 0, 0, 0, 0]);
    }
    session
}

fn load(session: SessionWriter) -> (LoadedTrace, Vec<u8>) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    session.write(directory.path()).expect("a session is written");
    let loaded = Recording::open(directory.path()).expect("opens").load().expect("loads");
    (loaded, std::fs::read(directory.path().join(stream_file_name(0))).expect("the first stream"))
}

/// By `docs/trace-format.md`: each access of a stream's chunk, with what it read and wrote. Operations are passed over.
fn decoded(bytes: &[u8]) -> Vec<(u64, Option<u64>, Option<u64>)> {
    let words: Vec<u64> = bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap())).collect();
    let (mut at, mut found) = (4, Vec::new());
    while at < words.len() && words[at] != 0 {
        let (top, kind, low) = (words[at] >> 53, words[at] >> 48 & 31, words[at] & 0xffff_ffff_ffff);
        at += match kind {
            1..=15 => {
                found.push((low, None, None));
                1
            }
            16 | 17 | 25 => 1,
            19 => 3 + (words[at + 1] >> 48) as usize,
            21 => 2,
            31 => {
                let is_long = top & 2 != 0;
                let value = if is_long { words[at + 1] << 48 | low } else { low };
                let access = found.last_mut().expect("a value follows its access");
                *(if top & 1 != 0 { &mut access.2 } else { &mut access.1 }) = Some(value);
                1 + usize::from(is_long)
            }
            other => panic!("kind {other}"),
        };
    }
    found
}

fn expected(event: u32, read: Option<u64>, written: Option<u64>) -> PlainValue {
    PlainValue { event: EventIndex(event), read, written }
}

#[test]
fn values_belong_to_the_access_before_them() {
    let mut session = session();
    session.turn(0, 0);
    let large = 0xfedc_ba98_7654_3210;
    let stream = session.stream(0);
    for (class, size, read, written) in [
        (Class::Write, 8, None, Some(large)),
        (Class::Read, 8, Some(large), None),
        (Class::ReadWrite, 4, Some(0x7654_3210), Some(0)),
        (Class::Read, 1, None, None),
        (Class::Read, 2, Some(0), None),
    ] {
        stream.access(class, DATA, size, CODE + 0x60);
        read.into_iter().for_each(|value| stream.value(false, value));
        written.into_iter().for_each(|value| stream.value(true, value));
    }
    stream.access(Class::Write, DATA + 8, 8, CODE + 0x60);
    stream.segment(3);
    stream.value(true, 5);
    session.sync(0, Op::Yield, 0, 0, CODE + 0x70, &[]);
    let (loaded, bytes) = load(session);
    let all = [
        expected(2, None, Some(large)),
        expected(3, Some(large), None),
        expected(4, Some(0x7654_3210), Some(0)),
        expected(6, Some(0), None),
        expected(7, None, Some(5)),
    ];
    assert_eq!(loaded.trace.plain_values, all);
    let accesses = decoded(&bytes);
    let mut told: Vec<_> = (2..).zip(&accesses).map(|(event, access)| expected(event, access.1, access.2)).collect();
    told.retain(|value| value.read.is_some() || value.written.is_some());
    assert_eq!(told, all);
    assert_eq!(accesses.iter().map(|access| access.0).collect::<Vec<_>>(), [DATA, DATA, DATA, DATA, DATA, DATA + 8]);
}

#[test]
fn what_is_contradicted_is_not_known() {
    let mut session = session();
    session.turn(0, 0);
    let stream = session.stream(0);
    let mut access = |class, address, value| {
        stream.access(class, address, 4, CODE + 0x60);
        stream.value(class == Class::Write, value);
    };
    // Somebody wrote to the first between, and to the second before anybody else did; of the third all is right.
    access(Class::Write, DATA, 1);
    access(Class::Read, DATA, 2);
    access(Class::Read, DATA + 8, 3);
    access(Class::Read, DATA + 8, 4);
    access(Class::Write, DATA + 16, 6);
    access(Class::Read, DATA + 16, 6);
    let (loaded, _) = load(session);
    let known = [(None, None), (Some(2), None), (None, None), (None, None), (None, Some(6)), (Some(6), None)];
    let found: Vec<_> = loaded.trace.plain_values.iter().map(|value| (value.read, value.written)).collect();
    assert_eq!(found, known);
}

#[test]
fn a_value_of_no_access_is_damage() {
    let mut session = session();
    session.stream(0).value(true, 7);
    let (loaded, _) = load(session);
    assert!(loaded.shortcomings.iter().any(|it| matches!(it, Shortcoming::Damaged { .. })), "{:?}", loaded.shortcomings);
    assert!(loaded.trace.plain_values.is_empty());
}
