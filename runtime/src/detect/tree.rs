//! TREE in front of the detector (Rajagopalan, "Fast and Precise On-the-fly Data Race Detection", 2016, ch. 3; what may be
//! dropped, and why: `crates/filter`).
//!
//! An access is redundant if its thread has made one at the same code location, of the same bytes and not weaker, in the same
//! *concurrency context*:
//!
//! - hybrid and lock sets: the thread has sent nothing since, and holds the same locks. Loops that take the same locks come back
//!   to their contexts whoever else takes them.
//! - happens-before: whatever the thread sent since is *dead*. The release of a mutex is, once the thread holds that mutex again
//!   exclusively and nobody received from it in between: all who will ever receive it will receive a later release too. So an
//!   access made now is, for all other threads, an access of the epoch before that release.
//!
//! **History.** The concurrency history of a location is what the shadow remembers of it anyway: its cells. They name references,
//! a reference names thread, epoch, lock set and stack. What is added is per thread: contexts are interned as small numbers,
//! changed only at synchronisation; and a table of *places* (code location, context) → the reference with which the place
//! accessed first. A place that comes back to a word with its own reference in a cell has nothing to say; a place that comes to a
//! new word writes its old reference there, so that next time it is recognised. A word that was accessed in the same context by
//! another place gets a reference of the current span, as without the filter.
//!
//! The hooks go first: they recognise what the current span has covered, and know nothing of this. [`recognises`] is asked next,
//! before anything else is done. Where a span makes very many accesses it is given up for the rest of the span: the hooks are
//! faster once the span has references of its own.
//!
//! **Other threads.** For detectors with an order, accesses of two other threads never make a third one's redundant
//! (`crates/filter`, Theorem 3). For lock sets they would, but the detector keeps one latest access of a variable
//! ([`super::eraser`]), and a report names its code location: dropping others' accesses would change what is named.
//!
//! **Bound.** `filter_locations` places per thread, direct-mapped: a place that loses its entry is looked at as without the
//! filter. References of places lie in slabs of their own, which are not swept while the table knows them; a thread that has
//! filled three of them forgets the table. A context whose accesses are seldom recognised pauses, and a thread that gains nothing
//! sleeps.
//!
//! **Limit.** A mutex from whose address others receive without locking it (an annotation, an atomic operation) while it is held
//! again for the first time: one race may be missed.

use super::clock::Epoch;
use super::locksets::{self, LockSet};
use super::objects::Locked;
use super::shadow::{self, BYTES, CELLS, READ, REFERENCE_SHIFT};
use super::spans::{self, Block, Granule, References, When};
use super::stacks::{self, StackId};
use super::{Detector, counting, detector, local, places};
use crate::detect::own::Own;
use crate::system::sys;
use core::sync::atomic::{AtomicU32, Ordering::*};
use rashomon_abi::record::LOW_MASK;
use rashomon_logic::sent::Sent;

const MOST_PLACES: u32 = 1 << 20;
/// Contexts that a thread can come back to.
const CONTEXTS_LOG2: u32 = 7;
const CONTEXTS: usize = 1 << CONTEXTS_LOG2;
/// Mutexes whose last release may yet be dead.
const PENDING: usize = 16;
/// Changes of context after which it is asked whether anything was gained, and for how many the filter sleeps if not: the
/// shortest time and the longest.
const TRIAL: u32 = 256;
const WORTH_IT: u32 = TRIAL / 4;
const SHORTEST_PAUSE: u32 = 512;
const LONGEST_PAUSE: u32 = 1 << 15;
/// Accesses of a span that are looked up before the hooks do it better.
const ALLOWANCE: u32 = 64;

/// 0: no filter.
static PLACES: AtomicU32 = AtomicU32::new(0);
pub fn initialise(places: u32) {
    if places > 0 {
        PLACES.store(places.clamp(16, MOST_PLACES).next_power_of_two(), Relaxed);
    }
}

#[derive(Clone, Copy)]
#[repr(C)]
struct Place {
    /// The code location and, above 48 bits, the context's number.
    tag: u64,
    /// What the place was recognised by last, and what it writes.
    reference: u32,
    own: u32,
    /// The calling function's stack.
    context: StackId,
    credit: u32,
}

#[derive(Clone, Copy)]
struct Context {
    /// The last epoch that was sent for good, and the lock set.
    key: u64,
    /// 0: it has not come back yet.
    number: u16,
    /// Visits that it is left alone for, and for how many the next time.
    rest: u16,
    pause: u16,
}

