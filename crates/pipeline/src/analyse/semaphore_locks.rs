//! Semaphores that are used as locks, as locks.
//!
//! A semaphore that begins with one, and that each thread gives back which took it, excludes its sections from each other. As a
//! semaphore it would order them, as a take needs the posts before it: nobody would see that they may come in another order. Here
//! its takes become acquisitions and its posts releases, in the trace of which that holds throughout. Happens-before stays what
//! it was: each take received what the posts before it had passed on, and so does each acquisition.
//!
//! Limit. Whether a take waits is not recorded, so that no deadlock is predicted from these locks; exploration finds those.

use rashomon_event::{Address, EventIndex, EventKind, EventSet, LockMode, MadeLock, ThreadId, Trace};
use rustc_hash::FxHashMap;

/// Who holds a semaphore.
struct Semaphore {
    holder: Option<ThreadId>,
    is_lock: bool,
}

impl Semaphore {
    /// `takes`: or else gives back.
    fn step(&mut self, thread: ThreadId, takes: bool) {
        let expected = if takes { None } else { Some(thread) };
        self.is_lock &= self.holder == expected;
        self.holder = takes.then_some(thread);
    }
}

pub(super) fn recognise(trace: &mut Trace) {
    let of_one = trace.semaphores.iter().filter(|(_, count)| **count == 1);
    let mut known: FxHashMap<Address, Semaphore> =
        of_one.map(|(&semaphore, _)| (semaphore, Semaphore { holder: None, is_lock: true })).collect();
    if known.is_empty() {
        return;
    }
    let operation = |kind: &EventKind| match *kind {
        EventKind::Take { semaphore } => Some((semaphore, true)),
        EventKind::Post { semaphore } => Some((semaphore, false)),
        _ => None,
    };
    let others: Vec<EventIndex> = EventSet::union([trace.events.besides_accesses()]).collect();
    for event in others.iter().map(|index| trace.event(*index)) {
        if let Some((semaphore, takes)) = operation(&event.kind)
            && let Some(semaphore) = known.get_mut(&semaphore)
        {
            semaphore.step(event.thread, takes);
        }
    }
    known.retain(|_, semaphore| semaphore.is_lock);
    for event in others {
        let semaphore = operation(&trace.kind(event)).filter(|(semaphore, _)| known.contains_key(semaphore));
        let Some((lock, takes)) = semaphore else { continue };
        let mode = LockMode::Exclusive;
        let kind = if takes { EventKind::Acquire { lock, mode, may_wait: false } } else { EventKind::Release { lock, mode } };
        trace.events.set_kind(event.index(), kind);
        trace.made_locks.insert(lock, MadeLock::Semaphore);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rashomon_event::{ContextId, Event, Mode, SiteId};

    const ONE: Address = Address(16);
    const TAKE: bool = true;
    const POST: bool = false;

    /// Whether it is a lock then.
    fn is_lock(count: u64, operations: &[(u32, bool)]) -> bool {
        let event = |&(thread, takes): &(u32, bool)| Event {
            thread: ThreadId(thread),
            site: SiteId(0),
            context: ContextId::ROOT,
            ordinal: 0,
            kind: if takes { EventKind::Take { semaphore: ONE } } else { EventKind::Post { semaphore: ONE } },
        };
        let mut trace = Trace::of_events(Mode::Serial, operations.iter().map(event));
        trace.semaphores.insert(ONE, count);
        recognise(&mut trace);
        let made = trace.made_locks.contains_key(&ONE);
        let takes = trace.events.iter().filter(|event| matches!(event.kind, EventKind::Acquire { .. })).count();
        let posts = trace.events.iter().filter(|event| matches!(event.kind, EventKind::Release { .. })).count();
        assert_eq!((takes + posts > 0, takes + posts == operations.len()), (made, made));
        made
    }

    #[test]
    fn what_everybody_gives_back_is_a_lock() {
        assert!(is_lock(1, &[(0, TAKE), (0, POST), (1, TAKE), (1, POST), (0, TAKE)]));
    }

    #[test]
    fn what_is_handed_over_is_none() {
        assert!(!is_lock(1, &[(0, TAKE), (1, POST), (1, TAKE)]));
        assert!(!is_lock(1, &[(0, TAKE), (0, POST), (0, POST), (1, TAKE), (1, TAKE)]));
        assert!(!is_lock(1, &[(0, POST), (1, TAKE), (1, TAKE)]));
    }

    #[test]
    fn nor_is_what_begins_with_none_or_two() {
        assert!(!is_lock(0, &[(0, TAKE), (0, POST)]));
        assert!(!is_lock(2, &[(0, TAKE), (0, POST)]));
    }
}
