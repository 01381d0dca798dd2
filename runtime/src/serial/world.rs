//! Whether somebody outside may ask this process for something at any time.
//!
//! While nobody can run, virtual time jumps to the next deadline: nothing else can happen. That is not so for a program with a
//! socket that others write to. There time passes as real time does, or a server that looks for requests in between sleeps would
//! be hours ahead of its client. What is told here is how fast time passes, never which time it is.

use crate::record::external::{self, Identity};
use crate::serial::clock;
use crate::system::lock::RawLock;
use crate::system::sys;
use core::ffi::c_int;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering::*};

/// Sockets that are remembered. Of a program with more than these one is open at any time, as good as certainly.
const MOST: usize = 64;

static LOCK: RawLock = RawLock::new();
static KNOWN: AtomicUsize = AtomicUsize::new(0);
static mut SOCKETS: [(c_int, Identity); MOST] = [(-1, Identity { device: 0, inode: 0 }); MOST];

/// The process polls for input there.
pub fn polls(file: c_int) {
    let Some(identity) = external::socket(file).filter(|&identity| !external::is_own(identity)) else { return };
    let sockets = &raw mut SOCKETS;
    // SAFETY: under the lock.
    LOCK.with(|| unsafe {
        let sockets = &mut *sockets;
        let known = KNOWN.load(Relaxed);
        let this = (file, identity);
        let same = |at: &(c_int, Identity)| at.0 == file;
        match sockets[..known].iter().position(same) {
            Some(at) => sockets[at] = this,
            None if known < MOST => {
                sockets[known] = this;
                KNOWN.store(known + 1, Release);
            }
            None => sockets[file as usize % MOST] = this,
        }
    });
}

/// Whether input may come.
pub fn may_act() -> bool {
    let sockets = &raw const SOCKETS;
    // SAFETY: under the lock.
    KNOWN.load(Relaxed) != 0
        && LOCK.with(|| unsafe {
            let sockets = &*sockets;
            let known = &sockets[..KNOWN.load(Relaxed)];
            known.iter().any(|&(file, identity)| external::socket(file) == Some(identity))
        })
}

/// Real time at which threads began to do nothing but poll.
static SINCE: AtomicU64 = AtomicU64::new(0);

/// A thread did something else than poll.
pub fn goes_on() {
    SINCE.store(0, Relaxed);
}

/// Whether so much time has passed while all polled that it may pass in the model too.
pub fn has_passed(nanoseconds: u64) -> bool {
    let now = sys::clock(clock::MONOTONIC as usize);
    let since = match SINCE.load(Relaxed) {
        0 => {
            SINCE.store(now, Relaxed);
            now
        }
        since => since,
    };
    let passed = now.saturating_sub(since) >= nanoseconds;
    if passed {
        goes_on();
    }
    passed
}

/// Real and virtual time when something last came from outside.
static ANSWERED: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

/// Something came from outside, which took time there: virtual time catches up with the real time since the last such moment. A
/// client that asks and is answered without pause would never come to the end of a sleep otherwise. The running thread has the
/// turn.
pub fn answered() {
    let now = sys::clock(clock::MONOTONIC as usize);
    let [real, model] = &ANSWERED;
    let before = real.swap(now, Relaxed);
    if before != 0 {
        clock::advance_to(model.load(Relaxed).saturating_add(now.saturating_sub(before)));
    }
    model.store(clock::elapsed(), Relaxed);
}

/// A forked child: the lock may have been somebody's who is not there.
pub fn reset_lock() {
    LOCK.unlock();
}
