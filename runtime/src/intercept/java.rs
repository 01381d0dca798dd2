//! What a Java virtual machine tells of its heap and locks (`__tsan_java_*`): objects that it allocates, moves and frees by
//! itself in memory that is one block to everybody else.
//!
//! When recording, only what orders is recorded ([`super::annotations`]). Locks do not count then, as what they are made of is
//! seen, but how often they are held, which the machine asks for.

use crate::detect::locks::{self, Taking, flag};
use crate::detect::{self, blocks, java, leaks, memory, objects};
use crate::report;
use crate::system::memory::List;
use crate::system::thread::{self, MachineLock, Runtime, Thread};
use core::ffi::c_int;
use rashomon_abi::record::lock_kind;

fn enter() -> Option<Runtime> {
    if detect::on() { Runtime::try_enter() } else { None }
}

unsafe extern "C" fn begins(heap: u64, bytes: u64) {
    java::begins(heap, bytes);
}

/// The virtual machine ends. Returns the exit code.
unsafe extern "C" fn ends() -> c_int {
    let Some(_runtime) = enter() else { return 0 };
    report::conclude(leaks::report)
}

unsafe extern "C" fn allocated(address: u64, bytes: u64) {
    if let Some(runtime) = enter() {
        runtime.with_own(|own| memory::allocated_by_machine(own, address, bytes));
    }
}

unsafe extern "C" fn freed(address: u64, bytes: u64) {
    if let Some(runtime) = enter() {
        runtime.with_own(|own| java::free(own, address, bytes));
    }
}

unsafe extern "C" fn moved(from: u64, to: u64, bytes: u64) {
    if let Some(_runtime) = enter() {
        java::relocate(from, to, bytes);
        return;
    }
    let Some(_runtime) = Runtime::try_enter() else { return };
    // Nobody uses what moves.
    for thread in thread::all() {
        thread.machine_locks.with(|locks| {
            for held in locks.as_mut_slice().iter_mut().filter(|held| held.lock.wrapping_sub(from) < bytes) {
                held.lock = held.lock.wrapping_sub(from).wrapping_add(to);
            }
        });
    }
}

/// The first block that begins in `[*from, to)`: its size, and its address in `*from`.
unsafe extern "C" fn find(from: *mut u64, to: u64) -> u64 {
    let Some(_runtime) = enter() else { return 0 };
    // SAFETY: the program's own variable.
    let mut at = unsafe { *from }.next_multiple_of(8);
    while at < to {
        if let Some(block) = blocks::at(at) {
            // SAFETY: as above.
            unsafe { *from = at };
            return block.bytes();
        }
        at += 8;
    }
    0
}

/// Finalizers run behind everything.
unsafe extern "C" fn finalize() {
    if let Some(runtime) = enter() {
        runtime.with_own(java::learn_everything);
    }
}

fn lock(address: u64, shared: bool, times: c_int) {
    let Some(runtime) = Runtime::try_enter() else { return };
    if !detect::on() {
        return count(runtime.thread(), address, shared, times.max(1) as u32);
    }
    let kind = lock_kind::OTHER as u32 | (flag::LINKER_INIT | flag::WRITE_REENTRANT) << objects::flag::ANNOTATED;
    let how = Taking { shared, times: times.max(1) as u32, kind, ..Taking::EXCLUSIVE };
    runtime.with_own(|own| locks::acquired(own, address, how, 0));
}

/// `times`: 0, as often as it is held. Returns how often that is.
fn unlock(address: u64, shared: bool, times: u32) -> c_int {
    let Some(runtime) = Runtime::try_enter() else { return 0 };
    let held = match detect::on() {
        true => runtime.with_own(|own| locks::released(own, address, shared, times, 0)),
        false => count_down(runtime.thread(), address, shared, times),
    };
    held as c_int
}

fn place_of(locks: &List<MachineLock>, lock: u64, shared: bool) -> Option<usize> {
    locks.as_slice().iter().position(|held| held.lock == lock && held.shared == shared)
}

fn count(thread: &Thread, lock: u64, shared: bool, times: u32) {
    thread.machine_locks.with(|locks| match place_of(locks, lock, shared) {
        Some(at) => {
            let held = &mut locks.as_mut_slice()[at];
            held.times = held.times.saturating_add(times);
        }
        None => locks.push(MachineLock { lock, shared, times }),
    });
}

fn count_down(thread: &Thread, lock: u64, shared: bool, times: u32) -> u32 {
    thread.machine_locks.with(|locks| {
        let Some(at) = place_of(locks, lock, shared) else { return 0 };
        let held = &mut locks.as_mut_slice()[at];
        let before = held.times;
        held.times = if times == 0 { 0 } else { before.saturating_sub(times) };
        if held.times == 0 {
            locks.remove(at);
        }
        before
    })
}

unsafe extern "C" fn mutex_lock(address: u64) {
    lock(address, false, 1);
}

unsafe extern "C" fn mutex_unlock(address: u64) {
    unlock(address, false, 1);
}

unsafe extern "C" fn mutex_read_lock(address: u64) {
    lock(address, true, 1);
}

unsafe extern "C" fn mutex_read_unlock(address: u64) {
    unlock(address, true, 1);
}

unsafe extern "C" fn mutex_lock_again(address: u64, times: c_int) {
    lock(address, false, times);
}

/// Releases it altogether. Returns how often it was held.
unsafe extern "C" fn mutex_unlock_all(address: u64) -> c_int {
    unlock(address, false, 0)
}

interpose! {
    __tsan_java_init => begins;
    __tsan_java_fini => ends;
    __tsan_java_alloc => allocated;
    __tsan_java_free => freed;
    __tsan_java_move => moved;
    __tsan_java_find => find;
    __tsan_java_finalize => finalize;
    __tsan_java_mutex_lock => mutex_lock;
    __tsan_java_mutex_unlock => mutex_unlock;
    __tsan_java_mutex_read_lock => mutex_read_lock;
    __tsan_java_mutex_read_unlock => mutex_read_unlock;
    __tsan_java_mutex_lock_rec => mutex_lock_again;
    __tsan_java_mutex_unlock_rec => mutex_unlock_all;
}
