//! Files by name, and what is told of them.

use super::*;
use crate::intercept::{streams, waits};
use crate::serial::preconditions;
use core::ffi::c_int;

/// Bytes of a `struct stat`, `statfs`, `statvfs`, `statx`.
const STAT: usize = 144;
const STATFS: usize = 120;
const STATVFS: usize = 112;
const STATX: usize = 256;

const fn if_done(result: c_int, bytes: usize) -> usize {
    if result == 0 { bytes } else { 0 }
}

/// The six characters at the end of a name that the library chose.
fn chosen(w: &Accesses<'_>, name: usize) {
    const CHOSEN: usize = 6;
    if name != 0 {
        w.bytes(name + text_length(name).saturating_sub(CHOSEN), CHOSEN);
    }
}

/// Rows of functions that read the names of files and nothing else.
macro_rules! names {
    ($($name:ident($($argument:ident),*) $($path:ident)*;)*) => {
        effects! { $( $name($($argument),*) -> c_int, reads |r| { $( r.text($path); )* }; )* }
    };
}

/// The same of functions that make, change or remove files.
macro_rules! changes {
    ($($name:ident($($argument:ident),*) $($path:ident)*;)*) => {
        effects! { $( $name($($argument),*) -> c_int, reads |r| { preconditions::changes_files(); $( r.text($path); )* }; )* }
    };
}

names! {
    access(path, mode) path;
    faccessat(directory, path, mode, flags) path;
    chdir(path) path;
    sem_unlink(path) path;
}

changes! {
    chmod(path, mode) path;
    chown(path, user, group) path;
    lchown(path, user, group) path;
    link(old, new) old new;
    mkdir(path, mode) path;
    mkdirat(directory, path, mode) path;
    mkfifo(path, mode) path;
    remove(path) path;
    rename(old, new) old new;
    renameat(from, old, to, new) old new;
    rmdir(path) path;
    symlink(old, new) old new;
    truncate(path, bytes) path;
    truncate64(path, bytes) path;
    unlink(path) path;
    unlinkat(directory, path, flags) path;
}

