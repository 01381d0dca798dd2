//! `flockfile` and its kin: the recursive lock of a standard stream. The C library's own locking of streams stays unseen.

use super::lock_common::{acquire_by_trying, drop_hold, hold};
use crate::record::recorder;
use crate::serial::clock::NEVER;
use crate::serial::sched::{self, WaitFor};
use crate::system::config;
use crate::system::real::real;
use crate::system::sys::EBUSY;
use crate::system::thread::Runtime;
use crate::system::tls::caller;
use core::ffi::c_int;
use rashomon_abi::record::{Op, lock_kind};

const FLAGS: u16 = lock_kind::OTHER | lock_kind::RECURSIVE;

/// How often its holder has locked a stream: second word of glibc's `_IO_lock_t`, to which the stream points at offset 136.
///
/// # Safety
/// By the holder.
unsafe fn depth(stream: *mut u8) -> c_int {
    // SAFETY: by the contract.
    unsafe { *(*stream.add(136).cast::<*const c_int>()).add(1) }
}

fn try_lock(stream: *mut u8) -> c_int {
    // SAFETY: the program's own stream.
    if unsafe { real!(fn ftrylockfile(*mut u8) -> c_int)(stream) } == 0 { 0 } else { EBUSY }
}

fn acquired(runtime: &Runtime, stream: *mut u8, try_flag: u16, site: u64) {
    let thread = runtime.thread();
    thread.spins.set(0);
    // SAFETY: held by this thread.
    if unsafe { depth(stream) } > 1 {
        recorder::sync(thread, Op::LockAgain, stream as u64, FLAGS, site, &[]);
    } else {
        hold(thread, stream as u64, false);
        recorder::sync(thread, Op::Lock, stream as u64, FLAGS | try_flag, site, &[]);
    }
}

unsafe extern "C" fn lock(stream: *mut u8) {
    // SAFETY: the real function with the program's argument, here and below.
    let real = || unsafe { real!(fn flockfile(*mut u8) -> ())(stream) };
    let Some(runtime) = Runtime::try_enter() else { return real() };
    let site = caller();
    sched::point(&runtime, Op::Lock, stream as u64, site);
    if config::serial() {
        let _ = acquire_by_trying(&runtime, stream as u64, false, NEVER, site, || try_lock(stream));
    } else if try_lock(stream) != 0 {
        recorder::sync(runtime.thread(), Op::LockRequest, stream as u64, 0, site, &[]);
        sched::external(&runtime, real);
    }
    acquired(&runtime, stream, 0, site);
}

unsafe extern "C" fn try_once(stream: *mut u8) -> c_int {
    // SAFETY: as above.
    let real = || unsafe { real!(fn ftrylockfile(*mut u8) -> c_int)(stream) };
    let Some(runtime) = Runtime::try_enter() else { return real() };
    let site = caller();
    sched::point(&runtime, Op::Lock, stream as u64, site);
    let result = real();
    if result == 0 {
        acquired(&runtime, stream, lock_kind::TRY, site);
    } else {
        recorder::sync(runtime.thread(), Op::LockFailed, stream as u64, 0, site, &[EBUSY as u64]);
        sched::failed_try(&runtime);
    }
    result
}

unsafe extern "C" fn unlock(stream: *mut u8) {
    // SAFETY: as above.
    let real = || unsafe { real!(fn funlockfile(*mut u8) -> ())(stream) };
    let Some(runtime) = Runtime::try_enter() else { return real() };
    let site = caller();
    sched::point(&runtime, Op::Unlock, stream as u64, site);
    let thread = runtime.thread();
    // SAFETY: held by this thread, if the program is right.
    if unsafe { depth(stream) } > 1 {
        recorder::sync(thread, Op::UnlockInner, stream as u64, 0, site, &[]);
        return real();
    }
    drop_hold(thread, stream as u64);
    recorder::sync(thread, Op::Unlock, stream as u64, 0, site, &[]);
    real();
    sched::wake(WaitFor::Lock, stream as u64, usize::MAX);
}

interpose! {
    flockfile => lock;
    ftrylockfile => try_once;
    funlockfile => unlock;
}
