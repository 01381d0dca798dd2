//! Records of a thread stream (`thread-NNNN`).
//!
//! A stream is a sequence of chunks of [`CHUNK_BYTES`]. A chunk is a header of [`CHUNK_HEADER_WORDS`] little-endian 64-bit words
//! followed by records, each one or more words; the rest of the chunk is zero. Records never straddle a chunk. A word zero ends
//! the records of a chunk, so an unfinished chunk can be read up to its last completed record.
//!
//! The file begins with the chunk that is being written, or was written last. A chunk that is full is compressed
//! ([`crate::compress`]) and appended behind it, so the first one is at byte [`CHUNK_BYTES`]; a header in front, and zeros behind
//! up to a multiple of eight bytes.
//!
//! The first word of a record is `top:11 | kind:5 | low:48` from the most significant bit down.
//!
//! | kind | record | top | low | further words |
//! |---|---|---|---|---|
//! | 1..=15 | access | site − previous site + [`SITE_BIAS`] | address | none |
//! | [`SITE`] | sets the previous site | 0 | site | none |
//! | [`CONTEXT`] | the call context of what follows | 0 | context number | none |
//! | [`CONTEXT_DEFINITION`] | a new call context | 0 | call site | `parent:32 (high) \| number:32 (low)` |
//! | [`SYNC`] | an event with a place in the global order | operation, see [`Op`] | object | `arguments:16 (high) \| sequence:48`; `aux:16 (high) \| site:48`; then that many argument words |
//! | [`RANGE`] | an access of any length | class | address | length; site |
//! | [`TURN`] | serial mode: the thread goes on running after another one ran | 0 | accesses executed since the thread's last [`SYNC`] record with an ordinal | sequence |
//! | | serial mode: the thread waits inside the operation that it has begun, others run | [`TURN_WAITS`] | the same | sequence |
//! | | serial mode: the recording ended while the thread stood still and could have gone on | [`TURN_STANDS`] | the same | sequence |
//! | [`EXECUTED`] | accesses executed by the thread so far, kept or not | 0 | count | none |
//! | [`FRAME`] | where the frame lay of the function that runs in the context defined right before, when it was defined | 0 | canonical frame address | stack pointer inside the function |
//! | [`ACTIVATION`] | a function begins that the compiler's plugin has instrumented | which process of a line of forks | its table ([`crate::deep`]) | none |
//! | [`SEGMENT`] | the innermost activation goes on with this segment of its table | 0 | segment | none |
//! | [`RESUME`] | the same of an activation that control comes back to | 0 | segment | activation |
//! | [`COUNTED_DEFINITION`] | a loop that the compiler's plugin has given a second version | operations that come before the exit | the loop | `fixed:16 \| bases:16 \| operations:32 (low)`; each fixed base; each operation, an access with its site behind it |
//! | [`COUNTED`] | iterations of such a loop | 0 | the loop | iterations, each other base |
//! | [`NEST_DEFINITION`] | a nest of counted loops that the compiler's plugin has given a second version | 0 | the nest | `fixed:15 \| values:16 \| operations:32 (low)`; each fixed value; that many words of operations ([`crate::nest`]) |
//! | [`NEST`] | such a nest ran | 0 | the nest | each other value |
//! | [`VALUE`] | what the stream's last access, of at most 8 bytes, read or has written | [`value`] | low 48 bits of the value | the high 16 bits, if [`value::LONG`] |
//!
//! **Nests.** Fixed values are the first ones. All words but the first of either record, and but those of operations, have
//! [`crate::nest::WRITTEN`] set. A definition holds for the rest of the stream; a later one of the same nest replaces it.
//!
//! **Counted loops** stand in recordings of version 3 alone. An operation is the first word of a [`SEGMENT`] or of an access: its
//! top bits are the number of a base, its low bits what the address grows by in each iteration, as a signed number. Fixed bases
//! are the first ones. A [`COUNTED`] record stands for what its operations tell: so many times all of them in their order, and
//! then once more those that come before the exit. A definition holds for the rest of the stream; a later one of the same loop
//! replaces it.
//!
//! A *site* is the return address of the call into the runtime: the instruction after the access. Context number 0 is the
//! thread's start routine without callers. Every chunk starts afresh: previous site 0, and a `CONTEXT` before the first record
//! that needs it. Context definitions are per thread and hold for the rest of the stream.
//!
//! **Order.** Sequence numbers are unique over the recording. An access belongs behind the record with a sequence number that
//! precedes it in its own stream. In serial mode merging streams by sequence number gives the one total order in which everything
//! happened; in free mode it gives an order that agrees with synchronisation.
//!
//! **Ordinals.** The k-th [`SYNC`] record of a thread whose operation [`Op::has_ordinal`], counted from 0, has synchronisation
//! ordinal k.

