//! `dlopen` and `dlclose`: modules that come and go.
//!
//! `dlopen` looks at who calls it, so it is jumped to with the program's return address in place. What it loaded is written down when the first constructor of an instrumented
//! library calls the runtime, before the next library comes or goes, and at the end of the process.

use crate::modules;
use crate::real::{Real, real};
use crate::thread::Runtime;
use core::ffi::{c_int, c_void};

fn opening(real: &Real) -> *mut c_void {
    if let Some(_runtime) = Runtime::try_enter() {
        modules::write_changes();
        modules::changing();
    }
    real.required()
}

unsafe extern "C" fn before_open() -> *mut c_void {
    static REAL: Real = Real::new(c"dlopen", None);
    opening(&REAL)
}

unsafe extern "C" fn before_open_in_namespace() -> *mut c_void {
    static REAL: Real = Real::new(c"dlmopen", None);
    opening(&REAL)
}

macro_rules! jump_behind {
    ($($name:ident => $before:path;)*) => { $(
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name() {
            core::arch::naked_asm!(
                $crate::intercept::names_of!($name),
                "push rdi", "push rsi", "push rdx",
                "call {before}",
                "pop rdx", "pop rsi", "pop rdi",
                "jmp rax",
                before = sym $before,
            )
        }
    )* };
}

jump_behind! {
    dlopen => before_open;
    dlmopen => before_open_in_namespace;
}

unsafe extern "C" fn close(library: *mut c_void) -> c_int {
    // SAFETY: the program's argument.
    let real = || unsafe { real!(fn dlclose(*mut c_void) -> c_int)(library) };
    let Some(runtime) = Runtime::try_enter() else { return real() };
    modules::write_changes();
    let result = runtime.outside(real);
    modules::write();
    result
}

interpose! {
    dlclose => close;
}
