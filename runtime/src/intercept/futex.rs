//! `syscall()`: futexes, which language runtimes use by number, and other calls that may block.
//!
//! In serial mode waiting on a private futex is modelled with virtual deadlines; wakes are releases of the futex's address that
//! woken waiters acquire (`Release`, `Acquire`), and whatever came of another wait is a `Blocking` event; a thread that begins to
//! wait makes one as well. Priority-inheritance futexes, and futexes in memory that other processes share, wait in the kernel
//! with the turn given up.
//!
//! Limit: reads and writes made by number order nothing in the recording; those of the library functions do.

use super::lock_common::{is_time, nanoseconds};
use super::process::fork_bare;
use super::processors;
use super::queue::{self, Outcome};
use super::time::{clock_sleep, fill_random, get_time, give_way, nano_sleep, seconds, time_of_day};
use crate::detect;
use crate::record::recorder;
use crate::report;
use crate::serial::clock::{self, MONOTONIC, NEVER, REALTIME};
use crate::serial::sched::{self, Wait, WaitFor};
use crate::serial::shutdown;
use crate::serial::{blocked, linger, standstill};
use crate::system::real::{errno, real, set_errno};
use crate::system::sys::{self, EINTR, ETIMEDOUT, syscall};
use crate::system::thread::Runtime;
use crate::system::tls::caller;
use crate::system::{config, mappings};
use core::ffi::c_int;
use core::sync::atomic::{AtomicU32, Ordering::*};
use rashomon_abi::record::{Op, exit_stage, sync_source};

const EAGAIN: c_int = 11;
const EINVAL: c_int = 22;

mod number {
    pub const GETTIMEOFDAY: isize = 96;
    pub const TIME: isize = 201;
    pub const FUTEX: isize = 202;
    pub const SCHED_YIELD: isize = 24;
    pub const NANOSLEEP: isize = 35;
    pub const CLOCK_GETTIME: isize = 228;
    pub const CLOCK_NANOSLEEP: isize = 230;
    pub const EXIT_GROUP: isize = 231;
    pub const GETRANDOM: isize = 318;
    pub const SCHED_SETAFFINITY: isize = 203;
    pub const SCHED_GETAFFINITY: isize = 204;
    pub const CLONE: isize = 56;
    pub const FORK: isize = 57;
    pub const VFORK: isize = 58;
    pub const CLONE3: isize = 435;
}

/// Of `clone`: the child shares the memory, and is no process of its own.
const CLONE_VM: usize = 0x100;

mod operation {
    use core::ffi::c_int;

    pub const WAIT: c_int = 0;
    pub const WAKE: c_int = 1;
    pub const REQUEUE: c_int = 3;
    pub const CMP_REQUEUE: c_int = 4;
    pub const WAKE_OP: c_int = 5;
    pub const WAIT_BITSET: c_int = 9;
    pub const WAKE_BITSET: c_int = 10;
    pub const PRIVATE: c_int = 128;
    pub const CLOCK_REALTIME: c_int = 256;
}

/// Calls that may sleep in the kernel for ever: read, write, poll, readv, writev, select, pause, sendfile, connect, accept,
/// sendto, recvfrom, sendmsg, recvmsg, wait4, msgsnd, msgrcv, semop, fcntl, flock, rt_sigtimedwait, rt_sigsuspend, semtimedop,
/// epoll_wait, mq_timedsend, mq_timedreceive, waitid, pselect6, ppoll, splice, epoll_pwait, accept4, recvmmsg, sendmmsg,
/// epoll_pwait2.
const fn may_block(number: isize) -> bool {
    matches!(
        number,
        0 | 1 | 7 | 19 | 20 | 23 | 34 | 40 | 42
            ..=47
                | 61
                | 65
                | 69
                | 70
                | 72
                | 73
                | 128
                | 130
                | 220
                | 232
                | 242
                | 243
                | 247
                | 270
                | 271
                | 275
                | 281
                | 288
                | 299
                | 307
                | 441
    )
}

type Arguments = [usize; 6];

/// # Safety
/// As the system call.
unsafe fn real_call(number: isize, [a, b, c, d, e, f]: Arguments) -> isize {
    // SAFETY: by the contract.
    unsafe { real!(fn syscall(isize, usize, usize, usize, usize, usize, usize) -> isize)(number, a, b, c, d, e, f) }
}

fn result(outcome: Result<isize, c_int>) -> isize {
    outcome.unwrap_or_else(|error| {
        set_errno(error);
        -1
    })
}