/// Bytes of a chunk, header included.
pub const CHUNK_BYTES: usize = 1 << 18;
pub const CHUNK_HEADER_WORDS: usize = 4;
/// Word 0 of a chunk header.
pub const CHUNK_MAGIC: u64 = 0x314b_4e48_4353_4152; // "RASCHNK1"
/// Word 0 of the header of a chunk whose records are compressed.
pub const COMPRESSED_MAGIC: u64 = 0x324b_4e48_4353_4152; // "RASCHNK2"
/// Word 1: `index:32 (high) | thread number:32 (low)`.
/// Word 2: bytes used by records after the header, 0 while the chunk is being written. Of a compressed chunk
/// `bytes of records:32 (high) | bytes that they take compressed:32 (low)`.
pub const CHUNK_USED_WORD: usize = 2;
/// Word 3: [`Checksum`] of the used bytes, 0 while the chunk is being written; of a compressed chunk, of the bytes behind the
/// header up to the next multiple of eight.
pub const CHUNK_CHECKSUM_WORD: usize = 3;

pub const LOW_BITS: u32 = 48;
pub const LOW_MASK: u64 = (1 << LOW_BITS) - 1;
pub const KIND_BITS: u32 = 5;
pub const KIND_MASK: u64 = (1 << KIND_BITS) - 1;
pub const TOP_SHIFT: u32 = LOW_BITS + KIND_BITS;
/// Added to the signed distance of two sites so that it fits the 11 top bits.
pub const SITE_BIAS: u64 = 1024;

pub const SITE: u64 = 16;
pub const CONTEXT: u64 = 17;
pub const CONTEXT_DEFINITION: u64 = 18;
pub const SYNC: u64 = 19;
pub const RANGE: u64 = 20;
pub const TURN: u64 = 21;
/// Top bits of a [`TURN`] that begins a wait.
pub const TURN_WAITS: u64 = 1;
/// Top bits of a [`TURN`] that says where a thread stood that could have gone on when the recording ended.
pub const TURN_STANDS: u64 = 2;
pub const EXECUTED: u64 = 22;
pub const FRAME: u64 = 23;
pub const ACTIVATION: u64 = 24;
pub const SEGMENT: u64 = 25;
/// An activation is named by its number among those that its thread recorded in its process, from 1, and above
/// [`PROCESS_SHIFT`] by the top bits of its [`ACTIVATION`]; 0: one that was not recorded.
pub const RESUME: u64 = 26;
pub const PROCESS_SHIFT: u32 = 40;
pub const COUNTED_DEFINITION: u64 = 27;
pub const COUNTED: u64 = 28;
pub const NEST_DEFINITION: u64 = 29;
pub const NEST: u64 = 30;
pub const VALUE: u64 = 31;

pub use crate::{counted, value};

/// Longest record in words but for loops: a `SYNC` with its arguments.
pub const MAX_ARGUMENTS: usize = 8;
pub const MAX_RECORD_WORDS: usize = 3 + MAX_ARGUMENTS;

/// What an access does to its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum AccessClass {
    Read = 1,
    Write = 2,
    /// A read followed by a write of the same bytes (compound assignment), plain.
    ReadWrite = 3,
    /// The bytes are given back (`free`, `munmap`, `close`): they conflict with whoever still touches them. In ranges only.
    End = 4,
}

