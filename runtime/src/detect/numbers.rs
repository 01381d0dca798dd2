//! Tables from contents to the numbers that stand for them: open addressing, looked up without a lock. A table is only ever added
//! to, under its owner's lock, and replaced by a larger one; the former ones stay, as somebody may be looking at them.

use crate::system::sys;
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering::*};

/// Each slot: a hash above a number; 0 is free.
#[repr(C)]
struct Table {
    mask: u32,
    slots: [AtomicU64; 0],
}

pub struct Numbers(AtomicPtr<Table>);

/// Where a number goes that was not found.
pub struct Free(&'static AtomicU64, u32);

impl Numbers {
    pub const fn new() -> Self {
        Self(AtomicPtr::new(core::ptr::null_mut()))
    }

    /// `slots`: a power of two.
    pub fn initialise(&self, slots: u32) {
        self.0.store(new_table(slots), Release);
    }

    /// The number with that hash which is the `same`.
    #[inline]
    pub fn find(&self, hash: u32, same: impl Fn(u32) -> bool) -> Result<u32, Free> {
        find(self.0.load(Acquire), hash, same)
    }

    /// Under the owner's lock, with what [`Self::find`] said since it was taken. Numbers are given out in turn, from 1 on.
    pub fn add(&self, free: &Free, number: u32) {
        free.0.store((free.1 as u64) << 32 | number as u64, Release);
        let table = self.0.load(Relaxed);
        // SAFETY: the current table.
        let slots = unsafe { (*table).mask } + 1;
        if number < slots / 2 {
            return;
        }
        let larger = new_table(slots * 2);
        for at in 0..slots {
            let entry = slot(table, at).load(Relaxed);
            if entry != 0
                && let Err(free) = find(larger, (entry >> 32) as u32, |_| false)
            {
                free.0.store(entry, Relaxed);
            }
        }
        self.0.store(larger, Release);
    }
}

fn new_table(slots: u32) -> *mut Table {
    let table = sys::map_anonymous(16 + slots as usize * 8).cast::<Table>();
    if table.is_null() {
        sys::die(&[b"out of memory for call stacks and lock sets"]);
    }
    // SAFETY: fresh.
    unsafe { (*table).mask = slots - 1 };
    table
}

fn slot(table: *const Table, at: u32) -> &'static AtomicU64 {
    // SAFETY: below the mask; tables are never unmapped.
    unsafe { &*(&raw const (*table).slots).cast::<AtomicU64>().add((at & (*table).mask) as usize) }
}

#[inline]
fn find(table: *const Table, hash: u32, same: impl Fn(u32) -> bool) -> Result<u32, Free> {
    let mut at = hash;
    loop {
        let slot = slot(table, at);
        let entry = slot.load(Acquire);
        if entry == 0 {
            return Err(Free(slot, hash));
        }
        if (entry >> 32) as u32 == hash && same(entry as u32) {
            return Ok(entry as u32);
        }
        at = at.wrapping_add(1);
    }
}
