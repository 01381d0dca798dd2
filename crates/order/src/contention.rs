//! Which granules can hold a candidate pair at all, in one pass.
//!
//! A granule is *contested* unless every conflicting pair of accesses to it is ordered by the weak order (see
//! [`crate::happens_before`]) or made under a common lock that excludes one from the other. So [`crate::races`] (for a model with
//! lock edges) and [`crate::hybrid`] find nothing in a granule that is not contested, and keep no history for it.
//!
//! Accesses to a granule are cut into *stages*. All accesses of earlier stages come before one epoch, and every access of the
//! present stage comes after it. Within a stage there is a common lock, or no access writes, or all are atomic. An access that
//! fits neither begins a new stage if it comes after all of the present one, and else makes the granule contested. For one stage
//! these are the lock sets of Savage et al., "Eraser", TOCS 1997, §2.2; the order between stages is by epochs as in Flanagan,
//! Freund, "FastTrack", PLDI 2009, §3.
//!
//! Guarantee: no pair is lost. Limits, all towards contested: (1) bytes of a granule are not told apart; (2) after a stage of
//! several threads the first access of the next one counts as the epoch that the rest must come after; (3) only the first
//! [`MAX_THREADS`] threads of the trace can share a stage; (4) from the first event on that breaks the exclusion of a lock, locks
//! no longer count.

use crate::clock::ThreadClock;
use crate::lockset::{LockSetId, LockSets};
use rashomon_event::{Access, Address, Event, EventKind, LockMode, ThreadId};
use rustc_hash::FxHashMap;

/// Threads that can share a stage.
const MAX_THREADS: usize = 64;

/// Number of a set of locks that all accesses of a stage hold.
type CommonId = u32;
const NOTHING: CommonId = 0;
/// Stands for all locks there are.
const EVERYTHING: CommonId = u32::MAX;

const TOUCHED: u8 = 1;
const SEVERAL_THREADS: u8 = 2;
/// Since the granule was first touched.
const EVER_WRITTEN: u8 = 4;
const CONTESTED: u8 = 8;
/// In the present stage.
const WRITTEN: u8 = 16;
const PLAIN: u8 = 32;
/// `latest.thread` is a number of [`Latest`].
const LISTED: u8 = 64;
const STAGE: u8 = WRITTEN | PLAIN | LISTED;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Epoch {
    thread: u32,
    /// 0: before everything.
    time: u32,
}

impl Epoch {
    fn is_before(self, clock: &ThreadClock) -> bool {
        clock.knows(ThreadId(self.thread)) >= self.time
    }
}

/// What is known of one granule.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Granule {
    first_thread: u32,
    /// All earlier stages come before it.
    before: Epoch,
    /// All accesses of the stage come before or at it.
    latest: Epoch,
    common: CommonId,
    flags: u8,
}

impl Granule {
    /// Touched by several threads, and written.
    pub fn is_shared(&self) -> bool {
        self.flags & (SEVERAL_THREADS | EVER_WRITTEN) == SEVERAL_THREADS | EVER_WRITTEN
    }

    pub fn is_contested(&self) -> bool {
        self.flags & CONTESTED != 0
    }
}

/// One access, as far as it matters here.
#[derive(Clone, Copy)]
pub(crate) struct Visit {
    now: Epoch,
    held: LockSetId,
    kind: u8,
}

/// What the granules of one trace share.
pub(crate) struct Contention {
    latest: Latest,
    commons: Commons,
    exclusion: Exclusion,
}

impl Contention {
    pub fn new(threads: usize) -> Self {
        let latest = Latest { threads: threads.min(MAX_THREADS), times: Vec::new(), free: Vec::new() };
        Self { latest, commons: Commons::default(), exclusion: Exclusion::default() }
    }

    /// Every event but plain accesses, before the lock sets step over it.
    pub fn step(&mut self, event: &Event) {
        match event.kind {
            EventKind::Acquire { lock, mode, .. } => self.exclusion.acquire(event.thread, lock, mode),
            EventKind::WaitEnd { mutex, .. } => self.exclusion.acquire(event.thread, mutex, LockMode::Exclusive),
            EventKind::Release { lock, mode } => self.exclusion.release(event.thread, lock, mode),
            EventKind::WaitBegin { mutex, .. } => self.exclusion.release(event.thread, mutex, LockMode::Exclusive),
            _ => {}
        }
    }

