//! Start of the runtime in a process.

use super::{fork, sources};
use crate::detect::{self, Detector};
use crate::intercept::{gaps, process, start};
use crate::provoke;
use crate::record::process_tree;
use crate::record::process_tree::Refused;
use crate::record::{kept, recorder, tree, values};
use crate::report;
use crate::serial::shutdown;
use crate::serial::{blocked, clock, explore, gate, linger, policy, replay, sched};
use crate::system::real::{self, real};
use crate::system::sys;
use crate::system::thread::{NO_THREAD, Runtime, Thread};
use crate::system::{config, glibc, handles, loader, modules, processor, signals, storage};
use crate::threads;
use core::ffi::{CStr, c_char, c_void};
use core::sync::atomic::{AtomicU32, Ordering::*};
use rashomon_abi::record::{Op, allocation_kind, exit_stage};
use rashomon_abi::{PROTOCOL_VERSION, SESSION_VARIABLE, unwritten};

static STARTED: AtomicU32 = AtomicU32::new(0);

/// The host tool looks for this name to tell our runtime from another one.
#[unsafe(no_mangle)]
pub static rashomon_runtime_version: u32 = PROTOCOL_VERSION;

#[used]
#[unsafe(link_section = ".init_array.00001")]
static AT_LOAD: unsafe extern "C" fn() = __tsan_init;

/// Called by the constructors of instrumented modules, and before libc is ready (`.preinit_array`) by programs linked with gcc.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __tsan_init() {
    if STARTED.swap(1, AcqRel) != 0 {
        // A constructor of a library that was loaded meanwhile.
        if let Some(_runtime) = Runtime::try_enter() {
            modules::write_changes();
            gaps::look();
        }
        return;
    }
    // SAFETY: the first and only call.
    unsafe { start_process() };
}

/// Apart from what constructors and new threads call: its paths take pages of stack.
///
/// # Safety
/// Once, before there are other threads.
#[cold]
#[inline(never)]
unsafe fn start_process() {
    real::keep_environment();
    let Some(directory) = real::environment(SESSION_VARIABLE.as_bytes()).filter(|directory| !directory.is_empty()) else {
        if report::options::wanted() {
            // SAFETY: the first and only call; no thread is known yet.
            unsafe { detect() };
        }
        return;
    };
    if directory.len() > 3800 {
        return;
    }
    let mut path = [0u8; 4096];
    path[..directory.len()].copy_from_slice(directory);
    // SAFETY: the first and only call; no thread records yet.
    unsafe { start(&path) };
}

unsafe fn start(directory: &[u8; 4096]) {
    real::look_up_all();
    match process_tree::begin(directory) {
        Ok(true) => {}
        Ok(false) => return,
        Err(Refused { what, error: 0 }) => sys::die(&[what]),
        Err(Refused { what, error }) => {
            let number = sys::Decimal::new(error.unsigned_abs() as u64);
            let words = unwritten::cause(error.unsigned_abs() as u64).map_or("", |cause| cause.words);
            sys::die(&[what, b": ", words.as_bytes(), b" (errno ", number.bytes(), b")"])
        }
    }
    if config::serial() {
        processor::choose();
    }
    clock::initialise();
    policy::initialise();
    replay::initialise();
    explore::initialise();
    provoke::initialise();
    tree::initialise();
    kept::initialise();
    values::initialise();
    modules::write();
    gaps::look();
    // SAFETY: once, on the initial thread.
    unsafe { begin_initial_thread() };
}

