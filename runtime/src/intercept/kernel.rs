//! What orders threads through the kernel besides the data of files: signals, processes, queues and semaphores of System V, locks
//! of files, handlers of `fork`.
//!
//! Whoever lets others go on releases the object before its call; whoever the kernel lets go on by it acquires it afterwards. A
//! program with one thread has nobody to order: nothing is released, and what nobody has released is not acquired.

use crate::detect;
use crate::record::recorder;
use crate::serial::sched;
use crate::system::thread::Runtime;
use core::ffi::c_int;
use core::sync::atomic::{AtomicU64, Ordering::*};
use rashomon_abi::record::{Op, sync_source};

#[derive(Clone, Copy)]
pub enum Object {
    /// All that is sent under this number: who takes one need not know which.
    Signal(c_int),
    /// The life of other processes: started and asked to end by some threads, waited for by others.
    Processes,
    MessageQueue(c_int),
    /// What was added to the semaphores of a set.
    SemaphoreSet(c_int),
    /// What was taken from them: for those who wait until one is 0.
    Taken(c_int),
    /// Locks of open files, by the number of the file.
    FileLock(u64),
    /// What `pthread_atfork` was given.
    ForkHandlers,
}

/// Bit for each kind of object, and for each signal, that was released.
static PUBLISHED: AtomicU64 = AtomicU64::new(0);

impl Object {
    const fn name(self) -> (u16, u64) {
        const KIND: u32 = 44;
        match self {
            Self::Signal(number) => (sync_source::SIGNAL, number as u32 as u64),
            Self::Processes => (sync_source::PROCESS, 0),
            Self::MessageQueue(id) => (sync_source::KERNEL, 1 << KIND | id as u32 as u64),
            Self::SemaphoreSet(id) => (sync_source::KERNEL, 2 << KIND | id as u32 as u64),
            Self::FileLock(file) => (sync_source::KERNEL, 3 << KIND | file & ((1 << KIND) - 1)),
            Self::ForkHandlers => (sync_source::KERNEL, 4 << KIND),
            Self::Taken(set) => (sync_source::KERNEL, 5 << KIND | set as u32 as u64),
        }
    }
    /// Signals have the upper bits; those of one number modulo 32 share one, which costs an event at most.
    const fn bit(self) -> u64 {
        match self {
            Self::Signal(number) => 1 << (32 + number as u32 % 32),
            Self::Processes => 1,
            Self::MessageQueue(_) => 2,
            Self::SemaphoreSet(_) => 4,
            Self::FileLock(_) => 8,
            Self::ForkHandlers => 16,
            Self::Taken(_) => 32,
        }
    }
}

/// The calling thread is about to let others go on that wait at this object.
pub fn release(runtime: &Runtime, object: Object, site: u64) {
    if !detect::on() && sched::live_count() <= 1 {
        return;
    }
    PUBLISHED.fetch_or(object.bit(), Relaxed);
    let (source, number) = object.name();
    sched::point(runtime, Op::Release, number, site);
    recorder::sync(runtime.thread(), Op::Release, number, source, site, &[]);
}

/// The same where the calling thread may not be inside the runtime.
pub fn releases(object: Object, site: u64) {
    if let Some(runtime) = Runtime::try_enter() {
        release(&runtime, object, site);
    }
}

/// The program uses such an object: it may be given up where nobody says so.
pub fn uses(object: Object) {
    PUBLISHED.fetch_or(object.bit(), Relaxed);
}

/// Whether it can have been released: what would be acquired has a place in the order of events if so.
pub fn is_used(object: Object) -> bool {
    PUBLISHED.load(Relaxed) & object.bit() != 0
}

/// The kernel let the calling thread go on. False: nobody released it.
pub fn acquire(runtime: &Runtime, object: Object, site: u64) -> bool {
    let used = is_used(object);
    if used {
        let (source, number) = object.name();
        recorder::sync(runtime.thread(), Op::Acquire, number, source, site, &[]);
    }
    used
}

/// The same behind an operation that is complete: an operation of its own.
pub fn acquires(object: Object, site: u64) {
    if is_used(object)
        && let Some(runtime) = Runtime::try_enter()
    {
        sched::point(&runtime, Op::Acquire, object.name().1, site);
        acquire(&runtime, object, site);
    }
}
