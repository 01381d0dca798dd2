//! Locks: who holds them, what they order, and in which sets they are.
//!
//! Events come from the interposed functions of libc, in the model of `record::Op`, and from annotations of the program's own
//! locks with more to say ([`flag`], [`Taking`]). A lock's use is also an access to its first byte (creation and destruction
//! write it, the rest reads it atomically): so a lock that is used without order behind its creation, or in freed memory, is a
//! race like any other. A thread that uses a lock again, with nothing else having touched that word, need not look.
//!
//! An acquired lock's owner is known from here until it is released; what is wrong with that is in [`super::misuse`], what it
//! means for the order of locks in [`super::lock_order`].

use super::access::{self, How};
use super::locksets::{self, LockSet};
use super::objects::{self, Object};
use super::stacks::StackId;
use super::{Detector, detector, found, libraries, local, lock_order, misuse, places, tree};
use crate::detect::own::Own;
use core::sync::atomic::Ordering::Relaxed;
use rashomon_abi::record::lock_kind;
use rashomon_abi::report::warning;

/// Flags of `__tsan_mutex_*` (`sanitizer/tsan_interface.h`).
pub mod flag {
    pub const LINKER_INIT: u32 = 1 << 0;
    pub const WRITE_REENTRANT: u32 = 1 << 1;
    pub const READ_REENTRANT: u32 = 1 << 2;
    pub const READ_LOCK: u32 = 1 << 3;
    pub const TRY_LOCK: u32 = 1 << 4;
    pub const TRY_LOCK_FAILED: u32 = 1 << 5;
    pub const RECURSIVE_LOCK: u32 = 1 << 6;
    pub const RECURSIVE_UNLOCK: u32 = 1 << 7;
    pub const NOT_STATIC: u32 = 1 << 8;
    /// Those that belong to the lock and not to one operation.
    pub const CREATION: u32 = LINKER_INIT | WRITE_REENTRANT | READ_REENTRANT | NOT_STATIC;
}

/// How a lock is taken.
#[derive(Clone, Copy)]
pub struct Taking {
    pub shared: bool,
    /// It would not have waited for ever: it is no cause of a deadlock.
    pub tries: bool,
    /// How often at once.
    pub times: u32,
    /// Kind (`record::lock_kind`) and flags of the lock.
    pub kind: u32,
    /// The order of locks was told before ([`requested`]).
    pub ordered: bool,
}

impl Taking {
    pub const EXCLUSIVE: Self = Self { shared: false, tries: false, times: 1, kind: 0, ordered: false };
}

/// A lock that a thread holds.
#[derive(Clone, Copy)]
pub struct Held {
    pub number: u32,
    pub shared: bool,
    pub times: u32,
    pub life: objects::Life,
    /// Where it was taken.
    pub stack: StackId,
    /// The sets of locks that the thread held before and behind that.
    sets: [LockSet; 2],
}

pub fn lock_edges() -> bool {
    detector() == Detector::HappensBefore
}

/// An event of a lock reads its first byte.
fn touch(thread: &mut Own, object: &Object, address: u64, site: u64) {
    if object.seen.is_still(address, thread.detected().slot.get()) {
        return;
    }
    if thread.hot().ignored.get() > 0 {
        return;
    }
    if lock_edges() {
        let reference = places::reference_of_call(thread, site, true);
        access::access_as(thread, address, 1, How::atomic(true), reference);
    } else if access::is_freed(address) {
        let reference = places::reference_of_call(thread, site, true);
        if reference != 0 {
            found::use_after_free(thread, address, 1, How::atomic(true), reference);
        }
    }
    object.seen.remember(address, thread.detected().slot.get());
}

