//! Signal handlers run where the program could be interrupted, never inside the runtime: a handler that arrives there waits until
//! the runtime is left. Handlers of signals that report a fault of the running instruction run at once.
//!
//! The kernel knows one handler of ours for all signals that the program handles; `sigaction` and its kin show the program its
//! own. A handler that had to wait runs with the mask it asked for, on the stack of the thread, with the signal's information and
//! an empty context; several arrivals of a signal in the meantime are one. Signals that kill the process unless they are handled
//! mark the recording as crashed on their way.

use crate::detect;
use crate::intercept::kernel;
use crate::record::{outside, recorder};
use crate::report;
use crate::serial::{nudge, replay, sched};
use crate::system::entry;
use crate::system::lock::RawLock;
use crate::system::real::{errno, real, set_errno};
pub use crate::system::signal_types::{Action, SignalInfo};
use crate::system::sys::{self, syscall};
use crate::system::thread::{Runtime, State, Thread, all};
use crate::system::tls::{caller, current, hot};
use crate::system::{config, header};
use core::cell::Cell;
use core::ffi::c_int;
use core::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering::*};
use rashomon_abi::header::note;
use rashomon_abi::record::{Op, sync_source};

pub const SIGNALS: usize = 65;
pub const SA_SIGINFO: c_int = 4;
pub const SA_ONSTACK: c_int = 0x0800_0000;
pub const SA_RESTART: c_int = 0x1000_0000;
pub const SA_NODEFER: c_int = 0x4000_0000;
pub const SA_RESETHAND: c_int = 0x8000_0000_u32 as c_int;

/// A thread's signals that wait until it leaves the runtime, with the last information that came with each.
pub struct Arrived {
    set: AtomicU64,
    information: [Cell<SignalInfo>; SIGNALS],
    /// Those that will come again in a re-execution, at the same place: the thread sent them itself, or stood still when another
    /// one did.
    expected: AtomicU64,
    /// Those that came from outside while a schedule was in force.
    held: AtomicU64,
    /// How many came so far, those that did not have to wait included.
    count: AtomicU32,
    /// Since this was last asked, a handler ran that does not want interrupted calls to go on.
    interrupts: AtomicU32,
}

impl Arrived {
    /// A forked child does not inherit what waits.
    pub fn forget(&self) {
        for waiting in [&self.set, &self.expected, &self.held] {
            waiting.store(0, Relaxed);
        }
    }
}

static HANDLERS: [AtomicUsize; SIGNALS] = [const { AtomicUsize::new(0) }; SIGNALS];
static FLAGS: [AtomicU32; SIGNALS] = [const { AtomicU32::new(0) }; SIGNALS];
static MASKS: [AtomicU64; SIGNALS] = [const { AtomicU64::new(0) }; SIGNALS];
static INSTALLED: AtomicU64 = AtomicU64::new(0);
static LOCK: RawLock = RawLock::new();

const fn bit(signal: c_int) -> u64 {
    1 << (signal as u64 - 1)
}

pub fn handlers_installed() -> bool {
    INSTALLED.load(Relaxed) != 0
}

/// SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, SIGSYS
pub const fn is_synchronous(signal: c_int) -> bool {
    matches!(signal, 4 | 5 | 6 | 7 | 8 | 11 | 31)
}

/// Those of them whose way we want to see: not what debuggers and sandboxes use.
const FATAL: [c_int; 5] = [4, 6, 7, 8, 11];

fn arrived_address() -> usize {
    arrived as *const () as usize
}

fn fatal_address() -> usize {
    fatal as *const () as usize
}

/// Calls libc's sigaction.
///
/// # Safety
/// As sigaction(2).
unsafe fn kernel_action(signal: c_int, new: *const Action, old: *mut Action) -> c_int {
    // SAFETY: by the contract.
    unsafe { real!(fn sigaction(c_int, *const Action, *mut Action) -> c_int)(signal, new, old) }
}

/// The program's action as it knows it.
fn action_of(signal: usize) -> Action {
    let mut action = Action::new(HANDLERS[signal].load(Acquire), FLAGS[signal].load(Acquire) as c_int);
    action.mask[0] = MASKS[signal].load(Acquire);
    action
}

fn remember(signal: usize, action: &Action) {
    MASKS[signal].store(action.mask[0], Release);
    FLAGS[signal].store(action.flags as u32, Release);
    HANDLERS[signal].store(action.handler, Release);
    if action.handler <= 1 {
        INSTALLED.fetch_and(!bit(signal as c_int), Relaxed);
    } else {
        INSTALLED.fetch_or(bit(signal as c_int), Relaxed);
    }
}