impl AccessClass {
    pub const fn from_code(code: u64) -> Option<Self> {
        match code {
            1 => Some(Self::Read),
            2 => Some(Self::Write),
            3 => Some(Self::ReadWrite),
            4 => Some(Self::End),
            _ => None,
        }
    }
    pub const fn reads(self) -> bool {
        matches!(self, Self::Read | Self::ReadWrite)
    }
    pub const fn writes(self) -> bool {
        !matches!(self, Self::Read)
    }
}

/// The kind (1..=15) of an access of `1 << log2_size` bytes, `log2_size` ≤ 4.
pub const fn access_kind(class: AccessClass, log2_size: u32) -> u64 {
    (class as u64) * 5 + log2_size as u64 - 4
}

/// Inverse of [`access_kind`]: class and log2 of the size.
pub const fn access_of_kind(kind: u64) -> Option<(AccessClass, u32)> {
    if kind == 0 || kind > 15 {
        return None;
    }
    let code = kind + 4;
    match AccessClass::from_code(code / 5) {
        Some(class) => Some((class, (code % 5) as u32)),
        None => None,
    }
}

/// First word of a record.
pub const fn word(top: u64, kind: u64, low: u64) -> u64 {
    (top << TOP_SHIFT) | (kind << LOW_BITS) | (low & LOW_MASK)
}
pub const fn top_of(word: u64) -> u64 {
    word >> TOP_SHIFT
}
pub const fn kind_of(word: u64) -> u64 {
    (word >> LOW_BITS) & KIND_MASK
}
pub const fn low_of(word: u64) -> u64 {
    word & LOW_MASK
}

/// Checksum of a chunk's records: a multiply-rotate hash over words, not cryptographic; it finds torn and flipped bytes.
#[derive(Clone, Copy, Debug)]
pub struct Checksum(u64);

impl Checksum {
    pub const fn new() -> Self {
        Self(0x9e37_79b9_7f4a_7c15)
    }
    #[inline]
    pub const fn add(self, word: u64) -> Self {
        Self((self.0 ^ word).wrapping_mul(0xff51_afd7_ed55_8ccd).rotate_left(29))
    }
    /// Never 0, which means "not finished".
    pub const fn finish(self) -> u64 {
        let value = self.0 ^ (self.0 >> 32);
        if value == 0 { 1 } else { value }
    }
}

impl Default for Checksum {
    fn default() -> Self {
        Self::new()
    }
}

macro_rules! operations {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $ordinal:literal;)*) => {
        /// Operations of [`SYNC`] records. "object" is the record's low field; arguments are named in order. `pc` is the site.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u16)]
        pub enum Op { $($(#[$doc])* $name = $code,)* }
        impl Op {
            pub const ALL: &[Op] = &[$(Op::$name,)*];
            pub const fn from_code(code: u64) -> Option<Self> {
                match code { $($code => Some(Self::$name),)* _ => None }
            }
            /// Whether the operation counts as one of its thread's synchronisation ordinals. Allocation and bookkeeping do
            /// not: a library may allocate in whichever thread comes first, and ordinals must survive that.
            pub const fn has_ordinal(self) -> bool {
                match self { $(Self::$name => $ordinal,)* }
            }
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => stringify!($name),)* }
            }
        }
    };
}

