//! Θ of one thread: where it was with which locks, and after how many outgoing events. Open addressing; grows up to the bound,
//! then everything is forgotten, which is sound: what is not remembered is written again.

use super::context::Step;
use crate::system::sys;
use rashomon_abi::record::LOW_MASK;

/// Conditions 1 to 3 of the thesis' §3.3: code location, class and size, bytes of one lifetime.
#[derive(Clone, Copy)]
pub struct Place {
    /// `kind:16 | address:48`
    target: u64,
    site: u64,
    lifetime: u32,
}

impl Place {
    pub fn new(site: u64, kind: u64, address: u64, lifetime: u32) -> Self {
        Self { target: kind << 48 | address & LOW_MASK, site: site & LOW_MASK, lifetime }
    }
}

#[derive(Clone, Copy)]
struct Entry {
    /// Never 0 in use: kinds are not.
    target: u64,
    /// `node:16 | site:48`
    site: u64,
    lifetime: u32,
    outgoing: u32,
}

pub struct History {
    /// Null: none yet.
    entries: *mut Entry,
    capacity: usize,
    length: usize,
}

const LEAST: usize = 1 << 9;

impl History {
    /// The entry of a place at a node, or the free one where it belongs.
    fn probe(&self, place: &Place, node: u32) -> *mut Entry {
        let site = place.site | (node as u64) << 48;
        let mixed = (place.target ^ site.rotate_left(21)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut at = (mixed ^ mixed >> 32) as usize & (self.capacity - 1);
        loop {
            // SAFETY: below the capacity; the table is never full.
            let entry = unsafe { self.entries.add(at) };
            // SAFETY: entries are zero or written.
            let known = unsafe { &*entry };
            if known.target == 0 || known.target == place.target && known.site == site {
                return entry;
            }
            at = (at + 1) & (self.capacity - 1);
        }
    }

    /// Whether an access at a prefix of the path, after all outgoing events that are alive, was noted.
    pub fn covers(&self, place: &Place, path: &[Step], alive: u32) -> bool {
        if self.capacity == 0 {
            return false;
        }
        let known = |node: u32| {
            // SAFETY: an entry of the table.
            let entry = unsafe { &*self.probe(place, node) };
            entry.target != 0 && entry.lifetime == place.lifetime && entry.outgoing >= alive
        };
        path.iter().rev().any(|step| known(step.node)) || known(0)
    }

    /// False: there is no room.
    pub fn note(&mut self, place: &Place, node: u32, outgoing: u32, most: u32) -> bool {
        if (self.length + 1) * 2 > self.capacity {
            if self.length >= most as usize {
                return false;
            }
            self.grow();
        }
        // SAFETY: an entry of the table.
        let entry = unsafe { &mut *self.probe(place, node) };
        self.length += (entry.target == 0) as usize;
        *entry = Entry { target: place.target, site: place.site | (node as u64) << 48, lifetime: place.lifetime, outgoing };
        true
    }

    fn grow(&mut self) {
        let capacity = (self.capacity * 2).max(LEAST);
        let fresh: *mut Entry = sys::map_anonymous(capacity * size_of::<Entry>()).cast();
        if fresh.is_null() {
            sys::die(&[b"out of memory for the filter"]);
        }
        let old = core::mem::replace(self, Self { entries: fresh, capacity, length: self.length });
        for at in 0..old.capacity {
            // SAFETY: an entry of the old table, then a free one of the new.
            unsafe {
                let entry = *old.entries.add(at);
                if entry.target != 0 {
                    let place = Place { target: entry.target, site: entry.site & LOW_MASK, lifetime: entry.lifetime };
                    *self.probe(&place, (entry.site >> 48) as u32) = entry;
                }
            }
        }
        old.unmap();
    }

    fn unmap(&self) {
        if self.capacity > 0 {
            // SAFETY: the table's own mapping, used no more.
            unsafe { sys::unmap(self.entries.cast(), (self.capacity * size_of::<Entry>()).next_multiple_of(4096)) };
        }
    }

    pub fn forget(&mut self) {
        if self.capacity > 0 {
            // SAFETY: the whole table.
            unsafe { core::ptr::write_bytes(self.entries, 0, self.capacity) };
        }
        self.length = 0;
    }

    pub fn end(&mut self) {
        self.unmap();
        *self = Self { entries: core::ptr::null_mut(), capacity: 0, length: 0 };
    }
}
