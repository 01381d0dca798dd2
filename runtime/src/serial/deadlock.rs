//! Threads that wait for each other for ever: in serial mode, and what is recorded of it in the others, where [`standstill`]
//! finds them.
//!
//! An edge leads from a thread that waits without time-out to each holder of the lock (or to the thread it joins). A cycle
//! through a shared lock with several holders counts when any holder closes it: that holder never releases, so the writer never
//! gets in.
//!
//! A cycle is no deadlock yet while somebody else can go on: libc lets any thread unlock a mutex, a join can be cancelled, and a
//! signal's handler may leave the call. So it is one when nobody else can run any more, when the process ends, or, if all its
//! waits are for locks, when it has lasted [`TIMEOUT_NS`].

use crate::record::recorder;
use crate::serial::clock::NEVER;
use crate::serial::sched::{LOCK, WaitFor, live};
use crate::serial::shutdown;
use crate::serial::{replay, standstill};
use crate::system::memory::List;
use crate::system::thread::{Held, NO_THREAD, State, Thread, all, known};
use crate::system::{config, signals, sys};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::*};
use rashomon_abi::header::outcome;
use rashomon_abi::record::Op;

/// How long a cycle may last, in real time, while others run.
const TIMEOUT_NS: u64 = 5_000_000_000;
/// When a cycle was first seen that somebody might still break; 0: there is none.
static SEEN: AtomicU64 = AtomicU64::new(0);
/// What tells that cycle from others ([`Cycle::sum`]).
static WHICH: AtomicU64 = AtomicU64::new(0);
/// It has lasted long enough: whoever has the turn says so.
static DUE: AtomicU32 = AtomicU32::new(0);

/// The thread is about to block on a lock or a thread: does that close a cycle? Under the scheduler's lock.
pub fn check(thread: &Thread) {
    let Some(cycle) = Cycle::through(thread.number.get()) else { return };
    if !signals::handlers_installed() && !anybody_can_run() && !standstill::timer_armed() {
        cycle.conclude();
    } else if SEEN.load(Relaxed) == 0 {
        cycle.remember();
    }
    cycle.free();
}

fn now() -> u64 {
    sys::clock(crate::serial::clock::MONOTONIC as usize)
}

/// Whether a thread could run, now or when time passes or the world does something. Under the scheduler's lock.
fn anybody_can_run() -> bool {
    // SAFETY: callers hold the scheduler's lock; registered threads are never unmapped.
    unsafe { live() }.as_slice().iter().any(|&number| {
        let thread = known(number);
        thread.state.get() != State::Blocked
            || thread.serial().wait.get().deadline != NEVER
            || matches!(thread.serial().wait.get().what, WaitFor::Files | WaitFor::Time | WaitFor::Nothing)
    })
}

/// By the watchdog, under the scheduler's lock: has a cycle lasted too long? `idle`: nobody holds the turn.
pub fn inspect(idle: bool) {
    let seen = SEEN.load(Relaxed);
    if seen == 0 || now() - seen < TIMEOUT_NS || standstill::timer_armed() {
        return;
    }
    if idle {
        conclude_lasting();
    } else {
        DUE.store(1, Relaxed);
    }
}

/// Whether [`at_point`] has something to do.
#[inline(always)]
pub fn is_due() -> bool {
    DUE.load(Relaxed) != 0
}

/// The holder of the turn looks whether a cycle is still there, and says so.
#[cold]
pub fn at_point() {
    DUE.store(0, Relaxed);
    LOCK.with(conclude_lasting);
}

/// The process is about to end, by the holder of the turn: who waits for each other now does so for ever.
pub fn at_end() {
    if config::serial() && SEEN.load(Relaxed) != 0 {
        LOCK.with(conclude_any);
    }
}

/// Says so if there is a cycle. Under the scheduler's lock.
pub fn conclude_any() {
    SEEN.store(0, Relaxed);
    each_cycle(|cycle| cycle.conclude());
}

/// Says so if the cycle is still there that was seen first. Any other may have come up just now: its time begins. Under the
/// scheduler's lock.
///
/// No test forces the case: two cycles within [`TIMEOUT_NS`] of real time, of which somebody else breaks the first, are a matter
/// of time only.
fn conclude_lasting() {
    let which = WHICH.load(Relaxed);
    SEEN.store(0, Relaxed);
    each_cycle(|cycle| {
        if cycle.sum() == which && !cycle.joins() {
            cycle.conclude();
        }
    });
    each_cycle(|cycle| {
        if SEEN.load(Relaxed) == 0 {
            cycle.remember();
        }
    });
}

