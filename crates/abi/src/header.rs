//! The `header` file: one page of little-endian 64-bit words, mapped by the runtime while the program runs.

pub const HEADER_BYTES: usize = 4096;
/// Word 0.
pub const MAGIC: u64 = 0x4e4f_4d4f_4853_4152; // "RASHOMON"

/// Word numbers.
pub mod field {
    pub const MAGIC: usize = 0;
    /// [`crate::PROTOCOL_VERSION`].
    pub const VERSION: usize = 1;
    /// See [`super::state`].
    pub const STATE: usize = 2;
    pub const PROCESS_ID: usize = 3;
    /// See [`crate::control::mode`].
    pub const MODE: usize = 4;
    pub const THREADS: usize = 5;
    /// Next sequence number to be given.
    pub const SEQUENCE: usize = 6;
    /// Nanoseconds of `CLOCK_REALTIME` at start.
    pub const START_TIME: usize = 7;
    /// Bit set, see [`super::note`].
    pub const NOTES: usize = 8;
    /// Sequence number from which on a re-execution may differ (0: none known).
    pub const NOT_REEXECUTABLE_FROM: usize = 9;
    /// The first error (`errno`) for which something could not be written: see [`crate::unwritten`]. 0: none.
    pub const UNWRITTEN: usize = 10;
    /// Of a process that crashed: the signal, and what the kernel said with it (`si_code`, `si_addr`).
    pub const FAULT_SIGNAL: usize = 11;
    pub const FAULT_CODE: usize = 12;
    pub const FAULT_ADDRESS: usize = 13;

    /// What came of the control's goal: see [`super::outcome`].
    pub const OUTCOME: usize = 16;
    /// Turn of the control at which the outcome was decided.
    pub const OUTCOME_TURN: usize = 17;
    /// Thread numbers of the two sides, in the order of the goal (race), or the thread that diverged.
    pub const OUTCOME_THREAD_A: usize = 18;
    pub const OUTCOME_THREAD_B: usize = 19;
    /// Divergence: see [`super::divergence`].
    pub const DIVERGENCE: usize = 20;
    /// Divergence: synchronisation ordinal expected and actual.
    pub const EXPECTED_ORDINAL: usize = 21;
    pub const ACTUAL_ORDINAL: usize = 22;
    /// Divergence: operation code (see `record::Op`; 0 = plain access) about to be executed, and its site and object.
    pub const ACTUAL_OP: usize = 23;
    pub const ACTUAL_SITE: usize = 24;
    pub const ACTUAL_OBJECT: usize = 25;
    /// Turns that had been completed.
    pub const TURNS_DONE: usize = 26;

    /// Virtual nanoseconds since start (serial).
    pub const VIRTUAL_TIME: usize = 32;
    pub const SWITCHES: usize = 33;
    /// How often the watchdog had to take the turn from a thread that blocked in the kernel unseen.
    pub const FORCED_HANDOVERS: usize = 34;
    pub const FORKS: usize = 35;
    /// Accesses executed (kept or not), summed when threads end.
    pub const ACCESSES_EXECUTED: usize = 36;
    /// Accesses that the TREE filter left out, summed when threads end.
    pub const ACCESSES_REDUNDANT: usize = 37;

    /// Of the process that made this one; 0 for the initial process.
    pub const PARENT_PROCESS_ID: usize = 40;
    /// How the process came to be: see [`super::origin`].
    pub const ORIGIN: usize = 41;
    /// Forked: the sequence number that was next in its parent.
    pub const FORKED_AT: usize = 42;
    /// Places that the process gave to processes it made.
    pub const PLACES: usize = 43;
    /// In the initial process: processes of the session, those beyond the limit included.
    pub const PROCESSES: usize = 44;
    /// Which functions that the runtime does not serve were called ([`crate::unserved::NAMES`]).
    pub const UNSERVED: usize = 45;
}

