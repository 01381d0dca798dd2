//! The state machine of §3.4 for each correlated set, with its candidate set C_s.
//!
//! What the text leaves open is read as follows.
//! - An access is *ordered* if every access since the set was exclusive last happens before it; of each thread the latest one
//!   is kept.
//! - While a set is exclusive, C_s is L_u of its unit as it is, not a copy: L_u may change (§3.3). C_s of a shared set is
//!   refined by accesses only (Fig. 7).
//! - An ordered read by another unit than the owner enters Exclusive-Read, whatever was written before. Test 12 needs that.
//! - When two sets merge, C_s is the intersection. If the accesses to one are parallel to those to the other, or one is shared,
//!   the set is shared, and may be in a race at once.
//! - Only accesses to shared members count. Those before a member became shared are made up for when it does.
//! - A lock held as a reader protects no unit that writes.

use super::{Detector, Found, PerSet, parallel};
use crate::accesses::Access;
use crate::forest::SetId;
use crate::locks::LockSet;
use crate::sweep::AllMarks;
use crate::world::{Change, World};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Kind {
    #[default]
    NotAccessed,
    Exclusive {
        write: bool,
    },
    Shared {
        write: bool,
    },
    Race,
}

#[derive(Debug, Default)]
struct State {
    kind: Kind,
    /// C_s, if the set is shared.
    refined: Option<LockSet>,
    /// Of each thread the latest access since the set was exclusive last; the latest of all at the end.
    accesses: Vec<Access>,
}

/// L_u, as far as it protects what the unit does.
fn locks(world: &World, access: &Access) -> LockSet {
    let locks = world.locks_of(access.unit);
    if access.wrote { locks.of_writer() } else { locks }
}

impl State {
    fn candidates(&self, world: &World) -> LockSet {
        match (&self.refined, self.accesses.last()) {
            (Some(locks), _) => locks.clone(),
            (None, Some(owner)) => locks(world, owner),
            (None, None) => LockSet::All,
        }
    }

    fn enter_exclusive(&mut self, access: Access, write: bool) {
        self.kind = Kind::Exclusive { write };
        self.refined = None;
        self.accesses.clear();
        self.accesses.push(access);
    }

    fn enter_shared(&mut self, candidates: LockSet, write: bool) {
        self.kind = if write && candidates.is_empty() { Kind::Race } else { Kind::Shared { write } };
        self.refined = Some(candidates);
    }

    fn note(&mut self, world: &World, access: Access) {
        let thread = |access: &Access| world.units.get(access.unit).thread;
        self.accesses.retain(|earlier| thread(earlier) != thread(&access));
        self.accesses.push(access);
    }

    fn parallel_pair(&self, world: &World) -> Option<(Access, Access)> {
        let (accesses, pairs) = (&self.accesses, 1..self.accesses.len());
        pairs.rev().find_map(|index| {
            let before = accesses[..index].iter().rfind(|before| parallel(world, before, &accesses[index]))?;
            Some((*before, accesses[index]))
        })
    }

    fn merged(self, world: &World, other: State) -> State {
        let writes = |state: &State| matches!(state.kind, Kind::Exclusive { write: true } | Kind::Shared { write: true });
        let shared = matches!(self.kind, Kind::Shared { .. }) || matches!(other.kind, Kind::Shared { .. });
        let write = writes(&self) || writes(&other);
        let candidates = self.candidates(world).intersection(&other.candidates(world));
        let mut accesses = self.accesses;
        accesses.extend(other.accesses);
        accesses.sort_by_key(|access| world.moments.get(access.last).time);
        let mut both = State::default();
        accesses.into_iter().for_each(|access| both.note(world, access));
        match both.accesses.last().copied() {
            Some(owner) if !shared && both.parallel_pair(world).is_none() => both.enter_exclusive(owner, write),
            _ => both.enter_shared(candidates, write),
        }
        both
    }
}

pub(crate) struct States {
    states: PerSet<State>,
    found: Vec<Found>,
}

impl States {
    pub fn new() -> States {
        States { states: PerSet::new(), found: Vec::new() }
    }

    /// The transitions of Fig. 11.
    fn step(&mut self, world: &mut World, set: SetId, access: Access) {
        let set = world.sets.find(set);
        let access = Access { unit: world.units.find(access.unit), ..access };
        let state = self.states.get_mut(set);
        state.accesses.iter_mut().for_each(|access| access.unit = world.units.find(access.unit));
        let ordered = state.accesses.iter().all(|earlier| world.moments.ordered(earlier.last, access.last));
        match state.kind {
            Kind::Race => {}
            Kind::NotAccessed => state.enter_exclusive(access, access.wrote),
            Kind::Exclusive { write } if ordered => {
                let owner = state.accesses.last().is_some_and(|owner| owner.unit == access.unit);
                state.enter_exclusive(access, access.wrote || (owner && write));
            }
            Kind::Shared { .. } if ordered => state.enter_exclusive(access, access.wrote),
            Kind::Exclusive { write } | Kind::Shared { write } => {
                let candidates = state.candidates(world).intersection(&locks(world, &access));
                state.note(world, access);
                state.enter_shared(candidates, write || access.wrote);
                if state.kind == Kind::Race
                    && let Some((before, now)) = state.parallel_pair(world)
                {
                    self.found.push(Found { set, before, now });
                }
            }
        }
    }

    fn merge(&mut self, world: &World, from: SetId, into: SetId) {
        let (one, other) = (self.states.take(into), self.states.take(from));
        let state = match (one.kind, other.kind) {
            (Kind::NotAccessed, _) | (_, Kind::Race) => other,
            (_, Kind::NotAccessed) | (Kind::Race, _) => one,
            _ => {
                let both = one.merged(world, other);
                if both.kind == Kind::Race
                    && let Some((before, now)) = both.parallel_pair(world)
                {
                    self.found.push(Found { set: into, before, now });
                }
                both
            }
        };
        *self.states.get_mut(into) = state;
    }
}

impl Detector for States {
    fn apply(&mut self, world: &mut World, changes: &[Change], found: &mut Vec<Found>) {
        for change in changes {
            match *change {
                Change::Accessed { location, access, .. } | Change::Exposed { location, access } => {
                    let set = world.memory.get(location).set;
                    self.step(world, set, access);
                }
                Change::SetsMerged { from, into } => self.merge(world, from, into),
                Change::Extended { .. } | Change::UnitsMerged { .. } | Change::Moved { .. } | Change::Left { .. } => {}
            }
        }
        found.append(&mut self.found);
    }

    fn is_racy(&self, set: SetId) -> bool {
        self.states.get(set).is_some_and(|state| state.kind == Kind::Race)
    }

    fn candidates(&self, world: &World, set: SetId) -> LockSet {
        self.states.get(set).map_or(LockSet::All, |state| state.candidates(world))
    }

    fn mark(&mut self, world: &mut World, marks: &mut AllMarks) {
        for state in self.states.keep(marks) {
            for access in &mut state.accesses {
                access.unit = world.units.find(access.unit);
                marks.access(access);
            }
        }
    }
}
