//! C11's `<threads.h>`: in glibc its mutexes, condition variables, threads and once flags are those of pthreads under other names
//! and with other results.

use super::mutex::Mutex;
use super::threads::Routine;
use super::{condition, mutex, once, threads};
use crate::system::real::real;
use crate::system::sys::{EBUSY, ETIMEDOUT};
use crate::system::tls::caller;
use core::ffi::c_int;
use core::sync::atomic::AtomicU32;

const ENOMEM: c_int = 12;

/// `thrd_success`, `thrd_busy`, `thrd_error`, `thrd_nomem`, `thrd_timedout`.
const fn result_of(error: c_int) -> c_int {
    match error {
        0 => 0,
        EBUSY => 1,
        ENOMEM => 3,
        ETIMEDOUT => 4,
        _ => 2,
    }
}

unsafe extern "C" fn lock(mutex: *mut Mutex) -> c_int {
    // SAFETY: glibc's `mtx_t` is pthreads' mutex, which the program has initialised.
    result_of(unsafe { mutex::lock(mutex) })
}

unsafe extern "C" fn timed_lock(mutex: *mut Mutex, time: *const [i64; 2]) -> c_int {
    // SAFETY: as in `lock`; the program's own time.
    result_of(unsafe { mutex::timedlock(mutex, time) })
}

unsafe extern "C" fn try_lock(mutex: *mut Mutex) -> c_int {
    // SAFETY: as in `lock`.
    result_of(unsafe { mutex::trylock(mutex) })
}

unsafe extern "C" fn unlock(mutex: *mut Mutex) -> c_int {
    // SAFETY: as in `lock`.
    result_of(unsafe { mutex::unlock(mutex) })
}

unsafe extern "C" fn lock_begins(mutex: *mut Mutex, kind: c_int) -> c_int {
    let site = caller();
    // SAFETY: the real function with the program's arguments.
    let result = unsafe { real!(fn mtx_init(*mut Mutex, c_int) -> c_int)(mutex, kind) };
    mutex::initialised(mutex, site);
    result
}

unsafe extern "C" fn lock_ends(mutex: *mut Mutex) {
    // SAFETY: as in `lock`: the program destroys it.
    unsafe { mutex::destroy(mutex) };
}

unsafe extern "C" fn wait(condition: *mut u8, mutex: *mut Mutex) -> c_int {
    // SAFETY: glibc's `cnd_t` is pthreads' condition; as in `lock`.
    result_of(unsafe { condition::wait(condition, mutex) })
}

unsafe extern "C" fn timed_wait(condition: *mut u8, mutex: *mut Mutex, time: *const [i64; 2]) -> c_int {
    // SAFETY: as in `wait`; the program's own time.
    result_of(unsafe { condition::timedwait(condition, mutex, time) })
}

unsafe extern "C" fn signal(condition: *mut u8) -> c_int {
    // SAFETY: as in `wait`.
    result_of(unsafe { condition::signal(condition) })
}

unsafe extern "C" fn broadcast(condition: *mut u8) -> c_int {
    // SAFETY: as in `wait`.
    result_of(unsafe { condition::broadcast(condition) })
}

unsafe extern "C" fn condition_begins(condition: *mut u8) -> c_int {
    // SAFETY: room for a condition, which has no attributes.
    result_of(unsafe { condition::init(condition, core::ptr::null()) })
}

unsafe extern "C" fn condition_ends(condition: *mut u8) {
    // SAFETY: as in `wait`: the program destroys it.
    unsafe { condition::destroy(condition) };
}

/// The routine returns an `int`: the lower half of what pthreads take for its result.
pub unsafe extern "C" fn create(thread: *mut u64, routine: Routine, argument: *mut u8) -> c_int {
    // SAFETY: the program's routine, whose result is not looked at as a pointer.
    result_of(unsafe { threads::create(thread, core::ptr::null(), routine, argument) })
}

pub unsafe extern "C" fn join(thread: u64, result: *mut c_int) -> c_int {
    let mut value: *mut u8 = core::ptr::null_mut();
    // SAFETY: a thread of the program's; our own variable.
    let error = unsafe { threads::join(thread, &mut value) };
    if error == 0 && !result.is_null() {
        // SAFETY: not null: the program wants the result there.
        unsafe { result.write(value as u64 as c_int) };
    }
    result_of(error)
}

unsafe extern "C" fn detach(thread: u64) -> c_int {
    // SAFETY: a thread of the program's.
    result_of(unsafe { threads::detach(thread) })
}

unsafe extern "C" fn once_only(control: *mut AtomicU32, routine: unsafe extern "C" fn()) {
    // SAFETY: glibc's `once_flag` is pthreads' control.
    unsafe { once::once(control, routine) };
}

interpose! {
    mtx_lock => lock;
    mtx_timedlock => timed_lock;
    mtx_unlock => unlock;
    mtx_init => lock_begins;
    mtx_destroy => lock_ends;
    cnd_wait => wait;
    cnd_timedwait => timed_wait;
    cnd_signal => signal;
    cnd_broadcast => broadcast;
    cnd_init => condition_begins;
    cnd_destroy => condition_ends;
    thrd_detach => detach;
    call_once => once_only;
}

interpose_in! { "rashomon_polls"; mtx_trylock => try_lock; }
