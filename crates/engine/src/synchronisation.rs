//! What every thread knows of the others while a trace goes by: the clocks of happens-before and of its weaker kin.
//!
//! Edges: program order; a release of a lock to its later acquisitions (a shared release to exclusive ones only); fork to the
//! child's first event, the child's last event to join; release of another object to later acquisitions; every entry of a
//! barrier's generation to every exit; C++20's synchronises-with ([intro.races], [atomics.fences]): a release sequence is headed
//! by a store that releases, or that follows a release fence, and goes on through updates; who reads from it receives at once if
//! the read acquires, else at the thread's next acquire fence. A sequentially consistent fence does both. The *weak* order
//! (Carril, Tichy, SEPS 2015, §3) leaves out locks and atomics.
//!
//! Guarantee: the clock of an event knows exactly the events that a path of these edges leads from. Deviation: (1) a plain write
//! between atomic ones does not end a release sequence. Cost: O(threads) for an event that brings news, O(1) for an acquisition
//! that does not.

use crate::clock::{ALWAYS, Row, Rows, Time, greatest_thread, join, width_for};
use crate::table::Table;
use crate::tree_clock::Trees;
use rashomon_packed::{Event, Op, order};
use rustc_hash::FxHashMap;

/// Which edges there are beside those of threads, objects and barriers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edges {
    pub locks: bool,
    pub atomics: bool,
}

impl Edges {
    pub const ALL: Self = Self { locks: true, atomics: true };
    /// Carril, Tichy §3.
    pub const WEAK: Self = Self { locks: false, atomics: false };
}

const NONE: u32 = u32::MAX;

/// What threads know, and what they knew when they last released a lock: all that the shape of clocks matters to.
pub trait VectorClocks: Clone + Default + std::fmt::Debug {
    /// Makes room.
    fn widen(&mut self, width: usize);
    fn threads(&self) -> usize;
    /// The next thread, which knows everything before `floor`. Its own entry is [`ALWAYS`]: it knows its past.
    fn push(&mut self, floor: Time);
    fn row(&self, thread: usize) -> &Row;
    /// Everything before `now` is known to all.
    fn raise(&mut self, now: Time);
    /// The thread learns at `now` what a row knows.
    fn join_row(&mut self, thread: usize, row: &Row, now: Time);
    /// The thread learns at `now` of one event.
    fn join_entry(&mut self, thread: usize, other: u16, time: Time, now: Time);
    /// The thread learns at `now` what the other knows then.
    fn join_thread(&mut self, thread: usize, other: usize, now: Time);
    /// Keeps what the thread knows at `now` as release number `release`, or as a new one; of the former one it is what was kept
    /// at `time`.
    fn release(&mut self, thread: usize, release: Option<u32>, time: Time, now: Time) -> u32;
    /// The thread learns at `now` what was kept at `time`, which is news.
    fn acquire(&mut self, thread: usize, release: u32, time: Time, now: Time);
    fn bytes(&self) -> usize;
}

/// Clocks as rows, of which two are joined in an instruction or two for each vector of them.
#[derive(Clone, Debug, Default)]
pub struct Flat {
    threads: Rows,
    releases: Rows,
}

impl VectorClocks for Flat {
    fn widen(&mut self, width: usize) {
        self.threads.widen(width);
        self.releases.widen(width);
    }

    fn threads(&self) -> usize {
        self.threads.count()
    }

    fn push(&mut self, floor: Time) {
        let row = self.threads.push();
        self.threads.row_mut(row).fill(floor);
        self.threads.row_mut(row)[row] = ALWAYS;
    }

    #[inline]
    fn row(&self, thread: usize) -> &Row {
        self.threads.row(thread)
    }

    fn raise(&mut self, now: Time) {
        for thread in 0..self.threads.count() {
            self.threads.row_mut(thread).iter_mut().for_each(|time| *time = (*time).max(now));
        }
    }

    #[inline]
    fn join_row(&mut self, thread: usize, row: &Row, _now: Time) {
        join(self.threads.row_mut(thread), row);
    }

    #[inline]
    fn join_entry(&mut self, thread: usize, other: u16, time: Time, _now: Time) {
        let known = &mut self.threads.row_mut(thread)[usize::from(other)];
        *known = (*known).max(time);
    }

