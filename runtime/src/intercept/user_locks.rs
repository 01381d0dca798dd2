//! Locks of the program's own, which it tells of itself: `__tsan_mutex_*` and `AnnotateRWLock*`.
//!
//! When recording, an annotated operation is a lock event around the atomics that the lock is made of, which stay visible: the
//! scheduler has to know when it spins. When detecting, it is what ThreadSanitizer takes it for: between the calls around an
//! operation the thread's accesses and synchronisation do not count, and only the lock's own order does.

use super::lock_common::{drop_hold, hold};
use crate::detect;
use crate::detect::locks::{self, Taking, flag};
use crate::detect::{ignores, lock_order, misuse, objects, places};
use crate::record::recorder;
use crate::report::options;
use crate::serial::sched;
use crate::system::sys;
use crate::system::thread::Runtime;
use crate::system::tls::caller;
use core::ffi::c_int;
use rashomon_abi::record::{Op, lock_kind};

/// The thread, if annotations count.
fn enter() -> Option<Runtime> {
    if detect::on() && !options::get().enable_annotations {
        return None;
    }
    Runtime::try_enter()
}

fn kind_of(flags: u32) -> u32 {
    lock_kind::OTHER as u32 | (flags & flag::CREATION) << objects::flag::ANNOTATED
}

fn lock_lives(op: Op, lock: u64, flags: u32) {
    let Some(runtime) = enter() else { return };
    let (thread, site) = (runtime.thread(), caller());
    match op {
        _ if !detect::on() => {
            recorder::sync(thread, op, lock, lock_kind::OTHER, site, &[]);
        }
        Op::LockInit => thread.with_own(|own| locks::created(own, lock, kind_of(flags), site)),
        _ => thread.with_own(|own| locks::destroyed(own, lock, flags, site)),
    }
}

unsafe extern "C" fn create(lock: u64, flags: u32) {
    lock_lives(Op::LockInit, lock, flags);
}

unsafe extern "C" fn destroy(lock: u64, flags: u32) {
    lock_lives(Op::LockDestroy, lock, flags);
}

fn locked(lock: u64, flags: u32, recursion: c_int, ordered: bool) {
    let Some(runtime) = enter() else { return };
    let (site, thread) = (caller(), runtime.thread());
    let shared = flags & flag::READ_LOCK != 0;
    if detect::on() {
        if flags & flag::TRY_LOCK_FAILED == 0 {
            let times = if flags & flag::RECURSIVE_LOCK != 0 { recursion.max(1) as u32 } else { 1 };
            let how = Taking { shared, tries: flags & flag::TRY_LOCK != 0, times, kind: kind_of(flags), ordered };
            thread.with_own(|own| locks::acquired(own, lock, how, site));
        }
        return;
    }
    let aux = lock_kind::OTHER | if flags & flag::TRY_LOCK != 0 { lock_kind::TRY } else { 0 };
    sched::point(&runtime, if shared { Op::LockShared } else { Op::Lock }, lock, site);
    if flags & flag::TRY_LOCK_FAILED != 0 {
        sched::failed_try(&runtime);
        recorder::sync(thread, Op::LockFailed, lock, aux, site, &[sys::EBUSY as u64]);
    } else if thread.held.iter().any(|held| held.lock == lock && held.shared == shared) {
        hold(thread, lock, shared);
        recorder::sync(thread, Op::LockAgain, lock, aux | lock_kind::RECURSIVE, site, &[]);
    } else {
        thread.spins.set(0);
        hold(thread, lock, shared);
        recorder::sync(thread, if shared { Op::LockShared } else { Op::Lock }, lock, aux, site, &[]);
    }
}

fn unlocked(lock: u64, shared: bool, whole: bool) -> c_int {
    let Some(runtime) = enter() else { return 0 };
    let (site, thread) = (caller(), runtime.thread());
    if detect::on() {
        let count = thread.with_own(|own| locks::released(own, lock, shared, !whole as u32, site));
        return if shared { 0 } else { count as c_int };
    }
    sched::point(&runtime, Op::Unlock, lock, site);
    drop_hold(thread, lock);
    let op = match (thread.held.iter().any(|held| held.lock == lock), shared) {
        (true, _) => Op::UnlockInner,
        (_, true) => Op::UnlockShared,
        _ => Op::Unlock,
    };
    recorder::sync(thread, op, lock, 0, site, &[]);
    0
}

