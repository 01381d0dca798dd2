//! Provocation: in free mode, the first thread at one of the control file's descriptors is held there until another thread
//! arrives with a conflicting access. Synchronisation is ignored, so it does not matter what the program synchronises with.
//!
//! After the RaceHunter paper ("RaceHunter: dynamic data race detection by provocation", Programming and Computer Software 50(6),
//! 2024, §3, Algorithms 3 and 4; Definition 11 for descriptors). Deviations: (1) any conflicting access of another thread is a
//! catch, not only the target's other one: the paper's own Listing 1 needs it. (2) Many descriptors in one execution, one thread
//! held at a time, so that whoever could arrive is free to. (3) A hold ends early when nobody can arrive any more (see
//! [`others`]). (4) Several ordinals are tried in one execution: four one after the other, then with doubling gaps.
//!
//! Guarantee: at a catch two threads stand right before accesses to overlapping bytes, one of which writes, and not both atomic:
//! a data race, whatever came before. Cost: an access whose site has no descriptor pays a call and two loads while nobody is
//! held, and a comparison while somebody is. Limit: accesses that are not instrumented are not seen; one process.
//!
//! * here: which accesses matter · [`hold`]: who is held, and who arrives · [`others`]: whether anybody still can · [`file`]:
//!   what the host reads
//!
//! Calls: `system`, `detect`, `record`, `serial`.

mod file;
mod hold;
mod others;

use crate::detect;
use crate::record::recorder;
use crate::serial::debugged;
use crate::serial::replay::AccessAt;
use crate::system::thread::{Runtime, Thread};
use crate::system::tls::{Call, Hot};
use crate::system::{config, modules, signals};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::*};
use file::{add, word};
pub use hold::made;
use rashomon_abi::control::{self, ANY_THREAD, DESCRIPTOR_WORDS, FRAME_WORDS, field, option};
use rashomon_abi::provoke::{MAX_DESCRIPTORS, log, state};

/// Bits of sites at which there may be a descriptor.
const BITS: usize = 1 << 14;
static SITES: [AtomicU64; BITS / 64] = [const { AtomicU64::new(0) }; BITS / 64];
/// Chains of descriptors by site: the first of each bucket and the next of each, as index + 1.
const BUCKETS: usize = 4096;
static FIRST: [AtomicU32; BUCKETS] = [const { AtomicU32::new(0) }; BUCKETS];
static NEXT: [AtomicU32; MAX_DESCRIPTORS] = [const { AtomicU32::new(0) }; MAX_DESCRIPTORS];
/// Return address of each descriptor's access; 0 while its module is not loaded.
static ADDRESSES: [AtomicU64; MAX_DESCRIPTORS] = [const { AtomicU64::new(0) }; MAX_DESCRIPTORS];
/// So many matches are held one after the other, before the gaps double.
const EACH: u64 = 4;
/// So many matches of a descriptor are told of, and then every one whose ordinal is a power of two, and the first of each hold
/// and of each time between two.
const LOGGED: u64 = 16;
/// Holds that are still to be made.
static HOLDS_LEFT: AtomicU64 = AtomicU64::new(0);

/// What provocation knows of a thread.
pub struct Local {
    /// What the program calls it; 0: nothing.
    pub identity: AtomicU64,
    pub polls: others::Polls,
}

impl Thread {
    /// What provocation knows of it.
    pub const fn provoked(&self) -> &Local {
        // SAFETY: the only call for this slot. All zero: it has no identity, and nothing was seen of it; all of it is atomic.
        unsafe { self.provocation.holds() }
    }
}

pub use crate::system::config::provoking as on;
pub use crate::system::modules::is_known;

