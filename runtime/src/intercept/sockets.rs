//! Sockets.

use super::descriptors::{Call, Part, SOCKETS, look, made, parts, transfer, write_all};
use super::files::{ends, made_pair, touched, touched_parts};
use crate::record::connections::{self, End};
use crate::record::recorder;
use crate::system::real::real;
use crate::system::thread::Runtime;
use crate::system::tls::caller;
use core::ffi::c_int;
use rashomon_abi::record::{AccessClass, Op, sync_source};

const MSG_DONTWAIT: c_int = 0x40;
const MSG_WAITALL: c_int = 0x100;
const MSG_ERRQUEUE: c_int = 0x2000;

/// `struct msghdr`.
#[repr(C)]
struct Message {
    name: *mut u8,
    name_bytes: u32,
    parts: *mut Part,
    part_count: usize,
    control: *mut u8,
    control_bytes: usize,
    flags: c_int,
}

fn input(file: c_int, flags: c_int, site: u64) -> Call {
    Call::input(file, site)
        .at_once(flags & (MSG_DONTWAIT | MSG_ERRQUEUE) != 0)
        .external(flags & (MSG_WAITALL | MSG_DONTWAIT) == MSG_WAITALL)
}

fn output(file: c_int, flags: c_int, site: u64) -> Call {
    Call::output(file, site).at_once(flags & MSG_DONTWAIT != 0)
}

/// Before anybody can see that it is accepted.
fn answered(file: c_int) -> isize {
    connections::accepted(file);
    file as isize
}

/// An accepted connection. Of one that this process asked for, what its other end has done so far is before this.
fn connection(file: c_int, site: u64) -> c_int {
    if file >= 0
        && let Some(runtime) = Runtime::try_enter()
    {
        let descriptor = look(file);
        if let End::Known(_) = connections::end(descriptor.identity) {
            recorder::sync(runtime.thread(), Op::Acquire, descriptor.object(), sync_source::FILE, site, &[]);
        }
    }
    made(file, site)
}

pub unsafe extern "C" fn accepted(file: c_int, address: *mut u8, length: *mut u32) -> c_int {
    let site = caller();
    // SAFETY: the program's room for an address, or null.
    let real = || unsafe { answered(real!(fn accept(c_int, *mut u8, *mut u32) -> c_int)(file, address, length)) };
    connection(transfer(Call::input(file, site), real) as c_int, site)
}

pub unsafe extern "C" fn accepted_with(file: c_int, address: *mut u8, length: *mut u32, flags: c_int) -> c_int {
    let site = caller();
    // SAFETY: as in `accepted`.
    let real = || unsafe { answered(real!(fn accept4(c_int, *mut u8, *mut u32, c_int) -> c_int)(file, address, length, flags)) };
    connection(transfer(Call::input(file, site), real) as c_int, site)
}

/// Whether the other side of a connection is on this machine: the kernel answers for it, at once.
///
/// # Safety
/// `address` points to `length` bytes.
unsafe fn is_local(address: *const u8, length: u32) -> bool {
    if address.is_null() || length < 2 {
        return true;
    }
    // SAFETY: by the contract.
    unsafe {
        match *address.cast::<u16>() {
            2 if length >= 8 => *address.add(4) == 127,
            10 if length >= 24 => (8..23).all(|at| *address.add(at) == 0),
            family => family == 1 || family == 0,
        }
    }
}

pub unsafe extern "C" fn connected(file: c_int, address: *const u8, length: u32) -> c_int {
    let site = caller();
    // SAFETY: the program says how long the address is.
    let streams = look(file).is_stream() && unsafe { connections::has_port(address, length) };
    if streams {
        connections::asks(file);
    }
    let mut accepted = false;
    // SAFETY: the program's address.
    let real = || unsafe {
        let result = real!(fn connect(c_int, *const u8, u32) -> c_int)(file, address, length) as isize;
        accepted |= streams && connections::asked(file, address);
        result
    };
    // An unconnected socket is "ready" for poll(2) in its own way: the call is made whatever it says.
    // SAFETY: the program says how long the address is.
    let external = unsafe { !is_local(address, length) } && !look(file).is_nonblocking();
    let result = transfer(Call::output(file, site).external(external), real) as c_int;
    if accepted && let Some(runtime) = Runtime::try_enter() {
        recorder::sync(runtime.thread(), Op::Acquire, SOCKETS, sync_source::FILE, site, &[]);
    }
    result
}

