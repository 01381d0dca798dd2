//! The folder of the session, and the files in it.
//!
//! Files are opened by path, until the program is about to change what a path means, or whether it may be followed: its root, or
//! its user ([`keep`]). From then on the folder itself stays open.

use super::sys::{self, syscall};
use core::sync::atomic::{AtomicI32, AtomicU64, Ordering::*};

const AT_FDCWD: isize = -100;
const O_PATH: usize = 0o10000000;
const O_DIRECTORY: usize = 0o200000;
const O_CLOEXEC: usize = 0o2000000;
const AT_EMPTY_PATH: usize = 0x1000;
const F_DUPFD_CLOEXEC: usize = 1030;
/// Out of the way of the program's own descriptors.
const HIGH: usize = 512;
const FCHOWNAT: usize = 260;

/// The folder, open; -1: it is not.
static KEPT: AtomicI32 = AtomicI32::new(-1);
/// Its device and inode: the program may have closed the descriptor, and opened something else.
static IDENTITY: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

/// Terminated by zero.
static mut DIRECTORY: [u8; 4096] = [0; 4096];

/// # Safety
/// Nobody else runs who may ask for it: at the start, and in a child that has one thread.
pub unsafe fn set(directory: &[u8; 4096]) {
    // SAFETY: by the contract.
    unsafe { (&raw mut DIRECTORY).write(*directory) };
    // In a forked child that is the parent's.
    KEPT.store(-1, Relaxed);
}

/// Keeps the folder open.
pub fn keep() {
    if kept().is_some() {
        return;
    }
    let path = path();
    // SAFETY: a terminated path; descriptors of ours.
    unsafe {
        let file = syscall!(sys::OPENAT, AT_FDCWD, path.as_ptr(), O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
        if file < 0 {
            return;
        }
        let high = syscall!(sys::FCNTL, file, F_DUPFD_CLOEXEC, HIGH);
        let folder = if high < 0 { file } else { high };
        if high >= 0 {
            syscall!(sys::CLOSE, file);
        }
        if let Some(identity) = identity_of(folder) {
            IDENTITY.iter().zip(identity).for_each(|(known, word)| known.store(word, Relaxed));
            KEPT.store(folder as i32, Release);
        }
    }
}

/// The open folder.
fn kept() -> Option<isize> {
    let folder = KEPT.load(Acquire) as isize;
    let known = IDENTITY.each_ref().map(|word| word.load(Relaxed));
    (folder >= 0 && identity_of(folder) == Some(known)).then_some(folder)
}

fn identity_of(file: isize) -> Option<[u64; 2]> {
    let mut status = [0u64; 18];
    // SAFETY: `struct stat` has 144 bytes, and begins with these two.
    let result = unsafe { syscall!(sys::FSTAT, file, status.as_mut_ptr()) };
    (result == 0).then_some([status[0], status[1]])
}

/// Opens a file of the session. Negative: the kernel's error.
pub fn open(name: &[u8], number: Option<u32>, flags: usize) -> isize {
    const MODE: usize = 0o644;
    // SAFETY: terminated paths.
    unsafe {
        match kept() {
            Some(folder) => syscall!(sys::OPENAT, folder, name_of(name, number).as_ptr(), flags | O_CLOEXEC, MODE),
            None => syscall!(sys::OPENAT, AT_FDCWD, path_of(name, number).as_ptr(), flags | O_CLOEXEC, MODE),
        }
    }
}

/// Gives the folder, or with a name a file in it, to another user; nothing happens if that is not allowed, or there is none.
pub fn give(name: Option<(&[u8], Option<u32>)>, user: u32) {
    const SAME_GROUP: usize = u32::MAX as usize;
    let Some(folder) = kept() else { return };
    let path = name.map_or([0; 256], |(name, number)| name_of(name, number));
    // SAFETY: a terminated path; empty: the folder itself.
    unsafe { sys::call(FCHOWNAT, folder as usize, path.as_ptr() as usize, user as usize, SAME_GROUP, AT_EMPTY_PATH, 0) };
}

pub fn path() -> [u8; 4096] {
    // SAFETY: written before the first reader, and in a child that has one thread.
    unsafe { (&raw const DIRECTORY).read() }
}

/// `directory/name` for a file of the session, terminated by zero.
pub fn path_of(name: &[u8], number: Option<u32>) -> [u8; 4096] {
    let mut path = path();
    let end = path.iter().position(|&byte| byte == 0).unwrap_or(0);
    if end + 1 < path.len() {
        path[end] = b'/';
    }
    append(&mut path, end + 1, name, number);
    path
}

/// `name` alone.
fn name_of(name: &[u8], number: Option<u32>) -> [u8; 256] {
    let mut path = [0; 256];
    append(&mut path, 0, name, number);
    path
}

/// What does not fit is left out; a zero is at the end in any case.
fn append(path: &mut [u8], mut at: usize, name: &[u8], number: Option<u32>) {
    let mut push = |byte: u8| {
        if at + 1 < path.len() {
            path[at] = byte;
            at += 1;
        }
    };
    name.iter().for_each(|&byte| push(byte));
    if let Some(number) = number {
        let digits = sys::Decimal::new(number as u64);
        for _ in digits.bytes().len()..4 {
            push(b'0');
        }
        digits.bytes().iter().for_each(|&byte| push(byte));
    }
}
