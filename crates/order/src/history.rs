//! The recent accesses of each shared granule.
//!
//! One cell per (thread, site, lock set, bytes, kind): the newest such access. Limit: at most [`CELLS`] cells per granule; when
//! they are all taken the oldest access is forgotten, so a pair with it may be missed. The first [`BEGINNING`] that a thread
//! makes since it last synchronised are not forgotten for what it does later in that stretch: others come to them first.

use rashomon_event::{Access, EventIndex, SiteId, ThreadId};

/// Cells kept per granule.
pub const CELLS: usize = 24;
const BEGINNING: usize = 8;

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
        let (mut count, mut same) = (0, NONE);
        let mut at = self.first[granule];
        while at != NONE {
            let old = &self.cells[at as usize];
            if old.conflicts(&new) {
                conflict(old);
            } else if old.same_kind(&new) {
                same = at;
            }
            count += 1;
            at = old.next;
        }
        let replaced = if same != NONE {
            same
        } else if count >= CELLS {
            self.oldest(granule, &new)
        } else {
            let at = self.cells.len() as u32;
            self.cells.push(Cell { next: self.first[granule], ..new });
            self.first[granule] = at;
            return;
        };
        let next = self.cells[replaced as usize].next;
        self.cells[replaced as usize] = Cell { next, ..new };
    }

    /// The oldest access but for those that begin the present stretch of `new`'s thread.
    fn oldest(&self, granule: usize, new: &Cell) -> u32 {
        let cells = || {
            let next = |at: &u32| Some(self.cells[*at as usize].next).filter(|next| *next != NONE);
            std::iter::successors(Some(self.first[granule]).filter(|first| *first != NONE), next)
        };
        let cell = |at: &u32| &self.cells[*at as usize];
        let is_of_stretch = |at: &u32| cell(at).thread == new.thread && cell(at).time == new.time;
        let mut stretch: Vec<EventIndex> = cells().filter(is_of_stretch).map(|at| cell(&at).event).collect();
        stretch.sort_unstable();
        let begins = |at: &u32| is_of_stretch(at) && stretch.iter().take(BEGINNING).any(|event| *event == cell(at).event);
        cells().filter(|at| !begins(at)).min_by_key(|at| cell(at).event).unwrap_or(NONE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rashomon_event::{AccessClass, Address};

    fn write(event: u32, thread: u32, time: u32) -> Cell {
        let access = Access { address: Address(64), size: 8, class: AccessClass::Write, atomic: false };
        // Each at a place of its own.
        Cell::new(EventIndex(event), ThreadId(thread), SiteId(event), time, 0, &access)
    }

    #[test]
    fn what_begins_a_stretch_is_remembered_through_it() {
        let mut history = History::new(1);
        let many = CELLS as u32 + 10;
        for event in 0..many {
            history.access(0, 1, write(event, 0, u32::from(event >= 5)), |_| {});
        }
        let mut met = Vec::new();
        history.access(0, 1, write(many, 1, 1), |old| met.push(old.event.0));
        met.sort_unstable();
        // The first ones of the second stretch, and the newest.
        let newest = many - (CELLS - BEGINNING) as u32..many;
        assert_eq!(met, (5..5 + BEGINNING as u32).chain(newest).collect::<Vec<_>>());
    }
}