effects! {
    fopen(path, mode) -> usize, by streams::open, reads |r| { r.text(path); r.text(mode); };
    fopen64(path, mode) -> usize, by streams::open, reads |r| { r.text(path); r.text(mode); };
    freopen(path, mode, stream) -> usize, by streams::reopen, reads |r| { r.text(path); r.text(mode); };
    freopen64(path, mode, stream) -> usize, by streams::reopen, reads |r| { r.text(path); r.text(mode); };
    open(path, flags, mode) -> c_int, by waits::open_file, reads |r| { r.text(path); };
    open64(path, flags, mode) -> c_int, by waits::open_file, reads |r| { r.text(path); };
    openat(directory, path, flags, mode) -> c_int, by waits::open_file_at, reads |r| { r.text(path); };
    openat64(directory, path, flags, mode) -> c_int, by waits::open_file_at, reads |r| { r.text(path); };
    opendir(path) -> usize, reads |r| { r.text(path); };
    stat(path, to) -> c_int, reads |r| { r.text(path); }, writes |w, result| { w.bytes(to, if_done(result, STAT)); };
    stat64(path, to) -> c_int, reads |r| { r.text(path); }, writes |w, result| { w.bytes(to, if_done(result, STAT)); };
    lstat(path, to) -> c_int, reads |r| { r.text(path); }, writes |w, result| { w.bytes(to, if_done(result, STAT)); };
    lstat64(path, to) -> c_int, reads |r| { r.text(path); }, writes |w, result| { w.bytes(to, if_done(result, STAT)); };
    fstat(file, to) -> c_int, writes |w, result| { w.bytes(to, if_done(result, STAT)); };
    fstat64(file, to) -> c_int, writes |w, result| { w.bytes(to, if_done(result, STAT)); };
    fstatat(directory, path, to, flags) -> c_int,
        reads |r| { r.text(path); },
        writes |w, result| { w.bytes(to, if_done(result, STAT)); };
    fstatat64(directory, path, to, flags) -> c_int,
        reads |r| { r.text(path); },
        writes |w, result| { w.bytes(to, if_done(result, STAT)); };
    __xstat(version, path, to) -> c_int, reads |r| { r.text(path); }, writes |w, result| { w.bytes(to, if_done(result, STAT)); };
    __xstat64(version, path, to) -> c_int,
        reads |r| { r.text(path); },
        writes |w, result| { w.bytes(to, if_done(result, STAT)); };
    __lxstat(version, path, to) -> c_int, reads |r| { r.text(path); }, writes |w, result| { w.bytes(to, if_done(result, STAT)); };
    __lxstat64(version, path, to) -> c_int,
        reads |r| { r.text(path); },
        writes |w, result| { w.bytes(to, if_done(result, STAT)); };
    __fxstat(version, file, to) -> c_int, writes |w, result| { w.bytes(to, if_done(result, STAT)); };
    __fxstat64(version, file, to) -> c_int, writes |w, result| { w.bytes(to, if_done(result, STAT)); };
    statx(directory, path, flags, mask, to) -> c_int,
        reads |r| { r.text(path); },
        writes |w, result| { w.bytes(to, if_done(result, STATX)); };
    statfs(path, to) -> c_int, reads |r| { r.text(path); }, writes |w, result| { w.bytes(to, if_done(result, STATFS)); };
    statfs64(path, to) -> c_int, reads |r| { r.text(path); }, writes |w, result| { w.bytes(to, if_done(result, STATFS)); };
    fstatfs(file, to) -> c_int, writes |w, result| { w.bytes(to, if_done(result, STATFS)); };
    fstatfs64(file, to) -> c_int, writes |w, result| { w.bytes(to, if_done(result, STATFS)); };
    statvfs(path, to) -> c_int, reads |r| { r.text(path); }, writes |w, result| { w.bytes(to, if_done(result, STATVFS)); };
    statvfs64(path, to) -> c_int, reads |r| { r.text(path); }, writes |w, result| { w.bytes(to, if_done(result, STATVFS)); };
    fstatvfs(file, to) -> c_int, writes |w, result| { w.bytes(to, if_done(result, STATVFS)); };
    fstatvfs64(file, to) -> c_int, writes |w, result| { w.bytes(to, if_done(result, STATVFS)); };
    getcwd(to, bytes) -> usize, writes |w, result| { w.text(result); };
    get_current_dir_name() -> usize, writes |w, result| { w.text(result); };
    "GLIBC_2.3" realpath(path, to) -> usize, reads |r| { r.text(path); }, writes |w, result| { w.text(result); };
    canonicalize_file_name(path) -> usize, reads |r| { r.text(path); }, writes |w, result| { w.text(result); };
    readlink(path, to, bytes) -> isize, reads |r| { r.text(path); }, writes |w, result| { w.bytes(to, result.max(0) as usize); };
    readlinkat(directory, path, to, bytes) -> isize,
        reads |r| { r.text(path); },
        writes |w, result| { w.bytes(to, result.max(0) as usize); };
    // SAFETY: null, or the entry that the call returned.
    readdir(directory) -> usize, writes |w, entry| { w.bytes(entry, unsafe { entry_bytes(entry) }); };
    // SAFETY: as for `readdir`.
    readdir64(directory) -> usize, writes |w, entry| { w.bytes(entry, unsafe { entry_bytes(entry) }); };
    readdir_r(directory, entry, place) -> c_int, writes |w, result| {
        if result == 0 {
            w.bytes(place, 8);
            // SAFETY: the call succeeded: it stored null, or the entry's address.
            w.bytes(entry, unsafe { entry_bytes(word(place)) });
        }
    };
    readdir64_r(directory, entry, place) -> c_int, writes |w, result| {
        if result == 0 {
            w.bytes(place, 8);
            // SAFETY: as for `readdir_r`.
            w.bytes(entry, unsafe { entry_bytes(word(place)) });
        }
    };
    mkstemp(name) -> c_int,
        reads |r| { preconditions::changes_files(); r.text(name); },
        writes |w, result| { if result >= 0 { chosen(&w, name); } };
    mkstemp64(name) -> c_int,
        reads |r| { preconditions::changes_files(); r.text(name); },
        writes |w, result| { if result >= 0 { chosen(&w, name); } };
    mkostemp(name, flags) -> c_int,
        reads |r| { preconditions::changes_files(); r.text(name); },
        writes |w, result| { if result >= 0 { chosen(&w, name); } };
    mkostemp64(name, flags) -> c_int,
        reads |r| { preconditions::changes_files(); r.text(name); },
        writes |w, result| { if result >= 0 { chosen(&w, name); } };
    mkdtemp(name) -> usize,
        reads |r| { preconditions::changes_files(); r.text(name); },
        writes |w, result| { chosen(&w, result); };
    tmpnam_r(name) -> usize, writes |w, result| { w.text(result); };
    ttyname_r(file, to, bytes) -> c_int, writes |w, result| { if result == 0 { w.text(to); } };
    ptsname_r(file, to, bytes) -> c_int, writes |w, result| { if result == 0 { w.text(to); } };
    "GLIBC_2.27" glob(pattern, flags, handler, to) -> c_int,
        reads |r| { r.text(pattern); },
        writes |w, result| { w.bytes(to, if_done(result, 72)); };
    "GLIBC_2.27" glob64(pattern, flags, handler, to) -> c_int,
        reads |r| { r.text(pattern); },
        writes |w, result| { w.bytes(to, if_done(result, 72)); };
    fnmatch(pattern, text, flags) -> c_int, reads |r| { r.text(pattern); r.text(text); };
    pread(file, to, bytes, offset) -> isize, writes |w, result| { w.bytes(to, result.max(0) as usize); };
    pread64(file, to, bytes, offset) -> isize, writes |w, result| { w.bytes(to, result.max(0) as usize); };
}

/// Of a `struct dirent`, its own word of that.
unsafe fn entry_bytes(entry: usize) -> usize {
    // SAFETY: the callers' entry begins with two words, which its length follows.
    if entry == 0 { 0 } else { unsafe { ((entry + 16) as *const u16).read_unaligned() as usize } }
}
