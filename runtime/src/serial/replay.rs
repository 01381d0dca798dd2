//! Enforcement: the turns of the control file, executed one after the other.
//!
//! A turn lets one thread run until it is *about to* execute a position. Positions are (thread, synchronisation ordinal, place),
//! which no filter and no address-space layout changes. Whoever leaves the schedule is reported with what was expected and what
//! came instead; it is never repaired silently.

use crate::serial::clock::{self, NEVER};
use crate::serial::elastic::{self, Arrival};
use crate::serial::goals::{begin_to_hold, is_goal, turns_done};
pub use crate::serial::goals::{conclude, say_goal_reached};
pub use crate::serial::named::{allocated, appeared, schedule_index};
use crate::serial::sched::{self, LOCK, WaitFor, Wake};
use crate::serial::{arrivals, debugged, named, shutdown};
use crate::system::thread::{NO_THREAD, Runtime, State, Thread, current_number, known};
use crate::system::{config, header, modules};
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering::*};
use rashomon_abi::control::{self, TURN_WORDS, after, goal, object, turn};
use rashomon_abi::header::{divergence, field, outcome};
use rashomon_abi::record::Op;
pub use rashomon_logic::access::{AccessAt, conflict};
pub use rashomon_logic::operations::are_interchangeable;
use rashomon_logic::operations::{may_precede, representative};

static TURN: AtomicU32 = AtomicU32::new(0);
/// 0: no schedule (any more). 1: in force. 2: turns done, goal threads first.
static ACTIVE: AtomicU32 = AtomicU32::new(0);
/// The access a thread stands at, as its side of the goal.
pub type GoalAccess = AccessAt;

#[derive(Clone, Copy)]
pub struct Turn {
    pub thread: u32,
    pub flags: u64,
    pub ordinal: u64,
    pub count: u64,
    site: (u64, u64),
    object: u64,
    delta: u64,
    size: u64,
    pub op: u64,
}

pub fn turn_at(index: usize) -> Turn {
    let at = config::tables().turns + index * TURN_WORDS;
    let word = |offset: usize| config::word(at + offset);
    Turn {
        thread: word(0) as u32,
        flags: word(1),
        ordinal: word(2),
        count: word(3),
        site: (word(4), word(5)),
        object: word(6),
        delta: word(7),
        size: word(8),
        op: word(9),
    }
}

pub fn current_index() -> usize {
    TURN.load(Acquire) as usize
}

/// Turns that are over.
pub fn turn_number() -> u32 {
    TURN.load(Acquire)
}

fn current() -> Turn {
    turn_at(current_index())
}

fn turns() -> usize {
    config::count(control::field::TURNS)
}

/// A forked child follows its own schedule from the beginning, or none.
///
/// # Safety
/// In a child that has one thread.
pub unsafe fn restart() {
    TURN.store(0, Relaxed);
    ACTIVE.store(0, Relaxed);
    elastic::restart();
    named::forget();
    initialise();
}

pub fn initialise() {
    if turns() > 0 && config::serial() && !config::option(control::option::HOLD_ONLY) {
        ACTIVE.store(1, Release);
    }
    elastic::initialise();
}

pub fn active() -> bool {
    ACTIVE.load(Relaxed) == 1
}

/// Whether the turn ends at that code address.
pub fn is_site(turn: &Turn, site: u64) -> bool {
    modules::address(turn.site.0, turn.site.1) == Some(site)
}

/// Whether an access may be of the turn's object: heap and stack objects may be others' in another order.
pub fn may_be_object(turn: &Turn, access: &AccessAt) -> bool {
    let global = turn.flags & turn::AT_SITE != 0
        && config::word(config::tables().objects + turn.object as usize * control::OBJECT_WORDS) == object::GLOBAL;
    !global || matches_site(turn, access)
}

fn matches_site(turn: &Turn, access: &AccessAt) -> bool {
    is_site(turn, access.site)
        && match named::place(turn.object, turn.delta) {
            Some(Some(address)) => access.overlaps(address, turn.size),
            Some(None) => true,
            None => false,
        }
}

