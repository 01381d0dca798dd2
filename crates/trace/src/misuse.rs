//! Wrong uses of locks and threads: bugs of the recorded execution itself, whatever another schedule would show. The classes are
//! ThreadSanitizer's.
//!
//! Told from the operations in their order, by machine address. A lock that something was said about is passed over until it is
//! initialised again: what follows is a consequence. Locks of other kinds (`flockfile`, annotations) have rules of their own and
//! are left alone.
//!
//! Limits. That a mutex was destroyed is known by the system refusing it afterwards, and a condition variable by what the system
//! leaves in it: one that was given its static initialiser again is a new one. Rwlocks and spin locks show nothing, so of them
//! only uses in freed memory are found. A thread that takes a mutex which it holds, and is not told so, deadlocks; that is found
//! as such.

use crate::conditions::Conditions;
use crate::stream::SyncRecord;
use rashomon_abi::record::{CONDITION_DESTROYED, Op, free, lock_kind, thread_create};
use rashomon_event::{Address, ContextId, EventIndex, SiteId, ThreadId};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;

const EDEADLK: u64 = 35;
const EINVAL: u64 = 22;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Misuse {
    /// A lock is released by a thread that does not hold it.
    UnlockNotHeld,
    /// A lock is destroyed, or its memory freed, while it is held.
    DestroyLocked,
    /// A condition variable is destroyed while a thread waits for it ([`crate::conditions`]).
    DestroyAwaited,
    /// A thread takes a lock that it holds and that cannot be taken twice; it was told so.
    DoubleLock,
    /// A lock or condition variable is used after it was destroyed or its memory freed.
    UseOfDestroyed,
    /// A thread ended that nobody joined or detached.
    ThreadLeak,
    /// Memory is used after it was freed ([`crate::freed`]).
    UseAfterFree,
    /// A lock, condition variable or barrier is used, and nothing orders that with where it is initialised. This one and the next
    /// two follow from the order of the trace: loading it does not tell them.
    RacesWithInit,
    RacesWithDestroy,
    /// The same of where its memory is freed.
    RacesWithFree,
    /// Memory is used, and nothing orders that with where it is allocated. This, too, follows from the order of the trace.
    RacesWithAllocation,
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
    /// Where the lock was taken, destroyed or freed, or the memory freed, or where the other thread began to wait.
    pub earlier: Option<Moment>,
    /// Identity of the lock or condition variable, the number of the thread, or the beginning of the block.
    pub object: Address,
    /// The lock noticed, and told the program.
    pub refused: bool,
    /// It was only seen because other threads went on before the process ended.
    pub late: bool,
}

#[derive(Clone, Copy, Debug)]
struct Holder {
    shared: bool,
    at: Moment,
}

/// Of a condition variable: all but the holders.
#[derive(Debug, Default)]
struct Lock {
    holders: Vec<Holder>,
    gone: Option<Gone>,
    passed_over: bool,
    /// It checks for errors.
    refuses: bool,
}

#[derive(Clone, Copy, Debug)]
struct Gone {
    at: Moment,
    /// And not only destroyed.
    freed: bool,
}

impl Lock {
    fn taken(&self) -> Option<Moment> {
        self.holders.first().map(|holder| holder.at)
    }
}

#[derive(Clone, Copy, Debug)]
struct Child {
    created: Moment,
    ended: bool,
    /// Joined or detached.
    cared_for: bool,
    /// It ended when the process was about to end.
    late: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Misuses {
    found: Vec<MisuseRecord>,
    /// By machine address: those that are in a block are asked for by its range.
    locks: BTreeMap<u64, Lock>,
    /// Begin of each block → its bytes.
    blocks: FxHashMap<u64, u64>,
    children: BTreeMap<u64, Child>,
    /// `None`: nothing is told of them.
    conditions: Option<Conditions>,
    /// What the next event was where a block was freed that had been freed.
    freed_again: FxHashSet<EventIndex>,
    /// The process ended in another way than by `exit`, or with its last thread: then nothing is kept of any.
    vanished: bool,
    /// The process was about to end.
    lingers: bool,
}

impl Misuses {
    /// `is_serial`: the order of the operations is the one in which they took effect.
    pub(crate) fn new(is_serial: bool) -> Self {
        Self { conditions: is_serial.then(Conditions::default), ..Self::default() }
    }

