//! Functions that a program may define for the runtime to call: weak references, null where it does not.

use super::output;
use core::ffi::{CStr, c_char, c_int, c_void};
use core::sync::atomic::{AtomicUsize, Ordering::*};

/// The address of a function of the program, if it defines one of that name.
macro_rules! defined {
    ($name:literal as $kind:ty) => {{
        let address: usize;
        // SAFETY: reads an entry that the loader filled.
        unsafe {
            core::arch::asm!(
                concat!(".weak ", $name),
                concat!("mov {}, qword ptr [rip + ", $name, "@GOTPCREL]"),
                out(reg) address,
                options(nostack, pure, readonly)
            );
        }
        // SAFETY: a function of that name has that signature; zero is none.
        unsafe { core::mem::transmute::<usize, Option<$kind>>(address) }
    }};
}

type Text = unsafe extern "C" fn() -> *const c_char;

fn text(function: Option<Text>) -> &'static [u8] {
    let Some(function) = function else { return b"" };
    // SAFETY: by the interface: a terminated text that stays, or null.
    unsafe {
        let text = function();
        if text.is_null() { b"" } else { CStr::from_ptr(text).to_bytes() }
    }
}

pub fn default_options() -> &'static [u8] {
    text(defined!("__tsan_default_options" as Text))
}

pub fn default_suppressions() -> &'static [u8] {
    text(defined!("__tsan_default_suppressions" as Text))
}

/// A report was printed.
pub fn on_report(report: *const u64) {
    if let Some(function) = defined!("__tsan_on_report" as unsafe extern "C" fn(*const c_void)) {
        // SAFETY: the program's own function. What it may ask of the report is in `query`.
        unsafe { function(report.cast()) };
    }
}

/// The summary line of a report, without its end: the program's to print, if it wants to.
pub fn summary(line: &[u8]) {
    match defined!("__sanitizer_report_error_summary" as unsafe extern "C" fn(*const c_char)) {
        Some(function) => {
            let mut text = [0_u8; 1024];
            let length = line.len().min(text.len() - 1);
            text[..length].copy_from_slice(&line[..length]);
            // SAFETY: a terminated text for the time of the call.
            unsafe { function(text.as_ptr().cast()) };
        }
        None => output::texts(&[line, b"\n"]),
    }
}

pub fn on_initialize() {
    if let Some(function) = defined!("_ZN6__tsan12OnInitializeEv" as unsafe extern "C" fn()) {
        // SAFETY: the program's own function.
        unsafe { function() };
    }
    if let Some(function) = defined!("__tsan_on_initialize" as unsafe extern "C" fn()) {
        // SAFETY: the program's own function.
        unsafe { function() };
    }
}

/// A frame as the program names it.
pub struct Named<'a> {
    pub function: &'a [u8],
    pub file: &'a [u8],
    pub line: u64,
    pub column: u64,
}

/// Asks the program, which is or holds a virtual machine, what an address means that it made up: its frames, innermost first.
pub fn symbolize_external(address: u64, mut frame: impl FnMut(Named<'_>)) {
    type Add = unsafe extern "C" fn(*mut c_void, *const c_char, *const c_char, c_int, c_int);
    type Frames = unsafe extern "C" fn(u64, Add, *mut c_void);
    type OneFrame = unsafe extern "C" fn(u64, *mut u8, u64, *mut u8, u64, *mut c_int, *mut c_int) -> bool;

    unsafe extern "C" fn add<F: FnMut(Named<'_>)>(
        context: *mut c_void,
        function: *const c_char,
        file: *const c_char,
        line: c_int,
        column: c_int,
    ) {
        let text = |text: *const c_char| {
            // SAFETY: by the interface: null or a terminated text.
            if text.is_null() { &b""[..] } else { unsafe { CStr::from_ptr(text) }.to_bytes() }
        };
        let number = |number: c_int| u64::try_from(number).unwrap_or(0);
        // SAFETY: the closure that was handed over with this function.
        let frame = unsafe { &mut *context.cast::<F>() };
        frame(Named { function: text(function), file: text(file), line: number(line), column: number(column) });
    }
    fn adder<F: FnMut(Named<'_>)>(_: &F) -> Add {
        add::<F>
    }

    if let Some(frames) = defined!("__tsan_symbolize_external_ex" as Frames) {
        let add = adder(&frame);
        // SAFETY: the program's own function, that calls ours with what it got, before it returns.
        unsafe { frames(address, add, (&raw mut frame).cast()) };
    } else if let Some(one) = defined!("__tsan_symbolize_external" as OneFrame) {
        let (mut function, mut file, mut line, mut column) = ([0_u8; 512], [0_u8; 512], 0, 0);
        // SAFETY: the program's own function; buffers with one byte more than it is told.
        let known = unsafe { one(address, function.as_mut_ptr(), 511, file.as_mut_ptr(), 511, &mut line, &mut column) };
        if known {
            let add = adder(&frame);
            // SAFETY: terminated texts.
            unsafe { add((&raw mut frame).cast(), function.as_ptr().cast(), file.as_ptr().cast(), line, column) };
        }
    }
}

/// The program has the last word on whether the run failed.
pub fn on_finalize(failed: bool) -> bool {
    if let Some(function) = defined!("_ZN6__tsan10OnFinalizeEb" as unsafe extern "C" fn(bool) -> bool) {
        // SAFETY: the program's own function.
        return unsafe { function(failed) };
    }
    match defined!("__tsan_on_finalize" as unsafe extern "C" fn(c_int) -> c_int) {
        // SAFETY: the program's own function.
        Some(function) => unsafe { function(c_int::from(failed)) != 0 },
        None => failed,
    }
}

/// The program is about to wait for something that is none of its own blocking calls, or has done so.
pub fn on_potentially_blocking_region(begins: bool) {
    let function = if begins {
        defined!("_ZN6__tsan32OnPotentiallyBlockingRegionBeginEv" as unsafe extern "C" fn())
    } else {
        defined!("_ZN6__tsan30OnPotentiallyBlockingRegionEndEv" as unsafe extern "C" fn())
    };
    if let Some(function) = function {
        // SAFETY: the program's own function.
        unsafe { function() };
    }
}

static DEATH: AtomicUsize = AtomicUsize::new(0);

#[unsafe(no_mangle)]
pub unsafe extern "C" fn __sanitizer_set_death_callback(callback: usize) {
    DEATH.store(callback, Release);
}

/// The runtime is about to end the process.
pub fn before_death() {
    // SAFETY: null or a function of the program's, by the interface.
    if let Some(function) = unsafe { core::mem::transmute::<usize, Option<unsafe extern "C" fn()>>(DEATH.swap(0, AcqRel)) } {
        // SAFETY: as above; once.
        unsafe { function() };
    }
}
