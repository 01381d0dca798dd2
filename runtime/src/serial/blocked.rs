//! Deadlocks that happened, as [`standstill`] found them: what is told of them.

use crate::detect::{self, objects, walked};
use crate::report::{self, Lock, Waits};
use crate::serial::standstill;
use crate::system::thread::all;
use core::sync::atomic::Ordering::Acquire;
use rashomon_abi::record::Op;
use rashomon_abi::report::warning;

/// The most threads of one report.
const LONGEST: usize = walked::MOST;

/// Threads that wait for each other for ever, in the order of the cycle.
pub fn happened(members: &[(u32, u64)]) {
    let mut numbers = [0; LONGEST];
    for (to, &(number, _)) in numbers.iter_mut().zip(members) {
        *to = number;
    }
    tell(warning::DEADLOCKED, &numbers[..members.len().min(LONGEST)]);
}

/// Nobody can go on: the process ends. `told`: a deadlock that explains it was.
pub fn ends(told: bool) -> ! {
    if !told {
        let mut numbers = [0; LONGEST];
        let mut count = 0;
        let live = all().filter(|thread| thread.ended.load(Acquire) == 0);
        for thread in live.filter(|thread| standstill::stack_of(thread.number.get()).is_some()) {
            if count < LONGEST {
                numbers[count] = thread.number.get();
                count += 1;
            }
        }
        tell(warning::STUCK, &numbers[..count]);
    }
    report::fails(&[b"every thread waits and nobody is left to wake them: the program is ended"]);
    report::end_stuck()
}

/// What only the end of the process shows, and first a deadlock that has not lasted long enough to be told of yet.
pub fn last_checks() {
    standstill::conclude();
    detect::last_checks();
}

fn tell(warning: u64, numbers: &[u32]) {
    let mut ids = [0; LONGEST];
    for (id, &number) in ids.iter_mut().zip(numbers) {
        *id = standstill::stack_of(number).map_or(0, |(stack, ..)| stack);
    }
    walked::with(&ids[..numbers.len()], |stacks| {
        let nothing = Waits { thread: 0, lock: None, stack: &[] };
        let mut waits = [nothing; LONGEST];
        for ((to, &number), stack) in waits.iter_mut().zip(numbers).zip(stacks) {
            let lock = match standstill::stack_of(number) {
                Some((_, Op::Lock | Op::LockShared, address)) => {
                    Some(objects::find(address).map_or(Lock { address, ..Lock::NONE }, |object| object.as_told(true)))
                }
                _ => None,
            };
            *to = Waits { thread: number, lock, stack };
        }
        report::deadlocked(warning, &waits[..numbers.len()]);
    });
}
