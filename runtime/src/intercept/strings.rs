//! Functions on strings: accesses of exactly the bytes that they have to look at, made before the work is done.

use super::files::touched;
use super::heap::allocating;
use super::memory::{are_in_page, eight};
use crate::system::real::{__libc_malloc, real};
use crate::system::tls::{caller, hot};
use core::ffi::c_int;
use rashomon_abi::record::AccessClass;

const READ: AccessClass = AccessClass::Read;
const WRITE: AccessClass = AccessClass::Write;

/// Whether anybody counts: the calling thread is known and runs code of the program.
fn observed() -> bool {
    hot().is_outside()
}

fn length_of(text: *const u8) -> usize {
    // SAFETY: by the callers, a string of the program's.
    unsafe { real!(fn strlen(*const u8) -> usize)(text) }
}

fn length_up_to(text: *const u8, most: usize) -> usize {
    // SAFETY: by the callers, a string of the program's, or that many bytes.
    unsafe { real!(fn strnlen(*const u8, usize) -> usize)(text, most) }
}

/// Bytes that a function reads which stops at the end of the string or after `most` bytes.
fn looked_at(text: *const u8, most: usize) -> usize {
    let length = length_up_to(text, most);
    if length < most { length + 1 } else { most }
}

unsafe extern "C" fn length(text: *const u8) -> usize {
    let site = caller();
    let length = length_of(text);
    touched(text, length as isize + 1, site, READ);
    length
}

unsafe extern "C" fn length_limited(text: *const u8, most: usize) -> usize {
    let site = caller();
    let length = length_up_to(text, most);
    touched(text, (length + 1).min(most) as isize, site, READ);
    length
}

unsafe extern "C" fn copy(to: *mut u8, from: *const u8) -> *mut u8 {
    let site = caller();
    if observed() {
        let bytes = length_of(from) as isize + 1;
        touched(from, bytes, site, READ);
        touched(to, bytes, site, WRITE);
    }
    // SAFETY: the real function with the program's arguments.
    unsafe { real!(fn strcpy(*mut u8, *const u8) -> *mut u8)(to, from) }
}

unsafe extern "C" fn copy_to_end(to: *mut u8, from: *const u8) -> *mut u8 {
    let site = caller();
    if observed() {
        let bytes = length_of(from) as isize + 1;
        touched(from, bytes, site, READ);
        touched(to, bytes, site, WRITE);
    }
    // SAFETY: as in the function above, whose result it differs in.
    unsafe { real!(fn stpcpy(*mut u8, *const u8) -> *mut u8)(to, from) }
}

/// Fills with zeros up to the limit.
unsafe extern "C" fn copy_limited(to: *mut u8, from: *const u8, most: usize) -> *mut u8 {
    let site = caller();
    if observed() {
        touched(from, looked_at(from, most) as isize, site, READ);
        touched(to, most as isize, site, WRITE);
    }
    // SAFETY: the program has room for `most` bytes.
    unsafe { real!(fn strncpy(*mut u8, *const u8, usize) -> *mut u8)(to, from, most) }
}

/// Reads the first string up to its end, and writes from there.
fn appended(to: *mut u8, from: *const u8, taken: usize, looked: usize, site: u64) {
    let old = length_of(to);
    touched(from, looked as isize, site, READ);
    touched(to, old as isize + 1, site, READ);
    touched(to.wrapping_add(old), taken as isize + 1, site, WRITE);
}

unsafe extern "C" fn append(to: *mut u8, from: *const u8) -> *mut u8 {
    let site = caller();
    if observed() {
        let length = length_of(from);
        appended(to, from, length, length + 1, site);
    }
    // SAFETY: the program has room behind the first string.
    unsafe { real!(fn strcat(*mut u8, *const u8) -> *mut u8)(to, from) }
}

unsafe extern "C" fn append_limited(to: *mut u8, from: *const u8, most: usize) -> *mut u8 {
    let site = caller();
    if observed() {
        appended(to, from, length_up_to(from, most), looked_at(from, most), site);
    }
    // SAFETY: the same, for so many bytes and an end.
    unsafe { real!(fn strncat(*mut u8, *const u8, usize) -> *mut u8)(to, from, most) }
}

