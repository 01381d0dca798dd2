//! Recordings that keep the plain accesses of a few places only, so that a long execution fits as a whole.
//!
//! What is not kept is counted all the same: positions of schedules mean the same in every recording of an execution. All
//! synchronisation is kept, and so are ends of lifetimes, which tell two blocks at one address apart. A read may have seen a
//! write that was not kept; so the header says what was done, and no causal prediction is made from such a recording.

use crate::system::{config, header, modules};
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::*};
use rashomon_abi::control::{KEPT_WORDS, MAX_KEPT, field};
use rashomon_abi::header::note;

/// Open addressing, at most half full: each module has one base at a time, and few come back at another one.
const SLOTS: usize = MAX_KEPT * 4;
static ADDRESSES: [AtomicU64; SLOTS] = [const { AtomicU64::new(0) }; SLOTS];
static TAKEN: AtomicU64 = AtomicU64::new(0);
static ON: AtomicBool = AtomicBool::new(false);

/// Before any thread records, and before modules are looked at.
pub fn initialise() {
    if count() > 0 && !config::provoking() {
        modules::CHANGED_LIST.set(&(resolve as fn()));
        ON.store(true, Release);
        header::note(note::PLACES);
    }
}

/// In a forked child, whose header is new. What its parent's control names may be dropped there: then all is kept.
pub fn forked() {
    ON.store(ON.load(Relaxed) && count() > 0, Release);
    if on() {
        header::note(note::PLACES);
    }
}

/// Whether only some accesses are kept.
#[inline(always)]
pub fn on() -> bool {
    ON.load(Relaxed)
}

/// Whether the access at this return address is one of them.
pub fn keeps(site: u64) -> bool {
    matches!(slot(site), Some((_, known)) if known == site)
}

fn count() -> usize {
    config::count(field::KEPT).min(MAX_KEPT)
}

/// Where the address is, or would be, and what is there.
fn slot(address: u64) -> Option<(&'static AtomicU64, u64)> {
    let first = (address.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as usize;
    (0..SLOTS).find_map(|step| {
        let slot = &ADDRESSES[(first + step) % SLOTS];
        let known = slot.load(Relaxed);
        (known == address || known == 0).then_some((slot, known))
    })
}

/// Modules were loaded: more places may have an address. Under the modules' lock.
fn resolve() {
    let table = config::tables().kept;
    for index in 0..count() {
        let at = table + index * KEPT_WORDS;
        let Some(address) = modules::address(config::word(at), config::word(at + 1)) else { continue };
        if let Some((slot, 0)) = slot(address)
            && TAKEN.load(Relaxed) < SLOTS as u64 / 2
        {
            slot.store(address, Release);
            TAKEN.fetch_add(1, Relaxed);
        }
    }
}
