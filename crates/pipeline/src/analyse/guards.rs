//! Guards of C++ static variables: whoever finds one set comes behind the initialisation.
//!
//! Compiled code looks at a guard's first byte by itself, with an atomic load, and calls the library only where the variable is
//! not initialised (Itanium C++ ABI §3.3.3). To a prediction the load might come before the initialisation, and find nothing:
//! the code behind it would not run then, but which code a value leads to is not recorded. So a load that finds the guard set
//! becomes [`EventKind::OnceSeen`], as a call of `pthread_once` that comes too late is. Happens-before stays what it was: the
//! load acquired what the end of the initialisation had passed on.

use rashomon_event::{Address, AtomicOp, EventKind, Trace};
use rustc_hash::FxHashMap;

/// Of a guard's value: the variable is initialised.
const IS_SET: u64 = 1;

pub(super) fn recognise(trace: &mut Trace) {
    // By thread: the variable that it has just initialised. What it does next is to set the guard.
    let mut done: FxHashMap<u32, Address> = FxHashMap::default();
    let mut guards: FxHashMap<Address, Address> = FxHashMap::default();
    if !trace.events.may_have(|kind| matches!(kind, EventKind::OnceDone { .. })) {
        return;
    }
    let mut seen: Vec<(usize, Address)> = Vec::new();
    for (place, event) in trace.events.iter().enumerate() {
        let before = done.remove(&event.thread.0);
        match event.kind {
            EventKind::OnceDone { once } => _ = done.insert(event.thread.0, once),
            EventKind::Atomic { access, op: AtomicOp::Store, value, .. } => match before {
                Some(once) if value & IS_SET != 0 => _ = guards.insert(access.address, once),
                _ => _ = guards.remove(&access.address),
            },
            EventKind::Atomic { access, op: AtomicOp::Load, order, value } if order.acquires() && value & IS_SET != 0 => {
                if let Some(&once) = guards.get(&access.address) {
                    seen.push((place, once));
                }
            }
            _ => {}
        }
    }
    for (place, once) in seen {
        trace.events.set_kind(place, EventKind::OnceSeen { once });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rashomon_event::{Access, AccessClass, ContextId, Event, MemoryOrder, Mode, SiteId, ThreadId};

    const VARIABLE: Address = Address(16);
    const GUARD: Address = Address(1 << 20);
    const FOUND: EventKind = EventKind::OnceSeen { once: VARIABLE };

    fn atomic(op: AtomicOp, class: AccessClass, order: MemoryOrder, value: u64) -> EventKind {
        let access = Access { address: GUARD, size: 1, class, atomic: true };
        EventKind::Atomic { access, op, order, value }
    }

    fn look(value: u64) -> EventKind {
        atomic(AtomicOp::Load, AccessClass::Read, MemoryOrder::Acquire, value)
    }

    fn set() -> EventKind {
        atomic(AtomicOp::Store, AccessClass::Write, MemoryOrder::Release, 1)
    }

    fn recognised(events: &[(u32, EventKind)]) -> Vec<EventKind> {
        let event = |&(thread, kind): &(u32, EventKind)| Event {
            thread: ThreadId(thread),
            site: SiteId(0),
            context: ContextId::ROOT,
            ordinal: 0,
            kind,
        };
        let mut trace = Trace::of_events(Mode::Serial, events.iter().map(event));
        recognise(&mut trace);
        trace.events.iter().map(|event| event.kind).collect()
    }

    #[test]
    fn a_load_that_finds_the_guard_set_comes_behind_the_initialisation() {
        let (begin, done) = (EventKind::OnceBegin { once: VARIABLE }, EventKind::OnceDone { once: VARIABLE });
        let events = [(0, look(0)), (0, begin), (1, look(0)), (0, done), (1, look(0)), (0, set()), (1, look(1)), (0, look(1))];
        let mut expected: Vec<_> = events.iter().map(|(_, kind)| *kind).collect();
        expected[6..].fill(FOUND);
        assert_eq!(recognised(&events), expected);
    }

    #[test]
    fn an_atomic_that_the_program_sets_itself_is_no_guard() {
        let done = EventKind::OnceDone { once: VARIABLE };
        let events = [(0, done), (0, EventKind::Fence { order: MemoryOrder::SeqCst }), (0, set()), (1, look(1))];
        assert_eq!(recognised(&events)[3], look(1));
        let events = [(0, done), (0, set()), (1, set()), (1, look(1))];
        assert_eq!(recognised(&events)[3], look(1));
    }
}
