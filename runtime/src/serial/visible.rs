//! Which accesses are steps of an exploration: those at sites that the session's file lists. Nearly every access of the program
//! asks, so the addresses of the sites lie in a table, which is made again when one of them may have changed.

use crate::serial::exploration::{sites_start, word};
use crate::serial::explore::{ACCESSES_WITHOUT_STEP, exploring, races_wanted};
use crate::system::memory::Map;
use crate::system::modules;
use crate::system::thread::Thread;
use core::sync::atomic::{AtomicU64, Ordering::*};
use rashomon_abi::exploration::{SITE_WORDS, accesses, field};
use rashomon_abi::numbers::SplitMix;

/// The addresses, each with 1. Touched by the holder of the turn only.
static mut LISTED: Map = Map::new();
/// What the table was made from; 0: there is none.
static MADE_FROM: AtomicU64 = AtomicU64::new(0);
static LIST: AtomicU64 = AtomicU64::new(0);

/// Before executions go on from a snapshot: none of them is to make the table.
///
/// # Safety
/// As [`is_listed`].
pub unsafe fn prepare() {
    // SAFETY: by the contract.
    unsafe { is_listed(0) };
}

/// An execution goes on from a snapshot: its file may list others.
pub fn look_again() {
    if LIST.load(Relaxed) != list() {
        forget();
    }
}

/// Tells lists apart.
fn list() -> u64 {
    let start = sites_start();
    let words = start..start + word(field::SITES) as usize * SITE_WORDS;
    words.fold(word(field::SITES), |sum, at| SplitMix::mixed(sum ^ word(at)))
}

/// Whether a site is listed.
///
/// # Safety
/// By the holder of the turn.
pub unsafe fn is_listed(site: u64) -> bool {
    let now = 1 + u64::from(modules::moves());
    // SAFETY: by the contract nobody else is here.
    unsafe {
        if MADE_FROM.load(Relaxed) != now {
            make();
            MADE_FROM.store(now, Relaxed);
        }
        let listed = &raw const LISTED;
        (*listed).get((site, 1)).is_some()
    }
}

/// Whether an access is no step, and nothing else is to be done about it: most are such. The thread's quantum goes on below 0,
/// which keeps the count of its accesses.
pub fn overlooks(thread: &Thread, site: u64) -> bool {
    let unseen = thread.serial().explore.unseen.get() + 1;
    exploring()
        && word(field::ACCESSES) == accesses::SITES
        && !races_wanted()
        && !thread.keep_accesses.get()
        && thread.pending_signals.load(Relaxed) == 0
        && thread.evicted.load(Relaxed) == 0
        && unseen < ACCESSES_WITHOUT_STEP
        // SAFETY: the thread holds the turn, as nobody took it.
        && !unsafe { is_listed(site) }
        && {
            thread.serial().explore.unseen.set(unseen);
            true
        }
}

/// The file is another one.
pub fn forget() {
    MADE_FROM.store(0, Relaxed);
}

/// # Safety
/// As [`is_listed`].
#[cold]
#[inline(never)]
unsafe fn make() {
    let start = sites_start();
    LIST.store(list(), Relaxed);
    let mut made = Map::new();
    for index in 0..word(field::SITES) as usize {
        let at = start + index * SITE_WORDS;
        if let Some(site) = modules::address(word(at), word(at + 1)) {
            *made.entry((site, 1)) = 1;
        }
    }
    // SAFETY: by the contract nobody else is here.
    unsafe {
        let listed = &raw mut LISTED;
        listed.replace(made).clear_and_free();
    }
}
