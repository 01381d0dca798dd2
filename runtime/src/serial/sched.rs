//! The policy gate of serial runs: one thread holds the *turn* and runs; the others stand in the runtime.
//!
//! The turn changes hands only at events: at a synchronisation event that is about to happen ([`point`]), at an access when the
//! quantum is used up or a schedule says so ([`at_access`]), and where a thread blocks ([`block`]). Every hand-over goes through
//! [`dispatch`] under one lock. When nobody can run, the watchdog thread waits for files, time or calls that come back, and says
//! so if nothing can ever happen again.
//!
//! A thread that gives its turn up for a call into the kernel ([`external`]) is waited for until it sleeps there or is back. So
//! where it stands when others act on it, by signals, cancellation or the other end of what it waits for, is decided by the
//! policy, or by a schedule, and not by the kernel's scheduler. When it comes back is the kernel's affair; the turns tell.

use crate::record::recorder;
use crate::serial::clock::{self, NEVER};
use crate::serial::policy::{self, Occasion};
use crate::serial::{cancellation, deadlock, elastic, endless, explore, linger, replay, snapshot, standstill, watchdog, world};
use crate::system::lock::RawLock;
use crate::system::memory::List;
use crate::system::thread::{NO_THREAD, Runtime, State, Thread, by_number};
use crate::system::{config, header, signals, sys};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::*};
use rashomon_abi::control;
use rashomon_abi::header::field;
use rashomon_abi::record::{Op, access_of_kind};

pub use crate::serial::patience::{patiently, settles, stands_in_line};
pub use crate::serial::wait::{PollFile, Wait, WaitFor, Wake};
pub static LOCK: RawLock = RawLock::new();
/// Who holds the turn.
pub static CURRENT: AtomicU32 = AtomicU32::new(NO_THREAD);
/// Who held it last.
static LAST: AtomicU32 = AtomicU32::new(0);
/// Counts events: the watchdog's sign of life.
pub static PROGRESS: AtomicU64 = AtomicU64::new(0);
/// Something was written to a file since waiting files were last asked.
static FILES_MOVED: AtomicU32 = AtomicU32::new(0);
static mut LIVE: List<u32> = List::new();

/// Looks without effect after which a thread is taken to be waiting for somebody.
const SPIN_LIMIT: u32 = 16;
/// Synchronisation events after which a thread has to offer its turn: some threads wait by changing things.
const POINT_QUANTUM: u32 = 10_000;
const QUANTUM_TIME: u64 = 100_000;
/// Times that every runnable thread gives its turn up before time jumps.
const YIELDS_TO_PASS_TIME: u32 = 4;
/// How often turns were given up by looking since anything else happened.
static YIELDS: AtomicU32 = AtomicU32::new(0);

/// The live threads, oldest first.
///
/// # Safety
/// Under [`LOCK`].
#[expect(static_mut_refs, reason = "guarded by LOCK")]
pub unsafe fn live() -> &'static mut List<u32> {
    // SAFETY: by the contract.
    unsafe { &mut LIVE }
}

/// Accesses a thread may make before it has to look up.
pub fn quantum(thread: &mut Thread) -> i64 {
    const UNBOUNDED: i64 = i64::MAX / 2;
    if thread.evicted.load(Relaxed) != 0 || thread.pending_signals.load(Relaxed) != 0 {
        return 0;
    }
    if !config::serial() {
        return if config::provoking() { 0 } else { UNBOUNDED };
    }
    if let Some(quantum) = replay::quantum(thread) {
        return quantum;
    }
    if explore::exploring() {
        return if explore::watches_accesses() { 0 } else { explore::ACCESSES_WITHOUT_STEP };
    }
    match config::word(control::field::QUANTUM) {
        0 => UNBOUNDED,
        quantum => quantum.min(UNBOUNDED as u64) as i64,
    }
}

/// The initial thread takes the turn.
pub fn begin(thread: &mut Thread) {
    standstill::begins();
    LOCK.with(|| {
        // SAFETY: under the lock.
        unsafe { live().push(thread.number) };
        thread.state = State::Running;
        thread.arrived = true;
        CURRENT.store(thread.number, Release);
        LAST.store(thread.number, Relaxed);
    });
}

