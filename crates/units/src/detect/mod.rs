//! Detection of extended data races, given units and sets.

mod pairs;
mod states;

pub(crate) use pairs::Pairs;
pub(crate) use states::States;

use crate::accesses::Access;
use crate::forest::{Id, SetId};
use crate::locks::LockSet;
use crate::sweep::AllMarks;
use crate::world::{Change, World};

/// Two units that race on a set. The set must not be one on which a race was found already.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    pub set: SetId,
    pub before: Access,
    pub now: Access,
}

/// A way to find extended data races. It sees what changed, and what is; it changes nothing.
pub(crate) trait Detector {
    fn apply(&mut self, world: &mut World, changes: &[Change], found: &mut Vec<Found>);

    /// Whether a race was found on the set.
    fn is_racy(&self, set: SetId) -> bool;

    /// C_s.
    fn candidates(&self, world: &World, set: SetId) -> LockSet;

    /// Replaces every number that is held here by its root, and marks it. Sets that are marked nowhere may be forgotten.
    fn mark(&mut self, world: &mut World, marks: &mut AllMarks);
}

/// Data for each set, kept beside the world's.
#[derive(Debug)]
pub(crate) struct PerSet<T>(Vec<T>);

impl<T: Default> PerSet<T> {
    fn new() -> Self {
        PerSet(Vec::new())
    }

    fn get(&self, set: SetId) -> Option<&T> {
        self.0.get(set.index())
    }

    fn get_mut(&mut self, set: SetId) -> &mut T {
        if self.0.len() <= set.index() {
            self.0.resize_with(set.index() + 1, T::default);
        }
        &mut self.0[set.index()]
    }

    fn take(&mut self, set: SetId) -> T {
        self.0.get_mut(set.index()).map(std::mem::take).unwrap_or_default()
    }

    /// Forgets what belongs to no marked set; what remains.
    fn keep(&mut self, marks: &AllMarks) -> impl Iterator<Item = &mut T> + use<'_, T> {
        for (index, data) in self.0.iter_mut().enumerate() {
            if !marks.sets.has(SetId::at(index)) {
                *data = T::default();
            }
        }
        self.0.iter_mut()
    }
}

/// Whether two units exclude each other, given what each does to the set.
pub(crate) fn protected(world: &World, one: &Access, other: &Access) -> bool {
    let (one, other) = (world.units.get(one.unit).shared, world.units.get(other.unit).shared);
    let (Some(one), Some(other)) = (one, other) else { return true };
    world.moments.span(one).excludes(world.moments.span(other))
}

/// Whether two units access a set in parallel: the first or the last access of one, and the first or the last of the other.
pub(crate) fn parallel(world: &World, one: &Access, other: &Access) -> bool {
    let moments = &world.moments;
    [one.first, one.last].iter().any(|a| [other.first, other.last].iter().any(|b| moments.parallel(*a, *b)))
}
