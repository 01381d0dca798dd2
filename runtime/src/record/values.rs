//! Values of plain accesses, in serial recordings that were asked for them ([`option::VALUES`]).
//!
//! A hook comes before its access, and nobody else runs until the thread is in the runtime again. So an access finds what memory
//! holds at its hook, and a write has left what memory holds when the thread is in the runtime next. Every access comes to the
//! recorder then, past the hook's own look at the filter. Memory is read by the kernel, which refuses where the program itself
//! would fault: then there is no value.
//!
//! Limits: accesses of 1, 2, 4 or 8 bytes of instrumented code; no ranges, and nothing that a function of libc does. A write that
//! a signal's handler interrupts, or after which the thread's turn was taken from it, has no value. What the thread itself writes
//! unseen behind a write of its own, before it is in the runtime again, counts as the write's: that is what others see.

use crate::record::filter;
use crate::record::recorder::{push, reserve};
use crate::system::guard::SETTLES;
use crate::system::memory::Map;
use crate::system::sys;
use crate::system::thread::Thread;
use crate::system::{config, modules};
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering::*};
use rashomon_abi::control::{self, field, option};
use rashomon_abi::record::{self, LOW_BITS, LOW_MASK, access_of_kind, value, word};

static ON: AtomicBool = AtomicBool::new(false);
/// No site was named.
static ALL: AtomicBool = AtomicBool::new(false);
static PROCESS: AtomicU32 = AtomicU32::new(0);
/// Addresses of the sites that were named.
static mut SITES: Map = Map::new();

/// Largest size, as a power of two.
const LARGEST: u32 = 3;

pub fn initialise() {
    if config::mode() == control::mode::SERIAL && config::option(option::VALUES) {
        ALL.store(config::count(field::FRAMES) == 0, Relaxed);
        SETTLES.set(&(settle as fn(&Thread)));
        modules::CHANGED_LIST.set(&(resolve as fn()));
        ON.store(true, Release);
    }
}

#[inline(always)]
pub fn on() -> bool {
    ON.load(Relaxed)
}

/// Modules were loaded: more sites may have an address. By the holder of the turn.
fn resolve() {
    let (table, sites) = (config::tables().frames, &raw mut SITES);
    for entry in 0..config::count(field::FRAMES) {
        let at = table + entry * control::FRAME_WORDS;
        if let Some(address) = modules::address(config::word(at), config::word(at + 1)) {
            // SAFETY: for the holder of the turn, and nobody else has a reference.
            unsafe { *(*sites).entry((address, 1)) = 1 };
        }
    }
}

/// A thread's stream begins.
pub fn begins(thread: &Thread) {
    if on() {
        PROCESS.store(sys::process_id(), Relaxed);
        let hot = thread.hot();
        hot.pending.set(0);
        hot.dirty.set(1);
        hot.filter_mask.set(filter::mask(1));
    }
}

/// Whether the value of an access at this site is recorded. By the holder of the turn.
pub fn wanted(site: u64) -> bool {
    let sites = &raw const SITES;
    // SAFETY: for the holder of the turn, and nobody else has a reference.
    on() && (ALL.load(Relaxed) || unsafe { (*sites).get((site, 1)) }.is_some())
}

/// The access that was just recorded is about to be made.
pub fn of(thread: &Thread, address: u64, kind: u64) {
    let Some((class, log2)) = access_of_kind(kind).filter(|&(_, log2)| log2 <= LARGEST) else { return };
    // A write's says what was there before anybody wrote.
    if let Some(found) = read(address, 1 << log2) {
        tell(thread, 0, found);
    }
    if class.writes() {
        thread.hot().pending.set(address & LOW_MASK | (1 << log2) << LOW_BITS);
    }
}

/// The thread is in the runtime again: its last write was made.
fn settle(thread: &Thread) {
    let pending = thread.hot().pending.replace(0);
    if on()
        && thread.evicted.load(Relaxed) == 0
        && let Some(left) = read(pending & LOW_MASK, (pending >> LOW_BITS) as usize)
    {
        tell(thread, value::WRITTEN, left);
    }
}

fn tell(thread: &Thread, what: u64, found: u64) {
    let high = found >> LOW_BITS;
    let long = if high == 0 { 0 } else { value::LONG };
    if reserve(thread, 2) {
        let hot = thread.hot();
        // SAFETY: reserved.
        unsafe {
            push(hot, word(what | long, record::VALUE, found));
            if high != 0 {
                push(hot, high);
            }
        }
    }
}

/// Up to eight bytes of the program's memory, where it may be read.
fn read(address: u64, bytes: usize) -> Option<u64> {
    const PROCESS_VM_READV: usize = 310;
    let mut found = 0u64;
    let (to, from) = ([&raw mut found as usize, bytes], [address as usize, bytes]);
    // SAFETY: the kernel writes at most eight bytes to a local, and checks the other address.
    let done = unsafe {
        let process = PROCESS.load(Relaxed) as usize;
        sys::call(PROCESS_VM_READV, process, to.as_ptr() as usize, 1, from.as_ptr() as usize, 1, 0)
    };
    (done == bytes as isize).then_some(found)
}
