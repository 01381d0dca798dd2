//! `pthread_cancel` of threads that block in the model, where the C library cannot reach them.
//!
//! The thread is let go and, if it is at a cancellation point and lets itself be cancelled, calls `pthread_testcancel` outside
//! the runtime: from there on it unwinds like any other, with the turn. Calls into the kernel are made outside anyway.

use crate::serial::sched;
use crate::system::config;
use crate::system::handles::find;
use crate::system::real::real;
use crate::system::thread::Runtime;
use core::ffi::c_int;

unsafe extern "C" fn cancel(handle: u64) -> c_int {
    // SAFETY: the program's argument.
    let real = || unsafe { real!(fn pthread_cancel(u64) -> c_int)(handle) };
    if !config::serial() {
        return real();
    }
    let Some(_runtime) = Runtime::try_enter() else { return real() };
    let Some(thread) = find(handle) else { return real() };
    // A call into the kernel is left from where the thread is in it.
    sched::settles(thread);
    let result = real();
    if result == 0 {
        sched::cancelled(thread);
        sched::settles(thread);
    }
    result
}

interpose! {
    pthread_cancel => cancel;
}
