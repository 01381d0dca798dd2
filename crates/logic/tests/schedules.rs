//! Who runs next and what a schedule's position accepts; pieces of loops, dependences and mappings, against plain models.

use proptest::prelude::*;
use rashomon_abi::record::Op;
use rashomon_logic::dependences::{ALL_MEMORY, Item, Use};
use rashomon_logic::mappings::Line;
use rashomon_logic::operations::{are_interchangeable, may_precede, representative};
use rashomon_logic::pct;
use rashomon_logic::pieces::Pieces;

fn ops() -> impl Iterator<Item = Op> {
    (0..=u64::from(u16::MAX)).filter_map(Op::from_code)
}

/// Interchangeable operations have one representative, which is its own, and a position accepts any of them.
#[test]
fn interchangeable_operations_have_one_representative() {
    assert!(ops().count() > 30);
    for op in ops() {
        let one = representative(op as u64);
        assert_eq!(representative(one), one, "{op:?}");
        assert!(are_interchangeable(0, op) && are_interchangeable(op as u64, op));
        for other in ops() {
            assert_eq!(are_interchangeable(op as u64, other), representative(op as u64) == representative(other as u64));
            // Whoever may precede is told by the representative of what comes.
            assert_eq!(may_precede(op, other as u64), may_precede(op, representative(other as u64)), "{op:?} {other:?}");
        }
    }
    assert!(are_interchangeable(Op::Lock as u64, Op::LockFailed) && !are_interchangeable(Op::Lock as u64, Op::Unlock));
    assert!(may_precede(Op::ThreadJoin, Op::Acquire as u64) && !may_precede(Op::Lock, Op::Unlock as u64));
}

/// Initial priorities, change points and threads that yield: each band is below the one before.
#[test]
fn bands_of_priorities_do_not_meet() {
    let initial = [0, 1, u64::MAX / 2, u64::MAX].map(pct::initial);
    let changed = [0, 1, 31].map(pct::changed);
    let yielded = [0, 1, 1 << 30].map(|count| pct::LOWEST - count);
    assert!(initial.iter().min() > changed.iter().max() && changed.iter().min() > yielded.iter().max());
}

fn items() -> impl Strategy<Value = Item> {
    (0u64..3, prop_oneof![Just(Use::Reads), Just(Use::Joins), Just(Use::Writes)])
        .prop_map(|(address, uses)| Item { address, uses })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn change_points_lie_in_the_execution(random: u64, length in 0u64..1 << 40) {
        let point = pct::change_point(random, length);
        prop_assert!((1..=length.max(1)).contains(&point));
    }

    #[test]
    fn long_executions_switch_more_rarely(period in 1u64..1000, points in 0u64..1 << 40, more in 0u64..1 << 20) {
        prop_assert!(pct::rarer(period, points) <= pct::rarer(period, points + more));
        prop_assert!((period..=period * 64).contains(&pct::rarer(period, points)));
        prop_assert_eq!(pct::rarer(period, points) % period, 0);
    }

    #[test]
    fn pieces_are_all_iterations_once(total in 0u64..500, number in 1u64..600, form in 0..4) {
        let pieces = match form {
            0 => Pieces::Count(number),
            1 => Pieces::of_size(number, false),
            2 => Pieces::of_size(number, true),
            _ => Pieces::of_size(0, true),
        };
        let pieces: Vec<(u64, u64)> = pieces.of(total).collect();
        let iterations: Vec<u64> = pieces.iter().flat_map(|&(from, to)| from..to).collect();
        prop_assert_eq!(iterations, Vec::from_iter(0..total));
        let lengths = pieces.iter().map(|(from, to)| to - from);
        match form {
            0 => {
                prop_assert_eq!(pieces.len() as u64, number.min(total));
                prop_assert!(lengths.clone().max().unwrap_or(0) - lengths.min().unwrap_or(0) <= 1);
            }
            1 if total >= number => prop_assert!(lengths.into_iter().all(|length| (number..2 * number).contains(&length))),
            2 => prop_assert!(pieces.iter().rev().skip(1).all(|(from, to)| to - from == number)),
            _ => {}
        }
    }

    /// What was ordered behind an item is ordered behind one that stands for it.
    #[test]
    fn an_item_that_stands_for_another_orders_what_it_ordered(one in items(), other in items(), next in items()) {
        prop_assert_eq!(one.orders(other), other.orders(one));
        if one.stands_for(other) && one.address != ALL_MEMORY && next.orders(other) && next.address != ALL_MEMORY {
            prop_assert!(next.orders(one));
        }
        if one.stands_for(other) && one.address == ALL_MEMORY && next.orders(other) {
            prop_assert!(next.orders(one));
        }
    }

    #[test]
    fn lines_of_mappings_are_read_byte_by_byte(
        start in 0u64..1 << 47, pages in 1u64..1 << 20, write: bool, inode in 0u32..999, path in "(/[a-z]{1,9}){0,3}"
    ) {
        let end = start + pages * 4096;
        let rights = if write { "rw-p" } else { "r-xs" };
        let mut line = Line::default();
        let text = format!("{start:x}-{end:x} {rights} 0000f000 08:02 {inode}          {path}\n");
        let complete: Vec<usize> = text.bytes().enumerate().filter_map(|(at, byte)| line.takes(byte).then_some(at)).collect();
        prop_assert_eq!(complete, [text.len() - 1]);
        prop_assert_eq!(line.numbers, [start, end]);
        prop_assert_eq!(&line.rights[..], rights.as_bytes());
        prop_assert!(line.rest_starts_with(path.as_bytes()));
        prop_assert!(!line.rest_starts_with(b"[vdso]"));
    }
}