/// A lock begins to exist.
pub fn created(thread: &mut Own, address: u64, kind: u32, site: u64) {
    let stack = places::call_stack(thread, site);
    if kind & (flag::LINKER_INIT << objects::flag::ANNOTATED) == 0 && lock_edges() && thread.hot().ignored.get() == 0 {
        let reference = places::reference_of_call(thread, site, false);
        access::access_as(thread, address, 1, How::WRITE, reference);
    }
    let known = objects::find(address);
    if known.is_none() && kind >> objects::flag::ANNOTATED == 0 && objects::are_many() {
        return;
    }
    let lock = known.unwrap_or_else(|| objects::get(address, || stack));
    let mut lock = lock.lock();
    if lock.recursion.get() > 0 && kind >> objects::flag::ANNOTATED != 0 {
        // A lock of the program's own may be told of while it is in use.
        lock.flags.set(lock.flags.get() | kind);
        return;
    }
    lock_order::forget(&lock);
    lock.reborn(stack);
    lock.flags.set(kind | objects::flag::LOCK | objects::flag::INITIALISED);
}

/// A lock ceases to exist.
pub fn destroyed(thread: &mut Own, address: u64, flags: u32, site: u64) {
    let Some(lock) = objects::find(address) else { return };
    let own = lock.flags.get() >> objects::flag::ANNOTATED;
    if (flags | own) & flag::LINKER_INIT != 0 || flags & flag::NOT_STATIC != 0 && own & flag::NOT_STATIC == 0 {
        return;
    }
    let stack = places::call_stack(thread, site);
    let mut guard = lock.lock();
    let locked = lock.recursion.get() > 0 && !lock.has(objects::flag::REPORTED);
    let was = misuse::Subject::of(lock);
    let last = lock.owner.get().checked_sub(1);
    let last = last.map(|number| (number, lock.owner_stack.get(), lock.last_slot.get(), lock.last_epoch.get()));
    let element = objects::element(lock, false);
    lock_order::forget(&guard);
    // Its life goes on until it is used again: reports of what was done under it still tell of it.
    guard.unowned();
    lock.flags.set(lock.flags.get() & !objects::flag::REPORTED | objects::flag::DESTROYED);
    drop(guard);
    if lock_edges() && thread.hot().ignored.get() == 0 {
        let reference = places::reference_of_call(thread, site, false);
        if reference != 0
            && access::word(thread, address, 1, How::FREE, reference)
            && let Some((number, unlocked_at, slot, epoch)) = last
            && !locked
            && slot != u32::MAX
            && slot != thread.detected().slot.get()
            && thread.detect.clock.get(slot) < epoch
        {
            found::destroyed_in_use(thread, address, reference, number, unlocked_at);
        }
        lock.seen.remember(address, u32::MAX);
    }
    forget_held(thread, was.number, element);
    if locked {
        misuse::destroyed_locked(&was, stack, was.owner_stack);
    }
}

/// The thread holds a lock no more that is gone.
fn forget_held(thread: &mut Own, number: u32, element: u64) {
    let held = &mut thread.detect.held;
    if let Some(at) = held.as_slice().iter().position(|held| held.number == number) {
        held.remove(at);
        let set = thread.detect.lock_set;
        let next = thread.detect.steps.step(set, element, false);
        let next = thread.detect.steps.step(next, element | 1, false);
        local::lock_set_changes(thread, next);
        tree::context_changes(thread);
    }
}

/// The thread is about to wait for a lock. `for_ever`: until it gets it.
pub fn requested(thread: &mut Own, address: u64, shared: bool, for_ever: bool, site: u64) {
    if libraries::leaves_out(site) {
        return;
    }
    let stack = places::call_stack(thread, site);
    let object = objects::get(address, || stack);
    if site != 0 && access::is_freed(address) {
        // It may never be got.
        touch(thread, object, address, site);
    }
    if for_ever {
        lock_order::acquiring(thread, object, stack);
        if object.recursion.get() > 0 && object.owner.get() == thread.number.get() + 1 && !shared {
            misuse::locks_again(object, stack);
        }
    }
}

