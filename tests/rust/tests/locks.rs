//! Locks of the standard library, in orders that block for ever and in others.

use std::sync::{Mutex, MutexGuard, RwLock};
use std::thread;

fn both(one: impl FnOnce() + Send, other: impl FnOnce()) {
    thread::scope(|scope| {
        let thread = scope.spawn(one);
        other();
        thread.join().unwrap();
    });
}

/// The sum, under both locks.
fn sum(first: &Mutex<u32>, second: &Mutex<u32>) -> u32 {
    let first: MutexGuard<u32> = first.lock().unwrap();
    *first + *second.lock().unwrap() // deadlock: sum
}

#[test]
fn opposite_orders() {
    let (one, other) = (Mutex::new(1), Mutex::new(2));
    both(|| assert_eq!(sum(&one, &other), 3), || assert_eq!(sum(&other, &one), 3));
}

#[test]
fn writers_and_readers() {
    let (table, log) = (RwLock::new(1), Mutex::new(0));
    let read = || {
        let table = table.read().unwrap();
        *log.lock().unwrap() += *table; // deadlock: read
    };
    let write = || {
        let log = log.lock().unwrap();
        *table.write().unwrap() += *log; // deadlock: write
    };
    both(read, write);
}

#[test]
fn one_order() {
    let (one, other, table) = (Mutex::new(1), Mutex::new(2), RwLock::new(0));
    let both_ways = || {
        *table.write().unwrap() += sum(&one, &other);
        assert!(*table.read().unwrap() >= 3);
    };
    both(both_ways, both_ways);
}
