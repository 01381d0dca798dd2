//! One processor for a serial execution.
//!
//! Its threads run one after the other. On two processors each turn that is given away wakes the other processor up, which costs
//! several times what the hand-over costs on one. So the initial thread of such a process chooses the processor that it is on,
//! and all threads that it makes inherit the choice. The program is not to notice it: what tells it where it may run tells where
//! it could have run (`crate::intercept::processors`), other programs that it starts run anywhere, and a thread that the program
//! places itself stays there.
//!
//! Limits: what reads `/proc/self/status` or the attributes of a running thread (`pthread_getattr_np`) sees one processor, and
//! libc's allocator, which asks the kernel by itself, makes fewer arenas.

use crate::system::sys::syscall;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::*};

const SCHED_SETAFFINITY: usize = 203;
const SCHED_GETAFFINITY: usize = 204;
const GETCPU: usize = 309;

/// For 1024 processors. Where the kernel has more, none is chosen.
const WORDS: usize = 16;
type Mask = [u64; WORDS];

/// The chosen one + 1; 0: none.
static CHOSEN: AtomicU32 = AtomicU32::new(0);
/// Where the program may run.
static ALLOWED: [AtomicU64; WORDS] = [const { AtomicU64::new(0) }; WORDS];

/// The calling thread stays on the processor that it is on, as do those that it will make.
pub fn choose() {
    let Some(allowed) = mask_of_thread() else { return };
    if allowed.iter().map(|word| word.count_ones()).sum::<u32>() < 2 {
        return;
    }
    let mut processor = 0u32;
    // SAFETY: room for the number; null: its node is not asked for.
    if unsafe { syscall!(GETCPU, &raw mut processor, 0usize, 0usize) } < 0 || processor as usize >= WORDS * 64 {
        return;
    }
    if set(&only(processor)) {
        for (kept, word) in ALLOWED.iter().zip(allowed) {
            kept.store(word, Relaxed);
        }
        CHOSEN.store(processor + 1, Release);
    }
}

/// Whether the process has chosen one.
pub fn is_chosen() -> bool {
    CHOSEN.load(Acquire) != 0
}

/// The calling thread may run where the program may, and so may what it makes from here on; unless the program placed it itself.
pub fn leave() {
    if is_chosen() && is_of_thread(&ours()) {
        set(&allowed());
    }
}

/// Behind [`leave`], in the same process.
pub fn come_back() {
    if is_chosen() && is_of_thread(&allowed()) {
        set(&ours());
    }
}

/// The same in a forked child, which chooses anew.
pub fn choose_again() {
    if is_chosen() && is_of_thread(&allowed()) {
        choose();
    }
}

/// What is called here sees, and hands on to programs that it starts, where the program may run.
pub fn everywhere<R>(call: impl FnOnce() -> R) -> R {
    leave();
    let result = call();
    come_back();
    result
}

/// How many processors the program may use; 1 if that is unknown.
pub fn count() -> u32 {
    let mut mask = [0u64; 128];
    // SAFETY: room of the size given.
    let bytes = unsafe { syscall!(SCHED_GETAFFINITY, 0, size_of_val(&mask), mask.as_mut_ptr()) };
    if bytes < 0 {
        return 1;
    }
    let of = |words: &[u64]| words.iter().map(|word| word.count_ones()).sum::<u32>().max(1);
    if is_chosen() && mask.starts_with(&ours()) { of(&allowed()) } else { of(&mask) }
}

/// Whether a thread's mask is the one that was set here.
pub fn is_our_mask(bytes: &[u8]) -> bool {
    is_chosen() && (0..bytes.len().max(WORDS * 8)).all(|at| bytes.get(at).copied().unwrap_or(0) == byte(&ours(), at))
}

/// Where the program may run, byte by byte; 0 behind what the kernel knows.
pub fn allowed_byte(at: usize) -> u8 {
    byte(&allowed(), at)
}

fn byte(mask: &Mask, at: usize) -> u8 {
    mask.get(at / 8).map_or(0, |word| word.to_le_bytes()[at % 8])
}

fn ours() -> Mask {
    CHOSEN.load(Acquire).checked_sub(1).map_or([0; WORDS], only)
}

fn is_of_thread(mask: &Mask) -> bool {
    mask_of_thread().is_some_and(|of| of == *mask)
}

fn only(processor: u32) -> Mask {
    core::array::from_fn(|at| if at as u32 == processor / 64 { 1 << (processor % 64) } else { 0 })
}

fn allowed() -> Mask {
    core::array::from_fn(|at| ALLOWED[at].load(Relaxed))
}

/// Where the calling thread may run.
fn mask_of_thread() -> Option<Mask> {
    let mut mask = [0; WORDS];
    // SAFETY: room of the size given.
    let bytes = unsafe { syscall!(SCHED_GETAFFINITY, 0, size_of::<Mask>(), mask.as_mut_ptr()) };
    (bytes > 0).then_some(mask)
}

fn set(mask: &Mask) -> bool {
    // SAFETY: a mask of the size given, for the calling thread.
    unsafe { syscall!(SCHED_SETAFFINITY, 0, size_of::<Mask>(), mask.as_ptr()) == 0 }
}
