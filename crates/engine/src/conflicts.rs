//! Which sections of each lock accessed each variable: a table by lock and variable, which no cache may hold.
//!
//! Open addressing with linear probing (Knuth, TAOCP 3, §6.4, Algorithm L). A pair begins to look at the top bits of its product
//! with 2^64 divided by the golden ratio; so a table of twice the size has the pairs in the same order, and to grow is to copy
//! from front to back. Half a cache line a pair.

use crate::hints::{fill, prefetch, use_large_pages};
use crate::sections::{Exclusive, NONE, Section, Shared};

#[derive(Clone, Copy, Debug)]
#[repr(C, align(32))]
struct Cell {
    /// [`NONE`] if the cell is empty.
    lock: u32,
    variable: u32,
    /// Which life of the variable this is about.
    life: u32,
    /// 0, or one more than the number of its lists of shared sections.
    shared: u32,
    reads: Exclusive,
    writes: Exclusive,
}

const _: () = assert!(size_of::<Cell>() == 32);

const NOBODY: Exclusive = Exclusive { latest: NONE, other: NONE };
const EMPTY: Cell = Cell { lock: NONE, variable: 0, life: 0, shared: 0, reads: NOBODY, writes: NOBODY };

/// Cells that move from a table to a larger one between two looks at the memory that they take from disk.
const TRIMMED: usize = 1 << 15;
/// Cells to begin with, as a power of two.
const FEW: u32 = 10;

#[derive(Clone, Debug)]
pub(crate) struct Conflicts {
    cells: Vec<Cell>,
    /// The number of cells is 2 to this.
    bits: u32,
    pairs: usize,
    /// In shared sections: what was read, and what was written.
    shared: Vec<[Shared; 2]>,
}

impl Default for Conflicts {
    fn default() -> Self {
        Self { cells: cells(FEW), bits: FEW, pairs: 0, shared: Vec::new() }
    }
}

fn cells(bits: u32) -> Vec<Cell> {
    let mut cells = Vec::with_capacity(1 << bits);
    use_large_pages(&mut cells);
    fill(&mut cells, 1 << bits, &EMPTY);
    cells
}

