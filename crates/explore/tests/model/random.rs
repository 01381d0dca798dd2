//! Small programs, drawn.

use super::{Do, Program};

pub fn guarded(lock: u64, inner: &[Do]) -> Vec<Do> {
    [&[Do::Lock(lock)], inner, &[Do::Unlock(lock)]].concat()
}

pub struct Random(pub u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    fn access(&mut self) -> Do {
        if self.below(2) == 0 { Do::Read(self.below(2)) } else { Do::Write(self.below(2)) }
    }

    /// Something that one thread does: an access, a critical section, a try, a wait, a wake-up.
    fn part(&mut self) -> Vec<Do> {
        let lock = self.below(2);
        match self.below(11) {
            0 | 1 => vec![self.access()],
            2 | 3 => guarded(lock, &[self.access()]),
            4 => guarded(lock, &guarded(1 - lock, &[self.access()])),
            5 => vec![Do::Try(lock), self.access(), Do::UnlockTried(lock)],
            // All that wait for a condition give up the same lock (POSIX).
            6 => guarded(lock, &[Do::Wait(lock, lock), self.access()]),
            7 => guarded(lock, &[if self.below(2) == 0 { Do::Signal(lock) } else { Do::Broadcast(lock) }]),
            8 => vec![if self.below(2) == 0 { Do::Signal(lock) } else { Do::Broadcast(lock) }],
            9 => vec![if self.below(2) == 0 { Do::Take(0) } else { Do::Post(0) }],
            _ => vec![Do::LockShared(lock), self.access(), Do::UnlockShared(lock)],
        }
    }

    pub fn program(&mut self) -> Program {
        let threads = 2 + self.below(3);
        let most = if threads == 2 { 3 } else { 2 };
        (0..threads)
            .map(|_| {
                let parts = if threads == 4 { 1 } else { 1 + self.below(most) };
                (0..parts).flat_map(|_| self.part()).collect()
            })
            .collect()
    }
}
