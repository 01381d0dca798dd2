//! Objects that the program watches itself (`__tsan_external_*`): an access to one is an access to its first byte, made by
//! whoever called the function that tells of it.
//!
//! A recording has no word for the kind of such an object: the access is told as one of a byte.

use crate::detect::access::{self, How};
use crate::detect::{self, blocks, places};
use crate::intercept::hooks;
use crate::system::thread::Runtime;
use crate::system::tls::{caller, hot};
use rashomon_abi::record::AccessClass;

fn accessed(address: u64, called_from: u64, tag: u64, how: How) {
    if !detect::on() {
        let class = if how.read { AccessClass::Read } else { AccessClass::Write };
        // SAFETY: only the number is used.
        return unsafe { hooks::access_range(address, 1, place(called_from), class as u64) };
    }
    let Some(runtime) = Runtime::try_enter() else { return };
    let thread = runtime.thread();
    if thread.hot().ignored.get() > 0 {
        return;
    }
    thread.with_own(|own| {
        let reference = places::reference_of_object(own, called_from, tag, caller());
        access::access_as(own, address, 1, how, reference);
    });
}

/// Where an access is recorded: in the function that tells of it if that is instrumented, and so on the stack, else where that
/// was called from, if it says so.
fn place(called_from: u64) -> u64 {
    let block = hot();
    let (top, bottom) = (block.top.get(), block.bottom.get());
    // SAFETY: the frames below `top` are there.
    let is_on_stack = || top > bottom && unsafe { (*top.sub(1)).site } == called_from;
    if !hooks::is_code(called_from) || is_on_stack() { caller() } else { called_from }
}

unsafe extern "C" fn read(address: u64, called_from: u64, tag: u64) {
    accessed(address, called_from, tag, How::READ);
}

unsafe extern "C" fn write(address: u64, called_from: u64, tag: u64) {
    accessed(address, called_from, tag, How::WRITE);
}

/// The block of the heap at an address holds such an object.
unsafe extern "C" fn assign(address: u64, tag: u64) {
    if detect::on()
        && let Some(_runtime) = Runtime::try_enter()
        && let Some(found) = blocks::find(address)
        && let Some(block) = blocks::at(found.address)
    {
        block.set_tag(tag as u32);
    }
}

interpose! {
    __tsan_external_read => read;
    __tsan_external_write => write;
    __tsan_external_assign_tag => assign;
}