    fn join_thread(&mut self, thread: usize, other: usize, now: Time) {
        let (clock, from) = self.threads.pair(thread, other);
        let (known, own) = (clock[other], clock[thread]);
        join(clock, from);
        (clock[other], clock[thread]) = (known.max(now), own);
    }

    #[inline]
    fn release(&mut self, thread: usize, release: Option<u32>, _time: Time, now: Time) -> u32 {
        let release = release.unwrap_or_else(|| self.releases.push() as u32);
        let into = self.releases.row_mut(release as usize);
        into.copy_from_slice(self.threads.row(thread));
        into[thread] = now;
        release
    }

    #[inline]
    fn acquire(&mut self, thread: usize, release: u32, _time: Time, _now: Time) {
        join(self.threads.row_mut(thread), self.releases.row(release as usize));
    }

    fn bytes(&self) -> usize {
        self.threads.bytes() + self.releases.bytes()
    }
}

/// Clocks as trees.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    /// Of threads and releases, as they come.
    trees: Trees,
    threads: Vec<u32>,
}

impl VectorClocks for Tree {
    fn widen(&mut self, width: usize) {
        self.trees.widen(width);
    }

    fn threads(&self) -> usize {
        self.threads.len()
    }

    fn push(&mut self, floor: Time) {
        let tree = self.trees.push_thread(self.threads.len() as u16, floor);
        self.threads.push(tree as u32);
    }

    #[inline]
    fn row(&self, thread: usize) -> &Row {
        self.trees.row(self.threads[thread] as usize)
    }

    fn raise(&mut self, now: Time) {
        self.threads.iter().for_each(|tree| self.trees.raise(*tree as usize, now));
    }

    fn join_row(&mut self, thread: usize, row: &Row, now: Time) {
        self.trees.join_row(self.threads[thread] as usize, row, now);
    }

    fn join_entry(&mut self, thread: usize, other: u16, time: Time, now: Time) {
        self.trees.join_entry(self.threads[thread] as usize, other, time, now);
    }

    fn join_thread(&mut self, thread: usize, other: usize, now: Time) {
        self.trees.join(self.threads[thread] as usize, self.threads[other] as usize, now, now);
    }

    fn release(&mut self, thread: usize, release: Option<u32>, time: Time, now: Time) -> u32 {
        let release = release.unwrap_or_else(|| self.trees.push() as u32);
        self.trees.copy(release as usize, self.threads[thread] as usize, time, now);
        release
    }

    fn acquire(&mut self, thread: usize, release: u32, time: Time, now: Time) {
        self.trees.join(self.threads[thread] as usize, release as usize, time, now);
    }

    fn bytes(&self) -> usize {
        self.trees.bytes()
    }
}

#[derive(Clone, Copy, Debug)]
struct Lock {
    /// What the latest exclusive release knew, and which event that was.
    exclusive: u32,
    releaser: u16,
    released: Time,
    /// What all shared releases knew.
    shared: u32,
}

impl Default for Lock {
    fn default() -> Self {
        Self { exclusive: NONE, releaser: 0, released: 0, shared: NONE }
    }
}

#[derive(Clone, Copy, Debug)]
struct Object {
    /// What all who released it knew.
    row: u32,
}

impl Default for Object {
    fn default() -> Self {
        Self { row: NONE }
    }
}

/// Of one thread.
#[derive(Clone, Copy, Debug)]
struct Fences {
    /// What the latest release fence knew.
    released: u32,
    /// What relaxed reads have seen and no acquire fence has received.
    seen: u32,
}

impl Default for Fences {
    fn default() -> Self {
        Self { released: NONE, seen: NONE }
    }
}

/// The clocks. An event has two halves: it receives, then it passes on; in between, its thread's clock is the clock *of* the
/// event.
#[derive(Clone, Debug)]
pub struct Clocks<K = Flat> {
    edges: Edges,
    threads: K,
    /// Of shared locks, objects, atomic variables and fences.
    others: Rows,
    free: Vec<u32>,
    locks: Table<Lock>,
    objects: Table<Object>,
    /// The release sequence that a read of the variable now reads from.
    atomics: FxHashMap<u32, u32>,
    fences: Vec<Fences>,
    /// What every thread knows from its beginning.
    floor: Time,
}

