//! `pthread_once` and the guards of C++ static variables.
//!
//! Both are ours altogether: who runs the routine, who waits and who comes too late is decided by the control itself, with the
//! turn in serial mode and by compare-exchange in free mode, and recorded where it is decided. A control has glibc's values, a
//! guard (Itanium C++ ABI §3.3.3) those of libstdc++: the first byte says that the variable is initialised, which compiled code
//! reads by itself; the next ones say that a thread is at it, and that others sleep.
//!
//! **Attempts that fail.** A routine may be left by an exception, `pthread_exit` or cancellation: then the control is as new, and
//! the next caller tries again. The frame around a routine has a personality of its own, through which the runtime learns of
//! that; for a guard the compiler calls `__cxa_guard_abort`. The attempt that failed is a release (`Release`), recorded before
//! the control is free, and the next attempt acquires it (`Acquire`), recorded before its `OnceBegin`: so attempts are ordered,
//! whoever makes them.
//!
//! Limit: a routine that is left by `longjmp` leaves its control as it is, as with libc: nobody ever runs it again.

use crate::detect;
use crate::record::recorder;
use crate::report::hooks;
use crate::serial::sched::{self, Wait, WaitFor};
use crate::system::config;
use crate::system::lock::RawLock;
use crate::system::memory::{List, Map};
use crate::system::real::Real;
use crate::system::sys;
use crate::system::thread::Runtime;
use crate::system::tls::caller;
use core::arch::naked_asm;
use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicU32, Ordering::*};
use rashomon_abi::record::{Op, atomic_aux, sync_source};

type Routine = unsafe extern "C" fn();

#[used]
#[unsafe(link_section = "rashomon_real")]
static ONCE: Real = Real::new(c"pthread_once", None);
/// Controls and guards whose last attempt failed: 1.
static mut ABANDONED: Map = Map::new();
static LOCK: RawLock = RawLock::new();

/// glibc's control: bit 0, somebody runs the routine; bit 1, done; above, how many forks lie behind the process that runs it.
const RUNNING: u32 = 1;
const DONE: u32 = 2;
const FORK: u32 = 4;
static GENERATION: AtomicU32 = AtomicU32::new(0);

/// In a forked child: who was running a routine in the parent is not there to finish it.
///
/// # Safety
/// In a child that has one thread.
pub unsafe fn forked() {
    LOCK.unlock();
    GENERATION.fetch_add(FORK, Relaxed);
    // SAFETY: nobody else is there. The map may have been in the middle of a change.
    unsafe { (&raw mut ABANDONED).write(Map::new()) };
}

/// The thread has got the control and begins the routine.
fn begins(runtime: &Runtime, object: u64, site: u64) {
    let thread = runtime.thread();
    let abandoned = &raw mut ABANDONED;
    // SAFETY: guarded by LOCK.
    let again = LOCK
        .with(|| unsafe { (*abandoned).get((object, 0)) == Some(1) && core::mem::take((*abandoned).entry((object, 0))) == 1 });
    if again {
        recorder::sync(thread, Op::Acquire, object, sync_source::OTHER, site, &[]);
    }
    recorder::sync(thread, Op::OnceBegin, object, 0, site, &[]);
}

/// The routine was left before it was done; the caller frees the control behind this.
fn abandons(runtime: &Runtime, object: u64, site: u64) {
    sched::point(runtime, Op::Release, object, site);
    recorder::sync(runtime.thread(), Op::Release, object, sync_source::OTHER, site, &[]);
    let abandoned = &raw mut ABANDONED;
    // SAFETY: guarded by LOCK.
    LOCK.with(|| unsafe { *(*abandoned).entry((object, 0)) = 1 });
}

/// Calls `routine` from a frame that hears of unwinding.
#[unsafe(naked)]
unsafe extern "C" fn call_watched(_routine: Routine) {
    naked_asm!(
        ".cfi_startproc",
        ".cfi_personality 0x9b, {personality}",
        "sub rsp, 8",
        ".cfi_def_cfa_offset 16",
        "call rdi",
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
        && let Some(object) = runtime.thread().once.with(List::pop)
    {
        abandons(&runtime, object, 0);
        // SAFETY: the program's own control, which it called with.
        leave_control(unsafe { &*(object as *const AtomicU32) }, 0);
        sched::wake(WaitFor::Once, object, usize::MAX);
    }
    CONTINUE_UNWIND
}

/// Takes the control, or finds the routine done. `wait` is called while another thread is at it.
fn take_control(control: &AtomicU32, mut wait: impl FnMut(u32)) -> bool {
    let mine = GENERATION.load(Relaxed) | RUNNING;
    loop {
        let seen = control.load(Acquire);
        if seen & DONE != 0 {
            return false;
        } else if seen == mine {
            wait(seen);
        } else if control.compare_exchange(seen, mine, AcqRel, Acquire).is_ok() {
            return true;
        }
    }
}

fn leave_control(control: &AtomicU32, state: u32) {
    control.store(state, Release);
    sys::futex_wake(control, i32::MAX as u32);
}

pub unsafe extern "C" fn once(control: *mut AtomicU32, routine: Routine) -> c_int {
    let Some(runtime) = Runtime::try_enter() else {
        // SAFETY: the real function with the program's arguments.
        return unsafe {
            core::mem::transmute::<*mut c_void, unsafe extern "C" fn(*mut AtomicU32, Routine) -> c_int>(ONCE.required())(
                control, routine,
            )
        };
    };
    let (site, object) = (caller(), control as u64);
    // SAFETY: the program's own control.
    let cell = unsafe { &*control };
    sched::point(&runtime, Op::OnceBegin, object, site);
    let taken = take_control(cell, |seen| {
        if config::serial() {
            sched::block(&runtime, Wait::on(WaitFor::Once, object), site);
        } else {
            runtime.outside(|| sys::futex_wait(cell, seen));
        }
    });
    if !taken {
        recorder::sync(runtime.thread(), Op::OnceSeen, object, 0, site, &[]);
        return 0;
    }
    begins(&runtime, object, site);
    runtime.thread().once.with(|running| running.push(object));
    drop(runtime);
    // SAFETY: the program's own function.
    unsafe { call_watched(routine) };
    if let Some(runtime) = Runtime::try_enter() {
        let thread = runtime.thread();
        thread.once.with(List::pop);
        sched::point(&runtime, Op::OnceDone, object, site);
        recorder::sync(thread, Op::OnceDone, object, 0, site, &[]);
        leave_control(cell, DONE);
        sched::wake(WaitFor::Once, object, usize::MAX);
    } else {
        leave_control(cell, DONE);
    }
    0
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
    if taken {
        begins(&runtime, object, site);
    } else {
        recorder::sync(runtime.thread(), Op::OnceSeen, object, 0, site, &[]);
    }
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
    abandons(&runtime, object, site);
    leave_guard(cell, 0);
    sched::wake(WaitFor::Once, object, usize::MAX);
}

interpose! {
    pthread_once => once;
    __cxa_guard_acquire => guard_acquire;
    __cxa_guard_release => guard_release;
    __cxa_guard_abort => guard_abort;
}
