//! A thread of the runtime's own that keeps detection within the memory that the user allows: the options `memory_limit_mb` and
//! `flush_memory_ms`. Without them there is none.
//!
//! What is given up is the shadow: the accesses seen so far. Races with them are no longer found; nothing is reported that would
//! not have been. Locks and atomic objects stay.
//!
//! It starts with the program's first own thread, or with the program (`force_background_thread`), and is not seen by it. A
//! forked child begins again in the same way.

use super::shadow;
use crate::report::options;
use crate::system::real;
use crate::system::sys::{self, syscall};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::*};

/// Between two looks at the memory in use.
const TICK_MS: u64 = 100;
const PAGE: u64 = 4096;
const MEGABYTE: u64 = 1 << 20;

static STARTED: AtomicBool = AtomicBool::new(false);
static KERNEL_ID: AtomicU32 = AtomicU32::new(0);
pub static FLUSHES: AtomicU64 = AtomicU64::new(0);

/// With the program.
pub fn begin() {
    if options::get().force_background_thread {
        start();
    }
}

/// A thread is about to be made.
pub fn start() {
    let options = options::get();
    if options.memory_limit_mb <= 0 && options.flush_memory_ms <= 0 || STARTED.swap(true, AcqRel) {
        return;
    }
    if real::create_unobserved(run) != 0 {
        sys::message(&[b"memory_limit_mb and flush_memory_ms have no effect: no thread can be made"]);
    }
}

/// In a forked child it does not exist.
pub fn forked() {
    STARTED.store(false, Release);
    KERNEL_ID.store(0, Relaxed);
}

/// Whether the kernel's thread of that id is this one.
pub fn is_own(kernel_id: u32) -> bool {
    KERNEL_ID.load(Relaxed) == kernel_id
}

extern "C" fn run(_argument: *mut u8) -> *mut u8 {
    KERNEL_ID.store(sys::thread_id(), Relaxed);
    let options = options::get();
    let limit = options.memory_limit_mb.max(0) as u64 * MEGABYTE;
    let period = options.flush_memory_ms.max(0) as u64;
    let mut waited = 0;
    loop {
        let pause = if period > 0 { period.min(TICK_MS) } else { TICK_MS };
        sys::sleep(pause * 1_000_000);
        waited += pause;
        if period > 0 && waited >= period || limit > 0 && resident() > limit {
            waited = 0;
            shadow::flush();
            FLUSHES.fetch_add(1, Relaxed);
        }
    }
}

/// Bytes of memory that the process has in use; 0 if nobody says.
fn resident() -> u64 {
    let mut text = [0u8; 128];
    // SAFETY: a terminated path; reads into a local buffer. O_CLOEXEC
    let length = unsafe {
        let file = syscall!(sys::OPENAT, -100isize, c"/proc/thread-self/statm".as_ptr(), 0o2000000, 0);
        let length = syscall!(sys::READ, file, text.as_mut_ptr(), text.len());
        syscall!(sys::CLOSE, file);
        length.max(0) as usize
    };
    // The second number.
    let number = text[..length].split(|&byte| byte == b' ').nth(1).unwrap_or_default();
    number.iter().fold(0u64, |value, digit| value * 10 + u64::from(digit - b'0')) * PAGE
}
