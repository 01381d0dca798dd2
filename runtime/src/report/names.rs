//! The names that a program gives its threads.

use crate::system::lock::RawLock;
use crate::system::memory::List;

/// Bytes kept of a name.
pub const LONGEST: usize = 63;

#[derive(Clone, Copy)]
struct Name {
    thread: u32,
    length: usize,
    bytes: [u8; LONGEST],
}

static LOCK: RawLock = RawLock::new();
static mut NAMES: List<Name> = List::new();

/// The thread of that number is called so from here on.
pub fn set(thread: u32, name: &[u8]) {
    let length = name.len().min(LONGEST);
    let mut entry = Name { thread, length, bytes: [0; LONGEST] };
    entry.bytes[..length].copy_from_slice(&name[..length]);
    let names = &raw mut NAMES;
    // SAFETY: guarded by LOCK.
    LOCK.with(|| unsafe {
        match (*names).as_mut_slice().iter_mut().find(|known| known.thread == thread) {
            Some(known) => *known = entry,
            None => (*names).push(entry),
        }
    });
}

/// The name of a thread, copied out; its length, 0 where it has none.
pub fn get(thread: u32, into: &mut [u8; LONGEST]) -> usize {
    let names = &raw const NAMES;
    // SAFETY: guarded by LOCK.
    LOCK.with(|| unsafe {
        match (*names).as_slice().iter().find(|known| known.thread == thread) {
            Some(known) => {
                *into = known.bytes;
                known.length
            }
            None => 0,
        }
    })
}

/// In a forked child.
pub fn forked() {
    LOCK.reset();
}
