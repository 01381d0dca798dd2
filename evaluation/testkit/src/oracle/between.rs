//! Which accesses can come between two of another thread: the same search, whose states also tell which of them have.

use super::{Oracle, Rules, Sight, State};
use rashomon_event::{EventIndex, Trace};
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// Triples of one question.
pub const MOST_TRIPLES: usize = 128;

/// Of these triples (two events of one thread, and one of another thread in the middle) those that some reordering shows: the
/// middle one has run after the first one, and the last one is next. At most [`MOST_TRIPLES`].
pub fn come_between(
    trace: &Trace,
    rules: Rules,
    triples: &[[EventIndex; 3]],
    may_see: &dyn Fn(Sight) -> bool,
) -> BTreeSet<[EventIndex; 3]> {
    assert!(trace.events.len() <= 64 && triples.len() <= MOST_TRIPLES, "the oracle is for tiny traces");
    let oracle = Oracle::new(trace, rules, may_see);
    let start = (State { ran: 0, writers: BTreeMap::new(), missed: 0, changed: 0 }, 0u128);
    let mut seen = HashSet::from([start.clone()]);
    let mut stack = vec![start];
    let mut shown = BTreeSet::new();
    while let Some((state, between)) = stack.pop() {
        let next: Vec<u32> = (0..oracle.threads.len()).filter_map(|thread| oracle.next(&state, thread)).collect();
        let is_ready = |&event: &EventIndex| next.contains(&event.0) && oracle.may_be_next(&state, event.0);
        let of = triples.iter().enumerate();
        shown.extend(of.filter(|(bit, [.., last])| between >> bit & 1 == 1 && is_ready(last)).map(|(_, triple)| *triple));
        for &event in &next {
            let Some(after) = oracle.step(&state, event) else { continue };
            let is_between = |[first, middle, _]: &[EventIndex; 3]| middle.0 == event && state.ran >> first.0 & 1 == 1;
            let bits = triples.iter().enumerate().filter(|(_, triple)| is_between(triple));
            let after = (after, bits.fold(between, |between, (bit, _)| between | 1 << bit));
            if seen.insert(after.clone()) {
                stack.push(after);
            }
        }
    }
    shown
}
