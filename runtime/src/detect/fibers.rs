//! Fibres: threads of the program's own, which it switches between ([`crate::intercept::fibers`]).
//!
//! A fibre is a thread without one of the kernel's: it has a number, a clock, a call stack. Whatever thread switches to it runs
//! as it until the next switch, so that a thread's own record, which is a fibre as well, may go on under another kernel thread. A
//! switch orders what the old fibre did before what the new one does, unless the program says that it does not. When recording,
//! fibres are not told apart: everything belongs to the thread that runs it.

use super::{clock, local, places};
use crate::system::lock::RawLock;
use crate::system::memory::List;
use crate::system::sys;
use crate::system::thread::Thread;
use crate::system::tls::{Hot, hot};

/// `__tsan_switch_to_fiber_no_sync`
pub const NO_SYNC: u32 = 1;

/// Fibres that are over, in order. Reports can still describe so many; of others the records are used again.
const REMEMBERED: usize = 64;
pub static LOCK: RawLock = RawLock::new();
static mut OVER: List<&'static Thread> = List::new();

/// The record of one that nobody will ask for any more.
pub fn oldest_over() -> Option<&'static Thread> {
    let over = &raw mut OVER;
    // SAFETY: under the lock.
    LOCK.with(|| unsafe { if (*over).len() > REMEMBERED { Some((*over).remove(0)) } else { None } })
}

/// A new fibre begins with what `parent` knows. The block that it will run with.
pub fn begin(parent: &Thread, child: &Thread, site: u64) -> &'static Hot {
    let state = sys::map_anonymous(size_of::<Hot>()).cast::<Hot>();
    if state.is_null() {
        sys::die(&[b"out of memory for a new fibre"]);
    }
    parent.with_own(|parent| {
        child.detected().creation.set(places::call_stack(parent, site));
        // SAFETY: nobody runs the fibre yet.
        unsafe {
            child.with_own_of_other(|child| {
                super::begin_with(child, &parent.detect.clock);
                child.detect.parked = state;
            });
        }
        local::epoch_ends(parent);
    });
    // SAFETY: fresh memory, the size of a block; all zero bytes are a block.
    unsafe { &*state }
}

/// The calling thread, which runs as `from`, goes on as `to`.
pub fn switch(from: &Thread, to: &'static Thread, flags: u32) {
    if core::ptr::eq(from, to) {
        return;
    }
    let parked = from.with_own(|from| {
        if flags & NO_SYNC == 0 {
            // SAFETY: by the interface: a fibre that does not run.
            unsafe { to.with_own_of_other(|to| to.detect.clock.join(&from.detect.clock)) };
            local::epoch_ends(from);
        }
        if from.detect.parked.is_null() {
            from.detect.parked = sys::map_anonymous(size_of::<Hot>()).cast();
            if from.detect.parked.is_null() {
                sys::die(&[b"out of memory for a fibre"]);
            }
        }
        from.detect.parked
    });
    let block = hot();
    let (nesting, caller, callee, entered) = (block.nesting.get(), block.caller.get(), block.callee.get(), block.entered.get());
    // SAFETY: this thread's block, and the places where blocks of fibres that do not run are kept.
    unsafe {
        (*parked).assign(block);
        from.runs_in(&*parked);
        block.assign(&*to.with_own_of_other(|to| to.detect.parked));
    }
    block.nesting.set(nesting);
    block.caller.set(caller);
    block.callee.set(callee);
    block.entered.set(entered);
    to.runs_in(block);
    // Its call stack may have been cut or extended by a jump between stacks.
    block.dirty.set(1);
    block.thread.set(Some(to));
}

/// The fibre is about to be used no more.
pub fn ends(fiber: &Thread) {
    clock::give_slot_back(fiber.detected().slot.get(), fiber.detected().epoch.get());
}

/// Nobody runs the fibre again; its record is remembered for a while.
///
/// # Safety
/// It does not run, and is detached.
pub unsafe fn is_over(fiber: &'static Thread) {
    // SAFETY: by the contract; a fibre's own block is the parked one.
    unsafe {
        fiber.with_own_of_other(|own| {
            sys::unmap(own.detect.parked.cast(), size_of::<Hot>());
            own.detect.parked = core::ptr::null_mut();
            own.detect.clock.clear();
        });
    }
    let over = &raw mut OVER;
    // SAFETY: under the lock.
    LOCK.with(|| unsafe { (*over).push(fiber) });
}
