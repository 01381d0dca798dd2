//! The rest of the interface that annotated programs and language runtimes call: what says something about order or locks is recorded, the rest is there to link.
//!
//! A lock of the program's own (`__tsan_mutex_*`) is a lock event around the atomics that it is made of, which stay visible: the scheduler has to know when it
//! spins. Fibres are not told apart: everything belongs to the thread that runs it.
//!
//! The names that a program *defines* for the ThreadSanitizer runtime to call (`__tsan_on_report`, `__tsan_default_options`, …) are not defined here.

use super::lock_common::{drop_hold, hold};
use super::queue;
use crate::sched::{self, Wait, WaitFor};
use crate::thread::Runtime;
use crate::tls::{caller, hot};
use crate::{config, recorder, sys};
use core::ffi::c_int;
use core::sync::atomic::{AtomicU32, Ordering::*};
use rashomon_abi::record::{Op, lock_kind, sync_source};

/// Flags of `__tsan_mutex_*` (`sanitizer/tsan_interface.h`).
mod flag {
    pub const READ_LOCK: u32 = 1 << 3;
    pub const TRY_LOCK: u32 = 1 << 4;
    pub const TRY_LOCK_FAILED: u32 = 1 << 5;
}

fn order(op: Op, object: u64) {
    if let Some(runtime) = Runtime::try_enter() {
        let site = caller();
        sched::point(&runtime, op, object, site);
        recorder::sync(runtime.thread(), op, object, sync_source::ANNOTATION, site, &[]);
    }
}

unsafe extern "C" fn acquire(object: u64) {
    order(Op::Observe, object);
}

unsafe extern "C" fn release(object: u64) {
    order(Op::Publish, object);
}

/// `AnnotateHappensBefore(file, line, object)`
unsafe extern "C" fn happens_before(_file: *const u8, _line: c_int, object: u64) {
    order(Op::Publish, object);
}

unsafe extern "C" fn happens_after(_file: *const u8, _line: c_int, object: u64) {
    order(Op::Observe, object);
}

fn lock_lives(op: Op, lock: u64) {
    if let Some(runtime) = Runtime::try_enter() {
        recorder::sync(runtime.thread(), op, lock, lock_kind::OTHER, caller(), &[]);
    }
}

unsafe extern "C" fn create(lock: u64, _flags: u32) {
    lock_lives(Op::LockInit, lock);
}

unsafe extern "C" fn destroy(lock: u64, _flags: u32) {
    lock_lives(Op::LockDestroy, lock);
}

fn locked(lock: u64, flags: u32) {
    let Some(runtime) = Runtime::try_enter() else { return };
    let (site, thread) = (caller(), runtime.thread());
    let shared = flags & flag::READ_LOCK != 0;
    let aux = lock_kind::OTHER | if flags & flag::TRY_LOCK != 0 { lock_kind::TRY } else { 0 };
    sched::point(&runtime, if shared { Op::LockShared } else { Op::Lock }, lock, site);
    if flags & flag::TRY_LOCK_FAILED != 0 {
        sched::failed_try(&runtime);
        recorder::sync(thread, Op::LockFailed, lock, aux, site, &[sys::EBUSY as u64]);
    } else if thread.held.as_slice().iter().any(|held| held.lock == lock && held.shared == shared) {
        hold(thread, lock, shared);
        recorder::sync(thread, Op::LockAgain, lock, aux | lock_kind::RECURSIVE, site, &[]);
    } else {
        thread.spins = 0;
        hold(thread, lock, shared);
        recorder::sync(thread, if shared { Op::LockShared } else { Op::Lock }, lock, aux, site, &[]);
    }
}

fn unlocked(lock: u64, shared: bool) {
    let Some(runtime) = Runtime::try_enter() else { return };
    let (site, thread) = (caller(), runtime.thread());
    sched::point(&runtime, Op::Unlock, lock, site);
    drop_hold(thread, lock);
    let op = match (thread.held.as_slice().iter().any(|held| held.lock == lock), shared) {
        (true, _) => Op::UnlockInner,
        (_, true) => Op::UnlockShared,
        _ => Op::Unlock,
    };
    recorder::sync(thread, op, lock, 0, site, &[]);
}

unsafe extern "C" fn post_lock(lock: u64, flags: u32, _recursion: c_int) {
    locked(lock, flags);
}

unsafe extern "C" fn pre_unlock(lock: u64, flags: u32) -> c_int {
    unlocked(lock, flags & flag::READ_LOCK != 0);
    0
}

/// `AnnotateRWLockCreate(file, line, lock)`
unsafe extern "C" fn lock_created(_file: *const u8, _line: c_int, lock: u64) {
    lock_lives(Op::LockInit, lock);
}

