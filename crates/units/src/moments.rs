//! What a thread knows and holds between two synchronisation operations: the copy of its lock vector and of its vector clock
//! that accesses in between share.

use crate::event::Lock;
use crate::forest::{Id, Marks, MomentId};
use crate::locks::{Held, Span};
use crate::order::Clock;
use std::sync::Arc;

#[derive(Clone)]
pub(crate) struct Moment {
    /// Dense number of the thread.
    pub thread: usize,
    /// Of the moments of one thread the later one has the larger number.
    pub time: u64,
    pub clock: Arc<Clock>,
    pub held: Arc<[Held]>,
}

impl Moment {
    fn precedes(&self, other: &Moment) -> bool {
        self.clock.of(self.thread) <= other.clock.of(self.thread)
    }
}

#[derive(Default)]
pub(crate) struct Moments {
    moments: Vec<Option<Moment>>,
    free: Vec<MomentId>,
    kept: usize,
}

impl Moments {
    pub fn add(&mut self, moment: Moment) -> MomentId {
        if let Some(id) = self.free.pop() {
            self.moments[id.index()] = Some(moment);
            return id;
        }
        self.moments.push(Some(moment));
        MomentId::at(self.moments.len() - 1)
    }

    pub fn get(&self, id: MomentId) -> &Moment {
        self.moments[id.index()].as_ref().expect("whoever holds a moment marks it in every sweep")
    }

    pub fn earlier(&self, one: MomentId, other: MomentId) -> MomentId {
        if self.get(other).time < self.get(one).time { other } else { one }
    }

    pub fn later(&self, one: MomentId, other: MomentId) -> MomentId {
        if self.get(other).time > self.get(one).time { other } else { one }
    }

    /// e1 || e2: neither happens before the other.
    pub fn parallel(&self, one: MomentId, other: MomentId) -> bool {
        let (one, other) = (self.get(one), self.get(other));
        one.thread != other.thread && !one.precedes(other) && !other.precedes(one)
    }

    /// e1 → e2.
    pub fn ordered(&self, one: MomentId, other: MomentId) -> bool {
        self.get(one).precedes(self.get(other))
    }

    /// From one moment of a thread to another one of it.
    pub fn span(&self, (first, last): (MomentId, MomentId)) -> Span<'_> {
        Span { first: &self.get(first).held, last: &self.get(last).held }
    }

    pub fn same_locks(&self, one: MomentId, other: MomentId) -> bool {
        one == other || self.get(one).held == self.get(other).held
    }

    /// Whether the lock is held in both, but was released in between.
    pub fn interrupted(&self, first: MomentId, last: MomentId) -> Option<Lock> {
        let (first, last) = (self.get(first), self.get(last));
        let again = |held: &&Held| last.held.iter().any(|other| other.lock == held.lock && other.acquisition != held.acquisition);
        first.held.iter().find(again).map(|held| held.lock)
    }

    pub fn len(&self) -> usize {
        self.moments.len()
    }

    pub fn in_use(&self) -> usize {
        self.moments.len() - self.free.len()
    }

    pub fn wants_sweep(&self, least: usize) -> bool {
        self.in_use() > least.max(2 * self.kept)
    }

    pub fn sweep(&mut self, marks: &Marks<MomentId>) {
        for index in 0..self.moments.len() {
            let id = MomentId::at(index);
            if self.moments[index].is_some() && !marks.has(id) {
                self.moments[index] = None;
                self.free.push(id);
            }
        }
        self.kept = self.in_use();
    }
}
