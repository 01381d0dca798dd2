//! Who runs next under the serial policies. Everything here is decided from the seed and from what the threads did, so the same
//! seed gives the same schedule.
//!
//! PCT: [`rashomon_logic::pct`]. Deviation 1: priorities of new threads are drawn when they are created, as their number is not
//! known before. Deviation 2: a thread that yields or spins falls below all others, or it would starve the thread it waits for.

use crate::serial::{explore, linger, sched};
use crate::system::config;
use crate::system::thread::{State, Thread, known};
use core::sync::atomic::{AtomicU64, Ordering::*};
use rashomon_abi::control::{field, policy};
use rashomon_abi::numbers::SplitMix;
use rashomon_logic::pct;

static RANDOM: AtomicU64 = AtomicU64::new(0);
static STEPS: AtomicU64 = AtomicU64::new(0);
static CHANGES: [AtomicU64; 16] = [const { AtomicU64::new(u64::MAX) }; 16];
static LOWEST: AtomicU64 = AtomicU64::new(pct::LOWEST);

fn random() -> u64 {
    SplitMix::mixed(SplitMix::next(RANDOM.fetch_add(SplitMix::STEP, Relaxed)))
}

pub fn initialise() {
    RANDOM.store(config::word(field::SEED).wrapping_mul(0xd134_2543_de82_ef95), Relaxed);
    if config::word(field::POLICY) == policy::PCT {
        let length = config::word(field::PCT_LENGTH);
        for change in CHANGES.iter().take(config::count(field::PCT_CHANGES)) {
            change.store(pct::change_point(random(), length), Relaxed);
        }
    }
}

/// A forked child begins as its parent did.
///
/// # Safety
/// In a child that has one thread.
pub unsafe fn restart() {
    STEPS.store(0, Relaxed);
    LOWEST.store(pct::LOWEST, Relaxed);
    CHANGES.iter().for_each(|change| change.store(u64::MAX, Relaxed));
    initialise();
}

pub fn new_priority(_number: u32) -> u64 {
    pct::initial(random())
}

/// Why the running thread looks up.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Occasion {
    /// A synchronisation event is about to happen.
    Point,
    /// The quantum of accesses is used up.
    Quantum,
    /// The thread waits for somebody by polling, or asked to be passed over.
    Yield,
}

/// Whether the running thread has to offer its turn.
pub fn offers(thread: &Thread, occasion: Occasion) -> bool {
    let period = config::word(field::SWITCH_PERIOD).max(1);
    match config::word(field::POLICY) {
        policy::PCT => {
            let step = STEPS.fetch_add(1, Relaxed) + 1;
            for (index, change) in CHANGES.iter().enumerate() {
                if change.load(Relaxed) == step {
                    thread.priority.set(pct::changed(index));
                }
            }
            if occasion != Occasion::Point {
                thread.priority.set(LOWEST.fetch_sub(1, Relaxed));
            }
            true
        }
        policy::EXPLORE if explore::on() => {
            explore::offered(thread, occasion);
            true
        }
        policy::RANDOM => occasion != Occasion::Point || random().is_multiple_of(rarer(period)),
        policy::ROUND_ROBIN => occasion != Occasion::Point || STEPS.fetch_add(1, Relaxed) % period == period - 1,
        _ => occasion != Occasion::Point,
    }
}

/// The switching period after what has happened so far.
fn rarer(period: u64) -> u64 {
    pct::rarer(period, STEPS.fetch_add(1, Relaxed))
}

/// The next of the live threads that can run. `outgoing`: who ran last; `others`: prefer somebody else.
pub fn choose(live: &[u32], outgoing: u32, others: bool) -> Option<&'static Thread> {
    debug_assert!(sched::LOCK.is_locked());
    if explore::on() {
        return explore::choose(live, outgoing);
    }
    let can_run = |number: u32| known(number).state.get() == State::Runnable && !linger::passes_over(known(number));
    let candidates = || live.iter().copied().filter(|&number| can_run(number));
    let mut count = candidates().count();
    if count == 0 {
        return linger::nobody_else(live);
    }
    let skip = others && count > 1;
    let candidates = || candidates().filter(|&number| !skip || number != outgoing);
    if skip && can_run(outgoing) {
        count -= 1;
    }
    let number = match config::word(field::POLICY) {
        policy::RANDOM => candidates().nth((random() % count as u64) as usize),
        policy::PCT => candidates().max_by_key(|&number| known(number).priority.get()),
        policy::ROUND_ROBIN => candidates().find(|&number| number > outgoing).or_else(|| candidates().next()),
        _ if skip => candidates().find(|&number| number > outgoing).or_else(|| candidates().next()),
        _ => candidates().next(),
    };
    number.map(known)
}
