//! Every kind of warning in every format, on the same fixtures.

use rashomon_report::warning::{Access, Frame, Held, Kind, Location, Mutex, Place, Stack, Tag, Thread, Variable, Warning};
use rashomon_report::{Format, Options, json::Json, text::Text, tsan::Tsan};

/// What an access does, in bits.
const WRITE: u8 = 1;
const ATOMIC: u8 = 2;
const FREE: u8 = 4;
/// What a thread is.
const RUNNING: u8 = 1;
const WORKER: u8 = 2;

fn frame(function: &str, line: u32) -> Frame {
    Frame {
        address: 0x5500_0000_1000 + u64::from(line),
        function: Some(function.into()),
        file: Some("/src/queue.cpp".into()),
        line: Some(line),
        column: Some(5),
        module: Some("/bin/queue".into()),
        offset: 0x1000 + u64::from(line),
        build_id: Some("20b67fd1".into()),
        inlined: false,
    }
}

/// An interposed function.
fn library(function: &str) -> Frame {
    Frame { file: None, line: None, column: None, ..frame(function, 1) }
}

fn stack(frames: &[Frame]) -> Stack {
    Stack {
        addresses: frames.iter().map(|frame| frame.address).collect(),
        frames: frames.to_vec(),
        suppressable: true,
        awaits: None,
    }
}

fn empty(kind: Kind) -> Warning {
    Warning {
        kind,
        count: 1,
        signal: 0,
        tag: 0,
        accesses: vec![],
        stacks: vec![],
        mutexes: vec![],
        threads: vec![],
        locations: vec![],
        unique_threads: vec![],
        sleep: None,
        tags: vec![],
    }
}

fn mutex(address: u64) -> Mutex {
    Mutex { address, destroyed: false, initialised: true, created: stack(&[library("pthread_mutex_init"), frame("main", 30)]) }
}

/// One that its definition initialises.
fn defined(address: u64) -> Mutex {
    Mutex { initialised: false, created: stack(&[library("pthread_mutex_lock"), frame("main", 32)]), ..mutex(address) }
}

fn thread(number: u64, name: &str, flags: u8) -> Thread {
    let created = if number == 0 { Stack::default() } else { stack(&[library("pthread_create"), frame("main", 40)]) };
    let (running, worker) = (flags & RUNNING != 0, flags & WORKER != 0);
    Thread { number, id: 1000 + number, running, worker, parent: 0, ordinal: number.checked_sub(1), name: name.into(), created }
}

fn access(flags: u8, thread: u64, held: Vec<Held>, frames: &[Frame]) -> Access {
    let (write, atomic, free) = (flags & WRITE != 0, flags & ATOMIC != 0, flags & FREE != 0);
    Access { write, atomic, free, address: 0x5500_0000_4018, size: 4, thread, tag: 0, held, stack: stack(frames) }
}

fn location(place: Place) -> Location {
    let variable = Variable {
        name: "queue::head".into(),
        start: 0x5500_0000_4018,
        size: 8,
        module: "/bin/queue".into(),
        offset: 0x4018,
        file: Some("/src/queue.cpp".into()),
        line: Some(3),
    };
    Location {
        place,
        address: 0x5500_0000_4018,
        start: 0x7b04_0000_0010,
        size: 40,
        thread: 1,
        descriptor: 5,
        closed: place == Place::Descriptor,
        tag: 0,
        stack: if place == Place::Heap { stack(&[library("malloc"), frame("make", 12)]) } else { Stack::default() },
        variable: (place == Place::Static).then_some(variable),
    }
}

