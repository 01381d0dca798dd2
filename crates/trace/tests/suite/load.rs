//! Sessions written record by record, loaded, and compared with what they mean.

use rashomon_abi::record::{AccessClass as Class, Op, allocation_kind, atomic_aux, input, lock_kind, sync_source};
use rashomon_event::{
    AccessClass, Address, AtomicOp, EventIndex, EventKind, LockMode, MemoryOrder, Mode, ModuleInfo, ObjectKind, OtherOp, Place,
    Position, ThreadId, ThreadPath,
};
use rashomon_trace::modules::ModuleLine;
use rashomon_trace::{LoadedTrace, Recording, RunHeader, RunMode, SessionWriter};

const MAIN: u64 = 0x55_0000_0000;
const STACK: u64 = 0x7fff_0000_0000;

fn session() -> SessionWriter {
    let mut session = SessionWriter::new(RunHeader::default());
    session.modules.push(ModuleLine::Loaded {
        sequence: 0,
        module: ModuleInfo {
            path: "/bin/prog".into(),
            build_id: Some("ab12".into()),
            base: MAIN,
            start: MAIN,
            end: MAIN + 0x8000,
        },
    });
    session.sync(0, Op::ThreadStart, 100, 0, MAIN + 1, &[u64::MAX, 0, STACK, STACK + 0x10000, 0, 0]);
    session
}

fn start_child(session: &mut SessionWriter, child: u32, ordinal: u64) {
    session.sync(0, Op::ThreadCreate, u64::from(child), 0, MAIN + 0x20, &[ordinal]);
    let low = 0x7f00_0000_0000 + u64::from(child) * 0x10_0000;
    session.sync(child, Op::ThreadStart, 200, 0, MAIN + 0x30, &[0, ordinal, low, low + 0x1000, 0, 0]);
}

fn load(session: SessionWriter) -> LoadedTrace {
    let directory = tempfile::tempdir().expect("a temporary directory");
    session.write(directory.path()).expect("a session is written");
    Recording::open(directory.path()).expect("a session opens").load().expect("a session loads")
}

fn kinds(loaded: &LoadedTrace) -> Vec<EventKind> {
    loaded.trace.events.iter().map(|event| event.kind).collect()
}

#[test]
fn streams_are_merged_by_sequence_number() {
    let mut session = session();
    start_child(&mut session, 1, 0);
    session.stream(1).access(Class::Write, MAIN + 0x4000, 4, MAIN + 0x100);
    session.sync(1, Op::Lock, MAIN + 0x5000, lock_kind::MUTEX, MAIN + 0x104, &[]);
    session.turn(0, 0);
    session.stream(0).access(Class::Read, MAIN + 0x4000, 4, MAIN + 0x200);
    session.turn(1, 0);
    session.stream(1).access(Class::ReadWrite, MAIN + 0x4002, 2, MAIN + 0x108);
    session.sync(1, Op::Unlock, MAIN + 0x5000, 0, MAIN + 0x10c, &[]);
    session.sync(1, Op::ThreadEnd, 0, 0, 0, &[]);
    session.turn(0, 1);
    session.sync(0, Op::ThreadJoin, 1, 0, MAIN + 0x204, &[]);
    session.sync(0, Op::ThreadEnd, 0, 0, 0, &[]);
    let loaded = load(session);
    let trace = &loaded.trace;

    assert!(trace.complete, "{:?}", loaded.shortcomings);
    assert_eq!(trace.mode, Mode::Serial);
    let order: Vec<(u32, u32)> = trace.events.iter().map(|event| (event.thread.0, event.ordinal)).collect();
    assert_eq!(order, [(0, 0), (0, 1), (1, 0), (1, 1), (1, 1), (0, 2), (1, 2), (1, 2), (1, 3), (0, 2), (0, 3)]);
    assert_eq!(trace.events.at(1).kind, EventKind::Fork { child: ThreadId(1) });
    let lock = Address(MAIN + 0x5000);
    assert_eq!(trace.events.at(4).kind, EventKind::Acquire { lock, mode: LockMode::Exclusive, may_wait: true });
    let access = trace.events.at(6).access().expect("an access");
    assert_eq!(
        (access.address, access.size, access.class, access.atomic),
        (Address(MAIN + 0x4002), 2, AccessClass::ReadWrite, false)
    );
    assert_eq!(trace.site(trace.events.at(6).site).offset, 0x108);
    assert_eq!(trace.threads[1].path, ThreadPath(vec![0]));
    assert_eq!(trace.threads[1].parent, Some(ThreadId(0)));
    let stack = &trace.objects[trace.threads[1].stack.expect("a stack").index()];
    assert_eq!((stack.kind, stack.size), (ObjectKind::Stack { thread: ThreadId(1) }, 0x1000));

    let sync = |ordinal, op: Op| Position { ordinal, place: Place::Synchronisation { op: op as u16 } };
    let count = |ordinal, accesses| Position { ordinal, place: Place::Count { accesses } };
    assert_eq!(
        loaded.turns(),
        [
            (ThreadId(0), count(2, 0)),
            (ThreadId(1), count(2, 0)),
            (ThreadId(0), sync(2, Op::ThreadJoin)),
            (ThreadId(1), Position { ordinal: 4, place: Place::End }),
            (ThreadId(0), Position { ordinal: 4, place: Place::End }),
        ]
    );
}

