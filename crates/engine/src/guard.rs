//! What Eraser keeps of a variable: its state, in three bits, and the locks that were held at each access since it is shared, in
//! eight bytes.

use crate::lock_sets::{Lock, SetId};

/// Eraser's states. A number, not an enum: telling them apart takes comparisons then, and no jump that nobody can predict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Protection(pub u32);

impl Protection {
    pub const VIRGIN: Self = Self(0);
    pub const EXCLUSIVE: Self = Self(1);
    pub const SHARED: Self = Self(2);
    pub const SHARED_MODIFIED: Self = Self(3);
    /// In place of every state that is left after a warning.
    pub const WARNED: Self = Self(4);

    /// How many bits the number takes.
    pub const BITS: u32 = 3;
}

/// Locks that have a lane of their own in a word, and the bits of a lane.
const LANES: usize = 4;
const WIDTH: usize = 16;
/// Words for what a thread holds, and their lanes.
const WORDS: usize = 2;
const MOST: usize = WORDS * LANES;
/// An empty lane.
const NOTHING: u16 = u16::MAX;
/// In the first lane: the set is in a table, and its number in the last two lanes.
const IN_TABLE: u16 = u16::MAX - 1;
/// [`Lock::OF_ATOMICS`], whose number is greater than that of any lock.
const OF_ATOMICS: u16 = u16::MAX - 2;
/// One in every lane.
const ONES: u64 = 0x0001_0001_0001_0001;
/// All bits of every lane but its topmost.
const BELOW: u64 = 0x7fff * ONES;

/// A set of locks that exclude each other, or the thread that owns the variable. Up to four locks with small numbers are in the
/// set itself, in any of its lanes, so that intersecting takes no branch; larger sets are in a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Guard(u64);

impl Guard {
    pub const EMPTY: Self = Self(u64::MAX);

    fn of_lanes(lanes: [u16; LANES]) -> Self {
        Self(lanes.iter().rev().fold(0, |all, lane| all << WIDTH | u64::from(*lane)))
    }

    fn lanes(self) -> [u16; LANES] {
        std::array::from_fn(|lane| (self.0 >> (WIDTH * lane)) as u16)
    }

    #[inline]
    pub fn of_owner(thread: u16) -> Self {
        Self(u64::from(thread))
    }

    #[inline]
    pub fn owner(self) -> u16 {
        self.0 as u16
    }

    fn code(lock: &Lock) -> Option<u16> {
        if *lock == Lock::OF_ATOMICS {
            return Some(OF_ATOMICS);
        }
        u16::try_from(lock.number).ok().filter(|code| *code < OF_ATOMICS)
    }

    /// If it needs no table.
    pub fn of_locks(locks: &[Lock]) -> Option<Self> {
        let mut lanes = [NOTHING; LANES];
        if locks.len() > LANES {
            return None;
        }
        for (lane, lock) in lanes.iter_mut().zip(locks) {
            *lane = Self::code(lock)?;
        }
        Some(Self::of_lanes(lanes))
    }

    pub fn in_table(set: SetId) -> Self {
        Self(u64::from(set) << 32 | u64::from(IN_TABLE))
    }

    /// The number of the set, if it is in the table.
    #[inline]
    pub fn set(self) -> Option<SetId> {
        (self.0 as u16 == IN_TABLE).then_some((self.0 >> 32) as u32)
    }

    /// Of a set that is not in the table.
    pub fn locks(self) -> impl Iterator<Item = Lock> {
        let lock = |code: u16| match code {
            OF_ATOMICS => Lock::OF_ATOMICS,
            code => Lock { number: u64::from(code), shared: false },
        };
        self.lanes().into_iter().filter(|code| *code != NOTHING).map(lock)
    }

    /// The topmost bit of each lane that is this lock's.
    #[inline]
    fn lanes_of(self, code: u16) -> u64 {
        let other = self.0 ^ (u64::from(code) * ONES);
        !(((other & BELOW) + BELOW) | other | BELOW)
    }

    /// Those of the locks that are in this word of lanes, too. Of a set that is not in the table.
    #[inline]
    fn intersect(self, held: impl IntoIterator<Item = u64>) -> Self {
        let lanes = held.into_iter().flat_map(|word| (0..LANES).map(move |lane| (word >> (WIDTH * lane)) as u16));
        let both = lanes.fold(0, |both, code| both | self.lanes_of(code));
        Self(self.0 | !((both >> (WIDTH - 1)) * u64::from(NOTHING)))
    }
}

/// What a thread holds, in words of four lanes as in [`Guard`].
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub struct HeldLanes {
    /// First what protects reads: all, in the order of acquisition; then what protects writes: what is held exclusively.
    words: [[u64; WORDS]; 2],
    /// How many there are of each, which is more than there are lanes if one has none.
    counts: [usize; 2],
}

impl Default for HeldLanes {
    fn default() -> Self {
        Self { words: [[u64::MAX; WORDS]; 2], counts: [0; 2] }
    }
}

