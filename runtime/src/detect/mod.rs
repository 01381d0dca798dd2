//! Online detection: races are found while the program runs in parallel, in one pass, without a trace.
//!
//! | module | |
//! |---|---|
//! | [`shadow`] | four cells for each word of the program's memory |
//! | [`spans`] | what a cell's reference stands for: thread, epoch, lock set, call stack |
//! | [`places`] | call stacks and references of the places where a thread accesses |
//! | [`clock`] | vector clocks, slots of threads |
//! | [`objects`] | what was released to locks, atomics and the rest |
//! | [`locksets`], [`stacks`], [`numbers`], [`blocks`] | sets of locks, call stacks, numbers for them, heap blocks |
//! | [`access`] | the happens-before and the hybrid detector; [`eraser`] the lock set detector |
//! | [`descriptors`], [`closings`] | open files, and calls on those that are open no more |
//! | [`locks`], [`misuse`] | who holds which lock, and what is wrong with that |
//! | [`lock_order`] | deadlocks that are possible; of those that happened tells [`crate::serial::blocked`] |
//! | [`atomics`] | release sequences and fences |
//! | [`tree`] | the filter in front of them |
//! | [`memory`] | allocation, mappings, stacks of threads |
//! | [`found`] | what goes to the report |
//! | [`forked`] | processes |
//! | [`ignores`], [`libraries`] | what the program, and the user, want left out |
//! | [`statistics`] | what was done, in numbers |
//!
//! The hooks recognise in assembly an access that its thread's current span has covered already; everything else comes to
//! [`access_slow`]. Synchronisation comes through [`sync`], from the same place that records it when recording: releases before
//! they take effect, acquisitions after. Conditions order nothing beyond what their mutex does.
//!
//! Calls: `system`, `report`.

pub mod access;
pub mod atomics;
pub mod background;
pub mod blocks;
pub mod clock;
pub mod closings;
pub mod descriptors;
pub mod eraser;
pub mod fast;
pub mod fibers;
pub mod forked;
pub mod found;
pub mod handlers;
pub mod ignores;
pub mod java;
pub mod leaks;
pub mod libraries;
pub mod local;
pub mod lock_order;
pub mod locks;
pub mod locksets;
pub mod memory;
pub mod misuse;
pub mod numbers;
pub mod objects;
pub mod own;
pub mod places;
pub mod ranges;
pub mod shadow;
mod sides;
pub mod spans;
pub mod stacks;
pub mod statistics;
pub mod tree;
pub mod walked;

use crate::detect::own::Own;
use crate::report::options;
use crate::system::config;
use crate::system::thread::{self, Runtime};
use crate::system::tls::{Hot, hot};
use access::How;
use core::sync::atomic::{AtomicU32, Ordering::*};
use locks::Taking;
use objects::Locked;
use rashomon_abi::record::{AccessClass, Op, allocation_kind, lock_kind, sync_source};

/// Which question is asked of two accesses.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Detector {
    HappensBefore,
    LockSet,
    Hybrid,
}

/// The detector's number, [`COUNTING`] and [`FILTERING`]: 0 is what [`fast`] is made for.
static MODE: AtomicU32 = AtomicU32::new(0);
/// Every access is counted.
const COUNTING: u32 = 4;
/// There is a filter to be asked.
const FILTERING: u32 = 8;

pub use crate::system::config::detecting as on;

#[inline(always)]
pub fn detector() -> Detector {
    match MODE.load(Relaxed) & 3 {
        0 => Detector::HappensBefore,
        1 => Detector::LockSet,
        _ => Detector::Hybrid,
    }
}

/// Every access goes the slow way, to be counted.
pub fn counting() -> bool {
    MODE.load(Relaxed) & COUNTING != 0
}

/// Once, before any thread is attached. `filter`: how many places it remembers of each thread; 0: none.
pub fn initialise(detector: Detector, counting: bool, filter: u32) {
    shadow::initialise();
    stacks::initialise();
    clock::initialise();
    spans::initialise();
    locksets::initialise();
    objects::initialise();
    lock_order::initialise();
    blocks::initialise();
    libraries::initialise();
    atomics::initialise();
    descriptors::initialise();
    tree::initialise(filter);
    MODE.store(detector as u32 | if counting { COUNTING } else { 0 } | if filter > 0 { FILTERING } else { 0 }, Relaxed);
    config::detects();
}

