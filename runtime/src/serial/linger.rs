//! The end of the process, while other threads run.
//!
//! What a program's threads do after somebody has asked for the end depends on how long the operating system delays the last
//! step; a serial execution that ends at once would never show it. So the thread that ends the process stands still, twice:
//! before the first handler of `exit` runs, and behind the last one. Meanwhile the others run, as the policy says, until each has
//! ended, blocks, or
//! *repeats itself*: it has made [`SAME_STEPS`] steps without coming to a place (operation and call site) where it had not been
//! since the end began, or [`ALL_STEPS`] in all. Sleeps pass in virtual time. A thread that repeats itself is passed over from
//! there on. Any such schedule is one that the program can have.
//!
//! Where each thread stood when it ran last is in the recording, as for every turn, so replays and forced schedules do not ask
//! any of this. Bounds are numbers of steps; time decides only when these take long ([`LONGEST_NS`]), and for calls into the
//! kernel that do not come back ([`KERNEL_NS`]).
//!
//! Exploration stands behind the handlers only: there the end of the process is a step like others, which is made when nobody
//! else can go on (`explore`).
//!
//! Without turns the process waits in real time, as ThreadSanitizer does, as long as another thread runs ([`in_parallel`]).

use crate::record::recorder;
use crate::serial::clock::{self, NEVER};
use crate::serial::explore;
use crate::serial::sched::{self, WaitFor, Wake};
use crate::serial::shutdown;
use crate::system::memory::Map;
use crate::system::thread::{Runtime, State, Thread, all, known};
use crate::system::{config, ending, sys};
use core::cell::Cell;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::*};
use rashomon_abi::control;
use rashomon_abi::record::{Op, exit_stage};

/// The process as an object: no address is so low, and no thread's number so high.
pub const PROCESS: u64 = u32::MAX as u64;

/// Number + 1 of the thread for whose sake the others run.
static ENDER: AtomicU32 = AtomicU32::new(0);
/// Nobody else gets the turn any more.
static OVER: AtomicBool = AtomicBool::new(false);
/// When it began: processor time, which is that of one thread after the other.
static BEGAN: AtomicU64 = AtomicU64::new(0);
/// Places by thread. For the holder of the turn.
static mut PLACES: Map = Map::new();

const SAME_STEPS: u32 = 4096;
const ALL_STEPS: u32 = 1 << 16;
/// In explored executions, which have to be short.
const SAME_STEPS_EXPLORED: u32 = 256;
/// Steps that a used-up quantum of accesses is worth.
pub const QUANTUM_STEPS: u32 = 16;
/// `CLOCK_PROCESS_CPUTIME_ID`
const PROCESSOR: usize = 2;
const LONGEST_NS: u64 = 200_000_000;
const KERNEL_NS: u64 = 50_000_000;
/// Without turns.
const PARALLEL_MS: u64 = 1000;
/// There are many executions of these.
const PROVOKED_MS: u64 = 200;

/// What a thread knows of this.
pub struct Local {
    /// It stands at the end of the process.
    pub ends: Cell<bool>,
    /// It repeated itself.
    pub passed_over: Cell<bool>,
    steps: Cell<u32>,
    /// Steps since the last new place.
    same: Cell<u32>,
}

impl Local {
    /// Nothing was counted yet.
    fn begin(&self) {
        self.passed_over.set(false);
        self.steps.set(0);
        self.same.set(0);
    }
}

/// Whether threads run only because the process has not ended yet.
pub fn on() -> bool {
    ENDER.load(Relaxed) != 0
}

/// A forked child has one thread.
pub fn forget(thread: &Thread) {
    thread.serial().linger.begin();
    thread.serial().linger.ends.set(false);
    ENDER.store(0, Relaxed);
    OVER.store(false, Relaxed);
}

/// The process is about to end: lets the others go on first. `stage`: see [`exit_stage`].
pub fn before_end(runtime: &Runtime, stage: u16, site: u64) {
    if !config::serial() {
        if stage == exit_stage::HANDLED {
            in_parallel(runtime.thread(), site);
        }
        return;
    }
    if shutdown::is_done() || sched::live_count() <= 1 {
        return;
    }
    let exploring = explore::on();
    if !exploring {
        sched::point(runtime, Op::ExitBegin, PROCESS, site);
    }
    let thread = runtime.thread();
    recorder::sync(thread, Op::ExitBegin, PROCESS, stage, site, &[]);
    let others_end = all().any(|other| other.number.get() != thread.number.get() && other.serial().linger.ends.get());
    thread.serial().linger.ends.set(true);
    if exploring {
        explore::process_ends(thread);
        // Whatever handlers do the others may do side by side with it. Of several ends each may be the one.
        if stage == exit_stage::HANDLED || others_end {
            sched::point(runtime, Op::ExitGoesOn, PROCESS, site);
        } else {
            sched::position(runtime, Op::ExitGoesOn, PROCESS, site);
        }
    } else {
        if !others_end {
            begin(thread);
        }
        stand_at_end(runtime, site);
        if ENDER.load(Relaxed) == thread.number.get() + 1 {
            ENDER.store(0, Relaxed);
        }
    }
    recorder::sync(thread, Op::ExitGoesOn, PROCESS, stage, site, &[]);
    if stage == exit_stage::ASKED {
        // From here on it runs handlers.
        thread.serial().linger.ends.set(others_end);
    }
}

fn begin(thread: &Thread) {
    forget_places();
    for other in all() {
        other.serial().linger.begin();
    }
    BEGAN.store(sys::clock(PROCESSOR), Relaxed);
    OVER.store(false, Relaxed);
    ENDER.store(thread.number.get() + 1, Release);
}

