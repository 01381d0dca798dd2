//! A table by dense numbers, as large as the greatest of them, that no cache may hold.

use crate::hints::{prefetch, use_large_pages};

/// It grows by whole groups of this many.
const GROUP: usize = 1 << 10;

#[derive(Clone, Debug, Default)]
pub struct Table<T> {
    elements: Vec<T>,
}

impl<T: Copy + Default> Table<T> {
    pub fn len(&self) -> usize {
        self.elements.len()
    }

    pub fn capacity(&self) -> usize {
        self.elements.capacity()
    }

    /// There will be this many.
    pub fn reserve(&mut self, count: usize) {
        self.elements.reserve_exact(count.next_multiple_of(GROUP).saturating_sub(self.elements.len()));
        use_large_pages(&mut self.elements);
    }

    #[inline]
    pub fn prefetch(&self, number: usize) {
        prefetch(&self.elements, number);
    }

    /// The element, which begins as the type's default.
    #[inline]
    pub fn at(&mut self, number: usize) -> &mut T {
        if number >= self.elements.len() {
            self.grow(number);
        }
        &mut self.elements[number]
    }

    #[cold]
    fn grow(&mut self, number: usize) {
        let mut length = (number + 1).max(self.elements.len() / 2 * 3).next_multiple_of(GROUP);
        if number < self.elements.capacity() {
            length = length.min(self.elements.capacity());
        } else {
            self.reserve(length);
        }
        self.elements.resize(length, T::default());
    }

    /// An element that was there once.
    #[inline]
    pub fn known(&self, number: usize) -> &T {
        &self.elements[number]
    }

    #[inline]
    pub fn known_mut(&mut self, number: usize) -> &mut T {
        &mut self.elements[number]
    }

    #[inline]
    pub fn get(&self, number: usize) -> Option<&T> {
        self.elements.get(number)
    }

    pub fn get_mut(&mut self, number: usize) -> Option<&mut T> {
        self.elements.get_mut(number)
    }

    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.elements.iter()
    }

    pub fn bytes(&self) -> usize {
        self.elements.capacity() * size_of::<T>()
    }
}