/// A forked child has this thread only.
///
/// # Safety
/// In such a child, by that thread.
pub unsafe fn only(thread: &mut Thread) {
    LOCK.unlock();
    // SAFETY: nobody else is there. The list may have been in the middle of a change.
    unsafe { (&raw mut LIVE).write(List::new()) };
    linger::forget(thread);
    EXITING.store(0, Relaxed);
    LEAVING.store(0, Relaxed);
    YIELDS.store(0, Relaxed);
    FILES_MOVED.store(0, Relaxed);
    begin(thread);
    // SAFETY: by the contract.
    unsafe { standstill::restart(thread) };
}

/// A thread was created: it can run from now on.
pub fn created(thread: &mut Thread) {
    // SAFETY: under the lock.
    LOCK.with(|| unsafe { live().push(thread.number) });
    standstill::begins();
    endless::moves();
    if explore::on() {
        explore::created(thread);
    }
}

/// A created thread that never came to be.
pub fn forget(thread: &mut Thread) {
    standstill::ends(thread);
    LOCK.with(|| {
        remove_live(thread);
        if CURRENT.load(Relaxed) == thread.number {
            CURRENT.store(NO_THREAD, Release);
            dispatch(false);
        }
    });
}

fn remove_live(thread: &mut Thread) {
    thread.state = State::Ended;
    // SAFETY: callers hold the lock.
    let live = unsafe { live() };
    if let Some(at) = live.as_slice().iter().position(|&number| number == thread.number) {
        live.remove(at);
    }
}

pub fn live_count() -> usize {
    // SAFETY: under the lock.
    LOCK.with(|| unsafe { live().len() })
}

/// A new thread's first steps: waits until it is given the turn.
pub fn arrive(thread: &mut Thread) {
    if config::serial() {
        LOCK.with(|| {
            thread.arrived = true;
            if thread.evicted.swap(0, AcqRel) != 0 {
                make_runnable(thread, thread.wake);
                if CURRENT.load(Relaxed) == NO_THREAD {
                    dispatch(false);
                }
            }
        });
        wait_for_turn(thread);
        LAST.store(thread.number, Relaxed);
    }
}

/// Bits of a thread's baton: the turn is given to it; a signal arrived while it waited.
pub const TURN_GIVEN: u32 = 1;
pub const SIGNAL_ARRIVED: u32 = 2;
/// All stand, for a snapshot.
pub const STAND: u32 = 4;

/// Stands still until the turn is given to this thread.
fn wait_for_turn(thread: &mut Thread) {
    loop {
        let given = thread.baton.swap(0, Acquire);
        if given & STAND != 0 {
            snapshot::stand(thread);
        }
        if given & SIGNAL_ARRIVED != 0 && thread.pending_signals.load(Relaxed) != 0 {
            LOCK.with(|| {
                if thread.state == State::Blocked {
                    make_runnable(thread, Wake::Signal);
                    if CURRENT.load(Relaxed) == NO_THREAD {
                        dispatch(false);
                    }
                }
            });
        }
        if given & TURN_GIVEN != 0 {
            break;
        }
        if given == 0 {
            sys::futex_wait(&thread.baton, 0);
        }
    }
    debug_assert!(CURRENT.load(Relaxed) == thread.number);
    await_exit();
    await_leaving(thread);
    endless::is_called(thread);
}

/// Waits until all threads that were created have begun and wait for their turns. Under [`LOCK`], with no holder of the turn,
/// which is this thread meanwhile.
pub fn await_arrivals(caller: &Thread) {
    // SAFETY: under the lock; who holds the turn keeps others from being created. Registered threads are never unmapped.
    let all_arrived = || unsafe { live() }.as_slice().iter().all(|&number| unsafe { (*by_number(number)).arrived });
    if !all_arrived() {
        CURRENT.store(caller.number, Release);
        LOCK.unlock();
        patiently(|| LOCK.with(all_arrived));
        LOCK.lock();
        CURRENT.store(NO_THREAD, Release);
    }
}

