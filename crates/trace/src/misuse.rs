//! Wrong uses of locks and threads: bugs of the recorded execution itself, whatever another schedule would show. The classes are ThreadSanitizer's.
//!
//! Told from the operations in their order, by machine address. A lock that something was said about is passed over until it is initialised again: what follows is a
//! consequence. Locks of other kinds (`flockfile`, annotations) have rules of their own and are left alone.
//!
//! Limits. That a mutex was destroyed is known by the system refusing it afterwards: one that was given its static initialiser again is a new one. Rwlocks and spin locks are not
//! refused, so of them only uses in freed memory are found. A thread that takes a mutex which it holds, and is not told so, deadlocks; that is found as such.

use crate::header::{RunHeader, RunState};
use crate::intern::WordMap;
use crate::stream::SyncRecord;
use rashomon_abi::record::{Op, lock_kind, thread_create};
use rashomon_event::{Address, ContextId, EventIndex, SiteId, ThreadId};
use std::collections::BTreeMap;

const EDEADLK: u64 = 35;
const EINVAL: u64 = 22;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Misuse {
    /// A lock is released by a thread that does not hold it.
    UnlockNotHeld,
    /// A lock is destroyed, or its memory freed, while it is held.
    DestroyLocked,
    /// A thread takes a lock that it holds and that cannot be taken twice; it was told so.
    DoubleLock,
    /// A lock is used after it was destroyed or its memory freed.
    UseOfDestroyed,
    /// A thread ended that nobody joined or detached.
    ThreadLeak,
}

/// Where a thread was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    pub thread: ThreadId,
    pub site: SiteId,
    pub context: ContextId,
    /// The event that comes next.
    pub before: EventIndex,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MisuseRecord {
    pub misuse: Misuse,
    pub at: Moment,
    /// Where the lock was taken, destroyed or freed.
    pub earlier: Option<Moment>,
    /// Identity of the lock, or the number of the thread.
    pub object: Address,
}

#[derive(Clone, Copy, Debug)]
struct Holder {
    shared: bool,
    at: Moment,
}

#[derive(Debug, Default)]
struct Lock {
    holders: Vec<Holder>,
    gone: Option<Moment>,
    passed_over: bool,
}

#[derive(Clone, Copy, Debug)]
struct Child {
    number: u64,
    created: Moment,
    ended: bool,
    /// Joined or detached.
    cared_for: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Misuses {
    found: Vec<MisuseRecord>,
    /// By machine address: those that are in a block are asked for by its range.
    locks: BTreeMap<u64, Lock>,
    /// Begin of each block → its end.
    blocks: WordMap<u64, u64>,
    children: BTreeMap<u64, Child>,
    /// The process ended in another way than by `exit`.
    vanished: bool,
}

impl Misuses {
    /// `identity`: of the operation's own lock.
    pub(crate) fn step(&mut self, sync: &SyncRecord<'_>, at: Moment, identity: impl FnOnce() -> Address) {
        let argument = |number: usize| sync.arguments.get(number);
        match sync.op {
            Op::Lock | Op::LockShared => {
                let (kind, shared) = (sync.aux & lock_kind::KIND_MASK, sync.op == Op::LockShared);
                self.acquired(sync.object, shared, kind == lock_kind::OTHER, at, identity);
            }
            Op::CondWaitEnd => self.acquired(argument(0), false, false, at, identity),
            Op::Unlock | Op::UnlockShared => self.released(sync.object, at, identity),
            Op::CondWaitBegin => self.released(argument(0), at, identity),
            Op::LockFailed => self.failed(sync.object, argument(0), at, identity),
            Op::LockInit => {
                let other = sync.aux & lock_kind::KIND_MASK == lock_kind::OTHER;
                self.locks.insert(sync.object, Lock { passed_over: other, ..Lock::default() });
            }
            Op::LockDestroy => self.destroyed(sync.object, at, identity),
            Op::Allocate => self.begins(sync.object, argument(0)),
            Op::Free => self.freed(sync.object, at),
            Op::ThreadStart => {
                self.begins(argument(2), argument(3).saturating_sub(argument(2)));
            }
            Op::ThreadCreate => {
                let cared_for = sync.aux & thread_create::DETACHED != 0;
                self.children.insert(sync.object, Child { number: sync.object, created: at, ended: false, cared_for });
            }
            Op::ThreadEnd => self.child(u64::from(at.thread.0), |child| child.ended = true),
            Op::ThreadJoin | Op::ThreadDetach => self.child(sync.object, |child| child.cared_for = true),
            Op::ProcessEnd => self.vanished = true,
            _ => {}
        }
    }

    fn child(&mut self, number: u64, change: impl FnOnce(&mut Child)) {
        if let Some(child) = self.children.get_mut(&number) {
            change(child);
        }
    }

    fn say(&mut self, misuse: Misuse, machine: u64, at: Moment, earlier: Option<Moment>, identity: impl FnOnce() -> Address) {
        let lock = self.locks.entry(machine).or_default();
        if !std::mem::replace(&mut lock.passed_over, true) {
            self.found.push(MisuseRecord { misuse, at, earlier, object: identity() });
        }
    }

    fn acquired(&mut self, machine: u64, shared: bool, other: bool, at: Moment, identity: impl FnOnce() -> Address) {
        let lock = self.locks.entry(machine).or_default();
        lock.passed_over |= other;
        let freed = lock.gone.take().filter(|_| self.blocks.get(&machine).is_none() && lock.holders.is_empty());
        if !shared {
            lock.holders.clear();
        }
        lock.holders.push(Holder { shared, at });
        if let Some(freed) = freed.filter(|_| self.is_freed(machine)) {
            self.say(Misuse::UseOfDestroyed, machine, at, Some(freed), identity);
        }
    }

    fn released(&mut self, machine: u64, at: Moment, identity: impl FnOnce() -> Address) {
        let lock = self.locks.entry(machine).or_default();
        if let Some(own) = lock.holders.iter().position(|holder| holder.at.thread == at.thread) {
            lock.holders.remove(own);
            return;
        }
        let taken = lock.holders.first().map(|holder| holder.at);
        match lock.gone {
            Some(gone) => self.say(Misuse::UseOfDestroyed, machine, at, Some(gone), identity),
            None => self.say(Misuse::UnlockNotHeld, machine, at, taken, identity),
        }
    }

    fn failed(&mut self, machine: u64, error: u64, at: Moment, identity: impl FnOnce() -> Address) {
        let Some(lock) = self.locks.get(&machine) else { return };
        let own = lock.holders.iter().find(|holder| holder.at.thread == at.thread && !holder.shared).map(|holder| holder.at);
        match (error, own, lock.gone) {
            (EDEADLK, Some(own), _) => self.say(Misuse::DoubleLock, machine, at, Some(own), identity),
            (EINVAL, _, Some(gone)) => self.say(Misuse::UseOfDestroyed, machine, at, Some(gone), identity),
            _ => {}
        }
    }

    /// The system refuses to destroy a mutex that is held: it lives on.
    fn destroyed(&mut self, machine: u64, at: Moment, identity: impl FnOnce() -> Address) {
        let lock = self.locks.entry(machine).or_default();
        match (lock.holders.first().map(|holder| holder.at), lock.gone) {
            (Some(taken), _) => self.say(Misuse::DestroyLocked, machine, at, Some(taken), identity),
            (None, Some(gone)) => self.say(Misuse::UseOfDestroyed, machine, at, Some(gone), identity),
            (None, None) => lock.gone = Some(at),
        }
    }