const fn acquires(event: &Event) -> bool {
    event.order & (order::ACQUIRES | order::SEQUENTIALLY_CONSISTENT) != 0
}

const fn releases(event: &Event) -> bool {
    event.order & (order::RELEASES | order::SEQUENTIALLY_CONSISTENT) != 0
}

impl<K: VectorClocks> Clocks<K> {
    pub fn new(edges: Edges) -> Self {
        Self {
            edges,
            threads: K::default(),
            others: Rows::default(),
            free: Vec::new(),
            locks: Table::default(),
            objects: Table::default(),
            atomics: FxHashMap::default(),
            fences: Vec::new(),
            floor: 0,
        }
    }

    /// Makes room for the threads that the events name.
    pub fn prepare(&mut self, events: &[Event]) {
        let Some(thread) = greatest_thread(events) else { return };
        if usize::from(thread) >= self.threads.threads() {
            self.threads.widen(width_for(thread));
            self.others.widen(width_for(thread));
            while self.threads.threads() <= usize::from(thread) {
                self.threads.push(self.floor);
                self.fences.push(Fences::default());
            }
        }
    }

    pub fn threads(&self) -> usize {
        self.threads.threads()
    }

    #[inline]
    pub fn of(&self, thread: u16) -> &Row {
        self.threads.row(usize::from(thread))
    }

    pub fn bytes(&self) -> usize {
        self.threads.bytes()
            + self.others.bytes()
            + self.locks.bytes()
            + self.objects.bytes()
            + self.atomics.capacity() * 2 * size_of::<u64>()
    }

    /// From here on, everything before `now` is ordered before everything else.
    pub fn order_all_before(&mut self, now: Time) {
        self.floor = now;
        self.threads.raise(now);
    }

    /// The thread learns at `now` of an event of another thread, and what that thread knew then.
    pub fn learn(&mut self, thread: u16, other: u16, time: Time, known: Option<&Row>, now: Time) {
        if let Some(known) = known {
            self.threads.join_row(usize::from(thread), known, now);
        }
        self.threads.join_entry(usize::from(thread), other, time, now);
    }

    /// What the event is about to receive through anything but a lock, and from which running thread, whose own entry means
    /// nothing then.
    pub fn received_without_locks(&self, event: &Event) -> Option<(&Row, Option<u16>)> {
        let row = |row: u32| (row != NONE).then(|| (self.others.row(row as usize), None));
        match event.op {
            Op::Join => {
                let child = event.target as usize;
                let other = child != usize::from(event.thread) && child < self.threads.threads();
                other.then(|| (self.threads.row(child), Some(event.target as u16)))
            }
            Op::AcquireObject | Op::Exit => row(self.objects.get(event.target as usize)?.row),
            Op::AtomicRead | Op::AtomicUpdate if acquires(event) => row(*self.atomics.get(&event.target)?),
            Op::Fence if acquires(event) => row(self.fences[usize::from(event.thread)].seen),
            _ => None,
        }
    }

    /// The first half of an event that is no plain access. Says whether its thread may have learnt something.
    pub fn receive(&mut self, event: &Event, now: Time) -> bool {
        let thread = usize::from(event.thread);
        match event.op {
            Op::Acquire if self.edges.locks => {
                let Some(&lock) = self.locks.get(event.target as usize) else { return false };
                let news = self.threads.row(thread)[usize::from(lock.releaser)] < lock.released;
                if news {
                    self.threads.acquire(thread, lock.exclusive, lock.released, now);
                }
                self.take(thread, lock.shared, now) | news
            }
            Op::AcquireShared if self.edges.locks => {
                let Some(&lock) = self.locks.get(event.target as usize) else { return false };
                let news = self.threads.row(thread)[usize::from(lock.releaser)] < lock.released;
                if news {
                    self.threads.acquire(thread, lock.exclusive, lock.released, now);
                }
                news
            }
            Op::Join => {
                let child = event.target as usize;
                if child == thread || child >= self.threads.threads() {
                    return false;
                }
                self.threads.join_thread(thread, child, now);
                true
            }
            Op::AcquireObject | Op::Exit => {
                let object = self.objects.get(event.target as usize).copied().unwrap_or_default();
                self.take(thread, object.row, now)
            }
            Op::AtomicRead | Op::AtomicUpdate if self.edges.atomics => {
                let Some(&sequence) = self.atomics.get(&event.target) else { return false };
                if acquires(event) {
                    return self.take(thread, sequence, now);
                }
                if sequence != NONE {
                    let seen = self.fences[thread].seen;
                    self.fences[thread].seen = self.merge(seen, sequence);
                }
                false
            }
            Op::Fence if self.edges.atomics && acquires(event) => {
                let seen = std::mem::replace(&mut self.fences[thread].seen, NONE);
                let news = self.take(thread, seen, now);
                self.discard(seen);
                news
            }
            _ => false,
        }
    }

