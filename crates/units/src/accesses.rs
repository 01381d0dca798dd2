//! What units did: an entry for each unit, of a location or of a correlated set.

use crate::event::Line;
use crate::forest::{MomentId, UnitId};
use crate::moments::Moments;
use crate::world::World;

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
    pub fn note(&mut self, entries: &mut Vec<Access>, access: Access) -> bool {
        let unit = self.units.find(access.unit);
        for entry in entries.iter_mut() {
            entry.unit = self.units.find(entry.unit);
            if entry.unit == unit {
                entry.include(&self.moments, access);
                return false;
            }
        }
        entries.push(Access { unit, ..access });
        true
    }

    /// Makes one entry for each unit, after units merged.
    pub fn unify(&mut self, entries: &mut Vec<Access>) {
        entries.iter_mut().for_each(|entry| entry.unit = self.units.find(entry.unit));
        let twice = (1..entries.len()).any(|index| entries[..index].iter().any(|other| other.unit == entries[index].unit));
        if twice {
            for access in std::mem::take(entries) {
                self.note(entries, access);
            }
        }
    }

    /// Leaves out accesses of closed units that later ones of the same thread stand for: these race with whatever the former
    /// race with from here on.
    pub fn leave_out_covered(&self, entries: &mut Vec<Access>) {
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
