//! `sigaction` and its older kin; signals that are sent.

use super::kernel::{self, Object};
use super::signals::change;
use crate::detect;
use crate::serial::{arrivals, sched};
use crate::system::config;
use crate::system::handles;
use crate::system::real::real;
use crate::system::signals::{self, Action, SA_NODEFER, SA_RESETHAND, SA_RESTART};
use crate::system::sys::{self, syscall};
use crate::system::thread::{Runtime, Thread, all};
use crate::system::tls::caller;
use core::ffi::c_int;
use core::sync::atomic::Ordering::Acquire;

const SIG_ERR: usize = usize::MAX;
/// `SIG_HOLD` of `sigset`.
const SIG_HOLD: usize = 2;

unsafe extern "C" fn action(signal: c_int, new: *const Action, old: *mut Action) -> c_int {
    // SAFETY: the program's arguments.
    unsafe { change(signal, new, old) }
}

fn replace(signal: c_int, handler: usize, flags: c_int) -> usize {
    let mut old = Action::new(0, 0);
    // SAFETY: local actions.
    if unsafe { change(signal, &Action::new(handler, flags), &mut old) } == 0 { old.handler } else { SIG_ERR }
}

unsafe extern "C" fn simple(signal: c_int, handler: usize) -> usize {
    replace(signal, handler, SA_RESTART)
}

unsafe extern "C" fn once(signal: c_int, handler: usize) -> usize {
    replace(signal, handler, SA_RESETHAND | SA_NODEFER)
}

/// Also changes the mask: `SIG_HOLD` blocks the signal and leaves the handler, anything else unblocks it.
unsafe extern "C" fn set(signal: c_int, handler: usize) -> usize {
    if !(1..=64).contains(&signal) {
        crate::system::real::set_errno(22);
        return SIG_ERR;
    }
    let bit = 1u64 << (signal - 1);
    let mut before = 0u64;
    let mut old = Action::new(0, 0);
    let hold = handler == SIG_HOLD;
    let new = Action::new(handler, 0);
    // SAFETY: masks of eight bytes and local actions.
    unsafe {
        if change(signal, if hold { core::ptr::null() } else { &new }, &mut old) != 0 {
            return SIG_ERR;
        }
        syscall!(sys::RT_SIGPROCMASK, !hold as usize, &raw const bit, &raw mut before, 8);
    }
    if before & bit != 0 { SIG_HOLD } else { old.handler }
}

unsafe extern "C" fn interrupt(signal: c_int, interrupts: c_int) -> c_int {
    let mut action = Action::new(0, 0);
    // SAFETY: local actions.
    unsafe {
        if change(signal, core::ptr::null(), &mut action) != 0 {
            return -1;
        }
        action.flags = if interrupts != 0 { action.flags & !SA_RESTART } else { action.flags | SA_RESTART };
        change(signal, &action, core::ptr::null_mut())
    }
}

/// A thread that sends itself a signal is interrupted where it expects that.
fn send(signal: c_int, to_itself: impl FnOnce() -> bool, real: impl FnOnce() -> c_int) -> c_int {
    let Some(runtime) = Runtime::try_enter() else { return real() };
    if !to_itself() {
        return runtime.outside(real);
    }
    if !detect::on() {
        signals::expect(runtime.thread(), signal);
        return runtime.outside(real);
    }
    let before = runtime.with_own(|own| core::mem::replace(&mut own.detect.sending, signal));
    let result = runtime.outside(real);
    runtime.with_own(|own| own.detect.sending = before);
    result
}

/// A system call's result as libc tells it. These are made here because handlers call them, where nothing may be looked up.
fn result_of(result: isize) -> c_int {
    if result < 0 {
        crate::system::real::set_errno(-result as c_int);
        return -1;
    }
    0
}

const KILL: usize = 62;

unsafe extern "C" fn raise_signal(signal: c_int) -> c_int {
    // SAFETY: a signal to the calling thread.
    send(signal, || true, || result_of(unsafe { syscall!(sys::TGKILL, sys::process_id(), sys::thread_id(), signal) }))
}

