//! A table by numbers that are dense, mostly, and that no cache may hold.
//!
//! Its memory is in proportion to how many numbers are named, not to how great they are: near numbers have their elements in one
//! array, far ones in a list with a map. The array grows when a [`SPREAD`]th of what it would hold was named, and takes in
//! whatever is near then. What somebody says that there will be decides only how far it grows at once.

use crate::hints::{fill, prefetch, push, use_large_pages};
use rustc_hash::FxHashMap;

/// It grows by whole groups of this many, and begins with one.
const GROUP: usize = 1 << 10;
/// Elements of the array for each number that was named, at most: of 32 bytes, so many take what the kernel takes for one that is
/// far from all others.
const SPREAD: usize = 128;
/// Bytes between two looks at the memory that a table on disk takes, when all of it is looked at.
const TRIMMED: usize = 1 << 20;
/// Elements between two such looks, when they are looked at in no order and each may bring a page into memory or two.
const SCATTERED: usize = 1 << 9;

#[derive(Clone, Debug)]
pub struct Table<T> {
    near: Vec<T>,
    /// Where the far ones are.
    places: FxHashMap<u32, u32>,
    far: Vec<T>,
    /// Numbers that were far when they were named first.
    named: usize,
    /// One more than the greatest of them.
    end: usize,
    expected: usize,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self { near: Vec::new(), places: FxHashMap::default(), far: Vec::new(), named: 0, end: 0, expected: 0 }
    }
}

impl<T: Clone + Default> Table<T> {
    /// Elements there are.
    pub fn len(&self) -> usize {
        self.near.len() + self.far.len()
    }

    /// One more than the greatest number, or than some number that is greater.
    pub fn end(&self) -> usize {
        self.end.max(self.near.len())
    }

    /// There may be this many.
    pub fn expect(&mut self, count: usize) {
        self.expected = count.next_multiple_of(GROUP);
    }

    /// Where the number is near.
    #[inline]
    pub fn prefetch(&self, number: usize) {
        prefetch(&self.near, number);
    }

    /// The element, which begins as the type's default.
    #[inline]
    pub fn at(&mut self, number: usize) -> &mut T {
        if number >= self.near.len() {
            return self.at_far(number);
        }
        &mut self.near[number]
    }

    #[cold]
    #[inline(never)]
    fn at_far(&mut self, number: usize) -> &mut T {
        if let Some(&place) = self.places.get(&(number as u32)) {
            return &mut self.far[place as usize];
        }
        self.named += 1;
        self.end = self.end.max(number + 1);
        if self.grow() && number < self.near.len() {
            return &mut self.near[number];
        }
        self.places.insert(number as u32, self.far.len() as u32);
        push(&mut self.far, T::default());
        self.far.last_mut().expect("a moment ago")
    }

    /// If enough was named.
    fn grow(&mut self) -> bool {
        let length = self.near.len();
        let more = (length / 2 * 3).max(length + GROUP).next_multiple_of(GROUP);
        let next = more.max(self.expected);
        if length == 0 {
            self.near.resize(GROUP, T::default());
            return true;
        }
        if next > SPREAD * self.named {
            return false;
        }
        self.near.reserve_exact(next - length);
        use_large_pages(&mut self.near);
        fill(&mut self.near, next, &T::default());
        // Those that are near now.
        let (near, far) = (&mut self.near, &mut self.far);
        let (mut left, mut moved) = (Vec::new(), 0_usize);
        self.places.retain(|number, place| {
            moved += 1;
            if moved.is_multiple_of(SCATTERED) {
                rashomon_spill::trim();
            }
            let element = std::mem::take(&mut far[*place as usize]);
            if let Some(place) = near.get_mut(*number as usize) {
                *place = element;
                return false;
            }
            *place = left.len() as u32;
            left.push(element);
            true
        });
        self.places.shrink_to_fit();
        self.far = left;
        true
    }

    /// An element that was there once.
    #[inline]
    pub fn known(&self, number: usize) -> &T {
        match self.near.get(number) {
            Some(element) => element,
            None => self.known_far(number),
        }
    }

