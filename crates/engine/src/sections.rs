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

/// Exclusive sections of one lock in which one variable was read, or written, as far as somebody may still be ordered behind
/// them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exclusive {
    /// The latest one, and the latest one of another thread than that.
    pub latest: u32,
    pub other: u32,
}

impl Default for Exclusive {
    fn default() -> Self {
        Self { latest: NONE, other: NONE }
    }
}

/// Shared ones, the latest of each thread; so many of them precede the latest exclusive one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shared {
    sections: Vec<u32>,
    preceding: usize,
}

impl Exclusive {
    /// `shared` are those of the same lock and variable, if there are any.
    pub fn add(&mut self, number: u32, shared: Option<&mut Shared>, sections: &[Section]) {
        if self.latest == number {
            return;
        }
        let thread = |section: u32| sections[section as usize].thread;
        let of_another = self.latest != NONE && thread(self.latest) != thread(number);
        if of_another {
            self.other = self.latest;
        }
        self.latest = number;
        if let Some(shared) = shared {
            if of_another {
                shared.sections.drain(..shared.preceding);
            }
            shared.preceding = shared.sections.len();
        }
    }

    /// Those that a section of this thread may have to be ordered behind.
    #[inline]
    pub fn before(&self, thread: u16, sections: &[Section]) -> impl Iterator<Item = u32> {
        let named = [self.latest, self.other].into_iter().filter(|section| *section != NONE);
        named.filter(move |section| sections[*section as usize].thread != thread)
    }
}

impl Shared {
    pub fn add(&mut self, number: u32, sections: &[Section]) {
        let thread = |section: u32| sections[section as usize].thread;
        let first = self.preceding;
        match self.sections[first..].iter().position(|old| thread(*old) == thread(number)) {
            Some(place) => self.sections[first + place] = number,
            None => self.sections.push(number),
        }
    }

    /// Those that an exclusive section of this thread may have to be ordered behind.
    pub fn before(&self, thread: u16, sections: &[Section]) -> impl Iterator<Item = u32> {
        self.sections.iter().copied().filter(move |section| sections[*section as usize].thread != thread)
    }

    pub fn bytes(&self) -> usize {
        self.sections.capacity() * size_of::<u32>()
    }
}

/// Both.
#[derive(Clone, Debug, Default)]
pub(crate) struct Accessing {
    exclusive: Exclusive,
    shared: Shared,
}

impl Accessing {
    pub fn add(&mut self, number: u32, sections: &[Section]) {
        if sections[number as usize].shared {
            self.shared.add(number, sections);
        } else {
            self.exclusive.add(number, Some(&mut self.shared), sections);
        }
    }

    /// Those that a section of this thread and mode may have to be ordered behind.
    pub fn before(&self, thread: u16, shared: bool, sections: &[Section]) -> impl Iterator<Item = u32> {
        let among = (!shared).then(|| self.shared.before(thread, sections));
        self.exclusive.before(thread, sections).chain(among.into_iter().flatten())
    }
}