unsafe extern "C" fn kill_process(process: c_int, signal: c_int) -> c_int {
    sends(process, signal);
    // To whom it goes if there are several threads is the kernel's choice.
    let own = || process as u32 == sys::process_id() && (detect::on() || sched::live_count() == 1);
    // SAFETY: the program's own arguments.
    send(signal, own, || result_of(unsafe { syscall!(KILL, process as isize, signal as isize) }))
}

/// Who takes a signal is ordered behind those who sent it; who waits for a process that it ends, too.
fn sends(process: c_int, signal: c_int) {
    let site = caller();
    if signal != 0 {
        // A group, or all, may be the own process among others.
        if process as u32 == sys::process_id() || process <= 0 {
            kernel::releases(Object::Signal(signal), site);
        }
        if process as u32 != sys::process_id() {
            kernel::releases(Object::Processes, site);
        }
    }
}

/// Sends a signal to another thread, if somebody handles it not before it is there.
fn send_to(thread: Option<&Thread>, signal: c_int, own: impl FnOnce() -> bool, real: impl FnOnce() -> c_int) -> c_int {
    let site = caller();
    if own() {
        return send(signal, || true, real);
    }
    if signal != 0 {
        kernel::releases(Object::Signal(signal), site);
    }
    if config::serial()
        && let Some(thread) = thread
        && let Some(_runtime) = Runtime::try_enter()
    {
        return arrivals::send_and_await(thread, signal, real);
    }
    send(signal, || false, real)
}

fn found(handle: u64) -> Option<&'static Thread> {
    let _runtime = Runtime::try_enter()?;
    if config::serial() { handles::find(handle) } else { None }
}

fn is_self(handle: u64) -> bool {
    // SAFETY: the real function.
    handle == unsafe { real!(fn pthread_self() -> u64)() }
}

unsafe extern "C" fn kill_thread(handle: u64, signal: c_int) -> c_int {
    // SAFETY: the real function with the program's arguments.
    let real = || unsafe { real!("GLIBC_2.34" fn pthread_kill(u64, c_int) -> c_int)(handle, signal) };
    send_to(if is_self(handle) { None } else { found(handle) }, signal, || is_self(handle), real)
}

unsafe extern "C" fn queue_to_thread(handle: u64, signal: c_int, value: usize) -> c_int {
    // SAFETY: as above.
    let real = || unsafe { real!(fn pthread_sigqueue(u64, c_int, usize) -> c_int)(handle, signal, value) };
    send_to(if is_self(handle) { None } else { found(handle) }, signal, || is_self(handle), real)
}

unsafe extern "C" fn kill_thread_of(process: c_int, thread: c_int, signal: c_int) -> c_int {
    // SAFETY: as above.
    let real = || result_of(unsafe { syscall!(sys::TGKILL, process as isize, thread as isize, signal as isize) });
    if process as u32 != sys::process_id() {
        sends(process, signal);
        return send(signal, || false, real);
    }
    let mut threads = all();
    let named = threads.find(|known| known.kernel_id.get() == thread as u32 && known.ended.load(Acquire) == 0);
    send_to(named.filter(|_| config::serial()), signal, || thread as u32 == sys::thread_id(), real)
}

unsafe extern "C" fn kill_group(group: c_int, signal: c_int) -> c_int {
    sends(0, signal);
    // SAFETY: as above.
    send(signal, || false, || unsafe { real!(fn killpg(c_int, c_int) -> c_int)(group, signal) })
}

unsafe extern "C" fn queue(process: c_int, signal: c_int, value: usize) -> c_int {
    sends(process, signal);
    let own = || process as u32 == sys::process_id() && (detect::on() || sched::live_count() == 1);
    // SAFETY: as above.
    send(signal, own, || unsafe { real!(fn sigqueue(c_int, c_int, usize) -> c_int)(process, signal, value) })
}

interpose! {
    raise => raise_signal;
    kill => kill_process;
    killpg => kill_group;
    sigqueue => queue;
    tgkill => kill_thread_of;
    pthread_kill => kill_thread;
    pthread_sigqueue => queue_to_thread;
    sigaction => action;
    signal => simple;
    bsd_signal => simple;
    ssignal => simple;
    sysv_signal => once;
    __sysv_signal => once;
    sigset => set;
    siginterrupt => interrupt;
}
