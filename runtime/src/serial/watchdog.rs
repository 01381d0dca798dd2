//! A thread of the runtime's own that acts when nobody holds the turn: it waits for files, for time and for calls that come back,
//! and says so when nothing can happen any more. It also takes the turn from a thread that sleeps in a system call which the
//! runtime did not see (the program made it directly), so that the others are not held up for ever.

use crate::serial::clock::{self, NEVER};
use crate::serial::sched::{self, CURRENT, LOCK, PROGRESS, PollFile, WaitFor, Wake, live};
use crate::serial::{deadlock, elastic, linger, nudge, replay, standstill, world};
use crate::system::memory::{List, Spare};
use crate::system::sys::{self, syscall};
use crate::system::thread::{NO_THREAD, State, Thread, by_number, known};
use crate::system::{config, header, signals};
use core::sync::atomic::{AtomicI32, AtomicU32, Ordering::*};
use rashomon_abi::control;
use rashomon_abi::header::{divergence, field};

/// Memory for what the thread polls, mapped before it runs: when a thread comes to run is chance, and what it mapped then would
/// lie where the program has just unmapped something, in some executions.
static FILES: Spare<PollFile> = Spare::new();
static STARTED: AtomicU32 = AtomicU32::new(0);
static EVENT: AtomicI32 = AtomicI32::new(-1);
const TICK_MS: i32 = 20;
/// Ticks without an event after which a sleeping thread loses its turn.
const TIMEOUT_TICKS: u32 = 5;
/// Ticks without an event, nor an access, after which a thread that runs loses it.
const TIMEOUT_TICKS_OF_RUNNING: u32 = 50;
const TIMEOUT_TICKS_AT_END: u32 = 8;
/// With handlers installed a signal may still come: how long to wait before calling it stuck.
const SIGNAL_GRACE_NS: u64 = 2_000_000_000;
/// How long a thread is held while others wait for the world.
const HELD_FOR_NS: u64 = 50_000_000;

/// Nobody can run: the watchdog is to see whether that lasts.
pub fn kick() {
    let event = EVENT.load(Acquire);
    if event >= 0 {
        let one = 1u64;
        // SAFETY: eight bytes of a local.
        unsafe { syscall!(sys::WRITE, event, &raw const one, 8) };
    }
}

/// A forked child has none, and must not wake its parent's.
///
/// # Safety
/// In a child that has one thread.
pub unsafe fn forget() {
    let event = EVENT.swap(-1, AcqRel);
    if event >= 0 {
        // SAFETY: the child's own copy of our descriptor.
        unsafe { syscall!(sys::CLOSE, event) };
    }
    STARTED.store(0, Release);
}

pub fn is_started() -> bool {
    STARTED.load(Relaxed) != 0
}

/// Whether it is the descriptor by which the thread is woken.
pub fn is_own(descriptor: i32) -> bool {
    EVENT.load(Relaxed) == descriptor
}

/// A forked child that has its parent's threads needs this one as well, if there was one.
///
/// # Safety
/// In a child that has one thread.
pub unsafe fn forked() {
    if is_started() {
        // SAFETY: by the contract.
        unsafe { forget() };
        start();
    }
}

/// Starts the thread, once, before the program's first own thread, or before its only thread blocks.
pub fn start() {
    if !config::serial() || STARTED.load(Relaxed) != 0 || STARTED.swap(1, AcqRel) != 0 {
        return;
    }
    // SAFETY: plain system calls. The descriptor moves out of the way of the program's own (F_DUPFD_CLOEXEC).
    unsafe {
        let event = syscall!(sys::EVENTFD2, 0, 0o2004000);
        let high = syscall!(72usize, event, 1030, 512);
        let event = if high >= 0 {
            syscall!(sys::CLOSE, event);
            high
        } else {
            event
        };
        EVENT.store(event as i32, Release);
    }
    // SAFETY: the thread does not run yet, and nobody else starts it.
    unsafe { FILES.put(List::with_room_for(1)) };
    crate::system::real::create_unobserved(run);
}

