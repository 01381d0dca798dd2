//! `sem_*`. The count stays in the program's semaphore; waiting is done by trying. A handler ends a wait.
//!
//! A named semaphore is recorded with the count it has when it is opened; it is shared between processes, so that threads wait
//! for it outside the model.

use super::lock_common::{deadline, is_clock, is_time};
use crate::record::recorder;
use crate::serial::clock::{NEVER, REALTIME};
use crate::serial::sched::{self, Wait, WaitFor, Wake};
use crate::serial::standstill;
use crate::system::real::{errno, real, set_errno};
use crate::system::sys::{EINTR, ETIMEDOUT};
use crate::system::thread::Runtime;
use crate::system::tls::caller;
use crate::system::{config, mappings};
use core::ffi::{c_char, c_int};
use rashomon_abi::record::Op;
use rashomon_abi::record::semaphore::NAMED;

const EAGAIN: c_int = 11;
const EINVAL: c_int = 22;

/// glibc's `sem_t`.
#[repr(C)]
pub struct Semaphore {
    value: u64,
    shared: c_int,
}

fn is_shared(semaphore: *mut Semaphore) -> bool {
    // SAFETY: the program's own semaphore; set when it was initialised.
    unsafe { (*semaphore).shared != 0 && mappings::is_shared(semaphore as u64) }
}

/// 0, or what is wrong.
fn try_take(semaphore: *mut Semaphore) -> c_int {
    // SAFETY: the program's own semaphore.
    match unsafe { real!(fn sem_trywait(*mut Semaphore) -> c_int)(semaphore) } {
        0 => 0,
        _ => errno(),
    }
}

/// Records how it went, and says it as libc does.
fn done(runtime: &Runtime, semaphore: *mut Semaphore, site: u64, error: c_int) -> c_int {
    let thread = runtime.thread();
    if error == 0 {
        thread.spins.set(0);
        recorder::sync(thread, Op::SemaphoreWait, semaphore as u64, 0, site, &[]);
        return 0;
    }
    recorder::sync(thread, Op::SemaphoreFailed, semaphore as u64, 0, site, &[error as u64]);
    set_errno(error);
    -1
}

/// Serial mode: waits in the model.
fn take(runtime: &Runtime, semaphore: *mut Semaphore, until: u64, site: u64) -> c_int {
    let wait = Wait::on(WaitFor::Semaphore, semaphore as u64).until(until).interruptible();
    let mut last = Wake::Nothing;
    loop {
        match (try_take(semaphore), last) {
            (EAGAIN, Wake::TimedOut) => return ETIMEDOUT,
            (EAGAIN, Wake::Signal) => return EINTR as c_int,
            (EAGAIN, _) => last = sched::block(runtime, wait, site),
            (result, _) => return result,
        }
    }
}

fn wait_until(semaphore: *mut Semaphore, until: u64, site: u64, real: impl FnOnce() -> c_int) -> c_int {
    let Some(runtime) = Runtime::try_enter() else { return real() };
    sched::point(&runtime, Op::SemaphoreWait, semaphore as u64, site);
    let saved = errno();
    let error = if config::serial() && !is_shared(semaphore) {
        take(&runtime, semaphore, until, site)
    } else {
        match try_take(semaphore) {
            EAGAIN => {
                let result = if until == NEVER && !is_shared(semaphore) {
                    standstill::during(&runtime, standstill::For::on(Op::SemaphoreWait, semaphore as u64, site), real)
                } else {
                    sched::external(&runtime, real)
                };
                if result == 0 { 0 } else { errno() }
            }
            result => result,
        }
    };
    set_errno(saved);
    done(&runtime, semaphore, site, error)
}

/// # Safety
/// `time` points to a timespec.
unsafe fn timed(
    semaphore: *mut Semaphore,
    clock: c_int,
    time: *const [i64; 2],
    site: u64,
    real: impl FnOnce() -> c_int,
) -> c_int {
    // SAFETY: by the contract.
    let (until, valid) = unsafe { (deadline(clock, time), is_time(time)) };
    if !valid || !is_clock(clock) {
        let Some(runtime) = Runtime::try_enter() else { return real() };
        sched::point(&runtime, Op::SemaphoreWait, semaphore as u64, site);
        return done(&runtime, semaphore, site, EINVAL);
    }
    wait_until(semaphore, until, site, real)
}

unsafe extern "C" fn wait(semaphore: *mut Semaphore) -> c_int {
    // SAFETY: the real function with the program's semaphore.
    wait_until(semaphore, NEVER, caller(), || unsafe { real!(fn sem_wait(*mut Semaphore) -> c_int)(semaphore) })
}

