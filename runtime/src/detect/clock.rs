//! Vector clocks: per *slot* the epoch up to which something is known.
//!
//! A slot belongs to one thread at a time. It is given to another once the creator of that other thread knows everything the
//! former owner did (it was joined, directly or not), so reuse loses nothing; the epoch goes on counting. When slots run out, one
//! of an ended thread is taken all the same: races between its former and its new owner can be missed then.
//!
//! Arrays come from size classes of powers of two and go back there.

use super::shadow::reserve;
use crate::system::lock::RawLock;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering::*};
use rashomon_logic::clocks;
pub use rashomon_logic::clocks::Epoch;

const CLASSES: usize = 20;
const SMALLEST: u32 = 8;
const ARENA_BYTES: usize = 1 << 36;

pub static LOCK: RawLock = RawLock::new();
static ARENA: AtomicPtr<u32> = AtomicPtr::new(core::ptr::null_mut());
static mut USED: usize = 0;
static mut FREE: [*mut u32; CLASSES] = [core::ptr::null_mut(); CLASSES];
/// Slots that were ever given out.
static SLOTS: AtomicU32 = AtomicU32::new(0);

pub fn initialise() {
    ARENA.store(reserve(ARENA_BYTES).cast(), Release);
}

/// Knowledge of every slot; those behind the end are at 0.
pub struct Clock {
    times: *mut u32,
    length: u32,
    class: u32,
}

fn capacity(class: u32) -> u32 {
    SMALLEST << class
}

impl Clock {
    pub const fn new() -> Self {
        Self { times: core::ptr::null_mut(), length: 0, class: 0 }
    }

    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    #[inline(always)]
    pub fn get(&self, slot: u32) -> Epoch {
        // SAFETY: below the length.
        if slot < self.length { unsafe { *self.times.add(slot as usize) } } else { 0 }
    }

    /// The epochs and how many there are.
    #[inline(always)]
    pub fn raw(&self) -> (*const Epoch, u32) {
        (self.times, self.length)
    }

    fn reach(&mut self, length: u32) {
        if length <= self.length {
            return;
        }
        if self.times.is_null() || length > capacity(self.class) {
            let class = (length.div_ceil(SMALLEST)).next_power_of_two().trailing_zeros();
            let times = take(class);
            // SAFETY: both hold `self.length` words.
            unsafe { core::ptr::copy_nonoverlapping(self.times, times, self.length as usize) };
            self.give_back();
            self.times = times;
            self.class = class;
        }
        // SAFETY: within the capacity. What a former owner left is cleared.
        unsafe { core::ptr::write_bytes(self.times.add(self.length as usize), 0, (length - self.length) as usize) };
        self.length = length;
    }

    pub fn set(&mut self, slot: u32, epoch: Epoch) {
        self.reach(slot + 1);
        // SAFETY: within the length.
        unsafe { *self.times.add(slot as usize) = epoch };
    }

    /// Learns all that `other` knows.
    pub fn join(&mut self, other: &Self) {
        self.reach(other.length);
        if other.length == 0 {
            return;
        }
        // SAFETY: two arrays with as many words; neither is null, as neither is empty.
        let (own, learned) = unsafe {
            let own = core::slice::from_raw_parts_mut(self.times, self.length as usize);
            (own, core::slice::from_raw_parts(other.times, other.length as usize))
        };
        clocks::join(own, learned);
    }

    /// Knows exactly what `other` knows.
    pub fn assign(&mut self, other: &Self) {
        debug_assert!(!core::ptr::eq(self, other));
        if self.times.is_null() || other.length > capacity(self.class) {
            self.length = 0;
            self.reach(other.length);
        }
        self.length = other.length;
        // SAFETY: within both capacities.
        unsafe { core::ptr::copy_nonoverlapping(other.times, self.times, other.length as usize) };
    }

    fn give_back(&mut self) {
        if self.times.is_null() {
            return;
        }
        let (times, class) = (self.times, self.class as usize);
        // SAFETY: under the lock; a free array's first words hold the next one.
        LOCK.with(|| unsafe {
            times.cast::<*mut u32>().write_unaligned(FREE[class]);
            FREE[class] = times;
        });
    }

    /// Forgets everything and gives the memory back.
    pub fn clear(&mut self) {
        self.give_back();
        *self = Self::new();
    }
}

/// An array of that class; its contents are anything.
fn take(class: u32) -> *mut u32 {
    // SAFETY: under the lock.
    LOCK.with(|| unsafe {
        let free = FREE[class as usize];
        if !free.is_null() {
            FREE[class as usize] = free.cast::<*mut u32>().read_unaligned();
            return free;
        }
        let bytes = capacity(class) as usize * 4;
        if USED + bytes > ARENA_BYTES {
            crate::system::sys::die(&[b"too much memory for vector clocks"]);
        }
        let fresh = ARENA.load(Relaxed).byte_add(USED);
        USED += bytes;
        fresh
    })
}

/// More slots than this are not given out.
pub const MAX_SLOTS: u32 = 1 << 14;
/// Ended threads' slots that are looked at for reuse.
const LOOK_AT: usize = 128;

#[derive(Clone, Copy)]
struct Ended {
    slot: u32,
    epoch: Epoch,
}

static mut ENDED: crate::system::memory::List<Ended> = crate::system::memory::List::new();

/// A slot for a thread whose creator knows `knowledge`, and the epoch it begins with.
pub fn take_slot(knowledge: &Clock) -> (u32, Epoch) {
    LOCK.with(|| {
        let ended = &raw mut ENDED;
        // SAFETY: under the lock.
        let ended = unsafe { &mut *ended };
        let known = ended.as_slice().iter().take(LOOK_AT).position(|slot| knowledge.get(slot.slot) >= slot.epoch);
        let at = known.or((SLOTS.load(Relaxed) >= MAX_SLOTS && ended.len() > 0).then_some(0));
        if let Some(at) = at {
            let slot = ended.remove(at);
            return (slot.slot, slot.epoch + 1);
        }
        let fresh = SLOTS.fetch_add(1, Relaxed);
        if fresh >= MAX_SLOTS {
            crate::system::sys::die(&[b"more than 16384 threads at once are more than the detector can tell apart"]);
        }
        (fresh, 1)
    })
}

/// The thread of a slot has ended; `epoch` was its last.
pub fn give_slot_back(slot: u32, epoch: Epoch) {
    if epoch == Epoch::MAX {
        return;
    }
    let ended = &raw mut ENDED;
    // SAFETY: under the lock.
    LOCK.with(|| unsafe { (*ended).push(Ended { slot, epoch }) });
}