/// The thread took a lock. `site` 0, here and at its release: that is no access to the lock's memory.
pub fn acquired(thread: &mut Own, address: u64, how: Taking, site: u64) {
    let stack = places::call_stack(thread, site);
    let object = objects::get(address, || stack);
    let destroyed = object.has(objects::flag::DESTROYED) && object.seen.is_unchanged(address);
    if site != 0 {
        touch(thread, object, address, site);
    }
    let ignores = thread.detect.ignores_sync > 0;
    let mut wrong = 0;
    let mut locked = object.lock();
    if object.has(objects::flag::DESTROYED) {
        if destroyed {
            wrong = warning::MUTEX_INVALID;
        }
        locked.reborn(object.creation.get());
    }
    object.flags.set(object.flags.get() & !objects::flag::DESTROYED | objects::flag::LOCK | how.kind);
    let recursion = object.recursion.get();
    let first = how.shared || recursion == 0;
    if how.shared {
        if recursion > 0 {
            wrong = warning::MUTEX_BAD_READ_LOCK;
        }
        object.readers.set(object.readers.get() + 1);
    } else {
        if recursion == 0 {
            object.owner.set(thread.number.get() + 1);
            object.owner_stack.set(stack);
        } else if object.owner.get() != thread.number.get() + 1 {
            wrong = warning::MUTEX_DOUBLE_LOCK;
        }
        object.recursion.set(recursion + how.times);
    }
    if first && !ignores && lock_edges() {
        super::acquire(thread, &mut locked);
        if !how.shared {
            tree::acquires(thread, &mut locked);
            thread.detect.clock.join(&locked.known().shared);
        }
    }
    let wrong = misuse::once(&locked, wrong);
    drop(locked);
    if first {
        if !how.tries && !how.ordered {
            lock_order::acquiring(thread, object, stack);
        }
        hold(thread, object, how.shared, stack);
        tree::context_changes(thread);
    }
    if wrong != 0 {
        misuse::report(wrong, object, stack);
    }
}

fn hold(thread: &mut Own, object: &Object, shared: bool, stack: StackId) {
    let held = &mut thread.detect.held;
    if let Some(known) = held.as_mut_slice().iter_mut().find(|held| held.number == object.number() && held.shared == shared) {
        known.times += 1;
        return;
    }
    let set = thread.detect.lock_set;
    let next = match set {
        locksets::EMPTY if !shared => {
            if object.alone.get() == locksets::EMPTY {
                // Under its lock, so that it does not become another lock meanwhile.
                let object = object.lock();
                object.alone.set(locksets::of_one(objects::element(&object, false)));
            }
            object.alone.get()
        }
        _ => thread.detect.steps.step(set, objects::element(object, shared), true),
    };
    let held = Held { number: object.number(), shared, times: 1, life: object.life(), stack, sets: [set, next] };
    thread.detect.held.push(held);
    local::lock_set_changes(thread, next);
}

fn drop_hold(thread: &mut Own, object: &Object, shared: bool) {
    let held = &mut thread.detect.held;
    let find = |held: &Held| held.number == object.number() && held.shared == shared;
    let Some(at) = held.as_slice().iter().rposition(find) else { return };
    let known = &mut held.as_mut_slice()[at];
    known.times -= 1;
    if known.times > 0 {
        return;
    }
    let [before, behind] = known.sets;
    let is_last = at + 1 == held.len();
    held.remove(at);
    let set = thread.detect.lock_set;
    let next = match is_last && set == behind {
        true => before,
        false => thread.detect.steps.step(set, objects::element(object, shared), false),
    };
    local::lock_set_changes(thread, next);
}

