//! The `control` file, mapped and left where it is: numbers are read out of the mapping when they are needed.

use crate::system::sys::{self, syscall};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering::*};
use rashomon_abi::control::{self, field};

static WORDS: AtomicPtr<u64> = AtomicPtr::new(core::ptr::null_mut());
static LENGTH: AtomicUsize = AtomicUsize::new(0);

/// Where each table begins, in words.
#[derive(Clone, Copy)]
pub struct Tables {
    pub modules: usize,
    pub threads: usize,
    pub objects: usize,
    pub turns: usize,
    pub goals: usize,
    pub descriptors: usize,
    pub frames: usize,
    pub known: usize,
    pub strings: usize,
    pub kept: usize,
}

/// Maps the file. Tells what is wrong with it.
pub fn load(path: &[u8; 4096]) -> Result<(), &'static [u8]> {
    // SAFETY: `path` is terminated; the mapping is private and read-only.
    unsafe {
        let fd = syscall!(sys::OPENAT, -100isize, path.as_ptr(), 0o2000000, 0);
        if fd < 0 {
            return Err(b"cannot open the session's control file");
        }
        let size = syscall!(8usize, fd, 0usize, 2usize); // lseek to the end
        if size < (control::HEAD_WORDS * 8) as isize || size % 8 != 0 && size < 256 {
            syscall!(sys::CLOSE, fd);
            return Err(b"the session's control file is too short");
        }
        let mapped = sys::call(sys::MMAP, 0, size as usize, 1, 2, fd as usize, 0);
        syscall!(sys::CLOSE, fd);
        if mapped < 0 {
            return Err(b"cannot map the session's control file");
        }
        WORDS.store(mapped as *mut u64, Release);
        LENGTH.store(size as usize / 8, Release);
    }
    if word(field::MAGIC) != control::MAGIC {
        return Err(b"the session's control file has no control magic");
    }
    if word(field::VERSION) != rashomon_abi::PROTOCOL_VERSION as u64 {
        return Err(
            b"the session's control file is of another version than the runtime in this program: build the program again",
        );
    }
    let counts = [
        field::MODULES,
        field::THREADS,
        field::OBJECTS,
        field::TURNS,
        field::GOALS,
        field::DESCRIPTORS,
        field::FRAMES,
        field::KNOWN,
        field::KEPT,
    ];
    if counts.iter().any(|&count| word(count) > control::MAX_ENTRIES)
        || tables().kept + count(field::KEPT) * control::KEPT_WORDS > LENGTH.load(Acquire) + 1
    {
        return Err(b"the session's control file is cut short");
    }
    Ok(())
}

/// The schedule is for another process: its tables and its goal are as if they were empty.
pub fn drop_schedule() {
    const PAGE: usize = 4096;
    let words = WORDS.load(Acquire);
    // SAFETY: the head lies in the first page of a private mapping, which nobody else writes: the process has just begun.
    unsafe {
        if words.is_null() || syscall!(sys::MPROTECT, words, PAGE, 3) < 0 {
            return;
        }
        for index in [
            field::GOAL,
            field::MODULES,
            field::THREADS,
            field::OBJECTS,
            field::TURNS,
            field::GOALS,
            field::DESCRIPTORS,
            field::FRAMES,
            field::KNOWN,
            field::KEPT,
            field::STRING_BYTES,
        ] {
            *words.add(index) = 0;
        }
        syscall!(sys::MPROTECT, words, PAGE, 1);
    }
}

/// A word of the file; 0 behind its end or without a file.
pub fn word(index: usize) -> u64 {
    if index >= LENGTH.load(Relaxed) {
        return 0;
    }
    // SAFETY: inside the mapping, which is never unmapped.
    unsafe { *WORDS.load(Relaxed).add(index) }
}

pub fn count(field: usize) -> usize {
    word(field) as usize
}

pub fn tables() -> Tables {
    let modules = control::HEAD_WORDS;
    let threads = modules + count(field::MODULES) * control::MODULE_WORDS;
    let objects = threads + count(field::THREADS) * control::THREAD_WORDS;
    let turns = objects + count(field::OBJECTS) * control::OBJECT_WORDS;
    let goals = turns + count(field::TURNS) * control::TURN_WORDS;
    let descriptors = goals + count(field::GOALS) * control::GOAL_WORDS;
    let frames = descriptors + count(field::DESCRIPTORS) * control::DESCRIPTOR_WORDS;
    let known = frames + count(field::FRAMES) * control::FRAME_WORDS;
    let strings = known + count(field::KNOWN) * control::KNOWN_WORDS;
    let kept = strings + count(field::STRING_BYTES).div_ceil(8);
    Tables { modules, threads, objects, turns, goals, descriptors, frames, known, strings, kept }
}

/// The path of module `index` of the control file.
pub fn module_path(index: usize) -> &'static [u8] {
    let tables = tables();
    let entry = tables.modules + index * control::MODULE_WORDS;
    let (offset, length) = (word(entry) as usize, word(entry + 1) as usize);
    let available = (LENGTH.load(Relaxed) - tables.strings.min(LENGTH.load(Relaxed))) * 8 + 7;
    if offset.saturating_add(length) > available {
        return &[];
    }
    // SAFETY: inside the mapping (rounded up to its page).
    unsafe { core::slice::from_raw_parts(WORDS.load(Relaxed).add(tables.strings).cast::<u8>().add(offset), length) }
}

static DETECTING: AtomicBool = AtomicBool::new(false);
static PROVOKING: AtomicBool = AtomicBool::new(false);
static GATING: AtomicBool = AtomicBool::new(false);

/// The process detects races: its detector is ready.
#[inline(always)]
pub fn detecting() -> bool {
    DETECTING.load(Relaxed)
}

pub fn detects() {
    DETECTING.store(true, Release);
}

/// Threads are held at conflicting accesses.
#[inline(always)]
pub fn provoking() -> bool {
    PROVOKING.load(Relaxed)
}

/// Whether the execution is provoked, and nothing of it is recorded.
pub fn passes() -> bool {
    provoking() && !option(rashomon_abi::control::option::RECORDED)
}

pub fn provokes(does: bool) {
    PROVOKING.store(does, Release);
}

/// Threads that run in parallel are held before what an order of synchronisation has no turn for yet.
#[inline(always)]
pub fn gating() -> bool {
    GATING.load(Relaxed)
}

pub fn gates(does: bool) {
    GATING.store(does, Release);
}

pub fn mode() -> u64 {
    if detecting() { control::mode::DETECT } else { word(field::MODE) }
}

pub fn option(bit: u64) -> bool {
    word(field::OPTIONS) & bit != 0
}

pub fn serial() -> bool {
    mode() == control::mode::SERIAL
}
