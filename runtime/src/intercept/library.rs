//! `dlopen` and `dlclose`: modules that come and go.
//!
//! `dlopen` looks at who calls it, so it is jumped to with the program's return address in place. What it loaded is written down
//! when the first constructor of an instrumented library calls the runtime, before the next library comes or goes, and at the end
//! of the process.

use crate::detect::libraries;
use crate::system::modules;
use crate::system::real::{Real, real};
use crate::system::thread::Runtime;
use core::ffi::{c_char, c_int, c_void};

fn opening(real: &'static Real, and_look: *mut c_void) -> *mut c_void {
    if libraries::wanted() {
        return and_look;
    }
    if let Some(_runtime) = Runtime::try_enter() {
        modules::write_changes();
        modules::changing();
    }
    real.required()
}

/// In the place of the real function where somebody wants to know at once what it loads. To it the caller is the runtime.
unsafe extern "C" fn open_and_look(file: *const c_char, mode: c_int) -> *mut c_void {
    // SAFETY: the program's arguments.
    let library = unsafe { real!(fn dlopen(*const c_char, c_int) -> *mut c_void)(file, mode) };
    libraries::look();
    library
}

unsafe extern "C" fn open_in_namespace_and_look(namespace: isize, file: *const c_char, mode: c_int) -> *mut c_void {
    // SAFETY: the program's arguments.
    let library = unsafe { real!(fn dlmopen(isize, *const c_char, c_int) -> *mut c_void)(namespace, file, mode) };
    libraries::look();
    library
}

unsafe extern "C" fn before_open() -> *mut c_void {
    #[used]
    #[unsafe(link_section = "rashomon_real")]
    static REAL: Real = Real::new(c"dlopen", None);
    opening(&REAL, open_and_look as *mut c_void)
}

unsafe extern "C" fn before_open_in_namespace() -> *mut c_void {
    #[used]
    #[unsafe(link_section = "rashomon_real")]
    static REAL: Real = Real::new(c"dlmopen", None);
    opening(&REAL, open_in_namespace_and_look as *mut c_void)
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
    libraries::look();
    result
}

interpose! {
    dlclose => close;
}
