//! Addresses of sockets, names of hosts.

use super::*;
use crate::intercept::{sockets, waits};
use crate::system::glibc;
use core::ffi::c_int;

/// Functions that write a socket's address where the program has room for so many bytes as the number behind it says, which is
/// replaced by the address's length.
macro_rules! addresses {
    ($($name:ident($($argument:ident),*) -> $result:ty, by $by:path, $to:ident, $length:ident $(, $data:ident)?;)*) => { $(
        mod $name {
            use super::*;

            pub unsafe extern "C" fn call($($argument: usize),*) -> $result {
                let call = Call::entered();
                // SAFETY: null, or the room that the program tells.
                let room = unsafe { if $to == 0 { 0 } else { number($length) } };
                // SAFETY: the function that stands in, with the program's arguments.
                let result = unsafe { $by($($argument as _),*) } as $result;
                if let Some(call) = &call
                    && result >= 0
                {
                    let (r, w) = (Accesses { call, class: AccessClass::Read }, Accesses { call, class: AccessClass::Write });
                    $( w.bytes($data, result as usize); )?
                    if $to != 0 && $length != 0 {
                        r.bytes($length, 4);
                        w.bytes($length, 4);
                        // SAFETY: the call succeeded, and stored how much it needed.
                        w.bytes($to, unsafe { number($length) }.min(room));
                    }
                }
                result
            }
        }
        crate::intercept::interpose! { $name => $name::call; }
    )* };
}

unsafe extern "C" fn own_address(file: usize, to: usize, length: usize) -> c_int {
    // SAFETY: the function itself with the program's arguments.
    unsafe { real!(fn getsockname(usize, usize, usize) -> c_int)(file, to, length) }
}

unsafe extern "C" fn address_of_peer(file: usize, to: usize, length: usize) -> c_int {
    // SAFETY: the function itself with the program's arguments, too.
    unsafe { real!(fn getpeername(usize, usize, usize) -> c_int)(file, to, length) }
}

unsafe extern "C" fn option(file: usize, level: usize, name: usize, to: usize, length: usize) -> c_int {
    // SAFETY: the program's arguments, as they are.
    unsafe { real!(fn getsockopt(usize, usize, usize, usize, usize) -> c_int)(file, level, name, to, length) }
}

addresses! {
    accept(file, to, length) -> c_int, by sockets::accepted, to, length;
    accept4(file, to, length, flags) -> c_int, by sockets::accepted_with, to, length;
    getsockname(file, to, length) -> c_int, by own_address, to, length;
    getpeername(file, to, length) -> c_int, by address_of_peer, to, length;
    getsockopt(file, level, name, to, length) -> c_int, by option, to, length;
}

/// `struct addrinfo`.
const INFORMATION: usize = 48;

/// The list that a look-up made.
unsafe fn found(w: &Accesses<'_>, place: usize) {
    const LONGEST: usize = 1000;
    w.bytes(place, 8);
    // SAFETY: by the caller, where the list's begin was stored.
    let mut at = unsafe { word(place) };
    for _ in 0..LONGEST {
        if at == 0 {
            return;
        }
        w.bytes(at, INFORMATION);
        // SAFETY: not null: an `addrinfo` of the list.
        unsafe {
            w.bytes(word(at + 24), number(at + 16));
            w.text(word(at + 32));
            at = word(at + 40);
        }
    }
}

effects! {
    bind(file, address, length: u32) -> c_int, reads |r| { r.bytes(address, length as usize); };
    connect(file, address, length: u32) -> c_int, by sockets::connected, reads |r| { r.bytes(address, length as usize); };
    setsockopt(file, level, name, from, length: u32) -> c_int, reads |r| { r.bytes(from, length as usize); };
    inet_pton(family, text, to) -> c_int,
        reads |r| { r.text(text); },
        writes |w, result| { w.bytes(to, match (result, family as u32) { (1, 2) => 4, (1, 10) => 16, _ => 0 }); };
    inet_ntop(family, from, to, room) -> usize,
        reads |r| { r.bytes(from, match family as u32 { 2 => 4, 10 => 16, _ => 0 }); },
        writes |w, result| { w.text(result); };
    inet_aton(text, to) -> c_int,
        reads |r| { r.text(text); },
        writes |w, result| { w.bytes(to, if result != 0 { 4 } else { 0 }); };
    inet_addr(text) -> u32, reads |r| { r.text(text); };
    gethostname(to, bytes) -> c_int, writes |w, result| { if result == 0 { w.text_up_to(to, bytes); } };
    getdomainname(to, bytes) -> c_int, writes |w, result| { if result == 0 { w.text_up_to(to, bytes); } };
    if_nametoindex(name) -> u32, reads |r| { r.text(name); };
    if_indextoname(index, name) -> usize, writes |w, result| { w.text(result); };
    getifaddrs(place) -> c_int, writes |w, result| { w.bytes(place, if result == 0 { 8 } else { 0 }); };
    getaddrinfo(node, service, hints, place) -> c_int, by waits::resolve,
        reads |r| { r.text(node); r.text(service); r.bytes(hints, INFORMATION); },
        writes |w, result| {
        // SAFETY: it succeeded, so a list lies there.
        if result == 0 { unsafe { found(&w, place) }; }
        glibc::look();
    };
    getnameinfo(address, length: u32, host, host_room: u32, service, service_room: u32, flags) -> c_int,
        reads |r| { r.bytes(address, length as usize); },
        writes |w, result| {
        if result == 0 {
            w.text(if host_room > 0 { host } else { 0 });
            w.text(if service_room > 0 { service } else { 0 });
        }
        glibc::look();
    };
    gethostbyname(name) -> usize, reads |r| { r.text(name); }, writes |w, result| { w.bytes(result, 32); glibc::look(); };
    gethostbyname_r(name, to, buffer, bytes, place, error) -> c_int, reads |r| { r.text(name); }, writes |w, result| {
        w.bytes(place, 8);
        // SAFETY: it succeeded, so the entry's address, or null, lies there.
        w.bytes(if result == 0 { unsafe { word(place) } } else { 0 }, 32);
        glibc::look();
    };
    getservbyname(name, protocol) -> usize,
        reads |r| { r.text(name); r.text(protocol); },
        writes |w, result| { w.bytes(result, 32); glibc::look(); };
    getservbyport(port, protocol) -> usize,
        reads |r| { r.text(protocol); },
        writes |w, result| { w.bytes(result, 32); glibc::look(); };
    getprotobyname(name) -> usize, reads |r| { r.text(name); }, writes |w, result| { w.bytes(result, 24); glibc::look(); };
}
