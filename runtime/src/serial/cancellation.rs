//! Whether a thread that is about to wait in the model was cancelled: the C library cannot reach it there.

use crate::serial::sched::WaitFor;
use crate::system::real::real;
use crate::system::thread::Runtime;
use core::ffi::c_int;
use core::sync::atomic::Ordering::*;

/// Whether the calling thread, about to wait, has to end instead.
pub fn is_due(runtime: &Runtime, what: WaitFor) -> bool {
    let point = !matches!(
        what,
        WaitFor::Lock | WaitFor::LockShared | WaitFor::Barrier | WaitFor::Once | WaitFor::Futex | WaitFor::Nothing
    );
    point && runtime.thread().cancelled.load(Acquire) != 0 && is_enabled()
}

pub fn is_enabled() -> bool {
    deferring(|| ()).0
}

/// Calls what may be a cancellation point, and is to be none here.
pub fn deferred<R>(call: impl FnOnce() -> R) -> R {
    deferring(call).1
}

/// Calls with cancellation disabled. Whether it was enabled before, as it is again afterwards.
fn deferring<R>(call: impl FnOnce() -> R) -> (bool, R) {
    let mut state = 1;
    // SAFETY: PTHREAD_CANCEL_DISABLE is 1; then back to what it was.
    unsafe {
        let set = real!(fn pthread_setcancelstate(c_int, *mut c_int) -> c_int);
        set(1, &mut state);
        let result = call();
        set(state, core::ptr::null_mut());
        (state == 0, result)
    }
}

/// Does not come back if the thread is cancelled: callers hold nothing.
pub fn test(runtime: &Runtime) {
    // SAFETY: no arguments.
    runtime.outside(|| unsafe { real!(fn pthread_testcancel() -> ())() });
}
