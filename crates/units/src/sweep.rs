//! Numbers of units, sets and moments that nobody holds are freed, so that memory stays in proportion to what is held.

use crate::accesses::Access;
use crate::forest::{Id, LocationId, Marks, MomentId, SetId, UnitId};
use crate::threads::Label;
use crate::world::World;

/// What is in use.
pub(crate) struct AllMarks {
    pub units: Marks<UnitId>,
    pub sets: Marks<SetId>,
    pub moments: Marks<MomentId>,
}

impl AllMarks {
    pub fn new(world: &World) -> AllMarks {
        AllMarks {
            units: Marks::new(world.units.len()),
            sets: Marks::new(world.sets.len()),
            moments: Marks::new(world.moments.len()),
        }
    }

    /// The entry's unit must be a root.
    pub fn access(&mut self, access: &Access) {
        self.units.mark(access.unit);
        self.moments.mark(access.first);
        self.moments.mark(access.last);
    }
}

impl World {
    pub fn wants_sweep(&self) -> bool {
        let slack = self.options.limits.slack;
        self.units.wants_sweep(slack) || self.sets.wants_sweep(slack) || self.moments.wants_sweep(slack)
    }

    /// Replaces every number that is held here by its root, and marks it.
    pub fn mark(&mut self, marks: &mut AllMarks) {
        let (units, sets) = (&mut self.units, &mut self.sets);
        let mut keep = |label: &mut Label| {
            label.unit = label.unit.map(|unit| units.find(unit)).filter(|unit| !units.get(*unit).closed);
            label.set = label.set.map(|set| sets.find(set));
            label.unit.into_iter().for_each(|unit| marks.units.mark(unit));
            label.set.into_iter().for_each(|set| marks.sets.mark(set));
        };
        for thread in &mut self.threads {
            thread.activations_mut().flat_map(|activation| activation.labels_mut()).for_each(&mut keep);
            thread.moment.into_iter().for_each(|moment| marks.moments.mark(moment));
        }
        for location in self.memory.all_mut() {
            location.set = self.sets.find(location.set);
            marks.sets.mark(location.set);
            location.writer = location.writer.map(|unit| self.units.find(unit));
            location.writer = location.writer.filter(|unit| !self.units.get(*unit).closed);
            location.writer.into_iter().for_each(|unit| marks.units.mark(unit));
        }
        for index in 0..self.memory.len() {
            let mut accesses = self.memory.take_accesses(LocationId::at(index));
            self.unify(&mut accesses);
            accesses.iter().for_each(|access| marks.access(access));
            self.memory.set_accesses(LocationId::at(index), accesses);
        }
        for (_, set) in self.declared.values() {
            set.iter().for_each(|set| marks.sets.mark(*set));
        }
    }

    /// Frees what is not marked.
    pub fn sweep(&mut self, marks: &mut AllMarks) {
        for index in 0..self.units.len() {
            let id = UnitId::at(index);
            if marks.units.has(id)
                && let Some((first, last)) = self.units.get(id).shared
            {
                marks.moments.mark(first);
                marks.moments.mark(last);
            }
        }
        self.units.sweep(&marks.units);
        self.sets.sweep(&marks.sets);
        self.moments.sweep(&marks.moments);
        self.memory.sweep();
    }
}
