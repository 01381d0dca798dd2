//! The `enforced` file: how far an execution followed an order of synchronisation that was kept while its threads ran in parallel
//! and races were looked for.
//!
//! The host makes it, [`WORDS`] little-endian 64-bit words of zero, beside the `control` file whose turns are the order; the
//! runtime writes into a shared mapping, so that it says what was decided however the process ends. Each turn's thread and
//! operation count, and nothing else of it.

pub const WORDS: usize = 8;

/// Word numbers.
pub mod field {
    /// See [`super::outcome`].
    pub const OUTCOME: usize = 0;
    /// Turns that are over.
    pub const DONE: usize = 1;
    /// What came in place of the turn [`TURN`]: code of the operation; its thread is that turn's.
    pub const ACTUAL_OP: usize = 2;
    pub const TURN: usize = 3;
}

/// Written once.
pub mod outcome {
    /// The process ended before its last turn.
    pub const NONE: u64 = 0;
    /// All turns are over; from there on the program ran freely.
    pub const KEPT: u64 = 1;
    /// A thread was about to do something else than its next turn says.
    pub const OTHER_OPERATION: u64 = 2;
    /// Nobody could go on: whoever did not wait for a turn was blocked, and not by each other for ever.
    pub const STUCK: u64 = 3;
    /// Whose turn it was did not come within its timeout.
    pub const LATE: u64 = 4;
    /// Threads blocked each other for ever, in operations of the program.
    pub const DEADLOCK: u64 = 5;
}
