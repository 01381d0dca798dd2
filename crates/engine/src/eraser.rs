//! Lock sets, as one of the analyses that [`crate::detector`] makes in one pass; the source and the deviations are there.

use crate::clock::Time;
use crate::guard::{Guard, HeldLanes, Protection};
use crate::history::Entry;
use crate::lock_sets::{HeldLocks, Lock, Sets};
use crate::race::{Race, Races};
use crate::variables::Variables;
use rashomon_packed::{Event, Op};

#[derive(Clone, Debug, Default)]
pub struct Eraser {
    held: HeldLocks,
    /// Of each thread, the same.
    lanes: Vec<HeldLanes>,
    sets: Sets,
    pub warnings: Races,
}

impl Eraser {
    pub fn prepare(&mut self, threads: usize) {
        self.held.prepare(threads);
        if self.lanes.len() < threads {
            self.lanes.resize(threads, HeldLanes::default());
        }
    }

    /// An event of the locks' space.
    pub fn lock(&mut self, event: &Event) {
        let lanes = &mut self.lanes[usize::from(event.thread)];
        let lock = Lock::of(event);
        let known = match event.op {
            Op::Acquire | Op::AcquireShared => {
                lanes.push(&lock);
                true
            }
            // Most locks are given back in the reverse order.
            Op::Release | Op::ReleaseShared => self.held.locks(event.thread).last() == Some(&lock) && lanes.pop(&lock),
            _ => return,
        };
        self.held.list(event);
        if !known {
            *lanes = HeldLanes::of_locks(self.held.locks(event.thread));
        }
    }

    /// Accesses until `floor` are of an earlier window.
    #[inline]
    pub fn access(&mut self, variables: &mut Variables, slot: usize, event: &Event, now: Time, floor: Time) {
        if floor != 0 && variables.latest(slot) <= floor {
            variables.record(slot).protect(Protection::VIRGIN, Guard::default());
        }
        let record = variables.record(slot);
        let (protection, guard) = (record.protection(), record.guard());
        let was_owned = protection == Protection::EXCLUSIVE;
        let is_shared = (protection == Protection::SHARED) | (protection == Protection::SHARED_MODIFIED);
        // In which state the next variable is, no processor can predict: the fewer ways, the better.
        if !(is_shared | (was_owned & (guard.owner() != event.thread))) {
            if protection == Protection::VIRGIN {
                record.protect(Protection::EXCLUSIVE, Guard::of_owner(event.thread));
            }
            return;
        }
        let lanes = &self.lanes[usize::from(event.thread)];
        let quickly = if event.op.is_plain() { lanes.guard(guard, was_owned, event.op.writes()) } else { None };
        let guard = quickly.unwrap_or_else(|| self.guard_in_table(guard, was_owned, event));
        let is_modified = event.op.writes() | (protection == Protection::SHARED_MODIFIED);
        record.protect(if is_modified { Protection::SHARED_MODIFIED } else { Protection::SHARED }, guard);
        if is_modified & (guard == Guard::EMPTY) {
            record.protect(Protection::WARNED, Guard::EMPTY);
            self.warn(variables, slot, event, now);
        }
    }

    /// What guards a variable behind an access, whatever the event and the locks.
    #[inline(never)]
    fn guard_in_table(&mut self, guard: Guard, was_owned: bool, event: &Event) -> Guard {
        let protects = |lock: &Lock| self.held.protects(event, lock);
        let mut locks: Vec<Lock> = match guard.set() {
            _ if was_owned => self.held.protecting(event).collect(),
            Some(set) => self.sets.locks(set).filter(protects).collect(),
            None => guard.locks().filter(protects).collect(),
        };
        locks.sort_unstable();
        locks.dedup();
        Guard::of_locks(&locks).unwrap_or_else(|| Guard::in_table(self.sets.number(locks)))
    }

    #[cold]
    fn warn(&mut self, variables: &Variables, slot: usize, event: &Event, now: Time) {
        let earlier = variables.latest_conflict(slot, event).map(|entry| entry.access());
        self.warnings.event();
        self.warnings.race(Race { variable: event.target, earlier, later: Entry::of(event, now).access() });
    }

    pub fn bytes(&self) -> usize {
        self.sets.bytes() + self.warnings.bytes()
    }
}