    /// What is found next has this number.
    pub(crate) fn count(&self) -> usize {
        self.found.len()
    }

    /// What was found from a number on. Objects of locks are machine addresses until their caller has named them.
    pub(crate) fn since(&mut self, number: usize) -> &mut [MisuseRecord] {
        &mut self.found[number..]
    }

    /// The events behind which a block was freed once more, as the runtime saw: it had not been given out in between.
    pub(crate) fn take_freed_again(&mut self) -> FxHashSet<EventIndex> {
        std::mem::take(&mut self.freed_again)
    }

    pub(crate) fn step(&mut self, sync: &SyncRecord, at: Moment) {
        let argument = |number: usize| sync.arguments.get(number);
        let is_other = sync.aux & lock_kind::KIND_MASK == lock_kind::OTHER;
        if let Some(waiting) = self.conditions.as_mut().and_then(|conditions| conditions.step(sync.op, sync.object, at)) {
            let object = Address(sync.object);
            let misuse = Misuse::DestroyAwaited;
            self.found.push(MisuseRecord { misuse, at, earlier: Some(waiting), object, refused: false, late: false });
        }
        if matches!(sync.op, Op::Lock | Op::LockInit) {
            self.lock(sync.object).refuses = sync.aux & lock_kind::REFUSES != 0;
        }
        let destroyed = sync.aux & CONDITION_DESTROYED != 0;
        if matches!(sync.op, Op::CondWaitBegin | Op::CondSignal | Op::CondBroadcast | Op::CondDestroy) {
            self.condition_used(sync.object, destroyed, at);
        }
        match sync.op {
            Op::Lock => self.acquired(sync.object, false, is_other, at),
            Op::LockShared => self.acquired(sync.object, true, is_other, at),
            Op::CondWaitEnd => self.acquired(argument(0), false, false, at),
            Op::LockRequest => self.requested(sync.object, at),
            Op::Unlock | Op::UnlockShared => self.released(sync.object, at),
            Op::CondWaitBegin => self.released(argument(0), at),
            Op::LockFailed => self.failed(sync.object, argument(0), at),
            Op::LockInit => {
                let refuses = self.lock(sync.object).refuses;
                self.locks.insert(sync.object, Lock { passed_over: is_other, refuses, ..Lock::default() });
            }
            Op::LockDestroy => self.destroyed(sync.object, at),
            Op::CondInit => {
                self.locks.insert(sync.object, Lock::default());
            }
            Op::CondDestroy => self.lock(sync.object).gone = Some(Gone { at, freed: false }),
            Op::Allocate => {
                let bytes = argument(0).saturating_add(argument(2));
                self.blocks.insert(sync.object, bytes);
                self.begins(sync.object, bytes);
            }
            Op::Free => {
                if sync.aux & free::AGAIN != 0 {
                    self.freed_again.insert(at.before);
                }
                self.freed(sync.object, at);
            }
            Op::ThreadStart => self.begins(argument(2), argument(3).saturating_sub(argument(2))),
            Op::ThreadCreate => {
                let cared_for = sync.aux & thread_create::DETACHED != 0;
                self.children.insert(sync.object, Child { created: at, ended: false, cared_for, late: false });
            }
            Op::ThreadEnd if at.thread == ThreadId(0) => self.vanished = true,
            Op::ThreadEnd => {
                let late = self.lingers;
                self.child(u64::from(at.thread.0), |child| (child.ended, child.late) = (true, late));
            }
            Op::ThreadJoin | Op::ThreadDetach => self.child(sync.object, |child| child.cared_for = true),
            Op::ExitBegin => self.lingers = true,
            Op::ProcessEnd => self.vanished = true,
            _ => {}
        }
    }

    /// All of them, in order. Threads leak where a process comes to its orderly end.
    pub(crate) fn finish(mut self, ended: bool) -> Vec<MisuseRecord> {
        let leaked = self.children.iter().filter(|(_, child)| ended && !self.vanished && child.ended && !child.cared_for);
        self.found.extend(leaked.map(|(&number, child)| MisuseRecord {
            late: child.late,
            misuse: Misuse::ThreadLeak,
            at: child.created,
            earlier: None,
            object: Address(number),
            refused: false,
        }));
        self.found
    }

    fn child(&mut self, number: u64, change: impl FnOnce(&mut Child)) {
        if let Some(child) = self.children.get_mut(&number) {
            change(child);
        }
    }

