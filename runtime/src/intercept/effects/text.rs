//! Strings and memory, beyond those that have functions of their own.

use super::*;
use core::ffi::c_int;

const fn lower(byte: u8) -> u8 {
    byte.to_ascii_lowercase()
}

/// Bytes that two strings are compared by, regardless of case, at most so many.
unsafe fn compared(a: usize, b: usize, most: usize) -> usize {
    let mut at = 0;
    while at < most {
        // SAFETY: neither string has ended before, and `most` is not reached.
        let (x, y) = unsafe { (((a + at) as *const u8).read_volatile(), ((b + at) as *const u8).read_volatile()) };
        at += 1;
        if x == 0 || lower(x) != lower(y) {
            break;
        }
    }
    at
}

/// Bytes of `text` that a search looks at which found something of `length` bytes at `found`.
fn searched(text: usize, found: usize, length: usize) -> usize {
    if found == 0 { text_length(text) + 1 } else { found - text + length }
}

/// A token was cut off a string: its characters were read, and its end was written unless it was the string's. `next`: where to
/// go on; null at the string's end.
unsafe fn cut(r: &Accesses<'_>, token: usize, next: usize) {
    if token != 0 {
        let length = text_length(token);
        r.bytes(token, length + 1);
        if next == token + length + 1 {
            Accesses { call: r.call, class: AccessClass::Write }.bytes(token + length, 1);
        }
    }
}

effects! {
    strcasecmp(a, b) -> c_int,
        // SAFETY: two strings, as for the function itself.
        reads |r| { let seen = unsafe { compared(a, b, usize::MAX) }; r.bytes(a, seen); r.bytes(b, seen); };
    strncasecmp(a, b, most) -> c_int,
        // SAFETY: the same, or bytes up to `most`.
        reads |r| { let seen = unsafe { compared(a, b, most) }; r.bytes(a, seen); r.bytes(b, seen); };
    strcoll(a, b) -> c_int, reads |r| { r.text(a); r.text(b); };
    strverscmp(a, b) -> c_int, reads |r| { r.text(a); r.text(b); };
    strxfrm(to, from, most) -> usize,
        reads |r| { r.text(from); },
        writes |w, length| { w.bytes(to, if length < most { length + 1 } else { 0 }); };
    strspn(text, set) -> usize,
        reads |r| { r.text(set); },
        writes |w, length| { Accesses { class: AccessClass::Read, ..w }.bytes(text, length + 1); };
    strcspn(text, set) -> usize,
        reads |r| { r.text(set); },
        writes |w, length| { Accesses { class: AccessClass::Read, ..w }.bytes(text, length + 1); };
    strpbrk(text, set) -> usize,
        reads |r| { r.text(set); },
        writes |w, found| { Accesses { class: AccessClass::Read, ..w }.bytes(text, searched(text, found, 1)); };
    strstr(text, part) -> usize,
        reads |r| { r.text(part); },
        writes |w, found| { Accesses { class: AccessClass::Read, ..w }.bytes(text, searched(text, found, text_length(part))); };
    strcasestr(text, part) -> usize,
        reads |r| { r.text(part); },
        writes |w, found| { Accesses { class: AccessClass::Read, ..w }.bytes(text, searched(text, found, text_length(part))); };
    strchrnul(text, byte) -> usize,
        writes |w, found| { Accesses { class: AccessClass::Read, ..w }.bytes(text, found - text + 1); };
    rawmemchr(text, byte) -> usize,
        writes |w, found| { Accesses { class: AccessClass::Read, ..w }.bytes(text, found - text + 1); };
    memrchr(memory, byte, bytes) -> usize,
        writes |w, found| {
            let from = if found == 0 { memory } else { found };
            Accesses { class: AccessClass::Read, ..w }.bytes(from, memory + bytes - from);
        };
    memmem(memory, bytes, part, length) -> usize,
        reads |r| { r.bytes(part, length); },
        writes |w, found| {
            let seen = if found == 0 { bytes } else { found - memory + length };
            Accesses { class: AccessClass::Read, ..w }.bytes(memory, seen);
        };
    memccpy(to, from, byte, most) -> usize, writes |w, found| {
        let bytes = if found == 0 { most } else { found - to };
        Accesses { class: AccessClass::Read, ..w }.bytes(from, bytes);
        w.bytes(to, bytes);
    };
    stpncpy(to, from, most) -> usize, reads |r| { r.text_up_to(from, most); }, writes |w, _| { w.bytes(to, most); };
    strtok_r(text, set, place) -> usize, reads |r| { r.text(set); if text == 0 { r.bytes(place, 8); } }, writes |w, token| {
        w.bytes(place, 8);
        // SAFETY: the call has stored its place there, and the token ends in a string of the program's.
        unsafe { cut(&Accesses { class: AccessClass::Read, call: w.call }, token, word(place)) };
    };
    strsep(place, set) -> usize, reads |r| { r.text(set); r.bytes(place, 8); }, writes |w, token| {
        w.bytes(place, if token == 0 { 0 } else { 8 });
        // SAFETY: as for `strtok_r`.
        unsafe { cut(&Accesses { class: AccessClass::Read, call: w.call }, token, word(place)) };
    };
    bzero(to, bytes) -> (), writes |w, ()| { w.bytes(to, bytes); };
    explicit_bzero(to, bytes) -> (), writes |w, ()| { w.bytes(to, bytes); };
    bcopy(from, to, bytes) -> (), reads |r| { r.bytes(from, bytes); }, writes |w, ()| { w.bytes(to, bytes); };
    swab(from, to, bytes: isize) -> (),
        reads |r| { r.bytes(from, (bytes.max(0) & !1) as usize); },
        writes |w, ()| { w.bytes(to, (bytes.max(0) & !1) as usize); };
}