/// What only the end of the process shows of memory.
pub fn last_checks() {
    closings::all_end();
    leaks::report();
    statistics::write();
}

/// The calling thread begins.
pub fn attach(thread: &mut Own) {
    if thread.number.get() == 0 {
        thread.give_slot();
    }
    let slot = thread.detected().slot.get();
    thread.detect.begin(slot);
    let hot = thread.hot();
    hot.shadow_mask.set(shadow::SELECT);
    hot.shadow.set(shadow::base());
    local::open(thread);
    tree::context_changes(thread);
}

/// The calling thread is over.
pub fn detach(thread: &mut Own) {
    thread.hot().shadow.set(core::ptr::null_mut());
    statistics::add(&thread.detected().counts);
    let now = local::now(thread);
    thread.detect.end(now);
}

/// Whether an access stays in its word.
const fn fits(address: u64, bytes: u64) -> bool {
    (address & 7) + bytes <= 8
}

macro_rules! slow_hooks {
    ($($name:ident $how:ident $is_read:literal $bytes:literal;)*) => { $(
        /// The hook did not recognise the access. Among the hooks, so that no signal comes between the filter's answer and its
        /// use.
        #[unsafe(link_section = "rashomon_hooks")]
        pub unsafe extern "C" fn $name(address: u64, site: u64) {
            let block = hot();
            // SAFETY: the block is this thread's, and known: it has a shadow.
            unsafe {
                if block.nesting.get() > 0 || block.ignored.get() > 0 {
                    return passes(block);
                }
                let mode = MODE.load(Relaxed);
                let own = block.thread.get().unwrap_unchecked().own_ptr();
                let simple = fits(address, $bytes) || $bytes == 16 && address & 7 == 0;
                if simple && (mode == 0 || mode == FILTERING && !knows_context(own)) {
                    return fast::plain::<$is_read, $bytes>(own, address, site);
                }
                if mode & FILTERING != 0
                    && fits(address, $bytes)
                    && tree::recognises(&mut *own, address, $bytes, $is_read, site)
                {
                    return;
                }
                otherwise(address, $bytes, How::$how, site);
            }
        }
    )* };
}

/// An access that is not looked at. A signal that came while a hook ran is told to the program nevertheless.
#[cold]
#[inline(never)]
fn passes(block: &Hot) {
    let pending = block.thread.get().is_some_and(|thread| thread.pending_signals.load(Relaxed) > 0);
    if block.nesting.get() == 0 && pending {
        // SAFETY: a known thread that is not inside of the runtime.
        drop(unsafe { Runtime::enter() });
    }
}

/// See [`local::enters_soon`].
pub fn enters_soon(hot: &Hot) {
    if on() {
        local::enters_soon(hot);
    }
}

slow_hooks! {
    read1 READ true 1; read2 READ true 2; read4 READ true 4; read8 READ true 8; read16 READ true 16;
    write1 WRITE false 1; write2 WRITE false 2; write4 WRITE false 4; write8 WRITE false 8; write16 WRITE false 16;
}

/// Under another detector or a filter, or in several words.
#[inline(never)]
fn otherwise(address: u64, bytes: u64, how: How, site: u64) {
    // SAFETY: as above.
    let runtime = unsafe { Runtime::enter() };
    runtime.with_own(|own| checked(own, address, bytes, how, site));
}

fn checked(thread: &mut Own, address: u64, bytes: u64, how: How, site: u64) {
    match MODE.load(Relaxed) {
        0 => access::access(thread, address, bytes, how, site),
        _ => slowly(thread, address, bytes, how, site),
    }
}

/// Whether the filter has anything to say. Where it has not, an access is what it is without a filter.
///
/// # Safety
/// The calling thread's.
#[inline(always)]
unsafe fn knows_context(own: *mut Own) -> bool {
    // SAFETY: by the contract.
    unsafe { (*own).detect.tree.knows_context() }
}

macro_rules! vptr_hooks {
    ($($name:ident $how:ident;)*) => { $(
        /// The same for a pointer to virtual functions.
        pub unsafe extern "C" fn $name(address: u64, site: u64) {
            let block = hot();
            // SAFETY: as above.
            unsafe {
                if block.nesting.get() > 0 || block.ignored.get() > 0 {
                    return;
                }
                Runtime::enter().with_own(|own| slowly(own, address, 8, How::$how, site));
            }
        }
    )* };
}

