//! Where a thread that holds the turn looks up: at a synchronisation event or an access that it is about to make, a schedule, an
//! exploration or the policy may let somebody else go first.

use crate::serial::clock::{self, NEVER};
use crate::serial::policy::{self, Occasion};
use crate::serial::replay::AccessAt;
use crate::serial::sched::{LOCK, PROGRESS, come_back, live, pass_on, reload_quantum};
use crate::serial::{deadlock, elastic, endless, explore, gate, linger, replay, world};
use crate::system::thread::{Runtime, State, Thread, known};
use crate::system::{config, signals};
use core::sync::atomic::{AtomicU32, Ordering::*};
use rashomon_abi::record::{Op, access_of_kind};

/// Polls without effect after which a thread is taken to be waiting for somebody.
const SPIN_LIMIT: u32 = 16;
/// Synchronisation events after which a thread has to offer its turn: some threads wait by changing things.
const POINT_QUANTUM: u32 = 10_000;
/// Times that every runnable thread gives its turn up before time jumps.
const YIELDS_TO_PASS_TIME: u32 = 4;
/// How often turns were given up by polling since anything else happened.
static YIELDS: AtomicU32 = AtomicU32::new(0);

/// A forked child begins anew.
pub fn forget_yields() {
    YIELDS.store(0, Relaxed);
}

/// A synchronisation event is about to happen: the place where the policy may let somebody else go first.
pub fn point(runtime: &Runtime, op: Op, object: u64, site: u64) {
    any_point(runtime, op, object, site, Occasion::Point);
}

/// The same where the thread is about to take of what others may take, too: unless a schedule says otherwise, they come first.
/// That is no poll: time does not pass by it.
pub fn point_behind_others(runtime: &Runtime, op: Op, object: u64, site: u64) {
    any_point(runtime, op, object, site, Occasion::Quantum);
}

/// The thread did something else than poll since its last point.
pub fn acts(runtime: &Runtime) {
    if config::serial() {
        let thread = runtime.thread();
        explore::changes(thread);
        has_acted(thread);
    }
}

fn has_acted(thread: &Thread) {
    thread.spins.set(0);
    YIELDS.store(0, Relaxed);
    world::goes_on();
}

fn any_point(runtime: &Runtime, op: Op, object: u64, site: u64, occasion: Occasion) {
    if !config::serial() {
        if config::gating() {
            gate::arrive(runtime, op);
        }
        return;
    }
    let thread = runtime.thread();
    come_back(thread);
    clock::spend(thread);
    PROGRESS.fetch_add(1, Relaxed);
    if deadlock::is_due() {
        deadlock::at_point();
    }
    // Whether a try was a poll, its failure tells.
    endless::stands_before(thread, op as u64, object, site);
    let polls =
        matches!(op, Op::Lock | Op::LockShared | Op::SemaphoreWait | Op::Yield | Op::Acquire | Op::Blocking | Op::ThreadJoin)
            || is_unseen(op);
    if !(polls || op == Op::Sleep && explore::on()) {
        has_acted(thread);
    }
    if enforced(runtime, op, object, site, AccessAt::NONE) {
        return;
    }
    let occasion = if op == Op::Yield || thread.spins.get() >= spin_limit() { Occasion::Yield } else { occasion };
    if !linger::stops(thread, linger::place(op as u64, site), 1) {
        offer(thread, occasion);
    }
}

/// The same for an atomic access, which a schedule may want to hold.
pub fn point_atomic(runtime: &Runtime, op: Op, access: AccessAt, site: u64) {
    if !config::serial() {
        return;
    }
    let thread = runtime.thread();
    come_back(thread);
    clock::spend(thread);
    PROGRESS.fetch_add(1, Relaxed);
    endless::stands_before(thread, op as u64, access.address, site);
    thread.spins.set(match op {
        Op::AtomicLoad if !explore::on() => thread.spins.get() + 1,
        // Whether it was a poll, its failure tells; exploration counts by itself.
        Op::AtomicLoad | Op::AtomicRmw => thread.spins.get(),
        _ => {
            YIELDS.store(0, Relaxed);
            world::goes_on();
            0
        }
    });
    if enforced(runtime, op, access.address, site, access) {
        return;
    }
    if !linger::stops(thread, linger::place(op as u64, site), 1) {
        offer(thread, if thread.spins.get() >= spin_limit() { Occasion::Yield } else { Occasion::Point });
    }
}

