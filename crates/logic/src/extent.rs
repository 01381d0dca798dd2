//! Which words of memory may be addresses of something: most memory holds few, so looking for them is what takes time.
//!
//! What can be pointed to lies in one of two ranges, whose bounds are multiples of 4 GB: what the kernel puts high (stacks,
//! mappings, libraries), and what lies below (the program and its heap). Words are compared with both ranges by their upper
//! halves, of which vectors hold many.

/// Upper halves of high addresses begin here.
const HIGH: u32 = 0x7000;
/// The upper half of no address.
const BEYOND: u32 = 0x8000;

/// Of low and of high addresses, the upper halves of the lowest one and of the highest one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent([[u32; 2]; 2]);

impl Extent {
    pub const NOTHING: Self = Self([[BEYOND, 0]; 2]);

    /// There is something from one address up to another, which is not part of it.
    pub fn grow(&mut self, start: u64, end: u64) {
        if start >= end {
            return;
        }
        let half = |address: u64| (address >> 32).min(u64::from(BEYOND - 1)) as u32;
        let (first, last) = (half(start), half(end - 1));
        if first < HIGH {
            self.add(0, first, last.min(HIGH - 1));
        }
        if last >= HIGH {
            self.add(1, first.max(HIGH), last);
        }
    }

    fn add(&mut self, which: usize, first: u32, last: u32) {
        let [lowest, highest] = &mut self.0[which];
        (*lowest, *highest) = ((*lowest).min(first), (*highest).max(last));
    }

    /// Whether the word may be an address of something.
    #[inline]
    pub fn has(self, word: u64) -> bool {
        let half = (word >> 32) as u32;
        self.0.iter().any(|&[lowest, highest]| lowest <= half && half <= highest)
    }

    /// Of low and of high addresses, the lowest upper half and how many there are. For who compares many words at once.
    #[inline]
    pub fn halves(self) -> [[u32; 2]; 2] {
        self.0.map(|[lowest, highest]| [lowest, (highest + 1).saturating_sub(lowest)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extent() -> Extent {
        let mut extent = Extent::NOTHING;
        extent.grow(0x5555_5555_4000, 0x5556_0000_0000);
        extent.grow(0x7fff_f000_0000, 0x7fff_f000_1000);
        extent.grow(0x7ff0_0000_0000, 0x7ff0_0000_0000);
        extent
    }

    #[test]
    fn what_lies_inside_is_a_candidate() {
        let extent = extent();
        for inside in [0x5555_5555_4000, 0x5555_ffff_ffff, 0x7fff_f000_0000, 0x7fff_f000_0fff] {
            assert!(extent.has(inside), "{inside:#x}");
        }
        for outside in [0, 0x1000, 0x5556_0000_0000, 0x5554_ffff_ffff, 0x7ff0_0000_0000, 0x8000_0000_0000, u64::MAX, 1 << 63] {
            assert!(!extent.has(outside), "{outside:#x}");
        }
        assert!(!Extent::NOTHING.has(0) && !Extent::NOTHING.has(0x8000_0000_0000));
    }

    #[test]
    fn a_range_over_both_parts_is_in_both() {
        let mut extent = Extent::NOTHING;
        extent.grow(0x6fff_ffff_f000, u64::MAX);
        assert!([0x6fff_ffff_f000, 0x7000_0000_0000, 0x7fff_ffff_ffff].into_iter().all(|word| extent.has(word)));
        assert!(!extent.has(0x6ffe_0000_0000) && !extent.has(0x8000_0000_0000));
    }

    #[test]
    fn halves_tell_the_same_words() {
        for extent in [extent(), Extent::NOTHING] {
            for upper in (0..0x8010).chain([u32::MAX - 1, u32::MAX]) {
                let counted = extent.halves().into_iter().any(|[lowest, count]| upper.wrapping_sub(lowest) < count);
                assert_eq!(counted, extent.has(u64::from(upper) << 32 | 7), "{upper:#x}");
            }
        }
    }
}
