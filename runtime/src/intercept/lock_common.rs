//! What all locks share.

use crate::detect;
use crate::record::{filter, recorder};
use crate::serial::sched::{self, Wait, WaitFor, Wake};
use crate::serial::{clock, standstill};
use crate::system::config;
use crate::system::sys::{self, EBUSY, syscall};
use crate::system::thread::{Held, Runtime, Thread, all};
use core::ffi::c_int;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use rashomon_abi::record::Op;

/// `struct timespec` as nanoseconds; negative fields count as zero.
///
/// # Safety
/// `time` points to a timespec.
pub unsafe fn nanoseconds(time: *const [i64; 2]) -> u64 {
    // SAFETY: by the contract.
    let [seconds, nanoseconds] = unsafe { *time };
    (seconds.max(0) as u64).saturating_mul(1_000_000_000).saturating_add(nanoseconds.max(0) as u64)
}

/// Whether libc would accept a time: less than a second of nanoseconds.
///
/// # Safety
/// `time` points to a timespec.
pub unsafe fn is_time(time: *const [i64; 2]) -> bool {
    // SAFETY: by the contract.
    (0..1_000_000_000).contains(&unsafe { *time }[1])
}

/// Whether libc waits by a clock: `CLOCK_REALTIME` or `CLOCK_MONOTONIC`.
pub const fn is_clock(clock: c_int) -> bool {
    matches!(clock, 0 | 1)
}

/// The virtual deadline of an absolute time.
///
/// # Safety
/// `time` points to a timespec.
pub unsafe fn deadline(clock: c_int, time: *const [i64; 2]) -> u64 {
    // SAFETY: by the contract.
    clock::deadline(clock, unsafe { nanoseconds(time) })
}

/// Serial mode: tries until it succeeds, blocking in the model in between. `Err(())`: the deadline passed.
pub fn acquire_by_trying(
    runtime: &Runtime,
    lock: u64,
    shared: bool,
    deadline: u64,
    site: u64,
    mut attempt: impl FnMut() -> c_int,
) -> Result<c_int, ()> {
    let mut requested = false;
    let mut late = false;
    loop {
        let result = attempt();
        if result != EBUSY {
            return Ok(result);
        }
        // What the lock is like when the thread runs again decides, not what woke it: a schedule can repeat the one only.
        if late {
            return Err(());
        }
        if !requested {
            requested = true;
            recorder::sync(runtime.thread(), Op::LockRequest, lock, shared as u16, site, &[]);
        }
        let what = if shared { WaitFor::LockShared } else { WaitFor::Lock };
        late = sched::block(runtime, Wait::on(what, lock).until(deadline), site) == Wake::TimedOut;
    }
}

/// A lock is taken by somebody else: the thread waits in libc, by `real`. `for_ever`: until it has the lock, and nobody outside
/// of the process can give it.
pub fn request<R>(runtime: &Runtime, wait: standstill::For, for_ever: bool, real: impl FnOnce() -> R) -> R {
    let thread = runtime.thread();
    let shared = wait.op == Op::LockShared;
    if detect::on() {
        detect::locks::requested(thread, wait.object, shared, for_ever, wait.site);
    } else {
        recorder::sync(thread, Op::LockRequest, wait.object, shared as u16, wait.site, &[]);
    }
    if for_ever { standstill::during(runtime, wait, real) } else { sched::external(runtime, real) }
}

/// Notes that a thread holds a lock.
pub fn hold(thread: &mut Thread, lock: u64, shared: bool) {
    static TAKEN: AtomicU64 = AtomicU64::new(1);
    let since = if config::serial() { TAKEN.fetch_add(1, Relaxed) } else { 0 };
    let held = Held { lock, shared, since };
    thread.held.push(held);
    filter::locks_changed(thread, held);
}

/// When a lock was last taken for one thread alone, in serial mode: who is said to have taken it before does not have it any
/// more, as its memory was used for another lock meanwhile.
pub fn since_last_exclusive(lock: u64) -> u64 {
    // SAFETY: registered threads are never unmapped; in serial mode the others are stopped.
    let held = all().flat_map(|thread| unsafe { (*thread).held.as_slice() });
    held.filter(|held| held.lock == lock && !held.shared).map(|held| held.since).max().unwrap_or(0)
}

/// Notes that a lock was given up, by its holder or, where that is allowed, by somebody else. Tells how it was held.
pub fn drop_hold(thread: &mut Thread, lock: u64) -> Option<Held> {
    let find = |held: &[Held]| held.iter().rposition(|held| held.lock == lock);
    if let Some(at) = find(thread.held.as_slice()) {
        let held = thread.held.remove(at);
        filter::locks_changed(thread, held);
        return Some(held);
    }
    if config::serial() {
        for other in all() {
            // SAFETY: registered threads are never unmapped; in serial mode the others are stopped.
            let other = unsafe { &mut *other };
            if let Some(at) = find(other.held.as_slice()) {
                let held = other.held.remove(at);
                filter::locks_changed(other, held);
                return Some(held);
            }
        }
    }
    None
}

/// Whether an address lies in a mapping that other processes may see: an object there that says it is shared is beyond the model.
/// Objects that are marked as shared in private memory are not.
pub fn is_shared_mapping(address: u64) -> bool {
    // SAFETY: a terminated path; reads into a local buffer.
    unsafe {
        // O_CLOEXEC
        let file = syscall!(sys::OPENAT, -100isize, c"/proc/self/maps".as_ptr(), 0o2000000, 0);
        if file < 0 {
            return true;
        }
        let (mut buffer, mut line, mut shared) = ([0u8; 1024], MapsLine::new(), None);
        while shared.is_none() {
            let length = syscall!(sys::READ, file, buffer.as_mut_ptr(), buffer.len());
            if length <= 0 {
                break;
            }
            shared = buffer[..length as usize].iter().find_map(|&byte| line.next(byte, address));
        }
        syscall!(sys::CLOSE, file);
        shared.unwrap_or(true)
    }
}

/// Reader of `START-END rwxp …` lines, a byte at a time.
struct MapsLine {
    field: u32,
    start: u64,
    end: u64,
    column: u32,
}

impl MapsLine {
    const fn new() -> Self {
        Self { field: 0, start: 0, end: 0, column: 0 }
    }
    /// Tells, at the fourth letter of the permissions, whether the mapping with `address` is shared.
    fn next(&mut self, byte: u8, address: u64) -> Option<bool> {
        let digit = || (byte as char).to_digit(16).unwrap_or(0) as u64;
        match (self.field, byte) {
            (_, b'\n') => *self = Self::new(),
            (0, b'-') => self.field = 1,
            (1, b' ') => self.field = 2,
            (0, _) => self.start = self.start << 4 | digit(),
            (1, _) => self.end = self.end << 4 | digit(),
            (2, _) => {
                self.column += 1;
                if self.column == 4 {
                    self.field = 3;
                    return (self.start..self.end).contains(&address).then_some(byte == b's');
                }
            }
            _ => {}
        }
        None
    }
}
