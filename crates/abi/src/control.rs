//! The `control` file: what the host asks of the runtime. Little-endian 64-bit words: a head of [`HEAD_WORDS`], then tables.
//!
//! ```text
//! head | modules: MODULE_WORDS each | threads: THREAD_WORDS each | objects: OBJECT_WORDS each | turns: TURN_WORDS each
//!      | goals: GOAL_WORDS each | descriptors: DESCRIPTOR_WORDS each | frames: FRAME_WORDS each | known: KNOWN_WORDS each
//!      | strings, filled up to a whole word | kept: KEPT_WORDS each
//! ```
//! `strings` holds the module paths (bytes, not terminated); a module entry names offset and length in it.
//! Code addresses in tables are (module, offset from its load bias), so that schedules survive address-space randomisation;
//! module [`NO_MODULE`] means an absolute address.

pub const MAGIC: u64 = 0x4c52_5443_4853_4152; // "RASHCTRL"
pub const HEAD_WORDS: usize = 32;
/// No table may hold more entries than this.
pub const MAX_ENTRIES: u64 = 1 << 24;

/// Word numbers of the head.
pub mod field {
    pub const MAGIC: usize = 0;
    pub const VERSION: usize = 1;
    /// See [`super::mode`].
    pub const MODE: usize = 2;
    /// See [`super::policy`]. Of a serial run: while there are no turns, or after the last.
    pub const POLICY: usize = 3;
    pub const SEED: usize = 4;
    /// Accesses after which a serial thread has to offer its turn. 0: never.
    pub const QUANTUM: usize = 5;
    /// Serial random: one in how many synchronisation points is a switch.
    pub const SWITCH_PERIOD: usize = 6;
    /// PCT: number of priority change points (d − 1), and the assumed number of points (k).
    pub const PCT_CHANGES: usize = 7;
    pub const PCT_LENGTH: usize = 8;
    /// Bit set, see [`super::option`].
    pub const OPTIONS: usize = 9;
    /// Milliseconds a call into the kernel may take before a replay gives up on it.
    pub const CALL_TIMEOUT_MS: usize = 10;
    /// Bytes of trace after which plain accesses are no longer kept. 0: no limit.
    pub const TRACE_LIMIT: usize = 11;
    /// What to do when the outcome is decided: see [`super::after`].
    pub const AFTER: usize = 12;
    /// See [`super::goal`].
    pub const GOAL: usize = 13;
    /// Serial: nanoseconds of `CLOCK_REALTIME` at which virtual time begins. 0: the real time at the start.
    pub const BASE_TIME: usize = 14;
    /// How often an access (thread, site, address, locks held) is kept, not counting repetitions without an event in between. 0:
    /// no limit.
    pub const ACCESS_CAP: usize = 15;
    /// Entries of the tables.
    pub const MODULES: usize = 16;
    pub const THREADS: usize = 17;
    pub const OBJECTS: usize = 18;
    pub const TURNS: usize = 19;
    pub const GOALS: usize = 20;
    pub const STRING_BYTES: usize = 21;
    /// The most processes of a session that are recorded. 0: no limit.
    pub const PROCESSES: usize = 22;
    /// Entries of the tables of provocation ([`super::option::PROVOKE`]). With [`super::option::VALUES`] frames are the sites
    /// whose values are recorded.
    pub const DESCRIPTORS: usize = 23;
    pub const FRAMES: usize = 24;
    pub const KNOWN: usize = 25;
    /// Nanoseconds that a thread is held at a descriptor at most, and that all holds of the execution together may last.
    pub const HOLD_TIME: usize = 26;
    pub const HOLDS_TIME: usize = 27;
    /// Entry of the thread table, plus 1: threads that it does not descend from begin once it was held, blocks, or has ended. 0:
    /// nobody.
    pub const FAVOURED: usize = 28;
    /// Who goes on first after a catch: see [`super::first`].
    pub const FIRST: usize = 29;
    /// Of [`super::option::TREE`]: locations that each thread remembers at most; 0: as many as the runtime thinks right.
    pub const FILTER_LOCATIONS: usize = 30;
    /// Places whose plain accesses alone are kept; 0: all are. See [`super::KEPT_WORDS`].
    pub const KEPT: usize = 31;
}

