//! Lock vectors and what follows from them (§3.3).
//!
//! The paper stores with a unit two copies of its thread's lock vector, of the beginning and of the end of its shared part. Of
//! both only the locks that are held matter to L_u, and there are few of them: a lock that is held in the first copy is held
//! throughout if the last copy has it with the same number of acquisitions. So a copy here is the held part of the vector
//! ([`Held`]), and the two formulas of L_u are one comparison ([`throughout`]). Merging by element-wise minimum and maximum is
//! taking the earlier and the later copy, since the vectors of one thread only grow.

use crate::event::{Lock, Mode};
use rustc_hash::FxHashMap;

/// l_t(m): how often the thread has acquired and released the lock.
///
/// Acquisitions of a lock that the thread holds already do not count, nor do their releases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Counts {
    pub acquired: u32,
    pub released: u32,
}

/// A lock that is held, and which of its thread's acquisitions of it this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Held {
    pub lock: Lock,
    pub acquisition: u32,
    pub mode: Mode,
}

/// L_u, or C_s.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LockSet {
    /// Every lock there is: nothing shared was accessed.
    All,
    /// Sorted.
    These(Vec<(Lock, Mode)>),
}

impl LockSet {
    pub fn none() -> LockSet {
        LockSet::These(Vec::new())
    }

    pub fn is_empty(&self) -> bool {
        matches!(self, LockSet::These(locks) if locks.is_empty())
    }

    pub fn intersection(&self, other: &LockSet) -> LockSet {
        match (self, other) {
            (LockSet::All, set) | (set, LockSet::All) => set.clone(),
            (LockSet::These(one), LockSet::These(two)) => {
                let both = one.iter().filter_map(|(lock, mode)| {
                    let other = two.iter().find(|(other, _)| other == lock)?.1;
                    Some((*lock, (*mode).max(other)))
                });
                LockSet::These(both.collect())
            }
        }
    }

    /// What counts for a unit that writes: a lock held as a reader excludes no other reader.
    pub(crate) fn of_writer(&self) -> LockSet {
        match self {
            LockSet::All => LockSet::All,
            LockSet::These(locks) => LockSet::These(locks.iter().copied().filter(|(_, mode)| *mode == Mode::Exclusive).collect()),
        }
    }

    /// Whether two threads that hold these exclude each other: one lock is in both, and not for both as readers.
    pub(crate) fn excludes(&self, other: &LockSet) -> bool {
        let (LockSet::These(one), LockSet::These(two)) = (self, other) else { return true };
        one.iter().any(|(lock, mode)| {
            two.iter().any(|(other, other_mode)| lock == other && (*mode == Mode::Exclusive || *other_mode == Mode::Exclusive))
        })
    }

    /// Whether whatever this excludes the other excludes, too.
    pub(crate) fn within(&self, other: &LockSet) -> bool {
        match (self, other) {
            (_, LockSet::All) => true,
            (LockSet::All, _) => false,
            (LockSet::These(one), LockSet::These(two)) => {
                one.iter().all(|(lock, mode)| two.iter().any(|(other, stronger)| lock == other && stronger <= mode))
            }
        }
    }
}

/// L_u of a unit whose shared part begins with `first` held and ends with `last` held.
pub(crate) fn throughout(first: &[Held], last: &[Held]) -> LockSet {
    let kept =
        first.iter().filter(|held| last.iter().any(|other| held.lock == other.lock && held.acquisition == other.acquisition));
    LockSet::These(kept.map(|held| (held.lock, held.mode)).collect())
}

/// The lock vector of one thread.
#[derive(Default)]
pub(crate) struct Locks {
    counts: FxHashMap<Lock, Counts>,
    /// Sorted by lock; with how often each was acquired on top of itself.
    held: Vec<(Held, u32)>,
}

impl Locks {
    pub fn counts(&self, lock: Lock) -> Counts {
        self.counts.get(&lock).copied().unwrap_or_default()
    }

    pub fn held(&self) -> impl Iterator<Item = Held> {
        self.held.iter().map(|(held, _)| *held)
    }

    /// Whether the vector changed.
    pub fn acquire(&mut self, lock: Lock, mode: Mode) -> bool {
        match self.held.binary_search_by_key(&lock, |(held, _)| held.lock) {
            Ok(index) => {
                self.held[index].1 += 1;
                false
            }
            Err(index) => {
                let counts = self.counts.entry(lock).or_default();
                counts.acquired += 1;
                self.held.insert(index, (Held { lock, acquisition: counts.acquired, mode }, 0));
                true
            }
        }
    }

    /// Whether the vector changed; `None` if the lock is not held.
    pub fn release(&mut self, lock: Lock) -> Option<bool> {
        let index = self.held.binary_search_by_key(&lock, |(held, _)| held.lock).ok()?;
        if self.held[index].1 > 0 {
            self.held[index].1 -= 1;
            return Some(false);
        }
        self.held.remove(index);
        self.counts.entry(lock).or_default().released += 1;
        Some(true)
    }
}
