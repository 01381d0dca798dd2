//! `pthread_cond_*`, under the symbol version that is not the old incompatible one.
//!
//! In serial mode the waiting is modelled: the program's condition variable is never touched, as no uninstrumented code of this
//! process can wait on it either.

use super::gated_wait::{self, Own};
use super::lock_common::{deadline, drop_hold, is_clock, is_time};
use super::mutex::{Mutex, reacquire};
use super::queue::{self, Outcome};
use crate::detect;
use crate::record::recorder;
use crate::serial::cancellation;
use crate::serial::clock::{MONOTONIC, NEVER, REALTIME};
use crate::serial::sched::{self, Wait, WaitFor};
use crate::serial::{explore, standstill};
use crate::system::real::real;
use crate::system::sys::ETIMEDOUT;
use crate::system::thread::Runtime;
use crate::system::tls::caller;
use crate::system::{config, mappings};
use core::ffi::c_int;
use rashomon_abi::record::{CONDITION_DESTROYED, Op};

/// The part of glibc's `pthread_cond_t` that tells its clock: bit 1 of `__wrefs`.
fn clock_of(condition: *mut u8) -> c_int {
    // SAFETY: the program's own condition variable, of 48 bytes.
    if unsafe { *condition.add(36) } & 2 != 0 { MONOTONIC } else { REALTIME }
}

/// Aux of its operations. glibc marks a destroyed condition variable by bit 2 of the same field, which every initialiser clears.
fn aux_of(condition: *mut u8) -> u16 {
    // SAFETY: as above.
    if unsafe { *condition.add(36) } & 4 != 0 { CONDITION_DESTROYED } else { 0 }
}

/// Other processes may wait there: bit 0 of the same field.
fn is_shared(condition: *mut u8) -> bool {
    // SAFETY: as above.
    let flags = unsafe { *condition.add(36) };
    flags & 1 != 0 && mappings::is_shared(condition as u64)
}

/// A wait that cancellation ends: the thread has the mutex again when its own cleanup begins.
struct Cancelled {
    condition: *mut u8,
    mutex: *mut Mutex,
    site: u64,
    own: Own,
}

unsafe extern "C" fn cancelled(wait: *mut Cancelled) {
    // SAFETY: pushed by `with_cleanup`, whose frame is being left.
    let wait = unsafe { &*wait };
    wait.own.give_up_for(wait.mutex);
    if let Some(runtime) = Runtime::try_enter() {
        super::lock_common::hold(runtime.thread(), wait.mutex as u64, false);
        let arguments = [wait.mutex as u64, 0, 0];
        recorder::sync(runtime.thread(), Op::CondWaitEnd, wait.condition as u64, 0, wait.site, &arguments);
    }
}

/// Runs a wait with a handler for its cancellation.
fn with_cleanup(condition: *mut u8, mutex: *mut Mutex, (site, own): (u64, Own), real: impl FnOnce() -> c_int) -> c_int {
    let mut wait = Cancelled { condition, mutex, site, own };
    // `struct _pthread_cleanup_buffer`: routine, argument, kind of cancellation, the one before.
    let mut buffer = [0u64; 4];
    // SAFETY: libc's functions for handlers of one frame; buffer and argument stay until the handler is popped, or has run.
    unsafe {
        real!(fn _pthread_cleanup_push(*mut u64, unsafe extern "C" fn(*mut Cancelled), *mut Cancelled) -> ())(
            buffer.as_mut_ptr(),
            cancelled,
            &raw mut wait,
        );
        let result = real();
        real!(fn _pthread_cleanup_pop(*mut u64, c_int) -> ())(buffer.as_mut_ptr(), 0);
        result
    }
}

/// The clock and the time when a wait ends at the latest.
type Limit = Option<(c_int, [i64; 2])>;

fn wait_until(
    condition: *mut u8,
    mutex: *mut Mutex,
    limit: Limit,
    site: u64,
    mut real: impl FnMut(*mut Mutex, &[i64; 2]) -> c_int,
) -> c_int {
    let (clock, time) = limit.unwrap_or_default();
    let Some(runtime) = Runtime::try_enter() else { return real(mutex, &time) };
    let thread = runtime.thread();
    explore::concerns(thread, mutex as u64);
    sched::point(&runtime, Op::CondWaitBegin, condition as u64, site);
    drop_hold(thread, mutex as u64);
    recorder::sync(thread, Op::CondWaitBegin, condition as u64, aux_of(condition), site, &[mutex as u64]);
    if config::gating() && !is_shared(condition) {
        let real = |stand, time: &[i64; 2]| with_cleanup(condition, mutex, (site, Own::of(condition)), || real(stand, time));
        return gated_wait::wait(&runtime, (condition, mutex), limit, site, real);
    }
    // SAFETY: a local time.
    let until = if limit.is_some() { unsafe { deadline(clock, &raw const time) } } else { NEVER };
    let mut real = |mutex| real(mutex, &time);
    if !config::serial() || is_shared(condition) {
        let wait = || if detect::on() { with_cleanup(condition, mutex, (site, Own::NONE), || real(mutex)) } else { real(mutex) };
        let result = if until == NEVER && !is_shared(condition) {
            standstill::during(&runtime, standstill::For::on(Op::CondWaitEnd, condition as u64, site), wait)
        } else {
            sched::external(&runtime, wait)
        };
        super::lock_common::hold(thread, mutex as u64, false);
        recorder::sync(thread, Op::CondWaitEnd, condition as u64, 0, site, &[mutex as u64, result as u64, 0]);
        return result;
    }
    queue::join(thread, condition as u64);
    // SAFETY: the real function with the program's mutex, which this thread holds.
    let error = unsafe { real!(fn pthread_mutex_unlock(*mut Mutex) -> c_int)(mutex) };
    if error != 0 {
        thread.condition.set(0);
        recorder::sync(thread, Op::CondWaitEnd, condition as u64, 0, site, &[mutex as u64, error as u64, 0]);
        return error;
    }
    sched::wake(WaitFor::Lock, mutex as u64, usize::MAX);
    explore::concerns(thread, mutex as u64);
    sched::position(&runtime, Op::CondWaitEnd, condition as u64, site);
    let outcome = queue::stand(&runtime, Wait::on(WaitFor::Condition, condition as u64).until(until), site);
    let mut result = if outcome == Outcome::TimedOut { ETIMEDOUT } else { 0 };
    let error = reacquire(&runtime, mutex, site);
    if error != 0 {
        result = error;
    }
    recorder::sync(thread, Op::CondWaitEnd, condition as u64, 0, site, &[mutex as u64, result as u64, thread.woken_by.get()]);
    if outcome == Outcome::Cancelled {
        cancellation::test(&runtime);
    }
    result
}

