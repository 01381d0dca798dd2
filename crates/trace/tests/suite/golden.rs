//! A session of each format version that was written once. It must be read the same way for ever; and of the version that is
//! written now, the same calls must write the same bytes.

use rashomon_abi::deep::loop_kind;
use rashomon_abi::record::{AccessClass, Op, allocation_kind, atomic_aux, lock_kind, sync_source};
use rashomon_abi::{HEADER_FILE, MODULES_FILE, OLDEST_RECORDING, PROTOCOL_VERSION};
use rashomon_event::{ModuleInfo, Place};
use rashomon_trace::modules::ModuleLine;
use rashomon_trace::{
    Divergence, DivergenceKind, DumpOptions, Names, Recording, RunHeader, RunNotes, RunOutcome, SessionWriter, stream_file_name,
};
use std::fmt::Write;
use std::path::{Path, PathBuf};

const CODE: u64 = 0x5555_5555_4000;
const STACK: u64 = 0x7ffd_0000_0000;
const HEAP: u64 = 0x5555_5560_0010;

fn golden(version: u32) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/v{version}"))
}

fn header() -> RunHeader {
    RunHeader {
        process_id: 4242,
        start_time_nanoseconds: 1_600_000_000_000_000_000,
        notes: RunNotes(4),
        unwritten: 0,
        crash: None,
        not_reexecutable_from: Some(90),
        outcome: RunOutcome::Diverged,
        outcome_turn: 3,
        outcome_threads: [1, 0],
        divergence: Some(Divergence {
            kind: DivergenceKind::OtherOperation,
            expected_ordinal: 5,
            actual_ordinal: 5,
            actual_op: Op::Lock as u64,
            actual_site: CODE + 0x99,
            actual_object: HEAP,
        }),
        turns_done: 2,
        virtual_nanoseconds: 1_000_000,
        switches: 4,
        accesses_executed: 9,
        ..RunHeader::default()
    }
}

/// Arguments that an operation may have in a recording.
fn arguments(op: Op) -> (u64, u16, Vec<u64>) {
    let atomic = atomic_aux::pack(3, atomic_aux::ACQ_REL, atomic_aux::ACQUIRE);
    match op {
        Op::ThreadCreate => (2, 0, vec![1]),
        Op::ThreadJoin | Op::ThreadDetach => (1, 0, vec![]),
        Op::Lock | Op::LockInit => (CODE + 0x3000, lock_kind::MUTEX | lock_kind::RECURSIVE, vec![]),
        Op::LockShared => (CODE + 0x3040, lock_kind::RWLOCK, vec![]),
        Op::UnlockShared => (CODE + 0x3040, 0, vec![]),
        Op::LockFailed => (CODE + 0x3000, lock_kind::MUTEX | lock_kind::TRY, vec![16]),
        Op::CondWaitBegin => (CODE + 0x3080, 0, vec![CODE + 0x3000]),
        Op::CondWaitEnd => (CODE + 0x3080, 0, vec![CODE + 0x3000, 110, 0]),
        Op::BarrierEnter => (CODE + 0x30c0, 0, vec![7, 2]),
        Op::BarrierExit => (CODE + 0x30c0, 0, vec![7]),
        Op::Release | Op::Acquire | Op::Blocking | Op::ExternalInput => (5, sync_source::FILE, vec![1]),
        Op::AtomicLoad | Op::AtomicStore | Op::AtomicCasFailed | Op::Fence => (CODE + 0x3100, atomic, vec![41]),
        Op::AtomicRmw => (CODE + 0x3100, atomic, vec![41, 42]),
        Op::Allocate => (HEAP + 0x1000, allocation_kind::MAPPING, vec![4096, 0]),
        Op::Free => (HEAP + 0x1000, 0, vec![]),
        Op::LoopEnter | Op::LoopExit => (CODE + 0x5100, loop_kind::CONDITION as u16, vec![CODE + 0x3080]),
        Op::Sleep => (0, 0, vec![1_000_000]),
        Op::GoalReached => (HEAP + 8, 0, vec![2, 4]),
        Op::Blocked => (CODE + 0x3000, 0, vec![Op::Lock as u64, 0]),
        _ => (CODE + 0x3200, 0, vec![]),
    }
}

