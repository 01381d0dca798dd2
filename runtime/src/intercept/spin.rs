//! `pthread_spin_*`. A thread that would spin blocks in serial mode.

use super::lock_common::{acquire_by_trying, drop_hold, hold, request};
use crate::record::recorder;
use crate::serial::clock::NEVER;
use crate::serial::explore;
use crate::serial::sched::{self, WaitFor};
use crate::serial::standstill::For as Wait;
use crate::system::real::real;
use crate::system::sys::EBUSY;
use crate::system::thread::{Runtime, Thread};
use crate::system::tls::caller;
use crate::system::{config, mappings};
use core::ffi::c_int;
use rashomon_abi::record::{Op, lock_kind};

type Lock = *mut c_int;

/// The number of the initialised locks that other processes may see: nearly always none, and only then their places are asked
/// for.
static SHARED: core::sync::atomic::AtomicU32 = core::sync::atomic::AtomicU32::new(0);

fn is_shared(lock: Lock) -> bool {
    SHARED.load(core::sync::atomic::Ordering::Relaxed) != 0 && mappings::is_shared(lock as u64)
}

fn try_lock(lock: Lock) -> c_int {
    // SAFETY: the program's own lock.
    unsafe { real!(fn pthread_spin_trylock(Lock) -> c_int)(lock) }
}

fn acquired(thread: &Thread, lock: Lock, site: u64, try_flag: u16) {
    thread.spins.set(0);
    hold(thread, lock as u64, false);
    recorder::sync(thread, Op::Lock, lock as u64, lock_kind::SPIN | try_flag, site, &[]);
}

unsafe extern "C" fn lock(lock: Lock) -> c_int {
    // SAFETY: the program's own lock, which it has initialised.
    let real = || unsafe { real!(fn pthread_spin_lock(Lock) -> c_int)(lock) };
    let Some(runtime) = Runtime::try_enter() else { return real() };
    let site = caller();
    sched::point(&runtime, Op::Lock, lock as u64, site);
    if config::serial() && !is_shared(lock) {
        let _ = acquire_by_trying(&runtime, lock as u64, false, NEVER, site, || try_lock(lock));
    } else if try_lock(lock) == EBUSY {
        request(&runtime, Wait::lock(false, lock_kind::SPIN, lock as u64, site), !is_shared(lock), real);
    }
    acquired(runtime.thread(), lock, site, 0);
    0
}

unsafe extern "C" fn trylock(lock: Lock) -> c_int {
    let Some(runtime) = Runtime::try_enter() else { return try_lock(lock) };
    let site = caller();
    explore::concerns(runtime.thread(), explore::TRY);
    sched::point(&runtime, Op::Lock, lock as u64, site);
    let result = try_lock(lock);
    if result == 0 {
        acquired(runtime.thread(), lock, site, lock_kind::TRY);
    } else {
        sched::failed_try(&runtime);
        recorder::sync(runtime.thread(), Op::LockFailed, lock as u64, 0, site, &[result as u64]);
    }
    result
}

unsafe extern "C" fn unlock(lock: Lock) -> c_int {
    // SAFETY: the program's own lock, which it says that it holds.
    let real = || unsafe { real!(fn pthread_spin_unlock(Lock) -> c_int)(lock) };
    let Some(runtime) = Runtime::try_enter() else { return real() };
    let site = caller();
    sched::point(&runtime, Op::Unlock, lock as u64, site);
    let thread = runtime.thread();
    drop_hold(thread, lock as u64);
    recorder::sync(thread, Op::Unlock, lock as u64, 0, site, &[]);
    let result = real();
    sched::wake(WaitFor::Lock, lock as u64, usize::MAX);
    result
}

unsafe extern "C" fn init(lock: Lock, shared: c_int) -> c_int {
    // SAFETY: room for a lock, of the program's own.
    let result = unsafe { real!(fn pthread_spin_init(Lock, c_int) -> c_int)(lock, shared) };
    if let Some(runtime) = Runtime::try_enter() {
        if shared != 0 {
            SHARED.fetch_add(1, core::sync::atomic::Ordering::Relaxed);
        }
        recorder::sync(runtime.thread(), Op::LockInit, lock as u64, lock_kind::SPIN, caller(), &[]);
    }
    result
}

unsafe extern "C" fn destroy(lock: Lock) -> c_int {
    if let Some(runtime) = Runtime::try_enter() {
        recorder::sync(runtime.thread(), Op::LockDestroy, lock as u64, 0, caller(), &[]);
    }
    // SAFETY: the program's own lock, which nobody holds by the function's contract.
    unsafe { real!(fn pthread_spin_destroy(Lock) -> c_int)(lock) }
}

interpose! {
    pthread_spin_lock => lock;
    pthread_spin_unlock => unlock;
    pthread_spin_init => init;
    pthread_spin_destroy => destroy;
}

interpose_in! { "rashomon_polls"; pthread_spin_trylock => trylock; }
