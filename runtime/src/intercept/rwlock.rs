//! `pthread_rwlock_*`.
//!
//! In serial mode every acquisition is a try on the program's own lock, so glibc's own rules hold; only the preference for
//! waiting writers is modelled, as writers wait in the model and not in the lock.

use super::lock_common::{acquire_by_trying, deadline, drop_hold, hold, is_clock, is_time, request};
use crate::record::recorder;
use crate::serial::clock::{NEVER, REALTIME};
use crate::serial::explore;
use crate::serial::sched::{self, WaitFor};
use crate::serial::standstill::For as Wait;
use crate::system::real::real;
use crate::system::sys::{EBUSY, ETIMEDOUT};
use crate::system::thread::{Runtime, State, all};
use crate::system::tls::caller;
use crate::system::{config, mappings};
use core::ffi::c_int;
use rashomon_abi::record::{Op, lock_kind};

const EINVAL: c_int = 22;
const EDEADLK: c_int = 35;
/// `PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP`
const PREFER_WRITERS: u32 = 2;

/// glibc's `pthread_rwlock_t`.
#[repr(C)]
pub struct RwLock {
    readers: u32,
    writers: u32,
    futexes: [u32; 2],
    padding: [u32; 2],
    writer: c_int,
    shared: c_int,
    more: [u64; 2],
    flags: u32,
}

impl RwLock {
    fn is_shared(&self) -> bool {
        self.shared != 0 && mappings::is_shared(self as *const Self as u64)
    }
}

type Lock = *mut RwLock;

fn try_lock(lock: Lock, shared: bool) -> c_int {
    // SAFETY: the program's own lock.
    unsafe {
        if shared {
            real!(fn pthread_rwlock_tryrdlock(Lock) -> c_int)(lock)
        } else {
            real!(fn pthread_rwlock_trywrlock(Lock) -> c_int)(lock)
        }
    }
}

/// Whether new readers wait for writers that wait.
fn prefers_writers(lock: Lock) -> bool {
    // SAFETY: the program's own lock.
    unsafe { (*lock).flags == PREFER_WRITERS }
}

/// Whether readers have to let a writer go first.
fn writers_wait(lock: Lock) -> bool {
    prefers_writers(lock)
        && all().any(|thread| {
            let wait = thread.serial().wait.get();
            thread.state.get() == State::Blocked && wait.what == WaitFor::Lock && wait.object == lock as u64
        })
}

fn acquired(runtime: &Runtime, lock: Lock, shared: bool, site: u64, try_flag: u16) {
    let thread = runtime.thread();
    thread.spins.set(0);
    hold(thread, lock as u64, shared);
    recorder::sync(thread, if shared { Op::LockShared } else { Op::Lock }, lock as u64, lock_kind::RWLOCK | try_flag, site, &[]);
}

fn failed(runtime: &Runtime, lock: Lock, site: u64, error: c_int) -> c_int {
    recorder::sync(runtime.thread(), Op::LockFailed, lock as u64, 0, site, &[error as u64]);
    error
}

fn lock_until(lock: Lock, shared: bool, until: u64, site: u64, real: impl FnOnce() -> c_int) -> c_int {
    let Some(runtime) = Runtime::try_enter() else { return real() };
    if !shared && prefers_writers(lock) {
        // To begin to wait is a step that others notice, as a try is: a schedule may have it.
        explore::concerns(runtime.thread(), explore::TRY);
    }
    sched::point(&runtime, if shared { Op::LockShared } else { Op::Lock }, lock as u64, site);
    // SAFETY: the program's own lock; only this thread can store its own number there.
    let own = unsafe { (&raw const (*lock).writer).read_volatile() as u32 == runtime.thread().libc_id.get() };
    let result = if own {
        EDEADLK
    // SAFETY: as above.
    } else if config::serial() && !unsafe { (*lock).is_shared() } {
        let attempt = || if shared && writers_wait(lock) { EBUSY } else { try_lock(lock, shared) };
        let result = acquire_by_trying(&runtime, lock as u64, shared, until, site, attempt).unwrap_or(ETIMEDOUT);
        if result == ETIMEDOUT && !shared {
            // Readers may have waited for this writer only.
            sched::wake(WaitFor::LockShared, lock as u64, usize::MAX);
        }
        result
    } else {
        match try_lock(lock, shared) {
            EBUSY => {
                // SAFETY: as above.
                let private = unsafe { !(*lock).is_shared() };
                request(&runtime, Wait::lock(shared, lock_kind::RWLOCK, lock as u64, site), until == NEVER && private, real)
            }
            result => result,
        }
    };
    if result != 0 {
        return failed(&runtime, lock, site, result);
    }
    acquired(&runtime, lock, shared, site, if until == NEVER { 0 } else { lock_kind::TRY });
    0
}

fn try_once(lock: Lock, shared: bool, site: u64) -> c_int {
    let Some(runtime) = Runtime::try_enter() else { return try_lock(lock, shared) };
    explore::concerns(runtime.thread(), explore::TRY);
    sched::point(&runtime, if shared { Op::LockShared } else { Op::Lock }, lock as u64, site);
    let result = if config::serial() && shared && writers_wait(lock) { EBUSY } else { try_lock(lock, shared) };
    if result != 0 {
        sched::failed_try(&runtime);
        return failed(&runtime, lock, site, result);
    }
    acquired(&runtime, lock, shared, site, lock_kind::TRY);
    0
}

