//! A window of the trace around goals: what comes before is as it was, and what comes behind does not come.

use super::{Part, Target, most_of};
use crate::index::Index;
use rashomon_event::EventIndex;
use std::ops::Range;

/// The window of that many events, behind the goals as far as may be needed to end what begins before them. `None`: it does not
/// hold all that they are about.
pub fn range(length: usize, target: Target<'_>, events: usize) -> Option<Range<usize>> {
    let stands = target.stands.iter().filter(|stand| stand.has_begun()).map(|stand| stand.from);
    let orders = target.orders.iter().flat_map(|&(one, other)| [one, other]);
    let all: Vec<EventIndex> = target.goals.iter().copied().chain(stands).chain(orders).collect();
    let (first, last) = (all.iter().min()?.index(), all.iter().max()?.index());
    let spare = events.checked_sub(last - first + 1)?;
    let to = (last + 1 + spare / 2).min(length);
    Some(to.saturating_sub(events)..to)
}

/// What may be ordered anew there. `None`: goals, or stands, are outside.
pub fn around(index: &Index<'_>, target: Target<'_>, events: usize) -> Option<Part> {
    let length = index.trace.events.len();
    let Range { start: from, end: to } = range(length, target, events)?;
    let threads = 0..index.thread_count();
    let counts = |bound: usize| threads.clone().map(move |thread| index.threads.before(thread, EventIndex(bound as u32)));
    let (prefix, mut cut): (Vec<u32>, Vec<u32>) = (counts(from).collect(), counts(to).collect());
    for &goal in target.goals {
        let (thread, at) = index.place(goal);
        cut[thread as usize] = cut[thread as usize].min(at);
    }
    for stand in target.stands {
        let thread = stand.thread.index();
        cut[thread] = cut[thread].min(most_of(index, stand));
    }
    let holds = prefix.iter().zip(&cut).all(|(prefix, cut)| prefix <= cut);
    holds.then_some(Part { from: EventIndex(from as u32), prefix, cut, is_closed: from == 0 && to == length })
}
