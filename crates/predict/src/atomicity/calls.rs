//! Which calls of functions an event belongs to.
//!
//! Traces tell the path of call sites that leads to an event, but no returns. A call is over when its thread does something
//! outside of it: then the same path is another call. Limit: where a function is called again from the same place, and the thread
//! did nothing in between that is recorded, both are taken for one call.
//!
//! How far apart two accesses are is counted from the functions that have their critical sections in them: how many calls lead
//! from there to the lock or to the access, through a library's containers and guards, says nothing.

use rashomon_event::{ContextId, ThreadId, Trace};

/// How many calls lead from the function that has both sections in it, or in what it calls, to each of their functions.
pub(super) const MOST_CALLS: usize = 2;

/// What was called, and the number of the call: of the section's function first.
pub(super) type Around = [Option<(ContextId, u32)>; MOST_CALLS + 1];

/// Calls under way, by thread.
pub(super) struct Calls<'t> {
    trace: &'t Trace,
    depths: Vec<usize>,
    /// Outermost first, at the index of their depth.
    open: Vec<Vec<(ContextId, u32)>>,
    made: u32,
}

impl<'t> Calls<'t> {
    pub fn new(trace: &'t Trace) -> Self {
        Self { trace, depths: depths(trace), open: vec![Vec::new(); trace.threads.len()], made: 0 }
    }

    /// The thread is in `context` now, in a section that was begun in `begun`: the section's function is the innermost one that
    /// has both.
    pub fn around(&mut self, thread: ThreadId, context: ContextId, begun: ContextId) -> Around {
        let Some(open) = self.open.get_mut(thread.index()) else { return Around::default() };
        if open.last().is_none_or(|(innermost, _)| *innermost != context) {
            let mut new = Vec::new();
            let mut outer = Some(context);
            let mut common = 0;
            while let Some(context) = outer.filter(|_| new.len() <= self.depths.len()) {
                let depth = self.depths.get(context.index()).copied().unwrap_or_default();
                if open.get(depth).is_some_and(|(other, _)| *other == context) {
                    common = depth + 1;
                    break;
                }
                new.push(context);
                outer = parent(self.trace, context);
            }
            open.truncate(common);
            for context in new.into_iter().rev() {
                self.made = self.made.saturating_add(1);
                open.push((context, self.made));
            }
        }
        let mut at = begun;
        let common = loop {
            let depth = self.depths.get(at.index()).copied().unwrap_or_default();
            if open.get(depth).is_some_and(|(other, _)| *other == at) {
                break depth + 1;
            }
            match parent(self.trace, at) {
                Some(outer) if depth > 0 => at = outer,
                _ => break open.len(),
            }
        };
        let mut around = Around::default();
        for (place, call) in around.iter_mut().zip(open[..common].iter().rev()) {
            *place = Some(*call);
        }
        around
    }
}

/// Whether the nearest function that has both, within a few calls, has them in one call of it.
pub(super) fn are_of_one(one: &Around, other: &Around) -> bool {
    let called = |(context, call): (ContextId, u32)| {
        let same = other.iter().flatten().find(|(other, _)| *other == context)?;
        Some(same.1 == call)
    };
    one.iter().flatten().copied().find_map(called).unwrap_or(false)
}

fn parent(trace: &Trace, context: ContextId) -> Option<ContextId> {
    trace.contexts.get(context.index()).filter(|_| context != ContextId::ROOT).map(|node| node.parent)
}

/// How many callers each context has.
fn depths(trace: &Trace) -> Vec<usize> {
    let mut depths: Vec<Option<usize>> = vec![None; trace.contexts.len()];
    for number in 0..depths.len() {
        let mut path = Vec::new();
        let mut at = Some(ContextId(number as u32));
        let known = loop {
            match at {
                Some(context) if path.len() <= depths.len() => match depths.get(context.index()).copied().flatten() {
                    Some(depth) => break depth + 1,
                    None => path.push(context),
                },
                _ => break 0,
            }
            at = at.and_then(|context| parent(trace, context));
        };
        for (more, context) in path.into_iter().rev().enumerate() {
            if let Some(depth) = depths.get_mut(context.index()) {
                *depth = Some(known + more);
            }
        }
    }
    depths.into_iter().map(Option::unwrap_or_default).collect()
}
