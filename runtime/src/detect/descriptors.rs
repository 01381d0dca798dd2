//! Descriptors as objects that threads race on: each has a word of shadow of its own, in which a call that uses the descriptor
//! reads, and one that makes or closes it writes.
//!
//! A descriptor that was closed where nobody saw it, and made again where nobody saw it either, would be taken for the old one;
//! so both ends of its life are interposed wherever libc has a function for them. Putting another file in its place (`dup2`)
//! counts as use: programs do that to end races, not to have them.
//!
//! The word is forgotten when the descriptor is closed, as the number may be another file's at once. Who closed it last, and
//! when, is kept beside it: a call that fails because its descriptor is none (`EBADF`) came behind that, and if nothing orders
//! the two, it might as well have come before, or have met another file. Questions are no uses (`fcntl`, `fstat`, `poll`, `dup2`
//! of a descriptor to itself), and neither is what loops over numbers close ([`closings`]).

use super::access::{self, How};
use super::closings::{self, Closing};
use super::found::{self, Side};
use super::shadow::{self, reserve};
use super::stacks::StackId;
use super::{Detector, detector, libraries, local, places};
use crate::detect::own::Own;
use crate::report::{Descriptor, options};
use crate::system::lock::RawLock;
use crate::system::sys::{self, syscall};
use core::ffi::c_int;
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering::*};

/// Where the words are taken to be: no program's memory lies there (see `super::abstract_address`).
const BASE: u64 = (0x80 << 36) + (0xff << 32);
const MOST: u64 = 1 << 20;
/// From one word to the next: each has a cache line of the shadow, as threads use descriptors of their own side by side.
const APART: u64 = 32;
/// Where the object of `io_sync=2` is taken to be.
const ALL_FILES: u64 = BASE + APART * MOST;

/// Who made or closed a descriptor last.
#[derive(Clone, Copy)]
#[repr(C)]
struct Past {
    /// 0: nobody that was seen; 1: made; 2: closed.
    state: u32,
    thread: u32,
    stack: StackId,
    /// How often it was closed, and the last time.
    closings: u32,
    closing: Closing,
}

impl Past {
    const fn brief(&self) -> u64 {
        self.state as u64 | (self.closings as u64) << 32
    }
}

const MADE: u32 = 1;
const CLOSED: u32 = 2;

static PASTS: AtomicPtr<Past> = AtomicPtr::new(core::ptr::null_mut());
/// Of what [`PASTS`] points to.
pub static LOCK: RawLock = RawLock::new();
/// What each use of a descriptor asks, for readers without the lock: state, and above it the closings.
static BRIEFS: AtomicPtr<AtomicU64> = AtomicPtr::new(core::ptr::null_mut());

pub fn initialise() {
    PASTS.store(reserve(MOST as usize * size_of::<Past>()).cast(), Release);
    BRIEFS.store(reserve(MOST as usize * size_of::<AtomicU64>()).cast(), Release);
}

fn word(file: c_int) -> Option<u64> {
    let asked = u64::try_from(file).ok().filter(|&file| file < MOST)?;
    (detector() != Detector::LockSet).then_some(BASE + asked * APART)
}

/// What is known of a descriptor below [`MOST`].
fn with_past<R>(file: c_int, body: impl FnOnce(&mut Past) -> R) -> R {
    LOCK.with(|| {
        // SAFETY: inside the table; under the lock.
        let past = unsafe { &mut *PASTS.load(Relaxed).add(file as usize) };
        let before = past.brief();
        let result = body(past);
        if past.brief() != before {
            brief_of(file).store(past.brief(), Release);
        }
        result
    })
}

fn brief_of(file: c_int) -> &'static AtomicU64 {
    // SAFETY: inside the table, which stays.
    unsafe { &*BRIEFS.load(Relaxed).add(file as usize) }
}

/// State and closings.
fn brief(file: c_int) -> (u32, u32) {
    let brief = brief_of(file).load(Acquire);
    (brief as u32, (brief >> 32) as u32)
}

fn past(file: c_int) -> Past {
    with_past(file, |past| *past)
}

fn made_by(thread: &mut Own, file: c_int, site: u64) {
    let (number, stack) = (thread.number.get(), places::call_stack(thread, site));
    with_past(file, |past| *past = Past { state: MADE, thread: number, stack, ..*past });
}

/// Whether calls from there count.
fn counts(thread: &Own, site: u64) -> bool {
    thread.hot().ignored.get() == 0 && !libraries::leaves_out_accesses(site)
}

fn accessed(thread: &mut Own, address: u64, how: How, site: u64) {
    if libraries::leaves_out_accesses(site) {
        return;
    }
    let reference = places::reference_of_call(thread, site, false);
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
        made_by(thread, file, site);
    }
}