    fn lock(&mut self, machine: u64) -> &mut Lock {
        self.locks.entry(machine).or_default()
    }

    fn say(&mut self, misuse: Misuse, machine: u64, at: Moment, earlier: Option<Moment>) {
        let lock = self.lock(machine);
        let refused = misuse == Misuse::DoubleLock || misuse == Misuse::UnlockNotHeld && lock.refuses;
        if !std::mem::replace(&mut lock.passed_over, true) {
            self.found.push(MisuseRecord { misuse, at, earlier, object: Address(machine), refused, late: false });
        }
    }

    fn acquired(&mut self, machine: u64, shared: bool, is_other: bool, at: Moment) {
        let lock = self.lock(machine);
        lock.passed_over |= is_other;
        // A destroyed one that can be taken was made anew.
        let gone = lock.gone.take();
        if !shared {
            lock.holders.clear();
        }
        lock.holders.push(Holder { shared, at });
        if let Some(Gone { at: freed, freed: true }) = gone {
            self.say(Misuse::UseOfDestroyed, machine, at, Some(freed));
        }
    }

    /// It may never get it: what lies there means nothing.
    fn requested(&mut self, machine: u64, at: Moment) {
        if let Some(Gone { at: freed, freed: true }) = self.lock(machine).gone {
            self.say(Misuse::UseOfDestroyed, machine, at, Some(freed));
        }
    }

    fn released(&mut self, machine: u64, at: Moment) {
        let lock = self.lock(machine);
        if let Some(own) = lock.holders.iter().position(|holder| holder.at.thread == at.thread) {
            lock.holders.remove(own);
            return;
        }
        match (lock.gone, lock.taken()) {
            (Some(gone), _) => self.say(Misuse::UseOfDestroyed, machine, at, Some(gone.at)),
            (None, taken) => self.say(Misuse::UnlockNotHeld, machine, at, taken),
        }
    }

    /// An operation on a condition variable. `destroyed`: nobody initialised it since it was destroyed.
    fn condition_used(&mut self, machine: u64, destroyed: bool, at: Moment) {
        match self.lock(machine).gone {
            Some(gone) if gone.freed || destroyed => self.say(Misuse::UseOfDestroyed, machine, at, Some(gone.at)),
            Some(_) => *self.lock(machine) = Lock::default(),
            None => {}
        }
    }

    fn failed(&mut self, machine: u64, error: u64, at: Moment) {
        let lock = self.lock(machine);
        let own = lock.holders.iter().find(|holder| holder.at.thread == at.thread && !holder.shared).map(|holder| holder.at);
        match (error, own, lock.gone) {
            (EDEADLK, Some(own), _) => self.say(Misuse::DoubleLock, machine, at, Some(own)),
            (EINVAL, _, Some(gone)) => self.say(Misuse::UseOfDestroyed, machine, at, Some(gone.at)),
            _ => {}
        }
    }

    fn destroyed(&mut self, machine: u64, at: Moment) {
        let lock = self.lock(machine);
        match (lock.taken(), lock.gone) {
            // The system refuses that: it lives on.
            (Some(taken), _) => self.say(Misuse::DestroyLocked, machine, at, Some(taken)),
            (None, Some(gone)) => self.say(Misuse::UseOfDestroyed, machine, at, Some(gone.at)),
            (None, None) => lock.gone = Some(Gone { at, freed: false }),
        }
    }

    /// Bytes are given out: what was there before is forgotten.
    fn begins(&mut self, start: u64, bytes: u64) {
        let inside: Vec<u64> = self.locks.range(start..start.saturating_add(bytes)).map(|(&machine, _)| machine).collect();
        inside.iter().for_each(|machine| {
            self.locks.remove(machine);
        });
    }

    fn freed(&mut self, start: u64, at: Moment) {
        let bytes = self.blocks.remove(&start).unwrap_or(0);
        let inside: Vec<u64> = self.locks.range(start..start.saturating_add(bytes)).map(|(&machine, _)| machine).collect();
        for machine in inside {
            let lock = self.lock(machine);
            lock.gone = Some(Gone { at, freed: true });
            if let Some(taken) = lock.taken() {
                self.say(Misuse::DestroyLocked, machine, at, Some(taken));
            }
        }
    }
}
