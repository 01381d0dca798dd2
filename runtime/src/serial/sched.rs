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
use crate::serial::policy;
use crate::serial::{
    cancellation, deadlock, debugged, elastic, endless, explore, kept, linger, points, replay, snapshot, standstill, watchdog,
};
use crate::system::memory::List;
use crate::system::thread::{NO_THREAD, QUANTUM, Runtime, State, Thread, known};
use crate::system::{config, header, signals, sys};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::*};
use rashomon_abi::control;
use rashomon_abi::header::field;

pub use crate::serial::calls::{EVICTED, LET_GO, external, with_turn};
pub use crate::serial::points::{
    acts, at_access, at_range, enforced, failed_try, others_can_run, point, point_atomic, point_behind_others, polled, position,
};
pub use crate::serial::settling::{settles, stands_in_line, until_timeout};
pub use crate::serial::turn_lock::LOCK;
pub use crate::serial::wait::{PollFile, Wait, WaitFor, Wake};
/// Who holds the turn.
pub static CURRENT: AtomicU32 = AtomicU32::new(NO_THREAD);
/// Who held it last.
static LAST: AtomicU32 = AtomicU32::new(0);
/// Counts events: the watchdog's sign of life.
pub static PROGRESS: AtomicU64 = AtomicU64::new(0);
/// Something was written to a file since waiting files were last asked.
static FILES_MOVED: AtomicU32 = AtomicU32::new(0);
static mut LIVE: List<u32> = List::new();

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
pub fn quantum(thread: &Thread) -> i64 {
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

/// The thread's quantum begins anew.
pub fn reload_quantum(thread: &Thread) {
    thread.set_quantum(quantum(thread));
}

/// The initial thread takes the turn.
pub fn begin(thread: &Thread) {
    QUANTUM.set(&(quantum as fn(&Thread) -> i64));
    standstill::begins();
    LOCK.with(|| {
        // SAFETY: under the lock.
        unsafe { live().push(thread.number.get()) };
        thread.state.set(State::Running);
        thread.arrived.set(true);
        CURRENT.store(thread.number.get(), Release);
        LAST.store(thread.number.get(), Relaxed);
    });
    debugged::begin(thread);
}

/// A forked child has this thread only.
///
/// # Safety
/// In such a child, by that thread.
pub unsafe fn only(thread: &Thread) {
    LOCK.reset();
    // SAFETY: nobody else is there. The list may have been in the middle of a change.
    unsafe { (&raw mut LIVE).write(List::new()) };
    linger::forget(thread);
    EXITING.store(0, Relaxed);
    LEAVING.store(0, Relaxed);
    points::forget_yields();
    FILES_MOVED.store(0, Relaxed);
    begin(thread);
    // SAFETY: by the contract.
    unsafe { standstill::restart(thread) };
}

/// A thread was created: it can run from now on.
pub fn created(thread: &Thread) {
    // SAFETY: under the lock.
    LOCK.with(|| unsafe { live().push(thread.number.get()) });
    standstill::begins();
    endless::moves();
    if explore::on() {
        explore::created(thread);
    }
}

/// A created thread that never came to be.
pub fn forget(thread: &Thread) {
    standstill::ends(thread);
    LOCK.with(|| {
        remove_live(thread);
        if CURRENT.load(Relaxed) == thread.number.get() {
            CURRENT.store(NO_THREAD, Release);
            dispatch(false);
        }
    });
}

fn remove_live(thread: &Thread) {
    debug_assert!(LOCK.is_locked());
    thread.state.set(State::Ended);
    // SAFETY: callers hold the lock.
    let live = unsafe { live() };
    if let Some(at) = live.as_slice().iter().position(|&number| number == thread.number.get()) {
        live.remove(at);
    }
}

pub fn live_count() -> usize {
    // SAFETY: under the lock.
    LOCK.with(|| unsafe { live().len() })
}

/// A new thread's first steps: waits until it is given the turn.
pub fn arrive(thread: &Thread) {
    debugged::known(thread);
    if config::serial() {
        LOCK.with(|| {
            thread.arrived.set(true);
            if thread.evicted.swap(0, AcqRel) != 0 {
                make_runnable(thread, thread.serial().wake.get());
                if CURRENT.load(Relaxed) == NO_THREAD {
                    dispatch(false);
                }
            }
        });
        wait_for_turn(thread);
        let switched = LAST.swap(thread.number.get(), Relaxed) != thread.number.get();
        debugged::given(thread, switched);
    }
}

/// Bits of a thread's baton: the turn is given to it; a signal arrived while it waited.
pub const TURN_GIVEN: u32 = 1;
pub const SIGNAL_ARRIVED: u32 = 2;
/// All stand, for a snapshot.
pub const STAND: u32 = 4;

/// Stands still until the turn is given to this thread.
fn wait_for_turn(thread: &Thread) {
    loop {
        let given = thread.baton.swap(0, Acquire);
        if given & STAND != 0 {
            snapshot::stand(thread);
        }
        if given & SIGNAL_ARRIVED != 0 && thread.pending_signals.load(Relaxed) != 0 {
            LOCK.with(|| {
                if thread.state.get() == State::Blocked {
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
    debug_assert!(CURRENT.load(Relaxed) == thread.number.get());
    await_exit();
    await_leaving(thread);
    endless::is_called(thread);
}

/// Waits until all threads that were created have begun and wait for their turns. Under [`LOCK`], with no holder of the turn,
/// which is this thread meanwhile.
pub fn await_arrivals(caller: &Thread) {
    // SAFETY: under the lock; who holds the turn keeps others from being created.
    let all_arrived = || unsafe { live() }.as_slice().iter().all(|&number| known(number).arrived.get());
    if !all_arrived() {
        CURRENT.store(caller.number.get(), Release);
        LOCK.unlock();
        until_timeout(|| LOCK.with(all_arrived));
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
        until_timeout(|| !sys::thread_exists(id));
    }
}

/// Number + 1 of the thread that left for the kernel last, until it waits there or is back.
pub static LEAVING: AtomicU32 = AtomicU32::new(0);

/// What a thread does in a call into the kernel before it waits there belongs to its turn: who opened the pipe first, who stands
/// where in the queue for a file's lock, and whether cancellation or a signal finds it inside.
fn await_leaving(thread: &Thread) {
    let number = LEAVING.swap(0, AcqRel);
    if number != 0 && number - 1 != thread.number.get() {
        settles(known(number - 1));
    }
}

/// Gives the turn away and comes back when it is given again. Under [`LOCK`], which is released.
pub fn pass_on(thread: &Thread, others: bool) {
    debug_assert!(LOCK.is_locked() && CURRENT.load(Relaxed) == thread.number.get());
    let waited = thread.state.get() == State::Blocked;
    clock::spend(thread);
    CURRENT.store(NO_THREAD, Release);
    kept::handed_over();
    dispatch(others);
    LOCK.unlock();
    wait_for_turn(thread);
    let switched = LAST.swap(thread.number.get(), Relaxed) != thread.number.get();
    if switched {
        thread.points.set(0);
        header::word(field::SWITCHES).fetch_add(1, Relaxed);
    }
    if switched || waited {
        recorder::turn(thread);
    }
    reload_quantum(thread);
    debugged::given(thread, switched);
}

/// [`pass_on`] for a schedule: the lock is taken, the thread can run.
pub fn pass_on_locked(thread: &Thread) {
    pass_on(thread, false);
    explore::released(thread);
}

fn make_runnable(thread: &Thread, wake: Wake) {
    thread.state.set(State::Runnable);
    thread.serial().wake.set(wake);
}

/// Gives the turn to somebody, if anybody can run; else wakes the watchdog. Under [`LOCK`], with no holder of the turn.
pub fn dispatch(others: bool) {
    debug_assert!(LOCK.is_locked());
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
        replay::Choice::Thread(thread) => Some(thread),
        replay::Choice::Wait => None,
        replay::Choice::Free => endless::next().or_else(|| {
            // SAFETY: under the lock.
            policy::choose(unsafe { live() }.as_slice(), LAST.load(Relaxed), others)
        }),
    };
    let Some(next) = next.or_else(elastic::relieve) else { return false };
    next.state.set(State::Running);
    CURRENT.store(next.number.get(), Release);
    next.baton.fetch_or(TURN_GIVEN, Release);
    // The calling thread is awake.
    if !crate::system::tls::current().is_some_and(|thread| core::ptr::eq(thread, next)) {
        LOCK.wakes(next.number.get());
    }
    true
}

/// [`dispatch`] from the watchdog, which does not wake itself.
pub fn dispatch_idle() {
    if CURRENT.load(Relaxed) == NO_THREAD {
        give_turn(true);
    }
}

/// Lets go of those whose time has come. Under [`LOCK`].
fn expire() {
    let now = clock::elapsed();
    // SAFETY: under the lock.
    for &number in unsafe { live() }.as_slice() {
        let thread = known(number);
        if thread.state.get() == State::Blocked && thread.serial().wait.get().deadline <= now {
            make_runnable(thread, Wake::TimedOut);
        }
    }
}

/// A thread whose turn the watchdog took while it was in the kernel stands in line again.
pub fn come_back(thread: &Thread) {
    if thread.evicted.load(Acquire) == 0 {
        return;
    }
    LOCK.lock();
    thread.evicted.store(0, Release);
    thread.in_call.store(0, Relaxed);
    thread.state.set(State::Runnable);
    if CURRENT.load(Relaxed) == NO_THREAD {
        dispatch(false);
    }
    LOCK.unlock();
    wait_for_turn(thread);
    let switched = LAST.swap(thread.number.get(), Relaxed) != thread.number.get();
    recorder::turn(thread);
    reload_quantum(thread);
    debugged::given(thread, switched);
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
    thread.serial().wait.set(wait);
    thread.wait_site.set(site);
    thread.serial().wake.set(Wake::Nothing);
    thread.turn_ended.set(false);
    thread.state.set(State::Blocked);
    thread.spins.set(0);
    if matches!(wait.what, WaitFor::Lock | WaitFor::LockShared | WaitFor::Join) && wait.deadline == NEVER {
        deadlock::check(thread);
    }
    pass_on(thread, false);
    let wake = thread.serial().wake.get();
    thread.serial().wait.set(Wait::NOTHING);
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
    debug_assert!(LOCK.is_locked());
    let mut woken = 0;
    // SAFETY: under the lock.
    for &number in unsafe { live() }.as_slice() {
        let thread = known(number);
        let same = thread.serial().wait.get().what == what
            || what == WaitFor::Lock && thread.serial().wait.get().what == WaitFor::LockShared;
        if woken < count && thread.state.get() == State::Blocked && same && thread.serial().wait.get().object == object {
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
        let thread = known(number);
        let waits = thread.state.get() == State::Blocked
            && thread.serial().wait.get().what == what
            && thread.serial().wait.get().object == object;
        if waits {
            make_runnable(thread, Wake::Woken);
        }
        waits
    })
}

/// A thread was cancelled: if it is blocked it looks whether that concerns it.
pub fn cancelled(thread: &Thread) {
    LOCK.with(|| {
        thread.cancelled.store(1, Release);
        if thread.state.get() == State::Blocked {
            make_runnable(thread, Wake::Cancelled);
        }
    });
}

/// A thread blocked until a deadline, or for files, is let go by the watchdog or a schedule. Under [`LOCK`].
pub fn let_go(thread: &Thread, wake: Wake) {
    debug_assert!(LOCK.is_locked() && thread.state.get() == State::Blocked);
    make_runnable(thread, wake);
}

/// The program wrote to, or closed, a file that somebody may wait for.
pub fn files_moved() {
    FILES_MOVED.store(1, Relaxed);
}

/// The calling thread's block is about to be gone. The watchdog looks into that of the turn's holder under the lock: it is not to
/// end between two looks.
pub fn leaves_block(thread: &Thread) {
    LOCK.with(|| thread.leaves_block());
}

/// The holder of the turn is gone without a word: the program ended it by system call. Its block and stack are gone as well.
/// Under [`LOCK`].
pub fn vanished(thread: &Thread) {
    thread.leaves_block();
    thread.ended.store(1, Release);
    remove_live(thread);
    wake_locked(WaitFor::Join, thread.number.get() as u64, usize::MAX);
    replay::ended(thread);
    CURRENT.store(NO_THREAD, Release);
}

/// The thread's last event was recorded: somebody else goes on.
pub fn ended(thread: &Thread) {
    endless::moves();
    LOCK.lock();
    remove_live(thread);
    let number = thread.number.get() as u64;
    wake_locked(WaitFor::Join, number, usize::MAX);
    // The kernel gives robust mutexes up for it.
    for held in thread.held.iter() {
        wake_locked(WaitFor::Lock, held.lock, usize::MAX);
    }
    replay::ended(thread);
    EXITING.store(thread.kernel_id.get(), Release);
    CURRENT.store(NO_THREAD, Release);
    dispatch(false);
    LOCK.unlock();
}