    /// The second half. Names the thread, if any, that learns something by it.
    pub fn release(&mut self, event: &Event, now: Time) -> Option<u16> {
        let thread = usize::from(event.thread);
        match event.op {
            Op::Release if self.edges.locks => {
                let number = event.target as usize;
                let lock = self.locks.at(number);
                let release = (lock.exclusive != NONE).then_some(lock.exclusive);
                let release = self.threads.release(thread, release, lock.released, now);
                (lock.exclusive, lock.releaser, lock.released) = (release, event.thread, now);
            }
            Op::ReleaseShared if self.edges.locks => {
                let number = event.target as usize;
                let row = self.locks.at(number).shared;
                self.locks.known_mut(number).shared = self.add(thread, row, now);
            }
            Op::Fork => {
                let child = event.target as usize;
                if child != thread && child < self.threads.threads() {
                    self.threads.join_thread(child, thread, now);
                    return Some(event.target as u16);
                }
            }
            Op::ReleaseObject | Op::Enter => {
                let number = event.target as usize;
                let row = self.objects.at(number).row;
                self.objects.known_mut(number).row = self.add(thread, row, now);
            }
            Op::AtomicWrite | Op::AtomicUpdate if self.edges.atomics => self.write_atomic(event, now),
            Op::Fence if self.edges.atomics && releases(event) => {
                let row = self.fences[thread].released;
                self.fences[thread].released = self.copy(thread, row, now);
            }
            Op::Forget => {
                if let Some(sequence) = self.atomics.remove(&event.target) {
                    self.discard(sequence);
                }
            }
            _ => {}
        }
        None
    }

    fn write_atomic(&mut self, event: &Event, now: Time) {
        let thread = usize::from(event.thread);
        let mut sequence = self.atomics.get(&event.target).copied().unwrap_or(NONE);
        if event.op == Op::AtomicWrite {
            self.discard(std::mem::replace(&mut sequence, NONE));
        }
        let fence = self.fences[thread].released;
        if releases(event) {
            sequence = self.add(thread, sequence, now);
        } else if fence != NONE {
            sequence = self.merge(sequence, fence);
        }
        if sequence == NONE {
            self.atomics.remove(&event.target);
        } else {
            self.atomics.insert(event.target, sequence);
        }
    }

    /// The thread learns what the row knows.
    fn take(&mut self, thread: usize, row: u32, now: Time) -> bool {
        if row == NONE {
            return false;
        }
        self.threads.join_row(thread, self.others.row(row as usize), now);
        true
    }

    fn fresh(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| self.others.push() as u32)
    }

    fn discard(&mut self, row: u32) {
        if row != NONE {
            self.others.row_mut(row as usize).fill(0);
            self.free.push(row);
        }
    }

    /// The row becomes what the thread knows at `now`.
    fn copy(&mut self, thread: usize, row: u32, now: Time) -> u32 {
        let row = if row == NONE { self.fresh() } else { row };
        let into = self.others.row_mut(row as usize);
        into.copy_from_slice(self.threads.row(thread));
        into[thread] = now;
        row
    }

    /// The row learns what the thread knows at `now`.
    fn add(&mut self, thread: usize, row: u32, now: Time) -> u32 {
        if row == NONE {
            return self.copy(thread, row, now);
        }
        let into = self.others.row_mut(row as usize);
        join(into, self.threads.row(thread));
        into[thread] = now;
        row
    }

    /// The row learns what another one knows.
    fn merge(&mut self, row: u32, from: u32) -> u32 {
        let row = if row == NONE { self.fresh() } else { row };
        if row != from {
            let (into, from) = self.others.pair(row as usize, from as usize);
            join(into, from);
        }
        row
    }
}
