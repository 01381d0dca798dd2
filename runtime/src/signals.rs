//! Signal handlers run where the program could be interrupted, never inside the runtime: a handler that arrives there waits until the
//! runtime is left. Handlers of signals that report a fault of the running instruction run at once.

use crate::lock::RawLock;
use crate::real::{errno, set_errno};
use crate::sys::{self, syscall};
use crate::thread::Runtime;
use crate::tls::{current, hot};
use crate::{header, hooks, recorder};
use core::ffi::c_int;
use core::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering::*};
use rashomon_abi::header::note;
use rashomon_abi::record::Op;

pub const SIGNALS: usize = 65;
const SA_SIGINFO: c_int = 4;
const SA_RESETHAND: c_int = 0x8000_0000_u32 as c_int;

/// `siginfo_t`.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
pub struct SignalInfo(pub [u8; 128]);

/// glibc's `struct sigaction`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Action {
    pub handler: usize,
    pub mask: [u64; 16],
    pub flags: c_int,
    pub restorer: usize,
}

static HANDLERS: [AtomicUsize; SIGNALS] = [const { AtomicUsize::new(0) }; SIGNALS];
static FLAGS: [AtomicU32; SIGNALS] = [const { AtomicU32::new(0) }; SIGNALS];
static INSTALLED: AtomicU64 = AtomicU64::new(0);
/// Signals that arrived in the runtime, a bit a signal, for each thread by `number % QUEUES`; with the last information that came with each.
const QUEUES: usize = 64;
static PENDING: [AtomicU64; QUEUES] = [const { AtomicU64::new(0) }; QUEUES];
static mut INFORMATION: [[SignalInfo; SIGNALS]; QUEUES] = [[SignalInfo([0; 128]); SIGNALS]; QUEUES];
static LOCK: RawLock = RawLock::new();

pub fn handlers_installed() -> bool {
    INSTALLED.load(Relaxed) != 0
}

/// The program's handler of a signal as it knows it, and its flags.
pub fn handler(signal: c_int) -> (usize, c_int) {
    (HANDLERS[signal as usize].load(Acquire), FLAGS[signal as usize].load(Acquire) as c_int)
}

/// The program installs a handler: what to give the kernel in its place.
pub fn install(signal: c_int, handler: usize, flags: c_int) -> (usize, c_int) {
    LOCK.with(|| {
        HANDLERS[signal as usize].store(handler, Release);
        FLAGS[signal as usize].store(flags as u32, Release);
    });
    // SIG_DFL and SIG_IGN stay with the kernel.
    if handler <= 1 {
        INSTALLED.fetch_and(!(1 << (signal as u64 % 64)), Relaxed);
        return (handler, flags);
    }
    INSTALLED.fetch_or(1 << (signal as u64 % 64), Relaxed);
    (arrived as *const () as usize, flags | SA_SIGINFO)
}

/// SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, SIGSYS
const fn is_synchronous(signal: c_int) -> bool {
    matches!(signal, 4 | 5 | 6 | 7 | 8 | 11 | 31)
}

/// What the kernel calls in place of the program's handlers.
unsafe extern "C" fn arrived(signal: c_int, information: *mut SignalInfo, context: *mut u8) {
    let thread = current();
    // SAFETY: `context` is a `ucontext_t`; RIP is register 16 of its `gregs`, which begin at byte 40.
    let interrupted = unsafe { *(context.add(40) as *const u64).add(16) };
    // SAFETY: this thread's block and record; the queue's entry is only read after its bit is set.
    unsafe {
        if thread.is_null() || is_synchronous(signal) || (*hot()).nesting == 0 && !hooks::contains(interrupted) {
            run(signal, information, context);
            return;
        }
        let queue = (*thread).number as usize % QUEUES;
        (&raw mut INFORMATION[queue][signal as usize]).write(*information);
        PENDING[queue].fetch_or(1 << (signal as u64 % 64), Release);
        (*thread).pending_signals.store(1, Release);
        if (*hot()).nesting == 0 {
            (*thread).force_slow_path();
        }
    }
}

/// Calls the program's handler.
///
/// # Safety
/// Where the program may be interrupted.
unsafe fn run(signal: c_int, information: *mut SignalInfo, context: *mut u8) {
    let (handler, flags) = handler(signal);
    if handler <= 1 {
        return;
    }
    if flags & SA_RESETHAND != 0 {
        HANDLERS[signal as usize].store(0, Release);
    }
    header::note(note::SIGNALS);
    let saved = errno();
    if let Some(runtime) = Runtime::try_enter() {
        recorder::sync(runtime.thread(), Op::SignalEnter, signal as u64, 0, 0, &[]);
    }
    // SAFETY: the program's own function, of the type its flags say.
    unsafe {
        if flags & SA_SIGINFO != 0 {
            core::mem::transmute::<usize, unsafe extern "C" fn(c_int, *mut SignalInfo, *mut u8)>(handler)(signal, information, context);
        } else {
            core::mem::transmute::<usize, unsafe extern "C" fn(c_int)>(handler)(signal);
        }
    }
    if let Some(runtime) = Runtime::try_enter() {
        recorder::sync(runtime.thread(), Op::SignalExit, signal as u64, 0, 0, &[]);
    }
    set_errno(saved);
}

/// Runs what arrived while the calling thread was in the runtime, which it has just left.
pub fn deliver_pending() {
    let thread = current();
    if thread.is_null() {
        return;
    }
    // SAFETY: the calling thread's record.
    let thread = unsafe { &*thread };
    thread.pending_signals.store(0, Release);
    let queue = thread.number as usize % QUEUES;
    let mut pending = PENDING[queue].swap(0, AcqRel);
    while pending != 0 {
        let bit = pending.trailing_zeros();
        pending &= pending - 1;
        let signal = if bit == 0 { 64 } else { bit as c_int };
        // A context for handlers that only look at it: the real one is gone.
        let mut context = [0u64; 128];
        // SAFETY: the information was written before the bit was set.
        unsafe {
            let mut information = (&raw const INFORMATION[queue][signal as usize]).read();
            run(signal, &mut information, context.as_mut_ptr().cast());
        }
    }
}

/// The same from inside the runtime, where the thread may be interrupted nevertheless: it holds the turn, and no table of ours is half changed.
pub fn deliver_inside(runtime: &Runtime) {
    runtime.outside(deliver_pending);
}

/// Runs `body` with every signal blocked: threads it creates never take one.
pub fn with_all_blocked<R>(body: impl FnOnce() -> R) -> R {
    let all = u64::MAX;
    let mut old = 0u64;
    // SAFETY: plain signal masks of eight bytes.
    unsafe {
        syscall!(sys::RT_SIGPROCMASK, 2, &raw const all, &raw mut old, 8);
        let result = body();
        syscall!(sys::RT_SIGPROCMASK, 2, &raw const old, 0usize, 8);
        result
    }
}
