//! Signal handlers run where the program could be interrupted, never inside the runtime: a handler that arrives there waits until
//! the runtime is left. Handlers of signals that report a fault of the running instruction run at once.
//!
//! Here is what is known of the program's actions, and what waits for each thread. What the kernel calls instead of the program's
//! handlers is in [`RUN`]'s room. A handler that had to wait runs with the mask it asked for, on the stack of the thread, with
//! the signal's information and an empty context; several arrivals of a signal in the meantime are one. Signals that kill the
//! process unless they are handled mark the recording as crashed on their way.

use crate::system::header;
use crate::system::lock::RawLock;
use crate::system::real::real;
use crate::system::registered::Registered;
pub use crate::system::signal_types::{Action, SignalInfo};
use crate::system::sys::{self, syscall};
use crate::system::thread::{Runtime, Thread};
use crate::system::tls::current;
use core::cell::Cell;
use core::ffi::c_int;
use core::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering::*};

/// Calls the program's handler.
///
/// # Safety
/// Where the program may be interrupted.
pub type Run = unsafe fn(c_int, *mut SignalInfo, *mut u8);

/// Set before a handler is installed.
pub static RUN: Registered<Run> = Registered::none();

pub const SIGNALS: usize = 65;
pub const SA_SIGINFO: c_int = 4;
pub const SA_ONSTACK: c_int = 0x0800_0000;
pub const SA_RESTART: c_int = 0x1000_0000;
pub const SA_NODEFER: c_int = 0x4000_0000;
pub const SA_RESETHAND: c_int = 0x8000_0000_u32 as c_int;

/// A thread's signals that wait until it leaves the runtime, with the last information that came with each.
pub struct Arrived {
    pub set: AtomicU64,
    pub information: [Cell<SignalInfo>; SIGNALS],
    /// Those that will come again in a re-execution, at the same place: the thread sent them itself, or stood still when another
    /// one did.
    pub expected: AtomicU64,
    /// Those that came from outside while a schedule was in force.
    pub held: AtomicU64,
    /// How many came so far, those that did not have to wait included.
    pub count: AtomicU32,
    /// Since this was last asked, a handler ran that does not want interrupted calls to go on.
    pub interrupts: AtomicU32,
}

impl Arrived {
    /// A forked child does not inherit what waits.
    pub fn forget(&self) {
        for waiting in [&self.set, &self.expected, &self.held] {
            waiting.store(0, Relaxed);
        }
    }
}

pub static HANDLERS: [AtomicUsize; SIGNALS] = [const { AtomicUsize::new(0) }; SIGNALS];
static FLAGS: [AtomicU32; SIGNALS] = [const { AtomicU32::new(0) }; SIGNALS];
static MASKS: [AtomicU64; SIGNALS] = [const { AtomicU64::new(0) }; SIGNALS];
static INSTALLED: AtomicU64 = AtomicU64::new(0);
pub static LOCK: RawLock = RawLock::new();

pub const fn bit(signal: c_int) -> u64 {
    1 << (signal as u64 - 1)
}

/// Signals that nobody sends, as a rule: what a thread does raises them. Rust's library handles two of them in every program.
const SYNCHRONOUS: u64 = {
    let (mut all, mut signal) = (0, 1);
    while signal < SIGNALS as c_int {
        all |= if is_synchronous(signal) { bit(signal) } else { 0 };
        signal += 1;
    }
    all
};

/// Whether the program handles signals that may still come while nothing happens.
pub fn handlers_installed() -> bool {
    INSTALLED.load(Relaxed) & !SYNCHRONOUS != 0
}

/// SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, SIGSYS
pub const fn is_synchronous(signal: c_int) -> bool {
    matches!(signal, 4 | 5 | 6 | 7 | 8 | 11 | 31)
}

/// Those of them whose way we want to see: not what debuggers and sandboxes use.
pub const FATAL: [c_int; 5] = [4, 6, 7, 8, 11];

pub fn fatal_address() -> usize {
    fatal as *const () as usize
}

/// Calls libc's sigaction.
///
/// # Safety
/// As sigaction(2).
pub unsafe fn kernel_action(signal: c_int, new: *const Action, old: *mut Action) -> c_int {
    // SAFETY: by the contract.
    unsafe { real!(fn sigaction(c_int, *const Action, *mut Action) -> c_int)(signal, new, old) }
}

/// The program's action as it knows it.
pub fn action_of(signal: usize) -> Action {
    let mut action = Action::new(HANDLERS[signal].load(Acquire), FLAGS[signal].load(Acquire) as c_int);
    action.mask[0] = MASKS[signal].load(Acquire);
    action
}

pub fn remember(signal: usize, action: &Action) {
    MASKS[signal].store(action.mask[0], Release);
    FLAGS[signal].store(action.flags as u32, Release);
    HANDLERS[signal].store(action.handler, Release);
    if action.handler <= 1 {
        INSTALLED.fetch_and(!bit(signal as c_int), Relaxed);
    } else {
        INSTALLED.fetch_or(bit(signal as c_int), Relaxed);
    }
}

/// Whether the program has a handler of its own for a signal.
pub fn is_handled(signal: c_int) -> bool {
    INSTALLED.load(Relaxed) & bit(signal) != 0
}