#[test]
fn a_wait_is_told_from_a_stop_before_the_operation() {
    let mut session = session();
    start_child(&mut session, 1, 0);
    session.turn(0, 0);
    // A wait that is over before the thread stops.
    session.waits(0, 3);
    session.turn(0, 3);
    session.turn(1, 0);
    session.sync(1, Op::Yield, 0, 0, MAIN + 0x300, &[]);
    session.turn(0, 3);
    session.waits(0, 3);
    session.turn(1, 0);
    // This one never ends.
    session.waits(1, 5);
    session.turn(0, 3);
    session.sync(0, Op::Acquire, 0, 0, MAIN + 0x104, &[]);
    let loaded = load(session);
    let place = |turn: usize| loaded.turns()[turn];
    assert_eq!(place(2), (ThreadId(0), Position { ordinal: 2, place: Place::Synchronisation { op: Op::Acquire as u16 } }));
    assert_eq!(place(4), (ThreadId(0), Position { ordinal: 2, place: Place::Waiting { accesses: 3 } }));
    assert_eq!(place(5), (ThreadId(1), Position { ordinal: 2, place: Place::Waiting { accesses: 5 } }));
    assert_eq!(loaded.replay_schedule(0).turns.len(), loaded.turns().len());
}

#[test]
fn a_schedule_ends_where_something_came_in() {
    for waits in [false, true] {
        let mut session = session();
        start_child(&mut session, 1, 0);
        session.turn(0, 0);
        if waits {
            session.waits(0, 3);
        }
        session.turn(1, 0);
        session.sync(1, Op::Yield, 0, 0, MAIN + 0x300, &[]);
        session.turn(0, 3);
        session.sync(0, Op::ExternalInput, 10, 4, 0, &[3]);
        session.turn(1, 0);
        session.sync(1, Op::Yield, 0, 0, MAIN + 0x300, &[]);
        session.turn(0, 3);
        session.sync(0, Op::Yield, 0, 0, MAIN + 0x104, &[]);
        let loaded = load(session);
        let turns: Vec<_> = loaded.replay_schedule(0).turns.iter().map(|turn| (turn.thread, turn.until)).collect();
        let at = |ordinal, place| Position { ordinal, place };
        let (yields, came_in) = (Place::Synchronisation { op: Op::Yield as u16 }, Place::Count { accesses: 3 });
        assert_eq!(turns[3], (1, at(2, yields)), "{waits}");
        if waits {
            assert_eq!(turns[2..], [(0, at(2, Place::Waiting { accesses: 3 })), (1, at(2, yields))]);
        } else {
            assert_eq!(turns[2..], [(0, at(2, yields)), (1, at(2, yields)), (0, at(2, came_in))]);
        }
    }
}

#[test]
fn the_first_input_from_outside_has_its_place() {
    let mut session = session();
    let path = u64::from_le_bytes(*b"/dev/tty");
    for (source, place) in [(sync_source::FILE, 0x104), (sync_source::SIGNAL, 0)] {
        session.sync(0, Op::ExternalInput, 10, source, MAIN + place, &[0, input::PATH << 32 | 1, path, 0, 0, 0, 0, 0]);
    }
    let loaded = load(session);
    let input = loaded.input.expect("something came in");
    assert!(input.source == sync_source::FILE && input.thread == ThreadId(0), "{input:?}");
    let file = input.file.expect("what it came from");
    assert_eq!((file.descriptor, file.what), (0, input::PATH));
    assert!(file.name.starts_with(b"/dev/tty\0"));
    assert_eq!(loaded.trace.site(input.site).offset, 0x104);
}

