//! A witness told as in Fig. 9 of Shacham et al. 2007: what happened to the memory in question, under which locks, and where both
//! threads stand in the end.
//!
//! Told from the trace of the execution that proves it, so the order is the one in which things happened. Left out are all other
//! accesses, and locks that were not held at one of these.

use crate::findings::compose::Composer;
use crate::findings::describe::access_class;
use crate::findings::identity::is_system;
use crate::findings::symbols::Symbols;
use rashomon_event::finding::Step;
use rashomon_event::library::is_library;
use rashomon_event::{Access, Address, ContextId, EventIndex, EventKind, Frame, SiteId, ThreadId};
use rashomon_trace::GoalRecord;

/// The most steps told; the last ones are.
const MAX_STEPS: usize = 24;

/// The steps, and how many earlier ones are left out.
pub fn steps<S: Symbols + ?Sized>(composer: &Composer<'_, S>) -> (Vec<Step>, usize) {
    let trace = &composer.loaded.trace;
    let [one, other] = composer.loaded.goals.as_slice() else { return (Vec::new(), 0) };
    let from = one.address.0.max(other.address.0);
    let to = (one.address.0.saturating_add(one.size)).min(other.address.0.saturating_add(other.size));
    let touches = |access: &Access| access.address.0 < to && access.address.0.saturating_add(u64::from(access.size)) > from;
    let mut held: Vec<Vec<(Address, EventIndex)>> = vec![Vec::new(); trace.threads.len()];
    let mut told: Vec<EventIndex> = Vec::new();
    for (index, event) in trace.indices().zip(&trace.events) {
        let Some(held) = held.get_mut(event.thread.index()) else { continue };
        match event.kind {
            EventKind::Acquire { lock, .. } | EventKind::WaitEnd { mutex: lock, .. } => held.push((lock, index)),
            EventKind::Release { lock, .. } | EventKind::WaitBegin { mutex: lock, .. } => {
                if let Some(at) = held.iter().rposition(|(other, _)| *other == lock) {
                    held.remove(at);
                }
            }
            _ if event.access().is_some_and(|access| touches(&access)) => {
                told.extend(held.iter().map(|(_, taken)| *taken));
                told.push(index);
            }
            _ => {}
        }
    }
    for goal in [one, other] {
        told.extend(held.get(goal.thread.index()).into_iter().flatten().map(|(_, taken)| *taken));
    }
    told.sort_unstable();
    told.dedup();
    let skipped = told.len().saturating_sub(MAX_STEPS);
    let thread = |thread: ThreadId| trace.thread(thread).path.to_string();
    let mut steps: Vec<Step> = told[skipped..]
        .iter()
        .map(|&index| {
            let event = trace.event(index);
            let until = match event.access() {
                Some(access) => format!("has made a {}", access_class(&access)),
                None => composer.describer.action(&event),
            };
            Step { thread: thread(event.thread), until, place: own_place(composer, event.site, event.context) }
        })
        .collect();
    let stands = |goal: &GoalRecord| {
        let access = Access { address: goal.address, size: 0, class: goal.class, atomic: false };
        let until = format!("stands right before its {}", access_class(&access));
        Step { thread: thread(goal.thread), until, place: own_place(composer, goal.site, goal.context) }
    };
    steps.extend([stands(one), stands(other)]);
    (steps, skipped)
}

/// Where the program's own code was: how a library comes to take a lock is of no interest.
fn own_place<S: Symbols + ?Sized>(composer: &Composer<'_, S>, site: SiteId, context: ContextId) -> Option<Frame> {
    let stack = composer.describer.stack(site, context);
    let own = |frame: &Frame| !is_library(frame) && frame.file.as_deref().is_some_and(|file| !is_system(file));
    let at = stack.iter().position(own).unwrap_or(0);
    stack.into_iter().nth(at)
}
