//! Extended data races as §1.2 defines them: pairs of units.
//!
//! Two units race on a correlated set s if they are of different threads, both access shared members of s, in parallel, at
//! least one of them modifies such a member, and no lock is in both L_u. *Members* are those at the time of the judgement. A
//! pair is judged whenever one of its units accesses s, or its L_u shrinks, or a location that it accessed becomes shared, and
//! when sets merge.
//!
//! A set's history has an entry for each unit; those of its members, which move with them from set to set, are what counts. The
//! set's own history is made anew from its members' after one of them left.

use super::{Detector, Found, PerSet, parallel, protected};
use crate::accesses::{Access, Accesses};
use crate::forest::{Id, LocationId, SetId, UnitId};
use crate::locks::LockSet;
use crate::sweep::AllMarks;
use crate::world::{Change, World};
use smallvec::SmallVec;

#[derive(Debug, Default)]
struct History {
    entries: Accesses,
    /// A race was found.
    racy: bool,
    /// A member left.
    stale: bool,
}

/// What is to be judged after an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Question {
    /// The unit and every other one of the set.
    Unit(UnitId, SetId),
    /// Every pair of the set.
    Set(SetId),
}

pub(crate) struct Pairs {
    histories: PerSet<History>,
    /// For each unit the sets in whose history it is, and perhaps others.
    touched: Vec<SmallVec<[SetId; 4]>>,
    questions: Vec<Question>,
}

impl Pairs {
    pub fn new() -> Pairs {
        Pairs { histories: PerSet::new(), touched: Vec::new(), questions: Vec::new() }
    }

    fn touched(&mut self, unit: UnitId) -> &mut SmallVec<[SetId; 4]> {
        if self.touched.len() <= unit.index() {
            self.touched.resize_with(unit.index() + 1, SmallVec::new);
        }
        &mut self.touched[unit.index()]
    }

    /// Adds a unit's accesses to a set's history; what is to be asked then. Nothing is, of a set that is known to be racy: it
    /// stays so, whatever it merges with, and its history stays what showed it.
    fn add(&mut self, world: &mut World, set: SetId, access: Access) -> Option<Question> {
        let set = world.sets.find(set);
        let history = self.histories.get_mut(set);
        if history.racy {
            return None;
        }
        let unit = world.units.find(access.unit);
        if world.note(&mut history.entries, access) {
            if history.entries.len() > world.options.limits.units_of_set {
                let mut entries = std::mem::take(&mut history.entries);
                shorten(world, &mut entries);
                self.histories.get_mut(set).entries = entries;
            }
            let touched = self.touched(unit);
            if !touched.contains(&set) {
                touched.push(set);
                if touched.len() > world.options.limits.sets_of_unit {
                    touched.remove(0);
                    world.summary.sets_forgotten += 1;
                }
            }
        }
        Some(Question::Unit(unit, set))
    }

    fn ask_about(&mut self, unit: UnitId) {
        let touched = std::mem::take(self.touched(unit));
        self.questions.extend(touched.iter().map(|set| Question::Unit(unit, *set)));
        *self.touched(unit) = touched;
    }

    /// What a location's units did belongs to its set.
    fn add_all(&mut self, world: &mut World, location: LocationId) {
        let set = world.memory.get(location).set;
        for access in world.memory.get(location).accesses.clone() {
            self.add(world, set, access);
        }
    }

    fn take_in(&mut self, world: &mut World, change: Change) {
        match change {
            // What is new of the set or of the unit since is judged when it happens.
            Change::Accessed { repeats: true, .. } => {}
            Change::Accessed { location, access, .. } | Change::Exposed { location, access } => {
                let set = world.memory.get(location).set;
                let question = self.add(world, set, access);
                self.questions.extend(question);
            }
            Change::Extended { unit } => {
                let unit = world.units.find(unit);
                self.ask_about(unit);
            }
            Change::UnitsMerged { from, into } => {
                let more = std::mem::take(self.touched(from));
                let touched = self.touched(into);
                touched.extend(more);
                touched.sort_unstable();
                touched.dedup();
                let surplus = touched.len().saturating_sub(world.options.limits.sets_of_unit);
                touched.drain(..surplus);
                world.summary.sets_forgotten += surplus as u64;
                self.ask_about(into);
            }
            Change::SetsMerged { from, into } => {
                let gone = self.histories.take(from);
                let history = self.histories.get_mut(into);
                history.stale |= gone.stale;
                if gone.racy && !history.racy {
                    (history.racy, history.entries) = (true, gone.entries);
                    return;
                }
                let news = !gone.entries.is_empty() && !history.entries.is_empty();
                for access in gone.entries {
                    self.add(world, into, access);
                }
                if news {
                    self.questions.push(Question::Set(into));
                }
            }
            Change::Moved { location, from } => {
                let from = world.sets.find(from);
                self.histories.get_mut(from).stale = true;
                self.add_all(world, location);
            }
            Change::Left { set } => {
                let set = world.sets.find(set);
                self.histories.get_mut(set).stale = true;
            }
        }
    }

