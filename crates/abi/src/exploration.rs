//! The `exploration` file: what an exploring scheduler is to do ([`crate::control::policy::EXPLORE`]) and what it did. The host
//! makes it, the runtime maps it shared and writes into it, so that whatever ends the process, all decisions up to then are
//! known. Little-endian 64-bit words:
//!
//! ```text
//! head: HEAD_WORDS | decisions: one word each | sites: SITE_WORDS each | wanted: WANTED_WORDS each |
//!   orders: see [`orders`] | log: records of RECORD_WORDS
//! ```
//!
//! A *step* of a thread is what it does from one visible operation up to the next: it stands before an operation (its *pending*
//! one) until it is chosen, makes it, and runs on until it is about to make another, ends or blocks. Visible are all operations
//! on which schedules take positions (synchronisation and atomics) and the plain accesses that the file asks for. A *choice* is
//! the decision which thread makes the next step.

/// Written by the host into the session, beside `control`.
pub const FILE: &str = "exploration";
pub const MAGIC: u64 = 0x4c50_5845_4853_4152; // "RASHEXPL"
pub const HEAD_WORDS: usize = 64;
/// Sets of threads are words, and tell of so many threads, by number. Further ones run and are chosen like these, but searches
/// that learn from sets do not learn from such executions.
pub const SET_THREADS: usize = 64;

/// Word numbers of the head.
pub mod field {
    pub const MAGIC: usize = 0;
    pub const VERSION: usize = 1;
    /// Who is chosen when the decisions are used up: see [`super::strategy`].
    pub const STRATEGY: usize = 2;
    pub const SEED: usize = 3;
    /// PCT: number of priority change points (d − 1), and the assumed number of steps (k).
    pub const CHANGES: usize = 4;
    pub const LENGTH: usize = 5;
    /// Steps after which the execution is ended.
    pub const STEPS: usize = 6;
    /// Which plain accesses are visible: see [`super::accesses`].
    pub const ACCESSES: usize = 7;
    /// 1: two threads that stand at conflicting accesses end the execution with the outcome `CO_ENABLED`.
    pub const RACES: usize = 8;
    /// Entry + 1 of the control's thread table: this thread is never chosen; what conflicts with the access it stands at ends the
    /// execution.
    pub const HOLD: usize = 9;
    /// Entry + 1 of the control's thread table: chosen whenever it can be, once the decisions are used up.
    pub const PREFER: usize = 10;
    /// Threads (bits by number) that need not be chosen after the last decision until something dependent happens: the sleep set
    /// at that decision.
    pub const ASLEEP: usize = 11;
    /// Entries of the tables; words of the log.
    pub const DECISIONS: usize = 12;
    pub const SITES: usize = 13;
    pub const LOG_WORDS: usize = 14;
    /// 1: the process is to stand where exploration begins, and to fork an execution for each command: see [`super::snapshot`].
    pub const SNAPSHOT: usize = 15;
    /// Entries of the table of inputs that are wanted, at most [`super::MOST_WANTED`].
    pub const WANTED: usize = 16;
    /// Words of the table of orders: see [`super::orders`].
    pub const ORDER_WORDS: usize = 17;
    /// Threads (bits by number) that come last: unless a decision says so, none of them is chosen, or told to be able to go on,
    /// as long as another one can, and does more than poll.
    pub const LAST: usize = 18;

    // Written by the runtime.
    pub const LOG_USED: usize = 32;
    /// Choices made.
    pub const CHOICES: usize = 33;
    /// Why the exploration ended the execution: see [`super::end`].
    pub const END: usize = 34;
    /// Number + 1 of the first decision whose thread could not be chosen.
    pub const UNMET: usize = 35;
    /// Threads (numbers) that stand at conflicting accesses.
    pub const RACE_A: usize = 36;
    pub const RACE_B: usize = 37;
    /// Why there is no snapshot: see [`super::snapshot::refusal`].
    pub const REFUSED: usize = 38;
    /// 1: the process ended though threads could go on: they only repeated themselves.
    pub const PASSED_OVER: usize = 39;
}

pub mod strategy {
    /// The thread that ran goes on as long as it can; then the lowest number that can.
    pub const CONTINUE: u64 = 0;
    /// Any of those that can, each as likely.
    pub const RANDOM: u64 = 1;
    /// Burckhardt et al., ASPLOS 2010.
    pub const PCT: u64 = 2;
    /// Yuan, Yang, Gu, CAV 2018.
    pub const POS: u64 = 3;
    /// As POS, among those that serve the inputs that are wanted, or at least do not spoil them.
    pub const WANTED: u64 = 4;
    /// Threads have priorities; those that an order makes wait are chosen last.
    pub const ORDERED: u64 = 5;
    /// As POS; those that an order makes wait are chosen last.
    pub const ORDERED_POS: u64 = 6;
}

pub mod accesses {
    pub const NONE: u64 = 0;
    /// Those at the sites of the table.
    pub const SITES: u64 = 1;
    pub const ALL: u64 = 2;
}

