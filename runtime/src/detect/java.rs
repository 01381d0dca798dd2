//! Objects of a heap that is managed by the program: many are freed at once, and they move.

use super::{blocks, objects, shadow};
use crate::detect::own::Own;
use crate::system::thread;
use core::sync::atomic::{AtomicU64, Ordering::*};

/// Where the heap begins and ends.
static HEAP: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

pub fn begins(address: u64, bytes: u64) {
    HEAP[1].store(address + bytes, Relaxed);
    HEAP[0].store(address, Release);
}

pub fn contains(address: u64) -> bool {
    HEAP[0].load(Acquire) <= address && address < HEAP[1].load(Relaxed)
}

/// Every object in a range is freed. The collector knows that nobody uses them: that is not checked.
pub fn free(thread: &mut Own, address: u64, bytes: u64) {
    for at in (address & !7..address + bytes).step_by(8) {
        match blocks::at(at) {
            Some(block) => {
                objects::remove(&block.object);
                blocks::freed(&mut thread.detect.blocks, at);
            }
            None => objects::remove(shadow::tag(at)),
        }
    }
}

/// Objects move, with the locks in them, while nobody uses them. The ranges may overlap.
pub fn relocate(from: u64, to: u64, bytes: u64) {
    let words = bytes / 8;
    let one = |word: u64| {
        let (source, target) = (shadow::tag(from + 8 * word), shadow::tag(to + 8 * word));
        let tag = source.swap(0, AcqRel);
        target.store(tag, Release);
        objects::each_in_word(tag, |object| object.moved(object.address() - from + to));
    };
    if to < from {
        (0..words).for_each(one);
    } else {
        (0..words).rev().for_each(one);
    }
    shadow::clear(to, bytes);
}

/// The thread learns all that any thread did so far.
pub fn learn_everything(thread: &mut Own) {
    for other in thread::all() {
        let (slot, epoch) = (other.detected().slot.get(), other.detected().epoch.get());
        if thread.detect.clock.get(slot) < epoch {
            thread.detect.clock.set(slot, epoch);
        }
    }
}
