//! `mmap` and its kin: lifetimes of mapped memory.

use super::heap::{allocated, freed};
use crate::detect;
use crate::system::real::real;
use crate::system::sys;
use crate::system::thread::Runtime;
use crate::system::tls::caller;
use core::ffi::c_int;
use rashomon_abi::record::allocation_kind;

const FAILED: u64 = u64::MAX;
const PAGE: u64 = 4096;

fn mapping(address: *mut u8, bytes: usize, site: u64) {
    if address as u64 != FAILED {
        allocated(address as u64, bytes, site, allocation_kind::MAPPING);
    }
}

unsafe extern "C" fn map(address: *mut u8, bytes: usize, protection: c_int, flags: c_int, file: c_int, offset: i64) -> *mut u8 {
    let site = caller();
    // SAFETY: the program's own call: what it maps over is its own matter.
    let result = unsafe {
        real!(fn mmap(*mut u8, usize, c_int, c_int, c_int, i64) -> *mut u8)(address, bytes, protection, flags, file, offset)
    };
    mapping(result, bytes, site);
    result
}

/// Whether the kernel takes a range to be one: where it does not, nothing goes.
fn is_range(address: u64, bytes: u64) -> bool {
    const END: u64 = 1 << 47;
    address.is_multiple_of(PAGE) && bytes > 0 && bytes <= END && address <= END - bytes
}

/// Whether the kernel would map so much more at this time.
pub fn is_to_be_had(bytes: usize) -> bool {
    const READ_WRITE: usize = 3;
    const PRIVATE_ANONYMOUS: usize = 0x22;
    // SAFETY: a new mapping, of which nobody knows.
    unsafe {
        let place = sys::call(sys::MMAP, 0, bytes, READ_WRITE, PRIVATE_ANONYMOUS, usize::MAX, 0);
        place >= 0 && sys::call(sys::MUNMAP, place as usize, bytes, 0, 0, 0, 0) == 0
    }
}

/// Before a mapping goes.
fn unmapping(address: *mut u8, bytes: usize, site: u64) {
    if !is_range(address as u64, bytes as u64) {
        return;
    }
    if detect::on() {
        match Runtime::try_enter() {
            Some(runtime) => {
                runtime.with_own(|own| detect::memory::unmapped(Some(own), address as u64, bytes as u64, site));
            }
            None => detect::memory::unmapped(None, address as u64, bytes as u64, site),
        }
    } else {
        freed(address as u64, bytes as u64, site);
    }
}

unsafe extern "C" fn unmap(address: *mut u8, bytes: usize) -> c_int {
    unmapping(address, bytes, caller());
    // SAFETY: the program's own mapping, which nothing here refers to any more.
    unsafe { real!(fn munmap(*mut u8, usize) -> c_int)(address, bytes) }
}

/// Variadic in C: the fifth argument is the new place, if the flags say so.
unsafe extern "C" fn remap(address: *mut u8, old: usize, new: usize, flags: c_int, place: *mut u8) -> *mut u8 {
    const MAY_MOVE: c_int = 1;
    let site = caller();
    // SAFETY: the program's own mapping; an argument that the flags do not ask for is not looked at.
    let real = || unsafe { real!(fn mremap(*mut u8, usize, usize, c_int, *mut u8) -> *mut u8)(address, old, new, flags, place) };
    if new > old && old > 0 && (flags & MAY_MOVE == 0 || !is_to_be_had(new - old)) {
        // Nothing ends where it stays, or where the kernel refuses.
        let result = real();
        if result as u64 != FAILED {
            unmapping(address, old, site);
            mapping(result, new, site);
        }
        return result;
    }
    if old > 0 {
        unmapping(address, old, site);
    }
    let result = real();
    if result as u64 == FAILED && old > 0 {
        // The old mapping lives on, as a new object.
        mapping(address, old, site);
    }
    mapping(result, new, site);
    result
}

interpose! {
    mmap => map;
    mmap64 => map;
    munmap => unmap;
    mremap => remap;
}