/// What follows belongs to the lock's own works.
fn works_begin() {
    if detect::on()
        && let Some(runtime) = enter()
    {
        runtime.with_own(|own| ignores::accesses_begin(own, None));
        runtime.with_own(|own| ignores::sync_begin(own, None));
    }
}

fn works_end() {
    if detect::on()
        && let Some(runtime) = enter()
    {
        runtime.with_own(ignores::sync_end);
        runtime.with_own(ignores::accesses_end);
    }
}

unsafe extern "C" fn pre_lock(lock: u64, flags: u32) {
    if detect::on()
        && flags & flag::TRY_LOCK == 0
        && let Some(runtime) = enter()
    {
        let (thread, site) = (runtime.thread(), caller());
        let stack = thread.with_own(|own| places::call_stack(own, site));
        let object = objects::get(lock, || stack);
        if flags & flag::READ_LOCK != 0 || object.recursion.get() == 0 || object.owner.get() != thread.number.get() + 1 {
            thread.with_own(|own| lock_order::acquiring(own, object, stack));
        }
    }
    works_begin();
}

unsafe extern "C" fn post_lock(lock: u64, flags: u32, recursion: c_int) {
    works_end();
    locked(lock, flags, recursion, true);
}

unsafe extern "C" fn pre_unlock(lock: u64, flags: u32) -> c_int {
    let count = unlocked(lock, flags & flag::READ_LOCK != 0, flags & flag::RECURSIVE_UNLOCK != 0);
    works_begin();
    count
}

unsafe extern "C" fn post_unlock(_lock: u64, _flags: u32) {
    works_end();
}

unsafe extern "C" fn pre_signal(_object: u64, _flags: u32) {
    works_begin();
}

unsafe extern "C" fn post_signal(_object: u64, _flags: u32) {
    works_end();
}

/// The lock's works call the program back.
unsafe extern "C" fn pre_divert(_object: u64, _flags: u32) {
    works_end();
}

unsafe extern "C" fn post_divert(_object: u64, _flags: u32) {
    works_begin();
}

unsafe extern "C" fn check_none_held() {
    if detect::on()
        && let Some(runtime) = enter()
    {
        let thread = runtime.thread();
        thread.with_own(|own| {
            let stack = places::call_stack(own, caller());
            misuse::check_none_held(own, stack);
        });
    }
}

/// `AnnotateRWLockCreate(file, line, lock)`
unsafe extern "C" fn lock_created(_file: *const u8, _line: c_int, lock: u64) {
    lock_lives(Op::LockInit, lock, flag::WRITE_REENTRANT);
}

unsafe extern "C" fn static_lock_created(_file: *const u8, _line: c_int, lock: u64) {
    lock_lives(Op::LockInit, lock, flag::WRITE_REENTRANT | flag::LINKER_INIT);
}

unsafe extern "C" fn lock_destroyed(_file: *const u8, _line: c_int, lock: u64) {
    lock_lives(Op::LockDestroy, lock, 0);
}

unsafe extern "C" fn lock_acquired(_file: *const u8, _line: c_int, lock: u64, exclusive: u64) {
    locked(lock, if exclusive == 0 { flag::READ_LOCK } else { 0 }, 1, false);
}

unsafe extern "C" fn lock_released(_file: *const u8, _line: c_int, lock: u64, exclusive: u64) {
    unlocked(lock, exclusive == 0, false);
}

interpose! {
    __tsan_mutex_create => create;
    __tsan_mutex_destroy => destroy;
    __tsan_mutex_pre_lock => pre_lock;
    __tsan_mutex_post_lock => post_lock;
    __tsan_mutex_pre_unlock => pre_unlock;
    __tsan_mutex_post_unlock => post_unlock;
    __tsan_mutex_pre_signal => pre_signal;
    __tsan_mutex_post_signal => post_signal;
    __tsan_mutex_pre_divert => pre_divert;
    __tsan_mutex_post_divert => post_divert;
    __tsan_check_no_mutexes_held => check_none_held;
    AnnotateRWLockCreate => lock_created;
    AnnotateRWLockCreateStatic => static_lock_created;
    AnnotateRWLockDestroy => lock_destroyed;
    AnnotateRWLockAcquired => lock_acquired;
    AnnotateRWLockReleased => lock_released;
}