fn session() -> SessionWriter {
    let mut session = SessionWriter::new(header());
    let program = ModuleInfo {
        path: "/opt/a program".into(),
        build_id: Some("00ff12".into()),
        base: CODE,
        start: CODE,
        end: CODE + 0x8000,
    };
    let library =
        ModuleInfo { path: "/lib/l.so".into(), build_id: None, base: CODE + 0x10000, start: CODE + 0x11000, end: CODE + 0x12000 };
    session.modules = vec![
        ModuleLine::Loaded { sequence: 1, module: program },
        ModuleLine::Loaded { sequence: 4, module: library },
        ModuleLine::Unloaded { sequence: 9, base: CODE + 0x10000 },
    ];
    session.sync(0, Op::ThreadStart, 4242, 0, CODE + 0x10, &[u64::MAX, 0, STACK, STACK + 0x2000, STACK + 0x3000, STACK + 0x3100]);
    session.sync(0, Op::ThreadCreate, 1, 0, CODE + 0x20, &[0]);
    session.sync(1, Op::ThreadStart, 4243, 0, CODE + 0x30, &[0, 0, STACK + 0x8000, STACK + 0x9000, 0, 0]);
    let stream = session.stream(1);
    stream.define_context(1, 0, CODE + 0x40);
    stream.frame(STACK + 0x8f80, STACK + 0x8f40);
    stream.define_context(2, 1, CODE + 0x50);
    stream.set_context(2);
    for (number, class) in [AccessClass::Read, AccessClass::Write, AccessClass::ReadWrite].into_iter().enumerate() {
        let number = number as u64;
        stream.access(class, CODE + 0x4000 + number * 16, 1 << number, CODE + 0x60 + number * 2000);
        stream.access(class, STACK + 0x8ff0, 1 << (number + 2), CODE + 0x61 + number * 2000);
        stream.access(class, HEAP, 24 + number, CODE + 0x62);
    }
    stream.access(AccessClass::ReadWrite, HEAP, 8, CODE + 0x62);
    stream.value(false, 0x1234);
    stream.value(true, 0x8000_1234_5678_9abc);
    stream.activation(1, CODE + 0x5000);
    stream.segment(3);
    stream.resume(1 << 40 | 1, 2);
    session.turn(0, 0);
    session.sync(0, Op::Allocate, HEAP, allocation_kind::HEAP, CODE + 0x70, &[40, 2]);
    session.stream(0).access(AccessClass::Write, HEAP + 8, 8, CODE + 0x11_040);
    session.turn(1, 9);
    for &op in Op::ALL {
        if !matches!(op, Op::ThreadStart | Op::ThreadEnd) {
            let (object, aux, arguments) = arguments(op);
            session.sync(1, op, object, aux, CODE + 0x80, &arguments);
        }
    }
    session.stream(1).executed(9);
    session.sync(1, Op::ThreadEnd, 0, 0, 0, &[]);
    session.turn(0, 1);
    session.sync(0, Op::ThreadEnd, 0, 0, 0, &[]);
    session
}