/// The first place, below `most`, where two strings differ or end.
fn common(a: *const u8, b: *const u8, most: usize) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let mut at = 0;
    // SAFETY: both are readable up to that place, and so is what lies in the page of a readable byte.
    unsafe {
        while at < most {
            let (here, there) = (a.add(at), b.add(at));
            if are_in_page(here) && are_in_page(there) {
                let (here, there) = (eight(here), eight(there));
                // The lowest bit that is set belongs to the first byte that differs, or ends a string.
                let ends = (here ^ there) | here.wrapping_sub(ONES) & !here & ONES << 7;
                if ends != 0 {
                    return most.min(at + ends.trailing_zeros() as usize / 8);
                }
                at += 8;
            } else if here.read_volatile() == there.read_volatile() && here.read_volatile() != 0 {
                at += 1;
            } else {
                return at;
            }
        }
    }
    most
}

unsafe extern "C" fn compare(a: *const u8, b: *const u8) -> c_int {
    let site = caller();
    if observed() {
        let seen = common(a, b, usize::MAX) as isize + 1;
        touched(a, seen, site, READ);
        touched(b, seen, site, READ);
    }
    // SAFETY: two strings of the program's.
    unsafe { real!(fn strcmp(*const u8, *const u8) -> c_int)(a, b) }
}

unsafe extern "C" fn compare_limited(a: *const u8, b: *const u8, most: usize) -> c_int {
    let site = caller();
    if observed() {
        let seen = common(a, b, most).saturating_add(1).min(most) as isize;
        touched(a, seen, site, READ);
        touched(b, seen, site, READ);
    }
    // SAFETY: two strings of the program's, or that many bytes.
    unsafe { real!(fn strncmp(*const u8, *const u8, usize) -> c_int)(a, b, most) }
}

unsafe extern "C" fn find(text: *mut u8, byte: c_int) -> *mut u8 {
    let site = caller();
    // SAFETY: a string of the program's.
    let found = unsafe { real!(fn strchr(*mut u8, c_int) -> *mut u8)(text, byte) };
    if observed() {
        let seen = if found.is_null() { length_of(text) } else { found as usize - text as usize };
        touched(text, seen as isize + 1, site, READ);
    }
    found
}

unsafe extern "C" fn find_last(text: *mut u8, byte: c_int) -> *mut u8 {
    let site = caller();
    if observed() {
        touched(text, length_of(text) as isize + 1, site, READ);
    }
    // SAFETY: a string of the program's, too.
    unsafe { real!(fn strrchr(*mut u8, c_int) -> *mut u8)(text, byte) }
}

unsafe extern "C" fn find_byte(memory: *mut u8, byte: c_int, bytes: usize) -> *mut u8 {
    let site = caller();
    // SAFETY: so many bytes of the program's, up to the one that is looked for.
    let found = unsafe { real!(fn memchr(*mut u8, c_int, usize) -> *mut u8)(memory, byte, bytes) };
    let seen = if found.is_null() { bytes } else { found as usize - memory as usize + 1 };
    touched(memory, seen as isize, site, READ);
    found
}

/// A copy of `length` bytes and a zero, which belongs to the caller's site and not to the C library's.
fn duplicated(text: *const u8, length: usize, looked: usize, site: u64) -> *mut u8 {
    touched(text, looked as isize, site, READ);
    // SAFETY: libc's allocator, with room for the end.
    let copy = allocating(length + 1, site, || unsafe { __libc_malloc(length + 1) });
    if !copy.is_null() {
        touched(copy, length as isize + 1, site, WRITE);
        // SAFETY: by the callers, `text` has so many bytes; the copy has one more.
        unsafe {
            real!(fn memcpy(*mut u8, *const u8, usize) -> *mut u8)(copy, text, length);
            copy.add(length).write(0);
        }
    }
    copy
}

unsafe extern "C" fn duplicate(text: *const u8) -> *mut u8 {
    let site = caller();
    let length = length_of(text);
    duplicated(text, length, length + 1, site)
}

unsafe extern "C" fn duplicate_limited(text: *const u8, most: usize) -> *mut u8 {
    let site = caller();
    duplicated(text, length_up_to(text, most), looked_at(text, most), site)
}

interpose! {
    strlen => length;
    strnlen => length_limited;
    strcpy => copy;
    stpcpy => copy_to_end;
    strncpy => copy_limited;
    strcat => append;
    strncat => append_limited;
    strcmp => compare;
    strncmp => compare_limited;
    strchr => find;
    strrchr => find_last;
    memchr => find_byte;
    strdup => duplicate;
    __strdup => duplicate;
    strndup => duplicate_limited;
    __strndup => duplicate_limited;
}
