//! Connections of TCP of which this process has both ends. Whoever writes to one lets those go on who read from it, and nobody
//! else; of all other sockets only one thing is known, that somebody may pass on what was written.
//!
//! An end is known from the moment on at which the process accepts what it asked for itself, which the ports of both ends tell.
//! What was written before counts as written to all sockets, and accepting takes that in.
//!
//! Limit: a process that has forked learns of no more connections. What its children pass on from one connection to another,
//! after both were accepted, lets nobody go on.

use crate::record::external::{self, Identity};
use crate::system::header;
use crate::system::lock::RawLock;
use crate::system::memory::Map;
use crate::system::sys;
use core::ffi::c_int;
use core::sync::atomic::Ordering::*;
use rashomon_abi::header::field;

const GETSOCKNAME: usize = 51;
const GETPEERNAME: usize = 52;
/// Families of addresses that begin with a port: IPv4 and IPv6.
const WITH_PORTS: [u16; 2] = [2, 10];

static LOCK: RawLock = RawLock::new();
/// By the ports of the end that asked, its own and the other one: its inode; 0: it was accepted.
static mut ASKED: Map = Map::new();
/// By the identity of an end: the ordinal of the connection.
static mut ENDS: Map = Map::new();
static mut MADE: u64 = 0;

/// A forked child has none of them: its parent has the other ends.
///
/// # Safety
/// In a child that has one thread.
pub unsafe fn forget() {
    LOCK.unlock();
    // SAFETY: nobody else is there. The maps may have been in the middle of a change.
    unsafe {
        (&raw mut ASKED).write(Map::new());
        (&raw mut ENDS).write(Map::new());
        (&raw mut MADE).write(0);
    }
}

/// A port in the order of the network.
fn port(question: usize, file: c_int) -> Option<u64> {
    let mut address = [0u64; 16];
    let mut length = size_of_val(&address) as u32;
    // SAFETY: a local buffer with its length.
    let result = unsafe { sys::call(question, file as usize, address.as_mut_ptr() as usize, &raw mut length as usize, 0, 0, 0) };
    let [family, port] = [address[0] as u16, (address[0] >> 16) as u16];
    (result == 0 && WITH_PORTS.contains(&family)).then_some(u64::from(port))
}

/// No port is 0, so no key is either.
fn may_be_own(own: Option<u64>, other: Option<u64>) -> Option<(u64, u64)> {
    let key = (own?, other?);
    (key.0 != 0 && key.1 != 0 && header::word(field::FORKS).load(Relaxed) == 0).then_some(key)
}

/// The process has asked for a connection from this socket of streams.
///
/// # Safety
/// `address` points to `length` bytes, or is null.
pub unsafe fn asked(file: c_int, address: *const u8, length: u32) {
    if address.is_null() || length < 4 {
        return;
    }
    // SAFETY: by the contract.
    let [family, port_asked] = unsafe { [address.cast::<u16>().read_unaligned(), address.add(2).cast::<u16>().read_unaligned()] };
    let other = WITH_PORTS.contains(&family).then_some(u64::from(port_asked));
    let Some(key) = may_be_own(port(GETSOCKNAME, file), other) else { return };
    let Some(identity) = external::socket(file) else { return };
    let asked = &raw mut ASKED;
    // SAFETY: guarded by LOCK.
    LOCK.with(|| unsafe { *(*asked).entry(key) = identity.inode });
}

/// The process has accepted a connection, as this descriptor, or failed to.
pub fn accepted(file: c_int) {
    if file < 0 {
        return;
    }
    let Some(key) = may_be_own(port(GETPEERNAME, file), port(GETSOCKNAME, file)) else { return };
    let Some(identity) = external::socket(file) else { return };
    let (asked, ends, made) = (&raw mut ASKED, &raw mut ENDS, &raw mut MADE);
    // SAFETY: guarded by LOCK.
    LOCK.with(|| unsafe {
        let Some(inode) = (*asked).get(key).filter(|&inode| inode != 0) else { return };
        *(*asked).entry(key) = 0;
        *made += 1;
        for inode in [inode, identity.inode] {
            *(*ends).entry((identity.device, inode)) = *made;
        }
    });
}

/// The ordinal of the connection that a socket is an end of, among those that the process has made with itself.
pub fn ordinal(socket: Identity) -> Option<u64> {
    let ends = &raw const ENDS;
    // SAFETY: guarded by LOCK.
    LOCK.with(|| unsafe { (*ends).get((socket.device, socket.inode)) })
}
