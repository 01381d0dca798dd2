//! Two executions compared: the first pair of dependent operations that they make in different orders.

use rashomon_event::{Event, EventIndex, EventKind, ThreadPath, Trace};
use std::collections::HashMap;

/// Operations behind the place where two executions part among which a pair is looked for.
const MAX_COMPARED: usize = 20_000;

/// An operation's name in every execution: thread, ordinal, and for an access its code and how often that was executed there
/// before.
type Name = (ThreadPath, u32, Option<(u64, u32)>);

fn names(trace: &Trace) -> Vec<Name> {
    let mut counts: HashMap<(u32, u32, u64), u32> = HashMap::new();
    let of = |event: Event| {
        let access = matches!(event.kind, EventKind::Access(_)).then(|| {
            let address = trace.site(event.site).address;
            let count = counts.entry((event.thread.0, event.ordinal, address)).or_default();
            *count += 1;
            (address, *count)
        });
        (trace.thread(event.thread).path.clone(), event.ordinal, access)
    };
    trace.events.iter().map(of).collect()
}

/// What an operation concerns: synchronisation objects by address, and whether it is more than a look.
fn objects(kind: &EventKind) -> [Option<u64>; 2] {
    let one = |object: &rashomon_event::Address| [Some(object.0), None];
    match kind {
        EventKind::Acquire { lock, .. } | EventKind::Release { lock, .. } | EventKind::Request { lock, .. } => one(lock),
        EventKind::WaitBegin { condition, mutex } | EventKind::WaitEnd { condition, mutex, .. } => {
            [Some(condition.0), Some(mutex.0)]
        }
        EventKind::Signal { condition, .. } => one(condition),
        EventKind::BarrierEnter { barrier, .. } | EventKind::BarrierExit { barrier, .. } => one(barrier),
        EventKind::Post { semaphore } | EventKind::Take { semaphore } => one(semaphore),
        EventKind::OnceBegin { once } | EventKind::OnceDone { once } | EventKind::OnceSeen { once } => one(once),
        EventKind::ReleaseObject { object } | EventKind::AcquireObject { object } => one(object),
        _ => [None, None],
    }
}

fn depend(one: Event, other: Event) -> bool {
    match (one.access(), other.access()) {
        (Some(one), Some(other)) => one.overlaps(&other) && (one.class.writes() || other.class.writes()),
        (None, None) => objects(&one.kind).into_iter().flatten().any(|object| objects(&other.kind).contains(&Some(object))),
        _ => false,
    }
}

/// The first dependent pair that the passing execution makes the other way round, or whose first it never makes.
pub(super) fn critical(failing: &Trace, passing: &Trace) -> Option<(EventIndex, EventIndex)> {
    let (names, others) = (names(failing), names(passing));
    let parted = names.iter().zip(&others).position(|(one, other)| one != other).unwrap_or(names.len().min(others.len()));
    let places: HashMap<&Name, usize> = others.iter().enumerate().map(|(at, name)| (name, at)).collect();
    let place = |at: usize| places.get(&names[at]).copied();
    let end = names.len().min(parted + MAX_COMPARED);
    for later in parted..end {
        let second = failing.events.at(later);
        for earlier in parted..later {
            let first = failing.events.at(earlier);
            if first.thread == second.thread || !depend(first, second) {
                continue;
            }
            let reversed = match (place(earlier), place(later)) {
                (Some(first), Some(second)) => second < first,
                (None, Some(_)) => true,
                _ => false,
            };
            if reversed {
                return Some((EventIndex(earlier as u32), EventIndex(later as u32)));
            }
        }
    }
    None
}

/// The same where the failing execution ended before it came to the second of the pair: that is an event of the passing one,
/// which makes it before the first.
pub(super) fn prevented(failing: &Trace, passing: &Trace) -> Option<(EventIndex, EventIndex)> {
    let (names, others) = (names(failing), names(passing));
    let parted = names.iter().zip(&others).position(|(one, other)| one != other).unwrap_or(names.len().min(others.len()));
    let makes: HashMap<&Name, usize> = names.iter().enumerate().map(|(at, name)| (name, at)).collect();
    let end = others.len().min(parted + MAX_COMPARED);
    for second in (parted..end).filter(|&at| !makes.contains_key(&others[at])) {
        let depends = |&first: &usize| {
            let (one, other) = (passing.events.at(first), passing.events.at(second));
            one.thread != other.thread && depend(one, other)
        };
        let firsts = (second + 1..end).filter(depends).filter_map(|first| makes.get(&others[first]).copied());
        if let Some(first) = firsts.filter(|&first| first >= parted).min() {
            return Some((EventIndex(first as u32), EventIndex(second as u32)));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use rashomon_event::{Access, AccessClass, Address, ContextId, Mode, Site, SiteId, ThreadId, ThreadInfo};

    /// Each thread makes accesses of its own code to one place: writes, or reads.
    fn trace(accesses: &[(u32, AccessClass)]) -> Trace {
        let event = |&(thread, class): &(u32, AccessClass)| Event {
            thread: ThreadId(thread),
            site: SiteId(0),
            context: ContextId::ROOT,
            ordinal: 0,
            kind: EventKind::Access(Access { address: Address(64), size: 4, class, atomic: false }),
        };
        let thread =
            |spawn_ordinal: u32| ThreadInfo { path: ThreadPath(vec![spawn_ordinal]), parent: None, spawn_ordinal, stack: None };
        Trace {
            threads: (0..2).map(thread).collect(),
            sites: vec![Site { address: 16, module: None, offset: 16 }],
            ..Trace::of_events(Mode::Serial, accesses.iter().map(event))
        }
    }

    use AccessClass::{Read, Write};

    #[test]
    fn what_the_failing_execution_does_the_other_way_round() {
        let (failing, passing) = (trace(&[(1, Read), (0, Write)]), trace(&[(0, Write), (1, Read)]));
        assert_eq!(critical(&failing, &passing), Some((EventIndex(0), EventIndex(1))));
        assert_eq!(prevented(&failing, &passing), None);
    }

    #[test]
    fn what_the_failing_execution_came_not_to() {
        let (failing, passing) = (trace(&[(1, Read)]), trace(&[(0, Write), (1, Read)]));
        assert_eq!(critical(&failing, &passing), None);
        assert_eq!(prevented(&failing, &passing), Some((EventIndex(0), EventIndex(0))));
        let independent = trace(&[(0, Read), (1, Read)]);
        assert_eq!(prevented(&failing, &independent), None);
    }
}
