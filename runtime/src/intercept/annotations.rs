//! The rest of the interface that annotated programs and language runtimes call: what says something about order or locks is
//! recorded, the rest is there to link.
//!
//! The names that a program *defines* for the ThreadSanitizer runtime to call (`__tsan_on_report`, `__tsan_default_options`, …)
//! are not defined here.

use super::{hooks, queue};
use crate::detect::{self, ignores};
use crate::record::recorder;
use crate::report::options;
use crate::serial::sched::{self, Wait, WaitFor};
use crate::system::thread::Runtime;
use crate::system::tls::{caller, hot};
use crate::system::{config, sys};
use core::ffi::c_int;
use core::sync::atomic::{AtomicU32, Ordering::*};
use rashomon_abi::record::{AccessClass, Op, sync_source};

fn order(op: Op, object: u64) {
    if let Some(runtime) = Runtime::try_enter() {
        let site = caller();
        sched::point(&runtime, op, object, site);
        recorder::sync(runtime.thread(), op, object, sync_source::ANNOTATION, site, &[]);
    }
}

unsafe extern "C" fn acquire(object: u64) {
    order(Op::Acquire, object);
}

unsafe extern "C" fn release(object: u64) {
    order(Op::Release, object);
}

/// `AnnotateHappensBefore(file, line, object)`
unsafe extern "C" fn happens_before(_file: *const u8, _line: c_int, object: u64) {
    order(Op::Release, object);
}

unsafe extern "C" fn happens_after(_file: *const u8, _line: c_int, object: u64) {
    order(Op::Acquire, object);
}

unsafe extern "C" fn ignore_begin() {
    if let Some(runtime) = Runtime::try_enter() {
        if detect::on() {
            if options::get().enable_annotations {
                runtime.with_own(|own| ignores::accesses_begin(own, Some(caller())));
            }
            return;
        }
        // The call stack counts as changed: accesses take the slow path, which knows better.
        let hot = runtime.thread().hot();
        hot.ignored.set(hot.ignored.get() + 1);
        hot.dirty.set(1);
    }
}

unsafe extern "C" fn ignore_end() {
    if let Some(runtime) = Runtime::try_enter()
        && (!detect::on() || options::get().enable_annotations)
    {
        runtime.with_own(ignores::accesses_end);
    }
}

unsafe extern "C" fn ignore_sync_begin() {
    if detect::on()
        && options::get().enable_annotations
        && let Some(runtime) = Runtime::try_enter()
    {
        runtime.with_own(|own| ignores::sync_begin(own, Some(caller())));
    }
}

unsafe extern "C" fn ignore_sync_end() {
    if detect::on()
        && options::get().enable_annotations
        && let Some(runtime) = Runtime::try_enter()
    {
        runtime.with_own(ignores::sync_end);
    }
}

fn benign(address: u64, bytes: u64) {
    if detect::on() && options::get().enable_annotations {
        ignores::benign(address, bytes);
    }
}

/// `AnnotateBenignRace(file, line, address, description)`
unsafe extern "C" fn benign_race(_file: *const u8, _line: c_int, address: u64) {
    benign(address, 1);
}

unsafe extern "C" fn benign_race_sized(_file: *const u8, _line: c_int, address: u64, bytes: u64) {
    benign(address, bytes);
}

/// A barrier that tests use to force an order without making one: no event. One word: threads that belong to it (low ten bits),
/// those that came (next ten), and how often all have come.
mod test_barrier {
    use core::sync::atomic::{AtomicU32, Ordering::*};

    pub const MOST: u32 = (1 << 10) - 1;
    const CAME: u32 = 1 << 10;
    const ROUND: u32 = 1 << 20;

    pub const fn round(word: u32) -> u32 {
        word / ROUND
    }

