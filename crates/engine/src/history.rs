//! The accesses of a variable that two epochs cannot stand for: reads by several threads, races, atomics.
//!
//! Generalises the read vectors of Flanagan, Freund, "FastTrack", PLDI 2009, §3: an access goes once a later one is ordered
//! behind it and races with whatever it would race with. So what is kept decides for every further access whether it races with
//! any earlier one, after the first race too, which FastTrack gives up there.

use crate::clock::{Row, Time};
use crate::race::Access;
use rashomon_packed::{Event, Op};

/// A kept access.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    pub time: Time,
    pub location: u32,
    pub thread: u16,
    pub atomic: bool,
}

impl Entry {
    pub fn of(event: &Event, now: Time) -> Self {
        Self { time: now, location: event.location, thread: event.thread, atomic: !event.op.is_plain() }
    }

    /// Whether whoever has this clock knows of the access.
    #[inline]
    pub fn is_before(&self, clock: &Row) -> bool {
        self.time <= clock[usize::from(self.thread)]
    }

    pub fn access(&self) -> Access {
        Access { event: u64::from(self.time) - 1, thread: self.thread, location: self.location }
    }

    fn key(&self) -> (u16, bool) {
        (self.thread, self.atomic)
    }
}

/// Both lists are sorted by thread and atomicity, and hold at most one access of each.
#[derive(Clone, Debug, Default)]
pub struct History {
    writes: Vec<Entry>,
    reads: Vec<Entry>,
}

fn put(entries: &mut Vec<Entry>, new: Entry) {
    // Where a thread's plain access is if all threads before it have one, and no atomic one.
    if let Some(old) = entries.get_mut(usize::from(new.thread))
        && old.key() == new.key()
    {
        *old = new;
        return;
    }
    match entries.binary_search_by_key(&new.key(), Entry::key) {
        Ok(place) => entries[place] = new,
        Err(place) => entries.insert(place, new),
    }
}

impl History {
    pub fn new(write: Option<Entry>, read: Option<Entry>) -> Self {
        Self { writes: write.into_iter().collect(), reads: read.into_iter().collect() }
    }

    /// The accesses that the event conflicts with and whose thread is another.
    pub fn conflicts(&self, event: &Event) -> impl Iterator<Item = &Entry> {
        let (thread, atomic) = (event.thread, !event.op.is_plain());
        let reads = if event.op.writes() { &self.reads[..] } else { &[] };
        self.writes.iter().chain(reads).filter(move |entry| entry.thread != thread && !(entry.atomic && atomic))
    }

    /// The latest write in the order of the trace.
    pub fn last_write(&self) -> Option<&Entry> {
        self.writes.iter().max_by_key(|entry| entry.time)
    }

    pub fn latest(&self) -> Time {
        self.writes.iter().chain(&self.reads).map(|entry| entry.time).max().unwrap_or(0)
    }

    /// The event's access comes to the kept ones. If it is a plain write behind all of them, it alone is left, and the answer
    /// yes.
    pub fn add(&mut self, event: &Event, now: Time, clock: &Row) -> bool {
        let new = Entry::of(event, now);
        match event.op {
            Op::Write => {
                self.writes.retain(|entry| !entry.is_before(clock));
                self.reads.retain(|entry| !entry.is_before(clock));
                if self.writes.is_empty() && self.reads.is_empty() {
                    return true;
                }
                put(&mut self.writes, new);
            }
            Op::AtomicWrite | Op::AtomicUpdate => {
                self.writes.retain(|entry| !entry.atomic || !entry.is_before(clock));
                self.reads.retain(|entry| !entry.atomic || !entry.is_before(clock));
                put(&mut self.writes, new);
            }
            _ => put(&mut self.reads, new),
        }
        false
    }

    /// A plain read, if all writes are known; otherwise the answer is no, and nothing is done.
    #[inline]
    pub fn read(&mut self, event: &Event, now: Time, clock: &Row) -> bool {
        let known = self.writes.iter().all(|entry| entry.is_before(clock));
        if known {
            put(&mut self.reads, Entry::of(event, now));
        }
        known
    }

    pub fn bytes(&self) -> usize {
        (self.writes.capacity() + self.reads.capacity()) * size_of::<Entry>()
    }
}
