//! What a debugger reads and sets in a program whose finding is replayed: an array of [`WORDS`] 64-bit words, the symbol
//! [`SYMBOL`], and functions at which it stops. All are exported, so that they have names in a runtime without debug information.
//!
//! Turns are numbered from 0. As long as the schedule is in force, these are its own; then each time that another thread is given
//! the turn counts. The number of turns that are over is the number of the turn that comes next. Replays are serial, so the same
//! number means the same state in each. Provoked findings are replayed with threads in parallel: they have no turns.

pub const SYMBOL: &str = "rashomon_debugged";
pub const WORDS: usize = 5;

/// The turns begin: nothing of the program has run under the schedule.
pub const BEGIN: &str = "rashomon_turns_begin";
/// The turn that was asked for is about to be executed, by the calling thread.
pub const TURN_REACHED: &str = "rashomon_turn_reached";
/// The finding has come about.
pub const FINDING_REACHED: &str = "rashomon_finding_reached";

pub mod word {
    /// Turns that are over.
    pub const TURN: usize = 0;
    /// Set by debuggers: [`super::TURN_REACHED`] is called once, when at least so many turns are over. `u64::MAX`: never.
    pub const STOP: usize = 1;
    /// Kernel id of the thread that has the turn. 0: threads run in parallel.
    pub const HOLDER: usize = 2;
    /// Where the accesses of the finding overlap, and how many bytes; 0 bytes: it has no such place, or has not come about.
    pub const ADDRESS: usize = 3;
    pub const BYTES: usize = 4;
}
