//! What the filter knows of each lock: which of those that live at its address one after the other it is, and who acquired it
//! last.
//!
//! An acquisition is noted while the lock is held, so an exclusive one sees all that came before it. Locks are told apart as the
//! host does (`crates/trace/src/identity.rs`): another one begins when bytes are given out again, at the next initialisation, and
//! with the first use after destruction.

use super::lifetimes;
use crate::system::lock::RawLock;
use crate::system::memory::{List, Map};
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicU32, Ordering::*};

#[derive(Clone, Copy)]
struct Lock {
    /// Unique among all that there ever were.
    number: u32,
    lifetime: u32,
    /// Plus 1; 0: nobody yet.
    acquirer: u32,
    /// Nothing but its initialisation was seen since it began.
    untouched: bool,
    destroyed: bool,
}

struct Table {
    places: Map,
    locks: List<Lock>,
}

/// A part of the table, by address.
struct Shard {
    lock: RawLock,
    table: UnsafeCell<Table>,
}

// SAFETY: the table is touched under its lock only.
unsafe impl Sync for Shard {}

const SHARDS_LOG2: u32 = 6;
static SHARDS: [Shard; 1 << SHARDS_LOG2] =
    [const { Shard { lock: RawLock::new(), table: UnsafeCell::new(Table { places: Map::new(), locks: List::new() }) } };
        1 << SHARDS_LOG2];
static NUMBERS: AtomicU32 = AtomicU32::new(1);

fn with<R>(address: u64, body: impl FnOnce(&mut Lock) -> R) -> R {
    let shard = &SHARDS[(address.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - SHARDS_LOG2)) as usize];
    shard.lock.with(|| {
        // SAFETY: under the shard's lock.
        let table = unsafe { &mut *shard.table.get() };
        let lifetime = lifetimes::of(address);
        let place = table.places.entry((address, 1));
        let fresh = || Lock { number: NUMBERS.fetch_add(1, Relaxed), lifetime, acquirer: 0, untouched: true, destroyed: false };
        if *place == 0 {
            table.locks.push(fresh());
            *place = table.locks.len() as u64;
        }
        let lock = &mut table.locks.as_mut_slice()[*place as usize - 1];
        if lock.lifetime != lifetime {
            *lock = fresh();
        }
        body(lock)
    })
}

impl Lock {
    fn begin_another(&mut self) {
        (self.number, self.acquirer) = (NUMBERS.fetch_add(1, Relaxed), 0);
    }
    fn is_used(&mut self) {
        self.untouched = false;
        if core::mem::take(&mut self.destroyed) {
            self.begin_another();
        }
    }
}

/// Notes an acquisition: the lock's number, and whether the thread was the last to acquire it before.
pub fn acquired(address: u64, thread: u32) -> (u32, bool) {
    with(address, |lock| {
        lock.is_used();
        (lock.number, core::mem::replace(&mut lock.acquirer, thread + 1) == thread + 1)
    })
}

/// Any other use: the lock's number.
pub fn used(address: u64) -> u32 {
    with(address, |lock| {
        lock.is_used();
        lock.number
    })
}

pub fn initialised(address: u64) {
    with(address, |lock| {
        lock.destroyed = false;
        if !core::mem::replace(&mut lock.untouched, true) {
            lock.begin_another();
        }
    });
}

pub fn destroyed(address: u64) {
    with(address, |lock| (lock.destroyed, lock.untouched) = (true, false));
}

/// Of the parent's locks nothing is known.
pub fn forget() {
    for shard in &SHARDS {
        shard.lock.reset();
        // SAFETY: in a child that has one thread. Half-changed tables are not looked at: they are the parent's memory.
        unsafe { *shard.table.get() = Table { places: Map::new(), locks: List::new() } };
    }
}
