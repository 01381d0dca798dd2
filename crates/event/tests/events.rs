//! Packed events against a plain list of them.

use proptest::prelude::*;
use rashomon_event::EventKind::{
    Access as Plain, Acquire, AcquireObject, Atomic, BarrierEnter, BarrierExit, Blocked, End, Fence, Fork, Join, OnceBegin,
    OnceDone, OnceSeen, Other, Post, Release, ReleaseObject, Request, Signal, Start, Take, WaitBegin, WaitEnd,
};
use rashomon_event::{
    Access, AccessClass, Address, AtomicOp, ContextId, Event, EventIndex, EventKind, Events, Like, LockMode, MemoryOrder,
    OtherOp, SiteId, ThreadId,
};
use std::collections::HashMap;

/// Most are near each other, some are far apart, a few are the largest there are.
fn address() -> impl Strategy<Value = Address> {
    let number = prop_oneof![4 => 0x1000_u64..0x1100, 2 => any::<u64>(), 1 => Just(u64::MAX), 1 => Just(u64::from(u32::MAX))];
    number.prop_map(Address)
}

fn class() -> impl Strategy<Value = AccessClass> {
    prop::sample::select(vec![AccessClass::Read, AccessClass::Write, AccessClass::ReadWrite, AccessClass::End])
}

fn kind() -> impl Strategy<Value = EventKind> {
    let size = || prop_oneof![4 => Just(4_u32), 1 => any::<u32>()];
    let plain =
        (address(), size(), class()).prop_map(|(address, size, class)| Plain(Access { address, size, class, atomic: false }));
    let operations = vec![AtomicOp::Load, AtomicOp::Store, AtomicOp::Rmw, AtomicOp::CasFailed];
    let atomic = (address(), size(), class(), prop::sample::select(operations), any::<u64>()).prop_map(
        |(address, size, class, op, value)| Atomic {
            access: Access { address, size, class, atomic: true },
            op,
            order: MemoryOrder::AcqRel,
            value,
        },
    );
    let rest = (0..22_u32, address(), address(), any::<u32>(), any::<bool>()).prop_map(|(which, one, other, number, flag)| {
        let mode = if flag { LockMode::Shared } else { LockMode::Exclusive };
        match which {
            0 => Fence { order: MemoryOrder::SeqCst },
            1 => Start,
            2 => End,
            3 => Fork { child: ThreadId(number) },
            4 => Join { child: ThreadId(number), may_wait: flag },
            5 => Acquire { lock: one, mode, may_wait: !flag },
            6 => Release { lock: one, mode },
            7 => Request { lock: one, mode },
            8 => WaitBegin { condition: one, mutex: other },
            9 => WaitEnd { condition: one, mutex: other, woken_by: flag.then_some(EventIndex(number)), timed_out: !flag },
            10 => Signal { condition: one, broadcast: flag },
            11 => BarrierEnter { barrier: one, generation: number },
            12 => BarrierExit { barrier: one, generation: number },
            13 => Post { semaphore: one },
            14 => Take { semaphore: one },
            15 => OnceBegin { once: one },
            16 => OnceDone { once: one },
            17 => OnceSeen { once: one },
            18 => ReleaseObject { object: one },
            19 => AcquireObject { object: one },
            20 => Blocked { on: one },
            _ => Other(OtherOp::Yields),
        }
    });
    prop_oneof![4 => plain, 2 => atomic, 3 => rest]
}

/// Events of which a few in a row share what a stretch shares.
fn events() -> impl Strategy<Value = Vec<Event>> {
    let stretch = (0..3_u32, 0..3_u32, 0..4_u32, prop::collection::vec((0..5_u32, kind()), 1..20)).prop_map(
        |(thread, context, ordinal, events)| {
            let event =
                |(site, kind)| Event { thread: ThreadId(thread), site: SiteId(site), context: ContextId(context), ordinal, kind };
            events.into_iter().map(event).collect::<Vec<_>>()
        },
    );
    prop::collection::vec(stretch, 0..12).prop_map(|stretches| stretches.concat())
}

