//! What the runtime knows of each thread, and the guard under which its code runs.

use crate::detect;
use crate::record::{filter, recorder, tree};
use crate::serial::sched::Wait;
pub use crate::system::guard::Runtime;
use crate::system::memory::{List, Map};
use crate::system::shared::Shared;
use crate::system::tls::{self, Call, Hot, hot};
use crate::system::{header, signals, sys};
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering::*};
use rashomon_abi::MAX_THREADS;
use rashomon_abi::header::field;

/// Entries of the shadow call stack; deeper calls are counted only.
const SHADOW_CALLS: usize = 1 << 15;
pub const NO_THREAD: u32 = u32::MAX;

#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum State {
    Runnable,
    Running,
    Blocked,
    /// In a call into the kernel that the scheduler let go of.
    External,
    /// It could run, but stands at a place of the goal until another thread arrives. See [`crate::serial::elastic`].
    Held,
    Ended,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct Held {
    pub lock: u64,
    pub shared: bool,
    /// Grows with every lock that is taken.
    pub since: u64,
}

/// Who may touch what of a thread's record:
/// - any thread at any time: atomics and [`Shared`] words, and what is written once before the thread is known to others
///   (`number`, `parent`, `spawn_ordinal`, `schedule_index`, and `stack` and `tls` once it has begun);
/// - in serial mode, the holder of the turn or of the scheduler's lock: everything of threads that stand still (the scheduler's
///   part below, `held`, `hot`);
/// - the thread itself: everything else.
///
/// Nothing that is not of the first kind is polled.
pub struct Thread {
    pub number: u32,
    pub parent: u32,
    pub spawn_ordinal: u32,
    /// Threads created so far.
    pub spawned: u32,
    /// Synchronisation events completed.
    pub ordinal: u32,
    /// Entry of the control file's thread table, or `NO_THREAD`.
    pub schedule_index: u32,
    pub kernel_id: Shared<u32>,
    /// The same as libc remembers it, and mutexes that are held: it stays in an execution from a snapshot.
    pub libc_id: Shared<u32>,
    pub handle: AtomicU64,
    /// Null until the thread has begun and after it ended.
    pub hot: *const Hot,
    /// Signals that its creator blocked, where the new thread is to have the same mask: they are blocked until it is known.
    pub start_mask: u64,
    pub takes_start_mask: bool,
    pub start_routine: Option<unsafe extern "C" fn(*mut u8) -> *mut u8>,
    pub start_argument: *mut u8,
    pub ended: AtomicU32,
    pub detached: Shared<bool>,
    pub joined: Shared<bool>,
    pub stack: (u64, u64),
    pub tls: (u64, u64),

    // Recorder.
    pub chunk: *mut u64,
    pub chunk_index: u32,
    /// Current call context, the one last written to the chunk, and the context of each entry of the shadow stack.
    pub context: u32,
    pub written_context: u32,
    pub contexts: Map,
    pub context_count: u32,
    pub context_path: List<u32>,
    pub keep_accesses: bool,
    pub tree: tree::Tree,
    pub executed: u64,
    /// `executed` when the chunk was begun.
    pub executed_before_chunk: u64,
    /// Number of the place that the child it forked last was given.
    pub place_given: u64,
    /// Accesses since the last synchronisation event, up to the last reload of the quantum, and that reload.
    pub since_sync: u64,
    /// A replayed turn ended with the wait that the thread is in.
    pub turn_ended: bool,
    /// Where the program called for another process.
    pub fork_site: u64,
    pub reload: i64,
    /// Allocations per call site.
    pub allocations: Map,

