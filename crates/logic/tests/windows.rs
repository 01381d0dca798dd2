//! Windows of references, whatever spans do with them.

use proptest::prelude::*;
use rashomon_logic::windows::{GRANULE, Room, SLAB};
use std::collections::BTreeSet;

/// The numbers that are given out when spans in turn take so many each; of each window its begin and size.
fn given(spans: &[u32]) -> (BTreeSet<u32>, Vec<(u32, u32)>) {
    let (mut numbers, mut windows) = (BTreeSet::new(), Vec::new());
    let mut slab = 0;
    let mut room = Room::WHOLE;
    for &wanted in spans {
        let mut left = wanted;
        while left > 0 {
            let Some((begin, size)) = room.window() else {
                (slab, room) = (slab + 1, Room::WHOLE);
                continue;
            };
            let taken = left.min(size);
            for number in begin..begin + taken {
                assert!(numbers.insert(slab * SLAB + number), "{number} twice");
            }
            windows.push((slab * SLAB + begin, size));
            room.close(begin + taken);
            left -= taken;
        }
    }
    (numbers, windows)
}

proptest! {
    #[test]
    fn windows_are_told_apart(spans in prop::collection::vec(0u32..600, 1..60)) {
        let (numbers, windows) = given(&spans);
        for (begin, size) in windows {
            prop_assert!(begin % GRANULE == 0 && size.is_power_of_two());
            prop_assert_eq!(begin / SLAB, (begin + size) / SLAB, "in one slab, and not to its end");
            prop_assert!(begin == 0 || !numbers.contains(&(begin - 1)), "what lies before it has no bits to be taken for all");
        }
        prop_assert!(numbers.iter().all(|number| number % SLAB < SLAB - GRANULE));
    }

    #[test]
    fn little_is_lost(spans in prop::collection::vec(1u32..40, 400)) {
        let (numbers, _) = given(&spans);
        let rounded: u32 = spans.iter().map(|span| span + GRANULE).sum();
        // And less than a window's worth at the end of each slab.
        prop_assert!(*numbers.last().unwrap() < rounded + rounded / 8 + SLAB);
    }

    #[test]
    fn granules_are_one_behind_the_other(count in 1usize..300) {
        let mut room = Room::WHOLE;
        let taken: Vec<u32> = (0..count).map_while(|_| room.granule()).collect();
        prop_assert!(taken.iter().zip((0..).step_by(GRANULE as usize)).all(|(begin, expected)| *begin == expected));
        prop_assert!(taken.len() == count || taken.len() == (SLAB / GRANULE - 1) as usize);
        let mut none = Room::NONE;
        prop_assert!(none.window().is_none() && none.granule().is_none());
    }
}
