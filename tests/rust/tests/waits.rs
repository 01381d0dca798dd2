//! A lost wake-up: the flag is set, and the waiter woken, after it has looked and before it waits.

use std::sync::atomic::{AtomicBool, Ordering::*};
use std::sync::{Condvar, Mutex};
use std::thread;

static LOCK: Mutex<()> = Mutex::new(());
static OPENED: Condvar = Condvar::new();
static IS_OPEN: AtomicBool = AtomicBool::new(false);

#[test]
fn opened_without_the_lock() {
    let waiter = thread::spawn(|| {
        let mut guard = LOCK.lock().unwrap();
        while !IS_OPEN.load(Acquire) {
            guard = OPENED.wait(guard).unwrap();
        }
    });
    IS_OPEN.store(true, Release);
    OPENED.notify_all();
    waiter.join().unwrap();
}
