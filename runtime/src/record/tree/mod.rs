//! TREE in front of the recorder (Rajagopalan, "Fast and Precise On-the-fly Data Race Detection", 2016, ch. 3): a plain access is
//! not written if an earlier one of its thread, which was, covers it for every detector at once. What covers what, and the proof:
//! `crates/filter`, relation `RECORDER`. This is that filter, made to run inside the program; on the same execution the two
//! decide alike, access by access (`crates/cli/tests/recorded_filter.rs`).
//!
//! - Γ ([`context`]): how many outgoing events a thread has made, which of them are dead, and the path of locks it holds.
//! - Θ ([`history`]): per thread, (code location, class, address, size, path) → outgoing events at the last access that was kept.
//!   Accesses of other threads are never a reason (`crates/filter`, Theorem 3), so nobody else's history is looked at.
//! - Lifetimes ([`lifetimes`]): bytes that were given out again are other bytes.
//!
//! **Guarantee.** Races (pairs of code locations) under happens-before, the hybrid and lock sets are those of the unfiltered
//! recording. **Limit.** What a read saw is lost with the write that was dropped: the recording is marked, and no causal
//! prediction is made from it.
//!
//! The hooks' own filter ([`crate::record::filter`]) comes first: what repeats within a span is redundant here too, and never
//! gets this far. The fast path of the hooks stays shut, so all else comes here. Ranges of 8 KiB and more are kept.
//!
//! **Rest.** A thread of which little is redundant (a loop over arrays between barriers) stops asking for some chunks of its
//! stream, and the fast path opens: what is written then is not noted, which is as sound as forgetting. Who asks for a number of
//! locations wants them looked at: then nobody rests.

mod context;
mod history;
mod lifetimes;
mod locks;

use crate::system::guarded::Guarded;
use crate::system::thread::Thread;
use crate::system::{config, header, modules};
use context::Contexts;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering::*};
use history::History;
use rashomon_abi::control::{self, field};
use rashomon_abi::header::note;
use rashomon_abi::record::{Op, atomic_aux};

/// Locations that a thread remembers, unless the control says otherwise: 6 MiB of a thread that uses them all.
const DEFAULT_LOCATIONS: u64 = 1 << 17;
const MOST_LOCATIONS: u64 = 1 << 24;

/// Lookups between two questions whether they are worth it: that many have to find something.
const TRIAL: u32 = 1 << 13;
const WORTH_IT: u32 = TRIAL / 8;
/// Chunks of the longest rest.
const LONGEST_REST: u32 = 127;

/// Locations of a thread; 0: no filter.
static LOCATIONS: AtomicU32 = AtomicU32::new(0);
static RESTS: AtomicBool = AtomicBool::new(false);

/// Before any thread records.
pub fn initialise() {
    if !config::option(control::option::TREE) || config::option(control::option::NO_FILTER) {
        return;
    }
    lifetimes::initialise();
    modules::BEGINS_AGAIN.set(&(module_begins as fn(u64, u64)));
    let asked = match config::word(field::FILTER_LOCATIONS) {
        0 => DEFAULT_LOCATIONS,
        asked => asked.clamp(16, MOST_LOCATIONS),
    };
    RESTS.store(config::word(field::FILTER_LOCATIONS) == 0, Relaxed);
    LOCATIONS.store(asked as u32, Release);
    header::note(note::FILTERED);
}

/// In a forked child, where one thread is left: nothing is known of the locks any more.
pub fn forked(thread: &Thread) {
    if on() {
        locks::forget();
        thread.tree().with(Tree::end);
        header::note(note::FILTERED);
    }
}

#[inline(always)]
pub fn on() -> bool {
    LOCATIONS.load(Relaxed) != 0
}

/// What the filter knows of one thread. All zero: nothing.
pub struct Tree {
    contexts: Contexts,
    history: History,
    /// The thread goes on after others ran: where it had been stopped is told by its next access.
    resumes: bool,
    skipped: u64,
    /// Since it was last asked whether lookups are worth it; chunks to rest for, and for how many the last time.
    lookups: u32,
    found: u32,
    rest: u32,
    last_rest: u32,
}

impl Thread {
    /// What the filter knows of it.
    pub const fn tree(&self) -> &Guarded<Tree> {
        // SAFETY: the only call for this slot; zero bytes are right, and it is guarded.
        unsafe { self.tree_filter.holds() }
    }
}

impl Tree {
    pub fn end(&mut self) {
        self.contexts.end();
        self.history.end();
    }

    /// Accesses not written so far.
    pub fn take_skipped(&mut self) -> u64 {
        core::mem::take(&mut self.skipped)
    }

    /// Whether too little was found: then a rest begins.
    fn is_idle(&mut self) -> bool {
        let worth_it = self.found >= WORTH_IT || !RESTS.load(Relaxed);
        (self.lookups, self.found) = (0, 0);
        self.last_rest = if worth_it { 0 } else { (self.last_rest * 2 + 1).min(LONGEST_REST) };
        self.rest = self.last_rest;
        !worth_it
    }