fn fixtures() -> Vec<Warning> {
    let inlined = Frame { inlined: true, ..frame("push(int)", 7) };
    let outer = Frame { build_id: None, ..frame("worker(void*)", 9) };
    let race = Warning {
        accesses: vec![
            access(WRITE, 1, vec![Held { mutex: 0, write: true }, Held { mutex: 1, write: false }], &[inlined, outer]),
            access(ATOMIC, 0, vec![], &[frame("main", 41)]),
        ],
        mutexes: vec![mutex(0x5500_0000_5000), defined(0x5500_0000_5040)],
        threads: vec![thread(1, "worker", RUNNING), thread(0, "", RUNNING)],
        locations: vec![location(Place::Static)],
        sleep: Some(stack(&[library("sleep"), frame("worker(void*)", 8)])),
        ..empty(Kind::DataRace)
    };
    let freed = Warning {
        accesses: vec![
            access(0, 2, vec![], &[frame("use", 50)]),
            access(WRITE | FREE, 1, vec![], &[library("free"), frame("release", 51)]),
        ],
        threads: vec![thread(2, "", 0), thread(1, "", RUNNING | WORKER)],
        locations: vec![location(Place::Heap), location(Place::Stack), location(Place::Tls), location(Place::Descriptor)],
        ..empty(Kind::UseAfterFree)
    };
    let tagged = |access: Access| Access { tag: 2, ..access };
    let external = Warning {
        tag: 2,
        tags: vec![Tag { number: 2, object: "a map".into(), header: "race on a map".into() }],
        accesses: vec![
            tagged(access(WRITE, 1, vec![], &[frame("insert", 60)])),
            tagged(access(0, 0, vec![], &[frame("find", 61)])),
        ],
        ..empty(Kind::ExternalRace)
    };
    let cycle = Warning {
        mutexes: vec![mutex(0x5500_0000_5000), defined(0x5500_0000_5040)],
        unique_threads: vec![0, 1],
        stacks: vec![
            stack(&[library("pthread_mutex_lock"), frame("first", 70)]),
            stack(&[library("pthread_mutex_lock"), frame("second", 71)]),
        ],
        threads: vec![thread(0, "", RUNNING), thread(1, "", 0)],
        ..empty(Kind::Deadlock)
    };
    let destroyed = Warning {
        stacks: vec![
            stack(&[library("pthread_mutex_destroy"), frame("main", 80)]),
            stack(&[library("pthread_mutex_lock"), frame("main", 79)]),
        ],
        mutexes: vec![mutex(0x5500_0000_5000)],
        locations: vec![location(Place::Static)],
        ..empty(Kind::MutexDestroyLocked)
    };
    let leak = Warning { count: 3, threads: vec![thread(4, "", 0)], ..empty(Kind::ThreadLeak) };
    let errno = Warning { signal: 27, stacks: vec![stack(&[frame("handler(int)", 90)])], ..empty(Kind::ErrnoInSignal) };
    let lost = Warning { accesses: vec![access(WRITE, 1, vec![], &[]), access(0, 0, vec![], &[])], ..empty(Kind::VptrRace) };
    vec![race, freed, external, cycle, destroyed, leak, errno, lost]
}

fn all(format: &dyn Format, options: &Options) -> String {
    let rendered = fixtures().iter().map(|warning| format.warning(warning, 4711, options)).collect::<Vec<_>>();
    rendered
        .iter()
        .map(|one| format!("{}{}{}", one.text, one.summary.as_ref().map_or(String::new(), |line| format!("{line}\n")), one.tail))
        .collect()
}

#[test]
fn as_thread_sanitizer() {
    insta::assert_snapshot!(all(&Tsan, &Options::default()));
}

#[test]
fn as_thread_sanitizer_in_colour() {
    let options = Options { colour: true, strip_path_prefix: "/src/".into(), second_deadlock_stack: true, ..Options::default() };
    insta::assert_snapshot!(all(&Tsan, &options).replace('\x1b', "ESC"));
}

#[test]
fn as_text() {
    insta::assert_snapshot!(all(&Text, &Options::default()));
}

#[test]
fn as_json() {
    insta::assert_snapshot!(all(&Json, &Options::default()));
}

#[test]
fn data_of_a_library_without_symbols_is_called_that() {
    let mut of_libc = location(Place::Static);
    let variable = Variable { name: "<null>".into(), size: 0, module: "/lib/libc.so.6".into(), ..of_libc.variable.unwrap() };
    of_libc.variable = Some(variable);
    let mut accesses = vec![access(WRITE, 1, vec![], &[library("gmtime")]), access(WRITE, 0, vec![], &[library("gmtime")])];
    accesses[0].size = 1;
    let warning = Warning { accesses, locations: vec![of_libc], ..empty(Kind::DataRace) };
    let text = Text.warning(&warning, 4711, &Options::default()).text;
    assert!(
        text.starts_with("data race [process 4711]: the data of libc.so.6 at 0x4018\n  thread T1: write of 1 byte at"),
        "{text}"
    );
    assert_eq!(warning.finding(4711).subject, "the data of libc.so.6 at 0x4018");
}