/// Kernel id of the thread that gave the turn away for good, until it is gone.
static EXITING: AtomicU32 = AtomicU32::new(0);

/// What libc does when a thread ends, such as giving its cached blocks back to the heap, belongs to that thread's turn.
fn await_exit() {
    let id = EXITING.swap(0, AcqRel);
    if id != 0 {
        patiently(|| !sys::thread_exists(id));
    }
}

/// Number + 1 of the thread that left for the kernel last, until it waits there or is back.
static LEAVING: AtomicU32 = AtomicU32::new(0);

/// What a thread does in a call into the kernel before it waits there belongs to its turn: who opened the pipe first, who stands
/// where in the queue for a file's lock, and whether cancellation or a signal finds it inside.
fn await_leaving(thread: &Thread) {
    let number = LEAVING.swap(0, AcqRel);
    if number != 0 && number - 1 != thread.number {
        // SAFETY: registered threads are never unmapped.
        settles(unsafe { &*by_number(number - 1) });
    }
}

/// Gives the turn away and comes back when it is given again. Under [`LOCK`], which is released.
pub fn pass_on(thread: &mut Thread, others: bool) {
    let waited = thread.state == State::Blocked;
    CURRENT.store(NO_THREAD, Release);
    dispatch(others);
    LOCK.unlock();
    wait_for_turn(thread);
    let switched = LAST.swap(thread.number, Relaxed) != thread.number;
    if switched {
        thread.points = 0;
        header::word(field::SWITCHES).fetch_add(1, Relaxed);
    }
    if switched || waited {
        recorder::turn(thread);
    }
    thread.reload_quantum();
}

/// [`pass_on`] for a schedule: the lock is taken, the thread can run.
pub fn pass_on_locked(thread: &mut Thread) {
    pass_on(thread, false);
    explore::released(thread);
}

fn make_runnable(thread: &mut Thread, wake: Wake) {
    thread.state = State::Runnable;
    thread.wake = wake;
}

/// Gives the turn to somebody, if anybody can run; else wakes the watchdog. Under [`LOCK`], with no holder of the turn.
pub fn dispatch(others: bool) {
    debug_assert!(CURRENT.load(Relaxed) == NO_THREAD);
    if FILES_MOVED.swap(0, Relaxed) != 0 {
        watchdog::poll_files(0);
    }
    if !replay::active() {
        expire();
    }
    if !give_turn(others) {
        watchdog::kick();
    }
}

fn give_turn(others: bool) -> bool {
    let next = match replay::choose() {
        replay::Choice::Thread(thread) => thread,
        replay::Choice::Wait => core::ptr::null_mut(),
        // SAFETY: under the lock.
        replay::Choice::Free if !endless::next().is_null() => endless::next(),
        // SAFETY: under the lock.
        replay::Choice::Free => policy::choose(unsafe { live() }.as_slice(), LAST.load(Relaxed), others),
    };
    let next = if next.is_null() { elastic::relieve() } else { next };
    if next.is_null() {
        return false;
    }
    // SAFETY: registered threads are never unmapped, and under the lock nobody else changes their state.
    let next = unsafe { &mut *next };
    next.state = State::Running;
    CURRENT.store(next.number, Release);
    next.baton.fetch_or(TURN_GIVEN, Release);
    // The calling thread is awake.
    if !core::ptr::eq(next, crate::system::tls::current()) {
        sys::futex_wake(&next.baton, 1);
    }
    true
}

/// [`dispatch`] from the watchdog, which does not wake itself.
pub fn dispatch_idle() {
    if CURRENT.load(Relaxed) == NO_THREAD {
        give_turn(true);
    }
}

/// A synchronisation event is about to happen: the place where the policy may let somebody else go first.
pub fn point(runtime: &Runtime, op: Op, object: u64, site: u64) {
    any_point(runtime, op, object, site, Occasion::Point);
}

/// The same where the thread is about to take of what others may take, too: unless a schedule says otherwise, they come first.
/// That is no look: time does not pass by it.
pub fn point_behind_others(runtime: &Runtime, op: Op, object: u64, site: u64) {
    any_point(runtime, op, object, site, Occasion::Quantum);
}

