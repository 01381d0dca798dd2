//! Queues of threads that wait for an object in serial mode: first come, first served.
//!
//! Where kernel and libc promise no order, arrival order is one of those they allow; the policy decides who arrives when. A
//! thread is *let out* by who wakes it, so that a wake-up counts even if its time is up before it runs again.

use crate::serial::sched::{self, Wait, WaitFor, Wake};
use crate::system::thread::{Runtime, Thread, all};
use core::sync::atomic::{AtomicU64, Ordering::*};

static TICKETS: AtomicU64 = AtomicU64::new(1);

/// Takes the last place in the queue of an object.
pub fn join(thread: &Thread, object: u64) {
    thread.condition.set(object);
    thread.ticket.set(TICKETS.fetch_add(1, Relaxed));
    thread.woken_by.set(0);
}

/// How a wait ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    LetOut,
    TimedOut,
    Interrupted,
    Cancelled,
}

/// Stands in the queue until let out, or until the wait's deadline or, where the wait says so, a signal handler.
pub fn stand(runtime: &Runtime, wait: Wait, site: u64) -> Outcome {
    let thread = runtime.thread();
    while thread.condition.get() != 0 {
        let outcome = match sched::block(runtime, wait, site) {
            Wake::TimedOut => Outcome::TimedOut,
            Wake::Cancelled => Outcome::Cancelled,
            Wake::Signal if wait.interruptible => Outcome::Interrupted,
            _ => continue,
        };
        if thread.condition.get() != 0 {
            thread.condition.set(0);
            return outcome;
        }
    }
    Outcome::LetOut
}

/// Lets out, or moves to another queue, the first `count` threads that `accept` agrees to. Tells how many.
pub fn serve(what: WaitFor, object: u64, count: usize, move_to: u64, sequence: u64, accept: impl Fn(&Thread) -> bool) -> usize {
    for served in 0..count {
        let first =
            all().filter(|thread| thread.condition.get() == object && accept(thread)).min_by_key(|thread| thread.ticket.get());
        let Some(thread) = first else { return served };
        if move_to == 0 {
            thread.condition.set(0);
            thread.woken_by.set(sequence);
            sched::wake_thread(thread.number.get(), what, object);
        } else {
            thread.condition.set(move_to);
            thread.serial().wait.set(Wait { object: move_to, ..thread.serial().wait.get() });
        }
    }
    count
}
