//! What the tests share.
#![allow(dead_code, reason = "each test uses a part")]

pub mod random;
pub mod relations;

use rashomon_engine::{Analysis, Races};
use rashomon_packed::Event;
use relations::{Set, bit};

/// For messages.
pub fn text(trace: &[Event]) -> String {
    let line = |(number, event): (usize, &Event)| {
        format!("{number:3}: T{} {:?} {} order {}\n", event.thread, event.op, event.target, event.order)
    };
    trace.iter().enumerate().map(line).collect()
}

/// The later accesses of all races.
pub fn later(races: &Races) -> Set {
    races.all().expect("all races are kept").iter().fold(0, |all, race| all | bit(race.later.event as usize))
}

/// In blocks of `length` events.
pub fn feed(analysis: &mut impl Analysis, trace: &[Event], length: usize) {
    for (number, block) in trace.chunks(length).enumerate() {
        analysis.block((number * length) as u64, block);
    }
}