/// The thread did something else than look since its last point.
pub fn acts(runtime: &Runtime) {
    if config::serial() {
        let thread = runtime.thread();
        explore::changes(thread);
        has_acted(thread);
    }
}

fn has_acted(thread: &mut Thread) {
    thread.spins = 0;
    YIELDS.store(0, Relaxed);
    world::goes_on();
}

fn any_point(runtime: &Runtime, op: Op, object: u64, site: u64, occasion: Occasion) {
    if !config::serial() {
        return;
    }
    let thread = runtime.thread();
    come_back(thread);
    PROGRESS.fetch_add(1, Relaxed);
    if deadlock::is_due() {
        deadlock::at_point();
    }
    // Whether a try was a look, its failure tells.
    endless::stands_before(thread, op as u64, object, site);
    let look =
        matches!(op, Op::Lock | Op::LockShared | Op::SemaphoreWait | Op::Yield | Op::Observe | Op::Blocking | Op::ThreadJoin);
    if !(look || op == Op::Sleep && explore::on()) {
        has_acted(thread);
    }
    if enforced(runtime, op, object, site, crate::serial::replay::AccessAt::NONE) {
        return;
    }
    let occasion = if op == Op::Yield || thread.spins >= spin_limit() { Occasion::Yield } else { occasion };
    if !linger::stops(thread, linger::place(op as u64, site), 1) {
        offer(thread, occasion);
    }
}

/// The same for an atomic access, which a schedule may want to hold.
pub fn point_atomic(runtime: &Runtime, op: Op, access: crate::serial::replay::AccessAt, site: u64) {
    if !config::serial() {
        return;
    }
    let thread = runtime.thread();
    come_back(thread);
    PROGRESS.fetch_add(1, Relaxed);
    endless::stands_before(thread, op as u64, access.address, site);
    thread.spins = match op {
        Op::AtomicLoad if !explore::on() => thread.spins + 1,
        // Whether it was a look, its failure tells; exploration counts by itself.
        Op::AtomicLoad | Op::AtomicRmw => thread.spins,
        _ => {
            YIELDS.store(0, Relaxed);
            world::goes_on();
            0
        }
    };
    if enforced(runtime, op, access.address, site, access) {
        return;
    }
    if !linger::stops(thread, linger::place(op as u64, site), 1) {
        offer(thread, if thread.spins >= spin_limit() { Occasion::Yield } else { Occasion::Point });
    }
}

/// Asks the schedule, if there is one. True: the thread goes on.
pub fn enforced(runtime: &Runtime, op: Op, object: u64, site: u64, access: crate::serial::replay::AccessAt) -> bool {
    if explore::on() {
        explore::at_synchronisation(runtime.thread(), op, object, access, site);
    }
    replay::at_synchronisation(runtime, op, object, site, access) && !explore::asks(runtime.thread())
}

fn spin_limit() -> u32 {
    if explore::on() { explore::LOOKS } else { SPIN_LIMIT }
}

/// The thread stands before an event that it can only make after blocking: a schedule may end its turn here.
pub fn position(runtime: &Runtime, op: Op, object: u64, site: u64) {
    if config::serial() {
        if explore::on() {
            explore::at_synchronisation(runtime.thread(), op, object, crate::serial::replay::AccessAt::NONE, site);
        }
        replay::at_synchronisation(runtime, op, object, site, crate::serial::replay::AccessAt::NONE);
        explore::passed(runtime.thread());
    }
}

/// A try that failed is a look.
pub fn failed_try(runtime: &Runtime) {
    let thread = runtime.thread();
    looked(thread);
    if explore::exploring() {
        // Who is next is asked before the next operation: here the thread stands behind one that is not complete.
        if thread.spins >= spin_limit() {
            explore::waits(thread);
        }
    } else if config::serial() && thread.spins >= SPIN_LIMIT && !replay::active() {
        offer(thread, Occasion::Yield);
    }
}

