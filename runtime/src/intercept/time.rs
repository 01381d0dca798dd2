//! Clocks, sleeps, yields and random bytes.
//!
//! In serial mode clocks show virtual time, sleeps end when it gets there, and the random bytes are a function of the seed, the
//! thread's place in the tree of threads and how many the thread took before (SplitMix64 of them): the same seed gives the same
//! bytes whatever the schedule.
//!
//! Limits: the processor's random instructions (`rdrand`, which `std::random_device` uses), its own counter where
//! [`super::counter`] does not stand in for it, and what the kernel puts into the process at its start (`AT_RANDOM`), are as they
//! are.

use super::lock_common::nanoseconds;
use crate::detect;
use crate::record::external;
use crate::record::recorder;
use crate::serial::clock::{self, MONOTONIC, REALTIME};
use crate::serial::sched::{self, Wait, WaitFor, Wake};
use crate::system::config;
use crate::system::real::{real, set_errno};
use crate::system::sys::EINTR;
use crate::system::thread::{NO_THREAD, Runtime, Thread, known};
use crate::system::tls::caller;
use core::ffi::c_int;
use core::sync::atomic::Ordering::Relaxed;
use rashomon_abi::control::field;
use rashomon_abi::numbers::SplitMix;
use rashomon_abi::record::{Op, sync_source};

const TIMER_ABSTIME: c_int = 1;
const BILLION: u64 = 1_000_000_000;
/// While others could run time passes slowly for those who poll.
const LARGEST_SHIFT_AMONG_OTHERS: u32 = 4;

type Time = [i64; 2];

fn split(nanoseconds: u64) -> Time {
    [(nanoseconds / BILLION) as i64, (nanoseconds % BILLION) as i64]
}

/// What a clock shows the program in serial mode.
pub fn reading(runtime: &Runtime, clock: c_int) -> u64 {
    let thread = runtime.thread();
    let polls =
        if thread.clock_poll_ordinal.get() == thread.ordinal.get() { thread.clock_polls.get().saturating_add(1) } else { 0 };
    thread.clock_polls.set(polls);
    let polls = if sched::others_can_run() { polls.min(LARGEST_SHIFT_AMONG_OTHERS) } else { polls };
    // Now and then a thread that only polls lets the others run.
    sched::failed_try(runtime);
    thread.clock_poll_ordinal.set(thread.ordinal.get());
    clock::spend(thread);
    clock::read(clock, polls)
}

/// The runtime, where clocks are virtual.
fn virtual_time() -> Option<Runtime> {
    if config::serial() { Runtime::try_enter() } else { None }
}

/// Whether virtual time has this clock; others are the kernel's business.
fn is_virtual(clock: c_int) -> bool {
    matches!(clock, 0..=9 | 11)
}

pub unsafe extern "C" fn get_time(clock: c_int, time: *mut Time) -> c_int {
    if is_virtual(clock)
        && let Some(runtime) = virtual_time()
    {
        // SAFETY: the program's room for a time.
        unsafe { *time = split(reading(&runtime, clock)) };
        return 0;
    }
    // SAFETY: the same, of a clock that is not virtual.
    unsafe { real!(fn clock_gettime(c_int, *mut Time) -> c_int)(clock, time) }
}

pub unsafe extern "C" fn time_of_day(time: *mut Time, zone: *mut u8) -> c_int {
    // SAFETY: the program's rooms, or null.
    let Some(runtime) = virtual_time() else { return unsafe { real!(fn gettimeofday(*mut Time, *mut u8) -> c_int)(time, zone) } };
    if !zone.is_null() {
        // SAFETY: not null: two numbers.
        unsafe { (zone as *mut u64).write_unaligned(0) };
    }
    if !time.is_null() {
        let [seconds, nanoseconds] = split(reading(&runtime, REALTIME));
        // SAFETY: not null.
        unsafe { *time = [seconds, nanoseconds / 1000] };
    }
    0
}

