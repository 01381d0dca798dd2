//! Replays of a recording: the same few show all races of it that nothing orders.
//!
//! Of a long recording a replay with all plain accesses takes seconds to be written and read, and too much memory to be kept.
//! Then further ones keep the accesses of those places alone between which a race may be unordered.

use crate::analyse::modules::Unseen;
use rashomon_event::{Finding, FindingKind, Frame, KeptPlace, Schedule};
use rashomon_trace::LoadedTrace;
use std::collections::BTreeSet;

/// Events of a replay that is kept in memory.
const MOST_REMEMBERED: usize = 1 << 21;

/// What replays of one recorded process have shown, so that no other one need be executed: each finding of it is looked for in
/// the same ones.
#[derive(Default)]
pub struct Known {
    /// What was not seen in them.
    pub(crate) unseen: Unseen,
    /// The first ones, where they are not large.
    pub(crate) replays: Vec<LoadedTrace>,
    /// A replay with all its accesses is too large to be kept: further ones have those of few places alone.
    is_large: bool,
    /// Places of what may be unordered in the recording.
    places: BTreeSet<KeptPlace>,
    /// Those of `replays`, if they have those of few places alone.
    kept: BTreeSet<KeptPlace>,
}

/// One replay.
pub(crate) enum Replayed {
    /// One of those that are kept.
    Known(usize),
    Once(Box<LoadedTrace>),
}

impl Replayed {
    pub(crate) fn get<'a>(&'a self, known: &'a Known) -> &'a LoadedTrace {
        match self {
            Self::Known(number) => &known.replays[*number],
            Self::Once(loaded) => loaded,
        }
    }
}

impl Known {
    /// Of the replays in memory.
    pub(crate) fn events(&self) -> usize {
        self.replays.iter().map(|replayed| replayed.trace.events.len()).sum()
    }

    /// The replays.
    pub(crate) fn forget(&mut self) {
        self.replays.clear();
    }

    /// A race that may be unordered in the recording, so that its accesses are in the replays that are made for others.
    pub(crate) fn note(&mut self, finding: &Finding) {
        if finding.kind == FindingKind::DataRace && self.places.len() + 2 * FRAMES <= MOST_PLACES {
            // Where a function of the runtime made an access, its place is further out.
            let frames = finding.sides.iter().flat_map(|side| side.stack.iter().take(FRAMES));
            self.places.extend(frames.filter_map(place_of));
        }
    }

    /// Replays that lack a place are of no use for a race there.
    pub(crate) fn widen(&mut self) {
        if self.is_large && self.kept != self.places {
            self.replays.clear();
            self.kept.clone_from(&self.places);
        }
    }

    /// One more replay. Where all its accesses are too many, further ones keep those of few places.
    pub(crate) fn take(&mut self, loaded: LoadedTrace) -> Replayed {
        if loaded.trace.events.len() > MOST_REMEMBERED {
            self.is_large = true;
            return Replayed::Once(Box::new(loaded));
        }
        if self.is_large {
            self.kept.clone_from(&self.places);
        }
        self.replays.push(loaded);
        Replayed::Known(self.replays.len() - 1)
    }

    /// The schedule of further replays, if they keep the accesses of few places alone.
    pub(crate) fn narrowed(&self, recorded: &Schedule) -> Option<Schedule> {
        let is_narrow = self.is_large && recorded.kept.is_empty() && !self.places.is_empty();
        is_narrow.then(|| Schedule { kept: self.places.iter().cloned().collect(), ..recorded.clone() })
    }
}

/// Where recordings have an access whose innermost frame this is: frames tell the call, and recordings where it returns to.
pub(crate) fn place_of(frame: &Frame) -> Option<KeptPlace> {
    Some(KeptPlace { module: frame.module.clone(), offset: frame.offset.checked_add(1)? })
}

/// Frames of an access that may be its place: where a function of the runtime made it, the place is further out.
pub(crate) const FRAMES: usize = 3;
/// Places that replays of a recording keep: as many as the runtime heeds.
const MOST_PLACES: usize = 1 << 10;

#[cfg(test)]
mod tests {
    use super::Known;
    use rashomon_event::{Evidence, Finding, FindingId, FindingKind, Frame, Goal, Schedule, Side};

    fn race(offsets: [u64; 2]) -> Finding {
        let side = |offset| Side {
            thread: "0".into(),
            action: "write of 4 bytes".into(),
            stack: vec![Frame { module: "program".into(), offset, ..Frame::default() }],
            held: Vec::new(),
            created_at: Vec::new(),
        };
        let id = FindingId::new("race-00000000").unwrap();
        Finding { sides: offsets.map(side).into(), ..Finding::suspected(FindingKind::DataRace, Evidence::HappensBefore, id) }
    }

    fn recorded() -> Schedule {
        Schedule {
            version: 1,
            modules: Vec::new(),
            threads: Vec::new(),
            turns: Vec::new(),
            goal: Goal::None,
            quantum: 0,
            unseen_calls: false,
            surroundings: None,
            kept: Vec::new(),
        }
    }

    fn offsets(schedule: &Schedule) -> Vec<u64> {
        schedule.kept.iter().map(|place| place.offset).collect()
    }

    #[test]
    fn replays_keep_everything_until_one_is_large_and_then_the_places_of_all_races() {
        let mut known = Known::default();
        known.note(&race([10, 20]));
        known.note(&race([20, 30]));
        assert!(known.narrowed(&recorded()).is_none());
        known.is_large = true;
        // Stacks tell calls, and recordings where they return to.
        assert_eq!(offsets(&known.narrowed(&recorded()).unwrap()), [11, 21, 31]);
        let of_places = Schedule { kept: known.places.iter().take(1).cloned().collect(), ..recorded() };
        assert!(known.narrowed(&of_places).is_none(), "these replays are narrow by themselves");
    }

    #[test]
    fn a_race_at_another_place_needs_other_replays() {
        let mut known = Known { is_large: true, ..Known::default() };
        known.note(&race([10, 20]));
        known.widen();
        assert_eq!(known.kept, known.places);
        known.note(&race([20, 40]));
        assert_ne!(known.kept, known.places);
        known.widen();
        assert_eq!((known.kept.len(), known.replays.len()), (3, 0));
    }
}
