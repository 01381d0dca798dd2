//! Waiting on a condition variable while an order of synchronisation is kept ([`crate::serial::gate`]).
//!
//! libc takes the mutex again as soon as the wait is over, whoever's turn that is. So the thread waits with a mutex of the
//! runtime's in its place, which those who signal hold, too: no signal gets lost between the two. The program's own is taken when
//! it is this thread's turn.

use super::lock_common;
use super::mutex::Mutex;
use crate::record::recorder;
use crate::serial::{gate, sched, standstill};
use crate::system::real::real;
use crate::system::sys::{self, ETIMEDOUT};
use crate::system::thread::{Runtime, Thread};
use core::cell::UnsafeCell;
use core::ffi::c_int;
use rashomon_abi::record::{Op, lock_kind};

/// A `pthread_mutex_t` as its initialiser makes it.
#[repr(align(8))]
struct Stand(UnsafeCell<[u64; 5]>);

// SAFETY: only libc's functions touch what is inside, which are made for that.
unsafe impl Sync for Stand {}

const STANDS: usize = 64;
static ALL: [Stand; STANDS] = [const { Stand(UnsafeCell::new([0; 5])) }; STANDS];

/// That of a condition variable; several may share one.
fn stand_in(condition: *mut u8) -> *mut Mutex {
    ALL[(condition as usize >> 4) % STANDS].0.get().cast()
}

fn lock(mutex: *mut Mutex) -> c_int {
    // SAFETY: one of ours, or the program's own, here and below.
    unsafe { real!(fn pthread_mutex_lock(*mut Mutex) -> c_int)(mutex) }
}

fn unlock(mutex: *mut Mutex) -> c_int {
    // SAFETY: as above.
    unsafe { real!(fn pthread_mutex_unlock(*mut Mutex) -> c_int)(mutex) }
}

/// Wakes whoever has begun to wait, and nobody who is just about to.
pub fn signal(condition: *mut u8, real: impl FnOnce() -> c_int) -> c_int {
    let stand = stand_in(condition);
    lock(stand);
    let result = real();
    unlock(stand);
    result
}

/// Where the mutex of a wait that is cancelled is one of ours, that one is given up, and the program's taken.
pub struct Own(Option<*mut Mutex>);

impl Own {
    pub const NONE: Self = Self(None);

    pub fn of(condition: *mut u8) -> Self {
        Self(Some(stand_in(condition)))
    }

    pub fn give_up_for(&self, mutex: *mut Mutex) {
        if let Some(stand) = self.0 {
            unlock(stand);
            lock(mutex);
        }
    }
}

/// Between two looks at whose turn it is.
const PAUSE_NS: u64 = 20_000_000;
const SECOND_NS: u64 = 1_000_000_000;

/// A wait that may time out ends with its turn, too: where the order comes from, time was virtual, and passed as soon as nobody
/// could go on. Between the parts of the wait the thread holds the mutex that it waits with, so that no signal is lost.
fn until_its_turn(thread: &Thread, (clock, end): (c_int, [i64; 2]), mut wait: impl FnMut(&[i64; 2]) -> c_int) -> c_int {
    loop {
        let soon = sys::clock(clock as usize).saturating_add(PAUSE_NS);
        let soon = [(soon / SECOND_NS).cast_signed(), (soon % SECOND_NS).cast_signed()];
        let result = wait(&soon.min(end));
        if result != ETIMEDOUT || end <= soon || gate::is_turn_of(thread, Op::CondWaitEnd) {
            return result;
        }
    }
}

/// The wait, whose begin is recorded. `real` waits with the mutex that it is given.
pub fn wait(
    runtime: &Runtime,
    (condition, mutex): (*mut u8, *mut Mutex),
    limit: Option<(c_int, [i64; 2])>,
    site: u64,
    mut real: impl FnMut(*mut Mutex, &[i64; 2]) -> c_int,
) -> c_int {
    let stand = stand_in(condition);
    lock(stand);
    let error = unlock(mutex);
    let mut result = error;
    if error == 0 {
        result = match limit {
            None => {
                let wait = standstill::For::on(Op::CondWaitEnd, condition as u64, site);
                standstill::during(runtime, wait, || real(stand, &[0; 2]))
            }
            Some(limit) => {
                let thread = runtime.thread();
                sched::external(runtime, || until_its_turn(thread, limit, |time| real(stand, time)))
            }
        };
    }
    unlock(stand);
    if error == 0 {
        gate::arrive(runtime, Op::CondWaitEnd);
        let wait = standstill::For::lock(false, lock_kind::MUTEX, mutex as u64, site);
        let error = standstill::during(runtime, wait, || lock(mutex));
        result = if error == 0 { result } else { error };
    }
    lock_common::hold(runtime.thread(), mutex as u64, false);
    recorder::sync(runtime.thread(), Op::CondWaitEnd, condition as u64, 0, site, &[mutex as u64, result as u64, 0]);
    result
}
