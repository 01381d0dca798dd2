//! The quarantine: in serial executions a block that the program gives back is held for a while before libc's allocator has it.
//! As long as it is held its address is not given out again: an access that comes too late is one to the freed block, and not to
//! whatever would be there next; and a block that is given back once more is known to be one.
//!
//! Recordings, replays, forced and explored executions are alike in this, since what an allocator gives out may decide what a
//! program does. Where threads run in parallel nothing is held.
//!
//! What a held block contains is what it would contain in libc's lists: its first two words are written over
//! (`malloc/malloc.c` of glibc 2.36, `tcache_put`), the rest stays. A block that is a mapping of its own would be gone: nobody
//! can touch it, and its memory is given back. So a use that is seen at once natively is seen here, too.
//!
//! Limits. [`MOST_BYTES`] and [`MOST_BLOCKS`], oldest first; everything is released when there is no memory. A block that is a
//! mapping of its own and is given to `realloc` is not held.

use crate::system::lock::RawLock;
use crate::system::real::__libc_free;
use crate::system::{config, sys};
use core::cell::UnsafeCell;
use rashomon_logic::quarantine::{Held, Quarantine, State};

/// Of blocks with what the allocator needs for each. Of a mapping of its own one page counts, which alone stays in memory.
const MOST_BYTES: u32 = 64 << 20;
const MOST_BLOCKS: usize = 1 << 18;
const PAGE: usize = 4096;

static LOCK: RawLock = RawLock::new();
static MEMORY: Memory = Memory(UnsafeCell::new((core::ptr::null_mut(), State::NOTHING)));

/// Ring and table in one mapping, and what is held.
struct Memory(UnsafeCell<(*mut u8, State)>);

// SAFETY: what is inside is touched under the lock alone.
unsafe impl Sync for Memory {}

/// Whether blocks are held in this process.
pub fn on() -> bool {
    config::serial()
}

fn with<R>(body: impl FnOnce(&mut Quarantine<'_>) -> R) -> Option<R> {
    const RING: usize = MOST_BLOCKS * size_of::<Held>();
    const TABLE: usize = 2 * MOST_BLOCKS * size_of::<u64>();
    LOCK.with(|| {
        // SAFETY: under the lock.
        let (memory, state) = unsafe { &mut *MEMORY.0.get() };
        if memory.is_null() {
            *memory = sys::map_anonymous(RING + TABLE);
        }
        if memory.is_null() {
            return None;
        }
        // SAFETY: a mapping of these lengths, of zeros at first, for which both are made; kept for ever.
        let (ring, table) = unsafe {
            let table = memory.add(RING).cast();
            (core::slice::from_raw_parts_mut(memory.cast(), MOST_BLOCKS), core::slice::from_raw_parts_mut(table, 2 * MOST_BLOCKS))
        };
        Some(body(&mut Quarantine { ring, table, state }))
    })
}

/// The block is the allocator's: its chunk begins two words before it and is as long as the word before it tells.
fn chunk_of(block: *mut u8) -> (usize, bool) {
    const IS_MAPPED: usize = 2;
    const FLAGS: usize = 7;
    // SAFETY: a block of glibc's allocator that is not given back to it, by the callers.
    let header = unsafe { block.cast::<usize>().sub(1).read() };
    (header & !FLAGS, header & IS_MAPPED != 0)
}

/// The pages of a block that is a mapping. The first one tells the allocator how long it is.
fn pages_of(block: *mut u8, length: usize) -> (usize, usize) {
    let chunk = block as usize - 2 * size_of::<usize>();
    (chunk & !(PAGE - 1), (chunk + length).next_multiple_of(PAGE))
}

/// Takes a block that the program has given back.
///
/// # Safety
/// A block of glibc's allocator that nobody may use any more, and that is not held.
pub unsafe fn hold(block: *mut u8) {
    let (length, is_mapping) = chunk_of(block);
    let bytes = if is_mapping { PAGE as u32 } else { u32::try_from(length).unwrap_or(u32::MAX) };
    let is_held = bytes <= MOST_BYTES
        && with(|held| {
            while !held.fits(bytes, MOST_BYTES) {
                let Some(oldest) = held.release_oldest() else { break };
                // SAFETY: it was held, and is no more.
                unsafe { give_back(oldest) };
            }
            // SAFETY: by the contract nobody uses it.
            unsafe { spoil(block, length, is_mapping) };
            held.hold(Held { address: block as u64, bytes, is_mapping });
        })
        .is_some();
    if !is_held {
        // SAFETY: by the contract.
        unsafe { __libc_free(block) };
    }
}

/// Makes the block look as if libc had it.
///
/// # Safety
/// As for [`hold`].
unsafe fn spoil(block: *mut u8, length: usize, is_mapping: bool) {
    const NO_ACCESS: usize = 0;
    const DONT_NEED: usize = 4;
    /// In place of the allocator's random number.
    const KEY: usize = 0x7a5d_23c1_96e8_4b0f;
    // SAFETY: every chunk has room for two words; the pages are the block's alone, as it is all of its mapping.
    unsafe {
        if is_mapping {
            let (first, end) = pages_of(block, length);
            let second = first + PAGE;
            sys::call(sys::MADVISE, second, end - second, DONT_NEED, 0, 0, 0);
            sys::call(sys::MPROTECT, first, end - first, NO_ACCESS, 0, 0, 0);
        } else {
            block.cast::<usize>().write(block as usize >> 12);
            block.cast::<usize>().add(1).write(KEY);
        }
    }
}

/// Gives a block to libc's allocator that was held.
///
/// # Safety
/// It is held no more.
unsafe fn give_back(block: Held) {
    // SAFETY: by the contract.
    unsafe {
        readable_again(block);
        __libc_free(block.address as *mut u8);
    }
}

/// # Safety
/// A block that was held.
unsafe fn readable_again(block: Held) {
    const READ_WRITE: usize = 3;
    if block.is_mapping {
        let (first, _) = pages_of(block.address as *mut u8, 0);
        // SAFETY: the block's own page.
        unsafe { sys::call(sys::MPROTECT, first, PAGE, READ_WRITE, 0, 0, 0) };
    }
}

/// Whether a block is held. If so it is the caller's from here on.
pub fn take(block: *mut u8) -> bool {
    let held = if on() { with(|held| held.release(block as u64)).flatten() } else { None };
    // SAFETY: it was held.
    held.inspect(|&held| unsafe { readable_again(held) }).is_some()
}

/// The allocator has no memory: gives it all blocks. Whether there were any.
pub fn release_all() -> bool {
    let mut any = false;
    while on()
        && let Some(oldest) = with(|held| held.release_oldest()).flatten()
    {
        any = true;
        // SAFETY: it was held, and is no more.
        unsafe { give_back(oldest) };
    }
    any
}

/// In a forked child, where nobody holds the lock any more. What was being changed is left as it is: nothing is held here that
/// the parent held.
///
/// # Safety
/// In a child that has one thread.
pub unsafe fn forked() {
    if LOCK.is_locked() {
        // SAFETY: by the contract.
        unsafe { *MEMORY.0.get() = (core::ptr::null_mut(), State::NOTHING) };
    }
    LOCK.reset();
}