    /// `clock`: of the accessing thread in the weak order.
    #[inline]
    pub fn visit(&self, thread: ThreadId, clock: &ThreadClock, held: LockSetId, access: &Access) -> Visit {
        let written = if access.class.writes() { WRITTEN } else { 0 };
        let plain = if access.atomic { 0 } else { PLAIN };
        let held = if self.exclusion.broken { LockSetId::EMPTY } else { held };
        Visit { now: Epoch { thread: thread.0, time: clock.time() }, held, kind: written | plain }
    }

    #[inline]
    pub fn access(&mut self, granule: &mut Granule, visit: Visit, clock: &ThreadClock, locks: &LockSets) {
        let same = granule.latest == visit.now && granule.common == NOTHING && granule.flags & (LISTED | TOUCHED) == TOUCHED;
        if same && granule.flags & visit.kind == visit.kind {
            return;
        }
        self.access_slowly(granule, visit, clock, locks);
    }

    fn access_slowly(&mut self, granule: &mut Granule, visit: Visit, clock: &ThreadClock, locks: &LockSets) {
        let written = visit.kind & WRITTEN != 0;
        if written {
            granule.flags |= EVER_WRITTEN;
        }
        if granule.flags & TOUCHED == 0 {
            granule.flags |= TOUCHED | visit.kind;
            granule.first_thread = visit.now.thread;
            granule.latest = visit.now;
            granule.common = self.commons.meet(EVERYTHING, visit.held, written, locks);
            return;
        }
        if granule.first_thread != visit.now.thread {
            granule.flags |= SEVERAL_THREADS;
        }
        if granule.is_contested() {
            return;
        }
        let common = self.commons.meet(granule.common, visit.held, written, locks);
        let conflicting = (granule.flags | visit.kind) & (WRITTEN | PLAIN) == WRITTEN | PLAIN;
        if !granule.before.is_before(clock) {
            self.contest(granule);
        } else if common != NOTHING || !conflicting {
            granule.common = common;
            granule.flags |= visit.kind;
            self.join(granule, visit.now, clock);
        } else if self.all_before(granule, clock) {
            granule.before = if granule.flags & LISTED == 0 { granule.latest } else { visit.now };
            self.unlist(granule);
            granule.flags = granule.flags & !STAGE | visit.kind;
            granule.latest = visit.now;
            granule.common = self.commons.meet(EVERYTHING, visit.held, written, locks);
        } else {
            self.contest(granule);
        }
    }

    fn contest(&mut self, granule: &mut Granule) {
        self.unlist(granule);
        granule.flags |= CONTESTED;
    }

    fn unlist(&mut self, granule: &mut Granule) {
        if granule.flags & LISTED != 0 {
            self.latest.free.push(granule.latest.thread);
            granule.flags &= !LISTED;
        }
    }

    fn all_before(&self, granule: &Granule, clock: &ThreadClock) -> bool {
        match granule.flags & LISTED {
            0 => granule.latest.is_before(clock),
            _ => self.latest.epochs(granule.latest.thread).all(|epoch| epoch.is_before(clock)),
        }
    }

    /// The access at `now` becomes one of the stage's.
    fn join(&mut self, granule: &mut Granule, now: Epoch, clock: &ThreadClock) {
        if granule.flags & LISTED == 0 {
            if granule.latest.is_before(clock) {
                granule.latest = now;
            } else if !self.latest.fits(now) || !self.latest.fits(granule.latest) {
                self.contest(granule);
            } else {
                let number = self.latest.begin([granule.latest, now]);
                granule.latest = Epoch { thread: number, time: 0 };
                granule.flags |= LISTED;
            }
        } else if !self.latest.fits(now) {
            self.contest(granule);
        } else if self.latest.replace(granule.latest.thread, now, clock) {
            self.unlist(granule);
            granule.latest = now;
        }
    }
}

/// Of stages with several unordered threads, the time of the latest access of each, 0 for none.
struct Latest {
    threads: usize,
    /// One row of `threads` per stage: most rows are one cache line.
    times: Vec<u32>,
    free: Vec<u32>,
}

impl Latest {
    fn fits(&self, epoch: Epoch) -> bool {
        (epoch.thread as usize) < self.threads
    }