    /// Makes a set's history anew, after a member left: without what only that member knew.
    fn renew(&mut self, world: &mut World, set: SetId) {
        let history = self.histories.get_mut(set);
        if !history.stale {
            return;
        }
        history.stale = false;
        let Some(member) = world.sets.get(set).member else {
            history.entries.clear();
            return;
        };
        let most = world.options.limits.members;
        if world.memory.circle(member).nth(most).is_some() {
            world.summary.histories_not_renewed += 1;
            return;
        }
        let members: Vec<_> = world.memory.circle(member).filter(|location| world.memory.get(*location).shared).collect();
        history.entries.clear();
        for location in members {
            self.add_all(world, location);
        }
    }

    fn judge(&mut self, world: &mut World, question: Question, found: &mut Vec<Found>) {
        let (unit, set) = match question {
            Question::Unit(unit, set) => (Some(world.units.find(unit)), world.sets.find(set)),
            Question::Set(set) => (None, world.sets.find(set)),
        };
        if self.histories.get_mut(set).racy {
            return;
        }
        self.renew(world, set);
        let history = self.histories.get_mut(set);
        world.unify(&mut history.entries);
        let entries = &history.entries;
        for (index, now) in entries.iter().enumerate() {
            if unit.is_some_and(|unit| unit != now.unit) {
                continue;
            }
            let others = if unit.is_some() { &entries[..] } else { &entries[..index] };
            if let Some(before) = others.iter().rev().find(|before| races(world, before, now)) {
                // Units that the set of a question has together: the later entry is the later unit.
                found.push(Found { set, before: *before, now: *now });
                history.racy = true;
                return;
            }
        }
    }
}

/// The predicate.
fn races(world: &World, before: &Access, now: &Access) -> bool {
    (before.wrote || now.wrote)
        && world.units.get(before.unit).thread != world.units.get(now.unit).thread
        && parallel(world, before, now)
        && !protected(world, before, now)
}

/// Leaves out units that others stand for, or the oldest.
fn shorten(world: &mut World, entries: &mut Accesses) {
    world.unify(entries);
    world.leave_out_covered(entries);
    while entries.len() > world.options.limits.units_of_set {
        entries.remove(0);
        world.summary.units_forgotten += 1;
    }
}

impl Detector for Pairs {
    fn apply(&mut self, world: &mut World, changes: &[Change], found: &mut Vec<Found>) {
        self.questions.clear();
        for change in changes {
            self.take_in(world, *change);
        }
        let mut questions = std::mem::take(&mut self.questions);
        if questions.len() > 1 {
            questions.sort_unstable();
            questions.dedup();
        }
        for question in &questions {
            self.judge(world, *question, found);
        }
        self.questions = questions;
    }

    fn is_racy(&self, set: SetId) -> bool {
        self.histories.get(set).is_some_and(|history| history.racy)
    }

    fn candidates(&self, world: &World, set: SetId) -> LockSet {
        let entries = self.histories.get(set).map_or(&[][..], |history| &history.entries);
        entries.iter().fold(LockSet::All, |locks, entry| locks.intersection(&world.locks_of(entry.unit)))
    }

    fn mark(&mut self, world: &mut World, marks: &mut AllMarks) {
        for history in self.histories.keep(marks) {
            world.unify(&mut history.entries);
            history.entries.iter().for_each(|entry| marks.access(entry));
        }
        for (index, touched) in self.touched.iter_mut().enumerate() {
            touched.iter_mut().for_each(|set| *set = world.sets.find(*set));
            touched.retain(|set| marks.sets.has(*set));
            touched.sort_unstable();
            touched.dedup();
            if !marks.units.has(UnitId::at(index)) {
                touched.clear();
            }
        }
    }
}
