//! Orders of the trace's events that interleave two units with a third one, and those that do not.

use super::Suspect;
use super::units::Units;
use crate::deciders::{Decision, Question, Stage, asked};
use rashomon_event::{EventIndex, EventKind};

/// Events of units that run undivided.
const MOST_UNDIVIDED: usize = 10_000;

pub(super) struct Orders<'q, 'a, 't> {
    pub question: &'q Question<'a, 't>,
    pub units: &'q Units,
}

impl Orders<'_, '_, '_> {
    /// The order in which the units are interleaved, and those in which they are not.
    pub fn of(&self, suspect: &Suspect<'_>) -> (Option<Vec<EventIndex>>, Vec<Vec<EventIndex>>) {
        let Suspect { violation, before, unit, other } = suspect;
        let at_check = self.units.held.get(&violation.check);
        // A lock that is held all the way is not taken again.
        let is_new = |begin: &EventIndex| !at_check.is_some_and(|check| check.contains(begin));
        let second = self.units.held.get(&violation.act).and_then(|held| held.iter().copied().find(is_new));
        let second = second.unwrap_or(unit.begin);
        let last = violation.between[0].max(violation.between[1]);
        let remote = self.undivided(other.outermost, self.end_of(other.outermost, last));
        let local = self.undivided(second, self.end_of(second, violation.act));
        let whole = self.undivided(before.begin, self.end_of(second, violation.act));
        let (mut violated, mut serial) = (None, Vec::new());
        if let (Some(remote), Some(local)) = (&remote, &local)
            && let Some(prefix) = self.before(&[second, other.outermost])
        {
            violated = Some([prefix.as_slice(), remote, local].concat());
            serial.push([prefix.as_slice(), local, remote].concat());
        }
        if let (Some(remote), Some(whole)) = (&remote, &whole)
            && let Some(prefix) = self.before(&[before.begin, other.outermost])
        {
            serial.push([prefix.as_slice(), remote, whole].concat());
        }
        (violated, serial)
    }

    /// The end of a section, or the access in it where the trace has none.
    fn end_of(&self, begin: EventIndex, access: EventIndex) -> EventIndex {
        self.units.ends.get(&begin).map_or(access, |end| access.max(*end))
    }

    /// Events of a thread, if none of them waits for another thread.
    fn undivided(&self, begin: EventIndex, end: EventIndex) -> Option<Vec<EventIndex>> {
        let index = self.question.index;
        let ((thread, first), (_, last)) = (index.place(begin), index.place(end));
        let events = index.threads.get(thread as usize)?.get(first as usize..=last as usize)?;
        let waits = |at: &EventIndex| {
            matches!(
                index.trace.event(*at).kind,
                EventKind::Join { .. }
                    | EventKind::WaitBegin { .. }
                    | EventKind::BarrierEnter { .. }
                    | EventKind::BarrierExit { .. }
                    | EventKind::Take { .. }
                    | EventKind::Observe { .. }
                    | EventKind::Blocked { .. }
            )
        };
        (events.len() <= MOST_UNDIVIDED && !events.iter().any(waits)).then(|| events.to_vec())
    }

    /// An order after which both events are next in their threads.
    fn before(&self, goals: &[EventIndex]) -> Option<Vec<EventIndex>> {
        for stage in [Stage::Causal, Stage::Synchronisation, Stage::DespiteAtomics] {
            for decider in asked(self.question.options, stage) {
                if let Decision::Witness(order) = decider.decide(self.question, goals) {
                    return Some(order);
                }
            }
        }
        None
    }
}
