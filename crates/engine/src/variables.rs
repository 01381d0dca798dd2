//! What is known of each variable, 32 bytes apiece, and which variables are whose.

use crate::clock::{Row, Time};
use crate::guard::{Guard, Protection};
use crate::history::{Entry, History};
use crate::table::Table;
use rashomon_packed::{Event, Op};

/// A plain access, or none, in eight bytes: time above, location below. The thread is apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Packed(u64);

impl Packed {
    #[inline]
    pub fn new(time: Time, location: u32) -> Self {
        Self(u64::from(time) << 32 | u64::from(location))
    }

    #[inline]
    pub fn time(self) -> Time {
        (self.0 >> 32) as Time
    }

    pub fn entry(self, thread: u16) -> Option<Entry> {
        (self.time() != 0).then(|| Entry { time: self.time(), location: self.0 as u32, thread, atomic: false })
    }
}

/// Two to a cache line. The last write and the last read suffice while each access is ordered behind them; otherwise there is a
/// history.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(32))]
pub struct Record {
    pub write: Packed,
    pub read: Packed,
    pub write_thread: u16,
    pub read_thread: u16,
    /// Eraser's state above; below it 0, or one more than the number of a history, which then is in place of both accesses.
    state: u32,
    guard: Guard,
}

const _: () = assert!(size_of::<Record>() == 32);

/// Bits of a history's number.
const HISTORY_BITS: u32 = u32::BITS - Protection::BITS;

impl Record {
    #[inline]
    fn history(&self) -> u32 {
        self.state & ((1 << HISTORY_BITS) - 1)
    }

    #[inline]
    fn set_history(&mut self, history: u32) {
        self.state = self.state >> HISTORY_BITS << HISTORY_BITS | history;
    }

    #[inline]
    pub fn protection(&self) -> Protection {
        Protection(self.state >> HISTORY_BITS)
    }

    #[inline]
    pub fn guard(&self) -> Guard {
        self.guard
    }

    #[inline]
    pub fn protect(&mut self, protection: Protection, guard: Guard) {
        self.state = protection.0 << HISTORY_BITS | self.history();
        self.guard = guard;
    }
}

/// Variables are shared out among workers in groups of this many, so that each worker's table is dense.
const GROUP_BITS: u32 = 10;
/// So many workers at most: [`Share::slot`] divides by multiplication, which is exact up to here.
pub const MAX_WORKERS: u32 = 512;

/// The variables that one worker looks after in one pass: of the numbers from `low` to before `high` every `workers`-th group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    low: u32,
    high: u32,
    worker: u32,
    workers: u32,
    reciprocal: u64,
}

impl Default for Share {
    fn default() -> Self {
        Self::new(0, 1, 0, u32::MAX)
    }
}

impl Share {
    pub fn new(worker: u32, workers: u32, low: u32, high: u32) -> Self {
        assert!(worker < workers && workers <= MAX_WORKERS && low <= high, "a share of something");
        Self { low, high, worker, workers, reciprocal: (1 << 32) / u64::from(workers) + 1 }
    }

    /// Where in the worker's table the variable is, if it is the worker's.
    #[inline]
    pub fn slot(&self, variable: u32) -> Option<usize> {
        let number = variable.wrapping_sub(self.low);
        if variable < self.low || variable > self.high {
            return None;
        }
        if self.workers == 1 {
            return Some(number as usize);
        }
        let group = number >> GROUP_BITS;
        let own = ((u64::from(group) * self.reciprocal) >> 32) as u32;
        let mine = group - own * self.workers == self.worker;
        mine.then_some((own << GROUP_BITS | number & ((1 << GROUP_BITS) - 1)) as usize)
    }

    /// Slots for variables up to this many.
    pub fn slots(&self, variables: u32) -> usize {
        let number = variables.saturating_sub(self.low).min(self.high - self.low);
        if self.workers == 1 {
            return number as usize;
        }
        (number >> GROUP_BITS).div_ceil(self.workers).saturating_add(1) as usize * (1 << GROUP_BITS)
    }
}

/// The variables' records and histories.
#[derive(Clone, Debug, Default)]
pub struct Variables {
    records: Table<Record>,
    histories: Vec<History>,
    free: Vec<u32>,
    /// Of the histories' accesses.
    bytes: usize,
}

impl Variables {
    pub fn count(&self) -> usize {
        self.records.len()
    }

    /// One more than the greatest slot, or than some slot that is greater.
    pub fn end(&self) -> usize {
        self.records.end()
    }

    pub fn expect(&mut self, slots: usize) {
        self.records.expect(slots);
    }

    #[inline]
    pub fn prefetch(&self, slot: usize) {
        self.records.prefetch(slot);
    }

    #[inline]
    pub fn record(&mut self, slot: usize) -> &mut Record {
        self.records.at(slot)
    }