/// A cycle through each thread that is part of one. Under the scheduler's lock.
fn each_cycle(mut body: impl FnMut(&Cycle)) {
    // SAFETY: callers hold the scheduler's lock.
    for &number in unsafe { live() }.as_slice() {
        if let Some(cycle) = Cycle::through(number) {
            body(&cycle);
            cycle.free();
        }
    }
}

/// Threads, each of which waits for the next one; the last for the first.
struct Cycle(List<(u32, u32)>);

impl Cycle {
    fn through(number: u32) -> Option<Self> {
        let mut visited: List<u32> = List::new();
        let mut path: List<(u32, u32)> = List::new();
        let found = search(number, number, &mut visited, &mut path, 0);
        visited.free();
        if found {
            return Some(Self(path));
        }
        path.free();
        None
    }

    /// Of its threads' waits, wherever it begins: a thread counts its events, and makes none while it waits.
    fn sum(&self) -> u64 {
        self.0.as_slice().iter().fold(0, |sum, &(number, _)| {
            let ordinal = known(number).ordinal.get();
            sum.wrapping_add(
                ((u64::from(number) + 1) << 32 | u64::from(ordinal)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(31),
            )
        })
    }

    /// Whether one of its threads joins another: that wait ends when somebody cancels the thread, whose handlers may give locks
    /// back.
    fn joins(&self) -> bool {
        self.0.as_slice().iter().any(|&(number, _)| known(number).serial().wait.get().what == WaitFor::Join)
    }

    /// Its time begins.
    fn remember(&self) {
        WHICH.store(self.sum(), Relaxed);
        SEEN.store(now(), Relaxed);
    }

    fn conclude(&self) {
        for &(number, holder) in self.0.as_slice() {
            record(number, Some(holder));
        }
        let (a, b) = self.0.as_slice()[0];
        replay::conclude(outcome::DEADLOCK, a as u64, b as u64);
        shutdown::stop();
    }

    fn free(mut self) {
        self.0.free();
    }
}

/// Depth-first search for `goal` along the waits-for edges; `path` becomes the cycle, in order.
fn search(number: u32, goal: u32, visited: &mut List<u32>, path: &mut List<(u32, u32)>, depth: usize) -> bool {
    let thread = known(number);
    if thread.state.get() != State::Blocked || thread.serial().wait.get().deadline != NEVER || depth > 1000 {
        return false;
    }
    let exclusive_only = thread.serial().wait.get().what == WaitFor::LockShared;
    let mut visit = |next: u32| {
        if next == goal || !visited.as_slice().contains(&next) {
            path.push((number, next));
            if next == goal {
                return true;
            }
            visited.push(next);
            if search(next, goal, visited, path, depth + 1) {
                return true;
            }
            path.truncate(path.len() - 1);
        }
        false
    };
    match thread.serial().wait.get().what {
        WaitFor::Join => visit(thread.serial().wait.get().object as u32),
        WaitFor::Lock | WaitFor::LockShared => {
            let since = since_last_exclusive(thread.serial().wait.get().object);
            // SAFETY: as above.
            unsafe { live() }.as_slice().iter().any(|&holder| {
                let holds = |held: Held| {
                    held.lock == thread.serial().wait.get().object && held.since >= since && !(exclusive_only && held.shared)
                };
                known(holder).held.iter().any(holds) && visit(holder)
            })
        }
        _ => false,
    }
}

/// The same where threads run in parallel: none of them can go on. `members`: those of a cycle, with the counts of their waits;
/// empty: there is none.
pub fn standstill(members: &[(u32, u64)]) -> ! {
    standstill::stand();
    conclude_parallel(members)
}

/// Threads that run in parallel wait for each other for ever, and others run.
pub fn among(members: &[(u32, u64)]) -> ! {
    conclude_parallel(members)
}

fn conclude_parallel(members: &[(u32, u64)]) -> ! {
    if config::provoking() {
        let passes = config::passes();
        config::provokes(false);
        if passes {
            record_threads(members);
        }
    }
    let mut numbers: List<u32> = List::new();
    members.iter().for_each(|&(number, _)| numbers.push(number));
    if members.is_empty() {
        let live = all().filter(|thread| thread.ended.load(Acquire) == 0);
        live.for_each(|thread| numbers.push(thread.number.get()));
    }
    for &number in numbers.as_slice() {
        // It stands, so its stream is ours to write.
        let thread = known(number);
        if let Some((op, object, site, holder)) = standstill::told(thread)
            && thread.has_block()
        {
            // Of several readers it is the one that the cycle goes through.
            let place = members.iter().position(|&(member, _)| member == number);
            let next = place.map(|place| members[(place + 1) % members.len()].0);
            let holder = if members.is_empty() { None } else { holder.or(next) };
            recorder::sync(thread, Op::Blocked, object, 0, site, &[op as u64, holder.map_or(u64::MAX, u64::from)]);
            if !standstill::stands() {
                recorder::finish(thread);
            }
        }
    }
    let side = |index: usize| numbers.as_slice().get(index).map_or(u64::MAX, |&number| number as u64);
    let result = if members.is_empty() { outcome::STUCK } else { outcome::DEADLOCK };
    replay::conclude(result, side(0), if members.len() == 1 { side(0) } else { side(1) });
    shutdown::stop()
}

/// Of an execution of which nothing was recorded: who its threads are. Those that run, if any do, write no records of their own.
fn record_threads(members: &[(u32, u64)]) {
    // `members`, or all, stand.
    for thread in all().filter(|thread| thread.has_block()) {
        if standstill::stands() || members.iter().any(|&(number, _)| number == thread.number.get()) {
            let hot = thread.hot();
            // The whole call stack is new to the stream.
            hot.lowest.set(hot.bottom.get());
            hot.dirty.set(1);
        }
        recorder::begin(thread);
        let (id, (low, high)) = (thread.kernel_id.get() as u64, thread.stack.get());
        let parent = if thread.parent.get() == NO_THREAD { u64::MAX } else { thread.parent.get() as u64 };
        recorder::sync(thread, Op::ThreadStart, id, 0, 0, &[parent, thread.spawn_ordinal.get() as u64, low, high, 0, 0]);
    }
}

/// Says of a thread that is blocked what it waits for. Under the scheduler's lock.
pub fn record(number: u32, holder: Option<u32>) {
    // It is stopped, so its stream is ours to write.
    let thread = known(number);
    if !thread.has_block() {
        return;
    }
    let op = match thread.serial().wait.get().what {
        WaitFor::Lock => Op::Lock,
        WaitFor::LockShared => Op::LockShared,
        WaitFor::Condition => Op::CondWaitEnd,
        WaitFor::Semaphore => Op::SemaphoreWait,
        WaitFor::Barrier => Op::BarrierExit,
        WaitFor::Join => Op::ThreadJoin,
        WaitFor::Futex | WaitFor::Files => Op::Acquire,
        WaitFor::Once => Op::OnceSeen,
        WaitFor::Time | WaitFor::Nothing => Op::Sleep,
    };
    let (object, site) = (thread.serial().wait.get().object, thread.wait_site.get());
    recorder::sync(thread, Op::Blocked, object, 0, site, &[op as u64, holder.map_or(u64::MAX, u64::from)]);
}

/// Nobody can ever run again: a deadlock, or no cycle of holders explains it. Under the scheduler's lock, called by the watchdog.
pub fn stuck() {
    conclude_any();
    // SAFETY: callers hold the scheduler's lock.
    let live = unsafe { live() };
    for &number in live.as_slice() {
        record(number, None);
    }
    let side = |index: usize| live.as_slice().get(index).map_or(u64::MAX, |&number| number as u64);
    replay::conclude(outcome::STUCK, side(0), side(1));
    shutdown::stop();
}

/// When a lock was last taken for one thread alone, in serial mode: who is said to have taken it before does not have it any
/// more, as its memory was used for another lock meanwhile.
fn since_last_exclusive(lock: u64) -> u64 {
    let held = all().flat_map(|thread| thread.held.iter());
    held.filter(|held| held.lock == lock && !held.shared).map(|held| held.since).max().unwrap_or(0)
}
