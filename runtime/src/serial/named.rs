//! The threads and objects that a schedule names: which of this execution they are.

use crate::system::thread::{NO_THREAD, Thread, known};
use crate::system::{config, modules};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::*};
use rashomon_abi::control::{self, object};

const MAX_TRACKED: usize = 4096;
/// Thread number + 1 of each entry of the thread table, and address of each entry of the object table.
static NUMBERS: [AtomicU32; MAX_TRACKED] = [const { AtomicU32::new(0) }; MAX_TRACKED];
static OBJECTS: [AtomicU64; MAX_TRACKED] = [const { AtomicU64::new(0) }; MAX_TRACKED];

/// Entry of the thread table for a new thread.
pub fn schedule_index(parent: u32, spawn_ordinal: u32) -> u32 {
    let table = config::tables().threads;
    let parent_index = if parent == NO_THREAD {
        u64::MAX
    } else {
        let index = known(parent).schedule_index.get();
        if index == NO_THREAD {
            return NO_THREAD;
        }
        index as u64
    };
    (0..config::count(control::field::THREADS).min(MAX_TRACKED))
        .find(|&index| {
            let entry = table + index * control::THREAD_WORDS;
            config::word(entry) == parent_index && (parent == NO_THREAD || config::word(entry + 1) == spawn_ordinal as u64)
        })
        .map_or(NO_THREAD, |index| index as u32)
}

/// The thread of that table entry exists now.
pub fn appeared(thread: &Thread) {
    if (thread.schedule_index.get() as usize) < MAX_TRACKED {
        NUMBERS[thread.schedule_index.get() as usize].store(thread.number.get() + 1, Release);
    }
}

/// A thread allocated memory: it may be an object of the schedule.
pub fn allocated(thread: &Thread, site: u64, ordinal: u64, address: u64, mapping: bool) {
    let table = config::tables().objects;
    let kind = if mapping { object::MAPPING } else { object::HEAP };
    for (index, known) in OBJECTS.iter().enumerate().take(config::count(control::field::OBJECTS)) {
        let entry = table + index * control::OBJECT_WORDS;
        if config::word(entry) == kind
            && config::word(entry + 1) == thread.schedule_index.get() as u64
            && config::word(entry + 4) == ordinal
            && modules::address(config::word(entry + 2), config::word(entry + 3)) == Some(site)
        {
            known.store(address, Release);
        }
    }
}

/// First address of the bytes `delta` into an object; `None` while it does not exist. `Some(None)`: any address will do.
pub fn place(index: u64, delta: u64) -> Option<Option<u64>> {
    let entry = config::tables().objects + index as usize * control::OBJECT_WORDS;
    let thread = || {
        let number = number(config::word(entry + 1) as usize)?;
        Some(known(number))
    };
    match config::word(entry) {
        object::GLOBAL => Some(Some(modules::address(config::word(entry + 2), config::word(entry + 3))?.wrapping_add(delta))),
        object::HEAP | object::MAPPING => match OBJECTS.get(index as usize)?.load(Acquire) {
            0 => None,
            address => Some(Some(address + delta)),
        },
        object::STACK => Some(Some(thread()?.stack.get().1.wrapping_sub(delta))),
        object::TLS => Some(Some(thread()?.tls.get().1.wrapping_sub(delta))),
        _ => Some(None),
    }
}

/// The thread of that table entry, if it exists.
pub fn number(index: usize) -> Option<u32> {
    NUMBERS.get(index)?.load(Acquire).checked_sub(1)
}

/// A forked child knows none of them.
pub fn forget() {
    NUMBERS.iter().for_each(|number| number.store(0, Relaxed));
    OBJECTS.iter().for_each(|object| object.store(0, Relaxed));
}
