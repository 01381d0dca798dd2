//! Streams of `stdio.h`: the program's bytes that go through them, and the descriptors under them. Their locks are not seen: libc
//! takes them inside.

use super::descriptors::{closed, closes, look, made};
use super::files::{ends, touched};
use crate::system::real::real;
use crate::system::tls::caller;
use core::ffi::{c_char, c_int};
use rashomon_abi::record::AccessClass;

/// A stream that a call made, if it did not fail.
fn opened(stream: *mut u8, site: u64) -> *mut u8 {
    if !stream.is_null() {
        // SAFETY: a stream that libc has just made.
        made(unsafe { real!(fn fileno(*mut u8) -> c_int)(stream) }, site);
    }
    stream
}

pub unsafe extern "C" fn open(path: *const c_char, mode: *const c_char) -> *mut u8 {
    let site = caller();
    // SAFETY: libc's function with the program's arguments.
    opened(unsafe { real!(fn fopen64(*const c_char, *const c_char) -> *mut u8)(path, mode) }, site)
}

pub unsafe extern "C" fn reopen(path: *const c_char, mode: *const c_char, stream: *mut u8) -> *mut u8 {
    let site = caller();
    if !stream.is_null() {
        // SAFETY: a stream of the program's, still open.
        closes(unsafe { real!(fn fileno(*mut u8) -> c_int)(stream) }, site);
    }
    // SAFETY: libc's function with the program's arguments.
    opened(unsafe { real!(fn freopen64(*const c_char, *const c_char, *mut u8) -> *mut u8)(path, mode, stream) }, site)
}

unsafe extern "C" fn close(stream: *mut u8) -> c_int {
    let site = caller();
    // SAFETY: the program closes this stream, once.
    let real = || unsafe { real!(fn fclose(*mut u8) -> c_int)(stream) };
    if stream.is_null() || crate::system::tls::current().is_none() {
        return real();
    }
    // SAFETY: not null, and not closed yet.
    let file = unsafe { real!(fn fileno(*mut u8) -> c_int)(stream) };
    let close = closes(file, site);
    let result = ends(look(file), site, real);
    closed(file, close, result);
    result
}

fn text_touched(text: *const u8, site: u64, class: AccessClass) {
    if crate::system::tls::current().is_some() && !text.is_null() {
        // SAFETY: by the callers, a string of libc's making.
        touched(text, unsafe { real!(fn strlen(*const u8) -> usize)(text) } as isize + 1, site, class);
    }
}

unsafe extern "C" fn error_text(number: c_int, buffer: *mut u8, bytes: usize) -> *mut u8 {
    let site = caller();
    // SAFETY: libc's function with the program's arguments.
    let result = unsafe { real!(fn strerror_r(c_int, *mut u8, usize) -> *mut u8)(number, buffer, bytes) };
    // libc's own texts are no memory of the program.
    if result == buffer {
        text_touched(buffer, site, AccessClass::Write);
    }
    result
}

unsafe extern "C" fn error_text_by_code(number: c_int, buffer: *mut u8, bytes: usize) -> c_int {
    let site = caller();
    // SAFETY: the same under its other name.
    let result = unsafe { real!(fn __xpg_strerror_r(c_int, *mut u8, usize) -> c_int)(number, buffer, bytes) };
    if bytes > 0 {
        text_touched(buffer, site, AccessClass::Write);
    }
    result
}

interpose! {
    fclose => close;
    strerror_r => error_text;
    __xpg_strerror_r => error_text_by_code;
}
