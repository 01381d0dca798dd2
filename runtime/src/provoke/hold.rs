//! The one thread that is held, and who arrives while it is.
//!
//! States: nobody held → [`WAITING`] → caught, or over. After a catch in a wanted order one of the two goes first
//! ([`RELEASED`]) and the other follows once the first was seen to have gone on: at its next access or synchronisation event,
//! when it sleeps, or after [`TIMEOUT_NS`].

use super::file::{self, Side, add, in_head};
use super::{hold_done, is_favoured, is_known, others, reached};
use crate::serial::clock;
use crate::serial::replay::AccessAt;
use crate::serial::shutdown;
use crate::system::lock::RawLock;
use crate::system::sys::{self, syscall};
use crate::system::thread::{Runtime, Thread};
use crate::system::{config, signals};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::*};
use others::{Others, Progress};
use rashomon_abi::control::{after, field, first, option};
use rashomon_abi::provoke::{head, log, state};
use rashomon_abi::record::AccessClass;

/// For every change of what follows.
static LOCK: RawLock = RawLock::new();
/// Number + 1 of the thread that is held, or that goes first; 0: nobody.
static WHO: AtomicU32 = AtomicU32::new(0);
static STATE: AtomicU32 = AtomicU32::new(0);
const WAITING: u32 = 1;
const RELEASED: u32 = 2;
/// Counts holds.
static HOLD: AtomicU32 = AtomicU32::new(0);
/// The held access.
static ADDRESS: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);
static SITE: AtomicU64 = AtomicU64::new(0);
/// `class | atomic << 8`
static KIND: AtomicU64 = AtomicU64::new(0);
static DESCRIPTOR: AtomicU32 = AtomicU32::new(0);
static ORDINAL: AtomicU64 = AtomicU64::new(0);
static SINCE: AtomicU64 = AtomicU64::new(0);
static mut HELD_SIDE: Side = Side::NONE;
/// The held thread sleeps on this: 0 until it is caught.
static CAUGHT: AtomicU32 = AtomicU32::new(0);
/// Who lets another one go first sleeps on this: 0 until that one has gone on.
static GONE_ON: AtomicU32 = AtomicU32::new(0);
/// The favoured thread has been held.
static STARTED: AtomicBool = AtomicBool::new(false);
/// Nanoseconds of holds that the execution may still spend.
static ALLOWANCE: AtomicU64 = AtomicU64::new(0);

/// How long the second waits for the first to be seen again.
const TIMEOUT_NS: u64 = 20_000_000;
/// Between two samples of the other threads, at first and at last.
const FIRST_PAUSE_NS: u64 = 30_000;
const LAST_PAUSE_NS: u64 = 1_000_000;
/// No hold is given less.
const SHORTEST_NS: u64 = 1_000_000;

/// Whether somebody is held, or goes first.
#[inline(always)]
pub fn anybody() -> bool {
    WHO.load(Relaxed) != 0
}

pub fn initialise() {
    ALLOWANCE.store(config::word(field::HOLDS_TIME), Relaxed);
}

/// A number for each hold and each time between two.
pub fn epoch() -> u64 {
    2 * HOLD.load(Relaxed) as u64 + (STATE.load(Relaxed) == WAITING) as u64
}

/// In a forked child: whoever was held is not there.
pub fn forget() {
    LOCK.reset();
    WHO.store(0, Relaxed);
    STATE.store(0, Relaxed);
}

fn now() -> u64 {
    sys::clock(clock::MONOTONIC as usize)
}

/// Sleeps until the word is not 0 any more, for so long at most; may return earlier.
fn pause(word: &AtomicU32, nanoseconds: u64) {
    let time = [nanoseconds / 1_000_000_000, nanoseconds % 1_000_000_000];
    // SAFETY: FUTEX_WAIT_PRIVATE reads the word and a local `timespec`.
    unsafe { syscall!(sys::FUTEX, word.as_ptr(), 128, 0, time.as_ptr()) };
}