/// Without a session: looks for races while the program runs.
unsafe fn detect() {
    real::look_up_all();
    report::sources::SOURCES.set(&sources::SOURCES);
    report::initialise();
    let detector = match report::options::get().detector {
        b"hb" => Detector::HappensBefore,
        b"lockset" => Detector::LockSet,
        b"hybrid" => Detector::Hybrid,
        other => report::options::refuse(&[b"invalid value for option detector: '", other, b"' (hb, lockset, hybrid)"]),
    };
    let filter = match report::options::get().filter {
        b"none" => 0,
        b"tree" => report::options::get().filter_locations.clamp(1, i64::from(u32::MAX)) as u32,
        other => report::options::refuse(&[b"invalid value for option filter: '", other, b"' (none, tree)"]),
    };
    detect::initialise(detector, detect::statistics::wanted(), filter);
    gate::initialise(report::options::get().enforce);
    // SAFETY: by the caller.
    unsafe { begin_initial_thread() };
    if report::options::get().end_on_sigterm {
        crate::intercept::signals::watch_termination();
    }
    detect::background::begin();
    report::begun();
}

unsafe fn begin_initial_thread() {
    loader::learn();
    glibc::look();
    let Some(main) = threads::register(NO_THREAD, 0) else { sys::die(&[b"out of memory at start"]) };
    let pointer = storage::pointer();
    main.stack.set(initial_stack());
    main.tls.set(storage::of_initial(pointer));
    handles::store(main, pointer);
    replay::appeared(main);
    sched::begin(main);
    // SAFETY: the initial thread, once.
    unsafe {
        threads::attach(main);
        let _runtime = Runtime::enter();
        let (stack, tls) = (main.stack.get(), main.tls.get());
        recorder::sync(main, Op::ThreadStart, main.kernel_id.get() as u64, 0, 0, &[u64::MAX, 0, stack.0, stack.1, tls.0, tls.1]);
        given_by_kernel(main);
        process::watch(&fork::HANDLERS);
        signals::watch_fatal();
        type Function = unsafe extern "C" fn(*mut c_void);
        real!(fn __cxa_atexit(Function, *mut c_void, *mut c_void) -> i32)(at_exit, core::ptr::null_mut(), core::ptr::null_mut());
    }
}

/// Says what was there before the first thread, or a forked child's, began.
pub fn given_by_kernel(thread: &Thread) {
    for (ordinal, (low, high)) in (0..).zip([initial_texts(), upper_stack()]) {
        replay::allocated(thread, 0, ordinal, low, true);
        recorder::sync(thread, Op::Allocate, low, allocation_kind::MAPPING, 0, &[high - low, ordinal]);
    }
}

unsafe extern "C" fn at_exit(_argument: *mut c_void) {
    // Also by a thread that is no longer known: the last one after `pthread_exit` of all.
    let runtime = Runtime::try_enter();
    if detect::on() {
        if let Some(runtime) = &runtime {
            runtime.with_own(detect::ignores::check_ended);
        }
        report::at_exit(blocked::last_checks);
    }
    if let Some(runtime) = &runtime {
        linger::before_end(runtime, exit_stage::HANDLED, 0);
    }
    shutdown::complete();
}

/// The initial thread's stack: 8 MiB below the place where `main` begins, whatever the limit says.
fn initial_stack() -> (u64, u64) {
    let end = start::align_main();
    (end.saturating_sub(8 << 20), end)
}

/// What lies above it: the stack of constructors, and the array that points to the arguments.
fn upper_stack() -> (u64, u64) {
    // SAFETY: set by the loader: the number of arguments, then a pointer to each, then zero.
    let (end, arguments) = unsafe { (real::__libc_stack_end as u64, *real::__libc_stack_end as u64) };
    (end - start::UPPER_BYTES, end + 8 * (arguments + 2))
}

/// The texts of arguments and environment, which lie at a random distance from the stack: from the first argument to the last
/// variable.
fn initial_texts() -> (u64, u64) {
    // SAFETY: as above; behind the arguments' zero the environment's pointers, then zero. Each points to a terminated text.
    unsafe {
        let stack = real::__libc_stack_end;
        let (first, mut at) = (*stack.add(1) as u64, stack.add(1));
        if first == 0 {
            return (0, 0);
        }
        let mut last = first;
        for _ in 0..2 {
            while *at != 0 {
                last = last.max(*at as u64);
                at = at.add(1);
            }
            at = at.add(1);
        }
        (first, last + CStr::from_ptr(last as *const c_char).to_bytes_with_nul().len() as u64)
    }
}
