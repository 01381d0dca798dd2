//! `pthread_mutex_*`.

use super::lock_common::{acquire_by_trying, deadline, drop_hold, hold, is_clock, is_time, request};
use crate::detect;
use crate::record::recorder;
use crate::serial::clock::{NEVER, REALTIME};
use crate::serial::explore;
use crate::serial::sched::{self, WaitFor};
use crate::serial::standstill::For as Wait;
use crate::system::real::real;
use crate::system::sys::{EBUSY, ETIMEDOUT};
use crate::system::thread::Runtime;
use crate::system::tls::caller;
use crate::system::{config, mappings};
use core::ffi::c_int;
use rashomon_abi::record::{Op, lock_kind};

const EDEADLK: c_int = 35;
const EINVAL: c_int = 22;
const EOWNERDEAD: c_int = 130;
const ENOTRECOVERABLE: c_int = 131;
/// The owner of a robust mutex that was given up without being repaired.
const NOT_RECOVERABLE: c_int = c_int::MAX - 1;
/// Bit of a mutex's kind.
const ROBUST: c_int = 16;
/// The same: the kernel is told what priority its holder inherits.
const INHERITS: c_int = 32;

/// The part of glibc's `pthread_mutex_t` that tells what kind it is.
#[repr(C)]
pub struct Mutex {
    word: c_int,
    count: u32,
    owner: c_int,
    users: u32,
    kind: c_int,
}

impl Mutex {
    fn is_recursive(&self) -> bool {
        self.kind & 3 == 1
    }
    fn checks_errors(&self) -> bool {
        self.kind & 3 == 2
    }
    /// Shared between processes: others may unlock it unseen.
    fn is_shared(&self) -> bool {
        self.kind & 128 != 0 && mappings::is_shared(self as *const Self as u64)
    }
    fn flags(&self) -> u16 {
        let refuses = self.checks_errors() || self.kind & ROBUST != 0;
        lock_kind::MUTEX
            | if self.is_recursive() { lock_kind::RECURSIVE } else { 0 }
            | if refuses { lock_kind::REFUSES } else { 0 }
    }
}

fn try_lock(mutex: *mut Mutex) -> c_int {
    // SAFETY: the program's own mutex.
    unsafe { real!(fn pthread_mutex_trylock(*mut Mutex) -> c_int)(mutex) }
}

/// The same for a thread that would wait. A try of a mutex that nobody repaired leaves it locked in libc, so that the next one
/// would wait for ever.
fn attempt(mutex: *mut Mutex) -> c_int {
    // SAFETY: the program's own mutex.
    let lost = unsafe { (*mutex).kind & ROBUST != 0 && (*mutex).owner == NOT_RECOVERABLE };
    if lost { ENOTRECOVERABLE } else { try_lock(mutex) }
}

/// Records an acquisition. `try_flag`: the thread would not have waited for ever.
fn acquired(runtime: &Runtime, mutex: *mut Mutex, site: u64, try_flag: u16) {
    let thread = runtime.thread();
    thread.spins.set(0);
    // SAFETY: held by this thread, so nobody writes these fields.
    let mutex_ref = unsafe { &*mutex };
    if mutex_ref.is_recursive() && mutex_ref.count > 1 {
        recorder::sync(thread, Op::LockAgain, mutex as u64, mutex_ref.flags(), site, &[]);
        return;
    }
    hold(thread, mutex as u64, false);
    recorder::sync(thread, Op::Lock, mutex as u64, mutex_ref.flags() | try_flag, site, &[]);
}

/// Takes a mutex for a thread that gave it up in a condition wait: nothing is recorded.
pub fn reacquire(runtime: &Runtime, mutex: *mut Mutex, site: u64) -> c_int {
    let result = acquire_by_trying(runtime, mutex as u64, false, NEVER, site, || attempt(mutex)).unwrap_or(0);
    if result == 0 || result == EOWNERDEAD {
        hold(runtime.thread(), mutex as u64, false);
    }
    result
}

/// The owner died: the mutex is free, and to be repaired by whoever gets it.
fn repaired(mutex: *mut Mutex) {
    if detect::on() {
        detect::locks::repaired(mutex as u64);
    }
}

