//! Memory that begins and ends to be something: heap blocks, mappings, threads' stacks.

use super::{access, blocks, handlers, local, locks, objects, shadow};
use crate::thread::Thread;
use core::sync::atomic::Ordering::Acquire;

/// Blocks up to this size are taken to be written by whoever allocates them; of larger ones the first part. So handing a block over without
/// synchronisation is a race with its allocation, and the allocating thread's first accesses need no look.
const WRITTEN: u64 = 16 << 10;

pub fn allocated(thread: &mut Thread, address: u64, bytes: u64, site: u64) {
    let stack = local::call_stack(thread, site);
    blocks::allocated(&mut thread.detect.blocks, address, bytes, stack, thread.number);
    handlers::unsafe_call(thread, site);
    let written = if thread.hot().ignored > 0 { 0 } else { bytes.min(WRITTEN) };
    access::imitate_write(thread, address, written, site);
    if bytes > written {
        shadow::clear(address + written, bytes - written);
    }
}

pub fn freed(thread: &mut Thread, address: u64, site: u64) {
    handlers::unsafe_call(thread, site);
    let Some(block) = blocks::at(address) else { return };
    let bytes = block.bytes;
    objects::each_in_word(block.object.load(Acquire), |object| locks::freed(thread, object, site));
    objects::remove(&block.object);
    objects::remove_range(address + 8, bytes.saturating_sub(8), |object| locks::freed(thread, object, site));
    if thread.hot().ignored == 0 {
        access::free(thread, address, bytes, site);
    } else {
        shadow::clear(address, bytes);
    }
    blocks::freed(&mut thread.detect.blocks, address);
}

pub fn mapped(address: u64, bytes: u64) {
    shadow::clear(address, bytes);
}

/// Before the memory really goes.
pub fn unmapped(address: u64, bytes: u64) {
    shadow::clear(address, bytes);
    shadow::clear_tags(address, bytes);
}

/// A created thread's stack may have been another's, which libc orders where nobody sees it.
pub fn stack_begins(thread: &mut Thread) {
    if thread.number != 0 {
        shadow::clear(thread.stack.0, thread.stack.1 - thread.stack.0);
    }
}

pub fn stack_ends(thread: &mut Thread) {
    if thread.number != 0 {
        shadow::clear(thread.stack.0, thread.stack.1 - thread.stack.0);
    }
}