    /// One more comes. The round that it waits for the end of, and whether it ends it.
    pub fn come(barrier: &AtomicU32) -> (u32, bool) {
        let mut word = barrier.load(Acquire);
        loop {
            let last = word / CAME % (MOST + 1) + 1 >= word & MOST;
            let next = if last { ((word / ROUND) + 1).wrapping_mul(ROUND) | word & MOST } else { word + CAME };
            match barrier.compare_exchange_weak(word, next, AcqRel, Acquire) {
                Ok(_) => return (round(word), last),
                Err(now) => word = now,
            }
        }
    }
}

unsafe extern "C" fn test_barrier_init(barrier: *mut AtomicU32, count: u32) {
    if count > test_barrier::MOST {
        sys::die(&[b"__tsan_testonly_barrier_init: too many threads: ", sys::Decimal::new(count as u64).bytes()]);
    }
    // SAFETY: the program's own word, here and below.
    unsafe { (*barrier).store(count, Release) };
}

unsafe extern "C" fn test_barrier_wait(barrier: *mut AtomicU32) {
    let runtime = Runtime::try_enter();
    let site = caller();
    // SAFETY: as above.
    let word = unsafe { &*barrier };
    let (round, last) = test_barrier::come(word);
    match runtime {
        Some(runtime) if config::serial() => {
            if last {
                queue::serve(WaitFor::Barrier, barrier as u64, usize::MAX, 0, 0, |_| true);
            } else {
                queue::join(runtime.thread(), barrier as u64);
                queue::stand(&runtime, Wait::on(WaitFor::Barrier, barrier as u64), site);
            }
        }
        _ if last => sys::futex_wake(word, i32::MAX as u32),
        _ => loop {
            let now = word.load(Acquire);
            if test_barrier::round(now) != round {
                break;
            }
            sys::futex_wait(word, now);
        },
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
    __tsan_ignore_thread_begin => ignore_begin;
    __tsan_ignore_thread_end => ignore_end;
    AnnotateIgnoreSyncBegin => ignore_sync_begin;
    AnnotateIgnoreSyncEnd => ignore_sync_end;
    AnnotateBenignRace => benign_race;
    AnnotateBenignRaceSized => benign_race_sized;
    WTFAnnotateBenignRaceSized => benign_race_sized;
    AnnotateIgnoreReadsBegin => ignore_begin;
    AnnotateIgnoreReadsEnd => ignore_end;
    AnnotateIgnoreWritesBegin => ignore_begin;
    AnnotateIgnoreWritesEnd => ignore_end;
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
    AnnotateCondVarWait AnnotateEnableRaceDetection AnnotateExpectRace AnnotateFlushExpectedRaces AnnotateFlushState
    AnnotateMemoryIsInitialized AnnotateMemoryIsUninitialized AnnotateMutexIsNotPHB AnnotateMutexIsUsedAsCondVar
    AnnotateNewMemory AnnotateNoOp AnnotatePCQCreate AnnotatePCQDestroy AnnotatePublishMemoryRange AnnotateTraceMemory
    AnnotateUnpublishMemoryRange RunningOnValgrind ThreadSanitizerQuery ValgrindSlowdown __tsan_flush_memory
    __tsan_on_thread_idle __sanitizer_sandbox_on_notify __sanitizer_install_malloc_and_free_hooks __sanitizer_cov_dump
    __sanitizer_cov_reset
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn __tsan_testonly_shadow_stack_current_size() -> u64 {
    let block = hot();
    (block.top.get() as u64 - block.bottom.get() as u64) / 16 + block.overflow.get()
}

macro_rules! unaligned {
    ($($load:ident $store:ident $word:ident $log2:literal;)*) => { $(
        unsafe extern "C" fn $load(address: *const $word) -> $word {
            // SAFETY: the program's own bytes.
            unsafe {
                hooks::access_range(address as u64, 1 << $log2, caller(), AccessClass::Read as u64);
                address.read_unaligned()
            }
        }
        unsafe extern "C" fn $store(address: *mut $word, value: $word) {
            // SAFETY: the program's own bytes.
            unsafe {
                hooks::access_range(address as u64, 1 << $log2, caller(), AccessClass::Write as u64);
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