    // Scheduler.
    pub state: Shared<State>,
    /// Whether it has begun: a turn that it was given before was left lying.
    pub arrived: Shared<bool>,
    /// Whether the call that makes it is over: it will begin by itself.
    pub made: AtomicU32,
    /// Whether it is about to execute its routine.
    pub begun: AtomicU32,
    pub baton: AtomicU32,
    pub wait: Wait,
    pub wake: crate::serial::sched::Wake,
    pub wait_site: u64,
    pub held: List<Held>,
    /// Looks at the same thing without anything happening: loads, failed tries.
    pub spins: u32,
    /// Events since others were last given a chance.
    pub points: u32,
    pub priority: u64,
    pub goal: crate::serial::replay::GoalAccess,
    pub elastic: crate::serial::elastic::Local,
    pub explore: crate::serial::explore::Pending,
    pub standing: crate::serial::snapshot::Standing,
    pub linger: crate::serial::linger::Local,
    pub endless: crate::serial::endless::Local,
    pub pending_signals: AtomicU32,
    pub arrived_signals: signals::Arrived,
    /// `pthread_cancel` was called for it.
    pub cancelled: AtomicU32,
    /// The waking signal's sequence number for the condition this thread waits on.
    pub woken_by: u64,
    /// Object of the queue it stands in (0: none, or let out), its place there, and which wakes it takes (futex only).
    pub condition: u64,
    pub ticket: u64,
    pub futex_mask: u32,
    /// Looks at a clock in a row, and the ordinal at the last of them.
    pub looks: u32,
    pub look_ordinal: u32,
    /// Random words given to the program.
    pub random_words: u64,
    /// Once controls whose routine this thread runs.
    pub once: List<u64>,
    /// Set when the watchdog took the turn away.
    pub evicted: AtomicU32,
    /// The schedule's turn in which that was.
    pub evicted_turn: u32,
    /// In a call into the kernel for which it gave the turn up.
    pub in_call: AtomicU32,
    pub key_rounds: u32,

    pub detect: detect::local::Local,
    pub provoke: crate::provoke::Local,
    pub waiting: crate::serial::standstill::Waiting,
}

static TABLE: [AtomicPtr<Thread>; MAX_THREADS] = [const { AtomicPtr::new(core::ptr::null_mut()) }; MAX_THREADS];
static COUNT: AtomicU32 = AtomicU32::new(0);

pub fn count() -> u32 {
    COUNT.load(Acquire)
}

/// The thread of that number, null if there is none.
pub fn by_number(number: u32) -> *mut Thread {
    if number as usize >= MAX_THREADS { core::ptr::null_mut() } else { TABLE[number as usize].load(Acquire) }
}

/// All threads that were ever created.
pub fn all() -> impl Iterator<Item = *mut Thread> {
    (0..count()).map(by_number).filter(|thread| !thread.is_null())
}

/// Registers a new thread. Null when there are too many.
pub fn register(parent: u32, spawn_ordinal: u32) -> *mut Thread {
    let memory = sys::map_anonymous(size_of::<Thread>()).cast::<Thread>();
    if memory.is_null() {
        return memory;
    }
    // SAFETY: fresh memory, all zero.
    unsafe { register_in(memory, parent, spawn_ordinal) }
}

/// The same in the memory of a thread that is over; it is no longer found by its number.
///
/// # Safety
/// Nobody but those who look at all threads knows it.
pub unsafe fn register_again(over: &mut Thread, parent: u32, spawn_ordinal: u32) -> *mut Thread {
    TABLE[over.number as usize].store(core::ptr::null_mut(), Release);
    over.held.clear_and_free();
    over.once.clear_and_free();
    let memory: *mut Thread = over;
    // SAFETY: by the contract. Who looks meanwhile sees a thread of which nothing is known.
    unsafe {
        memory.write_bytes(0, 1);
        register_in(memory, parent, spawn_ordinal)
    }
}

/// # Safety
/// Memory for a record, all zero, that stays.
unsafe fn register_in(memory: *mut Thread, parent: u32, spawn_ordinal: u32) -> *mut Thread {
    let number = COUNT.fetch_add(1, AcqRel);
    if number as usize >= MAX_THREADS {
        sys::die(&[b"more threads than a recording can hold (65536)"]);
    }
    // SAFETY: by the contract; written before anybody sees it. All-zero bytes are valid for the fields not named here.
    unsafe {
        let thread = &mut *memory;
        thread.number = number;
        thread.parent = parent;
        thread.spawn_ordinal = spawn_ordinal;
        thread.schedule_index = crate::serial::replay::schedule_index(parent, spawn_ordinal);
        thread.contexts = Map::new();
        thread.context_count = 1;
        thread.context_path = List::new();
        thread.allocations = Map::new();
        thread.held = List::new();
        thread.once = List::new();
        thread.keep_accesses = true;
        thread.state.set(State::Runnable);
        thread.wait = Wait::NOTHING;
        thread.priority = crate::serial::policy::new_priority(number);
        if detect::on() {
            detect::registered(thread);
        }
    }
    TABLE[number as usize].store(memory, Release);
    // Another thread may be registered at the same time.
    header::word(field::THREADS).fetch_max(number as u64 + 1, AcqRel);
    memory
}

