//! `pthread_once` and the guards of C++ static variables.
//!
//! `pthread_once` runs on the real one, which knows what to do when the routine leaves by an exception or the thread's end; waiting is modelled. The frame around
//! it has a personality of its own, through which the runtime learns that the routine was left. That resets the control, and nothing orders the attempt before
//! the next one but this, so it is recorded as a release that later attempts acquire.
//!
//! A guard (Itanium C++ ABI §3.3.3) is ours altogether: the first byte says that the variable is initialised, which compiled code reads by itself; the next ones
//! say that a thread is at it, and that others sleep, as in libstdc++.

use crate::real::Real;
use crate::report::hooks;
use crate::sched::{self, Wait, WaitFor};
use crate::sys;
use crate::thread::Runtime;
use crate::tls::caller;
use crate::{config, detect, recorder};
use core::arch::naked_asm;
use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicU32, Ordering::*};
use rashomon_abi::record::{Op, atomic_aux, sync_source};

type Routine = unsafe extern "C" fn();

static ONCE: Real = Real::new(c"pthread_once", None);
/// Some routine was left before it was done.
static ABANDONED: AtomicU32 = AtomicU32::new(0);

/// glibc's control: bit 0, somebody runs the routine; bit 1, done.
const RUNNING: u32 = 1;
const DONE: u32 = 2;

/// What the real function calls in place of the program's routine.
unsafe extern "C" fn run_routine() {
    let Some(runtime) = Runtime::try_enter() else { return };
    let thread = runtime.thread();
    let Some(entry) = thread.once.as_mut_slice().last_mut() else { return };
    entry[2] = 1;
    let [control, routine, _] = *entry;
    let site = caller();
    if ABANDONED.load(Acquire) != 0 {
        recorder::sync(thread, Op::Observe, control, sync_source::OTHER, site, &[]);
    }
    recorder::sync(thread, Op::OnceBegin, control, 0, site, &[]);
    drop(runtime);
    // SAFETY: the program's own function.
    unsafe { core::mem::transmute::<u64, Routine>(routine)() };
    // The real function is about to say that it is done: threads that run in parallel may see that before this one is back.
    if !config::serial()
        && let Some(runtime) = Runtime::try_enter()
    {
        recorder::sync(runtime.thread(), Op::OnceDone, control, 0, site, &[]);
    }
}

/// Calls `function(control, routine)` from a frame that hears of unwinding.
#[unsafe(naked)]
unsafe extern "C" fn call_watched(_control: *mut AtomicU32, _routine: Routine, _function: *mut c_void) -> c_int {
    naked_asm!(
        ".cfi_startproc",
        ".cfi_personality 0x9b, {personality}",
        "sub rsp, 8",
        ".cfi_def_cfa_offset 16",
        "call rdx",
        "add rsp, 8",
        ".cfi_def_cfa_offset 8",
        "ret",
        ".cfi_endproc",
        personality = sym PERSONALITY,
    )
}

/// What the frame's unwind information refers to.
static PERSONALITY: unsafe extern "C" fn(c_int, c_int, u64, *mut u8, *mut u8) -> c_int = personality;

/// Called by the unwinder, in either phase, when an exception or a forced unwinding passes [`call_watched`]. Catches nothing.
unsafe extern "C" fn personality(_version: c_int, actions: c_int, _class: u64, _exception: *mut u8, _context: *mut u8) -> c_int {
    const CLEANUP_PHASE: c_int = 2;
    const CONTINUE_UNWIND: c_int = 8;
    if actions & CLEANUP_PHASE != 0
        && let Some(runtime) = Runtime::try_enter()
    {
        let thread = runtime.thread();
        if let Some(&[control, _, began]) = thread.once.as_slice().last() {
            thread.once.truncate(thread.once.len() - 1);
            if began != 0 {
                ABANDONED.store(1, Release);
                recorder::sync(thread, Op::Publish, control, sync_source::OTHER, 0, &[]);
            }
            sched::wake(WaitFor::Once, control, usize::MAX);
        }
    }
    CONTINUE_UNWIND
}

