//! Orders of the trace's events that interleave two units with a third one, and those that do not.

use super::Suspect;
use super::units::Units;
use crate::deciders::{Decision, Question, Stage, asked};
use rashomon_event::{Address, EventIndex, EventKind, LockMode};

/// Events of units that run undivided.
const MOST_UNDIVIDED: usize = 10_000;

pub(super) struct Orders<'q, 'a, 't> {
    pub question: &'q Question<'a, 't>,
    pub units: &'q Units,
}

impl Orders<'_, '_, '_> {
    /// Orders in which the units are interleaved, and those in which they are not. Of the former the later ones order less, of
    /// the latter only the first thread's unit is ordered: what a thread does behind may depend on what it saw.
    pub fn of(&self, suspect: &Suspect<'_>) -> (Vec<Vec<EventIndex>>, Vec<Vec<EventIndex>>) {
        let Suspect { violation, before, unit, other } = suspect;
        let at_check = self.held(violation.check);
        // A lock that is held all the way is not taken again.
        let second = self.held(violation.act).iter().copied().find(|begin| !at_check.contains(begin));
        let second = second.unwrap_or(unit.begin);
        let remote = violation.between.iter().map(|at| self.end_of(self.held(*at).first().copied().unwrap_or(*at), *at)).max();
        let remote = remote.and_then(|end| self.undivided(other.outermost, end));
        let local = self.undivided(second, self.end_of(second, violation.act));
        let (mut violated, mut serial) = (Vec::new(), Vec::new());
        if let (Some(remote), Some(local)) = (&remote, &local)
            && let Some(prefix) = self.before(&[second, other.outermost])
        {
            if !self.excludes(at_check, second, remote) {
                let last = violation.between[0].max(violation.between[1]);
                let cut = remote.partition_point(|at| *at <= last);
                violated = vec![
                    [prefix.as_slice(), remote, local].concat(),
                    [prefix.as_slice(), remote].concat(),
                    [prefix.as_slice(), &remote[..cut]].concat(),
                ];
            }
            serial.push([prefix.as_slice(), local].concat());
        }
        if let Some(remote) = &remote
            && let Some(prefix) = self.before(&[before.begin, other.outermost])
        {
            serial.push([prefix.as_slice(), remote].concat());
        }
        (violated, serial)
    }

    /// The same of a violation that happened: the trace up to its end, and up to its first unit with each thread's sections
    /// behind. What came before is the same in all of them, so that only this can make the difference.
    pub fn of_seen(&self, suspect: &Suspect<'_>) -> (Vec<Vec<EventIndex>>, Vec<Vec<EventIndex>>) {
        let Suspect { violation, before, unit, .. } = suspect;
        let trace = self.question.index.trace;
        let begin = self.held(violation.check).first().copied().unwrap_or(before.begin);
        let end = self.end_of(unit.begin, violation.act);
        let prefix: Vec<EventIndex> = trace.indices().take_while(|index| *index < begin).collect();
        let [first, second] = violation.between;
        let last = first.max(second);
        let last = self.end_of(self.held(last).first().copied().unwrap_or(last), last);
        let theirs = trace.event(last).thread;
        let of = |thread, until| {
            let behind = trace.indices().skip(prefix.len()).take_while(move |index| *index <= until);
            behind.filter(move |index| trace.event(*index).thread == thread)
        };
        let serial = [(unit.thread, end), (theirs, last)];
        let serial = serial.map(|(thread, until)| prefix.iter().copied().chain(of(thread, until)).collect());
        (vec![trace.indices().take_while(|index| *index <= end).collect()], serial.into())
    }

    fn held(&self, access: EventIndex) -> &[EventIndex] {
        self.units.held(access)
    }

    /// Whether a lock is held from the first unit to behind the second that the other thread takes, too.
    fn excludes(&self, held: &[EventIndex], second: EventIndex, remote: &[EventIndex]) -> bool {
        let trace = self.question.index.trace;
        let lock = |at: &EventIndex| match trace.kind(*at) {
            EventKind::Acquire { lock, mode, .. } => Some((lock, mode)),
            EventKind::WaitEnd { mutex, .. } => Some((mutex, LockMode::Exclusive)),
            _ => None,
        };
        let is_kept = |begin: &&EventIndex| self.units.ends.get(*begin).is_none_or(|end| second < *end);
        let kept: Vec<(Address, LockMode)> = held.iter().filter(is_kept).filter_map(lock).collect();
        remote.iter().filter_map(lock).any(|(taken, mode)| {
            kept.iter().any(|(lock, held)| *lock == taken && (mode == LockMode::Exclusive || *held == LockMode::Exclusive))
        })
    }

    /// The end of a section, or the access in it where the trace has none.
    fn end_of(&self, begin: EventIndex, access: EventIndex) -> EventIndex {
        self.units.ends.get(&begin).map_or(access, |end| access.max(*end))
    }

    /// Events of a thread, if none of them waits for another thread.
    fn undivided(&self, begin: EventIndex, end: EventIndex) -> Option<Vec<EventIndex>> {
        let index = self.question.index;
        let ((thread, first), (_, last)) = (index.place(begin), index.place(end));
        if first > last || (last - first) as usize >= MOST_UNDIVIDED {
            return None;
        }
        let waits = |at: EventIndex| {
            matches!(
                index.trace.kind(at),
                EventKind::Join { .. }
                    | EventKind::WaitBegin { .. }
                    | EventKind::BarrierEnter { .. }
                    | EventKind::BarrierExit { .. }
                    | EventKind::Take { .. }
                    | EventKind::AcquireObject { .. }
                    | EventKind::Blocked { .. }
            )
        };
        let events = || index.threads.range(thread as usize, first..last + 1);
        (!events().any(waits)).then(|| events().collect())
    }

    /// An order after which both events are next in their threads.
    fn before(&self, goals: &[EventIndex]) -> Option<Vec<EventIndex>> {
        for stage in [Stage::Causal, Stage::Synchronisation, Stage::DespiteAtomics] {
            for decider in asked(self.question.options, stage) {
                if self.question.options.deadline.is_over() {
                    return None;
                }
                if let Decision::Witness(order) = decider.decide(self.question, goals) {
                    return Some(order);
                }
            }
        }
        None
    }
}