/// Makes `thread` the calling thread's: from here on its hooks record.
///
/// # Safety
/// Once per thread, by that thread.
pub unsafe fn attach(thread: *mut Thread) {
    let block = hot();
    // SAFETY: the block is this thread's and its hooks do nothing until `thread` is set, at the end.
    unsafe {
        block.nesting.set(1);
        (*thread).kernel_id.set(sys::thread_id());
        (*thread).libc_id.set((*thread).kernel_id.get());
        prepare(&mut *thread, block);
        block.nesting.set(0);
    }
}

/// Fills a block for a thread.
///
/// # Safety
/// Nobody uses the block, or its hooks pass through meanwhile.
pub unsafe fn prepare(thread: &mut Thread, block: &'static Hot) {
    let calls = sys::map_anonymous(SHADOW_CALLS * size_of::<Call>()).cast::<Call>();
    let entries = filter::entries(thread.number);
    let table = sys::map_anonymous(entries * 16).cast::<[u64; 2]>();
    if calls.is_null() || table.is_null() {
        sys::die(&[b"out of memory for a new thread"]);
    }
    // SAFETY: by the contract.
    unsafe {
        block.top.set(calls);
        block.bottom.set(calls);
        block.lowest.set(calls);
        block.limit.set(calls.add(SHADOW_CALLS));
        block.filter.set(table);
        block.filter_mask.set(filter::mask(entries));
        block.cap.set(filter::cap());
        block.capped.set(0);
        block.locks.set(0);
        block.span.set(1 << 48);
        block.quantum.set(0);
        block.dirty.set(tree::on() as u64);
        thread.hot = block;
        recorder::begin(thread);
        thread.since_sync = 0;
        thread.reload = 0;
        if detect::on() {
            detect::attach(thread);
        }
        block.thread.set(thread);
        thread.reload_quantum();
    }
}

/// A forked child: this is its only thread, its first, and the one that its trace begins with.
///
/// # Safety
/// In such a child, by that thread, which gave up its chunk.
pub unsafe fn only(thread: &mut Thread) {
    for slot in TABLE.iter().take(count() as usize) {
        slot.store(core::ptr::null_mut(), Relaxed);
    }
    let entries = filter::entries(0);
    let table = sys::map_anonymous(entries * 16).cast::<[u64; 2]>();
    if table.is_null() {
        sys::die(&[b"out of memory in a forked child"]);
    }
    let before = filter::entries(thread.number);
    // SAFETY: the calling thread's own block and table.
    unsafe {
        let block = hot();
        sys::unmap(block.filter.get().cast(), before * 16);
        block.filter.set(table);
        block.filter_mask.set(filter::mask(entries));
        block.cap.set(filter::cap());
        block.capped.set(0);
        block.span.set(1 << 48);
        block.quantum.set(0);
        // The whole call stack is new to the stream.
        block.lowest.set(block.bottom.get());
        block.dirty.set(1);
    }
    thread.number = 0;
    thread.parent = NO_THREAD;
    thread.spawn_ordinal = 0;
    thread.spawned = 0;
    thread.ordinal = 0;
    thread.kernel_id.set(sys::thread_id());
    thread.libc_id.set(thread.kernel_id.get());
    thread.chunk_index = 0;
    thread.context = 0;
    thread.contexts.clear_and_free();
    thread.context_count = 1;
    thread.context_path.truncate(0);
    thread.allocations.clear_and_free();
    (thread.executed, thread.executed_before_chunk, thread.since_sync, thread.reload) = (0, 0, 0, 0);
    thread.wait = Wait::NOTHING;
    thread.state.set(State::Running);
    thread.baton.store(0, Relaxed);
    thread.evicted.store(0, Relaxed);
    thread.pending_signals.store(0, Relaxed);
    thread.arrived_signals.forget();
    (thread.spins, thread.points, thread.looks, thread.condition) = (0, 0, 0, 0);
    thread.goal = crate::serial::replay::GoalAccess::NONE;
    thread.priority = crate::serial::policy::new_priority(0);
    COUNT.store(1, Release);
    thread.schedule_index = crate::serial::replay::schedule_index(NO_THREAD, 0);
    TABLE[0].store(thread, Release);
    header::set(field::THREADS, 1);
    thread.reload_quantum();
}

