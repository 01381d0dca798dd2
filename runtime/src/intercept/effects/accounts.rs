//! Users and groups. What looks them up may load a plug-in of the name service.

use super::*;
use crate::system::glibc;
use core::ffi::c_int;

/// Bytes of a `struct passwd`, of a `struct group`.
const USER: usize = 48;
const GROUP: usize = 32;

/// An entry of so many bytes, and where it was put, by a function with a result of 0.
fn entry(w: &Accesses<'_>, place: usize, bytes: usize, result: c_int) {
    if result == 0 {
        w.bytes(place, 8);
        // SAFETY: the function has succeeded, and put the address of the entry there.
        w.bytes(unsafe { word(place) }, bytes);
    }
    glibc::look();
}

effects! {
    getpwnam(name) -> usize, reads |r| { r.text(name); }, writes |w, result| { w.bytes(result, USER); glibc::look(); };
    getpwuid(user) -> usize, writes |w, result| { w.bytes(result, USER); glibc::look(); };
    getpwnam_r(name, to, buffer, bytes, place) -> c_int,
        reads |r| { r.text(name); },
        writes |w, result| { entry(&w, place, USER, result); };
    getpwuid_r(user, to, buffer, bytes, place) -> c_int, writes |w, result| { entry(&w, place, USER, result); };
    getpwent_r(to, buffer, bytes, place) -> c_int, writes |w, result| { entry(&w, place, USER, result); };
    getgrnam(name) -> usize, reads |r| { r.text(name); }, writes |w, result| { w.bytes(result, GROUP); glibc::look(); };
    getgrgid(group) -> usize, writes |w, result| { w.bytes(result, GROUP); glibc::look(); };
    getgrnam_r(name, to, buffer, bytes, place) -> c_int,
        reads |r| { r.text(name); },
        writes |w, result| { entry(&w, place, GROUP, result); };
    getgrgid_r(group, to, buffer, bytes, place) -> c_int, writes |w, result| { entry(&w, place, GROUP, result); };
    getgrent_r(to, buffer, bytes, place) -> c_int, writes |w, result| { entry(&w, place, GROUP, result); };
    getgroups(most: c_int, to) -> c_int, writes |w, count| { w.bytes(if most > 0 { to } else { 0 }, count.max(0) as usize * 4); };
    getgrouplist(name, group, to, count) -> c_int, reads |r| { r.text(name); }, writes |w, found| {
        w.bytes(count, 4);
        w.bytes(to, found.max(0) as usize * 4);
        glibc::look();
    };
    getlogin_r(to, bytes) -> c_int, writes |w, result| { if result == 0 { w.text(to); } };
    getresuid(real, effective, saved) -> c_int,
        writes |w, result| { if result == 0 { w.bytes(real, 4); w.bytes(effective, 4); w.bytes(saved, 4); } };
    getresgid(real, effective, saved) -> c_int,
        writes |w, result| { if result == 0 { w.bytes(real, 4); w.bytes(effective, 4); w.bytes(saved, 4); } };
}
