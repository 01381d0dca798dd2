//! The words of a thread's record that any thread may read at any time.

use crate::system::thread::State;
use core::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering::*};

/// A word that its owner writes, or who holds the lock that guards it, and any thread reads at any time: whoever polls it sees
/// it change. Counts and addresses, which are of 64 bits, order nothing. All zero: 0, false, [`State::Runnable`].
#[repr(transparent)]
pub struct Shared<T: Word>(T::Atomic);

pub trait Word: Copy {
    type Atomic;
    fn load(word: &Self::Atomic) -> Self;
    fn store(self, word: &Self::Atomic);
    fn swap(self, word: &Self::Atomic) -> Self;
}

impl<T: Word> Shared<T> {
    #[inline(always)]
    pub fn get(&self) -> T {
        T::load(&self.0)
    }

    #[inline(always)]
    pub fn set(&self, value: T) {
        value.store(&self.0);
    }

    /// The value that it had.
    pub fn replace(&self, value: T) -> T {
        value.swap(&self.0)
    }
}

macro_rules! words {
    ($($word:ty, $atomic:ty, $load:ident $store:ident, $into:expr, $from:expr;)*) => { $(
        impl Word for $word {
            type Atomic = $atomic;
            #[inline(always)]
            fn load(word: &$atomic) -> Self {
                $from(word.load($load))
            }
            #[inline(always)]
            fn store(self, word: &$atomic) {
                word.store($into(self), $store);
            }
            #[inline(always)]
            fn swap(self, word: &$atomic) -> Self {
                $from(word.swap($into(self), AcqRel))
            }
        }
    )* };
}

words! {
    u32, AtomicU32, Acquire Release, core::convert::identity, core::convert::identity;
    u64, AtomicU64, Relaxed Relaxed, core::convert::identity, core::convert::identity;
    i64, AtomicI64, Relaxed Relaxed, core::convert::identity, core::convert::identity;
    bool, AtomicU32, Acquire Release, u32::from, |word| word != 0;
    State, AtomicU32, Acquire Release, |state| state as u32, State::of;
}

impl State {
    fn of(word: u32) -> Self {
        const STATES: [State; 6] = [State::Runnable, State::Running, State::Blocked, State::External, State::Held, State::Ended];
        debug_assert!(STATES[word as usize] as u32 == word);
        STATES[word as usize]
    }
}

/// Where something lies: first address and the one behind the last. Who reads both while they change may see one of each.
pub struct Extent {
    start: Shared<u64>,
    end: Shared<u64>,
}

impl Extent {
    pub fn get(&self) -> (u64, u64) {
        (self.start.get(), self.end.get())
    }

    pub fn set(&self, (start, end): (u64, u64)) {
        self.start.set(start);
        self.end.set(end);
    }
}

/// Counts what its owner does; another thread may take what was counted so far.
pub struct Counter(AtomicU64);

impl Counter {
    /// By the owner.
    #[inline(always)]
    pub fn add(&self, more: u64) {
        self.0.store(self.0.load(Relaxed).wrapping_add(more), Relaxed);
    }

    pub fn take(&self) -> u64 {
        self.0.swap(0, Relaxed)
    }
}
