//! Sorting, patterns, conversions of text.
//!
//! What a callback reads it reads itself. `qsort` moves elements where its callback does not see it: it may write all of them.

use super::*;
use core::ffi::c_int;

/// Whether a pattern was compiled without `REG_NOSUB`, by its own bit of that.
unsafe fn tells_matches(pattern: usize) -> bool {
    // SAFETY: by the callers, a compiled pattern, which has 64 bytes.
    unsafe { ((pattern + 56) as *const u8).read() & 1 << 4 == 0 }
}

effects! {
    qsort(base, count, size, compare) -> (),
        reads |r| { if count > 1 { Accesses { class: AccessClass::Write, ..r }.bytes(base, count.saturating_mul(size)); } };
    qsort_r(base, count, size, compare, argument) -> (),
        reads |r| { if count > 1 { Accesses { class: AccessClass::Write, ..r }.bytes(base, count.saturating_mul(size)); } };
    regcomp(pattern_to, text, flags) -> c_int, reads |r| { r.text(text); }, writes |w, _| { w.bytes(pattern_to, 64); };
    "GLIBC_2.3.4" regexec(pattern, text, count, matches, flags: c_int) -> c_int,
        reads |r| { if flags & 4 == 0 { r.text(text); } },
        writes |w, result| {
            // SAFETY: it was matched, so it is a compiled pattern.
            let tells = result == 0 && unsafe { tells_matches(pattern) };
            w.bytes(matches, if tells { count.saturating_mul(8) } else { 0 });
        };
    regerror(error, pattern, to, room) -> usize, writes |w, _| { w.text(if room > 0 { to } else { 0 }); };
    confstr(name, to, room) -> usize, writes |w, length| { w.bytes(to, length.min(room)); };
}

/// `iconv`: how far it came is where its arguments' words point to afterwards.
mod iconv {
    use super::*;

    pub unsafe extern "C" fn call(converter: usize, from: usize, from_left: usize, to: usize, to_left: usize) -> usize {
        let call = Call::entered();
        // SAFETY: null, or the words that the function is about to read.
        let (first, begin) = unsafe { (word(from), word(to)) };
        // SAFETY: the function itself with the program's arguments.
        let result =
            unsafe { real!(fn iconv(usize, usize, usize, usize, usize) -> usize)(converter, from, from_left, to, to_left) };
        if let Some(call) = &call {
            let (r, w) = (Accesses { call, class: AccessClass::Read }, Accesses { call, class: AccessClass::Write });
            if first != 0 {
                // SAFETY: not null: it held an address before the call.
                r.bytes(first, unsafe { word(from) }.saturating_sub(first));
                w.bytes(from, 8);
                w.bytes(from_left, 8);
            }
            if begin != 0 {
                // SAFETY: the same of where to.
                w.bytes(begin, unsafe { word(to) }.saturating_sub(begin));
                w.bytes(to, 8);
                w.bytes(to_left, 8);
            }
        }
        result
    }
}

crate::intercept::interpose! { iconv => iconv::call; }
