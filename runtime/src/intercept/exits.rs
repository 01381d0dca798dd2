//! `atexit`, `__cxa_atexit`, `on_exit`: functions that run when the process ends, or the library goes that asked for them. And
//! the calls that end it: other threads go on before what they do ([`crate::serial::linger`]).
//!
//! While detecting, a handler is ordered behind the call that installed it, and its call stack tells where that was: a frame
//! named after the way of installation, then the installer's. When recording, handlers are libc's business: they run one after
//! the other, on the thread that ends the process.

use crate::detect;
use crate::intercept::hooks::{__tsan_func_entry, __tsan_func_exit};
use crate::record::recorder;
use crate::serial::{explore, linger};
use crate::system::lock::RawLock;
use crate::system::memory::List;
use crate::system::real::real;
use crate::system::thread::Runtime;
use crate::system::tls::caller;
use core::arch::global_asm;
use core::ffi::{c_char, c_int, c_void};
use rashomon_abi::record::{Op, exit_stage, sync_source};

type Function = unsafe extern "C" fn(*mut c_void);

#[derive(Clone, Copy)]
struct Handler {
    /// 0: it has run.
    function: usize,
    argument: u64,
    site: u64,
}

pub static LOCK: RawLock = RawLock::new();
static mut HANDLERS: List<Handler> = List::new();

/// Keeps a handler. Its number, which is what libc passes back.
fn keep(handler: Handler) -> usize {
    let handlers = &raw mut HANDLERS;
    // SAFETY: under the lock.
    LOCK.with(|| unsafe {
        let known = (*handlers).as_mut_slice();
        match known.iter().position(|place| place.function == 0) {
            Some(free) => {
                known[free] = handler;
                free
            }
            None => {
                (*handlers).push(handler);
                (*handlers).len() - 1
            }
        }
    })
}

/// What a trampoline is to call.
#[repr(C)]
struct Call {
    function: usize,
    argument: u64,
}

/// The handler of this number is about to run.
unsafe extern "C" fn begin(number: usize) -> Call {
    let handlers = &raw mut HANDLERS;
    // SAFETY: under the lock; libc passes back what `keep` gave it, once.
    let handler = LOCK.with(|| unsafe {
        let place = &mut (*handlers).as_mut_slice()[number];
        let handler = *place;
        place.function = 0;
        handler
    });
    if let Some(runtime) = Runtime::try_enter() {
        recorder::sync(runtime.thread(), Op::Acquire, number as u64 + 1, sync_source::EXIT_HANDLER, handler.site, &[]);
    }
    // SAFETY: the hook that an instrumented function calls.
    unsafe { __tsan_func_entry(handler.site as *const u8) };
    Call { function: handler.function, argument: handler.argument }
}

unsafe extern "C" fn end() {
    // SAFETY: of the entry above.
    unsafe { __tsan_func_exit() };
}

// The names are frames of reports. `on_exit` has the exit code in front of the number, and passes it on.
global_asm!(
    ".macro rashomon_exit_handler name, keep_code, to_number, code, argument",
    ".hidden \\name",
    ".globl \\name",
    ".type \\name, @function",
    "\\name:",
    ".cfi_startproc",
    "push rbx",
    ".cfi_def_cfa_offset 16",
    ".cfi_offset rbx, -16",
    "\\keep_code",
    "\\to_number",
    "call {begin}",
    "\\code",
    "mov \\argument, rdx",
    "call rax",
    "call {end}",
    "pop rbx",
    ".cfi_def_cfa_offset 8",
    "ret",
    ".cfi_endproc",
    ".size \\name, . - \\name",
    ".endm",
    ".text",
    "rashomon_exit_handler at_exit_callback_installed_at, \"\", \"\", \"\", rdi",
    "rashomon_exit_handler cxa_at_exit_callback_installed_at, \"\", \"\", \"\", rdi",
    "rashomon_exit_handler on_exit_callback_installed_at, \"mov ebx, edi\", \"mov rdi, rsi\", \"mov edi, ebx\", rsi",
    begin = sym begin,
    end = sym end,
);

