//! A fork while detecting: the child goes on with a copy of everything, as its only thread.
//!
//! What other threads of the parent did lies behind the fork, which shows the child all of it at one moment: nothing of it is
//! concurrent with what the child does. So its thread knows every other thread's last epoch. No table may be in the middle of a
//! change when it is copied: the locks of all are held over the fork. An object whose own lock somebody held is begun anew, since
//! whatever was released to it is known.

use super::{
    background, blocks, clock, closings, descriptors, fibers, found, handlers, ignores, libraries, lock_order, locksets, objects,
    spans, stacks,
};
use crate::detect::own::Own;
use crate::report::{self, options};
use crate::system::handles;
use crate::system::lock::RawLock;
use crate::system::sys;
use crate::system::thread::{self, State};
use core::sync::atomic::{AtomicBool, Ordering::*};

/// `handlers_of_exit`: the lock of the functions that are to run at the end of the process.
fn locks(handlers_of_exit: &'static RawLock) -> [&'static RawLock; 15] {
    [
        &lock_order::LOCK,
        handlers_of_exit,
        &fibers::LOCK,
        &libraries::LOCK,
        &handlers::LOCK,
        &ignores::BENIGN_LOCK,
        &found::LOCK,
        &spans::LOCK,
        &objects::LOCK,
        &blocks::LOCK,
        &locksets::LOCK,
        &stacks::LOCK,
        &clock::LOCK,
        &descriptors::LOCK,
        &closings::LOCK,
    ]
}

/// Takes all locks. Whoever holds one may want another: nothing is kept while something is waited for.
pub fn before(handlers_of_exit: &'static RawLock) {
    let locks = locks(handlers_of_exit);
    loop {
        let Some(taken) = locks.iter().position(|lock| !lock.try_lock()) else { return };
        locks[..taken].iter().for_each(|lock| lock.unlock());
        locks[taken].with(|| {});
    }
}

pub fn in_parent(handlers_of_exit: &'static RawLock) {
    locks(handlers_of_exit).iter().for_each(|lock| lock.unlock());
}

/// This process is the child of one that had several threads: between fork and exec, only what is safe in a signal handler may be
/// called (POSIX, fork).
static OF_MANY: AtomicBool = AtomicBool::new(false);

/// The process is about to make a thread. That works here; who parses ThreadSanitizer's text gets what ThreadSanitizer does.
pub fn makes_thread() {
    let options = options::get();
    if OF_MANY.load(Relaxed) && options.die_after_fork.unwrap_or(options.format == b"tsan") {
        report::refuse(&[
            b"starting new threads after multi-threaded fork is not supported. Dying (set die_after_fork=0 to override)",
        ]);
    }
}

/// # Safety
/// In a child whose only thread is this one, which holds the locks.
pub unsafe fn in_child(thread: &mut Own, handlers_of_exit: &'static RawLock) {
    background::forked();
    locks(handlers_of_exit).iter().for_each(|lock| lock.reset());
    // SAFETY: by the contract.
    unsafe { objects::forked() };
    closings::forked();
    for other in thread::all() {
        if core::ptr::eq(other, thread.thread()) {
            continue;
        }
        // This one does not exist here.
        let (slot, epoch) = (other.detected().slot.get(), other.detected().epoch.get());
        if epoch > thread.detect.clock.get(slot) {
            thread.detect.clock.set(slot, epoch);
        }
        // Not fibres; but threads that have yet to run.
        if other.ended.load(Relaxed) == 0 && (other.number.get() == 0 || other.start_routine.get().is_some()) {
            OF_MANY.store(true, Relaxed);
        }
        if other.ended.swap(1, Relaxed) == 0 && epoch > 0 {
            clock::give_slot_back(slot, epoch);
        }
        other.joined.set(true);
        other.state.set(State::Ended);
        handles::give_up(other);
        other.leaves_block();
    }
    thread.kernel_id.set(sys::thread_id());
}
