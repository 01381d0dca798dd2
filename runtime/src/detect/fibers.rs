//! Fibres: threads of the program's own, which it switches between (`__tsan_*_fiber`).
//!
//! A fibre is a thread without one of the kernel's: it has a number, a clock, a call stack. Whatever thread switches to it runs
//! as it until the next switch, so that a thread's own record, which is a fibre as well, may go on under another kernel thread. A
//! switch orders what the old fibre did before what the new one does, unless the program says that it does not. When recording,
//! fibres are not told apart: everything belongs to the thread that runs it.

use super::{clock, local};
use crate::system::lock::RawLock;
use crate::system::memory::List;
use crate::system::sys;
use crate::system::thread::{self, Runtime, Thread};
use crate::system::tls::{Hot, hot};
use core::ffi::c_char;
use core::sync::atomic::Ordering::*;

/// `__tsan_switch_to_fiber_no_sync`
pub const NO_SYNC: u32 = 1;

/// Fibres that are over, in order. Reports can still describe so many; of others the records are used again.
const REMEMBERED: usize = 64;
pub static LOCK: RawLock = RawLock::new();
static mut OVER: List<&'static Thread> = List::new();

/// A record for a fibre.
fn record(parent: &Thread) -> Option<&'static Thread> {
    let over = &raw mut OVER;
    // SAFETY: under the lock.
    let oldest = LOCK.with(|| unsafe { if (*over).len() > REMEMBERED { Some((*over).remove(0)) } else { None } });
    let (number, ordinal) = (parent.number.get(), parent.spawned.get());
    match oldest {
        // SAFETY: the program said that it uses this fibre no more.
        Some(oldest) => Some(unsafe { thread::register_again(oldest, number, ordinal) }),
        None => thread::register(number, ordinal),
    }
}

/// A new fibre, that begins with what `parent` knows. `None` when there is no room.
pub fn create(parent: &Thread, site: u64) -> Option<&'static Thread> {
    let child = record(parent)?;
    parent.spawned.set(parent.spawned.get() + 1);
    child.detached.set(true);
    // No handle of the thread library's is the address of this record.
    child.handle.store(core::ptr::from_ref(child) as u64, Release);
    let state = sys::map_anonymous(size_of::<Hot>()).cast::<Hot>();
    if state.is_null() {
        sys::die(&[b"out of memory for a new fibre"]);
    }
    parent.with_own(|parent| {
        child.detected.creation.set(local::call_stack(parent, site));
        // SAFETY: nobody runs the fibre yet.
        unsafe {
            child.with_own_of_other(|child| {
                super::begin_with(child, &parent.detect.clock);
                child.detect.parked = state;
            });
        }
        local::epoch_ends(parent);
    });
    // SAFETY: fresh memory, the size of a block; all zero bytes are a block. Nobody runs the fibre meanwhile.
    unsafe { thread::prepare(child, &*state) };
    Some(child)
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

/// The fibre is used no more.
pub fn destroy(fiber: &'static Thread) {
    clock::give_slot_back(fiber.detected.slot.get(), fiber.detected.epoch.get());
    // SAFETY: by the interface: it does not run, and its block is the parked one.
    unsafe { thread::detach(fiber) };
    fiber.ended.store(1, Release);
    // SAFETY: as above; a fibre's own block.
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

fn entered() -> Option<Runtime> {
    if super::on() { Runtime::try_enter() } else { None }
}

/// The thread's own block stands for its only fibre.
fn only_fiber() -> *const Thread {
    core::ptr::from_ref(hot()).cast()
}

unsafe extern "C" fn current() -> *const Thread {
    entered().map_or_else(only_fiber, |runtime| runtime.thread())
}

unsafe extern "C" fn created(_flags: u32) -> *const Thread {
    let Some(runtime) = entered() else { return only_fiber() };
    create(runtime.thread(), crate::system::tls::caller()).map_or(core::ptr::null(), core::ptr::from_ref)
}

unsafe extern "C" fn switched(fiber: *const Thread, flags: u32) {
    let Some(runtime) = entered() else { return };
    // SAFETY: by the interface: null, or a fibre that `create` made, or a thread's own.
    if let Some(fiber) = unsafe { fiber.as_ref() } {
        switch(runtime.thread(), fiber, flags);
    }
}

unsafe extern "C" fn destroyed(fiber: *const Thread) {
    let Some(_runtime) = entered() else { return };
    // SAFETY: as above.
    if let Some(fiber) = unsafe { fiber.as_ref() } {
        destroy(fiber);
    }
}

unsafe extern "C" fn named(fiber: *const Thread, name: *const c_char) {
    if let Some(_runtime) = entered() {
        // SAFETY: by the interface: a fibre, and a terminated text.
        unsafe { crate::report::set_thread_name((*fiber).number.get(), core::ffi::CStr::from_ptr(name).to_bytes()) };
    }
}

crate::system::entry::interpose! {
    __tsan_get_current_fiber => current;
    __tsan_create_fiber => created;
    __tsan_switch_to_fiber => switched;
    __tsan_destroy_fiber => destroyed;
    __tsan_set_fiber_name => named;
}