/// Holds the calling thread at a descriptor. False: another one is held.
pub fn hold(runtime: &Runtime, descriptor: usize, ordinal: u64, access: &AccessAt) -> bool {
    let thread = runtime.thread();
    let side = Side::of(thread, access);
    let begun = now();
    LOCK.lock();
    if WHO.load(Relaxed) != 0 {
        LOCK.unlock();
        return false;
    }
    // SAFETY: under the lock.
    unsafe { (&raw mut HELD_SIDE).write(side) };
    ADDRESS.store(access.address, Relaxed);
    BYTES.store(access.bytes, Relaxed);
    SITE.store(access.site, Relaxed);
    KIND.store(access.class | (access.atomic as u64) << 8, Relaxed);
    DESCRIPTOR.store(descriptor as u32, Relaxed);
    ORDINAL.store(ordinal, Relaxed);
    SINCE.store(begun, Relaxed);
    CAUGHT.store(0, Relaxed);
    STATE.store(WAITING, Relaxed);
    let number = HOLD.fetch_add(1, Relaxed) + 1;
    file::log(log::HOLD, 0, descriptor, thread.number.get());
    WHO.store(thread.number.get() + 1, Release);
    LOCK.unlock();
    if config::word(field::FAVOURED) == thread.schedule_index.get() as u64 + 1 {
        STARTED.store(true, Release);
    }
    add(descriptor, state::HOLDS, 1);
    // Who is awake from the beginning is to be known even if it falls asleep at once.
    others::census(number, begun);

    let longest = config::word(field::HOLD_TIME);
    let limit = longest.min(ALLOWANCE.load(Relaxed) / 2).max(SHORTEST_NS);
    let (mut ended, spent) = wait(runtime, number, begun, limit);
    if ended == state::TIMED_OUT && limit < longest {
        ended = state::CUT_SHORT;
    }
    LOCK.lock();
    if STATE.load(Relaxed) == WAITING && WHO.load(Relaxed) == thread.number.get() + 1 {
        others::tell(number, descriptor);
        file::log(log::END, ended, descriptor, thread.number.get());
        STATE.store(0, Relaxed);
        WHO.store(0, Release);
    } else {
        // Who caught it has told so.
        ended = state::CAUGHT;
    }
    LOCK.unlock();
    add(descriptor, ended, 1);
    let held = now().saturating_sub(begun);
    add(descriptor, state::HELD, held);
    in_head(head::HELD).fetch_add(held, Relaxed);
    let _ = ALLOWANCE.fetch_update(Relaxed, Relaxed, |left| Some(left.saturating_sub(spent)));
    if ended == state::CAUGHT && GONE_ON.load(Acquire) == 0 && config::word(field::FIRST) == first::ARRIVED {
        let_go_first(number);
    }
    if hold_done() && config::word(field::AFTER) == after::STOP {
        // Nothing is left to be tried.
        shutdown::stop();
    }
    true
}

/// Stands still until somebody arrives, nobody can, or the others have had their time. Which of the three is told by the word of
/// the descriptor's state to be counted up; and the time that they had.
fn wait(runtime: &Runtime, number: u32, begun: u64, limit: u64) -> (usize, u64) {
    let mut length = FIRST_PAUSE_NS;
    let mut before = Others::Alive;
    let mut progress = Progress::new(begun);
    let mut spent = 0;
    loop {
        pause(&CAUGHT, length);
        if CAUGHT.load(Acquire) != 0 {
            return (state::CAUGHT, spent);
        }
        if runtime.thread().pending_signals.load(Relaxed) != 0 {
            signals::deliver_inside(runtime);
        }
        let time = now();
        let (others, busy) = others::sample(number, time);
        spent = progress.at(time, busy);
        if spent >= limit {
            return (state::TIMED_OUT, spent);
        }
        // Twice: the threads were not all asked at the same moment.
        match (before, others) {
            (Others::Blocked, Others::Blocked) => return (state::BLOCKED, spent),
            (Others::Polling | Others::Blocked, Others::Polling) | (Others::Polling, Others::Blocked) => {
                return (state::POLLING, spent);
            }
            _ => {}
        }
        before = others;
        let left = limit.saturating_sub(spent);
        // What seems to be over is checked again at once.
        length = if others == Others::Alive { (length * 2).min(LAST_PAUSE_NS) } else { FIRST_PAUSE_NS }.min(left.max(1));
    }
}

/// An access of any thread while somebody is held, or goes first. True: it was caught.
pub fn arrive(runtime: &Runtime, access: &AccessAt) -> bool {
    let thread = runtime.thread();
    if WHO.load(Acquire) == thread.number.get() + 1 {
        moved(thread);
        return false;
    }
    if STATE.load(Relaxed) != WAITING {
        return false;
    }
    if conflicts(access) && meet(runtime, access) {
        return true;
    }
    // What an atomic operation changed is known behind it.
    if !access.atomic {
        let changes = AccessClass::from_code(access.class).is_some_and(AccessClass::writes);
        thread.provoked().polls.access(HOLD.load(Relaxed), access.site, access.address, changes);
    }
    false
}

/// An atomic operation was made. `changed`: it left another value.
pub fn made(thread: &Thread, address: u64, site: u64, changed: bool) {
    if anybody() {
        if WHO.load(Acquire) == thread.number.get() + 1 {
            moved(thread);
        } else {
            thread.provoked().polls.access(HOLD.load(Relaxed), site, address, changed);
        }
    }
}

