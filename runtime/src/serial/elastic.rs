//! Elastic enforcement: a goal that comes about although the program leaves the turns.
//!
//! Another order of the same program makes some operations unnecessary (a condition wait) and others move (who comes first
//! initialises). So positions are recognised by operation, site and occurrence instead of the ordinal: what the program does in
//! addition is let through, what it leaves out is skipped, each within [`SLACK`] synchronisation events. When that does not help,
//! or all turns are over and the goal is not there, the execution goes on as a
//! *provocation*: whoever comes to a place of the goal is held there while the others run under the policy, until another thread
//! arrives at overlapping bytes (race), or one thread stands before each acquisition of the cycle (deadlock). When nobody else
//! can run, the one who was held last goes on.
//!
//! Guarantee: what is concluded is what strict enforcement concludes, from the same state: two threads right before conflicting
//! accesses, or a cycle that is really there. Holding shuts out executions and adds none: a held thread is one that the scheduler
//! does not choose. What was executed is recorded turn by turn, so that the host can ask for the very same interleaving again.
//!
//! The idea of holding: K. Sen, "Race directed random testing of concurrent programs", PLDI 2008, and RaceHunter (2024, §3); for
//! deadlocks: P. Joshi, C.-S. Park, K. Sen, M. Naik, "A randomized dynamic program analysis technique for detecting real
//! deadlocks", PLDI 2009. Deviation: nobody is held for a time, but until nobody else can run.

use crate::serial::clock::NEVER;
use crate::serial::replay::{self, AccessAt, Turn};
use crate::serial::sched::{self, LOCK, WaitFor, live};
use crate::system::guarded::Guarded;
use crate::system::memory::Map;
use crate::system::thread::{State, Thread, known};
use crate::system::{config, modules};
use core::cell::Cell;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::*};
use rashomon_abi::control::{self, field, goal, option, turn};
use rashomon_abi::header::outcome;
use rashomon_abi::record::Op;

/// Synchronisation events by which a thread may be ahead of a position before it is taken to have left it out.
pub const SLACK: i64 = 8;
/// A thread that is held longer than so many events of others, who may go round in a loop, goes on.
const MOST_EVENTS: u32 = 20_000;
/// Holds of one execution.
const MOST_HOLDS: u32 = 256;
/// Matches of a place at which threads are held one after the other, before the distance doubles.
const DENSE: u32 = 16;
/// Places that a goal may have.
const MOST_PLACES: usize = 8;

/// The turns are over, or were left: threads are held at the goal's places.
static WATCHING: AtomicBool = AtomicBool::new(false);
/// Threads that are held, and all holds so far.
static HELD: AtomicU32 = AtomicU32::new(0);
static HOLDS: AtomicU32 = AtomicU32::new(0);
/// Events since the last hold began.
static EVENTS: AtomicU32 = AtomicU32::new(0);
/// Accesses since a thread was last asked to let others run.
static ACCESSES: AtomicU64 = AtomicU64::new(0);
/// By place of the goal: matches so far, and the one at which a thread is held next.
static MATCHES: [AtomicU32; MOST_PLACES] = [const { AtomicU32::new(0) }; MOST_PLACES];
static NEXT: [AtomicU32; MOST_PLACES] = [const { AtomicU32::new(0) }; MOST_PLACES];

/// What is known of one thread. All zero: nothing.
pub struct Local {
    /// Synchronisation events by site, and the ordinal + 1 up to which they were counted.
    counts: Guarded<Map>,
    counted: Cell<u32>,
    /// How the event that it stands before is numbered among those of its site.
    occurrence: Cell<u64>,
    /// How many more synchronisation events than the schedule expects it had made at the last position that was recognised.
    ahead: Cell<i64>,
    /// Turn + 1 at whose position it stands, or that it has left behind.
    done: Cell<u32>,
    /// Number of its hold, from 1, and the place of the goal; 0: it is not held.
    hold: Cell<u32>,
    place: Cell<u32>,
    /// A cycle is about to close: it goes on to its acquisition before others.
    closes: Cell<bool>,
}

impl Local {
    /// The thread is over.
    pub fn forget(&self) {
        self.counts.with(Map::clear_and_free);
    }
}

/// Whether turns may be left.
pub fn asked() -> bool {
    config::option(option::ELASTIC) && config::word(field::GOAL) != goal::NONE
}

pub fn watching() -> bool {
    WATCHING.load(Relaxed)
}

pub fn holds_anybody() -> bool {
    HELD.load(Relaxed) != 0
}

/// A forked child has no goal of its own.
pub fn restart() {
    WATCHING.store(false, Relaxed);
    for counter in [&HELD, &HOLDS, &EVENTS].into_iter().chain(&MATCHES).chain(&NEXT) {
        counter.store(0, Relaxed);
    }
}

/// Without turns to enforce, from the beginning.
pub fn initialise() {
    if asked() && config::option(option::HOLD_ONLY) {
        WATCHING.store(true, Release);
    }
}

/// How a thread that has the turn stands to its position.
pub enum Arrival {
    /// It stands there.
    There,
    /// It has passed it, or will not come by it: the turn is over.
    Over,
    /// It has still to come.
    Later,
}