#[test]
fn a_quantum_that_ends_twice_in_one_stretch_stops_between_accesses() {
    let mut session = session();
    start_child(&mut session, 1, 0);
    session.turn(0, 1000);
    session.sync(1, Op::Yield, 0, 0, MAIN + 0x300, &[]);
    session.turn(0, 2000);
    session.sync(0, Op::Lock, MAIN + 0x5000, lock_kind::MUTEX, MAIN + 0x104, &[]);
    let loaded = load(session);
    let place = |turn: usize| loaded.turns()[turn].1;
    assert_eq!(place(0), Position { ordinal: 2, place: Place::Count { accesses: 1000 } });
    assert_eq!(place(1), Position { ordinal: 1, place: Place::Synchronisation { op: Op::Yield as u16 } });
    assert_eq!(place(2), Position { ordinal: 2, place: Place::Synchronisation { op: Op::Lock as u16 } });
    // Thread 1 never ran again and had not ended.
    assert_eq!(place(3), Position { ordinal: 2, place: Place::Synchronisation { op: 0 } });
}

#[test]
fn reused_heap_addresses_are_different_objects() {
    let mut session = session();
    let heap = 0x5600_0000_0010;
    for ordinal in 0..2 {
        session.sync(0, Op::Allocate, heap, allocation_kind::HEAP, MAIN + 0x40, &[32, ordinal]);
        session.stream(0).access(Class::Write, heap + 8, 8, MAIN + 0x44);
        session.sync(0, Op::Free, heap, 0, MAIN + 0x48, &[]);
    }
    let loaded = load(session);
    let addresses: Vec<Address> =
        loaded.trace.events.iter().filter_map(|event| event.access()).map(|access| access.address).collect();
    assert_eq!(addresses.len(), 2);
    assert_ne!(addresses[0], addresses[1]);
    for (ordinal, address) in addresses.into_iter().enumerate() {
        let object = loaded.trace.objects[loaded.trace.object_at(address).expect("an object").index()];
        let ObjectKind::Heap { thread: ThreadId(0), ordinal: found, .. } = object.kind else { panic!("{:?}", object.kind) };
        assert_eq!((found as usize, address.0 - object.base.0, object.size, object.machine_base), (ordinal, 8, 32, heap));
        let born = object.born.expect("a birth");
        assert_eq!(loaded.trace.kind(born), EventKind::Other(OtherOp::Allocates));
        assert_eq!(object.base.0 % 16, 0);
    }
}

#[test]
fn a_mutex_in_a_reused_block_is_another_mutex() {
    let mut session = session();
    let heap = 0x5600_0000_0010;
    for ordinal in 0..2 {
        session.sync(0, Op::Allocate, heap, allocation_kind::HEAP, MAIN + 0x40, &[64, ordinal]);
        session.sync(0, Op::LockInit, heap, lock_kind::MUTEX, MAIN + 0x44, &[]);
        session.sync(0, Op::Lock, heap, lock_kind::MUTEX, MAIN + 0x44, &[]);
        session.sync(0, Op::Unlock, heap, 0, MAIN + 0x44, &[]);
    }
    session.sync(0, Op::LockInit, heap, lock_kind::MUTEX | lock_kind::RECURSIVE, MAIN + 0x44, &[]);
    session.sync(0, Op::Lock, heap, lock_kind::MUTEX | lock_kind::TRY, MAIN + 0x44, &[]);
    let loaded = load(session);
    let locks: Vec<(Address, bool)> = loaded
        .trace
        .events
        .iter()
        .filter_map(|event| match event.kind {
            EventKind::Acquire { lock, may_wait, .. } => Some((lock, may_wait)),
            _ => None,
        })
        .collect();
    assert_eq!(locks.len(), 3);
    assert!(locks[0].0 != locks[1].0 && locks[1].0 != locks[2].0);
    assert_eq!([locks[0].1, locks[1].1, locks[2].1], [true, true, false]);
    assert_eq!(loaded.data_address(locks[2].0), locks[1].0);
    assert!(loaded.sync_objects.get(locks[2].0).is_some_and(|object| object.recursive && object.incarnation == 1));
}

