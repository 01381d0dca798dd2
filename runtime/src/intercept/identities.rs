//! What the kernel said of descriptors: to ask again at each call costs as much as the call itself does.
//!
//! An answer stands for a number until a call is seen that gives the number to another file, or to none
//! ([`super::descriptors::renamed`]). **Limit**: a number that is closed and made again, both by system calls of the program's
//! own, is taken for the file that it was.

use super::descriptors::Kind;
use crate::record::external::Identity;
use crate::system::tls;
use core::ffi::c_int;
use core::sync::atomic::{AtomicU64, Ordering::*};

/// Of higher numbers the kernel is always asked.
const MOST: usize = 4096;
/// An answer in one word: [`code`], device, inode; of an answer that is being waited for, who asks; 0: none.
static ANSWERS: [AtomicU64; MOST] = [const { AtomicU64::new(0) }; MOST];
const INODE_BITS: u32 = 37;
const DEVICE_BITS: u32 = 24;
const CODE_SHIFT: u32 = INODE_BITS + DEVICE_BITS;

/// What a descriptor names.
#[derive(Clone, Copy)]
pub struct Answer {
    pub kind: Kind,
    pub identity: Identity,
    /// An eventfd or a set of epoll, if it is of no other kind.
    pub counts_events: bool,
}

/// Kinds that are remembered have one that is not 0, of three bits.
const fn code(answer: &Answer) -> u64 {
    match answer.kind {
        Kind::Direct => 1,
        Kind::Pipe => 2,
        Kind::Socket => 3,
        Kind::Other => 4 + answer.counts_events as u64,
        // A device has more to say, and queues are none of the kernel's kinds.
        Kind::Device | Kind::Queue => 0,
    }
}

const fn kind(code: u64) -> Kind {
    match code {
        1 => Kind::Direct,
        2 => Kind::Pipe,
        3 => Kind::Socket,
        _ => Kind::Other,
    }
}

const fn encode(answer: &Answer) -> Option<u64> {
    let Identity { device, inode } = answer.identity;
    let fits = code(answer) != 0 && device >> DEVICE_BITS == 0 && inode >> INODE_BITS == 0;
    if fits { Some(code(answer) << CODE_SHIFT | device << INODE_BITS | inode) } else { None }
}

const fn decode(word: u64) -> Option<Answer> {
    let code = word >> CODE_SHIFT;
    if code == 0 {
        return None;
    }
    let identity = Identity { device: word >> INODE_BITS & ((1 << DEVICE_BITS) - 1), inode: word & ((1 << INODE_BITS) - 1) };
    Some(Answer { kind: kind(code), identity, counts_events: code == 5 })
}

fn word(file: c_int) -> Option<&'static AtomicU64> {
    usize::try_from(file).ok().and_then(|file| ANSWERS.get(file))
}

/// The answer for a number: the former one, or what `ask` says. The number may become another file's meanwhile: then what it
/// says is not kept.
pub fn of(file: c_int, ask: impl FnOnce() -> Option<Answer>) -> Option<Answer> {
    let Some(word) = word(file) else { return ask() };
    if let Some(known) = decode(word.load(Acquire)) {
        return Some(known);
    }
    let asks = tls::current().map_or(0, |thread| u64::from(thread.number.get()) + 1);
    let is_first = asks != 0 && word.compare_exchange(0, asks, AcqRel, Relaxed).is_ok();
    let answer = ask();
    if is_first {
        let kept = answer.as_ref().and_then(encode).unwrap_or(0);
        let _ = word.compare_exchange(asks, kept, AcqRel, Relaxed);
    }
    answer
}

/// A number names another file from now on, or none.
pub fn forget(file: c_int) {
    if let Some(word) = word(file) {
        word.store(0, Release);
    }
}