pub unsafe extern "C" fn seconds(result: *mut i64) -> i64 {
    // SAFETY: the program's room for a number, or null.
    let Some(runtime) = virtual_time() else { return unsafe { real!(fn time(*mut i64) -> i64)(result) } };
    let now = split(reading(&runtime, REALTIME))[0];
    if !result.is_null() {
        // SAFETY: not null.
        unsafe { *result = now };
    }
    now
}

pub unsafe extern "C" fn spec_time(time: *mut Time, base: c_int) -> c_int {
    match virtual_time() {
        Some(runtime) if base == 1 => {
            // SAFETY: the program's room for a time.
            unsafe { *time = split(reading(&runtime, REALTIME)) };
            base
        }
        // SAFETY: the same; libc refuses other bases.
        _ => unsafe { real!(fn timespec_get(*mut Time, c_int) -> c_int)(time, base) },
    }
}

/// Processor time in microseconds: that of the virtual clock.
unsafe extern "C" fn processor_time() -> i64 {
    // SAFETY: no arguments.
    let Some(runtime) = virtual_time() else { return unsafe { real!(fn clock() -> i64)() } };
    (reading(&runtime, 2) / 1000) as i64
}

/// Sleeps. `asked`: for the record. Tells what is left when a handler ended it.
fn sleep_until(runtime: &Runtime, until: u64, asked: u64, site: u64) -> Result<(), u64> {
    sched::point(runtime, Op::Sleep, 0, site);
    recorder::sync(runtime.thread(), Op::Sleep, 0, 0, site, &[asked]);
    match sched::block(runtime, Wait::on(WaitFor::Time, 0).until(until).interruptible(), site) {
        Wake::Signal if clock::elapsed() < until => Err(until - clock::elapsed()),
        _ => Ok(()),
    }
}

/// Sleeps for a time in serial mode; in free mode, records that the real function is about to.
fn sleep_for(asked: u64, site: u64) -> Option<Result<(), u64>> {
    let runtime = Runtime::try_enter()?;
    if config::serial() {
        let result = sleep_until(&runtime, clock::elapsed().saturating_add(asked), asked, site);
        drop(runtime);
        test_cancellation();
        return Some(result);
    }
    recorder::sync(runtime.thread(), Op::Sleep, 0, 0, site, &[asked]);
    None
}

/// The real function, which sleeps.
fn asleep<R>(real: impl FnOnce() -> R) -> R {
    let result = real();
    if detect::on()
        && let Some(runtime) = Runtime::try_enter()
    {
        runtime.with_own(detect::local::wakes);
    }
    result
}

/// Sleeps are cancellation points.
fn test_cancellation() {
    // SAFETY: no arguments. Nothing of the runtime is held.
    unsafe { real!(fn pthread_testcancel() -> ())() }
}

/// 0 or the error, as `clock_nanosleep` has it.
///
/// # Safety
/// As clock_nanosleep(2).
unsafe fn rest(clock: c_int, flags: c_int, time: *const Time, left: *mut Time, site: u64) -> Option<c_int> {
    if time.is_null()
        || !is_virtual(clock)
        || clock == 3
        // SAFETY: not null: the program's own time.
        || unsafe { !(0..BILLION as i64).contains(&(*time)[1]) || (*time)[0] < 0 }
    {
        return None;
    }
    // SAFETY: as above.
    let nanoseconds = unsafe { nanoseconds(time) };
    let absolute = flags & TIMER_ABSTIME != 0;
    let result = if absolute && config::serial() {
        let runtime = Runtime::try_enter()?;
        let until = clock::deadline(clock, nanoseconds);
        let result = sleep_until(&runtime, until, until.saturating_sub(clock::elapsed()), site);
        drop(runtime);
        test_cancellation();
        result
    } else {
        sleep_for(nanoseconds, site)?
    };
    let Err(rest) = result else { return Some(0) };
    if !absolute && !left.is_null() {
        // SAFETY: not null: the program's room for what is left.
        unsafe { *left = split(rest) };
    }
    Some(EINTR as c_int)
}