    fn begin(&mut self, epochs: [Epoch; 2]) -> u32 {
        let number = self.free.pop().unwrap_or_else(|| {
            let next = self.times.len() / self.threads;
            self.times.resize(self.times.len() + self.threads, 0);
            next as u32
        });
        let row = &mut self.times[number as usize * self.threads..][..self.threads];
        row.fill(0);
        for epoch in epochs {
            row[epoch.thread as usize] = epoch.time;
        }
        number
    }

    fn epochs(&self, number: u32) -> impl Iterator<Item = Epoch> {
        let row = &self.times[number as usize * self.threads..][..self.threads];
        row.iter().enumerate().map(|(thread, &time)| Epoch { thread: thread as u32, time })
    }

    /// Whether `now`, of a thread with this clock, is the only one left: what comes before it need not be remembered.
    fn replace(&mut self, number: u32, now: Epoch, clock: &ThreadClock) -> bool {
        let row = &mut self.times[number as usize * self.threads..][..self.threads];
        if row[now.thread as usize] == now.time {
            return false;
        }
        let mut alone = true;
        for (thread, time) in row.iter_mut().enumerate().filter(|(_, time)| **time != 0) {
            if clock.knows(ThreadId(thread as u32)) >= *time {
                *time = 0;
            } else {
                alone = false;
            }
        }
        row[now.thread as usize] = now.time;
        alone
    }
}

/// Sets of locks, each held by all of several accesses: by those that write in exclusive mode.
struct Commons {
    /// Sorted.
    sets: Vec<Vec<Address>>,
    meets: FxHashMap<(u32, u32, u8), CommonId>,
    last: ((u32, u32, u8), CommonId),
}

impl Default for Commons {
    fn default() -> Self {
        Self { sets: vec![Vec::new()], meets: FxHashMap::default(), last: ((0, 0, 0), NOTHING) }
    }
}

impl Commons {
    /// The locks of `common` that an access with the lock set `held` shares.
    fn meet(&mut self, common: CommonId, held: LockSetId, writes: bool, locks: &LockSets) -> CommonId {
        if common == NOTHING || held == LockSetId::EMPTY {
            return NOTHING;
        }
        let key = (common, held.0, u8::from(writes));
        if self.last.0 != key {
            let number = match self.meets.get(&key) {
                Some(&number) => number,
                None => self.meet_anew(key, locks),
            };
            self.last = (key, number);
        }
        self.last.1
    }

    fn meet_anew(&mut self, key: (u32, u32, u8), locks: &LockSets) -> CommonId {
        let (common, held, writes) = key;
        let counts = |&&(lock, mode): &&(Address, LockMode)| {
            (writes == 0 || mode == LockMode::Exclusive) && (common == EVERYTHING || self.sets[common as usize].contains(&lock))
        };
        // The lock set is sorted by address, so equal locks are neighbours.
        let mut set: Vec<Address> = locks.locks(LockSetId(held)).iter().filter(counts).map(|&(lock, _)| lock).collect();
        set.dedup();
        let number = self.sets.iter().position(|known| *known == set).unwrap_or_else(|| {
            self.sets.push(set);
            self.sets.len() - 1
        });
        self.meets.insert(key, number as CommonId);
        number as CommonId
    }
}

/// Whether the trace keeps to the exclusion of its locks. Only then does a common lock order two accesses.
#[derive(Default)]
struct Exclusion {
    holders: FxHashMap<Address, Vec<(ThreadId, LockMode)>>,
    broken: bool,
}

impl Exclusion {
    fn acquire(&mut self, thread: ThreadId, lock: Address, mode: LockMode) {
        let holders = self.holders.entry(lock).or_default();
        let excludes = |&(holder, held): &(ThreadId, LockMode)| {
            holder != thread && (held == LockMode::Exclusive || mode == LockMode::Exclusive)
        };
        self.broken |= holders.iter().any(excludes);
        holders.push((thread, mode));
    }

    fn release(&mut self, thread: ThreadId, lock: Address, mode: LockMode) {
        let holders = self.holders.entry(lock).or_default();
        match holders.iter().rposition(|&holder| holder == (thread, mode)) {
            Some(place) => {
                holders.remove(place);
            }
            // Nobody held it: whoever acquires it next receives from this release and no longer from the holder before.
            None => self.broken = true,
        }
    }
}