pub mod state {
    pub const RUNNING: u64 = 1;
    /// The process ended through `exit`, `_exit` or return from `main`.
    pub const COMPLETE: u64 = 2;
    /// The runtime ended the process itself (goal reached, deadlock, divergence under `stop`).
    pub const STOPPED: u64 = 3;
    /// A fatal signal was seen on its way; word `OUTCOME_THREAD_A` is not touched.
    pub const CRASHED: u64 = 4;
}

pub mod origin {
    /// The program that the host started.
    pub const INITIAL: u64 = 0;
    pub const FORKED: u64 = 1;
    /// A program that another process started, or that took its place.
    pub const EXECUTED: u64 = 2;
}

pub mod note {
    /// Accesses are no longer kept: the trace limit was reached, or [`super::field::UNWRITTEN`] says why.
    pub const TRUNCATED: u64 = 1;
    pub const FORKED: u64 = 2;
    pub const SIGNALS: u64 = 4;
    pub const EXTERNAL_INPUT: u64 = 8;
    /// Another program was started in place of this one.
    pub const EXECUTED: u64 = 16;
    /// Accesses were left out because they had been kept often enough: what a read saw is not known for certain.
    pub const THINNED: u64 = 32;
    /// In the initial process: there were more processes than may be recorded.
    pub const TOO_MANY_PROCESSES: u64 = 64;
    /// Accesses were left out that are redundant for detectors of races ([`crate::control::option::TREE`]): what a read saw is
    /// not known for certain.
    pub const FILTERED: u64 = 128;
    /// A thread ran without any event for so long that others went on beside it: what it did meanwhile is not known.
    pub const UNSEEN: u64 = 256;
    /// A process that this one made could not be recorded: [`super::field::UNWRITTEN`] says why.
    pub const PROCESS_UNWRITTEN: u64 = 1024;
    /// Serial: the recording is a beginning of the execution, which only repeated what had happened before.
    pub const REPEATS: u64 = 512;
    /// Calls into code without instrumentation were recorded ([`crate::control::option::UNSEEN_CALLS`]).
    pub const UNSEEN_CALLS: u64 = 2048;
    /// The control named the places whose plain accesses alone are kept ([`crate::control::KEPT_WORDS`]): what a read saw is not
    /// known for certain.
    pub const PLACES: u64 = 4096;
}

pub mod outcome {
    /// The program ran and nothing was decided (also while it runs).
    pub const NONE: u64 = 0;
    /// Both threads of the goal stand at their accesses, overlapping bytes, at least one write, at least one not atomic.
    pub const CO_ENABLED: u64 = 1;
    /// A cycle of threads that wait for each other without time-out. `Blocked` records tell who waits for what.
    pub const DEADLOCK: u64 = 2;
    /// All threads are blocked and there is no cycle of lock holders.
    pub const STUCK: u64 = 3;
    /// The execution left the schedule: see [`super::divergence`].
    pub const DIVERGED: u64 = 4;
    /// All turns were executed and the goal asked for nothing more.
    pub const SCHEDULE_DONE: u64 = 5;
    /// Both threads stand at their goals but the bytes do not overlap.
    pub const NO_OVERLAP: u64 = 6;
    /// Every thread is blocked for good or repeats the same state for ever. `Blocked` records tell who does what.
    pub const ENDLESS: u64 = 7;
}

pub mod divergence {
    /// The thread of the turn is blocked before its position.
    pub const BLOCKED: u64 = 1;
    /// The thread passed its position (its ordinal grew beyond it) without making the access.
    pub const PASSED: u64 = 2;
    /// The thread ended before its position.
    pub const ENDED: u64 = 3;
    /// The thread of the turn does not exist.
    pub const NO_SUCH_THREAD: u64 = 4;
    /// The operation at the position is another one than the schedule says.
    pub const OTHER_OPERATION: u64 = 5;
    /// The program ended before all turns were executed.
    pub const PROGRAM_ENDED: u64 = 6;
    /// A call into the kernel did not come back within the control's call time-out.
    pub const TIMED_OUT: u64 = 7;
}