unsafe extern "C" fn lock_destroyed(_file: *const u8, _line: c_int, lock: u64) {
    lock_lives(Op::LockDestroy, lock);
}

unsafe extern "C" fn lock_acquired(_file: *const u8, _line: c_int, lock: u64, exclusive: u64) {
    locked(lock, if exclusive == 0 { flag::READ_LOCK } else { 0 });
}

unsafe extern "C" fn lock_released(_file: *const u8, _line: c_int, lock: u64, exclusive: u64) {
    unlocked(lock, exclusive == 0);
}

unsafe extern "C" fn ignore_begin() {
    if let Some(runtime) = Runtime::try_enter() {
        // SAFETY: this thread's block. The call stack counts as changed: accesses take the slow path, which knows better.
        unsafe {
            (*hot()).ignored += 1;
            (*hot()).dirty = 1;
        }
        drop(runtime);
    }
}

unsafe extern "C" fn ignore_end() {
    if let Some(runtime) = Runtime::try_enter() {
        // SAFETY: this thread's block.
        unsafe { (*hot()).ignored = (*hot()).ignored.saturating_sub(1) };
        drop(runtime);
    }
}

unsafe extern "C" fn this_fibre() -> u64 {
    // The thread's own block stands for its only fibre.
    hot() as u64
}

/// A barrier that tests use to force an order without making one: no event. `*barrier` holds the count (high) and the number of threads that came (low).
unsafe extern "C" fn test_barrier_init(barrier: *mut [AtomicU32; 2], count: u32) {
    // SAFETY: the program's own words, here and below.
    unsafe {
        (*barrier)[0].store(0, Release);
        (*barrier)[1].store(count, Release);
    }
}

unsafe extern "C" fn test_barrier_wait(barrier: *mut [AtomicU32; 2]) {
    let runtime = Runtime::try_enter();
    let site = caller();
    // SAFETY: as above.
    let (came, count) = unsafe { (&(*barrier)[0], (*barrier)[1].load(Acquire).max(1)) };
    let place = came.fetch_add(1, AcqRel);
    let enough = (place / count + 1).wrapping_mul(count);
    match runtime {
        Some(runtime) if config::serial() => {
            if place % count == count - 1 {
                queue::serve(WaitFor::Barrier, barrier as u64, usize::MAX, 0, 0, |_| true);
            } else {
                queue::join(runtime.thread(), barrier as u64);
                queue::stand(&runtime, Wait::on(WaitFor::Barrier, barrier as u64), site);
            }
        }
        _ => {
            sys::futex_wake(came, i32::MAX as u32);
            loop {
                let now = came.load(Acquire);
                if now >= enough {
                    break;
                }
                sys::futex_wait(came, now);
            }
        }
    }
}

interpose! {
    __tsan_acquire => acquire;
    __tsan_release => release;
    __tsan_java_acquire => acquire;
    __tsan_java_release => release;
    __tsan_java_release_store => release;
    AnnotateHappensBefore => happens_before;
    AnnotateHappensAfter => happens_after;
    WTFAnnotateHappensBefore => happens_before;
    WTFAnnotateHappensAfter => happens_after;
    AnnotateCondVarSignal => happens_before;
    AnnotateCondVarSignalAll => happens_before;
    AnnotatePCQPut => happens_before;
    AnnotatePCQGet => happens_after;
    __tsan_mutex_create => create;
    __tsan_mutex_destroy => destroy;
    __tsan_mutex_post_lock => post_lock;
    __tsan_mutex_pre_unlock => pre_unlock;
    AnnotateRWLockCreate => lock_created;
    AnnotateRWLockCreateStatic => lock_created;
    AnnotateRWLockDestroy => lock_destroyed;
    AnnotateRWLockAcquired => lock_acquired;
    AnnotateRWLockReleased => lock_released;
    __tsan_ignore_thread_begin => ignore_begin;
    __tsan_ignore_thread_end => ignore_end;
    AnnotateIgnoreReadsBegin => ignore_begin;
    AnnotateIgnoreReadsEnd => ignore_end;
    AnnotateIgnoreWritesBegin => ignore_begin;
    AnnotateIgnoreWritesEnd => ignore_end;
    __tsan_get_current_fiber => this_fibre;
    __tsan_create_fiber => this_fibre;
    __tsan_testonly_barrier_init => test_barrier_init;
    __tsan_testonly_barrier_wait => test_barrier_wait;
}

macro_rules! nothing {
    ($($name:ident)*) => { $(
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name() {
            core::arch::naked_asm!("xor eax, eax", "ret")
        }
    )* };
}