/// A compare-exchange that failed is a look.
pub fn looked(thread: &mut Thread) {
    if explore::on() { explore::looks(thread) } else { thread.spins += 1 }
}

/// A thread that looks gives its turn up. When all that can run have done nothing else since the last event of another kind, only
/// time can help them: it jumps to the next deadline.
fn pass_time() {
    LOCK.with(|| {
        let (mut runnable, mut first) = (1, NEVER);
        // SAFETY: under the lock.
        for &number in unsafe { live() }.as_slice() {
            // SAFETY: registered threads are never unmapped.
            let thread = unsafe { &*by_number(number) };
            match thread.state {
                State::Runnable => runnable += 1,
                State::Blocked => first = first.min(thread.wait.deadline),
                _ => {}
            }
        }
        if first != NEVER
            && YIELDS.fetch_add(1, Relaxed) >= YIELDS_TO_PASS_TIME * runnable
            && (!world::may_act() || world::has_passed(first.saturating_sub(clock::elapsed())))
        {
            YIELDS.store(0, Relaxed);
            clock::advance_to(first);
        }
    });
}

/// Lets go of those whose time has come. Under [`LOCK`].
fn expire() {
    let now = clock::elapsed();
    // SAFETY: under the lock.
    for &number in unsafe { live() }.as_slice() {
        // SAFETY: registered threads are never unmapped.
        let thread = unsafe { &mut *by_number(number) };
        if thread.state == State::Blocked && thread.wait.deadline <= now {
            make_runnable(thread, Wake::TimedOut);
        }
    }
}

/// Whether somebody else could run.
pub fn others_can_run() -> bool {
    // SAFETY: under the lock; registered threads are never unmapped.
    LOCK.with(|| unsafe { live().as_slice().iter().any(|&number| (*by_number(number)).state == State::Runnable) })
}

fn offer(thread: &mut Thread, mut occasion: Occasion) {
    thread.points += 1;
    if occasion == Occasion::Point && thread.points >= POINT_QUANTUM {
        clock::advance(QUANTUM_TIME);
        occasion = Occasion::Quantum;
    }
    if occasion == Occasion::Yield {
        thread.spins = 0;
        pass_time();
    }
    if occasion != Occasion::Point {
        thread.points = 0;
        if endless::offered(thread, if occasion == Occasion::Yield { 1 } else { endless::QUANTUM_WEIGHT }) {
            return;
        }
    }
    if policy::offers(thread, occasion) {
        LOCK.lock();
        thread.state = State::Runnable;
        pass_on(thread, occasion != Occasion::Point);
    }
}

/// An access whose hook found the quantum used up; it was counted, but not made.
pub fn at_access(runtime: &Runtime, address: u64, kind: u64, site: u64) {
    if let Some((class, log2)) = access_of_kind(kind) {
        at_any_access(runtime, address, 1 << log2, class as u64, site);
    }
}

pub fn at_range(runtime: &Runtime, address: u64, bytes: u64, class: u64, site: u64) {
    at_any_access(runtime, address, bytes, class, site);
}

fn at_any_access(runtime: &Runtime, address: u64, bytes: u64, class: u64, site: u64) {
    let thread = runtime.thread();
    thread.hot().quantum += 1;
    if thread.pending_signals.load(Relaxed) != 0 {
        signals::deliver_inside(runtime);
    }
    if config::serial() {
        let used_up = thread.reload > 0 && thread.evicted.load(Relaxed) == 0;
        come_back(thread);
        thread.reload_quantum();
        let access = crate::serial::replay::AccessAt { address, bytes, class, atomic: false, site };
        let visible = explore::on() && explore::at_access(thread, access, replay::active());
        let held = replay::at_access(runtime, access);
        let used_up = used_up || elastic::tires();
        if explore::on() {
            // Where a schedule just ended, the thread stands at its last position.
            if (visible || held) && explore::asks(thread) {
                offer(thread, if thread.spins >= spin_limit() { Occasion::Yield } else { Occasion::Point });
            } else if !visible && !held && explore::runs_on(thread, access, used_up) {
                offer(thread, Occasion::Yield);
            }
        } else if !held && used_up && !replay::active() {
            clock::advance(QUANTUM_TIME);
            PROGRESS.fetch_add(1, Relaxed);
            endless::stands_before(thread, 0, address, site);
            if !linger::stops(thread, 0, linger::QUANTUM_STEPS) {
                offer(thread, Occasion::Quantum);
            }
        }
    }
    thread.reload_quantum();
    thread.hot().quantum -= 1;
}