fn hash(site: u64) -> usize {
    (site.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as usize
}

/// Whether the access at `site` is none of our business.
#[inline(always)]
fn passes(site: u64) -> bool {
    let bit = hash(site) % BITS;
    SITES[bit / 64].load(Relaxed) >> (bit % 64) & 1 == 0 && !hold::anybody()
}

pub fn initialise() {
    if config::mode() != control::mode::FREE || !config::option(option::PROVOKE) || !file::map(count()) {
        return;
    }
    for descriptor in 0..count() {
        word(descriptor, state::NEXT).store(Descriptor::at(descriptor).ordinal, Relaxed);
        HOLDS_LEFT.fetch_add(Descriptor::at(descriptor).holds, Relaxed);
    }
    hold::initialise();
    modules::CHANGED_LIST.set(&(resolve as fn()));
    recorder::PASSED.set(&(hold::moved as fn(&Thread)));
    config::provokes(true);
}

/// A forked child is not provoked.
///
/// # Safety
/// In a child that has one thread.
pub unsafe fn restart() {
    SITES.iter().for_each(|word| word.store(0, Relaxed));
    ADDRESSES.iter().for_each(|address| address.store(0, Relaxed));
    FIRST.iter().for_each(|first| first.store(0, Relaxed));
    hold::forget();
}

fn count() -> usize {
    config::count(field::DESCRIPTORS).min(MAX_DESCRIPTORS)
}

/// Modules were loaded: more descriptors may have an address. Under the modules' lock.
fn resolve() {
    if !on() {
        return;
    }
    for (index, known) in ADDRESSES.iter().enumerate().take(count()) {
        let descriptor = Descriptor::at(index);
        let Some(address) = modules::address(descriptor.site.0, descriptor.site.1) else { continue };
        if known.load(Relaxed) == 0 {
            known.store(address, Relaxed);
            let bucket = &FIRST[hash(address) % BUCKETS];
            NEXT[index].store(bucket.load(Relaxed), Relaxed);
            bucket.store(index as u32 + 1, Release);
            let bit = hash(address) % BITS;
            SITES[bit / 64].fetch_or(1 << (bit % 64), Release);
        }
    }
}

/// As the control file has it.
struct Descriptor {
    thread: u64,
    identity: u64,
    site: (u64, u64),
    first_frame: usize,
    frames: usize,
    ordinal: u64,
    holds: u64,
}

impl Descriptor {
    fn at(index: usize) -> Self {
        let at = config::tables().descriptors + index * DESCRIPTOR_WORDS;
        let word = |offset: usize| config::word(at + offset);
        Self {
            thread: word(0),
            identity: word(1),
            site: (word(2), word(3)),
            first_frame: word(4) as usize,
            frames: word(5) as usize,
            ordinal: word(6),
            holds: word(7),
        }
    }

    /// Thread and call stack are the descriptor's.
    fn matches(&self, thread: &Thread) -> bool {
        let same_thread = if self.identity != 0 {
            thread.provoked().identity.load(Relaxed) == self.identity
        } else {
            self.thread == ANY_THREAD || self.thread == thread.schedule_index.get() as u64
        };
        same_thread
            && (0..self.frames.min(4096))
                .all(|depth| self.frame(depth).is_some_and(|site| call_site(thread, depth) == Some(site)))
    }

    fn frame(&self, depth: usize) -> Option<u64> {
        let at = config::tables().frames + (self.first_frame + depth) * FRAME_WORDS;
        modules::address(config::word(at), config::word(at + 1))
    }
}

/// The call site `depth` calls above the running function.
fn call_site(thread: &Thread, depth: usize) -> Option<u64> {
    let hot: &Hot = thread.hot();
    // SAFETY: entries between bottom and top are written, by the same thread.
    unsafe {
        let entry: *const Call = hot.top.get().sub(depth + 1);
        (hot.top.get() >= hot.bottom.get().add(depth + 1)).then(|| (*entry).site)
    }
}

/// An access whose hook found the quantum used up, as all do here.
///
/// # Safety
/// From a hook, with the calling thread's block.
#[inline(always)]
pub unsafe fn access(block: &Hot, address: u64, site: u64, bytes: u64, class: u64) {
    // A deferred signal has set the quantum to zero; it is below otherwise.
    if passes(site) && block.quantum.get() != -1 {
        return;
    }
    // SAFETY: by the contract.
    unsafe { check(block, address, site, bytes, class) }
}

#[cold]
unsafe fn check(block: &Hot, address: u64, site: u64, bytes: u64, class: u64) {
    // SAFETY: the calling thread's block; a known thread outlives its hooks.
    unsafe {
        if block.thread.get().is_none() || block.nesting.get() > 0 {
            return;
        }
        let runtime = Runtime::enter();
        let thread = runtime.thread();
        if block.quantum.get() == -1 {
            block.quantum.set(-2);
            thread.reload.set(thread.reload.get() - 1);
            if thread.pending_signals.load(Relaxed) != 0 {
                signals::deliver_inside(&runtime);
            }
        }
        if block.ignored.get() == 0 {
            gate(&runtime, &AccessAt { address, bytes, class, atomic: false, site });
        }
    }
}

/// Any access that is about to be made, by a thread that is in the runtime.
pub fn gate(runtime: &Runtime, access: &AccessAt) {
    if passes(access.site) {
        return;
    }
    if hold::anybody() && hold::arrive(runtime, access) {
        return;
    }
    let mut next = FIRST[hash(access.site) % BUCKETS].load(Acquire);
    while let Some(index) = next.checked_sub(1).map(|index| index as usize) {
        if ADDRESSES[index].load(Relaxed) == access.site {
            consider(runtime, index, access);
        }
        next = NEXT[index].load(Relaxed);
    }
}

/// An access at the site of a descriptor.
fn consider(runtime: &Runtime, index: usize, access: &AccessAt) {
    let descriptor = Descriptor::at(index);
    let thread = runtime.thread();
    if !descriptor.matches(thread) {
        return;
    }
    let ordinal = add(index, state::MATCHES, 1);
    let epoch = hold::epoch();
    let first = word(index, state::TOLD).swap(epoch, Relaxed) != epoch;
    if first || ordinal < LOGGED || ordinal.is_power_of_two() {
        file::log(log::MATCH, 0, index, thread.number.get());
    }
    if ordinal < word(index, state::NEXT).load(Relaxed) || word(index, state::HOLDS).load(Relaxed) >= descriptor.holds {
        return;
    }
    if hold::hold(runtime, index, ordinal, access) {
        let each = word(index, state::HOLDS).load(Relaxed) < EACH;
        word(index, state::NEXT).store(if each { ordinal + 1 } else { 2 * ordinal }, Relaxed);
    } else {
        add(index, state::SKIPPED, 1);
    }
}

/// One hold fewer to be made. Whether it was the last.
fn hold_done() -> bool {
    HOLDS_LEFT.fetch_sub(1, AcqRel) == 1
}

/// A new thread is about to run: those that are not favoured let the favoured one go ahead.
pub fn begins(thread: &Thread) {
    if on() {
        hold::head_start(thread);
    }
}

/// Whether that thread is the favoured one, or one that it descends from.
fn is_favoured(thread: &Thread) -> bool {
    let Some(mut favoured) = config::word(field::FAVOURED).checked_sub(1) else { return true };
    let table = config::tables().threads;
    while favoured < config::word(field::THREADS) {
        if favoured == thread.schedule_index.get() as u64 {
            return true;
        }
        favoured = config::word(table + favoured as usize * control::THREAD_WORDS);
    }
    false
}

/// The program says what it calls the running thread (`include/rashomon.h`). The last word counts.
#[unsafe(no_mangle)]
pub extern "C" fn rashomon_thread_id(identity: u64) {
    let Some(runtime) = Runtime::try_enter() else { return };
    let thread = runtime.thread();
    thread.provoked().identity.store(identity, Relaxed);
    if config::mode() != 0 && !detect::on() && !on() {
        file::write_identity(thread.number.get(), identity);
    }
}

/// Two threads stand at accesses of these addresses and sizes: for debuggers.
fn reached(held: (u64, u64), arrived: (u64, u64)) {
    debugged::meet_in(held, arrived);
    debugged::rashomon_finding_reached();
}
