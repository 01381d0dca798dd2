//! What all locks share.

use crate::detect;
use crate::record::{filter, recorder};
use crate::serial::sched::{self, Wait, WaitFor, Wake};
use crate::serial::{clock, standstill};
use crate::system::config;
use crate::system::sys::EBUSY;
use crate::system::thread::{Held, HeldLocks, Runtime, Thread, all};
use core::ffi::c_int;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use rashomon_abi::record::Op;

/// `struct timespec` as nanoseconds; negative fields count as zero.
///
/// # Safety
/// `time` points to a timespec.
pub unsafe fn nanoseconds(time: *const [i64; 2]) -> u64 {
    // SAFETY: by the contract.
    let [seconds, nanoseconds] = unsafe { *time };
    (seconds.max(0) as u64).saturating_mul(1_000_000_000).saturating_add(nanoseconds.max(0) as u64)
}

/// Whether libc would accept a time: less than a second of nanoseconds.
///
/// # Safety
/// `time` points to a timespec.
pub unsafe fn is_time(time: *const [i64; 2]) -> bool {
    // SAFETY: by the contract.
    (0..1_000_000_000).contains(&unsafe { *time }[1])
}

/// Whether libc waits by a clock: `CLOCK_REALTIME` or `CLOCK_MONOTONIC`.
pub const fn is_clock(clock: c_int) -> bool {
    matches!(clock, 0 | 1)
}

/// The virtual deadline of an absolute time.
///
/// # Safety
/// `time` points to a timespec.
pub unsafe fn deadline(clock: c_int, time: *const [i64; 2]) -> u64 {
    // SAFETY: by the contract.
    clock::deadline(clock, unsafe { nanoseconds(time) })
}

/// Serial mode: tries until it succeeds, blocking in the model in between. `Err(())`: the deadline passed.
pub fn acquire_by_trying(
    runtime: &Runtime,
    lock: u64,
    shared: bool,
    deadline: u64,
    site: u64,
    mut attempt: impl FnMut() -> c_int,
) -> Result<c_int, ()> {
    let mut requested = false;
    let mut late = false;
    loop {
        let result = attempt();
        if result != EBUSY {
            return Ok(result);
        }
        // What the lock is like when the thread runs again decides, not what woke it: a schedule can repeat the one only.
        if late {
            return Err(());
        }
        if !requested {
            requested = true;
            recorder::sync(runtime.thread(), Op::LockRequest, lock, shared as u16, site, &[]);
        }
        let what = if shared { WaitFor::LockShared } else { WaitFor::Lock };
        late = sched::block(runtime, Wait::on(what, lock).until(deadline), site) == Wake::TimedOut;
    }
}

/// A lock is taken by somebody else: the thread waits in libc, by `real`. `for_ever`: until it has the lock, and nobody outside
/// of the process can give it.
pub fn request<R>(runtime: &Runtime, wait: standstill::For, for_ever: bool, real: impl FnOnce() -> R) -> R {
    let thread = runtime.thread();
    let shared = wait.op == Op::LockShared;
    if detect::on() {
        thread.with_own(|own| detect::locks::requested(own, wait.object, shared, for_ever, wait.site));
    } else {
        recorder::sync(thread, Op::LockRequest, wait.object, shared as u16, wait.site, &[]);
    }
    if for_ever { standstill::during(runtime, wait, real) } else { sched::external(runtime, real) }
}

/// Notes that a thread holds a lock.
pub fn hold(thread: &Thread, lock: u64, shared: bool) {
    static TAKEN: AtomicU64 = AtomicU64::new(1);
    let since = if config::serial() { TAKEN.fetch_add(1, Relaxed) } else { 0 };
    let held = Held { lock, shared, since };
    thread.held.push(held);
    filter::locks_changed(thread, held);
}

/// Notes that a lock was given up, by its holder or, where that is allowed, by somebody else. Tells how it was held.
pub fn drop_hold(thread: &Thread, lock: u64) -> Option<Held> {
    let find = |held: &HeldLocks| held.iter().rposition(|held| held.lock == lock);
    if let Some(at) = find(&thread.held) {
        let held = thread.held.remove(at);
        filter::locks_changed(thread, held);
        return Some(held);
    }
    if config::serial() {
        for other in all() {
            // The others are stopped.
            if let Some(at) = find(&other.held) {
                let held = other.held.remove(at);
                filter::locks_changed(other, held);
                return Some(held);
            }
        }
    }
    None
}