extern "C" fn run(_argument: *mut u8) -> *mut u8 {
    let mut seen = 0;
    let mut still = 0;
    let mut left = 0;
    let mut idle_since = None;
    // SAFETY: for this thread alone.
    let mut files = unsafe { FILES.take() };
    loop {
        files.truncate(0);
        files.push(PollFile { file: EVENT.load(Relaxed), events: 1, returned: 0 });
        if idle_since.is_some() {
            LOCK.with(|| collect_files(&mut files));
        }
        // SAFETY: our own array.
        unsafe {
            let ready = syscall!(sys::POLL, files.as_mut_slice().as_mut_ptr(), files.len(), TICK_MS);
            if ready > 0 && files.as_slice()[0].returned != 0 {
                let mut count = 0u64;
                syscall!(sys::READ, files.as_slice()[0].file, &raw mut count, 8);
            }
        }
        LOCK.lock();
        if CURRENT.load(Acquire) == NO_THREAD {
            still = 0;
            let now = sys::clock(clock::MONOTONIC as usize);
            let since = *idle_since.get_or_insert(now);
            deadlock::inspect(true);
            idle(now - since);
            if CURRENT.load(Acquire) != NO_THREAD {
                idle_since = None;
            }
        } else {
            idle_since = None;
            deadlock::inspect(false);
            // Data from other processes, and what the program wrote unseen, announces itself to nobody.
            sched::files_moved();
            let progress = PROGRESS.load(Relaxed);
            let quantum = quantum_of_holder();
            still = if progress == seen && quantum == left { still + 1 } else { 0 };
            (seen, left) = (progress, quantum);
            if still >= TIMEOUT_TICKS && evict_sleeper(seen) {
                still = 0;
            }
            let timeout = if linger::on() { TIMEOUT_TICKS_AT_END } else { TIMEOUT_TICKS_OF_RUNNING };
            if still >= timeout {
                still = 0;
                nudge_runner();
            }
        }
        LOCK.unlock();
    }
}

/// The files that blocked threads wait for. Under the scheduler's lock.
fn collect_files(files: &mut List<PollFile>) {
    // SAFETY: under the lock; the arrays of blocked threads live in their stopped frames.
    unsafe {
        for &number in live().as_slice() {
            let thread = known(number);
            let wait = thread.serial().wait.get();
            if thread.state.get() == State::Blocked && wait.what == WaitFor::Files {
                for at in 0..wait.file_count {
                    files.push(PollFile { returned: 0, ..*wait.files.add(at) });
                }
            }
        }
    }
}

/// Asks the kernel about the files that blocked threads wait for. Under [`LOCK`].
pub fn poll_files(timeout_ms: i32) -> bool {
    let mut any = false;
    // SAFETY: under the lock; a blocked thread's array lives in its stopped frame.
    unsafe {
        for &number in live().as_slice() {
            let thread = known(number);
            let wait = thread.serial().wait.get();
            if thread.state.get() == State::Blocked && wait.what == WaitFor::Files {
                let ready = sys::call(sys::POLL, wait.files as usize, wait.file_count, timeout_ms as usize, 0, 0, 0);
                if ready > 0 {
                    sched::let_go(thread, Wake::Woken);
                    any = true;
                }
            }
        }
    }
    any
}

/// Nobody holds the turn. `idle`: real nanoseconds since that began. Under the scheduler's lock.
fn idle(idle: u64) {
    poll_files(0);
    sched::dispatch_idle();
    if CURRENT.load(Acquire) != NO_THREAD {
        return;
    }
    if elastic::holds_anybody() && idle >= HELD_FOR_NS && elastic::give_up_waiting() {
        sched::dispatch_idle();
        return;
    }
    let timeout = config::word(control::field::CALL_TIMEOUT_MS).saturating_mul(1_000_000).max(1_000_000);
    if let Some(thread) = replay::awaited() {
        let remaining = thread.serial().wait.get().deadline.saturating_sub(clock::elapsed());
        if thread.state.get() == State::Blocked && thread.serial().wait.get().deadline != NEVER && idle >= remaining.min(timeout)
        {
            clock::advance_to(thread.serial().wait.get().deadline);
            sched::let_go(thread, Wake::TimedOut);
            sched::dispatch_idle();
        } else if idle >= timeout {
            replay::diverged(divergence::TIMED_OUT, thread, None);
            sched::dispatch_idle();
        }
        return;
    }
    if linger::on() {
        if linger::has_waited(idle) {
            sched::dispatch_idle();
        }
        return;
    }
    let (mut waits_for_world, mut first, mut any) = (false, NEVER, false);
    // SAFETY: under the lock.
    for &number in unsafe { live() }.as_slice() {
        let thread = known(number);
        any = true;
        waits_for_world |= thread.state.get() == State::External || thread.serial().wait.get().what == WaitFor::Files;
        if thread.state.get() == State::Blocked {
            first = first.min(thread.serial().wait.get().deadline);
        }
    }
    let world_may_act = waits_for_world || world::may_act();
    if first != NEVER && (!world_may_act || idle >= first.saturating_sub(clock::elapsed())) {
        clock::advance_to(first);
        // SAFETY: as above.
        for &number in unsafe { live() }.as_slice() {
            let thread = known(number);
            if thread.state.get() == State::Blocked && thread.serial().wait.get().deadline <= first {
                sched::let_go(thread, Wake::TimedOut);
            }
        }
        sched::dispatch_idle();
    } else if any && !waits_for_world && first == NEVER && (!signals::handlers_installed() || idle >= SIGNAL_GRACE_NS) {
        // A signal is on its way.
        if !standstill::timer_armed() {
            deadlock::stuck();
        }
    }
}