impl HeldLanes {
    pub fn of_locks(held: &[Lock]) -> Self {
        let mut lanes = Self::default();
        held.iter().for_each(|lock| lanes.push(lock));
        lanes
    }

    /// The lock that was acquired last.
    pub fn push(&mut self, lock: &Lock) {
        match Guard::code(lock) {
            Some(code) if self.counts[0] < MOST => {
                for protecting in 0..if lock.shared { 1 } else { 2 } {
                    self.toggle(protecting, self.counts[protecting], code);
                    self.counts[protecting] += 1;
                }
            }
            _ => self.counts[0] = usize::MAX,
        }
    }

    /// The lock that was acquired last is released. Says no, and does nothing, if not all locks have a lane.
    pub fn pop(&mut self, lock: &Lock) -> bool {
        let Some(code) = Guard::code(lock).filter(|_| self.counts[0] <= MOST) else { return false };
        for protecting in 0..if lock.shared { 1 } else { 2 } {
            self.counts[protecting] -= 1;
            self.toggle(protecting, self.counts[protecting], code);
        }
        true
    }

    /// Puts a code in place of nothing, or nothing in place of a code.
    fn toggle(&mut self, protecting: usize, lane: usize, code: u16) {
        self.words[protecting][lane / LANES] ^= u64::from(code ^ NOTHING) << (WIDTH * (lane % LANES));
    }

    /// What guards a variable behind a plain access: if it was owned until now, what is held, else what of `guard` is held.
    /// Nothing where a table is needed.
    #[inline]
    pub fn guard(&self, guard: Guard, was_owned: bool, writes: bool) -> Option<Guard> {
        let words = &self.words[usize::from(writes)];
        if (self.counts[0] > LANES) | (guard.set().is_some() & !was_owned) {
            let quick = !was_owned && self.counts[0] <= MOST && guard.set().is_none();
            return quick.then(|| guard.intersect(*words));
        }
        let both = guard.intersect([words[0]]);
        Some(if was_owned { Guard(words[0]) } else { both })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn lock(number: u64, shared: bool) -> Lock {
        Lock { number, shared }
    }

    #[test]
    fn locks_go_in_and_come_out() {
        for locks in [vec![], vec![lock(0, false)], vec![lock(7, false), Lock::OF_ATOMICS, lock(65_532, false), lock(1, false)]] {
            let guard = Guard::of_locks(&locks).expect("few, with small numbers");
            assert!(guard.locks().eq(locks.iter().copied()) && guard.set().is_none());
            assert_eq!(guard == Guard::EMPTY, locks.is_empty());
        }
        assert_eq!(Guard::of_locks(&[lock(65_533, false)]), None);
        assert_eq!(Guard::of_locks(&[lock(1, false); 5]), None);
        for set in [0, 1, 65_535, 65_536, 0x1234_5678, SetId::MAX] {
            assert_eq!(Guard::in_table(set).set(), Some(set));
        }
    }

    /// Every set of up to four of six locks against every way of holding up to five of them.
    #[test]
    fn intersections_are_those_of_sets() {
        let numbers = [0, 1, 5, 9_999, 65_532, 70_000];
        let sets = (0..1_u32 << numbers.len()).map(|bits| (0..numbers.len()).filter(move |lock| bits >> lock & 1 != 0));
        let guards: Vec<(BTreeSet<u64>, Guard)> = sets
            .filter_map(|set| {
                let locks: Vec<Lock> = set.map(|place| lock(numbers[place], false)).collect();
                Some((locks.iter().map(|lock| lock.number).collect(), Guard::of_locks(&locks)?))
            })
            .collect();
        for modes in 0..3_usize.pow(numbers.len() as u32) {
            let mode = |place: usize| modes / 3_usize.pow(place as u32) % 3;
            let places = (0..numbers.len()).filter(|place| mode(*place) > 0);
            let held: Vec<Lock> = places.map(|place| lock(numbers[place], mode(place) == 2)).collect();
            let mut lanes = HeldLanes::of_locks(&held);
            lanes.push(&lock(3, modes % 2 == 0));
            assert_eq!(lanes.pop(&lock(3, modes % 2 == 0)), !held.iter().any(|lock| lock.number == 70_000));
            for writes in [false, true] {
                let protecting: BTreeSet<u64> =
                    held.iter().filter(|lock| !(lock.shared && writes)).map(|lock| lock.number).collect();
                let numbers = |guard: Guard| guard.locks().map(|lock| lock.number).collect::<BTreeSet<u64>>();
                for (set, guard) in &guards {
                    if let Some(both) = lanes.guard(*guard, false, writes) {
                        assert!(numbers(both).iter().eq(set.intersection(&protecting)), "{set:?} {held:?}");
                    } else {
                        assert!(held.iter().any(|lock| lock.number == 70_000));
                    }
                    let all = lanes.guard(*guard, true, writes);
                    assert_eq!(all.is_none(), held.len() > LANES || held.iter().any(|lock| lock.number == 70_000));
                    assert!(all.is_none_or(|all| numbers(all) == protecting));
                }
            }
        }
    }
}
