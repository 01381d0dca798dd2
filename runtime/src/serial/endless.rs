//! Executions that never end though nobody waits: every thread that is left is blocked for good, or repeats the same state for
//! ever.
//!
//! A thread that polls for what nobody will ever do (a flag, a lock that is never released) is not blocked, and
//! runs until somebody ends it. That a thread *seems* to repeat itself proves nothing: it may count its rounds in a register. So
//! when threads have done nothing for long but poll, a *hearing* is held. Who has the turn shows in a forked copy of the process,
//! one instruction after the other, that it comes back to a state in which it was ([`trial`]); then every other thread that could
//! run has to, from the very same memory, as nobody runs in between. Since no round changes anything that another thread can see,
//! they do so under every schedule, and for ever. One thread that cannot show it ends the hearing, has the turn, and goes on.
//!
//! Guarantee: an execution that is called endless has no continuation that ends, unless somebody ends it or writes into its
//! memory. No verdict where something else may come in: handlers of signals, timers, waits with a time-out, calls into the
//! kernel, clocks, random numbers, memory shared with other processes, threads that the runtime does not know, a debugger.
//!
//! How often hearings are held is bounded: each that shows nothing makes the next one four times rarer, up to [`RAREST`].

use crate::record::recorder;
use crate::serial::clock::NEVER;
use crate::serial::sched::{self, LOCK, WaitFor, live};
use crate::serial::shutdown;
use crate::serial::trial::{self, Answer, Setting};
use crate::serial::{deadlock, explore, linger, preconditions, replay, standstill, watchdog, world};
use crate::system::thread::{State, Thread, by_number, known};
use crate::system::{config, signals};
use core::cell::Cell;
use core::sync::atomic::{AtomicU32, Ordering::*};
use rashomon_abi::header::outcome;
use rashomon_abi::record::Op;

/// What a thread polls, by the last event that offered its turn.
pub struct Local {
    /// Code of the operation; 0 for a plain access.
    op: Cell<u64>,
    object: Cell<u64>,
    site: Cell<u64>,
    /// The stretch without any move in which it last did anything but sleep.
    awake_in: Cell<u32>,
    /// It showed in this hearing that it repeats itself.
    shown: Cell<bool>,
}

/// What the offers since anything else happened weigh, and what they have to weigh for a hearing. For the holder of the turn.
static WEIGHT: AtomicU32 = AtomicU32::new(0);
/// Counts what is no poll, from 1.
static STRETCH: AtomicU32 = AtomicU32::new(1);
static NEXT: AtomicU32 = AtomicU32::new(OFTENEST);
const OFTENEST: u32 = 128;
const RAREST: u32 = 1 << 20;
/// What used-up quanta weigh; a poll weighs one.
pub const QUANTUM_WEIGHT: u32 = 16;
/// Number + 1 of the thread that is to show next.
static CALLED: AtomicU32 = AtomicU32::new(0);

/// The thread stands before this.
pub fn stands_before(thread: &Thread, op: u64, object: u64, site: u64) {
    let local = &thread.serial().endless;
    local.op.set(op);
    local.object.set(object);
    local.site.set(site);
    if op != Op::Sleep as u64 {
        local.awake_in.set(STRETCH.load(Relaxed));
    }
}

/// Something happened that is no poll: a thread began, ended, waited or was woken.
pub fn moves() {
    WEIGHT.store(0, Relaxed);
    STRETCH.fetch_add(1, Relaxed);
}

/// A thread offers its turn because it polls, or has run for long. For the holder of the turn. True: there was a hearing, in
/// which the thread showed what it does, or this is the copy of the process in which it is to; it goes on without offering its
/// turn.
pub fn offered(thread: &Thread, weight: u32) -> bool {
    if replay::active() || explore::on() || linger::on() || !config::serial() {
        return false;
    }
    let weighed = WEIGHT.load(Relaxed).saturating_add(weight);
    WEIGHT.store(weighed, Relaxed);
    if weighed < NEXT.load(Relaxed) {
        return false;
    }
    WEIGHT.store(0, Relaxed);
    NEXT.store(NEXT.load(Relaxed).saturating_mul(4).min(RAREST), Relaxed);
    LOCK.lock();
    if !may_be_endless(thread) {
        LOCK.unlock();
        return false;
    }
    // SAFETY: under the lock; registered threads are never unmapped, and all but the calling one stand still.
    unsafe { live() }.as_slice().iter().for_each(|&number| known(number).serial().endless.shown.set(false));
    hear(thread)
}