/// A lock that libc refuses to wait for, but not to take if it is free.
fn lock_now(mutex: *mut Mutex, error: c_int, site: u64, real: impl FnOnce() -> c_int) -> c_int {
    let Some(runtime) = Runtime::try_enter() else { return real() };
    explore::concerns(runtime.thread(), explore::TRY);
    sched::point(&runtime, Op::Lock, mutex as u64, site);
    let result = match attempt(mutex) {
        EBUSY if refuses_own(&runtime, mutex) => EDEADLK,
        EBUSY => error,
        result => result,
    };
    finished(&runtime, mutex, site, lock_kind::TRY, result)
}

/// Whether libc tells a thread that it holds the mutex itself, instead of letting it wait for ever.
fn refuses_own(runtime: &Runtime, mutex: *mut Mutex) -> bool {
    // SAFETY: the program's own mutex; fields that only its holder changes.
    unsafe { (*mutex).checks_errors() && (*mutex).owner as u32 == runtime.thread().libc_id.get() }
}

/// Whether libc, or the kernel, refuses to wait until then.
///
/// # Safety
/// Both point to what they are.
unsafe fn refuses_time(mutex: *mut Mutex, time: *const [i64; 2]) -> bool {
    // SAFETY: by the contract.
    unsafe { !is_time(time) || (*mutex).kind & INHERITS != 0 && (*time)[0] < 0 }
}

fn lock_until(mutex: *mut Mutex, deadline: u64, site: u64, real: impl FnOnce() -> c_int) -> c_int {
    let Some(runtime) = Runtime::try_enter() else { return real() };
    let try_flag = if deadline == NEVER { 0 } else { lock_kind::TRY };
    if deadline != NEVER {
        explore::concerns(runtime.thread(), explore::TRY);
    }
    sched::point(&runtime, Op::Lock, mutex as u64, site);
    // SAFETY: the program's own mutex.
    let shared = unsafe { (*mutex).is_shared() };
    let result = if refuses_own(&runtime, mutex) {
        EDEADLK
    } else if config::serial() && !shared {
        acquire_by_trying(&runtime, mutex as u64, false, deadline, site, || attempt(mutex)).unwrap_or(ETIMEDOUT)
    } else {
        match attempt(mutex) {
            EBUSY => {
                let for_ever = deadline == NEVER && !shared;
                request(&runtime, Wait::lock(false, lock_kind::MUTEX, mutex as u64, site), for_ever, real)
            }
            result => result,
        }
    };
    finished(&runtime, mutex, site, try_flag, result)
}

/// Records what came of it.
fn finished(runtime: &Runtime, mutex: *mut Mutex, site: u64, try_flag: u16, result: c_int) -> c_int {
    if result == 0 || result == EOWNERDEAD {
        if result == EOWNERDEAD {
            repaired(mutex);
        }
        acquired(runtime, mutex, site, try_flag);
    } else {
        if result == EINVAL && detect::on() {
            runtime.with_own(|own| detect::locks::invalid(own, mutex as u64, site));
        }
        recorder::sync(runtime.thread(), Op::LockFailed, mutex as u64, 0, site, &[result as u64]);
    }
    result
}

pub unsafe extern "C" fn lock(mutex: *mut Mutex) -> c_int {
    // SAFETY: the real function with the program's arguments, here and below.
    lock_until(mutex, NEVER, caller(), || unsafe { real!(fn pthread_mutex_lock(*mut Mutex) -> c_int)(mutex) })
}

pub unsafe extern "C" fn timedlock(mutex: *mut Mutex, time: *const [i64; 2]) -> c_int {
    // SAFETY: as above.
    let real = || unsafe { real!(fn pthread_mutex_timedlock(*mut Mutex, *const [i64; 2]) -> c_int)(mutex, time) };
    // SAFETY: the program's own time.
    unsafe {
        if refuses_time(mutex, time) {
            return lock_now(mutex, EINVAL, caller(), real);
        }
        lock_until(mutex, deadline(REALTIME, time), caller(), real)
    }
}