/// The quantum a schedule asks for; `None` without one.
pub fn quantum(thread: &Thread) -> Option<i64> {
    const UNBOUNDED: i64 = i64::MAX / 2;
    if elastic::watching() {
        return Some(0);
    }
    if !active() {
        return None;
    }
    let turn = current();
    if elastic::asked() && turn.thread == thread.schedule_index.get() && turn.flags & turn::AT_SITE != 0 {
        return Some(0);
    }
    if turn.thread != thread.schedule_index.get() || turn.ordinal != thread.ordinal.get() as u64 {
        return Some(UNBOUNDED);
    }
    Some(if turn.flags & turn::AT_SITE != 0 {
        0
    } else if turn.flags & turn::AT_COUNT != 0 {
        turn.count.saturating_sub(thread.since_sync.get()).min(UNBOUNDED as u64) as i64
    } else {
        UNBOUNDED
    })
}

/// A synchronisation event is about to happen. True: a schedule is in force, the policy has no say.
pub fn at_synchronisation(runtime: &Runtime, op: Op, object: u64, site: u64, access: AccessAt) -> bool {
    let thread = runtime.thread();
    if elastic::asked() {
        follow(thread, op, site, access);
        if elastic::watching() {
            elastic::at_synchronisation(thread, op, site, access);
        }
        return active();
    }
    if !active() {
        return false;
    }
    while active() {
        let turn = current();
        if turn.thread != thread.schedule_index.get() {
            hand_over(thread);
            continue;
        }
        let goes_on = turn.ordinal > thread.ordinal.get() as u64;
        let waits_here = turn.flags & turn::WAITING != 0 && turn.ordinal == thread.ordinal.get() as u64;
        if turn.flags & turn::TO_END != 0 || goes_on || waits_here {
            break;
        }
        // What came next was no access before this event, but a signal's handler, or external input.
        let here = turn.ordinal == thread.ordinal.get() as u64
            && turn.flags & turn::AT_COUNT != 0
            && turn.count == thread.accesses_since_sync();
        let elsewhere = turn.flags & (turn::AT_SITE | turn::AT_COUNT) != 0 && !here;
        if turn.ordinal < thread.ordinal.get() as u64 || elsewhere {
            diverged(divergence::PASSED, thread, Some((op, object, site)));
            break;
        }
        // A handler runs before the thread waits.
        let interrupted = thread.pending_signals.load(Relaxed) != 0;
        if !here && interrupted && representative(turn.op) != representative(op as u64) {
            break;
        }
        if !here && !may_precede(op, turn.op) && turn.op != 0 && representative(turn.op) != representative(op as u64) {
            diverged(divergence::OTHER_OPERATION, thread, Some((op, object, site)));
            break;
        }
        reached(thread, AccessAt { site, ..access });
    }
    true
}

/// The same where positions are recognised elastically: by operation, site and occurrence.
fn follow(thread: &Thread, op: Op, site: u64, access: AccessAt) {
    while active() {
        let index = current_index();
        let turn = turn_at(index);
        if turn.thread != thread.schedule_index.get() {
            hand_over(thread);
            continue;
        }
        if elastic::is_done(thread, index) {
            advance();
            continue;
        }
        if turn.flags & turn::TO_END != 0 {
            break;
        }
        match elastic::at_turn(thread, index, op, site) {
            Arrival::There => reached(thread, AccessAt { site, ..access }),
            Arrival::Over if is_goal(index) => diverged(divergence::PASSED, thread, Some((op, 0, site))),
            Arrival::Over => {
                thread.serial().goal.set(AccessAt { site, ..access });
                advance();
                sched::reload_quantum(thread);
            }
            Arrival::Later => break,
        }
    }
}

/// The same at an access.
fn follow_access(thread: &Thread, access: AccessAt) {
    while active() {
        let index = current_index();
        let turn = turn_at(index);
        if turn.thread != thread.schedule_index.get() {
            hand_over(thread);
            continue;
        }
        if elastic::is_done(thread, index) {
            advance();
            continue;
        }
        let there = turn.flags & turn::AT_SITE != 0
            && is_site(&turn, access.site)
            && may_be_object(&turn, &access)
            && matches!(elastic::at_access_turn(thread, index, &turn), Arrival::There);
        if !there {
            break;
        }
        reached(thread, access);
    }
}

/// An access is about to be made. True: a schedule is in force.
pub fn at_access(runtime: &Runtime, access: AccessAt) -> bool {
    let thread = runtime.thread();
    if elastic::asked() {
        follow_access(thread, access);
        if elastic::watching() {
            elastic::at_access(thread, access);
        }
        return active();
    }
    if !active() {
        return false;
    }
    while active() {
        let turn = current();
        if turn.thread != thread.schedule_index.get() {
            hand_over(thread);
            continue;
        }
        let here = turn.ordinal == thread.ordinal.get() as u64
            && if turn.flags & turn::AT_SITE != 0 {
                matches_site(&turn, &access)
            } else {
                turn.flags & turn::AT_COUNT != 0 && turn.count == thread.since_sync.get()
            };
        if !here {
            break;
        }
        reached(thread, access);
    }
    true
}