/// What the filter knows of one thread.
pub struct Tree {
    /// Null: no filter, or the thread is over.
    places: *mut Place,
    mask: u32,
    /// The present context's number above 48 bits of zero, if it has come back and the span's allowance is not used up; else 0.
    known: u64,
    allowance: u32,
    contexts: *mut Context,
    /// The one that `known` names or named, and how often what it knows was looked up and was searched for.
    present: *mut Context,
    found: u32,
    searched: u32,
    /// Changes of context and what was found since it was last asked whether the filter is worth it; changes to sleep through,
    /// and how many the next time.
    changes: u32,
    gained: u32,
    asleep: u32,
    pause: u32,
    next_number: u16,
    /// Outgoing events, by the epochs that end with them.
    sent: Sent<PENDING>,
    /// References of places, and those that the context `block_of` is given next.
    references: References,
    block: Block,
    block_of: u64,
}

impl Tree {
    pub const fn new() -> Self {
        Self {
            places: core::ptr::null_mut(),
            mask: 0,
            known: 0,
            allowance: 0,
            contexts: core::ptr::null_mut(),
            present: core::ptr::null_mut(),
            found: 0,
            searched: 0,
            changes: 0,
            gained: 0,
            asleep: 0,
            pause: SHORTEST_PAUSE,
            next_number: 1,
            sent: Sent::new(),
            references: References::new(),
            block: Block::NONE,
            block_of: 0,
        }
    }

    pub fn begin(&mut self) {
        let places = PLACES.load(Relaxed);
        if places == 0 {
            return;
        }
        self.places = sys::map_anonymous(places as usize * size_of::<Place>()).cast();
        self.contexts = sys::map_anonymous(CONTEXTS * size_of::<Context>()).cast();
        if self.places.is_null() || self.contexts.is_null() {
            sys::die(&[b"out of memory for a new thread"]);
        }
        self.mask = places - 1;
    }

    pub fn end(&mut self, now: When) {
        if self.places.is_null() {
            return;
        }
        self.references.end(now);
        // SAFETY: the thread's own tables, used no more.
        unsafe {
            sys::unmap(self.places.cast(), (self.mask as usize + 1) * size_of::<Place>());
            sys::unmap(self.contexts.cast(), (CONTEXTS * size_of::<Context>()).next_multiple_of(4096));
        }
        self.places = core::ptr::null_mut();
        self.known = 0;
    }

    /// Contexts and references are no longer what they were.
    fn forget(&mut self, now: When) {
        // SAFETY: the thread's own tables.
        unsafe {
            core::ptr::write_bytes(self.places, 0, self.mask as usize + 1);
            core::ptr::write_bytes(self.contexts, 0, CONTEXTS);
        }
        self.references.span_ends(now);
        self.block = Block::NONE;
        self.next_number = 1;
        self.known = 0;
        self.present = core::ptr::null_mut();
    }

    /// The context is over: has looking been worth it?
    fn leave(&mut self) {
        const LONGEST_PAUSE: u16 = 255;
        self.known = 0;
        if self.present.is_null() {
            return;
        }
        self.gained += self.found;
        // SAFETY: an entry of the thread's table.
        let context = unsafe { &mut *self.present };
        if self.searched > self.found + 2 {
            context.pause = (context.pause * 2 + 1).min(LONGEST_PAUSE);
            context.rest = context.pause;
        } else {
            context.pause = 0;
        }
        self.present = core::ptr::null_mut();
        (self.found, self.searched) = (0, 0);
    }

    /// The thread has another slot from this epoch on; what has its number before is somebody else's.
    pub fn slot_begins(&mut self, now: When) {
        self.sent = Sent::new();
        self.sent.send(now.epoch - 1);
        if !self.places.is_null() {
            self.forget(now);
        }
    }

    pub fn is_on(&self) -> bool {
        !self.places.is_null()
    }

    /// Whether there is anything to look up.
    #[inline(always)]
    pub fn knows_context(&self) -> bool {
        self.known != 0
    }

    #[inline(always)]
    fn spend(&mut self, cost: u32) {
        self.allowance = self.allowance.saturating_sub(cost);
        if self.allowance == 0 {
            self.known = 0;
        }
    }

    #[inline(always)]
    fn place(&self, tag: u64) -> *mut Place {
        let mixed = (tag ^ tag >> 41).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        // SAFETY: inside the thread's table.
        unsafe { self.places.add(mixed as usize & self.mask as usize) }
    }

