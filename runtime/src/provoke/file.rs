//! The `provoked` file: mapped for as long as the process lives, so that what was decided is there however the process ends.

use super::call_site;
use crate::serial::replay::AccessAt;
use crate::system::sys::{self, syscall};
use crate::system::thread::{NO_THREAD, Thread, known};
use crate::system::tls;
use crate::system::{folder, header};
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering::*};
use rashomon_abi::PROTOCOL_VERSION;
use rashomon_abi::provoke::{
    CATCH_WORDS, HEAD_WORDS, LOG_ENTRIES, MAGIC, MAX_CATCHES, SIDE_FRAMES, SIDE_PATH, SIDE_WORDS, STATE_WORDS, catch, file_words,
    head, side,
};

static PAGE: AtomicPtr<AtomicU64> = AtomicPtr::new(core::ptr::null_mut());
/// Stands in for words of a file that is not there.
static NOWHERE: AtomicU64 = AtomicU64::new(0);

/// Makes the file for so many descriptors. False: it cannot be made.
pub fn map(descriptors: usize) -> bool {
    let path = folder::path_of(rashomon_abi::PROVOKED_FILE.as_bytes(), None);
    let bytes = file_words(descriptors) * 8;
    // SAFETY: a terminated path; a fresh mapping that nobody unmaps. O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC
    let mapped = unsafe {
        let file = syscall!(sys::OPENAT, -100isize, path.as_ptr(), 0o2001102, 0o644);
        if file < 0 {
            return false;
        }
        let mapped = if sys::grow(file, 0, bytes) >= 0 { sys::call(sys::MMAP, 0, bytes, 3, 1, file as usize, 0) } else { -1 };
        syscall!(sys::CLOSE, file);
        mapped
    };
    if mapped < 0 {
        return false;
    }
    PAGE.store(mapped as *mut AtomicU64, Release);
    in_head(head::DESCRIPTORS).store(descriptors as u64, Relaxed);
    in_head(head::VERSION).store(PROTOCOL_VERSION as u64, Relaxed);
    in_head(head::MAGIC).store(MAGIC, Release);
    true
}

/// A line for the host: what the program calls a thread of a recording.
pub fn write_identity(number: u32, identity: u64) {
    let (number, identity) = (sys::Decimal::new(number as u64), sys::Decimal::new(identity));
    let mut line = [0u8; 64];
    let mut length = 0;
    for &byte in number.bytes().iter().chain(b" ").chain(identity.bytes()).chain(b"\n") {
        line[length] = byte;
        length += 1;
    }
    // O_WRONLY | O_CREAT | O_APPEND
    let file = folder::open(rashomon_abi::IDENTITIES_FILE.as_bytes(), None, 0o2101);
    // SAFETY: a descriptor of ours; the written part of the line.
    unsafe {
        let result = if file < 0 { file } else { sys::append(file, &line[..length]) };
        if file >= 0 {
            syscall!(sys::CLOSE, file);
        }
        if result < 0 {
            header::unwritten(result);
        }
    }
}

fn at(index: usize) -> &'static AtomicU64 {
    let page = PAGE.load(Acquire);
    // SAFETY: callers stay inside the file's length, which is never changed.
    if page.is_null() { &NOWHERE } else { unsafe { &*page.add(index) } }
}

pub fn in_head(index: usize) -> &'static AtomicU64 {
    at(index)
}

/// A word of a descriptor's state.
pub fn word(descriptor: usize, index: usize) -> &'static AtomicU64 {
    at(HEAD_WORDS + descriptor * STATE_WORDS + index)
}

/// The value before.
pub fn add(descriptor: usize, index: usize, value: u64) -> u64 {
    word(descriptor, index).fetch_add(value, Relaxed)
}

/// Tells the host what happened.
pub fn log(kind: u64, outcome: usize, descriptor: usize, thread: u32) {
    let entry = in_head(head::LOG).fetch_add(1, Relaxed) as usize;
    if entry < LOG_ENTRIES {
        let descriptors = in_head(head::DESCRIPTORS).load(Relaxed) as usize;
        let start = HEAD_WORDS + descriptors * STATE_WORDS + MAX_CATCHES * CATCH_WORDS;
        at(start + entry).store(kind | (outcome as u64) << 8 | (descriptor as u64) << 16 | (thread as u64) << 40, Relaxed);
    }
}

/// One thread at its access.
#[derive(Clone, Copy)]
pub struct Side([u64; SIDE_WORDS]);

impl Side {
    pub const NONE: Self = Self([0; SIDE_WORDS]);

    /// Of the calling thread.
    pub fn of(thread: &Thread, access: &AccessAt) -> Self {
        debug_assert!(tls::current().is_some_and(|current| core::ptr::eq(thread, current)));
        let mut words = [0u64; SIDE_WORDS];
        let mut path = [0u32; SIDE_PATH];
        let (mut depth, mut ancestor) = (0, thread);
        while ancestor.parent.get() != NO_THREAD {
            path.copy_within(0..SIDE_PATH - 1, 1);
            path[0] = ancestor.spawn_ordinal.get();
            depth += 1;
            ancestor = known(ancestor.parent.get());
        }
        for (index, ordinal) in path.into_iter().enumerate() {
            words[side::PATH + index / 2] |= (ordinal as u64) << (32 * (index % 2));
        }
        let mut frames = 0;
        while frames < SIDE_FRAMES {
            let Some(site) = call_site(thread, frames) else { break };
            words[side::FRAMES + frames] = site;
            frames += 1;
        }
        words[side::KIND] =
            access.class | (access.atomic as u64) << 8 | (depth.min(SIDE_PATH) as u64) << 16 | (frames as u64) << 32;
        words[side::ADDRESS] = access.address;
        words[side::BYTES] = access.bytes;
        words[side::SITE] = access.site;
        words[side::IDENTITY] = thread.provoked().identity.load(Relaxed);
        Self(words)
    }
}

/// Both sides, with what the host wants to know of the hold.
pub fn caught(descriptor: usize, ordinal: u64, nanoseconds: u64, held: &Side, arrived: &Side) {
    let number = in_head(head::CATCHES).fetch_add(1, Relaxed) as usize;
    if number >= MAX_CATCHES {
        return;
    }
    let descriptors = in_head(head::DESCRIPTORS).load(Relaxed) as usize;
    let start = HEAD_WORDS + descriptors * STATE_WORDS + number * CATCH_WORDS;
    at(start + catch::DESCRIPTOR).store(descriptor as u64, Relaxed);
    at(start + catch::HELD).store(nanoseconds, Relaxed);
    at(start + catch::ORDINAL).store(ordinal, Relaxed);
    for (index, value) in held.0.iter().chain(&arrived.0).enumerate() {
        at(start + catch::SIDES + index).store(*value, Relaxed);
    }
    at(start + catch::DONE).store(1, Release);
}

/// The pairs of sites caught so far in this execution.
pub fn was_caught(one: u64, other: u64) -> bool {
    let descriptors = in_head(head::DESCRIPTORS).load(Relaxed) as usize;
    let catches = (in_head(head::CATCHES).load(Relaxed) as usize).min(MAX_CATCHES);
    (0..catches).any(|number| {
        let start = HEAD_WORDS + descriptors * STATE_WORDS + number * CATCH_WORDS + catch::SIDES;
        let pair = (at(start + side::SITE).load(Relaxed), at(start + SIDE_WORDS + side::SITE).load(Relaxed));
        pair == (one, other) || pair == (other, one)
    })
}