/// A call that uses a descriptor, and what was known of that before it.
#[derive(Clone, Copy)]
pub struct Use {
    file: c_int,
    stack: StackId,
    closings: u32,
    /// It was none.
    none: bool,
}

/// `None`: what becomes of the call does not matter.
pub fn used(thread: &mut Own, file: c_int, site: u64) -> Option<Use> {
    let address = word(file)?;
    accessed(thread, address, How::READ, site);
    if !counts(thread, site) {
        return None;
    }
    let (state, closings) = brief(file);
    let none = state == CLOSED && is_none(file);
    Some(Use { file, stack: places::call_stack(thread, site), closings, none })
}

/// Whether the kernel knows no such descriptor.
fn is_none(file: c_int) -> bool {
    const GET_FLAGS: usize = 1;
    const EBADF: isize = 9;
    // SAFETY: only asks.
    unsafe { syscall!(sys::FCNTL, file, GET_FLAGS) == -EBADF }
}

/// The call has failed with `EBADF`. Of a descriptor that is open, but not for what the call does, nothing is told.
#[cold]
pub fn failed(thread: &mut Own, one: Use) {
    let past = past(one.file);
    let was_none = one.none || past.closings != one.closings || past.state == CLOSED && is_none(one.file);
    if was_none && !past.closing.is_before(thread) {
        let (now, before) = sides(thread, one.file, (one.stack, false), &past.closing);
        found::behind_a_close(&now, &before, local::slept_since(thread, past.closing.when));
    }
}

/// A call on a descriptor, and the close that it comes behind.
fn sides(thread: &Own, file: c_int, (stack, write): (StackId, bool), closing: &Closing) -> (Side, Side) {
    let side = |thread, write, stack, lock_set| Side {
        thread,
        address: BASE + file as u64 * APART,
        bytes: 8,
        write,
        atomic: false,
        frees: false,
        vptr: false,
        stack,
        lock_set,
    };
    let now = side(thread.number.get(), write, stack, thread.detect.lock_set);
    (now, side(closing.thread, true, closing.stack, closing.lock_set))
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
        made_by(thread, file, site);
    }
}

/// A call that closes a descriptor, and what was known of that before it.
#[derive(Clone, Copy)]
pub struct Close {
    file: c_int,
    former: Past,
    /// It was none.
    none: bool,
    closing: Closing,
}

/// Before it is closed.
pub fn closes(thread: &mut Own, file: c_int, site: u64) -> Option<Close> {
    let address = word(file)?;
    accessed(thread, address, How::WRITE, site);
    // Whoever gets the number next need not be seen to.
    shadow::clear(address, 8);
    let stack = places::call_stack(thread, site);
    closings::goes_on(thread, file, stack);
    let closing = if counts(thread, site) { Closing::of(thread, stack) } else { Closing::NONE };
    let former = past(file);
    let close = Close { file, former, none: former.state == CLOSED && is_none(file), closing };
    if !close.none {
        remember(thread, close, stack);
    }
    Some(close)
}

fn remember(thread: &Own, close: Close, stack: StackId) {
    let thread = thread.number.get();
    with_past(close.file, |past| {
        *past = Past { state: CLOSED, thread, stack, closings: past.closings + 1, closing: close.closing };
    });
}

/// The call has returned.
pub fn closed(thread: &mut Own, close: Close) {
    if close.none {
        // Somebody got the number in between.
        remember(thread, close, close.closing.stack);
    }
}

/// The call has failed with `EBADF`: it came behind another one, or there never was such a descriptor.
#[cold]
pub fn closed_nothing(thread: &mut Own, close: Close) {
    let former = close.former;
    let others = with_past(close.file, |past| {
        let others = *past;
        if !close.none && others.closings == former.closings + 1 {
            *past = former;
        }
        others
    });
    let other = match others.closings == former.closings + u32::from(!close.none) {
        _ if former.state == CLOSED => former.closing,
        true => return,
        false => others.closing,
    };
    if close.closing.counts() && !other.is_before(thread) {
        let (now, before) = sides(thread, close.file, (close.closing.stack, true), &other);
        closings::is_doubtful(thread, now, before);
    }
}

/// The descriptor whose word an address is.
pub fn at(address: u64) -> Option<Descriptor> {
    let file = address.checked_sub(BASE)? / APART;
    if file >= MOST || (address - BASE) % APART >= 8 {
        return None;
    }
    let past = past(file as c_int);
    (past.state != 0).then_some(Descriptor {
        number: file as u32,
        closed: past.state == CLOSED,
        thread: past.thread,
        stack: past.stack,
    })
}