pub mod mode {
    pub const OFF: u64 = 0;
    pub const FREE: u64 = 1;
    pub const SERIAL: u64 = 2;
    /// Races are looked for while the program runs; nothing is recorded, and there is no control file.
    pub const DETECT: u64 = 3;
}

pub mod policy {
    pub const ROUND_ROBIN: u64 = 1;
    pub const RANDOM: u64 = 2;
    pub const PCT: u64 = 3;
    /// A thread runs until it blocks; then the lowest thread number that can run.
    pub const RUN_TO_BLOCK: u64 = 4;
    /// As the session's `exploration` file says: see [`crate::exploration`].
    pub const EXPLORE: u64 = 5;
}

pub mod option {
    /// Keep every access: no same-span filter.
    pub const NO_FILTER: u64 = 1;
    /// Keep no plain accesses at all (schedule and synchronisation only).
    pub const NO_ACCESSES: u64 = 2;
    /// Do not keep call contexts.
    pub const NO_CONTEXTS: u64 = 4;
    /// Write no streams: only the header, the modules and what a policy writes of its own.
    pub const NO_STREAMS: u64 = 8;
    /// Free mode: record nothing, unless it is to be [`RECORDED`], and hold threads at the descriptors until another thread
    /// arrives with a conflicting access. See [`crate::provoke`].
    pub const PROVOKE: u64 = 16;
    /// Leave out plain accesses that are redundant for detectors of races (TREE). Without effect beside [`NO_FILTER`].
    pub const TREE: u64 = 32;
    /// Serial, with a goal: who leaves the turns is let go on, and where they cannot be kept threads are held at the goal's
    /// places until the goal comes about.
    pub const ELASTIC: u64 = 64;
    /// With [`ELASTIC`]: no turn is enforced. The policy says who runs, and the goal's turns only tell where threads are held.
    pub const HOLD_ONLY: u64 = 128;
    /// Serial: calls of instrumented modules into ones that are neither instrumented nor modelled are recorded, with what they
    /// can reach.
    pub const UNSEEN_CALLS: u64 = 256;
    /// With [`UNSEEN_CALLS`]: each call tells all that it can reach, not what it begins from. For comparison.
    pub const NAIVE_REACH: u64 = 512;
    /// With [`UNSEEN_CALLS`]: calls that are [known](crate::known) to order nothing are recorded like others. For comparison:
    /// re-executions do without.
    pub const EVERY_CALL: u64 = 1024;
    /// Record activations and segments of functions that the compiler's plugin has instrumented: see [`crate::deep`]. Needs
    /// [`NO_FILTER`]: an access that is left out would be taken for the next one.
    pub const DEPENDENCES: u64 = 2048;
    /// Serial: the values of plain accesses are recorded, of those at the sites of the table of frames; of all if it is empty.
    /// Such accesses are kept whatever the filter says.
    pub const VALUES: u64 = 4096;
    /// With [`PROVOKE`]: synchronisation is recorded after all, but no atomic operations, on which a thread may spin. The process
    /// ends at the first catch, with both threads at their accesses.
    pub const RECORDED: u64 = 8192;
}

/// Which of two threads that stand at conflicting accesses makes its own first.
pub mod first {
    /// Nobody cares: both go on at once.
    pub const EITHER: u64 = 0;
    /// The one that was held.
    pub const HELD: u64 = 1;
    /// The one that arrived.
    pub const ARRIVED: u64 = 2;
}

pub mod after {
    /// End the process at once (`_exit`).
    pub const STOP: u64 = 0;
    /// Call `rashomon_finding_reached` (a debugger breaks there) and go on under the policy.
    pub const CONTINUE: u64 = 1;
}

