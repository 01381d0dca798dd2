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
static mut OVER: List<*mut Thread> = List::new();

/// A record for a fibre.
fn record(parent: &Thread) -> *mut Thread {
    let over = &raw mut OVER;
    // SAFETY: under the lock.
    let oldest = LOCK.with(|| unsafe { if (*over).len() > REMEMBERED { Some((*over).remove(0)) } else { None } });
    match oldest {
        // SAFETY: the program said that it uses this fibre no more.
        Some(oldest) => unsafe { thread::register_again(&mut *oldest, parent.number, parent.spawned) },
        None => thread::register(parent.number, parent.spawned),
    }
}

/// A new fibre, that begins with what `parent` knows. Null when there is no room.
pub fn create(parent: &mut Thread, site: u64) -> *mut Thread {
    let fiber = record(parent);
    // SAFETY: null or a fresh record that nobody knows yet.
    let Some(child) = (unsafe { fiber.as_mut() }) else { return fiber };
    parent.spawned += 1;
    child.detached.set(true);
    // No handle of the thread library's is the address of this record.
    child.handle.store(fiber as u64, Release);
    child.detect.creation = local::call_stack(parent, site);
    child.detect.clock.assign(&parent.detect.clock);
    child.detect.give_slot();
    local::epoch_ends(parent);
    let state = sys::map_anonymous(size_of::<Hot>()).cast::<Hot>();
    if state.is_null() {
        sys::die(&[b"out of memory for a new fibre"]);
    }
    child.detect.parked = state;
    // SAFETY: fresh memory, the size of a block; all zero bytes are a block. Nobody runs the fibre meanwhile.
    unsafe { thread::prepare(child, &*state) };
    fiber
}

/// The calling thread, which runs as `from`, goes on as `to`.
pub fn switch(from: &mut Thread, to: *mut Thread, flags: u32) {
    // SAFETY: by the interface: a fibre that `create` made, or a thread's own.
    let Some(to) = (unsafe { to.as_mut() }) else { return };
    if core::ptr::eq(from, to) {
        return;
    }
    if flags & NO_SYNC == 0 {
        to.detect.clock.join(&from.detect.clock);
        local::epoch_ends(from);
    }
    if from.detect.parked.is_null() {
        from.detect.parked = sys::map_anonymous(size_of::<Hot>()).cast::<Hot>();
        if from.detect.parked.is_null() {
            sys::die(&[b"out of memory for a fibre"]);
        }
    }
    // SAFETY: this thread's block, and the places where blocks of fibres that do not run are kept.
    unsafe {
        let block = hot();
        (*from.detect.parked).assign(block);
        from.hot = from.detect.parked;
        let (nesting, caller, callee, entered) =
            (block.nesting.get(), block.caller.get(), block.callee.get(), block.entered.get());
        block.assign(&*to.detect.parked);
        block.nesting.set(nesting);
        block.caller.set(caller);
        block.callee.set(callee);
        block.entered.set(entered);
        to.hot = block;
        // Its call stack may have been cut or extended by a jump between stacks.
        block.dirty.set(1);
        block.thread.set(to);
    }
}

/// The fibre is used no more.
pub fn destroy(fiber: *mut Thread) {
    // SAFETY: as above; it does not run.
    let Some(fiber) = (unsafe { fiber.as_mut() }) else { return };
    clock::give_slot_back(fiber.detect.slot, fiber.detect.epoch);
    // SAFETY: its block is the parked one.
    unsafe { thread::detach(fiber) };
    fiber.ended.store(1, Release);
    // SAFETY: a fibre's own block.
    unsafe { sys::unmap(fiber.detect.parked.cast(), size_of::<Hot>()) };
    fiber.detect.parked = core::ptr::null_mut();
    fiber.detect.clock.clear();
    let over = &raw mut OVER;
    // SAFETY: under the lock.
    LOCK.with(|| unsafe { (*over).push(fiber) });
}

fn entered() -> Option<Runtime> {
    if super::on() { Runtime::try_enter() } else { None }
}

unsafe extern "C" fn current() -> *mut Thread {
    match entered() {
        Some(runtime) => runtime.thread(),
        // The thread's own block stands for its only fibre.
        None => core::ptr::from_ref(hot()).cast_mut().cast(),
    }
}

unsafe extern "C" fn created(_flags: u32) -> *mut Thread {
    match entered() {
        Some(runtime) => create(runtime.thread(), crate::system::tls::caller()),
        None => core::ptr::from_ref(hot()).cast_mut().cast(),
    }
}

unsafe extern "C" fn switched(fiber: *mut Thread, flags: u32) {
    if let Some(runtime) = entered() {
        switch(runtime.thread(), fiber, flags);
    }
}

unsafe extern "C" fn destroyed(fiber: *mut Thread) {
    if let Some(_runtime) = entered() {
        destroy(fiber);
    }
}

unsafe extern "C" fn named(fiber: *mut Thread, name: *const c_char) {
    if let Some(_runtime) = entered() {
        // SAFETY: by the interface: a fibre, and a terminated text.
        unsafe { crate::report::set_thread_name((*fiber).number, core::ffi::CStr::from_ptr(name).to_bytes()) };
    }
}

crate::system::entry::interpose! {
    __tsan_get_current_fiber => current;
    __tsan_create_fiber => created;
    __tsan_switch_to_fiber => switched;
    __tsan_destroy_fiber => destroyed;
    __tsan_set_fiber_name => named;
}
