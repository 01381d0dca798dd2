//! The allocator, and the addresses that stand for the file.
//!
//! A range of addresses is reserved once. The file's offset 0 belongs to its beginning: a block at some address has its bytes at
//! the same distance into the file, so nothing has to be remembered of blocks, and whether one is on disk is a comparison.
//! Addresses are used once; there are enough of them for tables that double for years.

#![expect(unsafe_code, reason = "an allocator is an unsafe trait, and to map a file is unsafe")]

use crate::{LARGE, is_allowed};
use rustix::fs::{FallocateFlags, fallocate};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, mmap_anonymous};
use std::alloc::{GlobalAlloc, Layout, System};
use std::fs::File;
use std::io::{Error, ErrorKind, Result};
use std::os::fd::{AsFd as _, BorrowedFd, IntoRawFd as _};
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicUsize, Ordering};

/// Addresses that are reserved.
const AREA: usize = 1 << 43;

/// Of large blocks that are in memory.
static MEMORY: AtomicUsize = AtomicUsize::new(0);
/// Of blocks on disk.
pub static DISK: AtomicUsize = AtomicUsize::new(0);
/// What [`MEMORY`] may be.
pub static BOUND: AtomicUsize = AtomicUsize::new(usize::MAX);
/// What of blocks on disk may be in memory.
pub static WINDOW: AtomicUsize = AtomicUsize::new(usize::MAX);

static INSTALLED: AtomicBool = AtomicBool::new(false);
/// Where the reserved addresses begin, once they are.
static START: AtomicPtr<u8> = AtomicPtr::new(null_mut());
static FILE: AtomicI32 = AtomicI32::new(-1);
/// The first unused byte of the reserved addresses.
static NEXT: AtomicUsize = AtomicUsize::new(0);
/// The latest error of the operating system, or 0.
static REFUSED: AtomicI32 = AtomicI32::new(0);

pub fn is_installed() -> bool {
    // Sure to be large, so that the allocator sees it.
    drop(std::hint::black_box(Vec::<u8>::with_capacity(LARGE)));
    INSTALLED.load(Ordering::Relaxed)
}

pub fn refusal() -> Option<Error> {
    let number = REFUSED.load(Ordering::Relaxed);
    (number != 0).then(|| Error::from_raw_os_error(number))
}

/// Further blocks are in this file. There are none on disk now.
pub fn use_file(file: File) -> Result<()> {
    if START.load(Ordering::Relaxed).is_null() {
        // SAFETY: no address of anybody else's is concerned: the kernel chooses where.
        let start = unsafe { mmap_anonymous(null_mut(), AREA, ProtFlags::empty(), MapFlags::PRIVATE | MapFlags::NORESERVE) };
        let start = start.map_err(|error| Error::new(ErrorKind::OutOfMemory, format!("no addresses for it: {error}")))?;
        START.store(start.cast(), Ordering::Relaxed);
    }
    REFUSED.store(0, Ordering::Relaxed);
    let old = FILE.swap(file.into_raw_fd(), Ordering::Relaxed);
    if old >= 0 {
        // SAFETY: the number came from a file of ours, no block is in it, and nobody has it any more.
        unsafe { rustix::io::close(old) };
    }
    Ok(())
}

fn page(bytes: usize) -> usize {
    bytes.next_multiple_of(rustix::param::page_size())
}

/// Whether a block that begins there is on disk.
pub fn is_on_disk(address: usize) -> bool {
    let start = START.load(Ordering::Relaxed).addr();
    start != 0 && (start..start + AREA).contains(&address)
}

/// A block in the file, all of it zero, or none if there is no room.
fn place(layout: Layout) -> Option<NonNull<u8>> {
    let (start, file) = (START.load(Ordering::Relaxed), FILE.load(Ordering::Relaxed));
    if start.is_null() || file < 0 || layout.align() > rustix::param::page_size() {
        return None;
    }
    let bytes = page(layout.size());
    let offset = NEXT.fetch_add(bytes, Ordering::Relaxed);
    if offset.checked_add(bytes).is_none_or(|end| end > AREA) {
        return None;
    }
    // SAFETY: the file is open for as long as there may be blocks in it.
    let file = unsafe { BorrowedFd::borrow_raw(file) };
    let mapped = fallocate(file, FallocateFlags::empty(), offset as u64, bytes as u64).and_then(|()| {
        let (rights, shared) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED | MapFlags::FIXED);
        let at = start.wrapping_add(offset).cast();
        // SAFETY: these addresses are reserved, and were never handed out before. Nobody else has the file, which has no name.
        let block = unsafe { mmap(at, bytes, rights, shared, file.as_fd(), offset as u64) }?;
        // Whoever puts tables on disk has no memory to spare for what lies beside what was asked for.
        // SAFETY: advice about the mapping of a moment ago, which changes no content.
        let advised = unsafe { [Advice::LinuxNoHugepage, Advice::Random].map(|advice| madvise(block, bytes, advice)) };
        // A kernel that does not take it brings in more than is needed.
        let _ = advised;
        Ok(block)
    });
    match mapped {
        Ok(block) => {
            DISK.fetch_add(bytes, Ordering::Relaxed);
            NonNull::new(block.cast())
        }
        Err(error) => {
            REFUSED.store(error.raw_os_error(), Ordering::Relaxed);
            None
        }
    }
}

