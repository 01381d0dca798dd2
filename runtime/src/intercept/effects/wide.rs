//! Wide characters, and conversions to and from them.

use super::*;
use core::ffi::c_int;

/// Characters that two strings are compared by, at most so many.
unsafe fn compared(a: usize, b: usize, most: usize) -> usize {
    let mut at = 0;
    while at < most {
        // SAFETY: neither string has ended before, and `most` is not reached.
        let (x, y) = unsafe { (number(a + at * WIDE), number(b + at * WIDE)) };
        at += 1;
        if x == 0 || x != y {
            break;
        }
    }
    at * WIDE
}

/// Bytes that a conversion into `result` characters wrote, with the end where there was room. A result of -1 is an error.
fn converted(result: usize, most: usize, each: usize) -> usize {
    if result == usize::MAX { 0 } else { result.saturating_add(1).min(most) * each }
}

effects! {
    wcslen(text) -> usize, reads |r| { r.wide(text); };
    wcsnlen(text, most) -> usize, reads |r| { r.wide_up_to(text, most); };
    wcscpy(to, from) -> usize, reads |r| { r.wide(from); }, writes |w, _| { w.wide(to); };
    wcpcpy(to, from) -> usize, reads |r| { r.wide(from); }, writes |w, _| { w.wide(to); };
    wcsncpy(to, from, most) -> usize,
        reads |r| { r.wide_up_to(from, most); },
        writes |w, _| { w.bytes(to, most.saturating_mul(WIDE)); };
    wcscat(to, from) -> usize, reads |r| {
        r.wide(from);
        r.wide(to);
        let end = to + wide_length(to, usize::MAX) * WIDE;
        Accesses { class: AccessClass::Write, ..r }.bytes(end, (wide_length(from, usize::MAX) + 1) * WIDE);
    };
    wcsncat(to, from, most) -> usize, reads |r| {
        r.wide_up_to(from, most);
        r.wide(to);
        let end = to + wide_length(to, usize::MAX) * WIDE;
        Accesses { class: AccessClass::Write, ..r }.bytes(end, (wide_length(from, most) + 1) * WIDE);
    };
    // SAFETY: two strings, as for the function itself.
    wcscmp(a, b) -> c_int, reads |r| { let seen = unsafe { compared(a, b, usize::MAX) }; r.bytes(a, seen); r.bytes(b, seen); };
    // SAFETY: the same, or characters up to `most`.
    wcsncmp(a, b, most) -> c_int, reads |r| { let seen = unsafe { compared(a, b, most) }; r.bytes(a, seen); r.bytes(b, seen); };
    wcschr(text, character) -> usize, writes |w, found| {
        let seen = if found == 0 { (wide_length(text, usize::MAX) + 1) * WIDE } else { found - text + WIDE };
        Accesses { class: AccessClass::Read, ..w }.bytes(text, seen);
    };
    wcsrchr(text, character) -> usize, reads |r| { r.wide(text); };
    wcsstr(text, part) -> usize, reads |r| { r.wide(part); }, writes |w, found| {
        let whole = (wide_length(text, usize::MAX) + 1) * WIDE;
        let seen = if found == 0 { whole } else { found - text + wide_length(part, usize::MAX) * WIDE };
        Accesses { class: AccessClass::Read, ..w }.bytes(text, seen);
    };
    wmemcpy(to, from, count) -> usize,
        reads |r| { r.bytes(from, count.saturating_mul(WIDE)); },
        writes |w, _| { w.bytes(to, count.saturating_mul(WIDE)); };
    wmempcpy(to, from, count) -> usize,
        reads |r| { r.bytes(from, count.saturating_mul(WIDE)); },
        writes |w, _| { w.bytes(to, count.saturating_mul(WIDE)); };
    wmemmove(to, from, count) -> usize,
        reads |r| { r.bytes(from, count.saturating_mul(WIDE)); },
        writes |w, _| { w.bytes(to, count.saturating_mul(WIDE)); };
    wmemset(to, character, count) -> usize, writes |w, _| { w.bytes(to, count.saturating_mul(WIDE)); };
    wcsdup(text) -> usize, reads |r| { r.wide(text); }, writes |w, copy| { w.wide(copy); };
    mbstowcs(to, from, most) -> usize,
        reads |r| { if to == 0 { r.text(from); } },
        writes |w, result| { w.bytes(to, converted(result, most, WIDE)); };
    wcstombs(to, from, most) -> usize,
        reads |r| { if to == 0 { r.wide(from); } },
        writes |w, result| { w.bytes(to, converted(result, most, 1)); };
    mbsrtowcs(to, place, most, state) -> usize, reads |r| { r.bytes(place, 8); }, writes |w, result| {
        w.bytes(to, converted(result, most, WIDE));
        w.bytes(if to == 0 { 0 } else { place }, 8);
        w.bytes(state, 8);
    };
    wcsrtombs(to, place, most, state) -> usize, reads |r| { r.bytes(place, 8); }, writes |w, result| {
        w.bytes(to, converted(result, most, 1));
        w.bytes(if to == 0 { 0 } else { place }, 8);
        w.bytes(state, 8);
    };
    mbsnrtowcs(to, place, bytes, most, state) -> usize, reads |r| { r.bytes(place, 8); }, writes |w, result| {
        // The end is written where it was found, not where the bytes ran out.
        // SAFETY: the word that the call moved on.
        let end = usize::from(unsafe { word(place) } == 0);
        w.bytes(to, if result == usize::MAX { 0 } else { (result + end) * WIDE });
        w.bytes(if to == 0 { 0 } else { place }, 8);
        w.bytes(state, 8);
    };
    mbtowc(to, from, most) -> c_int, writes |w, result| {
        Accesses { class: AccessClass::Read, ..w }.bytes(from, result.max(0) as usize);
        w.bytes(to, if result >= 0 && from != 0 { WIDE } else { 0 });
    };
    wctomb(to, character) -> c_int, writes |w, result| { w.bytes(to, result.max(0) as usize); };
    mbrtowc(to, from, most, state) -> usize, writes |w, result| {
        if result <= most {
            Accesses { class: AccessClass::Read, ..w }.bytes(from, result.max(1));
            w.bytes(if from == 0 { 0 } else { to }, WIDE);
        }
        w.bytes(state, 8);
    };
    wcrtomb(to, character, state) -> usize, writes |w, result| {
        w.bytes(to, if result == usize::MAX { 0 } else { result });
        w.bytes(state, 8);
    };
}
