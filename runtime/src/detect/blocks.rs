//! Heap blocks: who allocated the memory at an address, and where.
//!
//! The tag of a block's first word names its record. To find the block of an address inside, tags are looked at backwards.

use super::shadow::{self, reserve};
use super::stacks::StackId;
use crate::system::lock::RawLock;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering::*};

/// Set in tags that name blocks.
const BLOCK: u32 = 1 << 31;
const MAX_BLOCKS: u32 = 1 << 27;
/// How far back a block's begin is looked for.
const MAX_LOOK_BACK: u64 = 1 << 30;

pub struct Block {
    /// As asked for.
    pub bytes: u64,
    /// That may be used, too, behind them.
    pub spare: u32,
    pub stack: StackId,
    pub thread: u32,
    /// Number of the object at the first word.
    pub object: AtomicU32,
    /// Of a free record: the next one. Of a live block: the kind of external object in it.
    next_or_tag: u32,
}

impl Block {
    pub fn set_tag(&mut self, tag: u32) {
        self.next_or_tag = tag;
    }
}

/// Where a live block is, and who allocated it.
#[derive(Clone, Copy)]
pub struct Found {
    pub address: u64,
    pub bytes: u64,
    pub stack: StackId,
    pub thread: u32,
    /// See `__tsan_external_assign_tag`.
    pub tag: u32,
}

static BLOCKS: AtomicPtr<Block> = AtomicPtr::new(core::ptr::null_mut());
pub static LOCK: RawLock = RawLock::new();
static mut COUNT: u32 = 0;
/// Number + 1 of the first free record.
static mut FREE: u32 = 0;

pub fn initialise() {
    BLOCKS.store(reserve(MAX_BLOCKS as usize * size_of::<Block>()).cast(), Release);
}

pub fn is_block(tag: u32) -> bool {
    tag & BLOCK != 0
}

/// # Safety
/// A number that was given out.
unsafe fn by_number(number: u32) -> &'static mut Block {
    // SAFETY: inside the table.
    unsafe { &mut *BLOCKS.load(Relaxed).add(number as usize) }
}

pub fn of_tag(tag: u32) -> Option<&'static mut Block> {
    // SAFETY: from a tag.
    if is_block(tag) { Some(unsafe { by_number(tag & !BLOCK) }) } else { None }
}

/// Free records that a thread keeps for itself, linked; the most it keeps.
pub struct Reserve {
    first: u32,
    count: u32,
}

const RESERVE: u32 = 64;

impl Reserve {
    pub const fn new() -> Self {
        Self { first: 0, count: 0 }
    }

    fn take(&mut self) -> u32 {
        if self.count == 0 {
            // SAFETY: under the lock.
            LOCK.with(|| unsafe {
                while self.count < RESERVE / 2 {
                    let number = if FREE != 0 {
                        let number = FREE - 1;
                        FREE = by_number(number).next_or_tag;
                        number
                    } else if COUNT < MAX_BLOCKS {
                        COUNT += 1;
                        COUNT - 1
                    } else {
                        break;
                    };
                    by_number(number).next_or_tag = self.first;
                    self.first = number + 1;
                    self.count += 1;
                }
            });
            if self.count == 0 {
                return 0;
            }
        }
        let number = self.first;
        // SAFETY: a free record of this reserve.
        self.first = unsafe { by_number(number - 1).next_or_tag };
        self.count -= 1;
        number
    }

    fn give(&mut self, number: u32) {
        // SAFETY: a record whose block is gone.
        unsafe { by_number(number).next_or_tag = self.first };
        self.first = number + 1;
        self.count += 1;
        if self.count > RESERVE {
            self.shrink(RESERVE / 2);
        }
    }

    /// Gives records back until `left` are left.
    pub fn shrink(&mut self, left: u32) {
        // SAFETY: under the lock; records of this reserve.
        LOCK.with(|| unsafe {
            while self.count > left {
                let number = self.first;
                self.first = by_number(number - 1).next_or_tag;
                by_number(number - 1).next_or_tag = FREE;
                FREE = number;
                self.count -= 1;
            }
        });
    }
}

pub fn allocated(reserve: &mut Reserve, address: u64, (bytes, spare): (u64, u64), stack: StackId, thread: u32) {
    let number = reserve.take();
    if number == 0 {
        return;
    }
    // SAFETY: nobody else knows it yet.
    let block = unsafe { by_number(number - 1) };
    block.bytes = bytes;
    block.spare = spare as u32;
    block.stack = stack;
    block.thread = thread;
    block.object.store(0, Relaxed);
    block.next_or_tag = 0;
    shadow::tag(address).store(BLOCK | (number - 1), Release);
}

/// The block that begins at `address`.
pub fn at(address: u64) -> Option<&'static mut Block> {
    of_tag(shadow::tag(address).load(Acquire))
}

/// Forgets the block that begins at `address`.
pub fn freed(reserve: &mut Reserve, address: u64) {
    let tag = shadow::tag(address);
    let known = tag.load(Acquire);
    if is_block(known) {
        tag.store(0, Release);
        reserve.give(known & !BLOCK);
    }
}

/// The live block that an address lies in.
pub fn find(address: u64) -> Option<Found> {
    let mut at = address & !7;
    let limit = address.saturating_sub(MAX_LOOK_BACK).max(4096);
    while at >= limit {
        if let Some(block) = of_tag(shadow::tag(at).load(Acquire)) {
            return (address - at < (block.bytes + u64::from(block.spare)).max(1)).then_some(Found {
                address: at,
                bytes: block.bytes,
                stack: block.stack,
                thread: block.thread,
                tag: block.next_or_tag,
            });
        }
        at -= 8;
    }
    None
}
