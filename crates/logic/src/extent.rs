//! Which words of memory may be addresses of something: most memory holds few, so looking for them is what takes time.
//!
//! What can be pointed to lies in one of two ranges, whose bounds are multiples of 4 GB: what the kernel puts high (stacks,
//! mappings, libraries), and what lies below (the program and its heap). Eight words are compared with both ranges at once, by
//! the upper halves of the words.

/// Words that are compared at once.
pub const GROUP: usize = 8;
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

    /// Whether any of eight words may be. Without a branch, so that compilers compare them side by side.
    #[inline]
    pub fn has_any(self, words: &[u64; GROUP]) -> bool {
        // Distances from the lowest one are compared as numbers with a sign, for which processors have an instruction.
        let [low, high] = self.0.map(|[lowest, highest]| {
            let count = (highest + 1).saturating_sub(lowest);
            [lowest as i32, count as i32].map(|bound| bound.wrapping_add(i32::MIN))
        });
        let mask = |holds: bool| -i32::from(holds);
        let inside = |half: i32, [lowest, count]: [i32; 2]| mask(half.wrapping_sub(lowest) < count);
        let halves = words.map(|word| (word >> 32) as i32);
        halves.into_iter().fold(0, |any, half| any | inside(half, low) | inside(half, high)) != 0
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
    fn eight_at_once_are_compared_as_each_alone() {
        let extent = extent();
        let mut state = 7u64;
        let (mut with, mut without) = (0, 0);
        for round in 0..4000 {
            let words = [0; GROUP].map(|_: u64| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                const UPPER: [u64; 7] = [0x5554, 0x5556, 0x7ffe, 0x8000, 0, 0xffff_ffff, 0x8000_5555];
                let upper = UPPER[(state >> 33) as usize % UPPER.len()];
                upper << 32 | state >> 40
            });
            let mut words = words;
            let place = (state >> 20) as usize % GROUP;
            words[place] = [words[place], 0x5555_0000_0000, 0x7fff_ffff_ffff][(state >> 50) as usize % 3];
            let any = words.iter().any(|&word| extent.has(word));
            assert_eq!(extent.has_any(&words), any, "round {round}: {words:x?}");
            assert!(!Extent::NOTHING.has_any(&words));
            if any { with += 1 } else { without += 1 }
        }
        assert!(with > 1000 && without > 500, "{with} {without}");
    }
}
