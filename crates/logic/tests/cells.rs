//! Cells against the definition of a race: few kinds and few bytes, so every combination is tried.

use proptest::prelude::*;
use rashomon_logic::access::{AccessAt, conflict};
use rashomon_logic::cells::{BYTES, Kind, READ, REFERENCE_SHIFT, byte_bits, covers, encode};
use rashomon_logic::clocks;

const KINDS: [Kind; 4] = [
    Kind { read: false, atomic: false },
    Kind { read: false, atomic: true },
    Kind { read: true, atomic: false },
    Kind { read: true, atomic: true },
];

#[test]
fn accesses_conflict_if_one_writes_and_one_is_plain() {
    for one in KINDS {
        for other in KINDS {
            let model = (!one.read || !other.read) && (!one.atomic || !other.atomic);
            assert_eq!(one.conflicts(other), model, "{one:?} {other:?}");
            assert_eq!(one.conflicts(other), other.conflicts(one));
        }
    }
}

/// What a cell gives way to must race with whatever it would.
#[test]
fn a_kind_stands_for_another_if_it_conflicts_with_all_that_the_other_does() {
    for one in KINDS {
        for other in KINDS {
            let conflicts_with_more = KINDS.iter().all(|&third| !other.conflicts(third) || one.conflicts(third));
            assert_eq!(one.stands_for(other), conflicts_with_more, "{one:?} {other:?}");
        }
    }
}

#[test]
fn bits_are_those_of_the_bytes_in_their_word() {
    for first in 0..8u64 {
        for bytes in 1..=8 - first {
            let model = (first..first + bytes).fold(0, |bits, byte| bits | 1u32 << byte);
            for base in [0, 8, 0x7fff_ffff_fff8] {
                assert_eq!(byte_bits(base + first, bytes), model);
            }
        }
    }
    for outer in 0..=BYTES {
        for inner in 0..=BYTES {
            let model = (0..8).all(|byte| inner & 1 << byte == 0 || outer & 1 << byte != 0);
            assert_eq!(covers(outer | READ, inner | 3 << REFERENCE_SHIFT), model);
        }
    }
}

fn accesses() -> impl Strategy<Value = AccessAt> {
    // Classes 1 to 3 read, write, and do both; 0 is no access.
    (0u64..12, 0u64..5, 0u64..4, any::<bool>()).prop_map(|(address, bytes, class, atomic)| AccessAt {
        address,
        bytes,
        class,
        atomic,
        site: 0,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_cell_says_what_was_put_into_it(reference in 0u32..1 << 23, read: bool, bits in 0..=BYTES) {
        let cell = encode(reference, read, bits);
        prop_assert_eq!((cell >> REFERENCE_SHIFT, cell & READ != 0, cell & BYTES), (reference, read, bits));
    }

    #[test]
    fn accesses_side_by_side_race_if_they_share_a_byte_that_one_writes(one in accesses(), other in accesses()) {
        let bytes = |access: &AccessAt| access.address..access.address + access.bytes;
        let shared = bytes(&one).any(|byte| bytes(&other).contains(&byte));
        let accesses = one.class != 0 && other.class != 0;
        let model = accesses && shared && (one.writes() || other.writes()) && !(one.atomic && other.atomic);
        prop_assert_eq!(conflict(&one, &other), model);
        prop_assert_eq!(conflict(&other, &one), model);
    }

    #[test]
    fn what_a_clock_knows_is_ordered(
        clock in proptest::collection::vec(0u32..6, 0..6), slot in 0u32..8, epoch in 1u32..6, own in 0u32..8
    ) {
        let model = slot == own || clock.get(slot as usize).is_some_and(|known| *known >= epoch);
        prop_assert_eq!(clocks::is_ordered(slot, epoch, own, |slot| clocks::get(&clock, slot)), model);
    }
}
