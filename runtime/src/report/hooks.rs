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
            core::arch::asm!(concat!(".weak ", $name), concat!("mov {}, qword ptr [rip + ", $name, "@GOTPCREL]"), out(reg) address, options(nostack, pure, readonly));
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
    if let Some(function) = defined!("__tsan_on_initialize" as unsafe extern "C" fn()) {
        // SAFETY: the program's own function.
        unsafe { function() };
    }
}

/// The program has the last word on whether the run failed.
pub fn on_finalize(failed: bool) -> bool {
    match defined!("__tsan_on_finalize" as unsafe extern "C" fn(c_int) -> c_int) {
        // SAFETY: the program's own function.
        Some(function) => unsafe { function(c_int::from(failed)) != 0 },
        None => failed,
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