/// Everything that is read from a session, as text.
fn describe(recording: &Recording) -> String {
    let loaded = recording.load().expect("loads");
    let mut text = Vec::new();
    recording.stat(&mut text).expect("counts");
    loaded.dump(&DumpOptions::default(), &mut text).expect("dumps");
    loaded.dump(&DumpOptions { comparable: true, ..DumpOptions::default() }, &mut text).expect("dumps");
    let mut text = String::from_utf8(text).expect("text");
    let names = Names::exact(&loaded);
    for (thread, until) in loaded.turns() {
        let place = match until.place {
            Place::Synchronisation { op } => format!("operation {op}"),
            Place::Count { accesses } => format!("{accesses} accesses"),
            Place::Waiting { accesses } => format!("waits after {accesses} accesses"),
            Place::End => "end".to_owned(),
            Place::Access { .. } => "access".to_owned(),
        };
        writeln!(text, "turn of {} until {} {place}", names.thread(*thread), until.ordinal).expect("text");
    }
    for object in &loaded.trace.objects {
        let (base, machine) = (object.base.0, object.machine_base);
        writeln!(text, "object {} {base:#x} {} bytes, was {machine:#x}", names.data(object.base), object.size).expect("text");
    }
    for object in loaded.sync_objects.iter() {
        let name = names.identity(object.identity);
        writeln!(text, "{:?} {} {name} recursive {}", object.kind, object.identity, object.recursive).expect("text");
    }
    for goal in &loaded.goals {
        let place = names.data(goal.address);
        writeln!(text, "goal of {}: {:?} of {} bytes at {place}", names.thread(goal.thread), goal.class, goal.size)
            .expect("text");
    }
    for blocked in &loaded.blocked {
        let place = names.identity(blocked.object);
        let holder = blocked.holder.map(|holder| names.thread(holder));
        writeln!(text, "blocked {} in {:?} of {place} held by {holder:?}", names.thread(blocked.thread), blocked.op)
            .expect("text");
    }
    for shortcoming in &loaded.shortcomings {
        writeln!(text, "incomplete: {shortcoming}").expect("text");
    }
    let divergence = loaded.header.divergence.expect("the golden run diverged");
    let Divergence { kind, expected_ordinal, actual_ordinal, actual_op, actual_site, actual_object } = divergence;
    writeln!(text, "{kind:?} {expected_ordinal} {actual_ordinal} {actual_op} {actual_site:#x} {actual_object:#x}").expect("text");
    text
}

#[track_caller]
fn is_read_as_ever(version: u32) {
    let recording = Recording::open(&golden(version)).expect("opens");
    recording.verify().expect("is valid");
    let expected = std::fs::read_to_string(golden(version).with_extension("txt")).expect("the expected text is there");
    let found = describe(&recording);
    for (number, (found, expected)) in found.lines().zip(expected.lines()).enumerate() {
        assert_eq!(found, expected, "line {}", number + 1);
    }
    assert_eq!(found.lines().count(), expected.lines().count());
}

#[test]
fn version_1_is_read_as_ever() {
    is_read_as_ever(1);
}

#[test]
fn version_2_is_read_as_ever() {
    is_read_as_ever(2);
}

#[test]
fn version_3_is_read_as_ever() {
    is_read_as_ever(3);
}

#[test]
fn version_4_is_read_as_ever() {
    is_read_as_ever(4);
}

#[test]
fn every_version_is_read_from_the_oldest() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    session().write(directory.path()).expect("written");
    let header = directory.path().join(HEADER_FILE);
    for version in 0..=PROTOCOL_VERSION + 1 {
        let mut bytes = std::fs::read(&header).expect("written");
        bytes[8..16].copy_from_slice(&u64::from(version).to_le_bytes());
        std::fs::write(&header, bytes).expect("written");
        let is_known = (OLDEST_RECORDING..=PROTOCOL_VERSION).contains(&version);
        assert_eq!(Recording::open(directory.path()).is_ok(), is_known, "version {version}");
    }
}

/// A new version has golden files of its own, which `RASHOMON_TESTS_RECORD=1` makes where there are none; the older ones stay.
#[test]
fn this_version_is_written_as_ever() {
    if std::env::var_os("RASHOMON_TESTS_RECORD").is_some() && !golden(PROTOCOL_VERSION).exists() {
        session().write(&golden(PROTOCOL_VERSION)).expect("written");
        let text = describe(&Recording::open(&golden(PROTOCOL_VERSION)).expect("opens"));
        std::fs::write(golden(PROTOCOL_VERSION).with_extension("txt"), text).expect("written");
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    session().write(directory.path()).expect("written");
    for file in [HEADER_FILE.to_owned(), MODULES_FILE.to_owned(), stream_file_name(0), stream_file_name(1)] {
        let written = std::fs::read(directory.path().join(&file)).expect("written");
        let kept = std::fs::read(golden(PROTOCOL_VERSION).join(&file)).expect("the golden file is there");
        let at = written.iter().zip(&kept).position(|(one, other)| one != other);
        assert!(written == kept, "{file} differs at {at:?}, {} and {} bytes long", written.len(), kept.len());
    }
}
