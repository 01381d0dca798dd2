//! A seeded bug in `unsafe` code of the crate, driven by safe code.

use rust_programs::{SafeTally, Tally};
use std::sync::Arc;
use std::thread;

#[test]
fn unprotected() {
    let tally = Arc::new(Tally::default());
    let other = Arc::clone(&tally);
    let adder = thread::spawn(move || other.add(1));
    tally.add(2);
    adder.join().unwrap();
    assert!(tally.get() > 0);
}

#[test]
fn protected() {
    let tally = Arc::new(SafeTally::default());
    let other = Arc::clone(&tally);
    let adder = thread::spawn(move || other.add(1));
    tally.add(2);
    adder.join().unwrap();
    assert_eq!(tally.get(), 3);
}
