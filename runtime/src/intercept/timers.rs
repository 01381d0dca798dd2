//! Timers that send signals, and descriptors that signals are read from: who takes the signal is ordered behind who set the
//! timer.

use super::descriptors::made;
use super::kernel::{self, Object};
use crate::system::lock::RawLock;
use crate::system::memory::Map;
use crate::system::real::real;
use crate::system::thread::Runtime;
use crate::system::tls::caller;
use core::ffi::c_int;
use core::sync::atomic::{AtomicU64, Ordering::*};

/// SIGALRM, SIGVTALRM, SIGPROF: of `setitimer` in this order.
const SIGNALS: [c_int; 3] = [14, 26, 27];

static LOCK: RawLock = RawLock::new();
static mut SENDS: Map = Map::new();

/// A forked child has no timers, and nobody else.
///
/// # Safety
/// In a child that has one thread.
pub unsafe fn forget() {
    LOCK.unlock();
    // SAFETY: nobody else is there. The map may have been in the middle of a change.
    unsafe { (&raw mut SENDS).write(Map::new()) };
}

pub unsafe extern "C" fn create(clock: c_int, event: *const c_int, place: *mut u64) -> c_int {
    // SAFETY: the real function with the program's arguments.
    let result = unsafe { real!(fn timer_create(c_int, *const c_int, *mut u64) -> c_int)(clock, event, place) };
    if result == 0
        && let Some(_runtime) = Runtime::try_enter()
    {
        // `struct sigevent`: a value of eight bytes, the signal.
        // SAFETY: not null: the program's event, of more than two words.
        let signal = if event.is_null() { SIGNALS[0] } else { unsafe { *event.add(2) } };
        let sends = &raw mut SENDS;
        // SAFETY: under the lock; the call succeeded, so the timer lies there.
        LOCK.with(|| unsafe { *(*sends).entry((*place, 0)) = signal as u32 as u64 });
    }
    result
}

pub unsafe extern "C" fn set(timer: u64, flags: c_int, new: *const u8, old: *mut u8) -> c_int {
    if let Some(runtime) = Runtime::try_enter() {
        let sends = &raw const SENDS;
        // SAFETY: under the lock, nobody changes the map.
        if let Some(signal) = LOCK.with(|| unsafe { (*sends).get((timer, 0)) }) {
            kernel::release(&runtime, Object::Signal(signal as c_int), caller());
        }
    }
    // SAFETY: the real function with the program's arguments, whatever they are.
    unsafe { real!(fn timer_settime(u64, c_int, *const u8, *mut u8) -> c_int)(timer, flags, new, old) }
}

pub unsafe extern "C" fn set_interval(which: c_int, new: *const u8, old: *mut u8) -> c_int {
    if let Some(&signal) = SIGNALS.get(which as usize) {
        kernel::releases(Object::Signal(signal), caller());
    }
    // SAFETY: the same for one of the process's own timers.
    unsafe { real!(fn setitimer(c_int, *const u8, *mut u8) -> c_int)(which, new, old) }
}

unsafe extern "C" fn wake_me(seconds: u32) -> u32 {
    kernel::releases(Object::Signal(SIGNALS[0]), caller());
    // SAFETY: numbers only.
    unsafe { real!(fn alarm(u32) -> u32)(seconds) }
}

unsafe extern "C" fn wake_me_soon(first: u32, interval: u32) -> u32 {
    kernel::releases(Object::Signal(SIGNALS[0]), caller());
    // SAFETY: numbers only, too.
    unsafe { real!(fn ualarm(u32, u32) -> u32)(first, interval) }
}

const FILES: usize = 1024;
/// Descriptors that signals are read from.
static SIGNAL_FILES: [AtomicU64; FILES / 64] = [const { AtomicU64::new(0) }; FILES / 64];

/// A descriptor may name another file from now on.
pub fn forget_file(file: c_int) {
    if let Some(word) = SIGNAL_FILES.get(file as usize / 64) {
        word.fetch_and(!(1 << (file % 64)), Relaxed);
    }
}

/// So many bytes were read from a descriptor.
///
/// # Safety
/// They are at `buffer`.
pub unsafe fn were_read(file: c_int, buffer: *const u8, bytes: isize, site: u64) {
    /// `struct signalfd_siginfo` begins with the signal's number.
    const INFORMATION: usize = 128;
    let Some(word) = SIGNAL_FILES.get(file as usize / 64) else { return };
    if word.load(Relaxed) >> (file % 64) & 1 == 0 {
        return;
    }
    for at in 0..bytes.max(0) as usize / INFORMATION {
        // SAFETY: by the contract.
        let signal = unsafe { buffer.add(at * INFORMATION).cast::<c_int>().read_unaligned() };
        kernel::acquires(Object::Signal(signal), site);
    }
}

unsafe extern "C" fn signal_file(file: c_int, mask: *const u64, flags: c_int) -> c_int {
    let site = caller();
    // SAFETY: the real function with the program's mask.
    let result = unsafe { real!(fn signalfd(c_int, *const u64, c_int) -> c_int)(file, mask, flags) };
    let result = if result == file { result } else { made(result, site) };
    if result >= 0
        && let Some(word) = SIGNAL_FILES.get(result as usize / 64)
    {
        word.fetch_or(1 << (result % 64), Relaxed);
    }
    result
}

interpose! {
    alarm => wake_me;
    ualarm => wake_me_soon;
    signalfd => signal_file;
}