unsafe extern "C" fn system_call(number: isize, a: usize, b: usize, c: usize, d: usize, e: usize, f: usize) -> isize {
    let site = caller();
    let arguments = [a, b, c, d, e, f];
    // SAFETY: the program's own arguments, as the call has them.
    unsafe {
        match number {
            number::FUTEX => futex(arguments, site),
            number::SCHED_YIELD if give_way(site) => 0,
            number::NANOSLEEP => nano_sleep(a as *const [i64; 2], b as *mut [i64; 2]) as isize,
            number::CLOCK_NANOSLEEP => match clock_sleep(a as c_int, b as c_int, c as *const [i64; 2], d as *mut [i64; 2]) {
                0 => 0,
                error => result(Err(error)),
            },
            number::CLOCK_GETTIME => get_time(a as c_int, b as *mut [i64; 2]) as isize,
            number::GETTIMEOFDAY => time_of_day(a as *mut [i64; 2], b as *mut u8) as isize,
            number::TIME => seconds(a as *mut i64) as isize,
            number::GETRANDOM if b < 1 << 30 && fill_random(a as *mut u8, b) => b as isize,
            number::FORK | number::VFORK => fork_bare(|| real_call(number::FORK, [0; 6]) as c_int) as isize,
            number::CLONE if a & CLONE_VM == 0 => fork_bare(|| real_call(number, arguments) as c_int) as isize,
            number::CLONE3 if *(a as *const usize) & CLONE_VM == 0 => {
                fork_bare(|| real_call(number, arguments) as c_int) as isize
            }
            number::SCHED_SETAFFINITY | number::SCHED_GETAFFINITY => {
                let result = real_call(number, arguments);
                match number {
                    number::SCHED_GETAFFINITY if result > 0 => processors::told(a as c_int, result as usize, c as *mut u8),
                    number::SCHED_SETAFFINITY if result == 0 => processors::was_placed(a as c_int, b, c as *const u8),
                    _ => {}
                }
                result
            }
            number if may_block(number) => blocking(number, arguments, site),
            number::EXIT_GROUP => {
                if let Some(runtime) = Runtime::try_enter() {
                    if detect::on() {
                        report::conclude(blocked::last_checks);
                    }
                    linger::before_end(&runtime, exit_stage::HANDLED, site);
                    shutdown::complete();
                }
                real_call(number, arguments)
            }
            _ => real_call(number, arguments),
        }
    }
}

/// Gives the turn up for a call that may block.
///
/// # Safety
/// As the system call.
unsafe fn blocking(number: isize, arguments: Arguments, site: u64) -> isize {
    // SAFETY: by the contract.
    let real = || unsafe { real_call(number, arguments) };
    let Some(runtime) = Runtime::try_enter() else { return real() };
    sched::point(&runtime, Op::Blocking, 0, site);
    let result = sched::external(&runtime, real);
    let saved = errno();
    sched::files_moved();
    recorder::sync(runtime.thread(), Op::Blocking, 0, sync_source::OTHER, site, &[result as u64]);
    set_errno(saved);
    result
}

/// # Safety
/// As futex(2).
unsafe fn futex(arguments: Arguments, site: u64) -> isize {
    let [address, operation, value, time, second, mask] = arguments;
    let (word, second, operation) = (address as *mut AtomicU32, second as *mut AtomicU32, operation as c_int);
    let command = operation & !(operation::PRIVATE | operation::CLOCK_REALTIME);
    // SAFETY: by the contract.
    let real = || unsafe { real_call(number::FUTEX, arguments) };
    let waits = matches!(command, operation::WAIT | operation::WAIT_BITSET);
    let wakes = matches!(
        command,
        operation::WAKE | operation::WAKE_BITSET | operation::REQUEUE | operation::CMP_REQUEUE | operation::WAKE_OP
    );
    let Some(runtime) = Runtime::try_enter() else { return real() };
    let modelled =
        config::serial() && (waits || wakes) && (operation & operation::PRIVATE != 0 || !mappings::is_shared(address as u64));
    if wakes {
        sched::point(&runtime, Op::Release, address as u64, site);
        let sequence = recorder::sync(runtime.thread(), Op::Release, address as u64, sync_source::FUTEX, site, &[]);
        if !modelled {
            return real();
        }
        let (value, mask) = (value as u32, mask as u32);
        let wake = |object: *mut AtomicU32, count: u32, mask: u32| wake_waiters(object, count, mask, 0, sequence);
        // SAFETY: the program's own words.
        return result(unsafe {
            match command {
                operation::WAKE => Ok(match wake(word, value, u32::MAX) {
                    // Threads that the runtime does not know wait in the kernel.
                    woken if (woken as u32) < value => woken + real().max(0),
                    woken => woken,
                }),
                operation::WAKE_BITSET if mask == 0 => Err(EINVAL),
                operation::WAKE_BITSET => Ok(wake(word, value, mask)),
                operation::CMP_REQUEUE if (*word).load(SeqCst) != mask => Err(EAGAIN),
                operation::WAKE_OP => Ok(wake_by_comparison(second, mask, |compared| {
                    wake(word, value, u32::MAX) + if compared { wake(second, time as u32, u32::MAX) } else { 0 }
                })),
                _ => Ok(wake(word, value, u32::MAX) + wake_waiters(word, time as u32, u32::MAX, second as u64, sequence)),
            }
        });
    }
    sched::point(&runtime, Op::Blocking, address as u64, site);
    let time = time as *const [i64; 2];
    // SAFETY: the program's own time, if it gives one.
    let outcome = if modelled && unsafe { time.is_null() || is_time(time) && (*time)[0] >= 0 } {
        // SAFETY: the program's own word and time.
        unsafe {
            wait(
                &runtime,
                word,
                value as u32,
                deadline(command, operation, time),
                if command == operation::WAIT { u32::MAX } else { mask as u32 },
                site,
            )
        }
    } else {
        let for_ever = waits && time.is_null() && operation & operation::PRIVATE != 0;
        let result = if for_ever {
            standstill::during(&runtime, standstill::For::on(Op::Acquire, address as u64, site), real)
        } else {
            sched::external(&runtime, real)
        };
        if result == -1 { Err(errno()) } else { Ok(result) }
    };
    let woken = waits && outcome == Ok(0);
    let shown = outcome.unwrap_or_else(|error| -error as isize) as u64;
    let arguments = [shown];
    let (op, arguments) = if woken { (Op::Acquire, &arguments[..0]) } else { (Op::Blocking, &arguments[..]) };
    recorder::sync(runtime.thread(), op, address as u64, sync_source::FUTEX, site, arguments);
    result(outcome)
}

