//! What the kernel calls instead of the program's signal handlers, one function for all; `sigaction` and its kin show the program
//! its own. Where handlers run: [`crate::system::signals`].

use crate::detect;
use crate::intercept::kernel;
use crate::record::{external, recorder};
use crate::report;
use crate::serial::{arrivals, nudge, sched};
use crate::system::real::{errno, set_errno};
use crate::system::signals::{
    Action, FATAL, HANDLERS, LOCK, RUN, Run, SA_ONSTACK, SA_RESETHAND, SA_RESTART, SA_SIGINFO, SIGNALS, SignalInfo, action_of,
    bit, fatal, fatal_address, is_synchronous, kernel_action, remember, with_all_blocked,
};
use crate::system::thread::Runtime;
use crate::system::tls::{caller, current, hot};
use crate::system::{config, entry, header};
use core::ffi::c_int;
use core::sync::atomic::Ordering::*;
use rashomon_abi::header::note;
use rashomon_abi::record::{Op, sync_source};

fn arrived_address() -> usize {
    arrived as *const () as usize
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
        RUN.set(&(run as Run));
        if !new.is_null() && (*new).handler > 1 {
            // What was done before a handler was installed is seen by it.
            kernel::releases(kernel::Object::Signal(signal), caller());
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

/// What the kernel calls in place of the program's handlers.
unsafe extern "C" fn arrived(signal: c_int, information: *mut SignalInfo, context: *mut u8) {
    // SAFETY: `context` is a `ucontext_t`; RIP is register 16 of its `gregs`, which begin at byte 40.
    let interrupted = unsafe { *(context.add(40) as *const u64).add(16) };
    let Some(thread) = current() else {
        // SAFETY: the runtime does not know the thread.
        return unsafe { run(signal, information, context) };
    };
    if arrivals::is_held(thread, signal, information) {
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
        detect::enters_soon(hot());
    }
}

/// See [`Run`].
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
    // The write whose hook it came behind need not have been made.
    hot().pending.set(0);
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
                external::came_in(thread, signal as u64, sync_source::SIGNAL, 0, None);
            }
            recorder::sync(thread, Op::SignalEnter, signal as u64, 0, 0, &[]);
            if !faulted {
                kernel::acquire(&runtime, kernel::Object::Signal(signal), 0);
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
