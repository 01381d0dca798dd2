//! What threads knew at earlier times, as far as somebody may still ask.
//!
//! A thread's clock changes only when it learns something, so its past is a list of (since when, what). Whoever reads what the thread wrote
//! at some time learns what was known then. Only times of kept writes are asked for: the rest is swept when it becomes the greater part.

use crate::clock::{Row, Rows, Time, width_for};

#[derive(Clone, Copy, Debug)]
struct Version {
    since: Time,
    row: u32,
}

/// Versions that are kept before a first sweep.
const FEW: usize = 1 << 12;
/// A sweep looks at every variable, so there may be a version for this many of them.
const VARIABLES: usize = 16;

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
        for (thread, time) in asked {
            let versions = &self.threads[usize::from(thread)];
            let behind = versions.partition_point(|version| version.since <= time);
            if let Some(place) = behind.checked_sub(1) {
                wanted[usize::from(thread)][place] = true;
            }
        }
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

    pub fn bytes(&self) -> usize {
        self.rows.bytes() + self.live * size_of::<Version>()
    }
}