/// A thread whose turn the watchdog took while it was in the kernel stands in line again.
pub fn come_back(thread: &mut Thread) {
    if thread.evicted.load(Acquire) == 0 {
        return;
    }
    LOCK.lock();
    thread.evicted.store(0, Release);
    thread.in_call.store(0, Relaxed);
    thread.state = State::Runnable;
    if CURRENT.load(Relaxed) == NO_THREAD {
        dispatch(false);
    }
    LOCK.unlock();
    wait_for_turn(thread);
    LAST.store(thread.number, Relaxed);
    recorder::turn(thread);
    thread.reload_quantum();
}

/// The thread cannot go on until what it waits for may be there. It may also come back without any reason. Serial mode only.
pub fn block(runtime: &Runtime, wait: Wait, site: u64) -> Wake {
    let thread = runtime.thread();
    debug_assert!(config::serial());
    watchdog::start();
    come_back(thread);
    if cancellation::is_due(runtime, wait.what) {
        // A condition wait has to take its mutex first.
        if wait.what == WaitFor::Condition {
            return Wake::Cancelled;
        }
        cancellation::test(runtime);
    }
    PROGRESS.fetch_add(1, Relaxed);
    // A signal that came before the wait does not end it; but what the thread waits for may have come by its handler.
    if thread.pending_signals.load(Relaxed) != 0 {
        signals::deliver_inside(runtime);
        if wait.what != WaitFor::Time {
            return Wake::Woken;
        }
    }
    recorder::waits(thread);
    if wait.what != WaitFor::Time {
        endless::moves();
    }
    LOCK.lock();
    thread.wait = wait;
    thread.wait_site = site;
    thread.wake = Wake::Nothing;
    thread.turn_ended = false;
    thread.state = State::Blocked;
    thread.spins = 0;
    if matches!(wait.what, WaitFor::Lock | WaitFor::LockShared | WaitFor::Join) && wait.deadline == NEVER {
        deadlock::check(thread);
    }
    pass_on(thread, false);
    let wake = thread.wake;
    thread.wait = Wait::NOTHING;
    if wait.what == WaitFor::Time {
        endless::offered(thread, 1);
    }
    if wake == Wake::Signal || thread.pending_signals.load(Relaxed) != 0 {
        signals::deliver_inside(runtime);
    }
    match wake {
        // While the handler ran, what the thread waits for may have come: it was not blocked then, and nobody told it.
        Wake::Signal if !wait.interruptible => Wake::Woken,
        Wake::Cancelled => Wake::Woken,
        wake => wake,
    }
}

/// Lets threads that wait for an object look again: at most `count` of them, oldest wait first.
pub fn wake(what: WaitFor, object: u64, count: usize) -> usize {
    if !config::serial() {
        return 0;
    }
    LOCK.with(|| wake_locked(what, object, count))
}

fn wake_locked(what: WaitFor, object: u64, count: usize) -> usize {
    let mut woken = 0;
    // SAFETY: under the lock.
    for &number in unsafe { live() }.as_slice() {
        // SAFETY: registered threads are never unmapped.
        let thread = unsafe { &mut *by_number(number) };
        let same = thread.wait.what == what || what == WaitFor::Lock && thread.wait.what == WaitFor::LockShared;
        if woken < count && thread.state == State::Blocked && same && thread.wait.object == object {
            make_runnable(thread, Wake::Woken);
            endless::moves();
            woken += 1;
        }
    }
    woken
}

/// Wakes one given thread if it waits for that object.
pub fn wake_thread(number: u32, what: WaitFor, object: u64) -> bool {
    LOCK.with(|| {
        // SAFETY: registered threads are never unmapped.
        let thread = unsafe { &mut *by_number(number) };
        let waits = thread.state == State::Blocked && thread.wait.what == what && thread.wait.object == object;
        if waits {
            make_runnable(thread, Wake::Woken);
        }
        waits
    })
}