fn hand_over(thread: &Thread) {
    LOCK.lock();
    thread.state.set(State::Runnable);
    sched::pass_on_locked(thread);
}

/// The thread stands at its turn's position.
fn reached(thread: &Thread, access: AccessAt) {
    if is_goal(current_index()) {
        thread.serial().goal.set(access);
        // Elastically it may not be the last place at which it stands.
        if !elastic::asked() {
            say_goal_reached(thread);
        }
    }
    advance();
    sched::reload_quantum(thread);
    debugged::reached(thread);
}

/// The current turn is over.
fn advance() {
    let next = current_index() + 1;
    TURN.store(next as u32, Release);
    header::set(field::TURNS_DONE, next as u64);
    debugged::over(next);
    if next >= turns() {
        turns_done();
    }
}

/// The schedule is no longer in force.
pub fn over(state: u32) {
    ACTIVE.store(state, Release);
    arrivals::release_held();
}

/// The execution left the schedule.
pub fn diverged(kind: u64, thread: &Thread, actual: Option<(Op, u64, u64)>) {
    let turn = current();
    if elastic::asked() {
        over(0);
        return begin_to_hold();
    }
    header::set(field::DIVERGENCE, kind);
    header::set(field::EXPECTED_ORDINAL, turn.ordinal);
    header::set(field::ACTUAL_ORDINAL, thread.ordinal.get() as u64);
    if let Some((op, object, site)) = actual {
        header::set(field::ACTUAL_OP, op as u64);
        header::set(field::ACTUAL_SITE, site);
        header::set(field::ACTUAL_OBJECT, object);
    }
    over(0);
    header::set(field::OUTCOME_THREAD_A, thread.number.get() as u64);
    header::set(field::OUTCOME_TURN, current_index() as u64);
    header::set(field::OUTCOME, outcome::DIVERGED);
    if config::word(control::field::AFTER) == after::STOP {
        shutdown::stop();
    }
}

pub enum Choice {
    Thread(&'static Thread),
    /// The schedule's thread has to come back from the kernel first.
    Wait,
    /// No schedule: the policy decides.
    Free,
}

/// Whether a turn ends with the wait that its thread is in, and not with something that the thread does after it. Recordings say
/// so ([`turn::WAITING`]); of other schedules it is guessed, unless they have a goal: such a one wants the thread where it stands
/// after that.
fn waits_at(turn: &Turn, thread: &Thread) -> bool {
    let in_kernel = thread.state.get() == State::External;
    if turn.ordinal != thread.ordinal.get() as u64 {
        return false;
    }
    if turn.flags & turn::WAITING != 0 {
        let waits = thread.state.get() == State::Blocked || in_kernel && thread.evicted.load(Relaxed) == sched::LET_GO;
        return waits && turn.count == thread.accesses_since_sync();
    }
    let asleep = thread.state.get() == State::Blocked && thread.serial().wait.get().deadline != NEVER;
    if thread.turn_ended.get()
        || !asleep && !in_kernel
        || config::word(control::field::GOAL) != goal::NONE
        || turn.flags & (turn::TO_END | turn::AT_SITE) != 0
    {
        return false;
    }
    if turn.flags & turn::AT_COUNT != 0 {
        return turn.count == thread.accesses_since_sync();
    }
    // The call's own event, or the unwinder's first.
    in_kernel && representative(turn.op) == Op::Release as u64 || representative(turn.op) == Op::OnceBegin as u64
}

/// Who is next by the schedule. Under the scheduler's lock, with no holder of the turn.
pub fn choose() -> Choice {
    debug_assert!(LOCK.is_locked() && sched::CURRENT.load(Relaxed) == NO_THREAD);
    if let Some(thread) = elastic::closing() {
        return Choice::Thread(thread);
    }
    if ACTIVE.load(Relaxed) == 2 {
        let goals = config::tables().goals;
        for goal in 0..config::count(control::field::GOALS) {
            let index = config::word(goals + goal * control::GOAL_WORDS) as usize;
            if let Some(number) = named::number(index) {
                let thread = known(number);
                if thread.state.get() == State::Runnable {
                    return Choice::Thread(thread);
                }
            }
        }
        return Choice::Free;
    }
    while active() {
        let turn = current();
        let Some(number) = named::number(turn.thread as usize) else {
            diverged(divergence::NO_SUCH_THREAD, known(0), None);
            break;
        };
        let thread = known(number);
        if elastic::asked() && elastic::is_done(thread, current_index()) {
            advance();
            continue;
        }
        let to_end = turn.flags & turn::TO_END != 0;
        let waits_here = waits_at(&turn, thread);
        match thread.state.get() {
            State::Runnable | State::Running | State::Held => return Choice::Thread(thread),
            State::Blocked | State::External if waits_here => {
                thread.turn_ended.set(true);
                advance();
            }
            State::External if thread.evicted.load(Relaxed) == sched::EVICTED && thread.evicted_turn.get() == turn_number() => {
                advance()
            }
            State::External => return Choice::Wait,
            State::Ended if ends_unseen(&turn) => advance(),
            State::Ended if elastic::asked() && !is_goal(current_index()) => advance(),
            State::Ended => diverged(divergence::ENDED, thread, None),
            State::Blocked if thread.serial().wait.get().what == WaitFor::Files => {
                crate::serial::watchdog::poll_files(0);
                if thread.state.get() == State::Blocked {
                    return Choice::Wait;
                }
            }
            State::Blocked if thread.serial().wait.get().deadline != NEVER => {
                clock::advance_to(thread.serial().wait.get().deadline);
                sched::let_go(thread, Wake::TimedOut);
            }
            State::Blocked if to_end => advance(),
            // Others go first, who may let it go on in its next turn.
            State::Blocked if elastic::asked() && !is_goal(current_index()) => advance(),
            State::Blocked => diverged(
                divergence::BLOCKED,
                thread,
                Some((Op::Blocked, thread.serial().wait.get().object, thread.wait_site.get())),
            ),
        }
    }
    Choice::Free
}

/// The thread that the schedule waits for, if that is what nobody runs for.
pub fn awaited() -> Option<&'static Thread> {
    if !active() {
        return None;
    }
    let number = named::number(current().thread as usize)?;
    Some(known(number))
}

