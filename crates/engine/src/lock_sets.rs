//! The locks that threads hold, and sets of locks as small numbers: equal numbers, equal sets.

use crate::hash::IntegerMap;
use rashomon_packed::{Event, Op};
use std::collections::HashMap;

/// A lock and how it is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Lock {
    pub number: u64,
    pub shared: bool,
}

impl Lock {
    /// What atomic accesses hold among each other: no lock of the trace, but they never race.
    pub const OF_ATOMICS: Self = Self { number: 1 << 32, shared: false };

    pub fn of(event: &Event) -> Self {
        let shared = matches!(event.op, Op::AcquireShared | Op::ReleaseShared);
        Self { number: u64::from(event.target), shared }
    }
}

/// Number of a set.
pub type SetId = u32;
pub const EMPTY: SetId = 0;

/// Sets by number, and what has been computed of them.
#[derive(Clone, Debug)]
pub struct Sets {
    sets: Vec<Box<[Lock]>>,
    numbers: HashMap<Box<[Lock]>, SetId>,
    common: IntegerMap<u64, SetId>,
    exclusion: IntegerMap<u64, bool>,
    weaker: IntegerMap<u64, bool>,
    /// By number: whether it holds a lock exclusively.
    excludes_itself: Vec<bool>,
    with_atomics: IntegerMap<u32, SetId>,
    /// Of the sets.
    bytes: usize,
}

impl Default for Sets {
    fn default() -> Self {
        Self {
            sets: vec![Box::default()],
            numbers: [(Box::default(), EMPTY)].into(),
            common: IntegerMap::default(),
            exclusion: IntegerMap::default(),
            weaker: IntegerMap::default(),
            excludes_itself: vec![false],
            with_atomics: IntegerMap::default(),
            bytes: 0,
        }
    }
}

fn key(one: SetId, other: SetId) -> u64 {
    u64::from(one.min(other)) << 32 | u64::from(one.max(other))
}

impl Sets {
    /// Sorted.
    pub fn locks(&self, set: SetId) -> &[Lock] {
        &self.sets[set as usize]
    }

    pub fn number(&mut self, mut locks: Vec<Lock>) -> SetId {
        locks.sort_unstable();
        locks.dedup();
        let locks = locks.into_boxed_slice();
        if let Some(&number) = self.numbers.get(&locks) {
            return number;
        }
        let number = self.sets.len() as SetId;
        self.excludes_itself.push(locks.iter().any(|lock| !lock.shared));
        self.bytes += size_of_val(&*locks) + size_of::<Box<[Lock]>>();
        self.sets.push(locks.clone());
        self.numbers.insert(locks, number);
        number
    }

    /// The locks of both sets.
    #[inline]
    pub fn common(&mut self, one: SetId, other: SetId) -> SetId {
        if one == other {
            return one;
        }
        if one == EMPTY || other == EMPTY {
            return EMPTY;
        }
        if let Some(&set) = self.common.get(&key(one, other)) {
            return set;
        }
        let both = self.locks(one).iter().filter(|lock| self.locks(other).contains(lock)).copied().collect();
        let set = self.number(both);
        self.common.insert(key(one, other), set);
        set
    }

    /// Whether two threads cannot hold these sets at once: a common lock that not both hold in shared mode.
    #[inline]
    pub fn exclude(&mut self, one: SetId, other: SetId) -> bool {
        if one == EMPTY || other == EMPTY {
            return false;
        }
        if one == other && self.excludes_itself[one as usize] {
            return true;
        }
        if let Some(&known) = self.exclusion.get(&key(one, other)) {
            return known;
        }
        let among = self.locks(other);
        let excluded = self
            .locks(one)
            .iter()
            .any(|lock| among.iter().any(|other| lock.number == other.number && !(lock.shared && other.shared)));
        self.exclusion.insert(key(one, other), excluded);
        excluded
    }

    /// Whether whatever is excluded by the first set is excluded by the second.
    #[inline]
    pub fn is_weaker(&mut self, one: SetId, other: SetId) -> bool {
        if one == other || one == EMPTY {
            return true;
        }
        let key = u64::from(one) << 32 | u64::from(other);
        if let Some(&known) = self.weaker.get(&key) {
            return known;
        }
        let among = self.locks(other);
        let has = |lock: &Lock| among.iter().any(|other| lock.number == other.number && (lock.shared || !other.shared));
        let weaker = self.locks(one).iter().all(has);
        self.weaker.insert(key, weaker);
        weaker
    }