/// The thread gives a lock up, `times` times at once (0: altogether). Returns how often it had been held.
pub fn released(thread: &mut Own, address: u64, shared: bool, times: u32, site: u64) -> u32 {
    let object = match objects::find(address) {
        Some(object) => object,
        None => {
            let stack = places::call_stack(thread, site);
            objects::get(address, || stack)
        }
    };
    if site != 0 {
        touch(thread, object, address, site);
    }
    let ignores = thread.detect.ignores_sync > 0;
    let stack = places::call_stack(thread, site);
    let mut wrong = 0;
    let mut passed_on = false;
    let mut count = 1;
    let mut locked = object.lock();
    let recursion = object.recursion.get();
    if shared {
        let own = object.flags.get() & lock_kind::KIND_MASK as u32 == lock_kind::RWLOCK as u32;
        if recursion > 0 {
            wrong = if own { warning::MUTEX_BAD_UNLOCK } else { warning::MUTEX_BAD_READ_UNLOCK };
        } else if own && object.readers.get() == 0 {
            wrong = warning::MUTEX_BAD_UNLOCK;
        }
        object.readers.set(object.readers.get().saturating_sub(1));
        passed_on = !ignores;
        if passed_on && lock_edges() {
            locked.known().shared.join(&thread.detect.clock);
        }
    } else if recursion == 0 || object.owner.get() != thread.number.get() + 1 {
        wrong = warning::MUTEX_BAD_UNLOCK;
        count = 0;
    } else {
        count = if times == 0 { recursion } else { times.min(recursion) };
        object.recursion.set(recursion - count);
        if count == recursion {
            object.owner_stack.set(stack);
            passed_on = !ignores;
            if passed_on && lock_edges() {
                let known = locked.known();
                known.released.assign(&thread.detect.clock);
                known.shared.clear();
                locked.is_released_at(thread.detected().slot.get(), thread.detected().epoch.get());
                object.received.store(false, Relaxed);
            }
        }
    }
    let wrong = misuse::once(&locked, wrong);
    let last = shared || object.recursion.get() == 0;
    drop(locked);
    if last {
        drop_hold(thread, object, shared);
    }
    match (passed_on && lock_edges(), shared) {
        (true, false) => local::released(thread, object.number()),
        (true, true) => local::epoch_ends(thread),
        (false, _) => tree::context_changes(thread),
    }
    if wrong != 0 {
        misuse::report(wrong, object, stack);
    }
    count
}

/// The lock's owner died; whoever gets it next finds it free.
pub fn repaired(address: u64) {
    if let Some(object) = objects::find(address) {
        object.lock().recursion.set(0);
    }
}

/// libc refuses to work with a lock: it was never made, or is destroyed. The attempt reads the lock like any other use, so that
/// one without order behind the destruction is a race with it. Each attempt is judged: none is a repetition of an allowed one.
pub fn invalid(thread: &mut Own, address: u64, site: u64) {
    if libraries::leaves_out(site) {
        return;
    }
    if lock_edges() && thread.hot().ignored.get() == 0 {
        let reference = places::reference_of_call(thread, site, true);
        access::access_as(thread, address, 1, How::atomic(true), reference);
    }
    let stack = places::call_stack(thread, site);
    let object = objects::get(address, || stack);
    misuse::report(warning::MUTEX_INVALID, object, stack);
}

/// The memory that a lock lies in is freed by `thread`: who held it last is done with it?
pub fn freed(thread: &mut Own, object: &Object, site: u64) {
    let owner = object.owner.get();
    if !object.has(objects::flag::LOCK) || !lock_edges() || owner == 0 {
        return;
    }
    let (slot, epoch) = (object.last_slot.get(), object.last_epoch.get());
    let is_free = object.recursion.get() == 0;
    if is_free && slot != u32::MAX && slot != thread.detected().slot.get() && thread.detect.clock.get(slot) < epoch {
        let reference = places::reference_of_call(thread, site, false);
        if reference != 0 && access::word(thread, object.address(), 1, How::FREE, reference) {
            found::destroyed_in_use(thread, object.address(), reference, owner - 1, object.owner_stack.get());
        }
    }
}
