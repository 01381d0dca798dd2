//! Regions that the program wants left out: its accesses, its synchronisation, or races on some of its memory.
//!
//! Regions nest, are a thread's own, and are suspended while it runs a signal handler. A thread that ends inside of one has
//! forgotten to close it: nothing after that was looked at.

use super::places;
use super::stacks::StackId;
use super::walked;
use crate::detect::own::Own;
use crate::report;
use crate::system::lock::RawLock;
use crate::system::memory::List;
use core::sync::atomic::{AtomicU32, Ordering::*};

/// Regions whose places are remembered.
const MOST: usize = 16;

/// Where the regions began that the thread is in.
pub struct Begun {
    places: [StackId; MOST],
    count: usize,
}

impl Begun {
    pub const fn new() -> Self {
        Self { places: [0; MOST], count: 0 }
    }
    fn add(&mut self, place: StackId) {
        if self.count < MOST && !self.places[..self.count].contains(&place) {
            self.places[self.count] = place;
            self.count += 1;
        }
    }
    pub fn places(&self) -> &[StackId] {
        &self.places[..self.count]
    }
}

/// `site`: of the call that began the region, if the program itself is to end it.
pub fn accesses_begin(thread: &mut Own, site: Option<u64>) {
    thread.hot().ignored.set(thread.hot().ignored.get() + 1);
    if let Some(site) = site {
        let place = places::call_stack(thread, site);
        thread.detect.ignores_begun[0].add(place);
    }
}

pub fn accesses_end(thread: &mut Own) {
    let hot = thread.hot();
    hot.ignored.set(hot.ignored.get().saturating_sub(1));
    if hot.ignored.get() == 0 {
        thread.detect.ignores_begun[0].count = 0;
    }
}

pub fn sync_begin(thread: &mut Own, site: Option<u64>) {
    thread.detect.ignores_sync += 1;
    if let Some(site) = site {
        let place = places::call_stack(thread, site);
        thread.detect.ignores_begun[1].add(place);
    }
}

pub fn sync_end(thread: &mut Own) {
    let local = &mut thread.detect;
    local.ignores_sync = local.ignores_sync.saturating_sub(1);
    if local.ignores_sync == 0 {
        local.ignores_begun[1].count = 0;
    }
}

/// Suspends all regions, for a signal handler. Returns what [`resume`] takes.
pub fn suspend(thread: &mut Own) -> (u64, u32) {
    (thread.hot().ignored.take(), core::mem::take(&mut thread.detect.ignores_sync))
}

pub fn resume(thread: &mut Own, (accesses, sync): (u64, u32)) {
    thread.hot().ignored.set(accesses);
    thread.detect.ignores_sync = sync;
}

/// The thread ends: all of its regions should have.
pub fn check_ended(thread: &mut Own) {
    let open = [thread.hot().ignored.get() > 0, thread.detect.ignores_sync > 0];
    if let Some(which) = open.iter().position(|&open| open) {
        walked::with(thread.detect.ignores_begun[which].places(), |places| {
            report::unfinished_ignores(thread.number.get(), places)
        });
    }
}

/// Memory on which races are meant to be.
pub static BENIGN_LOCK: RawLock = RawLock::new();
static BENIGN_COUNT: AtomicU32 = AtomicU32::new(0);
static mut BENIGN: List<(u64, u64)> = List::new();

/// Races on `[address, address + bytes)` are benign.
pub fn benign(address: u64, bytes: u64) {
    let ranges = &raw mut BENIGN;
    // SAFETY: under the lock.
    BENIGN_LOCK.with(|| unsafe {
        if !(*ranges).as_slice().contains(&(address, bytes)) {
            (*ranges).push((address, bytes));
            BENIGN_COUNT.fetch_add(1, Release);
        }
    });
}

/// Whether a race on `[from, to)` was declared to be benign.
pub fn is_benign(from: u64, to: u64) -> bool {
    if BENIGN_COUNT.load(Acquire) == 0 {
        return false;
    }
    let ranges = &raw const BENIGN;
    // SAFETY: under the lock.
    BENIGN_LOCK.with(|| unsafe { (*ranges).as_slice().iter().any(|&(start, bytes)| start < to && from < start + bytes) })
}