fn conflicts(access: &AccessAt) -> bool {
    let (address, bytes, kind) = (ADDRESS.load(Relaxed), BYTES.load(Relaxed), KIND.load(Relaxed));
    let writes = |class: u64| AccessClass::from_code(class).is_some_and(AccessClass::writes);
    access.address < address.saturating_add(bytes)
        && address < access.address.saturating_add(access.bytes)
        && (writes(access.class) || writes(kind & 0xff))
        && !(access.atomic && kind >> 8 != 0)
}

/// The calling thread stands at an access that conflicts with the held one. False: it does not after all, or that is known.
fn meet(runtime: &Runtime, access: &AccessAt) -> bool {
    let thread = runtime.thread();
    let side = Side::of(thread, access);
    LOCK.lock();
    let site = SITE.load(Relaxed);
    if STATE.load(Relaxed) != WAITING
        || WHO.load(Relaxed) == 0
        || !conflicts(access)
        || file::was_caught(site, access.site)
        || is_known(site, access.site)
    {
        LOCK.unlock();
        return false;
    }
    let held = now().saturating_sub(SINCE.load(Relaxed));
    // SAFETY: under the lock.
    let held_side = unsafe { (&raw const HELD_SIDE).read() };
    let descriptor = DESCRIPTOR.load(Relaxed) as usize;
    file::caught(descriptor, ORDINAL.load(Relaxed), held, &held_side, &side);
    file::log(log::RAN, 0, descriptor, thread.number.get());
    file::log(log::END, state::CAUGHT, descriptor, WHO.load(Relaxed) - 1);
    if config::option(option::RECORDED) {
        // Neither has gone on.
        shutdown::stop();
    }
    if config::word(field::AFTER) == after::CONTINUE {
        reached((ADDRESS.load(Relaxed), BYTES.load(Relaxed)), (access.address, access.bytes));
    }
    let order = config::word(field::FIRST);
    let number = HOLD.load(Relaxed);
    let who = match order {
        first::HELD => WHO.load(Relaxed),
        first::ARRIVED => thread.number.get() + 1,
        _ => 0,
    };
    STATE.store(if who == 0 { 0 } else { RELEASED }, Relaxed);
    GONE_ON.store((who == 0) as u32, Relaxed);
    WHO.store(who, Release);
    CAUGHT.store(1, Release);
    LOCK.unlock();
    sys::futex_wake(&CAUGHT, 1);
    if order == first::HELD {
        let_go_first(number);
    }
    true
}

/// Waits until the other one of a catch has gone on.
fn let_go_first(number: u32) {
    let until = now() + TIMEOUT_NS;
    loop {
        pause(&GONE_ON, FIRST_PAUSE_NS * 10);
        if GONE_ON.load(Acquire) != 0 {
            return;
        }
        if now() >= until {
            break;
        }
    }
    LOCK.with(|| {
        if STATE.load(Relaxed) == RELEASED && HOLD.load(Relaxed) == number {
            STATE.store(0, Relaxed);
            WHO.store(0, Release);
        }
    });
}

/// The calling thread goes on behind its access: if it was to go first, the other may follow.
pub fn moved(thread: &Thread) {
    if WHO.load(Relaxed) != thread.number.get() + 1 || STATE.load(Relaxed) != RELEASED {
        return;
    }
    LOCK.with(|| {
        if STATE.load(Relaxed) == RELEASED && WHO.load(Relaxed) == thread.number.get() + 1 {
            STATE.store(0, Relaxed);
            WHO.store(0, Release);
            GONE_ON.store(1, Release);
        }
    });
    sys::futex_wake(&GONE_ON, 1);
}

/// A new thread waits until the favoured one is held, cannot go on, or has had its time.
pub fn head_start(thread: &Thread) {
    static NEVER: AtomicU32 = AtomicU32::new(0);
    static WAITING_HERE: AtomicU32 = AtomicU32::new(0);
    if is_favoured(thread) {
        return;
    }
    WAITING_HERE.fetch_add(1, Relaxed);
    let begun = now();
    let limit = config::word(field::HOLD_TIME).min(ALLOWANCE.load(Relaxed) / 2);
    let mut blocked = 0;
    let mut progress = Progress::new(begun);
    while !STARTED.load(Acquire) && blocked < 2 {
        pause(&NEVER, LAST_PAUSE_NS / 4);
        let time = now();
        // Others that wait here pause as well: they are no reason to go on waiting.
        let census = others::census(HOLD.load(Relaxed), time);
        if progress.at(time, census.busy) >= limit {
            break;
        }
        blocked = if census.run == 0 && census.pause < WAITING_HERE.load(Relaxed) { blocked + 1 } else { 0 };
    }
    WAITING_HERE.fetch_sub(1, Relaxed);
    let spent = now().saturating_sub(begun);
    in_head(head::HEAD_START).fetch_add(spent, Relaxed);
}
