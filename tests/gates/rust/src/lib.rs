//! What the tests of `tests/parts.rs` test. Each feature puts one bug in.

use std::cell::UnsafeCell;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::*};
use std::sync::{Condvar, Mutex, RwLock};

/// Sum and largest of what was measured.
#[derive(Default)]
pub struct Statistics {
    lock: Mutex<()>,
    values: UnsafeCell<(u64, u64)>,
}

// SAFETY: all accesses are made under the lock.
unsafe impl Sync for Statistics {}

impl Statistics {
    pub fn add(&self, value: u64) {
        let guard = self.lock.lock().unwrap();
        if cfg!(feature = "race") {
            drop(guard);
        }
        // SAFETY: under the lock.
        let values = unsafe { &mut *self.values.get() };
        values.0 += value;
        values.1 = values.1.max(value);
    }

    pub fn sum(&self) -> u64 {
        let _guard = self.lock.lock().unwrap();
        // SAFETY: under the lock.
        unsafe { (*self.values.get()).0 }
    }
}

pub struct Account {
    name: usize,
    balance: Mutex<i64>,
}

impl Account {
    pub fn new(name: usize, balance: i64) -> Self {
        Self { name, balance: Mutex::new(balance) }
    }

    pub fn balance(&self) -> i64 {
        *self.balance.lock().unwrap()
    }
}

pub fn transfer(from: &Account, to: &Account, amount: i64) {
    let in_order = cfg!(feature = "deadlock") || from.name < to.name;
    let (mut source, mut target);
    if in_order {
        source = from.balance.lock().unwrap();
        target = to.balance.lock().unwrap();
    } else {
        target = to.balance.lock().unwrap();
        source = from.balance.lock().unwrap();
    }
    *source -= amount;
    *target += amount;
}

/// Values that are made once.
#[derive(Default)]
pub struct Cache {
    values: Mutex<HashMap<u32, String>>,
    made: AtomicUsize,
}

impl Cache {
    pub fn need(&self, key: u32) {
        let mut values = self.values.lock().unwrap();
        let known = values.contains_key(&key);
        if cfg!(feature = "atomicity") {
            drop(values);
            values = self.values.lock().unwrap();
        }
        if !known {
            values.insert(key, key.to_string());
            self.made.fetch_add(1, Relaxed);
        }
    }

    pub fn made(&self) -> usize {
        self.made.load(Relaxed)
    }
}

/// Opens once, for all who wait.
#[derive(Default)]
pub struct Event {
    lock: Mutex<()>,
    opened: Condvar,
    is_open: AtomicBool,
}

impl Event {
    pub fn open(&self) {
        let guard = self.lock.lock().unwrap();
        if cfg!(feature = "wake-up") {
            drop(guard);
        }
        self.is_open.store(true, Release);
        self.opened.notify_all();
    }

    pub fn wait(&self) {
        let mut guard = self.lock.lock().unwrap();
        while !self.is_open.load(Acquire) {
            guard = self.opened.wait(guard).unwrap();
        }
    }
}

/// One value from one thread for another one.
#[derive(Default)]
pub struct Slot {
    value: UnsafeCell<u64>,
    is_set: AtomicBool,
}

// SAFETY: the value is written before the flag is set, and read after.
unsafe impl Sync for Slot {}

impl Slot {
    pub fn set(&self, value: u64) {
        // SAFETY: nobody reads before the flag is set.
        unsafe { *self.value.get() = value };
        self.is_set.store(true, if cfg!(feature = "publication") { Relaxed } else { Release });
    }

    pub fn get(&self) -> Option<u64> {
        // SAFETY: nobody writes after the flag was set.
        self.is_set.load(Acquire).then(|| unsafe { *self.value.get() })
    }
}

/// First in, first out, with room for so many.
pub struct Queue {
    items: Mutex<(VecDeque<u32>, bool)>,
    changed: Condvar,
    room: usize,
}

impl Queue {
    pub fn new(room: usize) -> Self {
        Self { items: Mutex::default(), changed: Condvar::new(), room }
    }

    pub fn push(&self, item: u32) {
        let items = self.items.lock().unwrap();
        let mut items = self.changed.wait_while(items, |(items, _)| items.len() == self.room).unwrap();
        items.0.push_back(item);
        self.changed.notify_all();
    }

    /// `None`: closed, and empty.
    pub fn pop(&self) -> Option<u32> {
        let items = self.items.lock().unwrap();
        let mut items = self.changed.wait_while(items, |(items, closed)| items.is_empty() && !*closed).unwrap();
        let item = items.0.pop_front();
        self.changed.notify_all();
        item
    }

    pub fn close(&self) {
        self.items.lock().unwrap().1 = true;
        self.changed.notify_all();
    }
}

#[derive(Default)]
pub struct Table(RwLock<HashMap<String, u32>>);

impl Table {
    pub fn set(&self, name: &str, value: u32) {
        self.0.write().unwrap().insert(name.to_owned(), value);
    }

    pub fn get(&self, name: &str) -> Option<u32> {
        self.0.read().unwrap().get(name).copied()
    }
}