pub mod goal {
    /// Execute the turns, then go on under the policy.
    pub const NONE: u64 = 0;
    /// After the last turn the two goal threads stand at conflicting accesses.
    pub const RACE: u64 = 1;
    /// After the last turn the goal threads block each other for ever.
    pub const DEADLOCK: u64 = 2;
}

pub const NO_MODULE: u64 = u64::MAX;

/// `name offset in strings, name length, load bias when recorded (informative)`.
pub const MODULE_WORDS: usize = 3;
/// `parent (index into this table), spawn ordinal`. Entry 0 is the initial thread (`parent` = `u64::MAX`). A parent precedes its
/// children.
pub const THREAD_WORDS: usize = 2;

/// An object whose address the runtime has to find out in this run: `kind, thread, module, offset, ordinal`.
pub const OBJECT_WORDS: usize = 5;
pub mod object {
    /// Fixed place: module and offset from its load bias (or `NO_MODULE` and an absolute address).
    pub const GLOBAL: u64 = 1;
    /// The `ordinal`-th (from 0) heap allocation that `thread` makes at the call site module+offset.
    pub const HEAP: u64 = 2;
    /// The stack of `thread`; addresses count downwards from its high end: `delta` of a place is `high − address`.
    pub const STACK: u64 = 3;
    /// Initial thread's static TLS block: `delta` is `high − address`.
    pub const TLS: u64 = 4;
    /// The `ordinal`-th mapping (`mmap`) of `thread` at the call site module+offset.
    pub const MAPPING: u64 = 5;
    /// Unknown: any address matches.
    pub const ANY: u64 = 6;
}

/// A turn: `thread` runs until it is about to execute the position, which it does not execute yet:
/// `thread, flags, ordinal, count, module, offset, object, delta, size, op`.
///
/// `ordinal`: the number of synchronisation events the thread has completed by then. Without an access flag the position is the
/// synchronisation event of that ordinal itself; `op` is its operation code (0: do not check).
pub const TURN_WORDS: usize = 10;
pub mod turn {
    /// The position is after exactly `count` accesses since the last synchronisation event.
    pub const AT_COUNT: u64 = 1;
    /// The position is the first access since the last synchronisation event whose site is module+offset and that overlaps
    /// `[address, address + size)`, where address is object + delta (or high − delta for stacks).
    pub const AT_SITE: u64 = 2;
    /// Run to the end of the thread, or as far as it can.
    pub const TO_END: u64 = 4;
    /// The thread waits, in the model or in the kernel, inside the operation that it began after `count` accesses since the last
    /// synchronisation event.
    pub const WAITING: u64 = 8;
    /// Of a synchronisation event, for elastic enforcement: its site is module+offset, and it is the `count`-th of the thread
    /// (from 0) with this operation and site.
    pub const LANDMARK: u64 = 16;
}

/// A goal thread: `thread, turn` where `turn` is the index of the turn whose position is the goal access (race) or the
/// acquisition that will block (deadlock).
pub const GOAL_WORDS: usize = 2;

/// A place at which a thread is held (RaceHunter's access descriptor):
/// `thread, identity, module, offset, first frame, frames, ordinal, holds`.
///
/// `thread`: entry of the thread table, or [`ANY_THREAD`]; ignored where `identity` is not 0, which is what the program called
/// the thread by itself. The frames are the call sites (return addresses) of the innermost calls that must match. The thread is
/// held at the match of that ordinal (from 0), at some following ones, then at those with twice the number of the one before,
/// `holds` times in all. 0 holds: matches are counted only.
pub const DESCRIPTOR_WORDS: usize = 8;
pub const ANY_THREAD: u64 = u64::MAX;
/// `module, offset` of a call site.
pub const FRAME_WORDS: usize = 2;
/// `module, offset, module, offset`: two sites whose catch is known: it does not end a hold.
pub const KNOWN_WORDS: usize = 4;
/// `module, offset`: the return address of a plain access that is kept. Where there are such places others are only counted, so
/// that positions mean the same; ends of lifetimes are kept wherever they are.
pub const KEPT_WORDS: usize = 2;
/// Places of that table that are heeded.
pub const MAX_KEPT: usize = 1024;
