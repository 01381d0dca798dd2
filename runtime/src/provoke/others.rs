//! Whether any other thread can still arrive at a held access.
//!
//! The kernel is asked what each thread of the process does (`/proc/self/task/N/syscall`), so that it does not matter which
//! synchronisation put it to sleep, or whether that was seen. A thread that sleeps on a futex without a time limit cannot run
//! before another one wakes it. A thread that, for a while, has made no accesses but polls of the same few places without
//! changing anything waits for somebody as well: a spinning one.
//!
//! A wrong answer ends a hold too early or too late; it makes no catch.

use super::file;
use crate::serial::standstill;
use crate::system::sys::{self, syscall};
use crate::system::thread::{Thread, all};
use crate::system::tls;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::*};
use rashomon_abi::provoke::log;

/// A thread is taken to be waiting after so many polls, over at least that time, with nothing else in between.
const POLLS: u64 = 32;
const QUIET_NS: u64 = 4_000_000;
/// Places a waiting thread may poll.
const PLACES: usize = 8;

/// What a thread has done since somebody was held. Written by the thread, but for the last four.
pub struct Polls {
    hold: AtomicU32,
    known: AtomicU32,
    places: [AtomicU64; PLACES],
    /// Counts what was no poll, and polls; the former when the hold began.
    changes: AtomicU64,
    begun: AtomicU64,
    polls: AtomicU64,
    /// The holder's: `changes` and `polls` when they were last seen to change, and the time then.
    seen_changes: AtomicU64,
    seen_polls: AtomicU64,
    seen_at: AtomicU64,
    /// The last hold in which the thread was seen awake.
    awake: AtomicU32,
}

impl Polls {
    fn begin(&self, hold: u32) {
        if self.hold.load(Relaxed) != hold {
            self.known.store(0, Relaxed);
            self.polls.store(0, Relaxed);
            self.begun.store(self.changes.fetch_add(1, Relaxed) + 1, Relaxed);
            self.hold.store(hold, Release);
        }
    }

    /// An access in the given hold. `changes`: it is more than a poll.
    pub fn access(&self, hold: u32, site: u64, address: u64, changes: bool) {
        self.begin(hold);
        let place = site.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ address;
        let known = self.known.load(Relaxed) as usize;
        if changes || !self.places[..known.min(PLACES)].iter().any(|old| old.load(Relaxed) == place) {
            self.changes.fetch_add(1, Relaxed);
            if !changes {
                self.places[known % PLACES].store(place, Relaxed);
                self.known.store((known as u32 + 1).min(PLACES as u32 * 2), Relaxed);
            }
            return;
        }
        self.polls.fetch_add(1, Relaxed);
    }

    /// Whether the thread did more in that hold than to poll a few places.
    fn ran(&self, hold: u32) -> bool {
        if self.hold.load(Acquire) != hold {
            return self.awake.load(Relaxed) == hold;
        }
        let known = self.known.load(Relaxed) as u64;
        let only_polled = known <= PLACES as u64
            && self.changes.load(Relaxed).wrapping_sub(self.begun.load(Relaxed)) == known
            && self.polls.load(Relaxed) >= POLLS;
        !only_polled
    }

    /// Whether the thread has only polled for long enough.
    fn waits(&self, hold: u32, now: u64) -> bool {
        if self.hold.load(Acquire) != hold {
            return false;
        }
        let (changes, polls) = (self.changes.load(Relaxed), self.polls.load(Relaxed));
        if self.seen_changes.swap(changes, Relaxed) != changes {
            self.seen_polls.store(polls, Relaxed);
            self.seen_at.store(now, Relaxed);
            return false;
        }
        polls.saturating_sub(self.seen_polls.load(Relaxed)) >= POLLS && now.saturating_sub(self.seen_at.load(Relaxed)) >= QUIET_NS
    }
}

/// How many of the threads but the calling one run, pause, and wait by polling.
#[derive(Clone, Copy, Default)]
pub struct Census {
    pub run: u32,
    pub pause: u32,
    pub poll: u32,
    /// Those of them that the kernel has on a processor, or in the queue for one.
    pub busy: u32,
}

/// How long the others have had to arrive. Time in which any of them wants a processor counts as far as they got one, divided
/// among those that want one, so that a machine that does other things as well shortens no wait; other time (they sleep, or the
/// kernel works for them) counts as it passes.
pub struct Progress {
    seen_at: u64,
    seen_processor: u64,
    spent: u64,
}

impl Progress {
    pub fn new(now: u64) -> Self {
        Self { seen_at: now, seen_processor: processor_time(), spent: 0 }
    }

    /// Nanoseconds so far. `busy`: see [`Census`].
    pub fn at(&mut self, now: u64, busy: u32) -> u64 {
        let processor = processor_time();
        let passed = now.saturating_sub(self.seen_at);
        self.spent += match busy {
            0 => passed,
            _ => (processor.saturating_sub(self.seen_processor) / busy as u64).min(passed),
        };
        (self.seen_at, self.seen_processor) = (now, processor);
        self.spent
    }
}