/// Lets a handler of the runtime's own have a signal that the program does not handle. False: it does by now.
///
/// # Safety
/// A handler of the type that the flags say. All signals are blocked, or the caller is a signal's handler outside the runtime.
pub unsafe fn lend(signal: c_int, handler: usize, flags: c_int) -> bool {
    // SAFETY: a local action.
    unsafe { act_unless_handled(signal, &Action::new(handler, flags)) }
}

/// Ends what [`lend`] began. Unless the program handles the signal by now: its handler stays.
///
/// # Safety
/// As for [`lend`].
pub unsafe fn take_back(signal: c_int) {
    // SAFETY: a local action: the program's, which is no handler.
    unsafe { act_unless_handled(signal, &Action::new(action_of(signal as usize).handler, 0)) };
}

/// Nobody changes the action in between. No test forces that: the window is between two instructions of the runtime.
unsafe fn act_unless_handled(signal: c_int, action: &Action) -> bool {
    LOCK.with(|| {
        let free = !is_handled(signal);
        if free {
            // SAFETY: by the contract.
            unsafe { kernel_action(signal, action, core::ptr::null_mut()) };
        }
        free
    })
}

/// At the start: sees fatal signals on their way, where nothing else is arranged.
pub fn watch_fatal() {
    for signal in FATAL {
        let mut present = Action::new(0, 0);
        // SAFETY: local actions.
        unsafe {
            if kernel_action(signal, core::ptr::null(), &mut present) == 0 && present.handler == 0 {
                kernel_action(signal, &Action::new(fatal_address(), SA_SIGINFO | SA_ONSTACK), core::ptr::null_mut());
            }
        }
    }
}

/// What the kernel calls for a signal that kills: it still does.
pub unsafe extern "C" fn fatal(signal: c_int, information: *mut SignalInfo, _context: *mut u8) {
    // SAFETY: the information is the kernel's.
    let (code, address) = unsafe { ((*information).code(), (*information).address()) };
    header::crashed(signal as u64, code, address);
    // SAFETY: a local action; the information is the kernel's.
    unsafe {
        kernel_action(signal, &Action::new(0, 0), core::ptr::null_mut());
        // A fault happens again as soon as this returns. What was sent is sent again, and waits until then.
        if (*information).code() <= 0 {
            syscall!(sys::TGKILL, sys::process_id(), sys::thread_id(), signal);
        }
    }
}

/// The calling thread is about to send itself a signal.
pub fn expect(thread: &Thread, signal: c_int) {
    if (1..SIGNALS as c_int).contains(&signal) {
        thread.arrived_signals.expected.fetch_or(bit(signal), Relaxed);
    }
}

/// Runs what arrived while the calling thread was in the runtime, which it has just left.
pub fn deliver_pending() {
    let (Some(thread), Some(run)) = (current(), RUN.get()) else { return };
    thread.pending_signals.store(0, Release);
    let mut pending = thread.arrived_signals.set.swap(0, AcqRel);
    while pending != 0 {
        let signal = pending.trailing_zeros() as c_int + 1;
        pending &= pending - 1;
        // A context for handlers that only look at it: the real one is gone.
        let mut context = core::mem::MaybeUninit::<[u64; 128]>::uninit();
        for at in 0..128 {
            // Not by `memset`, which would be taken for the program's. SAFETY: inside the array.
            unsafe { context.as_mut_ptr().cast::<u64>().add(at).write_volatile(0) };
        }
        let action = action_of(signal as usize);
        let mask = action.mask[0] | if action.flags & SA_NODEFER == 0 { bit(signal) } else { 0 };
        let mut before = 0u64;
        // SAFETY: the information was written before the bit was set; masks of eight bytes.
        unsafe {
            let mut information = thread.arrived_signals.information[signal as usize].get();
            syscall!(sys::RT_SIGPROCMASK, 0, &raw const mask, &raw mut before, 8);
            run(signal, &mut information, context.as_mut_ptr().cast());
            syscall!(sys::RT_SIGPROCMASK, 2, &raw const before, 0usize, 8);
        }
    }
}

/// The same from inside the runtime, where the thread may be interrupted nevertheless: it holds the turn, and no table of ours is
/// half changed.
pub fn deliver_inside(runtime: &Runtime) {
    runtime.outside(deliver_pending);
}

/// Whether a handler that ran on this thread since the last question makes an interrupted call fail instead of going on.
pub fn interrupts(thread: &Thread) -> bool {
    thread.arrived_signals.interrupts.swap(0, Relaxed) != 0
}

/// A forked child: the lock may have been somebody's who is not there.
pub fn reset_lock() {
    LOCK.unlock();
}

/// Sets which signals the calling thread blocks, and tells which it did.
pub fn set_mask(mask: u64) -> u64 {
    let mut old = 0u64;
    // SAFETY: plain signal masks of eight bytes.
    unsafe { syscall!(sys::RT_SIGPROCMASK, 2, &raw const mask, &raw mut old, 8) };
    old
}

/// Runs `body` with every signal blocked, those of libc's own included: it must not create threads.
pub fn with_all_blocked<R>(body: impl FnOnce() -> R) -> R {
    let old = set_mask(u64::MAX);
    let result = body();
    set_mask(old);
    result
}

/// From here on the calling thread takes no signal but the two by which the thread library changes identities and cancels: an
/// unknown thread's handlers would run unseen.
pub fn block_programs() -> u64 {
    const LIBRARYS: u64 = bit(32) | bit(33);
    set_mask(!LIBRARYS)
}
