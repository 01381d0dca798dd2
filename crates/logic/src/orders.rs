//! Orders of steps that an execution is to have: one thread's step waits for another's. Here is what the table of the
//! exploration's file ([`rashomon_abi::exploration::orders`]) says of a step, and what a step does to it.
//!
//! Guarantee: none. Where all who can go on wait, whoever is let through ends the orders that it waited for.

use rashomon_abi::exploration::orders::{HEAD, POINT_WORDS, SLOT_WORDS, slot_of};

/// The words of the table; what lies outside reads as 0 and is not written.
pub trait Table {
    fn get(&self, index: usize) -> u64;
    fn set(&mut self, index: usize, value: u64);
}

/// The slot of a thread and place.
fn find(table: &impl Table, thread: u32, place: u64) -> Option<usize> {
    let slots = table.get(0);
    if !slots.is_power_of_two() {
        return None;
    }
    let begin = slot_of(thread, place, slots);
    for next in 0..slots {
        let at = HEAD + (begin.wrapping_add(next) & (slots - 1)) as usize * SLOT_WORDS;
        match table.get(at) {
            0 => return None,
            known if known == thread as u64 + 1 && table.get(at + 1) == place => return Some(at),
            _ => {}
        }
    }
    None
}

/// Where the points begin, and the words of orders.
fn places(table: &impl Table) -> [usize; 2] {
    let points = (table.get(0) as usize).saturating_mul(SLOT_WORDS).saturating_add(HEAD);
    [points, points.saturating_add((table.get(1) as usize).saturating_mul(POINT_WORDS))]
}

/// The number of a step that an order is about, and what it is to which order.
fn point(table: &impl Table, points: usize, number: u64) -> (u64, u64) {
    let at = points.saturating_add((number as usize).saturating_mul(POINT_WORDS));
    (table.get(at), table.get(at.saturating_add(1)))
}

/// Whether the thread's next step there waits for another's.
pub fn waits(table: &impl Table, thread: u32, place: u64) -> bool {
    let Some(slot) = find(table, thread, place) else { return false };
    let [points, orders] = places(table);
    let (steps, first, end) = (table.get(slot + 2), table.get(slot + 3), table.get(slot + 4));
    let mut all = (first..end).map(|number| point(table, points, number)).take_while(|(step, _)| *step == steps);
    all.any(|(_, about)| about & 1 != 0 && table.get(orders.saturating_add((about >> 1) as usize)) == 0)
}

/// The thread makes its next step there. The orders are over in which others wait for it, and those that it waited for in vain.
pub fn made(table: &mut impl Table, thread: u32, place: u64) {
    let Some(slot) = find(table, thread, place) else { return };
    let [points, orders] = places(table);
    let (steps, mut first, end) = (table.get(slot + 2), table.get(slot + 3), table.get(slot + 4));
    while first < end {
        let (step, about) = point(table, points, first);
        if step > steps {
            break;
        }
        table.set(orders.saturating_add((about >> 1) as usize), 1);
        first += 1;
    }
    table.set(slot + 2, steps + 1);
    table.set(slot + 3, first);
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec;
    use std::vec::Vec;

    impl Table for Vec<u64> {
        fn get(&self, index: usize) -> u64 {
            self.as_slice().get(index).copied().unwrap_or(0)
        }

        fn set(&mut self, index: usize, value: u64) {
            if let Some(word) = self.get_mut(index) {
                *word = value;
            }
        }
    }

    const PLACE: u64 = 0x1000;

    /// The second step of thread 1 waits for the first one of thread 2; both at one place.
    fn table() -> Vec<u64> {
        let slots = 4_u64;
        let mut words = vec![slots, 2];
        words.resize(HEAD + slots as usize * SLOT_WORDS, 0);
        for (thread, point) in [(1_u32, 0_u64), (2, 1)] {
            let mut at = slot_of(thread, PLACE, slots);
            while words[HEAD + at as usize * SLOT_WORDS] != 0 {
                at = (at + 1) % slots;
            }
            let at = HEAD + at as usize * SLOT_WORDS;
            words[at..at + SLOT_WORDS].copy_from_slice(&[u64::from(thread) + 1, PLACE, 0, point, point + 1]);
        }
        words.extend([1, 1, 0, 0, 0]);
        words
    }

    #[test]
    fn a_step_waits_until_the_other_is_made() {
        let mut table = table();
        assert!(!waits(&table, 1, PLACE), "its first step is free");
        made(&mut table, 1, PLACE);
        assert!(waits(&table, 1, PLACE) && !waits(&table, 2, PLACE));
        made(&mut table, 2, PLACE);
        assert!(!waits(&table, 1, PLACE));
    }

    #[test]
    fn who_is_let_through_ends_the_order() {
        let mut table = table();
        made(&mut table, 1, PLACE);
        made(&mut table, 1, PLACE);
        assert_eq!(table.last(), Some(&1));
        assert!(!waits(&table, 1, PLACE) && !waits(&table, 3, PLACE) && !waits(&table, 1, PLACE + 8));
    }

    #[test]
    fn a_damaged_table_holds_nobody() {
        assert!(!waits(&vec![3, 0, 2, PLACE], 1, PLACE));
        assert!(!waits(&vec![1, u64::MAX, 2, PLACE, 0, 5, 7], 1, PLACE));
        made(&mut vec![1, u64::MAX, 2, PLACE, 0, 5, 7], 1, PLACE);
    }
}