unsafe extern "C" fn clocklock(mutex: *mut Mutex, clock: c_int, time: *const [i64; 2]) -> c_int {
    // SAFETY: as above.
    let real = || unsafe { real!(fn pthread_mutex_clocklock(*mut Mutex, c_int, *const [i64; 2]) -> c_int)(mutex, clock, time) };
    // SAFETY: the program's own time.
    unsafe {
        if !is_clock(clock) {
            return real();
        }
        if refuses_time(mutex, time) {
            return lock_now(mutex, EINVAL, caller(), real);
        }
        lock_until(mutex, deadline(clock, time), caller(), real)
    }
}

pub unsafe extern "C" fn trylock(mutex: *mut Mutex) -> c_int {
    let Some(runtime) = Runtime::try_enter() else { return try_lock(mutex) };
    let site = caller();
    explore::concerns(runtime.thread(), explore::TRY);
    sched::point(&runtime, Op::Lock, mutex as u64, site);
    let result = try_lock(mutex);
    if result == 0 || result == EOWNERDEAD {
        if result == EOWNERDEAD {
            repaired(mutex);
        }
        acquired(&runtime, mutex, site, lock_kind::TRY);
    } else {
        sched::failed_try(&runtime);
        recorder::sync(runtime.thread(), Op::LockFailed, mutex as u64, 0, site, &[result as u64]);
    }
    result
}

pub unsafe extern "C" fn unlock(mutex: *mut Mutex) -> c_int {
    // SAFETY: as above.
    let real = || unsafe { real!(fn pthread_mutex_unlock(*mut Mutex) -> c_int)(mutex) };
    let Some(runtime) = Runtime::try_enter() else { return real() };
    let site = caller();
    sched::point(&runtime, Op::Unlock, mutex as u64, site);
    let thread = runtime.thread();
    // SAFETY: the program's own mutex, held by this thread if the program is right.
    let inner = unsafe { (*mutex).is_recursive() && (*mutex).count > 1 };
    if inner {
        recorder::sync(thread, Op::UnlockInner, mutex as u64, 0, site, &[]);
        return real();
    }
    drop_hold(thread, mutex as u64);
    // SAFETY: as above. glibc marks a destroyed mutex by an impossible kind.
    if detect::on() && unsafe { (*mutex).kind } < 0 {
        thread.with_own(|own| detect::locks::invalid(own, mutex as u64, site));
        return real();
    }
    recorder::sync(thread, Op::Unlock, mutex as u64, 0, site, &[]);
    let result = real();
    sched::wake(WaitFor::Lock, mutex as u64, usize::MAX);
    result
}

unsafe extern "C" fn init(mutex: *mut Mutex, attributes: *const u8) -> c_int {
    // SAFETY: as above.
    let result = unsafe { real!(fn pthread_mutex_init(*mut Mutex, *const u8) -> c_int)(mutex, attributes) };
    initialised(mutex, caller());
    result
}

pub fn initialised(mutex: *mut Mutex, site: u64) {
    if let Some(runtime) = Runtime::try_enter() {
        // SAFETY: just initialised.
        let flags = unsafe { (*mutex).flags() };
        recorder::sync(runtime.thread(), Op::LockInit, mutex as u64, flags, site, &[]);
    }
}

pub unsafe extern "C" fn destroy(mutex: *mut Mutex) -> c_int {
    if let Some(runtime) = Runtime::try_enter() {
        recorder::sync(runtime.thread(), Op::LockDestroy, mutex as u64, 0, caller(), &[]);
    }
    // SAFETY: as above.
    unsafe { real!(fn pthread_mutex_destroy(*mut Mutex) -> c_int)(mutex) }
}

interpose! {
    pthread_mutex_timedlock => timedlock;
    pthread_mutex_clocklock => clocklock;
    pthread_mutex_init => init;
    pthread_mutex_destroy => destroy;
}

interpose_in! { "rashomon_mutex"; pthread_mutex_lock => lock; pthread_mutex_unlock => unlock; }
interpose_in! { "rashomon_polls"; pthread_mutex_trylock => trylock; }
