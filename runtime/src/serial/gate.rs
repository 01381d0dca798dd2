//! An order of synchronisation that is kept while threads run in parallel and races are looked for: each thread stands before
//! its next synchronisation operation until its turn has come, and whatever else it does is its own affair. Behind the last turn
//! the program runs freely.
//!
//! L. M. Carril, W. F. Tichy, "Interleaving Generation for Data Race and Deadlock Reproduction", SEPS 2015, §2.3 and §3. Turns
//! are those of the control file, of which only thread and operation count. A thread whose turns are over stands until all are. A
//! turn is over when its operation is complete, or, of a wait and a barrier, when it has begun. The detector knows nothing of all
//! this: its clocks follow the program's own operations only, so the order that is kept orders no accesses.
//!
//! An order that cannot be kept ends the process, and the `enforced` file says why: another operation came, nobody came, or
//! nobody could go on. Threads that block each other in operations of the program are its own deadlock, which the detector tells
//! of.
//!
//! Limit: what the runtime cannot hold (atomic operations, futexes called directly, pipes, the beginning and the end of threads)
//! has no turns.

use crate::report;
use crate::serial::replay::{are_interchangeable, turn_at};
use crate::serial::{clock, replay, standstill};
use crate::system::sys::{self, syscall};
use crate::system::thread::{NO_THREAD, Runtime, Thread};
use crate::system::{config, guard, process_name, signals};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering::*};
use rashomon_abi::control;
use rashomon_abi::enforced::{field, outcome};
use rashomon_abi::record::Op;
use rashomon_abi::{CONTROL_FILE, ENFORCED_FILE};

static TURNS: AtomicU32 = AtomicU32::new(0);
/// The turn that is next. Who waits sleeps on this.
static NEXT: AtomicU32 = AtomicU32::new(0);
/// Number + 1 of the thread that makes the operation of that turn, and the operation; 0: nobody yet.
static ACTING: AtomicU32 = AtomicU32::new(0);
static ACTING_OP: AtomicU32 = AtomicU32::new(0);
/// Threads that wait here.
static GATED: AtomicU32 = AtomicU32::new(0);
const MAX_TRACKED: usize = 4096;
/// By entry of the thread table: the turn, plus 1, that the thread waits for.
static WAITS_FOR: [AtomicU32; MAX_TRACKED] = [const { AtomicU32::new(0) }; MAX_TRACKED];
/// How it ends is decided.
static DECIDED: AtomicBool = AtomicBool::new(false);
static PAGE: AtomicPtr<AtomicU64> = AtomicPtr::new(core::ptr::null_mut());

/// Between two polls of one who waits.
const PAUSE_NS: u64 = 20_000_000;
/// So long nobody must have been able to go on.
const STUCK_NS: u64 = 500_000_000;

/// Takes the order from a folder with a `control` and an `enforced` file. None: nothing is enforced.
pub fn initialise(folder: &[u8]) {
    if folder.is_empty() {
        return;
    }
    process_name::begin();
    if process_name::own() == report::options::get().enforce_process {
        begin(folder);
    }
}

fn begin(folder: &[u8]) {
    let Some(control) = path_in(folder, CONTROL_FILE) else { report::refuse(&[b"the name of the folder is too long: ", folder]) };
    if let Err(what) = config::load(&control) {
        report::refuse(&[what, b": ", folder]);
    }
    if !path_in(folder, ENFORCED_FILE).is_some_and(|path| map(&path)) {
        report::refuse(&[b"cannot map the file `enforced` in ", folder]);
    }
    let turns = config::count(control::field::TURNS) as u32;
    if turns == 0 {
        set(field::OUTCOME, outcome::KEPT);
        return;
    }
    TURNS.store(turns, Release);
    guard::LEFT.set(&(completes as fn(&Thread)));
    config::gates(true);
}

fn path_in(folder: &[u8], file: &str) -> Option<[u8; 4096]> {
    let mut path = [0u8; 4096];
    let (slash, end) = (folder.len(), folder.len() + 1 + file.len());
    if end >= path.len() {
        return None;
    }
    path[..slash].copy_from_slice(folder);
    path[slash] = b'/';
    path[slash + 1..end].copy_from_slice(file.as_bytes());
    Some(path)
}

fn map(path: &[u8; 4096]) -> bool {
    // SAFETY: a terminated path; a fresh shared mapping that nobody unmaps. O_RDWR | O_CLOEXEC
    let mapped = unsafe {
        let file = syscall!(sys::OPENAT, -100isize, path.as_ptr(), 0o2000002, 0);
        if file < 0 {
            return false;
        }
        let mapped = sys::call(sys::MMAP, 0, 4096, 3, 1, file as usize, 0);
        syscall!(sys::CLOSE, file);
        mapped
    };
    if mapped >= 0 {
        PAGE.store(mapped as *mut AtomicU64, Release);
    }
    mapped >= 0
}

fn set(index: usize, value: u64) {
    let page = PAGE.load(Acquire);
    if !page.is_null() {
        // SAFETY: inside the file, whose length the host chose.
        unsafe { (*page.add(index)).store(value, Release) };
    }
}

/// In a forked child nothing is enforced, unless the order is for it: then its only thread is the first one.
///
/// # Safety
/// In a child that has one thread, which is given.
pub unsafe fn restart(thread: &Thread) {
    config::gates(false);
    for word in [&ACTING, &ACTING_OP, &TURNS, &NEXT, &GATED].into_iter().chain(&WAITS_FOR) {
        word.store(0, Relaxed);
    }
    DECIDED.store(false, Relaxed);
    PAGE.store(core::ptr::null_mut(), Relaxed);
    if !process_name::counted() {
        return;
    }
    // SAFETY: by the contract.
    unsafe { process_name::forked(thread.place_given.get()) };
    let options = report::options::get();
    if process_name::own() == options.enforce_process {
        begin(options.enforce);
        thread.spawned.set(0);
        thread.schedule_index.set(replay::schedule_index(NO_THREAD, 0));
    }
}