/// # Safety
/// `time` is null or points to a timespec.
unsafe fn deadline(command: c_int, operation: c_int, time: *const [i64; 2]) -> u64 {
    if time.is_null() {
        return NEVER;
    }
    // SAFETY: by the contract.
    let time = unsafe { nanoseconds(time) };
    let clock = if operation & operation::CLOCK_REALTIME != 0 { REALTIME } else { MONOTONIC };
    if command == operation::WAIT { clock::elapsed().saturating_add(time) } else { clock::deadline(clock, time) }
}

/// What the kernel says of a wait whose time is up, if it is not that it would wait: the word may have another value, or be none.
fn at_once(word: *mut AtomicU32, expected: u32) -> Option<Result<isize, c_int>> {
    let time = [0u64; 2];
    loop {
        // SAFETY: the kernel reads the word, if there is one, and a local `timespec`.
        let result = unsafe { syscall!(sys::FUTEX, word, operation::WAIT | operation::PRIVATE, expected, time.as_ptr()) };
        match -result as c_int {
            ETIMEDOUT => return None,
            error if error == EINTR as c_int => {}
            0 => return Some(Ok(0)),
            error => return Some(Err(error)),
        }
    }
}

/// # Safety
/// `word` is a word of the program.
unsafe fn wait(runtime: &Runtime, word: *mut AtomicU32, expected: u32, until: u64, mask: u32, site: u64) -> Result<isize, c_int> {
    if mask == 0 {
        return Err(EINVAL);
    }
    match at_once(word, expected) {
        None => {}
        Some(Err(error)) => {
            sched::failed_try(runtime);
            return Err(error);
        }
        Some(woken) => return woken,
    }
    let thread = runtime.thread();
    thread.futex_mask.set(mask);
    queue::join(thread, word as u64);
    // From here on it waits, whoever runs in between: its own event, so that a schedule can hold the thread behind it.
    recorder::sync(thread, Op::Blocking, word as u64, sync_source::FUTEX, site, &[0]);
    sched::position(runtime, Op::Acquire, word as u64, site);
    match queue::stand(runtime, Wait::on(WaitFor::Futex, word as u64).until(until).interruptible(), site) {
        Outcome::LetOut => Ok(0),
        Outcome::TimedOut => Err(ETIMEDOUT),
        Outcome::Interrupted | Outcome::Cancelled => Err(EINTR as c_int),
    }
}

fn wake_waiters(word: *mut AtomicU32, count: u32, mask: u32, move_to: u64, sequence: u64) -> isize {
    let count = (count as i32).max(0) as usize;
    queue::serve(WaitFor::Futex, word as u64, count, move_to, sequence, |thread| thread.futex_mask.get() & mask != 0) as isize
}

/// `FUTEX_WAKE_OP`: changes the second word and tells whether its old value compares as the encoded operation asks.
///
/// # Safety
/// `word` is a word of the program.
unsafe fn wake_by_comparison(word: *mut AtomicU32, encoded: u32, wake: impl FnOnce(bool) -> isize) -> isize {
    let extend = |field: u32| ((field << 20) as i32 >> 20) as u32;
    let (operand, compared_with) = (extend(encoded >> 12 & 0xfff), extend(encoded & 0xfff));
    let operand = if encoded >> 31 != 0 { 1u32.wrapping_shl(operand) } else { operand };
    // SAFETY: by the contract.
    let word = unsafe { &*word };
    let old = match encoded >> 28 & 7 {
        0 => word.swap(operand, SeqCst),
        1 => word.fetch_add(operand, SeqCst),
        2 => word.fetch_or(operand, SeqCst),
        3 => word.fetch_and(!operand, SeqCst),
        _ => word.fetch_xor(operand, SeqCst),
    };
    let (old, compared_with) = (old as i32, compared_with as i32);
    wake(match encoded >> 24 & 15 {
        0 => old == compared_with,
        1 => old != compared_with,
        2 => old < compared_with,
        3 => old <= compared_with,
        4 => old > compared_with,
        _ => old >= compared_with,
    })
}

interpose! {
    syscall => system_call;
}