operations! {
    /// First record of a thread. Object: kernel thread id. Arguments: parent's thread number (`u64::MAX` for the initial thread),
    /// spawn ordinal (0 = first thread its parent created), stack low, stack high (exclusive; thread-local storage lies inside
    /// for created threads), TLS low, TLS high (initial thread only, else 0).
    ThreadStart = 1, true;
    /// Last record of a thread that ended.
    ThreadEnd = 2, true;
    /// Object: child's thread number. Argument: spawn ordinal. Recorded before the child can run.
    ThreadCreate = 3, true;
    /// Object: child's thread number. Recorded when the join has succeeded.
    ThreadJoin = 4, true;
    /// Object: child's thread number.
    ThreadDetach = 5, true;

    /// Exclusive acquisition that succeeded. Aux: [`lock_kind`] flags.
    Lock = 16, true;
    /// Exclusive release. Recorded before the lock is free.
    Unlock = 17, true;
    /// Shared acquisition that succeeded.
    LockShared = 18, true;
    /// Shared release.
    UnlockShared = 19, true;
    /// A try or timed acquisition that failed. Argument: errno.
    LockFailed = 20, true;
    /// The thread found the lock taken and is going to block (its later `Lock` record says that it got it). Aux: 1 if shared.
    LockRequest = 21, false;
    /// Inner acquisition of a recursive lock: no order, no change of what is held.
    LockAgain = 22, true;
    /// Inner release of a recursive lock.
    UnlockInner = 23, true;
    /// The lock begins its life here: a new identity at this address. Aux: [`lock_kind`] flags.
    LockInit = 24, false;
    LockDestroy = 25, false;

    /// Object: condition variable. Argument: mutex, which is released here.
    CondWaitBegin = 32, true;
    /// Object: condition variable. Arguments: mutex (held again here), result (0, or errno), sequence number of the waking signal
    /// (0: unknown, or timed out).
    CondWaitEnd = 33, true;
    CondSignal = 34, true;
    CondBroadcast = 35, true;
    CondInit = 36, false;
    CondDestroy = 37, false;

    /// Arguments: generation (how often this barrier has tripped before), participants.
    BarrierEnter = 48, true;
    /// Argument: generation.
    BarrierExit = 49, true;
    BarrierInit = 50, false;
    BarrierDestroy = 51, false;

    /// Recorded before the count rises.
    SemaphorePost = 64, true;
    /// Recorded when the count was taken.
    SemaphoreWait = 65, true;
    SemaphoreFailed = 66, true;
    /// Argument: its count. Aux: [`semaphore`].
    SemaphoreInit = 67, false;
    /// Aux: [`semaphore`].
    SemaphoreDestroy = 68, false;

    /// The thread runs the once routine (or static initialiser) itself. Object: the once control or guard.
    OnceBegin = 80, true;
    /// It has completed.
    OnceDone = 81, true;
    /// The thread found it completed.
    OnceSeen = 82, true;

    /// Release on a synchronisation object: pipe or socket writes, futex wakes, annotations, exit of the initialisation of a
    /// loaded library. Whoever acquires the object later is ordered behind. Aux: [`sync_source`].
    Release = 96, true;
    /// Acquire on a synchronisation object. Aux: [`sync_source`].
    Acquire = 97, true;
    /// A potentially blocking call that orders nothing. Aux: [`sync_source`]. Argument: result.
    Blocking = 98, true;

    /// Atomic load. Aux: [`atomic_aux`]. Argument: value read (low 64 bits).
    AtomicLoad = 112, true;
    /// Argument: value written.
    AtomicStore = 113, true;
    /// Read-modify-write, successful compare-exchange included. Arguments: old value, new value.
    AtomicRmw = 114, true;
    /// Failed compare-exchange: a load with the failure order. Argument: value read.
    AtomicCasFailed = 115, true;
    /// Aux: [`atomic_aux`].
    Fence = 116, true;

    /// Object: address. Arguments: size as asked for, ordinal among the thread's allocations at this site, bytes behind it that
    /// may be used, too. Aux: [`allocation_kind`].
    Allocate = 128, false;
    /// Object: address. Aux: [`free`].
    Free = 129, false;

    /// The thread gave up its turn of its own accord (`sched_yield`).
    Yield = 144, true;
    /// A sleep. Argument: nanoseconds asked for.
    Sleep = 145, true;
    /// A handler starts to run on this thread. Object: signal number.
    SignalEnter = 146, false;
    SignalExit = 147, false;
    /// Object: child's process id. Argument: its place among the processes that this one made (`u64::MAX`: it runs unobserved).
    Fork = 148, true;
    /// The process is about to be replaced or to end through `_exit`, `exec` or the like. Object: 0. Argument, where another
    /// program takes its place: the place of that one.
    ProcessEnd = 149, false;
    /// The thread is about to end the process, and lets others that live go on first. Object: the same for all. Aux:
    /// [`exit_stage`].
    ExitBegin = 150, true;
    /// Serial mode: it goes on: the others have ended, are blocked, or only repeat themselves.
    ExitGoesOn = 151, true;

    /// Enforcement: the thread stands at its goal, about to access. Object: address. Arguments: class, size.
    GoalReached = 160, false;
    /// Every thread is blocked; this thread is part of what was found. Object: what it waits for. Arguments: op code of the
    /// wait, thread number of the holder (`u64::MAX`: none known), 1 if the thread does not wait but repeats itself there for
    /// ever (then 0 as code is a plain access; absent: 0).
    Blocked = 161, false;
    /// Recording of plain accesses stopped here (disk full, limit reached). Argument: errno or 0.
    Truncated = 162, false;
    /// External input, which a re-execution may not see again. Object: of a signal its number. Aux: [`sync_source`]. Arguments:
    /// accesses executed since the last operation with an ordinal; of a descriptor: [`input`].
    ExternalInput = 163, false;

    /// A call of an instrumented module into one that is neither instrumented nor modelled begins. Object: the function. Aux:
    /// [`call_aux`]. Arguments: address of its frame, number of the set of what it can reach (0: everything).
    CallBegin = 176, true;
    /// Of a set, or of a place that sets lead to; complete when a call names it. Object: its number, among sets or places. Aux:
    /// see [`reach`].
    CallReaches = 177, false;
    /// It has returned. Object and aux: as of its begin. Argument: address of its frame.
    CallEnd = 178, true;

    /// A wait loop is entered, or its predicate is looked at for the first time. Object: its table ([`crate::deep`]). Aux: its
    /// [`crate::deep::loop_kind`]. Argument: the condition variable that it waits on (0: not known before the loop).
    LoopEnter = 192, false;
    /// It is left, other than by an exception. Object, aux and argument: as of `LoopEnter`.
    LoopExit = 193, false;
}

