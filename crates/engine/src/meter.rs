//! What the workers of an analysis take of the memory that they may have, and which of them has to stop.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// What the workers of a job tell and are told.
#[derive(Default)]
pub struct Board {
    /// Whether the job can be shared out.
    pub shares: bool,
    pub bytes: Vec<AtomicUsize>,
    pub slots: AtomicUsize,
    pub stop: AtomicBool,
    /// When it was told to stop.
    pub bytes_then: AtomicUsize,
}

impl Board {
    pub fn bytes(&self) -> usize {
        self.bytes.iter().map(|bytes| bytes.load(Ordering::Relaxed)).sum()
    }

    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// Looks after the bound of memory.
pub struct Meter {
    pub boards: Vec<Board>,
    pub allowed: usize,
    pub most: AtomicUsize,
    pub most_on_disk: AtomicUsize,
    pub deciding: Mutex<()>,
}

impl Meter {
    /// After each change of a board: whoever exceeds what is allowed sees it, whatever the others have seen.
    pub fn look(&self) {
        let on_disk = rashomon_spill::on_disk();
        let of = |shares| self.boards.iter().filter(move |board| board.shares == shares).map(Board::bytes).sum::<usize>();
        let in_memory = of(false).saturating_sub(on_disk) + on_disk.min(quarter(self.allowed));
        let (shared, whole) = (of(true), in_memory);
        self.most.fetch_max(shared + whole, Ordering::Relaxed);
        self.most_on_disk.fetch_max(on_disk, Ordering::Relaxed);
        if shared + whole <= self.allowed {
            return;
        }
        let _deciding = self.deciding.lock().unwrap_or_else(PoisonError::into_inner);
        // What was told to stop frees its tables when its workers get there: until then nobody else is to stop for them.
        if !self.boards.iter().any(|board| board.is_stopped() && board.bytes() > 0) {
            let working = self.boards.iter().filter(|board| !board.is_stopped());
            // What can be done in another pass makes room for what cannot, if that is enough.
            let largest = working.max_by_key(|board| (board.shares == (whole <= self.allowed), board.bytes()));
            if let Some(largest) = largest {
                largest.bytes_then.store(largest.bytes(), Ordering::Relaxed);
                largest.stop.store(true, Ordering::Relaxed);
            }
        }
    }

    /// Whether anybody still works.
    pub fn is_busy(&self) -> bool {
        self.boards.iter().any(|board| !board.is_stopped() || board.bytes() > 0)
    }
}

/// Of what is allowed: for large tables that cannot be shared out, and for what is in memory of those on disk. The rest is for
/// blocks that are too small for the disk, and what is done in passes.
pub const fn quarter(allowed: usize) -> usize {
    allowed / 4
}
