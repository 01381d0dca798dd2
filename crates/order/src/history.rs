//! The recent accesses of each shared granule.
//!
//! One cell per (thread, site, lock set, bytes, kind): the newest such access. Limit: at most [`CELLS`] cells per granule; when they are
//! all taken the oldest access is forgotten, so a pair with it may be missed.

use rashomon_event::{Access, EventIndex, SiteId, ThreadId};

/// Cells kept per granule.
pub const CELLS: usize = 24;

#[derive(Clone, Copy, Debug)]
pub struct Cell {
    pub event: EventIndex,
    pub thread: ThreadId,
    pub site: SiteId,
    /// The thread's time at the access.
    pub time: u32,
    pub lockset: u32,
    bytes: u8,
    kind: u8,
    next: u32,
}

const WRITES: u8 = 1;
const ATOMIC: u8 = 2;
const NONE: u32 = u32::MAX;

impl Cell {
    pub fn new(event: EventIndex, thread: ThreadId, site: SiteId, time: u32, lockset: u32, access: &Access) -> Self {
        let kind = if access.class.writes() { WRITES } else { 0 } | if access.atomic { ATOMIC } else { 0 };
        Self { event, thread, site, time, lockset, bytes: 0, kind, next: NONE }
    }

    fn conflicts(&self, other: &Self) -> bool {
        self.thread != other.thread
            && self.bytes & other.bytes != 0
            && (self.kind | other.kind) & WRITES != 0
            && self.kind & other.kind & ATOMIC == 0
    }

    fn same_kind(&self, other: &Self) -> bool {
        self.site == other.site
            && self.thread == other.thread
            && self.lockset == other.lockset
            && self.bytes == other.bytes
            && self.kind == other.kind
    }
}

pub struct History {
    first: Vec<u32>,
    cells: Vec<Cell>,
}

impl History {
    pub fn new(granules: usize) -> Self {
        Self { first: vec![NONE; granules], cells: Vec::new() }
    }

    /// Calls `conflict` with each remembered access that conflicts with this one, then remembers this one.
    pub fn access(&mut self, granule: usize, bytes: u8, cell: Cell, mut conflict: impl FnMut(&Cell)) {
        let new = Cell { bytes, ..cell };
        let (mut count, mut oldest, mut same) = (0, NONE, NONE);
        let mut at = self.first[granule];
        while at != NONE {
            let old = &self.cells[at as usize];
            if old.conflicts(&new) {
                conflict(old);
            } else if old.same_kind(&new) {
                same = at;
            }
            if oldest == NONE || old.event < self.cells[oldest as usize].event {
                oldest = at;
            }
            count += 1;
            at = old.next;
        }
        let replaced = if same != NONE {
            same
        } else if count >= CELLS {
            oldest
        } else {
            let at = self.cells.len() as u32;
            self.cells.push(Cell { next: self.first[granule], ..new });
            self.first[granule] = at;
            return;
        };
        let next = self.cells[replaced as usize].next;
        self.cells[replaced as usize] = Cell { next, ..new };
    }
}