vptr_hooks! { vptr_read VPTR_READ; vptr_write VPTR_WRITE; }

/// An access under another detector, in a context that the filter knows, or one that is counted.
#[inline(never)]
fn slowly(thread: &mut Own, address: u64, bytes: u64, how: How, site: u64) {
    let filtered = !how.vptr && fits(address, bytes);
    if counting() {
        thread.detected().counts.executed.add(1);
        if filtered && thread.detect.tree.is_on() {
            if local::is_covered(thread, address, bytes, how.read) {
                thread.detected().counts.filter.span.add(1);
                return;
            }
            if tree::recall(thread, address, bytes, how.read, site) {
                return;
            }
        }
    }
    if !filtered || !thread.detect.tree.knows_context() {
        return access::access(thread, address, bytes, how, site);
    }
    let reference = tree::reference(thread, address, bytes, how.read, site);
    if reference == 0 {
        return;
    }
    match (MODE.load(Relaxed) & !FILTERING, how.read) {
        (0, true) => fast::with::<true>(thread, address, bytes, reference),
        (0, false) => fast::with::<false>(thread, address, bytes, reference),
        _ => access::access_as(thread, address, bytes, how, reference),
    }
}

/// An access of any length, by a thread under its runtime guard; inside of an interposed `function`, if it is not 0.
pub fn access_range(thread: &mut Own, address: u64, bytes: u64, site: u64, class: u64, function: u64) {
    let how = if class == AccessClass::Read as u64 { How::READ } else { How::WRITE };
    if counting() {
        thread.detected().counts.executed.add(1);
    }
    if function == 0 {
        access::access(thread, address, bytes, how, site);
    } else if !libraries::leaves_out_accesses(site) {
        let reference = places::reference_within(thread, site, function, false);
        access::access_as(thread, address, bytes, how, reference);
    }
}

/// The thread learns what was released to an object.
pub fn acquire(thread: &mut Own, object: &mut Locked) {
    object.is_received(thread.detected().slot.get());
    let clock = &mut thread.detect.clock;
    let slot = object.last_slot.get();
    if slot == u32::MAX || clock.get(slot) < object.last_epoch.get() {
        clock.join(&object.known().released);
    }
}

fn release(thread: &mut Own, address: u64, site: u64) {
    release_as(thread, address, 0, site);
}

/// `flags`: for the object.
fn release_as(thread: &mut Own, address: u64, flags: u32, site: u64) {
    if thread.detect.ignores_sync > 0 {
        return;
    }
    let object = objects::get(address, || places::call_stack(thread, site));
    let mut object = object.lock();
    object.flags.set(object.flags.get() | flags);
    object.is_added(&thread.detect.clock, thread.detected().slot.get(), thread.detected().epoch.get());
    drop(object);
    local::epoch_ends(thread);
}

fn acquire_from(thread: &mut Own, address: u64) {
    if thread.detect.ignores_sync == 0
        && let Some(object) = objects::find(address)
    {
        acquire(thread, &mut object.lock());
    }
}

/// Something other than memory that orders: where its object's tag is. No program's memory lies there.
fn abstract_address(source: u16, object: u64) -> u64 {
    match source {
        sync_source::FUTEX | sync_source::ANNOTATION | sync_source::OTHER => object,
        _ => (0x80 << 36) + ((object ^ object >> 32) as u32 as u64 & 0x0fff_ffff) * 8 + ((source as u64) << 32),
    }
}

/// An access that the interposed function makes which was called from `site`.
fn by_call(thread: &mut Own, address: u64, bytes: u64, how: How, site: u64) {
    if thread.hot().ignored.get() == 0 && !libraries::leaves_out_accesses(site) {
        let reference = places::reference_of_call(thread, site, how.atomic);
        access::access_as(thread, address, bytes, how, reference);
    }
}

/// Beginnings and ends of threads and of memory.
fn is_life(op: Op) -> bool {
    matches!(op, Op::ThreadStart | Op::ThreadCreate | Op::ThreadEnd | Op::ThreadJoin | Op::ThreadDetach | Op::Allocate | Op::Free)
}