    /// A plain access that everything kept is ordered before that it conflicts with; of a variable that has a history only a
    /// read. Says no, and does nothing, for any other.
    #[inline]
    pub fn access(&mut self, slot: usize, event: &Event, now: Time, known: &Row) -> bool {
        let record = self.record(slot);
        let behind_write = record.write.time() <= known[usize::from(record.write_thread)];
        let behind_read = record.read.time() <= known[usize::from(record.read_thread)];
        if !(behind_write && behind_read && record.history() == 0) {
            return record.history() != 0 && event.op == Op::Read && self.read_with_history(slot, event, now, known);
        }
        let new = Packed::new(now, event.location);
        // Whether an access reads or writes is nothing that a processor could predict: both ways are the same instructions.
        match event.op {
            Op::Write | Op::Read => {
                let writes = event.op == Op::Write;
                record.write = if writes { new } else { record.write };
                record.write_thread = if writes { event.thread } else { record.write_thread };
                record.read = if writes { Packed::default() } else { new };
                record.read_thread = if writes { record.read_thread } else { event.thread };
            }
            _ => return false,
        }
        true
    }

    fn read_with_history(&mut self, slot: usize, event: &Event, now: Time, known: &Row) -> bool {
        let history = &mut self.histories[self.records.known(slot).history() as usize - 1];
        let before = history.bytes();
        let done = history.read(event, now, known);
        self.bytes = self.bytes + history.bytes() - before;
        done
    }

    /// The variable's history, which replaces what its record has.
    pub fn history(&mut self, slot: usize) -> &mut History {
        let record = self.record(slot);
        if record.history() == 0 {
            let new = History::new(record.write.entry(record.write_thread), record.read.entry(record.read_thread));
            (record.write, record.read) = (Packed::default(), Packed::default());
            self.bytes += new.bytes();
            let number = match self.free.pop() {
                Some(number) => {
                    self.histories[number as usize] = new;
                    number
                }
                None => {
                    self.histories.push(new);
                    assert!(self.histories.len() < 1 << HISTORY_BITS, "histories that fit in memory");
                    self.histories.len() as u32 - 1
                }
            };
            self.records.known_mut(slot).set_history(number + 1);
        }
        let number = self.records.known(slot).history() as usize - 1;
        &mut self.histories[number]
    }

    /// The event's access comes to the history of the variable, which has one.
    pub fn add_to_history(&mut self, slot: usize, event: &Event, now: Time, clock: &Row) {
        let record = self.records.known_mut(slot);
        let history = &mut self.histories[record.history() as usize - 1];
        let before = history.bytes();
        let collapses = history.add(event, now, clock);
        self.bytes = self.bytes + history.bytes() - before;
        if collapses {
            (record.write, record.write_thread) = (Packed::new(now, event.location), event.thread);
            let history = record.history();
            record.set_history(0);
            self.discard(history);
        }
    }

    /// The variable's life ends.
    pub fn forget(&mut self, slot: usize) {
        if let Some(record) = self.records.get_mut(slot) {
            let history = std::mem::take(record).history();
            self.discard(history);
        }
    }

    fn discard(&mut self, history: u32) {
        if let Some(number) = history.checked_sub(1) {
            self.bytes -= std::mem::take(&mut self.histories[number as usize]).bytes();
            self.free.push(number);
        }
    }

    /// The time of the variable's latest access.
    pub fn latest(&mut self, slot: usize) -> Time {
        let record = self.record(slot);
        match record.history() {
            0 => record.write.time().max(record.read.time()),
            history => self.histories[history as usize - 1].latest(),
        }
    }

    /// The latest kept access that the event conflicts with.
    pub fn latest_conflict(&self, slot: usize, event: &Event) -> Option<Entry> {
        let record = self.records.known(slot);
        let latest = |history: &History| history.conflicts(event).max_by_key(|entry| entry.time).copied();
        match record.history() {
            0 => latest(&History::new(record.write.entry(record.write_thread), record.read.entry(record.read_thread))),
            history => latest(&self.histories[history as usize - 1]),
        }
    }

    /// The latest write of every variable.
    pub fn last_writes(&self) -> impl Iterator<Item = (u16, Time)> {
        self.records.iter().filter_map(|record| match record.history() {
            0 => record.write.entry(record.write_thread).map(|entry| (entry.thread, entry.time)),
            history => self.histories[history as usize - 1].last_write().map(|entry| (entry.thread, entry.time)),
        })
    }

    pub fn bytes(&self) -> usize {
        self.records.bytes() + self.histories.capacity() * size_of::<History>() + self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_variable_is_in_one_share() {
        let variables = [0, 1, 1023, 1024, 5000, 99_999, 4_000_000_000, u32::MAX];
        for workers in [1, 2, 3, 7, 64, 511, 512] {
            for (low, high) in [(0, u32::MAX), (1000, u32::MAX), (5000, 4_000_000_000)] {
                let shares: Vec<_> = (0..workers).map(|worker| Share::new(worker, workers, low, high)).collect();
                for variable in variables {
                    let owners = shares.iter().filter(|share| share.slot(variable).is_some()).count();
                    assert_eq!(owners, usize::from((low..=high).contains(&variable)), "{variable} among {workers}");
                }
            }
        }
    }

    #[test]
    fn slots_are_dense_and_distinct() {
        for workers in [1, 2, 3, 5] {
            for worker in 0..workers {
                let share = Share::new(worker, workers, 10, 99_000);
                let slots: Vec<_> = (0..100_000).filter_map(|variable| share.slot(variable)).collect();
                assert_eq!(slots.iter().collect::<BTreeSet<_>>().len(), slots.len());
                assert!(slots.iter().all(|slot| *slot < share.slots(99_000).max(slots.len())));
                assert!(share.slots(99_000) < slots.len() + (2 << GROUP_BITS) + 1);
            }
        }
    }
}