const fn is_gated(op: Op) -> bool {
    matches!(
        op,
        Op::Lock
            | Op::LockShared
            | Op::Unlock
            | Op::UnlockShared
            | Op::ThreadCreate
            | Op::ThreadJoin
            | Op::CondWaitBegin
            | Op::CondWaitEnd
            | Op::CondSignal
            | Op::CondBroadcast
            | Op::BarrierEnter
            | Op::SemaphoreWait
            | Op::SemaphorePost
    )
}

/// The thread is about to synchronise: it stands here until it is its turn, or all are over.
pub fn arrive(runtime: &Runtime, op: Op) {
    let thread = runtime.thread();
    completes(thread);
    let (first, turns) = (NEXT.load(Acquire), TURNS.load(Relaxed));
    if first >= turns || !is_gated(op) {
        return;
    }
    let own = thread.schedule_index.get();
    let mine = (first..turns).find(|&turn| turn_at(turn as usize).thread == own);
    if let Some(turn) = mine
        && !are_interchangeable(turn_at(turn as usize).op, op)
    {
        fails(outcome::OTHER_OPERATION, turn, op as u64);
    }
    let entry = WAITS_FOR.get(own as usize);
    GATED.fetch_add(1, AcqRel);
    if let (Some(entry), Some(turn)) = (entry, mine) {
        entry.store(turn + 1, Release);
    }
    let mut watch = Watch { next: first, since: now(), stuck: 0 };
    loop {
        let next = NEXT.load(Acquire);
        if next >= turns {
            break;
        }
        if mine == Some(next) {
            ACTING_OP.store(op as u32, Relaxed);
            ACTING.store(thread.number.get() + 1, Release);
            break;
        }
        pause(next);
        if thread.pending_signals.load(Relaxed) != 0 {
            signals::deliver_inside(runtime);
        }
        watch.inspect();
    }
    if let Some(entry) = entry {
        entry.store(0, Release);
    }
    GATED.fetch_sub(1, AcqRel);
}

fn now() -> u64 {
    sys::clock(clock::MONOTONIC as usize)
}

/// Sleeps until another turn is next, for a while at most.
fn pause(next: u32) {
    let time = [0, PAUSE_NS];
    // SAFETY: FUTEX_WAIT_PRIVATE reads the word and a local `timespec`.
    unsafe { syscall!(sys::FUTEX, NEXT.as_ptr(), 128, next, time.as_ptr()) };
}

/// What the thread made a turn for is complete, if there is anything.
pub fn completes(thread: &Thread) {
    if ACTING.load(Relaxed) != thread.number.get() + 1 {
        return;
    }
    let (done, turns) = (NEXT.load(Relaxed) + 1, TURNS.load(Relaxed));
    ACTING.store(0, Relaxed);
    set(field::DONE, done as u64);
    if done == turns {
        set(field::OUTCOME, outcome::KEPT);
    }
    NEXT.store(done, Release);
    sys::futex_wake(&NEXT, i32::MAX as u32);
}

/// Whether the next turn is this operation of the thread.
pub fn is_turn_of(thread: &Thread, op: Op) -> bool {
    let next = NEXT.load(Acquire);
    if next >= TURNS.load(Relaxed) {
        return false;
    }
    let turn = turn_at(next as usize);
    turn.thread == thread.schedule_index.get() && are_interchangeable(turn.op, op)
}

/// The thread begins to wait, inside of its operation, for what others do.
pub fn blocks(thread: &Thread) {
    let begins = |op: Op| ACTING_OP.load(Relaxed) == op as u32;
    if begins(Op::CondWaitBegin) || begins(Op::BarrierEnter) {
        completes(thread);
    }
}

/// What one who waits has seen.
struct Watch {
    next: u32,
    /// When that turn became the next.
    since: u64,
    /// Since when nobody can go on; 0: somebody can.
    stuck: u64,
}

impl Watch {
    fn inspect(&mut self) {
        let (next, now) = (NEXT.load(Acquire), now());
        if next != self.next {
            *self = Self { next, since: now, stuck: 0 };
        }
        if next >= TURNS.load(Relaxed) {
            return;
        }
        let own = turn_at(next as usize).thread as usize;
        let comes = WAITS_FOR.get(own).is_some_and(|entry| entry.load(Acquire) == next + 1);
        let (waiting, alive) = standstill::waiting_and_alive();
        if comes || GATED.load(Acquire) + waiting < alive {
            self.stuck = 0;
        } else if self.stuck == 0 {
            self.stuck = now;
        } else if now - self.stuck >= STUCK_NS {
            standstill::conclude();
            let how = if standstill::has_told() { outcome::DEADLOCK } else { outcome::STUCK };
            fails(how, next, 0);
        }
        let timeout = config::word(control::field::CALL_TIMEOUT_MS).saturating_mul(1_000_000);
        if now - self.since >= timeout.max(STUCK_NS) {
            fails(outcome::LATE, next, 0);
        }
    }
}

/// The order cannot be kept: the process ends.
fn fails(how: u64, turn: u32, op: u64) -> ! {
    if DECIDED.swap(true, AcqRel) {
        // Somebody else ends the process.
        loop {
            sys::sleep(STUCK_NS);
        }
    }
    set(field::ACTUAL_OP, op);
    set(field::TURN, turn as u64);
    set(field::OUTCOME, how);
    report::end_stuck()
}
