//! Wait loops in which nobody waited: which sections are taken for one, and what respecting them means, against brute force.

use rashomon_event::{
    AccessClass, Address, CandidateKind, EventIndex, EventKind, LockMode, SiteId, ThreadId, Trace, Witness, WitnessLevel,
};
use rashomon_refinement::facts::Atomics;
use rashomon_refinement::loops::{Loop, behind, loops};
use rashomon_refinement::model::Model;
use rashomon_refinement::search::{Answer, Limits, Window, find};
use rashomon_testkit::{Rules, TraceBuilder, describe, reachable};
use rashomon_witness::Checker;

const M: Address = Address(0x100);
const C: Address = Address(0x200);
const READY: Address = Address(0x300);
const DATA: Address = Address(0x400);
const SETTER: ThreadId = ThreadId(0);
const WAITER: ThreadId = ThreadId(1);
const OTHER: ThreadId = ThreadId(2);
/// Where the loop takes its mutex.
const LOOP: SiteId = SiteId(1000);

struct Program(TraceBuilder);

impl Program {
    fn new() -> Self {
        Self(TraceBuilder::with_threads(3))
    }

    fn lock(&mut self, thread: ThreadId, site: Option<SiteId>) -> EventIndex {
        let kind = EventKind::Acquire { lock: M, mode: LockMode::Exclusive, may_wait: true };
        match site {
            Some(site) => self.0.push_at(thread, kind, site),
            None => self.0.push(thread, kind),
        }
    }

    fn unlock(&mut self, thread: ThreadId) -> EventIndex {
        self.0.push(thread, EventKind::Release { lock: M, mode: LockMode::Exclusive })
    }

    fn signal(&mut self, thread: ThreadId) -> EventIndex {
        self.0.push(thread, EventKind::Signal { condition: C, broadcast: true })
    }

    fn read(&mut self, thread: ThreadId, at: Address) -> EventIndex {
        self.0.access(thread, AccessClass::Read, at, 4)
    }

    fn write(&mut self, thread: ThreadId, at: Address) -> EventIndex {
        self.0.access(thread, AccessClass::Write, at, 4)
    }

    /// `lock; ready = 1; signal; unlock`, the signal last where it is late. Its end.
    fn set(&mut self, thread: ThreadId, late: bool) -> EventIndex {
        self.lock(thread, None);
        self.write(thread, READY);
        if !late {
            self.signal(thread);
        }
        let end = self.unlock(thread);
        if late {
            self.signal(thread);
        }
        end
    }

    /// `lock; while (!ready) wait; unlock`, where it is ready. Its beginning.
    fn passes(&mut self, thread: ThreadId, site: Option<SiteId>) -> EventIndex {
        let begin = self.lock(thread, site);
        self.read(thread, READY);
        self.unlock(thread);
        begin
    }

    /// The same loop where it is not: the thread waits.
    fn begins_to_wait(&mut self, thread: ThreadId) {
        self.lock(thread, Some(LOOP));
        self.read(thread, READY);
        self.0.push(thread, EventKind::WaitBegin { condition: C, mutex: M });
    }

    fn wakes(&mut self, thread: ThreadId, by: EventIndex) {
        self.0.push(thread, EventKind::WaitEnd { condition: C, mutex: M, woken_by: Some(by), timed_out: false });
        self.read(thread, READY);
        self.unlock(thread);
    }
}

fn answer(trace: &Trace, loops: &[Loop], goals: [EventIndex; 2]) -> Answer {
    let model = Model::respecting(trace, Atomics::Free, loops);
    find(&model, &goals, Window::whole(&model), &Limits::default()).answer
}

/// A flag: what the setter writes before it, the waiter uses behind it. Nobody waited in this run.
#[test]
fn a_signal_orders_where_the_predicate_held_already() {
    for late in [false, true] {
        let mut program = Program::new();
        // A thread that waited shows the loop where the signal comes with the mutex released.
        if late {
            program.begins_to_wait(OTHER);
        }
        let written = program.write(SETTER, DATA);
        let satisfied = program.set(SETTER, late);
        if late {
            program.wakes(OTHER, EventIndex(satisfied.0 + 1));
        }
        let entered = program.passes(WAITER, Some(LOOP));
        let used = program.read(WAITER, DATA);
        let trace = program.0.build();
        let found = loops(&trace);
        assert_eq!(found, [Loop { satisfied, entered, known: late }], "{}", describe(&trace));
        assert!(matches!(answer(&trace, &found, [written, used]), Answer::No { .. }));
        let Answer::Order(order) = answer(&trace, &[], [written, used]) else { panic!() };
        assert_eq!(behind(&found, &order).len(), 1, "{order:?}");
    }
}