pub mod end {
    /// The program ended, or the runtime ended it for what it found.
    pub const NONE: u64 = 0;
    pub const STEPS: u64 = 1;
    /// All who could run are asleep: another execution shows what follows.
    pub const ASLEEP: u64 = 2;
    pub const LOG_FULL: u64 = 4;
    /// Nobody can go on but the thread that is held.
    pub const HELD: u64 = 5;
}

/// Executions that are forked from a process which stands where exploration begins.
///
/// The host makes two named pipes in the session. A command is one word, [`snapshot::GO_ON`]. Before it the host has put into the
/// file of this module, whose length and place stay, what to do, and into the header what was there when the process stood: all
/// executions have the session of the process that stands, one after the other. Answers are three words: what happened, a process
/// id, and a number.
pub mod snapshot {
    pub const COMMANDS: &str = "snapshot-commands";
    pub const ANSWERS: &str = "snapshot-answers";
    /// The command: an execution.
    pub const GO_ON: u64 = 1;

    pub mod answer {
        /// It stands.
        pub const STANDS: u64 = 1;
        /// An execution ended: its process id, which is that of its group as well; `si_code` and, in the upper half, `si_status`
        /// of waitid(2). Its process is not reaped before the next command.
        pub const ENDED: u64 = 2;
        /// There is none: the kernel's error.
        pub const FAILED: u64 = 3;
    }

    /// Why a process cannot be continued more than once. 0: it can.
    pub mod refusal {
        /// Nobody of its threads decides what follows, but the watchdog.
        pub const NOBODY: u64 = 1;
        /// A thread is in a call into the kernel, or the runtime does not know it.
        pub const THREAD: u64 = 2;
        pub const CHILDREN: u64 = 3;
        /// A file that is not merely read, a pipe, a socket: what one execution does to it the next one would see.
        pub const DESCRIPTOR: u64 = 4;
        /// The same for memory.
        pub const SHARED_MEMORY: u64 = 5;
        /// Timers do not survive a fork.
        pub const TIMER: u64 = 6;
        /// The kernel, or the session, lacks what it takes.
        pub const UNSUPPORTED: u64 = 7;
        /// The program made, changed or removed files: an execution would find what another one left of them.
        pub const FILES: u64 = 8;
        pub const LAST: u64 = FILES;
    }
}

/// A visible plain access: `module, offset` of its site. As in the control file.
pub const SITE_WORDS: usize = 2;

/// An input that is wanted: the code of a [`Wish`], and the addresses of the two places.
pub const WANTED_WORDS: usize = 3;
pub const MOST_WANTED: usize = 32;

/// What is wanted of two places.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Wish {
    /// The step at `to` has its input from the one at `from`.
    From,
    /// It has its input from elsewhere.
    NotFrom,
    /// It comes before any at `from`.
    Before,
}

impl Wish {
    pub const fn code(self) -> u64 {
        match self {
            Self::From => 0,
            Self::NotFrom => 1,
            Self::Before => 2,
        }
    }

