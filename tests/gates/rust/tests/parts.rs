//! Twenty-four tests, five of which show a bug that a feature puts in.

use parts::*;
use std::sync::atomic::{AtomicUsize, Ordering::*};
use std::sync::{Barrier, OnceLock, mpsc};
use std::thread;

fn both<T: Send>(one: impl FnOnce() -> T + Send, other: impl FnOnce() -> T) -> (T, T) {
    thread::scope(|scope| {
        let thread = scope.spawn(one);
        let other = other();
        (thread.join().unwrap(), other)
    })
}

#[test]
fn statistics_of_one() {
    let statistics = Statistics::default();
    statistics.add(3);
    assert_eq!(statistics.sum(), 3);
}

#[test]
fn statistics_of_two() {
    let statistics = Statistics::default();
    both(|| statistics.add(3), || statistics.add(5));
    assert!(statistics.sum() <= 8);
}

#[test]
fn transfer_once() {
    let (one, other) = (Account::new(1, 10), Account::new(2, 10));
    transfer(&one, &other, 4);
    assert_eq!((one.balance(), other.balance()), (6, 14));
}

#[test]
fn transfer_same_way() {
    let (one, other) = (Account::new(1, 10), Account::new(2, 10));
    both(|| transfer(&one, &other, 4), || transfer(&one, &other, 5));
    assert_eq!(one.balance(), 1);
}

#[test]
fn transfer_both_ways() {
    let (one, other) = (Account::new(1, 10), Account::new(2, 10));
    both(|| transfer(&one, &other, 4), || transfer(&other, &one, 5));
    assert_eq!(one.balance(), 11);
}

#[test]
fn cache_of_one() {
    let cache = Cache::default();
    cache.need(1);
    cache.need(1);
    assert_eq!(cache.made(), 1);
}

#[test]
fn cache_of_different() {
    let cache = Cache::default();
    both(|| cache.need(1), || cache.need(2));
    assert_eq!(cache.made(), 2);
}

#[test]
fn cache_of_same() {
    let cache = Cache::default();
    both(|| cache.need(1), || cache.need(1));
    assert_eq!(cache.made(), 1);
}

#[test]
fn event_of_one() {
    let event = Event::default();
    event.open();
    event.wait();
}

#[test]
fn event_of_two() {
    let event = Event::default();
    both(|| event.wait(), || event.open());
}

#[test]
fn slot_of_one() {
    let slot = Slot::default();
    slot.set(3);
    assert_eq!(slot.get(), Some(3));
}

#[test]
fn slot_of_two() {
    let slot = Slot::default();
    let (_, value) = both(
        || {
            slot.set(3);
            None
        },
        || slot.get(),
    );
    assert!(value.is_none_or(|value| value <= 3));
}

#[test]
fn queue_keeps_order() {
    let queue = Queue::new(2);
    let push = || {
        (1..=3).for_each(|item| queue.push(item));
        vec![]
    };
    let (_, items) = both(push, || (1..=3).filter_map(|_| queue.pop()).collect());
    assert_eq!(items, [1, 2, 3]);
}

#[test]
fn queue_of_two_writers() {
    let queue = Queue::new(4);
    both(|| queue.push(1), || queue.push(2));
    assert_eq!(queue.pop().unwrap() + queue.pop().unwrap(), 3);
}

#[test]
fn queue_closes() {
    let queue = Queue::new(1);
    let pop = || assert_eq!(queue.pop(), None);
    both(pop, || queue.close());
}

#[test]
fn queue_of_two_readers() {
    let queue = Queue::new(4);
    queue.push(1);
    queue.close();
    let (one, other) = both(|| queue.pop(), || queue.pop());
    assert_eq!(one.or(other), Some(1));
}

#[test]
fn table_read_by_two() {
    let table = Table::default();
    table.set("one", 1);
    assert_eq!(both(|| table.get("one"), || table.get("one")), (Some(1), Some(1)));
}

#[test]
fn table_written_and_read() {
    let table = Table::default();
    both(|| table.set("one", 1), || assert!(table.get("one").is_none_or(|value| value == 1)));
}

#[test]
fn made_once() {
    let (cell, made) = (OnceLock::new(), AtomicUsize::new(0));
    let make = || *cell.get_or_init(|| made.fetch_add(1, Relaxed));
    assert_eq!(both(make, make), (0, 0));
}

#[test]
fn counted_by_two() {
    let counter = AtomicUsize::new(0);
    both(|| counter.fetch_add(1, Relaxed), || counter.fetch_add(1, Relaxed));
    assert_eq!(counter.into_inner(), 2);
}

#[test]
fn sent_by_a_channel() {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || sender.send(3).unwrap());
    assert_eq!(receiver.recv(), Ok(3));
}

#[test]
fn handed_over_by_join() {
    assert_eq!(thread::spawn(|| vec![1]).join().unwrap(), [1]);
}

#[test]
fn met_at_a_barrier() {
    let (barrier, before) = (Barrier::new(2), AtomicUsize::new(0));
    let meet = || {
        before.fetch_add(1, Relaxed);
        barrier.wait();
        before.load(Relaxed)
    };
    assert_eq!(both(meet, meet), (2, 2));
}

#[test]
fn parked_until_told() {
    let waiter = thread::spawn(thread::park);
    waiter.thread().unpark();
    waiter.join().unwrap();
}