/// Aux of `Lock…`; of `ThreadJoin` [`lock_kind::TRY`] alone.
pub mod lock_kind {
    pub const MUTEX: u16 = 1;
    pub const RWLOCK: u16 = 2;
    pub const SPIN: u16 = 3;
    /// `flockfile`, annotated user locks.
    pub const OTHER: u16 = 4;
    pub const KIND_MASK: u16 = 7;
    /// Recursive mutex.
    pub const RECURSIVE: u16 = 8;
    /// By a try or timed operation: a thread that takes (or joins) so does not wait for ever.
    pub const TRY: u16 = 16;
    /// A mutex that checks for errors: it refuses what is wrong, and says so.
    pub const REFUSES: u16 = 32;
}

/// Aux of `Release`, `Acquire`, `Blocking`.
pub mod sync_source {
    pub const FUTEX: u16 = 1;
    pub const FILE: u16 = 2;
    pub const ANNOTATION: u16 = 3;
    pub const SIGNAL: u16 = 4;
    pub const PROCESS: u16 = 5;
    pub const EXIT_HANDLER: u16 = 6;
    pub const OTHER: u16 = 7;
    /// Queues and sets of semaphores by number, locks of files, handlers of `fork`.
    pub const KERNEL: u16 = 8;
}

/// Arguments of `ExternalInput` behind the first, of what was read from a descriptor: what the name is (high 32 bits) and the
/// descriptor's number plus 1 (low), then the name in words of eight bytes, padded with zeros.
pub mod input {
    pub const WORDS: usize = super::MAX_ARGUMENTS - 1;
    pub const NAME_BYTES: usize = 8 * (WORDS - 1);
    /// The path of the file, as the kernel tells it; of a longer one its last bytes.
    pub const PATH: u64 = 1;
    /// The address of the other end, a `struct sockaddr`.
    pub const PEER: u64 = 2;
}

/// Aux of `ExitBegin`, `ExitGoesOn`.
pub mod exit_stage {
    /// Somebody asks for the end; no handler of `exit` has run.
    pub const ASKED: u16 = 1;
    /// What was to run before the end has run.
    pub const HANDLED: u16 = 2;
}

/// Aux of `ThreadCreate`.
pub mod thread_create {
    /// Nobody has to join it.
    pub const DETACHED: u16 = 1;
}