    pub const fn of(code: u64) -> Self {
        match code {
            0 => Self::From,
            1 => Self::NotFrom,
            _ => Self::Before,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Wanted {
    pub wish: Wish,
    /// Places in the code.
    pub to: u64,
    pub from: u64,
}

/// The table of orders that are wanted: each says that a step of one thread waits for a step of another.
///
/// A step is told by its thread's number, by where it meets others ([`Operation::counted_at`]) and by how many of the thread's
/// steps met others there before. Words: `slots, points` | slots of [`SLOT_WORDS`] | points of [`POINT_WORDS`] | a word for each
/// order, not 0 once it is over.
///
/// A *slot* is what a thread does at one place: `thread + 1` (0: empty), `place`, steps so far, and the points that are not
/// reached yet: the first and the one behind the last. It is found by [`slot_of`], or in the next one that has no other thread
/// and place. There is a power of two of them. A *point* is a step of its slot that an order is about: its number, and twice the
/// order's number, with 1 added if it is the one that waits. The points of a slot follow each other by number.
pub mod orders {
    pub const HEAD: usize = 2;
    pub const SLOT_WORDS: usize = 5;
    pub const POINT_WORDS: usize = 2;

    /// Where the search for a slot begins. `slots`: a power of two.
    pub const fn slot_of(thread: u32, place: u64, slots: u64) -> u64 {
        let mixed = (place ^ (thread as u64) << 48).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> 32) & slots.wrapping_sub(1)
    }
}

pub const RECORD_WORDS: usize = 8;
/// Word 0 of a record: `kind:8 | thread:16 | op:16 | class:8 | lowest bit of the rest: atomic`, from the least significant bit
/// up.
pub mod record {
    /// A thread stands before an operation: `head, object, second, bytes, site, ordinal, count, choices`. `op` is 0 for a plain
    /// access. `second`: the mutex of a condition wait. `ordinal`, `count`: synchronisation events that the thread has completed,
    /// and accesses since. `choices`: choices made so far.
    pub const PENDING: u64 = 1;
    /// A thread was chosen: `head, could be chosen, asleep, waiting, 0, 0, 0, choices`. Sets are bits by thread number;
    /// `waiting`: passed over because they only poll for what another thread is to do.
    pub const CHOICE: u64 = 2;

    /// A thread, when exploration begins or when it is created:
    /// `head, parent's number (2^32 − 1: none), spawn ordinal, 0, 0, 0, 0, choices`.
    pub const THREAD: u64 = 3;

    pub const fn head(kind: u64, thread: u32, op: u64, class: u64, atomic: bool) -> u64 {
        kind | (thread as u64 & 0xffff) << 8 | (op & 0xffff) << 24 | (class & 0xff) << 40 | (atomic as u64) << 48
    }
    pub const fn kind(head: u64) -> u64 {
        head & 0xff
    }
    pub const fn thread(head: u64) -> u32 {
        (head >> 8 & 0xffff) as u32
    }
    pub const fn op(head: u64) -> u64 {
        head >> 24 & 0xffff
    }
    pub const fn class(head: u64) -> u64 {
        head >> 40 & 0xff
    }
    pub const fn atomic(head: u64) -> bool {
        head >> 48 & 1 != 0
    }
}

/// [`Operation::second`] of an acquisition that does not wait for ever.
pub const NO_WAIT: u64 = u64::MAX;

/// A visible operation, as far as it takes to tell what it depends on. Both worlds decide that by the same rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Hash)]
pub struct Operation {
    /// Code of [`crate::record::Op`]; 0: a plain access.
    pub op: u64,
    pub object: u64,
    /// Mutex of a condition wait, [`NO_WAIT`], or 0.
    pub second: u64,
    /// Code of [`crate::record::AccessClass`]; 0: no access.
    pub class: u64,
    pub bytes: u64,
    pub atomic: bool,
}

impl Operation {
    pub const fn writes(&self) -> bool {
        self.class >= 2
    }

    const fn overlaps(&self, other: &Self) -> bool {
        self.object < other.object.wrapping_add(other.bytes) && other.object < self.object.wrapping_add(self.bytes)
    }

    /// Conflicting accesses, at least one of them plain: a data race where both are pending.
    pub const fn races(&self, other: &Self) -> bool {
        self.class != 0
            && other.class != 0
            && self.overlaps(other)
            && (self.writes() || other.writes())
            && !(self.atomic && other.atomic)
    }

    /// Whether the order of the two, of different threads, can matter: accesses of common bytes one of which writes; operations
    /// on one synchronisation object unless both only poll it.
    pub const fn depends(&self, other: &Self) -> bool {
        if self.class != 0 || other.class != 0 {
            return self.class != 0 && other.class != 0 && self.overlaps(other) && (self.writes() || other.writes());
        }
        let same = self.object != 0 && (self.object == other.object || self.object == other.second)
            || self.second != 0 && self.second != NO_WAIT && (self.second == other.object || self.second == other.second);
        same && !(self.polls() && other.polls())
    }

    /// Where it meets others, as far as inputs go: the first byte of what it touches, or a synchronisation object; 0: nowhere.
    /// Releases do not count: who had the lock before is known by how it took it.
    pub const fn meets_at(&self) -> u64 {
        use crate::record::Op;
        const LOWEST_ADDRESS: u64 = 1 << 12;
        if self.class != 0 {
            return self.object;
        }
        let releases = self.op == Op::Unlock as u64 || self.op == Op::UnlockShared as u64 || self.op == Op::CondWaitEnd as u64;
        if releases || self.object < LOWEST_ADDRESS { 0 } else { self.object }
    }

    /// Under which its steps are counted for [`orders`]: where it meets others, releases apart from everything else; 0: nowhere.
    pub const fn counted_at(&self) -> u64 {
        use crate::record::Op;
        const RELEASE: u64 = 1 << 63;
        if self.class == 0 && (self.op == Op::Unlock as u64 || self.op == Op::UnlockShared as u64) {
            return self.object | RELEASE;
        }
        self.meets_at()
    }

    /// Whether it has an input: what it reads, or who came before it.
    pub const fn takes(&self) -> bool {
        self.class != 2 && self.class != 4
    }

    /// Whether it is an input of others.
    pub const fn gives(&self) -> bool {
        self.class == 0 || self.writes()
    }

    const fn polls(&self) -> bool {
        use crate::record::Op;
        self.op == Op::LockShared as u64 || self.op == Op::UnlockShared as u64 || self.op == Op::Acquire as u64
    }
}

#[cfg(test)]
mod tests {
    use super::Wish;

    #[test]
    fn wishes_survive_their_codes() {
        for wish in [Wish::From, Wish::NotFrom, Wish::Before] {
            assert_eq!(Wish::of(wish.code()), wish);
        }
    }
}
