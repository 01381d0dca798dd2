//! The locks that threads hold, and sets of locks as small numbers: equal numbers, equal sets.

use rashomon_packed::{Event, Op};
use rustc_hash::FxHashMap;

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

/// Number of a set. One or two locks with small numbers are in the set's number itself, so that nothing need be looked up; what
/// has neither bit is a place in a table.
pub type SetId = u32;
const ONE: SetId = 1 << 30;
const TWO: SetId = 1 << 31;
/// Bits of a lock among two.
const HALF: u32 = 15;
pub const EMPTY: SetId = 0;

/// Locks of a small set, in half a cache line, so that two sets are compared without looking anything up.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(32))]
struct Few([u64; 4]);

const _: () = assert!(size_of::<Few>() == 32);

impl Few {
    /// In place of a lock.
    const NOTHING: u64 = u64::MAX;
    /// In place of the first lock of a set that is too large.
    const MANY: u64 = u64::MAX - 1;

    fn code(lock: &Lock) -> u64 {
        lock.number << 1 | u64::from(lock.shared)
    }

    /// The number of a set that needs no table.
    fn number(locks: &[Lock]) -> Option<SetId> {
        match *locks {
            [ref one] if Self::code(one) < u64::from(ONE) => Some(ONE | Self::code(one) as u32),
            [ref one, ref other] if Self::code(one).max(Self::code(other)) < 1 << HALF => {
                Some(TWO | (Self::code(one) as u32) << HALF | Self::code(other) as u32)
            }
            _ => None,
        }
    }

    /// The set of such a number.
    #[inline]
    fn of_number(set: SetId) -> Option<Self> {
        let mut few = [Self::NOTHING; 4];
        if set & TWO != 0 {
            (few[0], few[1]) = (u64::from(set >> HALF) & ((1 << HALF) - 1), u64::from(set) & ((1 << HALF) - 1));
        } else if set & ONE != 0 {
            few[0] = u64::from(set & (ONE - 1));
        } else {
            return None;
        }
        Some(Self(few))
    }

    fn of(locks: &[Lock]) -> Self {
        let mut few = [Self::NOTHING; 4];
        if locks.len() > few.len() {
            few[0] = Self::MANY;
        } else {
            few.iter_mut().zip(locks).for_each(|(few, lock)| *few = Self::code(lock));
        }
        Self(few)
    }

    fn locks(self) -> Option<impl Iterator<Item = Lock>> {
        let lock = |few: u64| Lock { number: few >> 1, shared: few & 1 != 0 };
        let present = self.0.into_iter().take_while(|few| *few != Self::NOTHING);
        (self.0[0] != Self::MANY).then(|| present.map(lock))
    }
}

/// Sets by number, and what is known of them.
#[derive(Clone, Debug)]
pub struct Sets {
    sets: Vec<Box<[Lock]>>,
    few: Vec<Few>,
    numbers: FxHashMap<Box<[Lock]>, SetId>,
    /// Of the sets.
    bytes: usize,
    scratch: Vec<Lock>,
}

impl Default for Sets {
    fn default() -> Self {
        Self {
            sets: vec![Box::default()],
            few: vec![Few::of(&[])],
            numbers: [(Box::default(), EMPTY)].into_iter().collect(),
            scratch: Vec::new(),
            bytes: 0,
        }
    }
}

/// Whether two threads cannot hold these two at once.
fn exclude(one: Lock, other: Lock) -> bool {
    one.number == other.number && !(one.shared && other.shared)
}

/// Whether whatever the first excludes is excluded by the second.
fn is_weaker(one: Lock, other: Lock) -> bool {
    one.number == other.number && (one.shared || !other.shared)
}

impl Sets {
    #[inline]
    fn few(&self, set: SetId) -> Few {
        Few::of_number(set).unwrap_or_else(|| self.few[set as usize])
    }

    /// Sorted.
    pub fn locks(&self, set: SetId) -> impl Iterator<Item = Lock> {
        let few = self.few(set).locks();
        let many = few.is_none().then(|| self.sets[set as usize].iter().copied());
        few.into_iter().flatten().chain(many.into_iter().flatten())
    }

    pub fn number(&mut self, locks: impl IntoIterator<Item = Lock>) -> SetId {
        self.scratch.clear();
        self.scratch.extend(locks);
        self.scratch.sort_unstable();
        self.scratch.dedup();
        self.number_scratch()
    }