// What asks about reports gets "none"; what the recording has no use for does nothing; no Valgrind runs.
nothing! {
    AnnotateBenignRace AnnotateBenignRaceSized AnnotateCondVarWait AnnotateEnableRaceDetection AnnotateExpectRace
    AnnotateFlushExpectedRaces AnnotateFlushState AnnotateIgnoreSyncBegin AnnotateIgnoreSyncEnd AnnotateMemoryIsInitialized
    AnnotateMemoryIsUninitialized AnnotateMutexIsNotPHB AnnotateMutexIsUsedAsCondVar AnnotateNewMemory AnnotateNoOp AnnotatePCQCreate
    AnnotatePCQDestroy AnnotatePublishMemoryRange AnnotateThreadName AnnotateTraceMemory AnnotateUnpublishMemoryRange
    WTFAnnotateBenignRaceSized RunningOnValgrind ThreadSanitizerQuery ValgrindSlowdown
    __tsan_mutex_pre_lock __tsan_mutex_post_unlock __tsan_mutex_pre_signal __tsan_mutex_post_signal __tsan_mutex_pre_divert
    __tsan_mutex_post_divert __tsan_check_no_mutexes_held __tsan_destroy_fiber __tsan_switch_to_fiber __tsan_set_fiber_name
    __tsan_external_assign_tag __tsan_external_read __tsan_external_register_header __tsan_external_register_tag __tsan_external_write
    __tsan_flush_memory __tsan_get_alloc_stack __tsan_get_current_report __tsan_get_report_data __tsan_get_report_loc
    __tsan_get_report_loc_object_type __tsan_get_report_mop __tsan_get_report_mutex __tsan_get_report_stack __tsan_get_report_tag
    __tsan_get_report_thread __tsan_get_report_unique_tid __tsan_locate_address __tsan_on_thread_idle
    __tsan_java_alloc __tsan_java_finalize __tsan_java_find __tsan_java_fini __tsan_java_free __tsan_java_init __tsan_java_move
    __tsan_java_mutex_lock __tsan_java_mutex_lock_rec __tsan_java_mutex_read_lock __tsan_java_mutex_read_unlock __tsan_java_mutex_unlock
    __tsan_java_mutex_unlock_rec
    __sanitizer_print_stack_trace __sanitizer_set_death_callback __sanitizer_set_report_path __sanitizer_set_report_fd
    __sanitizer_report_error_summary __sanitizer_sandbox_on_notify __sanitizer_install_malloc_and_free_hooks
    __sanitizer_cov_dump __sanitizer_cov_reset
}

/// The access hooks of any length with the site as an argument.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __tsan_read_range_pc(address: u64, bytes: u64, site: u64) {
    // SAFETY: as the hook itself.
    unsafe { crate::hooks::access_range(address, bytes, site, rashomon_abi::record::AccessClass::Read as u64) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn __tsan_write_range_pc(address: u64, bytes: u64, site: u64) {
    // SAFETY: as the hook itself.
    unsafe { crate::hooks::access_range(address, bytes, site, rashomon_abi::record::AccessClass::Write as u64) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn __tsan_testonly_shadow_stack_current_size() -> u64 {
    let block = hot();
    // SAFETY: this thread's block; both point into its shadow stack, or are null.
    unsafe { ((*block).top as u64 - (*block).bottom as u64) / 16 + (*block).overflow }
}

macro_rules! unaligned {
    ($($load:ident $store:ident $word:ident $log2:literal;)*) => { $(
        unsafe extern "C" fn $load(address: *const $word) -> $word {
            // SAFETY: the program's own bytes.
            unsafe {
                crate::hooks::access_range(address as u64, 1 << $log2, caller(), rashomon_abi::record::AccessClass::Read as u64);
                address.read_unaligned()
            }
        }
        unsafe extern "C" fn $store(address: *mut $word, value: $word) {
            // SAFETY: the program's own bytes.
            unsafe {
                crate::hooks::access_range(address as u64, 1 << $log2, caller(), rashomon_abi::record::AccessClass::Write as u64);
                address.write_unaligned(value);
            }
        }
    )* };
}

unaligned! { load16 store16 u16 1; load32 store32 u32 2; load64 store64 u64 3; }

interpose! {
    __sanitizer_unaligned_load16 => load16;
    __sanitizer_unaligned_load32 => load32;
    __sanitizer_unaligned_load64 => load64;
    __sanitizer_unaligned_store16 => store16;
    __sanitizer_unaligned_store32 => store32;
    __sanitizer_unaligned_store64 => store64;
}
