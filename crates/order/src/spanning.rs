//! Critical sections that span threads.
//!
//! Sulzmann, "Beyond Per-Thread Lock Sets: Multi-Thread Critical Sections and Dynamic Deadlock Prediction" (arXiv 2512.23552,
//! 2025): a section *encloses* an event of another thread that comes between its acquisition and its release in every order, as
//! if that thread held the lock: the holder creates the thread inside of the section and joins it there, or meets it at a barrier
//! before and after.
//!
//! Computed, while a trace goes by: of each wait (join, exit of a barrier) of a thread that holds locks, what it makes known of
//! other threads comes before the release of these locks ([`Spanning::add`]); which of it also comes after the acquisition is
//! asked when it goes by a second time ([`Spanning::around`]). Each moment of a thread becomes known to a holder once, so no two
//! sections of one lock and holder enclose it.
//!
//! Limit: what a semaphore, a condition, once or a released object makes known is not enclosed.

use crate::clock::{ThreadClock, VectorClock};
use crate::lockset::Held;
use rashomon_event::{Address, EventIndex, LockMode, ThreadId};
use rustc_hash::FxHashMap;

/// A lock, in whose section a thread is, and its holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HeldBy {
    pub lock: Address,
    pub mode: LockMode,
    pub holder: ThreadId,
}

/// The moments of a thread after one time, up to another, that come before a release.
struct Stretch {
    after: u32,
    until: u32,
    lock: HeldBy,
    acquired: EventIndex,
}

/// Of one thread.
#[derive(Default)]
struct Stretches {
    /// In the order of their beginnings once sealed.
    all: Vec<Stretch>,
    /// How many have begun.
    begun: usize,
    /// Those that have begun and not ended.
    open: Vec<usize>,
}

#[derive(Default)]
pub struct Spanning {
    threads: FxHashMap<ThreadId, Stretches>,
    /// The holder's time at each acquisition of a section that may enclose something, once it has gone by.
    times: FxHashMap<EventIndex, u32>,
    /// Sets of locks by number, from 1.
    numbers: FxHashMap<Vec<HeldBy>, u32>,
}

impl Spanning {
    /// A thread that holds `held` has gone from one moment to another by waiting.
    pub fn add(&mut self, before: &VectorClock, after: &ThreadClock, held: &[Held], threads: usize) {
        for thread in (0..threads).map(|thread| ThreadId(thread as u32)).filter(|&thread| thread != before.thread) {
            let (known, knows) = (before.knows(thread), after.knows(thread));
            if known == knows {
                continue;
            }
            let stretches = &mut self.threads.entry(thread).or_default().all;
            for held in held {
                let lock = HeldBy { lock: held.lock, mode: held.mode, holder: before.thread };
                stretches.push(Stretch { after: known, until: knows, lock, acquired: held.acquired });
                self.times.insert(held.acquired, u32::MAX);
            }
        }
    }

    /// All is known that has to be, and the trace goes by again.
    pub fn seal(&mut self) {
        self.threads.values_mut().for_each(|stretches| stretches.all.sort_by_key(|stretch| stretch.after));
    }

    /// An acquisition, at the holder's time.
    pub fn acquired(&mut self, event: EventIndex, time: u32) {
        if let Some(known) = self.times.get_mut(&event) {
            *known = time;
        }
    }

    /// Number of the set of others' locks whose sections enclose the present moment of a thread; 0: none.
    pub fn around(&mut self, thread: ThreadId, clock: &ThreadClock) -> u32 {
        let Some(stretches) = self.threads.get_mut(&thread) else { return 0 };
        let time = clock.time();
        while stretches.all.get(stretches.begun).is_some_and(|stretch| stretch.after < time) {
            stretches.open.push(stretches.begun);
            stretches.begun += 1;
        }
        let all = &stretches.all;
        stretches.open.retain(|&place| time <= all[place].until);
        let begun_before = |stretch: &Stretch| {
            self.times.get(&stretch.acquired).is_some_and(|&acquired| acquired <= clock.knows(stretch.lock.holder))
        };
        let around = stretches.open.iter().map(|&place| &all[place]).filter(|stretch| begun_before(stretch));
        let mut locks: Vec<HeldBy> = around.map(|stretch| stretch.lock).collect();
        if locks.is_empty() {
            return 0;
        }
        locks.sort_unstable();
        locks.dedup();
        let next = self.numbers.len() as u32 + 1;
        *self.numbers.entry(locks).or_insert(next)
    }

    /// All sets, by number.
    pub fn sets(&self) -> Vec<Vec<HeldBy>> {
        let mut sets = vec![Vec::new(); self.numbers.len() + 1];
        for (locks, &number) in &self.numbers {
            sets[number as usize].clone_from(locks);
        }
        sets
    }
}
