//! Descriptors as objects that threads race on: each has a word of shadow of its own, in which a call that uses the descriptor
//! reads, and one that makes or closes it writes.
//!
//! A descriptor that was closed where nobody saw it, and made again where nobody saw it either, would be taken for the old one;
//! so both ends of its life are interposed wherever libc has a function for them. Putting another file in its place (`dup2`)
//! counts as use: programs do that to end races, not to have them.

use super::access::{self, How};
use super::shadow::{self, reserve};
use super::stacks::StackId;
use super::{Detector, detector, libraries, local};
use crate::detect::own::Own;
use crate::report::{Descriptor, options};
use core::ffi::c_int;
use core::sync::atomic::{AtomicPtr, Ordering::*};

/// Where the words are taken to be: no program's memory lies there (see `super::abstract_address`).
const BASE: u64 = (0x80 << 36) + (0xff << 32);
const MOST: u64 = 1 << 20;
/// Where the object of `io_sync=2` is taken to be.
const ALL_FILES: u64 = BASE + 8 * MOST;

/// Who made or closed a descriptor last.
#[derive(Clone, Copy)]
#[repr(C)]
struct Past {
    /// 0: nobody that was seen; 1: made; 2: closed.
    state: u32,
    thread: u32,
    stack: StackId,
}

const MADE: u32 = 1;
const CLOSED: u32 = 2;

static PASTS: AtomicPtr<Past> = AtomicPtr::new(core::ptr::null_mut());

pub fn initialise() {
    PASTS.store(reserve(MOST as usize * size_of::<Past>()).cast(), Release);
}

fn word(file: c_int) -> Option<u64> {
    let asked = u64::try_from(file).ok().filter(|&file| file < MOST)?;
    (detector() != Detector::LockSet).then_some(BASE + asked * 8)
}

fn remember(thread: &mut Own, file: c_int, state: u32, site: u64) {
    let past = Past { state, thread: thread.number.get(), stack: local::call_stack(thread, site) };
    // SAFETY: inside the table. Threads that make and close one descriptor at a time race in the program as well; any of their
    // words will do.
    unsafe { PASTS.load(Relaxed).add(file as usize).write_volatile(past) };
}

fn accessed(thread: &mut Own, address: u64, how: How, site: u64) {
    if libraries::leaves_out_accesses(site) {
        return;
    }
    let reference = local::reference_of_call(thread, site, false);
    access::access_as(thread, address, 8, how, reference);
}

/// The calling function made this descriptor.
pub fn made(thread: &mut Own, file: c_int, site: u64) {
    if let Some(address) = word(file) {
        if libraries::leaves_out_accesses(site) {
            shadow::clear(address, 8);
        } else {
            access::imitate_write(thread, address, 8, site);
        }
        remember(thread, file, MADE, site);
    }
}

pub fn used(thread: &mut Own, file: c_int, site: u64) {
    if let Some(address) = word(file) {
        accessed(thread, address, How::READ, site);
    }
}

/// Values of `io_sync`.
pub const BY_DESCRIPTOR: i64 = 1;
const EVERYTHING: i64 = 2;

/// Data is about to go out through some descriptor, or (`takes_in`) has come in. Files by themselves order nothing here;
/// `io_sync=2` has all of them be one object.
pub fn moves_data(thread: &mut Own, takes_in: bool, site: u64) {
    if options::get().io_sync == EVERYTHING {
        if takes_in {
            super::acquire_from(thread, ALL_FILES);
        } else {
            super::release(thread, ALL_FILES, site);
        }
    }
}

/// Another file is about to take this descriptor.
pub fn replaces(thread: &mut Own, file: c_int, site: u64) {
    used(thread, file, site);
    if let Some(address) = word(file) {
        shadow::clear(address, 8);
    }
}

/// It has.
pub fn replaced(thread: &mut Own, file: c_int, site: u64) {
    used(thread, file, site);
    if word(file).is_some() {
        remember(thread, file, MADE, site);
    }
}

/// Before it is closed.
pub fn closed(thread: &mut Own, file: c_int, site: u64) {
    if let Some(address) = word(file) {
        accessed(thread, address, How::WRITE, site);
        // Whoever gets the number next need not be seen to.
        shadow::clear(address, 8);
        remember(thread, file, CLOSED, site);
    }
}

/// The descriptor whose word an address is.
pub fn at(address: u64) -> Option<Descriptor> {
    let file = address.checked_sub(BASE)? / 8;
    if file >= MOST {
        return None;
    }
    // SAFETY: inside the table.
    let past = unsafe { PASTS.load(Relaxed).add(file as usize).read_volatile() };
    (past.state != 0).then_some(Descriptor {
        number: file as u32,
        closed: past.state == CLOSED,
        thread: past.thread,
        stack: past.stack,
    })
}