/// A thread's last event happened in its own turn, or not. Under the scheduler's lock.
pub fn ended(thread: &Thread) {
    if active() {
        let turn = current();
        if turn.thread == thread.schedule_index.get() && ends_unseen(&turn) {
            advance();
        }
    }
}

/// Whether a turn's thread may end in it: the schedule says so, or knows of no event that the thread got to.
fn ends_unseen(turn: &Turn) -> bool {
    turn.flags & turn::TO_END != 0 || turn.flags & (turn::AT_SITE | turn::AT_COUNT) == 0 && turn.op == 0
}

/// Whether [`process_ends`] concluded how the schedule ended.
static CONCLUDED_AT_END: AtomicBool = AtomicBool::new(false);

/// The process ends: a schedule that is not through has failed.
pub fn process_ends() {
    if active() && header::word(field::OUTCOME).load(Relaxed) == outcome::NONE {
        let turn = current();
        // Others may be cut off before their last turns; who ends the process had come to all of its own.
        let is_early = named::number(turn.thread as usize)
            .is_some_and(|number| u64::from(number) == current_number() && known(number).ordinal.get() < turn.ordinal as u32);
        let last_words = turn.flags & turn::TO_END != 0 || config::word(control::field::GOAL) == goal::NONE && !is_early;
        ACTIVE.store(0, Release);
        CONCLUDED_AT_END.store(true, Relaxed);
        if last_words {
            header::set(field::OUTCOME, outcome::SCHEDULE_DONE);
        } else {
            header::set(field::DIVERGENCE, divergence::PROGRAM_ENDED);
            header::set(field::EXPECTED_ORDINAL, turn.ordinal);
            header::set(field::OUTCOME_TURN, current_index() as u64);
            header::set(field::OUTCOME, outcome::DIVERGED);
        }
    }
}

/// It goes on after all, as a call that was to end it failed: what [`process_ends`] concluded does not hold, and the schedule is
/// in force again.
pub fn process_goes_on() {
    if CONCLUDED_AT_END.swap(false, Relaxed) {
        for field in [field::OUTCOME, field::DIVERGENCE, field::EXPECTED_ORDINAL, field::OUTCOME_TURN] {
            header::set(field, 0);
        }
        ACTIVE.store(1, Release);
    }
}