pub unsafe extern "C" fn clock_sleep(clock: c_int, flags: c_int, time: *const Time, left: *mut Time) -> c_int {
    // SAFETY: the program's time, and room or null.
    match unsafe { rest(clock, flags, time, left, caller()) } {
        Some(result) => result,
        // SAFETY: the same arguments.
        None => asleep(|| unsafe {
            real!(fn clock_nanosleep(c_int, c_int, *const Time, *mut Time) -> c_int)(clock, flags, time, left)
        }),
    }
}

pub unsafe extern "C" fn nano_sleep(time: *const Time, left: *mut Time) -> c_int {
    // SAFETY: the program's time, and room or null.
    match unsafe { rest(MONOTONIC, 0, time, left, caller()) } {
        Some(0) => 0,
        Some(error) => {
            set_errno(error);
            -1
        }
        // SAFETY: the same arguments.
        None => asleep(|| unsafe { real!(fn nanosleep(*const Time, *mut Time) -> c_int)(time, left) }),
    }
}

unsafe extern "C" fn micro_sleep(microseconds: u32) -> c_int {
    match sleep_for(microseconds as u64 * 1000, caller()) {
        Some(Ok(())) => 0,
        Some(Err(_)) => {
            set_errno(EINTR as c_int);
            -1
        }
        // SAFETY: a number only.
        None => asleep(|| unsafe { real!(fn usleep(u32) -> c_int)(microseconds) }),
    }
}

unsafe extern "C" fn second_sleep(seconds: u32) -> u32 {
    match sleep_for(seconds as u64 * BILLION, caller()) {
        Some(Ok(())) => 0,
        Some(Err(left)) => left.div_ceil(BILLION) as u32,
        // SAFETY: a number only.
        None => asleep(|| unsafe { real!(fn sleep(u32) -> u32)(seconds) }),
    }
}

pub unsafe extern "C" fn thread_sleep(time: *const Time, left: *mut Time) -> c_int {
    // SAFETY: the program's time, and room or null.
    match unsafe { rest(REALTIME, 0, time, left, caller()) } {
        Some(0) => 0,
        Some(_) => -1,
        // SAFETY: the same arguments.
        None => asleep(|| unsafe { real!(fn thrd_sleep(*const Time, *mut Time) -> c_int)(time, left) }),
    }
}

/// Gives the turn up.
pub fn give_way(site: u64) -> bool {
    let Some(runtime) = Runtime::try_enter() else { return false };
    let thread = runtime.thread();
    let polls_on = thread.clock_poll_ordinal.get() == thread.ordinal.get();
    sched::point(&runtime, Op::Yield, 0, site);
    recorder::sync(thread, Op::Yield, 0, 0, site, &[]);
    if polls_on {
        thread.clock_poll_ordinal.set(thread.ordinal.get());
    }
    config::serial()
}

unsafe extern "C" fn yield_turn() -> c_int {
    if !give_way(caller()) {
        // SAFETY: no arguments.
        unsafe { real!(fn sched_yield() -> c_int)() };
    }
    0
}

/// The hash of a thread's path of spawn ordinals.
fn path_hash(thread: &Thread) -> u64 {
    let (mut hash, mut number) =
        (crate::system::header::word(rashomon_abi::header::field::FORKED_AT).load(Relaxed), thread.number.get());
    while number != NO_THREAD {
        let thread = known(number);
        hash = SplitMix::mixed(hash ^ (thread.spawn_ordinal.get() as u64 + 1));
        number = thread.parent.get();
    }
    hash
}

fn random_word(thread: &Thread) -> u64 {
    thread.random_words.set(thread.random_words.get() + 1);
    let seed = config::word(field::SEED).wrapping_add(path_hash(thread));
    SplitMix::mixed(SplitMix::nth(seed, thread.random_words.get()))
}

