//! Orders that an exploration wants ([`rashomon_logic::orders`]): the table in its file.

use crate::serial::exploration::{orders_start, set, word};
use crate::system::thread::Thread;
use rashomon_abi::exploration::field;
use rashomon_logic::orders::{Table, made as step_made, waits as step_waits};

/// The words of the table.
struct Mapped {
    start: usize,
    length: usize,
}

impl Table for Mapped {
    fn get(&self, index: usize) -> u64 {
        if index < self.length { word(self.start + index) } else { 0 }
    }

    fn set(&mut self, index: usize, value: u64) {
        if index < self.length {
            set(self.start + index, value);
        }
    }
}

/// `None`: no order is wanted.
fn table() -> Option<Mapped> {
    let length = word(field::ORDER_WORDS) as usize;
    (length > 0).then(|| Mapped { start: orders_start(), length })
}

/// Whether an order makes the thread wait where it stands.
pub fn waits(thread: &Thread) -> bool {
    let place = thread.serial().explore.operation.get().counted_at();
    place != 0 && table().is_some_and(|table| step_waits(&table, thread.number.get(), place))
}

/// A thread makes the step that it stands before.
pub fn made(thread: &Thread) {
    let place = thread.serial().explore.operation.get().counted_at();
    if place != 0
        && let Some(mut table) = table()
    {
        step_made(&mut table, thread.number.get(), place);
    }
}
