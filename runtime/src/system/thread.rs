//! What the runtime knows of each thread, and the guard under which its code runs.

pub use crate::system::guard::Runtime;
use crate::system::guarded::Guarded;
pub use crate::system::held::{Held, HeldLocks, MachineLock};
use crate::system::memory::{List, Map};
use crate::system::registered::Registered;
use crate::system::shared::{Extent, Shared};
use crate::system::slot::Slot;
use crate::system::tls::{self, Hot};
use crate::system::{handles, header, signals, sys};
use core::cell::Cell;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering::*};
use rashomon_abi::MAX_THREADS;
use rashomon_abi::header::field;

pub const NO_THREAD: u32 = u32::MAX;

/// Room for what others keep of a thread; each checks that its own fits.
const DETECTION_BYTES: usize = 1328;
const PROVOCATION_BYTES: usize = 144;
const TREE_BYTES: usize = 2192;
const SCHEDULING_BYTES: usize = 704;

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

/// What is known of a thread. Everybody has shared references to it, which stay valid: records are never unmapped.
///
/// Who may touch what:
/// - any thread at any time: [`Shared`] words and the like, atomics, and the cells of the first part, which are written before
///   others know the thread (and by a forked child's only thread);
/// - in serial mode, the holder of the turn or of the scheduler's lock: all cells and [`Guarded`] values of threads that stand
///   still;
/// - the thread itself: everything.
///
/// What the rooms above keep of it is in [`Slot`]s: which type is in one, and who may touch that, the file says that owns it.
///
/// A cell gives no reference to what is inside, so that nobody's view of a thread excludes what others do; nothing but what is
/// atomic is polled.
#[repr(C)]
pub struct Thread {
    /// [`crate::detect::own`]. First, so that the hooks get from one to the other without an instruction.
    pub detection: Slot<DETECTION_BYTES>,

    pub number: Cell<u32>,
    pub parent: Cell<u32>,
    pub spawn_ordinal: Cell<u32>,
    /// Entry of the control file's thread table, or `NO_THREAD`.
    pub schedule_index: Cell<u32>,
    /// Signals that its creator blocked, where the new thread is to have the same mask: they are blocked until it is known.
    pub start_mask: Cell<u64>,
    pub takes_start_mask: Cell<bool>,
    pub start_routine: Cell<Option<unsafe extern "C" fn(*mut u8) -> *mut u8>>,
    pub start_argument: Cell<*mut u8>,

    /// Synchronisation events completed.
    pub ordinal: Shared<u32>,
    pub kernel_id: Shared<u32>,
    /// The same as libc remembers it, and mutexes that are held: it stays in an execution from a snapshot.
    pub libc_id: Shared<u32>,
    pub handle: AtomicU64,
    /// Null until the thread has begun and after it ended.
    block: AtomicPtr<Hot>,
    pub ended: AtomicU32,
    pub detached: Shared<bool>,
    pub joined: Shared<bool>,
    /// Nothing until it has begun: then its creator has left the size there.
    pub stack: Extent,
    pub tls: Extent,
    /// Accesses since the last synchronisation event, up to the last reload of the quantum, and that reload.
    pub since_sync: Shared<u64>,
    pub reload: Shared<i64>,
    pub state: Shared<State>,
    /// Whether it has begun: a turn that it was given before was left lying.
    pub arrived: Shared<bool>,
    /// Whether the call that makes it is over: it will begin by itself.
    pub made: AtomicU32,
    /// Whether it is about to execute its routine.
    pub begun: AtomicU32,
    pub baton: AtomicU32,
    pub pending_signals: AtomicU32,
    pub arrived_signals: signals::Arrived,
    /// `pthread_cancel` was called for it.
    pub cancelled: AtomicU32,
    /// Set when the watchdog took the turn away.
    pub evicted: AtomicU32,
    /// In a call into the kernel for which it gave the turn up.
    pub in_call: AtomicU32,
    pub held: HeldLocks,
    /// [`crate::provoke`].
    pub provocation: Slot<PROVOCATION_BYTES>,

    // Recorder.
    /// Threads created so far.
    pub spawned: Cell<u32>,
    pub chunk: Cell<*mut u64>,
    pub chunk_index: Cell<u32>,
    /// Bytes of the chunk that the file has so far.
    pub chunk_bytes: Cell<usize>,
    /// [`crate::record::chunk`].
    pub compressor: Cell<*mut u8>,
    /// Current call context, the one last written to the chunk, and the context of each entry of the shadow stack.
    pub context: Cell<u32>,
    pub written_context: Cell<u32>,
    pub contexts: Guarded<Map>,
    pub context_count: Cell<u32>,
    /// Counted loops that its stream defines ([`crate::record::counted`]), and bytes that their records stand for.
    pub counted: Guarded<Map>,
    pub stood_for: Cell<u64>,
    pub context_path: Guarded<List<u32>>,
    pub keep_accesses: Cell<bool>,
    /// [`crate::record::tree`].
    pub tree_filter: Slot<TREE_BYTES>,
    pub executed: Cell<u64>,
    /// Quanta of virtual time that what it executed has taken.
    pub quanta_spent: Cell<u64>,
    /// `executed` when the chunk was begun.
    pub executed_before_chunk: Cell<u64>,
    /// [`super::tls::Hot::span`] at that time.
    pub span_before_chunk: Cell<u64>,
    /// Number of the place that the child it forked last was given.
    pub place_given: Cell<u64>,
    /// A replayed turn ended with the wait that the thread is in.
    pub turn_ended: Cell<bool>,
    /// Where the program called for another process.
    pub fork_site: Cell<u64>,
    /// Allocations per call site.
    pub allocations: Guarded<Map>,

