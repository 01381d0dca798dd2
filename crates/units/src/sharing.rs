//! Which memory more than one thread accesses: a first pass over a stored execution.
//!
//! §3.2 assumes that the shared part of a unit is known. An online analysis learns it late: as long as one thread alone has
//! accessed a variable, reading back what was written there joins units that the paper would keep apart
//! (`docs/theory-correlated.md`, deviation 3). Told by [`crate::Analysis::share`] beforehand it makes no such mistake.

use crate::event::{Bytes, Event, Step, Thread};
use rustc_hash::FxHashMap;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Owner {
    Nobody,
    One(Thread),
    Several,
}

const WORD: u64 = 8;

/// Owners of each byte of a word. Memory that begins a new life begins a new search; an address that several threads accessed in
/// one of its lives counts as shared in all of them.
pub struct Sharing {
    words: FxHashMap<u64, [Owner; WORD as usize]>,
    limit: usize,
    range: u32,
}

impl Sharing {
    /// At most `words` words of eight bytes are looked at, and `range` bytes of each access; what lies beyond counts as not
    /// shared.
    pub fn new(words: usize, range: u32) -> Sharing {
        Sharing { words: FxHashMap::default(), limit: words, range }
    }

    pub fn event(&mut self, event: &Event<'_>) {
        match event.step {
            Step::Load { bytes, .. } | Step::Store { bytes, .. } | Step::Fill { bytes, .. } => self.touch(event.thread, bytes),
            Step::Copy { from, to, len } => {
                self.touch(event.thread, Bytes::new(from, len));
                self.touch(event.thread, Bytes::new(to, len));
            }
            Step::Renew { start, len } => self.renew(start, len),
            _ => {}
        }
    }

    fn touch(&mut self, thread: Thread, bytes: Bytes) {
        let end = Bytes::new(bytes.start, bytes.len.min(self.range)).end();
        for address in bytes.start..end {
            let full = self.words.len() >= self.limit;
            let word = match self.words.entry(address / WORD) {
                std::collections::hash_map::Entry::Vacant(_) if full => continue,
                entry => entry.or_insert([Owner::Nobody; WORD as usize]),
            };
            let owner = &mut word[(address % WORD) as usize];
            *owner = match *owner {
                Owner::Nobody => Owner::One(thread),
                Owner::One(other) if other != thread => Owner::Several,
                known => known,
            };
        }
    }

    fn renew(&mut self, start: u64, len: u64) {
        let end = start.saturating_add(len);
        let forget = |number: u64, word: &mut [Owner; WORD as usize]| {
            for (offset, owner) in word.iter_mut().enumerate() {
                if (start..end).contains(&(number * WORD + offset as u64)) && *owner != Owner::Several {
                    *owner = Owner::Nobody;
                }
            }
        };
        if len / WORD < self.words.len() as u64 {
            for number in start / WORD..=end / WORD {
                if let Some(word) = self.words.get_mut(&number) {
                    forget(number, word);
                }
            }
        } else {
            self.words.iter_mut().for_each(|(number, word)| forget(*number, word));
        }
    }

    /// What several threads accessed, ascending.
    pub fn shared(&self) -> Vec<Bytes> {
        let mut numbers: Vec<_> = self.words.keys().copied().collect();
        numbers.sort_unstable();
        let mut ranges: Vec<Bytes> = Vec::new();
        for number in numbers {
            for (offset, owner) in self.words[&number].iter().enumerate() {
                let address = number * WORD + offset as u64;
                if *owner != Owner::Several {
                    continue;
                }
                match ranges.last_mut() {
                    Some(last) if last.end() == address && last.len < u32::MAX => last.len += 1,
                    _ => ranges.push(Bytes::new(address, 1)),
                }
            }
        }
        ranges
    }
}