unsafe extern "C" fn timedwait(semaphore: *mut Semaphore, time: *const [i64; 2]) -> c_int {
    // SAFETY: the program's semaphore and time, here and behind.
    unsafe {
        timed(semaphore, REALTIME, time, caller(), || {
            real!(fn sem_timedwait(*mut Semaphore, *const [i64; 2]) -> c_int)(semaphore, time)
        })
    }
}

unsafe extern "C" fn clockwait(semaphore: *mut Semaphore, clock: c_int, time: *const [i64; 2]) -> c_int {
    // SAFETY: as in `timedwait`; a clock that is none is refused.
    unsafe {
        timed(semaphore, clock, time, caller(), || {
            real!(fn sem_clockwait(*mut Semaphore, c_int, *const [i64; 2]) -> c_int)(semaphore, clock, time)
        })
    }
}

unsafe extern "C" fn trywait(semaphore: *mut Semaphore) -> c_int {
    let Some(runtime) = Runtime::try_enter() else {
        // SAFETY: as in `wait`.
        return unsafe { real!(fn sem_trywait(*mut Semaphore) -> c_int)(semaphore) };
    };
    let site = caller();
    sched::point(&runtime, Op::SemaphoreWait, semaphore as u64, site);
    let saved = errno();
    let error = try_take(semaphore);
    set_errno(saved);
    if error != 0 {
        sched::failed_try(&runtime);
    }
    done(&runtime, semaphore, site, error)
}

unsafe extern "C" fn post(semaphore: *mut Semaphore) -> c_int {
    // SAFETY: as in `wait`.
    let real = || unsafe { real!(fn sem_post(*mut Semaphore) -> c_int)(semaphore) };
    let Some(runtime) = Runtime::try_enter() else { return real() };
    let site = caller();
    sched::point(&runtime, Op::SemaphorePost, semaphore as u64, site);
    recorder::sync(runtime.thread(), Op::SemaphorePost, semaphore as u64, 0, site, &[]);
    let result = real();
    sched::wake(WaitFor::Semaphore, semaphore as u64, usize::MAX);
    result
}

unsafe extern "C" fn init(semaphore: *mut Semaphore, shared: c_int, value: u32) -> c_int {
    // SAFETY: room for a semaphore.
    let result = unsafe { real!(fn sem_init(*mut Semaphore, c_int, u32) -> c_int)(semaphore, shared, value) };
    if result == 0
        && let Some(runtime) = Runtime::try_enter()
    {
        recorder::sync(runtime.thread(), Op::SemaphoreInit, semaphore as u64, 0, caller(), &[value as u64]);
    }
    result
}

/// The real one is variadic; on x86-64 it takes these arguments as any function does, and looks at the last two only with
/// `O_CREAT`.
unsafe extern "C" fn open(name: *const c_char, flags: c_int, mode: u32, value: u32) -> *mut Semaphore {
    let site = caller();
    // SAFETY: the program's name; what the flags do not ask for is not read.
    let semaphore = unsafe { real!(fn sem_open(*const c_char, c_int, u32, u32) -> *mut Semaphore)(name, flags, mode, value) };
    if !semaphore.is_null()
        && let Some(runtime) = Runtime::try_enter()
    {
        let mut count: c_int = 0;
        // Not `value`: whoever opened it before may have posted and taken.
        // SAFETY: the semaphore that was opened, and our own variable.
        let read = unsafe { real!(fn sem_getvalue(*mut Semaphore, *mut c_int) -> c_int)(semaphore, &mut count) };
        let count = if read == 0 { count.max(0) as u64 } else { 0 };
        recorder::sync(runtime.thread(), Op::SemaphoreInit, semaphore as u64, NAMED, site, &[count]);
    }
    semaphore
}

unsafe extern "C" fn close(semaphore: *mut Semaphore) -> c_int {
    let site = caller();
    // SAFETY: a semaphore that the program opened.
    let result = unsafe { real!(fn sem_close(*mut Semaphore) -> c_int)(semaphore) };
    if result == 0
        && let Some(runtime) = Runtime::try_enter()
    {
        recorder::sync(runtime.thread(), Op::SemaphoreDestroy, semaphore as u64, NAMED, site, &[]);
    }
    result
}

unsafe extern "C" fn destroy(semaphore: *mut Semaphore) -> c_int {
    if let Some(runtime) = Runtime::try_enter() {
        recorder::sync(runtime.thread(), Op::SemaphoreDestroy, semaphore as u64, 0, caller(), &[]);
    }
    // SAFETY: the program destroys its semaphore.
    unsafe { real!(fn sem_destroy(*mut Semaphore) -> c_int)(semaphore) }
}

interpose! {
    sem_wait => wait;
    sem_timedwait => timedwait;
    sem_clockwait => clockwait;
    sem_trywait => trywait;
    sem_post => post;
    sem_init => init;
    sem_destroy => destroy;
    sem_open => open;
    sem_close => close;
}