    // Scheduler.
    /// [`crate::serial::part`].
    pub scheduling: Slot<SCHEDULING_BYTES>,
    pub wait_site: Cell<u64>,
    /// Polls without anything happening: loads, failed tries.
    pub spins: Cell<u32>,
    /// Events since others were last given a chance.
    pub points: Cell<u32>,
    pub priority: Cell<u64>,
    /// The waking signal's sequence number for the condition this thread waits on.
    pub woken_by: Cell<u64>,
    /// Object of the queue it stands in (0: none, or let out), its place there, and which wakes it takes (futex only).
    pub condition: Cell<u64>,
    pub ticket: Cell<u64>,
    pub futex_mask: Cell<u32>,
    /// Readings of a clock in a row, and the ordinal at the last of them.
    pub clock_polls: Cell<u32>,
    pub clock_poll_ordinal: Cell<u32>,
    /// Random words given to the program.
    pub random_words: Cell<u64>,
    /// Once controls whose routine this thread runs.
    pub once: Guarded<List<u64>>,
    /// What a virtual machine has said of its locks, unless detection keeps that.
    pub machine_locks: Guarded<List<MachineLock>>,
    /// The schedule's turn in which it was evicted.
    pub evicted_turn: Cell<u32>,
    pub key_rounds: Cell<u32>,
}

// SAFETY: what others touch of a thread that runs is atomic, or guarded by the scheduler's lock; see the type.
unsafe impl Sync for Thread {}

/// Accesses that a thread may make before it has to look up. The scheduler's, entered before any thread is attached; asked at
/// synchronisation events and where a quantum is used up, never at each access.
pub static QUANTUM: Registered<fn(&Thread) -> i64> = Registered::none();

static TABLE: [AtomicPtr<Thread>; MAX_THREADS] = [const { AtomicPtr::new(core::ptr::null_mut()) }; MAX_THREADS];
static COUNT: AtomicU32 = AtomicU32::new(0);

pub fn count() -> u32 {
    COUNT.load(Acquire)
}

/// The thread of that number, if there is one.
pub fn by_number(number: u32) -> Option<&'static Thread> {
    // SAFETY: registered threads are never unmapped.
    unsafe { TABLE.get(number as usize)?.load(Acquire).as_ref() }
}

/// Of a number that was a thread's before.
pub fn known(number: u32) -> &'static Thread {
    match by_number(number) {
        Some(thread) => thread,
        None => sys::die(&[b"internal error: no thread has the number ", sys::Decimal::new(number.into()).bytes()]),
    }
}

/// All threads that were ever created.
pub fn all() -> impl Iterator<Item = &'static Thread> {
    (0..count()).filter_map(by_number)
}

/// Memory for a record, all zero. `None` when there is none.
pub fn new_record() -> Option<&'static Thread> {
    let memory = sys::map_anonymous(size_of::<Thread>()).cast::<Thread>();
    if memory.is_null() {
        return None;
    }
    memory.expose_provenance();
    // SAFETY: fresh memory; all bytes zero are a record.
    unsafe { Some(&*memory) }
}

/// The same of the record of a thread that is over, which is no longer found by its number.
///
/// # Safety
/// Nobody but those who look at all threads knows it.
pub unsafe fn clear_record(over: &'static Thread) {
    TABLE[over.number.get() as usize].store(core::ptr::null_mut(), Release);
    handles::give_up(over);
    over.held.clear_and_free();
    over.once.with(List::clear_and_free);
    over.machine_locks.with(List::clear_and_free);
    // SAFETY: by the contract; all of it is cells or atomic. Who looks meanwhile sees a thread of which nothing is known.
    unsafe { core::ptr::from_ref(over).cast_mut().write_bytes(0, 1) };
}

