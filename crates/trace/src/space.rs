//! The synthetic address space: machine addresses made unique over the lifetimes of what lives there.
//!
//! Scheme. Four regions that cannot meet:
//!
//! | from | what | synthetic address |
//! |---|---|---|
//! | 0 | static data of modules | the machine address; a module loaded where another one was before gets a fresh range |
//! | [`FRESH_BASE`] | heap blocks, mappings, stacks, thread-local storage | the next free one, never reused, same remainder modulo 16 as the machine address |
//! | [`UNKNOWN_BASE`] | everything else | `UNKNOWN_BASE` + machine address |
//! | [`crate::identity::IDENTITY_BASE`] | identities of re-initialised synchronisation objects | see [`crate::identity`] |
//!
//! A range of machine addresses belongs to the object that was placed there last, also after that object was freed: an access to
//! freed memory is an access to the freed object until its bytes are given out again.
//!
//! Limit: memory given out by an allocator that the runtime does not see, on addresses of an object that it did see, counts as
//! that object's.

use rashomon_abi::record::LOW_MASK;
use rashomon_event::{Address, EventIndex, Object, ObjectId, ObjectKind};
use std::collections::BTreeMap;

pub const FRESH_BASE: u64 = 1 << 48;
pub const UNKNOWN_BASE: u64 = 1 << 60;
/// Fresh ranges end here.
const FRESH_END: u64 = UNKNOWN_BASE;
/// Unused bytes between fresh ranges, so that an overrun meets nothing.
const GAP: u64 = 16;
const PAGE: u64 = 4096;
/// Slots of the cache, for few objects and for many: a working set of small blocks has one range each, and the tree behind costs
/// a descent per access.
const CACHE_SLOTS: usize = 1 << 10;
const MOST_CACHE_SLOTS: usize = 1 << 16;
/// Bytes per line: no two blocks of an allocator begin in the same one.
const LINE: u64 = 32;
/// Lines of a new block that are put into the cache at once.
const EXPECTED_LINES: usize = 8;

/// What [`Space::translate`] keeps per thread: where it looked last.
#[derive(Clone, Copy, Debug, Default)]
pub struct LastHits([CachedRange; 2]);

/// `[start, end)` moves by `shift`, for as long as the placement lasts. Empty when `end` is 0.
#[derive(Clone, Copy, Debug, Default)]
struct CachedRange {
    start: u64,
    end: u64,
    shift: u64,
    placement: u32,
}

/// Who a range of machine addresses belongs to.
#[derive(Clone, Copy, Debug)]
struct Range {
    end: u64,
    object: u32,
    placement: u32,
}

#[derive(Debug)]
pub struct Space {
    objects: Vec<Object>,
    /// Per placement, whether a range still has it; cached ranges of others do not count.
    lasting: Vec<bool>,
    /// By the start of each range.
    ranges: BTreeMap<u64, Range>,
    /// Identity-mapped module ranges: start → end.
    identity_mapped: BTreeMap<u64, u64>,
    /// Pages touched outside all objects: start → end, disjoint and not adjacent.
    unknown: BTreeMap<u64, u64>,
    last_unknown: (u64, u64),
    next_fresh: u64,
    cache: Vec<CachedRange>,
}

impl Default for Space {
    fn default() -> Self {
        Self {
            objects: Vec::new(),
            lasting: vec![false],
            ranges: BTreeMap::new(),
            identity_mapped: BTreeMap::new(),
            unknown: BTreeMap::new(),
            last_unknown: (0, 0),
            next_fresh: FRESH_BASE,
            cache: vec![CachedRange::default(); CACHE_SLOTS],
        }
    }
}

impl Space {
    /// A module's data. Returns its handle for [`Space::place_again`].
    pub fn place_module(&mut self, module: u32, start: u64, end: u64) -> Option<u32> {
        let kind = ObjectKind::Global { module };
        let taken = overlapping(&self.identity_mapped, start, end).next().is_some();
        if taken {
            return self.place_fresh(kind, start, end.checked_sub(start)?, None);
        }
        let size = bounded_size(start, end.checked_sub(start)?)?;
        self.identity_mapped.insert(start, start + size);
        Some(self.place(kind, Address(start), start, size, None))
    }

