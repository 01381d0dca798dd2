//! Traces that no program makes: nothing may panic, and the checker still agrees with the predictor or says why not.

use rashomon_event::{
    Access, AccessClass, Address, AtomicOp, EventIndex, EventKind, LockMode, MemoryOrder, SiteId, ThreadId, Trace,
};
use rashomon_order::{Model, unordered};
use rashomon_predict::{Options, predict};
use rashomon_testkit::{SplitMix, TraceBuilder};
use rashomon_witness::Checker;

fn damaged(seed: u64) -> Trace {
    let mut rng = SplitMix(seed);
    let mut builder = TraceBuilder::with_threads(3);
    for _ in 0..25 {
        let thread = ThreadId(rng.below(3) as u32);
        let object = Address(0x1000 + 8 * rng.below(2));
        let other = ThreadId([0, 1, 2, 3, u32::MAX][rng.below(5) as usize]);
        let event = EventIndex([0, 3, 10, 24, u32::MAX][rng.below(5) as usize]);
        let mode = [LockMode::Exclusive, LockMode::Shared][rng.below(2) as usize];
        let class = [AccessClass::Read, AccessClass::Write, AccessClass::ReadWrite][rng.below(3) as usize];
        let size = [0, 1, 3, 8, 100][rng.below(5) as usize];
        let generation = [0, 1, u32::MAX][rng.below(3) as usize];
        let timed_out = rng.below(2) == 0;
        let kind = match rng.below(22) {
            0 => EventKind::Start,
            1 => EventKind::End,
            2 => EventKind::Fork { child: other },
            3 => EventKind::Join { child: other, may_wait: timed_out },
            4 => EventKind::Acquire { lock: object, mode, may_wait: timed_out },
            5 => EventKind::Release { lock: object, mode },
            6 => EventKind::Request { lock: object, mode },
            7 => EventKind::WaitBegin { condition: object, mutex: object },
            8 => EventKind::WaitEnd { condition: object, mutex: object, woken_by: Some(event), timed_out },
            9 => EventKind::WaitEnd { condition: object, mutex: object, woken_by: None, timed_out },
            10 => EventKind::Signal { condition: object, broadcast: timed_out },
            11 => EventKind::BarrierEnter { barrier: object, generation },
            12 => EventKind::BarrierExit { barrier: object, generation },
            13 => EventKind::Post { semaphore: object },
            14 => EventKind::Take { semaphore: object },
            15 => EventKind::OnceDone { once: object },
            16 => EventKind::OnceSeen { once: object },
            17 => EventKind::AcquireObject { object },
            18 => EventKind::Blocked { on: object },
            19 => EventKind::Atomic {
                access: Access { address: Address(rng.below(4)), size, class, atomic: true },
                op: [AtomicOp::Load, AtomicOp::Store, AtomicOp::Rmw][rng.below(3) as usize],
                order: MemoryOrder::AcqRel,
                value: 0,
            },
            _ => EventKind::Access(Access { address: Address(rng.below(4)), size, class, atomic: false }),
        };
        builder.push_at(thread, kind, SiteId(rng.below(8) as u32));
    }
    builder.build()
}

#[test]
fn damaged_traces_do_no_harm() {
    let (mut accepted, mut rejected) = (0, 0);
    for seed in 0..5000 {
        let trace = damaged(seed);
        let checker = Checker::new(&trace);
        for finding in predict(&trace, &Options::default()).findings {
            match finding.witness.map(|witness| checker.check(&witness)) {
                Some(Ok(_)) => accepted += 1,
                Some(Err(_)) => rejected += 1,
                None => {}
            }
        }
        let _ = unordered(&trace, EventIndex(3), EventIndex(20), Model::C11);
        assert!(!unordered(&trace, EventIndex(3), EventIndex(200), Model::CPP20), "no such event");
    }
    assert!(accepted > 1000 && rejected > 0, "{accepted} {rejected}");
}
