//! What units did: an entry for each unit, of a location or of a correlated set.

use crate::event::Line;
use crate::forest::{MomentId, UnitId};
use crate::moments::Moments;
use crate::world::World;
use smallvec::SmallVec;

/// The accesses of units, in the order in which these began. No two entries name a unit by the same number, though units that
/// merged may have two ([`World::unify`]); so nothing but that replaces numbers by their roots.
pub(crate) type Accesses = SmallVec<[Access; 2]>;

/// A unit's accesses to a location.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Access {
    pub unit: UnitId,
    /// l_fst,v and l_lst,v of §3.3, and the times for happens-before.
    pub first: MomentId,
    pub last: MomentId,
    pub wrote: bool,
    /// The activation that wrote, if one did, or [`SEVERAL`].
    pub activation: u64,
    /// Of the last access.
    pub line: Line,
}

/// No activation has this number.
const SEVERAL: u64 = u64::MAX;

impl Access {
    /// Whether including another access of the unit changes nothing.
    #[inline]
    pub fn has(&self, other: &Access) -> bool {
        self.last == other.last
            && self.line == other.line
            && self.wrote >= other.wrote
            && (other.activation == 0 || other.activation == self.activation || self.activation == SEVERAL)
    }

    /// Adds another access of the unit.
    pub fn include(&mut self, moments: &Moments, other: Access) {
        self.first = moments.earlier(self.first, other.first);
        self.last = moments.later(self.last, other.last);
        self.wrote |= other.wrote;
        self.activation = match (self.activation, other.activation) {
            (known, 0) => known,
            (0, new) => new,
            (known, new) if known == new => known,
            _ => SEVERAL,
        };
        if self.last == other.last {
            self.line = other.line;
        }
    }
}

impl World {
    /// Adds a unit's accesses to those of others. Whether the unit is a new one.
    pub fn note(&mut self, entries: &mut Accesses, access: Access) -> bool {
        let unit = self.units.find(access.unit);
        // Most often it is the last one, or a new one.
        let known = entries.iter().rposition(|entry| entry.unit == unit || self.units.root(entry.unit) == unit);
        if let Some(known) = known {
            entries[known].include(&self.moments, access);
            return false;
        }
        entries.push(Access { unit, ..access });
        true
    }

    /// Makes one entry for each unit, after units merged.
    pub fn unify(&mut self, entries: &mut Accesses) {
        let mut merged = false;
        for entry in entries.iter_mut() {
            let unit = self.units.find(entry.unit);
            merged |= std::mem::replace(&mut entry.unit, unit) != unit;
        }
        let is_twice = |index: usize| entries[..index].iter().any(|other| other.unit == entries[index].unit);
        if merged && (1..entries.len()).any(is_twice) {
            for access in std::mem::take(entries) {
                self.note(entries, access);
            }
        }
    }

    /// Leaves out accesses of closed units that later ones of the same thread stand for: these race with whatever the former
    /// race with from here on.
    pub fn leave_out_covered(&self, entries: &mut Accesses) {
        let mut index = 0;
        while index < entries.len() {
            let old = entries[index];
            let covered = self.units.get(old.unit).closed
                && entries[index + 1..].iter().any(|new| new.wrote >= old.wrote && self.covers(old, *new));
            if covered {
                entries.remove(index);
            } else {
                index += 1;
            }
        }
    }

    fn covers(&self, old: Access, new: Access) -> bool {
        self.units.get(old.unit).thread == self.units.get(new.unit).thread
            && self.moments.get(old.last).time <= self.moments.get(new.last).time
            && match (self.units.get(new.unit).shared, self.units.get(old.unit).shared) {
                (_, None) => true,
                (None, _) => false,
                (Some(new), Some(old)) => self.moments.span(new).within(self.moments.span(old)),
            }
    }
}