    fn forget(&mut self) {
        self.history.forget();
        self.contexts.forget_paths();
    }

    fn is_redundant(&mut self, address: u64, site: u64, kind: u64) -> bool {
        if self.rest > 0 || self.lookups == TRIAL && self.is_idle() {
            return false;
        }
        self.lookups += 1;
        if self.contexts.is_full() {
            self.forget();
        }
        let resumes = core::mem::take(&mut self.resumes);
        let place = history::Place::new(site, kind, address, lifetimes::of(address));
        let alive = self.contexts.alive();
        if self.history.covers(&place, self.contexts.path(), alive) {
            self.found += 1;
            self.skipped += !resumes as u64;
            return !resumes;
        }
        if !self.history.note(&place, self.contexts.node(), self.contexts.outgoing(), LOCATIONS.load(Relaxed)) {
            self.forget();
            self.history.note(&place, self.contexts.node(), self.contexts.outgoing(), LOCATIONS.load(Relaxed));
        }
        false
    }

    /// See [`step`].
    fn step(&mut self, number: u32, op: Op, object: u64, aux: u16, arguments: &[u64]) {
        let argument = |at: usize| arguments.get(at).copied().unwrap_or(0);
        if op.has_ordinal() {
            self.resumes = false;
        }
        let contexts = &mut self.contexts;
        match op {
            Op::Lock => contexts.acquire(locks::acquired(object, number), false),
            Op::LockShared => contexts.acquire(locks::acquired(object, number), true),
            Op::CondWaitEnd => contexts.acquire(locks::acquired(argument(0), number), false),
            Op::Unlock => contexts.release(locks::used(object), false),
            Op::UnlockShared => contexts.release(locks::used(object), true),
            Op::CondWaitBegin => contexts.release(locks::used(argument(0)), false),
            Op::LockRequest => {
                locks::used(object);
            }
            Op::LockInit => locks::initialised(object),
            Op::LockDestroy => locks::destroyed(object),
            Op::AtomicStore | Op::AtomicRmw | Op::Fence if releases(atomic_aux::order(aux)) => contexts.send(),
            Op::ThreadCreate
            | Op::ThreadEnd
            | Op::CondSignal
            | Op::CondBroadcast
            | Op::BarrierEnter
            | Op::SemaphorePost
            | Op::OnceDone
            | Op::Release => contexts.send(),
            Op::Allocate => lifetimes::begin(object, argument(0)),
            Op::ThreadStart => {
                let (low, high) = (argument(2), argument(3));
                lifetimes::begin(low, high.saturating_sub(low));
                let (low, high) = (argument(4), argument(5));
                lifetimes::begin(low, high.saturating_sub(low));
            }
            _ => {}
        }
    }
}

/// Whether the hooks have to come here with every access.
pub fn wants_all(thread: &Thread) -> bool {
    on() && thread.tree().with(|tree| tree.rest == 0)
}

/// A chunk of the stream is full.
pub fn chunk_ends(thread: &Thread) {
    thread.tree().with(|tree| {
        if tree.rest > 0 {
            tree.rest -= 1;
            thread.hot().dirty.set(thread.hot().dirty.get() | (tree.rest == 0) as u64);
        }
    });
}

/// Whether an access need not be written. Notes it if it need.
pub fn is_redundant(thread: &Thread, address: u64, site: u64, kind: u64) -> bool {
    thread.tree().with(|tree| tree.is_redundant(address, site, kind))
}

/// The same for an access of any length; long ones, of which there are few, are written.
pub fn is_redundant_range(thread: &Thread, address: u64, bytes: u64, site: u64, class: u64) -> bool {
    const RANGE: u64 = 1 << 15;
    bytes < 1 << CLASS_SHIFT && is_redundant(thread, address, site, RANGE | class << CLASS_SHIFT | bytes)
}
const CLASS_SHIFT: u32 = 13;

/// The thread goes on after others ran.
pub fn resumes(thread: &Thread) {
    thread.tree().with(|tree| tree.resumes = true);
}

/// A synchronisation event takes its place in the order.
pub fn step(thread: &Thread, op: Op, object: u64, aux: u16, arguments: &[u64]) {
    thread.tree().with(|tree| tree.step(thread.number.get(), op, object, aux, arguments));
}

/// An order that does not exist counts as the strongest.
fn releases(order: u16) -> bool {
    !matches!(order, atomic_aux::RELAXED | atomic_aux::CONSUME | atomic_aux::ACQUIRE)
}

/// A module's data lies where another's was.
fn module_begins(start: u64, end: u64) {
    if on() {
        lifetimes::begin(start, end.saturating_sub(start));
    }
}
