//! `sigaction` and its older kin.

use crate::signals::{self, Action, SA_NODEFER, SA_RESETHAND, SA_RESTART};
use core::ffi::c_int;

const SIG_ERR: usize = usize::MAX;
/// `SIG_HOLD` of `sigset`.
const SIG_HOLD: usize = 2;

unsafe extern "C" fn action(signal: c_int, new: *const Action, old: *mut Action) -> c_int {
    // SAFETY: the program's arguments.
    unsafe { signals::change(signal, new, old) }
}

fn replace(signal: c_int, handler: usize, flags: c_int) -> usize {
    let mut old = Action::new(0, 0);
    // SAFETY: local actions.
    if unsafe { signals::change(signal, &Action::new(handler, flags), &mut old) } == 0 { old.handler } else { SIG_ERR }
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
        crate::real::set_errno(22);
        return SIG_ERR;
    }
    let bit = 1u64 << (signal - 1);
    let mut before = 0u64;
    let mut old = Action::new(0, 0);
    let hold = handler == SIG_HOLD;
    let new = Action::new(handler, 0);
    // SAFETY: masks of eight bytes and local actions.
    unsafe {
        if signals::change(signal, if hold { core::ptr::null() } else { &new }, &mut old) != 0 {
            return SIG_ERR;
        }
        crate::sys::syscall!(crate::sys::RT_SIGPROCMASK, !hold as usize, &raw const bit, &raw mut before, 8);
    }
    if before & bit != 0 { SIG_HOLD } else { old.handler }
}

unsafe extern "C" fn interrupt(signal: c_int, interrupts: c_int) -> c_int {
    let mut action = Action::new(0, 0);
    // SAFETY: local actions.
    unsafe {
        if signals::change(signal, core::ptr::null(), &mut action) != 0 {
            return -1;
        }
        action.flags = if interrupts != 0 { action.flags & !SA_RESTART } else { action.flags | SA_RESTART };
        signals::change(signal, &action, core::ptr::null_mut())
    }
}

interpose! {
    sigaction => action;
    signal => simple;
    bsd_signal => simple;
    ssignal => simple;
    sysv_signal => once;
    __sysv_signal => once;
    sigset => set;
    siginterrupt => interrupt;
}
