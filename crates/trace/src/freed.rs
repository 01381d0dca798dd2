//! Uses of memory after its end: a block is freed, and something accesses it, or frees it once more, before its bytes are given
//! out again, whoever frees and whoever uses it, and whatever orders the two. A bug of the recorded execution itself.
//!
//! Guarantee: both happened in this order. That rests on the space of synthetic addresses ([`crate::space`]): an access to freed
//! memory is one to the freed object, until its bytes are given out again. The runtime holds freed blocks for a while, so that
//! they are not given out at once.
//!
//! Limits. Blocks of the heap alone. Of recordings with threads in parallel nothing is told, since their order is not that of the
//! accesses. Where a block ends twice and the runtime did not hold it in between it may have been given out, unseen (a thread
//! that is no longer observed), and nothing is told of it. What a process does when it is about to end is told as late.

use crate::misuse::{Misuse, MisuseRecord, Moment};
use rashomon_event::{
    Access, AccessClass, Address, Deadline, Event, EventIndex, EventKind, Mode, ObjectKind, OtherOp, SiteId, Trace,
};
use rustc_hash::{FxHashMap, FxHashSet};

/// Uses that are told of one recording.
const MOST: usize = 64;

/// The end of a block.
#[derive(Clone, Copy)]
struct End {
    at: Moment,
    late: bool,
}

/// The first use of each pair of places, up to the deadline. `again`: what follows where a block was freed that the runtime held.
pub(crate) fn uses_after_free(trace: &Trace, again: &FxHashSet<EventIndex>, deadline: Deadline) -> Vec<MisuseRecord> {
    if trace.mode != Mode::Serial {
        return Vec::new();
    }
    let mut ends: FxHashMap<u32, End> = FxHashMap::default();
    let mut twice: FxHashSet<u32> = FxHashSet::default();
    let mut told: FxHashSet<(SiteId, SiteId)> = FxHashSet::default();
    let mut found: Vec<(u32, MisuseRecord)> = Vec::new();
    let (mut late, mut alive) = (false, 0..0);
    for (number, event) in (0..).zip(deadline.bound(&trace.events)) {
        if matches!(event.kind, EventKind::Other(OtherOp::AsksForEnd)) {
            late = true;
        }
        let Some(access) = event.access() else { continue };
        let is_end = access.class == AccessClass::End;
        // What was looked at last lives, as most do.
        if !is_end && (ends.is_empty() || alive.contains(&access.address.0)) {
            continue;
        }
        let Some((object, range)) = block(trace, &access) else { continue };
        let at = moment(&event, number);
        if is_end {
            if range.contains(&alive.start) {
                alive = 0..0;
            }
            let is_certain = again.contains(&EventIndex(number + 1));
            if !is_certain && ends.insert(object, End { at, late }).is_some() {
                twice.insert(object);
            }
            if !is_certain {
                continue;
            }
        }
        let Some(end) = ends.get(&object) else {
            alive = range;
            continue;
        };
        if found.len() < MOST && told.insert((end.at.site, at.site)) {
            let record = MisuseRecord {
                misuse: Misuse::UseAfterFree,
                at,
                earlier: Some(end.at),
                object: Address(range.start),
                refused: false,
                late: end.late || late,
            };
            found.push((object, record));
        }
    }
    found.retain(|(object, _)| !twice.contains(object));
    found.into_iter().map(|(_, record)| record).collect()
}

/// The block of the heap that an access is in, and its bytes.
fn block(trace: &Trace, access: &Access) -> Option<(u32, std::ops::Range<u64>)> {
    let id = trace.object_at(access.address)?;
    let object = &trace.objects[id.index()];
    matches!(object.kind, ObjectKind::Heap { .. }).then(|| (id.0, object.base.0..object.base.0 + object.size))
}

const fn moment(event: &Event, number: u32) -> Moment {
    Moment { thread: event.thread, site: event.site, context: event.context, before: EventIndex(number) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rashomon_event::{Object, ThreadId};
    use std::iter;

    const BASE: u64 = 1 << 48;

    fn trace(mode: Mode, accesses: &[(u32, AccessClass)]) -> Trace {
        let mut events: Vec<Event> = Vec::new();
        for (site, &(thread, class)) in (0..).zip(accesses) {
            let kind = EventKind::Access(Access { address: Address(BASE), size: 4, class, atomic: false });
            events.push(Event {
                thread: ThreadId(thread),
                site: SiteId(site),
                context: rashomon_event::ContextId::ROOT,
                ordinal: 0,
                kind,
            });
        }
        let kind = ObjectKind::Heap { thread: ThreadId(0), site: SiteId(0), ordinal: 0 };
        let object = Object { kind, base: Address(BASE), size: 24, spare: 0, machine_base: 4096, born: None };
        Trace { objects: vec![object], ..Trace::of_events(mode, events) }
    }

    fn uses(mode: Mode, accesses: &[(u32, AccessClass)]) -> Vec<(u32, Option<u32>)> {
        uses_where(mode, accesses, iter::empty())
    }

    fn uses_where(mode: Mode, accesses: &[(u32, AccessClass)], again: impl IntoIterator<Item = u32>) -> Vec<(u32, Option<u32>)> {
        let again = again.into_iter().map(EventIndex).collect();
        let found = uses_after_free(&trace(mode, accesses), &again, Deadline::NEVER);
        found.iter().map(|record| (record.at.site.0, record.earlier.map(|end| end.site.0))).collect()
    }

    use AccessClass::{End, Read, Write};

    #[test]
    fn what_comes_behind_the_end_of_a_block_is_told() {
        let accesses = [(0, Write), (1, Read), (0, End), (1, Read), (0, Write)];
        assert_eq!(uses(Mode::Serial, &accesses), [(3, Some(2)), (4, Some(2))]);
        assert_eq!(uses(Mode::Serial, &accesses[..3]), []);
    }

    #[test]
    fn of_an_order_that_is_not_that_of_the_accesses_nothing_is_told() {
        assert_eq!(uses(Mode::Free, &[(0, End), (1, Read)]), []);
    }

    #[test]
    fn a_block_that_ends_twice_may_have_lived_between() {
        assert_eq!(uses(Mode::Serial, &[(0, End), (1, Read), (1, End)]), []);
    }

    #[test]
    fn a_block_that_was_held_did_not_live_between() {
        assert_eq!(uses_where(Mode::Serial, &[(0, End), (1, End)], [2]), [(1, Some(0))]);
        assert_eq!(uses_where(Mode::Serial, &[(0, End), (1, Read), (1, End)], [3]), [(1, Some(0)), (2, Some(0))]);
    }
}