fn same(packed: &Events, plain: &[Event]) {
    assert_eq!(packed.len(), plain.len());
    assert!(packed.iter().eq(plain.iter().copied()));
    assert!(packed.iter().rev().eq(plain.iter().rev().copied()));
    for (place, event) in plain.iter().enumerate() {
        assert_eq!(packed.at(place), *event);
        assert_eq!(packed.kind(place), event.kind);
    }
    let others = plain.iter().enumerate().filter(|(_, event)| !matches!(event.kind, Plain(_)));
    let selected = packed.select([packed.besides_accesses()]).filter(|(_, event)| !matches!(event.kind, Plain(_)));
    assert!(selected.eq(others.map(|(place, event)| (EventIndex(place as u32), *event))));
    assert_eq!((packed.get(plain.len()), packed.last()), (None, plain.last().copied()));
    assert_eq!(packed.last_thread(), plain.iter().map(|event| event.thread).max());
    let begins = |place: usize| place == 0 || plain[place - 1].thread != plain[place].thread;
    let runs = (0..plain.len()).filter(|place| begins(*place));
    assert!(packed.runs().eq(runs.map(|place| (EventIndex(place as u32), plain[place].thread))));
}

proptest! {
    #[test]
    fn tell_what_was_put_in(plain in events()) {
        let packed = Events::from(plain.clone());
        same(&packed, &plain);
        prop_assert_eq!(&packed, &plain.iter().copied().collect::<Events>());
    }

    /// Accesses of the same site, size and class have a `like` in common, whatever came between them.
    #[test]
    fn tell_what_was_put_in_with_others_like_it(plain in events()) {
        let (mut packed, mut likes) = (Events::new(), HashMap::new());
        for &event in &plain {
            match event.kind {
                Plain(access) if !access.atomic => {
                    let like: &mut Like = likes.entry((event.site, access.size, access.class)).or_default();
                    packed.push_like(like, (event.thread, event.context, event.ordinal), event.site, access);
                }
                _ => packed.push(event),
            }
        }
        same(&packed, &plain);
    }

    #[test]
    fn tell_what_was_changed(plain in events(), kinds in prop::collection::vec((any::<prop::sample::Index>(), kind()), 0..20)) {
        prop_assume!(!plain.is_empty());
        let (mut packed, mut plain) = (Events::from(plain.clone()), plain);
        for (place, kind) in kinds {
            let place = place.index(plain.len());
            packed.set_kind(place, kind);
            plain[place].kind = kind;
        }
        same(&packed, &plain);
        packed.change(|place, event| event.context = ContextId(event.context.0 + place as u32 / 3));
        for (place, event) in plain.iter_mut().enumerate() {
            event.context.0 += place as u32 / 3;
        }
        same(&packed, &plain);
    }

    #[test]
    fn a_range_is_a_part(plain in events(), from in 0..200_usize, to in 0..200_usize, skipped in 0..30_usize) {
        let packed = Events::from(plain.clone());
        let end = to.min(plain.len());
        let part = &plain[from.min(end)..end];
        prop_assert!(packed.range(from..to).eq(part.iter().copied()));
        prop_assert!(packed.range(from..to).skip(skipped).step_by(3).eq(part.iter().skip(skipped).step_by(3).copied()));
        prop_assert_eq!(packed.range(from..to).len(), part.len());
    }
}

/// More shapes than are worth a number each.
#[test]
fn events_that_have_little_in_common_are_kept_whole() {
    let event = |number: u32| Event {
        thread: ThreadId(0),
        site: SiteId(number),
        context: ContextId(0),
        ordinal: number,
        kind: match number % 3 {
            0 => Plain(Access {
                address: Address(u64::from(number) << 33),
                size: number,
                class: AccessClass::Write,
                atomic: false,
            }),
            1 => Atomic {
                access: Access { address: Address(u64::from(number) << 31), size: 8, class: AccessClass::Read, atomic: true },
                op: AtomicOp::Load,
                order: MemoryOrder::Relaxed,
                value: u64::from(number) << 20 | 1,
            },
            _ => Acquire { lock: Address(u64::from(number) * 3), mode: LockMode::Exclusive, may_wait: true },
        },
    };
    let plain: Vec<Event> = (0..20_000).map(event).collect();
    same(&Events::from(plain.clone()), &plain);
}
