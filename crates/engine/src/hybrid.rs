//! Pairs of accesses that nothing but locks could have ordered, and that share no lock.
//!
//! Carril, Tichy, "Interleaving Generation for Data Race and Deadlock Reproduction", SEPS 2015, §3: happens-before without the
//! edges of mutexes (and of atomics: [`Edges::WEAK`]), then lock sets. An access is reported if an earlier conflicting one of
//! another thread is not ordered before it by that order, and the two do not hold a common lock that at least one of them holds
//! exclusively.
//!
//! Of each variable those accesses are kept that no later one stands for: a later access stands for an earlier one if it is
//! ordered behind it, conflicts with whatever that one conflicts with, and its locks exclude nothing that those of the earlier
//! one do not. Within a stretch of one thread that passes nothing on, an earlier access can stand for a later one in the same
//! way.
//!
//! Guarantee: exact for the second access of a pair; no pair of the paper's filter is lost. A pair is a candidate, not a race:
//! values and flags may order it. Cost: O(kept accesses) for an access, at most threads × different lock sets, usually a few.

use crate::analysis::Analysis;
use crate::clock::Time;
use crate::history::Entry;
use crate::lock_sets::{HeldLocks, SetId, Sets};
use crate::race::{Race, Races};
use crate::synchronisation::{Clocks, Edges};
use crate::table::Table;
use crate::variables::Share;
use rashomon_packed::{Event, Op, Space};

/// How many events before its turn a variable is asked for.
const AHEAD: usize = 16;

#[derive(Clone, Copy, Debug, Default)]
struct Kept {
    entry: Entry,
    writes: bool,
    held: SetId,
}

impl Kept {
    /// Whether whatever conflicts with the other access conflicts with this one.
    fn is_at_least(&self, other: &Self) -> bool {
        (self.writes || !other.writes) && (!self.entry.atomic || other.entry.atomic)
    }
}

/// One access in place, because that is what most variables need.
#[derive(Clone, Copy, Debug, Default)]
struct Record {
    /// Its time is 0 if there is none.
    latest: Kept,
    /// 0, or one more than the number of a list of older ones.
    older: u32,
}

#[derive(Clone, Debug)]
pub struct Hybrid {
    share: Share,
    clocks: Clocks,
    held: HeldLocks,
    sets: Sets,
    /// When each thread last did what others may be ordered behind.
    passed_on: Vec<Time>,
    records: Table<Record>,
    lists: Vec<Vec<Kept>>,
    free: Vec<u32>,
    /// Of the lists.
    bytes: usize,
    races: Races,
}

impl Default for Hybrid {
    fn default() -> Self {
        Self::of_share(Share::default())
    }
}

impl Hybrid {
    /// Looks after some of the variables.
    pub fn of_share(share: Share) -> Self {
        Self {
            share,
            clocks: Clocks::new(Edges::WEAK),
            held: HeldLocks::default(),
            sets: Sets::default(),
            passed_on: Vec::new(),
            records: Table::default(),
            lists: Vec::new(),
            free: Vec::new(),
            bytes: 0,
            races: Races::default(),
        }
    }

    /// Keeps every single race too.
    pub fn keeping_all(mut self) -> Self {
        self.races = Races::keeping_all();
        self
    }

    pub fn found(self) -> Races {
        self.races
    }

    fn access(&mut self, event: &Event, now: Time) {
        let Some(slot) = self.share.slot(event.target) else { return };
        let new = Kept { entry: Entry::of(event, now), writes: event.op.writes(), held: self.held.number(event.thread) };
        let record = self.records.at(slot);
        let clock = self.clocks.of(event.thread);
        let (sets, races) = (&self.sets, &mut self.races);
        let passed_on = self.passed_on[usize::from(event.thread)];
        let (mut raced, mut stood_for) = (false, false);
        // Whether the access stays; reports it if it races.
        let mut meet = |old: &Kept| {
            if old.entry.is_before(clock) {
                let same_stretch = old.entry.thread == new.entry.thread && old.entry.time > passed_on;
                if same_stretch && old.is_at_least(&new) && sets.is_weaker(old.held, new.held) {
                    stood_for = true;
                    return true;
                }
                return !(new.is_at_least(old) && sets.is_weaker(new.held, old.held));
            }
            if (old.writes || new.writes) && !(old.entry.atomic && new.entry.atomic) && !sets.exclude(old.held, new.held) {
                if !std::mem::replace(&mut raced, true) {
                    races.event();
                }
                let (earlier, later) = (Some(old.entry.access()), new.entry.access());
                races.race(Race { variable: event.target, earlier, later });
            }
            true
        };
        if let Some(number) = record.older.checked_sub(1) {
            let list = &mut self.lists[number as usize];
            list.retain(&mut meet);
            if list.is_empty() {
                self.bytes -= list.capacity() * size_of::<Kept>();
                *list = Vec::new();
                self.free.push(number);
                record.older = 0;
            }
        }
        let keep = record.latest.entry.time != 0 && meet(&record.latest);
        if stood_for {
            return;
        }
        if keep {
            if record.older == 0 {
                let number = self.free.pop().unwrap_or_else(|| {
                    self.lists.push(Vec::new());
                    self.lists.len() as u32 - 1
                });
                record.older = number + 1;
            }
            let list = &mut self.lists[record.older as usize - 1];
            let before = list.capacity();
            list.push(record.latest);
            self.bytes += (list.capacity() - before) * size_of::<Kept>();
        }
        record.latest = new;
    }

    fn forget(&mut self, variable: u32) {
        if let Some(record) = self.share.slot(variable).and_then(|slot| self.records.get_mut(slot)) {
            let older = std::mem::take(record).older;
            if let Some(number) = older.checked_sub(1) {
                self.bytes -= std::mem::take(&mut self.lists[number as usize]).capacity() * size_of::<Kept>();
                self.free.push(number);
            }
        }
    }
}

impl Analysis for Hybrid {
    fn block(&mut self, first: u64, events: &[Event]) {
        self.clocks.prepare(events);
        self.held.prepare(self.clocks.threads());
        self.passed_on.resize(self.clocks.threads(), 0);
        for (place, event) in events.iter().enumerate() {
            if let Some(ahead) = events.get(place + AHEAD)
                && ahead.op.is_access()
                && let Some(slot) = self.share.slot(ahead.target)
            {
                self.records.prefetch(slot);
            }
            let now = (first + place as u64 + 1) as Time;
            match event.op {
                op if op.is_access() => self.access(event, now),
                Op::Acquire | Op::Release | Op::AcquireShared | Op::ReleaseShared => self.held.step(event, &mut self.sets),
                Op::Forget => self.forget(event.target),
                Op::Request | Op::RequestShared | Op::Begin | Op::End | Op::Branch | Op::Fence | Op::Nothing => {}
                _ => {
                    self.passed_on[usize::from(event.thread)] = now;
                    self.clocks.receive(event, now);
                    self.clocks.release(event, now);
                }
            }
        }
    }

    fn boundary(&mut self, first: u64) {
        self.clocks.order_all_before(first as Time);
    }

    fn expect(&mut self, space: Space, numbers: u32) {
        if space == Space::Variable {
            self.records.expect(self.share.slots(numbers));
        }
    }

    fn bytes(&self) -> usize {
        let lists = self.lists.capacity() * size_of::<Vec<Kept>>() + self.bytes;
        self.clocks.bytes() + self.sets.bytes() + self.held.bytes() + self.records.bytes() + lists + self.races.bytes()
    }

    fn slots(&self) -> usize {
        self.records.end()
    }
}
