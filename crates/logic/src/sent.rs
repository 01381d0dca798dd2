//! What a thread has sent, as far as TREE's filters ask: when was the last *outgoing* event that is not *dead*?
//!
//! An outgoing event is one that other threads may receive from; they are numbered, ascending. The release of a mutex is dead
//! once the thread has acquired that mutex again exclusively and nobody received from it in between: whoever will ever receive it
//! will receive a later release, too. What this is for, and the proof: `crates/filter/src/relation.rs`, Theorem 1. The same
//! in plain words: `crates/filter/src/context.rs`; that both agree on generated traces:
//! `crates/filter/tests/conformance.rs`.
//!
//! **Bound.** Of more than `N` mutexes that are released and not acquired again the oldest release counts as received. Then more
//! is kept than need be.

#[derive(Clone, Copy)]
struct Release {
    lock: u32,
    number: u32,
}

/// All zero: nothing was sent.
pub struct Sent<const N: usize> {
    /// The highest number of an event that can never be dead.
    received: u32,
    /// Releases of mutexes that were not acquired again, numbers ascending.
    pending: [Release; N],
    count: usize,
}

impl<const N: usize> Sent<N> {
    pub const fn new() -> Self {
        Self { received: 0, pending: [Release { lock: 0, number: 0 }; N], count: 0 }
    }

    /// The highest number of an outgoing event that is not dead.
    #[inline]
    pub fn alive(&self) -> u32 {
        let latest = self.count.checked_sub(1).map_or(0, |last| self.pending[last].number);
        if latest > self.received { latest } else { self.received }
    }

    /// An event that others may receive from at any time; later than all before.
    #[inline]
    pub fn send(&mut self, number: u32) {
        debug_assert!(number >= self.alive());
        self.received = number;
        self.count = 0;
    }

    /// A mutex is released.
    pub fn release(&mut self, lock: u32, number: u32) {
        debug_assert!(number >= self.alive());
        if let Some(at) = self.position(lock) {
            self.remove(at);
        }
        if self.count == N {
            let oldest = self.pending[0].number;
            self.remove(0);
            self.receive(oldest);
        }
        self.pending[self.count] = Release { lock, number };
        self.count += 1;
    }

    /// A mutex is acquired. `alone`: nobody received from the thread's last release of it, which is `number` if that is told.
    pub fn acquire(&mut self, lock: u32, exclusive: bool, alone: impl FnOnce(u32) -> bool) {
        let Some(at) = self.position(lock) else { return };
        let number = self.pending[at].number;
        let alone = alone(number);
        if exclusive || !alone {
            self.remove(at);
            if !alone {
                self.receive(number);
            }
        }
    }

    /// Whether a release of the mutex may yet become dead.
    #[inline]
    pub fn position(&self, lock: u32) -> Option<usize> {
        self.pending[..self.count].iter().position(|release| release.lock == lock)
    }

    fn receive(&mut self, number: u32) {
        if number > self.received {
            self.received = number;
        }
    }

    fn remove(&mut self, at: usize) {
        self.pending.copy_within(at + 1..self.count, at);
        self.count -= 1;
    }
}

impl<const N: usize> Default for Sent<N> {
    fn default() -> Self {
        Self::new()
    }
}