    #[cold]
    #[inline(never)]
    fn known_far(&self, number: usize) -> &T {
        &self.far[self.places[&(number as u32)] as usize]
    }

    #[inline]
    pub fn known_mut(&mut self, number: usize) -> &mut T {
        if number >= self.near.len() {
            return self.known_far_mut(number);
        }
        &mut self.near[number]
    }

    #[cold]
    #[inline(never)]
    fn known_far_mut(&mut self, number: usize) -> &mut T {
        &mut self.far[self.places[&(number as u32)] as usize]
    }

    #[inline]
    pub fn get(&self, number: usize) -> Option<&T> {
        if number >= self.near.len() {
            return self.get_far(number);
        }
        Some(&self.near[number])
    }

    #[cold]
    #[inline(never)]
    fn get_far(&self, number: usize) -> Option<&T> {
        self.places.get(&(number as u32)).map(|place| &self.far[*place as usize])
    }

    pub fn get_mut(&mut self, number: usize) -> Option<&mut T> {
        match self.near.get_mut(number) {
            Some(element) => Some(element),
            None => self.places.get(&(number as u32)).map(|place| &mut self.far[*place as usize]),
        }
    }

    /// In no order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        // All of it does not have to be in memory at once.
        let parts = self.near.chunks((TRIMMED / size_of::<T>().max(1)).max(1)).inspect(|_| rashomon_spill::trim());
        parts.flatten().chain(&self.far)
    }

    /// In no order.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        // All of it does not have to be in memory at once.
        let parts = self.near.chunks_mut((TRIMMED / size_of::<T>().max(1)).max(1)).inspect(|_| rashomon_spill::trim());
        parts.flatten().chain(&mut self.far)
    }

    pub fn bytes(&self) -> usize {
        // A map has a byte beside each of its cells.
        let places = self.places.capacity() * (size_of::<(u32, u32)>() + 1);
        (self.near.capacity() + self.far.capacity()) * size_of::<T>() + places
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn random(state: &mut u64) -> u64 {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        *state >> 20
    }

    #[test]
    fn what_was_written_is_found_again() {
        for (expected, range) in [(0, 5_000), (0, 3_000_000), (100_000, 100_000), (1 << 27, 100_000), (10, 40_000), (0, 1 << 32)]
        {
            let (mut table, mut map, mut state) = (Table::default(), BTreeMap::new(), 1);
            table.expect(expected);
            for value in 1..20_000_u64 {
                let number = random(&mut state) as usize % range;
                assert_eq!(table.get(number).copied().unwrap_or(0), map.get(&number).copied().unwrap_or(0));
                *table.at(number) = value;
                map.insert(number, value);
                assert_eq!((*table.known(number), *table.known_mut(number)), (value, value));
            }
            for (&number, value) in &map {
                assert_eq!(table.get(number), Some(value));
                assert_eq!(table.get_mut(number), Some(&mut value.clone()));
            }
            let mut all: Vec<u64> = table.iter().copied().filter(|value| *value > 0).collect();
            all.sort_unstable();
            let mut written: Vec<u64> = map.values().copied().collect();
            written.sort_unstable();
            assert_eq!(all, written);
            assert!(table.end() > *map.last_key_value().unwrap().0 && table.len() >= map.len());
        }
    }

    #[test]
    fn memory_depends_on_how_many_are_named() {
        let mut table: Table<[u64; 4]> = Table::default();
        table.expect(1 << 27);
        for named in 0..1_000 {
            table.at((1 << 27) - 1 - named * 1_000);
            assert!(table.bytes() < 32 * (GROUP + (SPREAD + 8) * (named + 1)), "{named}: {} bytes", table.bytes());
        }
        // Dense ones end up in the array, whether they were expected or not.
        for expected in [0, 100_000] {
            let mut table: Table<u64> = Table::default();
            table.expect(expected);
            for number in 0..100_000 {
                table.at(number);
            }
            assert!(table.far.len() * SPREAD <= 100_000 && table.bytes() < 100_000 * 8 * 2);
        }
    }
}
