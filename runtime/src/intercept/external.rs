//! Objects that the program watches itself (`__tsan_external_*`): an access to one is an access to its first byte, made by
//! whoever called the function that tells of it.

use crate::detect::access::{self, How};
use crate::detect::{self, blocks, local};
use crate::system::thread::Runtime;
use crate::system::tls::caller;

fn accessed(address: u64, called_from: u64, tag: u64, how: How) {
    if !detect::on() {
        return;
    }
    let Some(runtime) = Runtime::try_enter() else { return };
    let thread = runtime.thread();
    if thread.hot().ignored.get() > 0 {
        return;
    }
    thread.with_own(|own| {
        let reference = local::reference_of_object(own, called_from, tag, caller());
        access::access_as(own, address, 1, how, reference);
    });
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
