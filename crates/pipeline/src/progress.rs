//! What a phase tells whoever watches it.

use rashomon_event::{Deadline, Finding};
use rashomon_report::RunSummary;

#[derive(Clone, Copy, Debug)]
pub enum Progress<'a> {
    /// A recorded execution starts.
    Recording {
        number: u32,
        /// How many there will be, where that is known.
        of: Option<u32>,
    },
    Recorded {
        number: u32,
        events: usize,
        threads: usize,
    },
    Analysing {
        number: u32,
        of: u32,
    },
    /// Witnesses to force now, and findings that have none.
    Analysed {
        witnesses: usize,
        without: usize,
    },
    /// An engine does something that may take a while, such as `reading recording 1`.
    Working(&'a str),
    /// A schedule is about to be forced.
    Forcing {
        id: &'a str,
        number: usize,
        of: usize,
    },
    /// A provoking execution starts; that many targets are undecided.
    Provoking {
        execution: u64,
        open: usize,
    },
    /// So many schedules were explored, and so many different failures found.
    Exploring {
        schedules: u64,
        found: usize,
    },
    /// A finding is in the store; it may be decided again.
    Decided(&'a Finding),
    /// A finding is no longer in the store: another one says more.
    Replaced(&'a str),
    /// The numbers so far.
    Numbers(&'a RunSummary),
    /// When everything will be over, at the latest.
    Until(Deadline),
    /// Something the user should know at once.
    Note(&'a str),
}

pub trait Observer {
    fn progress(&mut self, progress: Progress<'_>);
}

/// Nobody watches.
impl Observer for () {
    fn progress(&mut self, _: Progress<'_>) {}
}