/// # Safety
/// The block came from [`place`] with this size, and nobody uses it any more.
unsafe fn remove(block: *mut u8, size: usize) {
    let bytes = page(size);
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE | MapFlags::FIXED;
    // SAFETY: the block is the caller's to give up. Its addresses stay reserved, so that no other memory is taken for a block on
    // disk.
    let reserved = unsafe { mmap_anonymous(block.cast(), bytes, ProtFlags::empty(), flags) };
    let offset = block.addr() - START.load(Ordering::Relaxed).addr();
    // SAFETY: the file is open for as long as there may be blocks in it.
    let file = unsafe { BorrowedFd::borrow_raw(FILE.load(Ordering::Relaxed)) };
    let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    // What cannot be given back stays the file's until the process ends: nothing else depends on it.
    let _ = (reserved, fallocate(file, hole, offset as u64, bytes as u64));
    DISK.fetch_sub(bytes, Ordering::Relaxed);
}

/// Copies as much at a time as may be in memory twice.
///
/// # Safety
/// Both blocks are that long, and do not overlap.
unsafe fn copy(from: *const u8, to: *mut u8, size: usize) {
    for offset in (0..size).step_by(LARGE) {
        let length = LARGE.min(size - offset);
        // SAFETY: by the contract.
        unsafe { std::ptr::copy_nonoverlapping(from.add(offset), to.add(offset), length) };
        if offset % (LARGE * 16) == 0 {
            crate::trim();
        }
    }
}

/// Blocks on disk leave memory, until somebody asks for them.
pub fn let_go() {
    let (start, used) = (START.load(Ordering::Relaxed), NEXT.load(Ordering::Relaxed).min(AREA));
    if !start.is_null() && used > 0 {
        // SAFETY: all mappings there are shared ones of the file, which keeps what was written, or empty ones.
        let advised = unsafe { madvise(start.cast(), used, Advice::LinuxDontNeed) };
        // Refused, it takes more memory than it should.
        let _ = advised;
    }
}

/// The system's allocator, apart from large blocks that a bound sends to disk.
#[derive(Clone, Copy, Debug, Default)]
pub struct Allocator;

/// Whether a block that takes so much more memory is to be on disk.
fn exceeds(more: usize) -> bool {
    let bound = BOUND.load(Ordering::Relaxed);
    bound != usize::MAX && is_allowed() && MEMORY.load(Ordering::Relaxed).saturating_add(more) > bound
}

#[cold]
#[inline(never)]
fn large(layout: Layout, system: impl FnOnce() -> *mut u8) -> *mut u8 {
    INSTALLED.store(true, Ordering::Relaxed);
    if exceeds(layout.size())
        && let Some(block) = place(layout)
    {
        return block.as_ptr();
    }
    let block = system();
    if !block.is_null() {
        MEMORY.fetch_add(layout.size(), Ordering::Relaxed);
    }
    block
}

// SAFETY: a block is the system's or one of the reserved range, which are never handed out twice; whoever gives it back is told
// apart by its address, and sizes are those of its layout. Nothing here panics or allocates by itself.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the layout is the caller's.
        let system = || unsafe { System.alloc(layout) };
        if layout.size() < LARGE { system() } else { large(layout, system) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the layout is the caller's.
        let system = || unsafe { System.alloc_zeroed(layout) };
        if layout.size() < LARGE { system() } else { large(layout, system) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if layout.size() >= LARGE {
            if is_on_disk(block.addr()) {
                // SAFETY: whoever has this layout got the block from `place`, and gives it back.
                return unsafe { remove(block, layout.size()) };
            }
            MEMORY.fetch_sub(layout.size(), Ordering::Relaxed);
        }
        // SAFETY: all other blocks are the system's.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let (was, is) = (layout.size() >= LARGE, size >= LARGE);
        if !was && !is {
            // SAFETY: as the caller says, and a small block is the system's.
            return unsafe { System.realloc(block, layout, size) };
        }
        let counted = if was { layout.size() } else { 0 };
        let moves = was && is_on_disk(block.addr()) || is && exceeds(size.saturating_sub(counted));
        if moves {
            // SAFETY: the size is the caller's, who keeps within what a layout may be.
            let new_layout = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
            // SAFETY: a layout of more than no bytes.
            let new = unsafe { self.alloc(new_layout) };
            if !new.is_null() {
                // SAFETY: both blocks are that long, and the new one is nobody else's.
                unsafe { copy(block, new, layout.size().min(size)) };
                // SAFETY: the block is the caller's, who has the new one now.
                unsafe { self.dealloc(block, layout) };
            }
            return new;
        }
        // SAFETY: as the caller says, and the block is the system's.
        let new = unsafe { System.realloc(block, layout, size) };
        if !new.is_null() {
            MEMORY.fetch_add(if is { size } else { 0 }, Ordering::Relaxed);
            MEMORY.fetch_sub(counted, Ordering::Relaxed);
        }
        new
    }
}
