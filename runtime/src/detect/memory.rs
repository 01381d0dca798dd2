//! Memory that begins and ends to be something: heap blocks, mappings, threads' stacks.

use super::stacks::StackId;
use super::{access, blocks, handlers, libraries, locks, objects, places, shadow};
use crate::detect::own::Own;
use crate::report::options;
use crate::system::{glibc, loader};
use core::sync::atomic::Ordering::Acquire;

/// Blocks up to this size are taken to be written by whoever allocates them; of larger ones the first part. So handing a block
/// over without synchronisation is a race with its allocation, and the allocating thread's first accesses need no look.
const WRITTEN: u64 = 16 << 10;

/// Whether what is done to memory from `site` is an access.
fn counts(thread: &mut Own, site: u64) -> bool {
    thread.hot().ignored.get() == 0
        && !libraries::leaves_out_accesses(site)
        && !loader::calls_from(site)
        && !glibc::calls_from(site)
}

/// `spare`: bytes behind those that were asked for which the program may use, too.
pub fn allocated(thread: &mut Own, address: u64, bytes: u64, spare: u64, site: u64) {
    let stack = places::call_stack(thread, site);
    begins(thread, address, bytes, spare, site, stack);
}

/// By a virtual machine on behalf of the code that it runs, which is what the call stack tells of.
pub fn allocated_by_machine(thread: &mut Own, address: u64, bytes: u64) {
    let stack = places::context(thread);
    begins(thread, address, bytes, 0, 0, stack);
}

fn begins(thread: &mut Own, address: u64, bytes: u64, spare: u64, site: u64, stack: StackId) {
    let number = thread.number.get();
    blocks::allocated(&mut thread.detect.blocks, address, (bytes, spare), stack, number);
    handlers::unsafe_call(thread, site);
    let written = if counts(thread, site) { bytes.min(WRITTEN) } else { 0 };
    access::imitate_write(thread, address, written, site);
    // A word that was written in part is clear already.
    let clear = (address + written).next_multiple_of(8);
    let end = address + bytes + spare;
    if end > clear {
        shadow::clear(clear, end - clear);
    }
}

pub fn freed(thread: &mut Own, address: u64, site: u64) {
    handlers::unsafe_call(thread, site);
    let Some(block) = blocks::at(address) else { return };
    let bytes = block.usable();
    objects::each_in_word(block.object.load(Acquire), |object| locks::freed(thread, object, site));
    objects::remove(&block.object);
    objects::remove_range(address + 8, bytes.saturating_sub(8), |object| locks::freed(thread, object, site));
    if counts(thread, site) {
        access::free(thread, address, bytes, site);
    } else if thread.hot().ignored.get() == 0 && glibc::calls_from(site) {
        access::free_unchecked(thread, address, bytes, site);
    } else {
        shadow::clear(address, bytes);
    }
    blocks::freed(&mut thread.detect.blocks, address);
}

/// Whoever maps memory is taken to write its first part, as with a block. `site` 0: it was there before the program.
pub fn mapped(thread: &mut Own, address: u64, bytes: u64, site: u64) {
    shadow::clear(address, bytes);
    if site != 0 && counts(thread, site) {
        access::imitate_write(thread, address, bytes.min(WRITTEN), site);
    }
}

/// Before the memory really goes. Where that is asked for, it is a write of all that was accessed there.
pub fn unmapped(thread: Option<&mut Own>, address: u64, bytes: u64, site: u64) {
    if let Some(thread) = thread.filter(|_| options::get().unmap_is_write)
        && counts(thread, site)
    {
        access::unmap(thread, address, bytes, site);
    }
    shadow::clear(address, bytes);
    shadow::clear_tags(address, bytes);
}

/// A created thread's stack may have been another's, which libc orders where nobody sees it.
pub fn stack_begins(thread: &mut Own) {
    if thread.number.get() != 0 {
        shadow::clear(thread.stack.get().0, thread.stack.get().1 - thread.stack.get().0);
    }
}

pub fn stack_ends(thread: &mut Own) {
    if thread.number.get() != 0 {
        shadow::clear(thread.stack.get().0, thread.stack.get().1 - thread.stack.get().0);
    }
}
