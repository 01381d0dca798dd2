//! What all locks share.

use crate::sched::{self, Wait, WaitFor, Wake};
use crate::sys::EBUSY;
use crate::thread::{Held, Runtime, Thread, all};
use crate::{clock, config, recorder};
use core::ffi::c_int;
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

/// The virtual deadline of an absolute time.
///
/// # Safety
/// `time` points to a timespec.
pub unsafe fn deadline(clock: c_int, time: *const [i64; 2]) -> u64 {
    // SAFETY: by the contract.
    clock::deadline(clock, unsafe { nanoseconds(time) })
}

/// Serial mode: tries until it succeeds, blocking in the model in between. `Err(())`: the deadline passed.
pub fn acquire_by_trying(runtime: &Runtime, lock: u64, shared: bool, deadline: u64, site: u64, mut attempt: impl FnMut() -> c_int) -> Result<c_int, ()> {
    let mut requested = false;
    loop {
        let result = attempt();
        if result != EBUSY {
            return Ok(result);
        }
        if !requested {
            requested = true;
            recorder::sync(runtime.thread(), Op::LockRequest, lock, shared as u16, site, &[]);
        }
        let what = if shared { WaitFor::LockShared } else { WaitFor::Lock };
        if sched::block(runtime, Wait::on(what, lock).until(deadline), site) == Wake::TimedOut {
            return Err(());
        }
    }
}

/// Notes that a thread holds a lock.
pub fn hold(thread: &mut Thread, lock: u64, shared: bool) {
    thread.held.push(Held { lock, shared });
}

/// Notes that a lock was given up, by its holder or, where that is allowed, by somebody else. Tells how it was held.
pub fn drop_hold(thread: &mut Thread, lock: u64) -> Option<Held> {
    let find = |held: &[Held]| held.iter().rposition(|held| held.lock == lock);
    if let Some(at) = find(thread.held.as_slice()) {
        return Some(thread.held.remove(at));
    }
    if config::serial() {
        for other in all() {
            // SAFETY: registered threads are never unmapped; in serial mode the others are stopped.
            let other = unsafe { &mut *other };
            if let Some(at) = find(other.held.as_slice()) {
                return Some(other.held.remove(at));
            }
        }
    }
    None
}
