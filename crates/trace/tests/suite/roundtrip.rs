//! What is written is read: random sessions, long sessions, and the same session at other addresses.

use proptest::prelude::*;
use rashomon_abi::record::{AccessClass as Class, CHUNK_BYTES, Op, allocation_kind, lock_kind};
use rashomon_event::{AccessClass, Address, EventKind, LockMode, ModuleInfo, ThreadId};
use rashomon_trace::modules::ModuleLine;
use rashomon_trace::{DumpOptions, LoadedTrace, Recording, RunHeader, SessionWriter, stream_file_name};

const BASE: u64 = 0x10_0000;
const END: u64 = 0x4000_0000;

fn session_at(base: u64) -> SessionWriter {
    let mut session = SessionWriter::new(RunHeader::default());
    let module = ModuleInfo { path: "/bin/prog".into(), build_id: None, base, start: base, end: base + END };
    session.modules.push(ModuleLine::Loaded { sequence: 0, module });
    session
}

fn load(session: SessionWriter) -> LoadedTrace {
    let directory = tempfile::tempdir().expect("a temporary directory");
    session.write(directory.path()).expect("a session is written");
    let recording = Recording::open(directory.path()).expect("a session opens");
    recording.verify().expect("a written session is valid");
    recording.load().expect("a session loads")
}

/// One step of a random session: an access or an operation of a thread.
#[derive(Clone, Debug)]
enum Step {
    Access { class: Class, address: u64, size: u64, site: u64 },
    Lock { object: u64, site: u64 },
    Unlock { object: u64, site: u64 },
}

fn step() -> impl Strategy<Value = Step> {
    let class = prop_oneof![Just(Class::Read), Just(Class::Write), Just(Class::ReadWrite)];
    let site = prop_oneof![BASE..BASE + 4000, BASE..BASE + END];
    prop_oneof![
        4 => (
            class,
            BASE..BASE + END - 4096,
            prop_oneof![Just(1u64), Just(2), Just(4), Just(8), Just(16), 1u64..4096],
            site.clone(),
        )
            .prop_map(|(class, address, size, site)| Step::Access { class, address, size, site }),
        1 => (BASE..BASE + 64, site.clone()).prop_map(|(object, site)| Step::Lock { object, site }),
        1 => (BASE..BASE + 64, site).prop_map(|(object, site)| Step::Unlock { object, site }),
    ]
}