/// Of all threads; who calls this sleeps nearly all of the time.
fn processor_time() -> u64 {
    const PROCESS: usize = 2;
    sys::clock(PROCESS)
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Others {
    /// Somebody can run.
    Alive,
    /// All sleep until they are woken, or are gone.
    Blocked,
    /// The same, but some are awake and only poll.
    Polling,
}

/// What a thread does by the kernel's account.
enum Does {
    Sleeps,
    /// Runs, or wants to.
    Busy,
    /// Is in the kernel, and will come back by itself.
    Runs,
    /// Sleeps for a while, or gave up the processor: a waiting thread's habit.
    Pauses,
    Gone,
}

/// What all threads but the calling one can do while it is held.
pub fn sample(hold: u32, now: u64) -> (Others, u32) {
    let census = census(hold, now);
    let others = match census {
        Census { run: 0, pause: 0, poll: 0, .. } => Others::Blocked,
        Census { run: 0, pause: 0, .. } => Others::Polling,
        _ => Others::Alive,
    };
    (others, census.busy)
}

/// Tells the host who else ran during a hold.
pub fn tell(hold: u32, descriptor: usize) {
    let threads = all();
    for thread in threads.filter(|thread| thread.provoked().polls.ran(hold)) {
        file::log(log::RAN, 0, descriptor, thread.number.get());
    }
}

pub fn census(hold: u32, now: u64) -> Census {
    let own = sys::thread_id();
    let mut census = Census::default();
    let mut buffer = [0u8; 4096];
    // SAFETY: a terminated path; our own buffer. O_DIRECTORY | O_CLOEXEC
    let folder = unsafe { syscall!(sys::OPENAT, -100isize, c"/proc/self/task".as_ptr(), 0o2200000, 0) };
    if folder < 0 {
        return Census { run: 1, busy: 1, ..census };
    }
    loop {
        const GETDENTS64: usize = 217;
        // SAFETY: as above.
        let length = unsafe { syscall!(GETDENTS64, folder, buffer.as_mut_ptr(), buffer.len()) };
        if length <= 0 {
            break;
        }
        let mut rest = &buffer[..length as usize];
        // `linux_dirent64`: eight bytes each of inode and offset, two of length, one of type, then the name.
        while rest.len() > 19 {
            let record = (rest[16] as usize | (rest[17] as usize) << 8).clamp(20, rest.len());
            let id = number(&rest[19..record]);
            rest = &rest[record..];
            let Some(id) = id.map(|id| id as u32).filter(|&id| id != own && !standstill::is_helper(id)) else { continue };
            let does = does(id);
            census.busy += matches!(does, Does::Busy) as u32;
            match does {
                Does::Sleeps | Does::Gone => continue,
                _ => {}
            }
            let polls = known(id).map(|thread| &thread.provoked().polls);
            if let Some(polls) = polls {
                polls.awake.store(hold, Relaxed);
            }
            match does {
                _ if polls.is_some_and(|polls| polls.waits(hold, now)) => census.poll += 1,
                Does::Pauses => census.pause += 1,
                _ => census.run += 1,
            }
        }
    }
    // SAFETY: our own descriptor.
    unsafe { syscall!(sys::CLOSE, folder) };
    census
}

fn known(id: u32) -> Option<&'static Thread> {
    debug_assert!(tls::current().is_some());
    all().find(|thread| thread.kernel_id.get() == id && thread.ended.load(Relaxed) == 0)
}

/// The decimal number a text begins with.
fn number(text: &[u8]) -> Option<u64> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit());
    let mut any = None;
    for digit in digits {
        any = Some(any.unwrap_or(0u64).wrapping_mul(10).wrapping_add((digit - b'0') as u64));
    }
    any
}

/// `0x` and hexadecimal digits.
fn hexadecimal(text: &[u8]) -> u64 {
    let digits = text.strip_prefix(b"0x").unwrap_or(text);
    digits.iter().fold(0, |value, digit| value << 4 | (*digit as char).to_digit(16).unwrap_or(0) as u64)
}

fn does(id: u32) -> Does {
    let mut path = [0u8; 64];
    let digits = sys::Decimal::new(id as u64);
    let parts = [b"/proc/self/task/".as_slice(), digits.bytes(), b"/syscall"];
    for (to, from) in path.iter_mut().zip(parts.into_iter().flatten()) {
        *to = *from;
    }
    let mut text = [0u8; 256];
    // SAFETY: a terminated path and a local buffer.
    let length = unsafe {
        let file = syscall!(sys::OPENAT, -100isize, path.as_ptr(), 0o2000000, 0);
        if file < 0 {
            return Does::Gone;
        }
        let length = syscall!(sys::READ, file, text.as_mut_ptr(), text.len());
        syscall!(sys::CLOSE, file);
        length
    };
    // It ended meanwhile (ESRCH), or the kernel does not tell.
    if length <= 0 {
        return if length == -3 { Does::Gone } else { Does::Runs };
    }
    let text = &text[..length as usize];
    if text.starts_with(b"-1 0x0 ") {
        return Does::Gone;
    }
    if text.starts_with(b"running") {
        return Does::Busy;
    }
    let argument = |index: usize| text.split(|&byte| byte == b' ').nth(index + 1).map_or(0, hexadecimal);
    const CLOCK_NANOSLEEP: u64 = 230;
    const FUTEX: u64 = sys::FUTEX as u64;
    const YIELD: u64 = sys::SCHED_YIELD as u64;
    const SLEEP: u64 = sys::NANOSLEEP as u64;
    match number(text) {
        Some(FUTEX) if waits_on_futex(argument(1)) => {
            if argument(3) == 0 {
                Does::Sleeps
            } else {
                Does::Pauses
            }
        }
        Some(YIELD | SLEEP | CLOCK_NANOSLEEP) => Does::Pauses,
        _ => Does::Runs,
    }
}

/// FUTEX_WAIT, LOCK_PI, WAIT_BITSET, WAIT_REQUEUE_PI, LOCK_PI2, flags apart.
fn waits_on_futex(operation: u64) -> bool {
    matches!(operation & 127, 0 | 6 | 9 | 11 | 13)
}