    /// Gives an object's whole range back to it.
    pub fn place_again(&mut self, object: u32) {
        let Object { machine_base, size, .. } = self.objects[object as usize];
        self.assign(machine_base, machine_base + size, object);
    }

    /// An object gets what it shares with the one that has the machine address: with all of it, since only the first bytes of a
    /// large block are recorded as its end.
    pub fn place_over(&mut self, object: u32, machine: u64) {
        let Some((_, range)) = self.range_at(machine) else { return };
        let machine_range = |object: u32| {
            let Object { machine_base, size, .. } = self.objects[object as usize];
            (machine_base, machine_base + size)
        };
        let ((start, end), (from, to)) = (machine_range(object), machine_range(range.object));
        self.assign(start.max(from), end.min(to), object);
    }

    /// An object with a lifetime of its own. `None` if no such range can exist.
    pub fn place_fresh(&mut self, kind: ObjectKind, machine_base: u64, size: u64, born: Option<EventIndex>) -> Option<u32> {
        let size = bounded_size(machine_base, size)?;
        let base = self.next_fresh + machine_base % 16;
        let behind = (base + size + GAP).next_multiple_of(16);
        if behind > FRESH_END {
            return None;
        }
        self.next_fresh = behind;
        Some(self.place(kind, Address(base), machine_base, size, born))
    }

    /// The same for a block that the program may use `spare` bytes more of than it asked for.
    pub fn place_block(
        &mut self,
        kind: ObjectKind,
        machine_base: u64,
        (asked, spare): (u64, u64),
        born: Option<EventIndex>,
    ) -> Option<u32> {
        let object = self.place_fresh(kind, machine_base, asked.checked_add(spare)?, born)?;
        self.objects[object as usize].spare = spare;
        Some(object)
    }

    fn place(&mut self, kind: ObjectKind, base: Address, machine_base: u64, size: u64, born: Option<EventIndex>) -> u32 {
        let object = self.objects.len() as u32;
        self.objects.push(Object { kind, base, size, spare: 0, machine_base, born });
        if self.objects.len() > self.cache.len() && self.cache.len() < MOST_CACHE_SLOTS {
            self.cache = vec![CachedRange::default(); self.cache.len() * 2];
        }
        self.assign(machine_base, machine_base + size, object);
        object
    }

    /// What was just placed is looked for next: puts it into the cache.
    fn expect(&mut self, start: u64, range: Range) {
        let found = self.cached(start, range);
        for line in (start / LINE..=(range.end - 1) / LINE).take(EXPECTED_LINES) {
            let slot = self.slot(line * LINE);
            self.cache[slot] = found;
        }
    }

    fn slot(&self, machine: u64) -> usize {
        (machine / LINE) as usize & (self.cache.len() - 1)
    }

    fn cached(&self, start: u64, range: Range) -> CachedRange {
        let owner = &self.objects[range.object as usize];
        let shift = owner.base.0.wrapping_sub(owner.machine_base);
        CachedRange { start, end: range.end, shift, placement: range.placement }
    }

    /// A range as it lies in the tree from now on.
    fn range(&mut self, end: u64, object: u32) -> Range {
        self.lasting.push(true);
        Range { end, object, placement: self.lasting.len() as u32 - 1 }
    }

    /// `[start, end)` belongs to `object` from now on.
    fn assign(&mut self, start: u64, end: u64, object: u32) {
        if start >= end {
            return;
        }
        let placed = self.range(end, object);
        // An allocator gives the same block out again: most of all placements, in programs that allocate much.
        match self.ranges.get_mut(&start).filter(|range| range.end == end) {
            Some(range) => {
                self.lasting[range.placement as usize] = false;
                *range = placed;
            }
            None => self.displace(start, end, placed),
        }
        self.expect(start, placed);
    }

