//! Lock sets and vector clocks against models that are slow and plain. No files and no foreign functions, so Miri can run this.

use proptest::collection::{btree_set, vec};
use proptest::prelude::*;
use rashomon_logic::{clocks, locksets};
use std::collections::BTreeSet;

type Model = BTreeSet<u64>;

/// Few locks, so that sets meet; a lock may be held both ways.
fn sets() -> impl Strategy<Value = Model> {
    btree_set(0u64..16, 0..10)
}

fn sorted(set: &Model) -> Vec<u64> {
    set.iter().copied().collect()
}

fn config() -> ProptestConfig {
    ProptestConfig { cases: if cfg!(miri) { 16 } else { 512 }, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_changed_set_has_one_element_more_or_less(set in sets(), element in 0u64..16, held: bool) {
        let made = locksets::changed(&sorted(&set), element, held);
        let mut model = set;
        if held { model.insert(element); } else { model.remove(&element); }
        prop_assert_eq!(made.elements(), sorted(&model));
    }

    #[test]
    fn an_intersection_is_sorted_without_duplicates_and_protects_as_both_do(a in sets(), b in sets(), c in sets()) {
        let made = locksets::intersection(&sorted(&a), &sorted(&b));
        let pairs = a.iter().flat_map(|one| b.iter().map(move |other| (one, other)));
        let model: Model = pairs.filter(|(one, other)| *one >> 1 == *other >> 1).map(|(one, other)| one | other).collect();
        prop_assert_eq!(made.elements(), sorted(&model));
        if locksets::protects(made.elements(), &sorted(&c)) {
            prop_assert!(locksets::protects(&sorted(&a), &sorted(&c)) && locksets::protects(&sorted(&b), &sorted(&c)));
        }
    }

    #[test]
    fn a_lock_protects_unless_both_hold_it_shared(a in sets(), b in sets()) {
        let exclusive = |set: &Model, lock: u64| set.contains(&(lock << 1));
        let holds = |set: &Model, lock: u64| exclusive(set, lock) || set.contains(&(lock << 1 | 1));
        let model = (0..8).any(|lock| exclusive(&a, lock) && holds(&b, lock) || exclusive(&b, lock) && holds(&a, lock));
        prop_assert_eq!(locksets::protects(&sorted(&a), &sorted(&b)), model);
        prop_assert_eq!(locksets::is_subset(&sorted(&a), &sorted(&b)), a.is_subset(&b));
    }

    #[test]
    fn a_joined_clock_knows_what_both_knew(a in vec(0u32..9, 0..12), b in vec(0u32..9, 0..12)) {
        let mut joined = a.clone();
        joined.resize(a.len().max(b.len()), 0);
        clocks::join(&mut joined, &b);
        for slot in 0..16u32 {
            prop_assert_eq!(clocks::get(&joined, slot), clocks::get(&a, slot).max(clocks::get(&b, slot)));
        }
    }
}

#[test]
fn more_locks_than_count_are_left_out() {
    let full: Vec<u64> = (0..locksets::MAX_LOCKS as u64).map(|lock| lock << 1).collect();
    assert_eq!(locksets::changed(&full, 1 << 20, true).elements(), full);
    assert_eq!(locksets::changed(&full, 1, true).elements().len(), locksets::MAX_LOCKS);
    assert_eq!(locksets::changed(&full, 0, false).elements(), &full[1..]);
}
