//! What a recording knows of a descriptor's number.
//!
//! Many calls make descriptors, and not all are seen (`mkstemp`, a message with descriptors in it, a system call of the program's
//! own): a number that is used although it was closed is another file by now, of which nothing is told, if the kernel knows it,
//! and a use of what is closed if not.

use crate::system::sys::syscall;
use core::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// No call that was seen made it.
const UNKNOWN: u8 = 0;
const OPEN: u8 = 1;
const CLOSED: u8 = 2;
/// Of higher numbers nothing is known.
const MOST: usize = 1 << 16;
static LIVES: [AtomicU8; MOST] = [const { AtomicU8::new(UNKNOWN) }; MOST];

fn of(file: i32) -> Option<&'static AtomicU8> {
    usize::try_from(file).ok().and_then(|file| LIVES.get(file))
}

pub fn begins(file: i32) -> bool {
    of(file).map(|life| life.store(OPEN, Relaxed)).is_some()
}

pub fn ends(file: i32) {
    if let Some(life) = of(file) {
        life.store(CLOSED, Relaxed);
    }
}

#[derive(PartialEq, Eq)]
pub enum Number {
    /// Of the file that was seen to be made.
    Open,
    /// Of none any more.
    Closed,
    Unknown,
}

/// Asked by who has the turn, so that nobody changes it meanwhile.
pub fn number(file: i32) -> Number {
    const FCNTL: usize = 72;
    const GET_FLAGS: usize = 1;
    const EBADF: isize = 9;
    let Some(life) = of(file) else { return Number::Unknown };
    match life.load(Relaxed) {
        OPEN => Number::Open,
        // SAFETY: only asks.
        CLOSED if unsafe { syscall!(FCNTL, file, GET_FLAGS) } == -EBADF => Number::Closed,
        _ => {
            life.store(UNKNOWN, Relaxed);
            Number::Unknown
        }
    }
}
