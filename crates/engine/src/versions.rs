//! What threads knew at earlier times, as far as somebody may still ask.
//!
//! A thread's clock changes only when it learns something, so its past is a list of (since when, what). Whoever reads what the
//! thread wrote at some time learns what was known then. Only times of kept writes are asked for: the rest is swept when it
//! becomes the greater part.

use crate::clock::{Row, Rows, Time, width_for};
use crate::hints::prefetch;
use std::ops::Range;

#[derive(Clone, Copy, Debug)]
struct Version {
    since: Time,
    row: u32,
}

/// Where the versions of one thread are, by spans of time: about as many spans as there are versions, so that a question touches
/// little memory.
struct Finder {
    /// The length of a span, as a power of two.
    bits: u32,
    /// How many versions begin before each span.
    before: Vec<u32>,
}

impl Finder {
    fn new(versions: &[Version]) -> Self {
        let last = versions.last().map_or(0, |version| version.since);
        let mut bits = 0;
        while (last >> bits) as usize > versions.len() {
            bits += 1;
        }
        let mut before = vec![0; (last >> bits) as usize + 2];
        for version in versions {
            before[(version.since >> bits) as usize + 1] += 1;
        }
        for span in 1..before.len() {
            before[span] += before[span - 1];
        }
        Self { bits, before }
    }

    fn span(&self, time: Time) -> usize {
        (time >> self.bits) as usize
    }

    /// Between which places versions begin in that span.
    fn places(&self, versions: &[Version], span: usize) -> Range<usize> {
        match (self.before.get(span), self.before.get(span + 1)) {
            (Some(&low), Some(&high)) => low as usize..high as usize,
            _ => versions.len()..versions.len(),
        }
    }

    /// How many versions begin no later than `time`, which is in the span of these places.
    fn behind(versions: &[Version], places: Range<usize>, time: Time) -> usize {
        places.start + versions[places].partition_point(|version| version.since <= time)
    }
}

/// Versions that are kept before a first sweep.
const FEW: usize = 1 << 12;
/// A sweep looks at every variable, so there may be a version for this many of them.
const VARIABLES: usize = 16;
/// Times that are looked up together.
const BATCH: usize = 64;

#[derive(Clone, Debug)]
pub struct Versions {
    /// Of each thread, in the order of time.
    threads: Vec<Vec<Version>>,
    rows: Rows,
    free: Vec<u32>,
    live: usize,
    enough: usize,
}

impl Default for Versions {
    fn default() -> Self {
        Self { threads: Vec::new(), rows: Rows::default(), free: Vec::new(), live: 0, enough: FEW }
    }
}

impl Versions {
    pub fn prepare(&mut self, threads: usize) {
        if self.threads.len() < threads {
            self.threads.resize(threads, Vec::new());
            self.rows.widen(width_for(threads as u16 - 1));
        }
    }

    /// The thread knows this from `since` on.
    pub fn log(&mut self, thread: u16, since: Time, known: &Row) {
        let versions = &mut self.threads[usize::from(thread)];
        let row = match versions.last() {
            Some(last) if last.since == since => last.row,
            _ => {
                let row = self.free.pop().unwrap_or_else(|| self.rows.push() as u32);
                versions.push(Version { since, row });
                self.live += 1;
                row
            }
        };
        let row = self.rows.row_mut(row as usize);
        row.copy_from_slice(known);
        row[usize::from(thread)] = 0;
    }

    /// What the thread knew of others at `time`.
    pub fn at(&self, thread: u16, time: Time) -> Option<&Row> {
        let versions = &self.threads[usize::from(thread)];
        let behind = versions.partition_point(|version| version.since <= time);
        Some(self.rows.row(versions[behind.checked_sub(1)?].row as usize))
    }

    pub fn is_crowded(&self) -> bool {
        self.live >= self.enough
    }

    /// Keeps what was known at these times, of so many variables, and each thread's latest.
    pub fn sweep(&mut self, asked: impl Iterator<Item = (u16, Time)>, variables: usize) {
        let mut wanted: Vec<Vec<bool>> = self.threads.iter().map(|versions| vec![false; versions.len()]).collect();
        let finders: Vec<Finder> = self.threads.iter().map(|versions| Finder::new(versions)).collect();
        let mut batch = Vec::with_capacity(BATCH);
        asked.for_each(|(thread, time)| {
            batch.push((thread, time, 0..0));
            if batch.len() == BATCH {
                self.mark(&finders, &mut batch, &mut wanted);
            }
        });
        self.mark(&finders, &mut batch, &mut wanted);
        for (versions, wanted) in self.threads.iter_mut().zip(&mut wanted) {
            if let Some(last) = wanted.last_mut() {
                *last = true;
            }
            let mut wanted = wanted.iter();
            let free = &mut self.free;
            versions.retain(|version| {
                let keep = *wanted.next().expect("one for each version");
                if !keep {
                    free.push(version.row);
                }
                keep
            });
        }
        self.live = self.threads.iter().map(Vec::len).sum();
        self.enough = (2 * self.live).max(FEW).max(variables / VARIABLES);
    }

    /// What was known at these times is wanted. No cache holds what is looked up: each step is made for all of the batch, so that
    /// memory is waited for once.
    fn mark(&self, finders: &[Finder], batch: &mut Vec<(u16, Time, Range<usize>)>, wanted: &mut [Vec<bool>]) {
        for (thread, time, _) in batch.iter() {
            let finder = &finders[usize::from(*thread)];
            prefetch(&finder.before, finder.span(*time));
        }
        for (thread, time, places) in batch.iter_mut() {
            let (finder, versions) = (&finders[usize::from(*thread)], &self.threads[usize::from(*thread)]);
            *places = finder.places(versions, finder.span(*time));
            prefetch(versions, places.start);
        }
        for (thread, time, places) in batch.drain(..) {
            let behind = Finder::behind(&self.threads[usize::from(thread)], places, time);
            if let Some(place) = behind.checked_sub(1) {
                wanted[usize::from(thread)][place] = true;
            }
        }
    }

    pub fn bytes(&self) -> usize {
        self.rows.bytes() + self.live * size_of::<Version>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_find_what_a_search_finds() {
        let mut random = 1_u64;
        let mut next = |bound: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) % bound
        };
        for count in [0, 1, 2, 3, 100, 1000] {
            for gap in [1, 2, 50, 100_000] {
                let mut since = 0;
                let versions: Vec<Version> = (0..count)
                    .map(|row| {
                        // Some come close together, and then nothing for long.
                        since += 1 + next(if row % 10 == 0 { 20 * gap } else { gap }) as Time;
                        Version { since, row }
                    })
                    .collect();
                let finder = Finder::new(&versions);
                let asked = (0..500).map(|_| next(u64::from(since) + 2) as Time).chain([0, since, since + 1, Time::MAX]);
                for time in asked {
                    let expected = versions.partition_point(|version| version.since <= time);
                    let places = finder.places(&versions, finder.span(time));
                    assert_eq!(Finder::behind(&versions, places, time), expected, "{time} among {count}");
                }
            }
        }
    }
}