/// Every place is new again.
pub fn forget_places() {
    let places = &raw mut PLACES;
    // SAFETY: for the holder of the turn, and nobody else has a reference.
    unsafe { (*places).clear_and_free() };
}

/// What a thread stands before, as far as it matters here.
pub const fn place(op: u64, site: u64) -> u64 {
    site ^ op << 48
}

/// A thread has made a step. True: it repeats itself.
pub fn step(thread: &Thread, place: u64, steps: u32) -> bool {
    const STEPS_PER_LOOK_AT_THE_CLOCK: u32 = 32;
    if thread.serial().linger.ends.get() {
        return false;
    }
    let places = &raw mut PLACES;
    // SAFETY: for the holder of the turn.
    let visits = unsafe { (*places).entry((place, 1 + thread.number.get() as u64)) };
    *visits += 1;
    let known = *visits > 1;
    let linger = &thread.serial().linger;
    linger.same.set(if known { linger.same.get().saturating_add(steps) } else { 0 });
    linger.steps.set(linger.steps.get().saturating_add(steps));
    let most = if explore::on() { SAME_STEPS_EXPLORED } else { SAME_STEPS };
    let repeats = linger.same.get() >= most || linger.steps.get() >= ALL_STEPS;
    linger.passed_over.set(linger.passed_over.get() || repeats);
    if !explore::on()
        && linger.steps.get() % STEPS_PER_LOOK_AT_THE_CLOCK < steps
        && sys::clock(PROCESSOR).saturating_sub(BEGAN.load(Relaxed)) >= LONGEST_NS
    {
        OVER.store(true, Relaxed);
    }
    linger.passed_over.get() || OVER.load(Relaxed)
}

/// Whether a thread has made so many steps since it came to a new place.
pub fn stays(thread: &Thread, steps: u32) -> bool {
    thread.serial().linger.same.get() >= steps
}

/// Whether a policy is to pass a thread over that can run.
pub fn passes_over(thread: &Thread) -> bool {
    thread.serial().linger.ends.get() || on() && (thread.serial().linger.passed_over.get() || OVER.load(Relaxed))
}

/// Nobody can run whom no policy passes over. Who goes on, if anybody: one who sleeps; then who ends the process. Under the
/// scheduler's lock.
pub fn nobody_else(live: &[u32]) -> Option<&'static Thread> {
    let of = known;
    if on() && !OVER.load(Relaxed) {
        let sleeper = |thread: &Thread| {
            thread.state.get() == State::Blocked
                && thread.serial().wait.get().deadline != NEVER
                && !thread.serial().linger.passed_over.get()
        };
        let first = live
            .iter()
            .copied()
            .filter(|&number| sleeper(of(number)))
            .min_by_key(|&number| of(number).serial().wait.get().deadline);
        if let Some(number) = first {
            clock::advance_to(of(number).serial().wait.get().deadline);
            sched::let_go(of(number), Wake::TimedOut);
            return Some(of(number));
        }
        let in_kernel = |thread: &Thread| {
            thread.state.get() == State::External
                || thread.state.get() == State::Blocked && thread.serial().wait.get().what == WaitFor::Files
        };
        if live.iter().any(|&number| in_kernel(of(number))) {
            return None;
        }
    }
    let ender = ENDER.load(Relaxed).wrapping_sub(1);
    let can_end = |number: u32| of(number).serial().linger.ends.get() && of(number).state.get() == State::Runnable;
    let found =
        if live.contains(&ender) && can_end(ender) { Some(ender) } else { live.iter().copied().find(|&number| can_end(number)) };
    found.map(known)
}

/// For so long nobody has come back from the kernel. True: the process ends without them.
pub fn has_waited(idle_ns: u64) -> bool {
    if idle_ns >= KERNEL_NS {
        OVER.store(true, Relaxed);
    }
    OVER.load(Relaxed)
}

/// Without turns: waits as long as another thread may still do something, but not for ever.
fn in_parallel(thread: &Thread, site: u64) {
    if config::mode() != control::mode::FREE || shutdown::is_done() {
        return;
    }
    let own = sys::thread_id();
    let lives = |other: &Thread| other.ended.load(Acquire) == 0 && other.kernel_id.get() != 0 && other.kernel_id.get() != own;
    let others = || all().filter(|other| lives(other));
    if others().next().is_some() {
        recorder::sync(thread, Op::ExitBegin, PROCESS, exit_stage::HANDLED, site, &[]);
        ending::wait_for_others(if config::provoking() { PROVOKED_MS } else { PARALLEL_MS }, || {
            others().any(|other| ending::may_go_on(other.kernel_id.get()))
        });
    }
}

/// The thread stands before its last step, the end of the process, and makes it when the others have had their turns.
fn stand_at_end(runtime: &Runtime, site: u64) {
    let thread = runtime.thread();
    sched::come_back(thread);
    sched::PROGRESS.fetch_add(1, Relaxed);
    if !sched::enforced(runtime, Op::ExitGoesOn, PROCESS, site, crate::serial::replay::AccessAt::NONE) {
        sched::LOCK.lock();
        thread.state.set(State::Runnable);
        sched::pass_on(thread, true);
    }
}

/// Counts a step of a thread that runs only because the process has not ended yet. True: it had enough of them, and stood here
/// until others had ended the process, or gone on without that.
pub fn stops(thread: &Thread, place: u64, steps: u32) -> bool {
    if !on() || explore::on() || !step(thread, place, steps) {
        return false;
    }
    sched::LOCK.lock();
    thread.state.set(State::Runnable);
    sched::pass_on(thread, true);
    true
}