impl Conflicts {
    /// Where to begin to look.
    #[inline]
    fn first(&self, lock: u32, variable: u32) -> usize {
        let key = u64::from(lock) << 32 | u64::from(variable);
        (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - self.bits)) as usize
    }

    /// Asks for what [`Self::find`] will look at.
    #[inline]
    pub fn prefetch(&self, lock: u32, variable: u32) {
        prefetch(&self.cells, self.first(lock, variable));
    }

    /// Asks for the sections that such a look-up will find, once its cell is near.
    #[inline]
    pub fn prefetch_sections(&self, lock: u32, variable: u32, sections: &[Section]) {
        let cell = &self.cells[self.first(lock, variable)];
        prefetch(sections, cell.writes.latest as usize);
        prefetch(sections, cell.reads.latest as usize);
    }

    /// Where the pair is, from now on and until another one is looked for.
    #[inline]
    pub fn find(&mut self, lock: u32, variable: u32, life: u32) -> usize {
        debug_assert!(lock != NONE, "no lock has this number");
        let mut place = self.first(lock, variable);
        loop {
            let cell = &mut self.cells[place];
            if (cell.lock, cell.variable) == (lock, variable) {
                if cell.life != life {
                    if let Some(number) = cell.shared.checked_sub(1) {
                        self.shared[number as usize] = Default::default();
                    }
                    *cell = Cell { lock, variable, life, shared: cell.shared, ..EMPTY };
                }
                return place;
            }
            if cell.lock == NONE {
                *cell = Cell { lock, variable, life, ..EMPTY };
                self.pairs += 1;
                if self.pairs * 4 <= self.cells.len() * 3 {
                    return place;
                }
                self.grow();
                return self.find(lock, variable, life);
            }
            place = (place + 1) & (self.cells.len() - 1);
        }
    }

    #[cold]
    fn grow(&mut self) {
        self.bits += 1;
        let old = std::mem::replace(&mut self.cells, cells(self.bits));
        for (number, cell) in old.into_iter().enumerate().filter(|(_, cell)| cell.lock != NONE) {
            if number % TRIMMED == 0 {
                rashomon_spill::trim();
            }
            let mut place = self.first(cell.lock, cell.variable);
            while self.cells[place].lock != NONE {
                place = (place + 1) & (self.cells.len() - 1);
            }
            self.cells[place] = cell;
        }
    }

    /// The sections at a place that an access of this thread, in a section of this mode, has to be ordered behind.
    #[inline]
    pub fn before(
        &self,
        place: usize,
        writes: bool,
        thread: u16,
        shared: bool,
        sections: &[Section],
    ) -> impl Iterator<Item = u32> {
        let cell = &self.cells[place];
        let lists = cell.shared.checked_sub(1).filter(|_| !shared).map(|number| &self.shared[number as usize]);
        let of_reads = writes.then(|| cell.reads.before(thread, sections)).into_iter().flatten();
        let among = lists.into_iter().flat_map(move |[reads, written]| {
            let of_reads = writes.then(|| reads.before(thread, sections)).into_iter().flatten();
            written.before(thread, sections).chain(of_reads)
        });
        cell.writes.before(thread, sections).chain(of_reads).chain(among)
    }

    /// An access in section `own` comes to a place.
    #[inline]
    pub fn add(&mut self, place: usize, own: u32, reads: bool, writes: bool, sections: &[Section]) {
        let cell = &mut self.cells[place];
        let shared = sections[own as usize].shared;
        if shared && cell.shared == 0 {
            self.shared.push(Default::default());
            cell.shared = self.shared.len() as u32;
        }
        let mut lists = cell.shared.checked_sub(1).map(|number| &mut self.shared[number as usize]);
        for (concerned, exclusive, list) in [(reads, &mut cell.reads, 0), (writes, &mut cell.writes, 1)] {
            let list = lists.as_mut().map(|lists| &mut lists[list]);
            match list {
                _ if !concerned => {}
                Some(list) if shared => list.add(own, sections),
                list => exclusive.add(own, list, sections),
            }
        }
    }

    pub fn bytes(&self) -> usize {
        let lists =
            self.shared.iter().flatten().map(Shared::bytes).sum::<usize>() + self.shared.capacity() * size_of::<[Shared; 2]>();
        self.cells.capacity() * size_of::<Cell>() + lists
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// Against a map, while the table grows several times; every seventh time the variable's life is another one.
    #[test]
    fn pairs_are_found_again() {
        let section = |thread, shared| Section { acquired: 0, released: 0, thread, shared, row: NONE };
        let sections: Vec<Section> = (0..8).map(|number| section(number / 2, number % 2 == 1)).collect();
        let (mut table, mut expected) = (Conflicts::default(), BTreeMap::new());
        let mut random = 1_u64;
        for step in 0..40_000_u32 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let (lock, variable, own) = ((random >> 60) as u32, (random >> 40) as u32 % 2_000, (random >> 37) as u32 % 8);
            let life = u32::from(step > 20_000 && variable % 7 == 0);
            let writes = random >> 36 & 1 == 1;
            let place = table.find(lock, variable, life);
            let known: &mut (u32, [crate::sections::Accessing; 2]) = expected.entry((lock, variable)).or_default();
            if known.0 != life {
                *known = (life, Default::default());
            }
            for (thread, shared) in (0..4).flat_map(|thread| [(thread, false), (thread, true)]) {
                let mut found: Vec<u32> = table.before(place, true, thread, shared, &sections).collect();
                let mut all: Vec<u32> =
                    known.1.iter().flat_map(|accessing| accessing.before(thread, shared, &sections)).collect();
                found.sort_unstable();
                all.sort_unstable();
                assert_eq!(found, all, "step {step}");
            }
            table.add(place, own, !writes, writes, &sections);
            known.1[usize::from(writes)].add(own, &sections);
        }
        assert!(table.bits > FEW + 2 && table.pairs == expected.len());
    }
}