/// Asks the schedule, if there is one. True: the thread goes on.
pub fn enforced(runtime: &Runtime, op: Op, object: u64, site: u64, access: AccessAt) -> bool {
    if explore::on() {
        explore::at_synchronisation(runtime.thread(), op, object, access, site);
    }
    replay::at_synchronisation(runtime, op, object, site, access) && !explore::asks(runtime.thread())
}

/// What such a call does is not known: it may be a poll.
const fn is_unseen(op: Op) -> bool {
    matches!(op, Op::CallBegin | Op::CallEnd)
}

fn spin_limit() -> u32 {
    if explore::on() { explore::POLLS } else { SPIN_LIMIT }
}

/// The thread stands before an event that it can only make after blocking: a schedule may end its turn here.
pub fn position(runtime: &Runtime, op: Op, object: u64, site: u64) {
    if config::serial() {
        if explore::on() {
            explore::at_synchronisation(runtime.thread(), op, object, AccessAt::NONE, site);
        }
        replay::at_synchronisation(runtime, op, object, site, AccessAt::NONE);
        explore::passed(runtime.thread());
    }
}

/// A try that failed is a poll.
pub fn failed_try(runtime: &Runtime) {
    let thread = runtime.thread();
    polled(thread);
    if explore::exploring() {
        // Who is next is asked before the next operation: here the thread stands behind one that is not complete.
        if thread.spins.get() >= spin_limit() {
            explore::waits(thread);
        }
    } else if config::serial() && thread.spins.get() >= SPIN_LIMIT && !replay::active() {
        offer(thread, Occasion::Yield);
    }
}

/// A compare-exchange that failed is a poll.
pub fn polled(thread: &Thread) {
    if explore::on() { explore::polls(thread) } else { thread.spins.set(thread.spins.get() + 1) }
}

/// A thread that polls gives its turn up. When all that can run have done nothing else since the last event of another kind, only
/// time can help them: it jumps to the next deadline.
fn pass_time() {
    LOCK.with(|| {
        let (mut runnable, mut first) = (1, NEVER);
        // SAFETY: under the lock.
        for &number in unsafe { live() }.as_slice() {
            let thread = known(number);
            match thread.state.get() {
                State::Runnable => runnable += 1,
                State::Blocked => first = first.min(thread.serial().wait.get().deadline),
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

/// Whether somebody else could run.
pub fn others_can_run() -> bool {
    // SAFETY: under the lock.
    LOCK.with(|| unsafe { live() }.as_slice().iter().any(|&number| known(number).state.get() == State::Runnable))
}

fn offer(thread: &Thread, mut occasion: Occasion) {
    thread.points.set(thread.points.get() + 1);
    if occasion == Occasion::Point && thread.points.get() >= POINT_QUANTUM {
        occasion = Occasion::Quantum;
    }
    if occasion == Occasion::Yield {
        thread.spins.set(0);
        pass_time();
    }
    if occasion != Occasion::Point {
        thread.points.set(0);
        if endless::offered(thread, if occasion == Occasion::Yield { 1 } else { endless::QUANTUM_WEIGHT }) {
            return;
        }
    }
    if policy::offers(thread, occasion) {
        LOCK.lock();
        thread.state.set(State::Runnable);
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
    thread.hot().quantum.set(thread.hot().quantum.get() + 1);
    if thread.pending_signals.load(Relaxed) != 0 {
        signals::deliver_inside(runtime);
    }
    if config::serial() {
        let used_up = thread.reload.get() > 0 && thread.evicted.load(Relaxed) == 0;
        come_back(thread);
        reload_quantum(thread);
        let access = AccessAt { address, bytes, class, atomic: false, site };
        let visible = explore::on() && explore::at_access(thread, access, replay::active());
        let held = replay::at_access(runtime, access);
        let used_up = used_up || elastic::tires();
        if explore::on() {
            // Where a schedule just ended, the thread stands at its last position.
            if (visible || held) && explore::asks(thread) {
                offer(thread, if thread.spins.get() >= spin_limit() { Occasion::Yield } else { Occasion::Point });
            } else if !visible && !held && explore::runs_on(thread, access, used_up) {
                offer(thread, Occasion::Yield);
            }
        } else if !held && used_up && !replay::active() {
            clock::spend(thread);
            PROGRESS.fetch_add(1, Relaxed);
            endless::stands_before(thread, 0, address, site);
            if !linger::stops(thread, 0, linger::QUANTUM_STEPS) {
                offer(thread, Occasion::Quantum);
            }
        }
    }
    reload_quantum(thread);
    thread.hot().quantum.set(thread.hot().quantum.get() - 1);
}