unsafe extern "C" {
    fn at_exit_callback_installed_at(number: *mut c_void);
    fn cxa_at_exit_callback_installed_at(number: *mut c_void);
    fn on_exit_callback_installed_at(code: c_int, number: *mut c_void);
}

/// While detecting: keeps the handler, orders it behind what was done so far, and hands its number to `install`.
fn installed(function: usize, argument: *mut c_void, install: impl FnOnce(*mut c_void) -> c_int) -> Option<c_int> {
    let runtime = if detect::on() { Runtime::try_enter()? } else { return None };
    let site = caller();
    let number = keep(Handler { function, argument: argument as u64, site });
    recorder::sync(runtime.thread(), Op::Release, number as u64 + 1, sync_source::EXIT_HANDLER, site, &[]);
    Some(install(number as *mut c_void))
}

unsafe fn real_cxa(function: Function, argument: *mut c_void, library: *mut c_void) -> c_int {
    // SAFETY: by the caller.
    unsafe { real!(fn __cxa_atexit(Function, *mut c_void, *mut c_void) -> c_int)(function, argument, library) }
}

/// Programs linked against gcc's runtime take even this from it: the C library has no such name to load.
unsafe extern "C" fn at_exit(handler: Function) -> c_int {
    // SAFETY: the program's own function, or ours with a number.
    unsafe {
        installed(handler as usize, core::ptr::null_mut(), |number| {
            real_cxa(at_exit_callback_installed_at, number, core::ptr::null_mut())
        })
        .unwrap_or_else(|| real_cxa(handler, core::ptr::null_mut(), core::ptr::null_mut()))
    }
}

unsafe extern "C" fn cxa_at_exit(handler: Function, argument: *mut c_void, library: *mut c_void) -> c_int {
    // SAFETY: as above; the handler belongs to the same library.
    unsafe {
        installed(handler as usize, argument, |number| real_cxa(cxa_at_exit_callback_installed_at, number, library))
            .unwrap_or_else(|| real_cxa(handler, argument, library))
    }
}

type FunctionOfCode = unsafe extern "C" fn(c_int, *mut c_void);

unsafe extern "C" fn on_exit_with_code(handler: FunctionOfCode, argument: *mut c_void) -> c_int {
    // SAFETY: as above.
    let real = |handler, argument| unsafe { real!(fn on_exit(FunctionOfCode, *mut c_void) -> c_int)(handler, argument) };
    installed(handler as usize, argument, |number| real(on_exit_callback_installed_at, number))
        .unwrap_or_else(|| real(handler, argument))
}

/// Somebody asks for the end of the process.
pub fn asked(site: u64) {
    if let Some(runtime) = Runtime::try_enter() {
        linger::before_end(&runtime, exit_stage::ASKED, site);
    }
}

unsafe extern "C" fn exit_with_handlers(status: c_int) {
    asked(caller());
    // SAFETY: the program's own argument, here and below.
    unsafe { real!(fn exit(c_int) -> ())(status) }
}

unsafe extern "C" fn exit_quickly(status: c_int) {
    asked(caller());
    // SAFETY: as above.
    unsafe { real!(fn quick_exit(c_int) -> ())(status) }
}

/// The process ends because something failed. Where that is looked for, it has been found.
fn failed(site: u64) {
    if !explore::on() {
        asked(site);
    }
}

unsafe extern "C" fn aborted() {
    failed(caller());
    // SAFETY: as above.
    unsafe { real!(fn abort() -> ())() }
}

unsafe extern "C" fn assertion_failed(text: *const c_char, file: *const c_char, line: u32, function: *const c_char) {
    failed(caller());
    // SAFETY: as above.
    unsafe { real!(fn __assert_fail(*const c_char, *const c_char, u32, *const c_char) -> ())(text, file, line, function) }
}

interpose! {
    exit => exit_with_handlers;
    quick_exit => exit_quickly;
    abort => aborted;
    __assert_fail => assertion_failed;
    atexit => at_exit;
    __cxa_atexit => cxa_at_exit;
    on_exit => on_exit_with_code;
}
