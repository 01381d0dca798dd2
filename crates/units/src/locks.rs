//! Lock vectors and what follows from them (§3.3).
//!
//! The paper stores with a unit two copies of its thread's lock vector, of the beginning and of the end of its shared part. Of
//! both only the locks that are held matter to L_u, and there are few of them: a lock that is held in the first copy is held
//! throughout if the last copy has it with the same number of acquisitions. So a copy here is the held part of the vector
//! ([`Held`]), and the two formulas of L_u are one comparison ([`Span`]). Merging by element-wise minimum and maximum is
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
}

/// What is held at the beginning and at the end of a shared part.
#[derive(Clone, Copy)]
pub(crate) struct Span<'a> {
    pub first: &'a [Held],
    pub last: &'a [Held],
}

impl<'a> Span<'a> {
    /// L_u: what is held throughout.
    fn throughout(self) -> impl Iterator<Item = &'a Held> {
        let kept =
            move |held: &&Held| self.last.iter().any(|other| held.lock == other.lock && held.acquisition == other.acquisition);
        self.first.iter().filter(kept)
    }

    pub fn locks(self) -> LockSet {
        LockSet::These(self.throughout().map(|held| (held.lock, held.mode)).collect())
    }

    /// Whether two units exclude each other: one lock is in both L_u, and not for both as readers.
    pub fn excludes(self, other: Span<'_>) -> bool {
        self.throughout().any(|one| {
            other.throughout().any(|two| one.lock == two.lock && (one.mode == Mode::Exclusive || two.mode == Mode::Exclusive))
        })
    }

    /// Whether whatever this excludes the other excludes, too.
    pub fn within(self, other: Span<'_>) -> bool {
        self.throughout().all(|one| other.throughout().any(|two| one.lock == two.lock && two.mode <= one.mode))
    }
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