unsafe extern "C" fn once(control: *mut AtomicU32, routine: Routine) -> c_int {
    let site = caller();
    let function = ONCE.required();
    let Some(runtime) = Runtime::try_enter() else {
        // SAFETY: the real function with the program's arguments.
        return unsafe {
            core::mem::transmute::<*mut c_void, unsafe extern "C" fn(*mut AtomicU32, Routine) -> c_int>(function)(
                control, routine,
            )
        };
    };
    let object = control as u64;
    sched::point(&runtime, Op::OnceBegin, object, site);
    // SAFETY: the program's own control.
    let state = || unsafe { (*control).load(Acquire) };
    while config::serial() && state() & (RUNNING | DONE) == RUNNING {
        sched::block(&runtime, Wait::on(WaitFor::Once, object), site);
    }
    if state() & DONE != 0 {
        recorder::sync(runtime.thread(), Op::OnceSeen, object, 0, site, &[]);
        return 0;
    }
    let thread = runtime.thread();
    thread.once.push([object, routine as *const () as u64, 0]);
    drop(runtime);
    // SAFETY: the real function with the program's control; the routine finds the program's on the thread's list.
    let result = unsafe { call_watched(control, run_routine, function) };
    let Some(runtime) = Runtime::try_enter() else { return result };
    let thread = runtime.thread();
    let began = thread.once.as_slice().last().is_some_and(|entry| entry[2] != 0);
    thread.once.truncate(thread.once.len().saturating_sub(1));
    if began {
        if config::serial() {
            sched::point(&runtime, Op::OnceDone, object, site);
            recorder::sync(thread, Op::OnceDone, object, 0, site, &[]);
        }
        sched::wake(WaitFor::Once, object, usize::MAX);
    } else {
        recorder::sync(thread, Op::OnceSeen, object, 0, site, &[]);
    }
    result
}

const GUARD_DONE: u32 = 1;
const GUARD_RUNNING: u32 = 1 << 8;
const GUARD_AWAITED: u32 = 1 << 16;

fn wait_for_guard(guard: &AtomicU32, seen: u32) {
    if seen & GUARD_AWAITED != 0 || guard.compare_exchange(seen, seen | GUARD_AWAITED, Relaxed, Relaxed).is_ok() {
        sys::futex_wait(guard, seen | GUARD_AWAITED);
    }
}

/// Takes the guard, or finds the work done. `wait` is called while another thread is at it.
fn take_guard(guard: &AtomicU32, mut wait: impl FnMut(u32)) -> bool {
    loop {
        match guard.compare_exchange(0, GUARD_RUNNING, AcqRel, Acquire) {
            Ok(_) => return true,
            Err(seen) if seen & GUARD_DONE != 0 => return false,
            Err(seen) => wait(seen),
        }
    }
}

fn leave_guard(guard: &AtomicU32, state: u32) {
    if guard.swap(state, AcqRel) & GUARD_AWAITED != 0 {
        sys::futex_wake(guard, i32::MAX as u32);
    }
}

unsafe extern "C" fn guard_acquire(guard: *mut AtomicU32) -> c_int {
    // SAFETY: the compiler's own guard, here and below.
    let cell = unsafe { &*guard };
    let Some(runtime) = Runtime::try_enter() else { return take_guard(cell, |seen| wait_for_guard(cell, seen)) as c_int };
    let (site, object) = (caller(), guard as u64);
    sched::point(&runtime, Op::OnceBegin, object, site);
    if detect::on() {
        runtime.outside(|| hooks::on_potentially_blocking_region(true));
    }
    let taken = take_guard(cell, |seen| {
        if config::serial() {
            sched::block(&runtime, Wait::on(WaitFor::Once, object), site);
        } else {
            runtime.outside(|| wait_for_guard(cell, seen));
        }
    });
    if taken && ABANDONED.load(Acquire) != 0 {
        recorder::sync(runtime.thread(), Op::Observe, object, sync_source::OTHER, site, &[]);
    }
    recorder::sync(runtime.thread(), if taken { Op::OnceBegin } else { Op::OnceSeen }, object, 0, site, &[]);
    if detect::on() {
        runtime.outside(|| hooks::on_potentially_blocking_region(false));
    }
    taken as c_int
}

unsafe extern "C" fn guard_release(guard: *mut AtomicU32) {
    // SAFETY: as above.
    let cell = unsafe { &*guard };
    let Some(runtime) = Runtime::try_enter() else { return leave_guard(cell, GUARD_DONE) };
    let (site, object, thread) = (caller(), guard as u64, runtime.thread());
    sched::point(&runtime, Op::OnceDone, object, site);
    recorder::sync(thread, Op::OnceDone, object, 0, site, &[]);
    // What the compiled code's own look at the first byte reads from.
    recorder::sync(thread, Op::AtomicStore, object, atomic_aux::pack(0, atomic_aux::RELEASE, 0), site, &[GUARD_DONE as u64]);
    leave_guard(cell, GUARD_DONE);
    sched::wake(WaitFor::Once, object, usize::MAX);
}

unsafe extern "C" fn guard_abort(guard: *mut AtomicU32) {
    // SAFETY: as above.
    let cell = unsafe { &*guard };
    let Some(runtime) = Runtime::try_enter() else { return leave_guard(cell, 0) };
    let (site, object) = (caller(), guard as u64);
    sched::point(&runtime, Op::Publish, object, site);
    ABANDONED.store(1, Release);
    recorder::sync(runtime.thread(), Op::Publish, object, sync_source::OTHER, site, &[]);
    leave_guard(cell, 0);
    sched::wake(WaitFor::Once, object, usize::MAX);
}

interpose! {
    pthread_once => once;
    __cxa_guard_acquire => guard_acquire;
    __cxa_guard_release => guard_release;
    __cxa_guard_abort => guard_abort;
}
