//! What a concurrent execution does, as instrumentation tells it that knows data and control dependences.
//!
//! Values live in *registers* of a function's activation: whatever the instrumentation can name without an address. Results of
//! loads, parameters, results of calls, phis, and local variables whose address is never taken are registers. Arithmetic is no
//! event: an operand is given by its *roots*, the registers from which it was computed. The address of an access is no
//! operand of it; the roots of the address are given apart, and count only if asked for (`Options::addresses`).
//!
//! How constructs are told:
//! - A phi is a [`Step::Compute`] from the roots of the operand that was taken, told before the [`Step::Reach`] of its block:
//!   it is the branch that chose.
//! - A call of a function that is not instrumented is a [`Step::Compute`] from the roots of all arguments.
//! - An atomic instruction stands between [`Step::Acquire`] and [`Step::Release`] of a lock that is named after its bytes
//!   ([`Lock::of_atomic`]); a read-modify-write is a load and a store between them. If it synchronises, [`Step::Signal`] and
//!   [`Step::Wait`] on an object of that name say so.
//! - Waiting on a condition variable is `Release` of the mutex, `Wait`, `Acquire`.
//! - Memory that begins a new life (allocated, freed, a frame of the stack that ended) is [`Step::Renew`].

/// A thread. Numbers are never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Thread(pub u32);

/// A lock of the program, or of the hardware ([`Lock::of_atomic`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Lock(pub u64);

impl Lock {
    /// The lock that makes atomic instructions on `bytes` exclude each other.
    ///
    /// An address of user space leaves the top bit free, so this is no lock of the program.
    pub fn of_atomic(bytes: Bytes) -> Lock {
        Lock(bytes.start | 1 << 63)
    }
}

/// What threads signal and wait for: a condition, a semaphore, an atomic variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Object(pub u64);

/// A place in the source. The feeder knows what the number stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Line(pub u32);

/// A register of the thread's innermost activation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Register(pub u32);

/// Where the paths from a branch meet again: the block of its function that post-dominates it immediately.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Meeting(pub u32);

/// A range of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Bytes {
    pub start: u64,
    pub len: u32,
}

impl Bytes {
    pub fn new(start: u64, len: u32) -> Bytes {
        Bytes { start, len }
    }

    /// The address behind the last byte. A range that would leave the address space ends with it.
    pub fn end(self) -> u64 {
        self.start.saturating_add(u64::from(self.len))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Mode {
    Exclusive,
    /// As a reader: excludes only those that hold the lock exclusively.
    Shared,
}

#[derive(Clone, Copy, Debug)]
pub struct Event<'a> {
    pub thread: Thread,
    pub line: Line,
    pub step: Step<'a>,
}

#[derive(Clone, Copy, Debug)]
pub enum Step<'a> {
    /// A function begins. Its register number `i` is the parameter that was computed from the caller's registers
    /// `arguments[i]`.
    Enter {
        arguments: &'a [&'a [Register]],
    },
    /// The innermost function ends, returning or by unwinding; its result was computed from its registers `result` and goes
    /// into the caller's register `into`.
    Exit {
        result: &'a [Register],
        into: Option<Register>,
    },
    Load {
        bytes: Bytes,
        address: &'a [Register],
        into: Register,
    },
    Store {
        bytes: Bytes,
        address: &'a [Register],
        from: &'a [Register],
    },
    /// Every location of `bytes` is overwritten by itself, as `memset` does.
    Fill {
        bytes: Bytes,
        from: &'a [Register],
    },
    /// Every location is read and written by itself, as `memcpy` and `memmove` do.
    Copy {
        from: u64,
        to: u64,
        len: u32,
    },
    Compute {
        into: Register,
        from: &'a [Register],
    },
    /// A conditional jump on a value computed from `on`. What this activation does until `meeting` is reached is control
    /// dependent on it.
    Branch {
        on: &'a [Register],
        meeting: Meeting,
    },
    /// The block is entered: branches whose paths meet here have no influence any more.
    Reach {
        meeting: Meeting,
    },
    /// Code that is not instrumented goes on, with values computed from these registers; `accesses`: the next load or store is
    /// its. No operation of a unit.
    Outside {
        from: &'a [Register],
        accesses: bool,
    },
    /// What the thread did cannot be told, or not all of it. No operation of a unit.
    Lost,
    Renew {
        start: u64,
        len: u64,
    },
    Acquire {
        lock: Lock,
        mode: Mode,
    },
    Release {
        lock: Lock,
    },
    /// Before the first step of `child`.
    Fork {
        child: Thread,
    },
    /// Behind the last step of `child`.
    Join {
        child: Thread,
    },
    Signal {
        object: Object,
    },
    /// Behind every signal of the object so far.
    Wait {
        object: Object,
    },
    /// The thread arrives at a barrier, and leaves it.
    Arrive {
        barrier: Object,
    },
    Leave {
        barrier: Object,
    },
}