    /// The set, with [`Lock::OF_ATOMICS`].
    pub fn with_atomics(&mut self, set: SetId) -> SetId {
        if let Some(&known) = self.with_atomics.get(&set) {
            return known;
        }
        let locks = self.locks(set).iter().copied().chain([Lock::OF_ATOMICS]).collect();
        let with = self.number(locks);
        self.with_atomics.insert(set, with);
        with
    }

    pub fn bytes(&self) -> usize {
        2 * self.bytes + (self.common.capacity() + self.exclusion.capacity() + self.weaker.capacity()) * 2 * size_of::<u64>()
    }
}

#[derive(Clone, Debug, Default)]
struct Held {
    /// In the order of acquisition; a lock that is held twice is there twice.
    locks: Vec<Lock>,
    /// All locks, with their modes.
    all: SetId,
    /// All locks, as if held exclusively.
    any_mode: SetId,
    /// Those held exclusively.
    exclusive: SetId,
}

/// What every thread holds while a trace goes by.
#[derive(Clone, Debug, Default)]
pub struct HeldLocks {
    threads: Vec<Held>,
    /// (set with modes, lock, acquired) → what is held then.
    transitions: IntegerMap<(u64, u64), [SetId; 3]>,
}

impl HeldLocks {
    pub fn prepare(&mut self, threads: usize) {
        if self.threads.len() < threads {
            self.threads.resize(threads, Held::default());
        }
    }

    pub fn locks(&self, thread: u16) -> &[Lock] {
        &self.threads[usize::from(thread)].locks
    }

    /// With modes.
    #[inline]
    pub fn all(&self, thread: u16) -> SetId {
        self.threads[usize::from(thread)].all
    }

    /// In whatever mode.
    #[inline]
    pub fn any_mode(&self, thread: u16) -> SetId {
        self.threads[usize::from(thread)].any_mode
    }

    #[inline]
    pub fn exclusive(&self, thread: u16) -> SetId {
        self.threads[usize::from(thread)].exclusive
    }

    /// An event of the locks' space that is no request. Releasing what is not held changes nothing.
    pub fn step(&mut self, event: &Event, sets: &mut Sets) {
        let lock = Lock::of(event);
        let acquires = matches!(event.op, Op::Acquire | Op::AcquireShared);
        let held = &mut self.threads[usize::from(event.thread)];
        let again = held.locks.contains(&lock);
        if acquires {
            held.locks.push(lock);
        } else if let Some(place) = held.locks.iter().rposition(|other| *other == lock) {
            held.locks.remove(place);
        } else {
            return;
        }
        // Of a lock that is held more than once only the first and the last hold matter.
        if again && (acquires || held.locks.contains(&lock)) {
            return;
        }
        let key = (u64::from(held.all) << 2 | u64::from(lock.shared) << 1 | u64::from(acquires), lock.number);
        let [all, any_mode, exclusive] = *self.transitions.entry(key).or_insert_with(|| {
            let exclusive = |lock: &Lock| Lock { number: lock.number, shared: false };
            [
                sets.number(held.locks.clone()),
                sets.number(held.locks.iter().map(exclusive).collect()),
                sets.number(held.locks.iter().filter(|lock| !lock.shared).copied().collect()),
            ]
        });
        (held.all, held.any_mode, held.exclusive) = (all, any_mode, exclusive);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(op: Op, lock: u32) -> Event {
        Event::new(0, op, lock, 0)
    }

    #[test]
    fn modes_and_recursion() {
        let (mut held, mut sets) = (HeldLocks::default(), Sets::default());
        held.prepare(1);
        held.step(&event(Op::Acquire, 1), &mut sets);
        let one = held.all(0);
        held.step(&event(Op::Acquire, 1), &mut sets);
        held.step(&event(Op::Release, 1), &mut sets);
        assert_eq!(held.all(0), one);
        held.step(&event(Op::AcquireShared, 2), &mut sets);
        assert_eq!(held.exclusive(0), one);
        let both = held.any_mode(0);
        assert_eq!(sets.locks(both).len(), 2);
        let shared = sets.number(vec![Lock { number: 2, shared: true }]);
        let exclusive = sets.number(vec![Lock { number: 2, shared: false }]);
        let all = held.all(0);
        assert!(!sets.exclude(all, shared));
        assert!(sets.exclude(all, exclusive));
        assert_eq!(sets.common(both, exclusive), exclusive);
        held.step(&event(Op::Release, 1), &mut sets);
        held.step(&event(Op::ReleaseShared, 2), &mut sets);
        assert_eq!((held.all(0), held.any_mode(0)), (EMPTY, EMPTY));
    }
}
