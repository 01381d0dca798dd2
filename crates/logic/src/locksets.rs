//! Sets of held locks as sorted slices without duplicates.

/// `lock << 1 | shared`: a lock, and whether it is held shared.
pub type Element = u64;

/// Locks of a set that count; further ones are left out, which can only make sets look smaller.
pub const MAX_LOCKS: usize = 64;

/// A set that is being made.
pub struct Set {
    elements: [Element; MAX_LOCKS],
    length: usize,
}

impl Set {
    const fn new() -> Self {
        Self { elements: [0; MAX_LOCKS], length: 0 }
    }

    fn push(&mut self, element: Element) {
        if self.length < MAX_LOCKS {
            self.elements[self.length] = element;
            self.length += 1;
        }
    }

    pub fn elements(&self) -> &[Element] {
        &self.elements[..self.length]
    }
}

/// The set with one element more, or less.
pub fn changed(old: &[Element], element: Element, held: bool) -> Set {
    let mut next = Set::new();
    let mut inserted = !held;
    for &known in old {
        if known == element {
            inserted = true;
            if !held {
                continue;
            }
        }
        if !inserted && known > element {
            next.push(element);
            inserted = true;
        }
        next.push(known);
    }
    if !inserted {
        next.push(element);
    }
    next
}

/// The elements of both, where a lock that either holds shared is shared: what [`protects`] needs of both.
pub fn intersection(a: &[Element], b: &[Element]) -> Set {
    let mut both = Set::new();
    for &element in a {
        for &other in b {
            // A lock that is held both ways comes more than once.
            if element >> 1 == other >> 1 && !both.elements().contains(&(element | other)) {
                both.push(element | other);
            }
        }
    }
    both
}

/// Whether a lock common to both sets keeps their holders apart: one that not both hold shared.
#[inline]
pub fn protects(a: &[Element], b: &[Element]) -> bool {
    a.iter().any(|&element| b.iter().any(|&other| element >> 1 == other >> 1 && element & other & 1 == 0))
}

/// Whether every element of `a` is in `b`.
#[inline]
pub fn is_subset(a: &[Element], b: &[Element]) -> bool {
    a.iter().all(|element| b.contains(element))
}