/// A thread that has just been given the turn: if that was for a hearing it shows what it does.
pub fn is_called(thread: &Thread) {
    if CALLED.load(Relaxed) == thread.number.get() + 1 {
        CALLED.store(0, Relaxed);
        LOCK.lock();
        hear(thread);
    }
}

/// Who is to have the turn for a hearing. Under the scheduler's lock.
pub fn next() -> Option<&'static Thread> {
    by_number(CALLED.load(Relaxed).checked_sub(1)?)
}

/// In a copy of the process, in which the thread shows what it does: no shutdown is told of, and nobody else holds a lock.
fn begin_copy() {
    shutdown::forget();
    world::reset_lock();
}

/// Under the scheduler's lock, which is released, by the holder of the turn. False: the thread has shown nothing.
fn hear(thread: &Thread) -> bool {
    // SAFETY: under the lock.
    let live = unsafe { live() };
    let setting = Setting { site: thread.serial().endless.site.get(), shared: explore::words() as u64, begin_copy };
    match trial::hold(thread, live.as_slice(), &setting) {
        Answer::Shown => {}
        answer => {
            LOCK.unlock();
            return matches!(answer, Answer::Copy);
        }
    }
    thread.serial().endless.shown.set(true);
    let waits = |&&number: &&u32| known(number).state.get() == State::Runnable && !known(number).serial().endless.shown.get();
    match live.as_slice().iter().find(waits) {
        Some(&number) => {
            CALLED.store(number + 1, Relaxed);
            thread.state.set(State::Runnable);
            sched::pass_on(thread, true);
            true
        }
        None => conclude(thread),
    }
}

/// Whether nothing but the threads themselves can change anything. Under the scheduler's lock, by the holder of the turn.
fn may_be_endless(caller: &Thread) -> bool {
    if signals::handlers_installed() || standstill::timer_armed() {
        return false;
    }
    // SAFETY: under the lock.
    let live = unsafe { live() }.as_slice();
    let qualifies = |number: u32| {
        let thread = known(number);
        thread.arrived.get()
            && thread.has_block()
            && thread.evicted.load(Acquire) == 0
            && thread.pending_signals.load(Acquire) == 0
            && thread.cancelled.load(Acquire) == 0
            && match thread.state.get() {
                // Who does nothing but sleep waits for what comes from outside, as the main thread of a server may.
                State::Running => {
                    number == caller.number.get() && thread.serial().endless.awake_in.get() == STRETCH.load(Relaxed)
                }
                State::Runnable => thread.serial().endless.awake_in.get() == STRETCH.load(Relaxed),
                State::Blocked => {
                    thread.serial().wait.get().deadline == NEVER && waits_for_thread(thread.serial().wait.get().what)
                }
                _ => false,
            }
    };
    let known = live.len() + usize::from(watchdog::is_started());
    live.iter().all(|&number| qualifies(number)) && preconditions::kernel_threads() == known
}

/// Whether only another thread ends such a wait.
const fn waits_for_thread(what: WaitFor) -> bool {
    match what {
        WaitFor::Lock
        | WaitFor::LockShared
        | WaitFor::Condition
        | WaitFor::Semaphore
        | WaitFor::Barrier
        | WaitFor::Join
        | WaitFor::Futex
        | WaitFor::Once => true,
        WaitFor::Nothing | WaitFor::Files | WaitFor::Time => false,
    }
}

/// All have shown it. Under the scheduler's lock, by the holder of the turn.
fn conclude(holder: &Thread) -> ! {
    // Of threads that wait for each other their cycle says more.
    deadlock::conclude_any();
    let mut sides = [u64::MAX; 2];
    let mut count = 0;
    // SAFETY: under the lock.
    for &number in unsafe { live() }.as_slice() {
        // All but the calling one stand still, so their streams are ours to write.
        let thread = known(number);
        if thread.state.get() == State::Blocked {
            deadlock::record(number, None);
            continue;
        }
        let Local { op, object, site, .. } = &thread.serial().endless;
        recorder::sync(thread, Op::Blocked, object.get(), 0, site.get(), &[op.get(), u64::MAX, 1]);
        if let Some(side) = sides.get_mut(count) {
            *side = u64::from(number);
            count += 1;
        }
    }
    recorder::stands(holder);
    replay::conclude(outcome::ENDLESS, sides[0], sides[1]);
    shutdown::stop()
}