    fn number_scratch(&mut self) -> SetId {
        if let Some(number) = Few::number(&self.scratch) {
            return number;
        }
        if let Some(&number) = self.numbers.get(&self.scratch[..]) {
            return number;
        }
        let locks = Box::from(&self.scratch[..]);
        self.insert(locks)
    }

    #[cold]
    fn insert(&mut self, locks: Box<[Lock]>) -> SetId {
        let number = self.sets.len() as SetId;
        assert!(number < ONE, "a table of sets that fits in memory");
        self.few.push(Few::of(&locks));
        self.bytes += size_of_val(&*locks) + size_of::<Box<[Lock]>>();
        self.sets.push(locks.clone());
        self.numbers.insert(locks, number);
        number
    }

    /// Whether two threads cannot hold these sets at once: a common lock that not both hold in shared mode.
    #[inline]
    pub fn exclude(&self, one: SetId, other: SetId) -> bool {
        if one == EMPTY || other == EMPTY {
            return false;
        }
        match (self.few(one).locks(), self.few(other)) {
            (Some(mut locks), among) if among.0[0] != Few::MANY => {
                locks.any(|lock| among.locks().into_iter().flatten().any(|other| exclude(lock, other)))
            }
            _ => self.locks(one).any(|lock| self.locks(other).any(|other| exclude(lock, other))),
        }
    }

    /// Whether whatever is excluded by the first set is excluded by the second.
    #[inline]
    pub fn is_weaker(&self, one: SetId, other: SetId) -> bool {
        if one == other || one == EMPTY {
            return true;
        }
        match (self.few(one).locks(), self.few(other)) {
            (Some(mut locks), among) if among.0[0] != Few::MANY => {
                locks.all(|lock| among.locks().into_iter().flatten().any(|other| is_weaker(lock, other)))
            }
            _ => self.locks(one).all(|lock| self.locks(other).any(|other| is_weaker(lock, other))),
        }
    }

    pub fn bytes(&self) -> usize {
        2 * self.bytes + self.few.capacity() * size_of::<Few>()
    }
}

#[derive(Clone, Debug, Default)]
struct Held {
    /// In the order of acquisition; a lock that is held twice is there twice.
    locks: Vec<Lock>,
    number: SetId,
    /// The numbers of what was held before each of them.
    before: Vec<SetId>,
}

/// What every thread holds while a trace goes by.
#[derive(Clone, Debug, Default)]
pub struct HeldLocks {
    threads: Vec<Held>,
    /// (set, mode, lock acquired) → set.
    transitions: FxHashMap<(u64, u64), SetId>,
}

impl HeldLocks {
    pub fn prepare(&mut self, threads: usize) {
        if self.threads.len() < threads {
            self.threads.resize(threads, Held::default());
        }
    }

    /// Of a thread that [`Self::step`] follows.
    #[inline]
    pub fn number(&self, thread: u16) -> SetId {
        self.threads[usize::from(thread)].number
    }

    /// In the order of acquisition; a lock that is held twice is there twice.
    pub fn locks(&self, thread: u16) -> &[Lock] {
        &self.threads[usize::from(thread)].locks
    }

    /// Whether the event's thread holds the lock in a way that protects the access: a write needs it exclusively.
    #[inline]
    pub fn protects(&self, event: &Event, lock: &Lock) -> bool {
        if *lock == Lock::OF_ATOMICS {
            return !event.op.is_plain();
        }
        let enough = |held: &Lock| held.number == lock.number && !(held.shared && event.op.writes());
        self.threads[usize::from(event.thread)].locks.iter().any(enough)
    }

    /// All locks that protect the access, whatever their mode.
    pub fn protecting(&self, event: &Event) -> impl Iterator<Item = Lock> {
        let held = self.threads[usize::from(event.thread)].locks.iter();
        let writes = event.op.writes();
        let enough = held.filter(move |held| !(held.shared && writes));
        let locks = enough.map(|held| Lock { number: held.number, shared: false });
        locks.chain((!event.op.is_plain()).then_some(Lock::OF_ATOMICS))
    }

    /// An event of the locks' space. Says whether the set of held locks is another one behind it. Releasing what is not held
    /// changes nothing.
    pub fn list(&mut self, event: &Event) -> bool {
        let lock = Lock::of(event);
        let locks = &mut self.threads[usize::from(event.thread)].locks;
        let again = locks.contains(&lock);
        match event.op {
            Op::Acquire | Op::AcquireShared => locks.push(lock),
            Op::Release | Op::ReleaseShared => {
                let Some(place) = locks.iter().rposition(|other| *other == lock) else { return false };
                locks.remove(place);
                return !locks.contains(&lock);
            }
            _ => return false,
        }
        !again
    }

