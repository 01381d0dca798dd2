//! `__tsan_*_fiber`: what a program says of threads of its own, which it switches between. See [`crate::detect::fibers`].

use crate::detect::{self, fibers};
use crate::system::handles;
use crate::system::thread::{Runtime, Thread};
use crate::system::tls::{caller, hot};
use crate::{report, threads};
use core::ffi::{CStr, c_char};
use core::sync::atomic::Ordering::*;

/// A record for a fibre.
fn record(parent: &Thread) -> Option<&'static Thread> {
    let (number, ordinal) = (parent.number.get(), parent.spawned.get());
    let Some(oldest) = fibers::oldest_over() else { return threads::register(number, ordinal) };
    // SAFETY: the program said that it uses this fibre no more.
    unsafe { threads::register_again(oldest, number, ordinal) };
    Some(oldest)
}

/// A new fibre, that begins with what `parent` knows. `None` when there is no room.
fn create(parent: &Thread, site: u64) -> Option<&'static Thread> {
    let child = record(parent)?;
    parent.spawned.set(parent.spawned.get() + 1);
    child.detached.set(true);
    // No handle of the thread library's is the address of this record.
    handles::store(child, core::ptr::from_ref(child) as u64);
    let block = fibers::begin(parent, child, site);
    // SAFETY: nobody runs the fibre meanwhile.
    unsafe { threads::prepare(child, block) };
    Some(child)
}

/// The fibre is used no more.
fn destroy(fiber: &'static Thread) {
    fibers::ends(fiber);
    // SAFETY: by the interface: it does not run.
    unsafe { threads::detach(fiber) };
    fiber.ended.store(1, Release);
    // SAFETY: as above.
    unsafe { fibers::is_over(fiber) };
}

fn entered() -> Option<Runtime> {
    if detect::on() { Runtime::try_enter() } else { None }
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
    create(runtime.thread(), caller()).map_or(core::ptr::null(), core::ptr::from_ref)
}

unsafe extern "C" fn switched(fiber: *const Thread, flags: u32) {
    let Some(runtime) = entered() else { return };
    // SAFETY: by the interface: null, or a fibre that `create` made, or a thread's own.
    if let Some(fiber) = unsafe { fiber.as_ref() } {
        fibers::switch(runtime.thread(), fiber, flags);
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
        unsafe { report::set_thread_name((*fiber).number.get(), CStr::from_ptr(name).to_bytes()) };
    }
}

interpose! {
    __tsan_get_current_fiber => current;
    __tsan_create_fiber => created;
    __tsan_switch_to_fiber => switched;
    __tsan_destroy_fiber => destroyed;
    __tsan_set_fiber_name => named;
}
