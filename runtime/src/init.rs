//! Start of the runtime in a process.

use crate::intercept::process;
use crate::real::{self, __cxa_atexit};
use crate::sys::{self, syscall};
use crate::thread::{self, NO_THREAD, Runtime};
use crate::{clock, config, finish, header, modules, policy, recorder, replay, sched, signals};
use core::ffi::{CStr, c_char, c_void};
use core::sync::atomic::{AtomicU32, Ordering::*};
use rashomon_abi::header::{HEADER_BYTES, MAGIC, field, state};
use rashomon_abi::record::{Op, allocation_kind};
use rashomon_abi::{CLAIM_FILE, CONTROL_FILE, HEADER_FILE, PROTOCOL_VERSION, SESSION_VARIABLE};

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
        }
        return;
    }
    let Some(directory) = real::environment(SESSION_VARIABLE.as_bytes()) else { return };
    if directory.is_empty() || directory.len() > 3800 {
        return;
    }
    let mut path = [0u8; 4096];
    path[..directory.len()].copy_from_slice(directory);
    // SAFETY: the first and only call; no thread records yet.
    unsafe { start(&path) };
}

unsafe fn start(directory: &[u8; 4096]) {
    // SAFETY: by the caller.
    unsafe { recorder::enable(directory) };
    let claim = recorder::path_of(CLAIM_FILE.as_bytes(), None);
    // SAFETY: terminated path. O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC
    let claimed = unsafe { syscall!(sys::OPENAT, -100isize, claim.as_ptr(), 0o2000301, 0o644) };
    if claimed < 0 {
        // Another process records here: this one is a child that it started.
        recorder::disable();
        return;
    }
    // SAFETY: our own descriptor.
    unsafe { syscall!(sys::CLOSE, claimed) };
    if let Err(reason) = config::load(&recorder::path_of(CONTROL_FILE.as_bytes(), None)) {
        sys::die(&[reason]);
    }
    if config::mode() == 0 {
        recorder::disable();
        return;
    }
    map_header();
    clock::initialise();
    policy::initialise();
    replay::initialise();
    modules::write();
    let main = thread::register(NO_THREAD, 0);
    if main.is_null() {
        sys::die(&[b"out of memory at start"]);
    }
    // SAFETY: the initial thread, once.
    unsafe {
        (*main).stack = initial_stack();
        (*main).tls = initial_tls();
        (*main).handle.store((*main).tls.1, Release);
        replay::appeared(&*main);
        sched::begin(&mut *main);
        thread::attach(main);
        let runtime = Runtime::enter();
        let thread = runtime.thread();
        let (stack, tls) = (thread.stack, thread.tls);
        recorder::sync(thread, Op::ThreadStart, thread.kernel_id as u64, 0, 0, &[u64::MAX, 0, stack.0, stack.1, tls.0, tls.1]);
        let texts = initial_texts();
        replay::allocated(thread, 0, 0, texts.0, true);
        recorder::sync(thread, Op::Allocate, texts.0, allocation_kind::MAPPING, 0, &[texts.1 - texts.0, 0]);
        process::watch();
        signals::watch_fatal();
        __cxa_atexit(at_exit, core::ptr::null_mut(), core::ptr::null_mut());
    }
}

unsafe extern "C" fn at_exit(_argument: *mut c_void) {
    // Also by a thread that is no longer known: the last one after `pthread_exit` of all.
    let _runtime = Runtime::try_enter();
    finish::complete();
}

fn map_header() {
    let path = recorder::path_of(HEADER_FILE.as_bytes(), None);
    // SAFETY: terminated path, fresh mapping.
    unsafe {
        // O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC
        let fd = syscall!(sys::OPENAT, -100isize, path.as_ptr(), 0o2001102, 0o644);
        if fd < 0 || syscall!(sys::FTRUNCATE, fd, HEADER_BYTES) < 0 {
            sys::die(&[b"cannot create the trace's header file: is the session directory writable?"]);
        }
        let page = sys::call(sys::MMAP, 0, HEADER_BYTES, 3, 1, fd as usize, 0);
        syscall!(sys::CLOSE, fd);
        if page < 0 {
            sys::die(&[b"cannot map the trace's header file"]);
        }
        header::set_page(page as *mut u8);
    }
    header::set(field::SEQUENCE, 1);
    header::set(field::PROCESS_ID, sys::process_id() as u64);
    header::set(field::MODE, config::mode());
    header::set(field::VERSION, PROTOCOL_VERSION as u64);
    header::set(field::STATE, state::RUNNING);
    header::set(field::MAGIC, MAGIC);
}

/// The initial thread's stack: from 8 MiB below the place where the kernel put the arguments, whatever the limit says, to the end of
/// the array that points to them.
fn initial_stack() -> (u64, u64) {
    // SAFETY: set by the loader: the number of arguments, then a pointer to each, then zero.
    let (end, arguments) = unsafe { (real::__libc_stack_end as u64, *real::__libc_stack_end as u64) };
    (end.saturating_sub(8 << 20), end + 8 * (arguments + 2))
}

/// The texts of arguments and environment, which lie at a random distance from the stack: from the first argument to the last variable.
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

/// The initial thread's static thread-local storage lies below its thread pointer.
fn initial_tls() -> (u64, u64) {
    let pointer: u64;
    // SAFETY: the first word at the thread pointer is the pointer itself.
    unsafe { core::arch::asm!("mov {}, fs:[0]", out(reg) pointer, options(nostack, pure, readonly)) };
    (pointer.saturating_sub(64 << 10), pointer)
}