unsafe extern "C" fn receive(file: c_int, buffer: *mut u8, bytes: usize, flags: c_int) -> isize {
    let site = caller();
    // SAFETY: the program's room, which the kernel fills.
    let result = transfer(input(file, flags, site), || unsafe {
        real!(fn recv(c_int, *mut u8, usize, c_int) -> isize)(file, buffer, bytes, flags)
    });
    touched(buffer, result.min(bytes as isize), site, AccessClass::Write);
    result
}

unsafe extern "C" fn receive_checked(file: c_int, buffer: *mut u8, bytes: usize, size: usize, flags: c_int) -> isize {
    if bytes > size {
        // SAFETY: ends the program: the room is too small.
        return unsafe { real!(fn __recv_chk(c_int, *mut u8, usize, usize, c_int) -> isize)(file, buffer, bytes, size, flags) };
    }
    // SAFETY: the room is as large as the program says.
    unsafe { receive(file, buffer, bytes, flags) }
}

unsafe extern "C" fn receive_from(
    file: c_int,
    buffer: *mut u8,
    bytes: usize,
    flags: c_int,
    address: *mut u8,
    length: *mut u32,
) -> isize {
    let site = caller();
    // SAFETY: as in `receive`, and room for an address, or null.
    let real = || unsafe {
        real!(fn recvfrom(c_int, *mut u8, usize, c_int, *mut u8, *mut u32) -> isize)(file, buffer, bytes, flags, address, length)
    };
    let result = transfer(input(file, flags, site), real);
    touched(buffer, result.min(bytes as isize), site, AccessClass::Write);
    result
}

unsafe extern "C" fn receive_from_checked(
    file: c_int,
    buffer: *mut u8,
    bytes: usize,
    size: usize,
    flags: c_int,
    address: *mut u8,
    length: *mut u32,
) -> isize {
    if bytes > size {
        // SAFETY: ends the program: the room is too small.
        return unsafe {
            real!(fn __recvfrom_chk(c_int, *mut u8, usize, usize, c_int, *mut u8, *mut u32) -> isize)(
                file, buffer, bytes, size, flags, address, length,
            )
        };
    }
    // SAFETY: the room is as large as the program says.
    unsafe { receive_from(file, buffer, bytes, flags, address, length) }
}

unsafe extern "C" fn receive_message(file: c_int, message: *mut Message, flags: c_int) -> isize {
    let site = caller();
    // SAFETY: the program's message, whose parts the kernel fills.
    let result = transfer(input(file, flags, site), || unsafe {
        real!(fn recvmsg(c_int, *mut Message, c_int) -> isize)(file, message, flags)
    });
    if result > 0 {
        // SAFETY: the same message, which it has read and filled.
        touched_parts(unsafe { parts((*message).parts, (*message).part_count as c_int) }, result, site, AccessClass::Write);
    }
    result
}

unsafe extern "C" fn receive_messages(file: c_int, messages: *mut u8, count: u32, flags: c_int, time: *mut u8) -> c_int {
    let at_once = flags & MSG_DONTWAIT != 0;
    // SAFETY: the program's messages, so many of them.
    let real = || unsafe {
        real!(fn recvmmsg(c_int, *mut u8, u32, c_int, *mut u8) -> c_int)(file, messages, count, flags, time) as isize
    };
    transfer(Call::input(file, caller()).at_once(at_once).external(!at_once), real) as c_int
}