/// Counts the event that `thread` stands before.
fn count(thread: &Thread, site: u64) {
    if thread.serial().elastic.counted.get() != thread.ordinal.get() + 1 {
        thread.serial().elastic.counted.set(thread.ordinal.get() + 1);
        let seen = thread.serial().elastic.counts.with(|counts| {
            let seen = counts.entry((site, 1));
            *seen += 1;
            *seen
        });
        thread.serial().elastic.occurrence.set(seen - 1);
    }
}

/// A synchronisation event is about to happen in the turn at `index`.
pub fn at_turn(thread: &Thread, index: usize, op: Op, site: u64) -> Arrival {
    count(thread, site);
    let matched = |turn: &Turn, thread: &Thread| {
        turn.flags & turn::LANDMARK != 0
            && replay::are_interchangeable(turn.op, op)
            && replay::is_site(turn, site)
            && turn.count == thread.serial().elastic.occurrence.get()
    };
    let here = replay::turn_at(index);
    if matched(&here, thread) {
        recognised(thread, index, &here);
        return Arrival::There;
    }
    // A later position of the same thread: what comes before it was left out.
    let mut ahead = 0;
    for later in index + 1..(index + 1 + LOOK_AHEAD).min(config::count(field::TURNS)) {
        let turn = replay::turn_at(later);
        if turn.thread == here.thread {
            if matched(&turn, thread) {
                recognised(thread, later, &turn);
                return Arrival::Over;
            }
            ahead += 1;
            if ahead >= OWN_LOOK_AHEAD {
                break;
            }
        }
    }
    if thread.ordinal.get() as i64 > here.ordinal as i64 + thread.serial().elastic.ahead.get() + SLACK {
        Arrival::Over
    } else {
        Arrival::Later
    }
}

/// Turns, and turns of the same thread, among which a position is looked for.
const LOOK_AHEAD: usize = 256;
const OWN_LOOK_AHEAD: u32 = 8;

/// An access is about to be made in the turn at `index`, at whose place it is.
pub fn at_access_turn(thread: &Thread, index: usize, turn: &Turn) -> Arrival {
    if (thread.ordinal.get() as i64) < turn.ordinal as i64 + thread.serial().elastic.ahead.get() {
        return Arrival::Later;
    }
    recognised(thread, index, turn);
    Arrival::There
}

fn recognised(thread: &Thread, index: usize, turn: &Turn) {
    thread.serial().elastic.ahead.set(thread.ordinal.get() as i64 - turn.ordinal as i64);
    thread.serial().elastic.done.set(index as u32 + 1);
}

/// Whether the thread has already been at the position of that turn, or beyond it.
pub fn is_done(thread: &Thread, index: usize) -> bool {
    thread.serial().elastic.done.get() > index as u32
}

/// Whether the thread stands at the position of that turn: it was the last one recognised, and nothing was executed since.
pub fn stands_at(thread: &Thread, index: usize) -> bool {
    thread.serial().elastic.done.get() == index as u32 + 1
}

/// From here on threads are held; first, those who stand at their goals. Under [`LOCK`], or by the holder of the turn.
pub fn begin(stands_at_goal: fn(u32) -> bool) {
    WATCHING.store(true, Release);
    // SAFETY: by the contract; registered threads are never unmapped.
    for &number in unsafe { live() }.as_slice() {
        let thread = known(number);
        if thread.state.get() == State::Runnable && stands_at_goal(number) {
            thread.serial().elastic.place.set(place_of_thread(thread));
            mark(thread);
            thread.state.set(State::Held);
        }
    }
    close_if_all_stand();
}

fn places() -> usize {
    config::count(field::GOALS).min(MOST_PLACES)
}

fn goal_turn(place: usize) -> Turn {
    let goals = config::tables().goals;
    replay::turn_at(config::word(goals + place * control::GOAL_WORDS + 1) as usize)
}

fn place_of_thread(thread: &Thread) -> u32 {
    let goals = config::tables().goals;
    (0..places())
        .find(|&place| config::word(goals + place * control::GOAL_WORDS) == thread.schedule_index.get() as u64)
        .unwrap_or(0) as u32
}

fn mark(thread: &Thread) {
    thread.serial().elastic.hold.set(HOLDS.fetch_add(1, Relaxed) + 1);
    HELD.fetch_add(1, Relaxed);
    EVENTS.store(0, Relaxed);
}

/// Whether a thread is to be held at that place now.
fn wants(place: usize) -> bool {
    let number = MATCHES[place].fetch_add(1, Relaxed);
    let next = NEXT[place].load(Relaxed);
    if number < next || HOLDS.load(Relaxed) >= MOST_HOLDS {
        return false;
    }
    NEXT[place].store(if number < DENSE { number + 1 } else { number * 2 }, Relaxed);
    true
}

/// Stands still until let go.
fn hold(thread: &Thread, place: usize, access: AccessAt) {
    thread.serial().goal.set(access);
    thread.serial().elastic.place.set(place as u32);
    LOCK.lock();
    mark(thread);
    thread.state.set(State::Held);
    close_if_all_stand();
    sched::pass_on_locked(thread);
    thread.serial().goal.set(AccessAt::NONE);
}

