//! The part of a thread's record that any thread may read at any time.

use crate::system::thread::State;
use core::marker::PhantomData;
use core::sync::atomic::{AtomicU32, Ordering::*};

/// A word that its owner writes, or who holds the lock that guards it, and any thread reads at any time: whoever polls it sees
/// it change. All zero: 0, false, [`State::Runnable`].
pub struct Shared<T>(AtomicU32, PhantomData<T>);

pub trait Word: Copy {
    fn word(self) -> u32;
    fn of(word: u32) -> Self;
}

impl<T: Word> Shared<T> {
    #[inline(always)]
    pub fn get(&self) -> T {
        T::of(self.0.load(Acquire))
    }

    #[inline(always)]
    pub fn set(&self, value: T) {
        self.0.store(value.word(), Release);
    }

    /// The value that it had.
    pub fn replace(&self, value: T) -> T {
        T::of(self.0.swap(value.word(), AcqRel))
    }
}

impl Word for u32 {
    fn word(self) -> u32 {
        self
    }
    fn of(word: u32) -> Self {
        word
    }
}

impl Word for bool {
    fn word(self) -> u32 {
        u32::from(self)
    }
    fn of(word: u32) -> Self {
        word != 0
    }
}

impl Word for State {
    fn word(self) -> u32 {
        self as u32
    }
    fn of(word: u32) -> Self {
        const STATES: [State; 6] = [State::Runnable, State::Running, State::Blocked, State::External, State::Held, State::Ended];
        debug_assert!(STATES[word as usize] as u32 == word);
        STATES[word as usize]
    }
}