/// The calling thread is about to vanish: hooks that still come pass through.
///
/// # Safety
/// By the thread itself, after its last record.
pub unsafe fn detach(thread: &mut Thread) {
    // SAFETY: the block is this thread's; its tables are used by nobody else once `thread` is null.
    unsafe {
        let block = thread.hot();
        if detect::on() {
            detect::detach(thread);
        }
        recorder::finish(thread);
        let (bottom, table) = (block.bottom.get(), block.filter.get());
        let nesting = block.nesting.get();
        block.thread.set(core::ptr::null_mut());
        block.cursor.set(core::ptr::null_mut());
        block.end.set(core::ptr::null_mut());
        block.quantum.set(0);
        block.top.set(core::ptr::null_mut());
        block.limit.set(core::ptr::null_mut());
        block.bottom.set(core::ptr::null_mut());
        block.lowest.set(core::ptr::null_mut());
        block.nesting.set(nesting);
        sys::unmap(bottom.cast(), SHADOW_CALLS * size_of::<Call>());
        sys::unmap(table.cast(), filter::entries(thread.number) * 16);
    }
    thread.hot = core::ptr::null();
    thread.tree.end();
    thread.contexts.clear_and_free();
    thread.context_path.clear_and_free();
    thread.allocations.clear_and_free();
    thread.elastic.forget();
    // What it still holds, others may have to give up.
    if thread.held.as_slice().is_empty() {
        thread.held.clear_and_free();
    }
}

impl Thread {
    #[inline(always)]
    pub fn hot(&self) -> &'static Hot {
        debug_assert!(!self.hot.is_null());
        // SAFETY: set while the thread lives; touched by itself, or by others only while it is stopped.
        unsafe { &*self.hot }
    }

    /// Accesses made since the last synchronisation event.
    pub fn accesses_since_sync(&mut self) -> u64 {
        let left = self.hot().quantum.get();
        self.since_sync.wrapping_add(self.reload.wrapping_sub(left) as u64)
    }

    /// Adds what was executed since the last reload to the counts.
    pub fn settle(&mut self) {
        let done = self.reload.wrapping_sub(self.hot().quantum.get()) as u64;
        self.since_sync = self.since_sync.wrapping_add(done);
        self.executed = self.executed.wrapping_add(done);
        self.reload = self.hot().quantum.get();
    }

    /// Starts the quantum anew, keeping count of what was executed.
    pub fn reload_quantum(&mut self) {
        self.settle();
        self.reload = crate::serial::sched::quantum(self);
        self.hot().quantum.set(self.reload);
    }

    /// A synchronisation event was completed: accesses count from here.
    pub fn restart_count(&mut self) {
        self.settle();
        self.since_sync = 0;
        self.reload_quantum();
    }

    /// The next access takes the slow path.
    pub fn force_slow_path(&mut self) {
        let left = self.hot().quantum.get();
        self.reload = self.reload.wrapping_sub(left);
        self.hot().quantum.set(0);
    }

    /// Accesses up to here and from here on are told apart by the filter.
    pub fn new_span(&mut self) {
        let number = self.number;
        let hot = self.hot();
        hot.span.set(hot.span.get().wrapping_add(1 << 48));
        if hot.span.get() == 0 {
            // SAFETY: the filter's own table. An old entry must not look like one of the new round.
            unsafe { core::ptr::write_bytes(hot.filter.get(), 0, filter::entries(number)) };
            hot.span.set(1 << 48);
        }
    }
}

/// The calling thread's number, for messages.
pub fn current_number() -> u64 {
    let thread = tls::current();
    // SAFETY: known threads are never unmapped.
    if thread.is_null() { u64::MAX } else { unsafe { (*thread).number as u64 } }
}
