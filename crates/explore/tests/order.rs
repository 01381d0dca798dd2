//! The order of an execution's steps against its definition: dependent steps in the order they were made, and what follows.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use rashomon_abi::exploration::{NO_WAIT, Operation};
use rashomon_abi::record::{AccessClass, Op};
use rashomon_explore::dependence::{Order, may_be_co_enabled};
use rashomon_explore::log::ThreadBirth;
use rashomon_explore::{Log, Pending, Step};

fn operation() -> impl Strategy<Value = Operation> {
    let ops = vec![Op::Lock, Op::Unlock, Op::LockShared, Op::CondWaitBegin, Op::Acquire];
    let synchronisation = (select(ops), select(vec![0x10, 0x20, 0x30]), select(vec![0, 0, 0x20, NO_WAIT]))
        .prop_map(|(op, object, second)| Operation { op: op as u64, object, second, ..Operation::default() });
    let classes = vec![AccessClass::Read, AccessClass::Read, AccessClass::Write, AccessClass::ReadWrite];
    let access = (select(classes), 0x1000..0x1014_u64, select(vec![1, 2, 4, 8, 16]), any::<bool>()).prop_map(
        |(class, object, bytes, atomic)| Operation { object, bytes, class: class as u64, atomic, ..Operation::default() },
    );
    prop_oneof![1 => synchronisation, 2 => access]
}

fn step(thread: u32, operation: Operation) -> Step {
    let does = Pending { operation, ..Pending::default() };
    Step { thread, enabled: 0, asleep: 0, waiting: 0, does, after: None }
}

fn log() -> impl Strategy<Value = Log> {
    (2..5_u32).prop_flat_map(|threads| vec((0..threads, operation()), 0..40)).prop_map(|made| {
        let steps: Vec<Step> = made.into_iter().map(|(thread, operation)| step(thread, operation)).collect();
        // Each thread was created some time before its first step.
        let first = |thread: u32| steps.iter().position(|step| step.thread == thread);
        let born = |steps| ThreadBirth { parent: None, spawn_ordinal: 0, steps };
        let threads = (0..4).map(|thread| first(thread).map(|first| born(first / 2))).collect();
        Log { threads, steps, ..Log::default() }
    })
}

/// By pairs: whether the first is the second, or before it.
fn orders(log: &Log) -> Vec<Vec<bool>> {
    let steps = &log.steps;
    let mut orders = vec![vec![false; steps.len()]; steps.len()];
    for second in 0..steps.len() {
        orders[second][second] = true;
        let birth = log.threads[steps[second].thread as usize].map_or(0, |birth| birth.steps);
        for between in (0..second).rev() {
            let directly = steps[between].thread == steps[second].thread
                || steps[between].does.operation.depends(&steps[second].does.operation)
                || between + 1 == birth;
            if directly {
                for of_first in &mut orders[..=between] {
                    of_first[second] |= of_first[between];
                }
            }
        }
    }
    orders
}

proptest! {
    #[test]
    fn steps_are_ordered_as_defined(log in log()) {
        let (order, defined) = (Order::of(&log), orders(&log));
        for second in 0..log.steps.len() {
            for (first, defined) in defined[..=second].iter().enumerate() {
                prop_assert_eq!(order.before(first, second), defined[second], "{} {}", first, second);
            }
        }
    }

    #[test]
    fn what_can_be_reversed_is_found(log in log()) {
        let (order, defined) = (Order::of(&log), orders(&log));
        for (at, step) in log.steps.iter().enumerate() {
            let previous = (0..at).rev().find(|&before| log.steps[before].thread == step.thread);
            let creation = || log.threads[step.thread as usize].and_then(|birth| birth.steps.checked_sub(1));
            let known = |first: usize| previous.or_else(creation).is_some_and(|last| defined[first][last]);
            let found = order.reversible(at);
            for (first, other) in log.steps[..at].iter().enumerate() {
                let conflict = other.thread != step.thread
                    && other.does.operation.depends(&step.does.operation)
                    && may_be_co_enabled(&other.does.operation, &step.does.operation);
                let passed = (first + 1..at).any(|between| defined[first][between] && defined[between][at]);
                prop_assert!(!found.contains(&first) || conflict && !known(first), "not to be reversed: {} {}", first, at);
                prop_assert!(found.contains(&first) || !conflict || passed || known(first), "missing: {} {}", first, at);
            }
        }
    }
}

/// Where no thread depends on another, nobody looks back to the beginning, which would take the square of the length.
#[test]
fn long_executions_without_dependences_are_ordered() {
    let access = |thread, object, class: AccessClass| {
        step(thread, Operation { object, bytes: 4, class: class as u64, ..Operation::default() })
    };
    let mut log = Log { threads: vec![None; 2], ..Log::default() };
    for _ in 0..200_000 {
        log.steps.push(access(0, 0x1000, AccessClass::Write));
        log.steps.push(access(0, 0x2000, AccessClass::Read));
        log.steps.push(access(1, 0x2000, AccessClass::Read));
    }
    let order = Order::of(&log);
    assert!(order.before(0, 3) && !order.before(0, 2));
}
