//! Which events can be next while other threads have run so far: the same search, asked of every state.

use super::{Oracle, Rules, Sight, State};
use rashomon_event::{EventIndex, EventKind, Stand, Trace};
use std::collections::{BTreeMap, HashSet};
use std::ops::Range;

/// Of these events, each with where others have to stand, those that some reordering shows. What comes before the window runs in
/// the order of the trace, and what comes behind it does not come.
pub fn can_meet(
    trace: &Trace,
    rules: Rules,
    window: Range<usize>,
    meetings: &[(EventIndex, Vec<Stand>)],
    may_see: &dyn Fn(Sight) -> bool,
) -> Vec<bool> {
    assert!(trace.events.len() <= 64, "the oracle is for tiny traces");
    let oracle = Oracle::new(trace, rules, may_see);
    let nothing = State { ran: 0, writers: BTreeMap::new(), missed: 0, changed: 0 };
    let start = trace.indices().take(window.start).fold(nothing, |state, event| {
        let after = oracle.step(&state, event.0);
        after.expect("a trace is one of its reorderings")
    });
    let mut seen = HashSet::from([start.clone()]);
    let mut stack = vec![start];
    let mut shown = vec![false; meetings.len()];
    while let Some(state) = stack.pop() {
        for ((next, stands), shown) in meetings.iter().zip(&mut shown) {
            let thread = trace.event(*next).thread.index();
            let is_next = oracle.next(&state, thread) == Some(next.0) && oracle.may_be_next(&state, next.0);
            *shown |= is_next && stands.iter().all(|stand| oracle.stands(&state, *stand));
        }
        for thread in 0..oracle.threads.len() {
            let next = oracle.next(&state, thread).filter(|event| (*event as usize) < window.end);
            if let Some(after) = next.and_then(|event| oracle.step(&state, event))
                && seen.insert(after.clone())
            {
                stack.push(after);
            }
        }
    }
    shown
}

impl Oracle<'_> {
    /// Whether a thread has run so far. If it has to have begun, it has read what it read.
    fn stands(&self, state: &State, stand: Stand) -> bool {
        let ran = |event: u32| state.ran >> event & 1 == 1;
        let Some(own) = self.threads.get(stand.thread.index()) else { return false };
        let within = own.iter().all(|&event| {
            let has_to = event < stand.from.0;
            let may_not = event >= stand.to.0;
            !(has_to && !ran(event) || may_not && ran(event))
        });
        let mut events = self.trace.events.iter().enumerate();
        let created = events.all(|(fork, other)| other.kind != EventKind::Fork { child: stand.thread } || ran(fork as u32));
        let changed = own.iter().any(|&event| state.changed >> event & 1 == 1);
        within && (!stand.has_begun() || created && !changed)
    }
}