/// A new thread knows what its creator does.
pub fn begin_with(child: &mut Own, known: &clock::Clock) {
    child.detect.clock.assign(known);
    child.give_slot();
}

/// A synchronisation event.
pub fn sync(thread: &mut Own, op: Op, object: u64, aux: u16, site: u64, arguments: &[u64]) {
    let argument = |at: usize| arguments.get(at).copied().unwrap_or(0);
    if libraries::leaves_out(site) && !is_life(op) {
        return;
    }
    match op {
        Op::ThreadStart => memory::stack_begins(thread),
        Op::ThreadCreate => {
            if let Some(child) = thread::by_number(object as u32) {
                child.detected().creation.set(places::call_stack(thread, site));
                // SAFETY: the thread does not run yet, and this is its creator.
                unsafe { child.with_own_of_other(|child| begin_with(child, &thread.detect.clock)) };
                local::epoch_ends(thread);
            }
        }
        Op::ThreadEnd => {
            ignores::check_ended(thread);
            closings::ends(thread);
            memory::stack_ends(thread);
            clock::give_slot_back(thread.detected().slot.get(), thread.detected().epoch.get());
        }
        Op::ThreadJoin => {
            if let Some(child) = thread::by_number(object as u32) {
                // SAFETY: it has ended, and only one thread can join it.
                unsafe {
                    child.with_own_of_other(|child| {
                        thread.detect.clock.join(&child.detect.clock);
                        child.detect.clock.clear();
                    });
                }
            }
        }
        Op::Lock | Op::LockShared => {
            let kind = (aux & !(lock_kind::TRY | lock_kind::REFUSES)) as u32;
            let how = Taking { shared: op == Op::LockShared, tries: aux & lock_kind::TRY != 0, kind, ..Taking::EXCLUSIVE };
            locks::acquired(thread, object, how, site);
        }
        Op::Unlock | Op::UnlockShared => {
            locks::released(thread, object, op == Op::UnlockShared, 1, site);
        }
        Op::CondInit | Op::CondDestroy => by_call(thread, object, 8, How::WRITE, site),
        Op::CondSignal | Op::CondBroadcast => by_call(thread, object, 8, How::READ, site),
        Op::CondWaitBegin => {
            by_call(thread, object, 8, How::READ, site);
            locks::released(thread, argument(0), false, 0, site);
        }
        Op::CondWaitEnd => locks::acquired(thread, argument(0), Taking::EXCLUSIVE, site),
        Op::LockInit => locks::created(thread, object, (aux & !lock_kind::REFUSES) as u32, site),
        Op::LockDestroy => locks::destroyed(thread, object, 0, site),
        // Generations share a barrier's memory: two objects in turn, so that those who enter next do not order those who still
        // leave.
        Op::BarrierEnter => {
            by_call(thread, object, 1, How::READ, site);
            release(thread, object + 8 * (argument(0) & 1), site);
        }
        // No access: the thread that is told to (PTHREAD_BARRIER_SERIAL_THREAD) may destroy it at once, and the destruction waits
        // for those who still leave.
        Op::BarrierExit => acquire_from(thread, object + 8 * (argument(0) & 1)),
        Op::BarrierInit | Op::BarrierDestroy => by_call(thread, object, 1, How::WRITE, site),
        Op::SemaphorePost | Op::OnceDone => release(thread, object, site),
        Op::SemaphoreWait | Op::OnceSeen => acquire_from(thread, object),
        Op::Sleep => local::sleeps(thread, site),
        Op::Release if aux == sync_source::ANNOTATION => release_as(thread, object, objects::flag::TOLD, site),
        Op::Release | Op::Acquire if aux == sync_source::FILE && options::get().io_sync != descriptors::BY_DESCRIPTOR => {}
        Op::Release => release(thread, abstract_address(aux, object), site),
        Op::Acquire => acquire_from(thread, abstract_address(aux, object)),
        Op::SignalEnter => acquire_from(thread, abstract_address(sync_source::SIGNAL, object)),
        Op::Allocate if aux == allocation_kind::MAPPING => memory::mapped(thread, object, argument(0), site),
        Op::Allocate => memory::allocated(thread, object, argument(0), argument(2), site),
        Op::Free => memory::freed(thread, object, site),
        _ => {}
    }
}
