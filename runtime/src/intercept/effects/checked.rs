//! What headers call in the place of other functions under `_FORTIFY_SOURCE`: the same with the size of the object behind it, of
//! which they end the process if it is too small.

use super::*;
use crate::intercept::stdio;

effects! {
    __memcpy_chk(to, from, bytes, room) -> usize,
        reads |r| { r.bytes(from, bytes); Accesses { class: AccessClass::Write, ..r }.bytes(to, bytes.min(room)); };
    __memmove_chk(to, from, bytes, room) -> usize,
        reads |r| { r.bytes(from, bytes); Accesses { class: AccessClass::Write, ..r }.bytes(to, bytes.min(room)); };
    __mempcpy_chk(to, from, bytes, room) -> usize,
        reads |r| { r.bytes(from, bytes); Accesses { class: AccessClass::Write, ..r }.bytes(to, bytes.min(room)); };
    __memset_chk(to, byte, bytes, room) -> usize,
        reads |w| { Accesses { class: AccessClass::Write, ..w }.bytes(to, bytes.min(room)); };
    __explicit_bzero_chk(to, bytes, room) -> (), writes |w, ()| { w.bytes(to, bytes); };
    __strcpy_chk(to, from, room) -> usize, reads |r| { r.text(from); }, writes |w, _| { w.text(to); };
    __stpcpy_chk(to, from, room) -> usize, reads |r| { r.text(from); }, writes |w, _| { w.text(to); };
    __strncpy_chk(to, from, most, room) -> usize, reads |r| { r.text_up_to(from, most); }, writes |w, _| { w.bytes(to, most); };
    __stpncpy_chk(to, from, most, room) -> usize, reads |r| { r.text_up_to(from, most); }, writes |w, _| { w.bytes(to, most); };
    __strcat_chk(to, from, room) -> usize, reads |r| {
        r.text(from);
        r.text(to);
        Accesses { class: AccessClass::Write, ..r }.bytes(to + text_length(to), text_length(from) + 1);
    };
    __strncat_chk(to, from, most, room) -> usize, reads |r| {
        r.text_up_to(from, most);
        r.text(to);
        Accesses { class: AccessClass::Write, ..r }.bytes(to + text_length(to), text_looked_at(from, most));
    };
    __fgets_chk(to, room, most, stream) -> usize, by stdio::__fgets_chk::call, writes |w, result| { w.text(result); };
    __fread_chk(to, room, size, count, stream) -> usize, by stdio::__fread_chk::call,
        writes |w, items| { w.bytes(to, items.saturating_mul(size)); };
    __pread_chk(file, to, bytes, offset, room) -> isize, writes |w, result| { w.bytes(to, result.max(0) as usize); };
    __pread64_chk(file, to, bytes, offset, room) -> isize, writes |w, result| { w.bytes(to, result.max(0) as usize); };
    __getcwd_chk(to, bytes, room) -> usize, writes |w, result| { w.text(result); };
    __realpath_chk(path, to, room) -> usize, reads |r| { r.text(path); }, writes |w, result| { w.text(result); };
    __readlink_chk(path, to, bytes, room) -> isize,
        reads |r| { r.text(path); },
        writes |w, result| { w.bytes(to, result.max(0) as usize); };
    __readlinkat_chk(directory, path, to, bytes, room) -> isize,
        reads |r| { r.text(path); },
        writes |w, result| { w.bytes(to, result.max(0) as usize); };
    __gethostname_chk(to, bytes, room) -> core::ffi::c_int, writes |w, result| { if result == 0 { w.text_up_to(to, bytes); } };
    __wcscpy_chk(to, from, room) -> usize, reads |r| { r.wide(from); }, writes |w, _| { w.wide(to); };
    __wmemcpy_chk(to, from, count, room) -> usize,
        reads |r| { r.bytes(from, count.saturating_mul(WIDE)); },
        writes |w, _| { w.bytes(to, count.saturating_mul(WIDE)); };
    __wmemset_chk(to, character, count, room) -> usize, writes |w, _| { w.bytes(to, count.saturating_mul(WIDE)); };
}