    /// How an access of this thread, of these lock set and epoch, stands to the one behind a cell.
    fn relation(&self, slot: u32, epoch: Epoch, lock_set: LockSet, granule: &Granule) -> Relation {
        if granule.slot() != slot || granule.is_atomic() {
            return Relation::Other;
        }
        let (same_epoch, fewer_locks) = match detector() {
            // Accesses of epochs after the last release that is not dead are as good as accesses made now.
            Detector::HappensBefore => (granule.epoch() > self.sent.alive(), true),
            Detector::LockSet | Detector::Hybrid => (granule.epoch() == epoch, locksets::is_subset(granule.lock_set, lock_set)),
        };
        match (same_epoch && fewer_locks, granule.lock_set == lock_set) {
            (false, _) => Relation::Other,
            (true, false) => Relation::Covering,
            (true, true) => Relation::Present,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Relation {
    Other,
    /// Whatever races with the new one races with it, as far as order and locks go.
    Covering,
    /// Nobody can tell the two apart.
    Present,
}

/// Whether the filter follows what the thread does.
#[inline(always)]
fn follows(thread: &mut Own) -> bool {
    let epoch = thread.detected().epoch.get();
    let tree = &mut thread.detect.tree;
    if tree.places.is_null() {
        return false;
    }
    if tree.asleep == 0 {
        return true;
    }
    tree.asleep -= 1;
    // What was sent meanwhile may have been received by anybody.
    tree.sent.send(epoch - 1);
    false
}

/// Locks held or events sent have changed: which context is this?
pub fn context_changes(thread: &mut Own) {
    if !follows(thread) {
        return;
    }
    let (epoch, lock_set) = (thread.detected().epoch.get(), thread.detect.lock_set);
    let now = local::now(thread);
    let tree = &mut thread.detect.tree;
    let sent = if detector() == Detector::HappensBefore { tree.sent.alive() } else { epoch };
    let key = (sent as u64) << 32 | lock_set as u64;
    // SAFETY: inside the thread's table.
    let context = unsafe { &mut *tree.contexts.add((key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - CONTEXTS_LOG2)) as usize) };
    tree.leave();
    tree.changes += 1;
    if tree.changes == TRIAL {
        let worth_it = tree.gained >= WORTH_IT;
        tree.pause = if worth_it { SHORTEST_PAUSE } else { (tree.pause * 2).min(LONGEST_PAUSE) };
        tree.asleep = if worth_it { 0 } else { tree.pause };
        (tree.changes, tree.gained) = (0, 0);
        return;
    }
    if context.key != key {
        // Most contexts under happens-before never come back: nothing is noted the first time.
        *context = Context { key, number: 0, rest: 0, pause: 0 };
        return;
    }
    if context.rest > 0 {
        context.rest -= 1;
        return;
    }
    if context.number == 0 {
        if tree.next_number == u16::MAX {
            return tree.forget(now);
        }
        context.number = tree.next_number;
        tree.next_number += 1;
    }
    tree.known = (context.number as u64) << 48;
    tree.present = context;
    tree.allowance = ALLOWANCE;
}

/// Everything up to the end of the last epoch was passed on, to whoever wants it.
pub fn sends(thread: &mut Own) {
    if !thread.detect.tree.places.is_null() {
        thread.detect.tree.sent.send(thread.detected().epoch.get() - 1);
        context_changes(thread);
    }
}

/// A mutex was released, exclusively, at the end of the last epoch.
pub fn releases(thread: &mut Own, object: u32) {
    if !follows(thread) {
        return;
    }
    thread.detect.tree.sent.release(object, thread.detected().epoch.get() - 1);
    context_changes(thread);
}

/// A mutex is held exclusively. The context changes with the lock set.
pub fn acquires(thread: &mut Own, object: &mut Locked) {
    let slot = thread.detected().slot.get();
    thread.detect.tree.sent.acquire(object.number(), true, |epoch| {
        object.last_slot.get() == slot
            && object.last_epoch.get() == epoch
            && !object.received.load(Relaxed)
            && object.known().shared.is_empty()
    });
}

/// Whether an access within a word is redundant, as far as a look at its place tells. Not while accesses are counted.
#[inline(always)]
pub fn recognises(thread: &mut Own, address: u64, bytes: u64, is_read: bool, site: u64) -> bool {
    thread.detect.tree.known != 0 && !counting() && recall(thread, address, bytes, is_read, site)
}

#[inline(always)]
pub fn recall(thread: &mut Own, address: u64, bytes: u64, is_read: bool, site: u64) -> bool {
    let tree = &mut thread.detect.tree;
    if tree.known == 0 {
        return false;
    }
    let tag = site & LOW_MASK | tree.known;
    // SAFETY: inside the thread's table.
    let place = unsafe { &*tree.place(tag) };
    if place.tag != tag {
        return false;
    }
    let bits = shadow::byte_bits(address, bytes);
    let cells = shadow::cells(address);
    let wanted = place.reference << REFERENCE_SHIFT;
    let select = !(READ | BYTES) | if is_read { 0 } else { READ };
    let is = |at: usize, bits: u32| cells[at].load(Relaxed) & (select | bits) == wanted | bits;
    let found = match detector() {
        // The latest access to each half.
        Detector::LockSet => (bits & 0x0f == 0 || is(0, bits & 0x0f)) && (bits & 0xf0 == 0 || is(2, bits & 0xf0)),
        _ => (0..CELLS).any(|at| is(at, bits)),
    };
    if found {
        tree.found += 1;
        tree.spend(1);
        thread.detected().counts.filter.same_thread.add(1);
    }
    found
}

/// The reference to look at an access within a word with, which [`recognises`] has not; 0: it is redundant all the same, or there
/// is no reference left.
#[inline(never)]
pub fn reference(thread: &mut Own, address: u64, bytes: u64, is_read: bool, site: u64) -> u32 {
    let bits = shadow::byte_bits(address, bytes);
    let cells = shadow::cells(address);
    let tag = site & LOW_MASK | thread.detect.tree.known;
    const COSTS: u32 = 8;
    thread.detect.tree.searched += 1;
    thread.detect.tree.spend(COSTS);
    let own = place_for(thread, site, tag);
    let told = &thread.thread().detected();
    let (slot, epoch) = (told.slot.get(), told.epoch.get());
    let local = &mut thread.detect;
    let tree = &mut local.tree;
    let lock_sets = detector() == Detector::LockSet;
    let (mut others, mut covered) = (false, 0);
    for (at, cell) in cells.iter().enumerate() {
        // The other cells of the lock set detector are states.
        if lock_sets && at % 2 == 1 {
            continue;
        }
        let old = cell.load(Acquire);
        let reference = old >> REFERENCE_SHIFT;
        if old & bits == 0 || reference <= spans::FREED {
            continue;
        }
        let granule = spans::granule(reference);
        let relation = tree.relation(slot, epoch, local.lock_set, &granule);
        let same_place = (is_read || old & READ == 0) && stacks::innermost(spans::stack(reference)) == site;
        if relation == Relation::Other || cell.load(Acquire) != old {
            continue;
        }
        if same_place && tree.references.owns(reference) {
            covered |= old & bits;
            if let Some(place) = own {
                // SAFETY: inside the thread's table.
                unsafe { (*place).reference = reference };
            }
            continue;
        }
        others |= relation == Relation::Present;
        if let Some(place) = own
            && same_place
            && relation == Relation::Present
        {
            // So that it lasts. SAFETY: as above.
            let lasting = unsafe { (*place).own } << REFERENCE_SHIFT | old & (READ | BYTES);
            if cell.compare_exchange(old, lasting, Relaxed, Relaxed).is_ok() {
                covered |= old & bits;
            }
        }
    }
    if covered == bits {
        told.counts.filter.same_thread.add(1);
        return 0;
    }
    match own {
        // SAFETY: as above.
        Some(place) if !others => unsafe { (*place).own },
        // A word that the context knows from elsewhere: the hooks are to recognise what else it does there in this span.
        _ => places::reference(thread, site, false),
    }
}

/// The entry of a place that is remembered, from now on if need be. `None`: it is not the calls' first way there, or others need
/// the entry.
fn place_for(thread: &mut Own, site: u64, tag: u64) -> Option<*mut Place> {
    /// As often may others ask for an entry between two times that its owner does.
    const CREDIT: u32 = 8;
    let context = places::context(thread);
    let at = thread.detect.tree.place(tag);
    // SAFETY: inside the thread's table.
    let place = unsafe { &mut *at };
    if place.tag == tag {
        place.credit = CREDIT;
        return (place.context == context).then_some(at);
    }
    if place.credit > 0 {
        place.credit -= 1;
        return None;
    }
    let stack = places::stack(thread, site);
    let (record, when) = (thread.thread(), local::now(thread));
    let local = &mut thread.detect;
    let tree = &mut local.tree;
    let of = tag & !LOW_MASK;
    if tree.block.is_full() || tree.block_of != of {
        if tree.references.is_long() {
            tree.forget(when);
            return None;
        }
        tree.block = tree.references.granule();
        tree.block_of = of;
        if tree.block.size == 0 {
            return None;
        }
    }
    let reference = tree.block.next;
    tree.block.next += 1;
    let shared = Granule { when, thread: record.number.get(), lock_set: local.lock_set };
    spans::define(reference, stack, shared);
    record.detected().counts.filter.places.add(1);
    *place = Place { tag, reference, own: reference, context, credit: CREDIT };
    Some(at)
}
