//! Connections of TCP of which this process has both ends. Whoever writes to one lets those go on who read from it, and nobody
//! else; of all other sockets only one thing is known, that somebody may pass on what was written.
//!
//! A connection is known from the moment on at which the process accepts what it asked for itself, which the ports of both ends
//! tell. Until then what its first end writes is written to the connection and to all sockets: the other end may be elsewhere.
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
/// By the same ports: the inode of the end that was accepted before the other one was known to have asked; 0: it is known now.
static mut ANSWERED: Map = Map::new();
/// By the identity of an end: twice the ordinal of the connection, and 1 more once it is known.
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
        (&raw mut ANSWERED).write(Map::new());
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

/// What is known of a socket.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Nothing.
    Unknown,
    /// It asked for the connection of that ordinal, which nobody in this process has accepted.
    Asked(u64),
    /// It is an end of that connection.
    Known(u64),
}

/// The process is about to ask for a connection from this socket of streams.
pub fn asks(file: c_int) {
    let Some(identity) = external::socket(file).filter(|_| header::word(field::FORKS).load(Relaxed) == 0) else { return };
    let (ends, made) = (&raw mut ENDS, &raw mut MADE);
    // SAFETY: guarded by LOCK.
    LOCK.with(|| unsafe {
        let end = (*ends).entry((identity.device, identity.inode));
        if *end == 0 {
            *made += 1;
            *end = 2 * *made;
        }
    });
}

/// Whether an address is one of a family with ports.
///
/// # Safety
/// `address` points to `length` bytes, or is null.
pub unsafe fn has_port(address: *const u8, length: u32) -> bool {
    // SAFETY: by the contract.
    !address.is_null() && length >= 4 && WITH_PORTS.contains(&unsafe { address.cast::<u16>().read_unaligned() })
}

/// It has asked. Whether it was accepted meanwhile, by a thread that knew nothing of this one: what that has written so far
/// counts as written to all sockets.
///
/// # Safety
/// [`has_port`] says that the address has one.
pub unsafe fn asked(file: c_int, address: *const u8) -> bool {
    // SAFETY: by the contract.
    let other = u64::from(unsafe { address.add(2).cast::<u16>().read_unaligned() });
    let Some(key) = may_be_own(port(GETSOCKNAME, file), Some(other)) else { return false };
    let Some(identity) = external::socket(file) else { return false };
    let (asked, answered) = (&raw mut ASKED, &raw mut ANSWERED);
    // SAFETY: guarded by LOCK.
    LOCK.with(|| unsafe {
        let accepted = (*answered).get(key).unwrap_or(0);
        if accepted == 0 {
            *(*asked).entry(key) = identity.inode;
            return false;
        }
        *(*answered).entry(key) = 0;
        meet(identity.device, identity.inode, accepted);
        true
    })
}

/// The process has accepted a connection, as this descriptor, or failed to.
pub fn accepted(file: c_int) {
    if file < 0 {
        return;
    }
    let Some(key) = may_be_own(port(GETPEERNAME, file), port(GETSOCKNAME, file)) else { return };
    let Some(identity) = external::socket(file) else { return };
    let (asked, answered) = (&raw mut ASKED, &raw mut ANSWERED);
    // SAFETY: guarded by LOCK.
    LOCK.with(|| unsafe {
        let other = (*asked).get(key).unwrap_or(0);
        if other == 0 {
            *(*answered).entry(key) = identity.inode;
        } else {
            *(*asked).entry(key) = 0;
            meet(identity.device, other, identity.inode);
        }
    });
}

/// Both ends of a connection, by their inodes.
///
/// # Safety
/// Under [`LOCK`].
unsafe fn meet(device: u64, asked: u64, accepted: u64) {
    let ends = &raw mut ENDS;
    // SAFETY: by the contract.
    unsafe {
        let end = (*ends).entry((device, asked));
        *end |= 1;
        let end = *end;
        *(*ends).entry((device, accepted)) = end;
    }
}

pub fn end(socket: Identity) -> End {
    let ends = &raw const ENDS;
    // SAFETY: guarded by LOCK.
    match LOCK.with(|| unsafe { (*ends).get((socket.device, socket.inode)) }) {
        None | Some(0 | 1) => End::Unknown,
        Some(end) if end & 1 == 0 => End::Asked(end / 2),
        Some(end) => End::Known(end / 2),
    }
}
