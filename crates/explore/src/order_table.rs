//! Orders of two steps, and the table that an execution finds them in ([`rashomon_abi::exploration::orders`]).

use rashomon_abi::exploration::orders::{HEAD, SLOT_WORDS, slot_of};
use std::collections::BTreeMap;

/// A step that can be told in other executions, too: which of the thread's steps at a place it is, counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StepId {
    pub thread: u32,
    /// [`Operation::counted_at`](rashomon_abi::exploration::Operation::counted_at).
    pub place: u64,
    pub number: u64,
}

/// `then` waits for `first`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Order {
    pub first: StepId,
    pub then: StepId,
}

/// The words of the table. No order: none.
pub(crate) fn words(orders: &[Order]) -> Vec<u64> {
    if orders.is_empty() {
        return Vec::new();
    }
    // By thread and place: numbers of steps, and what each is to which order.
    let mut slots: BTreeMap<(u32, u64), Vec<[u64; 2]>> = BTreeMap::new();
    for (number, Order { first, then }) in (0_u64..).zip(orders) {
        slots.entry((first.thread, first.place)).or_default().push([first.number, number << 1]);
        slots.entry((then.thread, then.place)).or_default().push([then.number, number << 1 | 1]);
    }
    let count = (slots.len() as u64 * 2).next_power_of_two();
    let mut words = vec![count, orders.len() as u64 * 2];
    words.resize(HEAD + count as usize * SLOT_WORDS, 0);
    let mut points = Vec::new();
    for ((thread, place), mut steps) in slots {
        steps.sort_unstable();
        let first = points.len() as u64 / 2;
        let end = first + steps.len() as u64;
        points.extend(steps.into_iter().flatten());
        let mut slot = slot_of(thread, place, count);
        while words[HEAD + slot as usize * SLOT_WORDS] != 0 {
            slot = (slot + 1) & (count - 1);
        }
        let at = HEAD + slot as usize * SLOT_WORDS;
        words[at..at + SLOT_WORDS].copy_from_slice(&[u64::from(thread) + 1, place, 0, first, end]);
    }
    words.append(&mut points);
    words.resize(words.len() + orders.len(), 0);
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use rashomon_logic::orders::{Table, made, waits};

    struct Words(Vec<u64>);

    impl Table for Words {
        fn get(&self, index: usize) -> u64 {
            self.0.get(index).copied().unwrap_or(0)
        }

        fn set(&mut self, index: usize, value: u64) {
            if let Some(word) = self.0.get_mut(index) {
                *word = value;
            }
        }
    }

    fn step(thread: u32, place: u64, number: u64) -> StepId {
        StepId { thread, place, number }
    }

    #[test]
    fn the_runtime_reads_what_is_written() {
        let chain = [step(2, 64, 1), step(0, 64, 0), step(1, 72, 0)];
        let orders: Vec<Order> = chain.windows(2).map(|two| Order { first: two[0], then: two[1] }).collect();
        let mut table = Words(words(&orders));
        let held = |table: &Words| [(2, 64), (0, 64), (1, 72), (3, 64)].map(|(thread, place)| waits(table, thread, place));
        assert_eq!(held(&table), [false, true, true, false]);
        made(&mut table, 2, 64);
        assert_eq!(held(&table), [false, true, true, false], "it is the thread's second step there that counts");
        made(&mut table, 2, 64);
        assert_eq!(held(&table), [false, false, true, false]);
        made(&mut table, 0, 64);
        assert_eq!(held(&table), [false; 4]);
    }

    #[test]
    fn many_slots_are_all_found() {
        let orders: Vec<Order> =
            (0..200).map(|at| Order { first: step(at, 8, 0), then: step(at + 1, 16 * u64::from(at), 0) }).collect();
        let table = Words(words(&orders));
        for order in &orders {
            assert!(waits(&table, order.then.thread, order.then.place) && !waits(&table, order.first.thread, 8));
        }
    }
}
