//! The `provoked` file: what came of each descriptor of a provoking execution, and the pairs of accesses that were caught side by
//! side.
//!
//! Little-endian 64-bit words, in a shared mapping, so that it says what was decided whenever the process ends:
//!
//! ```text
//! head: HEAD_WORDS | descriptors: STATE_WORDS each | catches: MAX_CATCHES × CATCH_WORDS | log: LOG_ENTRIES words
//! ```

pub const MAGIC: u64 = 0x4b56_5250_4853_4152; // "RASHPRVK"
pub const HEAD_WORDS: usize = 16;
/// Descriptors beyond this number are not watched.
pub const MAX_DESCRIPTORS: usize = 4096;
pub const MAX_CATCHES: usize = 128;

/// Word numbers of the head.
pub mod head {
    pub const MAGIC: usize = 0;
    pub const VERSION: usize = 1;
    pub const DESCRIPTORS: usize = 2;
    /// Catches, those that found no room included.
    pub const CATCHES: usize = 3;
    /// Entries of the log, those that found no room included.
    pub const LOG: usize = 4;
    /// Nanoseconds of all holds.
    pub const HELD: usize = 5;
    /// Nanoseconds that threads waited for the favoured one.
    pub const HEAD_START: usize = 6;
}

pub const STATE_WORDS: usize = 16;
/// Word numbers of a descriptor's state.
pub mod state {
    /// Accesses that matched, and those of them that came while another thread was held.
    pub const MATCHES: usize = 0;
    pub const SKIPPED: usize = 1;
    pub const HOLDS: usize = 2;
    /// How the holds ended: somebody arrived; every other thread was blocked or gone; every other thread was, or only looked at
    /// the same unchanged places again and again; the time was up; the time was up and had been cut short because other holds
    /// used it.
    pub const CAUGHT: usize = 3;
    pub const BLOCKED: usize = 4;
    pub const POLLING: usize = 5;
    pub const TIMED_OUT: usize = 6;
    pub const CUT_SHORT: usize = 7;
    pub const HELD: usize = 8;
    /// The runtime's own: ordinal of the next hold; and when a match was last told of (holds until then, twice, and one more
    /// while somebody is held).
    pub const NEXT: usize = 9;
    pub const TOLD: usize = 10;
}

/// `done, descriptor, nanoseconds held, known`, then the held thread's side and the arrived one's.
pub const CATCH_WORDS: usize = 4 + 2 * SIDE_WORDS;
/// Word numbers of a catch. `DONE` is written last.
pub mod catch {
    pub const DONE: usize = 0;
    pub const DESCRIPTOR: usize = 1;
    pub const HELD: usize = 2;
    /// Ordinal of the match at which the thread was held.
    pub const ORDINAL: usize = 3;
    pub const SIDES: usize = 4;
}

/// Call sites of a side, innermost first.
pub const SIDE_FRAMES: usize = 40;
/// Spawn ordinals of a side's thread path; deeper paths are cut.
pub const SIDE_PATH: usize = 8;
pub const SIDE_WORDS: usize = side::FRAMES + SIDE_FRAMES;
/// Word numbers of a side.
pub mod side {
    /// `class | atomic << 8 | path length << 16 | frames << 32`, class as in [`crate::record::AccessClass`].
    pub const KIND: usize = 0;
    pub const ADDRESS: usize = 1;
    pub const BYTES: usize = 2;
    /// Machine address of the return address.
    pub const SITE: usize = 3;
    /// What the program calls the thread; 0: nothing.
    pub const IDENTITY: usize = 4;
    /// Two spawn ordinals a word, the first in the low half.
    pub const PATH: usize = 5;
    pub const FRAMES: usize = PATH + super::SIDE_PATH / 2;
}

/// Room for what happened, in order: `kind | outcome << 8 | descriptor << 16 | thread number << 40`.
pub const LOG_ENTRIES: usize = 1 << 14;
/// Kinds of entries.
pub mod log {
    /// An access matched.
    pub const MATCH: u64 = 1;
    /// A thread is held.
    pub const HOLD: u64 = 2;
    /// A thread did something while another was held, before the end of that hold is told.
    pub const RAN: u64 = 3;
    /// The hold is over; the outcome is a word number of [`super::state`].
    pub const END: u64 = 4;
}

/// Length of the file for so many descriptors.
pub const fn file_words(descriptors: usize) -> usize {
    HEAD_WORDS + descriptors * STATE_WORDS + MAX_CATCHES * CATCH_WORDS + LOG_ENTRIES
}