fn send_real(file: c_int, buffer: *const u8, bytes: usize, flags: c_int) -> isize {
    // SAFETY: by the callers, bytes of the program's.
    unsafe { real!(fn send(c_int, *const u8, usize, c_int) -> isize)(file, buffer, bytes, flags) }
}

unsafe extern "C" fn send_bytes(file: c_int, buffer: *mut u8, bytes: usize, flags: c_int) -> isize {
    let site = caller();
    touched(buffer, bytes as isize, site, AccessClass::Read);
    let whole = || send_real(file, buffer, bytes, flags);
    write_all(output(file, flags, site), &[Part { base: buffer, bytes }], whole, |start, bytes| {
        send_real(file, start, bytes, flags)
    })
}

unsafe extern "C" fn send_to(file: c_int, buffer: *mut u8, bytes: usize, flags: c_int, address: *const u8, length: u32) -> isize {
    let site = caller();
    touched(buffer, bytes as isize, site, AccessClass::Read);
    // SAFETY: bytes of the program's, and an address, or null.
    let real = || unsafe {
        real!(fn sendto(c_int, *const u8, usize, c_int, *const u8, u32) -> isize)(file, buffer, bytes, flags, address, length)
    };
    if address.is_null() {
        return write_all(output(file, flags, site), &[Part { base: buffer, bytes }], real, |start, bytes| {
            send_real(file, start, bytes, flags)
        });
    }
    transfer(output(file, flags, site), real)
}

unsafe extern "C" fn send_message(file: c_int, message: *const Message, flags: c_int) -> isize {
    let site = caller();
    // SAFETY: the program's message, which the kernel is about to read.
    let (buffers, plain) = unsafe {
        (parts((*message).parts, (*message).part_count as c_int), (*message).control.is_null() && (*message).name.is_null())
    };
    touched_parts(buffers, isize::MAX, site, AccessClass::Read);
    // SAFETY: the same message.
    let whole = || unsafe { real!(fn sendmsg(c_int, *const Message, c_int) -> isize)(file, message, flags) };
    if plain {
        return write_all(output(file, flags, site), buffers, whole, |start, bytes| send_real(file, start, bytes, flags));
    }
    transfer(output(file, flags, site), whole)
}

unsafe extern "C" fn send_messages(file: c_int, messages: *mut u8, count: u32, flags: c_int) -> c_int {
    // SAFETY: the program's messages, so many of them.
    let real = || unsafe { real!(fn sendmmsg(c_int, *mut u8, u32, c_int) -> c_int)(file, messages, count, flags) as isize };
    transfer(output(file, flags, caller()), real) as c_int
}

unsafe extern "C" fn shut_down(file: c_int, how: c_int) -> c_int {
    let site = caller();
    // SAFETY: numbers only.
    let real = || unsafe { real!(fn shutdown(c_int, c_int) -> c_int)(file, how) };
    if crate::system::tls::current().is_none() { real() } else { ends(look(file), site, real) }
}

unsafe extern "C" fn socket_made(domain: c_int, kind: c_int, protocol: c_int) -> c_int {
    let site = caller();
    // SAFETY: numbers only.
    made(unsafe { real!(fn socket(c_int, c_int, c_int) -> c_int)(domain, kind, protocol) }, site)
}

unsafe extern "C" fn pair_made(domain: c_int, kind: c_int, protocol: c_int, ends: *mut c_int) -> c_int {
    let site = caller();
    // SAFETY: the program's room for two descriptors.
    made_pair(unsafe { real!(fn socketpair(c_int, c_int, c_int, *mut c_int) -> c_int)(domain, kind, protocol, ends) }, ends, site)
}

interpose! {
    recv => receive;
    __recv_chk => receive_checked;
    recvfrom => receive_from;
    __recvfrom_chk => receive_from_checked;
    recvmsg => receive_message;
    recvmmsg => receive_messages;
    send => send_bytes;
    sendto => send_to;
    sendmsg => send_message;
    sendmmsg => send_messages;
    shutdown => shut_down;
    socket => socket_made;
    socketpair => pair_made;
}