/// A timed acquisition, whose time is checked first.
///
/// # Safety
/// `time` points to a timespec.
unsafe fn timed(lock: Lock, shared: bool, clock: c_int, time: *const [i64; 2], site: u64, real: impl FnOnce() -> c_int) -> c_int {
    // SAFETY: by the contract.
    let (until, valid) = unsafe { (deadline(clock, time), is_time(time)) };
    if !valid || !is_clock(clock) {
        let Some(runtime) = Runtime::try_enter() else { return EINVAL };
        sched::point(&runtime, if shared { Op::LockShared } else { Op::Lock }, lock as u64, site);
        return failed(&runtime, lock, site, EINVAL);
    }
    lock_until(lock, shared, until, site, real)
}

unsafe extern "C" fn read_lock(lock: Lock) -> c_int {
    // SAFETY: the real function with the program's lock.
    lock_until(lock, true, NEVER, caller(), || unsafe { real!(fn pthread_rwlock_rdlock(Lock) -> c_int)(lock) })
}

unsafe extern "C" fn write_lock(lock: Lock) -> c_int {
    // SAFETY: as in `read_lock`.
    lock_until(lock, false, NEVER, caller(), || unsafe { real!(fn pthread_rwlock_wrlock(Lock) -> c_int)(lock) })
}

unsafe extern "C" fn try_read_lock(lock: Lock) -> c_int {
    try_once(lock, true, caller())
}

unsafe extern "C" fn try_write_lock(lock: Lock) -> c_int {
    try_once(lock, false, caller())
}

unsafe extern "C" fn timed_read_lock(lock: Lock, time: *const [i64; 2]) -> c_int {
    // SAFETY: the program's lock and time, here and behind.
    unsafe {
        timed(lock, true, REALTIME, time, caller(), || {
            real!(fn pthread_rwlock_timedrdlock(Lock, *const [i64; 2]) -> c_int)(lock, time)
        })
    }
}

unsafe extern "C" fn timed_write_lock(lock: Lock, time: *const [i64; 2]) -> c_int {
    // SAFETY: as in `timed_read_lock`.
    unsafe {
        timed(lock, false, REALTIME, time, caller(), || {
            real!(fn pthread_rwlock_timedwrlock(Lock, *const [i64; 2]) -> c_int)(lock, time)
        })
    }
}

unsafe extern "C" fn clock_read_lock(lock: Lock, clock: c_int, time: *const [i64; 2]) -> c_int {
    // SAFETY: as in `timed_read_lock`; a clock that is none is refused.
    unsafe {
        timed(lock, true, clock, time, caller(), || {
            real!(fn pthread_rwlock_clockrdlock(Lock, c_int, *const [i64; 2]) -> c_int)(lock, clock, time)
        })
    }
}

unsafe extern "C" fn clock_write_lock(lock: Lock, clock: c_int, time: *const [i64; 2]) -> c_int {
    // SAFETY: as in `clock_read_lock`.
    unsafe {
        timed(lock, false, clock, time, caller(), || {
            real!(fn pthread_rwlock_clockwrlock(Lock, c_int, *const [i64; 2]) -> c_int)(lock, clock, time)
        })
    }
}

unsafe extern "C" fn unlock(lock: Lock) -> c_int {
    // SAFETY: the real function with the program's lock.
    let real = || unsafe { real!(fn pthread_rwlock_unlock(Lock) -> c_int)(lock) };
    let Some(runtime) = Runtime::try_enter() else { return real() };
    let site = caller();
    sched::point(&runtime, Op::Unlock, lock as u64, site);
    let thread = runtime.thread();
    let shared = match drop_hold(thread, lock as u64) {
        Some(held) => held.shared,
        // SAFETY: the program's own lock.
        None => unsafe { (*lock).writer as u32 != thread.libc_id.get() },
    };
    recorder::sync(thread, if shared { Op::UnlockShared } else { Op::Unlock }, lock as u64, 0, site, &[]);
    let result = real();
    sched::wake(WaitFor::Lock, lock as u64, usize::MAX);
    result
}

unsafe extern "C" fn init(lock: Lock, attributes: *const u8) -> c_int {
    // SAFETY: room for a lock, and attributes or null.
    let result = unsafe { real!(fn pthread_rwlock_init(Lock, *const u8) -> c_int)(lock, attributes) };
    if let Some(runtime) = Runtime::try_enter() {
        recorder::sync(runtime.thread(), Op::LockInit, lock as u64, lock_kind::RWLOCK, caller(), &[]);
    }
    result
}

unsafe extern "C" fn destroy(lock: Lock) -> c_int {
    if let Some(runtime) = Runtime::try_enter() {
        recorder::sync(runtime.thread(), Op::LockDestroy, lock as u64, 0, caller(), &[]);
    }
    // SAFETY: the program destroys its lock.
    unsafe { real!(fn pthread_rwlock_destroy(Lock) -> c_int)(lock) }
}

interpose! {
    pthread_rwlock_rdlock => read_lock;
    pthread_rwlock_wrlock => write_lock;
    pthread_rwlock_timedrdlock => timed_read_lock;
    pthread_rwlock_timedwrlock => timed_write_lock;
    pthread_rwlock_clockrdlock => clock_read_lock;
    pthread_rwlock_clockwrlock => clock_write_lock;
    pthread_rwlock_unlock => unlock;
    pthread_rwlock_init => init;
    pthread_rwlock_destroy => destroy;
}

interpose_in! { "rashomon_polls"; pthread_rwlock_tryrdlock => try_read_lock; pthread_rwlock_trywrlock => try_write_lock; }
