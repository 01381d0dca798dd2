//! Memory beyond a bound, on disk.
//!
//! A program that has [`Allocator`] as its global allocator can say, with [`begin`], how many bytes its large blocks may take in
//! memory ([`Room`]). From then on a large block that is allocated, or grows, inside [`allowing`] and would exceed the bound lies
//! in a temporary file that is mapped: whoever uses it sees ordinary memory. How much of the file is in memory meanwhile is the
//! kernel's business, until [`trim`] says otherwise.
//!
//! Why an allocator, and not tables that know of files: tables are vectors and maps of many types that grow, and looking at an
//! element of one is most of what an analysis does. None of that has to know.
//!
//! Guarantees: a block on disk has its room there from the beginning, so a disk that is full leads to a block in memory, and to
//! [`Spilling::refused`], never to a fault later. The file has no name and ends with the process. Limits: blocks of less than
//! [`LARGE`] bytes stay in memory and are not counted; what was allocated before stays where it is; a folder in memory (`tmpfs`)
//! is no disk.
#![deny(unsafe_code)]

mod memory;

pub use memory::{Allocator, is_on_disk};

use memory::{BOUND, DISK, WINDOW};
use std::cell::Cell;
use std::io::{Error, ErrorKind, Result};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Blocks of at least this many bytes can lie on disk.
pub const LARGE: usize = 1 << 20;

thread_local! {
    static ALLOWED: Cell<bool> = const { Cell::new(false) };
}

fn is_allowed() -> bool {
    ALLOWED.try_with(Cell::get).unwrap_or(false)
}

/// What the thread allocates meanwhile may lie on disk.
pub fn allowing<R>(action: impl FnOnce() -> R) -> R {
    struct Back(bool);
    impl Drop for Back {
        fn drop(&mut self) {
            ALLOWED.set(self.0);
        }
    }
    let _back = Back(ALLOWED.replace(true));
    action()
}

/// Bytes of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// For large blocks that are in memory. What exceeds that is on disk.
    pub blocks: usize,
    /// For what is in memory of blocks on disk, after each [`trim`].
    pub window: usize,
}

/// Until this is dropped, there is a bound.
#[derive(Debug)]
pub struct Spilling(());

static BUSY: AtomicBool = AtomicBool::new(false);

/// From now on large blocks take so much memory at most, as far as [`allowing`] allows it; what exceeds that is in a file in this
/// folder.
///
/// Errors: `Unsupported` if the program has another allocator, `ResourceBusy` if there is a bound already, and whatever prevents
/// a file in the folder.
pub fn begin(room: Room, folder: &Path) -> Result<Spilling> {
    if !memory::is_installed() {
        return Err(Error::new(ErrorKind::Unsupported, "this program's allocator keeps everything in memory"));
    }
    if BUSY.swap(true, Ordering::AcqRel) {
        return Err(Error::new(ErrorKind::ResourceBusy, "there is a bound already"));
    }
    let spilling = Spilling(());
    // Blocks from before, if there are any, go on living in the file from before.
    if on_disk() == 0 {
        memory::use_file(tempfile::tempfile_in(folder)?)?;
    }
    WINDOW.store(room.window, Ordering::Relaxed);
    BOUND.store(room.blocks, Ordering::Relaxed);
    Ok(spilling)
}

impl Spilling {
    /// Why a block is in memory nevertheless.
    pub fn refused(&self) -> Option<Error> {
        memory::refusal()
    }
}

impl Drop for Spilling {
    fn drop(&mut self) {
        BOUND.store(usize::MAX, Ordering::Relaxed);
        BUSY.store(false, Ordering::Release);
    }
}

/// Bytes of blocks on disk.
pub fn on_disk() -> usize {
    DISK.load(Ordering::Relaxed)
}

/// Lets go of the memory that blocks on disk take if that is more than [`Room::window`]. They keep their content: what is asked
/// for again comes from the file, or from what the kernel still has of it. Whoever touches many blocks says so now and then.
#[inline]
pub fn trim() {
    if on_disk() > 0 {
        trim_to(WINDOW.load(Ordering::Relaxed));
    }
}

#[inline(never)]
fn trim_to(most: usize) {
    /// Memory that other files take: what is left right after all blocks were let go of.
    static OTHERS: AtomicUsize = AtomicUsize::new(0);
    let Some(mapped) = mapped() else { return };
    let others = OTHERS.load(Ordering::Relaxed).min(mapped);
    if mapped - others > most {
        memory::let_go();
        OTHERS.store(self::mapped().unwrap_or(0), Ordering::Relaxed);
    }
}

/// Bytes of files that are in this process' memory (proc_pid_statm(5): `shared`).
fn mapped() -> Option<usize> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: usize = statm.split_ascii_whitespace().nth(2)?.parse().ok()?;
    Some(pages * rustix::param::page_size())
}
