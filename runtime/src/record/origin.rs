//! Where input came from, for people: what a descriptor is of.

use crate::system::sys::{self, syscall};
use core::ffi::c_int;
use rashomon_abi::record::input::{self, NAME_BYTES};

/// The arguments of an `ExternalInput` behind its first.
pub type Words = [u64; input::WORDS];

const READLINK: usize = 89;
const GETPEERNAME: usize = 52;

/// Of a descriptor: its number, and the other end of a socket or the file's path.
pub fn of(file: c_int) -> Words {
    let mut name = [0u8; NAME_BYTES];
    let mut length = NAME_BYTES as u32;
    // SAFETY: local room of the length given.
    let is_peer = unsafe { syscall!(GETPEERNAME, file, name.as_mut_ptr(), &raw mut length) } >= 0;
    if !is_peer {
        path_of(file, &mut name);
    }
    let what = if is_peer { input::PEER } else { input::PATH };
    let mut words = [0; input::WORDS];
    words[0] = (what << 32) | (file as u32 as u64).wrapping_add(1) & u32::MAX as u64;
    for (word, bytes) in words[1..].iter_mut().zip(name.chunks_exact(8)) {
        *word = bytes.iter().rev().fold(0, |word, &byte| word << 8 | byte as u64);
    }
    words
}

/// The path, or its end where it is longer.
fn path_of(file: c_int, name: &mut [u8; NAME_BYTES]) {
    let mut room = [0; 256];
    let target = target(file, &mut room);
    let end = &target[target.len().saturating_sub(NAME_BYTES)..];
    for (to, from) in name.iter_mut().zip(end) {
        *to = *from;
    }
}

/// What the kernel says that a descriptor is of; nothing of one that is none.
pub fn target(file: c_int, room: &mut [u8]) -> &[u8] {
    let mut link = *b"/proc/self/fd/\0\0\0\0\0\0\0\0\0\0\0\0";
    for (to, from) in link[14..].iter_mut().zip(sys::Decimal::new(file as u64).bytes()) {
        *to = *from;
    }
    // SAFETY: a terminated path, and room of the length given.
    let length = unsafe { syscall!(READLINK, link.as_ptr(), room.as_mut_ptr(), room.len()) };
    &room[..length.clamp(0, room.len() as isize) as usize]
}
