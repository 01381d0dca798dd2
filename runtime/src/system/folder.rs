//! The folder of the session, and the files in it.

use super::sys;

/// Terminated by zero.
static mut DIRECTORY: [u8; 4096] = [0; 4096];

/// # Safety
/// Nobody else runs who may ask for it: at the start, and in a child that has one thread.
pub unsafe fn set(directory: &[u8; 4096]) {
    // SAFETY: by the contract.
    unsafe { (&raw mut DIRECTORY).write(*directory) };
}

pub fn path() -> [u8; 4096] {
    // SAFETY: written before the first reader, and in a child that has one thread.
    unsafe { (&raw const DIRECTORY).read() }
}

/// `directory/name` for a file of the session, terminated by zero.
pub fn path_of(name: &[u8], number: Option<u32>) -> [u8; 4096] {
    let mut path = path();
    let mut at = path.iter().position(|&byte| byte == 0).unwrap_or(0);
    let mut push = |byte: u8| {
        if at + 1 < path.len() {
            path[at] = byte;
            at += 1;
        }
    };
    push(b'/');
    name.iter().for_each(|&byte| push(byte));
    if let Some(number) = number {
        let digits = sys::Decimal::new(number as u64);
        for _ in digits.bytes().len()..4 {
            push(b'0');
        }
        digits.bytes().iter().for_each(|&byte| push(byte));
    }
    path
}
