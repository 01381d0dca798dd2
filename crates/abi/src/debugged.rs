//! What a debugger reads and sets in a program whose finding is replayed: an array of [`WORDS`] 64-bit words, the symbol
//! [`SYMBOL`], and functions at which it stops. All are exported, so that they have names in a runtime without debug information.
//!
//! Turns are numbered from 0. As long as the schedule is in force, these are its own; then each time that another thread is given
//! the turn counts. The number of turns that are over is the number of the turn that comes next. Replays are serial, so the same
//! number means the same state in each. Provoked findings are replayed with threads in parallel: they have no turns.

//!
//! A debugger that asks for it finds **process snapshots**: processes that stand at hand-overs of the turn, each with a copy of
//! the program's memory. Woken by [`WAKE`], such a process makes an execution that goes on from there, as a child of its own,
//! which waits until a debugger is attached and sets [`word::GO`].

pub const SYMBOL: &str = "rashomon_debugged";
pub const WORDS: usize = word::THREADS + THREADS;

/// Snapshots of an execution at a time.
pub const SNAPSHOTS: usize = 16;
/// Threads of which kernel ids are known.
pub const THREADS: usize = 256;
/// The signal (`SIGUSR1`) at which a process that stands makes an execution.
pub const WAKE: usize = 10;

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
    /// Set by debuggers at [`super::BEGIN`]: processor time in nanoseconds from there to the first snapshot, and between two.
    /// 0: there are none.
    pub const EVERY: usize = 5;
    /// Set by debuggers at [`super::BEGIN`]: the debugger's process. Snapshots end when it is gone.
    pub const DEBUGGER: usize = 6;
    /// Set by debuggers: 1: a snapshot is wanted at the next hand-over where one can be made. It is 0 behind that.
    pub const WANTED: usize = 7;
    /// Why the last snapshot was not made: `exploration::snapshot::refusal`. 0: it was.
    pub const REFUSED: usize = 8;
    /// Set by debuggers: the execution that a snapshot made goes on.
    pub const GO: usize = 9;
    /// [`super::SNAPSHOTS`] times: turns that are over, and the process. A process 0 is none.
    pub const SNAPSHOT: usize = 10;
    /// By number of the thread, in the order in which they were created: its kernel id, or 0.
    pub const THREADS: usize = SNAPSHOT + 2 * super::SNAPSHOTS;
}
