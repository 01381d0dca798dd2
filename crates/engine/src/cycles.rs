//! Which regions lie on a cycle of transactions: all of them, when an edge closes it.
//!
//! An edge from F to T puts exactly those transactions on a cycle that T reaches and that reach F. A thread's transactions are
//! ordered; so of each thread they are an interval of numbers: from the first one that T reaches to the last one that reaches F.
//! The latter is in F's row ([`crate::transactions`]). For the former each open region has, for every thread, the number of the
//! first transaction there that it reaches *at once*, which means over transactions that have ended; what it reaches over another
//! open region is in that one's numbers, and comes to its own when the other ends. What no open region reaches will not be
//! reached by one: it is forgotten.
//!
//! Invariant: if an open region reaches a transaction, there is an open region that reaches it at once, and that is the former
//! one or is reached by it. Cost: a word for each further transaction that an open region reaches; a row for each region that one
//! waits for when it ends; a few words a region. A transaction is looked at again only when it is named, once.

use crate::clock::Time;
use crate::transactions::Region;
use std::collections::VecDeque;

/// Regions that are remembered before it is first asked which may be forgotten.
const FEW: usize = 1 << 12;
/// Regions that are remembered, at most, unless something else is asked for.
pub(crate) const REMEMBERED: usize = 1 << 20;

/// A number behind all transactions.
const NEVER: Time = Time::MAX;

/// A region that no cycle was found through.
#[derive(Clone, Copy, Debug)]
struct Remembered {
    number: Time,
    name: u32,
    location: u32,
    event: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Cycles {
    /// Of each thread, in the order of their numbers.
    regions: Vec<VecDeque<Remembered>>,
    remembered: usize,
    enough: usize,
    most: usize,
    forgotten: u64,
    /// By the thread of an open region and another thread: the first transaction reached at once.
    first: Vec<Time>,
    threads: usize,
    /// Whether a thread's open region reaches anything.
    reaching: Vec<bool>,
}

impl Default for Cycles {
    fn default() -> Self {
        Self {
            regions: Vec::new(),
            remembered: 0,
            enough: FEW,
            most: REMEMBERED,
            forgotten: 0,
            first: Vec::new(),
            threads: 0,
            reaching: Vec::new(),
        }
    }
}

impl Cycles {
    /// Remembers fewer regions, or more.
    pub fn remember(&mut self, most: usize) {
        (self.most, self.enough) = (most, FEW.min(most));
    }

    pub fn prepare(&mut self, threads: usize) {
        if threads <= self.threads {
            return;
        }
        let mut first = vec![NEVER; threads * threads];
        for (new, old) in first.chunks_exact_mut(threads).zip(self.first.chunks_exact(self.threads.max(1))) {
            new[..self.threads].copy_from_slice(old);
        }
        (self.first, self.threads) = (first, threads);
        self.reaching.resize(threads, false);
        self.regions.resize(threads, VecDeque::new());
    }

    /// Regions that were forgotten though an open one reached them: more than these are on no further cycle.
    pub fn forgotten(&self) -> u64 {
        self.forgotten
    }

    fn row(&self, thread: u16) -> &[Time] {
        &self.first[usize::from(thread) * self.threads..][..self.threads]
    }

    fn row_mut(&mut self, thread: u16) -> &mut [Time] {
        &mut self.first[usize::from(thread) * self.threads..][..self.threads]
    }

    /// The thread's region begins. `open`: its number for each thread that is in one.
    pub fn begin(&mut self, region: &Region, number: Time, open: impl Fn(usize) -> Option<Time>) {
        if self.remembered >= self.enough {
            self.forget(open);
        }
        let Region { name, location, thread, event } = *region;
        self.regions[usize::from(thread)].push_back(Remembered { number, name, location, event });
        self.remembered += 1;
        if std::mem::replace(&mut self.reaching[usize::from(thread)], false) {
            self.row_mut(thread).fill(NEVER);
        }
    }

    /// The open region of one thread reaches a transaction at once.
    #[inline]
    pub fn reach(&mut self, thread: u16, other: u16, number: Time) {
        let first = &mut self.first[usize::from(thread) * self.threads + usize::from(other)];
        *first = (*first).min(number);
        self.reaching[usize::from(thread)] = true;
    }

    /// One thread's region ends, and that of the other reaches it.
    pub fn hand_over(&mut self, ended: u16, to: u16) {
        if !self.reaching[usize::from(ended)] || ended == to {
            return;
        }
        let (ended, to) = (usize::from(ended) * self.threads, usize::from(to) * self.threads);
        for thread in 0..self.threads {
            self.first[to + thread] = self.first[to + thread].min(self.first[ended + thread]);
        }
        self.reaching[to / self.threads] = true;
    }

    /// Takes the regions off the list that lie on a cycle: `reached` are the open regions that one of them, they themselves
    /// included, reaches, by thread and number; `last` is the last transaction of each thread that reaches it.
    pub fn take(&mut self, reached: &[(u16, Time)], last: &[Time]) -> Vec<Region> {
        let mut first = vec![NEVER; self.threads];
        for &(thread, number) in reached {
            let own = &mut first[usize::from(thread)];
            *own = (*own).min(number);
            first.iter_mut().zip(self.row(thread)).for_each(|(all, one)| *all = (*all).min(*one));
        }
        let mut taken = Vec::new();
        for (thread, regions) in self.regions.iter_mut().enumerate() {
            let (first, last) = (first[thread], last[thread]);
            if first > last {
                continue;
            }
            let from = regions.partition_point(|region| region.number < first);
            let to = regions.partition_point(|region| region.number <= last);
            taken.extend(regions.drain(from..to).map(|Remembered { name, location, event, .. }| Region {
                name,
                location,
                thread: thread as u16,
                event,
            }));
        }
        self.remembered -= taken.len();
        taken
    }

    /// What no open region reaches; if that is too little, what is oldest.
    #[cold]
    fn forget(&mut self, open: impl Fn(usize) -> Option<Time>) {
        let mut first = vec![NEVER; self.threads];
        for thread in (0..self.threads).filter(|thread| open(*thread).is_some()) {
            first.iter_mut().zip(self.row(thread as u16)).for_each(|(all, one)| *all = (*all).min(*one));
        }
        for (thread, (regions, first)) in self.regions.iter_mut().zip(first).enumerate() {
            let kept = first.min(open(thread).unwrap_or(NEVER));
            regions.drain(..regions.partition_point(|region| region.number < kept));
        }
        let count = |regions: &[VecDeque<Remembered>]| regions.iter().map(VecDeque::len).sum::<usize>();
        self.remembered = count(&self.regions);
        if 2 * self.remembered > self.most {
            for regions in &mut self.regions {
                let half = regions.len() / 2;
                self.forgotten += half as u64;
                regions.drain(..half);
            }
            self.remembered = count(&self.regions);
        }
        self.enough = (2 * self.remembered).clamp(FEW.min(self.most), self.most);
    }

    pub fn bytes(&self) -> usize {
        let regions = self.regions.iter().map(VecDeque::capacity).sum::<usize>();
        regions * size_of::<Remembered>() + self.first.capacity() * size_of::<Time>()
    }
}
