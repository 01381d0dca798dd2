//! Deadlocks that happen: threads that wait for each other for ever.
//!
//! A thread that is about to wait, for a lock or for another thread's end, says so and follows who holds up whom: the lock's owner, what that one waits for, and so on. If the chain comes
//! back to it, none of them ever goes on. A link is only believed if the same wait still lasts when the whole chain has been followed a second time; as a waiting thread releases nothing, all of the
//! links held at once then. Two that close a cycle at the same time both see it: a wait is published before anything is asked.
//!
//! What is told is the cycle; the process is ended when all of its threads wait, since nobody can bring it to an end any more. Holders of shared locks are not followed.

use super::objects;
use crate::lock::RawLock;
use crate::report;
use crate::sys::Decimal;
use crate::thread::{self, State, Thread};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::*};

/// What a thread waits for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum For {
    /// Number of the object.
    Lock(u32),
    /// Number of the thread.
    Thread(u32),
}

/// What a thread waits for, if it does: `count of its waits << 33 | is a thread << 32 | number`; the lower half and the bit above are 0 while it does not wait.
pub struct Waits(AtomicU64);

const THREAD: u64 = 1 << 32;
const COUNT: u64 = 1 << 33;

impl Waits {
    pub const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    pub fn begin(&mut self, what: For) {
        let number = match what {
            For::Lock(number) => number as u64,
            For::Thread(number) => THREAD | number as u64,
        };
        let count = (self.0.load(Relaxed) & !(COUNT - 1)).wrapping_add(COUNT);
        self.0.store(count | number, SeqCst);
        fence();
    }

    #[inline(always)]
    pub fn end(&mut self) {
        let now = self.0.load(Relaxed);
        if now & (COUNT - 1) != 0 {
            self.0.store(now & !(COUNT - 1), Release);
        }
    }

    /// The wait, with what tells it from later ones.
    fn now(&self) -> Option<(u64, For)> {
        let now = self.0.load(SeqCst);
        match now & (COUNT - 1) {
            0 => None,
            thread if thread & THREAD != 0 => Some((now, For::Thread(thread as u32))),
            lock => Some((now, For::Lock(lock as u32))),
        }
    }
}

fn fence() {
    core::sync::atomic::fence(SeqCst);
}

pub static LOCK: RawLock = RawLock::new();
/// Threads of a deadlock were told.
static HAPPENED: AtomicU32 = AtomicU32::new(0);

fn known(number: u32) -> Option<&'static Thread> {
    // SAFETY: registered threads are never unmapped; of others only words are read that change at once.
    unsafe { thread::by_number(number).as_ref() }
}

/// Whom a wait depends on.
fn holder(what: For) -> Option<u32> {
    match what {
        For::Thread(number) => known(number).filter(|thread| thread.ended.load(Acquire) == 0).map(|thread| thread.number),
        For::Lock(number) => {
            // SAFETY: the number of an object.
            let object = unsafe { objects::by_number(number) };
            (object.recursion > 0 && object.owner != 0).then(|| object.owner - 1)
        }
    }
}

/// Length of the cycle through `start`, and the sum of what tells its waits from later ones; `None`: there is no cycle.
fn cycle(start: u32) -> Option<(u32, u64)> {
    let (mut at, mut length, mut sum) = (start, 0, 0u64);
    loop {
        let (wait, what) = known(at)?.detect.waits.now()?;
        sum = sum.rotate_left(7) ^ wait;
        length += 1;
        at = holder(what)?;
        if at == start {
            return Some((length, sum));
        }
        if length > thread::count() {
            return None;
        }
    }
}

/// The calling thread is about to wait for another one's end.
pub fn joins(thread: &mut Thread, child: u32) {
    thread.detect.waits.begin(For::Thread(child));
    check(thread);
}

/// The calling thread has said that it waits: will it do so for ever?
pub fn check(thread: &mut Thread) {
    if let Some(found) = cycle(thread.number)
        && cycle(thread.number) == Some(found)
    {
        happened(thread, found.0);
    } else if HAPPENED.load(Acquire) == 0 {
        return;
    }
    let all_wait = thread::all().all(|other| {
        // SAFETY: as in `known`.
        let other = unsafe { &*other };
        let parked = !other.hot.is_null() && core::ptr::eq(other.hot, other.detect.parked);
        parked || other.state == State::Ended || other.ended.load(Acquire) != 0 || other.detect.waits.now().is_some()
    });
    if all_wait {
        report::fails(&[b"every thread waits in a deadlock, or for a thread that does: the program is ended"]);
        report::end_stuck();
    }
}

#[cold]
fn happened(thread: &mut Thread, length: u32) {
    LOCK.with(|| {
        HAPPENED.store(1, Release);
        report::fails(&[b"deadlock: ", Decimal::new(length as u64).bytes(), b" thread(s) wait for each other for ever"]);
        let mut at = thread.number;
        for _ in 0..length {
            let Some((_, what)) = known(at).and_then(|thread| thread.detect.waits.now()) else { break };
            let Some(next) = holder(what) else { break };
            let (waits, number) = match what {
                For::Thread(number) => (&b" waits for the end of thread T"[..], number),
                For::Lock(_) => (&b" waits for a lock that is held by thread T"[..], next),
            };
            report::fails(&[b"  thread T", Decimal::new(at as u64).bytes(), waits, Decimal::new(number as u64).bytes()]);
            at = next;
        }
    });
}
