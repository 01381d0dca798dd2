//! Critical sections, and which of a lock's sections an access may have to be ordered behind.

use crate::clock::Time;

pub(crate) const NONE: u32 = u32::MAX;

/// A critical section.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Section {
    pub acquired: Time,
    /// 0 while it is open.
    pub released: Time,
    pub thread: u16,
    pub shared: bool,
    /// What happened before the release.
    pub row: u32,
}

/// Sections of one lock in which one variable was read, or written, as far as somebody may still be ordered behind them.
#[derive(Clone, Debug)]
pub(crate) struct Accessing {
    /// The latest exclusive one, and the latest one of another thread than that.
    latest: u32,
    other: u32,
    /// Shared ones, the latest of each thread; so many of them precede `latest`.
    shared: Vec<u32>,
    preceding: usize,
}

impl Default for Accessing {
    fn default() -> Self {
        Self { latest: NONE, other: NONE, shared: Vec::new(), preceding: 0 }
    }
}

impl Accessing {
    pub fn add(&mut self, number: u32, sections: &[Section]) {
        if self.latest == number {
            return;
        }
        let thread = |section: u32| sections[section as usize].thread;
        if sections[number as usize].shared {
            let first = self.preceding;
            match self.shared[first..].iter().position(|old| thread(*old) == thread(number)) {
                Some(place) => self.shared[first + place] = number,
                None => self.shared.push(number),
            }
            return;
        }
        if self.latest != NONE && thread(self.latest) != thread(number) {
            self.other = self.latest;
            self.shared.drain(..self.preceding);
        }
        self.latest = number;
        self.preceding = self.shared.len();
    }

    /// Those that a section of this thread and mode may have to be ordered behind.
    pub fn before(&self, thread: u16, shared: bool, sections: &[Section]) -> impl Iterator<Item = u32> {
        let among: &[u32] = if shared { &[] } else { &self.shared };
        let named = [self.latest, self.other].into_iter().filter(|section| *section != NONE);
        named.chain(among.iter().copied()).filter(move |section| sections[*section as usize].thread != thread)
    }
}