/// A thread was cancelled: if it is blocked it looks whether that concerns it.
pub fn cancelled(thread: &mut Thread) {
    LOCK.with(|| {
        thread.cancelled.store(1, Release);
        if thread.state == State::Blocked {
            make_runnable(thread, Wake::Cancelled);
        }
    });
}

/// A thread blocked until a deadline, or for files, is let go by the watchdog or a schedule. Under [`LOCK`].
pub fn let_go(thread: &mut Thread, wake: Wake) {
    make_runnable(thread, wake);
}

/// The program wrote to, or closed, a file that somebody may wait for.
pub fn files_moved() {
    FILES_MOVED.store(1, Relaxed);
}

/// Values of [`Thread::evicted`]: why a live thread runs, or sleeps in the kernel, without the turn.
pub const EVICTED: u32 = 1;
pub const LET_GO: u32 = 2;

/// A call that may block in the kernel where nothing can be asked beforehand: the thread gives its turn up meanwhile. Signal
/// handlers run at once while it lasts, and it may be left by cancellation: whatever code of the program runs next asks for the
/// turn first.
pub fn external<R>(runtime: &Runtime, call: impl FnOnce() -> R) -> R {
    let thread = runtime.thread();
    if thread.pending_signals.load(Relaxed) != 0 {
        signals::deliver_inside(runtime);
    }
    if !config::serial() || live_count() <= 1 {
        return runtime.outside(call);
    }
    come_back(thread);
    leave(thread);
    thread.in_call.store(1, Release);
    let result = runtime.outside(call);
    thread.in_call.store(0, Release);
    come_back(thread);
    result
}

/// Gives the turn up without waiting for it.
fn leave(thread: &mut Thread) {
    PROGRESS.fetch_add(1, Relaxed);
    recorder::waits(thread);
    LOCK.lock();
    thread.state = State::External;
    thread.turn_ended = false;
    thread.evicted.store(LET_GO, Release);
    LEAVING.store(thread.number + 1, Release);
    thread.force_slow_path();
    CURRENT.store(NO_THREAD, Release);
    dispatch(true);
    LOCK.unlock();
}

/// Runs what a signal handler needs around it with the turn, also where the handler interrupted a call into the kernel: a turn
/// that [`external`] had given up is given up again afterwards.
pub fn with_turn<R>(runtime: &Runtime, body: impl FnOnce() -> R) -> R {
    if !config::serial() {
        return body();
    }
    let thread = runtime.thread();
    let (reason, in_call) = (thread.evicted.load(Acquire), thread.in_call.load(Relaxed));
    come_back(thread);
    let result = body();
    if reason == LET_GO && thread.evicted.load(Acquire) == 0 && live_count() > 1 {
        leave(thread);
        thread.in_call.store(in_call, Release);
    }
    result
}

/// The holder of the turn is gone without a word: the program ended it by system call. Its block and stack are gone as well.
/// Under [`LOCK`].
pub fn vanished(thread: &mut Thread) {
    thread.hot = core::ptr::null_mut();
    thread.ended.store(1, Release);
    remove_live(thread);
    wake_locked(WaitFor::Join, thread.number as u64, usize::MAX);
    replay::ended(thread);
    CURRENT.store(NO_THREAD, Release);
}

/// The thread's last event was recorded: somebody else goes on.
pub fn ended(thread: &mut Thread) {
    endless::moves();
    LOCK.lock();
    remove_live(thread);
    let number = thread.number as u64;
    wake_locked(WaitFor::Join, number, usize::MAX);
    // The kernel gives robust mutexes up for it.
    for held in thread.held.as_slice() {
        wake_locked(WaitFor::Lock, held.lock, usize::MAX);
    }
    replay::ended(thread);
    EXITING.store(thread.kernel_id, Release);
    CURRENT.store(NO_THREAD, Release);
    dispatch(false);
    LOCK.unlock();
}