fn expected_kind(step: &Step) -> EventKind {
    match *step {
        Step::Access { class, address, size, .. } => {
            let class = match class {
                Class::Read => AccessClass::Read,
                Class::Write => AccessClass::Write,
                Class::ReadWrite => AccessClass::ReadWrite,
                Class::End => AccessClass::End,
            };
            EventKind::Access(rashomon_event::Access { address: Address(address), size: size as u32, class, atomic: false })
        }
        Step::Lock { object, .. } => EventKind::Acquire { lock: Address(object), mode: LockMode::Exclusive, may_wait: true },
        Step::Unlock { object, .. } => EventKind::Release { lock: Address(object), mode: LockMode::Exclusive },
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_sessions(steps in prop::collection::vec((0u32..3, step(), 0u32..4), 0..200)) {
        let mut session = session_at(BASE);
        let mut expected = Vec::new();
        for thread in 0..3 {
            let parent = if thread == 0 { u64::MAX } else { 0 };
            session.sync(thread, Op::ThreadStart, 0, 0, BASE, &[parent, u64::from(thread), 0, 0, 0, 0]);
            for number in 1..4 {
                session.stream(thread).define_context(number, number - 1, BASE + u64::from(number));
            }
            expected.push((thread, EventKind::Start, BASE, 0));
        }
        let mut running = 2;
        for (thread, step, context) in &steps {
            if running != *thread {
                session.turn(*thread, 0);
                running = *thread;
            }
            session.stream(*thread).set_context(*context);
            let site = match *step {
                Step::Access { class, address, size, site } => {
                    session.stream(*thread).access(class, address, size, site);
                    site
                }
                Step::Lock { object, site } => {
                    session.sync(*thread, Op::Lock, object, lock_kind::MUTEX, site, &[]);
                    site
                }
                Step::Unlock { object, site } => {
                    session.sync(*thread, Op::Unlock, object, 0, site, &[]);
                    site
                }
            };
            expected.push((*thread, expected_kind(step), site, *context));
        }
        let loaded = load(session);
        let trace = &loaded.trace;
        let found: Vec<_> = trace
            .events
            .iter()
            .map(|event| (event.thread.0, event.kind, trace.site(event.site).address, trace.callers(event.context).len() as u32))
            .collect();
        prop_assert_eq!(found, expected);
        prop_assert!(trace.complete);
    }
}

#[test]
fn streams_of_many_chunks() {
    let mut session = session_at(BASE);
    session.sync(0, Op::ThreadStart, 0, 0, BASE, &[u64::MAX, 0, 0, 0, 0, 0]);
    session.stream(0).define_context(1, 0, BASE + 1);
    session.stream(0).set_context(1);
    let count = 5 * CHUNK_BYTES as u64 / 8;
    for number in 0..count {
        session.stream(0).access(Class::Read, BASE + number * 8, 8, BASE + number % 7 * 5000);
    }
    let loaded = load(session);
    let accesses: Vec<_> = loaded.trace.events.iter().skip(1).collect();
    assert_eq!(accesses.len() as u64, count);
    for (number, event) in accesses.into_iter().enumerate() {
        let number = number as u64;
        assert_eq!(event.access().expect("an access").address, Address(BASE + number * 8));
        assert_eq!(loaded.trace.site(event.site).address, BASE + number % 7 * 5000);
        assert_eq!(event.context.0, 1);
    }
}

/// The same execution with everything moved, as address-space randomisation does.
fn moved(code: u64, heap: u64, stack: u64) -> LoadedTrace {
    let mut session = session_at(code);
    session.sync(
        0,
        Op::ThreadStart,
        heap % 999,
        0,
        code + 1,
        &[u64::MAX, 0, stack, stack + 0x8000, stack + 0x9000, stack + 0x9800],
    );
    session.sync(0, Op::ThreadCreate, 1, 0, code + 2, &[0]);
    session.sync(1, Op::ThreadStart, stack % 997, 0, code + 3, &[0, 0, stack + 0x10000, stack + 0x18000, 0, 0]);
    session.sync(1, Op::Allocate, heap, allocation_kind::HEAP, code + 4, &[128, 3]);
    session.stream(1).define_context(1, 0, code + 5);
    session.stream(1).set_context(1);
    for address in
        [heap + 8, stack + 0x7ff0, stack + 0x17f00, stack + 0x9010, code + 0x1234, 0x7000_0000_0000 + (code & 0xffff_f000) + 5]
    {
        session.stream(1).access(Class::Write, address, 4, code + 0x99);
    }
    session.sync(1, Op::LockInit, heap + 64, lock_kind::MUTEX, code + 6, &[]);
    session.sync(1, Op::Lock, heap + 64, lock_kind::MUTEX, code + 7, &[]);
    session.sync(1, Op::AtomicStore, code + 0x2000, 3, code + 8, &[heap + 16]);
    session.sync(1, Op::AtomicStore, code + 0x2000, 3, code + 8, &[17]);
    load(session)
}

#[test]
fn comparable_lines_do_not_depend_on_addresses() {
    let left = moved(0x5555_0000_0000, 0x5655_0000_0010, 0x7ffc_0000_0000);
    let right = moved(0x5612_3450_0000, 0x7e00_0000_4320, 0x7fff_1234_5000);
    let lines: Vec<String> = left.normalised().collect();
    assert_eq!(lines, right.normalised().collect::<Vec<_>>());
    assert_eq!(left.normalised_digest(), right.normalised_digest());
    let expected = [
        "write 4 heap(0 prog+0x4 #3)+0x8",
        "write 4 stack(main)-0x10",
        "write 4 stack(0)-0x100",
        "write 4 tls(main)-0x7f0",
        "write 4 prog+0x1234",
        "write 4 ?+0x5",
        "acquire Exclusive heap(0 prog+0x4 #3)+0x40",
        "atomic Store Relaxed 8 prog+0x2000 = address",
        "atomic Store Relaxed 8 prog+0x2000 = 0x11",
    ];
    for (line, expected) in lines[4..].iter().zip(expected) {
        assert!(line.starts_with("0 @") && line.ends_with(expected), "{line} should end with {expected}");
    }
    // Another execution is told apart.
    let mut other = moved(0x5555_0000_0000, 0x5655_0000_0010, 0x7ffc_0000_0000);
    let mut events: Vec<_> = other.trace.events.iter().collect();
    events.swap(4, 5);
    other.trace.events = events.into();
    assert_ne!(left.normalised_digest(), other.normalised_digest());
}

#[test]
fn dumps_can_be_narrowed() {
    let loaded = moved(0x5555_0000_0000, 0x5655_0000_0010, 0x7ffc_0000_0000);
    let dump = |options: DumpOptions| {
        let mut text = Vec::new();
        loaded.dump(&options, &mut text).expect("written");
        String::from_utf8(text).expect("text")
    };
    let all = dump(DumpOptions::default());
    assert_eq!(all.lines().count(), loaded.trace.events.len());
    let first = dump(DumpOptions { thread: Some(ThreadId(0)), limit: Some(2), ..DumpOptions::default() });
    assert_eq!(first.lines().collect::<Vec<_>>(), all.lines().take(2).collect::<Vec<_>>());
    let rest = dump(DumpOptions { from: 2, ..DumpOptions::default() });
    assert_eq!(rest.lines().collect::<Vec<_>>(), all.lines().skip(2).collect::<Vec<_>>());
    assert!(all.contains("       5 0 @1 prog+0x99 "), "{all}");
}

#[test]
fn modules_that_follow_each_other_at_one_address_are_different_objects() {
    let mut session = SessionWriter::new(RunHeader::default());
    let module = |path: &str| ModuleInfo { path: path.into(), build_id: None, base: BASE, start: BASE, end: BASE + 0x1000 };
    session.sync(0, Op::ThreadStart, 0, 0, 1, &[u64::MAX, 0, 0, 0, 0, 0]);
    session.modules.push(ModuleLine::Loaded { sequence: 2, module: module("/lib/a.so") });
    session.stream(0).access(Class::Read, BASE + 8, 8, BASE + 16);
    session.sync(0, Op::Yield, 0, 0, BASE, &[]);
    session.modules.push(ModuleLine::Unloaded { sequence: 3, base: BASE });
    session.modules.push(ModuleLine::Loaded { sequence: 3, module: module("/lib/b.so") });
    session.sync(0, Op::Yield, 0, 0, BASE, &[]);
    session.stream(0).access(Class::Read, BASE + 8, 8, BASE + 16);
    let directory = tempfile::tempdir().expect("a temporary directory");
    session.write(directory.path()).expect("written");
    let loaded = Recording::open(directory.path()).expect("opens").load().expect("loads");
    let lines: Vec<String> = loaded.normalised().filter(|line| line.contains("read")).collect();
    assert!(lines[0].ends_with("read 8 a.so+0x8") && lines[0].contains(" a.so+0x10 "), "{lines:?}");
    assert!(lines[1].ends_with("read 8 b.so+0x8") && lines[1].contains(" b.so+0x10 "), "{lines:?}");
    assert!(directory.path().join(stream_file_name(0)).exists());
}

/// Whether the recorder's filter dropped a repetition depends on addresses; comparable lines must not.
#[test]
fn repetitions_within_a_span_do_not_tell_recordings_apart() {
    let record = |repetitions: usize, other: bool| {
        let mut session = SessionWriter::new(RunHeader::default());
        session.modules.push(ModuleLine::Loaded {
            sequence: 1,
            module: ModuleInfo { path: "/bin/p".into(), build_id: None, base: BASE, start: BASE, end: BASE + 0x1000 },
        });
        session.sync(0, Op::ThreadStart, 0, 0, 1, &[u64::MAX, 0, 0, 0, 0, 0]);
        for _ in 0..repetitions {
            session.stream(0).access(Class::Write, BASE + 0x100, 8, BASE + 16);
        }
        session.sync(0, Op::Yield, 0, 0, BASE, &[]);
        session.stream(0).access(Class::Write, BASE + 0x100, 8, BASE + 16);
        if other {
            session.stream(0).access(Class::Read, BASE + 0x100, 8, BASE + 16);
        }
        let directory = tempfile::tempdir().expect("a temporary directory");
        session.write(directory.path()).expect("written");
        Recording::open(directory.path()).expect("opens").load().expect("loads").normalised().collect::<Vec<_>>()
    };
    assert_eq!(record(1, false), record(3, false));
    assert_eq!(record(1, false).iter().filter(|line| line.contains("write")).count(), 2, "a new span begins anew");
    assert_ne!(record(1, false), record(1, true));
}
