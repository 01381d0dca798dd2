//! Streams: what goes through them. Their buffers are the library's, which locks them.
#![expect(
    clippy::undocumented_unsafe_blocks,
    reason = "every block hands the program's own arguments to the function that they are meant for, or looks at what a call left in them"
)]

use super::*;
use core::ffi::c_int;

const fn length(result: isize) -> usize {
    if result < 0 { 0 } else { result as usize + 1 }
}

/// A line was read into a buffer that the library made, or made longer.
unsafe fn line(w: &Accesses<'_>, place: usize, size: usize, result: isize) {
    w.bytes(place, 8);
    w.bytes(size, 8);
    w.bytes(unsafe { word(place) }, length(result));
}

effects! {
    getline(place, size, stream) -> isize, reads |r| { r.bytes(place, 8); r.bytes(size, 8); }, writes |w, result| { unsafe { line(&w, place, size, result) }; };
    getdelim(place, size, end, stream) -> isize, reads |r| { r.bytes(place, 8); r.bytes(size, 8); }, writes |w, result| { unsafe { line(&w, place, size, result) }; };
    __getdelim(place, size, end, stream) -> isize, reads |r| { r.bytes(place, 8); r.bytes(size, 8); }, writes |w, result| { unsafe { line(&w, place, size, result) }; };
    fgets(to, most, stream) -> usize, writes |w, result| { w.text(result); };
    fgets_unlocked(to, most, stream) -> usize, writes |w, result| { w.text(result); };
    fgetws(to, most, stream) -> usize, writes |w, result| { w.wide(result); };
    fread(to, size, count, stream) -> usize, writes |w, items| { w.bytes(to, items.saturating_mul(size)); };
    fread_unlocked(to, size, count, stream) -> usize, writes |w, items| { w.bytes(to, items.saturating_mul(size)); };
    fwrite(from, size, count, stream) -> usize, reads |r| { r.bytes(from, size.saturating_mul(count)); };
    fwrite_unlocked(from, size, count, stream) -> usize, reads |r| { r.bytes(from, size.saturating_mul(count)); };
    fputs(text, stream) -> c_int, reads |r| { r.text(text); };
    fputs_unlocked(text, stream) -> c_int, reads |r| { r.text(text); };
    fputws(text, stream) -> c_int, reads |r| { r.wide(text); };
    puts(text) -> c_int, reads |r| { r.text(text); };
    perror(text) -> (), reads |r| { r.text(text); };
    fgetpos(stream, place) -> c_int, writes |w, result| { w.bytes(place, if result == 0 { 16 } else { 0 }); };
    fgetpos64(stream, place) -> c_int, writes |w, result| { w.bytes(place, if result == 0 { 16 } else { 0 }); };
    fsetpos(stream, place) -> c_int, reads |r| { r.bytes(place, 16); };
    fsetpos64(stream, place) -> c_int, reads |r| { r.bytes(place, 16); };
    popen(command, mode) -> usize, reads |r| { r.text(command); r.text(mode); };
}