/// Aux of `CallBegin` and `CallEnd`.
pub mod call_aux {
    /// The frame is on no stack that is known, so that it says nothing of other calls.
    pub const ELSEWHERE: u16 = 1;
}

/// Aux of `CallReaches`, and what its arguments hold.
pub mod reach {
    /// More of a set: pairs of a first address and bytes behind it; of a thread whose handle can be reached its number and
    /// [`THREAD`].
    pub const RANGES: u16 = 0;
    /// A place: a pair as above, then numbers of the places that it leads to, two in a word, the lower half first; 0 is none. It
    /// replaces what was told of the place before.
    pub const PLACE: u16 = 1;
    /// Numbers of further places that a place leads to.
    pub const FURTHER: u16 = 2;
    /// More of a set: numbers of places. What they lead to at the time of the call belongs to the set as well.
    pub const PLACES: u16 = 3;
    /// In place of a number of bytes.
    pub const THREAD: u64 = u64::MAX - 1;
    /// The set of everything, which is never written out.
    pub const EVERYTHING: u64 = 0;
}

/// Aux of `Allocate`.
pub mod allocation_kind {
    pub const HEAP: u16 = 1;
    pub const MAPPING: u16 = 2;
    /// A descriptor of a file, as eight bytes at [`super::descriptor_address`].
    pub const DESCRIPTOR: u16 = 3;
}

/// Aux of `Free`.
pub mod free {
    /// The block had been given back before, and not been given out since.
    pub const AGAIN: u16 = 1;
}

/// Aux of `CondWaitBegin`, `CondSignal`, `CondBroadcast`, `CondDestroy`: it was destroyed, and not initialised since.
pub const CONDITION_DESTROYED: u16 = 1;

/// Aux of `SemaphoreInit` and `SemaphoreDestroy`.
pub mod semaphore {
    /// Opened or closed by name. A process that opens a name twice has it at one address, until it is closed as often.
    pub const NAMED: u16 = 1;
    /// glibc's `SEM_VALUE_MAX`.
    pub const MOST: u64 = i32::MAX as u64;
}

/// Where the bytes of a descriptor are taken to be: no program's memory lies there. Descriptors beyond [`MOST_DESCRIPTORS`] have
/// none.
pub const fn descriptor_address(file: i32) -> Option<u64> {
    if file < 0 || file as u64 >= MOST_DESCRIPTORS { None } else { Some(DESCRIPTORS + 8 * file as u64) }
}

/// Inverse of [`descriptor_address`].
pub const fn descriptor_at(address: u64) -> Option<u64> {
    if address >= DESCRIPTORS && address < DESCRIPTORS + 8 * MOST_DESCRIPTORS { Some((address - DESCRIPTORS) / 8) } else { None }
}

const DESCRIPTORS: u64 = (0x80 << 36) + (0xfe << 32);
pub const MOST_DESCRIPTORS: u64 = 1 << 20;

/// Aux of atomics: `size_log2:3 | order:3 | failure_order:3`, orders as in the `__tsan_atomic*` interface.
pub mod atomic_aux {
    pub const RELAXED: u16 = 0;
    pub const CONSUME: u16 = 1;
    pub const ACQUIRE: u16 = 2;
    pub const RELEASE: u16 = 3;
    pub const ACQ_REL: u16 = 4;
    pub const SEQ_CST: u16 = 5;
    pub const fn pack(size_log2: u16, order: u16, failure_order: u16) -> u16 {
        size_log2 | (order << 3) | (failure_order << 6)
    }
    pub const fn size_log2(aux: u16) -> u16 {
        aux & 7
    }
    pub const fn order(aux: u16) -> u16 {
        (aux >> 3) & 7
    }
    pub const fn failure_order(aux: u16) -> u16 {
        (aux >> 6) & 7
    }
}

const _: () = {
    assert!(access_kind(AccessClass::Read, 0) == 1 && access_kind(AccessClass::ReadWrite, 4) == 15);
    assert!(CHUNK_BYTES.is_multiple_of(4096) && CHUNK_HEADER_WORDS * 8 < CHUNK_BYTES);
};
