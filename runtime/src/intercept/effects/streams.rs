//! Streams: what goes through them. Their buffers are the library's, which locks them.

use super::*;
use crate::intercept::processors;
use crate::intercept::stdio::{self, Wants, takes};
use core::ffi::c_int;

const fn length(result: isize) -> usize {
    if result < 0 { 0 } else { result as usize + 1 }
}

/// A line is read into a buffer, which the library may make, or make longer: only then does it write where the buffer is, and how
/// long.
unsafe fn line(place: usize, size: usize, read: impl FnOnce() -> isize) -> isize {
    let call = Call::entered();
    if let Some(call) = &call {
        let r = Accesses { call, class: AccessClass::Read };
        r.bytes(place, 8);
        r.bytes(size, 8);
        call.again();
    }
    // SAFETY: null, or the words that the call behind is given.
    let before = unsafe { [word(place), word(size)] };
    let result = read();
    if let Some(call) = &call {
        let w = Accesses { call, class: AccessClass::Write };
        // SAFETY: the same words, after it.
        let [buffer, bytes] = unsafe { [word(place), word(size)] };
        w.bytes(place, if buffer == before[0] { 0 } else { 8 });
        w.bytes(size, if bytes == before[1] { 0 } else { 8 });
        w.bytes(buffer, length(result));
    }
    result
}

macro_rules! lines {
    ($($name:ident($($argument:ident: $kind:ty),*), $stream:expr, $end:expr;)*) => { $(
        mod $name {
            use super::*;

            pub unsafe extern "C" fn call(place: usize, size: usize $(, $argument: $kind)*) -> isize {
                let wants = Wants::Until($end as u8, usize::MAX);
                // SAFETY: the function itself with the program's arguments.
                let real = || unsafe { real!(fn $name(usize, usize $(, $kind)*) -> isize)(place, size $(, $argument)*) };
                // SAFETY: the places are the program's arguments.
                unsafe { line(place, size, || takes($stream, wants, real)) }
            }
        }
        crate::intercept::interpose! { $name => $name::call; }
    )* };
}

lines! {
    getline(stream: usize), stream, b'\n';
    getdelim(end: c_int, stream: usize), stream, end;
    __getdelim(end: c_int, stream: usize), stream, end;
}

effects! {
    fgets(to, most, stream) -> usize, by stdio::fgets::call, writes |w, result| { w.text(result); };
    fgets_unlocked(to, most, stream) -> usize, by stdio::fgets_unlocked::call, writes |w, result| { w.text(result); };
    fgetws(to, most, stream) -> usize, by stdio::fgetws::call, writes |w, result| { w.wide(result); };
    fread(to, size, count, stream) -> usize, by stdio::fread::call,
        writes |w, items| { w.bytes(to, items.saturating_mul(size)); };
    fread_unlocked(to, size, count, stream) -> usize, by stdio::fread_unlocked::call,
        writes |w, items| { w.bytes(to, items.saturating_mul(size)); };
    fwrite(from, size, count, stream) -> usize, by stdio::fwrite::call, reads |r| { r.bytes(from, size.saturating_mul(count)); };
    fwrite_unlocked(from, size, count, stream) -> usize, by stdio::fwrite_unlocked::call,
        reads |r| { r.bytes(from, size.saturating_mul(count)); };
    fputs(text, stream) -> c_int, by stdio::fputs::call, reads |r| { r.text(text); };
    fputs_unlocked(text, stream) -> c_int, by stdio::fputs_unlocked::call, reads |r| { r.text(text); };
    fputws(text, stream) -> c_int, by stdio::fputws::call, reads |r| { r.wide(text); };
    puts(text) -> c_int, by stdio::puts::call, reads |r| { r.text(text); };
    perror(text) -> (), reads |r| { r.text(text); };
    fgetpos(stream, place) -> c_int, writes |w, result| { w.bytes(place, if result == 0 { 16 } else { 0 }); };
    fgetpos64(stream, place) -> c_int, writes |w, result| { w.bytes(place, if result == 0 { 16 } else { 0 }); };
    fsetpos(stream, place) -> c_int, reads |r| { r.bytes(place, 16); };
    fsetpos64(stream, place) -> c_int, reads |r| { r.bytes(place, 16); };
    popen(command, mode) -> usize, by processors::open_process, reads |r| { r.text(command); r.text(mode); };
}