    fn displace(&mut self, start: u64, end: u64, placed: Range) {
        let displaced: Vec<(u64, Range)> = self
            .ranges
            .range(..end)
            .rev()
            .map(|(&from, &range)| (from, range))
            .take_while(|(_, range)| range.end > start)
            .collect();
        for (from, old) in displaced {
            self.ranges.remove(&from);
            self.lasting[old.placement as usize] = false;
            if from < start {
                let left = self.range(start, old.object);
                self.ranges.insert(from, left);
            }
            if old.end > end {
                let right = self.range(old.end, old.object);
                self.ranges.insert(end, right);
            }
        }
        self.ranges.insert(start, placed);
    }

    /// The synthetic address of a machine address at this moment of the recording; `length` bytes of it are used.
    #[inline]
    pub fn translate(&mut self, hits: &mut LastHits, machine: u64, length: u64) -> Address {
        for hit in &hits.0 {
            if hit.start <= machine && machine < hit.end && self.lasting[hit.placement as usize] {
                return Address(machine.wrapping_add(hit.shift));
            }
        }
        self.translate_slowly(hits, machine, length)
    }

    #[inline(never)]
    fn translate_slowly(&mut self, hits: &mut LastHits, machine: u64, length: u64) -> Address {
        let slot = self.slot(machine);
        let cached = self.cache[slot];
        if cached.start <= machine && machine < cached.end && self.lasting[cached.placement as usize] {
            hits.0 = [cached, hits.0[0]];
            return Address(machine.wrapping_add(cached.shift));
        }
        if let Some((start, range)) = self.range_at(machine) {
            let found = self.cached(start, range);
            self.cache[slot] = found;
            hits.0 = [found, hits.0[0]];
            return Address(machine.wrapping_add(found.shift));
        }
        self.note_unknown(machine, length);
        Address(UNKNOWN_BASE + (machine & LOW_MASK))
    }

    fn range_at(&self, machine: u64) -> Option<(u64, Range)> {
        let (&start, &range) = self.ranges.range(..=machine).next_back()?;
        (machine < range.end).then_some((start, range))
    }

    /// The pages of `[machine, machine + length)` become part of an unknown object.
    fn note_unknown(&mut self, machine: u64, length: u64) {
        let start = machine & LOW_MASK;
        let end = start.saturating_add(length.max(1)).min(LOW_MASK + 1);
        if self.last_unknown.0 <= start && end <= self.last_unknown.1 {
            return;
        }
        let mut start = start / PAGE * PAGE;
        let mut end = end.next_multiple_of(PAGE);
        let touching: Vec<(u64, u64)> = overlapping(&self.unknown, start.saturating_sub(1), end + 1).collect();
        for (from, to) in touching {
            self.unknown.remove(&from);
            start = start.min(from);
            end = end.max(to);
        }
        self.unknown.insert(start, end);
        self.last_unknown = (start, end);
    }

    /// The object's range in machine addresses, while it is where `object` says.
    pub fn object(&self, object: u32) -> &Object {
        &self.objects[object as usize]
    }

    /// All objects, sorted by synthetic base, and for each handle its id.
    pub fn into_objects(self) -> (Vec<Object>, Vec<ObjectId>) {
        let mut order: Vec<u32> = (0..self.objects.len() as u32).collect();
        order.sort_by_key(|&handle| self.objects[handle as usize].base);
        let mut ids = vec![ObjectId(0); self.objects.len()];
        for (index, &handle) in order.iter().enumerate() {
            ids[handle as usize] = ObjectId(index as u32);
        }
        let mut objects: Vec<Object> = order.iter().map(|&handle| self.objects[handle as usize]).collect();
        objects.extend(self.unknown.iter().map(|(&start, &end)| Object {
            kind: ObjectKind::Unknown,
            base: Address(UNKNOWN_BASE + start),
            size: end - start,
            spare: 0,
            machine_base: start,
            born: None,
        }));
        (objects, ids)
    }
}

/// A size that keeps the range inside the machine's addresses.
fn bounded_size(machine_base: u64, size: u64) -> Option<u64> {
    (machine_base <= LOW_MASK && size <= LOW_MASK + 1 - machine_base).then_some(size)
}