    /// The same, and numbers the set. Most locks are given back in the reverse order: what was held before is known then.
    pub fn step(&mut self, event: &Event, sets: &mut Sets) {
        let thread = usize::from(event.thread);
        let lock = Lock::of(event);
        if matches!(event.op, Op::Acquire | Op::AcquireShared) {
            let number = self.threads[thread].number;
            let is_other = self.list(event);
            let held = &mut self.threads[thread];
            held.before.push(number);
            if is_other {
                let key = (u64::from(number) << 1 | u64::from(lock.shared), lock.number);
                let locks = &held.locks;
                held.number = *self.transitions.entry(key).or_insert_with(|| sets.number(locks.iter().copied()));
            }
            return;
        }
        let held = &mut self.threads[thread];
        let Some(place) = held.locks.iter().rposition(|other| *other == lock) else { return };
        held.locks.remove(place);
        held.number = held.before.remove(place);
        for place in place..held.locks.len() {
            held.before[place] = held.number;
            held.number = sets.number(held.locks[..=place].iter().copied());
        }
    }

    pub fn bytes(&self) -> usize {
        self.transitions.capacity() * 4 * size_of::<u64>()
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
        let one = held.number(0);
        held.step(&event(Op::Acquire, 1), &mut sets);
        held.step(&event(Op::Release, 1), &mut sets);
        assert_eq!(held.number(0), one);
        held.step(&event(Op::AcquireShared, 2), &mut sets);
        let lock = |number, shared| Lock { number, shared };
        assert_eq!(held.protecting(&event(Op::Read, 0)).collect::<Vec<_>>(), [lock(1, false), lock(2, false)]);
        assert_eq!(held.protecting(&event(Op::Write, 0)).collect::<Vec<_>>(), [lock(1, false)]);
        let of_atomics = [lock(1, false), Lock::OF_ATOMICS];
        assert_eq!(held.protecting(&event(Op::AtomicWrite, 0)).collect::<Vec<_>>(), of_atomics);
        assert!(!held.protects(&event(Op::Write, 0), &lock(2, false)) && held.protects(&event(Op::Read, 0), &lock(2, false)));
        let (shared, exclusive) = (sets.number(vec![lock(2, true)]), sets.number(vec![lock(2, false)]));
        let all = held.number(0);
        assert!(!sets.exclude(all, shared) && sets.exclude(all, exclusive));
        assert!(sets.is_weaker(shared, exclusive) && !sets.is_weaker(exclusive, shared) && sets.is_weaker(shared, all));
        held.step(&event(Op::Release, 1), &mut sets);
        held.step(&event(Op::ReleaseShared, 2), &mut sets);
        assert_eq!(held.number(0), EMPTY);
    }

    /// Sets of up to six locks, with small numbers and large ones, in both modes, against lists.
    #[test]
    fn numbers_stand_for_sets() {
        let mut sets = Sets::default();
        let numbers = [0, 1, 9_999, 1 << 14, 1 << 29, Lock::OF_ATOMICS.number];
        let locks: Vec<Vec<Lock>> = (0..3_usize.pow(6))
            .map(|choice| {
                let lock = |(place, &number): (usize, &u64)| match choice / 3_usize.pow(place as u32) % 3 {
                    0 => None,
                    mode => Some(Lock { number, shared: mode == 2 }),
                };
                numbers.iter().enumerate().filter_map(lock).collect()
            })
            .collect();
        let ids: Vec<SetId> = locks.iter().map(|locks| sets.number(locks.iter().rev().copied())).collect();
        assert_eq!(ids[0], EMPTY);
        for (one, &id) in locks.iter().zip(&ids) {
            assert_eq!(sets.locks(id).collect::<Vec<_>>(), *one);
            for (other, &other_id) in locks.iter().zip(&ids) {
                assert_eq!(id == other_id, one == other);
                let excluded = one.iter().any(|one| other.iter().any(|other| exclude(*one, *other)));
                assert_eq!(sets.exclude(id, other_id), excluded, "{one:?} {other:?}");
                let weaker = one.iter().all(|one| other.iter().any(|other| is_weaker(*one, *other)));
                assert_eq!(sets.is_weaker(id, other_id), weaker, "{one:?} {other:?}");
            }
        }
    }
}
