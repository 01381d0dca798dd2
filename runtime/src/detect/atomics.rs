//! Atomic operations and fences: C++20's happens-before, as in [intro.races].
//!
//! A releasing store begins a release sequence, which read-modify-writes of any thread continue and another thread's relaxed
//! store ends (unless the user wants it kept). A release fence releases with the thread's later relaxed stores; what relaxed
//! loads see is received by the next acquire fence. Operation and clock change together under the object's lock, so that whoever
//! reads a value knows what was released with it. Consume is acquire; sequentially consistent operations are acquire and release.

use super::access::{self, How};
use super::objects::{self, Locked};
use super::shadow::{self, READ, REFERENCE_SHIFT};
use super::{local, places};
use crate::detect::own::Own;
use crate::report::options;
use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use rashomon_abi::record::{Op, atomic_aux};

/// Relaxed stores leave alone what was released: see the option `release_sequences`.
static KEPT: AtomicBool = AtomicBool::new(false);

/// Once, before any thread is attached.
pub fn initialise() {
    let kept = match options::get().release_sequences {
        b"" => options::get().format == b"tsan",
        b"standard" => false,
        b"kept" => true,
        other => options::refuse(&[b"invalid value for option release_sequences: '", other, b"' (standard, kept)"]),
    };
    KEPT.store(kept, Relaxed);
}

fn acquires(order: u16) -> bool {
    !matches!(order, atomic_aux::RELAXED | atomic_aux::RELEASE)
}

fn releases(order: u16) -> bool {
    matches!(order, atomic_aux::RELEASE | atomic_aux::ACQ_REL | atomic_aux::SEQ_CST)
}

/// The access itself, unless the program asked not to look at this thread's.
fn touch(thread: &mut Own, address: u64, log2: u16, read: bool, site: u64) {
    let bytes = 1 << log2;
    if thread.hot().ignored.get() == 0 && !is_covered(thread, address, bytes, read) {
        access::access(thread, address, bytes, How::atomic(read), site);
    }
}

/// Whether the thread has made such an access in this span, under a reference of the latest block: then its cell is there, and
/// there is nothing to do.
#[inline(always)]
fn is_covered(thread: &Own, address: u64, bytes: u64, is_read: bool) -> bool {
    let block = thread.detect.atomic_block;
    if block.size == 0 || (address & 7) + bytes > 8 {
        return false;
    }
    let bits = shadow::byte_bits(address, bytes);
    let asked = !((block.size << REFERENCE_SHIFT) - 1) | bits | if is_read { 0 } else { READ };
    shadow::has_covering(shadow::cells(address), block.base << REFERENCE_SHIFT, asked, bits)
}

fn receive(thread: &mut Own, object: &mut Locked, acquires: bool) {
    if object.known().released.is_empty() {
        return;
    }
    if acquires {
        super::acquire(thread, object);
    } else {
        object.is_received(thread.detected().slot.get());
        thread.detect.fence_pending.join(&object.known().released);
    }
}

/// A load. `execute` may be called twice.
pub fn load<R>(thread: &mut Own, address: u64, log2: u16, order: c_int, site: u64, execute: impl Fn() -> R) -> R {
    touch(thread, address, log2, true, site);
    // Whoever releases a value has made the object before: if there is none yet, nothing was released with what is read here.
    let value = execute();
    if thread.detect.ignores_sync > 0 {
        return value;
    }
    match objects::find(address) {
        Some(object) => {
            let mut object = object.lock();
            let value = execute();
            receive(thread, &mut object, acquires(order as u16 & 7));
            value
        }
        None => value,
    }
}

/// Anything else. `execute` tells what it turned out to be; a failed compare-exchange is a load with the order `failure`.
pub fn modify<R>(
    thread: &mut Own,
    (address, log2): (u64, u16),
    order: c_int,
    failure: c_int,
    site: u64,
    execute: impl FnOnce() -> (R, Op),
) -> R {
    touch(thread, address, log2, false, site);
    if thread.detect.ignores_sync > 0 {
        return execute().0;
    }
    let (order, failure) = (order as u16 & 7, failure as u16 & 7);
    let releasing = releases(order) || thread.detect.has_fence;
    let object = if releasing {
        objects::get(address, || places::stack(thread, site))
    } else {
        match objects::find(address) {
            Some(object) => object,
            // Nothing was released here, and nothing is: whatever comes first in between is continued.
            None => return execute().0,
        }
    };
    let mut passed_on = false;
    let mut object = object.lock();
    let (result, op) = execute();
    match op {
        Op::AtomicStore if object.has(objects::flag::TOLD) => {
            if releases(order) {
                object.known().released.join(&thread.detect.clock);
                object.last_slot.set(u32::MAX);
                passed_on = true;
            }
        }
        Op::AtomicStore => {
            if releases(order) {
                object.known().released.assign(&thread.detect.clock);
                object.is_released_at(thread.detected().slot.get(), thread.detected().epoch.get());
                passed_on = true;
            } else if thread.detect.has_fence {
                object.known().released.assign(&thread.detect.fence_released);
                object.last_slot.set(u32::MAX);
            } else if object.last_slot.get() != thread.detected().slot.get() && !KEPT.load(Relaxed) {
                object.known().released.clear();
                object.last_slot.set(u32::MAX);
            }
        }
        Op::AtomicRmw => {
            receive(thread, &mut object, acquires(order));
            if releases(order) {
                object.is_added(&thread.detect.clock, thread.detected().slot.get(), thread.detected().epoch.get());
                passed_on = true;
            } else if thread.detect.has_fence {
                object.known().released.join(&thread.detect.fence_released);
                object.last_slot.set(u32::MAX);
            }
        }
        _ => receive(thread, &mut object, acquires(failure)),
    }
    drop(object);
    if passed_on {
        local::epoch_ends(thread);
    }
    result
}

pub fn fence(thread: &mut Own, order: c_int) {
    if thread.detect.ignores_sync > 0 {
        return;
    }
    let order = order as u16 & 7;
    if acquires(order) {
        let local = &mut thread.detect;
        local.clock.join(&local.fence_pending);
        local.fence_pending.clear();
    }
    if releases(order) {
        let local = &mut thread.detect;
        local.fence_released.assign(&local.clock);
        local.has_fence = true;
        local::epoch_ends(thread);
    }
}