/// sigaction(2) as the program means it.
///
/// # Safety
/// As sigaction(2).
pub unsafe fn change(signal: c_int, new: *const Action, old: *mut Action) -> c_int {
    // SAFETY: by the contract; the pointers handed down are to locals.
    unsafe {
        if config::mode() == 0 || !(1..SIGNALS as c_int).contains(&signal) {
            return kernel_action(signal, new, old);
        }
        let index = signal as usize;
        if !new.is_null() && (*new).handler > 1 {
            // What was done before a handler was installed is seen by it.
            kernel::publishes(kernel::Object::Signal(signal), caller());
        }
        with_all_blocked(|| {
            LOCK.with(|| {
                let before = action_of(index);
                let mut replaced = Action::new(0, 0);
                let result = if new.is_null() {
                    kernel_action(signal, core::ptr::null(), &mut replaced)
                } else {
                    let mut given = *new;
                    if given.handler > 1 {
                        given.handler = arrived_address();
                        given.flags |= SA_SIGINFO;
                    } else if given.handler == 0 && FATAL.contains(&signal) {
                        given.handler = fatal_address();
                        given.flags = given.flags & !SA_RESETHAND | SA_SIGINFO | SA_ONSTACK;
                    }
                    // A handler may run as soon as the kernel knows: its address must be there.
                    remember(index, &*new);
                    let result = kernel_action(signal, &given, &mut replaced);
                    if result != 0 {
                        remember(index, &before);
                    }
                    result
                };
                if result == 0 && !old.is_null() {
                    let ours = [arrived_address(), fatal_address(), terminated as *const () as usize, nudge::handler()]
                        .contains(&replaced.handler);
                    *old = if ours { Action { restorer: replaced.restorer, ..before } } else { replaced };
                }
                result
            })
        })
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

const SIGTERM: c_int = 15;

/// At the start of a program that is asked to end by SIGTERM, whether it handles that or not: what was reported is not lost.
pub fn watch_termination() {
    let mut present = Action::new(0, 0);
    // SAFETY: local actions.
    unsafe {
        if kernel_action(SIGTERM, core::ptr::null(), &mut present) == 0 && present.handler == 0 {
            kernel_action(
                SIGTERM,
                &Action::new(terminated as *const () as usize, SA_SIGINFO | SA_ONSTACK),
                core::ptr::null_mut(),
            );
        }
    }
}

unsafe extern "C" fn terminated(signal: c_int, information: *mut SignalInfo, context: *mut u8) {
    report::ends_by_signal();
    // SAFETY: the arguments are the kernel's.
    unsafe { fatal(signal, information, context) }
}

/// What the kernel calls for a signal that kills: it still does.
unsafe extern "C" fn fatal(signal: c_int, information: *mut SignalInfo, _context: *mut u8) {
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

/// What the kernel calls in place of the program's handlers.
unsafe extern "C" fn arrived(signal: c_int, information: *mut SignalInfo, context: *mut u8) {
    // SAFETY: `context` is a `ucontext_t`; RIP is register 16 of its `gregs`, which begin at byte 40.
    let interrupted = unsafe { *(context.add(40) as *const u64).add(16) };
    let Some(thread) = current() else {
        // SAFETY: the runtime does not know the thread.
        return unsafe { run(signal, information, context) };
    };
    if holds(thread, signal, information) {
        return;
    }
    if is_synchronous(signal) || hot().nesting.get() == 0 && !entry::is_in_hook(interrupted) {
        thread.arrived_signals.count.fetch_add(1, Release);
        // SAFETY: outside of the runtime, or the running instruction's fault.
        return unsafe { run(signal, information, context) };
    }
    // SAFETY: the kernel's information; ours is only read after the signal's bit is set.
    thread.arrived_signals.information[signal as usize].set(unsafe { *information });
    thread.arrived_signals.set.fetch_or(bit(signal), Release);
    thread.pending_signals.store(1, Release);
    thread.baton.fetch_or(sched::SIGNAL_ARRIVED, Release);
    thread.arrived_signals.count.fetch_add(1, Release);
    if hot().nesting.get() == 0 {
        thread.force_slow_path();
    }
}

/// Calls the program's handler.
///
/// # Safety
/// Where the program may be interrupted.
unsafe fn run(signal: c_int, information: *mut SignalInfo, context: *mut u8) {
    let Action { handler, flags, .. } = action_of(signal as usize);
    if handler <= 1 {
        return;
    }
    if flags & SA_RESETHAND != 0 {
        // The kernel has done so for itself.
        HANDLERS[signal as usize].store(0, Release);
    }
    let saved = errno();
    // A handler's calls must not change the site of the call that it interrupted.
    let (site, callee) = (hot().caller.get(), hot().callee.get());
    let call = || {
        // SAFETY: the program's own function, of the type its flags say.
        unsafe {
            if flags & SA_SIGINFO != 0 {
                core::mem::transmute::<usize, unsafe extern "C" fn(c_int, *mut SignalInfo, *mut u8)>(handler)(
                    signal,
                    information,
                    context,
                );
            } else {
                core::mem::transmute::<usize, unsafe extern "C" fn(c_int)>(handler)(signal);
            }
        }
    };
    match Runtime::try_enter() {
        Some(runtime) => sched::with_turn(&runtime, || {
            header::note(note::SIGNALS);
            let thread = runtime.thread();
            if flags & SA_RESTART == 0 {
                thread.arrived_signals.interrupts.store(1, Relaxed);
            }
            let expected = thread.arrived_signals.expected.fetch_and(!bit(signal), Relaxed) & bit(signal) != 0;
            // SAFETY: the kernel's or our copy of it.
            let (own, faulted) = unsafe { ((*information).is_own(), is_synchronous(signal) && (*information).code() > 0) };
            // The running instruction's fault happens again.
            if !faulted && (!own || config::serial() && !expected && !is_synchronous(signal)) {
                outside::came_in(thread, signal as u64, sync_source::SIGNAL, 0);
            }
            recorder::sync(thread, Op::SignalEnter, signal as u64, 0, 0, &[]);
            if !faulted {
                kernel::observe(&runtime, kernel::Object::Signal(signal), 0);
            }
            if detect::on() {
                runtime.with_own(|own| detect::handlers::begins(own, &raw const saved as u64));
                runtime.outside(call);
                runtime.with_own(|own| detect::handlers::ends(own, signal, handler as u64));
            } else {
                runtime.outside(call);
            }
            recorder::sync(thread, Op::SignalExit, signal as u64, 0, 0, &[]);
        }),
        None => call(),
    }
    hot().caller.set(site);
    hot().callee.set(callee);
    set_errno(saved);
}

/// The calling thread is about to send itself a signal.
pub fn expect(thread: &Thread, signal: c_int) {
    if (1..SIGNALS as c_int).contains(&signal) {
        thread.arrived_signals.expected.fetch_or(bit(signal), Relaxed);
    }
}

/// Serial mode: sends a signal to another thread of this process and waits until it is there, so that how the execution goes on
/// does not depend on when the kernel gets round to it. Not if the thread blocks the signal, or nobody handles it.
pub fn send_and_await(thread: &Thread, signal: c_int, send: impl FnOnce() -> c_int) -> c_int {
    let arrived = &thread.arrived_signals;
    sched::settles(thread);
    let before = arrived.count.load(Acquire);
    let handled = (1..SIGNALS as c_int).contains(&signal) && INSTALLED.load(Relaxed) & bit(signal) != 0;
    let alone = handled && arrived.set.load(Acquire) & bit(signal) == 0;
    if handled {
        arrived.expected.fetch_and(!bit(signal), Relaxed);
    }
    // Asked before it is sent: while the kernel begins a handler, the thread blocks what it is about to tell of.
    let blocked = handled && sys::blocks_signals(thread.kernel_id.get(), bit(signal));
    let result = send();
    if !handled || result != 0 {
        return result;
    }
    if !thread.has_block() && thread.ended.load(Acquire) == 0 {
        // It blocks all until it begins, and takes what was sent before anything else.
        arrived.expected.fetch_or(bit(signal), Relaxed);
        return result;
    }
    let is_there = || arrived.count.load(Acquire) != before;
    sched::patiently(|| blocked || is_there() || thread.ended.load(Acquire) != 0);
    if is_there() {
        sched::stands_in_line(thread);
        if alone && arrived.count.load(Acquire) == before + 1 {
            arrived.expected.fetch_or(bit(signal), Relaxed);
        }
    }
    result
}

/// Signals from outside that arrive while a schedule is in force are for the time behind it: it ends where the first of them
/// arrived when it was recorded.
fn holds(thread: &Thread, signal: c_int, information: *mut SignalInfo) -> bool {
    // SAFETY: the kernel's information.
    if is_synchronous(signal) || !replay::active() || unsafe { (*information).is_own() } {
        return false;
    }
    let arrived = &thread.arrived_signals;
    // SAFETY: the kernel's information.
    arrived.information[signal as usize].set(unsafe { *information });
    arrived.held.fetch_or(bit(signal), AcqRel);
    // The schedule may have ended in between.
    replay::active() || arrived.held.fetch_and(!bit(signal), AcqRel) & bit(signal) == 0
}

/// The schedule is over.
pub fn release_held() {
    for thread in all() {
        let held = thread.arrived_signals.held.swap(0, AcqRel);
        if held == 0 || thread.ended.load(Acquire) != 0 || !thread.has_block() {
            continue;
        }
        if thread.state.get() == State::External {
            // The kernel has to interrupt its call once more.
            for signal in (1..SIGNALS as c_int).filter(|&signal| held & bit(signal) != 0) {
                // SAFETY: a signal to a thread of this process.
                unsafe { syscall!(sys::TGKILL, sys::process_id(), thread.kernel_id.get(), signal) };
            }
            continue;
        }
        thread.arrived_signals.set.fetch_or(held, Release);
        thread.pending_signals.store(1, Release);
        thread.force_slow_path();
        thread.baton.fetch_or(sched::SIGNAL_ARRIVED, Release);
        sys::futex_wake(&thread.baton, 1);
    }
}

/// Runs what arrived while the calling thread was in the runtime, which it has just left.
pub fn deliver_pending() {
    let Some(thread) = current() else { return };
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

/// Runs `body` with every signal blocked: threads it creates never take one.
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