pub unsafe extern "C" fn wait(condition: *mut u8, mutex: *mut Mutex) -> c_int {
    // SAFETY: the real function with the program's arguments, here and below.
    wait_until(condition, mutex, None, caller(), |mutex, _| unsafe {
        real!("GLIBC_2.3.2" fn pthread_cond_wait(*mut u8, *mut Mutex) -> c_int)(condition, mutex)
    })
}

const EINVAL: c_int = 22;

pub unsafe extern "C" fn timedwait(condition: *mut u8, mutex: *mut Mutex, time: *const [i64; 2]) -> c_int {
    // SAFETY: the program's own time.
    if unsafe { !is_time(time) } {
        return EINVAL;
    }
    // SAFETY: as above.
    let limit = Some((clock_of(condition), unsafe { *time }));
    // SAFETY: as above.
    wait_until(condition, mutex, limit, caller(), |mutex, time| unsafe {
        real!("GLIBC_2.3.2" fn pthread_cond_timedwait(*mut u8, *mut Mutex, *const [i64; 2]) -> c_int)(condition, mutex, time)
    })
}

unsafe extern "C" fn clockwait(condition: *mut u8, mutex: *mut Mutex, clock: c_int, time: *const [i64; 2]) -> c_int {
    // SAFETY: the program's own time.
    if unsafe { !is_time(time) } || !is_clock(clock) {
        return EINVAL;
    }
    // SAFETY: as above.
    let limit = Some((clock, unsafe { *time }));
    // SAFETY: as above.
    wait_until(condition, mutex, limit, caller(), |mutex, time| unsafe {
        real!(fn pthread_cond_clockwait(*mut u8, *mut Mutex, c_int, *const [i64; 2]) -> c_int)(condition, mutex, clock, time)
    })
}

fn notify(condition: *mut u8, op: Op, count: usize, site: u64, real: impl FnOnce() -> c_int) -> c_int {
    let Some(runtime) = Runtime::try_enter() else { return real() };
    sched::point(&runtime, op, condition as u64, site);
    let sequence = recorder::sync(runtime.thread(), op, condition as u64, aux_of(condition), site, &[]);
    if config::gating() && !is_shared(condition) {
        return gated_wait::signal(condition, real);
    }
    if !config::serial() || is_shared(condition) {
        return real();
    }
    queue::serve(WaitFor::Condition, condition as u64, count, 0, sequence, |_| true);
    0
}

pub unsafe extern "C" fn signal(condition: *mut u8) -> c_int {
    // SAFETY: as above.
    notify(condition, Op::CondSignal, 1, caller(), || unsafe {
        real!("GLIBC_2.3.2" fn pthread_cond_signal(*mut u8) -> c_int)(condition)
    })
}

pub unsafe extern "C" fn broadcast(condition: *mut u8) -> c_int {
    // SAFETY: as above.
    notify(condition, Op::CondBroadcast, usize::MAX, caller(), || unsafe {
        real!("GLIBC_2.3.2" fn pthread_cond_broadcast(*mut u8) -> c_int)(condition)
    })
}

pub unsafe extern "C" fn init(condition: *mut u8, attributes: *const u8) -> c_int {
    if let Some(runtime) = Runtime::try_enter() {
        recorder::sync(runtime.thread(), Op::CondInit, condition as u64, 0, caller(), &[]);
    }
    // SAFETY: as above.
    unsafe { real!("GLIBC_2.3.2" fn pthread_cond_init(*mut u8, *const u8) -> c_int)(condition, attributes) }
}

pub unsafe extern "C" fn destroy(condition: *mut u8) -> c_int {
    if let Some(runtime) = Runtime::try_enter() {
        recorder::sync(runtime.thread(), Op::CondDestroy, condition as u64, aux_of(condition), caller(), &[]);
    }
    // SAFETY: as above.
    unsafe { real!("GLIBC_2.3.2" fn pthread_cond_destroy(*mut u8) -> c_int)(condition) }
}

interpose! {
    pthread_cond_wait => wait;
    pthread_cond_timedwait => timedwait;
    pthread_cond_clockwait => clockwait;
    pthread_cond_signal => signal;
    pthread_cond_broadcast => broadcast;
    pthread_cond_init => init;
    pthread_cond_destroy => destroy;
}