/// Gives a record the next number. `complete` fills in what rooms keep of the thread, before anybody finds it.
///
/// # Safety
/// A record, all zero, that nobody knows yet.
pub unsafe fn register(thread: &'static Thread, parent: u32, spawn_ordinal: u32, complete: impl FnOnce()) {
    let number = COUNT.fetch_add(1, AcqRel);
    if number as usize >= MAX_THREADS {
        sys::die(&[b"more threads than a recording can hold (65536)"]);
    }
    // All-zero bytes are right for what is not named here.
    thread.number.set(number);
    thread.parent.set(parent);
    thread.spawn_ordinal.set(spawn_ordinal);
    thread.context_count.set(1);
    thread.keep_accesses.set(true);
    thread.state.set(State::Runnable);
    complete();
    TABLE[number as usize].store(core::ptr::from_ref(thread).cast_mut(), Release);
    // Another thread may be registered at the same time.
    header::word(field::THREADS).fetch_max(number as u64 + 1, AcqRel);
}

/// A forked child: this is its only thread, its first, and the one that its trace begins with. `complete`: as above.
///
/// # Safety
/// In such a child, by that thread.
pub unsafe fn register_only(thread: &'static Thread, complete: impl FnOnce()) {
    for slot in TABLE.iter().take(count() as usize) {
        slot.store(core::ptr::null_mut(), Relaxed);
    }
    // SAFETY: by the contract.
    unsafe { handles::forget(count()) };
    thread.number.set(0);
    handles::store(thread, thread.handle.load(Relaxed));
    thread.parent.set(NO_THREAD);
    thread.kernel_id.set(sys::thread_id());
    thread.libc_id.set(thread.kernel_id.get());
    thread.context_count.set(1);
    thread.ordinal.set(0);
    thread.contexts.with(Map::clear_and_free);
    thread.counted.with(Map::clear_and_free);
    thread.context_path.with(|path| path.truncate(0));
    thread.allocations.with(Map::clear_and_free);
    let counts = [&thread.executed, &thread.executed_before_chunk, &thread.span_before_chunk, &thread.quanta_spent];
    for zero in counts.into_iter().chain([&thread.condition, &thread.stood_for]) {
        zero.set(0);
    }
    thread.since_sync.set(0);
    thread.reload.set(0);
    thread.state.set(State::Running);
    thread.baton.store(0, Relaxed);
    thread.evicted.store(0, Relaxed);
    thread.pending_signals.store(0, Relaxed);
    thread.arrived_signals.forget();
    let counts = [&thread.spawn_ordinal, &thread.spawned, &thread.chunk_index, &thread.context];
    counts.into_iter().chain([&thread.spins, &thread.points, &thread.clock_polls]).for_each(|count| count.set(0));
    COUNT.store(1, Release);
    complete();
    TABLE[0].store(core::ptr::from_ref(thread).cast_mut(), Release);
    header::set(field::THREADS, 1);
}

impl Thread {
    /// Whether it has begun, and not ended.
    pub fn has_block(&self) -> bool {
        !self.block.load(Acquire).is_null()
    }

    #[inline(always)]
    pub fn hot(&self) -> &'static Hot {
        debug_assert!(self.has_block());
        // SAFETY: set while the thread lives; touched by itself, or by others only while it is stopped.
        unsafe { &*self.block.load(Relaxed) }
    }

    pub fn runs_in(&self, block: &'static Hot) {
        self.block.store(core::ptr::from_ref(block).cast_mut(), Release);
    }

    pub fn leaves_block(&self) {
        self.block.store(core::ptr::null_mut(), Release);
    }

    /// Accesses made since the last synchronisation event.
    pub fn accesses_since_sync(&self) -> u64 {
        let left = self.hot().quantum.get();
        self.since_sync.get().wrapping_add(self.reload.get().wrapping_sub(left) as u64)
    }

    /// Accesses made since it began.
    pub fn executed_so_far(&self) -> u64 {
        let left = self.hot().quantum.get();
        self.executed.get().wrapping_add(self.reload.get().wrapping_sub(left) as u64)
    }

    /// Adds what was executed since the last reload to the counts.
    pub fn settle(&self) {
        let left = self.hot().quantum.get();
        let done = self.reload.get().wrapping_sub(left) as u64;
        self.since_sync.set(self.since_sync.get().wrapping_add(done));
        self.executed.set(self.executed.get().wrapping_add(done));
        self.reload.set(left);
    }

    /// Starts the quantum anew, as the scheduler says, which rooms below it do not know.
    pub fn reload_quantum(&self) {
        self.set_quantum(QUANTUM.get().map_or(0, |quantum| quantum(self)));
    }

    /// Starts the quantum anew, keeping count of what was executed.
    pub fn set_quantum(&self, quantum: i64) {
        self.settle();
        self.reload.set(quantum);
        self.hot().quantum.set(quantum);
    }

    /// A synchronisation event was completed: accesses count from here.
    pub fn restart_count(&self) {
        self.settle();
        self.since_sync.set(0);
        self.reload_quantum();
    }

    /// The next access takes the slow path.
    pub fn force_slow_path(&self) {
        let quantum = &self.hot().quantum;
        self.reload.set(self.reload.get().wrapping_sub(quantum.get()));
        quantum.set(0);
    }
}

/// The calling thread's number, or one that no thread has.
pub fn current_number() -> u64 {
    tls::current().map_or(u64::MAX, |thread| thread.number.get().into())
}
