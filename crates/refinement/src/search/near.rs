//! The order that goes along with the trace as far as its goals let it: threads synchronise in the order in which they did, but
//! for those that stand at their goals and those that wait for them.
//!
//! The shortest order of the model is the one that a person reads, but it may let threads take locks in another order than they
//! did without need, and leave out what others did before: in a program where what a thread does depends on when it comes, it
//! then does something else. This one keeps as much as it can, and may miss an order that there is.

use super::{Search, Window, written_out};
use crate::model::Model;
use crate::state::State;
use rashomon_event::EventIndex;
use rustc_hash::FxHashSet;

/// All events before the goals, goals excluded; `None`: this way does not lead there.
pub fn near(model: &Model<'_>, goals: &[EventIndex]) -> Option<Vec<EventIndex>> {
    let last = goals.iter().max()?.index();
    let mut limit: Vec<u32> =
        model.steps.iter().map(|steps| steps.partition_point(|step| step.event.index() <= last) as u32).collect();
    let mut places: Vec<(usize, u32)> = Vec::new();
    for &goal in goals {
        let place = (model.trace.event(goal).thread.index(), model.steps_before(goal));
        if places.iter().any(|other| other.0 == place.0) {
            return None;
        }
        limit[place.0] = place.1;
        places.push(place);
    }
    let of_goals = goals.iter().filter_map(|&goal| model.wait_of(goal)).collect();
    let mut search = Search {
        state: State::new(model, limit, of_goals),
        goals: &places,
        limits: &super::Limits::default(),
        tried: 0,
        states: 0,
        seen: FxHashSet::default(),
        waits: Vec::new(),
        kept: goals.iter().flat_map(|&goal| model.kept_at(goal)).collect(),
        classes: Vec::new(),
    };
    search.waits = search.state_waits(goals);
    if !search.along() {
        return None;
    }
    let path: Vec<u32> = search.state.path().collect();
    let start = vec![0; model.steps.len()];
    Some(written_out(model, Window::whole(model), &start, &path, goals))
}

impl Search<'_, '_, '_> {
    /// Whether the goals are reached.
    fn along(&mut self) -> bool {
        let threads = self.state.done.len();
        let next = |search: &Self, thread: usize| search.state.next(thread).map(|step| step.event);
        let mut open: std::collections::BTreeSet<(EventIndex, usize)> =
            (0..threads).filter_map(|thread| Some((next(self, thread)?, thread))).collect();
        // Threads that cannot go on now, and may later.
        let mut held: Vec<usize> = Vec::new();
        while !self.reached() {
            let Some((_, thread)) = open.pop_first() else { return false };
            if !self.state.enabled(thread) {
                held.push(thread);
                continue;
            }
            self.state.take(thread);
            let again = held.drain(..).chain([thread]);
            open.extend(again.filter_map(|thread| Some((self.state.next(thread)?.event, thread))));
        }
        true
    }
}
