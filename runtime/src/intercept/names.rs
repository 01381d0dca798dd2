//! The names of threads: for reports only.

use crate::report::set_thread_name;
use crate::system::handles::find;
use crate::system::real::real;
use crate::system::thread::Runtime;
use core::ffi::{CStr, c_char, c_int, c_ulong};

unsafe extern "C" fn set_name(handle: u64, name: *const c_char) -> c_int {
    // SAFETY: the program's own handle and text.
    let result = unsafe { real!(fn pthread_setname_np(u64, *const c_char) -> c_int)(handle, name) };
    if result == 0
        && let Some(_runtime) = Runtime::try_enter()
        && let Some(thread) = find(handle)
    {
        // SAFETY: libc has read it: it is terminated.
        set_thread_name(thread.number.get(), unsafe { CStr::from_ptr(name) }.to_bytes());
    }
    result
}

unsafe extern "C" fn control(option: c_int, a: c_ulong, b: c_ulong, c: c_ulong, d: c_ulong) -> c_int {
    const PR_SET_NAME: c_int = 15;
    const LONGEST: usize = 15;
    // SAFETY: the program's own arguments; those that the option does not ask for are not looked at.
    let result = unsafe { real!(fn prctl(c_int, c_ulong, c_ulong, c_ulong, c_ulong) -> c_int)(option, a, b, c, d) };
    if option == PR_SET_NAME
        && result == 0
        && let Some(runtime) = Runtime::try_enter()
    {
        let text = a as *const u8;
        // SAFETY: the kernel has read the text up to its end, or so many bytes of it; no more are looked at here.
        let name = unsafe {
            let length = (0..LONGEST).take_while(|&at| *text.add(at) != 0).count();
            core::slice::from_raw_parts(text, length)
        };
        set_thread_name(runtime.thread().number.get(), name);
    }
    result
}

/// `AnnotateThreadName(file, line, name)`
unsafe extern "C" fn annotate(_file: *const c_char, _line: c_int, name: *const c_char) {
    if let Some(runtime) = Runtime::try_enter() {
        // SAFETY: the annotation's contract: a terminated text.
        set_thread_name(runtime.thread().number.get(), unsafe { CStr::from_ptr(name) }.to_bytes());
    }
}

interpose! {
    pthread_setname_np => set_name;
    prctl => control;
    AnnotateThreadName => annotate;
}
