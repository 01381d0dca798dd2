//! Threads that wait for each other for ever.

use crate::clock::NEVER;
use crate::memory::List;
use crate::replay;
use crate::sched::{WaitFor, live};
use crate::thread::{State, Thread, by_number};
use crate::{finish, recorder};
use rashomon_abi::header::outcome;
use rashomon_abi::record::Op;

/// The thread is about to block on a lock or a thread: does that close a cycle? Under the scheduler's lock.
///
/// An edge leads from a thread that waits without time-out to each holder of the lock (or to the thread it joins). A cycle through a
/// shared lock with several holders is reported when any holder closes it: that holder never releases, so the writer never gets in.
pub fn check(thread: &mut Thread) {
    let mut visited: List<u32> = List::new();
    let mut path: List<(u32, u32)> = List::new();
    let found = search(thread.number, thread.number, &mut visited, &mut path, 0);
    if found {
        for &(number, holder) in path.as_slice() {
            record(number, Some(holder));
        }
        let (a, b) = (path.as_slice()[0].0, path.as_slice()[0].1);
        replay::conclude(outcome::DEADLOCK, a as u64, b as u64);
        finish::stop();
    }
    visited.free();
    path.free();
}

/// Depth-first search for `goal` along the waits-for edges; `path` becomes the cycle, in order.
fn search(number: u32, goal: u32, visited: &mut List<u32>, path: &mut List<(u32, u32)>, depth: usize) -> bool {
    // SAFETY: registered threads are never unmapped.
    let thread = unsafe { &*by_number(number) };
    if thread.state != State::Blocked || thread.wait.deadline != NEVER || depth > 1000 {
        return false;
    }
    let exclusive_only = thread.wait.what == WaitFor::LockShared;
    let mut visit = |next: u32| {
        if next == goal || !visited.as_slice().contains(&next) {
            path.push((number, next));
            if next == goal {
                return true;
            }
            visited.push(next);
            if search(next, goal, visited, path, depth + 1) {
                return true;
            }
            path.truncate(path.len() - 1);
        }
        false
    };
    match thread.wait.what {
        WaitFor::Join => visit(thread.wait.object as u32),
        // SAFETY: callers hold the scheduler's lock.
        WaitFor::Lock | WaitFor::LockShared => unsafe { live() }.as_slice().iter().any(|&holder| {
            // SAFETY: as above.
            let held = unsafe { (*by_number(holder)).held.as_slice() };
            held.iter().any(|held| held.lock == thread.wait.object && !(exclusive_only && held.shared)) && visit(holder)
        }),
        _ => false,
    }
}

fn record(number: u32, holder: Option<u32>) {
    // SAFETY: registered threads are never unmapped; this one is stopped, so its stream is ours to write.
    let thread = unsafe { &mut *by_number(number) };
    if thread.hot.is_null() {
        return;
    }
    let op = match thread.wait.what {
        WaitFor::Lock => Op::Lock,
        WaitFor::LockShared => Op::LockShared,
        WaitFor::Condition => Op::CondWaitEnd,
        WaitFor::Semaphore => Op::SemaphoreWait,
        WaitFor::Barrier => Op::BarrierExit,
        WaitFor::Join => Op::ThreadJoin,
        WaitFor::Futex | WaitFor::Files => Op::Observe,
        WaitFor::Once => Op::OnceSeen,
        WaitFor::Time | WaitFor::Nothing => Op::Sleep,
    };
    let (object, site) = (thread.wait.object, thread.wait_site);
    recorder::sync(thread, Op::Blocked, object, 0, site, &[op as u64, holder.map_or(u64::MAX, u64::from)]);
}

/// Nobody can ever run again, and no cycle of holders explains it. Under the scheduler's lock, called by the watchdog.
pub fn stuck() {
    // SAFETY: callers hold the scheduler's lock.
    let live = unsafe { live() };
    for &number in live.as_slice() {
        record(number, None);
    }
    let side = |index: usize| live.as_slice().get(index).map_or(u64::MAX, |&number| number as u64);
    replay::conclude(outcome::STUCK, side(0), side(1));
    finish::stop();
}
