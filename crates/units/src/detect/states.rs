//! The state machine of §3.4 for each correlated set, with its candidate set C_s.
//!
//! What the text leaves open is read as follows.
//! - An access is *ordered* if it happens after every access since the set was exclusive last, of each thread the latest.
//! - While a set is exclusive, C_s is L_u of its unit as it is now, not a copy: L_u may change (§3.3).
//! - An ordered read by another unit than the owner enters Exclusive-Read. Test 12 needs that.
//! - When two sets merge, C_s is the intersection. If all accesses to both are ordered, the set stays exclusive, else it is
//!   shared, and so may be in a race at once.
//! - Only accesses to shared members count. Those before a member became shared are made up for when it does.

use super::{Detector, Found, PerSet, parallel};
use crate::forest::{LocationId, SetId, UnitId};
use crate::locks::LockSet;
use crate::memory::Access;
use crate::world::{AllMarks, Change, World};

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

#[derive(Clone, Debug, Default)]
struct State {
    kind: Kind,
    /// C_s of a shared set.
    candidates: Option<LockSet>,
    /// The latest access of each thread since the set was exclusive last, the latest of all at the end.
    accesses: Vec<Access>,
}

pub(crate) struct States(PerSet<State>);

impl States {
    pub fn new() -> States {
        States(PerSet::new())
    }

    /// The transitions of Fig. 11.
    fn step(&mut self, world: &mut World, set: SetId, access: Access, found: &mut Vec<Found>) {
        let set = world.sets.find(set);
        let access = Access { unit: world.units.find(access.unit), ..access };
        let state = self.0.get_mut(set);
        state.accesses.iter_mut().for_each(|access| access.unit = world.units.find(access.unit));
        let ordered = state.accesses.iter().all(|earlier| world.moments.ordered(earlier.last, access.last));
        match state.kind {
            Kind::Race => return,
            Kind::NotAccessed => state.enter_exclusive(access, access.wrote),
            Kind::Exclusive { write } if ordered => {
                let owner = state.accesses.last().is_some_and(|owner| owner.unit == access.unit);
                state.enter_exclusive(access, access.wrote || (owner && write));
            }
            Kind::Shared { .. } if ordered => state.enter_exclusive(access, access.wrote),
            Kind::Exclusive { write } | Kind::Shared { write } => {
                let candidates = state.candidates(world).intersection(&counted(world, &access));
                let write = write || access.wrote;
                let other = state.accesses.iter().rfind(|earlier| parallel(world, earlier, &access)).copied();
                state.enter_shared(candidates, write);
                state.note(world, access);
                if state.kind == Kind::Race
                    && let Some(before) = other
                {
                    found.push(Found { set, before, now: access });
                }
            }
        }
    }

    /// L_u of a unit that took part became smaller.
    fn refine(&mut self, world: &mut World, unit: UnitId, found: &mut Vec<Found>) {
        let unit = world.units.find(unit);
        for index in 0..self.0.0.len() {
            let state = &mut self.0.0[index];
            let Kind::Shared { write } = state.kind else { continue };
            let Some(now) = state.accesses.iter().find(|access| world.units.root(access.unit) == unit).copied() else { continue };
            let candidates = state.candidates(world).intersection(&counted(world, &now));
            let before = state.accesses.iter().rfind(|other| parallel(world, other, &now)).copied();
            state.enter_shared(candidates, write);
            if let (Kind::Race, Some(before)) = (state.kind, before) {
                let set = world.memory_set(index);
                found.push(Found { set, before, now });
            }
        }
    }

    fn merge(&mut self, world: &World, from: SetId, into: SetId, found: &mut Vec<Found>) {
        let (one, other) = (self.0.take(into), self.0.take(from));
        let state = match (one.kind, other.kind) {
            (Kind::NotAccessed, _) => other,
            (_, Kind::NotAccessed) => one,
            (Kind::Race, _) => one,
            (_, Kind::Race) => other,
            _ => one.joined(world, other),
        };
        if state.kind == Kind::Race
            && let Some((before, now)) = state.parallel_pair(world)
        {
            found.push(Found { set: into, before, now });
        }
        *self.0.get_mut(into) = state;
    }

    fn exposed(&mut self, world: &mut World, location: LocationId, found: &mut Vec<Found>) {
        let set = world.memory.get(location).set;
        for access in world.memory.get(location).accesses.clone() {
            self.step(world, set, access, found);
        }
    }
}