/// Whether the kernel says that a thread sleeps.
pub fn sleeps(kernel_id: u32) -> bool {
    let mut path = [0u8; 64];
    let digits = sys::Decimal::new(kernel_id as u64);
    let parts = [b"/proc/self/task/".as_slice(), digits.bytes(), b"/stat"];
    for (to, from) in path.iter_mut().zip(parts.into_iter().flatten()) {
        *to = *from;
    }
    let mut text = [0u8; 256];
    // SAFETY: a terminated path and a local buffer.
    let length = unsafe {
        let fd = syscall!(sys::OPENAT, -100isize, path.as_ptr(), 0o2000000, 0);
        if fd < 0 {
            return false;
        }
        let length = syscall!(sys::READ, fd, text.as_mut_ptr(), text.len());
        syscall!(sys::CLOSE, fd);
        length.max(0) as usize
    };
    let state = text[..length].iter().rposition(|&byte| byte == b')').and_then(|at| text.get(at + 2));
    matches!(state, Some(b'S'))
}

/// What is left of the holder's quantum of accesses: changes as long as it makes any. Under the scheduler's lock.
fn quantum_of_holder() -> i64 {
    by_number(CURRENT.load(Acquire)).filter(|thread| thread.has_block()).map_or(0, |thread| thread.hot().quantum.get())
}

/// The holder of the turn runs without any event, while others could go on. Under the scheduler's lock.
fn nudge_runner() {
    let holder = by_number(CURRENT.load(Acquire));
    let waiting = |number: &u32| {
        let thread = known(*number);
        thread.state.get() == State::Runnable
            || thread.state.get() == State::Blocked && thread.serial().wait.get().deadline != NEVER
    };
    if let Some(thread) = holder
        && thread.state.get() == State::Running
        && thread.arrived.get()
        && thread.has_block()
        && thread.baton.load(Acquire) & sched::TURN_GIVEN == 0
        // SAFETY: under the lock.
        && unsafe { live() }.as_slice().iter().any(waiting)
    {
        nudge::send(thread);
    }
}

/// Takes the turn from its holder if that one sleeps in the kernel, has not begun, or has left without a word. Under the
/// scheduler's lock.
fn evict_sleeper(seen: u64) -> bool {
    let Some(thread) = by_number(CURRENT.load(Acquire)) else { return false };
    // SAFETY: by the contract.
    let others = unsafe { live() }.len() > 1;
    if thread.state.get() == State::Running && !thread.arrived.get() {
        if thread.made.load(Acquire) != 0 {
            // The kernel has not got round to it.
            return false;
        }
        // Its creator waits, without the turn, for a lock of the C library: whoever has that must go on.
        thread.baton.fetch_and(!sched::TURN_GIVEN, AcqRel);
        take_turn(thread);
        return true;
    }
    if thread.state.get() == State::Running && !sys::thread_exists(thread.kernel_id.get()) {
        sched::vanished(thread);
        sched::dispatch_idle();
        return true;
    }
    if !others
        || !thread.has_block()
        || thread.state.get() != State::Running
        || thread.baton.load(Acquire) & sched::TURN_GIVEN != 0
        || !sleeps(thread.kernel_id.get())
    {
        return false;
    }
    // Asleep because this very thread holds the lock it wants: not in the program's call.
    if PROGRESS.load(Relaxed) != seen {
        return false;
    }
    thread.force_slow_path();
    take_turn(thread);
    true
}

/// The thread goes on without the turn, and stands in line as soon as it can. Under the scheduler's lock.
pub fn take_turn(thread: &Thread) {
    thread.evicted.store(sched::EVICTED, Release);
    thread.evicted_turn.set(replay::turn_number());
    thread.state.set(State::External);
    header::word(field::FORCED_HANDOVERS).fetch_add(1, Relaxed);
    CURRENT.store(NO_THREAD, Release);
    sched::dispatch_idle();
}