/// A bounded buffer: the consumer's section is behind that of the producer whose item it takes; producers are free among each
/// other, and what a producer does behind its section races with the consumer all the same.
#[test]
fn a_buffer_orders_consumers_and_no_producers() {
    let mut program = Program::new();
    let put = |program: &mut Program, thread| {
        program.lock(thread, None);
        program.read(thread, READY);
        program.write(thread, READY);
        program.signal(thread);
        program.unlock(thread)
    };
    let _ = put(&mut program, SETTER);
    let satisfied = put(&mut program, OTHER);
    let behind_put = program.write(OTHER, DATA);
    let entered = program.lock(WAITER, None);
    program.read(WAITER, READY);
    program.write(WAITER, READY);
    program.unlock(WAITER);
    let used = program.read(WAITER, DATA);
    let trace = program.0.build();
    let found = loops(&trace);
    assert_eq!(found, [Loop { satisfied, entered, known: false }], "{}", describe(&trace));
    let Answer::Order(order) = answer(&trace, &found, [behind_put, used]) else { panic!() };
    assert!(behind(&found, &order).is_empty());
}

#[test]
fn other_code_is_no_loop() {
    // The condition is waited for, and elsewhere: this section only looks.
    let mut program = Program::new();
    program.begins_to_wait(OTHER);
    let end = program.set(SETTER, false);
    program.wakes(OTHER, EventIndex(end.0 - 1));
    program.passes(WAITER, None);
    assert_eq!(loops(&program.0.build()), []);
    // Nobody signals.
    let mut program = Program::new();
    program.lock(SETTER, None);
    program.write(SETTER, READY);
    program.unlock(SETTER);
    program.passes(WAITER, None);
    assert_eq!(loops(&program.0.build()), []);
    // What is read was written again, outside sections.
    let mut program = Program::new();
    program.set(SETTER, false);
    program.write(OTHER, READY);
    program.passes(WAITER, None);
    assert_eq!(loops(&program.0.build()), []);
    // It waited: that has a process of its own.
    let mut program = Program::new();
    program.begins_to_wait(WAITER);
    let end = program.set(SETTER, false);
    program.wakes(WAITER, EventIndex(end.0 - 1));
    assert_eq!(loops(&program.0.build()), []);
}

/// Sections that set, pass and look, with accesses between them, of three threads.
fn random(seed: u64) -> Trace {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = |most: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % most
    };
    let mut program = Program::new();
    for _ in 0..7 {
        let thread = ThreadId(next(3) as u32);
        match next(6) {
            0 => _ = program.set(thread, next(3) == 0),
            1 | 2 => _ = program.passes(thread, None),
            3 => _ = program.write(thread, DATA),
            4 => _ = program.read(thread, DATA),
            _ => {
                program.lock(thread, None);
                program.read(thread, READY);
                program.write(thread, READY);
                program.signal(thread);
                program.unlock(thread);
            }
        }
    }
    program.0.build()
}

/// The same events with a semaphore for each loop, given before the first section ends and taken before the second one begins;
/// and where each event is now.
fn explicit(trace: &Trace, loops: &[Loop]) -> (Trace, Vec<EventIndex>) {
    let mut builder = TraceBuilder::with_threads(3);
    let semaphore = |number: usize| Address(0x10_000 + 8 * number as u64);
    (0..loops.len()).for_each(|number| builder.semaphore(semaphore(number), 0));
    let mut places = Vec::new();
    for index in trace.indices() {
        let event = trace.event(index);
        for (number, one) in loops.iter().enumerate() {
            let semaphore = semaphore(number);
            if one.satisfied == index {
                builder.push(event.thread, EventKind::Post { semaphore });
            } else if one.entered == index {
                builder.push(event.thread, EventKind::Take { semaphore });
            }
        }
        places.push(builder.push_at(event.thread, event.kind, event.site));
    }
    (builder.build(), places)
}

/// The model that respects loops has exactly the orders in which they come as they came.
#[test]
fn respecting_is_what_brute_force_says() {
    let (mut with_loops, mut held_back, mut found) = (0, 0, 0);
    for seed in 0..4000_u64 {
        let trace = random(seed);
        let all = loops(&trace);
        if all.is_empty() {
            continue;
        }
        with_loops += 1;
        let (explicit, places) = explicit(&trace, &all);
        let expected = reachable(&explicit, Rules::SYNCHRONISATION);
        let free = reachable(&trace, Rules::SYNCHRONISATION);
        for &(first, second) in &free.races {
            let decided = answer(&trace, &all, [first, second]);
            let there = (places[first.index()], places[second.index()]);
            assert_eq!(matches!(decided, Answer::Order(_)), expected.races.contains(&there), "{}", describe(&trace));
            match decided {
                Answer::Order(order) => {
                    found += 1;
                    assert!(behind(&all, &order).is_empty(), "{order:?}\n{}", describe(&trace));
                    let candidate = CandidateKind::Race { first, second };
                    let witness = Witness { candidate, order, level: WitnessLevel::Synchronisation };
                    assert!(Checker::new(&trace).check(&witness).is_ok());
                }
                _ => held_back += 1,
            }
        }
    }
    assert!(with_loops > 1000 && held_back > 20 && found > 1000, "{with_loops} {held_back} {found}");
}