/// Under [`LOCK`], or while others stand.
fn release(thread: &Thread) {
    thread.serial().elastic.hold.set(0);
    thread.state.set(State::Runnable);
    HELD.fetch_sub(1, Relaxed);
    EVENTS.store(0, Relaxed);
}

/// Held threads. Under [`LOCK`], or by the holder of the turn.
fn held() -> impl Iterator<Item = &'static Thread> {
    // SAFETY: as the contract says; registered threads are never unmapped.
    let live = unsafe { live() }.as_slice();
    live.iter().map(|&number| known(number)).filter(|thread| thread.state.get() == State::Held)
}

fn release_last() -> Option<&'static Thread> {
    let last = held().max_by_key(|thread| thread.serial().elastic.hold.get());
    last.inspect(|thread| release(thread))
}

/// Nobody can run: who was held last goes on, unless time or the world lets somebody else come. Under [`LOCK`].
pub fn relieve() -> Option<&'static Thread> {
    if !holds_anybody() {
        return None;
    }
    // SAFETY: under the lock; registered threads are never unmapped.
    let may_come = unsafe { live() }.as_slice().iter().map(|&number| known(number)).any(|thread| {
        thread.state.get() == State::External
            || thread.state.get() == State::Blocked
                && (thread.serial().wait.get().deadline != NEVER || thread.serial().wait.get().what == WaitFor::Files)
    });
    if may_come { None } else { release_last() }
}

/// The world lets nobody come. Under [`LOCK`].
pub fn give_up_waiting() -> bool {
    release_last().is_some()
}

/// For a deadlock: when a thread stands before each acquisition of the cycle they all go on. Under [`LOCK`], or while others
/// stand.
fn close_if_all_stand() {
    if config::word(field::GOAL) != goal::DEADLOCK {
        return;
    }
    if (0..places()).all(|place| held().any(|thread| thread.serial().elastic.place.get() == place as u32)) {
        for thread in held() {
            thread.serial().elastic.closes.set(true);
            release(thread);
        }
    }
}

/// The thread that closes a cycle, if one is about to. Under [`LOCK`].
pub fn closing() -> Option<&'static Thread> {
    if !watching() {
        return None;
    }
    // SAFETY: under the lock.
    let mut threads = unsafe { live() }.as_slice().iter().map(|&number| known(number));
    threads.find(|thread| thread.serial().elastic.closes.get() && thread.state.get() == State::Runnable)
}

/// Whether a thread that makes accesses only should let others run.
pub fn tires() -> bool {
    watching() && {
        let quantum = config::word(field::QUANTUM);
        quantum > 0 && (ACCESSES.fetch_add(1, Relaxed) + 1).is_multiple_of(quantum)
    }
}

/// A synchronisation event is about to happen while threads are held at the goal's places.
pub fn at_synchronisation(thread: &Thread, op: Op, site: u64, access: AccessAt) {
    thread.serial().elastic.closes.set(false);
    if holds_anybody() && EVENTS.fetch_add(1, Relaxed) >= MOST_EVENTS {
        LOCK.with(release_last);
    }
    if access.class != 0 {
        return at_access(thread, AccessAt { site, ..access });
    }
    let acquires = matches!(op, Op::Lock | Op::LockShared | Op::ThreadJoin);
    if config::word(field::GOAL) != goal::DEADLOCK || !acquires {
        return;
    }
    for place in 0..places() {
        let turn = goal_turn(place);
        let holds_another = op == Op::ThreadJoin || !thread.held.is_empty();
        if turn.flags & turn::LANDMARK != 0
            && holds_another
            && replay::are_interchangeable(turn.op, op)
            && replay::is_site(&turn, site)
            && !held().any(|other| other.serial().elastic.place.get() == place as u32)
            && wants(place)
        {
            return hold(thread, place, AccessAt::NONE);
        }
    }
}

/// An access is about to be made while threads are held at the goal's places.
pub fn at_access(thread: &Thread, access: AccessAt) {
    if config::word(field::GOAL) != goal::RACE {
        return;
    }
    if holds_anybody()
        && let Some(other) = held().find(|other| {
            replay::conflict(&other.serial().goal.get(), &access)
                && !modules::is_known(other.serial().goal.get().site, access.site)
        })
    {
        return met(other, thread, access);
    }
    for place in 0..places() {
        let turn = goal_turn(place);
        if replay::is_site(&turn, access.site) && replay::may_be_object(&turn, &access) && wants(place) {
            return hold(thread, place, access);
        }
    }
}

/// Two threads stand right before conflicting accesses.
fn met(first: &Thread, second: &Thread, access: AccessAt) {
    second.serial().goal.set(access);
    replay::say_goal_reached(first);
    replay::say_goal_reached(second);
    WATCHING.store(false, Release);
    replay::conclude(outcome::CO_ENABLED, first.number.get() as u64, second.number.get() as u64);
    // A debugger looks on, and the execution goes on under the policy.
    LOCK.with(|| while release_last().is_some() {});
    second.serial().goal.set(AccessAt::NONE);
}
