//! Heap blocks: who allocated the memory at an address, and where.
//!
//! The tag of a block's first word names its record. To find the block of an address inside, tags are looked at backwards.

use super::shadow::{self, reserve};
use super::stacks::StackId;
use crate::system::lock::RawLock;
use crate::system::shared::Shared;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering::*};

/// Set in tags that name blocks.
const BLOCK: u32 = 1 << 31;
const MAX_BLOCKS: u32 = 1 << 27;
/// How far back a block's begin is looked for.
const MAX_LOOK_BACK: u64 = 1 << 30;

/// Whoever asks while a block is freed and its record is used again may read some of either: that is a race of the program's own.
pub struct Block {
    /// As asked for.
    bytes: Shared<u64>,
    /// That may be used, too, behind them.
    spare: Shared<u32>,
    stack: Shared<StackId>,
    thread: Shared<u32>,
    /// Number of the object at the first word.
    pub object: AtomicU32,
    /// Of a free record: the next one. Of a live block: the kind of external object in it.
    next_or_tag: Shared<u32>,
}

impl Block {
    /// As asked for.
    pub fn bytes(&self) -> u64 {
        self.bytes.get()
    }

    /// With those behind them that may be used, too.
    pub fn usable(&self) -> u64 {
        self.bytes.get() + u64::from(self.spare.get())
    }

    pub fn set_tag(&self, tag: u32) {
        self.next_or_tag.set(tag);
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
unsafe fn by_number(number: u32) -> &'static Block {
    // SAFETY: inside the table, which is never unmapped.
    unsafe { &*BLOCKS.load(Relaxed).add(number as usize) }
}

pub fn of_tag(tag: u32) -> Option<&'static Block> {
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
                        FREE = by_number(number).next_or_tag.get();
                        number
                    } else if COUNT < MAX_BLOCKS {
                        COUNT += 1;
                        COUNT - 1
                    } else {
                        break;
                    };
                    by_number(number).next_or_tag.set(self.first);
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
        self.first = unsafe { by_number(number - 1).next_or_tag.get() };
        self.count -= 1;
        number
    }

    fn give(&mut self, number: u32) {
        // SAFETY: a record whose block is gone.
        unsafe { by_number(number).next_or_tag.set(self.first) };
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
                self.first = by_number(number - 1).next_or_tag.get();
                by_number(number - 1).next_or_tag.set(FREE);
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
    block.bytes.set(bytes);
    block.spare.set(spare as u32);
    block.stack.set(stack);
    block.thread.set(thread);
    block.object.store(0, Relaxed);
    block.next_or_tag.set(0);
    shadow::tag(address).store(BLOCK | (number - 1), Release);
}

/// The block that begins at `address`.
pub fn at(address: u64) -> Option<&'static Block> {
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
            return (address - at < block.usable().max(1)).then_some(Found {
                address: at,
                bytes: block.bytes(),
                stack: block.stack.get(),
                thread: block.thread.get(),
                tag: block.next_or_tag.get(),
            });
        }
        at -= 8;
    }
    None
}