/// The ranges of a disjoint set that meet `[start, end)`, from the last to the first.
fn overlapping(ranges: &BTreeMap<u64, u64>, start: u64, end: u64) -> impl Iterator<Item = (u64, u64)> {
    ranges.range(..end).rev().map(|(&from, &to)| (from, to)).take_while(move |&(_, to)| to > start)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rashomon_event::{SiteId, ThreadId};

    const BLOCK: ObjectKind = ObjectKind::Heap { thread: ThreadId(0), site: SiteId(0), ordinal: 0 };

    #[test]
    fn a_reused_address_is_a_new_one() {
        let mut space = Space::default();
        let mut hits = LastHits::default();
        space.place_fresh(BLOCK, 0x5000, 64, None);
        let before = space.translate(&mut hits, 0x5010, 8);
        assert_eq!(space.translate(&mut hits, 0x5018, 8).0, before.0 + 8);
        space.place_fresh(BLOCK, 0x5000, 32, None);
        let after = space.translate(&mut hits, 0x5010, 8);
        assert_ne!(before, after);
        // What the new block does not cover still is the old one's.
        assert_eq!(space.translate(&mut hits, 0x5020, 8).0, before.0 + 16);
        let (objects, ids) = space.into_objects();
        assert!(objects.windows(2).all(|pair| pair[0].base.0 + pair[0].size <= pair[1].base.0));
        assert_eq!(ids.len(), 2);
    }

    #[test]
    fn a_block_inside_a_mapping_leaves_both_ends() {
        let mut space = Space::default();
        let mut hits = LastHits::default();
        space.place_fresh(BLOCK, 0x10000, 0x1000, None);
        let low = space.translate(&mut hits, 0x10000, 1);
        space.place_fresh(BLOCK, 0x10100, 0x10, None);
        assert_ne!(space.translate(&mut hits, 0x10100, 1).0, low.0 + 0x100);
        assert_eq!(space.translate(&mut hits, 0x100ff, 1).0, low.0 + 0xff);
        assert_eq!(space.translate(&mut hits, 0x10110, 1).0, low.0 + 0x110);
    }

    #[test]
    fn a_module_at_the_place_of_another_moves() {
        let mut space = Space::default();
        let mut hits = LastHits::default();
        space.place_module(0, 0x7000, 0x9000);
        assert_eq!(space.translate(&mut hits, 0x7008, 8), Address(0x7008));
        space.place_module(1, 0x8000, 0xa000);
        assert!(space.translate(&mut hits, 0x8008, 8).0 >= FRESH_BASE);
        assert_eq!(space.translate(&mut hits, 0x7008, 8), Address(0x7008));
    }

    #[test]
    fn a_module_may_take_a_part_of_what_ended() {
        let mut space = Space::default();
        let mut hits = LastHits::default();
        let module = space.place_module(0, 0x7000, 0x9000).unwrap();
        space.place_fresh(BLOCK, 0x8000, 0x2000, None);
        let block = space.translate(&mut hits, 0x8008, 8);
        space.place_over(module, 0x8008);
        assert_eq!(space.translate(&mut hits, 0x8008, 8), Address(0x8008));
        assert_eq!(space.translate(&mut hits, 0x9008, 8).0, block.0 + 0x1000);
    }

    #[test]
    fn unknown_pages_grow_together() {
        let mut space = Space::default();
        let mut hits = LastHits::default();
        for page in [3u64, 5, 4] {
            assert_eq!(space.translate(&mut hits, page * PAGE + 1, 8), Address(UNKNOWN_BASE + page * PAGE + 1));
        }
        space.translate(&mut hits, LOW_MASK, 8);
        let (objects, _) = space.into_objects();
        assert_eq!(objects.len(), 2);
        assert_eq!((objects[0].machine_base, objects[0].size), (3 * PAGE, 3 * PAGE));
    }

    #[test]
    fn impossible_sizes_are_refused() {
        let mut space = Space::default();
        assert_eq!(space.place_fresh(BLOCK, 0x1000, u64::MAX, None), None);
        assert_eq!(space.place_module(0, 0x2000, 0x1000), None);
    }
}