/// Fills a buffer of the program in serial mode. False: the real function has to.
///
/// # Safety
/// As getrandom(2).
pub unsafe fn fill_random(buffer: *mut u8, bytes: usize) -> bool {
    let Some(runtime) = virtual_time() else { return false };
    let mut word = 0;
    for at in 0..bytes {
        if at % 8 == 0 {
            word = random_word(runtime.thread());
        }
        // SAFETY: by the contract.
        unsafe { *buffer.add(at) = word as u8 };
        word >>= 8;
    }
    true
}

pub unsafe extern "C" fn random_bytes(buffer: *mut u8, bytes: usize, flags: u32) -> isize {
    // SAFETY: the program's room for so many bytes.
    if bytes < 1 << 30 && unsafe { fill_random(buffer, bytes) } {
        return bytes as isize;
    }
    // SAFETY: the same room.
    unsafe { real!(fn getrandom(*mut u8, usize, u32) -> isize)(buffer, bytes, flags) }
}

pub unsafe extern "C" fn entropy(buffer: *mut u8, bytes: usize) -> c_int {
    // SAFETY: the program's room for so many bytes.
    if bytes <= 256 && unsafe { fill_random(buffer, bytes) } {
        return 0;
    }
    // SAFETY: the same room.
    unsafe { real!(fn getentropy(*mut u8, usize) -> c_int)(buffer, bytes) }
}

unsafe extern "C" fn random_number() -> u32 {
    match virtual_time() {
        Some(runtime) => random_word(runtime.thread()) as u32,
        // SAFETY: no arguments.
        None => unsafe { real!(fn arc4random() -> u32)() },
    }
}

pub unsafe extern "C" fn random_buffer(buffer: *mut u8, bytes: usize) {
    // SAFETY: the program's room for so many bytes.
    if !unsafe { fill_random(buffer, bytes) } {
        // SAFETY: the same room.
        unsafe { real!(fn arc4random_buf(*mut u8, usize) -> ())(buffer, bytes) }
    }
}

unsafe extern "C" fn random_below(limit: u32) -> u32 {
    match virtual_time() {
        Some(_) if limit < 2 => 0,
        Some(runtime) => (((random_word(runtime.thread()) >> 32) * limit as u64) >> 32) as u32,
        // SAFETY: a number only.
        None => unsafe { real!(fn arc4random_uniform(u32) -> u32)(limit) },
    }
}

/// On which processor a thread runs is up to the kernel. libc reads it from memory: without this, to wait for another one would
/// look like a loop that nothing can end ([`crate::serial::endless`]).
unsafe extern "C" fn processor() -> c_int {
    // SAFETY: no arguments.
    unsafe { real!(fn sched_getcpu() -> c_int)() }
}

/// When a timer's file becomes ready is up to the kernel's clock, not to ours: from here on a re-execution may differ.
pub unsafe extern "C" fn set_timer_file(file: c_int, flags: c_int, new: *const [i64; 4], old: *mut [i64; 4]) -> c_int {
    if let Some(runtime) = Runtime::try_enter() {
        external::came_in(runtime.thread(), 0, sync_source::FILE, caller(), Some(file));
    }
    // SAFETY: the program's times; null where it wants no old one.
    unsafe { real!(fn timerfd_settime(c_int, c_int, *const [i64; 4], *mut [i64; 4]) -> c_int)(file, flags, new, old) }
}

interpose! {
    clock => processor_time;
    sched_getcpu => processor;
    arc4random => random_number;
    arc4random_uniform => random_below;
}

interpose_in! { "rashomon_polls";
    usleep => micro_sleep;
    sleep => second_sleep;
    sched_yield => yield_turn;
    pthread_yield => yield_turn;
    thrd_yield => yield_turn;
}