#[test]
fn waits_know_their_signal() {
    for mode in [RunMode::Serial, RunMode::Free] {
        let mut session = session();
        session.header.mode = mode;
        start_child(&mut session, 1, 0);
        let (condition, mutex) = (MAIN + 0x6000, MAIN + 0x6100);
        session.sync(1, Op::Lock, mutex, lock_kind::MUTEX, MAIN + 0x50, &[]);
        session.sync(1, Op::CondWaitBegin, condition, 0, MAIN + 0x54, &[mutex]);
        let signal = session.sync(0, Op::CondSignal, condition, 0, MAIN + 0x58, &[]);
        let told = if mode == RunMode::Free { 0 } else { signal };
        session.sync(1, Op::CondWaitEnd, condition, 0, MAIN + 0x54, &[mutex, 0, told]);
        session.sync(1, Op::CondWaitBegin, condition, 0, MAIN + 0x54, &[mutex]);
        session.sync(1, Op::CondWaitEnd, condition, 0, MAIN + 0x54, &[mutex, 110, 0]);
        let loaded = load(session);
        let kinds = kinds(&loaded);
        let (condition, mutex) = (Address(condition), Address(mutex));
        assert_eq!(kinds[5], EventKind::Signal { condition, broadcast: false });
        assert_eq!(kinds[6], EventKind::WaitEnd { condition, mutex, woken_by: Some(EventIndex(5)), timed_out: false });
        assert_eq!(kinds[8], EventKind::WaitEnd { condition, mutex, woken_by: None, timed_out: true });
        assert_eq!(loaded.turns().is_empty(), mode == RunMode::Free);
    }
}

#[test]
fn atomics_carry_order_and_value() {
    let mut session = session();
    let at = MAIN + 0x7000;
    let aux = atomic_aux::pack(2, atomic_aux::ACQ_REL, atomic_aux::ACQUIRE);
    session.sync(0, Op::AtomicRmw, at, aux, MAIN + 0x60, &[5, 6]);
    session.sync(0, Op::AtomicCasFailed, at, aux, MAIN + 0x64, &[6]);
    let loaded = load(session);
    let kinds = kinds(&loaded);
    let EventKind::Atomic { access, op: AtomicOp::Rmw, order: MemoryOrder::AcqRel, value: 6 } = kinds[1] else {
        panic!("{kinds:?}")
    };
    assert_eq!((access.size, access.atomic, access.class), (4, true, AccessClass::ReadWrite));
    let EventKind::Atomic { access, op: AtomicOp::CasFailed, order: MemoryOrder::Acquire, value: 6 } = kinds[2] else {
        panic!("{kinds:?}")
    };
    assert_eq!(access.class, AccessClass::Read);
}

#[test]
fn contexts_are_shared_between_threads() {
    let mut session = session();
    start_child(&mut session, 1, 0);
    for thread in 0..2 {
        // The numbers differ, the chains do not.
        let first = 1 + thread;
        session.stream(thread).define_context(first, 0, MAIN + 0x70);
        session.stream(thread).define_context(first + 1, first, MAIN + 0x80);
        session.stream(thread).set_context(first + 1);
        session.stream(thread).access(Class::Read, MAIN + 0x4000, 1, MAIN + 0x90);
    }
    let loaded = load(session);
    let accesses: Vec<_> = loaded.trace.events.iter().filter(|event| event.access().is_some()).collect();
    assert_eq!(accesses.len(), 2);
    assert_eq!(accesses[0].context, accesses[1].context);
    let callers: Vec<u64> =
        loaded.trace.callers(accesses[0].context).iter().map(|&site| loaded.trace.site(site).offset).collect();
    assert_eq!(callers, [0x80, 0x70]);
}

#[test]
fn goals_and_blocked_threads_are_kept() {
    let mut session = session();
    start_child(&mut session, 1, 0);
    session.sync(0, Op::GoalReached, MAIN + 0x4000, 0, MAIN + 0x90, &[2, 4]);
    session.sync(1, Op::LockRequest, MAIN + 0x5000, 0, MAIN + 0x94, &[]);
    session.sync(1, Op::Blocked, MAIN + 0x5000, 0, MAIN + 0x94, &[Op::Lock as u64, 0]);
    let loaded = load(session);
    assert_eq!(loaded.goals.len(), 1);
    assert_eq!(
        (loaded.goals[0].class, loaded.goals[0].size, loaded.goals[0].machine_address),
        (AccessClass::Write, 4, MAIN + 0x4000)
    );
    let blocked = loaded.blocked[0];
    assert_eq!((blocked.thread, blocked.op, blocked.holder), (ThreadId(1), Some(Op::Lock), Some(ThreadId(0))));
    assert_eq!(loaded.trace.kind(blocked.event), EventKind::Blocked { on: Address(MAIN + 0x5000) });
}

#[test]
fn a_range_longer_than_an_event_can_say_is_split() {
    let mut session = session();
    session.stream(0).access(Class::Write, 0x1000, (1 << 33) + 7, MAIN + 0x90);
    let loaded = load(session);
    let sizes: Vec<u64> =
        loaded.trace.events.iter().filter_map(|event| event.access()).map(|access| u64::from(access.size)).collect();
    assert_eq!(sizes.len(), 3);
    assert_eq!(sizes.iter().sum::<u64>(), (1 << 33) + 7);
}
